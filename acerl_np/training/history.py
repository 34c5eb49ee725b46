"""Lines of a training, as CSV and as arrays of a checkpoint: what each generation did, and its curve.

A curve is of theta itself, not of its perturbed members, played on every training record now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from acerl_np.problem.goal import Goal
from acerl_np.support.report import render_csv


@dataclass(frozen=True, slots=True)
class Generation:
    """What one generation did.

    Attributes
    ----------
    generation : int
        1 for the first.
    decisions : int
        Decisions taken since training began.
    seconds : float
        Time spent training since it began.
    return_mean, return_std : float
        Of the returns (minus makespan, s) of the members that finished; nan if none did.
    cost_mean : float
        Mean of their costs (tardiness, s).
    satisfied : float
        Share of members with a cost below the limit.
    noise_std : float
        sigma.
    counts : tuple of int
        Members that played each instance.
    failed : int
        Members whose episode did not finish; they rank worst.
    """

    generation: int
    decisions: int
    seconds: float
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    noise_std: float
    counts: tuple[int, ...]
    failed: int = 0


HISTORY_COLUMNS = tuple(item.name for item in fields(Generation))[:8]
"""All but the counts, which the columns of the instances hold, and `failed`."""

Line = TypeVar("Line")


def format_history(history: Sequence[Any], names: Sequence[str], columns: Sequence[str]) -> str:
    """Return records as CSV, a line for each: numbers by name, then `counts` of the instances."""
    lines: list[list[Any]] = [[*columns, *names]]
    for record in history:
        values = [getattr(record, name) for name in columns]
        values[columns.index("seconds")] = round(record.seconds, 4)
        lines.append([*values, *record.counts])
    return render_csv(lines)


def pack_columns(
    records: Sequence[Any], columns: Sequence[str], *inner: int, kind: type = np.float64
) -> np.ndarray:
    """Return what records hold by some names, a row for each, (n_records, n_columns, *inner)."""
    rows = [[getattr(record, name) for name in columns] for record in records]
    return np.array(rows, kind).reshape(-1, len(columns), *inner)


# The curve

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
