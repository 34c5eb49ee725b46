"""What the training of a compared learner did: a line per ten thousand steps."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.rivals.episodes import Ended
from acerl_np.training.checkpoint import check_array

HISTORY_COLUMNS = (
    "steps",
    "seconds",
    "episodes",
    "return_mean",
    "return_std",
    "cost_mean",
    "satisfied",
    "multiplier",
    "failed",
)


@dataclass(frozen=True, slots=True)
class Round:
    """What some ten thousand steps did.

    Attributes
    ----------
    steps : int
        Decisions taken since training began.
    seconds : float
        Time spent training since it began.
    episodes : int
        Episodes that ended in these steps.
    return_mean, return_std, cost_mean : float, s
        Of those that finished: minus the makespan, and the tardiness; nan if none did.
    satisfied : float
        Share of the episodes with a tardiness below the limit.
    multiplier : float
        Weight of the tardiness in the reward, 0 where there is none.
    failed : int
        Episodes that could not end.
    counts : tuple of int
        Episodes of each training record.
    """

    steps: int
    seconds: float
    episodes: int
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    multiplier: float
    failed: int
    counts: tuple[int, ...]


def sum_up(
    ended: Sequence[Ended],
    *,
    steps: int,
    seconds: float,
    cost_limit: float,
    multiplier: float,
    n_records: int,
) -> Round:
    """Return the line of the episodes that have ended since the last one."""
    nothing = [np.zeros(0)]
    makespan = np.concatenate([x.makespan[x.over] for x in ended] or nothing)
    tardiness = np.concatenate([x.tardiness[x.over] for x in ended] or nothing)
    finished = np.concatenate([x.finished for x in ended] or nothing).astype(np.bool_)
    records = np.concatenate([x.records for x in ended] or nothing).astype(np.int64)
    known, costs = makespan[finished], tardiness[finished]
    some = len(known) > 0
    return Round(
        steps=steps,
        seconds=seconds,
        episodes=len(makespan),
        return_mean=float(-known.mean()) if some else float("nan"),
        return_std=float(known.std()) if some else float("nan"),
        cost_mean=float(costs.mean()) if some else float("nan"),
        satisfied=int((costs < cost_limit).sum()) / max(1, len(makespan)),
        multiplier=multiplier,
        failed=int((~finished).sum()),
        counts=tuple(np.bincount(records, minlength=n_records).tolist()),
    )


def format_history(history: Sequence[Round], names: Sequence[str]) -> str:
    """Return the lines as CSV; `names` are those of the training records."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*HISTORY_COLUMNS, *names])
    for record in history:
        values = [getattr(record, name) for name in HISTORY_COLUMNS]
        values[HISTORY_COLUMNS.index("seconds")] = round(record.seconds, 4)
        writer.writerow([*values, *record.counts])
    return text.getvalue()


def pack_history(history: Sequence[Round], n_records: int) -> dict[str, np.ndarray]:
    """Return the lines as arrays of a checkpoint."""
    rows = [[getattr(record, name) for name in HISTORY_COLUMNS] for record in history]
    counts = [record.counts for record in history]
    return {
        "history": np.array(rows, np.float64).reshape(-1, len(HISTORY_COLUMNS)),
        "counts": np.array(counts, np.int64).reshape(-1, n_records),
    }


def unpack_history(arrays: dict[str, np.ndarray], n_records: int) -> list[Round]:
    """Return the lines that `pack_history` made arrays of.

    Raises
    ------
    CheckpointError
        If an array has another shape or kind.
    """
    rows, counts = arrays["history"], arrays["counts"]
    check_array("history", rows, (len(rows), len(HISTORY_COLUMNS)), "f", finite=False)
    check_array("counts", counts, (len(rows), n_records), "i")
    found = []
    for row, own in zip(rows.tolist(), counts.tolist(), strict=True):
        values = dict(zip(HISTORY_COLUMNS, row, strict=True))
        values.update({name: int(values[name]) for name in ("steps", "episodes", "failed")})
        found.append(Round(**values, counts=tuple(own)))
    return found
