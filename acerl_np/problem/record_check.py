"""What a task record asks of its fleet, and what in it nobody could do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acerl_np.problem.instance import Instance


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
    loaded_time, approach_time : float, s
        Sums over the tasks that can be served: from pickup to delivery with handling, and to the
        pickup from the mean delivery site, both at the mean speed of the vehicles that may carry it.
    fleet_time : float, s
        Vehicles times the time from first to last arrival, without repairs.
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
    loaded_time: float
    approach_time: float
    fleet_time: float

    @property
    def servable(self) -> bool:
        """Whether all tasks can be served; other commands refuse a record that is not."""
        return not (self.too_heavy or self.unreached or self.dead_ends)

    @property
    def load(self) -> float:
        """Offered load: the tasks' time over the fleet's; above 1 the queue grows. nan without time."""
        work = self.loaded_time + self.approach_time
        return work / self.fleet_time if self.fleet_time > 0.0 else float("nan")


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
    ends, counts = np.unique(delivery, return_counts=True)
    pickups = np.unique(pickup)
    closed = ends[np.isinf(distance[np.ix_(ends, pickups)]).any(axis=1)]
    dead_ends = np.isin(delivery, closed)

    n = instance.n_tasks
    speed_sum, carriers, fastest = np.zeros(n), np.zeros(n), np.zeros(n)
    for vehicle in layout.vehicles:
        able = (instance.demand <= vehicle.capacity) | (vehicle.capacity == 0.0)
        speed_sum += able * vehicle.speed
        carriers += able
        fastest = np.maximum(fastest, able * vehicle.speed)
    too_heavy = carriers == 0
    known = ~too_heavy & np.isfinite(loaded)
    loaded = np.where(known, loaded, 0.0)
    metres = np.floor(loaded + 0.5e-9) if layout.truncate_distances else loaded
    # As the simulator counts: from the tick after the arrival, at least one tick, the last one begun.
    seconds = metres / np.where(known, fastest, 1.0) + instance.handling_time
    finish = np.ceil(arrival) + np.maximum(1.0, np.ceil(seconds - 0.5e-9))
    hopeless = known & (finish > arrival + instance.expiry + 1e-9)

    speed = np.where(known, speed_sum / np.maximum(carriers, 1.0), 1.0)
    way = distance[np.ix_(ends, pickup)]
    reached = np.isfinite(way)
    weight = reached * counts[:, None]
    total = (np.where(reached, way, 0.0) * weight).sum(axis=0)
    approach = total / np.maximum(weight.sum(axis=0), 1)

    first, last = float(arrival[0]), float(arrival[-1])
    broken, repairs = 0, 0.0
    for vehicle in layout.vehicles:
        repaired = -np.inf
        for item in sorted(vehicle.breakdowns, key=lambda item: item.time):
            broken += item.time <= last
            # A breakdown of a vehicle that is broken already is skipped.
            if item.time >= repaired:
                repaired = item.time + item.repair_time
                repairs += max(0.0, min(last, repaired) - max(first, item.time))

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
        loaded_time=float((known * (loaded / speed + instance.handling_time)).sum()),
        approach_time=float((known * approach / speed).sum()),
        fleet_time=len(layout.vehicles) * (last - first) - repairs,
    )
