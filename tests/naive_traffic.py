"""The earliest delivery among other vehicles: a search second by second over places, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

FETCH, BRING, REST = range(3)


class Zone(NamedTuple):
    """A block: its sites that hold one vehicle, and its edges, frozenset of two sites each."""

    is_single: bool
    inside: frozenset
    edges: frozenset

    def drive(self, way_in, a, c):
        """By which edge one that drives from a to c is inside on the edge, and at c; None where it is not.

        `way_in` is that at a.
        """
        way_in = way_in or (a, c)
        on_edge = frozenset((a, c)) in self.edges or {a, c} <= self.inside
        return way_in if on_edge else None, way_in if c in self.inside else None

    def list_stays(self, visits, headway):
        """When a vehicle is inside (from, until), and by which edge it came in, each place on its own."""
        stays, way_in = [], None
        for k, (site, comes, leaves) in enumerate(visits):
            if way_in:
                stays.append((comes, leaves + headway, way_in))
            if k + 1 < len(visits):
                on_edge, way_in = self.drive(way_in, site, visits[k + 1][0])
                if on_edge:
                    stays.append((leaves, max(visits[k + 1][1], leaves + 1), on_edge))
        return stays

    def are_apart(self, way, other):
        """Whether two that came in by these edges must not be inside at once."""
        return self.is_single or way != other


def list_zones(layout):
    """The blocks of a floor."""
    index = layout.site_index
    wide = {index[site.id] for site in layout.sites if site.aside or site.holds > 1}
    return [
        Zone(
            block.kind == "single",
            frozenset(index[site] for site in block.sites) - wide,
            frozenset(frozenset(index[site] for site in ends) for ends in block.edges),
        )
        for block in layout.blocks
    ]


class NaiveSearch:
    """What others have planned on a floor of whole seconds: visits (site, comes, leaves), and all so far.

    `edges` are seconds by (site, site), `sites` of the layout say how many each holds. A place is a site, and
    by which edge one came into each of the `zones`.
    """

    def __init__(self, edges, sites, headway, apart, others, zones=()):
        self.edges, self.headway, self.apart = edges, headway, apart
        self.aside, self.holds = ([getattr(x, name) for x in sites] for name in ("aside", "holds"))
        self.held, self.crossings, self.end, self.zones = defaultdict(set), [], 0, zones
        self.taken = [{} for _ in zones]
        for v, (visits, so_far) in enumerate(others):
            for k, (site, comes, leaves) in enumerate(visits):
                if k + 1 == len(visits):
                    assert self.aside[site], "all plans end at rest"
                    self.end = max(self.end, comes)
                    continue
                self.end = max(self.end, leaves + headway)
                for second in range(comes, leaves + headway):
                    self.held[site, second].add(v)
                self.crossings.append((site, visits[k + 1][0], leaves, visits[k + 1][1]))
            for zone, taken in zip(zones, self.taken, strict=True):
                for comes, leaves, way in zone.list_stays(so_far, headway):
                    for second in range(comes, leaves):
                        taken.setdefault(second, set()).add(way)

    def may_be_in(self, ways, first, last):
        """Whether one that came into zones by such ways may be in them from one second on until another."""
        return not any(
            zone.are_apart(way, other)
            for zone, taken, way in zip(self.zones, self.taken, ways, strict=True)
            for second in (range(first, last) if way else ())
            for other in taken.get(second, ())
        )

    def is_free(self, place, first, last):
        """Whether nobody holds a place from one second on until before another."""
        site, ways = place
        if not self.may_be_in(ways, first, last):
            return False
        room = self.holds[site]
        return self.aside[site] or all(len(self.held[site, t]) < room for t in range(first, last))

    def may_cross(self, a, c, leaves, comes):
        for b, d, out, arrives in self.crossings:
            if (b, d) == (c, a) and not self.apart and leaves < arrives and out < comes:
                return False
            if (b, d) == (a, c):
                before = leaves >= out + self.headway and comes >= arrives + self.headway
                after = leaves + self.headway <= out and comes + self.headway <= arrives
                if not before and not after:
                    return False
        return True

    def list_moves(self, place, second):
        """The places and seconds that follow: a second's wait, and each edge."""
        if self.is_free(place, second + 1, second + 2):
            yield place, second + 1
        if self.is_free(place, second, second + self.headway):
            for (a, c), ticks in self.edges.items():
                if a != place[0]:
                    continue
                comes = second + ticks
                ways = [
                    zone.drive(way, a, c) for zone, way in zip(self.zones, place[1], strict=True)
                ]
                there = c, tuple(way for _, way in ways)
                is_free = self.may_be_in([way for way, _ in ways], second, max(comes, second + 1))
                is_free = is_free and self.is_free(there, comes, comes + 1)
                if is_free and self.may_cross(a, c, second, comes):
                    yield there, comes

    def reach(self, starts):
        """All places and seconds that can be reached from some of them."""
        seen, waiting = set(starts), list(starts)
        while waiting:
            place, second = waiting.pop()
            for move in self.list_moves(place, second) if second < self.end else ():
                if move not in seen:
                    seen.add(move)
                    waiting.append(move)
        return seen

    def find_delivery(self, place, second, pickup, delivery, ready, handling):
        """The earliest end of a delivery from which there is a way to rest; None if there is none."""
        self.end = max(self.end, second, ready) + handling + 2 * sum(self.edges.values())
        first = min(handling, (handling + 1) // 2)
        loaded = set()
        for there, t in self.reach({(place, second)}):
            end = max(t, ready) + first
            if there[0] == pickup and self.is_free(there, t, end + 1):
                loaded.add((there, end))
        for there, t in sorted(self.reach(loaded), key=lambda item: item[1]):
            end = t + handling - first
            may_end = there[0] == delivery and self.is_free(there, t, end + 1)
            if may_end and any(self.aside[rest[0]] for rest, _ in self.reach({(there, end)})):
                return end
        return None
