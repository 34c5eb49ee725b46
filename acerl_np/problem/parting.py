"""Several records of one table: by a calendar of shifts, by days, or by pauses."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from acerl_np.problem.fields import CLOCK_DAY, is_clock, parse_number
from acerl_np.problem.json_tree import refuse
from acerl_np.problem.limits import MAX_NUMBER
from acerl_np.support.errors import InputError, RecordError

SHIFTS = "06:00/14:00/22:00"
"""When shifts begin unless it is said."""

DAY = 86400.0
CALENDAR = re.compile(r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?:/(?:[01]?[0-9]|2[0-3]):[0-5][0-9])*")


class Parting(NamedTuple):
    """How a table falls into records: where shifts begin, s after midnight, or after pauses above `gap`, s.

    A record of a whole `day` counts from its first arrival, that of a shift from the shift's beginning.
    """

    starts: tuple[float, ...] = ()
    gap: float = 0.0
    day: bool = False


class Part(NamedTuple):
    """One record of several: what its name ends in, and its time zero, s.

    `ahead` is by how much its first row's clock is ahead of that of time zero, s.
    """

    name: str
    zero: float
    ahead: float = 0.0


def find_parting(text: str | None) -> Parting | None:
    """Return what --split says, None if it says nothing; an `InputError` refuses what cannot be said."""
    if text is None:
        return None
    if text == "day":
        return Parting((0.0,), day=True)
    found = SHIFTS if text == "shift" else text
    if CALENDAR.fullmatch(found):
        clocks = [clock.split(":") for clock in found.split("/")]
        starts = sorted(3600.0 * int(hours) + 60.0 * int(minutes) for hours, minutes in clocks)
        if len(set(starts)) == len(starts):
            return Parting(tuple(starts))
    gap = parse_number(text)
    if not 1.0 <= gap <= MAX_NUMBER:
        expected = (
            f"shift, day, beginnings of shifts such as {SHIFTS}, or a pause in seconds such as 3600"
        )
        refuse("split (--split)", text, expected, InputError)
    return Parting(gap=gap)


def part_rows(
    arrival: np.ndarray, epoch: datetime | None, parting: Parting, ahead: np.ndarray
) -> tuple[list[Part], np.ndarray]:
    """Return the records that tasks fall into, and which each does, int64 (n_rows,).

    They fall by their arrivals, float64 (n_rows,), s from `epoch`. Shifts begin by the clock of their tasks,
    which is `ahead` of that of `epoch`, float64 (n_rows,), s.
    """
    if epoch is not None and epoch.tzinfo is not None and not 1 < epoch.year < 9999:
        raise RecordError(
            f"split (--split): read tasks of the year {epoch.year}; expected one from 2 to 9998"
        )
    if parting.gap:
        order = np.argsort(arrival, kind="stable")
        key = np.empty(arrival.size)
        key[order] = np.cumsum(np.diff(arrival[order], prepend=arrival[order[0]]) > parting.gap)
    else:
        key = _find_beginnings(arrival + ahead, epoch, parting)
    found = []
    keys, which = np.unique(key, return_inverse=True)
    for k, own in enumerate(keys.tolist()):
        rows = np.flatnonzero(which == k)
        # The clock may change within a shift: it began by that of its first task.
        first = rows[np.argmin(arrival[rows])]
        by_first = parting.gap or parting.day
        zero = float(arrival[first] if by_first else own - ahead[first])
        name = f"{k + 1:0{len(str(keys.size))}d}"
        if epoch is not None and not parting.gap:
            day = "" if is_clock(epoch) else "%Y-%m-%d"
            clock = "" if parting.day else "%H%M"
            form = "-".join(filter(None, (day, clock)))
            name = (epoch + timedelta(seconds=own)).strftime(form) or name
        found.append(Part(name, zero, float(ahead[first])))
    return found, which


def _find_beginnings(arrival: np.ndarray, epoch: datetime | None, parting: Parting) -> np.ndarray:
    """Return when each task's shift or day began, s from `epoch` by the clock on the wall."""
    if epoch is None and not parting.day:
        raise InputError(
            "split (--split): read a calendar of shifts, but arrivals are in seconds; expected timestamps, "
            "or a pause in seconds such as 3600"
        )
    midnight = 0.0
    if epoch is not None:
        at = epoch.replace(tzinfo=None)
        midnight = (at - at.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
    starts = np.array([parting.starts[-1] - DAY, *parting.starts])
    # To the microsecond, as moments are: sums of seconds may fall short of a shift's beginning.
    day, clock = np.divmod(np.round(arrival + midnight, 6), DAY)
    begins: np.ndarray = day * DAY + starts[np.searchsorted(starts, clock, "right") - 1] - midnight
    if epoch is not None and is_clock(epoch) and epoch.date() == CLOCK_DAY.date():
        begins = np.maximum(begins, -midnight)  # times of day know no day before
    return begins
