"""What an `Evolution` has done so far: its best members, counts, record and tolerance, as one value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import read_floats
from acerl_np.evolution.records import Best
from acerl_np.evolution.state import pack_member, unpack_member
from acerl_np.evolution.stop import Record
from acerl_np.evolution.violations import Tolerance
from acerl_np.support.errors import InputError


@dataclass
class Progress:
    """The outcome of all generations that were told.

    Attributes
    ----------
    best, closest : Best, optional
        The best feasible member, and the one of the least cost.
    evaluations, restarts : int
    failed : int
        Members of the last generation whose return or cost was not finite.
    record : Record
        Since the last restart.
    tolerance : Tolerance
        Of the constraints, since the last restart.
    """

    best: Best | None = None
    closest: Best | None = None
    evaluations: int = 0
    restarts: int = 0
    failed: int = 0
    record: Record = field(default_factory=Record)
    tolerance: Tolerance = field(default_factory=Tolerance)

    def pack(self, n: int) -> dict[str, np.ndarray]:
        """Return all as arrays, of a search for n parameters."""
        return {
            "evaluations": np.array(self.evaluations, np.int64),
            "restarts": np.array(self.restarts, np.int64),
            "failed": np.array(self.failed, np.int64),
            **pack_member("best", self.best, n),
            **pack_member("closest", self.closest, n),
            "history": self.record.rows,
            "spans": self.record.spans.copy(),
            "scales": self.tolerance.scales.copy(),
            "level": np.array(self.tolerance.level),
        }

    @classmethod
    def unpack(cls, read: dict[str, np.ndarray]) -> Progress:
        """Return what `pack` packed."""
        return cls(
            best=unpack_member("best", read),
            closest=unpack_member("closest", read),
            evaluations=int(read["evaluations"]),
            restarts=int(read["restarts"]),
            failed=int(read["failed"]),
            record=Record(read["history"], read["spans"]),
            tolerance=Tolerance(read["scales"], float(read["level"])),
        )

    def begin_again(self) -> Progress:
        """Return this after a restart."""
        return dataclasses.replace(
            self, restarts=self.restarts + 1, record=Record(), tolerance=Tolerance()
        )


@dataclass(frozen=True)
class Outcome:
    """A generation's returns and costs, as they were told.

    Attributes
    ----------
    returns, costs : ndarray(float64, (population,))
    ranked : ndarray(float64, (population,))
        The costs that are ranked: of constraints, their violation beyond the tolerance.
    tolerance : Tolerance
        After this generation.
    limit : float
        Of the costs.
    """

    returns: np.ndarray
    costs: np.ndarray
    ranked: np.ndarray
    tolerance: Tolerance
    limit: float
    good: np.ndarray = field(init=False)
    feasible: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        good = np.isfinite(self.returns) & np.isfinite(self.ranked) & np.isfinite(self.costs)
        object.__setattr__(self, "good", good)
        object.__setattr__(self, "feasible", good & (self.costs <= self.limit))

    def find_first(self) -> tuple[int, int]:
        """Return the positions of the best member and of the least cost, -1 if all failed.

        The best is the feasible one of the largest return; without one, that of the least cost.
        """
        if not self.good.any():
            return -1, -1
        least = int(np.argmin(np.where(self.good, self.costs, np.inf)))
        if not self.feasible.any():
            return least, least
        return int(np.argmax(np.where(self.feasible, self.returns, -np.inf))), least

    def add_to(
        self, progress: Progress, members: np.ndarray, ids: np.ndarray, generation: int
    ) -> Progress:
        """Return the progress after this generation.

        Parameters
        ----------
        progress : Progress
        members : ndarray(float64, (population, n_parameters))
            As they were evaluated.
        ids : ndarray(int64, (population,))
            Their instances.
        generation : int
            1 for the first.
        """

        def make(k: int) -> Best:
            return Best(
                parameters=members[k].copy(),
                return_=float(self.returns[k]),
                cost=float(self.costs[k]),
                instance=int(ids[k]),
                generation=generation,
            )

        best, closest = progress.best, progress.closest
        first, least = self.find_first()
        if first >= 0:
            if self.feasible[first] and (best is None or self.returns[first] > best.return_):
                best = make(first)
            if closest is None or self.costs[least] < closest.cost:
                closest = make(least)
        progress.record.add(
            self.returns, np.maximum(0.0, self.costs - self.limit), self.good, first
        )
        return dataclasses.replace(
            progress,
            best=best,
            closest=closest,
            evaluations=progress.evaluations + len(self.returns),
            failed=len(self.returns) - int(self.good.sum()),
            tolerance=self.tolerance,
        )


def read_outcome(
    returns: ArrayLike, costs: ArrayLike | None, population: int, limit: float, tolerance: Tolerance
) -> Outcome:
    """Return what was told of a generation, checked, with one cost per member.

    Raises
    ------
    InputError
        If a shape or a kind does not fit, or constraints meet another limit than 0.
    """
    members = (population,)
    j_r = read_floats("returns", returns)
    if j_r.shape != members:
        raise InputError(f"returns: read shape {j_r.shape}; expected {members}")
    if costs is None:
        free = np.full(members, min(0.0, limit))
        return Outcome(j_r, free, free, tolerance, limit)
    j_c = read_floats("costs", costs)
    if j_c.ndim != 2:
        if j_c.shape != members:
            raise InputError(f"costs: read shape {j_c.shape}; expected {members}")
        return Outcome(j_r, j_c, j_c, tolerance, limit)
    m = len(tolerance.scales) or j_c.shape[1]
    if j_c.shape != (*members, m) or m == 0:
        raise InputError(f"costs: read shape {j_c.shape}; expected {(*members, m or 1)}")
    if limit != 0.0:
        raise InputError(f"costs: read a matrix; expected cost_limit 0 with it, not {limit:g}")
    positive = np.maximum(0.0, j_c)
    with np.errstate(over="ignore"):
        beyond, tolerance = tolerance.relax(positive)
        return Outcome(j_r, positive.sum(axis=1), beyond, tolerance, limit)
