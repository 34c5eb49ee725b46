"""An episode on the floor, second by second: vehicles drive, break down and are repaired, tasks arrive.

Every second 0, 1, 2, ... is really stepped, and every vehicle is really moved along its route. So nothing
depends on knowing in advance when the next event will be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from acerl_np.plain.floor import Floor, Task, read_task, round9

RULES = ("FCFS", "EDD", "NVF", "STD")
"""The dispatching rules D: first come first served, earliest due date, nearest vehicle, shortest travel."""

IDLE, WORKING, BROKEN = 0, 1, 2
"""The three possible states of a vehicle (Section II-A)."""


@dataclass
class Standing:
    """A place on a way: `offset` metres past `last` on the path to `next`, 0 at the site itself.

    At the end of the way there is no next site; it is `last` then.
    """

    last: str
    next: str
    offset: float


@dataclass
class Leg:
    """One path, or the rest of one, as a vehicle travels it.

    The vehicle is on the path from `last` to `next`, first `offset` metres past `last`, each second `step`
    metres further, less than 0 when it has turned back. After `ticks` seconds it is at `end`.
    """

    last: str
    next: str
    offset: float
    step: float
    ticks: int
    end: str


@dataclass(eq=False)
class Vehicle:
    """An AGV v.

    Attributes
    ----------
    speed, capacity : float
        m/s, and the heaviest demand that it carries, 0 for any.
    breakdowns : list of tuple of int
        Second of each breakdown, and v.rp, the seconds that its repair takes.
    site : str
        The last visited site, which rules and state see.
    status : int
    repaired_at : int
    standing : Standing, optional
        Where it broke down while working, until it sets out again.
    task : Task, optional
        Of the trip that it is on, as are all the following.
    destination : str
    finish : int
    legs : list of Leg
        What is left of the way, the present leg first.
    elapsed : int
        Seconds since the present leg began.
    site_is_frozen : bool
        Whether `site` stays as it is: on the first trip after a breakdown while working.
    """

    speed: float
    capacity: float
    breakdowns: list[tuple[int, int]]
    site: str
    status: int = IDLE
    repaired_at: int = -1
    standing: Standing | None = None
    task: Task | None = None
    destination: str = ""
    finish: int = -1
    legs: list[Leg] = field(default_factory=list)
    elapsed: int = 0
    site_is_frozen: bool = False

    def can_carry(self, task: Task) -> bool:
        """Return whether a task is light enough."""
        return self.capacity == 0 or task.demand <= self.capacity

    def begin_trip(self, task: Task | None, destination: str, legs: list[Leg], finish: int) -> None:
        """Set out."""
        self.status = WORKING
        self.task, self.destination, self.finish = task, destination, finish
        self.legs, self.elapsed = legs, 0
        self.site_is_frozen = self.standing is not None
        self.standing = None
        self.enter_next_leg()

    def move(self) -> None:
        """Drive for a second; at the end of its way the vehicle waits there for the finish."""
        self.elapsed += 1
        self.enter_next_leg()

    def enter_next_leg(self) -> None:
        """Begin the next leg if the present one is done."""
        while self.legs and self.elapsed >= self.legs[0].ticks:  # a path of 0 m takes 0 s
            self.legs.pop(0)
            self.elapsed = 0
        if not self.site_is_frozen:
            self.site = self.legs[0].last if self.legs else self.destination

    def place(self) -> Standing:
        """Return where a working vehicle truly is."""
        if not self.legs:
            return Standing(self.destination, self.destination, 0.0)
        leg = self.legs[0]
        return Standing(leg.last, leg.next, leg.offset + self.elapsed * leg.step)

    def end_trip(self, site: str, standing: Standing | None) -> Task | None:
        """Leave the trip, standing where told; return its task."""
        task = self.task
        self.site, self.standing = site, standing
        self.task, self.finish = None, -1
        self.legs, self.elapsed = [], 0
        self.site_is_frozen = False
        return task


class Episode:
    """One episode; after construction and after each step it stands at a decision or at its end.

    Parameters
    ----------
    floor : Floor
    record : list of dict
        The tasks as rows of their file, in any order.
    slots : dict, optional
        Slot of each task in the state, from 0. By default it is the task's place in the pool, as in the
        public simulator. Slots of their own are an inference about the paper (docs/known-differences.md).

    Attributes
    ----------
    time : int
        The present second.
    vehicles : list of Vehicle
    tasks : list of Task
        All of the record, by arrival.
    task_pool : list of Task
        Those that wait.
    done : bool
    makespan, tardiness : float
        F_m and F_t, nan until the end.
    """

    rules: tuple[str, ...] = RULES

    def __init__(
        self, floor: Floor, record: list[dict[str, Any]], *, slots: dict[str, int] | None = None
    ) -> None:
        self.floor = floor
        self.slots = slots
        self.scaling: dict[str, Any] = floor.layout.get("scaling", {})
        self.task_slots = int(floor.layout["task_slots"])
        self.time = 0
        self.done = False
        self.makespan = self.tardiness = math.nan
        self.vehicles = self.read_vehicles()
        self.tasks = self.read_tasks(record)
        self.task_pool: list[Task] = []
        self.to_arrive = list(self.tasks)
        self.process_tick()
        self.advance()

    def read_vehicles(self) -> list[Vehicle]:
        """Return the fleet V."""
        return [read_vehicle(entry) for entry in self.floor.layout["vehicles"]]

    def read_tasks(self, record: list[dict[str, Any]]) -> list[Task]:
        """Return the tasks of a record by arrival, of equals those that stand first."""
        return sorted((read_task(row) for row in record), key=lambda task: task.arrival)

    # The action space A = D x V_t: a vehicle that is available, and the rule that picks its task

    def step(self, action: int) -> tuple[float, float]:
        """Act, then go on to the next decision or the end.

        Parameters
        ----------
        action : int
            Vehicle times number of rules plus rule.

        Returns
        -------
        reward, cost : float
            -F_m and F_t at the end, zero before (Section II-A).
        """
        v, rule = divmod(action, len(self.rules))
        vehicle = self.vehicles[v]
        self.begin_service(vehicle, self.pick(vehicle, self.rules[rule]))
        self.advance()
        return (-self.makespan, self.tardiness) if self.done else (0.0, 0.0)

    def mask(self) -> list[bool]:
        """Return which actions are legal (Eq. 5)."""
        return [self.is_available(vehicle) for vehicle in self.vehicles for _ in self.rules]

    def is_available(self, vehicle: Vehicle) -> bool:
        """Return whether a vehicle can serve a task now: the instantaneous constraint."""
        return not self.done and vehicle.status == IDLE and bool(self.offered(vehicle))

    def offered(self, vehicle: Vehicle) -> list[Task]:
        """Return the waiting tasks that a vehicle may take."""
        return [task for task in self.task_pool if vehicle.can_carry(task)]

    def pick(self, vehicle: Vehicle, rule: str) -> Task:
        """Return the task that a rule picks for a vehicle: that of the smallest key, the first of equals."""
        return min(self.offered(vehicle), key=lambda task: self.key(rule, vehicle, task))

    def key(self, rule: str, vehicle: Vehicle, task: Task) -> float:
        """Return what a dispatching rule compares."""
        if rule == "FCFS":
            return task.arrival
        if rule == "EDD":
            return task.due
        if rule == "NVF":
            return self.floor.compared(self.distance(vehicle.site, task.pickup))
        assert rule == "STD", rule
        return self.floor.compared(self.travel_distance(vehicle.site, task))

    def distance(self, a: str, b: str) -> float:
        """Return the metres from one site to another."""
        return self.floor.distances[a, b]

    def travel_distance(self, site: str, task: Task) -> float:
        """Return the metres from a site to a task's pickup and on to its delivery."""
        return self.distance(site, task.pickup) + self.distance(task.pickup, task.delivery)

    # The state space S: waiting tasks and vehicles

    def state(self) -> list[float]:
        """Return s_t: four features of each task slot; of each vehicle three, and one of each task slot.

        A feature is (value - mid) / half by the layout's scaling, and 0 where a slot is empty.
        """

        def scaled(value: float, name: str) -> float:
            mid, half = self.scaling[name]
            return (value - float(mid)) / float(half)

        seen = self.fill_slots()
        features: list[float] = []
        for task in seen:
            if task is None:
                features += [0.0] * 4
                continue
            loaded = self.floor.compared(self.distance(task.pickup, task.delivery))
            features += [
                scaled(loaded, "distance"),
                scaled(self.time - task.waiting_since, "waiting"),
                scaled(task.expiry, "expiry"),
                scaled(task.demand, "demand"),
            ]
        for vehicle in self.vehicles:
            features += [
                vehicle.speed / self.scaling["speed"],
                vehicle.status / BROKEN,
                vehicle.capacity / self.scaling["capacity"],
            ]
            for task in seen:
                feature = 0.0
                if task is not None:
                    total = self.floor.compared(self.travel_distance(vehicle.site, task))
                    feature = scaled(total, "total_distance")
                features.append(feature)
        return features

    def fill_slots(self) -> list[Task | None]:
        """Return the waiting task in each slot, None where there is none."""
        if self.slots is None:
            return [*self.task_pool, *[None] * self.task_slots][: self.task_slots]
        of_slot = {self.slots[task.name]: task for task in self.task_pool}
        return [of_slot.get(slot) for slot in range(self.task_slots)]

    # An assignment

    def begin_service(self, vehicle: Vehicle, task: Task) -> None:
        """Send a vehicle to the pickup of a task and on to its delivery."""
        if vehicle.standing is None:
            metres = self.floor.compared(self.travel_distance(vehicle.site, task))
            legs = self.legs(vehicle, self.floor.route(vehicle.site, task.pickup))
        else:
            metres, legs = self.way_onwards(vehicle, vehicle.standing, task.pickup)
            metres += self.distance(task.pickup, task.delivery)
        legs += self.legs(vehicle, self.floor.route(task.pickup, task.delivery))
        duration = round9(self.driving_time(vehicle, metres, legs) + task.handling)
        task.vehicle, task.start = self.vehicles.index(vehicle), self.time
        task.finish = self.time + max(1, math.ceil(duration))
        self.task_pool.remove(task)
        vehicle.begin_trip(task, task.delivery, legs, task.finish)

    def driving_time(self, vehicle: Vehicle, metres: float, legs: list[Leg]) -> float:
        """Return the seconds that a way takes."""
        return metres / vehicle.speed

    def way_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> tuple[float, list[Leg]]:
        """Return the metres and legs from where a vehicle broke down to a site, the shorter way of two."""
        return min(self.ways_onwards(vehicle, standing, site), key=lambda way: way[0])

    def ways_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> list[tuple[float, list[Leg]]]:
        """Return the possible ways: back if the path leads back, and forward."""
        a, b, offset = standing.last, standing.next, standing.offset
        if offset == 0.0:  # at the site: it may start from there, whatever the paths
            return [(round9(self.distance(a, site)), self.legs(vehicle, self.floor.route(a, site)))]
        rest = self.floor.arcs[a, b] - offset
        ways = []
        if (b, a) in self.floor.arcs:
            leg = Leg(a, b, offset, -vehicle.speed, ticks(offset, vehicle.speed), end=a)
            ways.append((offset, leg))
        ways.append((rest, Leg(a, b, offset, vehicle.speed, ticks(rest, vehicle.speed), end=b)))
        return [
            (
                round9(metres + self.distance(leg.end, site)),
                [leg, *self.legs(vehicle, self.floor.route(leg.end, site))],
            )
            for metres, leg in ways
        ]

    def legs(self, vehicle: Vehicle, sites: list[str]) -> list[Leg]:
        """Return the legs of a route."""
        speed, arcs = vehicle.speed, self.floor.arcs
        return [Leg(a, b, 0.0, speed, ticks(arcs[a, b], speed), end=b) for a, b in pairwise(sites)]

    # The clock

    def advance(self) -> None:
        """Step seconds until a decision is due or the episode has ended."""
        while not self.done and not any(map(self.is_available, self.vehicles)):
            self.time += 1
            self.process_tick()

    def process_tick(self) -> None:
        """Let happen what happens in this second, in this order."""
        # 1. Breakdowns and repairs. No vehicle has moved yet in this second, so one that breaks is where it
        # was a second before.
        for vehicle in self.vehicles:
            if vehicle.status == BROKEN:
                # a breakdown of this very second is skipped, also when the repair ends now
                if self.time == vehicle.repaired_at:
                    self.repair(vehicle)
            else:
                repair_time = self.find_breakdown(vehicle)
                if repair_time is not None:
                    self.break_down(vehicle, repair_time)
        # 2. Movement and deliveries.
        self.move_vehicles()
        if all(task.finished for task in self.tasks):
            self.end()
            return
        # 3. Arrivals: a new task joins the end of the pool.
        self.let_tasks_arrive()

    def find_breakdown(self, vehicle: Vehicle) -> int | None:
        """Return v.rp of a breakdown in this second, of several the first; None if there is none."""
        return next((repair for second, repair in vehicle.breakdowns if second == self.time), None)

    def break_down(self, vehicle: Vehicle, repair_time: int) -> None:
        """Break a vehicle where it is; it releases its task."""
        if vehicle.status == WORKING:
            standing = vehicle.place()
            task = vehicle.end_trip(standing.last, standing)
            if task is not None:
                task.vehicle = task.start = task.finish = -1
                task.waiting_since = self.time - 1
                self.task_pool.append(task)
        vehicle.status = BROKEN
        vehicle.repaired_at = self.time + repair_time + 1  # this second repairs nothing

    def repair(self, vehicle: Vehicle) -> None:
        """End a repair."""
        vehicle.status = IDLE

    def move_vehicles(self) -> None:
        """Move those that work; who finishes in this second delivers."""
        for vehicle in self.vehicles:
            if vehicle.status == WORKING:
                vehicle.move()
                if self.time == vehicle.finish:
                    self.deliver(vehicle)

    def deliver(self, vehicle: Vehicle) -> None:
        """End a trip at its delivery site, wherever the movement has brought the vehicle.

        Each path was rounded up to whole seconds, but the duration of the service only once.
        """
        task = vehicle.end_trip(vehicle.destination, None)
        assert task is not None
        task.finished = True
        vehicle.status = IDLE

    def let_tasks_arrive(self) -> None:
        """Let the tasks of this second join the pool."""
        while self.to_arrive and self.to_arrive[0].arrival <= self.time:
            self.task_pool.append(self.to_arrive.pop(0))

    def end(self) -> None:
        """Measure the episode."""
        self.done = True
        self.makespan = float(max(task.finish for task in self.tasks))  # Eq. 1
        late = [max(task.finish - task.due, 0.0) for task in self.tasks]
        self.tardiness = sum(late) / len(late)  # Eq. 2


def ticks(metres: float, speed: float) -> int:
    """Return the whole seconds that a path takes."""
    return math.ceil(round9(metres / speed))


def read_vehicle(entry: dict[str, Any]) -> Vehicle:
    """Return a vehicle of the layout; what is not whole in time falls on the next second."""
    breakdowns = sorted(entry.get("breakdowns", []), key=lambda breakdown: breakdown["time"])
    return Vehicle(
        speed=float(entry["speed"]),
        capacity=float(entry.get("capacity", 0)),
        breakdowns=[
            (math.ceil(item["time"]), math.ceil(item["repair_time"])) for item in breakdowns
        ],
        site=entry["start"],
    )
