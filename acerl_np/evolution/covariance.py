"""The distributions that learn their shape: covariance matrix adaptation (CMA-ES), full and separable.

Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772; numbers in brackets are its equations. The
separable form is that of Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space
complexity", PPSN 2008. Lengths are in units of the first sigma of each parameter. The root A of C = A A^T is
the triangular one, and the members' own normals z = A^(-1) y stand for C^(-1/2) y, as in Krause, Arbones and
Igel, "CMA-ES with optimal covariance update and storage complexity", NIPS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.rates import Rates, find_places, find_rates, measure_variance, weigh_places
from acerl_np.evolution.scaled import MAX_SIGMA, MIN_SIGMA, Scaled
from acerl_np.evolution.search import Search
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import InputError

MAX_MATRIX = 300
"""Most parameters of a matrix by default: a generation of 500 takes twice as long as pycma's."""
MIN_PIVOT = 1e-13
"""Least share of a parameter's variance that those before it leave open: float64 still tells it."""
MAX_GROWTH = 1.0
"""Largest growth of log sigma in a generation."""


def take_root(matrix: np.ndarray) -> np.ndarray | None:
    """Return A with A A^T = C, triangular; None if C is asymmetric or not positive definite.

    Of a diagonal, its root.
    """
    if matrix.ndim == 1:
        return np.asarray(np.sqrt(matrix)) if (matrix > 0.0).all() else None
    # Cholesky by hand: LAPACK's bytes depend on the number of its threads from some 60 parameters on.
    if (matrix != matrix.T).any():
        return None
    n = len(matrix)
    root = np.zeros((n, n))
    for j in range(n):
        column = matrix[j:, j] - np.einsum("ik,k->i", root[j:, :j], root[j, :j])
        if not column[0] > MIN_PIVOT * matrix[j, j]:
            return None
        root[j:, j] = column / math.sqrt(column[0])
    return root


def substitute(root: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return A^(-1) y of each row."""
    z = np.array(y)
    for j, row in enumerate(root):
        z[:, j] = (z[:, j] - np.einsum("ik,k->i", z[:, :j], row[:j])) / row[j]
    return z


class State(NamedTuple):
    """What a generation hands on to the next."""

    size: float
    """sigma, in units of the first."""
    covariance: np.ndarray
    """C (n_parameters, n_parameters), or its diagonal."""
    size_path: np.ndarray
    """p_sigma."""
    shape_path: np.ndarray
    """p_c."""
    updates: int
    """Generations that changed it."""


class Covariance(Scaled):
    """N(mean, sigma^2 C) in units of the first sigma: what the full and the diagonal form share.

    Each first sigma is from `MIN_SIGMA` to `MAX_SIGMA`. `limits` are the least and the largest sigma of each
    parameter after a generation: beyond them its row and column of C are stretched or shrunk. At the start C
    is the identity, and the paths are zeros. An `InputError` refuses a state that is not usable.
    """

    make_round: Callable[[int], np.ndarray] = np.ones
    """What makes the first covariance."""

    def __init__(
        self,
        first: np.ndarray,
        decay: float = 1.0,
        every: int = 1,
        *,
        limits: tuple[np.ndarray, np.ndarray] | None = None,
        state: State | None = None,
    ) -> None:
        super().__init__(first, decay, every)
        n = self.first.size
        self.limits = limits
        self.state = state or State(1.0, type(self).make_round(n), np.zeros(n), np.zeros(n), 0)
        # From the covariance alone, here and nowhere else, so that a restored search has the same root.
        root = take_root(self.state.covariance) if self._is_in_limits(self.state) else None
        if root is None:
            raise InputError("read values that no search reaches")
        self._root = root
        self._steps: tuple[np.ndarray, np.ndarray] | None = None

    def colour_drawn(self, noise: Noise) -> np.ndarray:
        """Return A z_i of the members, computed once."""
        z = self.draw(noise)
        if self._steps is None or self._steps[0] is not z:
            self._steps = z, self._colour(z)
        return self._steps[1]

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of each parameter, ndarray(float64, (n_parameters,)), at least `MIN_SIGMA`."""
        lengths = self.state.size * np.sqrt(self._variances(self.state.covariance))
        return np.asarray(np.maximum(MIN_SIGMA, self.unit(generation) * lengths))

    def sample(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return mean + sigma A z_i, ndarray(float64, (population, n_parameters)) (38 to 40)."""
        members = self._scale(noise) * self.colour_drawn(noise)
        members += mean
        return np.asarray(members)

    def update(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step of the mean, and the distribution after it.

        Only the order of the utilities counts; if all are equal, nothing changes. Sums run over the
        members in ascending order.
        """
        n, z = self.first.size, self.draw(noise)
        if (utilities == utilities[0]).all():
            return np.zeros(n), self
        rates = find_rates(n, noise.population, 1.0 if self._root.ndim == 2 else (n + 2) / 3)
        places = find_places(utilities)
        weights = weigh_places(rates.mean_weights, places)
        z_mean = np.einsum("ij,ij->j", np.broadcast_to(weights[:, np.newaxis], z.shape), z)
        y_mean = self._colour(z_mean[np.newaxis])[0]  # (41)
        step = search.learning_rate * self._scale(noise) * y_mean  # (42)

        # The root of mu_eff, but of these weights: ties share theirs, and pairs are no chance.
        root_mu = 1 / math.sqrt(measure_variance(weights, noise.antithetic))
        size, covariance, size_path, shape_path, updates = self.state
        c_s, c_c = rates.c_sigma, rates.c_c
        size_path = (1 - c_s) * size_path + math.sqrt(c_s * (2 - c_s)) * root_mu * z_mean  # (43)
        length = math.sqrt(np.einsum("j,j->", size_path, size_path)) / rates.length
        size = size * math.exp(min(MAX_GROWTH, c_s / rates.d_sigma * (length - 1)))  # (44)

        begun = math.sqrt(1 - (1 - c_s) ** (2 * (updates + 1)))
        h = 1.0 if length < (1.4 + 2 / (n + 1)) * begun else 0.0
        towards = h * math.sqrt(c_c * (2 - c_c)) * root_mu * y_mean
        shape_path = (1 - c_c) * shape_path + towards  # (45)
        covariance = self._learn(rates, places, noise, shape_path, (1 - h) * c_c * (2 - c_c))
        state = State(size, covariance, size_path, shape_path, updates + 1)
        try:
            return step, self._with(self._limit(state))
        except InputError:  # a state that no search may reach: the shape stays
            return step, self

    def _learn(
        self, rates: Rates, places: np.ndarray, noise: Noise, path: np.ndarray, lost: float
    ) -> np.ndarray:
        """Return the covariance after its rank-one and rank-mu updates."""
        z = self.draw(noise)
        weights = weigh_places(rates.shape_weights, places)[:, np.newaxis]
        squares = np.einsum("ij,ij->i", z, z, dtype=np.float64)[:, np.newaxis]
        shortened = weights * self.first.size / np.maximum(squares, MIN_SIGMA)
        weights = np.where(weights < 0.0, shortened, weights)  # (46)
        kept = 1 + rates.c_1 * lost - rates.c_1 - rates.c_mu * rates.shape_weights.sum()
        rank_one = self._sum_squares(np.ones((1, 1)), path[np.newaxis])
        rank_mu = self._sum_squares(weights, self.colour_drawn(noise))
        return np.asarray(
            kept * self.state.covariance + rates.c_1 * rank_one + rates.c_mu * rank_mu
        )  # (47)

    def shrink(self, size: float) -> Self:
        """Return this with another sigma, in units of the first, within the limits."""
        return self._with(self._limit(self.state._replace(size=size)))

    def _with(self, state: State) -> Self:
        return type(self)(self.first, self.decay, self.every, limits=self.limits, state=state)

    def _lengths(self, state: State) -> np.ndarray:
        """Return sigma of each parameter, nan where the state is not usable."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(
                self.first * (state.size * np.sqrt(self._variances(state.covariance)))
            )

    def _limit(self, state: State) -> State:
        """Return the state with every sigma within its limits."""
        sigma = self._lengths(state)
        if self.limits is None or not (np.isfinite(sigma).all() and (sigma > 0.0).all()):
            return state
        factors = np.clip(sigma, *self.limits) / sigma
        if (factors == 1.0).all():
            return state
        full = state.covariance.ndim == 2
        stretch = np.outer(factors, factors) if full else np.square(factors)
        return state._replace(covariance=state.covariance * stretch)

    def _is_in_limits(self, state: State) -> bool:
        """Return whether a state is finite, and every sigma within its limits."""
        if not all(np.isfinite(array).all() for array in state) or state.updates < 0:
            return False
        sigma = self._lengths(state)
        return bool(((sigma >= MIN_SIGMA) & (sigma <= MAX_SIGMA)).all())

    def _scale(self, noise: Noise) -> np.ndarray:
        return np.asarray(self.unit(noise.generation) * self.state.size)

    def pack(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays of the state: its names, with numbers as arrays ()."""
        return {name: np.array(value) for name, value in self.state._asdict().items()}

    def unpack(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the distribution with these arrays of `pack`; refuse those that no search reaches."""
        read = take_arrays(arrays, self.pack())
        plain: dict[str, Any] = {name: a if a.ndim else a.item() for name, a in read.items()}
        return self._with(State(**plain))

    # A diagonal is a vector, a full matrix two-dimensional

    @staticmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        """Return the diagonal, (n_parameters,)."""
        return np.diagonal(covariance) if covariance.ndim == 2 else covariance

    def _sum_squares(self, weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return sum_i w_i y_i y_i^T, or its diagonal."""
        if self._root.ndim == 1:
            return np.asarray(np.einsum("i,ij,ij->j", weights[:, 0], steps, steps))
        total = np.einsum("ij,ik->jk", weights * steps, steps)
        return np.asarray((total + total.T) / 2)

    def _colour(self, normals: np.ndarray) -> np.ndarray:
        """Return A z of each row, (m, n_parameters)."""
        if self._root.ndim == 1:
            return np.asarray(self._root * normals)
        return np.asarray(np.einsum("jk,ik->ij", self._root, normals))

    def colour(self, normals: np.ndarray, generation: int) -> np.ndarray:
        """Return the ways from the mean of normals, (m, n_parameters)."""
        return np.asarray(self.unit(generation) * self.state.size * self._colour(normals))

    def whiten(self, ways: np.ndarray, generation: int) -> np.ndarray:
        """Return A^(-1) y of each row."""
        y = ways / (self.unit(generation) * self.state.size)
        return np.asarray(y / self._root) if self._root.ndim == 1 else substitute(self._root, y)


class DiagonalCovariance(Covariance):
    """A sigma for each parameter with step-size control (sep-CMA-ES), for any number of parameters."""


class FullCovariance(Covariance):
    """A full covariance with step-size control (CMA-ES), which turns and stretches along a problem."""

    most = 2_000  # a generation of them takes a second
    make_round = np.eye

    @property
    def condition(self) -> float:
        """Largest share of a parameter's variance over what those before it leave open.

        A lower bound on the condition of C once all its variances are 1; beyond 1 / `MIN_PIVOT` C no longer
        changes.
        """
        open_ = np.square(np.diagonal(self._root)) / np.diagonal(self.state.covariance)
        return float(1 / open_.min())

    def list_axes(self, generation: int) -> np.ndarray:
        """Return sigma times the columns of A, a row for each: ndarray(float64, (n, n))."""
        return np.asarray((self.unit(generation) * self.state.size)[:, np.newaxis] * self._root).T


def take_arrays(
    given: Mapping[str, ArrayLike],
    own: Mapping[str, np.ndarray],
    of: str = "",
    *,
    growing: Container[str] = (),
) -> dict[str, np.ndarray]:
    """Return copies of the arrays that have the names, dtypes and shapes of one's own; refuse others.

    Texts may be of any length, and the first axes of those that are `growing`. `of` stands before each name
    in an error.
    """
    taken = {}
    for name, mine in own.items():
        if name not in given:
            raise InputError(f"{of}read no '{name}'; expected {mine.dtype} {mine.shape}")
        array = np.array(given[name])
        is_text = mine.dtype.kind == array.dtype.kind == "U"
        same = slice(1 if name in growing else 0, None)
        fits = array.ndim == mine.ndim and array.shape[same] == mine.shape[same]
        if not fits or not (is_text or array.dtype == mine.dtype):
            read, expected = (f"{a.dtype} {a.shape}" for a in (array, mine))
            raise InputError(f"{of}{name}: read {read}; expected {expected}")
        taken[name] = array
    return taken
