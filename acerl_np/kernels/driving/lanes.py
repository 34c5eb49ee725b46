"""Who holds which place and which lane, and when: what vehicles have planned, sorted by site.

A place holds one vehicle, from when it comes until a headway after it has left. Sites that lie aside hold any
number. The lane between two sites is crossed in one direction at a time, and nobody overtakes.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.ground import state as S
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def is_aside(problem, i, site):
    """Whether who stands at a site stands clear of the lane."""
    return problem.road[problem.instance[i, S.INSTANCE_LAYOUT], site, S.ROAD_ASIDE] != 0


@inner_kernel
def is_held(problem, i, plan, k, now):
    """Whether visit k, not the last, of a plan, ndarray((n, N_PLAN_FIELDS)), still holds a place or lane."""
    return plan[k + 1, S.PLAN_IN] + problem.instance[i, S.INSTANCE_HEADWAY] > now


@inner_kernel
def sort_held(problem, state, b, own):
    """Write to `State.held` what vehicles but `own`, -1 for none, hold from now on, by site, then by tick.

    `LABEL_FIRST` of `State.label` tells where the entries of each site begin. Return how many there are. The
    last visit of a plan is aside, and holds nothing.
    """
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    label, held, n_sites = state.label, state.held, problem.road.shape[1]
    n_vehicles = problem.instance[i, S.INSTANCE_N_VEHICLES]
    for site in range(n_sites + 1):
        label[site, S.LABEL_FIRST] = label[site, S.LABEL_FILLED] = 0
    for v in range(n_vehicles):
        plan = state.plan[b, v]
        first, n = plan[0, S.PLANNED_FROM], plan[0, S.PLANNED_VISITS]
        while first < n and not is_held(problem, i, plan, first, now):
            first += 1
        plan[0, S.PLANNED_FROM] = first
        for k in range(first, n if v != own else first):
            label[plan[k, S.PLAN_SITE] + 1, S.LABEL_FIRST] += 1
    for site in range(n_sites):
        label[site + 1, S.LABEL_FIRST] += label[site, S.LABEL_FIRST]
    for v in range(n_vehicles):
        plan = state.plan[b, v]
        for k in range(plan[0, S.PLANNED_FROM], plan[0, S.PLANNED_VISITS] if v != own else 0):
            site, came = plan[k, S.PLAN_SITE], plan[k, S.PLAN_IN]
            first = label[site, S.LABEL_FIRST]
            at = first + label[site, S.LABEL_FILLED]
            label[site, S.LABEL_FILLED] += 1
            while at > first and held[at - 1, S.HELD_IN] > came:
                for field in range(S.N_HELD_FIELDS):
                    held[at, field] = held[at - 1, field]
                at -= 1
            held[at, S.HELD_IN], held[at, S.HELD_OUT] = came, plan[k, S.PLAN_OUT]
            held[at, S.HELD_NEXT] = plan[k + 1, S.PLAN_SITE]
            held[at, S.HELD_NEXT_IN] = plan[k + 1, S.PLAN_IN]
            held[at, S.HELD_VEHICLE], held[at, S.HELD_VISIT] = v, k
    return label[n_sites, S.LABEL_FIRST]


@inner_kernel
def find_window(problem, state, b, site, w):
    """Return from when, and until when, nobody else holds a site, in its w-th gap between those who do."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    if is_aside(problem, i, site):
        return np.int64(0), S.NEVER
    label, held = state.label, state.held
    first, end = label[site, S.LABEL_FIRST], label[site + 1, S.LABEL_FIRST]
    opens, closes = np.int64(0), S.NEVER
    if w > 0:
        opens = held[first + w - 1, S.HELD_OUT] + problem.instance[i, S.INSTANCE_HEADWAY]
    if first + w < end:
        closes = held[first + w, S.HELD_IN]
    return opens, closes


@inner_kernel
def find_departure(problem, state, b, a, c, start, ticks, opens, closes):
    """Return when who may leave site a for site c from a tick on does, -1 if not within the window of c.

    Parameters
    ----------
    start, ticks : int
        When it may leave; what the edge takes after a stop.
    opens, closes : int
        Window of c, see `find_window`.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    label, held, headway = state.label, state.held, problem.instance[i, S.INSTANCE_HEADWAY]
    shared = not problem.instance[i, S.INSTANCE_LANES_APART]
    leaves, moves = max(start, opens - ticks), True
    while moves and leaves + ticks + headway <= closes:
        before = leaves
        for k in range(label[c, S.LABEL_FIRST], label[c + 1, S.LABEL_FIRST] if shared else 0):
            entry = held[k]
            if entry[S.HELD_NEXT] == a and entry[S.HELD_OUT] < leaves + ticks:
                leaves = max(leaves, entry[S.HELD_NEXT_IN])
        for k in range(label[a, S.LABEL_FIRST], label[a + 1, S.LABEL_FIRST]):
            entry = held[k]
            if entry[S.HELD_NEXT] != c:
                continue
            enters, ends = entry[S.HELD_OUT], entry[S.HELD_NEXT_IN]
            if enters <= leaves or enters < leaves + headway or ends < leaves + ticks + headway:
                leaves = max(leaves, enters + headway, ends + headway - ticks)
        moves = leaves > before
    return leaves if leaves + ticks + headway <= closes else np.int64(-1)
