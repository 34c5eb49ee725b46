"""What the studies' judgements rest on: rank-sum tests, false discoveries, predictions, robust means.

A test's side and its p are of one statistic, the probability that a value of the one sample is larger than
one of the other (Mann and Whitney 1947). Chance is told from differences over all tests of a page (Benjamini
and Hochberg 1995). Aggregates are those of Agarwal et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

SIGNIFICANT = 0.05
FEW = 10
"""Values of a sample below which a rank-sum test counts all ways to part both."""
SAMPLES = 20_000
"""Of a bootstrap, from seed 0."""
POWER = 0.8


class RankSum(NamedTuple):
    """A rank-sum test: p, two-sided, and the probability that the own value is the larger one."""

    p: float
    larger: float

    @property
    def side(self) -> int:
        """1 if the own values are significantly larger, -1 if they are smaller, else 0."""
        if not self.p < SIGNIFICANT or self.larger == 0.5:
            return 0
        return 1 if self.larger > 0.5 else -1


def compare_ranks(own: ArrayLike, other: ArrayLike) -> RankSum:
    """Compare two samples by ranks; exact, ties too, if one has fewer than `FEW` values."""
    x, y = (np.ravel(np.asarray(values, np.float64)) for values in (own, other))
    larger = float((x[:, None] > y).mean() + 0.5 * (x[:, None] == y).mean())
    if np.ptp(np.concatenate([x, y])) == 0.0:
        return RankSum(1.0, larger)
    if min(len(x), len(y)) < FEW:
        return RankSum(_count_partitions(x, y), larger)
    return RankSum(float(stats.mannwhitneyu(x, y, method="asymptotic").pvalue), larger)


def _count_partitions(x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of partitions of both samples whose rank sum is as far from the mean as theirs."""
    ranks = np.rint(2.0 * stats.rankdata(np.concatenate([x, y]))).astype(
        int
    )  # halves where values tie
    ways = np.zeros((len(x) + 1, ranks.sum() + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    far = np.abs(np.arange(ways.shape[1]) - len(x) * ranks.mean())
    own = abs(ranks[: len(x)].sum() - len(x) * ranks.mean())
    return float(ways[-1, far >= own - 1e-9].sum() / ways[-1].sum())


def find_threshold(p: Iterable[float]) -> float:
    """Return the largest p that is still a discovery if 5 % of these may be false; 0 if there is none."""
    ordered = np.sort([*p])
    passing = ordered <= SIGNIFICANT * np.arange(1, len(ordered) + 1) / max(1, len(ordered))
    return float(ordered[passing][-1]) if passing.any() else 0.0


def predict_means(values: np.ndarray, n: int = 5) -> np.ndarray:
    """Return the means that n seeds and one draw of the records would print, ndarray(float64, (SAMPLES,)).

    Of means by suite, draw and seed (n_suites, n_draws, n_seeds): each suite has a draw of its own, all are
    played by the same seeds.
    """
    n_suites, n_draws, n_seeds = values.shape
    random = np.random.default_rng(0)
    draws = random.integers(n_draws, size=(SAMPLES, n_suites, 1))
    seeds = random.integers(n_seeds, size=(SAMPLES, 1, n))
    return np.asarray(values[np.arange(n_suites)[:, None], draws, seeds].mean(axis=(1, 2)))


class Gain(NamedTuple):
    """How far a mean is from another: its 95 % interval, and what difference 80 % of such tests would see."""

    mean: float
    low: float
    high: float
    visible: float


def measure_gain(own: np.ndarray, other: np.ndarray) -> Gain:
    """Return the difference of two samples' means, by Welch's t."""
    found = stats.ttest_ind(own, other, equal_var=False)
    low, high = found.confidence_interval(1.0 - SIGNIFICANT)
    mean = float(own.mean() - other.mean())
    factor = 1.0 + stats.norm.ppf(POWER) / stats.norm.ppf(1.0 - SIGNIFICANT / 2.0)
    return Gain(mean, float(low), float(high), float(factor * (high - low) / 2.0))


def measure_middle(scores: np.ndarray) -> tuple[float, float, float]:
    """Return the interquartile mean of scores (n_records, n_seeds), and the ends of its 95 % interval.

    The bootstrap draws seeds, each with what it scores on all records.
    """
    seeds = np.random.default_rng(0).integers(
        scores.shape[1], size=(SAMPLES // 10, scores.shape[1])
    )
    drawn = scores[:, seeds].swapaxes(0, 1).reshape(len(seeds), -1)
    low, high = np.quantile(stats.trim_mean(drawn, 0.25, axis=1), (0.025, 0.975))
    return float(stats.trim_mean(scores.ravel(), 0.25)), float(low), float(high)
