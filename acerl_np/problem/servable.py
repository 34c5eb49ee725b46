"""What could not be served: on a floor, in a record, and what a record asks of its fleet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.offered_load import Load, measure_load


def find_unreachable(layout: Layout, most: int = 5) -> tuple[int, list[tuple[str, str]]]:
    """Count the ordered pairs of sites, first to second, without a way along the edges.

    Parameters
    ----------
    layout : Layout
    most : int
        How many pairs are returned: a floor in pieces has millions.

    Returns
    -------
    count : int
    pairs : list of (str, str)
        The first of them.
    """
    cut = np.isinf(layout.routes.distance)
    first = np.flatnonzero(cut.any(axis=1))[:most]
    pairs = [
        (layout.sites[a].id, layout.sites[b].id)
        for a in first
        for b in np.flatnonzero(cut[a])[:most]
    ]
    return int(cut.sum()), pairs[:most]


def find_no_return(layout: Layout) -> dict[str, list[str]]:
    """Return, by vehicle, the sites that it can reach and from which it cannot come back to its start.

    Parameters
    ----------
    layout : Layout
    """
    finite = np.isfinite(layout.routes.distance)
    found = {}
    for vehicle in layout.vehicles:
        start = layout.site_index[vehicle.start]
        lost = np.flatnonzero(finite[start] & ~finite[:, start])
        if lost.size:
            found[vehicle.id] = [layout.sites[k].id for k in lost]
    return found


@dataclass(frozen=True)
class RecordCheck:
    """Figures of a record.

    Attributes
    ----------
    n_tasks : int
    first, last : float, s
        Arrivals.
    equal_arrivals : tuple of str
        Tasks that arrive at the same moment as another.
    too_heavy : tuple of str
        Tasks that no vehicle may carry.
    unreached : tuple of str
        Tasks whose pickup some vehicle cannot reach from its start, or whose delivery cannot be
        reached from the pickup.
    dead_ends : tuple of str
        Tasks from whose delivery some task's pickup cannot be reached.
    hopeless : tuple of str
        Tasks that would be late even if a vehicle waited at the pickup.
    n_breakdowns : int
        Listed breakdowns that fall before the last arrival.
    load : Load
        What the tasks that can be served ask of the fleet.
    """

    n_tasks: int
    first: float
    last: float
    equal_arrivals: tuple[str, ...]
    too_heavy: tuple[str, ...]
    unreached: tuple[str, ...]
    dead_ends: tuple[str, ...]
    hopeless: tuple[str, ...]
    n_breakdowns: int
    load: Load

    @property
    def servable(self) -> bool:
        """Whether all tasks can be served; other commands refuse a record that is not."""
        return not (self.too_heavy or self.unreached or self.dead_ends)


def check_record(instance: Instance) -> RecordCheck:
    """Look through a record, also one that was read with `servable=False`.

    Parameters
    ----------
    instance : Instance

    Returns
    -------
    RecordCheck
    """
    layout = instance.layout
    distance = layout.routes.distance
    pickup, delivery, arrival = instance.pickup, instance.delivery, instance.arrival
    starts = np.array(sorted({layout.site_index[vehicle.start] for vehicle in layout.vehicles}))
    loaded = distance[pickup, delivery]
    unreached = np.isinf(distance[np.ix_(starts, pickup)]).any(axis=0) | np.isinf(loaded)
    ends = np.unique(delivery)
    pickups = np.unique(pickup)
    closed = ends[np.isinf(distance[np.ix_(ends, pickups)]).any(axis=1)]
    dead_ends = np.isin(delivery, closed)

    n = instance.n_tasks
    metres = np.floor(loaded + 0.5e-9) if layout.truncate_distances else loaded
    quickest = np.full(n, np.inf)
    too_heavy = np.ones(n, np.bool_)
    for vehicle in layout.vehicles:
        able = (instance.demand <= vehicle.capacity) | (vehicle.capacity == 0.0)
        slowdown = layout.routes.find_slowdown(vehicle.speed)
        ride = metres / vehicle.speed
        ride = ride if slowdown is None else ride + slowdown[pickup, delivery]
        quickest = np.where(able, np.minimum(quickest, ride), quickest)
        too_heavy &= ~able
    known = ~too_heavy & np.isfinite(loaded)
    # As the simulator counts: from the tick after the arrival, at least one tick, the last one begun.
    seconds = np.where(known, quickest, 0.0) + instance.handling_time
    finish = np.ceil(arrival) + np.maximum(1.0, np.ceil(seconds - 0.5e-9))
    hopeless = known & (finish > arrival + instance.expiry + 1e-9)

    first, last = float(arrival[0]), float(arrival[-1])
    broken = sum(item.time <= last for vehicle in layout.vehicles for item in vehicle.breakdowns)

    def name(which: np.ndarray) -> tuple[str, ...]:
        return tuple(instance.tasks[k] for k in np.flatnonzero(which))

    _, group, sizes = np.unique(arrival, return_inverse=True, return_counts=True)
    return RecordCheck(
        n_tasks=n,
        first=first,
        last=last,
        equal_arrivals=name(sizes[group] > 1),
        too_heavy=name(too_heavy),
        unreached=name(unreached),
        dead_ends=name(dead_ends),
        hopeless=name(hopeless),
        n_breakdowns=broken,
        load=measure_load(instance),
    )
