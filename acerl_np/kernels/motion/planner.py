"""The way of a vehicle among others: a search over places and the times when these are free.

Each trip is planned as its task is given, around all that is planned already, and ends where its vehicle
stands clear of the lane (context-aware routing: A. W. ter Mors, J. Zutt, C. Witteveen, 2007; safe intervals:
M. Phillips, M. Likhachev, 2011). So there is always a way: to wait until all others have come to rest.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import lanes, ways
from acerl_np.support.compiled import inner_kernel, large_kernel

MICROSECONDS = 1_000_000
FETCH, BRING, REST = range(3)
"""What a vehicle does: legs of a trip. A node is a leg at a place in a window of time."""
ABOARD = np.int64(-2)
"""In place of a goal: the vehicle has loaded its task already."""


@inner_kernel
def comes_first(node, width, a, c):
    """Whether node a is looked at before node c: the earlier delivery, later leg, less way, further on."""
    if node[a].key != node[c].key:
        return node[a].key < node[c].key
    if a // width != c // width:
        return a // width > c // width
    if node[a].rank != node[c].rank:
        return node[a].rank < node[c].rank
    if node[a].tick != node[c].tick:
        return node[a].tick > node[c].tick
    return a < c


@inner_kernel
def rise(node, width, at):
    """Let the entry at a position of the heap rise to where it belongs."""
    a = node[at].heap
    while at > 0:
        above = (at - 1) // 2
        c = node[above].heap
        if not comes_first(node, width, a, c):
            break
        node[at].heap, node[c].position = c, at
        at = above
    node[at].heap, node[a].position = a, at


@inner_kernel
def take_first(node, width, size):
    """Take the first node out of a heap of a size, and return it."""
    first, a = node[0].heap, node[size - 1].heap
    node[first].position = -1
    at, size = 0, size - 1
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and comes_first(node, width, node[below + 1].heap, node[below].heap):
            below += 1
        c = node[below].heap
        if not comes_first(node, width, c, a):
            break
        node[at].heap, node[c].position = c, at
        at = below
    if size > 0:
        node[at].heap, node[a].position = a, at
    return first


@inner_kernel
def improve(node, seconds, width, size, a, spot, tick, base, driven, before, leaves, key, left):
    """Write a way to a node, a leg at a spot, if it is the best so far; return the heap's size.

    It is there at a tick, `driven` s after `base`, the tick of its last stop for others, and comes from the
    node `before`, which it leaves at a tick. `key` is the earliest delivery so, -1 to find it from `left`, s
    that are left to it at least; of a way to rest, `left` is to the nearest place aside.
    """
    row = node[a]
    search = node[0].search
    if row.seen != search:
        row.seen, row.spot, row.position = search, spot, -1
    elif np.float64(base) + driven >= np.float64(row.stopped) + seconds[a] - 1e-9:
        return size
    row.tick, row.stopped, seconds[a] = tick, base, driven
    row.before, row.leaves = before, leaves
    # Of ways that deliver at the same tick the shortest, as without others.
    row.key = key if key >= 0 else base + S.count_ticks(driven + left)
    row.rank = base * MICROSECONDS + np.int64((driven + left) * MICROSECONDS + 0.5)
    if row.position < 0:
        node[size].heap, row.position = a, size
        size += 1
    rise(node, width, row.position)
    return size


@inner_kernel
def find_left(problem, layout, leg, site, trip):
    """Return the least seconds from a site to a delivery, or to rest; `trip` as `end_leg`."""
    pickup, delivery, rest, first, loaded, handling = trip
    if leg == FETCH:
        return problem.time_bound[layout, site, pickup] + loaded
    if leg == BRING:
        return problem.time_bound[layout, site, delivery] + handling - first
    return problem.time_bound[layout, site, rest]


@inner_kernel
def end_leg(problem, state, b, a, width, size, closes, ready, trip):
    """Let a node's vehicle load or deliver where it is, if it may; return the heap's size.

    Parameters
    ----------
    closes, ready : int, ticks until which it may stay, and from which the task may be loaded
    trip : tuple
        Sites of pickup, delivery and rest; seconds of handling at the pickup, of the way from there on at
        least, handling included, and of handling in all.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    layout, headway = problem.instance[i].layout, problem.instance[i].headway
    node, seconds, row = state.node, state.node_seconds, state.node[a]
    pickup, delivery, _, first, loaded, handling = trip
    spot, base, driven = row.spot, row.stopped, seconds[a]
    site, off_lane = lanes.find_site(problem, i, spot), lanes.is_off_lane(problem, i, spot)
    done, base2, driven2, key, left = base, base, driven, np.int64(-1), loaded - first
    if a // width == FETCH and site == pickup:
        base2, driven2 = base + max(np.int64(0), ready - row.tick), driven + first
        done = base2 + S.count_ticks(driven2)
    elif a // width == BRING and site == delivery:
        done = max(base + S.count_ticks(driven + handling - first), now + 1)
        base2, driven2, key = done, 0.0, done
        left = find_left(problem, layout, REST, site, trip)
    else:
        return size
    if not off_lane and done + headway > closes:
        return size
    return improve(
        *(node, seconds, width, size, a + width, spot, done, base2, driven2, a, done, key, left)
    )


@inner_kernel
def leave_spot(problem, state, b, v, a, width, size, closes, trip):
    """Let a node's vehicle go on along each edge, in each window of its end; return the heap's size."""
    i = state.episode[b].instance
    layout, headway = problem.instance[i].layout, problem.instance[i].headway
    node, seconds, adjacency = state.node, state.node_seconds, problem.adjacency[layout]
    leg, row = a // width, node[a]
    spot, came, base, driven = row.spot, row.tick, row.stopped, seconds[a]
    site, off_lane = lanes.find_site(problem, i, spot), lanes.is_off_lane(problem, i, spot)
    key = row.key if leg == REST else np.int64(-1)
    for way in range(adjacency[spot, S.SPOT_DEGREE]):
        ahead = adjacency[spot, S.SPOT_NEIGHBOURS + way]
        c = lanes.find_site(problem, i, ahead)
        left = find_left(problem, layout, leg, c, trip)
        if left == np.inf:
            continue
        edge = problem.edge_length[layout, site, c] / ways.find_pace(problem, i, v, site, c)
        ticks = S.count_ticks(edge)
        begin, end = node[ahead].first, node[ahead + 1].first
        for w in range(1 if lanes.is_off_lane(problem, i, ahead) else end - begin + 1):
            opens, until = lanes.find_window(problem, state, b, ahead, w)
            if until < came + headway:
                continue
            # Without a stop it takes what it takes from the last one on, rounded once.
            going = base + S.count_ticks(driven + edge) - came
            leaves, base2, driven2 = np.int64(-1), base, driven + edge
            if came + going >= opens:
                leaves = lanes.find_departure(
                    problem, state, b, spot, ahead, way, came, going, np.int64(0), until
                )
            if leaves != came:
                leaves = lanes.find_departure(
                    problem, state, b, spot, ahead, way, came, ticks, opens, until
                )
                base2, driven2 = leaves, edge
            if leaves >= 0 and not off_lane and leaves + headway > closes:
                break
            if leaves < 0:
                continue
            arrives, to = base2 + S.count_ticks(driven2), leg * width + begin + ahead + w
            size = improve(
                *(node, seconds, width, size, to, ahead, arrives, base2, driven2, a, leaves),
                *(key, left),
            )
    return size


@large_kernel
def search_way(problem, state, b, v, task, goal, spot, tick, since):
    """Find the way of vehicle v from a spot to a task's pickup, its delivery, and to rest.

    It may leave the spot from a tick on, and holds it since another. Of all ways that end at rest it is one
    of the earliest delivery. Without a task, -1, it is one of the earliest end at `goal`, or at any site
    aside where that is -1. With the goal `ABOARD` it has been at the pickup.

    Returns
    -------
    int
        The last node, see `write_plan`; -1 if there is none.
    """
    i, node, seconds = state.episode[b].instance, state.node, state.node_seconds
    layout = problem.instance[i].layout
    n_reserved, n_sites = lanes.sort_reservations(problem, state, b, v), problem.time_bound.shape[1]
    width = problem.adjacency.shape[1] + n_reserved
    node[0].search += 1
    pickup = delivery = ready = np.int64(0)
    handling = first = loaded = 0.0
    start, key, rest = np.int64(REST), np.int64(0), n_sites if goal < 0 else goal
    if task >= 0:
        pickup, delivery = (problem.ends[i, task].pickup, problem.ends[i, task].delivery)
        ready = np.int64(np.ceil(S.find_ready(problem, state, b, task)))
        handling = problem.record[i, task].handling
        first = find_first_part(problem, i, handling)
        loaded = problem.time_bound[layout, pickup, delivery] + handling
        start, key = np.int64(BRING if goal == ABOARD else FETCH), np.int64(-1)
    trip = pickup, delivery, rest, first, loaded, handling

    w = 0
    while not lanes.is_off_lane(problem, i, spot):
        closes = lanes.find_window(problem, state, b, spot, w)[1]
        if since < closes and tick < closes:
            break
        w += 1
    a = start * width + node[spot].first + spot + w
    size = improve(node, seconds, width, 0, a, spot, tick, tick, 0.0, -1, 0, key, 0.0)
    while size > 0:
        a = take_first(node, width, size)
        size -= 1
        spot = node[a].spot
        rests = lanes.is_off_lane(problem, i, spot)
        if goal >= 0:
            rests = lanes.find_site(problem, i, spot) == goal
        if a // width == REST and rests:
            return a
        w = a % width - node[spot].first - spot
        closes = lanes.find_window(problem, state, b, spot, w)[1]
        size = end_leg(problem, state, b, a, width, size, closes, ready, trip)
        size = leave_spot(problem, state, b, v, a, width, size, closes, trip)
    return np.int64(-1)


@inner_kernel
def find_first_part(problem, i, handling):
    """Return which part of a task's handling, s, is done at the pickup; the rest is at the delivery."""
    where = problem.instance[i].handling_at
    if where == S.HANDLED_AT_PICKUP:
        return handling
    return min(handling, np.ceil(handling / 2.0)) if where == S.HANDLED_AT_BOTH else 0.0
