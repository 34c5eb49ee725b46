"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.random import draw_waiting_time
from acerl_np.kernels.state import (
    ARRIVAL,
    ARRIVED,
    BREAKDOWN_AT,
    BREAKDOWN_TICK,
    BROKEN,
    CAPACITY,
    DELIVERY,
    EDGE_END_TICK,
    EDGE_FROM,
    EDGE_OFFSET,
    EDGE_TICK,
    EDGE_TO,
    EVENT_TICK,
    EXPIRY,
    FINISH,
    FINISHED,
    HALTED_AT,
    HALTED_TOWARDS,
    HANDLING,
    HIDDEN,
    HORIZON,
    IDLE,
    INSTANCE,
    LAYOUT,
    LEG,
    MAKESPAN,
    MEAN_REPAIR,
    MEAN_UPTIME,
    N_ARRIVED,
    N_DECISIONS,
    N_FINISHED,
    N_REPAIRS,
    N_TASKS,
    N_VEHICLES,
    NAMED_ROUTE,
    NEVER,
    NEXT_BREAKDOWN,
    NEXT_SITE,
    PHASE,
    PICKUP,
    POOL_SIZE,
    REPAIR_TICKS,
    REVERSED,
    ROUTE_INDEX,
    RUNNING,
    SITE,
    SPEED,
    START,
    STATUS,
    STOPPED,
    STUCK,
    TARDINESS,
    TASK,
    TIME,
    TO_DELIVERY,
    TO_PICKUP,
    TRUNCATES,
    VEHICLE,
    WORKING,
    count_ticks,
    may_carry,
    measure_distance,
    round_sum,
)
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def enter_edge(problem, state, b, v, site, target, tick):
    """Set vehicle v on the edge after `site` on the route to `target`, at `tick`."""
    i = state.episode[b, INSTANCE]
    layout = problem.instance[i, LAYOUT]
    k = state.vehicle[b, v, ROUTE_INDEX]
    following = problem.route_sites[k] if k >= 0 else problem.way[layout, site, target, NEXT_SITE]
    state.vehicle[b, v, EDGE_FROM] = site
    state.vehicle[b, v, EDGE_TO] = following
    state.vehicle[b, v, EDGE_TICK] = tick
    state.place[b, v, EDGE_OFFSET] = 0.0
    length = problem.edge_length[layout, site, following]
    state.vehicle[b, v, EDGE_END_TICK] = tick + count_ticks(length / problem.vehicle[i, v, SPEED])


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.episode[b, INSTANCE]
    layout = problem.instance[i, LAYOUT]
    task = state.vehicle[b, v, TASK]
    if leg == TO_PICKUP and site == problem.task_ends[i, task, PICKUP]:
        leg = TO_DELIVERY
    state.vehicle[b, v, LEG] = leg
    target = (
        problem.task_ends[i, task, PICKUP]
        if leg == TO_PICKUP
        else problem.task_ends[i, task, DELIVERY]
    )
    state.vehicle[b, v, ROUTE_INDEX] = problem.way[layout, site, target, NAMED_ROUTE]
    enter_edge(problem, state, b, v, site, target, tick)


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a working vehicle along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    i = state.episode[b, INSTANCE]
    task = state.vehicle[b, v, TASK]
    while state.vehicle[b, v, LEG] != ARRIVED and state.vehicle[b, v, EDGE_END_TICK] <= tick:
        site = state.vehicle[b, v, EDGE_TO]
        reached = state.vehicle[b, v, EDGE_END_TICK]
        state.vehicle[b, v, REVERSED] = False
        to_pickup = state.vehicle[b, v, LEG] == TO_PICKUP
        target = (
            problem.task_ends[i, task, PICKUP]
            if to_pickup
            else problem.task_ends[i, task, DELIVERY]
        )
        if site != target:
            k = state.vehicle[b, v, ROUTE_INDEX]
            if state.place[b, v, EDGE_OFFSET] > 0.0:
                # The rest of a broken edge is behind: the route proper begins at its end.
                k = problem.way[problem.instance[i, LAYOUT], site, target, NAMED_ROUTE]
            elif k >= 0:
                k += 1
            state.vehicle[b, v, ROUTE_INDEX] = k
            enter_edge(problem, state, b, v, site, target, reached)
        elif to_pickup:
            start_leg(problem, state, b, v, TO_DELIVERY, site, reached)
        else:
            state.vehicle[b, v, LEG] = ARRIVED
            state.vehicle[b, v, EDGE_FROM] = site
    if not state.vehicle[b, v, HIDDEN]:
        state.vehicle[b, v, SITE] = state.vehicle[b, v, EDGE_FROM]


@inner_kernel
def assign_task(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to the idle vehicle v, now."""
    i = state.episode[b, INSTANCE]
    layout = problem.instance[i, LAYOUT]
    now = state.episode[b, TIME]
    task = state.pool[b, position]
    for k in range(position, state.episode[b, POOL_SIZE] - 1):
        state.pool[b, k] = state.pool[b, k + 1]
    state.episode[b, POOL_SIZE] -= 1
    state.episode[b, N_DECISIONS] += 1

    site = state.vehicle[b, v, SITE]
    pickup = problem.task_ends[i, task, PICKUP]
    delivery = problem.task_ends[i, task, DELIVERY]
    speed = problem.vehicle[i, v, SPEED]
    loaded = problem.distance[layout, pickup, delivery]
    state.vehicle[b, v, TASK] = task
    state.vehicle[b, v, STATUS] = WORKING
    state.task[b, task, VEHICLE] = v
    state.task[b, task, START] = now
    state.vehicle[b, v, REVERSED] = False
    ahead = state.vehicle[b, v, HALTED_TOWARDS]
    state.vehicle[b, v, HALTED_TOWARDS] = -1
    state.vehicle[b, v, HIDDEN] = ahead >= 0
    if ahead < 0:
        metres = measure_distance(
            problem.distance[layout, site, pickup] + loaded, problem.instance[i, TRUNCATES]
        )
        start_leg(problem, state, b, v, TO_PICKUP, site, now)
    elif state.place[b, v, HALTED_AT] == 0.0:
        # It broke down exactly at a site, and starts there, whatever the edge ahead.
        metres = round_sum(problem.distance[layout, site, pickup]) + loaded
        start_leg(problem, state, b, v, TO_PICKUP, site, now)
    else:
        # First trip after a halt in mid-edge: turn back or go on, whichever is shorter.
        length = problem.edge_length[layout, site, ahead]
        done = state.place[b, v, HALTED_AT]
        onward = round_sum(length - done + problem.distance[layout, ahead, pickup])
        back = np.inf
        if problem.edge_length[layout, ahead, site] < np.inf:
            back = round_sum(done + problem.distance[layout, site, pickup])
        turns = back <= onward
        metres = (back if turns else onward) + loaded
        rest = done if turns else length - done
        state.vehicle[b, v, REVERSED] = turns
        state.vehicle[b, v, LEG] = TO_PICKUP
        state.vehicle[b, v, ROUTE_INDEX] = -1
        state.vehicle[b, v, EDGE_FROM] = ahead if turns else site
        state.vehicle[b, v, EDGE_TO] = site if turns else ahead
        state.place[b, v, EDGE_OFFSET] = length - rest
        state.vehicle[b, v, EDGE_TICK] = now
        state.vehicle[b, v, EDGE_END_TICK] = now + count_ticks(rest / speed)
    duration = count_ticks(metres / speed + problem.task[i, task, HANDLING])
    state.vehicle[b, v, EVENT_TICK] = now + max(np.int64(1), duration)


@inner_kernel
def break_vehicle(problem, state, b, v):
    """Break vehicle v down now: it stands where it was a tick ago and gives its task back."""
    i = state.episode[b, INSTANCE]
    now = state.episode[b, TIME]
    if state.vehicle[b, v, STATUS] == WORKING:
        locate_vehicle(problem, state, b, v, now - 1)
        origin = state.vehicle[b, v, EDGE_FROM]
        target = origin
        offset = 0.0
        if state.vehicle[b, v, LEG] != ARRIVED:
            target = state.vehicle[b, v, EDGE_TO]
            moved = (
                np.float64(now - 1 - state.vehicle[b, v, EDGE_TICK]) * problem.vehicle[i, v, SPEED]
            )
            offset = state.place[b, v, EDGE_OFFSET] + moved
        if state.vehicle[b, v, REVERSED]:
            # Driven backwards the site behind is the one ahead: measure from the one truly passed.
            offset = problem.edge_length[problem.instance[i, LAYOUT], target, origin] - offset
            origin, target = target, origin
        state.vehicle[b, v, SITE] = origin
        state.vehicle[b, v, HALTED_TOWARDS] = target
        state.place[b, v, HALTED_AT] = offset
        task = state.vehicle[b, v, TASK]
        state.vehicle[b, v, TASK] = -1
        state.task[b, task, VEHICLE] = -1
        state.waiting_since[b, task] = np.float64(now - 1)
        state.pool[b, state.episode[b, POOL_SIZE]] = task
        state.episode[b, POOL_SIZE] += 1
    state.vehicle[b, v, STATUS] = BROKEN
    state.vehicle[b, v, EVENT_TICK] = now + find_repair_ticks(problem, state, b, v, now) + 1


@inner_kernel
def find_repair_ticks(problem, state, b, v, tick):
    """Return how many ticks the repair of the breakdown at `tick` lasts; a listed one comes first."""
    i = state.episode[b, INSTANCE]
    k = state.vehicle[b, v, NEXT_BREAKDOWN]
    if k < problem.breakdown.shape[2] and problem.breakdown[i, v, k, BREAKDOWN_TICK] == tick:
        return problem.breakdown[i, v, k, REPAIR_TICKS]
    n = state.vehicle[b, v, N_REPAIRS]
    mean = problem.vehicle[i, v, MEAN_REPAIR]
    return count_ticks(mean * draw_waiting_time(state.breakdown_key[b], n, 2 * v + 1))


@inner_kernel
def plan_breakdown(problem, state, b, v, tick):
    """Find the next breakdown of vehicle v, which starts or is idle again at `tick`.

    Listed breakdowns up to `tick` fell while it was broken, and are dropped. Random ones come after a
    time of use that is exponential, and is drawn anew after every repair.
    """
    i = state.episode[b, INSTANCE]
    k = state.vehicle[b, v, NEXT_BREAKDOWN]
    while k < problem.breakdown.shape[2] and problem.breakdown[i, v, k, BREAKDOWN_TICK] <= tick:
        k += 1
    state.vehicle[b, v, NEXT_BREAKDOWN] = k
    planned = NEVER
    if k < problem.breakdown.shape[2]:
        planned = problem.breakdown[i, v, k, BREAKDOWN_TICK]
    mean = problem.vehicle[i, v, MEAN_UPTIME]
    if mean > 0.0:
        n = state.vehicle[b, v, N_REPAIRS]
        uptime = count_ticks(mean * draw_waiting_time(state.breakdown_key[b], n, 2 * v))
        planned = min(planned, max(np.int64(0), tick) + max(np.int64(1), uptime))
    state.vehicle[b, v, BREAKDOWN_AT] = planned


@inner_kernel
def find_next_tick(problem, state, b):
    """Return the tick of the next event of episode b, `NEVER` if there is none."""
    i = state.episode[b, INSTANCE]
    tick = NEVER
    if state.episode[b, N_ARRIVED] < problem.instance[i, N_TASKS]:
        tick = problem.arrival_tick[i, state.episode[b, N_ARRIVED]]
    for v in range(problem.instance[i, N_VEHICLES]):
        if state.vehicle[b, v, STATUS] != IDLE:
            tick = min(tick, state.vehicle[b, v, EVENT_TICK])
        if state.vehicle[b, v, STATUS] != BROKEN:
            tick = min(tick, state.vehicle[b, v, BREAKDOWN_AT])
    return tick


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`: breakdowns and repairs, finishes, arrivals."""
    i = state.episode[b, INSTANCE]
    state.episode[b, TIME] = tick
    for v in range(problem.instance[i, N_VEHICLES]):
        if state.vehicle[b, v, STATUS] == BROKEN:
            if state.vehicle[b, v, EVENT_TICK] == tick:
                state.vehicle[b, v, STATUS] = IDLE
                state.vehicle[b, v, N_REPAIRS] += 1
                plan_breakdown(problem, state, b, v, tick)
        elif state.vehicle[b, v, BREAKDOWN_AT] == tick:
            break_vehicle(problem, state, b, v)
    for v in range(problem.instance[i, N_VEHICLES]):
        if state.vehicle[b, v, STATUS] == WORKING and state.vehicle[b, v, EVENT_TICK] == tick:
            task = state.vehicle[b, v, TASK]
            state.vehicle[b, v, STATUS] = IDLE
            state.vehicle[b, v, TASK] = -1
            state.vehicle[b, v, SITE] = problem.task_ends[i, task, DELIVERY]
            state.task[b, task, FINISH] = tick
            state.episode[b, N_FINISHED] += 1
    n = state.episode[b, N_ARRIVED]
    while n < problem.instance[i, N_TASKS] and problem.arrival_tick[i, n] <= tick:
        state.pool[b, state.episode[b, POOL_SIZE]] = n
        state.episode[b, POOL_SIZE] += 1
        state.waiting_since[b, n] = problem.task[i, n, ARRIVAL]
        n += 1
    state.episode[b, N_ARRIVED] = n


@inner_kernel
def has_choice(problem, state, b, v):
    """Whether vehicle v is idle and may carry one of the waiting tasks."""
    if state.vehicle[b, v, STATUS] != IDLE or state.episode[b, POOL_SIZE] == 0:
        return False
    i = state.episode[b, INSTANCE]
    if problem.vehicle[i, v, CAPACITY] == 0.0:
        return True
    for k in range(state.episode[b, POOL_SIZE]):
        if may_carry(problem, i, v, state.pool[b, k]):
            return True
    return False


@inner_kernel
def is_decision_due(problem, state, b):
    """Whether some vehicle of episode b has a choice."""
    if state.episode[b, POOL_SIZE] == 0:
        return False
    for v in range(problem.instance[state.episode[b, INSTANCE], N_VEHICLES]):
        if has_choice(problem, state, b, v):
            return True
    return False


@inner_kernel
def finish_episode(problem, state, b):
    """Close episode b and compute its makespan and tardiness (Eqs. 1 and 2)."""
    i = state.episode[b, INSTANCE]
    n = problem.instance[i, N_TASKS]
    makespan = 0.0
    delay = 0.0
    for task in range(n):
        finish = np.float64(state.task[b, task, FINISH])
        makespan = max(makespan, finish)
        delay += max(0.0, finish - (problem.task[i, task, ARRIVAL] + problem.task[i, task, EXPIRY]))
    state.outcome[b, MAKESPAN] = makespan
    state.outcome[b, TARDINESS] = delay / n
    state.episode[b, PHASE] = FINISHED


@inner_kernel
def advance_events(problem, state, b):
    """Advance episode b to its next decision or to its end."""
    i = state.episode[b, INSTANCE]
    while True:
        if state.episode[b, N_FINISHED] == problem.instance[i, N_TASKS]:
            finish_episode(problem, state, b)
            return
        if is_decision_due(problem, state, b):
            return
        tick = find_next_tick(problem, state, b)
        if tick == NEVER:
            state.episode[b, PHASE] = STUCK
            return
        if tick > problem.instance[i, HORIZON]:
            state.episode[b, TIME] = problem.instance[i, HORIZON]
            state.episode[b, PHASE] = STOPPED
            return
        process_tick(problem, state, b, tick)


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance` and advance it to its first decision.

    `state.breakdown_key[b]` must be set if a vehicle of the instance breaks down at random.
    """
    state.episode[b, INSTANCE] = instance
    state.episode[b, PHASE] = RUNNING
    state.episode[b, TIME] = 0
    state.episode[b, N_ARRIVED] = 0
    state.episode[b, N_FINISHED] = 0
    state.episode[b, N_DECISIONS] = 0
    state.outcome[b, MAKESPAN] = np.nan
    state.outcome[b, TARDINESS] = np.nan
    state.episode[b, POOL_SIZE] = 0
    for task in range(problem.instance[instance, N_TASKS]):
        state.task[b, task, VEHICLE] = -1
    for v in range(problem.instance[instance, N_VEHICLES]):
        state.vehicle[b, v, STATUS] = IDLE
        state.vehicle[b, v, SITE] = problem.start_site[instance, v]
        state.vehicle[b, v, TASK] = -1
        state.vehicle[b, v, NEXT_BREAKDOWN] = 0
        state.vehicle[b, v, N_REPAIRS] = 0
        state.vehicle[b, v, HALTED_TOWARDS] = -1
        state.vehicle[b, v, HIDDEN] = False
        plan_breakdown(problem, state, b, v, np.int64(-1))
    advance_events(problem, state, b)
