"""What could not be served: on a floor, in a record, and what a record asks of its fleet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core.rounding import count_ticks, cut_metres
from acerl_np.problem.instance import Instance, find_earliest, find_obstacles
from acerl_np.problem.layout import Layout, find_stations
from acerl_np.problem.limits import MAX_HORIZON
from acerl_np.problem.parts import Battery, Vehicle
from acerl_np.problem.task_rows import count_before
from acerl_np.support.errors import InputError, list_first, list_some

MOST_PARTS = 5
"""Parts of a floor that a line shows."""

LONG_AFTER = 7200.0
"""s from the last arrival to the first due time, from which on due times were perhaps meant otherwise."""

FAST, SLOW = 5.0, 0.05
"""m/s; speeds of vehicles above and of edges below were perhaps meant in another unit."""


def describe_speeds(layout: Layout) -> list[str]:
    """Say which vehicles are faster, and which edges slower, than on most floors."""
    fast = [f"{x.id} at {x.speed:g} m/s" for x in layout.vehicles if x.speed > FAST]
    slow = [
        f"{edge.a} to {edge.b} at {limit:g} m/s"
        for edge in layout.edges
        if (limit := min(edge.max_speed, edge.max_reverse_speed or math.inf)) < SLOW
    ]
    found = (f"vehicles above {FAST:g} m/s", fast), (f"edges below {SLOW:g} m/s", slow)
    return [f"{what}: {len(some)} ({list_first(some)})" for what, some in found if some]


def measure_passing(layout: Layout, records: Sequence[Instance] = ()) -> float:
    """Return the share of tasks of records of a floor whose way leads through another station, nan of none.

    Stations are the sites at which tasks of these records begin or end. Without records it is that of the
    ways between two of the floor's stations.
    """
    if records:
        pickup, delivery = np.concatenate([(x.pickup, x.delivery) for x in records], axis=1)
    else:
        served = np.unique([k for own in find_stations(layout).values() for k in own]).astype(int)
        pickup, delivery = (served[k] for k in np.nonzero(~np.eye(len(served), dtype=bool)))
    station = np.zeros(len(layout.sites))
    station[pickup] = station[delivery] = 1.0
    met = layout.routes.add_along(np.tile(station, (len(station), 1)))[pickup, delivery]
    there = np.isfinite(layout.routes.distance[pickup, delivery])
    return float((met - (pickup != delivery) > 0.0)[there].mean()) if there.any() else math.nan


def describe_parts(layout: Layout) -> str:
    """Return a line on vehicles that cannot leave their starts, a floor in parts and odd speeds, or "".

    Parts are joined by no edge.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sites, fleet, told = layout.sites, layout.vehicles, []
    starts = np.array([layout.site_index[vehicle.start] for vehicle in fleet], np.int64)
    ways = np.isfinite(layout.routes.distance[starts]).sum(axis=1)
    stuck = [fleet[v] for v in np.flatnonzero(ways == 1)] if len(sites) > 1 else []
    if stuck:
        named = list_first([f"{vehicle.id} at {vehicle.start}" for vehicle in stuck])
        told.append(
            f"vehicles that cannot leave their starts: {len(stuck)} of {len(fleet)} ({named})"
        )
    ends = [[layout.site_index[getattr(edge, end)] for edge in layout.edges] for end in "ab"]
    joined = coo_array((np.ones(len(layout.edges)), ends), shape=(len(sites), len(sites)))
    n_parts, part = connected_components(joined, directed=False)
    if n_parts > 1:
        sizes, fleets = np.bincount(part), np.bincount(part[starts], minlength=n_parts)
        groups = [
            (f"{sizes[k]} sites", part == k, int(fleets[k]))
            for k in np.argsort(-sizes, kind="stable")
            if sizes[k] > 1
        ]
        alone = sizes[part] == 1
        if alone.any():
            groups.append((f"without an edge {alone.sum()}", alone, int(alone[starts].sum())))
        shown = [
            f"{text} ({list_first([sites[k].id for k in np.flatnonzero(which)])}; vehicles: {n})"
            for text, which, n in groups
        ]
        told.append(f"the floor falls in {n_parts} parts: {list_some(shown, MOST_PARTS)}")
    return "; ".join(told + describe_speeds(layout))


def describe_traffic(layout: Layout) -> str:
    """Return what is assumed of vehicles that meet, in a line."""
    stations = {k for sites in find_stations(layout).values() for k in sites}
    aside = [site.aside for site in layout.sites]
    n, wide = (
        sum(aside[k] for k in stations),
        sum(x.holds > 1 and not x.aside for x in layout.sites),
    )
    headway = layout.traffic.headway if layout.traffic else 0
    blocks = f", blocks: {len(layout.blocks)}" if layout.blocks else ""
    several = f", hold several vehicles: {wide}" if wide else ""
    near = np.isfinite(layout.routes.distance[layout.starts]).any(axis=0)
    lost = [layout.sites[k].id for k in np.flatnonzero(near & layout.traps)]
    several += f", no task may end at {len(lost)} ({list_some(lost, 3)})" if lost else ""
    return (
        f"vehicles meet: {n} of {len(stations)} sites of stations lie aside, {sum(aside)} of all "
        f"{len(aside)}{several}, headway {headway} s{blocks}"
    )


def find_unreachable(layout: Layout, most: int = 5) -> tuple[int, list[tuple[str, str]]]:
    """Count the ordered pairs of sites without a way, first to second, and return the first `most`."""
    cut = np.isinf(layout.routes.distance)
    first = np.argwhere(cut)[:most]
    return int(cut.sum()), [(layout.sites[a].id, layout.sites[b].id) for a, b in first]


def find_no_return(layout: Layout) -> dict[str, list[str]]:
    """Return, by vehicle, the sites that it can reach and from which it cannot come back to its start."""
    finite = np.isfinite(layout.routes.distance)
    found = {}
    for vehicle in layout.vehicles:
        start = layout.site_index[vehicle.start]
        lost = np.flatnonzero(finite[start] & ~finite[:, start])
        if lost.size:
            found[vehicle.id] = [layout.sites[k].id for k in lost]
    return found


class Load(NamedTuple):
    """What a record asks of a fleet.

    `offered` is the time that the tasks take, by the time that the fleet has; inf without time. Above 1 the
    fleet keeps up only with approaches shorter than the mean. `loaded` is the same without approaches: above
    1 no dispatching keeps up. `span`, s, is from the first arrival to the last due time, `fleet_time`, s,
    what the vehicles have of it in all, repairs taken off. `too_heavy` are the positions of tasks with a
    demand above every capacity, which are not counted. `charging` is the share of its time that a vehicle
    must charge for this work, in the mean, and `slots` how many of chargers that takes; 0 without batteries.
    """

    offered: float
    loaded: float
    span: float
    fleet_time: float
    too_heavy: tuple[int, ...]
    charging: float
    slots: float


def measure_charging(battery: Battery, loaded: float, empty: float) -> float:
    """Return the share of its time that a vehicle must charge, in the long run, for its work.

    It spends the shares `loaded` and `empty` of its time so, c charging, and what is left idle, so

        charge c = loaded_rate loaded + empty_rate empty + idle_rate max(0, 1 - loaded - empty - c).

    Ways to chargers are left out, and what the battery holds at the start: of short records it is less.
    """
    if math.isinf(loaded + empty):
        return math.inf
    used = battery.loaded * loaded + battery.empty * empty
    idle = battery.idle * (1.0 - loaded - empty)
    return max((used + idle) / (battery.charge + battery.idle), used / battery.charge)


def describe_charging(load: Load, layout: Layout) -> list[str]:
    """Say what the load is with charging, how many slots there are, and what is too little."""
    total, slots = load.offered + load.charging, sum(charger.slots for charger in layout.chargers)
    said = [f"offered load {total:.2f} with it", f"of {slots}"]
    if load.slots > slots:
        said.append("the chargers cannot keep up")
    if load.offered <= 1.0 < total:
        said.append("this fleet cannot keep up while it charges")
    return said


def measure_service_time(vehicle: Vehicle, first: float, last: float) -> float:
    """Return how long, s, a vehicle is expected to be in service between two moments, s.

    That is without the repairs after the listed breakdowns, times MTBF / (MTBF + MTTR) where it breaks down
    at random.
    """
    repairs, repaired = 0.0, -math.inf
    for item in sorted(vehicle.breakdowns, key=lambda item: item.time):
        # A breakdown of a vehicle that is broken already is skipped.
        if item.time >= repaired:
            repaired = item.time + item.repair_time
            repairs += max(0.0, min(last, repaired) - max(first, item.time))
    model, service = vehicle.random_breakdowns, last - first - repairs
    if model is None:
        return service
    uptime, repair = model.mean_time_between_failures, model.mean_time_to_repair
    return uptime / (uptime + repair) * service


def measure_load(instance: Instance, vehicles: Sequence[Vehicle] | None = None) -> Load:
    """Compare the time that a record's tasks take with the time that the fleet has.

    The fleet, by default that of the layout, has the time from the first arrival to the last due time,
    repairs taken off: work may go on after the last arrival, so a burst or a single task has a load too. Of
    chains due times count from when a task is ready at the earliest, and what is
    never due counts until it may be done. Ways
    are divided by the sum of the speeds and handling by the number of vehicles, each weighted with its time
    in service.

    A task takes its approach, its way, its handling time, and what speed limits add to both ways. The
    approach is the mean way to its pickup: from the starts for as many tasks as there are vehicles, else
    from the record's deliveries.
    A task that only some vehicles may carry counts against these alone: the load is the largest over
    the groups of tasks that need more than some vehicle's capacity, all tasks being one of them. Tasks
    that nobody may carry, or without a way to the delivery, are left out.
    """
    fleet = instance.layout.vehicles if vehicles is None else vehicles
    capacity = np.array([vehicle.capacity or math.inf for vehicle in fleet])
    first = float(instance.arrival.min())
    due = instance.arrival + instance.expiry
    if not instance.is_plain:
        ways = instance.layout.routes.find_time(max(vehicle.speed for vehicle in fleet))
        quickest = ways[instance.pickup, instance.delivery] + instance.handling_time
        quickest = np.where(np.isinf(quickest), 0.0, quickest)
        least = quickest + instance.processing
        expiry = np.where(np.isinf(instance.expiry), least, instance.expiry)
        due = find_earliest(instance, quickest) + expiry
    span = float(due.max()) - first
    seconds = np.array([measure_service_time(vehicle, first, first + span) for vehicle in fleet])
    reach = seconds * np.array([vehicle.speed for vehicle in fleet])
    mean = float(reach.sum() / seconds.sum()) if seconds.sum() > 0.0 else 1.0
    slowdown = instance.layout.routes.find_slowdown(mean)
    layout = instance.layout
    distance = cut_metres(layout.routes.distance, layout.truncate_distances)
    ride, approach = _average_ways(instance, fleet, distance)
    # What speed limits add, at the fleet's mean speed; like handling it is shared by the vehicles.
    slow_ride = slow_approach = np.zeros_like(ride)
    if slowdown is not None:
        slow_ride, slow_approach = _average_ways(instance, fleet, slowdown)
    too_heavy = instance.demand > capacity.max()
    counted = ~too_heavy & np.isfinite(ride)
    offered = loaded = 0.0
    work = (0.0, 0.0)  # of all tasks: with approaches, without
    for least in (-1.0, *np.unique(capacity)[:-1]):
        group, able = counted & (instance.demand > least), capacity > least
        metres, served = float(reach[able].sum()), float(seconds[able].sum())
        handling = _divide((instance.handling_time + slow_ride)[group], served)
        rides = _divide(ride[group], metres) + handling
        slowed = _divide(slow_approach[group], served)
        driven = _divide((approach + ride)[group], metres)
        work = (driven + handling + slowed, rides) if least < 0.0 else work
        offered, loaded = max(offered, driven + handling + slowed), max(loaded, rides)
    heavy = tuple(np.flatnonzero(too_heavy).tolist())
    batteries = [vehicle.battery or instance.layout.battery for vehicle in fleet]
    slots = sum(measure_charging(x, work[1], work[0] - work[1]) for x in batteries if x)
    return Load(
        offered, loaded, span, float(seconds.sum()), heavy, slots / len(fleet), float(slots)
    )


def _average_ways(
    instance: Instance, fleet: Sequence[Vehicle], table: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a table between sites has for each task's way, and in the mean for its approach.

    Metres are inf without a way (float64, (n_tasks,) each).
    """
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


def _divide(works: np.ndarray, time: float) -> float:
    work = float(works.sum())
    if time > 0.0:
        return work / time
    return math.inf if work > 0.0 else 0.0


class RecordCheck(NamedTuple):
    """Figures of a record: tasks by their ids, times in s.

    `equal_arrivals` arrive at the same moment as another; no vehicle may carry those `too_heavy`; some
    vehicle cannot reach the pickup of those `unreached` from its start or from where it parks or charges, or
    nobody the delivery from the pickup; from the delivery of `dead_ends` some task's pickup cannot be
    reached; those `beyond_battery` no vehicle that may carry them can do with a full battery from every
    charger; `hopeless` ones would be late even if a vehicle waited at the pickup. `n_breakdowns` are listed
    ones that fall before the last arrival. `longest` is the number of tasks of the longest of the `chains`;
    `machines` have, by site, the processing at them in the record's span and per server, 1 for all of it.
    """

    n_tasks: int
    first: float
    last: float
    equal_arrivals: tuple[str, ...]
    too_heavy: tuple[str, ...]
    unreached: tuple[str, ...]
    dead_ends: tuple[str, ...]
    beyond_battery: tuple[str, ...]
    hopeless: tuple[str, ...]
    n_breakdowns: int
    load: Load
    chains: int
    longest: int
    machines: Mapping[str, float]

    @property
    def servable(self) -> bool:
        """Whether all tasks can be served; other commands refuse a record that is not."""
        return not (self.too_heavy or self.unreached or self.dead_ends or self.beyond_battery)


DAY, PAUSE = 86_400.0, 4 * 3600.0
"""s: how long a record may span that has pauses between arrivals, and from which length on they are."""


def list_doubts(instance: Instance) -> list[str]:
    """Say what of a record's times was perhaps meant in another unit, or as several records."""
    first, last = float(instance.arrival.min()), float(instance.arrival.max())
    due = float((instance.arrival + instance.expiry).min()) - last
    found = []
    if 0.0 < last - first <= 1.0:
        found.append(
            f"all tasks arrive within {last - first:g} s; days are read with --date-format excel"
        )
    if LONG_AFTER <= due < math.inf:
        found.append(f"no task is due until {due:g} s after the last arrival; expected seconds")
    pauses = np.diff(np.sort(instance.arrival))
    pauses = pauses[pauses >= PAUSE]
    if last - first >= DAY and len(pauses):
        days, hours = math.ceil((last - first) / DAY), np.median(pauses) / 3600.0
        found.append(
            f"spans {days} days with {len(pauses)} pauses of about {hours:.0f} h; expected a record for each "
            "shift or day (records convert --split day)"
        )
    return found + _list_cut_off(instance)


def _list_cut_off(instance: Instance) -> list[str]:
    """Say of each closure between which sites no way leads while it lasts, that of tasks of then."""
    layout, found = instance.layout, []
    stages = layout.list_stages()
    for (begin, closed), (end, _) in pairwise([*stages, (math.inf, ())]):
        distance = layout.with_closed(closed).routes.distance
        apart = np.isinf(distance[layout.starts][:, instance.pickup]).all(axis=0)
        apart |= np.isinf(distance[instance.pickup, instance.delivery])
        tasks = np.flatnonzero(apart & (instance.arrival < end))
        if len(tasks):
            k = int(tasks[-1])
            sites = [layout.sites[x].id for x in (instance.pickup[k], instance.delivery[k])]
            found.append(
                f"closures from {begin} s to {end:g} s leave {len(tasks)} tasks that arrive before without a "
                f"way, such as '{instance.tasks[k]}' from '{sites[0]}' to '{sites[1]}'; they wait"
            )
    return found


def check_record(instance: Instance) -> RecordCheck:
    """Look through a record, also one that was read with `servable=False`."""
    layout = instance.layout
    pickup, delivery, arrival = instance.pickup, instance.delivery, instance.arrival
    loaded = layout.routes.distance[pickup, delivery]
    found = find_obstacles(instance)
    n = instance.n_tasks
    metres = cut_metres(loaded, layout.truncate_distances)
    quickest = np.full(n, np.inf)
    for vehicle in layout.vehicles:
        able = instance.demand <= (vehicle.capacity or math.inf)
        slowdown = layout.routes.find_slowdown(vehicle.speed)
        ride = metres / vehicle.speed + (0.0 if slowdown is None else slowdown[pickup, delivery])
        quickest = np.where(able, np.minimum(quickest, ride), quickest)
    known = ~found.too_heavy & np.isfinite(loaded)
    # As the simulator counts: from the tick after the arrival, at least one tick, the last one begun.
    seconds = np.where(known, quickest, 0.0) + instance.handling_time
    ready = find_earliest(instance, seconds)
    finish = np.ceil(ready) + np.maximum(1.0, count_ticks(seconds))
    hopeless = known & (finish > ready + instance.expiry + 1e-9)

    first, last = float(arrival.min()), float(arrival.max())
    broken = sum(item.time <= last for vehicle in layout.vehicles for item in vehicle.breakdowns)
    firsts = instance.after < 0
    _, group, sizes = np.unique(arrival[firsts], return_inverse=True, return_counts=True)
    equal = np.zeros(n, bool)
    equal[firsts] = sizes[group] > 1

    def name(which: np.ndarray) -> tuple[str, ...]:
        return tuple(instance.tasks[k] for k in np.flatnonzero(which))

    load = measure_load(instance)
    heavy, unreached, ends = (name(which) for which in found[:3])
    lists = heavy, unreached, ends, name(found.lacks > 0.0), name(hopeless)
    chains = np.unique(instance.root[instance.after >= 0]).size
    longest = int(count_before(instance.after).max()) + 1
    work = np.bincount(delivery, instance.processing, len(layout.sites))
    machines = {
        machine.site: _divide(work[[layout.site_index[machine.site]]], load.span * machine.servers)
        for machine in layout.machines
    }
    return RecordCheck(n, first, last, name(equal), *lists, broken, load, chains, longest, machines)


# How long an episode with random breakdowns lasts, and how often a task may be tried

RANDOM_HORIZON = 100
"""Where vehicles break down at random an episode might never end, so without a horizon it is stopped
after so many times the time that the slowest vehicle alone would need, if it never broke down."""

MAX_TRIES = 1000
"""Most tries that a task may take in the mean until a vehicle has served it without a random failure."""

MAX_CYCLES = 1_000_000
"""Mean times from failure to failure of the vehicle that fails most often, after which an episode is
stopped in any case: a kernel cannot be interrupted."""


def find_last_tick(instance: Instance, horizon: float | None = None) -> int:
    """Return the tick at which an episode with random breakdowns is stopped, at most `MAX_HORIZON`.

    That is `horizon`, s, by default as `RANDOM_HORIZON` says; `MAX_CYCLES` comes first if it is earlier.
    """
    models = [vehicle.random_breakdowns for vehicle in instance.layout.vehicles]
    cycle = min(x.mean_time_between_failures + x.mean_time_to_repair for x in models if x)
    if horizon is None:
        horizon = RANDOM_HORIZON * _measure_alone(instance)
    return int(min(horizon, MAX_CYCLES * cycle, MAX_HORIZON))


def check_tries(instance: Instance) -> None:
    """Refuse random breakdowns so frequent that some task would hardly ever be finished (`InputError`)."""
    routes = instance.layout.routes
    # What every try takes at least: the way to the delivery, without any to the pickup.
    least = np.full(instance.n_tasks, np.inf)
    shown = np.zeros(instance.n_tasks)
    for vehicle in instance.layout.vehicles:
        able = instance.demand <= (vehicle.capacity or np.inf)
        loaded = routes.find_time(vehicle.speed)[instance.pickup, instance.delivery]
        seconds = loaded + instance.handling_time
        model = vehicle.random_breakdowns
        uptime = np.inf if model is None else model.mean_time_between_failures
        failures = np.where(able, seconds / uptime, np.inf)
        shown = np.where(failures < least, seconds, shown)
        least = np.minimum(least, failures)
    worst = int(np.argmax(np.where(np.isfinite(least), least, 0.0)))
    if np.isfinite(least[worst]) and least[worst] > math.log(MAX_TRIES):
        mean = shown[worst] / least[worst]
        raise InputError(
            f"{instance.name}: task '{instance.tasks[worst]}' takes at least {shown[worst]:.0f} s, and "
            f"vehicles break down at random every {mean:g} s in the mean: expected a mean time between "
            f"failures of at least {math.ceil(shown[worst] / math.log(MAX_TRIES))} s"
        )


def _measure_alone(instance: Instance) -> float:
    """Return when the slowest vehicle alone would be done at the latest, s."""
    slowest = min(vehicle.speed for vehicle in instance.layout.vehicles)
    time = instance.layout.routes.find_time(slowest)
    ways = time[:, instance.pickup]
    approach = np.where(np.isfinite(ways), ways, 0.0).max(axis=0)
    work = float((approach + time[instance.pickup, instance.delivery]).sum())
    work += float((instance.handling_time + instance.processing).sum())
    expiry = np.where(np.isinf(instance.expiry), 0.0, instance.expiry)
    due = float((instance.arrival + expiry).max())
    return due + work
