"""The paper's search distribution: one sigma, which follows a schedule.

With noise of low rank it is in `low_rank`, with a sigma per parameter in `scaled`; `covariance` has those
that learn their shape.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from acerl_np.evolution.ranges import MIN_NOISE_STD
from acerl_np.evolution.search import Search, SearchDistribution
from acerl_np.kernels.core.random import BLOCK, LANES
from acerl_np.kernels.learning.update import Noise, perturb_member, sum_noise
from acerl_np.support.workers import Workers


def decay_noise(first: float, decay: float, every: int, generation: int) -> float:
    """Return sigma of a generation, 0 for the first: first * decay^floor((generation + 1) / every)."""
    return float(first * decay ** ((generation + 1) // every))


class OneSigma(SearchDistribution):
    """N(theta, sigma^2 I): one sigma that decays by a schedule, for float32 parameters of any number.

    The first sigma is multiplied by `decay` after every `every` generations. Noise is drawn again when the
    gradient is summed, so memory does not grow with the population; `workers` share the sums.
    """

    def __init__(self, first: float, decay: float, every: int, workers: Workers) -> None:
        self.first = first
        self.decay = decay
        self.every = every
        self.workers = workers

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of a generation, (), never below `MIN_NOISE_STD`."""
        decayed = decay_noise(self.first, self.decay, self.every, generation)
        return np.array(max(MIN_NOISE_STD, decayed))

    def sample(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return theta + sigma eps_i of every member, ndarray(float32, (population, n_parameters))."""
        members = np.empty((noise.population, mean.size), np.float32)
        key = np.empty(4, np.uint32)
        bits, normals = np.empty((4, LANES), np.uint32), np.empty((4, LANES), np.float32)
        sigma = float(self.sigma(noise.generation))
        for member in range(noise.population):
            perturb_member(mean, sigma, noise, member, key, bits, normals, members[member])
        return members

    def estimate_gradient(
        self, utilities: np.ndarray, noise: Noise, n_parameters: int
    ) -> np.ndarray:
        """Return 1 / (lambda sigma) sum_i f_i eps_i, float32: Eq. 11, with antithetic members Eq. 12."""
        f = np.ascontiguousarray(utilities, np.float32)
        total = np.empty(n_parameters, np.float32)

        def add_block(block: int) -> None:
            sum_noise(f, noise, block, block + 1, total)

        self.workers.run(add_block, range(math.ceil(n_parameters / BLOCK)))
        total *= np.float32(1.0 / (noise.population * float(self.sigma(noise.generation))))
        return total

    def update(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return alpha times the gradient, and this distribution."""
        gradient = self.estimate_gradient(utilities, noise, search.mean.size)
        return np.asarray(np.float32(search.learning_rate) * gradient), self
