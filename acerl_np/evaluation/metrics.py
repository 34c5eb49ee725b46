"""The paper's metrics: normalised makespan M, normalised tardiness C, share P; paired differences.

M and C normalise a policy's mean makespan and tardiness on each instance by the largest and smallest
among its peers (Eqs. 18 and 19), so they are only comparable among policies with the same peers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

SIGNIFICANCE = 0.05

LEAST_JUDGES = 5
"""Records below which no standard error is told."""


def normalise(values: ArrayLike, peers: ArrayLike) -> np.ndarray:
    """Return the mean over instances of (max - F) / (max - min), max and min over the peers.

    Of means (n_policies, n_instances) and those of all peers. 1 is best among the peers on every instance;
    instances on which the peers are equal count 1. The mean of a policy on an instance is nan, and so is its
    result, where no episode finished; such means of peers are passed over.
    """
    x = np.atleast_2d(np.asarray(values, np.float64))
    reference = np.atleast_2d(np.asarray(peers, np.float64))
    unknown = np.isnan(reference)
    largest = np.where(unknown, -np.inf, reference).max(axis=0)
    smallest = np.where(unknown, np.inf, reference).min(axis=0)
    spread = largest - smallest
    score = np.ones_like(x)
    varied = spread > 0.0
    score[:, varied] = (largest[varied] - x[:, varied]) / spread[varied]
    score[np.isnan(x)] = np.nan
    return np.asarray(score.mean(axis=1))


def satisfied_share(tardiness: ArrayLike, cost_limit: float) -> float:
    """Return the metric P: the share of episodes with a tardiness below the limit (Eq. 20).

    Strictly below, as in the paper, here and wherever a share of satisfied trials is shown; nan, where an
    episode did not finish, is not below it. Ranking calls a member feasible whose cost is at the limit, too.
    """
    return float((np.asarray(tardiness, np.float64) < cost_limit).mean())


def standard_error(values: ArrayLike) -> float:
    """Return the standard error of a mean, nan of fewer than two values; nan among them is passed over."""
    x = np.asarray(values, np.float64)
    x = x[~np.isnan(x)]
    if len(x) < 2:
        return float("nan")
    # Equal values differ from their mean by rounding.
    return float(x.std(ddof=1) / np.sqrt(len(x))) if np.ptp(x) > 0.0 else 0.0


class Difference(NamedTuple):
    """A paired difference over records: mean, its standard error, and both in % of the other's mean.

    Negative is less; the errors are nan for fewer than `LEAST_JUDGES`, the percentages where the other's
    mean is 0. `errors` of them are half the 95 % interval, by the t distribution.
    """

    amount: float
    error: float
    percent: float
    percent_error: float
    errors: float = 2.0

    @property
    def sign(self) -> int | None:
        """-1 less, 1 more if the 95 % interval excludes 0, 0 if it holds it; None if that is unknown."""
        if math.isnan(self.error):
            return None
        if abs(self.amount) <= max(self.errors * self.error, 1e-9):
            return 0
        return -1 if self.amount < 0.0 else 1


def compare_paired(own: ArrayLike, other: ArrayLike) -> Difference:
    """Return how far a policy's means of records (n_records,) are from another's; nan if one is."""
    x, y = np.asarray(own, np.float64), np.asarray(other, np.float64)
    difference, errors = x - y, 2.0
    amount, mean = float(difference.mean()), float(y.mean())
    scale = 100.0 / mean if mean else math.nan
    error = math.nan
    if len(difference) >= LEAST_JUDGES:
        from scipy.special import stdtrit

        error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
        errors = float(stdtrit(len(difference) - 1, 1.0 - SIGNIFICANCE / 2.0))
    return Difference(amount, error, amount * scale, error * scale, errors)
