"""Weights by place, and the learning rates of a search with a covariance.

Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772; numbers in brackets are its equations.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Rates(NamedTuple):
    """Strategy parameters of a population and a number of parameters (Table 1 of the tutorial).

    Weights stand by place, the best first. Of the mean's step the worse half has none, of the covariance it
    has negative ones.
    """

    mean_weights: np.ndarray
    shape_weights: np.ndarray
    c_sigma: float
    d_sigma: float
    """Damping of the step size."""
    c_c: float
    c_1: float
    c_mu: float
    """Of the covariance's path, its rank-one and its rank-mu update."""
    length: float
    """Expected length of n_parameters standard normals."""


def count_few(n: int) -> int:
    """Return the members that the tutorial gives a search for n parameters (48)."""
    return 4 + int(3 * math.log(n))


@lru_cache(maxsize=16)
def find_rates(n: int, population: int, speed: float) -> Rates:
    """Return the tutorial's rates of a search for n parameters.

    `speed` is a factor on the covariance's rates: 1 for a full one, (n + 2) / 3 for a diagonal.
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


def find_places(utilities: np.ndarray) -> np.ndarray:
    """Return the order of the members, ndarray(int64, (population,)): larger is better, equal is tied."""
    return np.unique(utilities, return_inverse=True)[1].reshape(-1)


def weigh_places(by_place: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return each member's weight, of the weights by place, the best first; tied members share theirs."""
    order = np.argsort(-places, kind="stable")
    if (places[order[1:]] != places[order[:-1]]).all():  # no ties
        weights = np.empty(len(places))
        weights[order] = by_place
        return weights
    _, tie, count = np.unique(-places, return_inverse=True, return_counts=True)
    first = np.cumsum(count) - count
    return np.asarray((np.add.reduceat(by_place, first) / count)[tie.reshape(-1)])


def measure_variance(weights: np.ndarray, antithetic: bool) -> float:
    """Return the variance of sum_i w_i z_i if the order of the members is chance; weights sum to 1.

    1 / mu_eff with independent members. A mirrored pair has the sum (w_a - w_b) z, of which the square's mean
    over all orders is twice the variance of the weights.
    """
    square, n = np.square(weights).sum(), len(weights)
    return float((square - 1 / n) * n / (n - 1) if antithetic else square)
