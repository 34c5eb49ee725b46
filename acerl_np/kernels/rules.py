"""Dispatching rules: each picks the waiting task with the smallest key, the first in pool order.

The first four are the paper's, among which a network chooses unless it was trained with others.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.state import find_due, find_priority, is_offered, measure_distance, round_sum
from acerl_np.support.compiled import inner_kernel

FCFS, EDD, NVF, STD, LWT, AHP = 0, 1, 2, 3, 4, 5

N_RULES = 4
"""Rules of the paper, the first ones: those of MIX, static plans and searches."""

PAPER_RULES = np.arange(N_RULES)
"""Rules among which a network chooses by default: action = vehicle * R + k for the k-th of R."""


@inner_kernel
def weigh_ahp(problem, state, b, v, rule):
    """Return the weights of due times and loaded ways in AHP, from the tasks offered to v; else zeros."""
    due_weight, distance_weight = 0.0, 0.0
    if rule != AHP:
        return due_weight, distance_weight
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    priority = find_priority(problem, state, b, v)
    count = 0
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if is_offered(problem, i, v, task, priority):
            count += 1
            due_weight += find_due(problem, i, task)
            distance_weight += distance[
                problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
            ]
    due_weight = 0.37 * count / due_weight if due_weight > 0.0 else 0.0
    distance_weight = 0.63 * count / distance_weight if distance_weight > 0.0 else 0.0
    return due_weight, distance_weight


@inner_kernel
def rate_task(problem, state, b, v, rule, task, weights):
    """Return the key that `rule` gives a waiting task for vehicle v; `weights` are those of `weigh_ahp`."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    truncates = problem.instance[i, S.INSTANCE_TRUNCATES]
    site = state.vehicle[b, v, S.VEHICLE_SITE]
    pickup = problem.ends[i, task, S.ENDS_PICKUP]
    loaded = distance[pickup, problem.ends[i, task, S.ENDS_DELIVERY]]
    if rule == FCFS:
        return problem.record[i, task, S.RECORD_ARRIVAL]
    if rule == EDD:
        return find_due(problem, i, task)
    if rule == NVF:
        return measure_distance(distance[site, pickup], truncates)
    if rule == STD:
        return measure_distance(distance[site, pickup] + loaded, truncates)
    if rule == LWT:
        now = np.float64(state.episode[b, S.EPISODE_TIME])
        return -round_sum(now - state.waiting_since[b, task])
    return -round_sum(weights[0] * find_due(problem, i, task) + weights[1] * loaded)


@inner_kernel
def select_task(problem, state, b, v, rule):
    """Return the position in the pool of the task that `rule` picks for the idle vehicle v.

    Returns -1 when the vehicle may carry none of the waiting tasks.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    weights = weigh_ahp(problem, state, b, v, rule)
    priority = find_priority(problem, state, b, v)
    best, best_key = -1, np.inf
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if not is_offered(problem, i, v, task, priority):
            continue
        key = rate_task(problem, state, b, v, rule, task, weights)
        if key < best_key:
            best_key = key
            best = k
    return best
