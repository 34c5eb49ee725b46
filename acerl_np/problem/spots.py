"""Spots, which searches for ways among others tell apart: a site, and how one came into its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from acerl_np.kernels.core import state
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_TABLE_BYTES
from acerl_np.support.errors import InputError, LayoutError

MAX_SPOTS = 50_000
ANY_WAY = -1
"""In place of the edge by which one came in: who is inside is in everybody's way."""

Reservations = tuple[tuple[int, int], ...]
"""Blocks that a vehicle is inside of, each with the edge by which it came in: a * n_sites + c."""


class Spots(NamedTuple):
    """Spots by their numbers; the first are the sites, in their order.

    A site in a block of one direction is a spot for each edge by which one may have come in. `site` is where
    each spot is, `ways` the spots to which its edges lead, `reservations` those of who is there, and
    `crossing` those of who drives each of its edges.
    """

    site: list[int]
    ways: list[list[int]]
    reservations: list[Reservations]
    crossing: list[list[Reservations]]


def find_spots(layout: Layout) -> Spots:
    """Return the spots of a floor, following all edges from where no vehicle is in a block of one direction.

    A `LayoutError` refuses blocks that make too many of them.
    """
    index, n = layout.site_index, len(layout.sites)
    ends = [np.flatnonzero(row).tolist() for row in np.isfinite(layout.routes.edge_length)]
    if not layout.blocks:
        return Spots([*range(n)], ends, [()] * n, [[()] * len(own) for own in ends])
    narrow = {site.id for site in layout.sites if not site.aside and site.holds == 1}
    inside = [{index[name] for name in narrow.intersection(block.sites)} for block in layout.blocks]
    named = [{frozenset(map(index.__getitem__, x)) for x in block.edges} for block in layout.blocks]
    is_single = [block.kind == "single" for block in layout.blocks]
    free = [
        tuple((k, ANY_WAY) for k, own in enumerate(inside) if is_single[k] and site in own)
        for site in range(n)
    ]
    directed = {x for k, own in enumerate(inside) if not is_single[k] for x in own}
    spots = Spots([*range(n)], [[] for _ in range(n)], free, [[] for _ in range(n)])
    number = {(site, free[site]): site for site in range(n) if site not in directed}
    waiting = [*number.values()]
    for spot in waiting:
        a, own = spots.site[spot], dict(spots.reservations[spot])
        for c in ends[a]:
            reservations, crossing = [], []
            for k, members in enumerate(inside):
                reservation = k, ANY_WAY if is_single[k] else own.get(k, a * n + c)
                if c in members:
                    reservations.append(reservation)
                if (c in members and a in members) or frozenset((a, c)) in named[k]:
                    crossing.append(reservation)
            key = c, tuple(reservations)
            if key not in number:
                number[key] = c if c in directed else len(spots.site)
                if c in directed:
                    directed.remove(c)
                    spots.reservations[c] = key[1]
                else:
                    for table, item in zip(spots, (c, [], key[1], []), strict=True):
                        table.append(item)  # type: ignore[attr-defined]
                waiting.append(number[key])
            spots.ways[spot].append(number[key])
            spots.crossing[spot].append(tuple(crossing))
        if len(spots.site) > MAX_SPOTS:
            raise LayoutError(
                f"blocks: sites of blocks of one direction by the ways into them are more than "
                f"{MAX_SPOTS:,}; expected fewer, or smaller blocks"
            )
    return spots


def stack_spots(
    layouts: Sequence[Layout], fastest: Sequence[float], fleet: int
) -> dict[str, np.ndarray]:
    """Return what searches for ways among other vehicles need, by the names of `Problem`.

    `fastest` is the highest speed, m/s, on each floor, `fleet` how many vehicles there are at most.
    """
    n_layouts, n_sites = len(layouts), max(len(layout.sites) for layout in layouts)
    spots = [find_spots(layout) for layout in layouts]
    degree = max(len(own) for found in spots for own in found.ways)
    n_spots = max(len(found.site) for found in spots)
    adjacency = np.zeros((n_layouts, n_spots, state.SPOT_NEIGHBOURS + degree), np.int64)
    adjacency[..., state.SPOT_NEXT] = -1
    bound = np.full((n_layouts, n_sites, n_sites + 1), np.inf)
    most = 0
    for k, (layout, found) in enumerate(zip(layouts, spots, strict=True)):
        size, routes = len(layout.sites), layout.routes
        bound[k, :size, :size] = routes.cost / (1.0 if layout.quickest_routes else fastest[k])
        aside = np.array([site.aside for site in layout.sites])
        bound[k, :size, -1] = bound[k, :size, :size][:, aside].min(axis=1, initial=np.inf)
        for spot, (site, ways) in enumerate(zip(found.site, found.ways, strict=True)):
            row = adjacency[k, spot]
            row[state.SPOT_OFF_LANE], row[state.SPOT_SITE] = aside[site], site
            row[state.SPOT_DEGREE], row[state.SPOT_HOLDS] = len(ways), layout.sites[site].holds
            row[state.SPOT_NEIGHBOURS : state.SPOT_NEIGHBOURS + len(ways)] = ways
            if spot >= size:
                row[state.SPOT_NEXT] = adjacency[k, site, state.SPOT_NEXT]
                adjacency[k, site, state.SPOT_NEXT] = spot
        hops = shortest_path(csr_array(np.isfinite(routes.edge_length)), unweighted=True)
        most = max(most, int(hops[np.isfinite(hops)].max()))
    # To rest as planned before, and three legs, each with half as many detours again.
    n_visits = 16 + 4 * (most + most // 2)
    n_blocks = max(len(layout.blocks) for layout in layouts)
    reservation, member, n_reserved = _stack_blocks(n_blocks, spots, degree)
    needed = fleet * n_visits * n_reserved * (state.RESERVATION.itemsize + 3 * state.NODE.itemsize)
    if needed > MAX_TABLE_BYTES:
        raise InputError(
            f"traffic: plans of a fleet of {fleet} need {needed / 2**30:.1f} GiB, with blocks that hold "
            f"up to {n_reserved} places at once; expected at most {MAX_TABLE_BYTES / 2**30:.0f}"
        )
    auxiliary = np.zeros((0, n_reserved, n_visits) + (0,) * bool(reservation.size), np.bool_)
    return {
        "adjacency": adjacency,
        "block_reservation": reservation,
        "block_member": member,
        "time_bound": bound,
        "auxiliary": auxiliary,
    }


def _stack_blocks(
    n_blocks: int, spots: Sequence[Spots], degree: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return `Problem.block_reservation` and `Problem.block_member`, and how much room a visit takes.

    That is the most entries of `State.reserved`.
    """
    if n_blocks == 0:
        return np.zeros((0, 0, 0, 0, 2), np.int64), np.zeros((0, 0, 0, 2), np.int64), 1
    members_of: list[list[list[tuple[int, int]]]] = []
    n_reservations = n_reserved = 1
    for found in spots:
        own: list[list[tuple[int, int]]] = [[] for _ in range(n_blocks)]
        for spot, reservations in enumerate(found.reservations):
            for block, way_in in reservations:
                own[block].append((spot, way_in))
        members_of.append(own)
        n_spots_at = Counter(found.site)
        for site, reservations, crossing in zip(
            found.site, found.reservations, found.crossing, strict=True
        ):
            for along in crossing:
                n_reservations = max(n_reservations, len(reservations), len(along))
                needed = sum(1 + len(own[block]) for block, _ in reservations + along)
                n_reserved = max(n_reserved, n_spots_at[site] + needed)
    n_spots = max(len(found.site) for found in spots)
    reservation = np.full((len(spots), n_spots, 1 + degree, n_reservations, 2), -1, np.int64)
    member = np.full((len(spots), n_blocks, max(len(x) for own in members_of for x in own), 2), -1)
    for k, (found, own) in enumerate(zip(spots, members_of, strict=True)):
        for block, members in enumerate(own):
            member[k, block, : len(members)] = np.array(members, np.int64).reshape(-1, 2)
        for spot, crossing in enumerate(found.crossing):
            for place, reservations in enumerate([found.reservations[spot], *crossing]):
                reservation[k, spot, place, : len(reservations)] = np.array(
                    reservations, np.int64
                ).reshape(-1, 2)
    return reservation, member, n_reserved
