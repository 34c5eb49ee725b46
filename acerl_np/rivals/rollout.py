"""What learners on policy remember between two updates, and the batches that they learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from acerl_np.kernels.perceptron import allocate_inputs, list_inputs
from acerl_np.kernels.returns import find_advantages
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.learner import Task


def cut(rows: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the rows in pieces of n, the last one of what is left."""
    return [rows[first : first + n] for first in range(0, len(rows), n)]


class Rollout:
    """T steps of B episodes; row t B + b is step t of episode b.

    Attributes
    ----------
    inputs : Inputs
        (T + 1) B rows: the last B are what is seen after the last step.
    mask : ndarray(bool, (T B, n_actions))
    action : ndarray(int64, (T B,))
    reward : ndarray(float64, (T, B)); over : ndarray(bool, (T, B))
    advantage, target : ndarray(float64, (T B,))
        After `judge`: generalised advantages, and what the value should have been.
    """

    def __init__(self, n_steps: int, n_episodes: int, task: Task) -> None:
        self.n_steps, self.n_episodes = n_steps, n_episodes
        n = n_steps * n_episodes
        self.rows = np.arange(n)
        self._seen = np.zeros((n + n_episodes, task.n_features), np.float32)
        self.inputs = allocate_inputs(n + n_episodes, task.n_features)
        self.mask = np.zeros((n, task.n_actions), np.bool_)
        self.action = np.zeros(n, np.int64)
        self.reward = np.zeros((n_steps, n_episodes))
        self.over = np.zeros((n_steps, n_episodes), np.bool_)
        self.advantage = np.zeros(n)
        self.target = np.zeros(n)
        self._filled = 0

    def add(
        self, seen: Seen, actions: np.ndarray, reward: np.ndarray, over: np.ndarray, now: Seen
    ) -> None:
        """Append a step of all episodes."""
        t, b = self._filled % self.n_steps, self.n_episodes
        own, later = slice(t * b, (t + 1) * b), slice((t + 1) * b, (t + 2) * b)
        self._seen[own], self._seen[later] = seen.observation, now.observation
        self.mask[own], self.action[own] = seen.mask, actions
        self.reward[t], self.over[t] = reward, over
        self._filled = t + 1

    def judge(
        self,
        value_of: Callable[[np.ndarray], np.ndarray],
        n_rows: int,
        discount: float,
        decay: float,
    ) -> None:
        """Compute advantages and targets of all steps, by the values of at most `n_rows` rows at a time."""
        list_inputs(self._seen, self.inputs)
        pieces = cut(np.arange(len(self._seen)), n_rows)
        value = np.concatenate([value_of(rows) for rows in pieces])
        shape = self.n_steps + 1, self.n_episodes
        advantage = self.advantage.reshape(self.reward.shape)
        find_advantages(self.reward, self.over, value.reshape(shape), discount, decay, advantage)
        self.target[:] = self.advantage + value[: len(self.rows)]

    def deal(self, size: int, uniforms: np.ndarray) -> Iterator[np.ndarray]:
        """Return batches of rows, each row once, in the order of `uniforms` (float64 (T B,)).

        What is left at the end joins the last batch.
        """
        order = np.argsort(uniforms, kind="stable")
        n_batches = max(1, len(order) // size)
        for k in range(n_batches):
            yield order[k * size : (k + 1) * size if k < n_batches - 1 else None]
