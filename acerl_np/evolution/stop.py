"""When a search is over, and why.

The conditions are those of Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, B.3, and bear
the names that pycma gives them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acerl_np.evolution.covariance import Covariance, FullCovariance
from acerl_np.evolution.progress import Record
from acerl_np.evolution.search import Search
from acerl_np.support.errors import ConfigError
from acerl_np.support.fields import refuse


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
            least = -math.inf if field.name == "target" else 0.0
            if not number >= least:
                expected = "a number" if field.name == "target" else "a number of at least 0"
                refuse(field.name, repr(value), expected, ConfigError)
            object.__setattr__(self, field.name, number)


def read_limits(limits: Stops | None) -> Stops:
    """Return the limits, by default those of `Stops()`; refuse what are none."""
    if limits is None:
        return Stops()
    if not isinstance(limits, Stops):
        refuse("limits", limits, "Stops", ConfigError)
    return limits


def find_reasons(
    limits: Stops, search: Search[Any], record: Record, *, evaluations: int, best: float
) -> dict[str, float]:
    """Return the limits that a search has reached, as `Evolution.stop` does.

    Its spread is a `PerParameter` or a `Covariance`; `best` is the largest return of a feasible member, minus
    infinity without one.
    """
    n, spread, sigma, mean = search.mean.size, search.spread, search.sigma, search.mean
    some = 30 * n / search.population
    long = (
        math.ceil(max(limits.tolstagnation, 120 + some)) if limits.tolstagnation < math.inf else 0
    )
    reached = {
        "maxfevals": evaluations + search.population > limits.maxfevals,
        "target": best >= limits.target,
        "tolfun": record.is_flat(limits.tolfun, 10 + math.ceil(some)),
        "tolstagnation": long > 0 and record.stagnates(long),
    }
    longest = sigma / spread.first
    if isinstance(spread, Covariance):
        # Of a given covariance sigma is large at once, of a floor on sigma the matrix: only both tell growth.
        reached["tolfacupx"] = min(spread.state.size, float(longest.max())) > limits.tolfacupx
        longest = np.maximum(longest, spread.state.size * np.abs(spread.state.shape_path))
    reached["tolx"] = bool((longest < limits.tolx).all())
    reached["noeffectcoord"] = bool((mean + 0.2 * sigma == mean).any())
    if isinstance(spread, FullCovariance):
        steps = 0.1 * spread.list_axes(search.generation)
        reached["noeffectaxis"] = bool((mean + steps == mean).all(axis=1).any())
        reached["conditioncov"] = spread.condition > limits.conditioncov
    values = {"noeffectcoord": 0.2, "noeffectaxis": 0.1}
    return {
        name: values[name] if name in values else getattr(limits, name)
        for name, is_so in reached.items()
        if is_so
    }
