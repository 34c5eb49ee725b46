"""Files of task records and of breakdowns, read and written."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_BREAKDOWNS, MAX_TASKS
from acerl_np.problem.parts import Breakdown
from acerl_np.problem.rows import TimeColumn, count_seconds, parse_csv, read_id, read_number
from acerl_np.problem.task_rows import OPTIONAL_COLUMNS, REQUIRED_COLUMNS, TIME_ZERO_COLUMN
from acerl_np.support.errors import InputError, RecordError, make_printable
from acerl_np.support.files import read_text, write_atomically

BREAKDOWN_COLUMNS = ("vehicle", "time", "repair_time")

BREAKDOWNS_FILE = "breakdowns.csv"
"""Name of a file beside a task record that replaces the breakdowns that the layout lists."""

NO_BREAKDOWNS = "none"
"""In the place of a file of breakdowns: there are none, whatever the layout says."""


def read_record(
    path: str | os.PathLike[str],
    layout: Layout,
    *,
    breakdowns: str | os.PathLike[str] | None = None,
    servable: bool = True,
) -> Instance:
    """Read a task record (CSV) that belongs to `layout`.

    Parameters
    ----------
    path : path-like
        Format in `instances/README.md`; comma or semicolon separated, UTF-8.
    layout : Layout
    breakdowns : path-like, optional
        CSV of breakdowns that replace those that the layout lists; "none" for no breakdowns.
    servable : bool
        Refuse a record some of whose tasks may be impossible to reach or to carry.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError
        If a file cannot be read or a line is not usable; the message names line and field.
    """
    text = read_text(path, RecordError)
    try:
        rows, places = parse_csv(
            text,
            REQUIRED_COLUMNS,
            (*OPTIONAL_COLUMNS, TIME_ZERO_COLUMN),
            numbers=(*REQUIRED_COLUMNS[3:], *OPTIONAL_COLUMNS),
            noun="task",
            limit=MAX_TASKS,
        )
        if not rows:
            raise RecordError("no tasks below the header; expected one line per task")
        # Names of files need not be text; a backslash could not stand in another name.
        name = Path(path).stem
        name = name if name.isprintable() else make_printable(name).replace("\\", "%")
        instance = Instance.from_rows(name, layout, rows, places, servable=servable)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    if breakdowns is None:
        return instance
    if breakdowns == NO_BREAKDOWNS:
        return replace(instance, layout=layout.with_breakdowns({}).with_random_breakdowns(None))
    return replace(instance, layout=read_breakdowns(breakdowns, layout, instance.epoch))


def read_breakdowns(
    path: str | os.PathLike[str], layout: Layout, epoch: datetime | None = None
) -> Layout:
    """Return `layout` with the breakdowns of a CSV file in the place of those that it lists.

    A breakdown before time zero counts as far as its repair lasts beyond it.

    Parameters
    ----------
    path : path-like
        Header `vehicle,time,repair_time`, one line per breakdown, or none; format in
        `instances/README.md`.
    layout : Layout
    epoch : datetime, optional
        The moment of time zero, for a file with timestamps.

    Returns
    -------
    Layout

    Raises
    ------
    RecordError
        If the file cannot be read or a line is not usable; the message names line and field.
    """
    text = read_text(path, RecordError)
    listed: dict[str, list[Breakdown]] = {vehicle.id: [] for vehicle in layout.vehicles}
    try:
        rows, places = parse_csv(
            text,
            BREAKDOWN_COLUMNS,
            (),
            numbers=BREAKDOWN_COLUMNS[1:],
            noun="breakdown",
            limit=MAX_BREAKDOWNS * len(listed),
        )
        times = TimeColumn("time")
        for row, place in zip(rows, places, strict=True):
            vehicle = read_id(row, "vehicle", place)
            if vehicle not in listed:
                raise RecordError(
                    f"{place}: vehicle: unknown vehicle '{vehicle}'; expected a vehicle of layout "
                    f"'{layout.name}'"
                )
            time = count_seconds(times.read(row, place), epoch, "time", place)
            repair_time = read_number(row, "repair_time", place)
            if time + repair_time >= 0.0:
                listed[vehicle].append(Breakdown(max(0.0, time), repair_time + min(0.0, time)))
            if len(listed[vehicle]) > MAX_BREAKDOWNS:
                raise RecordError(
                    f"{place}: vehicle: more than {MAX_BREAKDOWNS:,} breakdowns of '{vehicle}'; "
                    "expected fewer"
                )
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    return layout.with_breakdowns(listed)


def format_record(instance: Instance) -> str:
    """Return an instance's tasks as CSV; optional columns only where they are used.

    Arrivals are timestamps if the instance has an epoch, to the microsecond; expiries are seconds. The
    moment of time zero is named where no task arrives at it. Breakdowns are not in it.

    Parameters
    ----------
    instance : Instance

    Raises
    ------
    InputError
        If an arrival lies beyond the last year of the calendar.
    """
    rows = instance.rows()
    columns = [*REQUIRED_COLUMNS]
    columns += [name for name in OPTIONAL_COLUMNS if any(row.get(name) for row in rows)]
    if instance.epoch is not None:
        zero = _fix_offset(instance.epoch)
        if instance.arrival[0] > 0.0:
            columns.append(TIME_ZERO_COLUMN)
        for row in rows:
            row["arrival_time"] = _show_moment(zero, row["arrival_time"], row["task"])
            row[TIME_ZERO_COLUMN] = zero.isoformat()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_plain(row[name]) for name in columns])
    return text.getvalue()


def write_record(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write an instance's tasks as `format_record` gives them, atomically.

    Parameters
    ----------
    instance : Instance
    path : path-like

    Raises
    ------
    InputError
        As `format_record`.
    StorageError
        If the file cannot be written.
    """
    write_atomically(path, format_record(instance).encode())


def _fix_offset(moment: datetime) -> datetime:
    """Return a moment with an offset in whole minutes that no clock change alters, or without one."""
    offset = moment.utcoffset()
    if offset is None:
        return moment
    return moment.astimezone(UTC if offset % timedelta(minutes=1) else timezone(offset))


def _show_moment(zero: datetime, seconds: float, task: str) -> str:
    try:
        return (zero + timedelta(seconds=seconds)).isoformat()
    except OverflowError as error:
        raise InputError(
            f"task '{task}': arrives {seconds:g} s after {zero}; expected a moment before the year 10000"
        ) from error


def _plain(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)
