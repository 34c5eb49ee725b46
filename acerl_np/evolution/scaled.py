"""Distributions in float64 whose sigma of each parameter follows a schedule."""

from __future__ import annotations

import copy
import math
from typing import Any, Literal, Self

import numpy as np

from acerl_np.evolution.distributions import decay_noise
from acerl_np.evolution.search import Search, SearchDistribution
from acerl_np.kernels.core.random import NOISE
from acerl_np.kernels.learning.update import Noise, fill_stream

Adapt = Literal["none", "sigma", "matrix"]
Step = Literal["natural", "plain"]

MIN_SIGMA = 1e-150
"""Smallest sigma of a parameter: its inverse and its square stay float64."""
MAX_SIGMA = 1e150
"""Largest adapted sigma."""


class Scaled(SearchDistribution):
    """What the distributions in float64 share: a first sigma per parameter, its schedule, the noise drawn.

    The first sigmas, (n_parameters,), are multiplied by `decay` after every `every` generations.
    """

    def __init__(self, first: np.ndarray, decay: float, every: int) -> None:
        self.first = np.array(first, np.float64)
        self.decay = decay
        self.every = every
        self._drawn: tuple[Noise, np.ndarray] | None = None

    def unit(self, generation: int) -> np.ndarray:
        """Return the first sigma, decayed, (n_parameters,)."""
        return np.asarray(self.first * decay_noise(1.0, self.decay, self.every, generation))

    def draw(self, noise: Noise) -> np.ndarray:
        """Return the members' normals, drawn once: ndarray(float32, (population, n_parameters))."""
        if self._drawn is None or self._drawn[0] != noise:
            drawn = np.empty((noise.population, self.first.size), np.float32)
            for group, first in enumerate(range(0, noise.population, noise.group_size)):
                fill_stream(noise.seed, NOISE, noise.generation, group, drawn[first])
                if noise.antithetic:
                    np.negative(drawn[first], out=drawn[first + 1])
            self._drawn = noise, drawn
        return self._drawn[1]

    def replace(self, noise: Noise, ways: np.ndarray, rows: np.ndarray) -> Self:
        """Return the distribution that drew these ways as members `rows`, shortened where they are unlikely.

        Hansen, "Injecting external solutions into CMA-ES", arXiv:1110.4181.
        """
        n = self.first.size
        with np.errstate(over="ignore"):
            z = np.nan_to_num(self.whiten(ways, noise.generation))
            most = np.maximum(1.0, np.abs(z).max(axis=1, keepdims=True))
            length = most * np.sqrt(np.square(z / most).sum(axis=1, keepdims=True))
        drawn = self.draw(noise).copy()
        longest = math.sqrt(n) + 2 * n / (n + 2)
        drawn[rows] = z * np.minimum(1.0, longest / np.maximum(length, 1.0))
        other = copy.copy(self)
        other._drawn = noise, drawn
        return other

    def whiten(self, ways: np.ndarray, generation: int) -> np.ndarray:
        """Return the normals of ways from the mean, (m, n_parameters)."""
        return np.asarray(ways / self.sigma(generation))


class PerParameter(Scaled):
    """N(mean, diag(sigma^2)): a sigma per parameter that decays by a schedule, but not below `least`.

    The mean's step is alpha sigma / lambda sum_i f_i eps_i, or if "plain" alpha / (lambda sigma)
    sum_i f_i eps_i.
    """

    def __init__(
        self,
        first: np.ndarray,
        decay: float,
        every: int,
        *,
        step: Step = "natural",
        least: np.ndarray | None = None,
    ) -> None:
        super().__init__(first, decay, every)
        self.step = step
        self._least = MIN_SIGMA if least is None else np.maximum(MIN_SIGMA, least)

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of a generation, ndarray(float64, (n_parameters,)), never below `MIN_SIGMA`."""
        return np.asarray(np.maximum(self._least, self.unit(generation)))

    def sample(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return mean + sigma eps_i of every member, ndarray(float64, (population, n_parameters))."""
        members = self.sigma(noise.generation) * self.draw(noise)
        members += mean  # in place: pages of large arrays are dear
        return np.asarray(members)

    def update(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step of the mean, summed in the order of the members, and this distribution."""
        sigma = self.sigma(noise.generation)
        scale = sigma if self.step == "natural" else 1.0 / sigma
        total = np.einsum("i,ij->j", utilities, self.draw(noise)) / noise.population
        return np.asarray(search.learning_rate * scale * total), self
