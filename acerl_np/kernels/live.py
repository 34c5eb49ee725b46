"""One decision about a situation that is given, not simulated: for a control system's dispatcher.

Row 0 of the state holds the situation. Working vehicles have arrived as far as the kernels know, so they
stay where the last event has put them; the clock stands at 0, and times are counted from now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.deciders import decide
from acerl_np.support.compiled import kernel

FAR_TICK = np.int64(2**40)
"""In place of a tick that nobody knows."""

N_PLAN_FIELDS = 2
PLAN_TIME, PLAN_REPAIR_TIME = range(N_PLAN_FIELDS)


class Clock(NamedTuple):
    """Moments of the control system's clock, which the tables of kernels count from now.

    Attributes
    ----------
    since : ndarray(float64, (M,)), s, since when each task waits
    arrival : ndarray(float64, (M,)), s
    used : ndarray(bool, (M,)), rows of the tables that hold a task
    finish : ndarray(float64, (V,)), s, when each working vehicle should have delivered
    broke : ndarray(float64, (V,)), s, when each broken vehicle broke down
    planned : ndarray(float64, (V, K, N_PLAN_FIELDS)), breakdowns that the layout lists
        PLAN_TIME : s since the day's start, inf after the last
        PLAN_REPAIR_TIME : s
    """

    since: np.ndarray
    arrival: np.ndarray
    used: np.ndarray
    finish: np.ndarray
    broke: np.ndarray
    planned: np.ndarray


@kernel
def count_from(problem, state, clock, now, day, relative):
    """Write the times of row 0 as counted from `now`, as the kernels' clock stands at 0.

    Parameters
    ----------
    now : float, s
    day : float, s, the day's start, from which planned breakdowns count
    relative : bool
        Whether arrivals are counted from now, too. Rules compare sums of them, whose ties rounding would
        break, so they read them as they are.
    """
    for k in range(state.episode[0, S.EPISODE_POOL_SIZE]):
        task = state.pool[0, k]
        state.waiting_since[0, task] = clock.since[task] - now
    if not relative:
        return
    room = len(clock.used)
    n_open = 0
    for task in range(room):
        if clock.used[task]:
            n_open += 1
            problem.record[0, task, S.RECORD_ARRIVAL] = clock.arrival[task] - now
    problem.instance[0, S.INSTANCE_N_TASKS] = room
    state.episode[0, S.EPISODE_N_ARRIVED] = room
    state.episode[0, S.EPISODE_N_FINISHED] = room - n_open
    for v in range(problem.instance[0, S.INSTANCE_N_VEHICLES]):
        status = state.vehicle[0, v, S.VEHICLE_STATUS]
        tick = FAR_TICK
        if status == S.WORKING:
            tick = max(np.int64(1), np.int64(np.ceil(clock.finish[v] - now)))
        state.vehicle[0, v, S.VEHICLE_EVENT_TICK] = tick
        # When a broken vehicle broke down, or when another one's next planned breakdown is.
        first, ticks = S.NEVER, np.int64(0)
        if status == S.BROKEN:
            first = np.int64(np.floor(clock.broke[v] - now))
        else:
            for k in range(clock.planned.shape[1]):
                time = clock.planned[v, k, PLAN_TIME]
                if time > now - day and time < np.inf:
                    tick = np.int64(np.ceil(time - (now - day)))
                    if tick < first:
                        first = tick
                        ticks = np.int64(np.ceil(clock.planned[v, k, PLAN_REPAIR_TIME]))
        problem.breakdown[0, v, 0, S.BREAKDOWN_TICK] = first
        problem.breakdown[0, v, 0, S.BREAKDOWN_REPAIR_TICKS] = ticks


@kernel
def decide_live(problem, state, clock, now, day, relative, decider, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    state : State, row 0 is read, once its times are counted from now
    relative : bool, as `count_from` takes them
    decider : Decider, its first function decides
    key : ndarray(uint32, (4,)), stream of the draws
    decision : int, number of decisions before this one

    Returns
    -------
    tuple of int
        -1 three times when no vehicle has a choice; the rule is -1 where a task was chosen without one.
    """
    count_from(problem, state, clock, now, day, relative)
    return decide(problem, state, np.int64(0), decider, np.int64(0), key, decision)
