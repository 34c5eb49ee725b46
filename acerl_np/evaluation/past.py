"""Past assignments judged as policies are: played in the simulator, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acerl_np.evaluation.trials import Trials
from acerl_np.kernels.state import Outcome
from acerl_np.problem.assignments import Assignments
from acerl_np.simulation.arena import stream_keys
from acerl_np.simulation.replay import Replay, replay_assignments
from acerl_np.support.numbers import Whole


def play_past(
    past: Sequence[Assignments],
    *,
    trials: int = 30,
    seed: Whole = 0,
    cost_limit: float = 50.0,
    horizon: float | None = None,
) -> Trials:
    """Play past assignments; only random breakdowns are drawn, those that policies meet with this seed.

    Parameters
    ----------
    past : sequence of Assignments
        One for each record.
    trials : int
        Episodes for each record; all equal where no vehicle breaks down at random.
    seed : int
    cost_limit : float
        xi, s.
    horizon : float, optional
        s after which an episode is stopped, finished or not; by default as `build_problem` says.

    Returns
    -------
    Trials

    Raises
    ------
    InputError
        If the horizon is unusable.
    """
    played = []
    for item in past:
        random = item.instance.layout.has_random_breakdowns
        different = trials if random else 1
        for key in stream_keys([item.instance], different, seed):
            outcome = replay_assignments(item, horizon=horizon, key=key).outcome
            played += [outcome] * (trials // different)
    whole = Outcome(*(np.concatenate(parts) for parts in zip(*played, strict=True)))
    return Trials.of([item.instance for item in past], whole, cost_limit)


def count_late(replay: Replay) -> int:
    """Return how many tasks of a replay were finished after they were due."""
    instance = replay.assignments.instance
    # Finishes are whole seconds; due times may be off by rounding.
    return int(np.count_nonzero(replay.finish > instance.arrival + instance.expiry + 1e-9))


def measure_delays(replay: Replay) -> np.ndarray:
    """Return how far each task's simulated start is behind the recorded one, float64 (n_tasks,), s."""
    return np.asarray(replay.start - replay.assignments.start)
