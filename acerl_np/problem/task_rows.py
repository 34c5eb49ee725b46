"""Rows of a task record as columns: what each field holds, and times counted from time zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from acerl_np.problem.fields import (
    DateFormat,
    TimeColumn,
    count_seconds,
    find_kind,
    is_blank,
    is_clock,
    read_id,
    read_moment,
    read_number,
    read_once,
    show_moment,
)
from acerl_np.problem.json_tree import refuse
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_TASKS
from acerl_np.problem.source import Source
from acerl_np.problem.stations import find_ends, find_sites
from acerl_np.support.errors import RecordError

UNITS = {"handling_time": " of seconds", "demand": "", "priority": ""}
"""Columns of numbers that may be missing, then 0, and what an error calls their unit."""

TIME_ZERO_COLUMN = "time_zero"
"""Optional column of a record with timestamps: the moment of time zero, the same on every line."""

TIMES = ("arrival_time", "expiry_time", "earliest_start")
RECORD = Source(
    noun="task",
    required=("task", "pickup", "delivery", "arrival_time", "expiry_time"),
    optional=(*UNITS, "earliest_start", TIME_ZERO_COLUMN),
    numbers=(*TIMES, *UNITS),
    limit=MAX_TASKS,
)

HALF_A_DAY = timedelta(hours=12)


def read_tasks(
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[str],
    layout: Layout,
    epoch: datetime | None,
    date_format: DateFormat | None = None,
) -> tuple[dict[str, list[Any]], datetime | None]:
    """Return the rows of a record as columns, by the attributes of `Instance`, and the moment of time zero.

    By default time zero is that of the rows, else the first arrival if arrivals are timestamps; it is None
    if the record counts seconds.
    """
    if not rows:
        raise RecordError("no tasks; expected at least one")
    if len(rows) > RECORD.limit:
        raise RecordError(f"{len(rows):,} tasks; expected at most {RECORD.limit:,}")
    arrival, expiry, start = (
        TimeColumn(name, date_format, relative=name == "expiry_time") for name in TIMES
    )
    seen: dict[str, str] = {}
    names = ("tasks", "pickup", "delivery", "arrival", "expiry", *UNITS)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    starts = []
    for place, row in zip(places, rows, strict=True):
        task = read_once(row, place, seen)
        ends = _read_ends(row, place, layout)
        times = arrival.read(row, place), expiry.read(row, place)
        blank = is_blank(row.get("earliest_start"))
        starts.append(None if blank else start.read(row, place))
        numbers = [read_number(row, name, place, 0.0, unit=unit) for name, unit in UNITS.items()]
        for column, value in zip(columns.values(), (task, *ends, *times, *numbers), strict=True):
            column.append(value)
    arrivals, expiries = columns["arrival"], columns["expiry"]
    if epoch is None:
        epoch = _read_time_zero(rows, places, arrivals[0], date_format)
    if epoch is None and isinstance(arrivals[0], datetime):
        _refuse_midnight(arrivals, places)
        epoch = min(arrivals)
    for k, place in enumerate(places):
        times = _count_times(arrivals[k], expiries[k], epoch, place)
        arrivals[k], expiries[k] = _hold_back(*times, starts[k], epoch, place)
    return columns, epoch


def _read_ends(row: Mapping[str, Any], place: str, layout: Layout) -> tuple[int, int]:
    """Return pickup and delivery as positions in the layout's sites."""
    names: list[str] = []
    sites: list[tuple[int, ...]] = []
    for column in ("pickup", "delivery"):
        names.append(read_id(row, column, place))
        sites.append(find_sites(layout, names[-1]))
        if not sites[-1]:
            raise RecordError(
                f"{place}: {column}: unknown site '{names[-1]}'; "
                f"expected a site of layout '{layout.name}'"
            )
    pickup, delivery = names
    if layout.aliases.get(pickup, pickup) == layout.aliases.get(delivery, delivery):
        raise RecordError(
            f"{place}: delivery: '{delivery}' is also the pickup; expected another site"
        )
    if len({*sites[0], *sites[1]}) == 1:
        raise RecordError(
            f"{place}: delivery: '{delivery}' is served from '{layout.sites[sites[0][0]].id}', as is the "
            f"pickup '{pickup}'; expected another site"
        )
    return find_ends(layout, *sites)


def _refuse_midnight(arrivals: Sequence[datetime], places: Sequence[str]) -> None:
    """Refuse times of day that run through a night: sorted but for one fall from evening to morning."""
    if not is_clock(arrivals[0]):
        return
    falls = [k for k in range(1, len(arrivals)) if arrivals[k] < arrivals[k - 1]]
    if len(falls) == 1 and arrivals[falls[0] - 1] - arrivals[falls[0]] > HALF_A_DAY:
        k = falls[0]
        raise RecordError(
            f"{places[k]}: arrival_time: read {show_moment(arrivals[k])} after "
            f"{show_moment(arrivals[k - 1])}; expected times of one day in their order, or dates "
            "with them where a record goes on after midnight"
        )


def _read_time_zero(
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[str],
    arrival: float | datetime,
    date_format: DateFormat | None,
) -> datetime | None:
    """Return the moment that the rows name as time zero, None if they name none."""
    zero, first = None, ""
    for place, row in zip(places, rows, strict=True):
        value = row.get(TIME_ZERO_COLUMN)
        if is_blank(value):
            continue
        moment = read_moment(value, date_format)
        expected = ""
        if not isinstance(arrival, datetime):
            expected = "none, as arrival_time is in seconds"
        elif moment is None or find_kind(moment) != find_kind(arrival):
            expected = f"{find_kind(arrival)}, as in arrival_time"
        elif zero is not None and moment != zero:
            expected = f"the moment of {first}, {show_moment(zero)}"
        if expected:
            shown = value.isoformat() if isinstance(value, datetime) else value
            refuse(f"{place}: {TIME_ZERO_COLUMN}", shown, expected, RecordError)
        zero, first = (moment, place) if zero is None else (zero, first)
    return zero


def _hold_back(
    arrival: float,
    expiry: float,
    start: float | datetime | None,
    epoch: datetime | None,
    place: str,
) -> tuple[float, float]:
    """Return the arrival and expiry of a task that may not start before a moment; it is due as it was."""
    if start is None:
        return arrival, expiry
    seconds = count_seconds(start, epoch, "earliest_start", place)
    due = arrival + expiry
    if seconds > due:
        raise RecordError(
            f"{place}: earliest_start: {seconds - due:g} s after the task is due; expected a moment before"
        )
    return (arrival, expiry) if seconds <= arrival else (seconds, due - seconds)


def _count_times(
    arrival: float | datetime, expiry: float | datetime, epoch: datetime | None, place: str
) -> tuple[float, float]:
    """Return an arrival in seconds from time zero, and an expiry in seconds from the arrival."""
    seconds = count_seconds(arrival, epoch, "arrival_time", place)
    if isinstance(arrival, datetime) and seconds < 0.0:
        expected = f"a moment not before time zero ({show_moment(epoch) if epoch else epoch})"
        refuse(f"{place}: arrival_time", show_moment(arrival), expected, RecordError)
    if not isinstance(expiry, datetime):
        return seconds, expiry
    due = count_seconds(expiry, epoch, "expiry_time", place)
    left = (expiry - arrival).total_seconds() if isinstance(arrival, datetime) else due - seconds
    if left < 0.0:
        within = ", on the same day" if is_clock(expiry) else ""
        raise RecordError(
            f'{place}: expiry_time: read "{show_moment(expiry)}", {-left:g} s before the '
            f"task's arrival; expected a moment at or after it{within} (or a number of seconds after it)"
        )
    return seconds, left
