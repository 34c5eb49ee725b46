"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.compiled import inner_kernel
from acerl_np.kernels.state import (
    ARRIVED,
    BROKEN,
    FINISHED,
    IDLE,
    NEVER,
    RUNNING,
    STUCK,
    TO_DELIVERY,
    TO_PICKUP,
    WORKING,
    count_ticks,
    may_carry,
    measure_distance,
    round_sum,
)


@inner_kernel
def enter_edge(problem, state, b, v, site, target, tick):
    """Set vehicle v on the edge after `site` on the route to `target`, at `tick`."""
    i = state.instance[b]
    layout = problem.layout[i]
    k = state.route_index[b, v]
    following = problem.route_sites[k] if k >= 0 else problem.next_site[layout, site, target]
    state.edge_from[b, v] = site
    state.edge_to[b, v] = following
    state.edge_tick[b, v] = tick
    state.edge_offset[b, v] = 0.0
    length = problem.edge_length[layout, site, following]
    state.edge_end_tick[b, v] = tick + count_ticks(length / problem.speed[i, v])


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.instance[b]
    layout = problem.layout[i]
    task = state.vehicle_task[b, v]
    if leg == TO_PICKUP and site == problem.pickup[i, task]:
        leg = TO_DELIVERY
    state.leg[b, v] = leg
    target = problem.pickup[i, task] if leg == TO_PICKUP else problem.delivery[i, task]
    state.route_index[b, v] = problem.named_route[layout, site, target]
    enter_edge(problem, state, b, v, site, target, tick)


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a working vehicle along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    i = state.instance[b]
    task = state.vehicle_task[b, v]
    while state.leg[b, v] != ARRIVED and state.edge_end_tick[b, v] <= tick:
        site = state.edge_to[b, v]
        reached = state.edge_end_tick[b, v]
        state.reversed[b, v] = False
        to_pickup = state.leg[b, v] == TO_PICKUP
        target = problem.pickup[i, task] if to_pickup else problem.delivery[i, task]
        if site != target:
            k = state.route_index[b, v]
            if state.edge_offset[b, v] > 0.0:
                # The rest of a broken edge is behind: the route proper begins at its end.
                k = problem.named_route[problem.layout[i], site, target]
            elif k >= 0:
                k += 1
            state.route_index[b, v] = k
            enter_edge(problem, state, b, v, site, target, reached)
        elif to_pickup:
            start_leg(problem, state, b, v, TO_DELIVERY, site, reached)
        else:
            state.leg[b, v] = ARRIVED
            state.edge_from[b, v] = site
    if not state.hidden[b, v]:
        state.vehicle_site[b, v] = state.edge_from[b, v]


@inner_kernel
def assign_task(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to the idle vehicle v, now."""
    i = state.instance[b]
    layout = problem.layout[i]
    now = state.time[b]
    task = state.pool[b, position]
    for k in range(position, state.pool_size[b] - 1):
        state.pool[b, k] = state.pool[b, k + 1]
    state.pool_size[b] -= 1
    state.n_decisions[b] += 1

    site = state.vehicle_site[b, v]
    pickup = problem.pickup[i, task]
    delivery = problem.delivery[i, task]
    speed = problem.speed[i, v]
    loaded = problem.distance[layout, pickup, delivery]
    state.vehicle_task[b, v] = task
    state.vehicle_status[b, v] = WORKING
    state.task_vehicle[b, task] = v
    state.task_start[b, task] = now
    state.reversed[b, v] = False
    ahead = state.halted_towards[b, v]
    if ahead < 0:
        state.hidden[b, v] = False
        metres = measure_distance(
            problem.distance[layout, site, pickup] + loaded, problem.truncate[i]
        )
        start_leg(problem, state, b, v, TO_PICKUP, site, now)
    else:
        # First trip after a halt in mid-edge: turn back or go on, whichever is shorter.
        length = problem.edge_length[layout, site, ahead]
        done = state.halted_at[b, v]
        onward = round_sum(length - done + problem.distance[layout, ahead, pickup])
        back = np.inf
        if problem.edge_length[layout, ahead, site] < np.inf:
            back = round_sum(done + problem.distance[layout, site, pickup])
        turns = back <= onward
        metres = (back if turns else onward) + loaded
        rest = done if turns else length - done
        state.hidden[b, v] = True
        state.reversed[b, v] = turns
        state.leg[b, v] = TO_PICKUP
        state.route_index[b, v] = -1
        state.edge_from[b, v] = ahead if turns else site
        state.edge_to[b, v] = site if turns else ahead
        state.edge_offset[b, v] = length - rest
        state.edge_tick[b, v] = now
        state.edge_end_tick[b, v] = now + count_ticks(rest / speed)
        state.halted_towards[b, v] = -1
    duration = count_ticks(metres / speed + problem.handling[i, task])
    state.event_tick[b, v] = now + max(np.int64(1), duration)


@inner_kernel
def break_vehicle(problem, state, b, v):
    """Break vehicle v down now: it stands where it was a tick ago and gives its task back."""
    i = state.instance[b]
    now = state.time[b]
    if state.vehicle_status[b, v] == WORKING:
        locate_vehicle(problem, state, b, v, now - 1)
        origin = state.edge_from[b, v]
        target = state.edge_to[b, v]
        offset = 0.0
        if state.leg[b, v] != ARRIVED:
            moved = np.float64(now - 1 - state.edge_tick[b, v]) * problem.speed[i, v]
            offset = state.edge_offset[b, v] + moved
        if state.reversed[b, v]:
            # Driven backwards the site behind is the one ahead: measure from the one truly passed.
            offset = problem.edge_length[problem.layout[i], target, origin] - offset
            origin, target = target, origin
        state.vehicle_site[b, v] = origin
        if offset > 0.0:
            state.halted_towards[b, v] = target
            state.halted_at[b, v] = offset
        task = state.vehicle_task[b, v]
        state.vehicle_task[b, v] = -1
        state.task_vehicle[b, task] = -1
        state.waiting_since[b, task] = np.float64(now - 1)
        state.pool[b, state.pool_size[b]] = task
        state.pool_size[b] += 1
    k = state.next_breakdown[b, v]
    state.vehicle_status[b, v] = BROKEN
    state.event_tick[b, v] = now + problem.repair_ticks[i, v, k] + 1
    state.next_breakdown[b, v] = k + 1


@inner_kernel
def skip_breakdowns(problem, state, b, v, tick):
    """Drop the listed breakdowns that fell while vehicle v was broken, up to `tick`."""
    i = state.instance[b]
    k = state.next_breakdown[b, v]
    while k < problem.breakdown_tick.shape[2] and problem.breakdown_tick[i, v, k] <= tick:
        k += 1
    state.next_breakdown[b, v] = k


@inner_kernel
def find_breakdown(problem, state, b, v):
    """Return the tick of the next listed breakdown of vehicle v."""
    k = state.next_breakdown[b, v]
    if k >= problem.breakdown_tick.shape[2]:
        return NEVER
    return problem.breakdown_tick[state.instance[b], v, k]


@inner_kernel
def find_next_tick(problem, state, b):
    """Return the tick of the next event of episode b, `NEVER` if there is none."""
    i = state.instance[b]
    tick = NEVER
    if state.n_arrived[b] < problem.n_tasks[i]:
        tick = problem.arrival_tick[i, state.n_arrived[b]]
    for v in range(problem.n_vehicles[i]):
        if state.vehicle_status[b, v] != IDLE:
            tick = min(tick, state.event_tick[b, v])
        if state.vehicle_status[b, v] != BROKEN:
            tick = min(tick, find_breakdown(problem, state, b, v))
    return tick


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`: breakdowns and repairs, finishes, arrivals."""
    i = state.instance[b]
    state.time[b] = tick
    for v in range(problem.n_vehicles[i]):
        if state.vehicle_status[b, v] == BROKEN:
            if state.event_tick[b, v] == tick:
                state.vehicle_status[b, v] = IDLE
                skip_breakdowns(problem, state, b, v, tick)
        elif find_breakdown(problem, state, b, v) == tick:
            break_vehicle(problem, state, b, v)
    for v in range(problem.n_vehicles[i]):
        if state.vehicle_status[b, v] == WORKING and state.event_tick[b, v] == tick:
            task = state.vehicle_task[b, v]
            state.vehicle_status[b, v] = IDLE
            state.vehicle_task[b, v] = -1
            state.vehicle_site[b, v] = problem.delivery[i, task]
            state.task_finish[b, task] = tick
            state.n_finished[b] += 1
    n = state.n_arrived[b]
    while n < problem.n_tasks[i] and problem.arrival_tick[i, n] <= tick:
        state.pool[b, state.pool_size[b]] = n
        state.pool_size[b] += 1
        state.waiting_since[b, n] = problem.arrival[i, n]
        n += 1
    state.n_arrived[b] = n


@inner_kernel
def has_choice(problem, state, b, v):
    """Whether vehicle v is idle and may carry one of the waiting tasks."""
    if state.vehicle_status[b, v] != IDLE or state.pool_size[b] == 0:
        return False
    i = state.instance[b]
    if problem.capacity[i, v] == 0.0:
        return True
    for k in range(state.pool_size[b]):
        if may_carry(problem, i, v, state.pool[b, k]):
            return True
    return False


@inner_kernel
def is_decision_due(problem, state, b):
    """Whether some vehicle of episode b has a choice."""
    if state.pool_size[b] == 0:
        return False
    for v in range(problem.n_vehicles[state.instance[b]]):
        if has_choice(problem, state, b, v):
            return True
    return False


@inner_kernel
def finish_episode(problem, state, b):
    """Close episode b and compute its makespan and tardiness (Eqs. 1 and 2)."""
    i = state.instance[b]
    n = problem.n_tasks[i]
    makespan = 0.0
    delay = 0.0
    for task in range(n):
        finish = np.float64(state.task_finish[b, task])
        makespan = max(makespan, finish)
        delay += max(0.0, finish - (problem.arrival[i, task] + problem.expiry[i, task]))
    state.makespan[b] = makespan
    state.tardiness[b] = delay / n
    state.status[b] = FINISHED


@inner_kernel
def advance_events(problem, state, b):
    """Advance episode b to its next decision or to its end."""
    i = state.instance[b]
    while True:
        if state.n_finished[b] == problem.n_tasks[i]:
            finish_episode(problem, state, b)
            return
        if is_decision_due(problem, state, b):
            return
        tick = find_next_tick(problem, state, b)
        if tick == NEVER:
            state.status[b] = STUCK
            return
        process_tick(problem, state, b, tick)


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance` and advance it to its first decision."""
    state.instance[b] = instance
    state.status[b] = RUNNING
    state.time[b] = 0
    state.n_arrived[b] = 0
    state.n_finished[b] = 0
    state.n_decisions[b] = 0
    state.makespan[b] = np.nan
    state.tardiness[b] = np.nan
    state.pool_size[b] = 0
    for task in range(problem.n_tasks[instance]):
        state.task_vehicle[b, task] = -1
    for v in range(problem.n_vehicles[instance]):
        state.vehicle_status[b, v] = IDLE
        state.vehicle_site[b, v] = problem.start_site[instance, v]
        state.vehicle_task[b, v] = -1
        state.next_breakdown[b, v] = 0
        state.halted_towards[b, v] = -1
        state.hidden[b, v] = False
    advance_events(problem, state, b)
