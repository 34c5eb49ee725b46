"""Instances stacked into the arrays that kernels read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.observation import N_TASK_FEATURES, N_VEHICLE_FEATURES
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.state import (
    BREAKDOWN_REPAIR_TICKS,
    BREAKDOWN_TICK,
    ENDS_DELIVERY,
    ENDS_PICKUP,
    FLEET_CAPACITY,
    FLEET_MEAN_REPAIR,
    FLEET_MEAN_UPTIME,
    FLEET_SLOWDOWN,
    FLEET_SPEED,
    INSTANCE_HAS_PRIORITIES,
    INSTANCE_HORIZON,
    INSTANCE_LAYOUT,
    INSTANCE_N_TASKS,
    INSTANCE_N_VEHICLES,
    INSTANCE_QUICKEST,
    INSTANCE_TASK_SLOTS,
    INSTANCE_TRUNCATES,
    N_BREAKDOWN_FIELDS,
    N_ENDS_FIELDS,
    N_FLEET_FIELDS,
    N_INSTANCE_FIELDS,
    N_RECORD_FIELDS,
    N_SCALING_FIELDS,
    N_UNIT_FIELDS,
    N_WAY_FIELDS,
    NEVER,
    RECORD_ARRIVAL,
    RECORD_DEMAND,
    RECORD_EXPIRY,
    RECORD_HANDLING,
    RECORD_LOADED,
    RECORD_PRIORITY,
    UNIT_METRES,
    UNIT_SECONDS,
    UNIT_SLOWDOWN,
    WAY_NAMED_ROUTE,
    WAY_NEXT_SITE,
    Problem,
)
from acerl_np.problem.breakdown_limits import MAX_HORIZON as MAX_HORIZON
from acerl_np.problem.breakdown_limits import check_tries, find_last_tick
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import MAX_TASK_SLOTS, MAX_VEHICLES, Layout
from acerl_np.problem.scaling import check_scaling, find_scaling
from acerl_np.problem.slots import POOL, Slots, place_tasks
from acerl_np.support.errors import InputError, describe
from acerl_np.support.numbers import is_real, is_whole

MAX_TABLE_BYTES = 4 * 2**30
"""Largest sum of the tables of one batch of instances."""


def count_features(task_slots: int, n_vehicles: int) -> int:
    """Return the length of an observation."""
    return N_TASK_FEATURES * task_slots + n_vehicles * (N_VEHICLE_FEATURES + task_slots)


def count_actions(n_vehicles: int) -> int:
    """Return the number of actions, legal or not."""
    return n_vehicles * N_RULES


def build_problem(
    instances: Sequence[Instance],
    *,
    scaling: ArrayLike | None = None,
    task_slots: int | None = None,
    n_vehicles: int | None = None,
    horizon: float | None = None,
    slots: Slots = POOL,
) -> Problem:
    """Stack instances, also of different floors and sizes, into kernel tables.

    Parameters
    ----------
    instances : sequence of Instance
    scaling : array_like of float, (12,), optional
        Feature constants; by default `find_scaling(instances)`.
    task_slots, n_vehicles : int, optional
        Sizes of the observation; by default the largest among the layouts, and as many slots as tasks have
        one of their own; at least as many vehicles as the largest fleet.
    horizon : float, optional
        s, cut to whole ones, after which an episode is stopped, finished or not; by default never.
        Where vehicles break down at random, `breakdown_limits.find_last_tick` says when.
    slots : Slots
        Of the tasks in the observation.

    Returns
    -------
    Problem

    Raises
    ------
    InputError
        If there is no instance, the tables would not fit a machine, or an option is unusable.
    """
    if len(instances) == 0:
        raise InputError("no instances; expected at least one")
    if horizon is not None and (not is_real(horizon) or not 0.0 <= horizon <= MAX_HORIZON):
        raise InputError(
            f"horizon: read {describe(horizon)}; expected seconds from 0 to {MAX_HORIZON:g}"
        )
    largest = max(len(instance.layout.vehicles) for instance in instances)
    for name, size, least, most in (
        ("task_slots", task_slots, 1, MAX_TASK_SLOTS),
        ("n_vehicles", n_vehicles, largest, MAX_VEHICLES),
    ):
        if size is not None and (not is_whole(size) or not least <= size <= most):
            raise InputError(
                f"{name}: read {describe(size)}; expected a whole number from {least} to {most:,}"
            )
    layouts: list[Layout] = []
    layout_of = []
    for instance in instances:
        # Records with breakdowns of their own share their floor's tables.
        routes = instance.layout.routes
        known = next((k for k, layout in enumerate(layouts) if layout.routes is routes), None)
        if known is None:
            known = next((k for k, layout in enumerate(layouts) if layout == instance.layout), None)
        if known is None:
            known = len(layouts)
            layouts.append(instance.layout)
        layout_of.append(known)

    n_layouts = len(layouts)
    n_instances = len(instances)
    n_sites = max(len(layout.sites) for layout in layouts)
    n_tasks = max(instance.n_tasks for instance in instances)
    fleet = max(largest, int(n_vehicles or 1))
    n_breakdowns = max(
        [1]
        + [
            len(vehicle.breakdowns)
            for instance in instances
            for vehicle in instance.layout.vehicles
        ]
    )
    rows = _list_slowdowns(layouts)
    has_limits = any(layout.routes.edge_speed is not None for layout in layouts)
    tables = (32 if has_limits else 24) * n_layouts + 8 * len(rows)
    bytes_needed = tables * n_sites**2 + n_instances * (
        56 * n_tasks + fleet * (44 + 16 * n_breakdowns)
    )
    if bytes_needed > MAX_TABLE_BYTES:
        raise InputError(
            f"{n_instances} instances on {n_layouts} layouts of up to {n_sites} sites need "
            f"{bytes_needed / 2**30:.1f} GiB; expected at most {MAX_TABLE_BYTES / 2**30:.0f}"
        )
    for instance in instances:
        if instance.layout.has_random_breakdowns:
            check_tries(instance)
    scaling = find_scaling(instances) if scaling is None else check_scaling(scaling)

    if task_slots is None:
        task_slots = max(len(slots.ids), *(layout.task_slots for layout in layouts))
    problem = _allocate_problem(
        layouts, layout_of, n_tasks, fleet, n_breakdowns, scaling, task_slots, horizon
    )
    for i, instance in enumerate(instances):
        _fill_instance(problem, i, instance, rows)
        if instance.layout.has_random_breakdowns:
            problem.instance[i, INSTANCE_HORIZON] = find_last_tick(instance, horizon)
    return place_tasks(problem, instances, slots) if slots.ids else problem


def _allocate_problem(
    layouts: Sequence[Layout],
    layout_of: Sequence[int],
    n_tasks: int,
    fleet: int,
    n_breakdowns: int,
    scaling: np.ndarray,
    task_slots: int | None,
    horizon: float | None,
) -> Problem:
    """Return tables that hold the layouts, and no task yet."""
    n_layouts, n_instances = len(layouts), len(layout_of)
    n_sites = max(len(layout.sites) for layout in layouts)
    rows = _list_slowdowns(layouts)
    n_limited = n_layouts if any(x.routes.edge_speed is not None for x in layouts) else 0
    problem = Problem(
        distance=np.full((n_layouts, n_sites, n_sites), np.inf),
        edge_length=np.full((n_layouts, n_sites, n_sites), np.inf),
        edge_speed=np.full((n_limited, *(n_sites if n_limited else 0,) * 2), np.inf),
        slowdown=np.zeros((len(rows), *(n_sites if rows else 0,) * 2)),
        way=np.zeros((n_layouts, n_sites, n_sites, N_WAY_FIELDS), np.int32),
        route_sites=_stack_routes(layouts),
        instance=np.zeros((n_instances, N_INSTANCE_FIELDS), np.int64),
        ends=np.zeros((n_instances, n_tasks, N_ENDS_FIELDS), np.int32),
        record=np.zeros((n_instances, n_tasks, N_RECORD_FIELDS)),
        arrival_tick=np.full((n_instances, n_tasks), NEVER),
        fleet=np.zeros((n_instances, fleet, N_FLEET_FIELDS)),
        start_site=np.zeros((n_instances, fleet), np.int32),
        breakdown=np.zeros((n_instances, fleet, n_breakdowns, N_BREAKDOWN_FIELDS), np.int64),
        scaling=np.tile(np.asarray(scaling, np.float64), (len(layout_of), 1)),
        unit=np.ones((n_instances, N_UNIT_FIELDS)),
    )
    problem.way[..., WAY_NAMED_ROUTE] = -1
    problem.instance[:, INSTANCE_LAYOUT] = layout_of
    problem.instance[:, INSTANCE_TASK_SLOTS] = task_slots or max(
        layout.task_slots for layout in layouts
    )
    problem.instance[:, INSTANCE_HORIZON] = NEVER if horizon is None else int(horizon)
    problem.fleet[..., FLEET_SPEED] = 1.0
    problem.fleet[..., FLEET_SLOWDOWN] = -1.0
    problem.unit[..., UNIT_SLOWDOWN] = -1.0
    problem.breakdown[..., BREAKDOWN_TICK] = NEVER
    position = 0
    for k, layout in enumerate(layouts):
        size = len(layout.sites)
        problem.distance[k, :size, :size] = layout.routes.distance
        problem.edge_length[k, :size, :size] = layout.routes.edge_length
        if layout.routes.edge_speed is not None:
            problem.edge_speed[k, :size, :size] = layout.routes.edge_speed
        problem.way[k, :size, :size, WAY_NEXT_SITE] = layout.routes.next_site
        for ends, route in layout.routes.explicit.items():
            problem.way[k, *ends, WAY_NAMED_ROUTE] = position
            position += len(route) - 1
    for (k, speed), row in rows.items():
        size = len(layouts[k].sites)
        problem.slowdown[row, :size, :size] = layouts[k].routes.find_slowdown(speed)
    return problem


def _list_slowdowns(layouts: Sequence[Layout]) -> dict[tuple[int, float], int]:
    """Return the row of `Problem.slowdown` of each layout and speed for which a limit matters."""
    pairs = [
        (k, speed)
        for k, layout in enumerate(layouts)
        if layout.routes.edge_speed is not None
        for speed in sorted({*(vehicle.speed for vehicle in layout.vehicles), mean_speed(layout)})
        if layout.routes.find_slowdown(speed) is not None
    ]
    return {pair: row for row, pair in enumerate(pairs)}


def mean_speed(layout: Layout) -> float:
    """Return the mean speed of a fleet, m/s."""
    return float(np.mean([vehicle.speed for vehicle in layout.vehicles]))


def allocate_variants(
    problem: Problem, n: int, n_tasks: int | None = None, n_breakdowns: int | None = None
) -> Problem:
    """Return tables of the same layouts with room for other instances, to be filled by a kernel.

    Parameters
    ----------
    problem : Problem
    n : int
        Instances.
    n_tasks, n_breakdowns : int, optional
        Most tasks of one, and most breakdowns of a vehicle; by default as in `problem`.
    """
    tasks = n_tasks or problem.record.shape[1]
    fleet = problem.fleet.shape[1]
    return problem._replace(
        instance=np.zeros((n, N_INSTANCE_FIELDS), np.int64),
        ends=np.zeros((n, tasks, N_ENDS_FIELDS), np.int32),
        record=np.zeros((n, tasks, N_RECORD_FIELDS)),
        arrival_tick=np.full((n, tasks), NEVER),
        fleet=np.zeros((n, fleet, N_FLEET_FIELDS)),
        start_site=np.zeros((n, fleet), np.int32),
        breakdown=np.full(
            (n, fleet, n_breakdowns or problem.breakdown.shape[2], N_BREAKDOWN_FIELDS), NEVER
        ),
        scaling=np.zeros((n, N_SCALING_FIELDS)),
        unit=np.ones((n, N_UNIT_FIELDS)),
    )


def build_live_problem(
    layout: Layout,
    n_tasks: int,
    *,
    scaling: np.ndarray,
    task_slots: int | None = None,
    n_vehicles: int | None = None,
) -> Problem:
    """Return tables of one floor and its fleet with room for `n_tasks` tasks, to be filled as they come.

    Parameters
    ----------
    layout : Layout
    n_tasks : int
    scaling : ndarray(float64, (12,))
        Feature constants.
    task_slots, n_vehicles : int, optional
        Sizes of the observation; by default the layout's.

    Returns
    -------
    Problem
    """
    fleet = max(n_vehicles or 1, len(layout.vehicles))
    problem = _allocate_problem([layout], [0], n_tasks, fleet, 1, scaling, task_slots, None)
    _fill_fleet(problem, 0, layout, _list_slowdowns([layout]), with_breakdowns=False)
    return problem


def _stack_routes(layouts: Sequence[Layout]) -> np.ndarray:
    sites = [
        site
        for layout in layouts
        for route in layout.routes.explicit.values()
        for site in route[1:]
    ]
    return np.array(sites or [-1], np.int32)


def measure_loaded(layout: Layout, metres: np.ndarray) -> np.ndarray:
    """Return distances as rules and observation see them: rounded to 1e-9, or cut to whole metres."""
    if layout.truncate_distances:
        return np.asarray(np.floor(metres + 0.5e-9))
    return np.asarray(np.floor(metres * 1e9 + 0.5) * 1e-9)


def _fill_instance(
    problem: Problem, i: int, instance: Instance, rows: Mapping[tuple[int, float], int]
) -> None:
    layout = instance.layout
    n = instance.n_tasks
    problem.instance[i, INSTANCE_N_TASKS] = n
    problem.ends[i, :n, ENDS_PICKUP] = instance.pickup
    problem.ends[i, :n, ENDS_DELIVERY] = instance.delivery
    problem.record[i, :n, RECORD_ARRIVAL] = instance.arrival
    problem.record[i, :n, RECORD_EXPIRY] = instance.expiry
    problem.record[i, :n, RECORD_HANDLING] = instance.handling_time
    problem.record[i, :n, RECORD_DEMAND] = instance.demand
    problem.record[i, :n, RECORD_PRIORITY] = instance.priority
    problem.instance[i, INSTANCE_HAS_PRIORITIES] = bool(instance.priority.any())
    problem.arrival_tick[i, :n] = np.ceil(instance.arrival).astype(np.int64)
    loaded = layout.routes.distance[instance.pickup, instance.delivery]
    problem.record[i, :n, RECORD_LOADED] = measure_loaded(layout, loaded)
    _fill_fleet(problem, i, layout, rows)


def _fill_fleet(
    problem: Problem,
    i: int,
    layout: Layout,
    rows: Mapping[tuple[int, float], int],
    *,
    with_breakdowns: bool = True,
) -> None:
    place = int(problem.instance[i, INSTANCE_LAYOUT])
    problem.instance[i, INSTANCE_TRUNCATES] = layout.truncate_distances
    problem.instance[i, INSTANCE_QUICKEST] = layout.quickest_routes
    problem.instance[i, INSTANCE_N_VEHICLES] = len(layout.vehicles)
    # A floor of one site, or a fleet of one place, has no distances to measure in.
    metres = layout.routes.mean_distance or 1.0
    speed = mean_speed(layout)
    problem.unit[i, UNIT_METRES] = metres
    problem.unit[i, UNIT_SECONDS] = metres / speed
    problem.unit[i, UNIT_SLOWDOWN] = rows.get((place, speed), -1)
    for v, vehicle in enumerate(layout.vehicles):
        problem.fleet[i, v, FLEET_SPEED] = vehicle.speed
        problem.fleet[i, v, FLEET_CAPACITY] = vehicle.capacity
        problem.fleet[i, v, FLEET_SLOWDOWN] = rows.get((place, vehicle.speed), -1)
        problem.start_site[i, v] = layout.site_index[vehicle.start]
        if not with_breakdowns:
            continue
        if vehicle.random_breakdowns is not None:
            model = vehicle.random_breakdowns
            problem.fleet[i, v, FLEET_MEAN_UPTIME] = model.mean_time_between_failures
            problem.fleet[i, v, FLEET_MEAN_REPAIR] = model.mean_time_to_repair
        events = sorted(vehicle.breakdowns, key=lambda item: item.time)
        for k, event in enumerate(events):
            problem.breakdown[i, v, k, BREAKDOWN_TICK] = int(np.ceil(event.time))
            problem.breakdown[i, v, k, BREAKDOWN_REPAIR_TICKS] = int(np.ceil(event.repair_time))
