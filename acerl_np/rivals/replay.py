"""The replay buffer: the latest steps, with masks, and n-step samples of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.perceptron import Inputs, allocate_inputs, list_inputs
from acerl_np.kernels.returns import sum_rewards
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.learner import Task
from acerl_np.support.errors import CheckpointError


class Sample(NamedTuple):
    """A batch of m steps.

    Attributes
    ----------
    inputs : Inputs
        2 m rows: before the steps, and after the last step of each return.
    mask, next_mask : ndarray(bool, (m, n_actions))
    action : ndarray(int64, (m,))
    total : ndarray(float64, (m,))
        Discounted rewards of the return's steps.
    factor : ndarray(float64, (m,))
        Discount of the value after them, 0 if the episode was over.
    """

    inputs: Inputs
    mask: np.ndarray
    next_mask: np.ndarray
    action: np.ndarray
    total: np.ndarray
    factor: np.ndarray


class Replay:
    """The latest steps of B episodes side by side, `capacity` of all together, in a ring."""

    def __init__(self, capacity: int, n_episodes: int, batch: int, task: Task) -> None:
        self.n_episodes = n_episodes
        self._capacity = max(1, capacity // n_episodes)
        shape = (self._capacity + 1, n_episodes)  # the last one holds what is seen now
        self._kept = {
            "seen": np.zeros((*shape, task.n_features), np.float32),
            "mask": np.zeros((*shape, task.n_actions), np.bool_),
            "action": np.zeros(shape, np.int64),
            "reward": np.zeros(shape),
            "over": np.zeros(shape, np.bool_),
        }
        self._inputs = allocate_inputs(2 * batch, task.n_features)
        self._now = 0
        self._n_steps = 0

    def add(
        self, seen: Seen, actions: np.ndarray, reward: np.ndarray, over: np.ndarray, now: Seen
    ) -> None:
        """Append a step of all episodes, over the oldest if there is no room."""
        step = seen.observation, seen.mask, actions, reward, over
        for array, own in zip(self._kept.values(), step, strict=True):
            array[self._now] = own
        self._now = (self._now + 1) % (self._capacity + 1)
        self._kept["seen"][self._now], self._kept["mask"][self._now] = now.observation, now.mask
        self._n_steps = min(self._n_steps + 1, self._capacity)

    def sample(self, uniforms: np.ndarray, n_steps: int, discount: float) -> Sample:
        """Return steps drawn with replacement, and their returns of at most `n_steps`.

        A return also ends with the episode, and with what is known so far. A step is drawn by each of the
        `uniforms`, ndarray(float64, (m,)) in [0, 1).
        """
        seen, mask, action, reward, over = self._kept.values()
        m = len(uniforms)
        drawn = (uniforms * (self._n_steps * self.n_episodes)).astype(np.int64)
        ago, episodes = np.divmod(drawn, self.n_episodes)
        ago += 1
        slots = (self._now - ago) % (self._capacity + 1)
        total, factor, end = np.empty(m), np.empty(m), np.empty(m, np.int64)
        sum_rewards(reward, over, slots, episodes, ago, n_steps, discount, total, end, factor)
        list_inputs(np.concatenate([seen[slots, episodes], seen[end, episodes]]), self._inputs)
        return Sample(
            self._inputs,
            mask[slots, episodes],
            mask[end, episodes],
            action[slots, episodes],
            total,
            factor,
        )

    def pack(self) -> dict[str, np.ndarray]:
        """Return what `restore` needs as arrays of a checkpoint."""
        return {**self._kept, "counts": np.array([self._now, self._n_steps], np.int64)}

    def restore(self, found: dict[str, np.ndarray]) -> None:
        """Take over what `pack` returned; a `CheckpointError` if there is no such action."""
        n_actions = self._kept["mask"].shape[2]
        if (found["action"] >= n_actions).any():
            raise CheckpointError(f"replay.action: expected actions below {n_actions}")
        for name, own in self._kept.items():
            own[:] = found[name]
        now, n_steps = found["counts"].tolist()
        self._now, self._n_steps = now % (self._capacity + 1), min(n_steps, self._capacity)
