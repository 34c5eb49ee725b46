"""Instances stacked into the arrays that kernels read; limits on random breakdowns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state
from acerl_np.kernels.core.rounding import measure_metres
from acerl_np.kernels.core.state import NEVER, Problem
from acerl_np.kernels.dispatching.observation import N_TASK_FEATURES, N_VEHICLE_FEATURES
from acerl_np.kernels.episode.chains import plan_arrivals
from acerl_np.problem import choices, interface
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_HORIZON, MAX_TABLE_BYTES, MAX_TASK_SLOTS, MAX_VEHICLES
from acerl_np.problem.parts import BATTERY, HANDLED_AT
from acerl_np.problem.servable import check_tries, find_last_tick
from acerl_np.problem.spots import stack_spots
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field

NO_TRAFFIC = {
    "adjacency": np.zeros((0, 0, state.SPOT_NEIGHBOURS), np.int64),
    "block_reservation": np.zeros((0, 0, 0, 0, 2), np.int64),
    "block_member": np.zeros((0, 0, 0, 2), np.int64),
    "time_bound": np.zeros((0, 0, 0)),
    "auxiliary": state.NO_AUXILIARY,
}
"""In the place of what `stack_spots` returns where no vehicles meet."""

HORIZON = Field(float, 0, MAX_HORIZON, optional=True, expected=f"seconds from 0 to {MAX_HORIZON:g}")


def count_features(task_slots: int, n_vehicles: int) -> int:
    """Return the length of an observation."""
    return N_TASK_FEATURES * task_slots + n_vehicles * (N_VEHICLE_FEATURES + task_slots)


def count_actions(n_vehicles: int, rules: Sequence[str] = choices.PAPER_RULES) -> int:
    """Return the number of actions, legal or not."""
    return n_vehicles * len(rules)


def build_problem(
    instances: Sequence[Instance],
    *,
    scaling: ArrayLike | None = None,
    task_slots: int | None = None,
    n_vehicles: int | None = None,
    horizon: float | None = None,
    slots: interface.Slots = interface.POOL,
    goal: Goal = PAPER,
) -> Problem:
    """Stack instances, also of different floors and sizes, into kernel tables.

    `scaling` are feature constants, by default `find_scaling(instances)`. Sizes of the observation are by
    default the largest among the layouts, and as many slots as tasks have one of their own. `horizon`, s, cut
    to whole ones, is when an episode is stopped, by default never; where vehicles break down at random,
    `find_last_tick` says when. `goal` says what an outcome's value and cost are. A `RecordError` refuses
    tasks that may be impossible to reach: no episode of such a record need ever end.
    """
    if len(instances) == 0:
        raise InputError("no instances; expected at least one")
    HORIZON.read("horizon", horizon, InputError)
    largest = max(len(instance.layout.vehicles) for instance in instances)
    Field(int, 1, MAX_TASK_SLOTS, optional=True).read("task_slots", task_slots, InputError)
    Field(int, largest, MAX_VEHICLES, optional=True).read("n_vehicles", n_vehicles, InputError)
    for instance in instances:
        _ = instance.is_reachable
        if instance.layout.has_random_breakdowns:
            check_tries(instance)
    # After the rows of the records, one for each change of what is closed.
    rows, stages = [*instances], _list_stages(instances)
    rows += [stage for _, _, stage in stages]
    floors = _list_floors([instance.layout for instance in rows])
    fleet = max(largest, int(n_vehicles or 1))
    n_tasks = max(instance.n_tasks for instance in instances)
    vehicles = [vehicle for instance in instances for vehicle in instance.layout.vehicles]
    n_breakdowns = max(1, *(len(vehicle.breakdowns) for vehicle in vehicles))
    _check_size(floors, len(rows), n_tasks, fleet, n_breakdowns)
    scaling = (
        interface.find_scaling(instances) if scaling is None else interface.check_scaling(scaling)
    )
    if task_slots is None:
        task_slots = max(len(slots.ids), *(layout.task_slots for layout in floors.layouts))
    n_stations = max(len(_list_stations(instance.layout)) for instance in instances)
    machines = [len(item.layout.machines) for item in instances if not item.is_plain]
    n_machines = max(machines, default=-1)
    room = _allocate_rows(len(rows), n_tasks, fleet, n_breakdowns, n_stations, n_machines)
    problem = _stack_layouts(floors, room, scaling, task_slots, goal)
    if horizon is not None:
        problem.instance["horizon"] = int(horizon)
    _link_stages(problem, stages)
    for i, instance in enumerate(rows):
        _fill_instance(problem, i, instance, floors.rows)
        if instance.layout.has_random_breakdowns:
            own = instances[problem.instance["record"][i]]
            problem.instance["horizon"][i] = find_last_tick(own, horizon)
    problem = _mark_auxiliary(problem)
    return interface.place_tasks(problem, rows, slots) if slots.ids else problem


def count_records(problem: Problem) -> int:
    """Return how many rows of the tables are records as they begin; those after are stages of these."""
    return len(problem.instance) - int((problem.instance["changes_at"] < NEVER).sum())


def _list_stages(instances: Sequence[Instance]) -> list[tuple[int, int, Instance]]:
    """Return of each change of what is closed the record, the tick, and the record on the floor from then."""
    found, floors = [], dict[tuple[int, tuple[tuple[str, str], ...]], Layout]()
    for i, instance in enumerate(instances):
        for tick, closed in instance.layout.list_stages():
            key = id(instance.layout), closed
            if key not in floors:
                floors[key] = instance.layout.with_closed(closed)
            found.append((i, tick, replace(instance, layout=floors[key])))
    return found


def _link_stages(problem: Problem, stages: Sequence[tuple[int, int, Instance]]) -> None:
    """Write which row stands in the place of another from a tick on."""
    first = len(problem.instance) - len(stages)
    instance, last = problem.instance, dict[int, int]()
    instance["record"][:first] = range(first)
    for row, (i, tick, _) in enumerate(stages, first):
        instance["changes_at"][last.get(i, i)] = tick
        instance["becomes"][last.get(i, i)], instance["record"][row], last[i] = row, i, row


class _Floors(NamedTuple):
    """Different floors, which of them each layout has, and the rows of `Problem.slowdown`.

    A row is by floor and speed, -1 where no limit matters. Other breakdowns and fleets share their floor.
    """

    layouts: list[Layout]
    layout_of: list[int]
    rows: dict[tuple[int, float], int]
    n_sites: int
    have_traffic: bool
    have_limits: bool


def _share_floor(a: Layout, b: Layout) -> bool:
    # Shared routes are but a hint, which files and other processes do not keep.
    speeds = [layout.quickest_routes and max(v.speed for v in layout.vehicles) for layout in (a, b)]
    names = ("sites", "edges", "named_routes", "truncate_distances", "blocks", "closed")
    equal = speeds[0] == speeds[1] and all(getattr(a, name) == getattr(b, name) for name in names)
    return (a.routes is b.routes and a.sites == b.sites) or equal


def _list_floors(own: Sequence[Layout]) -> _Floors:
    layouts: list[Layout] = []
    layout_of = []
    for layout in own:
        same = (k for k, other in enumerate(layouts) if _share_floor(layout, other))
        k = next(same, len(layouts))
        layout_of.append(k)
        if k == len(layouts):
            layouts.append(layout)
    rows: dict[tuple[int, float], int] = {}
    count = 0
    different = {id(layout): (layout, k) for layout, k in zip(own, layout_of, strict=True)}
    for layout, k in different.values():
        for speed in sorted({vehicle.speed for vehicle in layout.vehicles}):
            if (k, speed) not in rows:
                matters = layout.open_all().routes.find_slowdown(speed) is not None
                rows[k, speed] = count if matters else -1
                count += matters
    have_traffic = any(layout.traffic is not None for layout in layouts)
    have_limits = any(layout.open_all().routes.edge_speed is not None for layout in layouts)
    n_sites = max(len(layout.sites) for layout in layouts)
    return _Floors(layouts, layout_of, rows, n_sites, have_traffic, have_limits)


def _check_size(floors: _Floors, n: int, n_tasks: int, fleet: int, n_breakdowns: int) -> None:
    n_sites, n_layouts = floors.n_sites, len(floors.layouts)
    tables = (24 + 8 * floors.have_limits + 8 * floors.have_traffic) * n_layouts + 8 * (
        1 + max(floors.rows.values())
    )
    needed = tables * n_sites**2 + n * (56 * n_tasks + fleet * (44 + 16 * n_breakdowns))
    if needed > MAX_TABLE_BYTES:
        raise InputError(
            f"{n} instances on {n_layouts} layouts of up to {n_sites} sites need "
            f"{needed / 2**30:.1f} GiB; expected at most {MAX_TABLE_BYTES / 2**30:.0f}"
        )


def _allocate_rows(
    n: int, n_tasks: int, fleet: int, n_breakdowns: int, n_stations: int = 0, n_machines: int = -1
) -> dict[str, np.ndarray]:
    """Return room for instances by the names of `Problem`, with no task in it yet.

    Without chained ones `n_machines` is -1.
    """
    n_jobs = n_tasks if n_machines >= 0 else 0
    room: dict[str, np.ndarray] = {
        "instance": np.zeros(n, state.INSTANCE),
        "ends": np.zeros((n, n_tasks), state.ENDS),
        "record": np.zeros((n, n_tasks), state.RECORD),
        "arrival_tick": np.full((n, n_tasks), NEVER),
        "chain": np.zeros((n, n_jobs), state.CHAIN),
        "lead": np.zeros((n, n_jobs), state.LEAD),
        "servers": np.zeros((n, max(0, n_machines)), np.int64),
        "fleet": np.zeros((n, fleet), state.FLEET),
        "battery": np.zeros((n, fleet), state.BATTERY),
        "station": np.zeros((n, n_stations), state.STATION),
        "start_site": np.zeros((n, fleet), np.int64),
        "breakdown": np.zeros((n, fleet, n_breakdowns), state.BREAKDOWN),
        "scaling": np.zeros((n, state.N_SCALING_FIELDS)),
        "unit": np.ones(n, state.UNIT),
    }
    for name in ("park_after", "horizon", "changes_at"):
        room["instance"][name] = NEVER
    room["instance"]["max_changes"] = -1
    room["chain"]["machine"] = room["chain"]["after"] = -1
    room["breakdown"]["tick"] = NEVER
    room["fleet"]["speed"] = 1.0
    room["fleet"]["slowdown"] = -1.0
    return room


def _stack_layouts(
    floors: _Floors,
    room: Mapping[str, np.ndarray],
    scaling: np.ndarray,
    task_slots: int,
    goal: Goal,
) -> Problem:
    """Return tables that hold the layouts, beside the room for instances on them."""
    layouts, rows, n_sites = floors.layouts, floors.rows, floors.n_sites
    n_layouts, n_slow = len(layouts), 1 + max(rows.values())
    n_limited = n_layouts if floors.have_limits else 0
    named = [route[1:] for layout in layouts for route in layout.routes.explicit.values()]
    spots = NO_TRAFFIC
    if floors.have_traffic:
        fastest = [max(v for floor, v in rows if floor == k) for k in range(n_layouts)]
        spots = stack_spots(layouts, fastest, room["start_site"].shape[1])
    problem = Problem(
        distance=np.full((n_layouts, n_sites, n_sites), np.inf),
        edge_length=np.full((n_layouts, n_sites, n_sites), np.inf),
        edge_speed=np.full((n_limited, *(n_sites if n_limited else 0,) * 2), np.inf),
        slowdown=np.zeros((n_slow, *(n_sites if n_slow else 0,) * 2)),
        way=np.zeros((n_layouts, n_sites, n_sites), state.WAY),
        route_sites=np.array([site for route in named for site in route] or [-1], np.int64),
        goal=goal.make_table(),
        class_weight=goal.make_class_weights(),
        **spots,
        **room,
    )
    problem.way["named_route"] = -1
    problem.instance["layout"] = floors.layout_of
    problem.instance["task_slots"] = task_slots
    problem.scaling[:] = scaling
    position = 0
    for k, layout in enumerate(layouts):
        size = len(layout.sites)
        problem.distance[k, :size, :size] = layout.routes.distance
        edges = layout.open_all().routes  # who is on one that is closed finishes it
        problem.edge_length[k, :size, :size] = edges.edge_length
        if edges.edge_speed is not None:
            problem.edge_speed[k, :size, :size] = edges.edge_speed
        problem.way["next_site"][k, :size, :size] = layout.routes.next_site
        for ends, route in layout.routes.explicit.items():
            problem.way["named_route"][k, *ends] = position
            position += len(route) - 1
    for (k, speed), row in rows.items():
        if row >= 0:
            size = len(layouts[k].sites)
            slowdown = layouts[k].routes.find_slowdown(speed)
            problem.slowdown[row, :size, :size] = 0.0 if slowdown is None else slowdown
    return problem


def allocate_variants(
    problem: Problem, n: int, n_tasks: int | None = None, n_breakdowns: int | None = None
) -> Problem:
    """Return tables of the same layouts with room for `n` other instances, to be filled by a kernel.

    The most tasks, and breakdowns of a vehicle, are by default as in `problem`.
    """
    tasks = n_tasks or problem.record.shape[1]
    most = n_breakdowns or problem.breakdown.shape[2]
    n_machines = problem.servers.shape[1] if problem.chain.shape[1] else -1
    sizes = problem.fleet.shape[1], most, problem.station.shape[1], n_machines
    room = _allocate_rows(n, tasks, *sizes)
    return problem._replace(**room)


def empty_problem(problem: Problem, layouts: Sequence[Layout]) -> Problem:
    """Return tables without any task; in each row the breakdowns that its layout lists."""
    listed = [len(vehicle.breakdowns) for layout in layouts for vehicle in layout.vehicles]
    shape = (len(layouts), problem.fleet.shape[1], max(1, *listed))
    breakdown = np.full(shape, NEVER, state.BREAKDOWN)
    for i, layout in enumerate(layouts):
        _fill_breakdowns(breakdown[i], layout)
    instance = problem.instance[: len(layouts)].copy()
    instance["n_tasks"] = 0
    # One row of tasks, which nothing reads, is enough.
    room = {"ends": problem.ends[:, :1].copy(), "record": problem.record[:, :1].copy()}
    return problem._replace(**room, instance=instance, breakdown=breakdown)


def build_live_problem(
    layout: Layout,
    n_tasks: int,
    *,
    scaling: np.ndarray,
    task_slots: int | None = None,
    n_vehicles: int | None = None,
    chained: bool = False,
) -> Problem:
    """Return tables of one floor and its fleet, without breakdowns, with room for tasks as they come.

    With `chained` they may follow others, and each server of the layout's machines has a row more, the first.
    """
    layout = layout.with_breakdowns({}).with_random_breakdowns(None)
    floors = _list_floors([layout])
    n_stations = len(_list_stations(layout))
    fleet = max(n_vehicles or 1, len(layout.vehicles))
    servers = [machine.servers for machine in layout.machines] if chained else []
    n_machines, n_servers = len(servers) if chained else -1, sum(servers)
    n_tasks += n_servers
    room = _allocate_rows(1, n_tasks, fleet, 1, n_stations, n_machines)
    problem = _stack_layouts(floors, room, scaling, task_slots or layout.task_slots, PAPER)
    _fill_fleet(problem, 0, layout, floors.rows)
    if chained:
        problem.instance["chained"][0] = True
        problem.servers[0] = servers
        problem.chain["machine"][0, :n_servers] = np.repeat(range(n_machines), servers)
    return _mark_auxiliary(problem, layout.routes.lacks_ways)


def _fill_instance(
    problem: Problem, i: int, instance: Instance, rows: Mapping[tuple[int, float], int]
) -> None:
    n = instance.n_tasks
    problem.instance["n_tasks"][i] = n
    problem.instance["has_priorities"][i] = bool(instance.priority.any())
    problem.ends["pickup"][i, :n] = instance.pickup
    problem.ends["delivery"][i, :n] = instance.delivery
    loaded = instance.layout.routes.distance[instance.pickup, instance.delivery]
    for column, values in {
        "arrival": instance.arrival,
        "expiry": instance.expiry,
        "handling": instance.handling_time,
        "demand": instance.demand,
        "priority": instance.priority,
        "loaded": measure_metres(loaded, instance.layout.truncate_distances),
    }.items():
        problem.record[column][i, :n] = values
    problem.arrival_tick[i, :n] = np.ceil(instance.arrival)
    if not instance.is_plain:
        _fill_chains(problem, i, instance)
    _fill_fleet(problem, i, instance.layout, rows)


def _fill_chains(problem: Problem, i: int, instance: Instance) -> None:
    n, layout = instance.n_tasks, instance.layout
    problem.instance["chained"][i] = True
    problem.servers[i, : len(layout.machines)] = [machine.servers for machine in layout.machines]
    machine_at = {layout.site_index[item.site]: k for k, item in enumerate(layout.machines)}
    chain, lead = problem.chain[i], problem.lead[i]
    chain["after"][:n] = instance.after
    chain["processing"][:n] = np.ceil(instance.processing)
    for task in np.flatnonzero(instance.processing > 0.0):
        chain["machine"][task] = machine_at[int(instance.delivery[task])]
    lead["announced"][:n] = instance.announced
    lead["work_left"][:n] = _find_work_left(instance)
    plan_arrivals(problem, i, 0)


def _find_work_left(instance: Instance) -> np.ndarray:
    """Return what is left of each chain after the delivery of each task, s: processing and the longest rest.

    Ways are driven at the fleet's mean speed; those to a pickup are left out.
    """
    layout = instance.layout
    metres = layout.routes.distance[instance.pickup, instance.delivery]
    own = metres / layout.mean_speed + instance.handling_time
    left = instance.processing.copy()
    for k in range(instance.n_tasks - 1, -1, -1):
        before = instance.after[k]
        if before >= 0:  # which stands before it
            left[before] = max(left[before], instance.processing[before] + own[k] + left[k])
    return left


def _fill_fleet(
    problem: Problem, i: int, layout: Layout, rows: Mapping[tuple[int, float], int]
) -> None:
    place = int(problem.instance["layout"][i])
    problem.instance["truncates"][i] = layout.truncate_distances
    problem.instance["quickest"][i] = layout.quickest_routes
    problem.instance["n_vehicles"][i] = len(layout.vehicles)
    problem.instance["lacks_ways"][i] = layout.routes.lacks_ways
    # A floor of one site, or a fleet of one place, has no distances to measure in.
    metres = layout.routes.mean_distance or 1.0
    problem.unit["metres"][i] = metres
    problem.unit["seconds"][i] = metres / layout.mean_speed
    for v, vehicle in enumerate(layout.vehicles):
        fleet, model = problem.fleet[i, v], vehicle.random_breakdowns
        fleet["speed"] = vehicle.speed
        fleet["capacity"] = vehicle.capacity
        fleet["slowdown"] = rows[place, vehicle.speed]
        if model is not None:
            fleet["mean_uptime"] = model.mean_time_between_failures
            fleet["mean_repair"] = model.mean_time_to_repair
        problem.start_site[i, v] = layout.site_index[vehicle.start]
    _fill_breakdowns(problem.breakdown[i], layout)
    _fill_auxiliary(problem, i, layout)


def _list_stations(layout: Layout) -> list[tuple[int, int, int]]:
    """Return the chargers, then the parking places by their sites, as `Problem.station` has them."""
    index = layout.site_index
    chargers = [(index[item.site], item.slots, 1) for item in layout.chargers]
    places = layout.parking.places if layout.parking else ()
    return chargers + sorted((index[item.site], item.places, 0) for item in places)


def _fill_auxiliary(problem: Problem, i: int, layout: Layout) -> None:
    stations = _list_stations(layout)
    problem.station[i, : len(stations)] = np.array(stations, state.STATION)
    for v, battery in enumerate(layout.batteries):
        if battery is not None:
            for name in BATTERY:
                problem.battery[name][i, v] = getattr(battery, name)
            rate, longest = 2 * battery.empty + battery.loaded, layout.longest_ways[v]
            used = rate * longest if longest < math.inf else math.inf
            problem.battery["plenty"][i, v] = min(used, state.NEVER)
    instance = problem.instance[i]
    if layout.parking is not None:
        instance["park_after"] = layout.parking.after
    if layout.commitment == "pickup":
        instance["max_changes"] = layout.max_changes
    instance["auxiliary"] = layout.has_auxiliary
    instance["loads_stay"] = layout.loads == "stay"
    if layout.traffic is not None:
        instance["headway"] = layout.traffic.headway
        instance["lanes_apart"] = layout.traffic.lanes == "apart"
        instance["handling_at"] = HANDLED_AT.index(layout.traffic.handling_at)
        instance["reserve"] = round(100.0 * layout.traffic.reserve)


def set_commitment(problem: Problem, commitment: str, max_changes: int) -> Problem:
    """Return tables in which tasks may change hands as `Layout.with_commitment` says."""
    instance, is_late = problem.instance.copy(), commitment == "pickup"
    instance["max_changes"] = max_changes if is_late else -1
    instance["auxiliary"] |= is_late
    return _mark_auxiliary(problem._replace(instance=instance))


def _mark_auxiliary(problem: Problem, lacks_ways: bool = False) -> Problem:
    if problem.adjacency.shape[0]:
        return problem
    some = lacks_ways or (problem.instance["chained"] | problem.instance["auxiliary"]).any()
    some |= (problem.instance["changes_at"] < NEVER).any()
    return problem._replace(auxiliary=state.AUXILIARY if some else state.NO_AUXILIARY)


def _fill_breakdowns(breakdown: np.ndarray, layout: Layout) -> None:
    """Write the breakdowns that a layout lists, ndarray(BREAKDOWN, (V, K))."""
    for v, vehicle in enumerate(layout.vehicles):
        events = sorted(vehicle.breakdowns, key=lambda item: item.time)
        for k, event in enumerate(events):
            breakdown["tick"][v, k] = np.ceil(event.time)
            breakdown["repair_ticks"][v, k] = np.ceil(event.repair_time)
