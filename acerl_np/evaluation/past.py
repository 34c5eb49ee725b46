"""Past assignments judged as policies are: played in the simulator, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing, Trials
from acerl_np.kernels.core.state import join_outcomes
from acerl_np.problem.instance import Instance
from acerl_np.problem.records import Assignments
from acerl_np.simulation.arena import stream_keys
from acerl_np.simulation.replay import Replay, replay_assignments


def play_past(past: Sequence[Assignments], playing: Playing) -> Trials:
    """Play past assignments, one for each record.

    Only random breakdowns are drawn, those that policies meet with this seed; where there are none all trials
    of a record are equal.
    """
    played = []
    for item in past:
        random = item.instance.layout.has_random_breakdowns
        different = playing.trials if random else 1
        for key in stream_keys([item.instance], different, playing.seed):
            replay = replay_assignments(item, horizon=playing.horizon, key=key, goal=playing.goal)
            played += [replay.outcome] * (playing.trials // different)
    return Trials.of([item.instance for item in past], join_outcomes(played), playing.goal)


def measure_delays(replay: Replay) -> np.ndarray:
    """Return how far each task's simulated start is behind the recorded one, float64 (n_tasks,), s."""
    return np.asarray(replay.start - replay.assignments.start)


def estimate_lengthening(replays: Sequence[Replay]) -> tuple[float, float, int]:
    """Return how many times as long driving took as in the simulator, with its error, and of how many trips.

    By recorded finishes, of trips that began when their vehicle was free; handling is taken as given. nan of
    fewer than two.
    """
    took, free = list[float](), list[float]()
    for replay in replays:
        past, handling = replay.assignments, replay.assignments.instance.handling_time
        last = np.full(len(past.instance.layout.vehicles), -np.inf)
        for k in past.order:
            v, finish = past.vehicle[k], past.finish[k]
            if np.isfinite(finish) and np.isfinite(last[v]):
                took.append(finish - max(past.start[k], last[v]) - handling[k])
                free.append(replay.finish[k] - replay.start[k] - handling[k])
            last[v] = finish
    return _compare_times(took, free)


def _compare_times(took: Sequence[float], free: Sequence[float]) -> tuple[float, float, int]:
    """Return the ratio of the sums of times, its standard error, and of how many; nan of fewer than two."""
    x, y = np.array(took), np.array(free)
    if len(x) < 2 or not y.sum() > 0.0:
        return math.nan, math.nan, len(x)
    factor = float(x.sum() / y.sum())
    error = float((x - factor * y).std(ddof=1) / (y.mean() * math.sqrt(len(x))))
    return factor, error, len(x)


def estimate_meeting(instance: Instance, policy: str = "nearest") -> tuple[float, float, int]:
    """Return how many times as long driving takes as where nobody meets, its error, and of how many trips.

    A policy plays a record on its floor, on which vehicles meet but do not break down. Each trip counts from
    where its vehicle set out, beside the way from there without others. nan of fewer than two.
    """
    layout = instance.layout.with_breakdowns({}).with_random_breakdowns(None)
    took, free = list[float](), list[float]()
    for trip in trace_policy(policy, replace(instance, layout=layout)).trips:
        if not trip.delivered:
            continue
        took.append(trip.end - trip.start - trip.pause - instance.handling_time[trip.task])
        free.append(took[-1] - trip.delay)
    return _compare_times(took, free)
