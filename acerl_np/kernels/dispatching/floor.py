"""What rules and features read of a floor: a few functions of a vehicle and a waiting task.

Rules and features are functions `(floor, vehicle, task) -> float`, those of the package (`rules.py`) as those
of users.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import greedy_rollout
from acerl_np.kernels.motion import offers, ways
from acerl_np.support.compiled import compile_inner, inner_kernel
from acerl_np.support.methods import add_methods

FIRST_DRAW = 8
"""Draws of a decision by rules of users begin here: deciders and lookaheads use those before."""


class Tables(NamedTuple):
    """Those tables of a `Problem` that a floor shows."""

    distance: np.ndarray
    edge_length: np.ndarray
    edge_speed: np.ndarray
    slowdown: np.ndarray
    instance: np.ndarray
    ends: np.ndarray
    record: np.ndarray
    fleet: np.ndarray
    battery: np.ndarray
    station: np.ndarray
    breakdown: np.ndarray
    unit: np.ndarray
    class_weight: np.ndarray


class Rows(NamedTuple):
    """Those arrays of a `State` that a floor shows."""

    episode: np.ndarray
    pool: np.ndarray
    waiting_since: np.ndarray
    ready: np.ndarray
    vehicle: np.ndarray


class Floor(NamedTuple):
    """A floor at a moment, as a rule or a feature sees it. It is only read.

    Vehicles and tasks are whole numbers: a vehicle's place in the layout's fleet, a task's in the record, or
    live in the order in which the day's tasks came. Times are seconds, lengths metres. `b` is the row of the
    episode, `i` that of its instance.
    """

    problem: Tables
    state: Rows
    b: int
    i: int
    key: np.ndarray
    decision: int

    def time(self) -> float:
        """Time since the episode began, s."""
        return np.float64(self.state.episode[self.b].time)

    def unit(self) -> float:
        """Time that a vehicle takes for the mean distance between two sites, s: a measure for any floor."""
        return self.problem.unit[self.i].seconds

    def queue(self) -> int:
        """How many tasks wait."""
        return self.state.episode[self.b].pool_size

    def idle(self) -> int:
        """How many vehicles are free."""
        return offers.count_free(self.problem, self.state, self.b)

    def n_vehicles(self) -> int:
        """How many vehicles the fleet has."""
        return self.problem.instance[self.i].n_vehicles

    def free(self, vehicle: int) -> float:
        """Time until a vehicle is free, s: 0 if it is, inf if nobody knows."""
        return greedy_rollout.find_free(self.problem, self.state, self.b, vehicle, True)[0]

    def next_free(self) -> float:
        """Time until the next vehicle that is not idle is free, s; inf if there is none."""
        least = np.inf
        for v in range(self.n_vehicles()):
            if not offers.is_free(self.state, self.b, v):
                least = min(least, self.free(v))
        return least

    def speed(self, vehicle: int) -> float:
        """Speed of a vehicle, m/s."""
        return self.problem.fleet[self.i, vehicle].speed

    def capacity(self, vehicle: int) -> float:
        """Capacity of a vehicle, units of load; 0 for no limit."""
        return self.problem.fleet[self.i, vehicle].capacity

    def site(self, vehicle: int) -> int:
        """Site from which a vehicle sets out: the last one, or the next if it drives and is free."""
        return ways.find_stand(self.state, self.b, vehicle)

    def rest(self, vehicle: int) -> float:
        """Way of a vehicle that drives and is free to the site from which it sets out, m; else 0."""
        return ways.find_rest(self.state, self.b, vehicle)

    def pickup(self, task: int) -> int:
        """Site where a task is picked up."""
        return self.problem.ends[self.i, task].pickup

    def delivery(self, task: int) -> int:
        """Site where a task is delivered."""
        return self.problem.ends[self.i, task].delivery

    def arrival(self, task: int) -> float:
        """Time when a task arrived, s; of a chain, from when on it may be loaded."""
        return S.find_ready(self.problem, self.state, self.b, task)

    def due(self, task: int) -> float:
        """Time when a task should be delivered, s."""
        return S.find_due(self.problem, self.state, self.b, task)

    def waiting(self, task: int) -> float:
        """Time that a task has waited, s; since a breakdown if one handed it back."""
        return S.round_sum(max(0.0, self.time() - self.state.waiting_since[self.b, task]))

    def ready(self, task: int) -> float:
        """Time until a task may be loaded, s: 0 but for one that was announced."""
        return S.find_ready_in(self.problem, self.state, self.b, task)

    def handling(self, task: int) -> float:
        """Time that loading and unloading take, s."""
        return self.problem.record[self.i, task].handling

    def demand(self, task: int) -> float:
        """Load of a task, units."""
        return self.problem.record[self.i, task].demand

    def priority(self, task: int) -> float:
        """Class of priority of a task; a vehicle is only asked about the highest that waits for it."""
        return self.problem.record[self.i, task].priority

    def weight(self, task: int) -> float:
        """Weight of a task by its priority, 1 unless the goal says otherwise."""
        return S.find_weight(self.problem, self.i, task)

    def distance(self, a: int, b: int) -> float:
        """Way from a site to another, m; inf where none leads."""
        return self.problem.distance[self.problem.instance[self.i].layout, a, b]

    def trip(self, task: int) -> float:
        """Way from pickup to delivery, m."""
        return self.distance(self.pickup(task), self.delivery(task))

    def whole(self, metres: float) -> float:
        """Length as the paper's rules count it, m: whole metres where the layout says so."""
        return S.measure_distance(metres, self.problem.instance[self.i].truncates)

    def metres(self, vehicle: int, task: int) -> float:
        """Way from where a vehicle truly stands to the pickup, m."""
        way = ways.find_approach(self.problem, self.state, self.b, vehicle, self.pickup(task))
        return S.round_sum(self.rest(vehicle) + way[0])

    def approach(self, vehicle: int, task: int) -> float:
        """Time from where a vehicle truly stands to the pickup, s."""
        here = np.int64(-1)
        return ways.time_way(self.problem, self.state, self.b, vehicle, here, self.pickup(task))

    def loaded(self, vehicle: int, task: int) -> float:
        """Time from pickup to delivery, handling included, s."""
        return ways.time_loaded(self.problem, self.i, vehicle, task)

    def slack(self, vehicle: int, task: int) -> float:
        """Time to spare if the vehicle takes the task now, s; below 0 it is late."""
        return S.round_sum(
            self.due(task) - self.time() - self.approach(vehicle, task) - self.loaded(vehicle, task)
        )

    def draw(self, vehicle: int, task: int) -> float:
        """Draw a number from 0 to below 1, another for each decision and pair, by the episode's stream."""
        draw = FIRST_DRAW + task * self.n_vehicles() + vehicle
        return random.draw_uniform(self.key, self.decision, draw)

    def mean(self, what: str, vehicle: int) -> float:
        """Mean over the tasks that wait for a vehicle of a measure by its name, such as "due" or "slack"."""
        return make_mean(*find_measure(what))(self, what, vehicle)


def find_measure(name: str) -> tuple[Callable[..., float], bool]:
    """Return a function of `Floor` that measures a task, and whether it asks for the vehicle as well."""
    measure = vars(Floor).get(name, len)
    names = tuple(inspect.signature(measure).parameters)[1:]
    if names not in (("task",), ("vehicle", "task")):
        raise TypeError(f"mean: read '{name}'; expected a measure of a task, such as 'due'")
    return measure, len(names) == 2


def make_mean(measure: Callable[..., float], of_pair: bool) -> Callable[..., float]:
    """Return the method that takes the mean of one measure."""

    def mean(self, what, vehicle):
        priority = offers.find_priority(self.problem, self.state, self.b, vehicle)
        total, n = 0.0, 0
        for task in self.state.pool[self.b, : self.queue()]:
            if offers.is_offered(self.problem, self.state, self.b, vehicle, task, priority):
                n += 1
                if of_pair:
                    total += measure(self, vehicle, task)
                else:
                    total += measure(self, task)
        return total / n if n > 0 else 0.0

    return mean


@inner_kernel
def list_tables(problem):
    """Return what a floor shows of a `Problem`."""
    return Tables(
        problem.distance,
        problem.edge_length,
        problem.edge_speed,
        problem.slowdown,
        problem.instance,
        problem.ends,
        problem.record,
        problem.fleet,
        problem.battery,
        problem.station,
        problem.breakdown,
        problem.unit,
        problem.class_weight,
    )


@inner_kernel
def list_rows(state):
    """Return what a floor shows of a `State`."""
    return Rows(state.episode, state.pool, state.waiting_since, state.ready, state.vehicle)


def guard(method: Callable[..., float]) -> Callable[..., float]:
    """Return a method that answers nan, or 0 in whole numbers, where there is no such vehicle, task or site.

    An index out of range would be read from other memory.
    """
    signature = inspect.signature(method)
    names = tuple(signature.parameters)[1:]
    nothing = 0 if signature.return_annotation in (int, "int") else np.nan
    inner = compile_inner(method)

    def of_vehicle(self, vehicle):
        return inner(self, vehicle) if 0 <= vehicle < self.problem.fleet.shape[1] else nothing

    def of_task(self, task):
        return inner(self, task) if 0 <= task < self.problem.record.shape[1] else nothing

    def of_pair(self, vehicle, task):
        if 0 <= vehicle < self.problem.fleet.shape[1] and 0 <= task < self.problem.record.shape[1]:
            return inner(self, vehicle, task)
        return nothing

    def of_sites(self, a, b):
        n = self.problem.distance.shape[1]
        return inner(self, a, b) if 0 <= a < n and 0 <= b < n else nothing

    def of_mean(self, what, vehicle):
        return inner(self, what, vehicle) if 0 <= vehicle < self.problem.fleet.shape[1] else nothing

    kinds: dict[tuple[str, ...], Callable[..., float]] = {
        ("vehicle",): of_vehicle,
        ("task",): of_task,
        ("vehicle", "task"): of_pair,
        ("a", "b"): of_sites,
        ("what", "vehicle"): of_mean,
    }
    return kinds.get(names, method)


def _find_mean(floor, what, vehicle):
    if not hasattr(what, "literal_value"):
        raise TypeError("mean: read a variable; expected a name in quotes, such as 'due'")
    measure, of_pair = find_measure(what.literal_value)
    return make_mean(compile_inner(measure), of_pair)


def _find_guarded_mean(floor, what, vehicle):
    return guard(_find_mean(floor, what, vehicle))


METHODS = {
    name: method
    for name, method in vars(Floor).items()
    if inspect.isfunction(method) and method.__module__ == __name__ and name != "mean"
}

with_methods = add_methods(
    Floor,
    {name: lambda *_, own=method, **__: own for name, method in METHODS.items()}
    | {"mean": _find_mean},
    _find_mean,
)
"""Of a floor in a compiled function: the floor with its methods."""

with_guards = add_methods(
    Floor,
    {name: lambda *_, own=method, **__: guard(own) for name, method in METHODS.items()}
    | {"mean": _find_guarded_mean},
    _find_guarded_mean,
)
"""As `with_methods`, for functions of users, who may ask for what is not there."""
