"""What a control system's vehicles are believed to do where they meet: plans by its clock, in whole seconds.

`Clock.plan` has them. They are made and pushed as in an episode, at the seconds of that clock.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import NOISE
from acerl_np.kernels.motion import lanes, planner, traffic
from acerl_np.support.compiled import inner_kernel, kernel

AROUND, ALONE, NO_WAY = range(3)
"""How a way was planned: around all others; as if there were none; not at all."""


@S.unless_traffic()
def count_plans_from(problem, state, clock, now):
    """Write what vehicles have planned to row 0, as counted from `now`, s."""
    # All by as much, so that nobody comes nearer to another.
    shift = np.int64(np.floor(now + NOISE))
    for v in range(len(clock.plan)):
        plan, n = state.plan[0, v], clock.plan[v, 0, S.PLANNED_VISITS]
        S.copy_table(clock.plan, v, state.plan[0], v, n + 1)
        for k in range(1, n + 1):
            plan[k, S.PLAN_IN] -= shift
            if plan[k, S.PLAN_OUT] < S.NEVER:
                plan[k, S.PLAN_OUT] -= shift


@inner_kernel
def open_plans(problem, state, clock, tick):
    """Let row 0 stand at a second of the clock, with the plans and what vehicles do as they are known."""
    state.episode[0].time, state.episode[0].phase = tick, S.RUNNING
    count_plans_from(problem, state, clock, 0.0)
    for v in range(len(clock.plan)):
        vehicle = state.vehicle[0, v]
        vehicle.event_tick = S.count_ticks(clock.finish[v])
        vehicle.loaded_tick = S.count_ticks(clock.move[v, S.MOVE_LOADED])
        vehicle.since = S.count_ticks(clock.move[v, S.MOVE_SINCE])


@inner_kernel
def close_plans(state):
    """Let row 0 stand at 0 again, without what planning counts of metres; return whether all went well."""
    sound = state.episode[0].phase == S.RUNNING
    state.episode[0].time, state.episode[0].phase = 0, S.RUNNING
    for v in range(state.vehicle.shape[1]):
        S.clear_usage(state.vehicle[0, v])
    return sound


@kernel
def plan_way(problem, state, clock, tick, v, task, goal, turns):
    """Plan the way of vehicle v at a tick, as `traffic.take_way`, into `State.plan`; return how.

    Others may let it pass.

    Parameters
    ----------
    goal : int, or `planner.ABOARD` for a task that is loaded
    turns : bool
        Whether it leaves its plan at the next visit, not at the end.

    Returns
    -------
    int
        AROUND, ALONE or NO_WAY.
    """
    vehicle = state.vehicle[0, v]
    for row in range(len(clock.used) if task >= 0 else 0):
        if S.is_chained(problem, 0):
            state.ready[0, row] = clock.arrival[row]
        problem.record[0, row].arrival = clock.arrival[row]
    found = AROUND
    while found < NO_WAY:
        open_plans(problem, state, clock, tick)
        for w in range(len(clock.plan)):
            if found == ALONE and w != v:
                state.plan[0, w, 0, S.PLANNED_VISITS] = 0
        vehicle.stand_site = 0 if turns else -1
        if task >= 0:
            vehicle.task, vehicle.status, state.task[0, task].start = task, S.WORKING, tick
        traffic.take_way(problem, state, np.int64(0), np.int64(v), np.int64(task), np.int64(goal))
        if close_plans(state):
            break
        found += 1
    if goal == planner.ABOARD:
        state.plan[0, v, 0, S.PLANNED_PICKUP] = 1
    return found


@kernel
def push_visit(problem, state, clock, tick, v, k, came, left):
    """Let visit k of vehicle v, planned for a tick, begin at `came` and end at `left` or later; push all.

    Return whether the plans are sound.
    """
    open_plans(problem, state, clock, tick)
    n_reserved = lanes.sort_reservations(problem, state, np.int64(0), np.int64(-1))
    visit = state.plan[0, v, k]
    visit[S.PLAN_IN], visit[S.PLAN_OUT] = (
        max(visit[S.PLAN_IN], came),
        max(visit[S.PLAN_OUT], left),
    )
    traffic.push_plans(problem, state, np.int64(0), n_reserved)
    return close_plans(state)


@kernel
def halt_vehicle(problem, state, clock, tick, v, ticks):
    """Let vehicle v break down at a tick for so many, as in an episode; return whether plans are sound."""
    open_plans(problem, state, clock, tick)
    traffic.halt(problem, state, np.int64(0), np.int64(v), np.int64(ticks))
    return close_plans(state)
