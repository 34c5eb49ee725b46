"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import chains, commitment, energy, offers, random, trips, ways
from acerl_np.kernels import state as S
from acerl_np.kernels.errands import end_errands, find_errand_tick, mark_free, settle_idle
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def undo_usage(problem, state, b, v, length, moved):
    """Take back what vehicle v will not do of its trip, as it breaks down, `moved` m along its edge."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    task, ahead = vehicle[S.VEHICLE_TASK], vehicle[S.VEHICLE_EDGE_TO]
    rest = length - state.place[b, v, S.PLACE_EDGE_OFFSET] - moved
    if task < 0:
        if vehicle[S.VEHICLE_LEG] != S.ARRIVED:
            rest += distance[ahead, vehicle[S.VEHICLE_DESTINATION]]
            usage[S.USAGE_EMPTY] = max(0.0, usage[S.USAGE_EMPTY] - rest)
            usage[S.USAGE_DRIVEN] = max(usage[S.USAGE_EMPTY], usage[S.USAGE_DRIVEN] - rest)
        return
    pickup, delivery = problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
    usage[S.USAGE_BUSY] -= trips.count_busy(state, b, v)
    usage[S.USAGE_WAITING] -= usage[S.USAGE_LAST_WAITING]
    if vehicle[S.VEHICLE_LEG] == S.ARRIVED:
        return
    if vehicle[S.VEHICLE_LEG] == S.JOINING:
        stand = vehicle[S.VEHICLE_DESTINATION]
        rest += distance[ahead, stand]
        ahead = stand
    if vehicle[S.VEHICLE_LEG] != S.TO_DELIVERY:
        rest += distance[ahead, pickup]
        usage[S.USAGE_EMPTY] = max(0.0, usage[S.USAGE_EMPTY] - rest)
        rest += distance[pickup, delivery]
    else:
        rest += distance[ahead, delivery]
    usage[S.USAGE_DRIVEN] = max(usage[S.USAGE_EMPTY], usage[S.USAGE_DRIVEN] - rest)


@inner_kernel
def break_vehicle(problem, state, b, v, ticks):
    """Break vehicle v down for so many ticks: it stands where it was a tick ago and gives its task back."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    if trips.drives(vehicle[S.VEHICLE_STATUS]):
        trips.locate_vehicle(problem, state, b, v, now - 1)
        origin, target = vehicle[S.VEHICLE_EDGE_FROM], vehicle[S.VEHICLE_EDGE_TO]
        if vehicle[S.VEHICLE_LEG] == S.ARRIVED:
            target = origin
        # Where it waits for its task, the edge after the pickup is still to come.
        moved = np.float64(max(np.int64(0), now - 1 - vehicle[S.VEHICLE_EDGE_TICK]))
        moved *= ways.find_pace(problem, i, v, origin, target)
        if vehicle[S.VEHICLE_REVERSED]:
            # Driven backwards the site behind is the one ahead: measure from the one truly passed.
            origin, target = target, origin
        length = problem.edge_length[problem.instance[i, S.INSTANCE_LAYOUT], origin, target]
        undo_usage(problem, state, b, v, length, moved)
        offset = 0.0
        if vehicle[S.VEHICLE_LEG] != S.ARRIVED:
            offset = state.place[b, v, S.PLACE_EDGE_OFFSET] + moved
        if vehicle[S.VEHICLE_REVERSED]:
            offset = length - offset
        vehicle[S.VEHICLE_SITE] = origin
        vehicle[S.VEHICLE_HALTED_TOWARDS] = target
        state.place[b, v, S.PLACE_HALTED_AT] = offset
        task = vehicle[S.VEHICLE_TASK]
        if task >= 0:
            vehicle[S.VEHICLE_TASK] = -1
            ready = S.find_ready(problem, state, b, task)
            state.waiting_since[b, task] = max(ready, np.float64(now - 1))
            commitment.append_waiting(state, b, task)
    vehicle[S.VEHICLE_STATUS] = S.BROKEN
    vehicle[S.VEHICLE_STAND_SITE] = -1
    vehicle[S.VEHICLE_EVENT_TICK] = now + ticks + 1


@inner_kernel
def find_repair_ticks(problem, state, b, v, tick):
    """Return how many ticks the repair of the breakdown at `tick` lasts; a listed one comes first."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    k = state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN]
    if k < problem.breakdown.shape[2] and problem.breakdown[i, v, k, S.BREAKDOWN_TICK] == tick:
        return problem.breakdown[i, v, k, S.BREAKDOWN_REPAIR_TICKS]
    n = state.vehicle[b, v, S.VEHICLE_N_REPAIRS]
    mean = problem.fleet[i, v, S.FLEET_MEAN_REPAIR]
    return S.count_ticks(mean * random.draw_waiting_time(state.breakdown_key[b], n, 2 * v + 1))


@inner_kernel
def plan_breakdown(problem, state, b, v, tick):
    """Find the next breakdown of vehicle v, which starts or is idle again at `tick`.

    Listed breakdowns up to `tick` fell while it was broken, and are dropped. Random ones come after a
    time of use that is exponential, and is drawn anew after every repair.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    k = state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN]
    while k < problem.breakdown.shape[2] and problem.breakdown[i, v, k, S.BREAKDOWN_TICK] <= tick:
        k += 1
    state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN] = k
    planned = S.NEVER
    if k < problem.breakdown.shape[2]:
        planned = problem.breakdown[i, v, k, S.BREAKDOWN_TICK]
    mean = problem.fleet[i, v, S.FLEET_MEAN_UPTIME]
    if mean > 0.0:
        n = state.vehicle[b, v, S.VEHICLE_N_REPAIRS]
        uptime = S.count_ticks(mean * random.draw_waiting_time(state.breakdown_key[b], n, 2 * v))
        planned = min(planned, max(np.int64(0), tick) + max(np.int64(1), uptime))
    state.vehicle[b, v, S.VEHICLE_BREAKDOWN_AT] = planned


@inner_kernel
def find_next_tick(problem, state, b):
    """Return the tick of the next event of episode b, `NEVER` if there is none."""
    i, n_arrived = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_N_ARRIVED]
    tick = S.NEVER
    if n_arrived < problem.instance[i, S.INSTANCE_N_TASKS]:
        tick = problem.arrival_tick[i, n_arrived]
    if S.is_chained(problem, i):
        tick = min(tick, chains.find_chain_tick(state, b))
    if S.has_errands(problem, i):
        tick = min(tick, find_errand_tick(problem, state, b))
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] != S.IDLE:
            tick = min(tick, vehicle[S.VEHICLE_EVENT_TICK])
        if vehicle[S.VEHICLE_STATUS] != S.BROKEN:
            tick = min(tick, vehicle[S.VEHICLE_BREAKDOWN_AT])
    return tick


@inner_kernel
def repair_vehicle(problem, state, b, v, tick):
    """Let the broken vehicle v be idle again at a tick."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    if vehicle[S.VEHICLE_LEVEL] == 0 and energy.has_battery(problem, state, b, v):
        vehicle[S.VEHICLE_LEVEL] = problem.battery[i, v, S.BATTERY_CRITICAL]
    vehicle[S.VEHICLE_STATUS] = S.IDLE
    vehicle[S.VEHICLE_SINCE] = tick
    vehicle[S.VEHICLE_N_REPAIRS] += 1
    plan_breakdown(problem, state, b, v, tick)


@S.unless_errands(lambda problem, state, b, v: False)
def is_exhausted(problem, state, b, v):
    """Whether vehicle v has a battery that is empty at this tick."""
    if not energy.has_battery(problem, state, b, v):
        return False
    return energy.find_exhaustion(problem, state, b, v) == state.episode[b, S.EPISODE_TIME]


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`: breakdowns and repairs, finishes, arrivals."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    errands = S.has_errands(problem, i)
    chained = S.is_chained(problem, i)
    opens = False
    state.episode[b, S.EPISODE_TIME] = tick
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.BROKEN:
            if vehicle[S.VEHICLE_EVENT_TICK] == tick:
                repair_vehicle(problem, state, b, v, tick)
                opens = True
        elif vehicle[S.VEHICLE_BREAKDOWN_AT] == tick:
            break_vehicle(problem, state, b, v, find_repair_ticks(problem, state, b, v, tick))
            opens = True
        elif errands and is_exhausted(problem, state, b, v):
            break_vehicle(problem, state, b, v, problem.battery[i, v, S.BATTERY_TOW])
            opens = True
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.WORKING and vehicle[S.VEHICLE_EVENT_TICK] == tick:
            energy.set_level(problem, state, b, v)
            task = vehicle[S.VEHICLE_TASK]
            vehicle[S.VEHICLE_STATUS] = S.IDLE
            vehicle[S.VEHICLE_SINCE] = tick
            vehicle[S.VEHICLE_TASK] = -1
            vehicle[S.VEHICLE_SITE] = problem.ends[i, task, S.ENDS_DELIVERY]
            state.task[b, task, S.TASK_FINISH] = tick
            state.episode[b, S.EPISODE_N_FINISHED] += 1
            opens = True
            if chained:
                chains.queue_task(problem, state, b, task, tick)
    if errands:
        opens |= end_errands(problem, state, b, tick)
    if chained:
        chains.run_machines(problem, state, b, tick)
        opens |= chains.release_tasks(problem, state, b, tick)
    n = state.episode[b, S.EPISODE_N_ARRIVED]
    while n < problem.instance[i, S.INSTANCE_N_TASKS] and problem.arrival_tick[i, n] <= tick:
        commitment.append_waiting(state, b, n)
        state.waiting_since[b, n] = problem.record[i, n, S.RECORD_ARRIVAL]
        n += 1
        opens = True
    state.episode[b, S.EPISODE_N_ARRIVED] = n
    if errands:
        offer_anew(problem, state, b, opens)
    elif opens:
        state.episode[b, S.EPISODE_WAITS] = 0


@S.unless_errands(lambda problem, state, b, opens: None)
def offer_anew(problem, state, b, opens):
    """Find who is free at this tick; let decisions be made again if something opens them."""
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    state.episode[b, S.EPISODE_SETTLED] = 0
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        mark_free(problem, state, b, v)
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.IDLE and vehicle[S.VEHICLE_SINCE] == now:
            # What did not fit when decisions were last made may do so where its way has ended.
            opens |= offers.has_choice(problem, state, b, v)
    if opens:
        state.episode[b, S.EPISODE_WAITS] = 0
        if problem.instance[i, S.INSTANCE_MAX_CHANGES] >= 0:
            commitment.open_round(problem, state, b)


@inner_kernel
def finish_episode(problem, state, b):
    """Close episode b and measure it: makespan and tardiness (Eqs. 1 and 2), what else counts, the goal."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    makespan, delay, late, total = 0.0, 0.0, 0.0, 0.0
    for task in range(problem.instance[i, S.INSTANCE_N_TASKS]):
        finish = np.float64(state.task[b, task, S.TASK_FINISH])
        weight = S.find_weight(problem, i, task)
        makespan = max(makespan, finish)
        if S.is_chained(problem, i):
            makespan = max(makespan, np.float64(state.job[b, task, S.JOB_DONE]))
        own = finish - S.find_due(problem, state, b, task)
        total += weight
        delay += weight * max(0.0, own)
        # Finishes are whole seconds; due times may be off by rounding.
        if own > 1e-9:
            late += weight
    waiting, driven, empty = 0.0, 0.0, 0.0
    for v in range(state.usage.shape[1]):
        waiting += state.usage[b, v, S.USAGE_WAITING]
        driven += state.usage[b, v, S.USAGE_DRIVEN]
        empty += state.usage[b, v, S.USAGE_EMPTY]
    outcome = state.outcome[b]
    outcome[S.OUTCOME_MAKESPAN] = makespan
    outcome[S.OUTCOME_TARDINESS] = delay / total
    outcome[S.OUTCOME_LATE] = late / total
    outcome[S.OUTCOME_WAITING] = waiting / total
    outcome[S.OUTCOME_EMPTY] = empty / driven if driven > 0.0 else 0.0
    outcome[S.OUTCOME_VALUE] = S.weigh_measures(problem, outcome, S.GOAL_OBJECTIVE)
    outcome[S.OUTCOME_COST] = S.weigh_measures(problem, outcome, S.GOAL_COST)
    state.episode[b, S.EPISODE_PHASE] = S.FINISHED


@inner_kernel
def settle_tick(problem, state, b):
    """Let tasks that nobody took go on with their vehicles, and idle vehicles charge or park."""
    if problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_MAX_CHANGES] >= 0:
        commitment.close_round(problem, state, b)
    state.episode[b, S.EPISODE_WAITS] = 1
    if state.episode[b, S.EPISODE_SETTLED] == 0:
        settle_idle(problem, state, b)


@inner_kernel
def pass_tick(problem, state, b, due):
    """Advance running episode b to its next tick with an event, or to `due` if that is sooner; or close it.

    No decision is to be taken now; the caller wants to be asked again at `due`, `NEVER` for none.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    is_over = state.episode[b, S.EPISODE_N_FINISHED] == problem.instance[i, S.INSTANCE_N_TASKS]
    if is_over and state.episode[b, S.EPISODE_N_PROCESSED] == 0:
        finish_episode(problem, state, b)
        return
    if S.has_errands(problem, i):
        settle_tick(problem, state, b)
    tick = min(due, find_next_tick(problem, state, b))
    if tick == S.NEVER:
        state.episode[b, S.EPISODE_PHASE] = S.STUCK
    elif tick > problem.instance[i, S.INSTANCE_HORIZON]:
        state.episode[b, S.EPISODE_TIME] = problem.instance[i, S.INSTANCE_HORIZON]
        state.episode[b, S.EPISODE_PHASE] = S.STOPPED
    else:
        process_tick(problem, state, b, tick)


@inner_kernel
def pass_ticks(problem, state, b):
    """Advance episode b, tick by tick, to its next decision or to its end."""
    while state.episode[b, S.EPISODE_PHASE] == S.RUNNING and not offers.is_decision_due(
        problem, state, b
    ):
        pass_tick(problem, state, b, S.NEVER)


@kernel
def advance_errands(problem, state, b):
    """Advance an episode of vehicles with errands: too much to be part of every kernel that advances one."""
    pass_ticks(problem, state, b)


@S.unless_errands(lambda problem, state, b: pass_ticks(problem, state, b))
def advance_events(problem, state, b):
    """Advance episode b to its next decision or to its end."""
    advance_errands(problem, state, b)


@inner_kernel
def open_episode(problem, state, b, instance):
    """Start row b on `instance`; nothing has happened yet.

    `state.breakdown_key[b]` must be set if a vehicle of the instance breaks down at random.
    """
    for k in range(S.N_EPISODE_FIELDS):
        state.episode[b, k] = 0
    state.episode[b, S.EPISODE_INSTANCE] = instance
    state.episode[b, S.EPISODE_SETTLED] = -1
    state.episode[b, S.EPISODE_FREED] = -1
    for k in range(S.N_OUTCOME_FIELDS):
        state.outcome[b, k] = np.nan
    for task in range(problem.instance[instance, S.INSTANCE_N_TASKS]):
        state.task[b, task, S.TASK_VEHICLE] = -1
        state.task[b, task, S.TASK_CHANGES] = 0
    for v in range(state.usage.shape[1]):
        for k in range(S.N_USAGE_FIELDS):
            state.usage[b, v, k] = 0.0
    for v in range(problem.instance[instance, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        for k in range(S.N_VEHICLE_FIELDS):
            vehicle[k] = 0
        vehicle[S.VEHICLE_SITE] = problem.start_site[instance, v]
        vehicle[S.VEHICLE_TASK] = -1
        vehicle[S.VEHICLE_HALTED_TOWARDS] = -1
        vehicle[S.VEHICLE_STAND_SITE] = -1
        vehicle[S.VEHICLE_LEFT_TICK] = -1
        vehicle[S.VEHICLE_LEVEL] = problem.battery[instance, v, S.BATTERY_START]
        vehicle[S.VEHICLE_LEVEL_TICK] = -1 if vehicle[S.VEHICLE_LEVEL] == 0 else 0
        plan_breakdown(problem, state, b, v, np.int64(-1))


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance`, as `open_episode`, and advance it to its first decision."""
    open_episode(problem, state, b, instance)
    advance_events(problem, state, b)
