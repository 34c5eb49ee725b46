"""Offered load: the time that a record's tasks take, by the time that its fleet has for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.parts import Vehicle


@dataclass(frozen=True)
class Load:
    """What a record asks of a fleet.

    Attributes
    ----------
    offered : float
        Time that the tasks take, by the time that the fleet has; inf without time. Above 1 the fleet
        keeps up only with approaches shorter than the mean.
    loaded : float
        The same without approaches. Above 1 no dispatching keeps up.
    span : float, s
        From the first arrival to the last due time.
    fleet_time : float, s
        What the vehicles have of it in all, repairs taken off.
    too_heavy : tuple of int
        Tasks with a demand above every capacity, by position; they are not counted.
    """

    offered: float
    loaded: float
    span: float
    fleet_time: float
    too_heavy: tuple[int, ...]


def measure_service_time(vehicle: Vehicle, first: float, last: float) -> float:
    """Return how long a vehicle is expected to be in service between two moments.

    The only place where the availability of a vehicle enters the load.

    Parameters
    ----------
    vehicle : Vehicle
    first, last : float, s

    Returns
    -------
    float, s
        The time in between without the repairs after the listed breakdowns, times the availability
        MTBF / (MTBF + MTTR) where it breaks down at random.
    """
    repairs, repaired = 0.0, -math.inf
    for item in sorted(vehicle.breakdowns, key=lambda item: item.time):
        # A breakdown of a vehicle that is broken already is skipped.
        if item.time >= repaired:
            repaired = item.time + item.repair_time
            repairs += max(0.0, min(last, repaired) - max(first, item.time))
    model = vehicle.random_breakdowns
    availability = 1.0
    if model is not None:
        uptime, repair = model.mean_time_between_failures, model.mean_time_to_repair
        availability = uptime / (uptime + repair)
    return availability * (last - first - repairs)


def measure_load(instance: Instance, vehicles: Sequence[Vehicle] | None = None) -> Load:
    """Compare the time that a record's tasks take with the time that the fleet has.

    The fleet has the time from the first arrival to the last due time: work may go on after the last
    arrival, so a burst or a single task has a load too, and if there is more work than time some tasks
    must be late. Repairs are taken off, as nobody drives then. Ways are divided by the sum of the
    speeds and handling by the number of vehicles, each weighted with its time in service: so much a
    fleet does that always works.

    A task takes its approach, its way, its handling time, and what speed limits add to both ways. The
    approach is the mean way to its pickup: from the starts for as many tasks as there are vehicles, else
    from the record's deliveries.
    A task that only some vehicles may carry counts against these alone: the load is the largest over
    the groups of tasks that need more than some vehicle's capacity, all tasks being one of them. Tasks
    that nobody may carry, or without a way to the delivery, are left out.

    Parameters
    ----------
    instance : Instance
        Also one that was read with `servable=False`.
    vehicles : sequence of Vehicle, optional
        The fleet; by default that of the instance's layout.

    Returns
    -------
    Load
    """
    fleet = instance.layout.vehicles if vehicles is None else vehicles
    capacity = np.array([vehicle.capacity or math.inf for vehicle in fleet])
    first = float(instance.arrival.min())
    span = float((instance.arrival + instance.expiry).max()) - first
    seconds = np.array([measure_service_time(vehicle, first, first + span) for vehicle in fleet])
    reach = seconds * np.array([vehicle.speed for vehicle in fleet])
    mean = float(reach.sum() / seconds.sum()) if seconds.sum() > 0.0 else 1.0
    slowdown = instance.layout.routes.find_slowdown(mean)
    ride, approach = _measure_ways(instance, fleet)
    # What speed limits add, at the fleet's mean speed; like handling it is shared by the vehicles.
    slow_ride, slow_approach = np.zeros_like(ride), np.zeros_like(ride)
    if slowdown is not None:
        slow_ride, slow_approach = _average_ways(instance, fleet, slowdown)
    too_heavy = instance.demand > capacity.max()
    counted = ~too_heavy & np.isfinite(ride)
    offered = loaded = 0.0
    for least in (-1.0, *np.unique(capacity)[:-1]):
        group, able = counted & (instance.demand > least), capacity > least
        metres = float(reach[able].sum())
        served = float(seconds[able].sum())
        beside = instance.handling_time + slow_ride
        handling = _divide(float(beside[group].sum()), served)
        loaded = max(loaded, _divide(float(ride[group].sum()), metres) + handling)
        slowed = _divide(float(slow_approach[group].sum()), served)
        driven = _divide(float((approach + ride)[group].sum()), metres)
        offered = max(offered, driven + handling + slowed)
    return Load(
        offered=offered,
        loaded=loaded,
        span=span,
        fleet_time=float(seconds.sum()),
        too_heavy=tuple(int(k) for k in np.flatnonzero(too_heavy)),
    )


def _measure_ways(instance: Instance, fleet: Sequence[Vehicle]) -> tuple[np.ndarray, np.ndarray]:
    """Return each task's way and its mean approach, m (float64, (n_tasks,)), inf without a way."""
    distance = instance.layout.routes.distance
    if instance.layout.truncate_distances:
        distance = np.floor(distance + 0.5e-9)
    return _average_ways(instance, fleet, distance)


def _average_ways(
    instance: Instance, fleet: Sequence[Vehicle], table: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a table between sites has for each task's way, and in the mean for its approach."""
    layout = instance.layout
    starts = [layout.site_index[vehicle.start] for vehicle in fleet]
    n = instance.n_tasks
    first = min(n, len(fleet)) / n
    share = np.zeros(len(layout.sites))
    np.add.at(share, starts, first / len(fleet))
    np.add.at(share, instance.delivery, (1.0 - first) / n)
    origins = np.flatnonzero(share)
    pickups, which = np.unique(instance.pickup, return_inverse=True)
    ways = table[np.ix_(origins, pickups)]
    reached = np.isfinite(layout.routes.distance[np.ix_(origins, pickups)])
    weight = np.where(reached, share[origins, None], 0.0)
    total = (np.where(reached, ways, 0.0) * weight).sum(axis=0)
    weights = weight.sum(axis=0)
    approach = np.divide(total, weights, out=np.zeros_like(total), where=weights > 0.0)
    return table[instance.pickup, instance.delivery], approach[which]


def _divide(work: float, time: float) -> float:
    if time > 0.0:
        return work / time
    return math.inf if work > 0.0 else 0.0
