"""What each generation did: the records, as CSV, and as arrays of a checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.training.checkpoint import check_array


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


HISTORY_COLUMNS = (
    "generation",
    "decisions",
    "seconds",
    "return_mean",
    "return_std",
    "cost_mean",
    "satisfied",
    "noise_std",
)


_MEANS = [HISTORY_COLUMNS.index(name) for name in ("return_mean", "return_std", "cost_mean")]


def format_history(history: Sequence[Generation], names: Sequence[str]) -> str:
    """Return records as CSV, one line per generation; `names` are those of the instances."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*HISTORY_COLUMNS, *names])
    for record in history:
        values = [getattr(record, column) for column in HISTORY_COLUMNS]
        values[HISTORY_COLUMNS.index("seconds")] = round(record.seconds, 4)
        writer.writerow([*values, *record.counts])
    return text.getvalue()


def pack_history(history: Sequence[Generation], n_instances: int) -> dict[str, np.ndarray]:
    """Return records as arrays, one row per generation."""
    values = [[getattr(record, column) for column in HISTORY_COLUMNS] for record in history]
    counts = [record.counts for record in history]
    return {
        "history": np.array(values, np.float64).reshape(-1, len(HISTORY_COLUMNS)),
        "counts": np.array(counts, np.int64).reshape(-1, n_instances),
        "failed": np.array([record.failed for record in history], np.int64),
    }


def unpack_history(
    arrays: dict[str, np.ndarray], generation: int, n_instances: int
) -> list[Generation]:
    """Return the records that `pack_history` made arrays of.

    Raises
    ------
    CheckpointError
        If an array has another shape or kind, or numbers that no record has.
    """
    history, counts, failed = (arrays[name] for name in ("history", "counts", "failed"))
    check_array("history", history, (generation, len(HISTORY_COLUMNS)), "f", finite=False)
    check_array("counts", counts, (generation, n_instances), "i")
    check_array("failed", failed, (generation,), "i")
    usable = np.isfinite(history)
    # A generation in which no member finished has no means.
    usable[:, _MEANS] |= np.isnan(history[:, _MEANS]) & (failed > 0)[:, None]
    check_array("history", np.where(usable, 0.0, np.nan), history.shape, "f")
    records = []
    for row, count, n_failed in zip(
        history.tolist(), counts.tolist(), failed.tolist(), strict=True
    ):
        values = dict(zip(HISTORY_COLUMNS, row, strict=True))
        values["generation"] = int(values["generation"])
        values["decisions"] = int(values["decisions"])
        records.append(Generation(**values, counts=tuple(count), failed=n_failed))
    return records
