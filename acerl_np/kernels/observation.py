"""What a policy sees at a decision: features of waiting tasks and vehicles, and the legal actions.

Most task slots are empty, so features are listed as (index, value) pairs; everything not listed is 0.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.events import has_choice, locate_vehicle
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.state import (
    CAPACITY,
    DELIVERY,
    DEMAND,
    EXPIRY,
    INSTANCE,
    LAYOUT,
    LOADED,
    N_VEHICLES,
    PICKUP,
    POOL_SIZE,
    SITE,
    SPEED,
    STATUS,
    TASK_SLOTS,
    TIME,
    TRUNCATES,
    WORKING,
    measure_distance,
)
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def append_feature(index, value, n, position, feature):
    """Append a feature to the list unless it is zero; return the list's new length."""
    narrow = np.float32(feature)
    if narrow != np.float32(0.0):
        index[n] = position
        value[n] = narrow
        n += 1
    return n


@inner_kernel
def list_features(problem, state, b, index, value):
    """List the non-zero features of episode b in ascending order and return their number.

    Parameters
    ----------
    problem : Problem
    state : State
        The positions of working vehicles are brought up to date.
    b : int
    index : ndarray(int32, (n_features,))
        Output.
    value : ndarray(float32, (n_features,))
        Output.

    Returns
    -------
    int
    """
    i = state.episode[b, INSTANCE]
    now = state.episode[b, TIME]
    scale = problem.scaling[i]
    slots = problem.instance[i, TASK_SLOTS]
    seen = min(state.episode[b, POOL_SIZE], slots)
    distance = problem.distance[problem.instance[i, LAYOUT]]
    truncate = problem.instance[i, TRUNCATES]
    n = np.int64(0)
    for k in range(seen):
        task = state.pool[b, k]
        waiting = np.float64(now) - state.waiting_since[b, task]
        n = append_feature(
            index, value, n, 4 * k, (problem.task[i, task, LOADED] - scale[0]) / scale[1]
        )
        n = append_feature(index, value, n, 4 * k + 1, (waiting - scale[2]) / scale[3])
        n = append_feature(
            index, value, n, 4 * k + 2, (problem.task[i, task, EXPIRY] - scale[4]) / scale[5]
        )
        n = append_feature(
            index, value, n, 4 * k + 3, (problem.task[i, task, DEMAND] - scale[6]) / scale[7]
        )
    for v in range(problem.instance[i, N_VEHICLES]):
        if state.vehicle[b, v, STATUS] == WORKING:
            locate_vehicle(problem, state, b, v, now)
        base = 4 * slots + v * (3 + slots)
        n = append_feature(index, value, n, base, problem.vehicle[i, v, SPEED] / scale[10])
        n = append_feature(index, value, n, base + 1, state.vehicle[b, v, STATUS] / 2.0)
        n = append_feature(index, value, n, base + 2, problem.vehicle[i, v, CAPACITY] / scale[11])
        site = state.vehicle[b, v, SITE]
        for k in range(seen):
            task = state.pool[b, k]
            pickup = problem.task_ends[i, task, PICKUP]
            total = distance[site, pickup] + distance[pickup, problem.task_ends[i, task, DELIVERY]]
            total = measure_distance(total, truncate)
            n = append_feature(index, value, n, base + 3 + k, (total - scale[8]) / scale[9])
    return n


@inner_kernel
def list_actions(problem, state, b, legal):
    """List the legal actions of episode b in ascending order and return their number.

    Parameters
    ----------
    legal : ndarray(int32, (n_actions,))
        Output.
    """
    n = 0
    for v in range(problem.instance[state.episode[b, INSTANCE], N_VEHICLES]):
        if has_choice(problem, state, b, v):
            for rule in range(N_RULES):
                legal[n] = v * N_RULES + rule
                n += 1
    return n
