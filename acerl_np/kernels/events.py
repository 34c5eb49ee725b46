"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.random import draw_waiting_time
from acerl_np.kernels.state import (
    count_ticks,
    find_due,
    find_weight,
    may_carry,
    measure_distance,
    weigh_measures,
)
from acerl_np.kernels.ways import find_approach, find_pace, find_slowdown
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def find_target(problem, state, b, v):
    """Return the site at the end of the leg that vehicle v is on."""
    field = S.ENDS_DELIVERY
    if state.vehicle[b, v, S.VEHICLE_LEG] == S.TO_PICKUP:
        field = S.ENDS_PICKUP
    i = state.episode[b, S.EPISODE_INSTANCE]
    return problem.ends[i, state.vehicle[b, v, S.VEHICLE_TASK], field]


@inner_kernel
def set_on_edge(problem, state, b, v, origin, target, tick, length, rest):
    """Set vehicle v on an edge at `tick`, when `rest` of its length is ahead."""
    vehicle = state.vehicle[b, v]
    vehicle[S.VEHICLE_EDGE_FROM] = origin
    vehicle[S.VEHICLE_EDGE_TO] = target
    vehicle[S.VEHICLE_EDGE_TICK] = tick
    state.place[b, v, S.PLACE_EDGE_OFFSET] = length - rest
    pace = find_pace(problem, state.episode[b, S.EPISODE_INSTANCE], v, origin, target)
    vehicle[S.VEHICLE_EDGE_END_TICK] = tick + count_ticks(rest / pace)


@inner_kernel
def enter_edge(problem, state, b, v, site, k, tick):
    """Set vehicle v on the edge after `site`, at `tick`; k is where a named route has its end, or -1."""
    layout = problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_LAYOUT]
    state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX] = k
    if k >= 0:
        following = problem.route_sites[k]
    else:
        following = problem.way[layout, site, find_target(problem, state, b, v), S.WAY_NEXT_SITE]
    length = problem.edge_length[layout, site, following]
    set_on_edge(problem, state, b, v, site, following, tick, length, length)


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    task = state.vehicle[b, v, S.VEHICLE_TASK]
    if leg == S.TO_PICKUP and site == problem.ends[i, task, S.ENDS_PICKUP]:
        leg = S.TO_DELIVERY
    state.vehicle[b, v, S.VEHICLE_LEG] = leg
    target = find_target(problem, state, b, v)
    way = problem.way[problem.instance[i, S.INSTANCE_LAYOUT], site, target]
    enter_edge(problem, state, b, v, site, way[S.WAY_NAMED_ROUTE], tick)


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a working vehicle along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    vehicle = state.vehicle[b, v]
    while vehicle[S.VEHICLE_LEG] != S.ARRIVED and vehicle[S.VEHICLE_EDGE_END_TICK] <= tick:
        site, reached = vehicle[S.VEHICLE_EDGE_TO], vehicle[S.VEHICLE_EDGE_END_TICK]
        vehicle[S.VEHICLE_REVERSED] = False
        target = find_target(problem, state, b, v)
        if site != target:
            k = vehicle[S.VEHICLE_ROUTE_INDEX]
            if state.place[b, v, S.PLACE_EDGE_OFFSET] > 0.0:
                # The rest of a broken edge is behind: the route proper begins at its end.
                layout = problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_LAYOUT]
                k = np.int64(problem.way[layout, site, target, S.WAY_NAMED_ROUTE])
            elif k >= 0:
                k += 1
            enter_edge(problem, state, b, v, site, k, reached)
        elif vehicle[S.VEHICLE_LEG] == S.TO_PICKUP:
            start_leg(problem, state, b, v, S.TO_DELIVERY, site, reached)
        else:
            vehicle[S.VEHICLE_LEG] = S.ARRIVED
            vehicle[S.VEHICLE_EDGE_FROM] = site
    if not vehicle[S.VEHICLE_HIDDEN]:
        vehicle[S.VEHICLE_SITE] = vehicle[S.VEHICLE_EDGE_FROM]


@inner_kernel
def assign_task(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to the idle vehicle v, now."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    now = state.episode[b, S.EPISODE_TIME]
    task = state.pool[b, position]
    for k in range(position, state.episode[b, S.EPISODE_POOL_SIZE] - 1):
        state.pool[b, k] = state.pool[b, k + 1]
    state.episode[b, S.EPISODE_POOL_SIZE] -= 1
    state.episode[b, S.EPISODE_N_DECISIONS] += 1

    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    pickup, delivery = problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
    speed = problem.fleet[i, v, S.FLEET_SPEED]
    approach, slowdown, turns = find_approach(problem, state, b, v, pickup)
    metres = approach + problem.distance[layout, pickup, delivery]
    usage[S.USAGE_DRIVEN] += metres
    usage[S.USAGE_EMPTY] += approach
    to_pickup = count_ticks(approach / speed + slowdown)
    slowdown += find_slowdown(problem, problem.fleet[i, v, S.FLEET_SLOWDOWN], pickup, delivery)
    vehicle[S.VEHICLE_TASK] = task
    vehicle[S.VEHICLE_STATUS] = S.WORKING
    state.task[b, task, S.TASK_VEHICLE] = v
    state.task[b, task, S.TASK_START] = now
    site, ahead = vehicle[S.VEHICLE_SITE], vehicle[S.VEHICLE_HALTED_TOWARDS]
    done = state.place[b, v, S.PLACE_HALTED_AT]
    vehicle[S.VEHICLE_HALTED_TOWARDS] = -1
    vehicle[S.VEHICLE_HIDDEN] = ahead >= 0
    vehicle[S.VEHICLE_REVERSED] = turns
    if ahead < 0:
        metres = measure_distance(metres, problem.instance[i, S.INSTANCE_TRUNCATES])
    if ahead < 0 or done == 0.0:
        # Also where it broke down exactly at a site, whatever the edge ahead.
        start_leg(problem, state, b, v, S.TO_PICKUP, site, now)
    else:
        vehicle[S.VEHICLE_LEG] = S.TO_PICKUP
        vehicle[S.VEHICLE_ROUTE_INDEX] = -1
        length = problem.edge_length[layout, site, ahead]
        origin, target, rest = (ahead, site, done) if turns else (site, ahead, length - done)
        set_on_edge(problem, state, b, v, origin, target, now, length, rest)
    # Without a limit the sum is that of the two times alone, to the last bit.
    handling = problem.record[i, task, S.RECORD_HANDLING]
    duration = max(np.int64(1), count_ticks(metres / speed + slowdown + handling))
    vehicle[S.VEHICLE_EVENT_TICK] = now + duration
    usage[S.USAGE_BUSY] += duration
    reached = np.float64(now + min(to_pickup, duration))
    waiting = reached - problem.record[i, task, S.RECORD_ARRIVAL]
    usage[S.USAGE_LAST_WAITING] = find_weight(problem, i, task) * waiting
    usage[S.USAGE_WAITING] += usage[S.USAGE_LAST_WAITING]


@inner_kernel
def find_waiting(state, b, task):
    """Return the position of `task` in the pool, -1 if it does not wait."""
    for position in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        if state.pool[b, position] == task:
            return position
    return -1


@inner_kernel
def append_waiting(state, b, task):
    """Put a task at the end of the pool."""
    state.task[b, task, S.TASK_VEHICLE] = -1
    state.pool[b, state.episode[b, S.EPISODE_POOL_SIZE]] = task
    state.episode[b, S.EPISODE_POOL_SIZE] += 1


@inner_kernel
def undo_usage(problem, state, b, v, length, moved):
    """Take back what vehicle v will not do of its trip, as it breaks down, `moved` m along its edge."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    task = vehicle[S.VEHICLE_TASK]
    pickup, delivery = problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
    usage[S.USAGE_BUSY] -= np.float64(
        vehicle[S.VEHICLE_EVENT_TICK] - state.episode[b, S.EPISODE_TIME]
    )
    usage[S.USAGE_WAITING] -= usage[S.USAGE_LAST_WAITING]
    if vehicle[S.VEHICLE_LEG] == S.ARRIVED:
        return
    ahead = vehicle[S.VEHICLE_EDGE_TO]
    rest = length - state.place[b, v, S.PLACE_EDGE_OFFSET] - moved
    if vehicle[S.VEHICLE_LEG] == S.TO_PICKUP:
        rest += distance[ahead, pickup]
        usage[S.USAGE_EMPTY] = max(0.0, usage[S.USAGE_EMPTY] - rest)
        rest += distance[pickup, delivery]
    else:
        rest += distance[ahead, delivery]
    usage[S.USAGE_DRIVEN] = max(usage[S.USAGE_EMPTY], usage[S.USAGE_DRIVEN] - rest)


@inner_kernel
def break_vehicle(problem, state, b, v):
    """Break vehicle v down now: it stands where it was a tick ago and gives its task back."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    vehicle = state.vehicle[b, v]
    if vehicle[S.VEHICLE_STATUS] == S.WORKING:
        locate_vehicle(problem, state, b, v, now - 1)
        origin, target = vehicle[S.VEHICLE_EDGE_FROM], vehicle[S.VEHICLE_EDGE_TO]
        if vehicle[S.VEHICLE_LEG] == S.ARRIVED:
            target = origin
        moved = np.float64(now - 1 - vehicle[S.VEHICLE_EDGE_TICK])
        moved *= find_pace(problem, i, v, origin, target)
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
        vehicle[S.VEHICLE_TASK] = -1
        state.waiting_since[b, task] = np.float64(now - 1)
        append_waiting(state, b, task)
    vehicle[S.VEHICLE_STATUS] = S.BROKEN
    vehicle[S.VEHICLE_EVENT_TICK] = now + find_repair_ticks(problem, state, b, v, now) + 1


@inner_kernel
def find_repair_ticks(problem, state, b, v, tick):
    """Return how many ticks the repair of the breakdown at `tick` lasts; a listed one comes first."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    k = state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN]
    if k < problem.breakdown.shape[2] and problem.breakdown[i, v, k, S.BREAKDOWN_TICK] == tick:
        return problem.breakdown[i, v, k, S.BREAKDOWN_REPAIR_TICKS]
    n = state.vehicle[b, v, S.VEHICLE_N_REPAIRS]
    mean = problem.fleet[i, v, S.FLEET_MEAN_REPAIR]
    return count_ticks(mean * draw_waiting_time(state.breakdown_key[b], n, 2 * v + 1))


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
        uptime = count_ticks(mean * draw_waiting_time(state.breakdown_key[b], n, 2 * v))
        planned = min(planned, max(np.int64(0), tick) + max(np.int64(1), uptime))
    state.vehicle[b, v, S.VEHICLE_BREAKDOWN_AT] = planned


@inner_kernel
def find_next_tick(problem, state, b):
    """Return the tick of the next event of episode b, `NEVER` if there is none."""
    i, n_arrived = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_N_ARRIVED]
    tick = S.NEVER
    if n_arrived < problem.instance[i, S.INSTANCE_N_TASKS]:
        tick = problem.arrival_tick[i, n_arrived]
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] != S.IDLE:
            tick = min(tick, vehicle[S.VEHICLE_EVENT_TICK])
        if vehicle[S.VEHICLE_STATUS] != S.BROKEN:
            tick = min(tick, vehicle[S.VEHICLE_BREAKDOWN_AT])
    return tick


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`: breakdowns and repairs, finishes, arrivals."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    state.episode[b, S.EPISODE_TIME] = tick
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.BROKEN:
            if vehicle[S.VEHICLE_EVENT_TICK] == tick:
                vehicle[S.VEHICLE_STATUS] = S.IDLE
                vehicle[S.VEHICLE_N_REPAIRS] += 1
                plan_breakdown(problem, state, b, v, tick)
        elif vehicle[S.VEHICLE_BREAKDOWN_AT] == tick:
            break_vehicle(problem, state, b, v)
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.WORKING and vehicle[S.VEHICLE_EVENT_TICK] == tick:
            task = vehicle[S.VEHICLE_TASK]
            vehicle[S.VEHICLE_STATUS] = S.IDLE
            vehicle[S.VEHICLE_TASK] = -1
            vehicle[S.VEHICLE_SITE] = problem.ends[i, task, S.ENDS_DELIVERY]
            state.task[b, task, S.TASK_FINISH] = tick
            state.episode[b, S.EPISODE_N_FINISHED] += 1
    n = state.episode[b, S.EPISODE_N_ARRIVED]
    while n < problem.instance[i, S.INSTANCE_N_TASKS] and problem.arrival_tick[i, n] <= tick:
        append_waiting(state, b, n)
        state.waiting_since[b, n] = problem.record[i, n, S.RECORD_ARRIVAL]
        n += 1
    state.episode[b, S.EPISODE_N_ARRIVED] = n


@inner_kernel
def has_choice(problem, state, b, v):
    """Whether vehicle v is idle and may carry one of the waiting tasks."""
    n_waiting = state.episode[b, S.EPISODE_POOL_SIZE]
    if state.vehicle[b, v, S.VEHICLE_STATUS] != S.IDLE or n_waiting == 0:
        return False
    i = state.episode[b, S.EPISODE_INSTANCE]
    if problem.fleet[i, v, S.FLEET_CAPACITY] == 0.0:
        return True
    for k in range(n_waiting):
        if may_carry(problem, i, v, state.pool[b, k]):
            return True
    return False


@inner_kernel
def is_decision_due(problem, state, b):
    """Whether some vehicle of episode b has a choice."""
    if state.episode[b, S.EPISODE_POOL_SIZE] == 0:
        return False
    for v in range(problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_N_VEHICLES]):
        if has_choice(problem, state, b, v):
            return True
    return False


@inner_kernel
def finish_episode(problem, state, b):
    """Close episode b and measure it: makespan and tardiness (Eqs. 1 and 2), what else counts, the goal."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    makespan, delay, late, total = 0.0, 0.0, 0.0, 0.0
    for task in range(problem.instance[i, S.INSTANCE_N_TASKS]):
        finish = np.float64(state.task[b, task, S.TASK_FINISH])
        weight = find_weight(problem, i, task)
        makespan = max(makespan, finish)
        own = finish - find_due(problem, i, task)
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
    outcome[S.OUTCOME_VALUE] = weigh_measures(problem, outcome, S.GOAL_OBJECTIVE)
    outcome[S.OUTCOME_COST] = weigh_measures(problem, outcome, S.GOAL_COST)
    state.episode[b, S.EPISODE_PHASE] = S.FINISHED


@inner_kernel
def pass_tick(problem, state, b, due):
    """Advance running episode b to its next tick with an event, or to `due` if that is sooner; or close it.

    No decision is to be taken now; the caller wants to be asked again at `due`, `NEVER` for none.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    if state.episode[b, S.EPISODE_N_FINISHED] == problem.instance[i, S.INSTANCE_N_TASKS]:
        finish_episode(problem, state, b)
        return
    tick = min(due, find_next_tick(problem, state, b))
    if tick == S.NEVER:
        state.episode[b, S.EPISODE_PHASE] = S.STUCK
    elif tick > problem.instance[i, S.INSTANCE_HORIZON]:
        state.episode[b, S.EPISODE_TIME] = problem.instance[i, S.INSTANCE_HORIZON]
        state.episode[b, S.EPISODE_PHASE] = S.STOPPED
    else:
        process_tick(problem, state, b, tick)


@inner_kernel
def advance_events(problem, state, b):
    """Advance episode b to its next decision or to its end."""
    while state.episode[b, S.EPISODE_PHASE] == S.RUNNING and not is_decision_due(problem, state, b):
        pass_tick(problem, state, b, S.NEVER)


@inner_kernel
def open_episode(problem, state, b, instance):
    """Start row b on `instance`; nothing has happened yet.

    `state.breakdown_key[b]` must be set if a vehicle of the instance breaks down at random.
    """
    for k in range(S.N_EPISODE_FIELDS):
        state.episode[b, k] = 0
    state.episode[b, S.EPISODE_INSTANCE] = instance
    for k in range(S.N_OUTCOME_FIELDS):
        state.outcome[b, k] = np.nan
    for task in range(problem.instance[instance, S.INSTANCE_N_TASKS]):
        state.task[b, task, S.TASK_VEHICLE] = -1
    for v in range(state.usage.shape[1]):
        for k in range(S.N_USAGE_FIELDS):
            state.usage[b, v, k] = 0.0
    for v in range(problem.instance[instance, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        vehicle[S.VEHICLE_STATUS] = S.IDLE
        vehicle[S.VEHICLE_SITE] = problem.start_site[instance, v]
        vehicle[S.VEHICLE_TASK] = -1
        vehicle[S.VEHICLE_NEXT_BREAKDOWN] = 0
        vehicle[S.VEHICLE_N_REPAIRS] = 0
        vehicle[S.VEHICLE_HALTED_TOWARDS] = -1
        vehicle[S.VEHICLE_HIDDEN] = False
        plan_breakdown(problem, state, b, v, np.int64(-1))


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance`, as `open_episode`, and advance it to its first decision."""
    open_episode(problem, state, b, instance)
    advance_events(problem, state, b)
