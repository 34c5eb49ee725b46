"""Adapted step sizes: natural gradients of the spread of a normal distribution, on plain arrays.

Wierstra et al., "Natural evolution strategies", Journal of Machine Learning Research 15 (2014) 949-980.
A spread is what the noise is multiplied by, in units of the first sigma: one factor per parameter
(separable, SNES) or a matrix (exponential, xNES). It starts as ones, or as the identity.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

Adapt = Literal["none", "sigma", "matrix"]

MIN_SIGMA = 1e-150
"""Smallest sigma: its inverse and its square stay float64."""
MAX_SIGMA = 1e150
"""Largest adapted sigma."""
MAX_CONDITION = 1e14
"""Largest ratio of a matrix's singular values: float64 still tells its thinnest direction."""


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
