"""What a policy sees at a decision: features of waiting tasks and vehicles, and the legal actions.

Most task slots are empty, so features are listed as (index, value) pairs; everything not listed is 0.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.compiled import inner_kernel
from acerl_np.kernels.events import has_choice, locate_vehicle
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.state import WORKING, measure_distance


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
    i = state.instance[b]
    now = state.time[b]
    scale = problem.scaling[i]
    slots = problem.task_slots[0]
    seen = min(state.pool_size[b], slots)
    distance = problem.distance[problem.layout[i]]
    truncate = problem.truncate[i]
    n = 0
    for k in range(seen):
        task = state.pool[b, k]
        waiting = np.float64(now) - state.waiting_since[b, task]
        n = append_feature(
            index, value, n, 4 * k, (problem.task_distance[i, task] - scale[0]) / scale[1]
        )
        n = append_feature(index, value, n, 4 * k + 1, (waiting - scale[2]) / scale[3])
        n = append_feature(
            index, value, n, 4 * k + 2, (problem.expiry[i, task] - scale[4]) / scale[5]
        )
        n = append_feature(
            index, value, n, 4 * k + 3, (problem.demand[i, task] - scale[6]) / scale[7]
        )
    for v in range(problem.n_vehicles[i]):
        if state.vehicle_status[b, v] == WORKING:
            locate_vehicle(problem, state, b, v, now)
        base = 4 * slots + v * (3 + slots)
        n = append_feature(index, value, n, base, problem.speed[i, v] / scale[10])
        n = append_feature(index, value, n, base + 1, state.vehicle_status[b, v] / 2.0)
        n = append_feature(index, value, n, base + 2, problem.capacity[i, v] / scale[11])
        site = state.vehicle_site[b, v]
        for k in range(seen):
            task = state.pool[b, k]
            pickup = problem.pickup[i, task]
            total = distance[site, pickup] + distance[pickup, problem.delivery[i, task]]
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
    for v in range(problem.n_vehicles[state.instance[b]]):
        if has_choice(problem, state, b, v):
            for rule in range(N_RULES):
                legal[n] = v * N_RULES + rule
                n += 1
    return n
