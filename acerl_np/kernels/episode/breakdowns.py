"""Vehicles that break down, as listed or at random, and are repaired."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.driving import commitment, energy, traffic, trips, ways
from acerl_np.kernels.ground import random
from acerl_np.kernels.ground import state as S
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
    commitment.undo_task(state, b, v)
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


@kernel
def break_vehicle(problem, state, b, v, ticks):
    """Break vehicle v down for so many ticks: it stands where it was a tick ago and gives its task back."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    task = vehicle[S.VEHICLE_TASK]
    if S.has_traffic(problem, i):
        if task >= 0:
            commitment.undo_task(state, b, v)
        traffic.halt(problem, state, b, v, ticks)
    elif trips.drives(vehicle[S.VEHICLE_STATUS]):
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
    if task >= 0:
        vehicle[S.VEHICLE_TASK] = -1
        ready = S.find_ready(problem, state, b, task)
        state.waiting_since[b, task] = max(ready, np.float64(now - 1))
        commitment.append_waiting(state, b, task)
    vehicle[S.VEHICLE_STATUS] = S.BROKEN
    vehicle[S.VEHICLE_PLACE] = -1
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
    traffic.go_to_rest(problem, state, b, v)
    plan_breakdown(problem, state, b, v, tick)


@inner_kernel
def break_and_repair(problem, state, b, tick):
    """Let vehicles break down, also of an empty battery, and be repaired; return whether one does."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    opens = False
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.BROKEN:
            if vehicle[S.VEHICLE_EVENT_TICK] == tick:
                repair_vehicle(problem, state, b, v, tick)
                opens = True
        elif vehicle[S.VEHICLE_BREAKDOWN_AT] == tick:
            break_vehicle(problem, state, b, v, find_repair_ticks(problem, state, b, v, tick))
            opens = True
        elif energy.is_exhausted(problem, state, b, v):
            break_vehicle(problem, state, b, v, problem.battery[i, v, S.BATTERY_TOW])
            opens = True
    return opens
