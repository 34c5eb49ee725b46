"""Who holds which place, lane and block, and when: what vehicles have planned, sorted by spot.

A place holds one vehicle, or as many as it says, from when one comes until a headway after it has left. Sites
that lie aside hold any number. The lane between two sites is crossed in one direction at a time, and nobody
overtakes. A block holds one vehicle, or those that came in by the same edge, from the first of its places or
edges to the last.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.ground import state as S
from acerl_np.kernels.ground.records import copy_records
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def is_aside(problem, i, spot):
    """Whether who stands at a spot stands clear of the lane."""
    return problem.road[problem.instance[i].layout, spot, S.ROAD_ASIDE] != 0


@inner_kernel
def is_held(problem, i, plan, k, now):
    """Whether visit k, not the last, of a plan, ndarray((n, N_PLAN_FIELDS)), still holds a place or lane."""
    return plan[k + 1, S.PLAN_IN] + problem.instance[i].headway > now


@inner_kernel
def find_site(problem, i, spot):
    """Return where a spot is."""
    if not S.has_blocks(problem):
        return spot
    return problem.road[problem.instance[i].layout, spot, S.ROAD_SITE]


@inner_kernel
def find_way(road, spot, site):
    """Return which edge of a spot leads to a site; `road` as `Problem.road` of a layout."""
    way = 0
    while road[road[spot, S.ROAD_NEIGHBOURS + way], S.ROAD_SITE] != site:
        way += 1
    return way


@inner_kernel
def find_spot(problem, i, plan, k):
    """Return the spot of visit k of a plan, whose first visit is at a site that is one spot."""
    if not S.has_blocks(problem):
        return plan[k, S.PLAN_SITE]
    road = problem.road[problem.instance[i].layout]
    spot = plan[1, S.PLAN_SITE]
    for j in range(2, k + 1):
        spot = road[spot, S.ROAD_NEIGHBOURS + find_way(road, spot, plan[j, S.PLAN_SITE])]
    return spot


@inner_kernel
def put_held(label, held, writes, place, came, out, following, next_in, v, k):
    """Count, or write, an entry of `State.held` of a spot or block, sorted by when it begins."""
    if not writes:
        label[place + 1].first += 1
        return
    first = label[place].first
    at = first + label[place].filled
    label[place].filled += 1
    while at > first and held[at - 1].since > came:
        copy_records(held, at - 1, held, at, 1)
        at -= 1
    held[at].since, held[at].until = came, out
    held[at].next, held[at].next_in = following, next_in
    held[at].vehicle, held[at].visit = v, k


@inner_kernel
def put_visit(label, held, writes, spot, plan, v, k):
    """Count, or write, that visit k of vehicle v, not the last of its plan, holds a spot."""
    if not writes:
        label[spot + 1].first += 1
        return
    came, out = plan[k, S.PLAN_IN], plan[k, S.PLAN_OUT]
    following, next_in = plan[k + 1, S.PLAN_SITE], plan[k + 1, S.PLAN_IN]
    put_held(label, held, writes, spot, came, out, following, next_in, v, k)


@inner_kernel
def find_inside(problem, i, plan, k, part):
    """Return from when until when visit k of a plan is at its site, 0, or on the edge to the next, 1.

    In blocks an edge takes a tick at least.
    """
    came, out = plan[k, S.PLAN_IN], plan[k, S.PLAN_OUT]
    if part == 0:
        return came, out + problem.instance[i].headway
    return out, max(plan[k + 1, S.PLAN_IN], out + 1)


@inner_kernel
def put_blocks(problem, state, b, writes, spot, v, k):
    """Count, or write, what visit k of vehicle v holds because of blocks; return the next visit's spot."""
    i, label, held = state.episode[b].instance, state.label, state.held
    layout, headway = (problem.instance[i].layout, problem.instance[i].headway)
    road, plan, n_spots = problem.road[layout], state.plan[b, v], problem.road.shape[1]
    site, following = plan[k, S.PLAN_SITE], plan[k + 1, S.PLAN_SITE]
    way, twin = find_way(road, spot, following), road[site, S.ROAD_TWIN]
    while twin >= 0:
        put_visit(label, held, writes, twin, plan, v, k)
        twin = road[twin, S.ROAD_TWIN]
    for part in range(2):
        begin, end = find_inside(problem, i, plan, k, part)
        for claim in problem.claim[layout, spot, part * (1 + way)]:
            block, way_in = claim[0], claim[1]
            if block < 0:
                break
            put_held(label, held, writes, n_spots + block, begin, end, way_in, part, v, k)
            for member in problem.zone[layout, block]:
                if member[0] < 0:
                    break
                if way_in < 0 or member[1] != way_in:
                    until = end - headway
                    put_held(label, held, writes, member[0], begin, until, -1, 0, v, k)
    return road[spot, S.ROAD_NEIGHBOURS + way]


@inner_kernel
def sort_held(problem, state, b, own):
    """Write to `State.held` what vehicles but `own`, -1 for none, hold from now on, by spot, then by tick.

    `first` of `State.label` tells where the entries of each spot begin, then those of each block.
    Return how many there are. The last visit of a plan is aside, and holds nothing.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    label, held, n_spots = state.label, state.held, problem.road.shape[1]
    n_vehicles, n_lists = (problem.instance[i].n_vehicles, n_spots + problem.zone.shape[1])
    for place in range(n_lists + 1):
        label[place].first = label[place].filled = 0
    for writes in range(2):
        for v in range(n_vehicles):
            plan = state.plan[b, v]
            first, n = plan[0, S.PLANNED_FROM], plan[0, S.PLANNED_VISITS]
            while first < n and not is_held(problem, i, plan, first, now):
                first += 1
            plan[0, S.PLANNED_FROM] = first
            spot = find_spot(problem, i, plan, first) if first < n else np.int64(0)
            for k in range(first, n if v != own else first):
                put_visit(label, held, writes, plan[k, S.PLAN_SITE], plan, v, k)
                if S.has_blocks(problem):
                    spot = put_blocks(problem, state, b, writes, spot, v, k)
        for place in range(0 if writes else n_lists):
            label[place + 1].first += label[place].first
    for place in range(n_spots if S.has_blocks(problem) else 0):
        last = np.int64(0)
        for at in range(label[place].first, label[place + 1].first):
            label[at].filled = last = max(last, held[at].until)
    return label[n_lists].first


@inner_kernel
def count_there(held, first, last, tick):
    """Return how many vehicles leave at a tick or later, of entries of a spot; by the last visit of each."""
    there = 0
    for a in range(first, last):
        again = False
        for c in range(a + 1, last):
            again |= held[c].vehicle == held[a].vehicle
        there += held[a].until >= tick and not again
    return there


@inner_kernel
def find_room(label, held, spot, w, holds, headway):
    """Return from when, and until when, fewer than `holds` others hold a spot, once w of them have come."""
    first, end = label[spot].first, label[spot + 1].first
    opens, closes = np.int64(0), S.NEVER
    for a in range(first, first + w):
        out = held[a].until
        if count_there(held, first, first + w, out) >= holds:
            opens = max(opens, out + headway)
    for a in range(first + w, end):
        came = held[a].since
        if count_there(held, first, a + 1, came - headway + 1) >= holds:
            closes = min(closes, came)
    return opens, closes


@inner_kernel
def find_window(problem, state, b, spot, w):
    """Return from when, and until when, a spot has room, in its w-th gap between others who hold it."""
    i = state.episode[b].instance
    if is_aside(problem, i, spot):
        return np.int64(0), S.NEVER
    label, held = state.label, state.held
    holds = problem.road[problem.instance[i].layout, spot, S.ROAD_HOLDS]
    if holds > 1:
        return find_room(label, held, spot, w, holds, problem.instance[i].headway)
    first, end = label[spot].first, label[spot + 1].first
    opens, closes = np.int64(0), S.NEVER
    if w > 0:
        last = held[first + w - 1].until
        if S.has_blocks(problem):
            last = label[first + w - 1].filled
        opens = last + problem.instance[i].headway
    if first + w < end:
        closes = held[first + w].since
    return opens, closes


@inner_kernel
def find_clear(problem, state, b, spot, place, begins, ends):
    """Return when who would be in the blocks of a place for some ticks may be; the place is as in `claim`."""
    label, held, n_spots = state.label, state.held, problem.road.shape[1]
    layout = problem.instance[state.episode[b].instance].layout
    for claim in problem.claim[layout, spot, place]:
        if claim[0] < 0:
            break
        first = n_spots + claim[0]
        for k in range(label[first].first, label[first + 1].first):
            entry = held[k]
            if (claim[1] < 0 or entry.next != claim[1]) and entry.since < ends:
                begins = max(begins, entry.until)
    return begins


@inner_kernel
def find_departure(problem, state, b, a, c, way, start, ticks, opens, closes):
    """Return when who may leave spot a for spot c from a tick on does, -1 if not within the window of c.

    Parameters
    ----------
    way : int
        Which edge of a leads there.
    start, ticks : int
        When it may leave; what the edge takes after a stop.
    opens, closes : int
        Window of c, see `find_window`.
    """
    i = state.episode[b].instance
    label, held, headway = state.label, state.held, problem.instance[i].headway
    site, following = find_site(problem, i, a), find_site(problem, i, c)
    shared = not problem.instance[i].lanes_apart
    leaves, moves = max(start, opens - ticks), True
    while moves and leaves + ticks + headway <= closes:
        before = leaves
        for k in range(label[c].first, label[c + 1].first if shared else 0):
            entry = held[k]
            if entry.next == site and entry.until < leaves + ticks:
                leaves = max(leaves, entry.next_in)
        for k in range(label[a].first, label[a + 1].first):
            entry = held[k]
            if entry.next != following:
                continue
            enters, ends = entry.until, entry.next_in
            if enters <= leaves or enters < leaves + headway or ends < leaves + ticks + headway:
                leaves = max(leaves, enters + headway, ends + headway - ticks)
        if S.has_blocks(problem):
            ends = leaves + max(np.int64(1), ticks)
            leaves = find_clear(problem, state, b, a, 1 + way, leaves, ends)
        moves = leaves > before
    return leaves if leaves + ticks + headway <= closes else np.int64(-1)
