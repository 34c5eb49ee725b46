"""Floors made in Python: how the bundled `supply-loop` and `cross-aisles` came to be.

    python examples/floors.py --out instances

They are made up, and differ in kind: a loop of one-way lanes that supplies lines from a supermarket, with
slow sidings, and a warehouse of two-way aisles between docks and packing stations. Types of sites say what a
shift does where (`acerl-np records make --arrivals shift`). Without --out the bundled ones are compared.
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise
from pathlib import Path

import acerl_np
from acerl_np import Edge, Layout, Site, Vehicle
from acerl_np.commands.floor import format_layout
from acerl_np.problem.bundled import instances_folder

SIDING = 0.6
"""Speed limit of the loop's sidings, m/s."""


def connect(a: Site, b: Site, *, one_way: bool = False, max_speed: float = math.inf) -> Edge:
    """Return the straight edge from one site to another."""
    return Edge(a.id, b.id, math.hypot(a.x - b.x, a.y - b.y), one_way, max_speed)


def make_fleet(n: int, start: Site, speed: float) -> tuple[Vehicle, ...]:
    """Return n like vehicles."""
    return tuple(Vehicle(f"v{k + 1}", start.id, speed) for k in range(n))


def make_supply_loop() -> Layout:
    """Return a ring of one-way lanes, 80 m x 40 m, with two short cuts; 39 sites."""
    south = [Site(f"s{x}", x, 0.0, "waypoint") for x in range(0, 90, 10)]
    north = [Site(f"n{x}", x, 40.0, "waypoint") for x in range(80, -10, -10)]
    east, west = Site("e20", 80.0, 20.0, "waypoint"), Site("w20", 0.0, 20.0, "waypoint")
    sidings = [
        *((at, Site(f"rack-{k}", at.x, -5.0, "storage")) for k, at in enumerate(south[1:8], 1)),
        *((at, Site(f"line-{k}", at.x, 45.0, "work")) for k, at in enumerate(north[1:8], 1)),
        (south[0], Site("receiving-1", -6.0, 0.0, "goods-in")),
        (west, Site("receiving-2", -6.0, 20.0, "goods-in")),
        (east, Site("shipping-1", 86.0, 20.0, "goods-out")),
        (south[8], Site("shipping-2", 86.0, 0.0, "goods-out")),
        (north[8], Site("park", -6.0, 40.0, "parking")),
    ]
    ring = [*south, east, *north, west, south[0]]
    lanes = [*pairwise(ring), (south[3], north[5]), (north[3], south[5])]
    return Layout(
        "supply-loop",
        (*ring[:-1], *(site for _, site in sidings)),
        (
            *(connect(a, b, one_way=True) for a, b in lanes),
            *(connect(a, b, max_speed=SIDING) for a, b in sidings),
        ),
        make_fleet(4, sidings[-1][1], 1.2),
    )


def make_cross_aisles() -> Layout:
    """Return six two-way aisles between three cross aisles; 60 sites."""
    xs, ys = range(0, 60, 10), (0, 18, 36)
    crossing = {(x, y): Site(f"x{x}-{y}", x, y, "waypoint") for x in xs for y in ys}
    sites, edges = list(crossing.values()), []
    for y in ys:
        edges += [connect(crossing[a, y], crossing[b, y]) for a, b in pairwise(xs)]
    for x in xs:
        for low, high in pairwise(ys):
            shelves = [Site(f"shelf-{x}-{y}", x, y, "storage") for y in (low + 6, low + 12)]
            aisle = [crossing[x, low], *shelves, crossing[x, high]]
            sites += shelves
            edges += [connect(a, b) for a, b in pairwise(aisle)]
    ends = [
        *((x, 0, x, -6, f"inbound-{x}", "goods-in") for x in (0, 10, 20)),
        *((x, 0, x, -6, f"outbound-{x}", "goods-out") for x in (30, 40, 50)),
        (0, 0, -8, 0, "inbound-west", "goods-in"),
        (50, 0, 58, 0, "outbound-east", "goods-out"),
        *((x, 36, x, 42, f"pack-{x}", "work") for x in xs),
        (0, 18, -8, 18, "pack-west", "work"),
        (50, 18, 58, 18, "pack-east", "work"),
        (0, 36, -8, 36, "park-west", "parking"),
        (50, 36, 58, 36, "park-east", "parking"),
    ]
    for at_x, at_y, x, y, name, kind in ends:
        sites.append(Site(name, x, y, kind))
        edges.append(connect(crossing[at_x, at_y], sites[-1]))
    return Layout("cross-aisles", tuple(sites), tuple(edges), make_fleet(4, sites[-1], 1.5))


def main() -> None:
    """Write the floors, or compare the bundled ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for a folder of each")
    parser.add_argument("--quick", action="store_true", help="as without: it takes no time")
    out = parser.parse_args().out
    for layout in (make_supply_loop(), make_cross_aisles()):
        path = (out or instances_folder()) / layout.name / "layout.json"
        if out is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(format_layout(layout), encoding="utf-8")
        same = acerl_np.Layout.load(path).to_dict() == layout.to_dict()
        print(f"{path}: {'as made here' if same else 'another floor'}")
        if not same:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
