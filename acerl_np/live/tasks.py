"""What happens to tasks that wait or are held back, and which events of theirs cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from acerl_np.live.board import Board
from acerl_np.live.day import Day
from acerl_np.live.events import Event, TaskArrived, TaskCancelled, TaskChanged
from acerl_np.live.parts import LiveTask, Snapshot, find_arrival
from acerl_np.problem.stations import find_ends, find_sites
from acerl_np.support.errors import EventError, describe, list_some
from acerl_np.support.numbers import is_real

MOST = 1e12
"""Largest number of a task that is accepted."""

NUMBERS = ("time", "expiry", "handling_time", "demand", "priority", "earliest_start")
"""Fields of a task that hold one."""


class Situation(NamedTuple):
    """All that events change, to return to.

    Attributes
    ----------
    board : Snapshot
    day : Day
    mark : tuple
        How far the day had come.
    """

    board: Snapshot
    day: Day
    mark: tuple[int, float, int]


class TaskFloor:
    """What is known about the floor, and what happens to waiting tasks.

    Parameters
    ----------
    board : Board

    Attributes
    ----------
    board : Board
    day : Day
    next_release : float or None
        Earliest start of those tasks that are held back, s.
    last_release : float
        Latest earliest start of those that are not held back any more, s.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.day = Day()
        self.next_release: float | None = None
        self.last_release = -np.inf
        self._learn_fleet()

    def advance(self, now: float) -> None:
        """Let those tasks wait that are held back until `now` or before."""
        while self.next_release is not None and self.next_release <= now:
            task = min(self.board.planned.values(), key=lambda task: find_arrival(task.event))
            del self.board.planned[task.event.task]
            self._begin_waiting(task)
            self.last_release = max(self.last_release, find_arrival(task.event))
            self._plan_release()

    def try_task(self) -> None:
        """Let a task wait that some vehicle may carry, to see what a decision takes; restore afterwards."""
        board, layout = self.board, self.board.layout
        distance = board.problem.distance[0]
        start = board.vehicles[0].site
        near = np.flatnonzero(np.isfinite(distance[start]))
        for pickup in near.tolist():
            others = np.isfinite(distance[pickup])
            others[pickup] = False
            if others.any():
                ends = layout.sites[pickup].id, layout.sites[int(np.argmax(others))].id
                self._begin_waiting(LiveTask(TaskArrived(0.0, "", *ends, 1.0)))
                return

    def snapshot(self) -> Situation:
        """Return the situation, to come back to it with `restore`."""
        return Situation(self.board.snapshot(), self.day, self.day.mark)

    def restore(self, situation: Situation) -> None:
        """Return to a situation."""
        is_other = situation.board.layout is not self.board.layout
        self.board.restore(situation.board)
        self.day = situation.day
        self.day.return_to(situation.mark)
        self.last_release = -np.inf
        self._plan_release()
        if is_other:
            self._learn_fleet()

    def find_vehicle(self, name: str, what: str) -> int:
        """Return a vehicle's position.

        Raises
        ------
        EventError
            If it is unknown.
        """
        v = self._vehicles.get(name) if isinstance(name, str) else None
        if v is None:
            known = list_some(list(self._vehicles), 20)
            raise EventError(f"{what}: vehicle '{describe(name)}' unknown; expected one of {known}")
        return v

    def _learn_fleet(self) -> None:
        """Note who is in the fleet, and how much of it can be carried from where."""
        layout = self.board.layout
        self._vehicles = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        capacity = np.array([vehicle.capacity or np.inf for vehicle in layout.vehicles])
        starts = [layout.site_index[vehicle.start] for vehicle in layout.vehicles]
        near = np.isfinite(self.board.problem.distance[0][starts])
        self._largest = float(capacity.max())
        self._carried_from: list[float] = np.where(near, capacity[:, None], -1.0).max(0).tolist()

    def _find_site(self, name: str, what: str) -> int:
        sites = self._find_sites(name, what)
        if len(sites) > 1:
            raise EventError(
                f"{what}: site '{name}' is a station of {len(sites)} sites; expected one of them"
            )
        return sites[0]

    def _find_sites(self, name: str, what: str) -> tuple[int, ...]:
        layout = self.board.layout
        site = layout.site_index.get(name) if isinstance(name, str) else None
        if site is not None:
            return (site,)
        sites = find_sites(layout, name) if isinstance(name, str) else ()
        if not sites:
            raise EventError(
                f"{what}: site '{describe(name)}' unknown; expected a site of the layout"
            )
        return sites

    def _find_ends(self, event: TaskArrived, what: str) -> tuple[int, int]:
        """Return the sites of a task, those of stations chosen as in a record."""
        layout = self.board.layout
        pickups, deliveries = (
            self._find_sites(event.pickup, what),
            self._find_sites(event.delivery, what),
        )
        aliases = layout.aliases
        same = aliases.get(event.pickup, event.pickup) == aliases.get(
            event.delivery, event.delivery
        )
        if same or len({*pickups, *deliveries}) == 1:
            raise EventError(f"{what}: task '{event.task}': pickup and delivery are one site")
        if len(pickups) == len(deliveries) == 1:
            return pickups[0], deliveries[0]
        return find_ends(layout, pickups, deliveries)

    def _plan_release(self) -> None:
        planned = self.board.planned.values()
        self.next_release = min((find_arrival(task.event) for task in planned), default=None)

    # Tasks

    def _arrive(self, event: TaskArrived) -> None:
        what = name_event(event)
        board = self.board
        if not isinstance(event.task, str) or not event.task:
            raise EventError(f"{what}: task: read '{describe(event.task)}'; expected a name")
        if event.task in board.tasks or event.task in board.planned:
            raise EventError(f"{what}: task '{event.task}' waits or is under way already")
        pickup, delivery = self._find_ends(event, what)
        for field in ("expiry", "handling_time", "demand"):
            _check_number(what, field, getattr(event, field), 0.0)
        _check_number(what, "priority", event.priority, -MOST)
        if event.earliest_start is not None:
            _check_start(what, event)
        if not np.isfinite(board.problem.distance[0, pickup, delivery]):
            raise EventError(f"{what}: no way from '{event.pickup}' to '{event.delivery}'")
        if event.demand > self._largest:
            raise EventError(f"{what}: demand {event.demand:g} exceeds every vehicle's capacity")
        if event.demand > self._carried_from[pickup]:
            raise EventError(f"{what}: no vehicle that may carry it can reach '{event.pickup}'")
        sites = board.layout.sites
        own = _normalise(event, sites[pickup].id, sites[delivery].id)
        task = LiveTask(own, told=None if own == event else event)
        if find_arrival(own) > own.time:
            board.planned[event.task] = task
            self._plan_release()
        else:
            self._begin_waiting(task)

    def _begin_waiting(self, task: LiveTask) -> None:
        board, event = self.board, task.event
        arrival = find_arrival(event)
        board.wait(board.enter(task, arrival))
        index = board.layout.site_index
        expiry = event.expiry - (arrival - event.time)
        values = arrival - self.day.start, expiry, event.handling_time, event.demand
        self.day.add(index[event.pickup], index[event.delivery], values)

    def _find_waiting(self, event: TaskChanged | TaskCancelled) -> TaskArrived:
        """Return a task that waits or is held back."""
        task = self.board.planned.get(event.task) or self.board.tasks.get(event.task)
        if task is None or task.vehicle >= 0:
            found = "unknown"
            if task is not None:
                found = f"on vehicle '{self.board.layout.vehicles[task.vehicle].id}'"
            raise EventError(
                f"{name_event(event)}: task '{describe(event.task)}' is {found}; expected a waiting task"
            )
        return task.event

    def _change(self, event: TaskChanged) -> None:
        what = name_event(event)
        old = self._find_waiting(event)
        new = old
        if event.due is not None:
            first = find_arrival(old)
            if not is_real(event.due) or not first <= event.due <= first + MOST:
                raise EventError(
                    f"{what}: due: read {describe(event.due)}; expected a time from {first:g} s on, "
                    "when the task may begin"
                )
            new = replace(new, expiry=float(event.due) - old.time)
        if event.priority is not None:
            _check_number(what, "priority", event.priority, -MOST)
            new = replace(new, priority=float(event.priority))
        if event.task in self.board.planned:
            self.board.planned[event.task] = self.board.planned[event.task].change(new)
        else:
            self.board.change(event.task, new)

    def _cancel(self, event: TaskCancelled) -> None:
        self._find_waiting(event)
        if self.board.planned.pop(event.task, None) is not None:
            self._plan_release()
        else:
            self.board.withdraw(self.board.tasks[event.task])


def name_event(event: Event) -> str:
    """Return an event as an error names it."""
    return f"{type(event).__name__} at {event.time} s"


def _normalise(event: TaskArrived, pickup: str, delivery: str) -> TaskArrived:
    """Return a task between two sites whose numbers are Python's: others cannot be saved, or round."""
    numbers: dict[str, Any] = {name: getattr(event, name) for name in NUMBERS}
    if (event.pickup, event.delivery) == (pickup, delivery) and all(
        value is None or type(value) is float for value in numbers.values()
    ):
        return event
    floats: dict[str, Any] = {
        name: None if value is None else float(value) for name, value in numbers.items()
    }
    return replace(event, pickup=pickup, delivery=delivery, **floats)


def _check_number(what: str, field: str, value: object, least: float) -> None:
    # Numbers of other kinds than Python's and NumPy's could not be compared.
    if not is_real(value) or not least <= value <= MOST:  # type: ignore[operator]
        raise EventError(
            f"{what}: {field}: read {describe(value)}; expected a number from {least:g} to {MOST:g}"
        )


def _check_start(what: str, event: TaskArrived) -> None:
    due = event.time + event.expiry
    if not is_real(event.earliest_start) or not event.earliest_start <= due:  # type: ignore[operator]
        raise EventError(
            f"{what}: earliest_start: read {describe(event.earliest_start)}; expected a time until "
            f"{due:g} s, when the task is due"
        )
