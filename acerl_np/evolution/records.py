"""What a search gives and takes: its best members, reports of generations, its result, and limits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.fields import Field


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """A member as it was evaluated: its parameters, float64 (n_parameters,), return and cost.

    Of another instance than `instance` nothing is known. `generation` is 1 for the first.

    Attributes
    ----------
    parameters : ndarray(float64, (n_parameters,))
    return_, cost : float
    instance, generation : int
    """

    parameters: np.ndarray
    return_: float
    cost: float
    instance: int
    generation: int


@dataclass(frozen=True, slots=True)
class Report:
    """What one generation did.

    Attributes
    ----------
    generation : int
        1 for the first.
    return_mean, return_std, cost_mean : float
        Of the members that did not fail; nan if all did.
    satisfied : float
        Share of all members that are feasible: cost at most the limit.
    noise_std : float
        Largest standard deviation of the noise.
    counts : tuple of int
        Members that were evaluated on each instance.
    failed : int
        Members whose return or cost was not finite; they rank below all others of their instance.
    best_return : float
        Return of the best feasible member so far; nan without one.
    """

    generation: int
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    noise_std: float
    counts: tuple[int, ...]
    failed: int
    best_return: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a search found.

    Attributes
    ----------
    x : ndarray(float64, (n_parameters,))
        The best feasible member; without one, the member of the least violation; nan if all failed.
    value, violation : float
        Its return, of `optimize` the function's value; its cost beyond the limit, 0 if feasible.
    mean : ndarray(float64, (n_parameters,))
        What the search settled on, not evaluated itself. With a noisy function `x` had luck.
    feasible : bool
    evaluations, generations, restarts : int
    reasons : tuple of str
        Why the search is over, names as in `Stops`; empty if it is not.
    """

    x: np.ndarray
    value: float
    violation: float
    mean: np.ndarray
    feasible: bool
    evaluations: int
    generations: int
    restarts: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stops:
    """Limits at which a search is over; `math.inf`, or 0 for the tolerances, switches one off.

    The conditions are those of Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, B.3, and
    bear the names that pycma gives them.

    Attributes
    ----------
    maxfevals : float
        Evaluations: no generation begins that would need more.
    target : float
        Return of a feasible member that is good enough.
    tolfun : float
        Range of the returns, and of the violations: of all members of the last generation, and of the best of
        the last 10 + 30 n_parameters / population generations.
    tolx : float
        Every sigma, and the path of the covariance, in units of the first sigma.
    tolfacupx : float
        Growth of an adapted sigma since the start: the problem has no optimum.
    tolstagnation : float
        Generations, at least 120 + 30 n_parameters / population, before the search may count as stagnating:
        medians of the latest 30 % of the last fifth of all are then no better than those of its first 30 %.
    conditioncov : float
        Condition of the matrix, with all its variances brought to 1.
    """

    maxfevals: float = math.inf
    target: float = math.inf
    tolfun: float = 1e-11
    tolx: float = 1e-11
    tolfacupx: float = 1e10
    tolstagnation: float = 0.0
    conditioncov: float = 1e12

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            field = Field(float, expected="a number") if name == "target" else Field(float, 0.0)
            object.__setattr__(self, name, field.read(name, value))


def read_limits(limits: Stops | None) -> Stops:
    """Return the limits, by default those of `Stops()`; refuse what are none."""
    if limits is None:
        return Stops()
    if not isinstance(limits, Stops):
        refuse("limits", limits, "Stops", ConfigError)
    return limits


def summarise(
    returns: np.ndarray, costs: np.ndarray, good: np.ndarray, within: np.ndarray
) -> dict[str, Any]:
    """Return return_mean, return_std and cost_mean of a generation's good members, nan without one.

    Beside them stand satisfied, the share of all members within the limit, and failed, how many are not good.
    """
    known_returns, known_costs = returns[good], costs[good]
    n = len(known_returns)
    return {
        "return_mean": float(known_returns.mean()) if n else math.nan,
        "return_std": float(known_returns.std()) if n else math.nan,
        "cost_mean": float(known_costs.mean()) if n else math.nan,
        "satisfied": float(within.sum() / max(1, good.size)),
        "failed": good.size - n,
    }
