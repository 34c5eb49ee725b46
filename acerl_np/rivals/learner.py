"""What the training asks of every compared learner, and how rewards are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.kernels.random import ACTION, BATCH, derive_key, fill_uniforms
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance
from acerl_np.rivals.episodes import Ended, Seen
from acerl_np.rivals.settings import Settings

BASELINE_TRIALS = 30


@dataclass(frozen=True)
class Task:
    """What is to be learned: sizes, draws, and the unit of rewards.

    Attributes
    ----------
    n_features, n_vehicles, n_rules : int
        n_actions = n_vehicles * n_rules.
    seed : int
    unit : float
        s, what makespan and tardiness are divided by.
    n_tasks : float
        Mean number of tasks of a training record.
    """

    n_features: int
    n_vehicles: int
    n_rules: int
    seed: int
    unit: float
    n_tasks: float

    @property
    def n_actions(self) -> int:
        """Number of actions, legal or not."""
        return self.n_vehicles * self.n_rules

    def draw_actions(self, n: int, count: int) -> np.ndarray:
        """Return `n` uniform numbers in [0, 1) for the actions of round number `count`."""
        return self._draw(ACTION, n, count)

    def draw_batch(self, n: int, count: int) -> np.ndarray:
        """Return `n` uniform numbers in [0, 1) for batch number `count`."""
        return self._draw(BATCH, n, count)

    def _draw(self, purpose: np.int64, n: int, count: int) -> np.ndarray:
        key = np.empty(4, np.uint32)
        derive_key(self.seed, purpose, count, 0, key)
        drawn = np.empty(n)
        fill_uniforms(key, drawn)
        return drawn


def measure_unit(instances: Sequence[Instance]) -> float:
    """Return the mean makespan of MIX on the training records, s: the unit of rewards."""
    trials = evaluate_policy("MIX", list(instances), trials=BASELINE_TRIALS, seed=0, threads=1)
    mean = float(np.nanmean(trials.makespan)) if np.isfinite(trials.makespan).any() else 0.0
    return mean if mean > 0.0 else 1.0


def reward_outcome(settings: Settings, task: Task, ended: Ended) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and cost of a step, zero but where an episode is over.

    Returns
    -------
    reward : ndarray(float64, (B,))
        scale * (shift - makespan / unit).
    cost : ndarray(float64, (B,))
        scale * tardiness / unit, so that a multiplier of 1 weighs a second of tardiness as one of makespan.
    """
    scale = settings.reward_scale
    reward = np.where(ended.over, scale * (settings.reward_shift - ended.makespan / task.unit), 0.0)
    return reward, scale * ended.tardiness / task.unit


class Learner(Protocol):
    """An algorithm: it acts, remembers what came of it, and learns."""

    settings_class: ClassVar[type[Settings]]
    interval: int
    """Steps of every episode between two updates."""

    def __init__(self, task: Task, settings: Any) -> None:
        """Begin with first parameters."""

    def act(self, seen: Seen) -> np.ndarray:
        """Return the actions to take, ndarray(int64, (B,))."""
        ...

    def remember(self, seen: Seen, actions: np.ndarray, ended: Ended, now: Seen) -> None:
        """Take in a step: what was seen, what was done, what it ended, and what is seen now."""

    def update(self) -> None:
        """Learn from what is remembered."""

    @property
    def multiplier(self) -> float:
        """Weight of the cost in the reward, 0 where there is none."""
        ...

    def make_policy(self, shape: dict[str, Any]) -> Policy | AgentPair:
        """Return the policy so far; `shape` is what `Policy` takes beside its parameters."""
        ...

    def pack(self) -> dict[str, Any]:
        """Return all that it has learned and remembers as arrays of a checkpoint."""
        ...

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned; a `CheckpointError` where that is not usable."""
