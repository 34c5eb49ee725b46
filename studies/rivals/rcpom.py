"""RCPOM: reward-constrained policy optimisation with invariant reward shaping and masked actions.

Sources: Tessler, Mankowitz and Mannor 2019 (arXiv:1805.11074); Hu et al. 2023, who add the shaping and the
masks. The policy is PPO's. The reward is r - lambda c; after every update lambda follows the violation of the
limit.

Shaping adds gamma Phi(s') - Phi(s) (Ng, Harada and Russell 1999), which leaves the best policy unchanged. The
authors' potential is not published. Here it is the queue, Phi(s) = -scale * waiting tasks / tasks of a
record, that is the reward of the time that the fleet will need for them, and 0 when all is done. A policy
that keeps the queue short is told so at its next decision, not at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.rivals.episodes import Ended, Seen
from studies.rivals.learner import Task, reward_outcome
from studies.rivals.ppo import PPO
from studies.rivals.settings import RewardConstrainedSettings


class RCPOM(PPO):
    """Reward-constrained policy optimisation with shaping."""

    settings_class = RewardConstrainedSettings

    def __init__(self, task: Task, settings: RewardConstrainedSettings) -> None:
        super().__init__(task, settings)
        self._costs: list[float] = []

    def potential(self, seen: Seen) -> np.ndarray:
        """Return Phi of what is seen, ndarray(float64, (B,))."""
        return np.asarray(-self.settings.reward_scale * seen.waiting / self.task.n_tasks)

    def reward(self, seen: Seen, ended: Ended, now: Seen) -> np.ndarray:
        """Return the shaped reward less lambda times the cost."""
        self._costs += ended.cost[ended.over].tolist()
        reward, cost = reward_outcome(self.settings, self.task, ended)
        later = np.where(ended.over, 0.0, self.potential(now))
        shaping = self.settings.discount * later - self.potential(seen)
        return np.asarray(reward + shaping - self.multiplier * cost)

    def update(self) -> None:
        """Learn from the rollout, then move lambda, the slowest of all."""
        super().update()
        if self._costs:
            excess = float(np.mean(self._costs)) - self.settings.goal.cost_limit
            step = self.settings.multiplier_rate * excess
            self.multiplier = max(0.0, self.multiplier + step)
            self._costs = []

    def pack(self) -> dict[str, Any]:
        """Return what `restore` needs; between two updates no cost is waiting."""
        return {**super().pack(), "learner.multiplier": np.array([self.multiplier])}

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned."""
        super().restore(found)
        self.multiplier = float(found["learner.multiplier"][0])
