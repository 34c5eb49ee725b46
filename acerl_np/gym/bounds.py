"""Bounds of what an environment shows and pays: of tasks' durations, of episodes, of observations."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.deciding.observation import N_TASK_FEATURES, N_VEHICLE_FEATURES
from acerl_np.kernels.ground import state as S
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.simulation.simulator import Simulator

ROUNDING = 1e-6
"""s, what rounding may add to a duration; a tick is rounded by far less."""


def bound_durations(instance: Instance) -> np.ndarray:
    """Return how long each task takes at most, from its assignment to its finish.

    It is served by the slowest of the vehicles that may carry it, from the farthest site; a vehicle that
    broke down in mid-edge drives the longest edge before. In whole seconds, at least one: float64 (n_tasks,).
    """
    layout, routes = instance.layout, instance.layout.routes
    lengths = routes.edge_length[np.isfinite(routes.edge_length)]
    halts = layout.has_random_breakdowns or any(vehicle.breakdowns for vehicle in layout.vehicles)
    # On an errand, or called back, it drives on to its next site.
    halts |= layout.has_errands
    least = np.inf if routes.edge_speed is None else float(routes.edge_speed.min(initial=np.inf))
    longest = np.zeros(instance.n_tasks)
    for speed, capacity in sorted({(item.speed, item.capacity) for item in layout.vehicles}):
        ways = routes.find_time(speed)
        farthest = np.where(np.isfinite(ways), ways, 0.0).max(axis=0)
        own = farthest[instance.pickup] + ways[instance.pickup, instance.delivery]
        if halts:
            own += lengths.max(initial=0.0) / min(speed, least)
        able = (capacity == 0.0) | (instance.demand <= capacity)
        longest = np.where(able, np.maximum(longest, own), longest)
    return np.asarray(np.maximum(1.0, np.ceil(longest + instance.handling_time + ROUNDING)))


def bound_time(
    instance: Instance, durations: np.ndarray, horizon: float, may_wait: bool = False
) -> float:
    """Return when an episode is over at the latest, whatever is decided, s.

    After the last arrival, and the last breakdown if decisions may wait for it, some vehicle works, or all
    that could are broken or charge. So an episode takes at most the tasks one after the other, and for each
    breakdown its repair and a task done in vain; a task that may change hands as often again, and charging
    before each. Where vehicles break down at random, the horizon ends it.
    """
    layout = instance.layout
    if layout.has_random_breakdowns:
        return horizon
    breakdowns = [item for vehicle in layout.vehicles for item in vehicle.breakdowns]
    repairs = [np.ceil(item.repair_time) + 2.0 + durations.max() for item in breakdowns]
    times = 1.0 + (layout.max_changes if layout.commitment == "pickup" else 0.0)
    last = max([instance.arrival.max(), *(item.time for item in breakdowns if may_wait)])
    pauses = (len(repairs) + times * instance.n_tasks) * _bound_charging(layout)
    latest = np.ceil(last) + times * durations.sum() + sum(repairs) + pauses
    return float(min(latest, horizon))


def _bound_charging(layout: Layout) -> float:
    """Return how long no vehicle may serve a task at most, as all must charge, s.

    Each runs empty, is towed, drives to a charger and waits there until all others are full.
    """
    total = 0.0
    for vehicle, battery in zip(layout.vehicles, layout.batteries, strict=True):
        if battery is not None:
            ways = layout.routes.find_time(vehicle.speed)
            total += 2.0 * (np.where(np.isfinite(ways), ways, 0.0).max() + battery.tow + 3.0)
            total += battery.full / battery.charge
    return total


def bound_observations(
    simulator: Simulator, durations: list[np.ndarray], may_wait: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each feature, in any episode of the simulator's pool.

    Zero is within: what is not there is seen as 0. A feature that is always 0 has the bounds 0 and 1, so
    that every range can be rescaled. `durations` are those of `bound_durations`, for each instance;
    `may_wait` says whether decisions may wait.
    """
    low, high = np.zeros(simulator.n_features), np.zeros(simulator.n_features)
    for i, instance in enumerate(simulator.pool):
        horizon = float(simulator.problem.instance[i, S.INSTANCE_HORIZON])
        _widen(low, high, simulator, i, bound_time(instance, durations[i], horizon, may_wait))
    # Outwards by a rounding of the kernels' float32.
    narrow = np.nextafter(low.astype(np.float32), np.float32(-np.inf))
    wide = np.nextafter(high.astype(np.float32), np.float32(np.inf))
    narrow[low == 0.0], wide[high == 0.0] = 0.0, 0.0
    wide[narrow == wide] = 1.0
    return narrow, wide


def _widen(low: np.ndarray, high: np.ndarray, simulator: Simulator, i: int, latest: float) -> None:
    """Widen bounds of features by what is seen on instance i until `latest`, s."""
    problem, instance = simulator.problem, simulator.pool[i]
    slots = int(problem.instance[i, S.INSTANCE_TASK_SLOTS])
    scale = problem.scaling[i]
    record = problem.record[i, : instance.n_tasks]
    # Any task may be seen in any slot, or each in its own.
    places, tasks = np.arange(min(slots, instance.n_tasks)), np.arange(instance.n_tasks)[:, None]
    if simulator.slots == "task":
        own = record[:, S.RECORD_SLOT].astype(np.int64) - 1
        tasks = np.flatnonzero(own < slots)[None]
        places = own[tasks[0]]

    def extend(features: np.ndarray | int, values: np.ndarray) -> None:
        low[features] = np.minimum(low[features], values.min(axis=0))
        high[features] = np.maximum(high[features], values.max(axis=0))

    for k, values, mid, half in (
        (0, record[tasks, S.RECORD_LOADED], S.SCALING_DISTANCE_MID, S.SCALING_DISTANCE_HALF),
        (1, np.array([[-ROUNDING], [latest]]), S.SCALING_WAITING_MID, S.SCALING_WAITING_HALF),
        (2, record[tasks, S.RECORD_EXPIRY], S.SCALING_EXPIRY_MID, S.SCALING_EXPIRY_HALF),
        (3, record[tasks, S.RECORD_DEMAND], S.SCALING_DEMAND_MID, S.SCALING_DEMAND_HALF),
    ):
        extend(N_TASK_FEATURES * places + k, (values - scale[mid]) / scale[half])
    totals = np.concatenate([ends[tasks] for ends in _find_totals(instance)])
    ways = (totals - scale[S.SCALING_TOTAL_MID]) / scale[S.SCALING_TOTAL_HALF]
    for v, vehicle in enumerate(instance.layout.vehicles):
        first = N_TASK_FEATURES * slots + v * (N_VEHICLE_FEATURES + slots)
        extend(first, np.array([vehicle.speed / scale[S.SCALING_SPEED]]))
        extend(first + 1, np.array([1.0]))  # broken
        extend(first + 2, np.array([vehicle.capacity / scale[S.SCALING_CAPACITY]]))
        extend(first + N_VEHICLE_FEATURES + places, ways)


def _find_totals(instance: Instance) -> np.ndarray:
    """Return the least and the largest way of a vehicle to each pickup and delivery as it is seen, m."""
    routes, pickup = instance.layout.routes, instance.pickup
    reached = np.isfinite(routes.distance)
    nearest = np.where(reached, routes.distance, np.inf).min(axis=0)[pickup]
    farthest = np.where(reached, routes.distance, 0.0).max(axis=0)[pickup]
    loaded = routes.distance[pickup, instance.delivery]
    ends = np.array([nearest + loaded, farthest + loaded])
    if instance.layout.truncate_distances:
        return np.asarray(np.floor(ends + 0.5e-9))
    return np.asarray(np.floor(ends * 1e9 + 0.5) * 1e-9)
