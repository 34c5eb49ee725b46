"""Places and edges of a floor that are too near for vehicles of a length: blocks that keep them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acerl_np.problem.layout import Layout, find_stations
from acerl_np.problem.parts import Block

PREFIX = "near:"
"""Ids of blocks that are made here begin so."""

Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""Two places that are too near: a site (k,), or the edge between two sites (a, b)."""


def _overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which other boxes a box overlaps: centre, half a length and its direction, half a width."""
    shift, found = others[:, :2] - box[:2], np.ones(len(others), np.bool_)
    sides = np.concatenate([box[None], others])[:, 3:5]
    for turn in (False, True):
        for own in (np.broadcast_to(sides[0], shift.shape), sides[1:]):
            axis = own[:, ::-1] * [-1.0, 1.0] if turn else own
            reach = np.zeros(len(others))
            for x in (box[None], others):
                along = np.abs((x[:, 3:5] * axis).sum(axis=1))
                across = np.abs(x[:, 3] * axis[:, 1] - x[:, 4] * axis[:, 0])
                reach = reach + x[:, 2] * along + x[:, 5] * across
            found &= np.abs((shift * axis).sum(axis=1)) < reach - 1e-9
    return found


def find_near(layout: Layout) -> list[Pair]:
    """Return the places where two vehicles of the fleet's greatest length and width would touch.

    A vehicle at a site points along any of its edges; on an edge its centre is on it. A site and its own
    edges, and edges that share a site, are no pair: a vehicle passes those one after another.
    """
    length = max(vehicle.length for vehicle in layout.vehicles)
    width = max(vehicle.width or vehicle.length for vehicle in layout.vehicles)
    points = np.array([(site.x, site.y) for site in layout.sites])
    index = layout.site_index
    edges = sorted({tuple(sorted((index[edge.a], index[edge.b]))) for edge in layout.edges})
    places: list[tuple[int, ...]] = []
    boxes: list[tuple[float, ...]] = []
    for a, b in edges if length > 0.0 else ():
        (dx, dy), middle = points[b] - points[a], (points[a] + points[b]) / 2.0
        metres = float(np.hypot(dx, dy))
        if metres == 0.0:
            continue
        along = dx / metres, dy / metres
        places += [(a, b), (a,), (b,)]
        boxes.append((*middle, metres / 2.0, *along, width / 2.0))
        boxes += [(*points[k], length / 2.0, *along, width / 2.0) for k in (a, b)]
    table, pairs = np.array(boxes).reshape(-1, 6), set[Pair]()
    for k, place in enumerate(places):
        for other in np.flatnonzero(_overlap(table[k], table[k + 1 :])) + k + 1:
            if not {*place} & {*places[other]}:
                one, two = sorted((place, places[other]), key=lambda x: (len(x), x))
                pairs.add((one, two))
    return sorted(pairs, key=lambda pair: (len(pair[0]), len(pair[1]), pair))


def describe_near(layout: Layout) -> str:
    """Return how many pairs are too near for the fleet, on what share of the ways, and if blocks say so.

    That is "" where none are. Ways are those between two stations, or sites without any.
    """
    length = max(vehicle.length for vehicle in layout.vehicles)
    n, pairs = len(layout.sites), find_near(layout) if length else []
    if not pairs:
        return ""
    touched = np.zeros((n, n))
    for place in {place for pair in pairs for place in pair}:
        a, b = place[0], place[-1]
        touched[a, b] = touched[b, a] = 1.0
        if a == b:
            touched[a] = touched[:, a] = 1.0
    stations = [k for own in find_stations(layout).values() for k in own]
    served = np.unique(stations or range(n)).astype(int)
    asked, routes = np.ix_(served, served), layout.routes
    is_way = np.isfinite(routes.distance) & ~np.eye(n, dtype=bool)
    met = (routes.add_along(touched)[asked] > 0.0)[is_way[asked]]
    missing = len(pairs) - sum(block.id.startswith(PREFIX) for block in layout.blocks)
    told = f"; {missing} without a block (floor edit --vehicle-length {length:g})"
    return (
        f"vehicles of {length:g} m: {len(pairs)} pairs of places are nearer, on "
        f"{met.mean() if met.size else 0.0:.0%} of the ways{told if missing else ''}"
    )


def keep_apart(layout: Layout, length: float, width: float = 0.0) -> Layout:
    """Return a floor with vehicles of a length and width, m, and blocks that keep near places apart.

    Two sites are in a block of one vehicle; else vehicles that follow each other on an edge may.
    """
    fleet = [replace(vehicle, length=length, width=width) for vehicle in layout.vehicles]
    layout = layout.with_fleet(fleet)
    names, blocks = [site.id for site in layout.sites], list[Block]()
    for k, pair in enumerate(find_near(layout), 1):
        named = [tuple(names[site] for site in place) for place in pair]
        sites = tuple(place[0] for place in named if len(place) == 1)
        edges = tuple(place for place in named if len(place) == 2)
        kind = "same_direction" if edges else "single"
        blocks.append(Block(f"{PREFIX}{k}", kind, sites, edges))
    own = [block for block in layout.blocks if not block.id.startswith(PREFIX)]
    return replace(layout, blocks=(*own, *blocks))
