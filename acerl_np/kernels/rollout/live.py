"""One decision about a situation that is given, not simulated: for a control system's dispatcher.

Row 0 of the state holds the situation. Working vehicles have arrived as far as the kernels know, so they
stay where the last event has put them; the clock stands at 0, and times are counted from now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import NOISE
from acerl_np.kernels.dispatching import deciders
from acerl_np.kernels.episode import auxiliary
from acerl_np.kernels.motion import energy, offers, trips
from acerl_np.kernels.rollout import meeting
from acerl_np.support.compiled import inner_kernel, kernel

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
    known : ndarray(float64, (M,)), s, when a task begins to wait that is held back: inf once the one before
        it is done; -inf of all others
    machine : ndarray(float64, (K,)), s, until when each server of the machines is busy, which has row K
    finish : ndarray(float64, (V,)), s, when each working vehicle should have delivered
    broke : ndarray(float64, (V,)), s, when each broken vehicle broke down
    planned : ndarray(float64, (V, K, N_PLAN_FIELDS)), breakdowns that the layout lists
        PLAN_TIME : s since the day's start, inf after the last
        PLAN_REPAIR_TIME : s
    move : ndarray(float64, (V, N_MOVE_FIELDS)); all but MOVE_LOADED of floors where vehicles park, charge
        or are called back
        MOVE_SINCE : s, since when it is idle, or at a charger
        MOVE_BEGAN, MOVE_REACHED : s, when its way begins at `trip_site`, and when that is reached
        MOVE_LOADED : s, when it should have loaded its task
        MOVE_LEVEL, MOVE_LEVEL_TIME : energy, and s, when it had that
        MOVE_LEFT : s, when it gave up its parking place at `left_site`
    plan : ndarray(int64, (V, n, N_PLAN_FIELDS)), as `State.plan`, by whole seconds; V is 0 if nobody meets
    """

    since: np.ndarray
    arrival: np.ndarray
    used: np.ndarray
    known: np.ndarray
    machine: np.ndarray
    finish: np.ndarray
    broke: np.ndarray
    planned: np.ndarray
    move: np.ndarray
    plan: np.ndarray


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
    meeting.count_plans_from(problem, state, clock, now)
    for k in range(state.episode[0].pool_size):
        task = state.pool[0, k]
        state.waiting_since[0, task] = clock.since[task] - now
    if problem.instance[0].max_changes >= 0:
        for task in range(len(clock.used)):  # what is on its way may wait again
            state.waiting_since[0, task] = clock.since[task] - now
    if relative:
        count_all_from(problem, state, clock, now, day)
    if S.is_chained(problem, 0):
        count_chains_from(problem, state, clock, now)
    if S.has_auxiliary(problem, 0):
        state.episode[0].freed = -1
        for v in range(problem.instance[0].n_vehicles):
            count_move_from(problem, state, clock, now, v)
            if state.vehicle[0, v].status != S.WORKING:
                auxiliary.mark_free(problem, state, np.int64(0), np.int64(v))


@inner_kernel
def count_chains_from(problem, state, clock, now):
    """Write what is held back, when tasks are ready, and what machines still do, as counted from `now`."""
    n = 0
    for task in range(len(clock.used)):
        if clock.used[task]:
            state.ready[0, task] = clock.arrival[task] - now
        if clock.used[task] and clock.known[task] > -np.inf:
            state.expected[0, n] = task
            state.job[0, task].known = S.NEVER
            if clock.known[task] < np.inf:
                state.job[0, task].known = max(1, S.count_ticks(clock.known[task] - now))
            n += 1
    state.episode[0].n_expected = n
    n = 0
    for k in range(len(clock.machine)):
        ticks = S.count_ticks(max(0.0, clock.machine[k] - now))
        if ticks > 0:
            state.processed[0, n] = k
            state.job[0, k].done = ticks
            n += 1
    state.episode[0].n_processed = n


@inner_kernel
def count_all_from(problem, state, clock, now, day):
    """Write also arrivals, finishes and breakdowns as counted from `now`."""
    room = len(clock.used)
    n_open = 0
    for task in range(room):
        if clock.used[task]:
            n_open += 1
            problem.record[0, task].arrival = clock.arrival[task] - now
    problem.instance[0].n_tasks = room
    state.episode[0].n_arrived = room
    state.episode[0].n_finished = room - n_open
    for v in range(problem.instance[0].n_vehicles):
        status = state.vehicle[0, v].status
        tick = FAR_TICK
        if status == S.WORKING:
            tick = max(np.int64(1), np.int64(min(np.ceil(clock.finish[v] - now), 2.0**62)))
            loaded = S.count_ticks(clock.move[v, S.MOVE_LOADED] - now)
            state.vehicle[0, v].loaded_tick = min(tick, loaded)
        state.vehicle[0, v].event_tick = tick
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
        problem.breakdown[0, v, 0].tick = first
        problem.breakdown[0, v, 0].repair_ticks = ticks


@inner_kernel
def count_move_from(problem, state, clock, now, v):
    """Write vehicle v's way, level and places as counted from `now`."""
    vehicle, own = state.vehicle[0, v], clock.move[v]
    vehicle.since = S.count_ticks(own[S.MOVE_SINCE] - now)
    vehicle.level = np.int64(np.floor(own[S.MOVE_LEVEL] + NOISE))
    vehicle.level_tick = S.count_ticks(own[S.MOVE_LEVEL_TIME] - now)
    vehicle.left_tick = S.count_ticks(own[S.MOVE_LEFT] - now)
    if vehicle.left_tick == 0:
        state.episode[0].freed = 0
    status = vehicle.status
    if trips.drives(status):
        end = max(np.int64(1), S.count_ticks(clock.finish[v] - now))
        vehicle.event_tick = end
        vehicle.loaded_tick = min(end, S.count_ticks(own[S.MOVE_LOADED] - now))
        # Ways that do not begin at a whole second from now are that much longer.
        began = own[S.MOVE_BEGAN] - now
        tick = np.int64(np.floor(began + NOISE))
        vehicle.trip_tick = tick
        vehicle.trip_metres = 0.0
        vehicle.trip_slowdown = max(0.0, began - np.float64(tick))
        vehicle.trip_reached = own[S.MOVE_REACHED] - now
    elif status == S.QUEUED:
        vehicle.event_tick = S.NEVER
    elif status == S.CHARGING and energy.has_battery(problem, state, np.int64(0), v):
        full = problem.battery[0, v].full
        charged = energy.find_charged(problem, state, np.int64(0), v, full)
        vehicle.event_tick = max(np.int64(1), charged)


@kernel
def find_live_turn(problem, state, clock, now, v):
    """Write where vehicle v could turn to something else at `now`, s, where it stands if it stands."""
    vehicle = state.vehicle[0, v]
    meeting.count_plans_from(problem, state, clock, now)
    count_move_from(problem, state, clock, now, v)
    if trips.drives(vehicle.status):
        trips.find_turn(problem, state, np.int64(0), v)
    else:
        site = vehicle.site
        trips.set_stand(state, np.int64(0), v, site, site, np.int64(0), 0.0, 0.0)


@kernel
def find_live_level(problem, state, clock, now, v):
    """Return what vehicle v, under way among others, holds at `now`, s, as its plan says."""
    meeting.count_plans_from(problem, state, clock, now)
    count_move_from(problem, state, clock, now, v)
    return energy.find_level(problem, state, np.int64(0), v, np.int64(0))


@kernel
def is_opened(problem, state, clock, now, day, relative, asked):
    """Whether since `asked`, s, a level or the end of a way has made an assignment possible."""
    count_from(problem, state, clock, now, day, relative)
    b, after = np.int64(0), S.count_ticks(asked - now)
    for v in range(problem.instance[0].n_vehicles):
        status, since = state.vehicle[0, v].status, state.vehicle[0, v].since
        # What it could take when it began to charge it could take before.
        begins = max(after, since)
        if status == S.CHARGING and auxiliary.find_offer(problem, state, b, v, begins) <= 0:
            return True
        if status == S.IDLE and since > after and offers.has_choice(problem, state, b, v):
            return True
    return False


@kernel
def find_auxiliary_move(problem, state, clock, now, day, relative, first, charges, parks):
    """Return the first idle vehicle from `first` on that shall charge or park, how, and at which site.

    Parameters
    ----------
    charges, parks : bool
        Whether it may be sent to charge, and to park.

    Returns
    -------
    tuple of int
        Vehicle, TO_CHARGER or PARKING, site; if there is none -1, -1 and the tick from now at which something
        may come of levels and parking, `NEVER` for none.
    """
    count_from(problem, state, clock, now, day, relative)
    b = np.int64(0)
    for v in range(first, problem.instance[0].n_vehicles):
        if state.vehicle[0, v].status != S.IDLE:
            continue
        site = auxiliary.find_refill(problem, state, b, v) if charges else np.int64(-1)
        if site >= 0:
            return v, np.int64(S.TO_CHARGER), site
        site = auxiliary.find_rest_site(problem, state, b, v) if parks else np.int64(-1)
        if site >= 0:
            return v, np.int64(S.PARKING), site
    return np.int64(-1), np.int64(-1), auxiliary.find_auxiliary_tick(problem, state, b)


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
    return deciders.decide(problem, state, np.int64(0), decider, np.int64(0), key, decision)
