"""Task records drawn at random for a floor, and noised variants of known ones, as in the paper's suites."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from acerl_np.kernels.core.random import GENERATION, PERTURBATION, draw_uniform, make_key
from acerl_np.kernels.rollout.variation import draw_noise
from acerl_np.problem.instance import Instance, number_hash
from acerl_np.problem.json_tree import shorten
from acerl_np.problem.layout import Layout, find_ends, find_sites, find_stations
from acerl_np.problem.limits import MAX_NUMBER, MAX_TASKS
from acerl_np.support.errors import InputError, list_some, refuse
from acerl_np.support.fields import Field, Whole, check_seed

PROCESSES = ("uniform", "poisson", "bursts")
RATE = Field(float, 1e-3, 1e6, expected="tasks per hour from 0.001 to 1e+06")
MAX_SLACK = 1e4
MAX_HANDLING = 1e5
"""Longest handling time that is drawn, s."""

DIGITS = 3
"""Decimals of drawn numbers that are not whole."""

STATIONS, ALL = "stations", "all"
"""Words for all stations of a floor, and for all its sites but the vehicles' start sites."""


def find_task_places(
    layout: Layout, sites: str | Sequence[str] | None = None
) -> list[tuple[int, ...]]:
    """Return the places that random tasks may join, each of which reaches each other.

    `sites` are kinds of sites, names of sites or stations (a kind goes first), "stations" for
    `find_stations`, "all" for all sites but the vehicles' start sites. By default they are the stations, on a
    floor without any all sites but the start sites.

    A place is the positions in `layout.sites` from which a station is served, or of one site. Only places of
    the largest set count that every vehicle reaches from its start and whose members reach each other; of
    equally large ones the first.
    """
    if sites is None:
        sites = STATIONS if find_stations(layout) else ALL
    chosen = find_named(layout, sites)
    kept = keep_sites(chosen, find_connected(layout, chosen))
    if len(kept) < 2:
        raise InputError(
            f"sites: {len(kept)} of {len(chosen)} can be reached from every start and from each "
            "other; expected at least two"
        )
    return kept


def keep_sites(places: Iterable[tuple[int, ...]], sites: set[int]) -> list[tuple[int, ...]]:
    """Return the places of a set without other sites than these, sorted."""
    return sorted({tuple(k for k in place if k in sites) for place in places} - {()})


def find_connected(layout: Layout, places: Iterable[tuple[int, ...]]) -> set[int]:
    """Return the sites of places that every vehicle reaches from its start and that reach each other."""
    nodes = np.array(sorted({k for place in places for k in place}), np.int64)
    reach = np.isfinite(layout.routes.distance)
    nodes = nodes[layout.reached[nodes]]
    mutual = reach[np.ix_(nodes, nodes)] & reach[np.ix_(nodes, nodes)].T
    if len(nodes):
        nodes = np.extract(mutual[mutual.sum(axis=1).argmax()], nodes)
    return set(nodes.tolist())


def find_named(
    layout: Layout, words: str | Sequence[str], what: str = "sites"
) -> set[tuple[int, ...]]:
    """Return the places that a word stands for, or several; `what` they are words of stands in the error."""
    if not isinstance(words, str):
        return {place for word in words for place in find_named(layout, word, what)}
    word, stations = words, find_stations(layout)
    of_kind = {k for k, site in enumerate(layout.sites) if site.kind == word}
    if of_kind:
        places = {place for place in stations.values() if of_kind.intersection(place)}
        return places | {(k,) for k in of_kind.difference(*places)}
    if word == ALL:
        starts = {vehicle.start for vehicle in layout.vehicles}
        places = {(k,) for k, site in enumerate(layout.sites) if site.id not in starts}
    elif word == STATIONS:
        places = {*stations.values()}
    else:
        places = {find_sites(layout, word)} - {()}
    if not places:
        kinds = sorted({site.kind for site in layout.sites if site.kind})
        expected = f"one of {list_some(kinds, 20)}, " if kinds else ""
        expected += f"{STATIONS if stations else ALL} or names of sites"
        refuse(what, shorten(word), expected)
    return places


def _measure_ways(layout: Layout, places: Sequence[tuple[int, ...]], speed: float) -> np.ndarray:
    """Return the seconds between each pair of places at a speed, m/s, where no limit is lower."""
    if all(len(place) == 1 for place in places):
        nodes = np.concatenate(places)
        ends: tuple[np.ndarray, ...] = np.ix_(nodes, nodes)
    else:
        ends = tuple(np.zeros((2, len(places), len(places)), np.int64))
        for a, b in itertools.permutations(range(len(places)), 2):
            ends[0][a, b], ends[1][a, b] = find_ends(layout, places[a], places[b])
    return np.asarray(layout.routes.find_time(speed)[ends])


def generate_record(
    layout: Layout,
    tasks: int,
    *,
    process: str = "poisson",
    rate: float = 60.0,
    burst_size: int = 5,
    slack: float = 2.0,
    sites: str | Sequence[str] | None = None,
    demand: tuple[float, float] | None = None,
    handling_time: tuple[float, float] | None = None,
    seed: Whole = 0,
    index: int = 0,
    name: str = "generated",
) -> Instance:
    """Draw a task record for a floor: `rate` tasks per hour in the mean, of "bursts" `burst_size` at once.

    Pickup and delivery are two different places of `find_task_places`, each pair equally probable; of a
    station of several sites the one that serves it is chosen as for any record.
    Arrivals are whole seconds: of "uniform" independent of each other over tasks / rate hours; of
    "poisson" with exponential gaps; of "bursts" several at once, with exponential gaps in between. A
    task is due slack times its loaded time (way and handling), plus the mean travel time from the other
    sites to its pickup, after its arrival, at the fleet's mean speed, the last second begun. Demands and
    handling times, s, are uniform: whole numbers between bounds that are both whole, else of three decimals.

    Every draw is keyed by (seed, index, task), so a record does not depend on what else is made; `index` is
    its number among those of the seed.
    """
    for what, value, field in (
        ("process", process, Field(PROCESSES)),
        ("tasks", tasks, Field(int, 1, MAX_TASKS)),
        ("rate", rate, RATE),
        ("burst size", burst_size, Field(int, 1, MAX_TASKS)),
        ("slack", slack, Field(float, 0, MAX_SLACK)),
    ):
        field.read(what, value, InputError)
    span = 3600.0 * tasks / rate
    if span > MAX_NUMBER / 10:
        read = f"{rate}: {tasks} tasks would take {span:g} s"
        refuse("rate", read, f"at most {MAX_NUMBER / 10:g} s")
    check_draws(layout, demand, handling_time)
    seed = check_seed(seed)
    chosen = find_task_places(layout, sites)
    speed = sum(vehicle.speed for vehicle in layout.vehicles) / len(layout.vehicles)
    way, n = _measure_ways(layout, chosen, speed), len(chosen)
    approach = way.sum(axis=0) / (n - 1)
    key = make_key(seed, GENERATION, index)
    arrivals = _draw_arrivals(key, tasks, process, span, burst_size)
    orders = []
    for k in range(tasks):
        pickup = int(draw_uniform(key, k, 1) * n)
        delivery = (pickup + 1 + int(draw_uniform(key, k, 2) * (n - 1))) % n
        handling = draw_between(handling_time, draw_uniform(key, k, 3))
        seconds = slack * (way[pickup, delivery] + handling) + approach[pickup]
        due, load = math.ceil(seconds - 1e-9), draw_between(demand, draw_uniform(key, k, 4))
        ends = chosen[pickup], chosen[delivery]
        orders.append(Order(arrivals[k], *ends, due, handling, load))
    return make_record(name, layout, orders)


class Order(NamedTuple):
    """A task that was drawn: arrival, whole s; ends; expiry and handling time, s; demand."""

    time: int
    pickup: tuple[int, ...]
    delivery: tuple[int, ...]
    expiry: float
    handling: float = 0.0
    load: float = 0.0


def make_record(name: str, layout: Layout, orders: Iterable[Order]) -> Instance:
    """Return the record of orders, whose tasks are named by their numbers."""
    keys = ("task", "pickup", "delivery", "arrival_time", "expiry_time", "handling_time", "demand")
    rows = []
    for k, (time, pickup, delivery, *others) in enumerate(orders):
        ends = (layout.sites[site].id for site in find_ends(layout, pickup, delivery))
        rows.append(dict(zip(keys, (f"t{k}", *ends, time, *others), strict=True)))
    return Instance.from_rows(name, layout, rows)


def check_draws(
    layout: Layout, demand: tuple[float, float] | None, handling: tuple[float, float] | None
) -> None:
    """Refuse bounds of demands and handling times that are none, and demands above every capacity."""
    for what, bounds, most in (
        ("demand", demand, MAX_NUMBER),
        ("handling time", handling, MAX_HANDLING),
    ):
        low, high = bounds or (0.0, 0.0)
        if not 0.0 <= low <= high <= most:
            expected = f"two numbers from 0 to {most:g}, the smaller first"
            refuse(what, f"{low:g} to {high:g}", expected)
    largest = layout.largest_load
    if demand is not None and demand[1] > largest:
        expected = f"at most {largest:g}, the largest capacity of the fleet"
        refuse("demand", f"{demand[1]:g}", expected)


def draw_between(bounds: tuple[float, float] | None, uniform: float) -> float:
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


# Noised variants of known records

MAX_MAGNITUDE = 1_000_000

Zeros = Literal["keep", "move"]
"""What happens to tasks that arrive at 0."""


def perturb(
    instance: Instance,
    magnitude: int,
    *,
    seed: Whole = 0,
    zeros: Zeros = "keep",
    name: str | None = None,
) -> Instance:
    """Add uniform whole-number noise to the arrivals, cut at 0; a chain of tasks moves with its first.

    The noise is keyed by (seed, content of the instance, magnitude, task), so a record has the same
    variant wherever it is made.

    Parameters
    ----------
    instance : Instance
    magnitude : int
        n: noise in {-n, ..., n}, s.
    seed : int
        0 to 2**63 - 1.
    zeros : {"keep", "move"}
        Whether tasks that arrive at 0 stay there, as the benchmark's own noised records seem to have it
        (`instances/README.md`), or move like the others.
    name : str, optional
        Of the new instance, by default the old one's with the magnitude: "DMH-01-N5".

    Returns
    -------
    Instance
        Sorted by its new arrivals.

    Raises
    ------
    InputError
        If the magnitude is negative or too large, or `zeros` is neither word.
    ConfigError
        If the seed is no usable number.

    See Also
    --------
    generate_shift : New days.
    load_suite : Bundled noised records.

    Examples
    --------
    >>> import acerl_np
    >>> record = acerl_np.perturb(acerl_np.load_instance("DMH-01"), 5, seed=0)
    >>> record.name, bool((record.arrival == 0.0).sum() >= 5)
    ('DMH-01-N5', True)
    """
    magnitude = Field(int, 0, MAX_MAGNITUDE).read("magnitude", magnitude, InputError)
    seed = check_seed(seed)
    Field(get_args(Zeros)).read("zeros", zeros, InputError)
    key = make_key(seed, PERTURBATION, number_hash(instance.content_hash), magnitude)
    rows = instance.rows()
    for row, root in zip(rows, instance.root.tolist(), strict=True):
        first = float(instance.arrival[root])
        if zeros == "move" or first > 0.0:
            row["arrival_time"] += draw_noise(first, magnitude, draw_uniform(key, root, 0))
    name = f"{instance.name}-N{magnitude}" if name is None else name
    return Instance.from_rows(name, instance.layout, rows, epoch=instance.epoch)
