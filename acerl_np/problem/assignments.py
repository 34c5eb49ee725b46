"""Past assignments as a control system recorded them: which vehicle served which task from when."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.limits import MAX_TASKS
from acerl_np.problem.records import warn_of_columns
from acerl_np.problem.rows import is_blank, parse_csv, read_id
from acerl_np.problem.times import DateFormat, TimeColumn, count_seconds, make_date_format
from acerl_np.support.errors import RecordError
from acerl_np.support.files import read_text, show_path

REQUIRED_COLUMNS = ("task", "vehicle", "start")
OPTIONAL_COLUMNS = ("finish",)


@dataclass(frozen=True, eq=False)
class Assignments:
    """Which vehicle served which task from when, as recorded.

    Attributes
    ----------
    instance : Instance
        The record whose tasks these are.
    order : ndarray(int32, (n_tasks,))
        Tasks by their recorded starts, equal starts in the order of the file.
    vehicle : ndarray(int32, (n_tasks,))
        Position in the layout's vehicles of the one that served each task.
    start, finish : ndarray(float64, (n_tasks,)), s
        As recorded, per task; `finish` is nan where it was not.
    """

    instance: Instance
    order: np.ndarray
    vehicle: np.ndarray
    start: np.ndarray
    finish: np.ndarray


def read_assignments(
    path: str | os.PathLike[str], instance: Instance, *, date_format: str | None = None
) -> Assignments:
    """Read past assignments of a record's tasks.

    Parameters
    ----------
    path : path-like
        CSV with header `task,vehicle,start`, optionally `finish`; times are seconds or timestamps
        as in `instances/README.md`; "-" is the standard input.
    instance : Instance
    date_format : str, optional
        How the file writes dates besides ISO 8601, as `datetime.strptime` reads it.

    Returns
    -------
    Assignments

    Raises
    ------
    RecordError
        If the file cannot be read, names an unknown task or vehicle, a task twice, a vehicle that
        may not carry its task, or leaves a task out; the message names line and field.
    InputError
        If the date format is none.

    Warns
    -----
    RecordWarning
        If the file has columns that are not read.
    """
    form = make_date_format(date_format)
    text = read_text(path, RecordError)
    try:
        table = parse_csv(
            text,
            REQUIRED_COLUMNS,
            OPTIONAL_COLUMNS,
            numbers=("start", "finish"),
            noun="assignment",
            limit=MAX_TASKS,
        )
        assignments = _collect(table.rows, table.places, instance, form)
    except RecordError as error:
        raise RecordError(f"{show_path(path)}: {error}") from error
    warn_of_columns(path, table.columns)
    return assignments


def _collect(
    rows: list[dict[str, str]],
    places: list[str],
    instance: Instance,
    date_format: DateFormat | None,
) -> Assignments:
    layout = instance.layout
    task_index = {name: k for k, name in enumerate(instance.tasks)}
    vehicle_index = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
    n = instance.n_tasks
    vehicle = np.full(n, -1, np.int32)
    start, finish = np.zeros(n), np.full(n, np.nan)
    starts, finishes = TimeColumn("start", date_format), TimeColumn("finish", date_format)
    seen: dict[int, str] = {}
    for row, place in zip(rows, places, strict=True):
        name = read_id(row, "task", place)
        if name not in task_index:
            raise RecordError(
                f"{place}: task: unknown task '{name}'; expected a task of record '{instance.name}'"
            )
        task = task_index[name]
        if task in seen:
            raise RecordError(
                f"{place}: task: '{name}' stands already on {seen[task]}; expected each task once"
            )
        seen[task] = place
        name = read_id(row, "vehicle", place)
        if name not in vehicle_index:
            raise RecordError(
                f"{place}: vehicle: unknown vehicle '{name}'; expected a vehicle of layout "
                f"'{layout.name}'"
            )
        vehicle[task] = vehicle_index[name]
        capacity = layout.vehicles[vehicle[task]].capacity
        if 0.0 < capacity < instance.demand[task]:
            raise RecordError(
                f"{place}: vehicle: '{name}' has a capacity of {capacity:g}; expected a vehicle that "
                f"may carry the task's demand of {instance.demand[task]:g}"
            )
        start[task] = _read_time(starts, row, instance.epoch, place)
        if not is_blank(row.get("finish")):
            finish[task] = _read_time(finishes, row, instance.epoch, place)
    missing = [name for k, name in enumerate(instance.tasks) if k not in seen]
    if missing:
        others = f" and {len(missing) - 1} more of the record's tasks" if missing[1:] else ""
        raise RecordError(
            f"{places[-1] if places else 'line 1'}: task: the file ends without '{missing[0]}'"
            f"{others}; expected each of the record's {n} tasks once"
        )
    in_file = np.fromiter(seen, np.int32, n)
    order = in_file[np.argsort(start[in_file], kind="stable")]
    return Assignments(instance, order, vehicle, start, finish)


def _read_time(
    column: TimeColumn, row: dict[str, str], epoch: datetime | None, place: str
) -> float:
    return count_seconds(column.read(row, place), epoch, column.column, place)
