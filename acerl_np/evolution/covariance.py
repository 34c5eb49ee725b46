"""The spreads that learn their shape: covariance matrix adaptation (CMA-ES), full and separable.

Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772; numbers in brackets are its equations. The
separable form is that of Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space
complexity", PPSN 2008. Lengths are in units of the first sigma of each parameter. The root of a covariance
is its symmetric one, so a member's own normals z are C^(-1/2) y, and no inverse is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from acerl_np.evolution.search import Search
from acerl_np.evolution.spreads import MAX_SIGMA, MIN_SIGMA, decay_noise, draw_noise
from acerl_np.kernels.update import Noise
from acerl_np.support.errors import ConfigError, InputError

MAX_MATRIX = 100
"""Most parameters of a full covariance: larger ones, whose decomposition libraries share out among
threads, would give other bytes on other machines."""
MAX_CONDITION = 1e14
"""Largest ratio of a covariance's eigenvalues: float64 still tells its thinnest direction."""
MAX_GROWTH = 1.0
"""Largest change of log sigma in a generation."""


class Rates(NamedTuple):
    """Strategy parameters of a population and a number of parameters (Table 1 of the tutorial).

    Attributes
    ----------
    mean_weights, shape_weights : ndarray(float64, (population,))
        By place, the best first: of the mean's step, where the worse half has none, and of the
        covariance, where it has negative ones.
    c_sigma, d_sigma : float
        Of the step size.
    c_c, c_1, c_mu : float
        Of the covariance's path, its rank-one and its rank-mu update.
    length : float
        Expected length of n_parameters standard normals.
    """

    mean_weights: np.ndarray
    shape_weights: np.ndarray
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    length: float


@lru_cache(maxsize=16)
def find_rates(n: int, population: int, speed: float) -> Rates:
    """Return the tutorial's rates.

    Parameters
    ----------
    n : int
        Parameters.
    population : int
    speed : float
        Factor on the covariance's rates: 1 for a full one, (n + 2) / 3 for a diagonal.

    Returns
    -------
    Rates
    """
    raw = math.log((population + 1) / 2) - np.log(np.arange(1, population + 1))  # (49)
    good, bad = np.maximum(raw, 0.0), np.maximum(-raw, 0.0)
    mu_eff = good.sum() ** 2 / np.square(good).sum()
    mu_bad = bad.sum() ** 2 / np.square(bad).sum()
    c_sigma = (mu_eff + 2) / (n + mu_eff + 5)  # (55)
    d_sigma = 1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma
    c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)  # (56)
    c_1 = min(1.0, speed * 2 / ((n + 1.3) ** 2 + mu_eff))  # (57)
    c_mu = speed * 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff)  # (58)
    c_mu = min(1 - c_1, c_mu)
    negative = 0.0
    if c_mu > 0.0:
        negative = min(
            1 + c_1 / c_mu,  # (50)
            1 + 2 * mu_bad / (mu_eff + 2),  # (51)
            (1 - c_1 - c_mu) / (n * c_mu),  # (52): the covariance stays positive definite
        )
    good /= good.sum()
    return Rates(
        mean_weights=good,
        shape_weights=good - negative * bad / bad.sum(),  # (53)
        c_sigma=float(c_sigma),
        d_sigma=float(d_sigma),
        c_c=float(c_c),
        c_1=float(c_1),
        c_mu=float(c_mu),
        length=math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)),
    )


def find_places(utilities: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the order of the members, those outside the bounds all in one place behind the others.

    A member is evaluated where it was clipped to, which is not where its noise points: many members
    clipped to one good corner would hold the search there. If all are outside, they count as they are.

    Parameters
    ----------
    utilities : ndarray(float, (population,))
        Larger is better.
    outside : ndarray(bool, (population, m))
        m = 1: the member as a whole; m = n_parameters: each of its parameters.

    Returns
    -------
    ndarray(int64, (population, m'))
        Larger is better, equal is tied; m' = 1 if all columns are the same.
    """
    order = np.unique(utilities, return_inverse=True)[1].reshape(-1, 1)
    if not outside.any():
        return order
    return np.where(outside & ~outside.all(axis=0), -1, order)


def weigh_places(by_place: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return each member's weight; tied members share the weights of their places.

    Parameters
    ----------
    by_place : ndarray(float64, (population,))
        The best first.
    places : ndarray(int64, (population, m))
        Larger is better.

    Returns
    -------
    ndarray(float64, (population, m))
    """
    weights = np.empty(places.shape)
    for column in range(places.shape[1]):
        _, tie, count = np.unique(-places[:, column], return_inverse=True, return_counts=True)
        first = np.cumsum(count) - count
        weights[:, column] = (np.add.reduceat(by_place, first) / count)[tie]
    return weights


class Covariance(ABC):
    """N(mean, sigma^2 C) in units of the first sigma: what the full and the diagonal form share.

    Parameters
    ----------
    first : ndarray(float64, (n_parameters,))
        sigma of the start, each number from `MIN_SIGMA` to `MAX_SIGMA`.
    decay : float
        Factor on sigma after every `every` generations, beside what is adapted.
    every : int
    """

    def __init__(self, first: np.ndarray, decay: float = 1.0, every: int = 1) -> None:
        n = first.size
        self.first = np.array(first, np.float64)
        self.decay = decay
        self.every = every
        self.size = 1.0
        self.covariance = self._make_round(n)
        self.size_path = np.zeros(n)
        self.shape_path = np.zeros(n)
        self.updates = 0
        self._root = self.covariance
        self._drawn: tuple[Noise, np.ndarray] | None = None

    # What the two forms do differently

    @staticmethod
    @abstractmethod
    def _make_round(n: int) -> np.ndarray:
        """Return the first covariance."""

    @staticmethod
    @abstractmethod
    def _take_root(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariance with its thinnest directions widened to `MAX_CONDITION`, and its root."""

    @abstractmethod
    def _turn(self, normals: np.ndarray) -> np.ndarray:
        """Return C^(1/2) z of each row, (m, n_parameters)."""

    @abstractmethod
    def _find_outside(self, search: Search[Any], noise: Noise) -> np.ndarray:
        """Return which members, (population, 1), or parameters of members are outside the bounds."""

    @property
    @abstractmethod
    def _speed(self) -> float:
        """Factor on the rates of the covariance."""

    @abstractmethod
    def _sum_squares(self, weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return sum_i w_i y_i y_i^T, or its diagonal."""

    # As a spread

    def unit(self, generation: int) -> np.ndarray:
        """Return the unit of lengths, the first sigma, decayed, (n_parameters,)."""
        return np.asarray(self.first * decay_noise(1.0, self.decay, self.every, generation))

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of each parameter, ndarray(float64, (n_parameters,)), at least `MIN_SIGMA`."""
        sigma = self.unit(generation) * (self.size * np.sqrt(self._variances(self.covariance)))
        return np.asarray(np.maximum(MIN_SIGMA, sigma))

    def draw(self, noise: Noise) -> np.ndarray:
        """Return the members' normals z, drawn once: ndarray(float32, (population, n_parameters))."""
        if self._drawn is None or self._drawn[0] != noise:
            self._drawn = noise, draw_noise(noise, self.first.size)
        return self._drawn[1]

    def place(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return mean + sigma C^(1/2) z_i, ndarray(float64, (population, n_parameters)) (38 to 40)."""
        return np.asarray(mean + self._scale(noise.generation) * self._turn(self.draw(noise)))

    def follow(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step of the mean, and the spread after it.

        Only the order of the utilities counts. Sums run over the members in ascending order, without
        threads.
        """
        n = self.first.size
        if (utilities == utilities[0]).all():
            return np.zeros(n), self
        rates = find_rates(n, noise.population, self._speed)
        places = find_places(utilities, self._find_outside(search, noise))
        z = self.draw(noise)
        weights = weigh_places(rates.mean_weights, places)
        z_mean = np.einsum("ij,ij->j", np.broadcast_to(weights, z.shape), z)
        y_mean = self._turn(z_mean[np.newaxis])[0]  # (41)
        step = search.learning_rate * self._scale(noise.generation) * y_mean  # (42)
        # With these weights and any order of the members, each entry of z_mean / scale has variance 1:
        scale = np.sqrt(measure_variance(weights, noise.antithetic))  # 1 / sqrt(mu_eff)

        c_s, c_c = rates.c_sigma, rates.c_c
        size_path = (1 - c_s) * self.size_path + math.sqrt(c_s * (2 - c_s)) / scale * z_mean  # (43)
        length = math.sqrt(np.einsum("j,j->", size_path, size_path)) / rates.length
        size = self.size * math.exp(min(MAX_GROWTH, c_s / rates.d_sigma * (length - 1)))  # (44)

        start = math.sqrt(1 - (1 - c_s) ** (2 * (self.updates + 1)))
        h = 1.0 if length / start < 1.4 + 2 / (n + 1) else 0.0
        shape_path = (1 - c_c) * self.shape_path + h * math.sqrt(
            c_c * (2 - c_c)
        ) / scale * y_mean  # (45)
        covariance = self._learn(rates, places, z, shape_path, (1 - h) * c_c * (2 - c_c))
        return step, self._move(size, covariance, size_path, shape_path)

    def _learn(
        self, rates: Rates, places: np.ndarray, z: np.ndarray, path: np.ndarray, lost: float
    ) -> np.ndarray:
        """Return the covariance after its rank-one and rank-mu updates."""
        weights = weigh_places(rates.shape_weights, places)
        squares = np.einsum("ij,ij->i", z, z, dtype=np.float64)[:, np.newaxis]
        shortened = weights * self.first.size / np.maximum(squares, MIN_SIGMA)
        kept = 1 + rates.c_1 * lost - rates.c_1 - rates.c_mu * rates.shape_weights.sum()
        return np.asarray(  # (46), (47)
            kept * self.covariance
            + rates.c_1 * self._sum_squares(np.ones((1, 1)), path[np.newaxis])
            + rates.c_mu
            * self._sum_squares(np.where(weights < 0, shortened, weights), self._turn(z))
        )

    # State

    def pack(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays that `unpack` reads.

        Returns
        -------
        dict of str to ndarray
            size float64 (), covariance float64 (n_parameters, n_parameters) or (n_parameters,), size_path
            and shape_path float64 (n_parameters,), updates int64 ().
        """
        return {
            "size": np.array(self.size),
            "covariance": self.covariance.copy(),
            "size_path": self.size_path.copy(),
            "shape_path": self.shape_path.copy(),
            "updates": np.array(self.updates, np.int64),
        }

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
            array = np.array(arrays[name])
            if array.dtype != own.dtype or array.shape != own.shape:
                raise InputError(
                    f"{name}: read {array.dtype} {array.shape}; expected {own.dtype} {own.shape}"
                )
            if not np.isfinite(array).all():
                raise InputError(f"{name}: not finite; expected finite numbers")
            read[name] = array
        spread = self._replace(
            float(read["size"]),
            read["covariance"],
            read["size_path"],
            read["shape_path"],
            int(read["updates"]),
        )
        if spread is None or spread.updates < 0:
            raise InputError("covariance, size or updates: read values that no search reaches")
        return spread

    def _move(
        self, size: float, covariance: np.ndarray, size_path: np.ndarray, shape_path: np.ndarray
    ) -> Self:
        """Return the spread after a step, or this one if sigma would leave its limits."""
        covariance, _ = self._take_root(covariance)
        moved = self._replace(size, covariance, size_path, shape_path, self.updates + 1)
        return self if moved is None else moved

    def _replace(
        self,
        size: float,
        covariance: np.ndarray,
        size_path: np.ndarray,
        shape_path: np.ndarray,
        updates: int,
    ) -> Self | None:
        """Return the spread with another state, None if that is not usable."""
        if not self._is_usable(size, covariance):
            return None
        spread = type(self)(self.first, self.decay, self.every)
        spread.size = size
        spread.covariance = covariance
        spread.size_path = size_path
        spread.shape_path = shape_path
        spread.updates = updates
        # From the covariance alone, here and nowhere else: a restored search has the same root.
        spread._root = self._take_root(covariance)[1]
        return spread

    def _is_usable(self, size: float, covariance: np.ndarray) -> bool:
        """Return whether a state is finite, positive definite, and every sigma within its limits."""
        if not (MIN_SIGMA <= size <= MAX_SIGMA and np.isfinite(covariance).all()):
            return False
        variances = self._variances(covariance)
        if not (variances > 0.0).all():
            return False
        with np.errstate(over="ignore", under="ignore"):
            sigma = self.first * (size * np.sqrt(variances))
        in_limits = ((sigma >= MIN_SIGMA) & (sigma <= MAX_SIGMA)).all()
        return bool(in_limits) and self._is_positive(covariance)

    @staticmethod
    @abstractmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        """Return the diagonal, (n_parameters,)."""

    @staticmethod
    @abstractmethod
    def _is_positive(covariance: np.ndarray) -> bool:
        """Return whether a covariance with a positive diagonal is positive definite (and symmetric)."""

    def _scale(self, generation: int) -> np.ndarray:
        return np.asarray(self.unit(generation) * self.size)


class FullCovariance(Covariance):
    """A full covariance with step-size control (CMA-ES), which turns and stretches along a problem.

    Parameters are those of `Covariance`, at most `MAX_MATRIX` of them.

    Raises
    ------
    ConfigError
        If there are too many parameters.
    """

    def __init__(self, first: np.ndarray, decay: float = 1.0, every: int = 1) -> None:
        if first.size > MAX_MATRIX:
            raise ConfigError(
                f"covariance: read {first.size:,} parameters; expected at most {MAX_MATRIX}"
            )
        super().__init__(first, decay, every)

    @staticmethod
    def _make_round(n: int) -> np.ndarray:
        return np.eye(n)

    @staticmethod
    def _take_root(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not np.isfinite(covariance).all():
            return covariance, covariance
        covariance = (covariance + covariance.T) / 2
        value, vector = np.linalg.eigh(covariance)
        least = value[-1] / MAX_CONDITION
        if value[0] < least:
            value = np.maximum(value, least)
            covariance = np.einsum("ij,j,kj->ik", vector, value, vector)
            covariance = (covariance + covariance.T) / 2
        root = np.einsum("ij,j,kj->ik", vector, np.sqrt(np.maximum(value, 0.0)), vector)
        return covariance, root

    def _turn(self, normals: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("jk,ik->ij", self._root, normals))

    def _find_outside(self, search: Search[Any], noise: Noise) -> np.ndarray:
        place = self.place(search.mean, noise)
        return np.asarray(find_outside(place, search.bounds).any(axis=1, keepdims=True))

    @property
    def _speed(self) -> float:
        return 1.0

    def _sum_squares(self, weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("ij,ik->jk", weights * steps, steps))

    @staticmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        return np.diagonal(covariance)

    @staticmethod
    def _is_positive(covariance: np.ndarray) -> bool:
        if not (covariance == covariance.T).all():
            return False
        value = np.linalg.eigvalsh(covariance)
        # Widened to MAX_CONDITION, a matrix of float64 is thinner by its rounding at most.
        return bool(value[0] * 10 * MAX_CONDITION >= value[-1])


class DiagonalCovariance(Covariance):
    """A sigma for each parameter with step-size control (sep-CMA-ES), for any number of parameters.

    Parameters are those of `Covariance`.
    """

    @staticmethod
    def _make_round(n: int) -> np.ndarray:
        return np.ones(n)

    @staticmethod
    def _take_root(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return covariance, np.sqrt(np.maximum(covariance, 0.0))

    def _turn(self, normals: np.ndarray) -> np.ndarray:
        return np.asarray(self._root * normals)

    def _find_outside(self, search: Search[Any], noise: Noise) -> np.ndarray:
        return find_outside(self.place(search.mean, noise), search.bounds)

    @property
    def _speed(self) -> float:
        return (self.first.size + 2) / 3

    def _sum_squares(self, weights: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return np.asarray(
            np.einsum("ij,ij,ij->j", np.broadcast_to(weights, steps.shape), steps, steps)
        )

    @staticmethod
    def _variances(covariance: np.ndarray) -> np.ndarray:
        return covariance

    @staticmethod
    def _is_positive(covariance: np.ndarray) -> bool:
        return bool((covariance > 0.0).all())


def find_outside(place: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Return which parameters lie outside the bounds, ndarray(bool, as place)."""
    if bounds is None:
        return np.zeros(place.shape, bool)
    return np.asarray((place < bounds[0]) | (place > bounds[1]))


def measure_variance(weights: np.ndarray, antithetic: bool) -> np.ndarray:
    """Return the variance of sum_i w_i z_i if the order of the members is chance, (m,).

    1 / mu_eff with independent members. A mirrored pair has the sum (w_a - w_b) z, of which the square's mean
    over all orders is twice the variance of the weights.

    Parameters
    ----------
    weights : ndarray(float64, (population, m))
        Each column sums to 1.
    antithetic : bool

    Returns
    -------
    ndarray(float64, (m,))
    """
    squares = np.square(weights).sum(axis=0)
    n = len(weights)
    return np.asarray((squares - 1 / n) * n / (n - 1) if antithetic else squares)
