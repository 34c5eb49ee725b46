"""Task records of a shift in a plant: lorries bring loads, work stations call parts and send goods off."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

from acerl_np.kernels.core.random import GENERATION, draw_uniform, make_key
from acerl_np.problem import generate
from acerl_np.problem.generate import Order
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout, find_stations, find_type
from acerl_np.problem.limits import MAX_TASKS
from acerl_np.problem.servable import measure_load
from acerl_np.support.errors import InputError, refuse
from acerl_np.support.fields import MAX_SEED, Field, Whole, check_seed

Place = tuple[int, ...]
Places = Mapping[str, Sequence[Place]]

ROLES = {
    "goods-in": ("goodsin", "inbound", "receiving"),
    "storage": ("storage", "warehouse", "shelf", "rack"),
    "work": ("work", "assembly", "machine"),
    "goods-out": ("goodsout", "outbound", "shipping", "dispatch"),
}
"""What places do, in the order in which loads pass them, and what their types or names then hold."""

SPLIT = ("goods-in", "storage", "work", "goods-out", "work", "storage", "work", "storage")
"""Roles that places of other names take in turn."""

HOURS = Field(float, 0.25, 24.0)
SCALE = Field(float, 0.01, 100.0)
UTILISATION = Field(float, 0.01, 10.0)

# What `generate_shift` says, times in s.
LORRY_GAP = 2700.0
LOADS = (5, 14)
LOAD_GAP = (25.0, 70.0)
STORING = 1500
"""Seconds in which a load that a lorry has brought is due in storage."""

TAKT = 260.0
SPREAD = 0.25
"""Standard deviation of a gap between calls, as a share of the takt."""

STOPS = 0.02
STOP = (60.0, 300.0)
"""Share of the gaps that a micro stop prolongs, and by how many seconds."""

CALL = (480, 900)
LEAVING = 3600
SENDING = (420, 2400)
"""Goods are due when the lorry leaves, on the hour, but in no less and no more seconds than these."""

BREAKS = ((7200.0, 8100.0), (16200.0, 18000.0))
"""First and last moment of the breaks, s."""

THROUGH = 0.15
"""Share of the demand that comes during a break."""

HANDLING = (10.0, 40.0)

SAMPLE = 16
"""Shifts whose mean load decides a scale."""


def find_roles(
    layout: Layout, roles: Mapping[str, str | Sequence[str]] | None = None
) -> dict[str, list[Place]]:
    """Return the places of each of `ROLES`, which each vehicle reaches and which reach each other.

    `roles` names kinds, sites or stations for some of them, as for `find_task_places`. The other roles go to
    the places left whose types or names tell them; if one of these roles stays empty, all places left are
    dealt out, always alike on one floor.
    """
    roles = roles or {}
    for role in roles:
        Field(tuple(ROLES)).read("role", role, InputError)
    found = {role: generate.find_named(layout, words, role) for role, words in roles.items()}
    taken = {k for places in found.values() for place in places for k in place}
    missing = [role for role in ROLES if role not in found]
    if missing:
        left = [place for place in generate.find_task_places(layout) if taken.isdisjoint(place)]
        found |= _tell_roles(layout, left, missing)
    nodes = generate.find_connected(layout, set().union(*found.values()))
    kept = {role: generate.keep_sites(found[role], nodes) for role in ROLES}
    for role, places in kept.items():
        if not places:
            raise InputError(
                f"{role}: 0 of {len(found[role])} places can be reached from every start and from those "
                "of the other roles; expected at least one"
            )
    for role, other in itertools.pairwise(ROLES):
        for place in kept[role]:
            if place in kept[other]:
                raise InputError(
                    f"{other}: read {name_place(layout, place)}, which is in {role}, too; expected a place "
                    "of one of both"
                )
    return kept


def _tell_roles(
    layout: Layout, places: Sequence[Place], missing: Sequence[str]
) -> dict[str, set[Place]]:
    """Return places of the missing roles: by their types and names, else dealt out."""
    if len(places) < len(missing):
        raise InputError(
            f"{missing[0]}: {len(places)} of the floor's places are left for {', '.join(missing)}; "
            f"expected at least {len(missing)}"
        )
    told: dict[str, set[Place]] = {role: set() for role in missing}
    for place in places:
        # "Goods in 3" and "goods-in" tell alike.
        text = f"{find_type(layout, place)}:{name_place(layout, place)}".lower()
        text = re.sub("[^a-z:]", "", text)
        for role in missing:
            if any(word in text for word in ROLES[role]):
                told[role].add(place)
                break
    if all(told.values()):
        return told
    # Keyed by the floor alone: records of any seed come from the same plant.
    key = make_key(0, GENERATION, 0)
    told = {role: set() for role in missing}
    turns = itertools.cycle([role for role in SPLIT if role in missing])
    for place in sorted(places, key=lambda place: float(draw_uniform(key, place[0], 0))):
        told[next(turns)].add(place)
    return told


def name_place(layout: Layout, place: Place) -> str:
    """Return the name of the station that is served from these sites, else of the first of them."""
    stations = {sites: name for name, sites in find_stations(layout).items()}
    return stations.get(place, layout.sites[place[0]].id)


def generate_shift(
    layout: Layout,
    *,
    hours: float = 8.0,
    scale: float = 1.0,
    roles: Mapping[str, str | Sequence[str]] | None = None,
    demand: tuple[float, float] | None = None,
    handling_time: tuple[float, float] | None = HANDLING,
    seed: Whole = 0,
    index: int = 0,
    name: str = "shift",
) -> Instance:
    """Draw the task record of a shift: lorries bring loads, work stations call parts and send goods off.

    Lorries come at random, every 2,700 s in the mean. Each brings 5 to 14 loads to a goods-in dock, 25 to
    70 s apart, which are due in storage in 1,500 s. Each work station has a takt of 260 s, with a standard
    deviation of a quarter of it, and stops for 1 to 5 minutes after 2 % of the takts. By the takt it calls
    parts from storage, due in 480 to 900 s, and in turn with that sends goods to a goods-out dock, due when
    the lorry leaves, on the hour, but in no less than 420 s and no more than 2,400 s. During breaks, of a
    quarter of an hour after two hours and of half an hour after four and a half, 15 % of all this comes.

    Parameters
    ----------
    layout : Layout
    hours : float
        Length of the shift, 0.25 to 24; tasks arrive in whole seconds before its end.
    scale : float
        0.01 to 100; divides the gaps between lorries and the takt. `find_scale`, in `acerl_np.problem.shift`,
        finds that of a utilisation.
    roles : mapping of str or sequence of str, optional
        What is "goods-in", "storage", "work" and "goods-out": kinds of sites, or names of sites or stations.
        By default what types or names of stations tell; if they do not tell all four, the stations (on a
        floor without any the sites but the starts) are dealt out, always alike on one floor.
    demand : (float, float), optional
        Bounds of the tasks' demands, units of load; 0 by default.
    handling_time : (float, float), optional
        Bounds of the handling times, s. Both are uniform: whole numbers between bounds that are both whole,
        else of three decimals.
    seed : int
    index : int
        Number of the record among those of the seed; every draw is keyed by both.
    name : str

    Returns
    -------
    Instance

    Raises
    ------
    InputError
        If a number is out of range, a role has no place or shares one with the next, or no task arrives.

    See Also
    --------
    perturb : Moves arrivals.
    load_layout : Two floors for shifts.

    Examples
    --------
    >>> import acerl_np
    >>> shift = acerl_np.generate_shift(acerl_np.load_layout("supply-loop"), hours=1, seed=1)
    >>> shift.n_tasks > 10
    True
    """
    hours = HOURS.read("hours", hours, InputError)
    scale = SCALE.read("scale", scale, InputError)
    generate.check_draws(layout, demand, handling_time)
    seed = check_seed(seed)
    places, end = find_roles(layout, roles), 3600.0 * hours
    n = hours * 3600 * scale * (len(places["work"]) / TAKT + sum(LOADS) / 2 / LORRY_GAP)
    if n > MAX_TASKS:
        refuse("scale", f"{scale:g}: about {n:.0f} tasks", f"at most {MAX_TASKS}")
    drawn: list[Order] = []
    for k, station in enumerate([None, *places["work"]]):
        draws = _draw_in_turn(seed, index, 1 + k)
        if station is None:
            orders = _bring_loads(draws, places, scale, end)
        else:
            orders = _serve_station(draws, places, station, scale, end)
        for order in orders:
            comes, handling, load = next(draws), next(draws), next(draws)
            on_break = any(first <= order.time < last for first, last in BREAKS)
            if order.time >= end or (on_break and comes >= THROUGH):
                continue
            took = generate.draw_between(handling_time, handling)
            drawn.append(order._replace(handling=took, load=generate.draw_between(demand, load)))
    if not drawn:
        raise InputError(
            f"hours: no task arrives in {hours:g} h at scale {scale:g}; expected more of either"
        )
    return generate.make_record(name, layout, sorted(drawn, key=lambda order: order.time))


def _draw_in_turn(seed: int, index: int, stream: int) -> Iterator[float]:
    """Return the uniform draws in [0, 1) of a stream, one after the other."""
    key = make_key(seed, GENERATION, index, stream)
    return (float(draw_uniform(key, k, 0)) for k in itertools.count())


def _pick(draws: Iterator[float], places: Sequence[Place]) -> Place:
    return places[int(next(draws) * len(places))]


def spread(draws: Iterator[float], low: float, high: float) -> float:
    """Return the next draw as a number between two bounds."""
    return low + next(draws) * (high - low)


def _bring_loads(
    draws: Iterator[float], places: Places, scale: float, end: float
) -> Iterator[Order]:
    """Return the loads of the lorries that come before the end."""
    time = 0.0
    while (time := time - math.log(1.0 - next(draws)) * LORRY_GAP / scale) < end:
        dock, moment = _pick(draws, places["goods-in"]), time
        for _ in range(int(generate.draw_between(LOADS, next(draws)))):
            yield Order(int(moment), dock, _pick(draws, places["storage"]), STORING)
            moment += spread(draws, *LOAD_GAP)


def _serve_station(
    draws: Iterator[float], places: Places, station: Place, scale: float, end: float
) -> Iterator[Order]:
    """Return what a work station asks for before the end: in turn parts, and that goods are fetched."""
    takt = NormalDist(TAKT / scale, SPREAD * TAKT / scale)
    calls = next(draws) < 0.5
    time = next(draws) * takt.mean
    while time < end:
        moment, other = int(time), _pick(draws, places["storage" if calls else "goods-out"])
        due, stop = generate.draw_between(CALL, next(draws)), spread(draws, *STOP)
        if calls:
            yield Order(moment, other, station, due)
        else:
            left = LEAVING - moment % LEAVING
            yield Order(moment, station, other, min(max(left, SENDING[0]), SENDING[1]))
        calls = not calls
        # A draw of 0 stands for no number of the normal distribution.
        time += max(0.0, takt.inv_cdf(max(2.0**-54, next(draws))))
        time += stop if next(draws) < STOPS else 0.0


def find_scale(layout: Layout, utilisation: float, **options: Any) -> float:
    """Return the scale, of three decimals, at which a shift's offered load is a utilisation in the mean.

    The load is that of `measure_load`, with the mean approach, on the layout's fleet. Shifts of a seed of
    their own decide: the scale depends on the floor and its fleet, and records of any seed share it.

    Parameters
    ----------
    layout : Layout
    utilisation : float
        0.01 to 10. Up to 0.9 the rule NVF keeps the fleet about as busy as this says.
    **options : hours, roles, demand and handling_time, as `generate_shift` takes them

    Raises
    ------
    InputError
        As in `generate_shift`.
    """
    UTILISATION.read("utilisation", utilisation, InputError)
    # A seed of its own: no record that is made from now on decides its scale.
    draw = partial(generate_shift, layout, seed=MAX_SEED, **options)
    scale = 1.0
    # The load grows nearly in proportion: only stops do not shrink with the scale.
    for _ in range(3):
        shifts = [draw(scale=scale, index=k) for k in range(SAMPLE)]
        scale *= utilisation * SAMPLE / sum(measure_load(shift).offered for shift in shifts)
        if not SCALE.low <= scale <= SCALE.high:
            read = f"{utilisation:g}, which takes a scale of {scale:g}"
            refuse("utilisation", read, f"one that takes {SCALE.low:g} to {SCALE.high:g}")
    return round(scale, 3)
