"""When a search is over, and why: limits, and the record of generations that they look at.

The conditions are those of Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, B.3, and bear
the names that pycma gives them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acerl_np.evolution.covariance import Covariance, FullCovariance
from acerl_np.evolution.search import Search
from acerl_np.support.errors import ConfigError, describe

MOST = 2_000
"""Generations that are remembered."""


@dataclass(frozen=True, slots=True)
class Stops:
    """Limits at which a search is over; `math.inf`, or 0 for the tolerances, switches one off.

    Attributes
    ----------
    maxfevals : float
        Evaluations: no generation begins that would need more.
    target : float
        Return of a feasible member that is good enough.
    tolfun : float
        Range of the returns, and of the violations: of all members of the last generation, and of the best
        ones of the last 10 + 30 n_parameters / population.
    tolx : float
        Every sigma, and the path of the covariance, in units of the first sigma.
    tolfacupx : float
        Growth of an adapted sigma since the start: the problem has no optimum. Infinity switches it off.
        pycma's is 1e3, which also ends searches whose first sigma was small.
    tolstagnation : float
        Generations before the search may count as stagnating: medians of the latest 30 % of the last fifth
        of all generations are then no better than those of its first 30 %. At least 120 + 30 n_parameters /
        population.
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
        for field in fields(self):
            value: Any = getattr(self, field.name)
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if math.isnan(number) or (number < 0.0 and field.name != "target"):
                raise ConfigError(
                    f"{field.name}: read {value!r}; expected a number"
                    + ("" if field.name == "target" else " of at least 0")
                )
            object.__setattr__(self, field.name, number)


def read_limits(limits: Stops | None) -> Stops:
    """Return the limits, by default those of `Stops()`; refuse what are none."""
    if limits is None:
        return Stops()
    if not isinstance(limits, Stops):
        raise ConfigError(f"limits: read {describe(limits)}; expected Stops")
    return limits


class Record:
    """The last generations: return and excess of the best member, and their medians.

    Parameters
    ----------
    rows : ndarray(float64, (k, 4)), optional
        An earlier record, the newest last.
    spans : ndarray(float64, (2,)), optional
        Range of the returns and of the excesses of the last generation; infinite before one.
    """

    def __init__(self, rows: np.ndarray | None = None, spans: np.ndarray | None = None) -> None:
        self._held = np.empty((2 * MOST, 4))
        self._end = 0
        if rows is not None:
            self._end = min(len(rows), MOST)
            self._held[: self._end] = rows[-MOST:]
        self.spans = np.full(2, np.inf) if spans is None else spans

    @property
    def rows(self) -> np.ndarray:
        """The rows, the newest last, ndarray(float64, (k, 4))."""
        return self._held[max(0, self._end - MOST) : self._end].copy()

    def __len__(self) -> int:
        """Return how many generations are remembered."""
        return min(self._end, MOST)

    def add(self, returns: np.ndarray, excess: np.ndarray, good: np.ndarray, first: int) -> None:
        """Take in a generation; `first` is its best member, -1 if all failed."""
        if first < 0:
            return
        ordered, beyond = np.sort(returns[good]), np.sort(excess[good])
        self.spans = np.array([ordered[-1] - ordered[0], beyond[-1] - beyond[0]])
        middle = len(ordered) // 2
        if self._end == len(self._held):
            self._held[:MOST] = self._held[MOST:]
            self._end = MOST
        self._held[self._end] = returns[first], excess[first], ordered[middle], beyond[middle]
        self._end += 1

    def is_flat(self, tolerance: float, generations: int) -> bool:
        """Whether returns and excesses have ranged within the tolerance."""
        if len(self) < generations or not (self.spans < tolerance).all():
            return False
        last = self._held[self._end - generations : self._end, :2]
        with np.errstate(over="ignore"):
            return bool((last.max(axis=0) - last.min(axis=0) < tolerance).all())

    def stagnates(self, least: int) -> bool:
        """Whether neither the best nor the median members have become better of late."""
        count = max(least, len(self) // 5)
        if len(self) < count:
            return False
        rows = self._held[self._end - count : self._end]
        third = math.ceil(0.3 * count)
        for column, sign in ((0, 1.0), (2, 1.0), (1, -1.0), (3, -1.0)):
            early, late = rows[:third, column], rows[-third:, column]
            if sign * np.sort(late)[third // 2] > sign * np.sort(early)[third // 2]:
                return False
        return True


def find_reasons(
    limits: Stops, search: Search[Any], record: Record, *, evaluations: int, best: float
) -> dict[str, float]:
    """Return the limits that a search has reached, as `Evolution.stop` does.

    Parameters
    ----------
    limits : Stops
    search : Search
        With a `PerParameter` or `Covariance`.
    record : Record
        Of its generations.
    evaluations : int
        Members told so far.
    best : float
        Largest return of a feasible member, minus infinity without one.
    """
    reasons: dict[str, float] = {}
    if evaluations + search.population > limits.maxfevals:
        reasons["maxfevals"] = limits.maxfevals
    if best >= limits.target:
        reasons["target"] = limits.target
    n, spread = search.mean.size, search.spread
    some = 30 * n / search.population
    if record.is_flat(limits.tolfun, 10 + math.ceil(some)):
        reasons["tolfun"] = limits.tolfun
    if limits.tolstagnation < math.inf and record.stagnates(
        math.ceil(max(limits.tolstagnation, 120 + some))
    ):
        reasons["tolstagnation"] = limits.tolstagnation
    sigma = search.sigma
    longest = sigma / spread.first
    if isinstance(spread, Covariance):
        # Of a given covariance sigma is large at once, of a floor on sigma the matrix: only both tell growth.
        if min(spread.state.size, float(longest.max())) > limits.tolfacupx:
            reasons["tolfacupx"] = limits.tolfacupx
        longest = np.maximum(longest, spread.state.size * np.abs(spread.state.shape_path))
    if (longest < limits.tolx).all():
        reasons["tolx"] = limits.tolx
    if (search.mean + 0.2 * sigma == search.mean).any():
        reasons["noeffectcoord"] = 0.2
    if isinstance(spread, FullCovariance):
        steps = 0.1 * spread.list_axes(search.generation)
        if (search.mean + steps == search.mean).all(axis=1).any():
            reasons["noeffectaxis"] = 0.1
        if spread.condition > limits.conditioncov:
            reasons["conditioncov"] = limits.conditioncov
    return reasons
