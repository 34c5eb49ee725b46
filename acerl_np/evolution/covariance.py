"""The spreads that learn their shape: covariance matrix adaptation (CMA-ES), full and separable.

Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772; numbers in brackets are its equations. The
separable form is that of Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space
complexity", PPSN 2008. Lengths are in units of the first sigma of each parameter. The root A of C = A A^T is
the triangular one, and the members' own normals z = A^(-1) y stand for C^(-1/2) y, as in Krause, Arbones and
Igel, "CMA-ES with optimal covariance update and storage complexity", NIPS 2016.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from acerl_np.evolution.rates import (
    Rates,
    find_places,
    find_rates,
    measure_variance,
    weigh_places,
)
from acerl_np.evolution.search import Search
from acerl_np.evolution.spreads import MAX_SIGMA, MIN_SIGMA, decay_noise, draw_noise
from acerl_np.kernels.update import Noise
from acerl_np.support.errors import ConfigError, InputError

MAX_MATRIX = 100
"""Most parameters of a full covariance: more take too many generations to learn."""
MIN_PIVOT = 1e-13
"""Least share of a parameter's variance that those before it leave open: float64 still tells it."""
MAX_GROWTH = 1.0
"""Largest growth of log sigma in a generation."""


class State(NamedTuple):
    """What a generation hands on to the next.

    Attributes
    ----------
    size : float
        sigma, in units of the first.
    covariance : ndarray(float64, (n_parameters, n_parameters) or (n_parameters,))
        C, or its diagonal.
    size_path, shape_path : ndarray(float64, (n_parameters,))
        p_sigma and p_c.
    updates : int
        Generations that changed it.
    """

    size: float
    covariance: np.ndarray
    size_path: np.ndarray
    shape_path: np.ndarray
    updates: int


class Covariance(ABC):
    """N(mean, sigma^2 C) in units of the first sigma: what the full and the diagonal form share.

    Parameters
    ----------
    first : ndarray(float64, (n_parameters,))
        sigma of the start, each number from `MIN_SIGMA` to `MAX_SIGMA`.
    decay : float
        Factor on sigma after every `every` generations, beside what is adapted.
    every : int
    limits : (ndarray(float64, (n_parameters,)), ndarray(float64, (n_parameters,))), optional
        Least and largest sigma of each parameter after a generation: beyond them its row and column of C
        are stretched or shrunk.
    state : State, optional
        By default that of the start: C is the identity, the paths are zeros.

    Raises
    ------
    InputError
        If the state is not usable.
    """

    def __init__(
        self,
        first: np.ndarray,
        decay: float = 1.0,
        every: int = 1,
        *,
        limits: tuple[np.ndarray, np.ndarray] | None = None,
        state: State | None = None,
    ) -> None:
        self.first = np.array(first, np.float64)
        self.decay = decay
        self.every = every
        self.limits = limits
        n = self.first.size
        self.state = state or State(1.0, self._make_round(n), np.zeros(n), np.zeros(n), 0)
        # From the covariance alone, here and nowhere else, so that a restored search has the same root.
        root = self._take_root(self.state.covariance) if self._is_in_limits(self.state) else None
        if root is None:
            raise InputError("read values that no search reaches")
        self._root = root
        self._drawn: tuple[Noise, np.ndarray] | None = None

    def unit(self, generation: int) -> np.ndarray:
        """Return the unit of lengths, the first sigma, decayed, (n_parameters,)."""
        return np.asarray(self.first * decay_noise(1.0, self.decay, self.every, generation))

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of each parameter, ndarray(float64, (n_parameters,)), at least `MIN_SIGMA`."""
        lengths = self.state.size * np.sqrt(self._variances(self.state.covariance))
        return np.asarray(np.maximum(MIN_SIGMA, self.unit(generation) * lengths))

    def draw(self, noise: Noise) -> np.ndarray:
        """Return the members' normals z, drawn once: ndarray(float32, (population, n_parameters))."""
        if self._drawn is None or self._drawn[0] != noise:
            self._drawn = noise, draw_noise(noise, self.first.size)
        return self._drawn[1]

    def place(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return mean + sigma A z_i, ndarray(float64, (population, n_parameters)) (38 to 40)."""
        return np.asarray(mean + self._scale(noise) * self._turn(self.draw(noise)))

    def follow(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step of the mean, and the spread after it.

        Only the order of the utilities counts; if all are equal, nothing changes. Sums run over the
        members in ascending order, without threads.
        """
        n, z = self.first.size, self.draw(noise)
        if (utilities == utilities[0]).all():
            return np.zeros(n), self
        rates = find_rates(n, noise.population, self._speed)
        places = find_places(utilities)
        weights = weigh_places(rates.mean_weights, places)
        z_mean = np.einsum("ij,ij->j", np.broadcast_to(weights, z.shape), z)
        y_mean = self._turn(z_mean[np.newaxis])[0]  # (41)
        step = search.learning_rate * self._scale(noise) * y_mean  # (42)

        # The root of mu_eff, but of these weights: ties share theirs, and pairs are no chance.
        root_mu = 1 / np.sqrt(measure_variance(weights, noise.antithetic))
        size, covariance, size_path, shape_path, updates = self.state
        c_s, c_c = rates.c_sigma, rates.c_c
        size_path = (1 - c_s) * size_path + math.sqrt(c_s * (2 - c_s)) * root_mu * z_mean  # (43)
        length = math.sqrt(np.einsum("j,j->", size_path, size_path)) / rates.length
        size = size * math.exp(min(MAX_GROWTH, c_s / rates.d_sigma * (length - 1)))  # (44)

        begun = math.sqrt(1 - (1 - c_s) ** (2 * (updates + 1)))
        h = 1.0 if length < (1.4 + 2 / (n + 1)) * begun else 0.0
        towards = h * math.sqrt(c_c * (2 - c_c)) * root_mu * y_mean
        shape_path = (1 - c_c) * shape_path + towards  # (45)
        covariance = self._learn(rates, places, z, shape_path, (1 - h) * c_c * (2 - c_c))
        return step, self._move(State(size, covariance, size_path, shape_path, updates + 1))

    def _learn(
        self, rates: Rates, places: np.ndarray, z: np.ndarray, path: np.ndarray, lost: float
    ) -> np.ndarray:
        """Return the covariance after its rank-one and rank-mu updates."""
        weights = weigh_places(rates.shape_weights, places)
        squares = np.einsum("ij,ij->i", z, z, dtype=np.float64)[:, np.newaxis]
        shortened = weights * self.first.size / np.maximum(squares, MIN_SIGMA)
        weights = np.where(weights < 0.0, shortened, weights)  # (46)
        kept = 1 + rates.c_1 * lost - rates.c_1 - rates.c_mu * rates.shape_weights.sum()
        rank_one = self._sum_squares(np.ones((1, 1)), path[np.newaxis])
        rank_mu = self._sum_squares(weights, self._turn(z))
        return np.asarray(
            kept * self.state.covariance + rates.c_1 * rank_one + rates.c_mu * rank_mu
        )  # (47)

    def _move(self, state: State) -> Self:
        """Return the spread with another state, or this one if that state is not usable."""
        try:
            return self._with(self._limit(state))
        except InputError:
            return self

    def _with(self, state: State) -> Self:
        return type(self)(self.first, self.decay, self.every, limits=self.limits, state=state)

    def _limit(self, state: State) -> State:
        """Return the state with every sigma within its limits."""
        variances = self._variances(state.covariance)
        if self.limits is None or not (np.isfinite(variances).all() and (variances > 0.0).all()):
            return state
        with np.errstate(over="ignore", under="ignore"):
            sigma = self.first * (state.size * np.sqrt(variances))
        factors = np.clip(sigma, *self.limits) / sigma
        if (factors == 1.0).all():
            return state
        return state._replace(covariance=self._stretch(state.covariance, factors))

    def _is_in_limits(self, state: State) -> bool:
        """Return whether a state is finite, and every sigma within its limits."""
        if not all(np.isfinite(array).all() for array in state):
            return False
        variances = self._variances(state.covariance)
        if state.updates < 0 or (variances <= 0.0).any():
            return False
        with np.errstate(over="ignore", under="ignore"):
            sigma = self.first * (state.size * np.sqrt(variances))
        return bool(((sigma >= MIN_SIGMA) & (sigma <= MAX_SIGMA)).all())

    def _scale(self, noise: Noise) -> np.ndarray:
        return np.asarray(self.unit(noise.generation) * self.state.size)

    # State

    def pack(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays of the state: its names, with numbers as arrays ().

        Returns
        -------
        dict of str to ndarray(float64 or int64)
        """
        return {name: np.array(value) for name, value in self.state._asdict().items()}

    def unpack(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the spread with this one's parameters and these arrays.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `pack` returned.

        Returns
        -------
        FullCovariance or DiagonalCovariance

        Raises
        ------
        InputError
            If an array is missing, has another dtype or shape, or values that no search reaches.
        """
        read: dict[str, np.ndarray] = {}
        for name, own in self.pack().items():
            if name not in arrays:
                raise InputError(f"read no '{name}'; expected what pack returned")
            read[name] = np.array(arrays[name])
            if read[name].dtype != own.dtype or read[name].shape != own.shape:
                raise InputError(
                    f"{name}: read {read[name].dtype} {read[name].shape}; "
                    f"expected {own.dtype} {own.shape}"
                )
        state = State(
            float(read["size"]),
            read["covariance"],
            read["size_path"],
            read["shape_path"],
            int(read["updates"]),
        )
        return self._with(state)

    # What the two forms do differently

    @property
    @abstractmethod
    def _speed(self) -> float:
        """Factor on the rates of the covariance."""

    @staticmethod
    @abstractmethod
    def _make_round(n: int) -> np.ndarray:
        """Return the first covariance."""

    @staticmethod
    @abstractmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        """Return the diagonal, (n_parameters,)."""

    @staticmethod
    @abstractmethod
    def _stretch(covariance: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return the covariance of parameters multiplied by factors."""

    @staticmethod
    @abstractmethod
    def _take_root(covariance: np.ndarray) -> np.ndarray | None:
        """Return A with A A^T = C; None if C is asymmetric or not positive definite by `MIN_PIVOT`."""

    @staticmethod
    @abstractmethod
    def _sum_squares(weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return sum_i w_i y_i y_i^T, or its diagonal."""

    @abstractmethod
    def _turn(self, normals: np.ndarray) -> np.ndarray:
        """Return A z of each row, (m, n_parameters)."""


class FullCovariance(Covariance):
    """A full covariance with step-size control (CMA-ES), which turns and stretches along a problem.

    Parameters are those of `Covariance`.

    Raises
    ------
    ConfigError
        If there are more than `MAX_MATRIX` parameters.
    """

    def __init__(
        self,
        first: np.ndarray,
        decay: float = 1.0,
        every: int = 1,
        *,
        limits: tuple[np.ndarray, np.ndarray] | None = None,
        state: State | None = None,
    ) -> None:
        if first.size > MAX_MATRIX:
            raise ConfigError(
                f"covariance: read {first.size:,} parameters; expected at most {MAX_MATRIX}"
            )
        super().__init__(first, decay, every, limits=limits, state=state)

    @property
    def _speed(self) -> float:
        return 1.0

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

    @staticmethod
    def _make_round(n: int) -> np.ndarray:
        return np.eye(n)

    @staticmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        return np.diagonal(covariance)

    @staticmethod
    def _stretch(covariance: np.ndarray, factors: np.ndarray) -> np.ndarray:
        return np.asarray(covariance * np.outer(factors, factors))

    @staticmethod
    def _take_root(covariance: np.ndarray) -> np.ndarray | None:
        # Cholesky by hand: LAPACK's bytes depend on the number of its threads from some 60 parameters on.
        if (covariance != covariance.T).any():
            return None
        n = len(covariance)
        root = np.zeros((n, n))
        for j in range(n):
            column = covariance[j:, j] - np.einsum("ik,k->i", root[j:, :j], root[j, :j])
            if not column[0] > MIN_PIVOT * covariance[j, j]:
                return None
            root[j:, j] = column / math.sqrt(column[0])
        return root

    @staticmethod
    def _sum_squares(weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        total = np.einsum("ij,ik->jk", weights * steps, steps)
        return np.asarray((total + total.T) / 2)

    def _turn(self, normals: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("jk,ik->ij", self._root, normals))


class DiagonalCovariance(Covariance):
    """A sigma for each parameter with step-size control (sep-CMA-ES), for any number of parameters.

    Parameters are those of `Covariance`.
    """

    @property
    def _speed(self) -> float:
        return (self.first.size + 2) / 3

    @staticmethod
    def _make_round(n: int) -> np.ndarray:
        return np.ones(n)

    @staticmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        return covariance

    @staticmethod
    def _stretch(covariance: np.ndarray, factors: np.ndarray) -> np.ndarray:
        return np.asarray(covariance * np.square(factors))

    @staticmethod
    def _take_root(covariance: np.ndarray) -> np.ndarray | None:
        return np.asarray(np.sqrt(covariance)) if (covariance > 0.0).all() else None

    @staticmethod
    def _sum_squares(weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        weights = np.broadcast_to(weights, steps.shape)
        return np.asarray(np.einsum("ij,ij,ij->j", weights, steps, steps))

    def _turn(self, normals: np.ndarray) -> np.ndarray:
        return np.asarray(self._root * normals)
