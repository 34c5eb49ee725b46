"""Dispatching rules: each picks the waiting task with the smallest key, the first in pool order.

They are written as rules of users are. The first four are the paper's, among which a network chooses unless
it was trained with others.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.floor import Floor, with_methods
from acerl_np.kernels.motion.offers import find_priority, is_offered
from acerl_np.support.compiled import inner_kernel

FCFS, EDD, NVF, STD, LWT, AHP = 0, 1, 2, 3, 4, 5

N_RULES = 4
"""Rules of the paper, the first ones: those of MIX and searches."""

PAPER_RULES = np.arange(N_RULES)
"""Rules among which a network chooses by default: action = vehicle * R + k for the k-th of R."""


@inner_kernel
def weigh_ahp(problem, state, b, v, rule):
    """Return the weights of due times and loaded ways in AHP, from the tasks offered to v; else zeros."""
    due_weight, distance_weight = 0.0, 0.0
    if rule != AHP:
        return due_weight, distance_weight
    i = state.episode[b].instance
    distance = problem.distance[problem.instance[i].layout]
    priority = find_priority(problem, state, b, v)
    count = 0
    for task in state.pool[b, : state.episode[b].pool_size]:
        if is_offered(problem, state, b, v, task, priority):
            count += 1
            due_weight += S.find_due(problem, state, b, task)
            distance_weight += distance[
                problem.ends[i, task].pickup, problem.ends[i, task].delivery
            ]
    due_weight = 0.37 * count / due_weight if due_weight > 0.0 else 0.0
    distance_weight = 0.63 * count / distance_weight if distance_weight > 0.0 else 0.0
    return due_weight, distance_weight


@inner_kernel
def fcfs(floor, vehicle, task):
    """First come, first served."""
    return floor.arrival(task)


@inner_kernel
def edd(floor, vehicle, task):
    """Earliest due date."""
    return floor.due(task)


@inner_kernel
def nvf(floor, vehicle, task):
    """Nearest vehicle first: the shortest way to the pickup."""
    way = floor.rest(vehicle) + floor.distance(floor.site(vehicle), floor.pickup(task))
    return floor.whole(max(way, floor.ready(task) * floor.speed(vehicle)))


@inner_kernel
def std(floor, vehicle, task):
    """Shortest travel distance: to the pickup and on to the delivery."""
    way = floor.rest(vehicle) + floor.distance(floor.site(vehicle), floor.pickup(task))
    way = max(way, floor.ready(task) * floor.speed(vehicle))
    return floor.whole(way + floor.trip(task))


@inner_kernel
def lwt(floor, vehicle, task):
    """Longest waiting time."""
    return -floor.waiting(task)


@inner_kernel
def rate_task(problem, state, b, v, rule, task, weights):
    """Return the key that `rule` gives a waiting task for vehicle v; `weights` are those of `weigh_ahp`."""
    i, key = state.episode[b].instance, state.breakdown_key[b]
    floor = with_methods(Floor(problem, state, b, i, key, 0))
    if rule == FCFS:
        return fcfs(floor, v, task)
    if rule == EDD:
        return edd(floor, v, task)
    if rule == NVF:
        return nvf(floor, v, task)
    if rule == STD:
        return std(floor, v, task)
    if rule == LWT:
        return lwt(floor, v, task)
    due = weights[0] * floor.due(task) if weights[0] > 0.0 else 0.0
    return -S.round_sum(due + weights[1] * floor.trip(task))


@inner_kernel
def select_task(problem, state, b, v, rule):
    """Return the position in the pool of the task that `rule` picks for the idle vehicle v.

    Returns -1 when the vehicle may carry none of the waiting tasks.
    """
    weights = weigh_ahp(problem, state, b, v, rule)
    priority = find_priority(problem, state, b, v)
    best, best_key = -1, np.inf
    for k in range(state.episode[b].pool_size):
        task = state.pool[b, k]
        if not is_offered(problem, state, b, v, task, priority):
            continue
        key = rate_task(problem, state, b, v, rule, task, weights)
        if best < 0 or key < best_key:  # inf: never due
            best_key = key
            best = k
    return best
