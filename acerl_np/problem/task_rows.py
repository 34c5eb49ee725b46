"""Rows of a task record as columns: what each field holds, and times counted from time zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_TASKS
from acerl_np.problem.rows import is_blank, read_id, read_number
from acerl_np.problem.stations import find_ends, find_sites
from acerl_np.problem.times import (
    DateFormat,
    TimeColumn,
    count_seconds,
    describe_kind,
    is_clock,
    read_moment,
    show_moment,
)
from acerl_np.support.errors import RecordError

REQUIRED_COLUMNS = ("task", "pickup", "delivery", "arrival_time", "expiry_time")
OPTIONAL_COLUMNS = ("handling_time", "demand", "priority", "earliest_start")
TIME_ZERO_COLUMN = "time_zero"
"""Optional column of a record with timestamps: the moment of time zero, the same on every line."""

HALF_A_DAY = timedelta(hours=12)


class Task(NamedTuple):
    """A row of a record: sites as positions in the layout, times in seconds."""

    id: str
    pickup: int
    delivery: int
    arrival: float
    expiry: float
    handling_time: float
    demand: float
    priority: float


def read_tasks(
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[str],
    layout: Layout,
    epoch: datetime | None,
    date_format: DateFormat | None = None,
) -> tuple[list[Task], datetime | None]:
    """Read the rows of a record, in their order.

    Parameters
    ----------
    rows : sequence of mappings
        As `Instance.from_rows` takes them.
    places : sequence of str
        Where each row stood, for errors.
    layout : Layout
    epoch : datetime or None
        The moment of time zero; by default that of the rows, else the first arrival if arrivals are
        timestamps.
    date_format : DateFormat, optional
        How dates may be written besides ISO 8601.

    Returns
    -------
    tasks : list of Task
    epoch : datetime or None
        None if the record counts seconds.

    Raises
    ------
    RecordError
        If a value is missing, malformed or out of range, a column holds both seconds and timestamps, a
        task stands twice, or a site is unknown.
    """
    if not rows:
        raise RecordError("no tasks; expected at least one")
    if len(rows) > MAX_TASKS:
        raise RecordError(f"{len(rows):,} tasks; expected at most {MAX_TASKS:,}")
    arrival_column = TimeColumn("arrival_time", date_format)
    expiry_column = TimeColumn("expiry_time", date_format, relative=True)
    seen: dict[str, str] = {}
    ends: list[tuple[int, int]] = []
    start_column = TimeColumn("earliest_start", date_format)
    arrivals, expiries, starts, numbers = [], [], [], []
    for place, row in zip(places, rows, strict=True):
        task = read_id(row, "task", place)
        if task in seen:
            raise RecordError(
                f"{place}: task: '{task}' stands already on {seen[task]}; expected each task once"
            )
        seen[task] = place
        ends.append(_read_ends(row, place, layout))
        arrivals.append(arrival_column.read(row, place))
        expiries.append(expiry_column.read(row, place))
        handling_time = read_number(row, "handling_time", place, 0.0)
        blank = is_blank(row.get("earliest_start"))
        starts.append(None if blank else start_column.read(row, place))
        demand = read_number(row, "demand", place, 0.0, unit="")
        priority = read_number(row, "priority", place, 0.0, unit="")
        numbers.append((handling_time, demand, priority))
    if epoch is None:
        epoch = _read_time_zero(rows, places, arrivals[0], date_format)
    if epoch is None:
        moments = [item for item in arrivals if isinstance(item, datetime)]
        _refuse_midnight(moments, places)
        epoch = min(moments, default=None)
    tasks = []
    for k, (task, place) in enumerate(seen.items()):
        arrival, expiry = _count_times(arrivals[k], expiries[k], epoch, place)
        start = starts[k]
        if start is not None:
            arrival, expiry = _hold_back(arrival, expiry, start, epoch, place)
        tasks.append(Task(task, *ends[k], arrival, expiry, *numbers[k]))
    return tasks, epoch


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
    if not arrivals or not is_clock(arrivals[0]):
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
        elif moment is None or describe_kind(moment) != describe_kind(arrival):
            expected = f"{describe_kind(arrival)}, as in arrival_time"
        elif zero is not None and moment != zero:
            expected = f"the moment of {first}, {show_moment(zero)}"
        if expected:
            shown = value.isoformat() if isinstance(value, datetime) else value
            raise RecordError(
                f"{place}: {TIME_ZERO_COLUMN}: read {shorten(shown)}; expected {expected}"
            )
        zero, first = (moment, place) if zero is None else (zero, first)
    return zero


def _hold_back(
    arrival: float,
    expiry: float,
    start: float | datetime,
    epoch: datetime | None,
    place: str,
) -> tuple[float, float]:
    """Return the arrival and expiry of a task that may not start before a moment; it is due as it was."""
    seconds = count_seconds(start, epoch, "earliest_start", place)
    due = arrival + expiry
    if seconds > due:
        raise RecordError(
            f"{place}: earliest_start: {seconds - due:g} s after the task is due; expected a moment before"
        )
    if seconds <= arrival:
        return arrival, expiry
    return seconds, due - seconds


def _count_times(
    arrival: float | datetime, expiry: float | datetime, epoch: datetime | None, place: str
) -> tuple[float, float]:
    """Return an arrival in seconds from time zero, and an expiry in seconds from the arrival."""
    seconds = count_seconds(arrival, epoch, "arrival_time", place)
    if isinstance(arrival, datetime) and seconds < 0.0:
        raise RecordError(
            f"{place}: arrival_time: read {shorten(show_moment(arrival))}; expected a moment not "
            f"before time zero ({show_moment(epoch) if epoch else epoch})"
        )
    if not isinstance(expiry, datetime):
        return seconds, expiry
    due = count_seconds(expiry, epoch, "expiry_time", place)
    left = (expiry - arrival).total_seconds() if isinstance(arrival, datetime) else due - seconds
    if left < 0.0:
        within = ", on the same day" if is_clock(expiry) else ""
        raise RecordError(
            f"{place}: expiry_time: read {shorten(show_moment(expiry))}, {-left:g} s before the "
            f"task's arrival; expected a moment at or after it{within} (or a number of seconds after it)"
        )
    return seconds, left
