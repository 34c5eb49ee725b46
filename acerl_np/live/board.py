"""The situation on the floor as kernels read it: vehicles, waiting tasks, tasks under way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count

import numpy as np

from acerl_np.kernels.live import N_PLAN_FIELDS, PLAN_REPAIR_TIME, PLAN_TIME, Clock
from acerl_np.kernels.state import (
    ARRIVED,
    BROKEN,
    ENDS_DELIVERY,
    ENDS_PICKUP,
    EPISODE_POOL_SIZE,
    FLEET_CAPACITY,
    FLEET_SPEED,
    IDLE,
    INSTANCE_HAS_PRIORITIES,
    INSTANCE_TRUNCATES,
    RECORD_ARRIVAL,
    RECORD_DEMAND,
    RECORD_EXPIRY,
    RECORD_HANDLING,
    RECORD_LOADED,
    RECORD_PRIORITY,
    RECORD_SLOT,
    TASK_FINISH,
    TASK_VEHICLE,
    VEHICLE_EDGE_FROM,
    VEHICLE_HALTED_TOWARDS,
    VEHICLE_LEG,
    VEHICLE_SITE,
    VEHICLE_STATUS,
    VEHICLE_TASK,
    WORKING,
    Problem,
    allocate_state,
)
from acerl_np.live.day import FIRST_ROOM as FIRST_ROOM
from acerl_np.live.day import Day as Day
from acerl_np.live.events import TaskArrived
from acerl_np.live.parts import OUT, SERVING, LiveTask, LiveVehicle, Snapshot, find_arrival
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import measure_loaded


class Board:
    """Tables of one situation, in row 0 of a State.

    Parameters
    ----------
    layout : Layout
    build : callable
        Returns empty tables of a layout with `FIRST_ROOM` tasks.
    hides_out : bool
        Whether vehicles that are out of service may carry nothing as kernels see it; else they are broken.
    task_slots : dict of int, optional
        Own slots of the day's tasks, from 1; by default a task's slot is its place in the pool.
    ranks : bool
        Whether priorities count though those of the tasks at hand are alike: others may come in a future.

    Attributes
    ----------
    problem : Problem
    state : State
    clock : Clock
    vehicles : list of LiveVehicle
    tasks : dict of LiveTask
        Waiting or under way, by name.
    pool : list of str
        Waiting, in pool order.
    planned : dict of LiveTask
        Held back until their earliest starts.
    n_ready : int
        Idle vehicles in service.
    """

    def __init__(
        self,
        layout: Layout,
        build: Callable[[Layout], Problem],
        *,
        hides_out: bool = False,
        ranks: bool = False,
        task_slots: Mapping[str, int] | None = None,
    ) -> None:
        self._build = build
        self._task_slots = task_slots
        self._hides_out = hides_out
        self._ranks = ranks
        self.planned: dict[str, LiveTask] = {}
        self._lay_out(layout)
        for v, vehicle in enumerate(layout.vehicles):
            site = layout.site_index[vehicle.start]
            self.put(v, LiveVehicle(IDLE, SERVING, site, site))

    def _lay_out(self, layout: Layout) -> None:
        """Make empty tables."""
        n = len(layout.vehicles)
        self.layout = layout
        self.problem = self._build(layout)
        self.state = allocate_state(self.problem, 1)
        self.state.vehicle[0, :, VEHICLE_LEG] = ARRIVED
        self.state.vehicle[0, :, VEHICLE_TASK] = -1
        self.state.vehicle[0, :, VEHICLE_HALTED_TOWARDS] = -1
        most = max([1, *(len(vehicle.breakdowns) for vehicle in layout.vehicles)])
        planned = np.full((n, most, N_PLAN_FIELDS), np.inf)
        for v, vehicle in enumerate(layout.vehicles):
            for k, item in enumerate(vehicle.breakdowns):
                planned[v, k, PLAN_TIME] = item.time
                planned[v, k, PLAN_REPAIR_TIME] = item.repair_time
        self.clock = Clock(
            since=np.zeros(FIRST_ROOM),
            arrival=np.zeros(FIRST_ROOM),
            used=np.zeros(FIRST_ROOM, np.bool_),
            finish=np.zeros(n),
            broke=np.zeros(n),
            planned=planned,
        )
        self.vehicles: list[LiveVehicle] = [LiveVehicle(BROKEN, SERVING, 0, 0)] * n
        self.tasks: dict[str, LiveTask] = {}
        self.pool: list[str] = []
        self.n_ready = 0
        self._n_ranked = 0
        self._free = list(range(FIRST_ROOM - 1, -1, -1))

    @property
    def room(self) -> int:
        """Rows of the tables."""
        return int(self.problem.record.shape[1])

    def status(self, v: int) -> int:
        """Return IDLE, WORKING or BROKEN."""
        return self.vehicles[v].status

    def site(self, v: int) -> int:
        """Return the site that a vehicle visited last."""
        return self.vehicles[v].site

    def set_vehicle(self, v: int, status: int, site: int) -> None:
        """Put a vehicle at a site."""
        self.put(v, self.vehicles[v]._replace(status=status, site=site))

    def put(self, v: int, vehicle: LiveVehicle) -> None:
        """Write all of a vehicle but its task."""
        before = self.vehicles[v]
        self.vehicles[v] = vehicle
        is_out = vehicle.service == OUT and vehicle.status == IDLE
        row = self.state.vehicle[0, v]
        row[VEHICLE_STATUS] = BROKEN if is_out else vehicle.status
        row[VEHICLE_SITE] = row[VEHICLE_EDGE_FROM] = vehicle.site
        self.clock.finish[v], self.clock.broke[v] = vehicle.finish, vehicle.broke
        self.n_ready += vehicle.is_ready - before.is_ready
        if self._hides_out and vehicle.service != before.service:
            is_hidden = vehicle.service != SERVING
            capacity = -1.0 if is_hidden else self.layout.vehicles[v].capacity
            self.problem.fleet[0, v, FLEET_CAPACITY] = capacity

    def enter(self, task: LiveTask, since: float) -> LiveTask:
        """Give a task a row of the tables."""
        if not self._free:
            self._make_room()
        slot = self._find_slot(task.event.task)
        task = task._replace(row=self._free.pop(), since=since, slot=slot)
        self._write(task)
        return task

    def _find_slot(self, name: str) -> int:
        """Return a task's slot; that of one nobody has named is the lowest that no other has."""
        if self._task_slots is None:
            return 0
        taken = {*self._task_slots.values(), *(task.slot for task in self.tasks.values())}
        return self._task_slots.get(name) or next(k for k in count(1) if k not in taken)

    def _write(self, task: LiveTask) -> None:
        """Write a task into its row."""
        event, row = task.event, task.row
        index = self.layout.site_index
        pickup, delivery = index[event.pickup], index[event.delivery]
        ends = self.problem.ends[0, row]
        ends[ENDS_PICKUP], ends[ENDS_DELIVERY] = pickup, delivery
        arrival = find_arrival(event)
        values = self.problem.record[0, row]
        values[RECORD_ARRIVAL] = arrival
        values[RECORD_EXPIRY] = event.expiry - (arrival - event.time)
        values[RECORD_HANDLING], values[RECORD_DEMAND] = event.handling_time, event.demand
        values[RECORD_PRIORITY], values[RECORD_SLOT] = event.priority, task.slot
        values[RECORD_LOADED] = measure_loaded(
            self.layout, self.problem.distance[0, pickup, delivery]
        )
        self.state.task[0, row] = 0
        self.state.task[0, row, TASK_VEHICLE] = task.vehicle
        self.clock.since[row], self.clock.arrival[row] = task.since, arrival
        self.clock.used[row] = True
        self._count_ranked(event, 1)
        self.tasks[event.task] = task

    def _count_ranked(self, event: TaskArrived, n: int) -> None:
        """Count the tasks whose priority is not that of most."""
        if event.priority != 0.0:
            self._n_ranked += n
        self.problem.instance[0, INSTANCE_HAS_PRIORITIES] = self._n_ranked > 0 or self._ranks

    def leave(self, task: LiveTask) -> None:
        """Take a task off the tables; its row keeps nothing that a future could count."""
        del self.tasks[task.event.task]
        self._free.append(task.row)
        self.clock.used[task.row] = False
        self._count_ranked(task.event, -1)
        values = self.problem.record[0, task.row]
        values[RECORD_ARRIVAL] = values[RECORD_EXPIRY] = 0.0
        self.state.task[0, task.row, TASK_FINISH] = 0

    def change(self, name: str, event: TaskArrived) -> None:
        """Replace the event of a waiting task."""
        task = self.tasks[name]
        self._count_ranked(task.event, -1)
        self._write(task.change(event))

    def wait(self, task: LiveTask) -> None:
        """Put a task at the end of the pool."""
        self.state.pool[0, len(self.pool)] = task.row
        self.pool.append(task.event.task)
        self.state.episode[0, EPISODE_POOL_SIZE] = len(self.pool)

    def withdraw(self, task: LiveTask) -> None:
        """Take a waiting task off the pool and the tables."""
        self._take(self.pool.index(task.event.task))
        self.leave(task)

    def _take(self, position: int) -> str:
        """Take a name out of the pool."""
        name = self.pool.pop(position)
        n = len(self.pool)
        rows = self.state.pool[0]
        rows[position:n] = rows[position + 1 : n + 1].copy()
        self.state.episode[0, EPISODE_POOL_SIZE] = n
        return name

    def carry(self, v: int, position: int, now: float) -> LiveTask:
        """Give a waiting task to a vehicle."""
        name = self._take(position)
        task = self.tasks[name] = self.tasks[name]._replace(vehicle=v)
        vehicle = self.vehicles[v]
        self.put(
            v,
            vehicle._replace(
                status=WORKING,
                origin=vehicle.site,
                has_fetched=vehicle.site == self.layout.site_index[task.event.pickup],
                task=name,
                finish=now + self._estimate(v, task),
            ),
        )
        self.state.vehicle[0, v, VEHICLE_TASK] = task.row
        self.state.task[0, task.row, TASK_VEHICLE] = v
        return task

    def drop(self, v: int, since: float | None = None) -> LiveTask | None:
        """Take the task off a vehicle; return it, as waiting since then if that is given."""
        name = self.vehicles[v].task
        if name is None:
            return None
        self.vehicles[v] = self.vehicles[v]._replace(task=None)
        self.state.vehicle[0, v, VEHICLE_TASK] = -1
        task = self.tasks[name]
        task = task._replace(vehicle=-1, since=task.since if since is None else since)
        self.tasks[name] = task
        self.state.task[0, task.row, TASK_VEHICLE] = -1
        self.clock.since[task.row] = task.since
        return task

    def find_next_site(self, task: LiveTask) -> int:
        """Return the next site on the way of a task's vehicle to its pickup."""
        vehicle = self.vehicles[task.vehicle]
        pickup = self.layout.site_index[task.event.pickup]
        route = self.layout.routes.explicit.get((vehicle.origin, pickup), ())
        if vehicle.site in route[:-1]:
            return route[route.index(vehicle.site) + 1]
        return int(self.layout.routes.next_site[vehicle.site, pickup])

    def snapshot(self) -> Snapshot:
        """Return the situation, to come back to it with `restore`."""
        return Snapshot(
            self.layout,
            self.vehicles.copy(),
            self.tasks.copy(),
            self.pool.copy(),
            self.planned.copy(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a situation."""
        if snapshot.layout is not self.layout:
            self._lay_out(snapshot.layout)
        for task in list(self.tasks.values()):
            self.leave(task)
        while snapshot.tasks and max(task.row for task in snapshot.tasks.values()) >= self.room:
            self._make_room()
        for task in snapshot.tasks.values():
            self._write(task)
        self._free = [row for row in range(self.room - 1, -1, -1) if not self.clock.used[row]]
        self.pool = []
        for name in snapshot.pool:
            self.wait(self.tasks[name])
        self.state.episode[0, EPISODE_POOL_SIZE] = len(self.pool)
        self.planned = snapshot.planned.copy()
        for v, vehicle in enumerate(snapshot.vehicles):
            self.put(v, vehicle)
            row = -1 if vehicle.task is None else self.tasks[vehicle.task].row
            self.state.vehicle[0, v, VEHICLE_TASK] = row

    def _estimate(self, v: int, task: LiveTask) -> float:
        """Return how long a trip takes, s."""
        distance = self.problem.distance[0]
        row = self.problem.ends[0, task.row]
        pickup, delivery = int(row[ENDS_PICKUP]), int(row[ENDS_DELIVERY])
        site = self.site(v)
        metres = float(distance[site, pickup] + distance[pickup, delivery])
        if self.problem.instance[0, INSTANCE_TRUNCATES]:
            metres = math.floor(metres + 0.5e-9)
        slowdown = self.layout.routes.find_slowdown(self.layout.vehicles[v].speed)
        slow = 0.0
        if slowdown is not None:
            slow = float(slowdown[site, pickup] + slowdown[pickup, delivery])
        return (
            metres / float(self.problem.fleet[0, v, FLEET_SPEED]) + slow + task.event.handling_time
        )

    def _make_room(self) -> None:
        """Double the rows of the tables."""
        n = self.room

        def double(array: np.ndarray, axis: int = 1) -> np.ndarray:
            return np.concatenate([array, np.zeros_like(array)], axis=axis)

        self.problem = self.problem._replace(
            ends=double(self.problem.ends),
            record=double(self.problem.record),
            arrival_tick=double(self.problem.arrival_tick),
        )
        self.state = self.state._replace(
            pool=double(self.state.pool),
            waiting_since=double(self.state.waiting_since),
            task=double(self.state.task),
        )
        self.clock = self.clock._replace(
            since=double(self.clock.since, 0),
            arrival=double(self.clock.arrival, 0),
            used=double(self.clock.used, 0),
        )
        self._free = list(range(2 * n - 1, n - 1, -1)) + self._free
