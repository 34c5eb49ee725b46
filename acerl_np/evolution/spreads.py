"""The three spreads of a search: one sigma, one per parameter, a full matrix; and their natural gradients.

Wierstra et al., "Natural evolution strategies", Journal of Machine Learning Research 15 (2014) 949-980.
Factors and matrices are in units of the first sigma: they start as ones, or as the identity.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np

from acerl_np.evolution.search import Search
from acerl_np.kernels.random import BLOCK, LANES, NOISE
from acerl_np.kernels.update import Noise, fill_stream, perturb_member, sum_noise
from acerl_np.support.workers import Workers

Adapt = Literal["none", "sigma", "matrix"]
Step = Literal["natural", "plain"]

MIN_NOISE_STD = 1e-9
"""Smallest single sigma: 1 / sigma stays a float32."""
MIN_SIGMA = 1e-150
"""Smallest sigma of a parameter: its inverse and its square stay float64."""
MAX_SIGMA = 1e150
"""Largest adapted sigma."""
MAX_CONDITION = 1e14
"""Largest ratio of a matrix's singular values: float64 still tells its thinnest direction."""


def decay_noise(first: float, decay: float, every: int, generation: int) -> float:
    """Return sigma of a generation: first * decay^floor((generation + 1) / every).

    Parameters
    ----------
    first : float
        sigma of the start.
    decay : float
    every : int
    generation : int
        0 for the first.

    Returns
    -------
    float
    """
    return float(first * decay ** ((generation + 1) // every))


def draw_noise(noise: Noise, n_parameters: int) -> np.ndarray:
    """Return the standard normals eps_i of a generation's members.

    Returns
    -------
    ndarray(float32, (population, n_parameters))
    """
    drawn = np.empty((noise.population, n_parameters), np.float32)
    for group, first in enumerate(range(0, noise.population, noise.group_size)):
        fill_stream(noise.seed, NOISE, noise.generation, group, drawn[first])
        if noise.antithetic:
            np.negative(drawn[first], out=drawn[first + 1])
    return drawn


class OneSigma:
    """N(theta, sigma^2 I): one sigma that decays by a schedule, for float32 parameters of any number.

    Noise is drawn again when the gradient is summed, so memory does not grow with the population.

    Parameters
    ----------
    first : float
        sigma of the start.
    decay : float
        Factor on sigma after every `every` generations.
    every : int
    workers : Workers
        Threads that share the sums; no result depends on them.
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

    def place(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
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
        """Return 1 / (lambda sigma) sum_i f_i eps_i, the vanilla estimator (Eq. 11).

        With antithetic members the same sum is Eq. 12.

        Parameters
        ----------
        utilities : ndarray(float, (population,))
        noise : Noise
        n_parameters : int

        Returns
        -------
        ndarray(float32, (n_parameters,))
        """
        f = np.ascontiguousarray(utilities, np.float32)
        total = np.empty(n_parameters, np.float32)

        def add_block(block: int) -> None:
            sum_noise(f, noise, block, block + 1, total)

        self.workers.run(add_block, range(math.ceil(n_parameters / BLOCK)))
        total *= np.float32(1.0 / (noise.population * float(self.sigma(noise.generation))))
        return total

    def follow(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return alpha times the gradient, and this spread, which only its schedule changes."""
        gradient = self.estimate_gradient(utilities, noise, search.mean.size)
        return np.asarray(np.float32(search.learning_rate) * gradient), self


class PerParameter:
    """N(mean, diag(sigma^2)): a sigma per parameter, by a schedule or adapted (SNES), in float64.

    Parameters
    ----------
    first : ndarray(float64, (n_parameters,))
        sigma of the start.
    decay : float
        Factor on sigma after every `every` generations.
    every : int
    step : {"natural", "plain"}
        Of the mean: alpha sigma / lambda sum_i f_i eps_i, or alpha / (lambda sigma) sum_i f_i eps_i.
    adapts : bool
        Whether sigma follows its natural gradient, and the mean that of the members' order.
    factors : ndarray(float64, (n_parameters,)), optional
        Of sigma, as adapted so far; by default ones.
    """

    def __init__(
        self,
        first: np.ndarray,
        decay: float,
        every: int,
        *,
        step: Step = "natural",
        adapts: bool = False,
        factors: np.ndarray | None = None,
    ) -> None:
        self.first = first
        self.decay = decay
        self.every = every
        self.step = step
        self.adapts = adapts
        self.factors = np.ones(first.size) if factors is None else factors
        self._drawn: tuple[Noise, np.ndarray] | None = None

    def replace(self, factors: np.ndarray) -> Self:
        """Return this spread with other factors."""
        return type(self)(
            self.first,
            self.decay,
            self.every,
            step=self.step,
            adapts=self.adapts,
            factors=factors,
        )

    def unit(self, generation: int) -> np.ndarray:
        """Return what the factors are multiplied by: the first sigma, decayed, (n_parameters,)."""
        return np.asarray(self.first * decay_noise(1.0, self.decay, self.every, generation))

    def sigma(self, generation: int) -> np.ndarray:
        """Return sigma of a generation, ndarray(float64, (n_parameters,)), never below `MIN_SIGMA`."""
        return np.asarray(np.maximum(MIN_SIGMA, measure_sigma(self.factors, self.unit(generation))))

    def draw(self, noise: Noise) -> np.ndarray:
        """Return the members' noise, drawn once: ndarray(float32, (population, n_parameters))."""
        if self._drawn is None or self._drawn[0] != noise:
            self._drawn = noise, draw_noise(noise, self.first.size)
        return self._drawn[1]

    def stretch(self, normals: np.ndarray, generation: int) -> np.ndarray:
        """Return what these normals, (n, n_parameters), add to the mean."""
        return np.asarray(self.sigma(generation) * normals)

    def place(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return mean + sigma eps_i of every member, ndarray(float64, (population, n_parameters))."""
        return np.asarray(mean + self.stretch(self.draw(noise), noise.generation))

    def follow(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step of the mean, and the spread after it.

        Sums run over the members in ascending order, without threads.
        """
        normals = self.draw(noise)
        if not self.adapts:
            sigma = self.sigma(noise.generation)
            scale = sigma if self.step == "natural" else 1.0 / sigma
            total = np.einsum("i,ij->j", utilities, normals) / noise.population
            return np.asarray(search.learning_rate * scale * total), self
        weights = weigh_members(utilities, self._find_outside(search, noise))
        total = (weights * normals).sum(axis=0, keepdims=True)
        step = search.learning_rate * self.stretch(total, noise.generation)[0]
        return step, self.replace(self._adapt(weights, normals))

    def _find_outside(self, search: Search[Any], noise: Noise) -> np.ndarray:
        """Return whether each parameter of each member, or each member, lies outside the bounds."""
        place = self.place(search.mean, noise)
        if search.bounds is None:
            return np.zeros(place.shape, bool)
        return np.asarray((place < search.bounds[0]) | (place > search.bounds[1]))

    def _adapt(self, weights: np.ndarray, normals: np.ndarray) -> np.ndarray:
        return adapt_factors(self.factors, weights, normals, self.first)


class Matrix(PerParameter):
    """N(mean, (unit A)(unit A)^T): a full matrix that follows its natural gradient (xNES), in float64.

    Parameters are those of `PerParameter`; `factors` is the matrix A, ndarray(float64, (n_parameters,
    n_parameters)), by default the identity.
    """

    def __init__(
        self,
        first: np.ndarray,
        decay: float,
        every: int,
        *,
        step: Step = "natural",
        adapts: bool = True,
        factors: np.ndarray | None = None,
    ) -> None:
        matrix = np.eye(first.size) if factors is None else factors
        super().__init__(first, decay, every, step=step, adapts=adapts, factors=matrix)

    def stretch(self, normals: np.ndarray, generation: int) -> np.ndarray:
        """Return what these normals, (n, n_parameters), add to the mean."""
        turned = np.einsum("jk,ik->ij", self.factors, normals)
        return np.asarray(self.unit(generation) * turned)

    def _find_outside(self, search: Search[Any], noise: Noise) -> np.ndarray:
        return np.asarray(super()._find_outside(search, noise).any(axis=1, keepdims=True))

    def _adapt(self, weights: np.ndarray, normals: np.ndarray) -> np.ndarray:
        return adapt_matrix(self.factors, weights, normals, self.first)


def weigh_places(scores: np.ndarray) -> np.ndarray:
    """Return a weight per member that depends on its place alone and sums to zero.

    log(n + 1) - log(place), divided by the sum, less 1 / n: the utilities of Wierstra et al. with all
    places instead of the better half. Convex, so a slope widens the spread a little, but
    driven less by the best few, whose places are partly chance in a stochastic ranking. Equal scores
    share the weights of their places.

    Parameters
    ----------
    scores : ndarray(float64, (n_members,))
        Larger is better.

    Returns
    -------
    ndarray(float64, (n_members,))
        Exactly zero if all scores are equal.
    """
    n = len(scores)
    _, tie, count = np.unique(-scores, return_inverse=True, return_counts=True)
    if len(count) == 1:
        return np.zeros(n)
    weight = math.log(n + 1) - np.log(np.arange(1, n + 1))
    weight = weight / weight.sum() - 1.0 / n
    first = np.cumsum(count) - count
    return np.asarray((np.add.reduceat(weight, first) / count)[tie])


def weigh_members(utilities: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the weights of the members with those outside the bounds behind all others.

    A member is evaluated where it was clipped to, which is not where its noise points: many members
    clipped to one good corner would hold the search there. If all are outside, they count as they are.

    Parameters
    ----------
    utilities : ndarray(float64, (n_members,))
        Larger is better.
    outside : ndarray(bool, (n_members, m))
        m = 1: the member as a whole; m = n_parameters: each of its parameters.

    Returns
    -------
    ndarray(float64, (n_members, m))
        Each column sums to zero; exactly zero if all utilities are equal.
    """
    n, m = outside.shape
    lowest = utilities.min()
    if lowest == utilities.max():
        return np.zeros((n, m))
    weights = np.repeat(weigh_places(utilities)[:, np.newaxis], m, axis=1)
    # Places instead of utilities, so that one less than the lowest is another number.
    places = np.unique(utilities, return_inverse=True)[1].astype(np.float64)
    for column in np.flatnonzero(outside.any(axis=0) & ~outside.all(axis=0)):
        weights[:, column] = weigh_places(np.where(outside[:, column], -1.0, places))
    return weights


def measure_sigma(spread: np.ndarray, first_sigma: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each parameter.

    Parameters
    ----------
    spread : ndarray(float64, (n_parameters,) or (n_parameters, n_parameters))
    first_sigma : ndarray(float64, (n_parameters,))

    Returns
    -------
    ndarray(float64, (n_parameters,))
    """
    return np.asarray(
        first_sigma * (spread if spread.ndim == 1 else np.sqrt(np.square(spread).sum(axis=1)))
    )


def is_usable(spread: np.ndarray, first_sigma: np.ndarray) -> bool:
    """Return whether every sigma is within its limits, and a matrix has a positive determinant.

    Parameters
    ----------
    spread : ndarray(float64, (n_parameters,) or (n_parameters, n_parameters))
    first_sigma : ndarray(float64, (n_parameters,))

    Returns
    -------
    bool
    """
    with np.errstate(over="ignore", under="ignore"):
        sigma = measure_sigma(spread, first_sigma)
    if not ((sigma >= MIN_SIGMA) & (sigma <= MAX_SIGMA)).all():
        return False
    if spread.ndim == 1:
        return True
    singular = np.linalg.svd(spread, compute_uv=False)
    return bool(singular[-1] * MAX_CONDITION >= singular[0] and np.linalg.slogdet(spread)[0] > 0.0)


def adapt_factors(
    spread: np.ndarray, weights: np.ndarray, noise: np.ndarray, first_sigma: np.ndarray
) -> np.ndarray:
    """Return each factor after its natural gradient (SNES).

    spread exp(eta / 2 sum_i w_i (s_i^2 - 1)), with eta = (3 + log n) / (5 sqrt(n)), the article's default. A
    factor whose sigma would leave its limits stays.

    Parameters
    ----------
    spread : ndarray(float64, (n_parameters,))
    weights : ndarray(float64, (n_members, n_parameters))
    noise : ndarray(float32, (n_members, n_parameters))
        s.
    first_sigma : ndarray(float64, (n_parameters,))

    Returns
    -------
    ndarray(float64, (n_parameters,))
    """
    n = len(spread)
    eta = (3 + math.log(n)) / (5 * math.sqrt(n))
    gradient = np.einsum("ij,ij->j", weights, np.square(noise, dtype=np.float64) - 1.0)
    adapted = spread * np.exp(eta / 2 * gradient)
    sigma = measure_sigma(adapted, first_sigma)
    return np.where((sigma >= MIN_SIGMA) & (sigma <= MAX_SIGMA), adapted, spread)


def adapt_matrix(
    spread: np.ndarray, weights: np.ndarray, noise: np.ndarray, first_sigma: np.ndarray
) -> np.ndarray:
    """Return the matrix after its natural gradient (xNES).

    spread exp(eta / 2 sum_i w_i (s_i s_i^T - I)), with eta = (9 + 3 log n) / (5 n sqrt(n)) for shape
    and size alike, the article's default. A step to a matrix that is not usable is not made.

    Parameters
    ----------
    spread : ndarray(float64, (n_parameters, n_parameters))
    weights : ndarray(float64, (n_members, 1))
    noise : ndarray(float32, (n_members, n_parameters))
        s.
    first_sigma : ndarray(float64, (n_parameters,))

    Returns
    -------
    ndarray(float64, (n_parameters, n_parameters))
    """
    n = len(spread)
    eta = (9 + 3 * math.log(n)) / (5 * n * math.sqrt(n))
    s = noise.astype(np.float64)
    # The weights sum to zero, so the identity drops out.
    gradient = np.einsum("ij,ik->jk", weights * s, s)
    if not gradient.any():
        return spread
    value, vector = np.linalg.eigh((gradient + gradient.T) / 2)
    growth = np.einsum("ij,j,kj->ik", vector, np.exp(eta / 2 * value), vector)
    adapted = np.einsum("ij,jk->ik", spread, growth)
    return adapted if is_usable(adapted, first_sigma) else spread
