"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due. What `auxiliary` and `chains`
do, and call-backs, is none of the paper's: these hooks do nothing where an instance has no such thing, and
are not compiled where no instance has.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import clear_records
from acerl_np.kernels.episode import auxiliary, breakdowns, chains
from acerl_np.kernels.motion import commitment, energy, offers, traffic, ways
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def find_next_tick(problem, state, b):
    """Return the tick of the next event of episode b, `NEVER` if there is none."""
    i, n_arrived = state.episode[b].instance, state.episode[b].n_arrived
    tick = S.find_change(problem, i)
    if n_arrived < problem.instance[i].n_tasks:
        tick = min(tick, problem.arrival_tick[i, n_arrived])
    if S.is_chained(problem, i):
        tick = min(tick, chains.find_chain_tick(problem, state, b))
    if S.has_auxiliary(problem, i):
        tick = min(tick, auxiliary.find_auxiliary_tick(problem, state, b))
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle.status != S.IDLE:
            tick = min(tick, vehicle.event_tick)
        if vehicle.status != S.BROKEN:
            tick = min(tick, vehicle.breakdown_at)
    return tick


@inner_kernel
def finish_tasks(problem, state, b, tick):
    """Let vehicles deliver that are due at a tick; return whether one does."""
    i = state.episode[b].instance
    opens = False
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle.status == S.WORKING and vehicle.event_tick == tick:
            energy.set_level(problem, state, b, v)
            if S.has_traffic(problem, i):
                traffic.add_delay(problem, state, b, v)
            task = vehicle.task
            vehicle.held = 0
            vehicle.status = S.IDLE
            vehicle.since = tick
            vehicle.task = -1
            vehicle.site = problem.ends[i, task].delivery
            if S.has_traffic(problem, i):
                traffic.go_to_rest(problem, state, b, v)
            state.task[b, task].finish = tick
            state.episode[b].n_finished += 1
            if S.is_chained(problem, i):
                chains.queue_task(problem, state, b, task, tick)
            opens = True
    return opens


@inner_kernel
def add_arrivals(problem, state, b, tick):
    """Let the tasks wait that have arrived by a tick; return whether there are any."""
    i, first = state.episode[b].instance, state.episode[b].n_arrived
    n = first
    while n < problem.instance[i].n_tasks and problem.arrival_tick[i, n] <= tick:
        commitment.append_waiting(problem, state, b, n)
        state.waiting_since[b, n] = problem.record[i, n].arrival
        n += 1
    state.episode[b].n_arrived = n
    return n > first


@S.unless_auxiliary(False)
def change_floor(problem, state, b, tick):
    """Close and open the edges of a tick; return whether there are any.

    Tasks that are cut off leave the pool, those that are so no more come last, by when they were ready.
    """
    i = state.episode[b].instance
    if problem.instance[i].changes_at != tick:
        return False
    i = state.episode[b].instance = problem.instance[i].becomes
    size, state.episode[b].pool_size = state.episode[b].pool_size, 0
    for k in range(size):
        commitment.append_waiting(problem, state, b, state.pool[b, k])
    while True:
        first, least = np.int64(-1), np.inf
        for task in range(state.episode[b].n_arrived):
            if state.task[b, task].vehicle == -2 and not ways.is_cut_off(problem, i, task):
                ready = S.find_ready(problem, state, b, task)
                if ready < least:
                    first, least = np.int64(task), ready
        if first < 0:
            return True
        state.waiting_since[b, first] = least
        commitment.append_waiting(problem, state, b, first)


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`, in this order; then decisions may be due."""
    state.episode[b].time = tick
    opens = change_floor(problem, state, b, tick)
    i = state.episode[b].instance
    opens |= breakdowns.break_and_repair(problem, state, b, tick)
    opens |= finish_tasks(problem, state, b, tick)
    if S.has_auxiliary(problem, i):
        opens |= auxiliary.end_auxiliary(problem, state, b, tick)
    if S.is_chained(problem, i):
        opens |= chains.go_on(problem, state, b, tick)
    opens |= add_arrivals(problem, state, b, tick)
    if S.has_auxiliary(problem, i):
        opens |= auxiliary.find_free(problem, state, b)
    if opens:
        state.episode[b].waits = 0
        commitment.open_round(problem, state, b)


@inner_kernel
def find_end(problem, state, b, task):
    """Return when a delivered task is done, s: its delivery, or the end of its processing."""
    end = np.float64(state.task[b, task].finish)
    if S.is_chained(problem, state.episode[b].instance):
        end = max(end, chains.find_done(problem, state, b, task))
    return end


@inner_kernel
def finish_episode(problem, state, b):
    """Close episode b and measure it: makespan and tardiness (Eqs. 1 and 2), what else counts, the goal."""
    i = state.episode[b].instance
    outcome = state.outcome[b]
    outcome[:] = 0.0
    total, driven, empty = 0.0, 0.0, 0.0
    for task in range(problem.instance[i].n_tasks):
        finish = np.float64(state.task[b, task].finish)
        weight = S.find_weight(problem, i, task)
        total += weight
        done = find_end(problem, state, b, task)
        S.add_delivery(outcome, weight, done, finish - S.find_due(problem, state, b, task))
    for v in range(state.vehicle.shape[1]):
        outcome[S.OUTCOME_WAITING] += state.vehicle[b, v].waiting
        driven += state.vehicle[b, v].driven
        empty += state.vehicle[b, v].empty
    S.close_outcome(problem, outcome, total, driven, empty)
    state.episode[b].phase = S.FINISHED


@inner_kernel
def pass_tick(problem, state, b, due):
    """Advance running episode b to its next tick with an event, or to `due` if that is sooner; or close it.

    No decision is to be taken now; the caller wants to be asked again at `due`, `NEVER` for none.
    """
    i = state.episode[b].instance
    is_over = state.episode[b].n_finished == problem.instance[i].n_tasks
    if is_over and state.episode[b].n_processed == 0:
        finish_episode(problem, state, b)
        return
    if S.has_auxiliary(problem, i):
        auxiliary.settle_tick(problem, state, b)
    tick = min(due, find_next_tick(problem, state, b))
    if tick == S.NEVER:
        state.episode[b].phase = S.STUCK
    elif tick > problem.instance[i].horizon:
        state.episode[b].time = problem.instance[i].horizon
        state.episode[b].phase = S.STOPPED
    else:
        process_tick(problem, state, b, tick)


@inner_kernel
def pass_ticks(problem, state, b):
    """Advance episode b, tick by tick, to its next decision or to its end."""
    while state.episode[b].phase == S.RUNNING and not offers.is_decision_due(problem, state, b):
        pass_tick(problem, state, b, S.NEVER)


@kernel
def advance_auxiliary(problem, state, b):
    """Advance an episode with auxiliary moves: too much to be part of every kernel that advances one."""
    pass_ticks(problem, state, b)


@S.unless_auxiliary(lambda problem, state, b: pass_ticks(problem, state, b))
def advance_events(problem, state, b):
    """Advance episode b to its next decision or to its end."""
    advance_auxiliary(problem, state, b)


@inner_kernel
def open_episode(problem, state, b, instance):
    """Start row b on `instance`; nothing has happened yet.

    `state.breakdown_key[b]` must be set if a vehicle of the instance breaks down at random.
    """
    clear_records(state.episode[b : b + 1])
    state.episode[b].instance = instance
    state.episode[b].settled = -1
    state.episode[b].freed = -1
    state.outcome[b, :] = np.nan
    for task in range(problem.instance[instance].n_tasks):
        state.task[b, task].vehicle = -1
        state.task[b, task].changes = 0
    clear_records(state.vehicle[b])
    for v in range(problem.instance[instance].n_vehicles):
        vehicle = state.vehicle[b, v]
        vehicle.site = problem.start_site[instance, v]
        vehicle.task = -1
        vehicle.halted_towards = -1
        vehicle.stand_site = -1
        vehicle.left_tick = -1
        vehicle.level = problem.battery[instance, v].start
        vehicle.level_tick = -1 if vehicle.level == 0 else 0
        vehicle.place = -1
        if S.has_traffic(problem, instance):
            traffic.forget_plan(problem, state, b, v)
        if S.has_auxiliary(problem, instance):
            auxiliary.begin_parked(problem, state, b, v)
        breakdowns.plan_breakdown(problem, state, b, v, np.int64(-1))


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance`, as `open_episode`, and advance it to its first decision."""
    open_episode(problem, state, b, instance)
    advance_events(problem, state, b)
