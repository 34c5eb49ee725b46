"""Past assignments as a control system recorded them: which vehicle served which task from when."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from acerl_np.problem import fields
from acerl_np.problem.export import PLAIN, Export
from acerl_np.problem.instance import Instance
from acerl_np.problem.source import Table, refuse_faults
from acerl_np.problem.task_rows import PAST, find_repeated
from acerl_np.support.errors import RecordError


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


def read_assignments(
    path: str | os.PathLike[str], instance: Instance, export: Export = PLAIN
) -> Assignments:
    """Read past assignments of a record's tasks; "-" is the standard input.

    The CSV's header is `task,vehicle,start`, optionally `finish`; times are seconds or moments of any form,
    also of the export's format. A `RecordError` names line and field of what is unknown or stands twice, of a
    vehicle that may not carry its task, or where a task is left out.
    """
    form = fields.make_date_format(export.date_format, export.timezone)
    columns = {name: fields.TimeColumn(name, form) for name in ("start", "finish")}
    return PAST.read(path, lambda table: _collect(table, instance, columns), export)


def _collect(
    table: Table, instance: Instance, columns: dict[str, fields.TimeColumn]
) -> Assignments:
    refuse_faults(table.faults, len(table.rows) + len(table.faults))
    layout = instance.layout
    task_index = {name: k for k, name in enumerate(instance.tasks)}
    vehicle_index = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
    n = instance.n_tasks
    vehicle = np.full(n, -1, np.int32)
    times = {"start": np.zeros(n), "finish": np.full(n, np.nan)}
    rows = list(zip(table.rows, table.places, strict=True))
    seen = [fields.read_id(row, "task", place) for row, place in rows]
    refuse_faults(list(find_repeated(seen, table.places).values()), len(rows))
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
        for column, moments in times.items():
            if column == "start" or not fields.is_blank(row.get(column)):
                found = columns[column].read(row, place)
                moments[task] = fields.count_seconds(found, instance.epoch, column, place)
    there = set(seen)
    missing = [name for name in instance.tasks if name not in there]
    if missing:
        others = f" and {len(missing) - 1} more of the record's tasks" if missing[1:] else ""
        raise RecordError(
            f"{table.places[-1] if table.places else 'line 1'}: task: the file ends without '{missing[0]}'"
            f"{others}; expected each of the record's {n} tasks once"
        )
    in_file = np.array([task_index[name] for name in seen], np.int32)
    order = in_file[np.argsort(times["start"][in_file], kind="stable")]
    return Assignments(instance, order, vehicle, **times)
