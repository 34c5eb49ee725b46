"""Names, kinds and limits of the columns of tables: task records, past assignments, breakdowns, closures."""

from __future__ import annotations

from typing import NamedTuple

from acerl_np.problem.limits import MAX_BREAKDOWNS, MAX_CLOSURES, MAX_TASKS


class TableKind(NamedTuple):
    """A sort of table: what a line holds, for errors, and the columns that must and may be there.

    In columns of `numbers` a file not separated by commas may write decimals with a comma. `limit` is the
    most rows.
    """

    noun: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    numbers: tuple[str, ...]
    limit: int

    @property
    def known(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.required + self.optional


UNITS = {"handling_time": " of seconds", "demand": "", "priority": ""}
"""Columns of numbers that may be missing, then 0, and what an error calls their unit."""

TIME_ZERO_COLUMN = "time_zero"
"""Optional column of a record with timestamps: the moment of time zero, the same on every line."""

CHAIN = ("after", "processing", "announced")
"""Columns of chained tasks: the id of the task before, what its machine needs, when it is known."""

START = "start"
"""In the column `announced`: known when the processing of the task before begins."""

TIMES = ("arrival_time", "expiry_time", "earliest_start")
RECORD = TableKind(
    noun="task",
    required=("task", "pickup", "delivery", "arrival_time", "expiry_time"),
    optional=(*UNITS, "earliest_start", TIME_ZERO_COLUMN, *CHAIN),
    numbers=(*TIMES, *UNITS, TIME_ZERO_COLUMN, *CHAIN[1:]),
    limit=MAX_TASKS,
)

PAST = TableKind(
    "assignment", ("task", "vehicle", "start"), ("finish",), ("start", "finish"), MAX_TASKS
)

BREAKDOWNS = TableKind(
    "breakdown", ("vehicle", "time", "repair_time"), (), ("time", "repair_time"), MAX_BREAKDOWNS
)

CLOSURES = TableKind("closure", ("a", "b", "time", "until"), (), ("time", "until"), MAX_CLOSURES)
