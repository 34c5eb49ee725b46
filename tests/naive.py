"""A slow, obvious simulator of dynamic material handling: the oracle of the fast kernels.

Every tick 0, 1, 2, ... is really stepped and every vehicle is really moved along its route, tick by
tick, so nothing here depends on knowing in advance when the next event will be. It uses the
standard library only.

Units: metres, seconds, metres per second; one tick is one second.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

ACTION_RULES = ("FCFS", "EDD", "NVF", "STD")  # by default; action = vehicle * 4 + position here
RULES = (*ACTION_RULES, "LWT", "AHP")

IDLE, WORKING, BROKEN = 0, 1, 2


def round9(value: float) -> float:
    """Take the noise off a sum, so that 3.0000000000000004 s is 3 s and ties are ties."""
    return round(value, 9)


class Floor:
    """The sites and edges of a layout, the distances between its sites and the routes taken.

    order : position of each site in the layout
    arcs : (from, to) -> length; an edge that is not one-way is two arcs
    limits : (from, to) -> speed limit of the arc, inf without
    costs : (from, to) -> what routes have least of: length, or time where they are the quickest
    neighbours : site -> the sites one arc away, in the layout's order
    distances : (from, to) -> shortest-path length, inf where there is no path
    named : (from, to) -> the route that the layout names for exactly this ordered pair
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        self.order = {site["id"]: index for index, site in enumerate(layout["sites"])}
        points = {site["id"]: (site["x"], site["y"]) for site in layout["sites"]}
        self.arcs: dict[tuple[str, str], float] = {}
        self.limits: dict[tuple[str, str], float] = {}
        for edge in layout["edges"]:
            a, b = edge["a"], edge["b"]
            length = float(edge.get("length", math.dist(points[a], points[b])))
            limit = float(edge.get("max_speed", math.inf))
            self._add_arc(a, b, length, limit)
            if not edge.get("one_way", False):
                self._add_arc(b, a, length, float(edge.get("max_reverse_speed", limit)))
        self.is_quickest = bool(layout.get("quickest_routes", False))
        self.costs = dict(self.arcs)
        if self.is_quickest:
            fastest = max(float(vehicle.get("speed", 1)) for vehicle in layout["vehicles"])
            self.costs = {
                arc: length / min(fastest, self.limits[arc]) for arc, length in self.arcs.items()
            }
        self.neighbours = {a: [b for b in self.order if (a, b) in self.arcs] for a in self.order}
        self.named = {(names[0], names[-1]): list(names) for names in layout.get("routes", [])}
        self.least: dict[tuple[str, str], float] = {}
        for a in self.order:
            for b, cost in self._costs_from(a).items():
                self.least[a, b] = cost
        self.distances = dict(self.least)
        if self.is_quickest:
            for a, b in self.least:
                if not math.isinf(self.least[a, b]):
                    self.distances[a, b] = sum(self.arcs[arc] for arc in pairwise(self.route(a, b)))

    def _add_arc(self, a: str, b: str, length: float, limit: float) -> None:
        # of two edges between the same sites the shorter is the one that is travelled, of equals the faster
        known = self.arcs.get((a, b), math.inf)
        if length < known or (length == known and limit > self.limits[a, b]):
            self.arcs[a, b] = length
            self.limits[a, b] = limit

    def lost(self, a: str, b: str, speed: float) -> float:
        """Seconds that speed limits cost on the route from `a` to `b`."""
        return sum(self.lost_on(arc, self.arcs[arc], speed) for arc in pairwise(self.route(a, b)))

    def lost_on(self, arc: tuple[str, str], metres: float, speed: float) -> float:
        """Seconds that a limit costs on so many metres of an arc."""
        return metres / min(speed, self.limits[arc]) - metres / speed

    def _costs_from(self, source: str) -> dict[str, float]:
        """Dijkstra's algorithm."""
        distances = dict.fromkeys(self.order, math.inf)
        distances[source] = 0.0
        queue = [(0.0, source)]
        while queue:
            distance, site = heapq.heappop(queue)
            if distance > distances[site]:
                continue  # a shorter way to this site was found after this entry was queued
            for other in self.neighbours[site]:
                longer = distance + self.costs[site, other]
                if longer < distances[other]:
                    distances[other] = longer
                    heapq.heappush(queue, (longer, other))
        return distances

    def route(self, a: str, b: str) -> list[str]:
        """The sites from `a` to `b`: as the layout names them, else the first shortest route.

        "First" is lexicographic in the sites' order in the layout.
        """
        if a == b:
            return [a]
        if (a, b) in self.named:
            return list(self.named[a, b])
        found = None if math.isinf(self.least[a, b]) else self._extend([a], b)
        assert found is not None
        return found

    def _extend(self, path: list[str], goal: str) -> list[str] | None:
        """The lexicographically first shortest way to complete `path`."""
        site = path[-1]
        if site == goal:
            return path
        for other in self.neighbours[site]:
            through = self.costs[site, other] + self.least[other, goal]
            # edges of length 0 could lead in circles, so no site is visited twice
            if other not in path and abs(through - self.least[site, goal]) <= 1e-9:
                completed = self._extend([*path, other], goal)
                if completed is not None:
                    return completed
        return None


@dataclass
class Task:
    name: str
    pickup: str
    delivery: str
    arrival: float
    expiry: float  # relative to the arrival
    handling: float
    demand: float
    waiting_since: float  # the arrival, or the tick before the breakdown that put it back
    priority: float = 0.0
    changes: int = 0  # how often it was taken from a vehicle that was on its way
    vehicle: int = -1
    start: int = -1
    finish: int = -1
    finished: bool = False

    @property
    def due(self) -> float:
        return self.arrival + self.expiry


@dataclass
class Standing:
    """A place on a way: `offset` metres past `last` on the edge towards `next`, 0 at the site itself.

    At the end of the way there is no next site; it is `last` then.
    """

    last: str
    next: str
    offset: float


@dataclass
class Leg:
    """One edge, or the rest of one, as a vehicle travels it.

    The vehicle is on the edge from `last` to `next`, first `offset` metres past `last`, each tick
    `step` metres further (less than 0 when it turned back). After `ticks` ticks it is at `end`.
    """

    last: str
    next: str
    offset: float
    step: float
    ticks: int
    end: str


@dataclass
class Vehicle:
    speed: float
    capacity: float
    breakdowns: list[tuple[int, int]]  # tick of the breakdown, ticks of the repair; sorted by time
    site: str  # the last visited site, as the rules and the observation see it
    status: int = IDLE
    repaired_at: int = -1
    mean_times: tuple[float, float] | None = None  # between random failures, and to repair one
    fails_at: int = -1  # tick of the next random failure
    n_repairs: int = 0
    standing: Standing | None = None  # where it broke down while working, until it sets out again
    # the trip, while working
    task: Task | None = None
    destination: str = ""
    finish: int = -1
    legs: list[Leg] = field(default_factory=list)  # what is left of the way, the current leg first
    elapsed: int = 0  # ticks since the current leg began
    site_is_frozen: bool = False  # on the first trip after a breakdown while working

    def can_carry(self, task: Task) -> bool:
        return self.capacity == 0 or task.demand <= self.capacity

    def begin_trip(self, task: Task | None, destination: str, legs: list[Leg], finish: int) -> None:
        self.status = WORKING
        self.task = task
        self.destination = destination
        self.finish = finish
        self.legs = legs
        self.elapsed = 0
        self.site_is_frozen = self.standing is not None
        self.standing = None
        self._enter_next_leg()

    def move(self) -> None:
        """One tick further along the way; at its end the vehicle waits there for the finish."""
        self.elapsed += 1
        self._enter_next_leg()

    def _enter_next_leg(self) -> None:
        while self.legs and self.elapsed >= self.legs[0].ticks:  # an edge of length 0 takes 0 ticks
            self.legs.pop(0)
            self.elapsed = 0
        if not self.site_is_frozen:
            self.site = self.place().last

    def place(self) -> Standing:
        """Where a working vehicle truly is."""
        if not self.legs:
            return Standing(self.destination, self.destination, 0.0)
        leg = self.legs[0]
        return Standing(leg.last, leg.next, leg.offset + self.elapsed * leg.step)

    def end_trip(self, site: str, standing: Standing | None) -> Task | None:
        """Leave the trip, standing where told; returns the task of the trip."""
        task = self.task
        self.site = site
        self.standing = standing
        self.task = None
        self.finish = -1
        self.legs = []
        self.elapsed = 0
        self.site_is_frozen = False
        return task


class NaiveEpisode:
    """One episode; after construction and after each step it stands at a decision or at its end.

    layout : the parsed layout JSON
    tasks : dicts with task, pickup, delivery, arrival_time, expiry_time and, optionally,
        handling_time and demand; in any order
    task_slots, n_vehicles : sizes of the observation, by default the layout's; padded with zeros
    scaling : mid and half width of each feature, by default the layout's
    slots : slot of each task by its id, from 0; by default a task's slot is its place in the pool
    rules : among which an action chooses
    waiting_time : for random breakdowns: of (vehicle, repairs so far, 0 or 1) the time until the next
        failure (0), or that its repair takes (1), as a multiple of its mean
    """

    def __init__(
        self,
        layout: dict[str, Any],
        tasks: list[dict[str, Any]],
        *,
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        scaling: dict[str, Any] | None = None,
        slots: dict[str, int] | None = None,
        rules: tuple[str, ...] = ACTION_RULES,
        waiting_time: Callable[[int, int, int], float] | None = None,
    ) -> None:
        self._waiting_time = waiting_time
        self._slots = slots
        self.rules = rules
        self.floor = self._floor = Floor(layout)
        self._truncate = bool(layout.get("truncate_distances", False))
        self._scaling = layout.get("scaling") if scaling is None else scaling
        self._task_slots = int(layout["task_slots"] if task_slots is None else task_slots)
        self.vehicles = self._vehicles = self._read_vehicles(layout)
        self._n_vehicles = len(self._vehicles) if n_vehicles is None else n_vehicles
        self._tasks = self._read_tasks(tasks)
        self.time = 0
        self.done = False
        self.makespan = math.nan
        self.tardiness = math.nan
        self._pool: list[Task] = []
        self._to_arrive = list(self._tasks)
        for vehicle in self._vehicles:
            self._plan_failure(vehicle)
        self._process_tick()
        self._advance()

    # What a policy sees

    @property
    def tasks(self) -> list[Task]:
        """All tasks of the record, by arrival."""
        return list(self._tasks)

    @property
    def waiting(self) -> list[Task]:
        """The waiting tasks, in the order of the pool."""
        return list(self._pool)

    @property
    def pool(self) -> list[str]:
        """The ids of the waiting tasks."""
        return [task.name for task in self._pool]

    @property
    def schedule(self) -> list[tuple[str, int, int, int]]:
        """Per task in arrival order: task, vehicle, start, finish of its completed service."""
        return [(task.name, task.vehicle, task.start, task.finish) for task in self._tasks]

    def mask(self) -> list[bool]:
        """The legal actions."""
        legal = []
        for index in range(self._n_vehicles):
            legal += [self._may_be_assigned(index)] * len(self.rules)
        return legal

    def observation(self) -> list[float]:
        """Four features per task slot, then three and one per task slot for each vehicle."""
        scaling = self._scaling

        def scaled(value: float, name: str) -> float:
            mid, half = map(float, scaling[name])
            return (value - mid) / half

        seen: list[Task | None] = [*self._pool, *[None] * self._task_slots][: self._task_slots]
        if self._slots is not None:
            of_slot = {self._slots[task.name]: task for task in self._pool}
            seen = [of_slot.get(slot) for slot in range(self._task_slots)]
        features: list[float] = []
        for task in seen:
            if task is None:
                features += [0.0] * 4
                continue
            features += [
                scaled(self._compared(self._distance(task.pickup, task.delivery)), "distance"),
                scaled(self.time - task.waiting_since, "waiting"),
                scaled(task.expiry, "expiry"),
                scaled(task.demand, "demand"),
            ]
        for vehicle in self._vehicles:
            status, site = self._shown(vehicle)
            features += [
                vehicle.speed / scaling["speed"],
                status / 2,
                vehicle.capacity / scaling["capacity"],
            ]
            features += [
                0.0
                if task is None
                else scaled(self._compared(self._total_distance(site, task)), "total_distance")
                for task in seen
            ]
        n_absent = self._n_vehicles - len(self._vehicles)
        features += [0.0] * ((3 + self._task_slots) * n_absent)
        return features

    # What a policy does

    def step(self, action: int) -> None:
        """Assign by vehicle * number of rules + rule, then advance to the next decision or the end."""
        vehicle, rule = divmod(action, len(self.rules))
        self.assign(vehicle, self.select(vehicle, self.rules[rule]))

    def assign(self, vehicle: int, pool_index: int) -> None:
        """Assign one task of the pool, then advance to the next decision or the end."""
        if not self._may_be_assigned(vehicle):
            raise ValueError(f"vehicle {vehicle} cannot be assigned a task at time {self.time}")
        task = self._pool[pool_index]
        if not any(task is other for other in self.offered(self._vehicles[vehicle])):
            raise ValueError(f"vehicle {vehicle} is not offered task {task.name}")
        self._begin_service(vehicle, task)
        self._advance()

    def select(self, vehicle: int, rule: str) -> int:
        """The pool index of the task that a rule picks for a vehicle, among those it can carry."""
        carrier = self._vehicles[vehicle]
        visible = self.offered(carrier)
        keys = [self._key(rule, carrier, task, visible) for task in visible]
        picked = visible[keys.index(min(keys))]  # the first of equals
        return next(index for index, task in enumerate(self._pool) if task is picked)

    def offered(self, vehicle: Vehicle) -> list[Task]:
        """The waiting tasks that a vehicle may take: of those it can carry those of the highest priority."""
        able = [task for task in self._pool if self._is_able(vehicle, task)]
        highest = max((task.priority for task in able), default=0.0)
        return [task for task in able if task.priority == highest]

    def _key(self, rule: str, vehicle: Vehicle, task: Task, visible: list[Task]) -> float:
        """What a rule compares; the smallest wins."""
        if rule == "FCFS":
            return task.arrival
        if rule == "EDD":
            return task.due
        site, _, left = self._stand(vehicle)
        if rule == "NVF":
            return self._compared(left + self._distance(site, task.pickup))
        if rule == "STD":
            return self._compared(left + self._total_distance(site, task))
        if rule == "LWT":
            return -round9(self.time - task.waiting_since)
        mean_due = sum(other.due for other in visible) / len(visible)
        mean_distance = sum(
            self._distance(other.pickup, other.delivery) for other in visible
        ) / len(visible)
        key = 0.0
        # a mean of 0, or one over tasks that are never due, cannot tell the tasks apart
        if mean_due != 0 and not math.isinf(mean_due):
            key += 0.37 * task.due / mean_due
        if mean_distance != 0:
            key += 0.63 * self._distance(task.pickup, task.delivery) / mean_distance
        return -round9(key)  # AHP picks the largest

    # Distances

    def _distance(self, a: str, b: str) -> float:
        return self._floor.distances[a, b]

    def _total_distance(self, site: str, task: Task) -> float:
        to_pickup = self._distance(site, task.pickup)
        return to_pickup + self._distance(task.pickup, task.delivery)

    def _compared(self, distance: float) -> float:
        """A distance as rules, observation and durations use it."""
        rounded = round9(distance)
        return float(math.trunc(rounded)) if self._truncate else rounded

    # What a simulator of more than the reference's vehicles tells otherwise

    def _read_vehicles(self, layout: dict[str, Any]) -> list[Vehicle]:
        return [read_vehicle(entry) for entry in layout["vehicles"]]

    def _read_tasks(self, entries: list[dict[str, Any]]) -> list[Task]:
        return sorted((read_task(entry) for entry in entries), key=lambda task: task.arrival)

    def _is_able(self, vehicle: Vehicle, task: Task) -> bool:
        return vehicle.can_carry(task)

    def _stand(self, vehicle: Vehicle) -> tuple[str, int, float]:
        """Site, tick and metres left to it, from which a vehicle may be given a task."""
        return vehicle.site, self.time, 0.0

    def _shown(self, vehicle: Vehicle) -> tuple[int, str]:
        """Status and site of a vehicle in the observation."""
        return vehicle.status, vehicle.site

    # An assignment

    def _may_be_assigned(self, index: int) -> bool:
        if self.done or not 0 <= index < len(self._vehicles):
            return False
        vehicle = self._vehicles[index]
        return vehicle.status == IDLE and any(vehicle.can_carry(task) for task in self._pool)

    def _begin_service(self, index: int, task: Task) -> None:
        vehicle = self._vehicles[index]
        if vehicle.standing is None:
            metres = self._compared(self._total_distance(vehicle.site, task))
            lost = self._floor.lost(vehicle.site, task.pickup, vehicle.speed)
            legs = self._legs(vehicle, self._floor.route(vehicle.site, task.pickup))
        else:
            metres, lost, legs = self._way_onwards(vehicle, vehicle.standing, task.pickup)
            metres += self._distance(task.pickup, task.delivery)
        lost += self._floor.lost(task.pickup, task.delivery, vehicle.speed)
        legs += self._legs(vehicle, self._floor.route(task.pickup, task.delivery))
        duration = round9(metres / vehicle.speed + lost + task.handling)
        task.vehicle = index
        task.start = self.time
        task.finish = self.time + max(1, math.ceil(duration))
        # by identity: two tasks of equal content are still two tasks
        self._pool = [other for other in self._pool if other is not task]
        vehicle.begin_trip(task, task.delivery, legs, task.finish)

    def _way_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> tuple[float, float, list[Leg]]:
        """Metres from where it broke down to a site, seconds lost to limits on that way, and its legs."""
        a, b, offset = standing.last, standing.next, standing.offset
        if offset == 0.0:  # at the site: it may start from there, whatever the edges
            metres = round9(self._distance(a, site))
            lost = self._floor.lost(a, site, vehicle.speed)
            return metres, lost, self._legs(vehicle, self._floor.route(a, site))
        rest = self._floor.arcs[a, b] - offset
        speed, floor = vehicle.speed, self._floor
        back, lost_back = math.inf, 0.0
        if (b, a) in floor.arcs:
            back = round9(offset + self._distance(a, site))
            lost_back = floor.lost_on((b, a), offset, speed) + floor.lost(a, site, speed)
        forward = round9(rest + self._distance(b, site))
        lost = floor.lost_on((a, b), rest, speed) + floor.lost(b, site, speed)
        turns = back <= forward
        if floor.is_quickest:
            turns = round9(back / speed + lost_back) <= round9(forward / speed + lost)
        if turns:
            pace = min(speed, floor.limits[b, a])
            first = Leg(a, b, offset, -pace, self._ticks(offset, pace), end=a)
        else:
            pace = min(speed, floor.limits[a, b])
            first = Leg(a, b, offset, pace, self._ticks(rest, pace), end=b)
        legs = [first, *self._legs(vehicle, floor.route(first.end, site))]
        return (back, lost_back, legs) if turns else (forward, lost, legs)

    def _legs(self, vehicle: Vehicle, sites: list[str]) -> list[Leg]:
        legs = []
        for a, b in pairwise(sites):
            pace = min(vehicle.speed, self._floor.limits[a, b])
            ticks = self._ticks(self._floor.arcs[a, b], pace)
            legs.append(Leg(a, b, 0.0, pace, ticks, end=b))
        return legs

    @staticmethod
    def _ticks(metres: float, speed: float) -> int:
        return math.ceil(round9(metres / speed))

    # The clock

    def _advance(self) -> None:
        """Step ticks until a decision is due or the episode has ended."""
        while not self.done and not any(self.mask()):
            self.time += 1
            self._process_tick()

    def _process_tick(self) -> None:
        # 1. Breakdowns and repairs. The vehicles have not moved yet in this tick, so a vehicle that
        # breaks is where it was at the tick before.
        for vehicle in self._vehicles:
            if vehicle.status == BROKEN:
                # a breakdown listed for this tick is skipped, also when the repair ends now
                if self.time == vehicle.repaired_at:
                    self._repair(vehicle)
            else:
                repair_ticks = self._find_breakdown(vehicle)
                if repair_ticks is not None:
                    self._break_down(vehicle, repair_ticks)
        # 2. Movement and deliveries.
        self._move_vehicles()
        if all(task.finished for task in self._tasks):
            self._end()
            return
        # 3. Arrivals.
        self._join_pool()

    def _move_vehicles(self) -> None:
        for vehicle in self._vehicles:
            if vehicle.status == WORKING:
                vehicle.move()
                if self.time == vehicle.finish:
                    self._deliver(vehicle)

    def _join_pool(self) -> None:
        self._arrive()

    def _arrive(self) -> None:
        while self._to_arrive and self._to_arrive[0].arrival <= self.time:
            self._pool.append(self._to_arrive.pop(0))

    def _repair(self, vehicle: Vehicle) -> None:
        vehicle.status = IDLE
        vehicle.n_repairs += 1
        self._plan_failure(vehicle)

    def _find_breakdown(self, vehicle: Vehicle) -> int | None:
        """How many ticks the repair of a breakdown at this tick takes: of those listed the first counts."""
        for tick, repair_ticks in vehicle.breakdowns:
            if tick == self.time:
                return repair_ticks
        if self.time == vehicle.fails_at:
            return self._random_ticks(vehicle, 1)
        return None

    def _plan_failure(self, vehicle: Vehicle) -> None:
        if vehicle.mean_times is not None:
            vehicle.fails_at = self.time + max(1, self._random_ticks(vehicle, 0))

    def _random_ticks(self, vehicle: Vehicle, what: int) -> int:
        assert self._waiting_time is not None
        assert vehicle.mean_times is not None
        index = next(k for k, other in enumerate(self._vehicles) if other is vehicle)
        multiple = self._waiting_time(index, vehicle.n_repairs, what)
        return math.ceil(round9(vehicle.mean_times[what] * multiple))

    def _break_down(self, vehicle: Vehicle, repair_ticks: int) -> None:
        if vehicle.status == WORKING:
            standing = vehicle.place()
            task = vehicle.end_trip(standing.last, standing)
            if task is not None:
                task.vehicle = task.start = task.finish = -1
                task.waiting_since = self.time - 1
                self._pool.append(task)
        vehicle.status = BROKEN
        vehicle.repaired_at = self.time + repair_ticks + 1  # this tick repairs nothing

    def _deliver(self, vehicle: Vehicle) -> None:
        # At the delivery site, wherever tick-wise movement has brought it: each edge is rounded up
        # to whole ticks, but the duration of the service only once.
        task = vehicle.end_trip(vehicle.destination, None)
        assert task is not None
        task.finished = True
        vehicle.status = IDLE

    def _end(self) -> None:
        self.done = True
        self.makespan = float(max(task.finish for task in self._tasks))
        late = [max(0.0, task.finish - task.due) for task in self._tasks]
        self.tardiness = sum(late) / len(late)


def read_vehicle(entry: dict[str, Any]) -> Vehicle:
    """A vehicle of the layout JSON; what is not whole in time falls on the next tick."""
    breakdowns = sorted(entry.get("breakdowns", []), key=lambda breakdown: breakdown["time"])
    model = entry.get("random_breakdowns")
    times = ("mean_time_between_failures", "mean_time_to_repair")
    return Vehicle(
        speed=float(entry["speed"]),
        capacity=float(entry.get("capacity", 0)),
        breakdowns=[
            (math.ceil(item["time"]), math.ceil(item["repair_time"])) for item in breakdowns
        ],
        site=entry["start"],
        mean_times=model and tuple(float(model[name]) for name in times),
    )


def read_task(entry: dict[str, Any]) -> Task:
    """A task of a record; held back until its earliest start it arrives then, and is due as it was."""
    arrival = float(entry["arrival_time"])
    start = max(arrival, float(entry.get("earliest_start", 0)))
    return Task(
        name=entry["task"],
        pickup=entry["pickup"],
        delivery=entry["delivery"],
        arrival=start,
        expiry=arrival + float(entry["expiry_time"]) - start,
        handling=float(entry.get("handling_time", 0)),
        demand=float(entry.get("demand", 0)),
        waiting_since=start,
        priority=float(entry.get("priority", 0)),
    )
