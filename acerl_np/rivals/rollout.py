"""What learners on policy remember between two updates, and the batches that they learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from acerl_np.kernels.perceptron import Inputs, allocate_inputs, list_inputs
from acerl_np.kernels.returns import find_advantages
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.learner import Task


class Rollout:
    """T steps of B episodes; row t B + b is step t of episode b.

    Parameters
    ----------
    n_steps, n_episodes : int
        T, B.
    task : Task

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
        self._seen = np.zeros((n_steps + 1, n_episodes, task.n_features), np.float32)
        self._mask = np.zeros((n_steps, n_episodes, task.n_actions), np.bool_)
        self._action = np.zeros((n_steps, n_episodes), np.int64)
        self.reward = np.zeros((n_steps, n_episodes))
        self.over = np.zeros((n_steps, n_episodes), np.bool_)
        self.inputs: Inputs = allocate_inputs((n_steps + 1) * n_episodes, task.n_features)
        self._advantage = np.zeros((n_steps, n_episodes))
        self.target = np.zeros(n_steps * n_episodes)
        self.rows = np.arange(n_steps * n_episodes)
        self._filled = 0

    @property
    def mask(self) -> np.ndarray:
        """Legal actions, ndarray(bool, (T B, n_actions))."""
        return self._mask.reshape(len(self.rows), -1)

    @property
    def action(self) -> np.ndarray:
        """Actions taken, ndarray(int64, (T B,))."""
        return self._action.reshape(-1)

    @property
    def advantage(self) -> np.ndarray:
        """Generalised advantages, ndarray(float64, (T B,))."""
        return self._advantage.reshape(-1)

    def add(
        self, seen: Seen, actions: np.ndarray, reward: np.ndarray, over: np.ndarray, now: Seen
    ) -> None:
        """Append a step of all episodes."""
        t = self._filled % self.n_steps
        self._seen[t], self._seen[t + 1] = seen.observation, now.observation
        self._mask[t], self._action[t] = seen.mask, actions
        self.reward[t], self.over[t] = reward, over
        self._filled = t + 1

    def judge(
        self, value_of: Callable[[np.ndarray], np.ndarray], discount: float, decay: float
    ) -> None:
        """Compute advantages and targets of all steps.

        Parameters
        ----------
        value_of : callable
            Values of some rows of `inputs`, ndarray(float64, (m,)).
        discount, decay : float
            gamma, lambda.
        """
        list_inputs(self._seen.reshape(-1, self._seen.shape[2]), self.inputs)
        every = np.arange(len(self.rows) + self.n_episodes)
        value = value_of(every).reshape(self.n_steps + 1, self.n_episodes)
        find_advantages(self.reward, self.over, value, discount, decay, self._advantage)
        self.target[:] = (self._advantage + value[:-1]).reshape(-1)

    def deal(self, size: int, uniforms: np.ndarray) -> Iterator[np.ndarray]:
        """Return batches of rows, each row once, in the order of `uniforms` (float64 (T B,)).

        What is left at the end joins the last batch.
        """
        order = np.argsort(uniforms, kind="stable")
        n_batches = max(1, len(order) // size)
        for k in range(n_batches):
            yield order[k * size : (k + 1) * size if k < n_batches - 1 else None]


def in_pieces(
    value_of: Callable[[np.ndarray], np.ndarray], n_rows: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that calls `value_of` with at most `n_rows` rows at a time."""

    def whole(rows: np.ndarray) -> np.ndarray:
        pieces = range(0, len(rows), n_rows)
        return np.concatenate([value_of(rows[first : first + n_rows]) for first in pieces])

    return whole
