"""A log of all that a dispatcher was told and answered, and what it says about the day."""

from __future__ import annotations

import json
import math
import os
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.live.events import (
    EVENTS,
    Event,
    RecallAnswered,
    TaskAnnounced,
    TaskArrived,
    TaskCancelled,
    TaskChanged,
    TaskReady,
    TaskRecalled,
    VehicleAdded,
    VehicleBroke,
    VehicleIdle,
    VehicleOutOfService,
    VehicleRemoved,
    VehicleRepaired,
)
from acerl_np.live.floor import MOST
from acerl_np.live.saving import read_event
from acerl_np.problem.assignments import Assignments
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import UNUSABLE
from acerl_np.problem.parts import Breakdown, Vehicle
from acerl_np.support.errors import LayoutError, RecordError, StorageError, describe, make_printable
from acerl_np.support.files import describe_os_error, read_text
from acerl_np.support.numbers import is_real

STARTED, ASSIGNED, DAY_BEGAN = "Started", "Assigned", "DayBegan"
RECALL, PARK, CHARGE = "Recall", "Park", "Charge"
"""Lines of a log besides events."""

ORDERS = (ASSIGNED, RECALL, PARK, CHARGE)

BEGINNING = '{"kind": "'
"""Of each line."""


class AuditLog:
    """A file to which a line is added for every event and every assignment.

    What is there already stays. A StorageError says that a line cannot be written; it is written before the
    next one then. With `fsync` a line is on the disk, not only with the system, when `note` returns.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.path, self.fsync = path, fsync
        self._pending = b""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise StorageError(f"{path}: cannot write: {describe_os_error(error)}") from error
        weakref.finalize(self, os.close, self._file)
        size = os.lseek(self._file, 0, os.SEEK_END)
        if size > 0:
            os.lseek(self._file, size - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":  # the machine failed within a line
                self._pending = b"\n"

    def note(self, kind: str, **values: Any) -> None:
        """Add a line."""
        self._pending += json.dumps({"kind": kind, **values}, default=float).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Hand all lines to the system at once: nothing is lost with the process."""
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._file, self._pending) :]
            if self.fsync:
                os.fsync(self._file)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot write: {describe_os_error(error)}") from error


def read_audit(path: str | os.PathLike[str], layout: Layout) -> Assignments:
    """Return what a log says about the day: its tasks, who served them, and which vehicles broke down.

    A line that stands twice, as after a restart from an older state, counts once. Tasks that were cancelled
    or never given to a vehicle are left out. Time zero is the start of the first day.

    Parameters
    ----------
    path : path-like
    layout : Layout
        The floor, and the fleet at the beginning; vehicles that the log adds come after it. Breakdowns are
        those of the log.

    Returns
    -------
    Assignments
        `instance` is the record. A task whose vehicle broke down, or that was recalled, has the last
        assignment. `present` says when vehicles joined and left.

    Raises
    ------
    RecordError
        If the file cannot be read, a line is no line of a log, or it holds no assignment; the message names
        the line.
    """
    text = read_text(path, RecordError)
    try:
        day = _LoggedDay(layout)
        for place, line in _order_lines(parse_log(text)[0]):
            try:
                day.take(line)
            except KeyError as error:
                what = f"{place}: {line['kind']}"
                raise RecordError(f"{what}: {error} is missing or unknown") from error
            except UNUSABLE as error:
                what, reason = f"{place}: {line['kind']}", make_printable(str(error)[:200])
                raise RecordError(f"{what}: cannot be read: {reason}") from error
        return day.finish(Path(path).stem)
    except UNUSABLE as error:  # a RecordError is a ValueError, too
        raise RecordError(f"{path}: {make_printable(str(error)[:400])}") from error


def parse_log(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Return the lines of a log with their places, and the place of a last one that was cut off, or ""."""
    found: list[tuple[str, dict[str, Any]]] = []
    torn = ""
    for k, row in enumerate(text.split("\n")):
        place = f"line {k + 1}"
        if not row:
            continue
        try:
            line = json.loads(row)
        except ValueError as error:
            if not BEGINNING.startswith(row[: len(BEGINNING)]):  # no beginning of a line, either
                raise RecordError(f"{place}: not JSON; expected a line of a log") from error
            torn = torn or place
            continue
        kind = line.get("kind") if isinstance(line, dict) else None
        if torn and kind != STARTED:  # before a restart a line may have been cut
            raise RecordError(f"{torn}: not JSON; expected a line of a log")
        if kind not in (*EVENTS, STARTED, *ORDERS, DAY_BEGAN):
            raise RecordError(f"{place}: kind: read '{describe(kind)}'; expected a line of a log")
        torn = ""
        found.append((place, line))
    return found, torn


def _order_lines(lines: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the lines of a log in order of their times, each with its place, repeated ones once."""
    found: list[tuple[float, str, dict[str, Any]]] = []
    seen: set[str] = set()
    latest = -np.inf
    for place, line in lines:
        if line["kind"] in (STARTED, DAY_BEGAN):
            found.append((latest, place, line))
            continue
        time: Any = line.get("time")
        if not is_real(time) or abs(time) > MOST:
            raise RecordError(f"{place}: time: read '{describe(time)}'; expected seconds")
        latest = max(latest, float(time))
        # Told again after a restart from an older state, it stands at another place of the log.
        content = json.dumps({k: v for k, v in line.items() if k not in ("line", "clock")})
        if content not in seen:
            seen.add(content)
            found.append((float(time), place, line))
    found.sort(key=lambda item: item[0])
    return [(place, line) for _, place, line in found]


def _check_numbers(event: Event, *names: str, optional: Sequence[str]) -> None:
    for name in (*names, *(name for name in optional if getattr(event, name) is not None)):
        value = getattr(event, name)
        if not is_real(value) or abs(value) > MOST:
            raise RecordError(f"{name}: read '{describe(value)}'; expected a number")


class _LoggedDay:
    """Tasks and their last assignments, as a log tells them line by line."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.fleet = {vehicle.id: vehicle for vehicle in layout.vehicles}
        self.start: float | None = None
        self.tasks: dict[str, TaskArrived] = {}
        """By its name in the record: names may be used again once a task is served."""
        self.names: dict[str, str] = {}
        self.known: dict[str, tuple[float, float]] = {}
        """When it was first said when a task is ready, and when that was, s."""
        self.given: dict[str, tuple[str, float]] = {}
        self.finish_of: dict[str, float] = {}
        self.carried: dict[str, str] = {}
        self.recalled: dict[tuple[str, str], tuple[str, float] | None] = {}
        """What was given of a vehicle's task that it was told to give back."""
        self.broke: dict[str, float] = {}
        self.breakdowns: dict[str, list[tuple[float, float]]] = {}
        """Begins and ends, s."""
        self.joined: dict[str, float] = {}
        self.left: dict[str, float] = {}

    def take(self, line: dict[str, Any]) -> None:
        """Take in a line."""
        kind = line["kind"]
        if kind == STARTED:
            self.start = float(line["start"]) if self.start is None else self.start
        elif kind == ASSIGNED:
            name = self.names[line["task"]]
            self.given[name] = line["vehicle"], float(line["time"])
            self.carried[line["vehicle"]] = name
        elif kind == RECALL:
            name = self.names[line["task"]]
            self.recalled[line["vehicle"], name] = self.given.get(name)
            self._drop(line["vehicle"])
        elif kind not in (DAY_BEGAN, *ORDERS):
            self._take_event(read_event(EVENTS[kind], line))

    def _take_event(self, event: Event) -> None:
        match event:
            case TaskArrived():
                name, n = event.task, 1
                while name in self.tasks:
                    n += 1
                    name = f"{event.task} ({n})"
                numbers = ["time", "handling_time", "demand", "priority", "processing"]
                numbers += ["expiry"] if event.expiry != math.inf else []
                _check_numbers(event, *numbers, optional=["earliest_start"])
                if event.after:
                    event = replace(event, after=self.names[event.after])
                self.names[event.task], self.tasks[name] = name, event
            case TaskAnnounced() | TaskReady():
                field = "ready" if isinstance(event, TaskAnnounced) else "time"
                _check_numbers(event, field, optional=[])
                name, ready = self.names[event.task], float(getattr(event, field))
                self.known[name] = self.known.get(name, (float(event.time),))[0], ready
            case TaskChanged():
                name = self.names[event.task]
                _check_numbers(event, optional=["due", "priority"])
                task = self.tasks[name]
                if event.due is not None:
                    task = replace(task, expiry=event.due - task.time)
                if event.priority is not None:
                    task = replace(task, priority=event.priority)
                self.tasks[name] = task
            case TaskCancelled() | TaskRecalled():
                name = self.names[event.task]
                if name in self.given:
                    self.carried.pop(self.given.pop(name)[0], None)
                if isinstance(event, TaskCancelled) or event.cancel:
                    del self.tasks[name], self.names[event.task]
            case RecallAnswered():
                name = self.names[event.task]
                before = self.recalled.pop((event.vehicle, name), None)
                if not event.done and before is not None:
                    self._drop(event.vehicle)
                    if name in self.given:
                        self._drop(self.given[name][0])
                    self.given[name], self.carried[event.vehicle] = before, name
            case VehicleAdded():
                # One that comes again was here since it came first.
                if self.left.pop(event.vehicle, None) is None:
                    self.joined[event.vehicle] = float(event.time)
                self.fleet[event.vehicle] = Vehicle(
                    event.vehicle, event.site, event.speed, event.capacity
                )
            case VehicleIdle(delivered=False):
                self._drop(event.vehicle)
            case VehicleIdle():
                if event.vehicle in self.left:  # with its last task
                    self.left[event.vehicle] = float(event.time)
                if event.vehicle in self.carried:
                    self.finish_of[self.carried.pop(event.vehicle)] = float(event.time)
            case VehicleRepaired():
                if event.vehicle in self.broke:
                    span = self.broke.pop(event.vehicle), float(event.time)
                    self.breakdowns.setdefault(event.vehicle, []).append(span)
            case VehicleBroke():
                self._drop(event.vehicle)
                self.broke[event.vehicle] = float(event.time)
            case VehicleRemoved() | VehicleOutOfService():
                if isinstance(event, VehicleRemoved):
                    self.left[event.vehicle] = float(event.time)
                if event.at_once:
                    self._drop(event.vehicle)

    def _drop(self, vehicle: str) -> None:
        if vehicle in self.carried:
            del self.given[self.carried.pop(vehicle)]

    def finish(self, name: str) -> Assignments:
        """Return the record and who served it."""
        served = {task: event for task, event in self.tasks.items() if task in self.given}
        if not served:
            raise RecordError("no task was given to a vehicle; expected a log with assignments")
        start = min(event.time for event in served.values())
        if self.start is not None:
            start = min(self.start, start)
        rows = []
        for task, event in served.items():
            after = event.after if event.after in served else ""
            first, ready = self.known.get(task, (event.time, event.time))
            first_start = event.earliest_start
            rows.append(
                {
                    "task": task,
                    "pickup": event.pickup,
                    "delivery": event.delivery,
                    "arrival_time": (event.time if after else ready) - start,
                    "expiry_time": None if event.expiry == math.inf else event.expiry,
                    "handling_time": event.handling_time,
                    "demand": event.demand,
                    "priority": event.priority,
                    "earliest_start": None if first_start is None else first_start - start,
                    "after": after,
                    "processing": event.processing,
                    "announced": max(0.0, ready - first),
                }
            )
        try:
            layout = self.layout.with_fleet(self.fleet.values())
        except LayoutError as error:
            raise RecordError(str(error)) from error
        shifted = {
            vehicle: [
                Breakdown(max(0.0, broke - start), end - max(start, broke))
                for broke, end in spans
                if end > start
            ]
            for vehicle, spans in self.breakdowns.items()
        }
        instance = Instance.from_rows(name, layout.with_breakdowns(shifted), rows)
        position = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        n = instance.n_tasks
        vehicles, begins, ends = np.zeros(n, np.int32), np.zeros(n), np.full(n, np.nan)
        for k, task in enumerate(instance.tasks):
            vehicle, begin = self.given[task]
            if vehicle not in position:
                raise RecordError(
                    f"vehicle '{describe(vehicle)}': no vehicle of layout '{layout.name}'; "
                    "expected the layout of the log"
                )
            vehicles[k], begins[k] = position[vehicle], begin - start
            ends[k] = self.finish_of.get(task, np.nan) - start
        order = np.argsort(begins, kind="stable").astype(np.int32)
        present = [
            (
                max(0.0, self.joined.get(vehicle.id, start) - start),
                self.left.get(vehicle.id, np.inf) - start,
            )
            for vehicle in layout.vehicles
        ]
        return Assignments(instance, order, vehicles, begins, ends, np.array(present))
