"""Files of task records, of breakdowns, of closures and of past assignments, read and written."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.problem import fields, source, task_rows
from acerl_np.problem.columns import (
    BREAKDOWNS,
    CHAIN,
    CLOSURES,
    PAST,
    RECORD,
    TIME_ZERO_COLUMN,
    TableKind,
)
from acerl_np.problem.export import PLAIN, Export
from acerl_np.problem.instance import Instance, make_instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_BREAKDOWNS
from acerl_np.problem.parting import Part, find_parting, part_rows
from acerl_np.problem.parts import Breakdown, Closure
from acerl_np.problem.source import Lines, Table
from acerl_np.problem.synonyms import find_synonyms
from acerl_np.support.errors import InputError, LayoutError, RecordError, make_printable
from acerl_np.support.faults import Fault, RecordWarning
from acerl_np.support.files import FilePath, show_path, write_atomically
from acerl_np.support.report import render_csv, render_table

BREAKDOWNS_FILE = "breakdowns.csv"
"""Name of a file beside a task record that replaces the breakdowns that the layout lists."""

CLOSURES_FILE = "closures.csv"
"""The same of closed edges; that of one record alone has the record's name and a dot before this one."""

NO_BREAKDOWNS = "none"
"""In the place of a file of breakdowns: there are none, whatever the layout says."""


LEFT_OUT = ".left-out.csv"
"""How names of files end that list what was left out."""

ADVICE = "; --skip-bad leaves them out, acerl-np records check lists all"


class Reading(NamedTuple):
    """What was understood of a task record.

    `arrivals` and `expiries` are what the times were read as, such as "times of day"; `first_row` are task,
    arrival and expiry of a row that could be read, the first with both, as they stand there, `first` its
    arrival and expiry in seconds. `faults` are those of the rows that were left out, of `n_rows`. `rolled`
    are the expiries of those whose due time of day is of the day after their arrival.
    """

    table: Table
    arrivals: str
    expiries: str
    first_row: tuple[str, str, str]
    first: tuple[float, float]
    faults: tuple[Fault, ...]
    n_rows: int
    rolled: tuple[float, ...]


def _make_source(export: Export) -> TableKind:
    """Return what a record must hold; where it is said when tasks are due, it need not tell."""
    record = RECORD
    if export.due is None:
        return record
    required = tuple(name for name in record.required if name != "expiry_time")
    return record._replace(required=required, optional=("expiry_time", *record.optional))


def examine_record(
    path: FilePath,
    layout: Layout,
    export: Export = PLAIN,
    *,
    lines: Lines | None = None,
    servable: bool = True,
    stacklevel: int = 2,
) -> tuple[list[Instance], Reading]:
    """Read a table of tasks that belongs to `layout`: one record, or those it is split into; and how.

    `lines` are those of the file if it was opened. Warnings are of the line `stacklevel` calls above.
    """
    parting = find_parting(export.split)
    # Names of files need not be text; a backslash could not stand in another name.
    shown = show_path(path)
    name = shown if shown != str(path) else Path(path).stem
    name = name if name.isprintable() else make_printable(name).replace("\\", "%")

    record = _make_source(export)
    with source.read_table(record, path, export, lines=lines, stacklevel=stacklevel) as table:
        if not table.rows:
            source.refuse_faults(table.faults, len(table.faults))
            raise RecordError("no tasks below the header; expected one line per task")
        n_rows = len(table.rows) + len(table.faults)
        columns, epoch, faults, roots, rolled, forms = task_rows.read_tasks(
            table.rows, table.places, layout, None, export, share_date=table.columns.share_date
        )
        kept, ahead = columns["row"], np.array(columns["ahead"])
        is_utc = epoch is not None and epoch.utcoffset() == timedelta() and not ahead.any()
        if parting is not None and not parting.gap and is_utc and export.timezone is None:
            raise RecordError(
                "split (--split): arrivals are in UTC, and shifts and days begin by the clock on the wall; "
                "expected --timezone (timezone=) such as Europe/Berlin, or UTC"
            )
        parts, which = [Part("", 0.0)], np.zeros(len(kept), np.int64)
        if parting is not None and kept:
            begins = np.array(columns["arrival"])[roots]
            parts, which = part_rows(begins, epoch, parting, ahead)
        places = [table.places[k] for k in kept]
        repeated = task_rows.find_repeated(columns["tasks"], places, which.tolist())
        faults = sorted([*table.faults, *faults, *repeated.values()], key=source.find_line)
        if not (export.skip_bad and kept):
            source.refuse_faults(faults, n_rows, ADVICE)
        instances = []
        for n, part in enumerate(parts):
            own = [k for k in np.flatnonzero(which == n).tolist() if k not in repeated]
            tasks = {x: [column[k] for k in own] for x, column in columns.items()}
            called = "-".join(filter(None, (name, part.name)))
            instance, order = _make_part(called, layout, tasks, part, epoch)
            if servable:
                instance.check_servable([places[own[k]] for k in order])
            instances.append(instance)
        # What follows another may lack an arrival, what is never due has no expiry.
        timed = np.isinf(columns["expiry"]) + 2 * (roots != np.arange(len(roots)))
        first = int(timed.argmin())
        arrival = columns["arrival"][first] - parts[which[first]].zero
        seconds = float(arrival), float(columns["expiry"][first])
        shown_row, (arrivals, expiries) = _show_row(table.rows[kept[first]], export, forms)
        told = tuple(faults), n_rows, tuple(rolled)
        reading = Reading(table, arrivals, expiries, shown_row, seconds, *told)
    if faults:
        warning = RecordWarning(shown, (), reading.faults, n_rows)
        warnings.warn(warning, stacklevel=stacklevel + 1)
    return instances, reading


def _show_row(
    row: Mapping[str, str], export: Export, forms: Sequence[str]
) -> tuple[tuple[str, str, str], tuple[str, str]]:
    """Return task, arrival and expiry as a row has them, and what both times were read as."""
    arrivals, expiries = forms
    task, arrival, expiry = (
        row.get(name, "").strip() for name in ("task", "arrival_time", "expiry_time")
    )
    if export.due is not None and not expiry:
        expiry, expiries = f"{export.due:g}", "--due"
    return (task, arrival, expiry), (arrivals, expiries)


def _make_part(
    name: str, layout: Layout, tasks: dict[str, Any], part: Part, epoch: datetime | None
) -> tuple[Instance, np.ndarray]:
    """Return a part of a table as a record, and the order of its tasks; its time zero is the part's."""
    if part.zero:  # to the microsecond, as moments are
        tasks["arrival"] = np.round(np.array(tasks["arrival"]) - part.zero, 6) + 0.0
    zero = None if epoch is None else epoch + timedelta(seconds=part.zero)
    if zero is not None and part.ahead:
        clock = zero.utcoffset() or timedelta()
        zero = zero.astimezone(timezone(clock + timedelta(seconds=part.ahead)))
    return make_instance(name, layout, tasks, zero)


def name_columns(path: FilePath, export: Export) -> tuple[Export, Lines]:
    """Return an export with a file's encoding or sheet, and columns by synonyms; and the file's lines."""
    columns, record = dict(export.columns), _make_source(export)
    lines = source.open_table(record, path, export)
    named = {source.normalise(field) for field in lines.header}
    for name, meant in find_synonyms(lines.header).items():
        if name not in named and len(meant) == 1:
            columns.setdefault(name, meant[0])
    export = replace(export, columns=columns)
    if lines.delimiter and not lines.form.startswith("utf"):
        export = replace(export, encoding=lines.form)
    elif not lines.delimiter:
        export = replace(export, sheet=lines.form)
    return export, lines


def read_breakdowns(
    path: FilePath, layout: Layout, epoch: datetime | None, export: Export, *, alone: bool
) -> Layout:
    """Return `layout` with the breakdowns of a CSV file in the place of those that it lists.

    The file may hold timestamps if there is a moment of time zero, `epoch`, and must for one record of
    several, not `alone`. A breakdown before time zero counts as far as its repair lasts beyond it.
    """
    listed: dict[str, list[Breakdown]] = {vehicle.id: [] for vehicle in layout.vehicles}
    limited = BREAKDOWNS._replace(limit=MAX_BREAKDOWNS * len(listed))
    with _read_times(limited, path, replace(export, columns={}), alone=alone) as (rows, times):
        for row, place in rows:
            own = fields.read_known(row, place, "vehicle", listed, f"layout '{layout.name}'")
            time = times["time"].count(row, place, epoch)
            repair_time = fields.read_number(row, "repair_time", place)
            if time + repair_time >= 0.0:
                own.append(Breakdown(max(0.0, time), repair_time + min(0.0, time)))
            if len(own) > MAX_BREAKDOWNS:
                raise RecordError(
                    f"{place}: vehicle: more than {MAX_BREAKDOWNS:,} breakdowns of "
                    f"'{row['vehicle'].strip()}'; expected fewer"
                )
    return layout.with_breakdowns(listed)


@contextmanager
def _read_times(
    kind: TableKind, path: FilePath, export: Export, *, alone: bool = True, stacklevel: int = 5
) -> Iterator[tuple[list[tuple[fields.Row, str]], dict[str, fields.TimeColumn]]]:
    """Give a block the rows of a table with their places, and what reads its columns of times.

    After it days are refused, and seconds beside several records. Warnings are as in `source.read_table`.
    """
    form = export.make_date_format()
    times = {name: fields.TimeColumn(name, form) for name in kind.numbers}
    with source.read_table(kind, path, export, stacklevel=stacklevel) as table:
        source.refuse_faults(table.faults, len(table.rows) + len(table.faults))
        yield list(zip(table.rows, table.places, strict=True)), times
        for column in times.values():
            column.refuse_days()
            if column.form == "seconds" and not alone:
                raise RecordError(
                    f"{column.column}: seconds, and each record of a split table (--split) has its own time "
                    "zero; expected timestamps"
                )


def read_closures(
    path: FilePath, layout: Layout, epoch: datetime | None, export: Export, *, alone: bool
) -> Layout:
    """Return `layout` with the closures of a CSV file in the place of its own, as `read_breakdowns`."""
    closures, kept = [], []
    with _read_times(CLOSURES, path, replace(export, columns={}), alone=alone) as (rows, times):
        for row, place in rows:
            names = [fields.read_id(row, column, place) for column in ("a", "b")]
            a, b = (layout.aliases.get(name, name) for name in names)
            begin, end = (time.count(row, place, epoch) for time in times.values())
            if end > 0.0 or begin >= 0.0 or end <= begin:
                closures.append(Closure(a, b, max(0.0, begin) if end > begin else begin, end))
                kept.append(f"{place}: ")
        try:
            return layout.with_closures(closures, kept)
        except LayoutError as error:
            raise RecordError(str(error)) from error


def write_closures(layout: Layout, path: FilePath) -> None:
    """Write a layout's closures as `read_closures` reads them, atomically."""
    rows = [[x.a, x.b, _plain(x.time), _plain(x.until)] for x in layout.closures]
    write_atomically(path, render_csv([CLOSURES.required, *rows]).encode())


def format_record(instance: Instance) -> str:
    """Return an instance's tasks as CSV, without breakdowns; optional columns only where they are used.

    Of a task that follows another the arrival is empty if it is the first one's, of one never due the expiry.
    Arrivals are timestamps or times of day if the instance has an epoch, to the microsecond; expiries
    are seconds. The moment of time zero is named where no task arrives at it.
    """
    rows = instance.rows()
    columns = [*RECORD.required]
    columns += [name for name in RECORD.optional if any(row.get(name) for row in rows)]
    if not instance.is_plain and not {*columns} & {*CHAIN}:
        columns.append(CHAIN[0])  # so that expiries may be empty
    if instance.epoch is not None:
        zero, offset = instance.epoch, instance.epoch.utcoffset()
        if offset is not None:  # no clock change alters one in whole minutes
            zero = zero.astimezone(UTC if offset % timedelta(minutes=1) else timezone(offset))
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
            row |= {
                "arrival_time": fields.show_moment(arrival),
                TIME_ZERO_COLUMN: fields.show_moment(zero),
            }
    first = instance.arrival[instance.root]
    for k in np.flatnonzero((instance.after >= 0) & (instance.arrival == first)).tolist():
        rows[k]["arrival_time"] = None
    # The priority is left out where it is 0.
    cells = [[_plain(row.get(name, 0.0)) for name in columns] for row in rows]
    return render_table(columns, cells, "csv")


def write_record(instance: Instance, path: FilePath) -> None:
    """Write an instance's tasks as `format_record` gives them, atomically."""
    write_atomically(path, format_record(instance).encode())


def _plain(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return str(int(value)) if value == int(value) else repr(value)


# Past assignments, as a control system recorded them: which vehicle served which task from when


@dataclass(frozen=True, eq=False)
class Assignments:
    """Which vehicle served which task from when, as recorded.

    `order` are the tasks by their recorded starts, equal starts in the order of the file; `vehicle` is the
    position of the one that served each task; `finish`, s, is nan where it was not recorded. `present`,
    ndarray(float64, (n_vehicles, 2)), s, is from when to when each vehicle was in the fleet; None: all the
    while.
    """

    instance: Instance
    order: np.ndarray
    vehicle: np.ndarray
    start: np.ndarray
    finish: np.ndarray
    present: np.ndarray | None = None


def write_assignments(path: FilePath, assignments: Assignments) -> None:
    """Write which vehicle served which task from when to when, as `read_assignments` reads it, atomically."""
    instance, fleet = assignments.instance, assignments.instance.layout.vehicles
    rows: list[list[object]] = [["task", "vehicle", "start", "finish"]]
    for k in assignments.order:
        finish = assignments.finish[k]
        times = assignments.start[k], None if math.isnan(finish) else finish
        moments = [_plain(None if x is None else float(x)) for x in times]
        rows.append([instance.tasks[k], fleet[assignments.vehicle[k]].id, *moments])
    write_atomically(path, render_csv(rows).encode())


def read_assignments(path: FilePath, instance: Instance, export: Export = PLAIN) -> Assignments:
    """Read past assignments of a record's tasks; "-" is the standard input.

    The CSV's header is `task,vehicle,start`, optionally `finish`; times are seconds or moments of any form,
    also of the export's format. A `RecordError` names line and field of what is unknown or stands twice, of a
    vehicle that may not carry its task, or where a task is left out.
    """
    layout, n = instance.layout, instance.n_tasks
    task_index = {name: k for k, name in enumerate(instance.tasks)}
    vehicle_index = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
    vehicle = np.full(n, -1, np.int32)
    found = {"start": np.zeros(n), "finish": np.full(n, np.nan)}
    with _read_times(PAST, path, export, stacklevel=4) as (rows, times):
        places = [place for _, place in rows]
        seen = [fields.read_id(row, "task", place) for row, place in rows]
        source.refuse_faults([*task_rows.find_repeated(seen, places).values()], len(rows))
        for row, place in rows:
            task = fields.read_known(row, place, "task", task_index, f"record '{instance.name}'")
            v = fields.read_known(row, place, "vehicle", vehicle_index, f"layout '{layout.name}'")
            vehicle[task] = v
            capacity = layout.vehicles[v].capacity
            if 0.0 < capacity < instance.demand[task]:
                raise RecordError(
                    f"{place}: vehicle: '{layout.vehicles[v].id}' has a capacity of {capacity:g}; "
                    f"expected a vehicle that may carry the task's demand of {instance.demand[task]:g}"
                )
            for column, time in times.items():
                if column == "start" or not fields.is_blank(row.get(column)):
                    found[column][task] = time.count(row, place, instance.epoch)
        missing = [name for name, served in zip(instance.tasks, vehicle, strict=True) if served < 0]
        if missing:
            others = f" and {len(missing) - 1} more of the record's tasks" if missing[1:] else ""
            raise RecordError(
                f"{places[-1] if places else 'line 1'}: task: the file ends without "
                f"'{missing[0]}'{others}; expected each of the record's {n} tasks once"
            )
    in_file = np.array([task_index[name] for name in seen], np.int32)
    order = in_file[np.argsort(found["start"][in_file], kind="stable")]
    return Assignments(instance, order, vehicle, **found)
