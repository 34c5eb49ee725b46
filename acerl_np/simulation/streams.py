"""Which draws the random breakdowns of a batch of episodes take: by seeds, or by keys that are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core.random import BREAKDOWN, derive_key
from acerl_np.support.errors import InputError, refuse
from acerl_np.support.fields import Whole, is_whole


class BreakdownStreams:
    """The stream of each of B episodes, another one each time that it is started unless keys are given.

    Parameters
    ----------
    n_episodes : int
    seed : int, optional, by default 0: episode b draws from seed + b
    keys : array_like of int, (B, 4), optional, the same stream each time, without seeds
    draws : bool, whether any episode has random breakdowns, or no key is derived from a seed

    Raises
    ------
    InputError
        If the seed or the keys are unusable.
    """

    def __init__(
        self, n_episodes: int, seed: Whole | None, keys: ArrayLike | None, *, draws: bool
    ) -> None:
        self._keys = None if keys is None else _read_keys(keys, n_episodes)
        self._draws = draws
        self._seeds = [0] * n_episodes
        self._starts = [0] * n_episodes
        self.check_seeds([seed])
        self.seed_all(0 if seed is None else seed)

    def check_seeds(self, seeds: Sequence[Whole | None]) -> None:
        """Refuse seeds that are none, or any if there are keys; None passes."""
        given = [seed for seed in seeds if seed is not None]
        if given and self._keys is not None:
            raise InputError("seed: the random breakdowns have keys of their own; expected no seed")
        for seed in given:
            if not is_whole(seed) or seed < 0:
                refuse("seed", seed, "a whole number from 0 on")

    def seed_all(self, seed: Whole) -> None:
        """Let episode b draw from seed + b from its next start on; `check_seeds` has passed."""
        n = len(self._seeds)
        self.seed_episodes(range(n), [int(seed) + b for b in range(n)])

    def seed_episodes(self, episodes: Iterable[int], seeds: Sequence[Whole | None]) -> None:
        """Let some episodes draw from other seeds from their next start on; None keeps a stream."""
        for b, seed in zip(episodes, seeds, strict=True):
            if seed is not None:
                self._seeds[b] = int(seed) % 2**63
                self._starts[b] = 0

    def begin(self, rows: np.ndarray, key: np.ndarray) -> None:
        """Write the keys of episodes that are started."""
        if self._keys is not None:
            key[rows] = self._keys[rows]
        elif self._draws:
            for b in rows.tolist():
                derive_key(self._seeds[b], BREAKDOWN, self._starts[b], 0, key[b])
                self._starts[b] += 1


def _read_keys(keys: ArrayLike, n_episodes: int) -> np.ndarray:
    try:
        read = np.asarray(keys)
    except ValueError:
        read = np.empty(0)
    expected = f"whole numbers below 2**32 of shape ({n_episodes}, 4)"
    if read.shape != (n_episodes, 4) or read.dtype.kind not in "iu":
        refuse("breakdown_keys", f"{read.dtype} of shape {read.shape}", expected)
    if (read < 0).any() or (read >= 2**32).any():
        raise InputError(f"breakdown_keys: out of range; expected {expected}")
    return read.astype(np.uint32)
