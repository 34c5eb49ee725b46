"""Task records drawn at random for a floor: how tasks arrive, where they go, what they ask."""

from __future__ import annotations

import math

import numpy as np

from acerl_np.kernels.random import GENERATION, derive_key, draw_uniform
from acerl_np.problem.instance import Instance
from acerl_np.problem.json_tree import shorten
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_NUMBER, MAX_TASKS
from acerl_np.support.errors import InputError
from acerl_np.support.numbers import check_seed

PROCESSES = ("uniform", "poisson", "bursts")
MIN_RATE, MAX_RATE = 1e-3, 1e6
MAX_SLACK = 1e4
MAX_HANDLING = 1e5
"""Longest handling time that is drawn, s."""

DIGITS = 3
"""Decimals of drawn numbers that are not whole."""


def find_task_sites(layout: Layout, kind: str | None = None) -> np.ndarray:
    """Return the sites that random tasks may join, each of which reaches each other.

    Parameters
    ----------
    layout : Layout
    kind : str, optional
        Only sites of this kind; by default all but the vehicles' start sites.

    Returns
    -------
    ndarray(int64, (n,))
        Positions in `layout.sites`: the largest set of them that every vehicle reaches from its
        start and whose members reach each other; the first of equally large ones.

    Raises
    ------
    InputError
        If no site is of this kind, or fewer than two are left.
    """
    starts = np.unique([layout.site_index[vehicle.start] for vehicle in layout.vehicles])
    chosen = [
        k
        for k, site in enumerate(layout.sites)
        if (site.kind == kind if kind is not None else k not in starts)
    ]
    if not chosen:
        kinds = sorted({site.kind for site in layout.sites if site.kind})
        what = "a site besides the start sites" if kind is None else f"one of {', '.join(kinds)}"
        raise InputError(f"sites: read {shorten(kind)}; expected {what}")
    sites = np.array(chosen, np.int64)
    reach = np.isfinite(layout.routes.distance)
    sites = sites[reach[np.ix_(starts, sites)].all(axis=0)]
    mutual = reach[np.ix_(sites, sites)] & reach[np.ix_(sites, sites)].T
    if len(sites):
        sites = np.extract(mutual[mutual.sum(axis=1).argmax()], sites)
    if len(sites) < 2:
        raise InputError(
            f"sites: {len(sites)} of {len(chosen)} can be reached from every start and from each "
            "other; expected at least two"
        )
    return sites


def generate_record(
    layout: Layout,
    tasks: int,
    *,
    process: str = "poisson",
    rate: float = 60.0,
    burst_size: int = 5,
    slack: float = 2.0,
    sites: str | None = None,
    demand: tuple[float, float] | None = None,
    handling_time: tuple[float, float] | None = None,
    seed: int = 0,
    index: int = 0,
    name: str = "generated",
) -> Instance:
    """Draw a task record for a floor.

    Pickup and delivery are two different sites of `find_task_sites`, each pair equally probable.
    Arrivals are whole seconds: of "uniform" independent of each other over tasks / rate hours; of
    "poisson" with exponential gaps; of "bursts" several at once, with exponential gaps in between. A
    task is due slack times its loaded time (way and handling), plus the mean travel time from the other
    sites to its pickup, after its arrival, at the fleet's mean speed, the last second begun. Demands and
    handling times are uniform: whole numbers between bounds that are both whole, else of three decimals.

    Every draw is keyed by (seed, index, task), so a record does not depend on what else is made.

    Parameters
    ----------
    layout : Layout
    tasks : int
        Number of tasks.
    process : {"uniform", "poisson", "bursts"}
    rate : float
        Tasks per hour in the mean.
    burst_size : int
        Tasks that arrive at once ("bursts"); the last burst may be smaller.
    slack : float
        Factor on the loaded time.
    sites : str, optional
        Kind of the sites; by default all but the vehicles' start sites.
    demand : (float, float), optional
        Least and largest demand; by default 0. The fleet must be able to carry the largest.
    handling_time : (float, float), optional
        Least and largest handling time, s; by default 0.
    seed : int
    index : int
        Number of the record among those of the seed.
    name : str

    Returns
    -------
    Instance

    Raises
    ------
    InputError
        If an argument is out of range, or the floor has no two such sites.
    ConfigError
        If the seed is no usable number.
    """
    if process not in PROCESSES:
        raise InputError(f"process: read {process}; expected one of {', '.join(PROCESSES)}")
    _check_numbers(tasks, rate, burst_size, slack)
    _check_draws(layout, demand, handling_time)
    seed = check_seed(seed)
    span = 3600.0 * tasks / rate
    chosen = find_task_sites(layout, sites)
    speed = sum(vehicle.speed for vehicle in layout.vehicles) / len(layout.vehicles)
    distance = layout.routes.distance[np.ix_(chosen, chosen)]
    slowdown = layout.routes.find_slowdown(speed)
    slow = np.zeros_like(distance) if slowdown is None else slowdown[np.ix_(chosen, chosen)]
    n = len(chosen)
    approach = distance.sum(axis=0) / (n - 1)
    slow_approach = slow.sum(axis=0) / (n - 1)
    key = np.empty(4, np.uint32)
    derive_key(seed, GENERATION, index, 0, key)
    arrivals = _draw_arrivals(key, tasks, process, span, burst_size)
    rows = []
    for k in range(tasks):
        pickup = int(draw_uniform(key, k, 1) * n)
        delivery = (pickup + 1 + int(draw_uniform(key, k, 2) * (n - 1))) % n
        handling = _draw_between(handling_time, draw_uniform(key, k, 3))
        seconds = (slack * distance[pickup, delivery] + approach[pickup]) / speed + slack * handling
        seconds += slack * slow[pickup, delivery] + slow_approach[pickup]
        rows.append(
            {
                "task": f"t{k}",
                "pickup": layout.sites[chosen[pickup]].id,
                "delivery": layout.sites[chosen[delivery]].id,
                "arrival_time": arrivals[k],
                "expiry_time": math.ceil(seconds - 1e-9),
                "handling_time": handling,
                "demand": _draw_between(demand, draw_uniform(key, k, 4)),
            }
        )
    return Instance.from_rows(name, layout, rows)


def _check_numbers(tasks: int, rate: float, burst_size: int, slack: float) -> None:
    for what, value, low, high, expected in (
        ("tasks", tasks, 1, MAX_TASKS, f"a whole number from 1 to {MAX_TASKS:,}"),
        ("rate", rate, MIN_RATE, MAX_RATE, f"tasks per hour from {MIN_RATE:g} to {MAX_RATE:g}"),
        ("burst size", burst_size, 1, MAX_TASKS, f"a whole number from 1 to {MAX_TASKS:,}"),
        ("slack", slack, 0.0, MAX_SLACK, f"a number from 0 to {MAX_SLACK:g}"),
    ):
        if not low <= value <= high:
            raise InputError(f"{what}: read {value}; expected {expected}")
    span = 3600.0 * tasks / rate
    if span > MAX_NUMBER / 10:
        raise InputError(
            f"rate: read {rate}: {tasks} tasks would take {span:g} s; expected at most "
            f"{MAX_NUMBER / 10:g} s"
        )


def _check_draws(
    layout: Layout,
    demand: tuple[float, float] | None,
    handling_time: tuple[float, float] | None,
) -> None:
    if demand is not None:
        _check_bounds("demand", demand, MAX_NUMBER)
        largest = max(vehicle.capacity or math.inf for vehicle in layout.vehicles)
        if demand[1] > largest:
            raise InputError(
                f"demand: read {demand[1]:g}; expected at most {largest:g}, the largest capacity of the "
                "fleet"
            )
    if handling_time is not None:
        _check_bounds("handling time", handling_time, MAX_HANDLING)


def _check_bounds(what: str, bounds: tuple[float, float], most: float) -> None:
    low, high = bounds
    if not 0.0 <= low <= high <= most:
        raise InputError(
            f"{what}: read {low:g} to {high:g}; expected two numbers from 0 to {most:g}, the smaller first"
        )


def _draw_between(bounds: tuple[float, float] | None, uniform: float) -> float:
    """Return the number between the bounds that a uniform one in [0, 1) stands for, 0 without bounds."""
    if bounds is None:
        return 0.0
    low, high = bounds
    if low == int(low) and high == int(high):
        return min(high, low + int(uniform * (high - low + 1.0)))
    return min(high, max(low, round(low + uniform * (high - low), DIGITS)))


def _draw_arrivals(
    key: np.ndarray, tasks: int, process: str, span: float, burst_size: int
) -> list[int]:
    if process == "uniform":
        return sorted(int(draw_uniform(key, k, 0) * span) for k in range(tasks))
    size = burst_size if process == "bursts" else 1
    arrivals: list[int] = []
    time = 0.0
    for k in range(-(-tasks // size)):
        time -= math.log(1.0 - draw_uniform(key, k, 0)) * span / tasks * size
        arrivals += [int(time)] * size
    return arrivals[:tasks]
