"""What tasks and vehicles go through: the states, and which event is allowed in which of them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acerl_np.kernels.ground import state as S
from acerl_np.live import events
from acerl_np.live.board import MOST_ENDED
from acerl_np.support.errors import EventError

if TYPE_CHECKING:
    from acerl_np.live.floor import Floor

UNKNOWN = "unknown"
STATES = "announced", "waiting", "unservable", "given", "loaded", "delivered", "cancelled"
ANNOUNCED, WAITING, UNSERVABLE, GIVEN, LOADED, DELIVERED, CANCELLED = STATES

OPEN = ANNOUNCED, WAITING, UNSERVABLE
FOUND = {
    **{state: state for state in (UNKNOWN, ANNOUNCED, WAITING, UNSERVABLE)},
    GIVEN: "on vehicle '{vehicle}'",
    LOADED: "on vehicle '{vehicle}', which has been at its pickup",
}
"""How errors name the state that was found; a task that has ended is unknown, and its name may come again."""

OF_TASKS: dict[type, tuple[tuple[str, ...], str]] = {
    events.TaskArrived: ((UNKNOWN,), "a name that no task has"),
    events.TaskChanged: (OPEN, "a waiting task"),
    events.TaskCancelled: (OPEN, "a waiting task"),
    events.TaskAnnounced: ((*OPEN, GIVEN, LOADED), "one that is held back or waits"),
    events.TaskReady: ((*OPEN, GIVEN, LOADED), "one that is held back or waits"),
    events.TaskRecalled: ((GIVEN,), "one under way to its pickup"),
}
"""In which states of its task an event is allowed, and how errors say so."""

SLACK = 300.0
"""s that a task may take beyond twice the time that was reckoned, before it is overdue."""

ERRANDS = (S.ROAMING, S.PARKING, S.TO_CHARGER, S.QUEUED, S.CHARGING)
"""What a vehicle without a task may do besides being idle or broken."""

FREE = (S.IDLE, *ERRANDS)
ANY = (S.IDLE, S.WORKING, S.BROKEN, *ERRANDS)
OF_VEHICLES: dict[type, tuple[int, ...]] = {
    events.VehicleIdle: (S.WORKING,),
    events.VehiclePassed: (S.WORKING, *FREE),
    events.VehicleParked: FREE,
    events.VehicleCharging: FREE,  # that it ends: where it charges
    events.RecallAnswered: ANY,
    events.VehicleBroke: (S.WORKING, *FREE),
    events.VehicleRepaired: (S.BROKEN,),
    events.VehicleRemoved: ANY,
    events.VehicleOutOfService: ANY,
    events.VehicleBack: ANY,
}
"""In which statuses of its vehicle an event is allowed."""


class TaskState(NamedTuple):
    """Where a task is.

    Attributes
    ----------
    state : str
        "announced" (held back), "waiting", "unservable" (it waits, but no vehicle of the fleet can do it),
        "given", "loaded" (its vehicle has been at its pickup), "delivered" or "cancelled".
    since : float
        s, since when; of one that is held back when it was told, of one that waits when it was ready.
    vehicle : str
        The vehicle that has it, or had it at last; "" without one.
    reason : str
        Why it is unservable; else "".
    """

    state: str
    since: float
    vehicle: str = ""
    reason: str = ""


def list_tasks(floor: Floor) -> dict[str, TaskState]:
    """Return where each task of the day is; of a name that came again the last one."""
    found = {
        name: TaskState(DELIVERED if is_delivered else CANCELLED, time, vehicle)
        for name, is_delivered, time, vehicle in floor.day.ended
    }
    for name, task in (*floor.tasks.items(), *floor.planned.items()):
        found.pop(name, None)  # the order is that of what comes
        state, v = floor.find_state(task), task.vehicle
        if v >= 0:
            moved = floor.vehicles[v].moved
            found[name] = TaskState(state, moved, floor.layout.vehicles[v].id)
            continue
        reason = floor.find_fault(task.event)
        since = task.event.time if name in floor.planned else task.since
        found[name] = TaskState(state, since, "", reason)
    return found


def list_overdue(floor: Floor, now: float, slack: float) -> dict[str, str]:
    """Return the tasks under way, and their vehicles, that are overdue at `now`, s."""
    return {
        own.task: name
        for name, own in floor.fleet.items()
        if own.task is not None and now > own.moved + 2.0 * max(0.0, own.finish - own.moved) + slack
    }


def find_neglected(floor: Floor, without: Collection[str]) -> float | None:
    """Return since when a task has waited, s, that an idle vehicle could take; of several the longest."""
    ready = [name for name, own in floor.fleet.items() if own.is_ready and name not in without]
    tried = set[tuple[str, float]]()
    for task in sorted((floor.tasks[name] for name in floor.pool), key=lambda own: own.since):
        event = task.event
        if (event.pickup, event.demand) in tried:  # nobody took one that is alike
            continue
        tried.add((event.pickup, event.demand))
        for name in ready:
            with suppress(EventError):
                floor.check_way(floor.check_assignment(name, event.task)[0], event.task)
                return task.since
    return None


def check_floor(floor: Floor) -> list[str]:
    """Return what is broken of what always holds, a line each."""
    found: list[str] = []

    def expect(what: str, read: Any, expected: Any) -> None:
        if read != expected:
            found.append(f"{what}: read {read}; expected {expected}")

    tasks, pool = floor.tasks, floor.pool
    expect("pool", sorted(pool), sorted(name for name, own in tasks.items() if own.vehicle < 0))
    expect("tasks both held back and not", sorted(tasks.keys() & floor.planned.keys()), [])
    carried = {v: own.task for v, own in enumerate(floor.vehicles) if own.task is not None}
    expect("carried", carried, {own.vehicle: n for n, own in tasks.items() if own.vehicle >= 0})
    working = [v for v, own in enumerate(floor.vehicles) if own.status == S.WORKING]
    expect("vehicles that work", working, [*carried])
    expect("idle vehicles", floor.n_ready, sum(own.is_ready for own in floor.vehicles))
    rows = [own.row for own in (*tasks.values(), *floor.planned.values()) if own.row >= 0]
    expect("rows in use", np.flatnonzero(floor.clock.used).tolist(), sorted(rows))
    shown = floor.state.pool[0, : floor.state.episode[0, S.EPISODE_POOL_SIZE]].tolist()
    expect("rows of the pool", shown, [tasks[name].row for name in pool if name in tasks])
    n_delivered = sum(own[1] for own in floor.day.ended)
    if n_delivered and len(floor.day.ended) < MOST_ENDED:  # states of before do not tell
        expect("tasks delivered", n_delivered, floor.day.delivered)
    return found
