"""One episode tick by tick, for whoever wants to see what happens between two decisions."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import rules
from acerl_np.kernels.motion import offers, trips
from acerl_np.support.compiled import kernel

N_STEP_FIELDS = 6
STEP_FROM, STEP_TO, STEP_START, STEP_END, STEP_LEG, STEP_REVERSED = range(N_STEP_FIELDS)


@kernel
def list_steps(problem, state, b, spare, v, steps, offsets):
    """List the edges of the trip that vehicle v of episode b has just begun, as if nothing stopped it.

    Parameters
    ----------
    state : State, row `spare` is overwritten
    steps : ndarray(int64, (n, N_STEP_FIELDS))
        Output: sites of each edge, the ticks at which it is entered and left, the leg, whether it is
        driven backwards. Edges that take no tick are passed over.
    offsets : ndarray(float64, (n,)), m, output: where on its edge each step begins

    Returns
    -------
    int
        Number of steps.
    """
    S.copy_row(state, b, state, spare)
    vehicle = state.vehicle[spare, v]
    n = 0
    while vehicle.leg != S.ARRIVED and n < len(steps):
        steps[n, STEP_FROM] = vehicle.edge_from
        steps[n, STEP_TO] = vehicle.edge_to
        steps[n, STEP_START] = vehicle.edge_tick
        steps[n, STEP_END] = vehicle.edge_end_tick
        steps[n, STEP_LEG] = vehicle.leg
        steps[n, STEP_REVERSED] = vehicle.reversed
        offsets[n] = state.vehicle[spare, v].edge_offset
        n += 1
        trips.locate_vehicle(problem, state, spare, v, vehicle.edge_end_tick)
    return n


@kernel
def rate_tasks(problem, state, b, v, rule, keys):
    """Write the key that a rule gives each waiting task for vehicle v, inf where v is not offered it.

    Parameters
    ----------
    rule : int
        FCFS to AHP of `rules.py`.
    keys : ndarray(float64, (at least the pool's size,)), output: the rule picks the first of the smallest
    """
    weights = rules.weigh_ahp(problem, state, b, v, rule)
    priority = offers.find_priority(problem, state, b, v)
    for k in range(state.episode[b].pool_size):
        task = state.pool[b, k]
        keys[k] = np.inf
        if offers.is_offered(problem, state, b, v, task, priority):
            keys[k] = rules.rate_task(problem, state, b, v, rule, task, weights)
