"""Files of task records and of breakdowns, read and written."""

from __future__ import annotations

import csv
import io
import os
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from acerl_np.problem.columns import Columns
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_BREAKDOWNS, MAX_TASKS
from acerl_np.problem.parts import Breakdown
from acerl_np.problem.rows import Table, parse_csv, read_id, read_number
from acerl_np.problem.task_rows import (
    OPTIONAL_COLUMNS,
    REQUIRED_COLUMNS,
    TIME_ZERO_COLUMN,
)
from acerl_np.problem.times import TimeColumn, count_seconds, make_date_format, show_moment
from acerl_np.support.errors import InputError, RecordError, RecordWarning, make_printable
from acerl_np.support.files import read_text, show_path, write_atomically

BREAKDOWN_COLUMNS = ("vehicle", "time", "repair_time")

BREAKDOWNS_FILE = "breakdowns.csv"
"""Name of a file beside a task record that replaces the breakdowns that the layout lists."""

NO_BREAKDOWNS = "none"
"""In the place of a file of breakdowns: there are none, whatever the layout says."""


class Reading(NamedTuple):
    """What was understood of a task record.

    Attributes
    ----------
    columns : Columns
    delimiter : str
    arrivals, expiries : str
        What the times were read as, such as "times of day".
    first_row : tuple of str
        Task, arrival and expiry of the first line as they stand there.
    first : tuple of float
        Its arrival in seconds from time zero, and its expiry in seconds.
    """

    columns: Columns
    delimiter: str
    arrivals: str
    expiries: str
    first_row: tuple[str, str, str]
    first: tuple[float, float]


def read_record(
    path: str | os.PathLike[str],
    layout: Layout,
    *,
    breakdowns: str | os.PathLike[str] | None = None,
    date_format: str | None = None,
    servable: bool = True,
) -> Instance:
    """Read a task record (CSV) that belongs to `layout`.

    Parameters
    ----------
    path : path-like
        Format in `instances/README.md`; separated by commas, semicolons or tabs, UTF-8; "-" is the
        standard input.
    layout : Layout
    breakdowns : path-like, optional
        CSV of breakdowns that replace those that the layout lists; "none" for no breakdowns.
    date_format : str, optional
        How both files write dates besides ISO 8601, as `datetime.strptime` reads it.
    servable : bool
        Refuse a record some of whose tasks may be impossible to reach or to carry.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError
        If a file cannot be read or a line is not usable; the message names line and field.
    InputError
        If the date format is none.

    Warns
    -----
    RecordWarning
        If a file has columns that are not read.
    """
    instance, _ = examine_record(path, layout, date_format=date_format, servable=servable)
    if breakdowns is None:
        return instance
    if breakdowns == NO_BREAKDOWNS:
        return replace(instance, layout=layout.with_breakdowns({}).with_random_breakdowns(None))
    floor = read_breakdowns(breakdowns, layout, instance.epoch, date_format=date_format)
    return replace(instance, layout=floor)


def examine_record(
    path: str | os.PathLike[str],
    layout: Layout,
    *,
    date_format: str | None = None,
    servable: bool = True,
) -> tuple[Instance, Reading]:
    """Read a task record, and say how it was understood.

    Parameters
    ----------
    path, layout, date_format, servable
        As in `read_record`.

    Returns
    -------
    Instance
    Reading

    Raises
    ------
    InputError
        As `read_record`.

    Warns
    -----
    RecordWarning
        As `read_record`.
    """
    make_date_format(date_format)  # before a file is read that may be a pipe
    text = read_text(path, RecordError)
    shown = show_path(path)
    try:
        table = parse_csv(
            text,
            REQUIRED_COLUMNS,
            (*OPTIONAL_COLUMNS, TIME_ZERO_COLUMN),
            numbers=(*REQUIRED_COLUMNS[3:], *OPTIONAL_COLUMNS),
            noun="task",
            limit=MAX_TASKS,
        )
        if not table.rows:
            raise RecordError("no tasks below the header; expected one line per task")
        # Names of files need not be text; a backslash could not stand in another name.
        name = shown if shown != str(path) else Path(path).stem
        name = name if name.isprintable() else make_printable(name).replace("\\", "%")
        instance = Instance.from_rows(
            name, layout, table.rows, table.places, date_format=date_format, servable=servable
        )
    except RecordError as error:
        raise RecordError(f"{shown}: {error}") from error
    warn_of_columns(path, table.columns)
    return instance, _describe_reading(table, instance, date_format)


def _describe_reading(table: Table, instance: Instance, date_format: str | None) -> Reading:
    row, form = table.rows[0], make_date_format(date_format)
    arrivals, expiries = (
        TimeColumn("arrival_time", form),
        TimeColumn("expiry_time", form, relative=True),
    )
    arrivals.read(row, "")
    expiries.read(row, "")
    k = instance.tasks.index(row["task"].strip())
    return Reading(
        table.columns,
        table.delimiter,
        arrivals.form,
        expiries.form,
        (row["task"].strip(), row["arrival_time"].strip(), row["expiry_time"].strip()),
        (float(instance.arrival[k]), float(instance.expiry[k])),
    )


def warn_of_columns(path: str | os.PathLike[str], columns: Columns) -> None:
    """Warn of columns that are not read, once for a file, if it has any."""
    if columns.ignored:
        warnings.warn(RecordWarning(show_path(path), columns.ignored), stacklevel=5)


def read_breakdowns(
    path: str | os.PathLike[str],
    layout: Layout,
    epoch: datetime | None = None,
    *,
    date_format: str | None = None,
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
    date_format : str, optional
        How the file writes dates besides ISO 8601, as `datetime.strptime` reads it.

    Returns
    -------
    Layout

    Raises
    ------
    RecordError
        If the file cannot be read or a line is not usable; the message names line and field.
    InputError
        If the date format is none.

    Warns
    -----
    RecordWarning
        If the file has columns that are not read.
    """
    times = TimeColumn("time", make_date_format(date_format))
    text = read_text(path, RecordError)
    listed: dict[str, list[Breakdown]] = {vehicle.id: [] for vehicle in layout.vehicles}
    try:
        table = parse_csv(
            text,
            BREAKDOWN_COLUMNS,
            (),
            numbers=BREAKDOWN_COLUMNS[1:],
            noun="breakdown",
            limit=MAX_BREAKDOWNS * len(listed),
        )
        for row, place in zip(table.rows, table.places, strict=True):
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
        raise RecordError(f"{show_path(path)}: {error}") from error
    warn_of_columns(path, table.columns)
    return layout.with_breakdowns(listed)


def format_record(instance: Instance) -> str:
    """Return an instance's tasks as CSV; optional columns only where they are used.

    Arrivals are timestamps or times of day if the instance has an epoch, to the microsecond; expiries
    are seconds. The
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
            row[TIME_ZERO_COLUMN] = show_moment(zero)
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
        return show_moment(zero + timedelta(seconds=seconds))
    except OverflowError as error:
        raise InputError(
            f"task '{task}': arrives {seconds:g} s after {zero}; expected a moment before the year 10000"
        ) from error


def _plain(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)
