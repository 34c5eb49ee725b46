"""The earliest delivery among other vehicles: a search second by second over places, slow and obvious."""

from __future__ import annotations

FETCH, BRING, REST = range(3)


class NaiveSearch:
    """What others have planned on a floor of whole seconds: visits (site, comes, leaves) of each.

    `edges` are seconds by (site, site), `aside` whether each site holds any number.
    """

    def __init__(self, edges, aside, headway, apart, others):
        self.edges, self.aside, self.headway, self.apart = edges, aside, headway, apart
        self.held, self.crossings, self.end = set(), [], 0
        for visits in others:
            for k, (site, comes, leaves) in enumerate(visits):
                if k + 1 == len(visits):
                    assert aside[site], "all plans end at rest"
                    self.end = max(self.end, comes)
                    continue
                self.end = max(self.end, leaves + headway)
                if not aside[site]:
                    self.held |= {(site, second) for second in range(comes, leaves + headway)}
                self.crossings.append((site, visits[k + 1][0], leaves, visits[k + 1][1]))

    def is_free(self, site, first, last):
        """Whether nobody holds a site from one second on until before another."""
        return self.aside[site] or all((site, t) not in self.held for t in range(first, last))

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

    def list_moves(self, site, second):
        """The places and seconds that follow: a second's wait, and each edge."""
        if self.is_free(site, second + 1, second + 2):
            yield site, second + 1
        if self.is_free(site, second, second + self.headway):
            for (a, c), ticks in self.edges.items():
                comes = second + ticks
                is_free = a == site and self.is_free(c, comes, comes + 1)
                if is_free and self.may_cross(a, c, second, comes):
                    yield c, comes

    def reach(self, starts):
        """All places and seconds that can be reached from some of them."""
        seen, waiting = set(starts), list(starts)
        while waiting:
            site, second = waiting.pop()
            for move in self.list_moves(site, second) if second < self.end else ():
                if move not in seen:
                    seen.add(move)
                    waiting.append(move)
        return seen

    def find_delivery(self, site, second, pickup, delivery, ready, handling):
        """The earliest end of a delivery from which there is a way to rest; None if there is none."""
        self.end = max(self.end, second, ready) + handling + 2 * sum(self.edges.values())
        first = min(handling, (handling + 1) // 2)
        loaded = set()
        for place, t in self.reach({(site, second)}):
            end = max(t, ready) + first
            if place == pickup and self.is_free(place, t, end + 1):
                loaded.add((place, end))
        for place, t in sorted(self.reach(loaded), key=lambda item: item[1]):
            end = t + handling - first
            may_end = place == delivery and self.is_free(place, t, end + 1)
            if may_end and any(self.aside[rest] for rest, _ in self.reach({(place, end)})):
                return end
        return None
