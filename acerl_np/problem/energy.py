"""What tasks need of a battery, and how long vehicles must charge for their work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.parts import Battery


def measure_needs(instance: Instance, speed: float, battery: Battery) -> np.ndarray:
    """Return what a vehicle must hold for each task at the charger that is the worst for it, (n_tasks,).

    As the simulator counts: empty to the pickup, loaded to the delivery, handling included, empty to the
    nearest charger from there, and the critical level is left. -inf where some way is missing.
    """
    layout, pickup, delivery = instance.layout, instance.pickup, instance.delivery
    distance, slowdown = layout.routes.distance, layout.routes.find_slowdown(speed)
    slowdown = np.zeros_like(distance) if slowdown is None else slowdown
    back = layout.count_ways_to_chargers(speed)[delivery]
    worst = np.full(instance.n_tasks, -np.inf)
    for charger in layout.chargers:
        site = layout.site_index[charger.site]
        approach, slowed = distance[site, pickup], slowdown[site, pickup]
        metres = approach + distance[pickup, delivery]
        reached = np.isfinite(metres + back)
        approach, metres, after = (np.where(reached, x, 0.0) for x in (approach, metres, back))
        if layout.truncate_distances:
            metres = np.floor(metres + 0.5e-9)
        to_pickup = np.ceil(approach / speed + slowed - 0.5e-9)
        seconds = metres / speed + slowed + slowdown[pickup, delivery] + instance.handling_time
        duration = np.maximum(1.0, np.ceil(seconds - 0.5e-9))
        to_pickup = np.minimum(to_pickup, duration)
        empty, loaded = to_pickup + after, duration - to_pickup
        needs = battery.critical + battery.empty * empty + battery.loaded * loaded
        worst = np.where(reached, np.maximum(worst, needs), worst)
    return worst


def find_shortfalls(instance: Instance) -> np.ndarray:
    """Return what a vehicle that is charged to `full` lacks for each task, (n_tasks,), in units of energy.

    Of the vehicles that may carry a task the one counts that lacks least, at the charger that is the worst
    for it: above 0 a task may wait for ever. Tasks that nobody may carry lack nothing.
    """
    layout = instance.layout
    lacks = np.full(instance.n_tasks, np.inf)
    kinds = zip(layout.vehicles, layout.batteries, strict=True)
    for speed, capacity, battery in {(v.speed, v.capacity, battery) for v, battery in kinds}:
        lacking = np.full(instance.n_tasks, -np.inf)
        if battery is not None:
            lacking = measure_needs(instance, speed, battery) - battery.full
        able = instance.demand <= (capacity or math.inf)
        lacks = np.where(able, np.minimum(lacks, lacking), lacks)
    return np.where(instance.demand > layout.largest_load, -np.inf, lacks)


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
