"""What each generation did: the records, as CSV, and as arrays of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

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
        Members whose episode did not finish; they rank worst. `unfinished` is another name of it.
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

    @property
    def unfinished(self) -> int:
        """Members whose episode did not finish."""
        return self.failed


HISTORY_COLUMNS = tuple(item.name for item in fields(Generation))[:8]
"""All but the counts, which the columns of the instances hold, and `failed`."""

MEANS = [HISTORY_COLUMNS.index(name) for name in ("return_mean", "return_std", "cost_mean")]
"""Columns that a generation in which no member finished does not have."""


Line = TypeVar("Line")


def format_history(
    history: Sequence[Any], names: Sequence[str], columns: Sequence[str] = HISTORY_COLUMNS
) -> str:
    """Return records as CSV, a line for each: numbers by name, then `counts` of the instances."""
    lines: list[list[Any]] = [[*columns, *names]]
    for record in history:
        values = [getattr(record, name) for name in columns]
        values[columns.index("seconds")] = round(record.seconds, 4)
        lines.append([*values, *record.counts])
    return render_csv(lines)


def pack_history(
    history: Sequence[Any], n_instances: int, columns: Sequence[str] = HISTORY_COLUMNS
) -> dict[str, np.ndarray]:
    """Return records as arrays, a row for each."""
    rows = [[getattr(record, name) for name in columns] for record in history]
    counts = [record.counts for record in history]
    return {
        "history": np.array(rows, np.float64).reshape(-1, len(columns)),
        "counts": np.array(counts, np.int64).reshape(-1, n_instances),
    }


def unpack_history(
    kind: type[Line], found: Mapping[str, np.ndarray], columns: Sequence[str] = HISTORY_COLUMNS
) -> list[Line]:
    """Return the records that `pack_history` made arrays of."""
    whole = {item.name for item in fields(kind) if item.type == "int"}  # type: ignore[arg-type]
    records = []
    for row, counts in zip(found["history"].tolist(), found["counts"].tolist(), strict=True):
        values = {k: int(x) if k in whole else x for k, x in zip(columns, row, strict=True)}
        records.append(kind(**values, counts=tuple(counts)))  # type: ignore[call-arg]
    return records
