"""Training curves: theta itself, not its perturbed members, played on every training record now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acerl_np.problem.goal import Goal
from acerl_np.support.report import render_csv
from acerl_np.training.history import pack_columns

CURVE_COLUMNS = ("generation", "decisions", "instance", "makespan", "tardiness", "satisfied")
VALUES = (*CURVE_COLUMNS[3:], "value")
"""The last is a column where it is not the makespan."""


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoint:
    """How theta did on the training records after a generation.

    Attributes
    ----------
    generation : int
        Finished generations; 0 before the first.
    decisions : int
        Decisions that training had taken by then; those of the looks themselves do not count.
    makespan, tardiness : ndarray(float64, (n_instances,)), s
        Means over the trials; nan where one did not finish.
    satisfied : ndarray(float64, (n_instances,))
        Share of the trials with a cost, the tardiness, below the limit.
    value : ndarray(float64, (n_instances,))
        Mean of the objective over the trials, as the makespan.
    """

    generation: int
    decisions: int
    makespan: np.ndarray
    tardiness: np.ndarray
    satisfied: np.ndarray
    value: np.ndarray

    def beats(self, other: CurvePoint) -> bool:
        """Whether more trials keep the limit, or as many with a smaller mean objective."""
        own, rival = self.satisfied.mean(), other.satisfied.mean()
        if own != rival:
            return bool(own > rival)
        # nan, an unfinished trial, is the longest day of all.
        mine, theirs = (np.nan_to_num(x.value.mean(), nan=np.inf) for x in (self, other))
        return bool(mine < theirs)


def pack_curve(points: Sequence[CurvePoint], n_instances: int) -> tuple[np.ndarray, np.ndarray]:
    """Return generation and decisions of points, int64 (n, 2), and `VALUES`, float64 (n, 4, n_instances)."""
    when = pack_columns(points, CURVE_COLUMNS[:2], kind=np.int64)
    return when, pack_columns(points, VALUES, n_instances)


def unpack_curve(when: np.ndarray, looks: np.ndarray) -> list[CurvePoint]:
    """Return the points that `pack_curve` made arrays of."""
    return [CurvePoint(*own, *look) for own, look in zip(when.tolist(), looks, strict=True)]


def format_curves(points: Sequence[CurvePoint], names: Sequence[str], goal: Goal) -> str:
    """Return points as CSV, one line per point and record."""
    columns = VALUES[:-1] if goal.objective == Goal.objective else VALUES
    lines: list[Sequence[Any]] = [(*CURVE_COLUMNS[:3], *columns)]
    for point in points:
        values = np.stack([getattr(point, name) for name in columns], axis=1).tolist()
        for name, own in zip(names, values, strict=True):
            rounded = [round(value, 4) for value in own]
            lines.append([point.generation, point.decisions, name, *rounded])
    return render_csv(lines)
