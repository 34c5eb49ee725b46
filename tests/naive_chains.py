"""The slow, obvious simulator with chains of tasks, machines between them, and announced tasks.

Without the record's columns `after`, `processing` and `announced` it is `naive_vehicles.NaiveEpisode`.
One tick: 1. breakdowns and repairs, 2. trips that end: what is delivered joins its machine's queue,
3. charging, 3b. machines end and begin, 4. tasks that become known join the pool, 5. decisions, 6. errands.

Machines (3b) run before charging here; neither sees the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import naive
import naive_vehicles
from naive import Leg, round9


@dataclass
class Task(naive.Task):
    """A task; `arrival` is the earliest moment at which it is ready, and when it is ready once known.

    Only once its predecessor's processing begins is it known when it is ready.
    """

    after: str | None = None
    processing: float = 0.0
    announced: float = 0.0  # inf: when its predecessor's processing begins
    known: float = math.inf  # tick at which it joins the pool, once it is clear
    has_joined: bool = False
    loaded: int = -1  # of the service that delivered it
    processed: int = (
        -1
    )  # when its processing ends, known when it begins; the delivery if it needs none


@dataclass
class Vehicle(naive_vehicles.Vehicle):
    at_pickup: int = -1  # tick at which it is there; it waits there until `loaded_at`

    def pauses(self, tick: int) -> bool:
        """Whether it waits at the pickup."""
        return self.task is not None and self.at_pickup <= tick < self.loaded_at

    def follow(self, legs: list[Leg]) -> None:
        """Leave the way that it was on for this one."""
        self.legs, self.elapsed = legs, 0
        self._enter_next_leg()

    def rate(self, tick: int) -> int:
        if self.battery is not None and self.pauses(tick):
            return self.battery.idle
        return super().rate(tick)


@dataclass
class Machine:
    servers: int
    queue: list[Task] = field(default_factory=list)
    in_service: list[Task] = field(default_factory=list)


class NaiveEpisode(naive_vehicles.NaiveEpisode):
    """One episode; after construction and after each decision it stands at a decision or at its end.

    layout : the parsed layout JSON; key `machines`
    tasks : as for `naive.NaiveEpisode`, in the order of the record's file; also `after`, `processing`,
        `announced` (seconds or "start"); `expiry_time` None: never due; `arrival_time` of a chained task
        None: that of its root
    options : as for `naive_vehicles.NaiveEpisode`

    machine_log : (tick, site, "begin" or "end", task), by tick, then by machine as in the layout
    """

    def __init__(self, layout: dict[str, Any], tasks: list[dict[str, Any]], **options: Any) -> None:
        self._machines = {
            item["site"]: Machine(int(item.get("servers", 1)))
            for item in layout.get("machines", [])
        }
        self.machine_log: list[tuple[int, str, str, str]] = []
        self._n_passed = 0  # rows
        super().__init__(layout, tasks, **options)

    def _read_vehicles(self, layout: dict[str, Any]) -> list[naive.Vehicle]:
        return [Vehicle(**vars(vehicle)) for vehicle in super()._read_vehicles(layout)]

    def _read_tasks(self, entries: list[dict[str, Any]]) -> list[naive.Task]:
        rows = {entry["task"]: entry for entry in entries}
        roots = {name: find_root(rows, name) for name in rows}
        tasks = {
            name: read_task({**entry, "arrival_time": find_arrival(entry, rows[roots[name]])})
            for name, entry in rows.items()
        }
        for task in tasks.values():
            if task.after is None:
                at_start = math.isinf(task.announced)
                task.known = max(0, math.ceil(task.arrival - (0 if at_start else task.announced)))
            if task.processing > 0 and task.delivery not in self._machines:
                raise ValueError(f"no machine at {task.delivery} for task {task.name}")
        rows = {name: row for row, name in enumerate(tasks)}
        ordered = sorted(
            tasks.values(),
            key=lambda task: (
                tasks[roots[task.name]].arrival,
                rows[roots[task.name]],
                count_before(tasks, task),
            ),
        )
        # A row is passed when its own root or that of a later row is known.
        known = [tasks[roots[task.name]].known for task in ordered]
        self._passing = [min(known[row:]) for row in range(len(known))]
        return list(ordered)

    # What a policy sees

    @property
    def times(self) -> list[tuple[str, float, int, int, int]]:
        """Per task as in the record: task, when it was ready, loaded, delivered and processed."""
        return [
            (task.name, task.arrival, task.loaded, task.finish, task.processed)
            for task in self._tasks
        ]

    def ready_in(self, task: Task) -> float:
        """Seconds until a task of the pool is ready."""
        return max(0.0, task.arrival - self.time)

    def machine_busy(self, task: Task) -> float:
        """Seconds until the machine at a task's delivery has a free server for one that joins now."""
        if task.delivery not in self._machines:
            return 0.0
        machine = self._machines[task.delivery]
        left = sum(other.processed - self.time for other in machine.in_service)
        return (left + sum(map(count_ticks, machine.queue))) / machine.servers

    def _key(
        self, rule: str, vehicle: naive.Vehicle, task: naive.Task, visible: list[naive.Task]
    ) -> float:
        if rule in ("NVF", "STD"):
            site, _, left = self._stand(vehicle)
            metres = max(
                left + self._distance(site, task.pickup), self.ready_in(task) * vehicle.speed
            )
            if rule == "STD":
                metres += self._distance(task.pickup, task.delivery)
            return self._compared(metres)
        if rule == "LWT":
            return -round9(max(0.0, self.time - task.waiting_since))
        return super()._key(rule, vehicle, task, visible)

    def _stand(self, vehicle: Vehicle) -> tuple[str, int, float]:
        if vehicle.pauses(self.time):
            return vehicle.task.pickup, self.time, 0.0
        return super()._stand(vehicle)

    # A vehicle that waits at the pickup

    def _pause(self, task: naive.Task, tick: int) -> int:
        return max(0, math.ceil(task.arrival) - tick)

    def _set_out(self, vehicle: Vehicle, sites: list[str], task: naive.Task | None = None) -> int:
        finish = super()._set_out(vehicle, sites, task)
        if task is not None:
            vehicle.at_pickup = vehicle.loaded_at
            pause = self._pause(task, vehicle.at_pickup)
            vehicle.loaded_at += pause
            vehicle.finish = finish = finish + pause
            self._begin_pause(vehicle)
        return finish

    def _begin_pause(self, vehicle: Vehicle) -> None:
        """If it begins now: the vehicle is at the pickup, and leaves it when the task is loaded.

        On a way each edge is rounded up to whole ticks, but the way only once: it may be before the
        pickup yet.
        """
        if self.time == vehicle.at_pickup and vehicle.pauses(self.time):
            pickup, delivery = vehicle.task.pickup, vehicle.task.delivery
            pause = Leg(pickup, pickup, 0.0, 0.0, vehicle.loaded_at - self.time, end=pickup)
            onwards = self._legs(vehicle, self._floor.route(pickup, delivery))
            vehicle.follow([pause, *onwards])

    def _break_down(self, vehicle: naive.Vehicle, repair_ticks: int) -> None:
        task = vehicle.task
        super()._break_down(vehicle, repair_ticks)
        if task is not None:
            task.waiting_since = max(task.arrival, task.waiting_since)

    # Machines

    def _move_vehicles(self) -> None:
        super()._move_vehicles()
        for vehicle in self._vehicles:
            self._begin_pause(vehicle)
        self._run_machines()

    def _deliver(self, vehicle: Vehicle) -> None:
        task = vehicle.task
        super()._deliver(vehicle)
        if task is None:
            return
        task.loaded = vehicle.loaded_at
        if task.processing > 0:
            task.finished = False
            self._machines[task.delivery].queue.append(task)
        else:
            task.processed = self.time
            self._plan_successors(task)

    def _run_machines(self) -> None:
        for site, machine in self._machines.items():
            for task in [task for task in machine.in_service if task.processed == self.time]:
                task.finished = True
                machine.in_service = [other for other in machine.in_service if other is not task]
                self.machine_log.append((self.time, site, "end", task.name))
                self._happened = True
            while machine.queue and len(machine.in_service) < machine.servers:
                task = machine.queue.pop(0)
                task.processed = self.time + count_ticks(task)
                machine.in_service.append(task)
                self.machine_log.append((self.time, site, "begin", task.name))
                self._plan_successors(task)

    def _plan_successors(self, task: Task) -> None:
        """Its processing begins: now it is clear when its successors are ready, and when known."""
        for other in self._tasks:
            if other.after == task.name:
                other.arrival = other.waiting_since = max(other.arrival, float(task.processed))
                other.known = self.time
                if not math.isinf(other.announced):
                    other.known = max(self.time, math.ceil(other.arrival - other.announced))

    # Tasks become known

    def _arrive(self) -> None:
        """First those of rows passed before, then rows are passed; no row before all above it."""
        for task in self._tasks[: self._n_passed]:
            self._join_if_known(task)
        while self._n_passed < len(self._tasks) and self._passing[self._n_passed] <= self.time:
            self._join_if_known(self._tasks[self._n_passed])
            self._n_passed += 1
        # Those that will join without a decision, for which a policy may wait.
        delivered = {task.name for task in self._tasks if task.loaded >= 0}
        self._to_arrive = [
            task
            for task in self._tasks
            if not task.has_joined and (task.after is None or task.after in delivered)
        ]

    def _join_if_known(self, task: Task) -> None:
        if not task.has_joined and task.known <= self.time:
            task.has_joined = True
            self._pool.append(task)

    def _end(self) -> None:
        super()._end()
        self.makespan = float(max(task.processed for task in self._tasks))


def count_ticks(task: Task) -> int:
    """What its processing takes."""
    return max(1, math.ceil(round9(task.processing)))


def count_before(tasks: dict[str, Task], task: Task) -> int:
    return 0 if task.after is None else 1 + count_before(tasks, tasks[task.after])


def find_root(rows: dict[str, dict[str, Any]], name: str) -> str:
    while rows[name].get("after"):
        name = rows[name]["after"]
    return name


def find_arrival(entry: dict[str, Any], root: dict[str, Any]) -> float:
    arrival = entry["arrival_time"]
    return float(root["arrival_time"] if arrival is None else arrival)


def read_task(entry: dict[str, Any]) -> Task:
    expiry = entry["expiry_time"]
    announced = entry.get("announced") or 0
    return Task(
        **vars(naive.read_task({**entry, "expiry_time": math.inf if expiry is None else expiry})),
        after=entry.get("after") or None,
        processing=float(entry.get("processing") or 0),
        announced=math.inf if announced == "start" else float(announced),
    )
