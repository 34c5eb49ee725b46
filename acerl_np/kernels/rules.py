"""Dispatching rules: each picks the waiting task with the smallest key, the first in pool order.

The first four are the actions of a policy; the others serve as baselines.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.state import (
    ENDS_DELIVERY,
    ENDS_PICKUP,
    EPISODE_INSTANCE,
    EPISODE_POOL_SIZE,
    EPISODE_TIME,
    INSTANCE_LAYOUT,
    INSTANCE_TRUNCATES,
    RECORD_ARRIVAL,
    RECORD_EXPIRY,
    VEHICLE_SITE,
    may_carry,
    measure_distance,
    round_sum,
)
from acerl_np.support.compiled import inner_kernel

FCFS, EDD, NVF, STD, LWT, AHP = 0, 1, 2, 3, 4, 5

N_RULES = 4
"""Rules among which a policy chooses: action = vehicle * N_RULES + rule."""


@inner_kernel
def select_task(problem, state, b, v, rule):
    """Return the position in the pool of the task that `rule` picks for the idle vehicle v.

    Returns -1 when the vehicle may carry none of the waiting tasks.
    """
    i = state.episode[b, EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, INSTANCE_LAYOUT]]
    site = state.vehicle[b, v, VEHICLE_SITE]
    now = np.float64(state.episode[b, EPISODE_TIME])
    due_weight = 0.0
    distance_weight = 0.0
    if rule == AHP:
        count = 0
        for k in range(state.episode[b, EPISODE_POOL_SIZE]):
            task = state.pool[b, k]
            if may_carry(problem, i, v, task):
                count += 1
                due_weight += (
                    problem.record[i, task, RECORD_ARRIVAL] + problem.record[i, task, RECORD_EXPIRY]
                )
                distance_weight += distance[
                    problem.ends[i, task, ENDS_PICKUP], problem.ends[i, task, ENDS_DELIVERY]
                ]
        due_weight = 0.37 * count / due_weight if due_weight > 0.0 else 0.0
        distance_weight = 0.63 * count / distance_weight if distance_weight > 0.0 else 0.0
    best = -1
    best_key = np.inf
    for k in range(state.episode[b, EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if not may_carry(problem, i, v, task):
            continue
        pickup = problem.ends[i, task, ENDS_PICKUP]
        loaded = distance[pickup, problem.ends[i, task, ENDS_DELIVERY]]
        if rule == FCFS:
            key = problem.record[i, task, RECORD_ARRIVAL]
        elif rule == EDD:
            key = problem.record[i, task, RECORD_ARRIVAL] + problem.record[i, task, RECORD_EXPIRY]
        elif rule == NVF:
            key = measure_distance(distance[site, pickup], problem.instance[i, INSTANCE_TRUNCATES])
        elif rule == STD:
            key = measure_distance(
                distance[site, pickup] + loaded, problem.instance[i, INSTANCE_TRUNCATES]
            )
        elif rule == LWT:
            key = -round_sum(now - state.waiting_since[b, task])
        else:
            due = problem.record[i, task, RECORD_ARRIVAL] + problem.record[i, task, RECORD_EXPIRY]
            key = -round_sum(due_weight * due + distance_weight * loaded)
        if key < best_key:
            best_key = key
            best = k
    return best
