"""What each generation did: the records, as CSV, and records of any kind as arrays of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
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


def unpack_lines(
    kind: type[Line], columns: Sequence[str], rows: np.ndarray, counts: np.ndarray
) -> list[Line]:
    """Return the lines of a history from its columns and its counts."""
    whole = {item.name for item in fields(kind) if item.type == "int"}  # type: ignore[arg-type]
    lines = []
    for row, own in zip(rows.tolist(), counts.tolist(), strict=True):
        values = {k: int(x) if k in whole else x for k, x in zip(columns, row, strict=True)}
        lines.append(kind(**values, counts=tuple(own)))  # type: ignore[call-arg]
    return lines
