"""Whether a floor can be driven and its fleet can keep up: reach, and load against capacity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout


@dataclass(frozen=True)
class Load:
    """What a record asks of a fleet.

    Attributes
    ----------
    offered : float
        Vehicle time that the tasks take, by that which the fleet has; the fleet cannot keep up above 1.
    loaded : float
        The part of it from pickup to delivery.
    span : float
        From the first arrival to the last due time, s.
    too_large : tuple of int
        Tasks with a demand above every capacity, by position.
    """

    offered: float
    loaded: float
    span: float
    too_large: tuple[int, ...]


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


def measure_load(instance: Instance, layout: Layout) -> Load:
    """Compare the vehicle time that a record's tasks take with what the fleet has.

    A task takes its approach, its way from pickup to delivery and its handling time; the approach is
    the mean over the ways from all the record's deliveries to its pickup. The fleet has the time from
    the first arrival to the last due time, times the number of vehicles; repairs are not taken off.

    Parameters
    ----------
    instance : Instance
    layout : Layout
        Its floor, with the capacities to compare demands with.

    Returns
    -------
    Load
    """
    distance = instance.layout.routes.distance
    if layout.truncate_distances:
        distance = np.floor(distance + 0.5e-9)
    pickups, counts = np.unique(instance.pickup, return_counts=True)
    deliveries, weights = np.unique(instance.delivery, return_counts=True)
    approach = float(weights @ distance[np.ix_(deliveries, pickups)] @ counts) / instance.n_tasks
    ride = float(distance[instance.pickup, instance.delivery].sum())
    speed = sum(vehicle.speed for vehicle in layout.vehicles)
    handling = float(instance.handling_time.sum()) / len(layout.vehicles)
    span = float((instance.arrival + instance.expiry).max() - instance.arrival.min())
    largest = max(vehicle.capacity or math.inf for vehicle in layout.vehicles)
    loaded = ride / speed + handling
    return Load(
        offered=_divide(loaded + approach / speed, span),
        loaded=_divide(loaded, span),
        span=span,
        too_large=tuple(int(k) for k in np.flatnonzero(instance.demand > largest)),
    )


def _divide(time: float, span: float) -> float:
    if span > 0.0:
        return time / span
    return math.inf if time > 0.0 else 0.0
