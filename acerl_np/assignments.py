"""Past assignments played in the simulator: what yesterday's dispatching would score here."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from acerl_np.errors import RecordError
from acerl_np.kernels.baselines import play_assignments
from acerl_np.kernels.state import (
    FINISH,
    MAKESPAN,
    N_DECISIONS,
    START,
    STATUS,
    TARDINESS,
    TASK,
    VEHICLE,
    WORKING,
    allocate_state,
)
from acerl_np.problem.instance import MAX_TASKS, Instance
from acerl_np.problem.rows import TimeColumn, count_seconds, is_blank, parse_csv, read_id
from acerl_np.problem.tables import build_problem
from acerl_np.storage import read_text, write_atomically

REQUIRED_COLUMNS = ("task", "vehicle", "start")
OPTIONAL_COLUMNS = ("finish",)
SCHEDULE_COLUMNS = (
    "task",
    "vehicle",
    "arrival",
    "due",
    "planned_start",
    "start",
    "planned_finish",
    "finish",
    "tardiness",
)


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


@dataclass(frozen=True, eq=False)
class Replay:
    """Recorded assignments as the simulator carries them out.

    Attributes
    ----------
    assignments : Assignments
    makespan, tardiness : float, s
        nan if the episode was stopped at its horizon.
    start, finish : ndarray(float64, (n_tasks,)), s
        Per task, of the assignment that was carried through; nan where there is none.
    decisions : int
        Assignments in all, those that a breakdown undid included.
    """

    assignments: Assignments
    makespan: float
    tardiness: float
    start: np.ndarray
    finish: np.ndarray
    decisions: int


def read_assignments(path: str | os.PathLike[str], instance: Instance) -> Assignments:
    """Read past assignments of a record's tasks.

    Parameters
    ----------
    path : path-like
        CSV with header `task,vehicle,start`, optionally `finish`; times are seconds or timestamps
        as in `instances/README.md`.
    instance : Instance

    Returns
    -------
    Assignments

    Raises
    ------
    RecordError
        If the file cannot be read, names an unknown task or vehicle, a task twice, a vehicle that
        may not carry its task, or leaves a task out; the message names line and field.
    """
    text = read_text(path, RecordError)
    try:
        rows, places = parse_csv(
            text,
            REQUIRED_COLUMNS,
            OPTIONAL_COLUMNS,
            numbers=("start", "finish"),
            noun="assignment",
            limit=MAX_TASKS,
        )
        return _collect(rows, places, instance)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def _collect(rows: list[dict[str, str]], places: list[str], instance: Instance) -> Assignments:
    layout = instance.layout
    task_index = {name: k for k, name in enumerate(instance.tasks)}
    vehicle_index = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
    n = instance.n_tasks
    vehicle = np.full(n, -1, np.int32)
    start, finish = np.zeros(n), np.full(n, np.nan)
    starts, finishes = TimeColumn("start"), TimeColumn("finish")
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


def replay_assignments(
    assignments: Assignments, *, horizon: float | None = None, key: np.ndarray | None = None
) -> Replay:
    """Play recorded assignments in the simulator.

    Each vehicle serves its tasks in the order of their recorded starts; an assignment happens at the
    first moment, not before its recorded start, at which the vehicle is idle and the task has
    arrived. A task whose vehicle breaks down in mid-way is served again by the same vehicle as soon
    as that is idle.

    Parameters
    ----------
    assignments : Assignments
    horizon : float, optional
        s after which the episode is stopped, finished or not; by default as `build_problem` says.
    key : ndarray(uint32, (4,)), optional
        Stream of the random breakdowns, if there are any; by default that of zeros.

    Returns
    -------
    Replay

    Raises
    ------
    InputError
        If the horizon is unusable.
    """
    instance = assignments.instance
    n, fleet = instance.n_tasks, len(instance.layout.vehicles)
    problem = build_problem([instance], horizon=horizon)
    state = allocate_state(problem, 1)
    if key is not None:
        state.breakdown_key[0] = key
    ordered = assignments.vehicle[assignments.order]
    play_assignments(
        problem,
        state,
        0,
        assignments.order[np.argsort(ordered, kind="stable")],
        np.searchsorted(np.sort(ordered), np.arange(fleet + 1)).astype(np.int64),
        np.ceil(np.maximum(assignments.start, 0.0)).astype(np.int64),
        np.empty(fleet, np.int64),
    )
    served = state.task[0, :n, VEHICLE] >= 0
    vehicles = state.vehicle[0, :fleet]
    served[vehicles[vehicles[:, STATUS] == WORKING, TASK]] = False
    return Replay(
        assignments=assignments,
        makespan=float(state.outcome[0, MAKESPAN]),
        tardiness=float(state.outcome[0, TARDINESS]),
        start=np.where(served, state.task[0, :n, START], np.nan),
        finish=np.where(served, state.task[0, :n, FINISH], np.nan),
        decisions=int(state.episode[0, N_DECISIONS]),
    )


def write_schedule(path: str | os.PathLike[str], replay: Replay) -> None:
    """Write a replay task by task as CSV; s, empty where unknown.

    `planned_start` and `planned_finish` are recorded, `start` and `finish` simulated.

    Parameters
    ----------
    path : path-like
    replay : Replay

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SCHEDULE_COLUMNS)
    planned = replay.assignments
    instance = planned.instance
    due = instance.arrival + instance.expiry
    for k in planned.order:
        times = [
            instance.arrival[k],
            due[k],
            planned.start[k],
            replay.start[k],
            planned.finish[k],
            replay.finish[k],
            np.maximum(0.0, replay.finish[k] - due[k]),
        ]
        cells = ["" if np.isnan(time) else repr(round(float(time), 6)) for time in times]
        vehicle = instance.layout.vehicles[planned.vehicle[k]].id
        writer.writerow([instance.tasks[k], vehicle, *cells])
    write_atomically(path, text.getvalue().encode())
