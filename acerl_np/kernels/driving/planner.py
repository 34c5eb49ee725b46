"""The way of a vehicle among others: a search over places and the times when these are free.

Each trip is planned as its task is given, around all that is planned already, and ends where its vehicle
stands clear of the lane (context-aware routing: A. W. ter Mors, J. Zutt, C. Witteveen, 2007; safe intervals:
M. Phillips, M. Likhachev, 2011). So there is always a way: to wait until all others have come to rest.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.driving import lanes, ways
from acerl_np.kernels.ground import state as S
from acerl_np.support.compiled import inner_kernel, large_kernel

MICROSECONDS = 1_000_000
FETCH, BRING, REST = range(3)
"""What a vehicle does: legs of a trip. A label is a leg at a place in a window of time."""
ABOARD = np.int64(-2)
"""In place of a goal: the vehicle has loaded its task already."""


@inner_kernel
def comes_first(label, width, a, c):
    """Whether label a is looked at before label c: the earlier delivery, later leg, less way, further on."""
    if label[a].key != label[c].key:
        return label[a].key < label[c].key
    if a // width != c // width:
        return a // width > c // width
    if label[a].rank != label[c].rank:
        return label[a].rank < label[c].rank
    if label[a].tick != label[c].tick:
        return label[a].tick > label[c].tick
    return a < c


@inner_kernel
def rise(label, width, at):
    """Let the entry at a position of the heap rise to where it belongs."""
    a = label[at].heap
    while at > 0:
        above = (at - 1) // 2
        c = label[above].heap
        if not comes_first(label, width, a, c):
            break
        label[at].heap, label[c].position = c, at
        at = above
    label[at].heap, label[a].position = a, at


@inner_kernel
def take_first(label, width, size):
    """Take the first label out of a heap of a size, and return it."""
    first, a = label[0].heap, label[size - 1].heap
    label[first].position = -1
    at, size = 0, size - 1
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and comes_first(label, width, label[below + 1].heap, label[below].heap):
            below += 1
        c = label[below].heap
        if not comes_first(label, width, c, a):
            break
        label[at].heap, label[c].position = c, at
        at = below
    if size > 0:
        label[at].heap, label[a].position = a, at
    return first


@inner_kernel
def improve(label, seconds, width, size, a, spot, tick, base, driven, before, leaves, key, left):
    """Write a way to a label, a leg at a spot, if it is the best so far; return the heap's size.

    It is there at a tick, `driven` s after `base`, the tick of its last stop for others, and comes from the
    label `before`, which it leaves at a tick. `key` is the earliest delivery so, -1 to find it from `left`, s
    that are left to it at least; of a way to rest, `left` is to the nearest place aside.
    """
    row = label[a]
    search = label[0].search
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
        label[size].heap, row.position = a, size
        size += 1
    rise(label, width, row.position)
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
        The last label, see `write_plan`; -1 if there is none.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    layout, headway = (problem.instance[i].layout, problem.instance[i].headway)
    label, seconds, road = state.label, state.label_seconds, problem.road[layout]
    n_held, n_sites = lanes.sort_held(problem, state, b, v), problem.least.shape[1]
    width = problem.road.shape[1] + n_held
    label[0].search += 1
    pickup = delivery = ready = np.int64(0)
    handling = first = loaded = 0.0
    start, key, rest = np.int64(REST), np.int64(0), n_sites if goal < 0 else goal
    if task >= 0:
        pickup, delivery = (problem.ends[i, task].pickup, problem.ends[i, task].delivery)
        ready = np.int64(np.ceil(S.find_ready(problem, state, b, task)))
        handling = problem.record[i, task].handling
        first = find_first_part(problem, i, handling)
        loaded = problem.least[layout, pickup, delivery] + handling
        start, key = np.int64(BRING if goal == ABOARD else FETCH), np.int64(-1)

    w = 0
    while not lanes.is_aside(problem, i, spot):
        opens, closes = lanes.find_window(problem, state, b, spot, w)
        if since < closes and tick < closes:
            break
        w += 1
    a = start * width + label[spot].first + spot + w
    size = improve(label, seconds, width, 0, a, spot, tick, tick, 0.0, -1, 0, key, 0.0)
    while size > 0:
        a = take_first(label, width, size)
        size -= 1
        leg, row = a // width, label[a]
        spot = row.spot
        n, aside = lanes.find_site(problem, i, spot), lanes.is_aside(problem, i, spot)
        if leg == REST and (aside if goal < 0 else n == goal):
            return a
        came, base, driven = row.tick, row.stopped, seconds[a]
        w = a % width - label[spot].first - spot
        closes = lanes.find_window(problem, state, b, spot, w)[1]
        if leg == FETCH and n == pickup:
            base2, driven2 = base + max(np.int64(0), ready - came), driven + first
            done = base2 + S.count_ticks(driven2)
            if aside or done + headway <= closes:
                size = improve(
                    *(label, seconds, width, size, a + width, spot, done, base2, driven2, a, done),
                    *(np.int64(-1), loaded - first),
                )
        if leg == BRING and n == delivery:
            done = max(base + S.count_ticks(driven + handling - first), now + 1)
            if aside or done + headway <= closes:
                size = improve(
                    *(label, seconds, width, size, a + width, spot, done, done, 0.0, a, done, done),
                    problem.least[layout, n, rest],
                )
        for way in range(road[spot, S.ROAD_DEGREE]):
            ahead = road[spot, S.ROAD_NEIGHBOURS + way]
            c = lanes.find_site(problem, i, ahead)
            left = problem.least[layout, c, rest]
            if leg == FETCH:
                left = problem.least[layout, c, pickup] + loaded
            elif leg == BRING:
                left = problem.least[layout, c, delivery] + handling - first
            if left == np.inf:
                continue
            edge = problem.edge_length[layout, n, c] / ways.find_pace(problem, i, v, n, c)
            ticks = S.count_ticks(edge)
            begin, end = label[ahead].first, label[ahead + 1].first
            for w in range(1 if lanes.is_aside(problem, i, ahead) else end - begin + 1):
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
                if leaves >= 0 and not aside and leaves + headway > closes:
                    break
                if leaves < 0:
                    continue
                arrives = base2 + S.count_ticks(driven2)
                key = row.key if leg == REST else np.int64(-1)
                to = leg * width + begin + ahead + w
                size = improve(
                    *(label, seconds, width, size, to, ahead, arrives, base2, driven2, a, leaves),
                    *(key, left),
                )
    return np.int64(-1)


@inner_kernel
def find_first_part(problem, i, handling):
    """Return which part of a task's handling, s, is done at the pickup; the rest is at the delivery."""
    where = problem.instance[i].handling_at
    if where == S.HANDLED_AT_PICKUP:
        return handling
    return min(handling, np.ceil(handling / 2.0)) if where == S.HANDLED_AT_BOTH else 0.0
