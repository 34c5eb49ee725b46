"""The situation on the floor as kernels read it: vehicles, waiting tasks, tasks under way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acerl_np.kernels.state import (
    ARRIVED,
    BREAKDOWN_REPAIR_TICKS,
    BREAKDOWN_TICK,
    BROKEN,
    ENDS_DELIVERY,
    ENDS_PICKUP,
    EPISODE_N_ARRIVED,
    EPISODE_N_FINISHED,
    EPISODE_POOL_SIZE,
    FLEET_SPEED,
    IDLE,
    INSTANCE_N_TASKS,
    INSTANCE_TRUNCATES,
    N_ENDS_FIELDS,
    N_RECORD_FIELDS,
    NEVER,
    RECORD_ARRIVAL,
    RECORD_DEMAND,
    RECORD_EXPIRY,
    RECORD_HANDLING,
    RECORD_LOADED,
    TASK_FINISH,
    TASK_VEHICLE,
    VEHICLE_EDGE_FROM,
    VEHICLE_EVENT_TICK,
    VEHICLE_HALTED_TOWARDS,
    VEHICLE_LEG,
    VEHICLE_SITE,
    VEHICLE_STATUS,
    VEHICLE_TASK,
    WORKING,
    Problem,
    allocate_state,
)
from acerl_np.live.events import TaskArrived
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import measure_loaded

FIRST_ROOM = 64
"""Tasks that there is room for at first; the room doubles when it is full."""

DAY_FIELDS = [RECORD_ARRIVAL, RECORD_EXPIRY, RECORD_HANDLING, RECORD_DEMAND]
"""What a day keeps of a task besides its sites."""

FAR_TICK = np.int64(2**40)
"""In place of a tick that nobody knows."""


@dataclass
class LiveTask:
    """A task that waits or is under way.

    Attributes
    ----------
    event : TaskArrived
    row : int
        Of the tables.
    since : float
        Since when it waits, s.
    vehicle : int
        Position of its vehicle, -1 while it waits.
    """

    event: TaskArrived
    row: int
    since: float
    vehicle: int = -1


class Day:
    """What has been so far, for a lookahead.

    Parameters
    ----------
    start : float
        Time zero of the records, s.

    Attributes
    ----------
    n_tasks : int
        Tasks that have arrived.
    ends : ndarray(int32, (room, N_ENDS_FIELDS))
        Their sites, in the first `n_tasks` rows.
    record : ndarray(float64, (room, N_RECORD_FIELDS))
        Their arrivals since the start, expiries, handling times and demands.
    delay : float
        s by which delivered tasks were late, together.
    delivered : int
    """

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self.n_tasks = 0
        self.ends = np.zeros((FIRST_ROOM, N_ENDS_FIELDS), np.int32)
        self.record = np.zeros((FIRST_ROOM, N_RECORD_FIELDS))
        self.delay = 0.0
        self.delivered = 0

    def add(self, pickup: int, delivery: int, values: Sequence[float]) -> None:
        """Note a task: its sites, and its arrival since the start, expiry, handling time and demand."""
        n = self.n_tasks
        if n == len(self.ends):
            # Room doubles, so that a long day costs no more per task than a short one.
            self.ends = np.concatenate([self.ends, np.zeros_like(self.ends)])
            self.record = np.concatenate([self.record, np.zeros_like(self.record)])
        self.ends[n, ENDS_PICKUP], self.ends[n, ENDS_DELIVERY] = pickup, delivery
        self.record[n, DAY_FIELDS] = values
        self.n_tasks = n + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the day as plain values."""
        n = self.n_tasks
        return {
            "start": self.start,
            "ends": self.ends[:n].tolist(),
            "values": self.record[:n][:, DAY_FIELDS].tolist(),
            "delay": self.delay,
            "delivered": self.delivered,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Day:
        """Return the day that `to_dict` described; of nothing the first moment of one."""
        day = cls(float(data.get("start", 0.0)))
        for (pickup, delivery), values in zip(
            data.get("ends", []), data.get("values", []), strict=True
        ):
            day.add(int(pickup), int(delivery), [float(value) for value in values])
        day.delay = float(data.get("delay", 0.0))
        day.delivered = int(data.get("delivered", 0))
        return day


class Board:
    """Tables of one situation, in row 0 of a State.

    Parameters
    ----------
    layout : Layout
    problem : Problem
        From `build_live_problem` with `FIRST_ROOM` tasks.

    Attributes
    ----------
    problem : Problem
    state : State
    pool : list of LiveTask
        Waiting, in pool order.
    carried : list of LiveTask or None
        Under way, by vehicle.
    tasks : dict of LiveTask
        Both, by name.
    finish : ndarray(float64, (n_vehicles,))
        When each working vehicle should have delivered, s.
    broke : ndarray(float64, (n_vehicles,))
        When each broken vehicle broke down, s.
    """

    def __init__(self, layout: Layout, problem: Problem) -> None:
        self.layout = layout
        self.problem = problem
        self.state = allocate_state(problem, 1)
        self.pool: list[LiveTask] = []
        self.carried: list[LiveTask | None] = [None] * len(layout.vehicles)
        self.tasks: dict[str, LiveTask] = {}
        self.finish = np.zeros(len(layout.vehicles))
        self.broke = np.zeros(len(layout.vehicles))
        self._free = list(range(FIRST_ROOM - 1, -1, -1))
        for v in range(len(layout.vehicles)):
            self.state.vehicle[0, v, VEHICLE_LEG] = ARRIVED
            self.state.vehicle[0, v, VEHICLE_TASK] = -1
            self.state.vehicle[0, v, VEHICLE_HALTED_TOWARDS] = -1
            self.set_vehicle(v, IDLE, int(problem.start_site[0, v]))

    @property
    def room(self) -> int:
        """Rows of the tables."""
        return int(self.problem.record.shape[1])

    def status(self, v: int) -> int:
        """Return IDLE, WORKING or BROKEN."""
        return int(self.state.vehicle[0, v, VEHICLE_STATUS])

    def site(self, v: int) -> int:
        """Return the site that a vehicle visited last."""
        return int(self.state.vehicle[0, v, VEHICLE_SITE])

    def set_vehicle(self, v: int, status: int, site: int) -> None:
        """Put a vehicle at a site."""
        row = self.state.vehicle[0, v]
        row[VEHICLE_STATUS] = status
        row[VEHICLE_SITE] = row[VEHICLE_EDGE_FROM] = site

    def enter(self, event: TaskArrived, since: float) -> LiveTask:
        """Give a task a row of the tables."""
        if not self._free:
            self._make_room()
        row = self._free.pop()
        index = self.layout.site_index
        pickup, delivery = index[event.pickup], index[event.delivery]
        self.problem.ends[0, row, [ENDS_PICKUP, ENDS_DELIVERY]] = pickup, delivery
        values = self.problem.record[0, row]
        values[RECORD_ARRIVAL], values[RECORD_EXPIRY] = event.time, event.expiry
        values[RECORD_HANDLING], values[RECORD_DEMAND] = event.handling_time, event.demand
        values[RECORD_LOADED] = measure_loaded(
            self.layout, self.problem.distance[0, pickup, delivery]
        )
        self.state.task[0, row] = 0
        self.state.task[0, row, TASK_VEHICLE] = -1
        task = LiveTask(event, row, since)
        self.tasks[event.task] = task
        return task

    def leave(self, task: LiveTask) -> None:
        """Take a task off the tables; its row keeps nothing that a future could count."""
        del self.tasks[task.event.task]
        self._free.append(task.row)
        self.problem.record[0, task.row, [RECORD_ARRIVAL, RECORD_EXPIRY]] = 0.0
        self.state.task[0, task.row, TASK_FINISH] = 0

    def wait(self, task: LiveTask) -> None:
        """Put a task at the end of the pool."""
        self.pool.append(task)
        self._write_pool()

    def withdraw(self, task: LiveTask) -> None:
        """Take a waiting task off the pool and the tables."""
        self.pool.remove(task)
        self.leave(task)
        self._write_pool()

    def carry(self, v: int, position: int, now: float) -> LiveTask:
        """Give a waiting task to a vehicle."""
        task = self.pool.pop(position)
        task.vehicle = v
        self.carried[v] = task
        self.finish[v] = now + self._estimate(v, task)
        self.state.vehicle[0, v, VEHICLE_TASK] = task.row
        self.state.task[0, task.row, TASK_VEHICLE] = v
        self.set_vehicle(v, WORKING, self.site(v))
        self._write_pool()
        return task

    def drop(self, v: int) -> LiveTask | None:
        """Take the task off a vehicle; return it."""
        task, self.carried[v] = self.carried[v], None
        self.state.vehicle[0, v, VEHICLE_TASK] = -1
        if task is not None:
            task.vehicle = -1
            self.state.task[0, task.row, TASK_VEHICLE] = -1
        return task

    def restore(self, order: Sequence[str]) -> None:
        """Set the pool to these tasks, in this order."""
        self.pool = [self.tasks[name] for name in order]
        self._write_pool()

    def tell(self, now: float, clock: float, *, relative: bool) -> None:
        """Count times from now, as the kernels' clock stands at 0.

        Parameters
        ----------
        now : float
            s.
        clock : float
            s since the day's start, which planned breakdowns count from.
        relative : bool
            Whether arrivals are counted from now, too. Rules compare sums of them, whose ties rounding
            would break, so they read them as they are.
        """
        for task in self.pool:
            self.state.waiting_since[0, task.row] = task.since - now
        if not relative:
            return
        for task in self.tasks.values():
            self.problem.record[0, task.row, RECORD_ARRIVAL] = task.event.time - now
        room, n_open = self.room, len(self.tasks)
        self.problem.instance[0, INSTANCE_N_TASKS] = room
        self.state.episode[0, EPISODE_N_ARRIVED] = room
        self.state.episode[0, EPISODE_N_FINISHED] = room - n_open
        for v in range(len(self.carried)):
            row = self.state.vehicle[0, v]
            row[VEHICLE_EVENT_TICK] = FAR_TICK
            if row[VEHICLE_STATUS] == WORKING:
                row[VEHICLE_EVENT_TICK] = max(1, math.ceil(self.finish[v] - now))
            self._tell_breakdowns(v, now, clock)

    def _tell_breakdowns(self, v: int, now: float, clock: float) -> None:
        """Write when a broken vehicle broke down, or when another one's next planned breakdown is."""
        entry = self.problem.breakdown[0, v, 0]
        entry[BREAKDOWN_TICK], entry[BREAKDOWN_REPAIR_TICKS] = NEVER, 0
        if self.status(v) == BROKEN:
            entry[BREAKDOWN_TICK] = math.floor(self.broke[v] - now)
            return
        for planned in self.layout.vehicles[v].breakdowns:
            if planned.time > clock:
                tick = math.ceil(planned.time - clock)
                if tick < entry[BREAKDOWN_TICK]:
                    entry[BREAKDOWN_TICK] = tick
                    entry[BREAKDOWN_REPAIR_TICKS] = math.ceil(planned.repair_time)

    def _estimate(self, v: int, task: LiveTask) -> float:
        """Return how long a trip takes, s."""
        distance = self.problem.distance[0]
        pickup, delivery = self.problem.ends[0, task.row, [ENDS_PICKUP, ENDS_DELIVERY]]
        metres = float(distance[self.site(v), pickup] + distance[pickup, delivery])
        if self.problem.instance[0, INSTANCE_TRUNCATES]:
            metres = math.floor(metres + 0.5e-9)
        slowdown = self.layout.routes.find_slowdown(self.layout.vehicles[v].speed)
        slow = 0.0
        if slowdown is not None:
            slow = float(slowdown[self.site(v), pickup] + slowdown[pickup, delivery])
        return (
            metres / float(self.problem.fleet[0, v, FLEET_SPEED]) + slow + task.event.handling_time
        )

    def _write_pool(self) -> None:
        self.state.episode[0, EPISODE_POOL_SIZE] = len(self.pool)
        self.state.pool[0, : len(self.pool)] = [task.row for task in self.pool]

    def _make_room(self) -> None:
        """Double the rows of the tables."""
        n = self.room

        def double(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros_like(array)], axis=1)

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
        self._free = list(range(2 * n - 1, n - 1, -1))
