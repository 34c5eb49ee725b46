"""The paper's plain simulator, and what tests of other abilities need: the oracle of the fast kernels.

Speed limits and the quickest routes, random breakdowns, priorities and earliest starts, two more rules,
sizes of the state. Units: metres, seconds, metres per second; one tick is one second.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from acerl_np.plain import floor as plain
from acerl_np.plain import simulator
from acerl_np.plain.floor import round9
from acerl_np.plain.simulator import BROKEN, IDLE, WORKING, Leg, Standing, ticks

__all__ = ["BROKEN", "IDLE", "WORKING", "Leg", "Standing"]

ACTION_RULES = simulator.RULES  # by default; action = vehicle * 4 + position here
RULES = (*ACTION_RULES, "LWT", "AHP")


class Floor(plain.Floor):
    """A floor whose arcs may have speed limits, and routes that may be the quickest.

    limits : (from, to) -> speed limit of the arc, inf without
    costs : (from, to) -> what routes have least of: length, or time where they are the quickest
    least : (from, to) -> the sum of costs on the route
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        super().__init__(layout)
        points = {site["id"]: (site["x"], site["y"]) for site in layout["sites"]}
        self.limits: dict[tuple[str, str], float] = {}
        for edge in layout["edges"]:
            a, b = edge["a"], edge["b"]
            length = float(edge.get("length", math.dist(points[a], points[b])))
            limit = float(edge.get("max_speed", math.inf))
            limits = {(a, b): limit, (b, a): float(edge.get("max_reverse_speed", limit))}
            if edge.get("one_way", False):
                del limits[b, a]
            for arc, own in limits.items():
                # of two edges between the same sites the shorter is travelled, of equals the faster
                if length == self.arcs[arc]:
                    self.limits[arc] = max(own, self.limits.get(arc, 0.0))
        self.is_quickest = bool(layout.get("quickest_routes", False))
        self.costs, self.least = self.arcs, self.distances
        if self.is_quickest:
            fastest = max(float(vehicle.get("speed", 1)) for vehicle in layout["vehicles"])
            self.costs = {
                arc: length / min(fastest, self.limits[arc]) for arc, length in self.arcs.items()
            }
            self._by_time = copy.copy(self)
            self._by_time.arcs, self._by_time.is_quickest = self.costs, False
            self._by_time.measure()
            self.least = self._by_time.distances
            self.distances = {
                (a, b): math.inf if math.isinf(seconds) else self._length(self.route(a, b))
                for (a, b), seconds in self.least.items()
            }

    def _length(self, route: list[str]) -> float:
        return sum(self.arcs[arc] for arc in pairwise(route))

    def route(self, a: str, b: str) -> list[str]:
        return self._by_time.route(a, b) if self.is_quickest else super().route(a, b)

    def lost(self, a: str, b: str, speed: float) -> float:
        """Seconds that speed limits cost on the route from `a` to `b`."""
        return sum(self.lost_on(arc, self.arcs[arc], speed) for arc in pairwise(self.route(a, b)))

    def lost_on(self, arc: tuple[str, str], metres: float, speed: float) -> float:
        """Seconds that a limit costs on so many metres of an arc."""
        return metres / min(speed, self.limits[arc]) - metres / speed


@dataclass(eq=False)
class Task(plain.Task):
    priority: float = 0.0
    changes: int = 0  # how often it was taken from a vehicle that was on its way


@dataclass(eq=False)
class Vehicle(simulator.Vehicle):
    mean_times: tuple[float, float] | None = None  # between random failures, and to repair one
    fails_at: int = -1  # tick of the next random failure
    n_repairs: int = 0


class NaiveEpisode(simulator.Episode):
    """One episode; after construction and after each step it stands at a decision or at its end.

    layout : the parsed layout JSON
    tasks : dicts with task, pickup, delivery, arrival_time, expiry_time and, optionally,
        handling_time and demand; in any order
    task_slots, n_vehicles : sizes of the state, by default the layout's; padded with zeros
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
        n_vehicles: int | None = None,
        slots: dict[str, int] | None = None,
        rules: tuple[str, ...] = ACTION_RULES,
        waiting_time: Callable[[int, int, int], float] | None = None,
        **sizes: Any,
    ) -> None:
        self.rules = rules
        self.waiting_time = waiting_time
        self.n_vehicles = n_vehicles
        own = {name: value for name, value in sizes.items() if value is not None}
        super().__init__(Floor({**layout, **own}), tasks, slots=slots)

    @property
    def waiting(self) -> list[Task]:
        """The waiting tasks, in the order of the pool."""
        return list(self.task_pool)

    @property
    def pool(self) -> list[str]:
        """The ids of the waiting tasks."""
        return [task.name for task in self.task_pool]

    @property
    def schedule(self) -> list[tuple[str, int, int, int]]:
        """Per task in arrival order: task, vehicle, start, finish of its completed service."""
        return [(task.name, task.vehicle, task.start, task.finish) for task in self.tasks]

    def _count_absent(self) -> int:
        return 0 if self.n_vehicles is None else self.n_vehicles - len(self.vehicles)

    def mask(self) -> list[bool]:
        return [*super().mask(), *[False] * (len(self.rules) * self._count_absent())]

    def state(self) -> list[float]:
        return [*super().state(), *[0.0] * ((3 + self.task_slots) * self._count_absent())]

    def assign(self, v: int, k: int) -> None:
        """Assign task k of the pool, then advance to the next decision or the end."""
        if not 0 <= v < len(self.vehicles) or not self.is_available(self.vehicles[v]):
            raise ValueError(f"vehicle {v} cannot be assigned a task at time {self.time}")
        vehicle, task = self.vehicles[v], self.task_pool[k]
        if task not in self.offered(vehicle):
            raise ValueError(f"vehicle {v} is not offered task {task.name}")
        self.begin_service(vehicle, task)
        self.advance()

    def select(self, v: int, rule: str) -> int:
        """The pool index of the task that a rule picks for a vehicle, among those it can carry."""
        return self.task_pool.index(self.pick(self.vehicles[v], rule))

    def can_take(self, vehicle: Vehicle, task: Task) -> bool:
        return vehicle.can_carry(task)

    def offered(self, vehicle: Vehicle) -> list[Task]:
        """The waiting tasks that a vehicle may take: of those it can carry those of the highest priority."""
        able = [task for task in self.task_pool if self.can_take(vehicle, task)]
        highest = max((task.priority for task in able), default=0.0)
        return [task for task in able if task.priority == highest]

    def key(self, rule: str, vehicle: Vehicle, task: Task) -> float:
        if rule == "LWT":
            return -round9(self.time - task.waiting_since)
        if rule != "AHP":
            return super().key(rule, vehicle, task)
        visible = self.offered(vehicle)
        loaded = [self.distance(other.pickup, other.delivery) for other in visible]
        mean_due = sum(other.due for other in visible) / len(visible)
        mean_distance = sum(loaded) / len(visible)
        key = 0.0
        # a mean of 0, or one over tasks that are never due, cannot tell the tasks apart
        if mean_due != 0 and not math.isinf(mean_due):
            key += 0.37 * task.due / mean_due
        if mean_distance != 0:
            key += 0.63 * self.distance(task.pickup, task.delivery) / mean_distance
        return -round9(key)  # AHP picks the largest

    # Ways with speed limits

    def driving_time(self, vehicle: Vehicle, metres: float, legs: list[Leg]) -> float:
        return super().driving_time(vehicle, metres, legs) + self.lost_on(vehicle, legs)

    def lost_on(self, vehicle: Vehicle, legs: list[Leg]) -> float:
        """Seconds that speed limits cost on legs of a vehicle that does not move yet."""
        return sum(
            self.floor.lost_on(self._arc(leg), self.metres(leg), vehicle.speed) for leg in legs
        )

    @staticmethod
    def _arc(leg: Leg) -> tuple[str, str]:
        return (leg.last, leg.next) if leg.step > 0 else (leg.next, leg.last)

    def metres(self, leg: Leg) -> float:
        """How long a leg is."""
        return self.floor.arcs[leg.last, leg.next] - leg.offset if leg.step > 0 else leg.offset

    def legs(self, vehicle: Vehicle, sites: list[str]) -> list[Leg]:
        return [self._limit(vehicle, leg) for leg in super().legs(vehicle, sites)]

    def _limit(self, vehicle: Vehicle, leg: Leg) -> Leg:
        pace = min(vehicle.speed, self.floor.limits[self._arc(leg)])
        step = math.copysign(pace, leg.step)
        return replace(leg, step=step, ticks=ticks(self.metres(leg), pace))

    def ways_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> list[tuple[float, list[Leg]]]:
        ways = super().ways_onwards(vehicle, standing, site)
        if standing.offset != 0.0:
            for _, legs in ways:
                legs[0] = self._limit(vehicle, legs[0])
        return ways

    def way_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> tuple[float, list[Leg]]:
        if not self.floor.is_quickest:
            return super().way_onwards(vehicle, standing, site)
        ways = self.ways_onwards(vehicle, standing, site)
        return min(ways, key=lambda way: round9(self.driving_time(vehicle, *way)))

    # Random breakdowns

    def read_vehicles(self) -> list[Vehicle]:
        vehicles = [self.read_vehicle(entry) for entry in self.floor.layout["vehicles"]]
        for v, vehicle in enumerate(vehicles):
            self._plan_failure(v, vehicle)
        return vehicles

    def read_vehicle(self, entry: dict[str, Any]) -> Vehicle:
        return read_vehicle(entry)

    def read_tasks(self, record: list[dict[str, Any]]) -> list[Task]:
        return sorted(map(read_task, record), key=lambda task: task.arrival)

    def repair(self, vehicle: Vehicle) -> None:
        super().repair(vehicle)
        vehicle.n_repairs += 1
        self._plan_failure(self.vehicles.index(vehicle), vehicle)

    def find_breakdown(self, vehicle: Vehicle) -> int | None:
        """How many ticks the repair of a breakdown at this tick takes: of those listed the first counts."""
        listed = super().find_breakdown(vehicle)
        if listed is None and self.time == vehicle.fails_at:
            return self._random_ticks(self.vehicles.index(vehicle), vehicle, 1)
        return listed

    def _plan_failure(self, v: int, vehicle: Vehicle) -> None:
        if vehicle.mean_times is not None:
            vehicle.fails_at = self.time + max(1, self._random_ticks(v, vehicle, 0))

    def _random_ticks(self, v: int, vehicle: Vehicle, what: int) -> int:
        multiple = self.waiting_time(v, vehicle.n_repairs, what)
        return math.ceil(round9(vehicle.mean_times[what] * multiple))


def read_vehicle(entry: dict[str, Any]) -> Vehicle:
    """A vehicle of the layout JSON; what is not whole in time falls on the next tick."""
    model = entry.get("random_breakdowns")
    times = ("mean_time_between_failures", "mean_time_to_repair")
    mean_times = model and tuple(float(model[name]) for name in times)
    return Vehicle(**vars(simulator.read_vehicle(entry)), mean_times=mean_times)


def read_task(entry: dict[str, Any]) -> Task:
    """A task of a record; held back until its earliest start it arrives then, and is due as it was."""
    task = Task(**vars(plain.read_task(entry)), priority=float(entry.get("priority", 0)))
    start = max(task.arrival, float(entry.get("earliest_start", 0)))
    task.expiry = task.due - start
    task.arrival = task.waiting_since = start
    return task
