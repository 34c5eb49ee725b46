"""The JSON form of a layout: its fields read and checked, and written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from acerl_np.problem.json_tree import Reader, shorten
from acerl_np.problem.limits import (
    MAX_ALIASES,
    MAX_BREAKDOWNS,
    MAX_EDGES,
    MAX_NUMBER,
    MAX_SITES,
    MAX_TASK_SLOTS,
    MAX_VEHICLES,
    MIN_SPEED,
)
from acerl_np.problem.parts import (
    MEAN_TIMES,
    SCALING_DIVISORS,
    SCALING_PAIRS,
    Breakdown,
    Edge,
    RandomBreakdowns,
    Site,
    Vehicle,
)
from acerl_np.support.errors import LayoutError
from acerl_np.support.numbers import is_real

if TYPE_CHECKING:
    from acerl_np.problem.layout import Layout


def read_fields(data: object, default_name: str) -> dict[str, Any]:
    """Return the arguments of `Layout` that parsed JSON describes.

    Parameters
    ----------
    data : object
        Format in `instances/README.md`.
    default_name : str
        Name of a layout that has none.

    Returns
    -------
    dict

    Raises
    ------
    LayoutError
        If a key is unknown or missing, or a value is of the wrong kind or out of range.
    """
    reader = Reader(data, "")
    reader.check_keys(
        required={"format", "sites", "edges", "vehicles"},
        optional={
            "name",
            "task_slots",
            "truncate_distances",
            "quickest_routes",
            "routes",
            "scaling",
            "stations",
            "aliases",
        },
    )
    if reader.raw("format") != 1 or isinstance(reader.raw("format"), bool):
        reader.fail("format", "1")
    sites = tuple(_read_site(item) for item in reader.items("sites", 1, MAX_SITES))
    points = {site.id: site for site in sites}
    edges = tuple(_read_edge(item, points) for item in reader.items("edges", 0, MAX_EDGES))
    vehicles = tuple(_read_vehicle(item) for item in reader.items("vehicles", 1, MAX_VEHICLES))
    routes = []
    for k, route in enumerate(reader.entries("routes", 0, MAX_SITES**2)):
        if not isinstance(route, list) or not all(isinstance(site, str) for site in route):
            raise LayoutError(f"routes[{k}]: read {shorten(route)}; expected a list of site ids")
        routes.append(tuple(route))
    return {
        "name": reader.text("name", default_name),
        "sites": sites,
        "edges": edges,
        "vehicles": vehicles,
        "task_slots": int(reader.number("task_slots", 30, 1, MAX_TASK_SLOTS, whole=True)),
        "truncate_distances": reader.flag("truncate_distances", False),
        "quickest_routes": reader.flag("quickest_routes", False),
        "named_routes": tuple(routes),
        "scaling": _read_scaling(reader),
        "stations": _read_stations(reader),
        "aliases": _read_aliases(reader),
    }


def write_fields(layout: Layout) -> dict[str, Any]:
    """Return a layout as `read_fields` reads it, every field given that has content.

    Parameters
    ----------
    layout : Layout

    Returns
    -------
    dict
    """
    data: dict[str, Any] = {
        "format": 1,
        "name": layout.name,
        "task_slots": layout.task_slots,
        "truncate_distances": layout.truncate_distances,
        "sites": [
            {"id": site.id, "x": _write(site.x), "y": _write(site.y), "kind": site.kind}
            for site in layout.sites
        ],
        "edges": [
            {
                "a": edge.a,
                "b": edge.b,
                "length": _write(edge.length),
                "one_way": edge.one_way,
                **_write_limits(edge),
            }
            for edge in layout.edges
        ],
        "routes": [list(route) for route in layout.named_routes],
        "vehicles": [
            {
                "id": vehicle.id,
                "start": vehicle.start,
                "speed": _write(vehicle.speed),
                "capacity": _write(vehicle.capacity),
                "breakdowns": [
                    {"time": _write(item.time), "repair_time": _write(item.repair_time)}
                    for item in vehicle.breakdowns
                ],
                **(
                    {"random_breakdowns": asdict(vehicle.random_breakdowns)}
                    if vehicle.random_breakdowns is not None
                    else {}
                ),
            }
            for vehicle in layout.vehicles
        ],
    }
    if layout.quickest_routes:
        data["quickest_routes"] = True
    if layout.scaling is not None:
        data["scaling"] = {
            key: [_write(x) for x in value] if key in SCALING_PAIRS else _write(value)
            for key, value in layout.scaling.items()
        }
    if layout.stations:
        data["stations"] = {name: list(sites) for name, sites in layout.stations.items()}
    if layout.aliases:
        data["aliases"] = dict(layout.aliases)
    return data


def _write_limits(edge: Edge) -> dict[str, float]:
    """Return an edge's speed limits, those that there are."""
    found = {"max_speed": edge.max_speed, "max_reverse_speed": edge.max_reverse_speed}
    return {key: _write(x) for key, x in found.items() if x is not None and x < math.inf}


def _write(number: float) -> float:
    """Return a number as reading gives it, so that a layout read again has the same content."""
    return float(number) + 0.0  # minus zero is zero


def _read_site(item: Reader) -> Site:
    item.check_keys({"id", "x", "y"}, {"kind"})
    return Site(
        id=item.text("id"),
        x=item.number("x", None, -MAX_NUMBER),
        y=item.number("y", None, -MAX_NUMBER),
        kind=item.text("kind", ""),
    )


def _read_edge(item: Reader, points: Mapping[str, Site]) -> Edge:
    item.check_keys({"a", "b"}, {"length", "one_way", "max_speed", "max_reverse_speed"})
    a, b = item.text("a"), item.text("b")
    euclidean = 0.0
    if a in points and b in points:
        euclidean = math.hypot(points[a].x - points[b].x, points[a].y - points[b].y)
    one_way = item.flag("one_way", False)
    forwards, backwards = (
        item.number(key, None, MIN_SPEED) if key in item.data else None
        for key in ("max_speed", "max_reverse_speed")
    )
    if one_way and backwards is not None:
        item.fail("max_reverse_speed", "none, as the edge is one-way")
    return Edge(
        a=a,
        b=b,
        length=item.number("length", euclidean, 0.0, 4 * MAX_NUMBER),
        one_way=one_way,
        max_speed=math.inf if forwards is None else forwards,
        max_reverse_speed=backwards,
    )


def _read_vehicle(item: Reader) -> Vehicle:
    item.check_keys({"id", "start"}, {"speed", "capacity", "breakdowns", "random_breakdowns"})
    breakdowns = []
    for entry in item.items("breakdowns", 0, MAX_BREAKDOWNS):
        entry.check_keys({"time", "repair_time"}, set())
        breakdowns.append(
            Breakdown(
                time=entry.number("time", None, 0.0),
                repair_time=entry.number("repair_time", None, 0.0),
            )
        )
    return Vehicle(
        id=item.text("id"),
        start=item.text("start"),
        speed=item.number("speed", 1.0, MIN_SPEED),
        capacity=item.number("capacity", 0.0, 0.0),
        breakdowns=tuple(breakdowns),
        random_breakdowns=_read_random_breakdowns(item),
    )


def _read_random_breakdowns(vehicle: Reader) -> RandomBreakdowns | None:
    if "random_breakdowns" not in vehicle.data:
        return None
    item = Reader(vehicle.raw("random_breakdowns"), vehicle.name("random_breakdowns"))
    item.check_keys(set(MEAN_TIMES), set())
    return RandomBreakdowns(
        **{key: item.number(key, None, least) for key, least in MEAN_TIMES.items()}
    )


def _read_stations(reader: Reader) -> dict[str, tuple[str, ...]]:
    stations = _read_names(reader, "stations", MAX_SITES)
    for name in stations.data:
        sites = stations.entries(name, 1, MAX_SITES)
        if not all(isinstance(site, str) for site in sites):
            stations.fail(name, "a list of site ids")
    return {name: tuple(sites) for name, sites in stations.data.items()}


def _read_aliases(reader: Reader) -> dict[str, str]:
    aliases = _read_names(reader, "aliases", MAX_ALIASES)
    return {name: aliases.text(name) for name in aliases.data}


def _read_names(reader: Reader, key: str, most: int) -> Reader:
    """Return the object at a key, whose own keys are names; an empty one if the key is missing."""
    item = Reader(reader.data.get(key, {}), reader.name(key))
    if len(item.data) > most:
        raise LayoutError(f"{key}: {len(item.data):,} names; expected at most {most:,}")
    for name in item.data:
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise LayoutError(
                f"{key}: read the name {shorten(name)}; expected at most 200 printable characters"
            )
    return item


def _read_scaling(reader: Reader) -> dict[str, Any] | None:
    if "scaling" not in reader.data:
        return None
    item = Reader(reader.raw("scaling"), "scaling")
    item.check_keys({*SCALING_PAIRS, *SCALING_DIVISORS}, set())
    scaling: dict[str, Any] = {}
    for key in SCALING_PAIRS:
        pair = item.raw(key)
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(is_real(value) and abs(value) <= MAX_NUMBER for value in pair)
            or pair[1] < 1e-9
        ):
            item.fail(key, "[middle, half width], both numbers, the half width above 0")
        scaling[key] = (float(pair[0]), float(pair[1]))
    for key in SCALING_DIVISORS:
        scaling[key] = item.number(key, None, 1e-9)
    return scaling
