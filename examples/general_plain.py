"""The policy `general` in plain Python, for a dispatcher of your own.

`choose` is all of it for a floor without priorities, capacities, batteries, call-backs and listed breakdowns.
It needs this file alone. `choose_simply` is a set of five weights that looks at pairs alone.

    python examples/general_plain.py            decides once
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

WEIGHTS = {
    "approach": -5.242864,
    "loaded": -1.440012,
    "slack": -1.27852,
    "lateness": -2.421389,
    "waiting": 0.4612648,
    "last_end": -0.7599129,
    "total_late": -0.6257595,
    "n_late": -6.525092,
    "empty": -0.3776546,
    "imbalance": 0.1675557,
}
"""The set "late" of `acerl_np/policies/general.json`, each weight divided by its feature's scale."""

FIVE = (-5.08062, -1.992926, -1.260359, -4.04383, 0.3082357)
"""Weights of `choose_simply`: way to the pickup, loaded way, spare, lateness, waiting."""

BEYOND, LATE_COUNTS = 10.0, 2.5
"""Waiting tasks for each vehicle beyond which the shortest pair is taken; what a late one counts."""

GUARD, LEAST_TIME = 1.0, 4.0
"""Times as long as a task was given that it may be late; units that it was given at least."""


class Vehicle(NamedTuple):
    """A vehicle: the site where it is or will be free, and in how many s; inf if nobody knows."""

    site: int
    free: float


class Task(NamedTuple):
    """A waiting task, in the order of arrival: sites, s of handling, moments when it came and is due."""

    pickup: int
    delivery: int
    handling: float
    since: float
    due: float


Way = Callable[[int, int, int], float]
"""s that a vehicle takes from one site to another."""


class Plan:
    """What becomes of the tasks if one vehicle takes one of them now: the rest follows greedily."""

    def __init__(
        self, now: float, fleet: dict[int, Vehicle], tasks: dict[int, Task], way: Way, unit: float
    ):
        self.now, self.fleet, self.tasks, self.way, self.unit = now, fleet, tasks, way, unit
        self.rates: dict[tuple[int, Vehicle, int], float] = {}

    def drive(self, v: int, site: int, k: int) -> tuple[float, float]:
        """Return the s to a task's pickup, and from there to its delivery."""
        task = self.tasks[k]
        ride = self.way(v, task.pickup, task.delivery) + task.handling
        return self.way(v, site, task.pickup), ride

    def rate(self, v: int, vehicle: Vehicle, k: int) -> float:
        """Return how soon a vehicle should take a task: least first."""
        if (v, vehicle, k) not in self.rates:
            empty, ride = self.drive(v, vehicle.site, k)
            end = vehicle.free + empty + ride
            spare = min(self.tasks[k].due - self.now - end, 1.7 * self.unit)
            self.rates[v, vehicle, k] = round(end - 0.5 * ride + 0.3 * spare, 9)
        return self.rates[v, vehicle, k]

    def look(self, v: int, k: int) -> dict[str, float]:
        """Return the features of a pair of an idle vehicle and a task."""
        task = self.tasks[k]
        empty, ride = self.drive(v, self.fleet[v].site, k)
        spare = (task.due - self.now - empty - ride) / self.unit
        found = {"approach": empty, "loaded": ride, "waiting": max(0.0, self.now - task.since)}
        found |= self.finish(v, k)
        found = {name: x if name == "n_late" else x / self.unit for name, x in found.items()}
        return found | {"slack": min(max(spare, 0.0), 4.0), "lateness": max(0.0, -spare)}

    def finish(self, v: int, k: int) -> dict[str, float]:
        """Let the vehicle take the task, and up to eleven others follow, the least rating first."""
        fleet = {u: own for u, own in self.fleet.items() if own.free < math.inf}
        left = set(self.tasks)

        def wish(u: int) -> tuple[float, int, int]:
            """Return the rating of what a vehicle would take next, the vehicle, and the task."""
            return min((self.rate(u, fleet[u], j), u, j) for j in left)

        wishes = {u: wish(u) for u in fleet}
        total = late = driven = 0.0
        for _ in range(12):
            empty, ride = self.drive(v, fleet[v].site, k)
            end = fleet[v].free + empty + ride
            delay = end - (self.tasks[k].due - self.now)
            driven += empty
            if delay > 1e-9:
                total, late = total + delay, late + 1.0
            fleet[v] = Vehicle(self.tasks[k].delivery, end)
            left.remove(k)
            if not left:
                break
            wishes |= {u: wish(u) for u in fleet if u == v or wishes[u][2] == k}
            _, v, k = min(wishes.values())
        ends = [own.free for own in fleet.values()]
        found = {"total_late": total, "n_late": late, "empty": driven}
        return found | {"last_end": max(ends), "imbalance": max(ends) - min(ends)}


def keep(found: Mapping[Any, Any], most: int) -> list[Any]:
    """Return what rates least, in the old order."""
    return sorted(sorted(found, key=lambda key: (found[key], key))[:most])


def relieve(
    now: float, fleet: list[Vehicle], tasks: list[Task], way: Way, unit: float
) -> tuple[int, int] | None:
    """Return the shortest pair where too much waits, or the nearest to an overdue task, if there is one."""
    late = sum(task.due < now for task in tasks)
    overdue = {
        k
        for k, task in enumerate(tasks)
        if now - task.due > GUARD * max(task.due - task.since, LEAST_TIME * unit)
    }
    is_crowded = len(tasks) + (LATE_COUNTS - 1.0) * late > BEYOND * len(fleet)
    pairs = []
    for k, task in enumerate(tasks):
        for v, vehicle in enumerate(fleet):
            if vehicle.free == 0.0 and (is_crowded or k in overdue):
                empty, ride = way(v, vehicle.site, task.pickup), task.handling
                ride += way(v, task.pickup, task.delivery)
                length = empty + 0.5 * ride if is_crowded else empty
                pairs.append((round(length, 9), round(empty, 9), k, v))
    return min(pairs)[:1:-1] if pairs else None


def choose(
    now: float,
    fleet: list[Vehicle],
    tasks: list[Task],
    way: Way,
    unit: float,
    weights: dict[str, float] = WEIGHTS,
) -> tuple[int, int]:
    """Return which idle vehicle takes which task.

    `unit` is the mean way between two sites in s, at the fleet's mean speed. Of many tasks and vehicles those
    24 and 12 are looked at that come first for each other, and 24 pairs.
    """
    idle = [v for v, vehicle in enumerate(fleet) if vehicle.free == 0.0]
    relief = relieve(now, fleet, tasks, way, unit)
    if relief is not None:
        return relief
    plan = Plan(now, dict(enumerate(fleet)), dict(enumerate(tasks)), way, unit)
    first = {k: min(plan.rate(v, fleet[v], k) for v in idle) for k in plan.tasks}
    plan.tasks = {k: tasks[k] for k in keep(first, 24)}
    found = {
        v: (float(own.free > 0.0), min(plan.rate(v, own, k) for k in plan.tasks))
        for v, own in enumerate(fleet)
        if own.free < math.inf
    }
    plan.fleet = {v: fleet[v] for v in keep(found, 12)}
    rates = {(v, k): plan.rate(v, fleet[v], k) for v in plan.fleet if v in idle for k in plan.tasks}
    scores: dict[tuple[int, int], float] = {}
    for pair in keep(rates, 24):
        features = plan.look(*pair)
        scores[pair] = sum(weight * features[name] for name, weight in weights.items())
    return max(scores, key=lambda pair: scores[pair])


def choose_simply(
    now: float, fleet: list[Vehicle], tasks: list[Task], way: Way, unit: float
) -> tuple[int, int]:
    """Return which idle vehicle takes which task, by five features of the pairs alone."""
    relief = relieve(now, fleet, tasks, way, unit)
    if relief is not None:
        return relief
    scores = {}
    for v, vehicle in enumerate(fleet):
        for k, task in enumerate(tasks):
            empty = way(v, vehicle.site, task.pickup) / unit
            ride = (way(v, task.pickup, task.delivery) + task.handling) / unit
            spare = (task.due - now) / unit - empty - ride
            features = (
                empty,
                ride,
                min(max(spare, 0.0), 4.0),
                max(0.0, -spare),
                (now - task.since) / unit,
            )
            if vehicle.free == 0.0:
                scores[v, k] = sum(weight * x for weight, x in zip(FIVE, features, strict=True))
    return max(scores, key=lambda pair: scores[pair])


def main() -> None:
    """Decide once: two idle vehicles and two tasks on a lane, sites 20 m apart, 1 m/s, no handling."""
    tasks = [
        Task(3, 0, 0.0, 0.0, 300.0),
        Task(0, 2, 0.0, 60.0, 200.0),
        Task(5, 1, 0.0, 90.0, 400.0),
    ]
    fleet = [Vehicle(1, 0.0), Vehicle(4, 0.0), Vehicle(5, 40.0)]
    v, k = choose(100.0, fleet, tasks, lambda v, a, b: 20.0 * abs(a - b), 47.0)
    print(f"vehicle {v} takes task {k}")


if __name__ == "__main__":
    main()
