"""Files of task records and of breakdowns, read and written."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from acerl_np.problem.fields import (
    TimeColumn,
    count_seconds,
    make_date_format,
    read_known,
    read_number,
    show_moment,
)
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_BREAKDOWNS
from acerl_np.problem.parts import Breakdown
from acerl_np.problem.source import Columns, Source, Table
from acerl_np.problem.task_rows import RECORD, TIME_ZERO_COLUMN
from acerl_np.support.errors import InputError, RecordError, make_printable
from acerl_np.support.files import show_path, write_atomically
from acerl_np.support.report import render_table

BREAKDOWN_COLUMNS = ("vehicle", "time", "repair_time")
BREAKDOWNS = Source("breakdown", BREAKDOWN_COLUMNS, (), BREAKDOWN_COLUMNS[1:], MAX_BREAKDOWNS)

BREAKDOWNS_FILE = "breakdowns.csv"
"""Name of a file beside a task record that replaces the breakdowns that the layout lists."""

NO_BREAKDOWNS = "none"
"""In the place of a file of breakdowns: there are none, whatever the layout says."""


class Reading(NamedTuple):
    """What was understood of a task record.

    `arrivals` and `expiries` are what the times were read as, such as "times of day"; `first_row` are task,
    arrival and expiry of the first line as they stand there, `first` its arrival and expiry in seconds.
    """

    columns: Columns
    delimiter: str
    arrivals: str
    expiries: str
    first_row: tuple[str, str, str]
    first: tuple[float, float]


def examine_record(
    path: str | os.PathLike[str],
    layout: Layout,
    *,
    date_format: str | None = None,
    servable: bool = True,
) -> tuple[Instance, Reading]:
    """Read a task record (CSV) that belongs to `layout`, and say how it was understood."""
    form = make_date_format(date_format)  # before a file is read that may be a pipe
    # Names of files need not be text; a backslash could not stand in another name.
    shown = show_path(path)
    name = shown if shown != str(path) else Path(path).stem
    name = name if name.isprintable() else make_printable(name).replace("\\", "%")

    def collect(table: Table) -> tuple[Instance, Reading]:
        if not table.rows:
            raise RecordError("no tasks below the header; expected one line per task")
        instance = Instance.from_rows(
            name, layout, table.rows, table.places, date_format=date_format, servable=servable
        )
        row = {name: text.strip() for name, text in table.rows[0].items()}
        arrivals = TimeColumn("arrival_time", form)
        expiries = TimeColumn("expiry_time", form, relative=True)
        arrivals.read(row, "")
        expiries.read(row, "")
        k = instance.tasks.index(row["task"])
        forms = arrivals.form, expiries.form
        first_row = row["task"], row["arrival_time"], row["expiry_time"]
        first = float(instance.arrival[k]), float(instance.expiry[k])
        return instance, Reading(table.columns, table.delimiter, *forms, first_row, first)

    return RECORD.read(path, collect)


def read_breakdowns(
    path: str | os.PathLike[str],
    layout: Layout,
    epoch: datetime | None = None,
    *,
    date_format: str | None = None,
) -> Layout:
    """Return `layout` with the breakdowns of a CSV file in the place of those that it lists.

    The file may hold timestamps if there is a moment of time zero, `epoch`. A breakdown before time zero
    counts as far as its repair lasts beyond it.
    """
    times = TimeColumn("time", make_date_format(date_format))
    listed: dict[str, list[Breakdown]] = {vehicle.id: [] for vehicle in layout.vehicles}

    def collect(table: Table) -> Layout:
        for row, place in zip(table.rows, table.places, strict=True):
            own = read_known(row, place, "vehicle", listed, f"layout '{layout.name}'")
            time = count_seconds(times.read(row, place), epoch, "time", place)
            repair_time = read_number(row, "repair_time", place)
            if time + repair_time >= 0.0:
                own.append(Breakdown(max(0.0, time), repair_time + min(0.0, time)))
            if len(own) > MAX_BREAKDOWNS:
                raise RecordError(
                    f"{place}: vehicle: more than {MAX_BREAKDOWNS:,} breakdowns of "
                    f"'{row['vehicle'].strip()}'; expected fewer"
                )
        return layout.with_breakdowns(listed)

    return BREAKDOWNS._replace(limit=MAX_BREAKDOWNS * len(listed)).read(path, collect)


def format_record(instance: Instance) -> str:
    """Return an instance's tasks as CSV, without breakdowns; optional columns only where they are used.

    Arrivals are timestamps or times of day if the instance has an epoch, to the microsecond; expiries
    are seconds. The moment of time zero is named where no task arrives at it.
    """
    rows = instance.rows()
    columns = [*RECORD.required]
    columns += [name for name in RECORD.optional if any(row.get(name) for row in rows)]
    if instance.epoch is not None:
        zero = _fix_offset(instance.epoch)
        if instance.arrival[0] > 0.0:
            columns.append(TIME_ZERO_COLUMN)
        for row in rows:
            try:
                arrival = zero + timedelta(seconds=row["arrival_time"])
            except OverflowError as error:
                raise InputError(
                    f"task '{row['task']}': arrives {row['arrival_time']:g} s after {zero}; expected a "
                    "moment before the year 10000"
                ) from error
            row |= {"arrival_time": show_moment(arrival), TIME_ZERO_COLUMN: show_moment(zero)}
    # The priority is left out where it is 0.
    cells = [[_plain(row.get(name, 0.0)) for name in columns] for row in rows]
    return render_table(columns, cells, "csv")


def write_record(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write an instance's tasks as `format_record` gives them, atomically."""
    write_atomically(path, format_record(instance).encode())


def _fix_offset(moment: datetime) -> datetime:
    """Return a moment with an offset in whole minutes that no clock change alters, or without one."""
    offset = moment.utcoffset()
    if offset is None:
        return moment
    return moment.astimezone(UTC if offset % timedelta(minutes=1) else timezone(offset))


def _plain(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)
