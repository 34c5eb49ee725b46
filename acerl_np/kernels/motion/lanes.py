"""Who holds which place, lane and block, and when: what vehicles have planned, sorted by spot.

A place holds one vehicle, or as many as it says, from when one comes until a headway after it has left. Sites
that lie aside hold any number. The lane between two sites is crossed in one direction at a time, and nobody
overtakes. A block holds one vehicle, or those that came in by the same edge, from the first of its places or
edges to the last.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import copy_records
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def is_off_lane(problem, i, spot):
    """Whether who stands at a spot stands clear of the lane."""
    return problem.adjacency[problem.instance[i].layout, spot, S.SPOT_OFF_LANE] != 0


@inner_kernel
def is_reserved(problem, i, plan, k, now):
    """Whether visit k, not the last, of a plan, ndarray((n, N_PLAN_FIELDS)), still holds a place or lane."""
    return plan[k + 1, S.PLAN_IN] + problem.instance[i].headway > now


@inner_kernel
def find_site(problem, i, spot):
    """Return where a spot is."""
    if not S.has_blocks(problem):
        return spot
    return problem.adjacency[problem.instance[i].layout, spot, S.SPOT_SITE]


@inner_kernel
def find_way(adjacency, spot, site):
    """Return which edge of a spot leads to a site; `adjacency` as `Problem.adjacency` of a layout."""
    way = 0
    while adjacency[adjacency[spot, S.SPOT_NEIGHBOURS + way], S.SPOT_SITE] != site:
        way += 1
    return way


@inner_kernel
def find_spot(problem, i, plan, k):
    """Return the spot of visit k of a plan, whose first visit is at a site that is one spot."""
    if not S.has_blocks(problem):
        return plan[k, S.PLAN_SITE]
    adjacency = problem.adjacency[problem.instance[i].layout]
    spot = plan[1, S.PLAN_SITE]
    for j in range(2, k + 1):
        spot = adjacency[spot, S.SPOT_NEIGHBOURS + find_way(adjacency, spot, plan[j, S.PLAN_SITE])]
    return spot


@inner_kernel
def put_reservation(node, reserved, writes, place, came, out, following, next_in, v, k):
    """Count, or write, an entry of `State.reserved` of a spot or block, sorted by when it begins."""
    if not writes:
        node[place + 1].first += 1
        return
    first = node[place].first
    at = first + node[place].filled
    node[place].filled += 1
    while at > first and reserved[at - 1].since > came:
        copy_records(reserved, at - 1, reserved, at, 1)
        at -= 1
    reserved[at].since, reserved[at].until = came, out
    reserved[at].next, reserved[at].next_in = following, next_in
    reserved[at].vehicle, reserved[at].visit = v, k


@inner_kernel
def put_visit(node, reserved, writes, spot, plan, v, k):
    """Count, or write, that visit k of vehicle v, not the last of its plan, holds a spot."""
    if not writes:
        node[spot + 1].first += 1
        return
    came, out = plan[k, S.PLAN_IN], plan[k, S.PLAN_OUT]
    following, next_in = plan[k + 1, S.PLAN_SITE], plan[k + 1, S.PLAN_IN]
    put_reservation(node, reserved, writes, spot, came, out, following, next_in, v, k)


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
    i, node, reserved = state.episode[b].instance, state.node, state.reserved
    layout, headway = (problem.instance[i].layout, problem.instance[i].headway)
    adjacency, plan, n_spots = (
        problem.adjacency[layout],
        state.plan[b, v],
        problem.adjacency.shape[1],
    )
    site, following = plan[k, S.PLAN_SITE], plan[k + 1, S.PLAN_SITE]
    way, spot_here = find_way(adjacency, spot, following), adjacency[site, S.SPOT_NEXT]
    while spot_here >= 0:
        put_visit(node, reserved, writes, spot_here, plan, v, k)
        spot_here = adjacency[spot_here, S.SPOT_NEXT]
    for part in range(2):
        begin, end = find_inside(problem, i, plan, k, part)
        for reservation in problem.block_reservation[layout, spot, part * (1 + way)]:
            block, way_in = reservation[0], reservation[1]
            if block < 0:
                break
            put_reservation(node, reserved, writes, n_spots + block, begin, end, way_in, part, v, k)
            for member in problem.block_member[layout, block]:
                if member[0] < 0:
                    break
                if way_in < 0 or member[1] != way_in:
                    until = end - headway
                    put_reservation(node, reserved, writes, member[0], begin, until, -1, 0, v, k)
    return adjacency[spot, S.SPOT_NEIGHBOURS + way]


@inner_kernel
def sort_reservations(problem, state, b, own):
    """Write to `State.reserved` what vehicles but `own`, -1 for none, hold from now on, by spot and tick.

    `first` of `State.node` tells where the entries of each spot begin, then those of each block.
    Return how many there are. The last visit of a plan is aside, and holds nothing.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    node, reserved, n_spots = state.node, state.reserved, problem.adjacency.shape[1]
    n_vehicles, n_lists = (problem.instance[i].n_vehicles, n_spots + problem.block_member.shape[1])
    for place in range(n_lists + 1):
        node[place].first = node[place].filled = 0
    for writes in range(2):
        for v in range(n_vehicles):
            plan = state.plan[b, v]
            first, n = plan[0, S.PLANNED_FROM], plan[0, S.PLANNED_VISITS]
            while first < n and not is_reserved(problem, i, plan, first, now):
                first += 1
            plan[0, S.PLANNED_FROM] = first
            spot = find_spot(problem, i, plan, first) if first < n else np.int64(0)
            for k in range(first, n if v != own else first):
                put_visit(node, reserved, writes, plan[k, S.PLAN_SITE], plan, v, k)
                if S.has_blocks(problem):
                    spot = put_blocks(problem, state, b, writes, spot, v, k)
        for place in range(0 if writes else n_lists):
            node[place + 1].first += node[place].first
    for place in range(n_spots if S.has_blocks(problem) else 0):
        last = np.int64(0)
        for at in range(node[place].first, node[place + 1].first):
            node[at].filled = last = max(last, reserved[at].until)
    return node[n_lists].first


@inner_kernel
def count_there(reserved, first, last, tick):
    """Return how many vehicles leave at a tick or later, of entries of a spot; by the last visit of each."""
    there = 0
    for a in range(first, last):
        again = False
        for c in range(a + 1, last):
            again |= reserved[c].vehicle == reserved[a].vehicle
        there += reserved[a].until >= tick and not again
    return there


@inner_kernel
def find_room(node, reserved, spot, w, holds, headway):
    """Return from when, and until when, fewer than `holds` others hold a spot, once w of them have come."""
    first, end = node[spot].first, node[spot + 1].first
    opens, closes = np.int64(0), S.NEVER
    for a in range(first, first + w):
        out = reserved[a].until
        if count_there(reserved, first, first + w, out) >= holds:
            opens = max(opens, out + headway)
    for a in range(first + w, end):
        came = reserved[a].since
        if count_there(reserved, first, a + 1, came - headway + 1) >= holds:
            closes = min(closes, came)
    return opens, closes


@inner_kernel
def find_window(problem, state, b, spot, w):
    """Return from when, and until when, a spot has room, in its w-th gap between others who hold it."""
    i = state.episode[b].instance
    if is_off_lane(problem, i, spot):
        return np.int64(0), S.NEVER
    node, reserved = state.node, state.reserved
    holds = problem.adjacency[problem.instance[i].layout, spot, S.SPOT_HOLDS]
    if holds > 1:
        return find_room(node, reserved, spot, w, holds, problem.instance[i].headway)
    first, end = node[spot].first, node[spot + 1].first
    opens, closes = np.int64(0), S.NEVER
    if w > 0:
        last = reserved[first + w - 1].until
        if S.has_blocks(problem):
            last = node[first + w - 1].filled
        opens = last + problem.instance[i].headway
    if first + w < end:
        closes = reserved[first + w].since
    return opens, closes


@inner_kernel
def find_clear(problem, state, b, spot, place, begins, ends):
    """Return when who would be in the blocks of a place for some ticks may be.

    The place is as in `Problem.block_reservation`.
    """
    node, reserved, n_spots = state.node, state.reserved, problem.adjacency.shape[1]
    layout = problem.instance[state.episode[b].instance].layout
    for reservation in problem.block_reservation[layout, spot, place]:
        if reservation[0] < 0:
            break
        first = n_spots + reservation[0]
        for k in range(node[first].first, node[first + 1].first):
            entry = reserved[k]
            if (reservation[1] < 0 or entry.next != reservation[1]) and entry.since < ends:
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
    node, reserved, headway = state.node, state.reserved, problem.instance[i].headway
    site, following = find_site(problem, i, a), find_site(problem, i, c)
    shared = not problem.instance[i].lanes_apart
    leaves, moves = max(start, opens - ticks), True
    while moves and leaves + ticks + headway <= closes:
        before = leaves
        for k in range(node[c].first, node[c + 1].first if shared else 0):
            entry = reserved[k]
            if entry.next == site and entry.until < leaves + ticks:
                leaves = max(leaves, entry.next_in)
        for k in range(node[a].first, node[a + 1].first):
            entry = reserved[k]
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
