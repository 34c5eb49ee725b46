"""What is told of a floor: each task, the moment as plain values, how long the queue was, what is broken."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.live.floor import Floor
from acerl_np.live.parts import MOST_ENDED, OUT, LiveTask, LiveVehicle
from acerl_np.live.states import CANCELLED, DELIVERED, LOADED, TaskState
from acerl_np.simulation.scene import STATUSES
from acerl_np.support.errors import EventError

EVERY = 30.0
"""Seconds between two samples of the queue at least."""

MOST_SAMPLES = 2_880
"""Samples that are kept: those of a day."""

MOST_TASKS = 500
"""Tasks without a vehicle that are described, the most urgent first; of others only their number is."""

OUT_OF_SERVICE, PARKED, TO_PICKUP = "out of service", "parked", "to pickup"

Queue = tuple[tuple[float, int, int], ...]
"""Samples: a moment, s, how many tasks waited just before, and how many known ones were late."""


def sample_queue(queue: Queue, time: float, floor: Floor) -> Queue:
    """Return how long the queue was, with a sample of the time of an event that is still to happen.

    Without one so soon after the last. Samples are those of the last 24 hours or more.
    """
    if queue and not time >= queue[-1][0] + EVERY:
        return queue
    # Whether somebody asked in between is in no log: what begins until then counts, whatever is released.
    free = [*(floor.tasks[name] for name in floor.pool), *floor.list_timed()]
    waiting = sum(own.arrival <= time for own in free)
    late = sum(own.due < time for own in (*floor.tasks.values(), *floor.planned.values()))
    return (*queue, (float(time), waiting, late))[-MOST_SAMPLES:]


def describe_moment(
    floor: Floor, time: float, latest: tuple[dict[str, Any], ...]
) -> dict[str, Any]:
    """Return tasks, vehicles, the `latest` orders and figures of a moment as plain values.

    Sites and vehicles are positions in the layout. Times are seconds; a number that is not finite is None.

    Returns
    -------
    dict
        "tasks" : rows of name, pickup, delivery, due, state, vehicle (-1 for none), and when it should be
        delivered, or of one without a vehicle how many seconds its way takes at least.
        "vehicles" : rows of state, task, share of the battery's capacity, and way: (site, time) of where it
        was seen last and of each site from there to its next goal.
        "orders" : the last ones, as a log has them.
        "figures" : numbers by name.
    """
    index, day = floor.layout.site_index, floor.day
    carried, free = list[LiveTask](), list[LiveTask]()
    for task in floor.tasks.values():
        (free if task.vehicle < 0 else carried).append(task)
    # Nobody knows when one of nan is due.
    free.sort(key=lambda task: math.inf if math.isnan(task.due) else task.due)
    fleet = floor.layout.vehicles
    fastest = max(range(len(fleet)), key=lambda v: fleet[v].speed)

    def list_task(task: LiveTask) -> list[Any]:
        event, v = task.event, task.vehicle
        pickup, delivery = index[event.pickup], index[event.delivery]
        end = floor.vehicles[v].finish
        if v < 0:
            end = floor.measure_way(fastest, pickup, delivery) + event.handling_time
        state = floor.find_state(task)
        return [event.task, pickup, delivery, _finite(task.due), state, v, _finite(end)]

    def list_vehicle(v: int, own: LiveVehicle) -> list[Any]:
        battery = floor.layout.batteries[v]
        level = None if battery is None else floor.find_level(v, time) / battery.capacity
        way = [(site, round(moment, 1)) for site, moment in find_way(floor, v)]
        return [_name_state(own), own.task, level and round(level, 3), way]

    return {
        "tasks": [*map(list_task, carried), *map(list_task, free[:MOST_TASKS])],
        "vehicles": [list_vehicle(v, own) for v, own in enumerate(floor.vehicles)],
        "orders": list(latest),
        "figures": {
            "time": _finite(time),
            "start": day.start,
            "waiting": len(floor.pool),
            "announced": len(floor.planned),
            "delivered": day.delivered,
            "delay": day.delay,
        },
    }


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


def _name_state(own: LiveVehicle) -> str:
    if own.service == OUT:
        return OUT_OF_SERVICE
    if own.status == S.WORKING:
        return LOADED if own.has_fetched else TO_PICKUP
    return PARKED if own.status == S.IDLE and own.place == own.site else STATUSES[own.status]


def find_way(floor: Floor, v: int) -> list[tuple[int, float]]:
    """Return the sites of a vehicle's way, with when it was or should be there, s.

    The first is where it was seen last, the last where it has to be seen next: its task's pickup, then the
    delivery, or the end of a way without a task. One that stands has a single site.
    """
    own, way, routes = floor.vehicles[v], floor.vehicles[v].way, floor.layout.routes
    if own.plan and not own.is_stranded:
        return _read_plan(own)
    speed, origin = floor.layout.vehicles[v].speed, own.origin
    site, moment, goal = own.site, own.seen, own.site
    begin = list[tuple[int, float]]()
    if own.task is not None and not own.is_stranded:
        event, index = floor.tasks[own.task].event, floor.layout.site_index
        goal = index[event.delivery if own.has_fetched else event.pickup]
        if own.has_fetched:
            origin = index[event.pickup]
    elif way is not None and own.task is None:
        goal = way.end
    if way is not None and not own.is_stranded:
        if way.before != way.site:  # it finishes an edge first
            length = float(routes.edge_length[way.before, way.site])
            begin = [(way.before, way.reached - length / way.pace)]
        site, moment = way.site, way.began
    found = [*begin, (site, moment)]
    for _ in floor.layout.sites:
        following = routes.find_next(origin, site, goal)
        if following == site:
            break
        pace = speed
        if routes.edge_speed is not None:
            pace = min(pace, float(routes.edge_speed[site, following]))
        moment += float(routes.edge_length[site, following]) / pace
        site = following
        found.append((site, moment))
    return found


def _read_plan(own: LiveVehicle) -> list[tuple[int, float]]:
    """Return the same of a vehicle that meets others; a site at which it waits is there twice."""
    (_, pickup, delivery, _), *visits = own.plan
    begin = max((k for k, x in enumerate(visits) if x[S.PLAN_SITE] == own.site), default=0)
    if own.task is not None and (delivery if own.has_fetched else pickup) > begin:
        visits = visits[: delivery if own.has_fetched else pickup]
    found = list[tuple[int, float]]()
    for site, came, left, _ in visits[begin:]:
        found.append((site, float(came)))
        if came < left < S.NEVER:
            found.append((site, float(left)))
    return found


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
            own = floor.vehicles[v]
            moved = own.broke if own.is_stranded else own.moved
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
        if own.task is not None
        and not own.is_stranded
        and now > own.moved + 2.0 * max(0.0, own.finish - own.moved) + slack
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
                floor.check_way(floor.check_assignment(name, event.task)[0], event.pickup)
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
    standing = [v for v in carried if floor.vehicles[v].status == S.BROKEN]
    expect("vehicles with a task", sorted(working + standing), [*carried])
    expect("idle vehicles", floor.n_ready, sum(own.is_ready for own in floor.vehicles))
    rows = [own.row for own in (*tasks.values(), *floor.planned.values()) if own.row >= 0]
    expect("rows in use", np.flatnonzero(floor.clock.used).tolist(), sorted(rows))
    shown = floor.state.pool[0, : floor.state.episode["pool_size"][0]].tolist()
    expect("rows of the pool", shown, [tasks[name].row for name in pool if name in tasks])
    n_delivered = sum(own[1] for own in floor.day.ended)
    if n_delivered and len(floor.day.ended) < MOST_ENDED:
        expect("tasks delivered", n_delivered, floor.day.delivered)
    return found
