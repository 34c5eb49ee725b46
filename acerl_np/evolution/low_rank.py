"""One sigma with noise of low rank, which is drawn and summed faster for large matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.distributions import OneSigma
from acerl_np.kernels.learning.low_rank import count_numbers, draw_members, sum_products
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.workers import Workers

ROWS = 32
"""Rows of a matrix whose gradient one call sums."""


def read_shapes(shapes: ArrayLike | None, rank: int, n_parameters: int) -> np.ndarray:
    """Return the shapes of the matrices that parameters consist of; refuse others, and no rank."""
    if rank < 1:
        refuse("noise_rank", rank, "at least 1, or None for noise of full rank", ConfigError)
    if shapes is None:
        refuse("shapes", None, "rows and columns of each matrix with noise_rank", ConfigError)
    read = np.array(shapes)
    of_whole = read.ndim == 2 and read.shape[1] == 2 and read.dtype.kind in "iu"
    if not of_whole or read.min(initial=1) < 1 or read.prod(axis=1).sum() != n_parameters:
        expected = f"rows and columns of matrices with {n_parameters} parameters in all"
        refuse("shapes", shapes, expected, ConfigError)
    return read


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
