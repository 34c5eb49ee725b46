"""Rows of a task record as columns: what each field holds, times counted from time zero, chains of tasks."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from acerl_np.problem import fields
from acerl_np.problem.columns import CHAIN, RECORD, START, TIME_ZERO_COLUMN, TIMES, UNITS
from acerl_np.problem.export import Export
from acerl_np.problem.fields import Row, Time
from acerl_np.problem.json_tree import refuse
from acerl_np.problem.layout import Layout, find_ends, find_sites
from acerl_np.support.errors import RecordError, describe, suggest_name
from acerl_np.support.faults import Fault

MOST_HINTS = 30
"""Unknown sites of a record for which one of a like name is sought."""

DAY = timedelta(days=1)


class Tasks(NamedTuple):
    """Rows of a record that can be read, and what is wrong with the others.

    `columns` go by the attributes of `Instance`, `after` by ids. Besides them `row` is the position of each
    task's row, and `ahead` by how much its clock is ahead of that of time zero, s, as after a clock change.
    `epoch` is the moment of time zero, None if the record counts seconds. `roots` are the places in the
    columns of the first of each task's chain, `rolled` the expiries of those due the day after. `forms` are
    what arrivals and expiries were read as.
    """

    columns: dict[str, list[Any]]
    epoch: datetime | None
    faults: list[Fault]
    roots: np.ndarray
    rolled: list[float]
    forms: list[str]


def read_tasks(
    rows: Sequence[Row],
    places: Sequence[str],
    layout: Layout,
    epoch: datetime | None,
    export: Export,
    *,
    share_date: bool = False,
) -> Tasks:
    """Return the rows of a record as columns; each row that cannot be read has its faults, every one of them.

    By default time zero is that of the rows, else the first arrival if arrivals are timestamps. Tasks that
    stand twice are left to `find_repeated`. The export says how dates are written, what rows mean without an
    expiry or a handling time, and the floor's names for others of sites. Where arrivals and due times
    `share_date`, a due time of day before the arrival's is of the next day.
    """
    if not rows:
        raise RecordError("no tasks; expected at least one")
    if len(rows) > RECORD.limit:
        raise RecordError(f"{len(rows):,} tasks; expected at most {RECORD.limit:,}")
    date_format = export.make_date_format()
    sites = SiteNames(layout, export.sites)
    is_plain = not any(column in row for row in rows for column in CHAIN)
    due = {"relative": True, "placed": not share_date}
    times = [fields.TimeColumn(x, date_format, **(due if x == TIMES[1] else {})) for x in TIMES]
    readers = _make_readers(sites, times, export, is_plain)
    columns, faults = _read_columns(rows, places, readers, sites, layout)
    for column in times:
        column.refuse_days()
    own = [rows[k] for k in columns["row"]], [places[k] for k in columns["row"]]
    if epoch is None:
        epoch = _find_epoch(columns, *own, date_format)
    clock = _find_offset(epoch)
    columns["ahead"] = [_find_offset(at) - clock for at in columns["arrival"]]
    arrivals, expiries, starts = columns["arrival"], columns["expiry"], columns.pop("start")
    left, rolled = [], []
    for k, (row, place) in enumerate(zip(*own, strict=True)):
        own_times = arrivals[k], expiries[k], starts[k]
        try:
            arrivals[k], expiries[k], late = _count_times(
                *own_times, epoch, place, share_date, date_format
            )
        except RecordError as error:
            faults.append(Fault.of(error, place, row))
            continue
        left.append(k)
        rolled += late
    columns = _take(left, columns)
    before = find_before(columns["tasks"], columns["after"])
    roots = find_roots(before)
    if (roots < 0).any():
        lost = {str(row.get("task")).strip() for row in rows}
        faults += list_unlinked(columns, before, roots, [places[k] for k in columns["row"]], lost)
        left = np.flatnonzero(roots >= 0).tolist()
        columns, roots = _take(left, columns), np.searchsorted(left, roots[left])
    return Tasks(columns, epoch, faults, roots, rolled, [column.form for column in times[:2]])


def _take(left: Sequence[int], columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the tasks that are left of columns."""
    return {name: [values[k] for k in left] for name, values in columns.items()}


Readers = dict[str, Callable[[Row, str], Any]]
"""By the column of `Tasks.columns`, what reads it of a row that stands at a place."""


def _make_readers(
    sites: SiteNames, times: Sequence[fields.TimeColumn], export: Export, is_plain: bool
) -> Readers:
    """Return what reads each column; `is_plain` says whether no task belongs to a chain."""
    arrival, expiry, start = times

    def read_arrival(row: Row, place: str) -> Time | None:
        if fields.is_blank(row.get("arrival_time")) and not fields.is_blank(row.get("after")):
            return None
        return arrival.read(row, place)

    def read_expiry(row: Row, place: str) -> Time:
        if fields.is_blank(row.get("expiry_time")) and not (is_plain and export.due is None):
            return math.inf if export.due is None else export.due
        if fields.is_blank(row.get("after")):
            return expiry.read(row, place)
        return fields.read_number(
            row, "expiry_time", place, unit=" of seconds after the task is ready,"
        )

    def read_announced(row: Row, place: str) -> float:
        value = row.get("announced")
        if isinstance(value, str) and value.strip().lower() == START:
            return math.inf
        return fields.read_number(row, "announced", place, 0.0, alternative=f", or '{START}'")

    def read_start(row: Row, place: str) -> Time | None:
        if fields.is_blank(row.get("earliest_start")):
            return None
        if not fields.is_blank(row.get("after")):
            shown = describe(row["earliest_start"])
            expected = "none of a task that follows another: arrival_time holds it back"
            refuse(f"{place}: earliest_start", shown, expected, RecordError)
        return start.read(row, place)

    def read_plain(name: str, unit: str) -> Callable[[Row, str], float]:
        default = export.handling or 0.0 if name == "handling_time" else 0.0
        return lambda row, place: fields.read_number(row, name, place, default, unit=unit)

    return {
        "tasks": lambda row, place: fields.read_id(row, "task", place),
        "pickup": lambda row, place: sites.read(row, "pickup", place),
        "delivery": lambda row, place: sites.read(row, "delivery", place),
        "arrival": read_arrival,
        "expiry": read_expiry,
        **{name: read_plain(name, unit) for name, unit in UNITS.items()},
        "after": lambda row, place: (
            "" if fields.is_blank(row.get("after")) else fields.read_id(row, "after", place)
        ),
        "processing": read_plain("processing", " of seconds"),
        "announced": read_announced,
        "start": read_start,
    }


def _read_columns(
    rows: Sequence[Row], places: Sequence[str], readers: Readers, sites: SiteNames, layout: Layout
) -> tuple[dict[str, list[Any]], list[Fault]]:
    """Return the fields of the rows that can be read, and which rows these are; the others' faults."""
    machines = {layout.site_index[machine.site] for machine in layout.machines}
    columns: dict[str, list[Any]] = {name: [] for name in ("row", *readers)}
    faults: list[Fault] = []
    for k, (place, row) in enumerate(zip(places, rows, strict=True)):
        values: dict[str, Any] = {"row": k}
        wrong = []
        for name, read in readers.items():
            try:
                values[name] = read(row, place)
            except fields.FormatError:
                raise
            except RecordError as error:
                wrong.append(Fault.of(error, place, row))
        if not wrong:
            try:
                ends = sites.join(values["pickup"], values["delivery"], place)
                values["pickup"], values["delivery"] = ends
                if values["processing"] and ends[1] not in machines:
                    expected = (
                        f"0 at '{layout.sites[ends[1]].id}', as it is none of the layout's machines"
                    )
                    read_as = f"{values['processing']:g}"
                    refuse(f"{place}: processing", read_as, expected, RecordError)
            except RecordError as error:
                wrong.append(Fault.of(error, place, row))
        if wrong:
            faults += _find_no_task(row, place) or wrong
            continue
        for column, value in zip(columns.values(), values.values(), strict=True):
            column.append(value)
    return columns, faults


def _find_epoch(
    columns: dict[str, list[Any]],
    rows: Sequence[Row],
    places: Sequence[str],
    date_format: fields.DateFormat | None,
) -> datetime | None:
    """Return the moment of time zero: that of the rows, else the first arrival; None without dates."""
    firsts = [k for k, task in enumerate(columns["after"]) if not task]
    if not firsts:
        return None
    arrivals = [columns["arrival"][k] for k in firsts]
    zero, first = None, ""
    for place, row in zip(places, rows, strict=True):
        value = row.get(TIME_ZERO_COLUMN)
        if fields.is_blank(value):
            continue
        moment = fields.read_moment(value, date_format, f"{place}: {TIME_ZERO_COLUMN}")
        expected = ""
        if not isinstance(arrivals[0], datetime):
            expected = "none, as arrival_time is in seconds"
        elif moment is None or fields.find_kind(moment) != fields.find_kind(arrivals[0]):
            expected = f"{fields.find_kind(arrivals[0])}, as in arrival_time"
        elif zero is not None and moment != zero:
            expected = f"the moment of {first}, {fields.show_moment(zero)}"
        if expected:
            shown = value.isoformat() if isinstance(value, datetime) else value
            refuse(f"{place}: {TIME_ZERO_COLUMN}", shown, expected, RecordError)
        zero, first = (moment, place) if zero is None else (zero, first)
    if zero is None and isinstance(arrivals[0], datetime):
        _refuse_midnight(arrivals, [places[k] for k in firsts])
        zero = min(arrivals)
    return zero


def _find_offset(moment: Time | None) -> float:
    """Return by how many seconds a moment's clock is ahead of UTC, 0 if it does not say."""
    offset = moment.utcoffset() if isinstance(moment, datetime) else None
    return 0.0 if offset is None else offset.total_seconds()


def find_repeated(
    tasks: Sequence[str], places: Sequence[str], records: Sequence[int] | None = None
) -> dict[int, Fault]:
    """Return the faults of tasks that stood before in their record, by their places in the sequence.

    `records` says which of several each belongs to.
    """
    found: dict[int, Fault] = {}
    seen: dict[tuple[str, int], str] = {}
    records = records or [0] * len(tasks)
    for k, (task, place, record) in enumerate(zip(tasks, places, records, strict=True)):
        first = seen.setdefault((task, record), place)
        if first != place:
            text = f"'{task}' stands already on {first}; expected each task once"
            found[k] = Fault(place, "task", describe(task), text)
    return found


def _find_no_task(row: Row, place: str) -> list[Fault]:
    """Return the one fault of a row without any field of a task."""
    if any(not fields.is_blank(row.get(name)) for name in RECORD.required):
        return []
    return [Fault(place, "", "", "no field of a task is filled; expected a task")]


class SiteNames:
    """What names in a record stand for on a floor, or by a mapping; each is looked up once."""

    def __init__(self, layout: Layout, mapping: Mapping[str, str]) -> None:
        self._layout = layout
        self._mapping = mapping
        self._names: dict[str, str] = {}
        self._ends: dict[tuple[str, str], tuple[int, int]] = {}
        self._hints: dict[str, str] = {}
        self._own = [*layout.site_index, *layout.stations, *layout.aliases]

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """The floor's names, by what they are without case; most records ask for none."""
        found: dict[str, list[str]] = {}
        for own in self._own:
            found.setdefault(_squeeze(own), []).append(own)
        return found

    def read(self, row: Row, column: str, place: str) -> str:
        """Return the name of a station or site in a field; `RecordError` with the one it may be meant for.

        Case does not matter where only one name of the floor is meant, nor how accents are written.
        """
        raw = row.get(column)
        if isinstance(raw, str) and raw in self._names:
            return self._names[raw]
        name, layout = fields.read_id(row, column, place), self._layout
        if not find_sites(layout, name):
            name = self._mapping.get(name, name)
        if not find_sites(layout, name):
            alike = self._alike.get(_squeeze(name), [])
            if len({find_sites(layout, other) for other in alike}) != 1:
                raise RecordError(
                    f"{place}: {column}: unknown site '{name}'; expected a site of layout "
                    f"'{layout.name}'{self._hint(name)}"
                )
            name = alike[0]
        if isinstance(raw, str):
            self._names[raw] = name
        return name

    def join(self, pickup: str, delivery: str, place: str) -> tuple[int, int]:
        """Return pickup and delivery as positions in the layout's sites; refuse the same for both."""
        if (pickup, delivery) not in self._ends:
            layout = self._layout
            sites = find_sites(layout, pickup), find_sites(layout, delivery)
            if layout.aliases.get(pickup, pickup) == layout.aliases.get(delivery, delivery):
                raise RecordError(
                    f"{place}: delivery: '{delivery}' is also the pickup; expected another site"
                )
            if len({*sites[0], *sites[1]}) == 1:
                raise RecordError(
                    f"{place}: delivery: '{delivery}' is served from '{layout.sites[sites[0][0]].id}', as is "
                    f"the pickup '{pickup}'; expected another site"
                )
            self._ends[pickup, delivery] = find_ends(layout, *sites)
        return self._ends[pickup, delivery]

    def _hint(self, name: str) -> str:
        """Return what to ask of an unknown name; of many only the first are looked for."""
        if name not in self._hints and len(self._hints) < MOST_HINTS:
            self._hints[name] = suggest_name(name, self._own)
        return self._hints.get(name, "")


def _squeeze(name: str) -> str:
    """Return a name without case, its accents as one with their letters."""
    return unicodedata.normalize("NFC", name).casefold()


def _refuse_midnight(arrivals: Sequence[datetime], places: Sequence[str]) -> None:
    """Refuse times of day that run through a night: sorted but for one fall from evening to morning."""
    if not fields.is_clock(arrivals[0]):
        return
    falls = [k for k in range(1, len(arrivals)) if arrivals[k] < arrivals[k - 1]]
    if len(falls) == 1 and arrivals[falls[0] - 1] - arrivals[falls[0]] > DAY / 2:
        k = falls[0]
        raise RecordError(
            f"{places[k]}: arrival_time: read {fields.show_moment(arrivals[k])} after "
            f"{fields.show_moment(arrivals[k - 1])}; expected times of one day in their order, or dates "
            "with them where a record goes on after midnight"
        )


def _count_times(
    arrival: Time | None,
    expiry: Time,
    start: Time | None,
    epoch: datetime | None,
    place: str,
    share_date: bool,
    date_format: fields.DateFormat | None,
) -> tuple[float, float, list[float]]:
    """Return an arrival in seconds from time zero, and an expiry in seconds from it.

    The latter stands in a list if it is of the day after. What may not start before a moment arrives then,
    and is due as it was.
    """
    # Without an arrival it is at least that of the chain's first, see `make_instance`.
    seconds = (
        0.0 if arrival is None else fields.count_seconds(arrival, epoch, "arrival_time", place)
    )
    if isinstance(arrival, datetime) and seconds < 0.0:
        expected = (
            f"a moment not before time zero ({fields.show_moment(epoch) if epoch else epoch})"
        )
        refuse(f"{place}: arrival_time", fields.show_moment(arrival), expected, RecordError)
    shares = rolls = False
    if isinstance(expiry, datetime):
        if isinstance(arrival, datetime) and (arrival.tzinfo or not expiry.tzinfo):
            clock = arrival if expiry.tzinfo else arrival.replace(tzinfo=None)
            # What arrives at 24:00 is of the day after.
            days = {arrival.date(), (arrival - DAY).date() if clock.time() == time() else None}
            shares = share_date and expiry.date() in days
            # Less was late when it came, rather than due the day after.
            rolls = shares and expiry - clock <= -DAY / 2 and expiry.date() < date.max
        expiry = expiry + DAY if rolls else expiry
        expiry = fields.place_moment(expiry, date_format, f"{place}: expiry_time")
    left = fields.count_seconds(expiry, epoch, "expiry_time", place)
    if isinstance(expiry, datetime):
        left = left - seconds
        if isinstance(arrival, datetime):
            left = (expiry - arrival).total_seconds()
        if left < 0.0:
            within = ", on the same day" if fields.is_clock(expiry) else ""
            within += ", or at least 12 h before it for the day after" if shares else ""
            raise RecordError(
                f'{place}: expiry_time: read "{fields.show_moment(expiry)}", {-left:g} s before the '
                f"task's arrival; expected a moment at or after it{within} (or a number of seconds after it)"
            )
    held = seconds if start is None else fields.count_seconds(start, epoch, "earliest_start", place)
    due = seconds + left
    if held > due:
        raise RecordError(
            f"{place}: earliest_start: {held - due:g} s after the task is due; expected a moment before"
        )
    rolled = [left] if rolls else []
    return (held, due - held, rolled) if held > seconds else (seconds, left, rolled)


# Chains of tasks: what goes before what


def find_roots(after: np.ndarray) -> np.ndarray:
    """Return the row of the first task of each task's chain, int64 (n,), by the rows before, int (n,).

    A first task has -1 before it. A task that follows itself, or one that does, has -1.
    """
    own = np.arange(len(after))
    root = np.where(after < 0, own, after)
    for _ in range(len(after).bit_length()):
        root = root[root]
    return np.where(after[root] < 0, root, -1)


def find_before(tasks: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """Return the row of the task that each goes after, int64 (n,): -1 of none, itself where it is unknown.

    Where several have the id, as in a table of several records, it is the last one above, or else the first.
    """
    before = np.full(len(tasks), -1)
    if any(after):
        first = {task: k for k, task in reversed([*enumerate(tasks)])}
        above: dict[str, int] = {}
        for k, task in enumerate(after):
            if task:
                before[k] = above.get(task, first.get(task, k))
            above[tasks[k]] = k
    return before


def list_unlinked(
    columns: Mapping[str, Sequence[Any]],
    before: np.ndarray,
    roots: np.ndarray,
    places: Sequence[str],
    lost: Collection[str],
) -> list[Fault]:
    """Return the faults of tasks whose chain has no first task; `lost` are ids that stand in the table."""
    tasks, after = columns["tasks"], columns["after"]
    texts: dict[int, str] = {}
    for start in np.flatnonzero(roots < 0).tolist():
        path: dict[int, int] = {}
        k = start
        while k not in path and k not in texts:
            path[k] = len(path)
            k = int(before[k])
        if k in path and before[k] != k:
            ring = [*path][path[k] :]
            way = ", ".join(f"'{tasks[x]}'" for x in ring[1:4]) + ", ..." * (len(ring) > 4)
            text = (
                f"'{tasks[k]}' follows itself by way of {way}; expected a chain with a first task"
            )
            texts |= dict.fromkeys(ring, text)
        elif k in path and after[k] == tasks[k]:
            texts[k] = f"'{tasks[k]}' is the task itself; expected another"
        elif k in path and after[k] not in lost:
            texts[k] = f"unknown task '{after[k]}'; expected a task of the record"
        for x in path:
            texts.setdefault(x, f"'{after[x]}' cannot be used; expected a task that can")
    return [Fault(places[k], "after", after[k], text) for k, text in texts.items()]


def count_before(after: np.ndarray) -> np.ndarray:
    """Return how many tasks of its chain go before each, int64 (n,), by the rows before, -1 of none."""
    before = np.where(after < 0, np.arange(len(after)), after)
    found = (after >= 0).astype(np.int64)
    while found[before].any():
        found += found[before]
        before = before[before]
    return found
