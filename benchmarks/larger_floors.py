"""Larger floors, with chargers and parking places: two of 200 sites, and grids.

    python benchmarks/larger_floors.py --out floors

`two-lane-hall` has two one-way lanes with bays on both sides, `one-way-aisles` is a store whose aisles are
driven one way each. Both are made up.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from script import import_beside, make_parser

import acerl_np
from acerl_np import Charger, Edge, Layout, Parking, ParkingPlace, Site, Vehicle
from acerl_np.commands.floor import format_layout
from acerl_np.kernels.core.random import GENERATION, derive_key, draw_uniform

SIDING, connect, make_fleet = (
    getattr(import_beside("examples", "floors"), name)
    for name in ("SIDING", "connect", "make_fleet")
)


def find_floor(name: str, vehicles: int) -> Layout:
    """Return a bundled floor, one of a file, or a grid such as grid-25x10."""
    if not name.startswith("grid-"):
        return acerl_np.load_layout(name)
    width, depth = map(int, name.removeprefix("grid-").split("x"))
    return make_grid(width, depth, vehicles)


def make_grid(width: int, depth: int, vehicles: int) -> Layout:
    """Return a grid of sites 10 m apart, and vehicles that start at random sites."""
    sites = [Site(f"s{x}-{y}", 10.0 * x, 10.0 * y) for x in range(width) for y in range(depth)]
    edges = [
        Edge(f"s{x}-{y}", f"s{x + dx}-{y + dy}", 10.0)
        for x in range(width)
        for y in range(depth)
        for dx, dy in ((1, 0), (0, 1))
        if x + dx < width and y + dy < depth
    ]
    key = np.empty(4, np.uint32)
    derive_key(0, GENERATION, -1, 0, key)
    starts = [sites[int(draw_uniform(key, k, 0) * len(sites))].id for k in range(vehicles)]
    fleet = tuple(Vehicle(f"v{k}", start) for k, start in enumerate(starts))
    return Layout("grid", tuple(sites), tuple(edges), fleet, task_slots=64)


def draw_shifts(
    layout: Layout, n: int, seed: int, *, name: str = "{seed}-{k}", **plant: Any
) -> list[acerl_np.Instance]:
    """Return shifts of a seed, at a scale and other options of `generate_shift`."""
    names = [name.format(seed=seed, k=k) for k in range(n)]
    return [
        acerl_np.generate_shift(layout, seed=seed, index=k, name=own, **plant)
        for k, own in enumerate(names)
    ]


def equip(name: str, sites: list[Site], edges: list[Edge], fleet: tuple[Vehicle, ...]) -> Layout:
    """Return a floor whose sites of kind charger and parking are used as such, one vehicle each."""
    chargers = tuple(Charger(site.id) for site in sites if site.kind == "charger")
    places = tuple(ParkingPlace(site.id) for site in sites if site.kind == "parking")
    parking = Parking(places, after=60)
    return Layout(name, tuple(sites), tuple(edges), fleet, chargers=chargers, parking=parking)


def make_two_lane_hall() -> Layout:
    """Return two opposite one-way lanes of 195 m, bays of storage and work, docks; 200 sites."""
    xs = range(0, 200, 5)
    east = {x: Site(f"e{x}", x, 0.0, "waypoint") for x in xs}
    west = {x: Site(f"w{x}", x, 4.0, "waypoint") for x in xs}
    edges = [connect(east[a], east[b], one_way=True) for a, b in pairwise(xs)]
    edges += [connect(west[b], west[a], one_way=True) for a, b in pairwise(xs)]
    edges += [connect(east[x], west[x]) for x in xs]
    sites = [*east.values(), *west.values()]
    south = ["goods-in", "goods-out", "charger", "parking"] * 5
    for k, x in enumerate(xs):
        storage = k % 4 in (0, 1)
        bay = [Site(f"bay-{x}", x, 10.0, "waypoint")]
        if storage:
            bay += [Site(f"rack-{x}-{y}", x, float(y), "storage") for y in (14, 18)]
        else:
            kind = "work" if k % 4 == 2 else "waypoint"
            bay.append(Site(f"line-{x}" if kind == "work" else f"end-{x}", x, 14.0, kind))
        sites += bay
        edges += [connect(a, b, max_speed=SIDING) for a, b in pairwise([west[x], *bay])]
        if k % 2:
            dock = Site(f"{south[k // 2]}-{x}", x, -6.0, south[k // 2])
            sites.append(dock)
            edges.append(connect(east[x], dock, max_speed=SIDING))
    start = next(site for site in sites if site.kind == "parking")
    return equip("two-lane-hall", sites, edges, make_fleet(8, start, 1.0))


def make_one_way_aisles() -> Layout:
    """Return fourteen aisles of eleven shelves, one way each in turn, between two cross aisles; 210 sites."""
    xs, depth = range(0, 84, 6), 48
    low = {x: Site(f"south-{x}", x, 0.0, "waypoint") for x in xs}
    high = {x: Site(f"north-{x}", x, float(depth), "waypoint") for x in xs}
    sites = [*low.values(), *high.values()]
    edges = [connect(row[a], row[b]) for row in (low, high) for a, b in pairwise(xs)]
    for k, x in enumerate(xs):
        shelves = [Site(f"shelf-{x}-{y}", x, float(y), "storage") for y in range(4, depth, 4)]
        aisle = [low[x], *shelves, high[x]]
        sites += shelves
        edges += [connect(a, b, one_way=True) for a, b in pairwise(aisle[:: 1 if k % 2 else -1])]
    north = ["work", "work", "charger", "work", "work", "parking", "work"] * 2
    south = ["goods-in", "goods-out", "goods-in", "parking", "goods-out", "charger", "goods-in"] * 2
    for row, kinds, y in ((high, north, depth + 6.0), (low, south, -6.0)):
        for x, kind in zip(xs, kinds, strict=True):
            sites.append(Site(f"{kind}-{x}-{'north' if row is high else 'south'}", x, y, kind))
            edges.append(connect(row[x], sites[-1]))
    start = next(site for site in sites if site.kind == "parking")
    return equip("one-way-aisles", sites, edges, make_fleet(8, start, 1.5))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, help="folder for a folder of each")
    out = parser.parse_args().out
    for layout in (make_two_lane_hall(), make_one_way_aisles()):
        print(f"{layout.name}: {len(layout.sites)} sites")
        if out is not None:
            (out / layout.name).mkdir(parents=True, exist_ok=True)
            (out / layout.name / "layout.json").write_text(format_layout(layout), encoding="utf-8")


if __name__ == "__main__":
    main()
