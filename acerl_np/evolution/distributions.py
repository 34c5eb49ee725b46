"""The distributions of a search whose sigma follows a schedule: one sigma, or one per parameter.

Those that learn their shape are in `acerl_np.evolution.covariance`.
"""

from __future__ import annotations

import copy
import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.ranges import MIN_NOISE_STD
from acerl_np.evolution.search import Search, SearchDistribution
from acerl_np.kernels.core.random import BLOCK, LANES, NOISE
from acerl_np.kernels.learning.low_rank import count_numbers, draw_members, sum_products
from acerl_np.kernels.learning.update import Noise, fill_stream, perturb_member, sum_noise
from acerl_np.support.workers import Workers

Adapt = Literal["none", "sigma", "matrix"]
Step = Literal["natural", "plain"]

MIN_SIGMA = 1e-150
"""Smallest sigma of a parameter: its inverse and its square stay float64."""
MAX_SIGMA = 1e150
"""Largest adapted sigma."""


ROWS = 32
"""Rows of a matrix whose gradient one call sums."""


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


class LowRank(OneSigma):
    """As `OneSigma`, with noise of low rank: that of each matrix is a sum of `rank` products of two vectors.

    `shapes`, rows and columns, divide the parameters into matrices. Sarkar et al., arXiv:2511.16652.
    """

    def __init__(
        self, first: float, decay: float, every: int, workers: Workers, rank: int, shapes: ArrayLike
    ) -> None:
        super().__init__(first, decay, every, workers)
        self.rank = rank
        self.shapes = np.array(shapes, np.int64)

    def _draw(self, scales: np.ndarray, noise: Noise) -> np.ndarray:
        """Return the vectors of the members of a scale not 0, ndarray(float32, (n, n_numbers))."""
        vectors = np.empty((len(scales), count_numbers(self.shapes, self.rank)), np.float32)
        return vectors[: draw_members(noise, scales, self.rank, self.shapes, vectors)]

    def _list_matrices(self) -> list[tuple[int, slice, int, int]]:
        """Return for each matrix where its vectors begin, its parameters, its rows and its columns."""
        rows, columns = self.shapes.T
        firsts = np.cumsum(self.rank * (rows + columns)) - self.rank * (rows + columns)
        ends = np.cumsum(rows * columns)
        parameters = map(slice, ends - rows * columns, ends)
        return list(zip(firsts.tolist(), parameters, rows.tolist(), columns.tolist(), strict=True))

    def sample(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return theta + sigma eps_i of every member, ndarray(float32, (population, n_parameters))."""
        sigma = np.float32(float(self.sigma(noise.generation)) / math.sqrt(self.rank))
        vectors = self._draw(np.full(noise.population, sigma), noise)
        members = np.tile(mean, (noise.population, 1))
        for first, own, n_rows, n_columns in self._list_matrices():
            matrix = members[:, own].reshape(-1, n_rows, n_columns)
            for k in range(first, first + self.rank * (n_rows + n_columns), n_rows + n_columns):
                columns = vectors[:, k + n_rows : k + n_rows + n_columns]
                matrix = matrix + vectors[:, k : k + n_rows, None] * columns[:, None]
            members[:, own] = matrix.reshape(len(members), -1)
        return members

    def estimate_gradient(
        self, utilities: np.ndarray, noise: Noise, n_parameters: int
    ) -> np.ndarray:
        """Return 1 / (lambda sigma) sum_i f_i eps_i, float32, summed as a product of matrices."""
        f = np.ascontiguousarray(utilities, np.float32)
        vectors = self._draw(f[::2] - f[1::2] if noise.antithetic else f, noise)
        total = np.empty(n_parameters, np.float32)
        pieces = [
            (first, self.rank, row, min(n_rows, row + ROWS), total[own].reshape(n_rows, n_columns))
            for first, own, n_rows, n_columns in self._list_matrices()
            for row in range(0, n_rows, ROWS)
        ]
        self.workers.run(lambda piece: sum_products(vectors, *piece), pieces)
        sigma = float(self.sigma(noise.generation))
        total *= np.float32(1.0 / (noise.population * sigma * math.sqrt(self.rank)))
        return total


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
