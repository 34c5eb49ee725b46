"""From returns and costs to utilities: intrinsic stochastic ranking and the ablation's alternatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.ranking import rank_members
from acerl_np.kernels.update import Noise
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.numbers import Whole

Ranking = Literal["isr", "cf", "r", "f", "penalty"]
Shaping = Literal["standardised", "rank"]


def penalise(costs: ArrayLike, cost_limit: float) -> np.ndarray:
    """Return the penalty phi = max(0, J_C - xi)^2 of each cost (Eq. 8).

    A member is feasible, its penalty 0, up to a cost of exactly xi; the metric P counts what is below xi
    (`evaluation.metrics.satisfied_share`), as the paper has both.

    Parameters
    ----------
    costs : array_like of float, (n,)
    cost_limit : float
        xi.

    Returns
    -------
    ndarray(float64, (n,))
    """
    return np.square(np.maximum(0.0, np.asarray(costs, np.float64) - cost_limit))


def sum_violations(constraints: ArrayLike) -> np.ndarray:
    """Return one cost for several constraints g_i(x) <= 0: the sum of max(0, g_i) (limit 0).

    An equality h(x) = 0 becomes g = abs(h) - tolerance. Constraints of different scales are best divided
    by a typical value first, as the sum weighs them by their numbers.

    Parameters
    ----------
    constraints : array_like of float, (..., n_constraints)
        g_i of each member, at most 0 if satisfied.

    Returns
    -------
    ndarray(float64, (...,))
        0 for a feasible member; nan or infinite if one of its constraints is nan or infinite.

    Raises
    ------
    InputError
        If `constraints` is a single number instead of a vector or matrix.
    """
    g = np.asarray(constraints, np.float64)
    if g.ndim == 0:
        raise InputError("constraints: read a number; expected shape (..., n_constraints)")
    return np.asarray(np.maximum(0.0, g).sum(axis=-1))


def standardise(x: np.ndarray) -> np.ndarray:
    """Return (x - mean) / std, all zero where the standard deviation is zero (ddof 0)."""
    deviation = x - x.mean()
    std = float(np.sqrt(np.square(deviation).mean()))
    # Equal numbers may leave a mean that is off by a rounding error; that is no spread.
    if std <= 1e-12 * max(1.0, float(np.abs(x).max())):
        return np.zeros_like(x)
    return np.asarray(deviation / std)


class Limits(NamedTuple):
    """How costs count.

    Attributes
    ----------
    cost_limit : float
        xi.
    p_f : float
        Probability of comparing by return although a member is infeasible.
    penalty : float
        Of a unit of cost beyond the limit less the margin, in units of the return.
    margin : float
    """

    cost_limit: float
    p_f: float
    penalty: float
    margin: float


def _score_isr(
    returns: np.ndarray, costs: np.ndarray, limits: Limits, key: tuple[int, int, int]
) -> np.ndarray:
    order = np.empty(len(returns), np.int64)
    rank_members(returns, penalise(costs, limits.cost_limit), limits.p_f, *key, order)
    score = np.empty(len(returns))
    score[order] = np.arange(len(returns), 0, -1)  # the best of mu' members gets mu' (line 22)
    return score


def _score_cf(
    returns: np.ndarray, costs: np.ndarray, limits: Limits, key: tuple[int, int, int]
) -> np.ndarray:
    return np.asarray(returns - costs)


def _score_r(
    returns: np.ndarray, costs: np.ndarray, limits: Limits, key: tuple[int, int, int]
) -> np.ndarray:
    score = np.empty(len(returns))
    score[np.argsort(-returns, kind="stable")] = np.arange(len(returns), 0, -1)
    return score


def _score_f(
    returns: np.ndarray, costs: np.ndarray, limits: Limits, key: tuple[int, int, int]
) -> np.ndarray:
    return returns.copy()


def _score_penalty(
    returns: np.ndarray, costs: np.ndarray, limits: Limits, key: tuple[int, int, int]
) -> np.ndarray:
    excess = np.maximum(0.0, costs - (limits.cost_limit - limits.margin))
    return np.asarray(returns - limits.penalty * excess)


Score = Callable[[np.ndarray, np.ndarray, Limits, tuple[int, int, int]], np.ndarray]

SCORES: dict[str, Score] = {
    "isr": _score_isr,
    "cf": _score_cf,
    "r": _score_r,
    "f": _score_f,
    "penalty": _score_penalty,
}
"""How the members of one instance are scored.

isr: intrinsic stochastic ranking (Algorithm 4); cf: return minus cost; r: rank of the return;
f: the return itself; penalty: the return less a penalty for cost near and beyond the limit.
"""


def rank_utilities(
    returns: ArrayLike,
    costs: ArrayLike,
    instance_ids: ArrayLike,
    *,
    ranking: Ranking = "isr",
    shaping: Shaping = "standardised",
    cost_limit: float = 50.0,
    p_f: float = 0.5,
    penalty: float = 3.0,
    margin: float = 5.0,
    seed: Whole = 0,
    generation: int = 0,
) -> np.ndarray:
    """Turn the returns and costs of a population into utilities, instance by instance.

    Members are compared only with members that played the same instance (Algorithm 4).

    Parameters
    ----------
    returns, costs : array_like of float, (n_members,)
        J_R and J_C.
    instance_ids : array_like of int, (n_members,)
    ranking : {"isr", "cf", "r", "f", "penalty"}
        How members of one instance are scored, see `SCORES`.
    shaping : {"standardised", "rank"}
        Scores standardised within the instance and then over the population, or as they are.
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
    j_r = np.ascontiguousarray(returns, np.float64)
    j_c = np.ascontiguousarray(costs, np.float64)
    ids = np.asarray(instance_ids)
    if (
        j_r.ndim != 1
        or j_r.shape != j_c.shape
        or j_r.shape != ids.shape
        or ids.dtype.kind not in "iu"
    ):
        raise InputError(
            f"returns, costs, instance ids: read shapes {j_r.shape}, {j_c.shape}, {ids.shape}; "
            "expected three equally long vectors, the ids whole numbers"
        )
    check_ranking(ranking, shaping, p_f)
    limits = Limits(cost_limit, p_f, penalty, margin)
    utilities = np.zeros(len(j_r))
    if len(j_r) == 0:
        return utilities
    for instance in np.unique(ids):
        members = np.flatnonzero(ids == instance)
        valid = np.isfinite(j_r[members]) & np.isfinite(j_c[members])
        good, bad = members[valid], members[~valid]
        key = (int(seed), generation, int(instance))
        score = np.empty(len(members))
        if len(good):
            scored = SCORES[ranking](j_r[good], j_c[good], limits, key)
            # Ranks count the members below, so those that failed take the lowest places.
            score[valid] = scored + (len(bad) if ranking in ("isr", "r") else 0)
            lowest = 1.0 if ranking in ("isr", "r") else float(scored.min()) - 1.0
        else:
            lowest = 1.0
        score[~valid] = lowest
        utilities[members] = standardise(score) if shaping == "standardised" else score
    return standardise(utilities) if shaping == "standardised" else utilities


@dataclass(frozen=True)
class Ranker:
    """`rank_utilities` with its options, keyed by a generation's noise.

    Attributes
    ----------
    ranking, shaping, cost_limit, p_f
        As `rank_utilities`.

    Raises
    ------
    ConfigError
        If an option is unknown or out of range.
    """

    ranking: Ranking = "isr"
    shaping: Shaping = "standardised"
    cost_limit: float = 50.0
    p_f: float = 0.5
    penalty: float = 3.0
    margin: float = 5.0

    def __post_init__(self) -> None:
        check_ranking(self.ranking, self.shaping, self.p_f)

    def __call__(
        self, returns: ArrayLike, costs: ArrayLike, instance_ids: ArrayLike, noise: Noise
    ) -> np.ndarray:
        """Return the members' utilities, ndarray(float64, (n_members,))."""
        return rank_utilities(
            returns,
            costs,
            instance_ids,
            ranking=self.ranking,
            shaping=self.shaping,
            cost_limit=self.cost_limit,
            p_f=self.p_f,
            penalty=self.penalty,
            margin=self.margin,
            seed=noise.seed,
            generation=noise.generation,
        )

    def rank_population(
        self, returns: np.ndarray, costs: np.ndarray, rows: np.ndarray, noise: Noise
    ) -> np.ndarray:
        """Return a utility per member from its K episodes, ndarray(float64, (population,)).

        Members are ranked within each of the records that they played, and a member's utility is the mean
        over its own. With "penalty" and several records it is the score of its mean return, less the mean
        penalty.

        Parameters
        ----------
        returns, costs : ndarray(float64, (population, K))
        rows : ndarray(int64, (population, K))
            The record of each episode.
        noise : Noise
        """
        if rows.shape[1] > 1 and self.ranking == "penalty":
            # Standardised within each record, records of long and of short days would count alike.
            scores = returns - self.penalty * np.maximum(
                0.0, costs - (self.cost_limit - self.margin)
            )
            means = scores.mean(axis=1)
            zeros = np.zeros(len(means), np.int64)
            return rank_utilities(
                means, zeros.astype(np.float64), zeros, ranking="f", shaping=self.shaping
            )
        utilities = self(returns.ravel(), costs.ravel(), rows.ravel(), noise)
        return np.asarray(utilities.reshape(rows.shape).mean(axis=1))


def check_ranking(ranking: str, shaping: str, p_f: float) -> None:
    """Refuse unknown or unusable options.

    Raises
    ------
    ConfigError
    """
    if ranking not in SCORES:
        raise ConfigError(f"ranking: read '{ranking}'; expected one of {', '.join(SCORES)}")
    if shaping not in get_args(Shaping):
        raise ConfigError(
            f"shaping: read '{shaping}'; expected one of {', '.join(get_args(Shaping))}"
        )
    if not 0.0 <= p_f <= 1.0:
        raise ConfigError(f"p_f: read {p_f}; expected a number from 0 to 1")
