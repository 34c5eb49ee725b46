"""The pairs of an idle vehicle and a waiting task between which a policy in plain Python chooses."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import offers, ways
from acerl_np.support.compiled import kernel

N_PLACES = 3
"""Episode, vehicle, task."""

N_VALUES = 6
APPROACH, LOADED, SLACK, WAITING, ARRIVAL, DUE = range(N_VALUES)


@kernel
def list_possible(problem, state, rows, origin, highest, place, value):
    """List the pairs that are possible in some rows, by the pool and then the fleet; return their number.

    Parameters
    ----------
    rows : ndarray(int64, (n,)), those that are over have none
    origin : float, s, what the caller's clock shows when that of the row stands at 0
    highest : ndarray(float64, (V,)), scratch
    place : ndarray(int64, (N_PLACES, P)), output
    value : ndarray(float64, (N_VALUES, P)), s, output
    """
    n = 0
    for b in rows:
        if state.episode[b].phase != S.RUNNING:
            continue
        i = state.episode[b].instance
        now = np.float64(state.episode[b].time)
        n_vehicles = problem.instance[i].n_vehicles
        for v in range(n_vehicles):
            highest[v] = offers.find_priority(problem, state, b, v)
        for k in range(state.episode[b].pool_size):
            task = state.pool[b, k]
            for v in range(n_vehicles):
                free = offers.is_free(state, b, v)
                if not free or not offers.is_offered(problem, state, b, v, task, highest[v]):
                    continue
                pickup = problem.ends[i, task].pickup
                approach = S.round_sum(ways.time_way(problem, state, b, v, np.int64(-1), pickup))
                approach = max(approach, S.find_ready_in(problem, state, b, task))
                loaded = S.round_sum(ways.time_loaded(problem, i, v, task))
                due = S.find_due(problem, state, b, task)
                place[0, n], place[1, n], place[2, n] = b, v, task
                value[APPROACH, n] = approach
                value[LOADED, n] = loaded
                value[SLACK, n] = S.round_sum(due - now - approach - loaded)
                value[WAITING, n] = S.round_sum(max(0.0, now - state.waiting_since[b, task]))
                value[ARRIVAL, n] = origin + S.find_ready(problem, state, b, task)
                value[DUE, n] = origin + due
                n += 1
    return n
