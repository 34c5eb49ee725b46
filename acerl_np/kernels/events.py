"""One episode, from event to event: arrivals, finishes, breakdowns, repairs, assignments.

The clock jumps: nothing happens between two events, so `advance_events` goes straight to the next
tick at which a vehicle or a task changes, and stops where a decision is due.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.random import draw_waiting_time
from acerl_np.kernels.state import count_ticks, may_carry, measure_distance
from acerl_np.kernels.ways import find_approach, find_pace, find_slowdown
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def enter_edge(problem, state, b, v, site, target, tick):
    """Set vehicle v on the edge after `site` on the route to `target`, at `tick`."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    k = state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX]
    following = (
        problem.route_sites[k] if k >= 0 else problem.way[layout, site, target, S.WAY_NEXT_SITE]
    )
    state.vehicle[b, v, S.VEHICLE_EDGE_FROM] = site
    state.vehicle[b, v, S.VEHICLE_EDGE_TO] = following
    state.vehicle[b, v, S.VEHICLE_EDGE_TICK] = tick
    state.place[b, v, S.PLACE_EDGE_OFFSET] = 0.0
    length = problem.edge_length[layout, site, following]
    state.vehicle[b, v, S.VEHICLE_EDGE_END_TICK] = tick + count_ticks(
        length / find_pace(problem, i, v, site, following)
    )


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    task = state.vehicle[b, v, S.VEHICLE_TASK]
    if leg == S.TO_PICKUP and site == problem.ends[i, task, S.ENDS_PICKUP]:
        leg = S.TO_DELIVERY
    state.vehicle[b, v, S.VEHICLE_LEG] = leg
    target = (
        problem.ends[i, task, S.ENDS_PICKUP]
        if leg == S.TO_PICKUP
        else problem.ends[i, task, S.ENDS_DELIVERY]
    )
    state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX] = problem.way[
        layout, site, target, S.WAY_NAMED_ROUTE
    ]
    enter_edge(problem, state, b, v, site, target, tick)


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a working vehicle along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    task = state.vehicle[b, v, S.VEHICLE_TASK]
    while (
        state.vehicle[b, v, S.VEHICLE_LEG] != S.ARRIVED
        and state.vehicle[b, v, S.VEHICLE_EDGE_END_TICK] <= tick
    ):
        site = state.vehicle[b, v, S.VEHICLE_EDGE_TO]
        reached = state.vehicle[b, v, S.VEHICLE_EDGE_END_TICK]
        state.vehicle[b, v, S.VEHICLE_REVERSED] = False
        to_pickup = state.vehicle[b, v, S.VEHICLE_LEG] == S.TO_PICKUP
        target = (
            problem.ends[i, task, S.ENDS_PICKUP]
            if to_pickup
            else problem.ends[i, task, S.ENDS_DELIVERY]
        )
        if site != target:
            k = state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX]
            if state.place[b, v, S.PLACE_EDGE_OFFSET] > 0.0:
                # The rest of a broken edge is behind: the route proper begins at its end.
                k = problem.way[
                    problem.instance[i, S.INSTANCE_LAYOUT], site, target, S.WAY_NAMED_ROUTE
                ]
            elif k >= 0:
                k += 1
            state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX] = k
            enter_edge(problem, state, b, v, site, target, reached)
        elif to_pickup:
            start_leg(problem, state, b, v, S.TO_DELIVERY, site, reached)
        else:
            state.vehicle[b, v, S.VEHICLE_LEG] = S.ARRIVED
            state.vehicle[b, v, S.VEHICLE_EDGE_FROM] = site
    if not state.vehicle[b, v, S.VEHICLE_HIDDEN]:
        state.vehicle[b, v, S.VEHICLE_SITE] = state.vehicle[b, v, S.VEHICLE_EDGE_FROM]


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

    site = state.vehicle[b, v, S.VEHICLE_SITE]
    pickup = problem.ends[i, task, S.ENDS_PICKUP]
    delivery = problem.ends[i, task, S.ENDS_DELIVERY]
    speed = problem.fleet[i, v, S.FLEET_SPEED]
    loaded = problem.distance[layout, pickup, delivery]
    approach, slowdown, turns = find_approach(problem, state, b, v, pickup)
    metres = approach + loaded
    usage = state.usage[b, v]
    usage[S.USAGE_DRIVEN] += metres
    usage[S.USAGE_EMPTY] += approach
    to_pickup = count_ticks(approach / speed + slowdown)
    slowdown += find_slowdown(problem, problem.fleet[i, v, S.FLEET_SLOWDOWN], pickup, delivery)
    state.vehicle[b, v, S.VEHICLE_TASK] = task
    state.vehicle[b, v, S.VEHICLE_STATUS] = S.WORKING
    state.task[b, task, S.TASK_VEHICLE] = v
    state.task[b, task, S.TASK_START] = now
    state.vehicle[b, v, S.VEHICLE_REVERSED] = turns
    ahead = state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS]
    state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS] = -1
    state.vehicle[b, v, S.VEHICLE_HIDDEN] = ahead >= 0
    if ahead < 0:
        metres = measure_distance(metres, problem.instance[i, S.INSTANCE_TRUNCATES])
        start_leg(problem, state, b, v, S.TO_PICKUP, site, now)
    elif state.place[b, v, S.PLACE_HALTED_AT] == 0.0:
        # It broke down exactly at a site, and starts there, whatever the edge ahead.
        start_leg(problem, state, b, v, S.TO_PICKUP, site, now)
    else:
        length = problem.edge_length[layout, site, ahead]
        done = state.place[b, v, S.PLACE_HALTED_AT]
        rest = done if turns else length - done
        origin = ahead if turns else site
        target = site if turns else ahead
        state.vehicle[b, v, S.VEHICLE_LEG] = S.TO_PICKUP
        state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX] = -1
        state.vehicle[b, v, S.VEHICLE_EDGE_FROM] = origin
        state.vehicle[b, v, S.VEHICLE_EDGE_TO] = target
        state.place[b, v, S.PLACE_EDGE_OFFSET] = length - rest
        state.vehicle[b, v, S.VEHICLE_EDGE_TICK] = now
        state.vehicle[b, v, S.VEHICLE_EDGE_END_TICK] = now + count_ticks(
            rest / find_pace(problem, i, v, origin, target)
        )
    # Without a limit the sum is that of the two times alone, to the last bit.
    handling = problem.record[i, task, S.RECORD_HANDLING]
    duration = max(np.int64(1), count_ticks(metres / speed + slowdown + handling))
    state.vehicle[b, v, S.VEHICLE_EVENT_TICK] = now + duration
    usage[S.USAGE_BUSY] += duration
    reached = np.float64(now + min(to_pickup, duration))
    usage[S.USAGE_LAST_WAITING] = reached - problem.record[i, task, S.RECORD_ARRIVAL]
    usage[S.USAGE_WAITING] += usage[S.USAGE_LAST_WAITING]


@inner_kernel
def find_waiting(state, b, task):
    """Return the position of `task` in the pool, -1 if it does not wait."""
    for position in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        if state.pool[b, position] == task:
            return position
    return -1


@inner_kernel
def undo_usage(problem, state, b, v):
    """Take back what vehicle v will not do of its trip, as it breaks down now, located a tick ago."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    now = state.episode[b, S.EPISODE_TIME]
    task = state.vehicle[b, v, S.VEHICLE_TASK]
    pickup = problem.ends[i, task, S.ENDS_PICKUP]
    delivery = problem.ends[i, task, S.ENDS_DELIVERY]
    usage = state.usage[b, v]
    usage[S.USAGE_BUSY] -= np.float64(state.vehicle[b, v, S.VEHICLE_EVENT_TICK] - now)
    usage[S.USAGE_WAITING] -= usage[S.USAGE_LAST_WAITING]
    leg = state.vehicle[b, v, S.VEHICLE_LEG]
    if leg == S.ARRIVED:
        return
    origin = state.vehicle[b, v, S.VEHICLE_EDGE_FROM]
    ahead = state.vehicle[b, v, S.VEHICLE_EDGE_TO]
    if state.vehicle[b, v, S.VEHICLE_REVERSED]:
        length = problem.edge_length[layout, ahead, origin]
    else:
        length = problem.edge_length[layout, origin, ahead]
    moved = np.float64(now - 1 - state.vehicle[b, v, S.VEHICLE_EDGE_TICK])
    moved *= find_pace(problem, i, v, origin, ahead)
    rest = length - state.place[b, v, S.PLACE_EDGE_OFFSET] - moved
    if leg == S.TO_PICKUP:
        rest += problem.distance[layout, ahead, pickup]
        usage[S.USAGE_EMPTY] = max(0.0, usage[S.USAGE_EMPTY] - rest)
        rest += problem.distance[layout, pickup, delivery]
    else:
        rest += problem.distance[layout, ahead, delivery]
    usage[S.USAGE_DRIVEN] = max(usage[S.USAGE_EMPTY], usage[S.USAGE_DRIVEN] - rest)


@inner_kernel
def break_vehicle(problem, state, b, v):
    """Break vehicle v down now: it stands where it was a tick ago and gives its task back."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    if state.vehicle[b, v, S.VEHICLE_STATUS] == S.WORKING:
        locate_vehicle(problem, state, b, v, now - 1)
        undo_usage(problem, state, b, v)
        origin = state.vehicle[b, v, S.VEHICLE_EDGE_FROM]
        target = origin
        offset = 0.0
        if state.vehicle[b, v, S.VEHICLE_LEG] != S.ARRIVED:
            target = state.vehicle[b, v, S.VEHICLE_EDGE_TO]
            moved = np.float64(now - 1 - state.vehicle[b, v, S.VEHICLE_EDGE_TICK]) * find_pace(
                problem, i, v, origin, target
            )
            offset = state.place[b, v, S.PLACE_EDGE_OFFSET] + moved
        if state.vehicle[b, v, S.VEHICLE_REVERSED]:
            # Driven backwards the site behind is the one ahead: measure from the one truly passed.
            offset = (
                problem.edge_length[problem.instance[i, S.INSTANCE_LAYOUT], target, origin] - offset
            )
            origin, target = target, origin
        state.vehicle[b, v, S.VEHICLE_SITE] = origin
        state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS] = target
        state.place[b, v, S.PLACE_HALTED_AT] = offset
        task = state.vehicle[b, v, S.VEHICLE_TASK]
        state.vehicle[b, v, S.VEHICLE_TASK] = -1
        state.task[b, task, S.TASK_VEHICLE] = -1
        state.waiting_since[b, task] = np.float64(now - 1)
        state.pool[b, state.episode[b, S.EPISODE_POOL_SIZE]] = task
        state.episode[b, S.EPISODE_POOL_SIZE] += 1
    state.vehicle[b, v, S.VEHICLE_STATUS] = S.BROKEN
    state.vehicle[b, v, S.VEHICLE_EVENT_TICK] = (
        now + find_repair_ticks(problem, state, b, v, now) + 1
    )


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
    i = state.episode[b, S.EPISODE_INSTANCE]
    tick = S.NEVER
    if state.episode[b, S.EPISODE_N_ARRIVED] < problem.instance[i, S.INSTANCE_N_TASKS]:
        tick = problem.arrival_tick[i, state.episode[b, S.EPISODE_N_ARRIVED]]
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        if state.vehicle[b, v, S.VEHICLE_STATUS] != S.IDLE:
            tick = min(tick, state.vehicle[b, v, S.VEHICLE_EVENT_TICK])
        if state.vehicle[b, v, S.VEHICLE_STATUS] != S.BROKEN:
            tick = min(tick, state.vehicle[b, v, S.VEHICLE_BREAKDOWN_AT])
    return tick


@inner_kernel
def process_tick(problem, state, b, tick):
    """Let everything happen that happens at `tick`: breakdowns and repairs, finishes, arrivals."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    state.episode[b, S.EPISODE_TIME] = tick
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        if state.vehicle[b, v, S.VEHICLE_STATUS] == S.BROKEN:
            if state.vehicle[b, v, S.VEHICLE_EVENT_TICK] == tick:
                state.vehicle[b, v, S.VEHICLE_STATUS] = S.IDLE
                state.vehicle[b, v, S.VEHICLE_N_REPAIRS] += 1
                plan_breakdown(problem, state, b, v, tick)
        elif state.vehicle[b, v, S.VEHICLE_BREAKDOWN_AT] == tick:
            break_vehicle(problem, state, b, v)
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        if (
            state.vehicle[b, v, S.VEHICLE_STATUS] == S.WORKING
            and state.vehicle[b, v, S.VEHICLE_EVENT_TICK] == tick
        ):
            task = state.vehicle[b, v, S.VEHICLE_TASK]
            state.vehicle[b, v, S.VEHICLE_STATUS] = S.IDLE
            state.vehicle[b, v, S.VEHICLE_TASK] = -1
            state.vehicle[b, v, S.VEHICLE_SITE] = problem.ends[i, task, S.ENDS_DELIVERY]
            state.task[b, task, S.TASK_FINISH] = tick
            state.episode[b, S.EPISODE_N_FINISHED] += 1
    n = state.episode[b, S.EPISODE_N_ARRIVED]
    while n < problem.instance[i, S.INSTANCE_N_TASKS] and problem.arrival_tick[i, n] <= tick:
        state.pool[b, state.episode[b, S.EPISODE_POOL_SIZE]] = n
        state.episode[b, S.EPISODE_POOL_SIZE] += 1
        state.waiting_since[b, n] = problem.record[i, n, S.RECORD_ARRIVAL]
        n += 1
    state.episode[b, S.EPISODE_N_ARRIVED] = n


@inner_kernel
def has_choice(problem, state, b, v):
    """Whether vehicle v is idle and may carry one of the waiting tasks."""
    if (
        state.vehicle[b, v, S.VEHICLE_STATUS] != S.IDLE
        or state.episode[b, S.EPISODE_POOL_SIZE] == 0
    ):
        return False
    i = state.episode[b, S.EPISODE_INSTANCE]
    if problem.fleet[i, v, S.FLEET_CAPACITY] == 0.0:
        return True
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
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
    """Close episode b and compute its makespan and tardiness (Eqs. 1 and 2)."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    n = problem.instance[i, S.INSTANCE_N_TASKS]
    makespan = 0.0
    delay = 0.0
    n_late = 0
    for task in range(n):
        finish = np.float64(state.task[b, task, S.TASK_FINISH])
        makespan = max(makespan, finish)
        own = finish - (
            problem.record[i, task, S.RECORD_ARRIVAL] + problem.record[i, task, S.RECORD_EXPIRY]
        )
        delay += max(0.0, own)
        # Finishes are whole seconds; due times may be off by rounding.
        n_late += own > 1e-9
    state.outcome[b, S.OUTCOME_MAKESPAN] = makespan
    state.outcome[b, S.OUTCOME_TARDINESS] = delay / n
    state.episode[b, S.EPISODE_N_LATE] = n_late
    state.episode[b, S.EPISODE_PHASE] = S.FINISHED


@inner_kernel
def pass_tick(problem, state, b, due):
    """Advance episode b to its next tick with an event, or to `due` if that is sooner; or close it.

    Parameters
    ----------
    problem : Problem
    state : State
    b : int
        A running row without a decision that is to be taken now.
    due : int
        Tick at which the caller wants to be asked again, `NEVER` for none.
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
    state.episode[b, S.EPISODE_INSTANCE] = instance
    state.episode[b, S.EPISODE_PHASE] = S.RUNNING
    state.episode[b, S.EPISODE_TIME] = 0
    state.episode[b, S.EPISODE_N_ARRIVED] = 0
    state.episode[b, S.EPISODE_N_FINISHED] = 0
    state.episode[b, S.EPISODE_N_DECISIONS] = 0
    state.episode[b, S.EPISODE_N_LATE] = 0
    state.outcome[b, S.OUTCOME_MAKESPAN] = np.nan
    state.outcome[b, S.OUTCOME_TARDINESS] = np.nan
    state.episode[b, S.EPISODE_POOL_SIZE] = 0
    for task in range(problem.instance[instance, S.INSTANCE_N_TASKS]):
        state.task[b, task, S.TASK_VEHICLE] = -1
    for v in range(state.usage.shape[1]):
        for k in range(state.usage.shape[2]):
            state.usage[b, v, k] = 0.0
    for v in range(problem.instance[instance, S.INSTANCE_N_VEHICLES]):
        state.vehicle[b, v, S.VEHICLE_STATUS] = S.IDLE
        state.vehicle[b, v, S.VEHICLE_SITE] = problem.start_site[instance, v]
        state.vehicle[b, v, S.VEHICLE_TASK] = -1
        state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN] = 0
        state.vehicle[b, v, S.VEHICLE_N_REPAIRS] = 0
        state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS] = -1
        state.vehicle[b, v, S.VEHICLE_HIDDEN] = False
        plan_breakdown(problem, state, b, v, np.int64(-1))


@inner_kernel
def start_episode(problem, state, b, instance):
    """Start row b on `instance`, as `open_episode`, and advance it to its first decision."""
    open_episode(problem, state, b, instance)
    advance_events(problem, state, b)
