"""From returns and costs to utilities: intrinsic stochastic ranking and the ablation's alternatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.ranges import FIELDS, Ranking, Shaping
from acerl_np.kernels.learning.update import Noise, rank_members
from acerl_np.support.errors import refuse
from acerl_np.support.fields import Whole, read_fields
from acerl_np.support.own import Own

OwnRanking: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], ArrayLike]
"""A ranking of a user's own, f(returns, costs, instance_ids) -> utilities, see `rank_utilities`."""

MOST_COMPARISONS = 100_000_000
"""How many comparisons of members are made in one call."""


def penalise(costs: ArrayLike, cost_limit: float) -> np.ndarray:
    """Return the penalty phi = max(0, J_C - xi)^2 of each cost, float64 (Eq. 8), with xi the limit.

    A member is feasible, its penalty 0, up to a cost of exactly xi; the metric P counts what is below xi
    (`evaluation.metrics.satisfied_share`), as the paper has both.

    Parameters
    ----------
    costs : array-like of float
    cost_limit : float
    """
    return np.square(np.maximum(0.0, np.asarray(costs, np.float64) - cost_limit))


def standardise(x: np.ndarray) -> np.ndarray:
    """Return (x - mean) / std, all zero where the standard deviation is zero (ddof 0)."""
    deviation = x - x.mean()
    std = float(np.sqrt(np.square(deviation).mean()))
    # Equal numbers may leave a mean that is off by a rounding error; that is no spread.
    if std <= 1e-12 * max(1.0, float(np.abs(x).max())):
        return np.zeros_like(x)
    return np.asarray(deviation / std)


def rank_utilities(
    returns: ArrayLike,
    costs: ArrayLike,
    instance_ids: ArrayLike,
    *,
    ranking: Ranking | OwnRanking = "isr",
    shaping: Shaping = "standardised",
    cost_limit: float = 50.0,
    p_f: float = 0.5,
    penalty: float = 3.0,
    margin: float = 5.0,
    seed: Whole = 0,
    generation: int = 0,
) -> np.ndarray:
    """Turn the returns and costs of a population into utilities, instance by instance (Algorithm 4).

    Parameters
    ----------
    returns, costs : array_like of float, (n_members,)
    instance_ids : array_like of int, (n_members,)
    ranking : {"isr", "cf", "r", "f", "penalty"} or callable
        How members of one instance are scored: intrinsic stochastic ranking (Algorithm 4); return minus cost;
        rank of the return; the return itself; the return less a penalty for cost near and beyond the limit.
        Or a function of yours, f(returns, costs, instance_ids) -> utilities, finite, larger for better. It
        gets all members whose return and cost are finite, of whatever instance; the others get 1 less than
        the least that it returns.
    shaping : {"standardised", "rank"}
        Scores standardised within the instance and then over the population, or as they are. Those of a
        function of yours are standardised over the population alone, or as they are.
    cost_limit : float
        xi.
    p_f : float
        Probability of comparing by return although a member is infeasible, in [0, 1].
    penalty, margin : float
        With "penalty": the return less penalty * max(0, cost - (cost_limit - margin)).
    seed, generation : int
        Key of the ranking's draws.

    Returns
    -------
    ndarray(float64, (n_members,))
        Larger is better. A member whose return or cost is not finite ranks below all others of its
        instance.

    Raises
    ------
    InputError, ConfigError
        If the shapes differ, or an option is unknown or out of range.
    """
    rank = Ranker(ranking, shaping, cost_limit, p_f, penalty, margin)
    return rank(returns, costs, instance_ids, Noise(int(seed), generation, 0, False))


def _count_down(order: np.ndarray) -> np.ndarray:
    """Return the score of each member: the best of mu' members gets mu' (line 22)."""
    score = np.empty(len(order))
    score[order] = np.arange(len(order), 0, -1)
    return score


@dataclass(frozen=True)
class Ranker:
    """`rank_utilities` with its options, keyed by a generation's noise; a `ConfigError` refuses them.

    Attributes
    ----------
    ranking, shaping, cost_limit, p_f, penalty, margin
        As of `rank_utilities`.
    """

    ranking: Ranking | OwnRanking = "isr"
    shaping: Shaping = "standardised"
    cost_limit: float = 50.0
    p_f: float = 0.5
    penalty: float = 3.0
    margin: float = 5.0

    def __post_init__(self) -> None:
        vars(self).update(read_fields(FIELDS, vars(self)))

    def __call__(
        self, returns: ArrayLike, costs: ArrayLike, instance_ids: ArrayLike, noise: Noise
    ) -> np.ndarray:
        """Return the members' utilities, ndarray(float64, (n_members,)), as `rank_utilities`."""
        j_r = np.ascontiguousarray(returns, np.float64)
        j_c = np.ascontiguousarray(costs, np.float64)
        ids = np.asarray(instance_ids)
        same = j_r.ndim == 1 and j_r.shape == j_c.shape == ids.shape
        if not same or ids.dtype.kind not in "iu":
            refuse(
                "returns, costs, instance ids",
                f"shapes {j_r.shape}, {j_c.shape}, {ids.shape}",
                "three equally long vectors, the ids whole numbers",
            )
        utilities = np.zeros(len(j_r))
        if isinstance(self.ranking, Own):
            valid = np.isfinite(j_r) & np.isfinite(j_c)
            if valid.any():
                given = j_r[valid], j_c[valid], ids[valid].astype(np.int64)
                utilities[valid] = self.ranking.ask(int(valid.sum()), *given)
                utilities[~valid] = utilities[valid].min() - 1.0
            return self._shape(utilities)
        for instance in np.unique(ids):
            members = np.flatnonzero(ids == instance)
            valid = np.isfinite(j_r[members]) & np.isfinite(j_c[members])
            good, bad = members[valid], members[~valid]
            score = np.ones(len(members))
            if len(good):
                scored = self._score(j_r[good], j_c[good], noise, int(instance))
                # Ranks count the members below, so those that failed take the lowest places.
                counts = self.ranking in ("isr", "r")
                score[valid] = scored + (len(bad) if counts else 0)
                score[~valid] = 1.0 if counts else float(scored.min()) - 1.0
            utilities[members] = self._shape(score)
        return self._shape(utilities) if len(utilities) else utilities

    def _shape(self, scores: np.ndarray) -> np.ndarray:
        return standardise(scores) if self.shaping == "standardised" else scores

    def _score(
        self, returns: np.ndarray, costs: np.ndarray, noise: Noise, instance: int
    ) -> np.ndarray:
        """Return the scores of members of one instance."""
        if self.ranking == "cf":
            return np.asarray(returns - costs)
        if self.ranking == "r":
            return _count_down(np.argsort(-returns, kind="stable"))
        if self.ranking == "f":
            return returns
        if self.ranking == "penalty":
            return self._penalised(returns, costs)
        order, sweep = np.empty(len(returns), np.int64), 0
        given = returns, penalise(costs, self.cost_limit), self.p_f, int(noise.seed)
        most = 1 + MOST_COMPARISONS // len(order)
        while sweep >= 0:  # in parts, between which Ctrl-C is heard
            sweep = rank_members(*given, noise.generation, instance, sweep, most, order)
        return _count_down(order)

    def _penalised(self, returns: np.ndarray, costs: np.ndarray) -> np.ndarray:
        excess = np.maximum(0.0, costs - (self.cost_limit - self.margin))
        return np.asarray(returns - self.penalty * excess)

    def rank_population(
        self, returns: np.ndarray, costs: np.ndarray, rows: np.ndarray, noise: Noise
    ) -> np.ndarray:
        """Return a utility per member from its K episodes, ndarray(float64, (population,)).

        Members are ranked within each of the records that they played, and a member's utility is the mean
        over its own. With "penalty" and several records it is the score of its mean return, less the mean
        penalty. Returns, costs and the episodes' records (rows) are (population, K).
        """
        if rows.shape[1] > 1 and self.ranking == "penalty":
            # Standardised within each record, records of long and of short days would count alike.
            means = self._penalised(returns, costs).mean(axis=1)
            zeros = np.zeros(len(means), np.int64)
            return Ranker("f", self.shaping)(means, zeros, zeros, noise)
        utilities = self(returns.ravel(), costs.ravel(), rows.ravel(), noise)
        return np.asarray(utilities.reshape(rows.shape).mean(axis=1))
