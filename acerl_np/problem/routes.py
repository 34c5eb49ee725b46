"""Routes between all sites of a floor: the shortest, or the quickest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from acerl_np.problem.parts import Edge
from acerl_np.support.errors import LayoutError

MAX_SITES_WITH_ZERO_EDGES = 300
"""Edges of no length need every route looked at one by one."""

TOLERANCE = 1e-9
"""Metres within which two routes count as equally long."""


@dataclass(frozen=True)
class Routes:
    """Routes between all ordered pairs of S sites, by arrays (S, S).

    `distance` and `edge_length` are in metres, `edge_speed` in m/s, None on a floor without limits; inf where
    there is none. `edge_cost` and `cost` are what each edge costs, and the route that costs least: its
    length, or its time if quickest. `next_site` is the site after a on the route from a to b; a itself where
    a = b or there is no way. `explicit` are routes that it does not lead along: named ones, and some over
    edges of no length.
    """

    distance: np.ndarray
    edge_length: np.ndarray
    edge_speed: np.ndarray | None
    edge_cost: np.ndarray
    cost: np.ndarray
    next_site: np.ndarray
    explicit: dict[tuple[int, int], tuple[int, ...]]
    _slowdowns: dict[float, np.ndarray | None] = field(default_factory=dict, repr=False)

    def find_slowdown(self, speed: float) -> np.ndarray | None:
        """Return by how much longer each route takes, s, than its length by `speed`, m/s, due to limits.

        float64 (S, S), None where no limit is below this speed.
        """
        if speed not in self._slowdowns:
            found = None
            if self.edge_speed is not None and (self.edge_speed < speed).any():
                length = np.where(np.isfinite(self.edge_length), self.edge_length, 0.0)
                slow = length / np.minimum(speed, self.edge_speed) - length / speed
                found = self.add_along(slow)
            self._slowdowns[speed] = found
        return self._slowdowns[speed]

    def add_along(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of what each edge has along the route between any two sites, 0 without a way."""
        total = np.zeros(self.cost.shape)
        drives = np.isfinite(self.cost) & ~np.eye(len(total), dtype=bool)
        for pair in self.explicit:
            drives[pair] = False  # `next_site` may lead in circles there
        origin, target = np.nonzero(drives)
        here = origin
        while len(here):
            following = self.next_site[here, target]
            total[origin, target] += values[here, following]
            left = following != target
            origin, target, here = origin[left], target[left], following[left]
        for pair, route in self.explicit.items():
            total[pair] = sum(values[a, b] for a, b in pairwise(route))
        return total

    def find_next(self, origin: int, site: int, target: int) -> int:
        """Return the site after one on the route from an origin to a target; the target itself at its end."""
        route = self.explicit.get((origin, target), ())
        if site in route[:-1]:
            return route[route.index(site) + 1]
        return int(self.next_site[site, target])

    def find_time(self, speed: float) -> np.ndarray:
        """Return how long each route takes at `speed`, m/s, where no limit is lower: float64 (S, S), s."""
        slowdown = self.find_slowdown(speed)
        time = self.distance / speed
        return time if slowdown is None else time + slowdown

    @cached_property
    def lacks_ways(self) -> bool:
        """Whether from some site no way leads to another."""
        return bool(np.isinf(self.distance).any())

    @cached_property
    def mean_distance(self) -> float:
        """Mean distance of two different sites that have a way between them, m; 0 without any."""
        near = np.isfinite(self.distance) & ~np.eye(len(self.distance), dtype=bool)
        return float(self.distance[near].mean()) if near.any() else 0.0


def find_routes(
    sites: Mapping[str, int],
    edges: Sequence[Edge],
    named_routes: Sequence[Sequence[str]],
    quickest_at: float | None = None,
) -> Routes:
    """Find a route between all ordered pairs of sites; ties go to the first by the sites' order.

    `sites` are positions by id. Of several equally good routes a named one is taken; those of unknown sites
    are passed over. The routes are the shortest, or the quickest for a vehicle of `quickest_at`, m/s.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n_sites = len(sites)
    edge_length = np.full((n_sites, n_sites), np.inf)
    edge_speed = np.full((n_sites, n_sites), np.inf)
    for edge in edges:
        a, b = sites[edge.a], sites[edge.b]
        back = edge.max_speed if edge.max_reverse_speed is None else edge.max_reverse_speed
        for way, limit in [((a, b), edge.max_speed), ((b, a), back)][: 1 if edge.one_way else 2]:
            # Of edges between the same sites the shortest is driven, of equally long ones the fastest.
            if (edge.length, -limit) < (edge_length[way], -edge_speed[way]):
                edge_length[way], edge_speed[way] = edge.length, limit
    edge_cost = edge_length
    if quickest_at is not None:
        edge_cost = edge_length / np.minimum(quickest_at, edge_speed)
    starts, ends = np.nonzero(np.isfinite(edge_length))
    lengths = edge_cost[starts, ends]
    # Before SciPy 1.15 the shortest paths take indices of 32 bits only.
    ways = starts.astype(np.int32), ends.astype(np.int32)
    graph = csr_array((lengths, ways), shape=(n_sites, n_sites))
    cost = shortest_path(graph, method="D", directed=True)

    _check_shortest_edge(lengths, cost)

    # Going through edges by descending end, the first neighbour on a shortest route stays.
    next_site = np.tile(np.arange(n_sites, dtype=np.int32)[:, None], (1, n_sites))
    finite = np.isfinite(cost)
    slack = TOLERANCE * np.maximum(1.0, np.where(finite, cost, 1.0))
    for k in np.argsort(-ends, kind="stable"):
        a, b = starts[k], ends[k]
        shortest = finite[a] & (lengths[k] + cost[b] <= cost[a] + slack[a])
        shortest[a] = False
        next_site[a, shortest] = b
    explicit: dict[tuple[int, int], tuple[int, ...]] = {}
    if (lengths == 0.0).any():
        explicit = _route_over_zero_edges(edge_cost, cost, slack, next_site)
    for route in named_routes:
        if len(route) > 1 and all(site in sites for site in route):
            indices = tuple(sites[site] for site in route)
            explicit[indices[0], indices[-1]] = indices
    limits = edge_speed if np.isfinite(edge_speed).any() else None
    routes = Routes(cost, edge_length, limits, edge_cost, cost, next_site, explicit)
    if quickest_at is None:
        return routes
    metres = np.where(np.isfinite(edge_length), edge_length, 0.0)
    return replace(routes, distance=np.where(finite, routes.add_along(metres), np.inf))


def _check_shortest_edge(lengths: np.ndarray, distance: np.ndarray) -> None:
    """Refuse lengths within the tolerance of routes: a vehicle could go to and fro for ever."""
    positive = lengths[lengths > 0.0]
    longest = float(distance[np.isfinite(distance)].max())
    # Every step over an edge of no length may be off by the tolerance.
    steps = 2 if len(positive) == len(lengths) else len(distance)
    least = steps * TOLERANCE * max(1.0, longest)
    if len(positive) and positive.min() <= least:
        raise LayoutError(
            f"edges: one is {positive.min():g} m long and the longest route {longest:g} m; "
            f"expected lengths of 0 or above {least:g} m"
        )


def _route_over_zero_edges(
    edge_length: np.ndarray, distance: np.ndarray, slack: np.ndarray, next_site: np.ndarray
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Find the first shortest route that visits no site twice, where edges of no length allow loops.

    `next_site` is set to the first step of each route; routes that it does not lead along are returned.
    """
    n_sites = len(distance)
    if n_sites > MAX_SITES_WITH_ZERO_EDGES:
        raise LayoutError(
            f"edges: some have length 0 on a floor of {n_sites} sites; expected lengths above 0, or at "
            f"most {MAX_SITES_WITH_ZERO_EDGES} sites"
        )
    neighbours = [np.flatnonzero(np.isfinite(row)).tolist() for row in edge_length]

    def leads_on(a: int, b: int, target: int) -> bool:
        step = edge_length[a, b] + distance[b, target]
        return bool(step <= distance[a, target] + slack[a, target])

    def arrives(site: int, target: int, visited: set[int]) -> bool:
        # A step of positive length never comes back, so only steps of no length are followed.
        seen, stack = {site}, [site]
        while stack:
            a = stack.pop()
            if a == target:
                return True
            for b in neighbours[a]:
                if b not in visited and b not in seen and leads_on(a, b, target):
                    if edge_length[a, b] > 0.0:
                        return True
                    seen.add(b)
                    stack.append(b)
        return False

    routes: dict[tuple[int, int], tuple[int, ...]] = {}
    for a, target in zip(*np.nonzero(np.isfinite(distance)), strict=True):
        route = [int(a)]
        while route[-1] != target:
            here, visited = route[-1], set(route)
            route.append(
                next(
                    b
                    for b in neighbours[here]
                    if b not in visited
                    and leads_on(here, b, target)
                    and (edge_length[here, b] > 0.0 or arrives(b, int(target), visited))
                )
            )
        routes[int(a), int(target)] = tuple(route)
    for (start, target), steps in routes.items():
        if len(steps) > 1:
            next_site[start, target] = steps[1]
    return {
        ends: steps
        for ends, steps in routes.items()
        if any(next_site[a, ends[1]] != b for a, b in pairwise(steps))
    }
