"""Spots, which searches for ways among others tell apart: a site, and how one came into its blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.problem.layout import Layout
from acerl_np.support.errors import LayoutError

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
