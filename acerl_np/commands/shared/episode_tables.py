"""Tables of what tasks and vehicles did in an episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from acerl_np.problem.fields import show_moment
from acerl_np.support.files import write_atomically
from acerl_np.support.report import render_data

if TYPE_CHECKING:
    from acerl_np.simulation.trace import Trace


def write_tables(
    tasks: str | None, vehicles: str | None, played: Iterable[tuple[str, int, Trace]]
) -> None:
    """Write every task, and every vehicle, of every trial as CSV files, if named.

    `played` are labels, trials' numbers and what happened in them.
    """
    lister = {tasks: list_tasks, vehicles: list_vehicles}
    rows: dict[str, list[dict[str, object]]] = {path: [] for path in lister if path is not None}
    needless = {"changes", "ready_s", "delay_s"}
    for label, trial, trace in played:
        needless -= {"changes"} if trace.instance.layout.commitment == "pickup" else set()
        needless -= set() if trace.instance.is_plain else {"ready_s"}
        needless -= set() if trace.instance.layout.traffic is None else {"delay_s"}
        whose = {"policy": label, "record": trace.instance.name, "trial": trial}
        for path, found in rows.items():
            found += [{**whose, **row} for row in lister[path](trace)]
    for path, found in rows.items():
        shown = [{name: row[name] for name in row if name not in needless} for row in found]
        write_atomically(path, render_data(shown, "csv").encode())


def list_vehicles(trace: Trace) -> Iterator[dict[str, object]]:
    """Give what a vehicle did: tasks delivered, shares of the episode's time, its lowest level, call-backs.

    Shares are those loaded, driving without a load, in a charger's queue, charging and broken down; the level
    is a share of the capacity, empty without a battery.
    """
    from acerl_np.kernels.core.state import CHARGING, QUEUED

    layout, end = trace.instance.layout, max(trace.end, 1)
    for v, vehicle in enumerate(layout.vehicles):
        trips = [trip for trip in trace.trips if trip.vehicle == v]
        pickups = [trip.end if trip.pickup is None else trip.pickup for trip in trips]
        loaded = sum(trip.end - at for trip, at in zip(trips, pickups, strict=True))
        empty = sum(at - trip.start - trip.pause for trip, at in zip(trips, pickups, strict=True))
        spent: Counter[int] = Counter()
        for own in trace.auxiliary_moves:
            spent[own.status] += (own.end - own.start) * (own.vehicle == v)
        shares = {"loaded": loaded, "empty": empty, "queue": spent.pop(QUEUED, 0)}
        shares["charging"] = spent.pop(CHARGING, 0)
        shares["empty"] += spent.total()
        shares["broken"] = sum(x.end - x.start for x in trace.stops if x.vehicle == v)
        battery, lowest = layout.batteries[v], None
        if battery is not None:
            times = [*(own.time for own in trace.levels[v]), trace.end]
            least = min(trace.find_level(v, time) for time in times)
            lowest = f"{least / battery.capacity:.6g}"
        yield {
            **{"vehicle": vehicle.id, "tasks": sum(trip.delivered for trip in trips)},
            **{f"{name}_share": round(seconds / end, 6) for name, seconds in shares.items()},
            "lowest_level_share": lowest,
            "called_back": sum(trip.recall is not None for trip in trips),
        }


SERVED = ("assigned_s", "picked_up_s", "delivered_s", "waited_s", "late_s", "vehicle")
"""Of a task: empty if nobody served it."""


def list_tasks(trace: Trace) -> Iterator[dict[str, object]]:
    """Give what came of each task, times in s from the record's time zero; what is not known is empty.

    Changes are how often it was called back. Ready is when it could be loaded, which differs from its arrival
    where it follows another or is announced; waiting and lateness then count from there. Where vehicles meet,
    the delay is how much longer its own drove for it than if it had met nobody.
    """
    instance, sites = trace.instance, trace.instance.layout.sites
    zero = None if instance.epoch is None else show_moment(instance.epoch)
    trips = {trip.task: trip for trip in trace.trips if trip.delivered}
    changes = Counter(trip.task for trip in trace.trips if trip.recall is not None)
    for k, task in enumerate(instance.tasks):
        ready = float(trace.ready[k])
        due = ready + float(instance.expiry[k])
        row: dict[str, object] = {
            **{"task": task, "pickup": sites[instance.pickup[k]].id},
            **{"delivery": sites[instance.delivery[k]].id, "priority": int(instance.priority[k])},
            **{"time_zero": zero, "arrival_s": round(float(instance.arrival[k]), 6)},
            **{"due_s": round(due, 6), **dict.fromkeys(SERVED)},
            **{"changes": changes[k], "ready_s": round(ready, 6), "delay_s": None},
        }
        if k in trips:
            trip = trips[k]
            pickup = trip.end if trip.pickup is None else trip.pickup
            own = trip.start, pickup, trip.end, round(pickup - ready, 6)
            late = round(max(0.0, trip.end - due), 6)
            vehicle = instance.layout.vehicles[trip.vehicle].id
            row |= zip(SERVED, (*own, late, vehicle), strict=True)
            if instance.layout.traffic is not None:
                row["delay_s"] = trip.delay
        yield row
