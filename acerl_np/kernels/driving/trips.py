"""A vehicle on its way: its legs, the edge that it is on, and where it could turn to something else."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.driving import traffic
from acerl_np.kernels.driving.ways import find_approach, find_pace, find_rest, may_turn, slow_part
from acerl_np.kernels.ground import state as S
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def drives(status):
    """Whether a vehicle of this status is on its way."""
    return status == S.WORKING or S.ROAMING <= status <= S.TO_CHARGER


@inner_kernel
def count_busy(state, b, v):
    """Return the seconds that the working vehicle v is still busy for its task, a wait for it left out."""
    vehicle, now = state.vehicle[b, v], state.episode[b, S.EPISODE_TIME]
    idle = min(vehicle[S.VEHICLE_PAUSE], max(np.int64(0), vehicle[S.VEHICLE_LOADED_TICK] - now))
    return np.float64(vehicle[S.VEHICLE_EVENT_TICK] - now - idle)


@inner_kernel
def find_target(problem, state, b, v):
    """Return the site at the end of the leg that vehicle v is on."""
    if state.vehicle[b, v, S.VEHICLE_LEG] == S.JOINING or state.vehicle[b, v, S.VEHICLE_TASK] < 0:
        return state.vehicle[b, v, S.VEHICLE_DESTINATION]
    field = S.ENDS_DELIVERY
    if state.vehicle[b, v, S.VEHICLE_LEG] == S.TO_PICKUP:
        field = S.ENDS_PICKUP
    i = state.episode[b, S.EPISODE_INSTANCE]
    return problem.ends[i, state.vehicle[b, v, S.VEHICLE_TASK], field]


@inner_kernel
def set_on_edge(problem, state, b, v, origin, target, tick, length, rest):
    """Set vehicle v on the edge from `origin` to `target` at `tick`; `rest` of its length, m, is ahead."""
    vehicle = state.vehicle[b, v]
    vehicle[S.VEHICLE_EDGE_FROM] = origin
    vehicle[S.VEHICLE_EDGE_TO] = target
    vehicle[S.VEHICLE_EDGE_TICK] = tick
    state.place[b, v, S.PLACE_EDGE_OFFSET] = length - rest
    pace = find_pace(problem, state.episode[b, S.EPISODE_INSTANCE], v, origin, target)
    vehicle[S.VEHICLE_EDGE_END_TICK] = tick + S.count_ticks(rest / pace)


@inner_kernel
def enter_edge(problem, state, b, v, site, k, tick):
    """Set vehicle v on the edge after `site`, at `tick`; k is where a named route has its end, or -1."""
    layout = problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_LAYOUT]
    state.vehicle[b, v, S.VEHICLE_ROUTE_INDEX] = k
    if k >= 0:
        following = problem.route_sites[k]
    else:
        target = find_target(problem, state, b, v)
        following = np.int64(problem.way[layout, site, target, S.WAY_NEXT_SITE])
    length = problem.edge_length[layout, site, following]
    set_on_edge(problem, state, b, v, site, following, tick, length, length)


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    task = state.vehicle[b, v, S.VEHICLE_TASK]
    if leg == S.TO_PICKUP and (task < 0 or site == problem.ends[i, task, S.ENDS_PICKUP]):
        leg = S.TO_DELIVERY
    state.vehicle[b, v, S.VEHICLE_LEG] = leg
    target = find_target(problem, state, b, v)
    if site == target:
        state.vehicle[b, v, S.VEHICLE_LEG] = S.ARRIVED
        state.vehicle[b, v, S.VEHICLE_EDGE_FROM] = site
        return
    way = problem.way[problem.instance[i, S.INSTANCE_LAYOUT], site, target]
    enter_edge(problem, state, b, v, site, np.int64(way[S.WAY_NAMED_ROUTE]), tick)


@kernel
def leave_pickup(problem, state, b, v):
    """Set vehicle v, which waits for its task at the pickup, on the way that begins once it is loaded."""
    vehicle = state.vehicle[b, v]
    i = state.episode[b, S.EPISODE_INSTANCE]
    pickup = problem.ends[i, vehicle[S.VEHICLE_TASK], S.ENDS_PICKUP]
    vehicle[S.VEHICLE_HIDDEN] = vehicle[S.VEHICLE_REVERSED] = False
    start_leg(problem, state, b, v, S.TO_DELIVERY, pickup, vehicle[S.VEHICLE_LOADED_TICK])


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a vehicle that drives along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    if S.has_traffic(problem, state.episode[b, S.EPISODE_INSTANCE]):
        traffic.locate(state, b, v, tick)
        return
    vehicle = state.vehicle[b, v]
    waits = vehicle[S.VEHICLE_PAUSE] > 0 and vehicle[S.VEHICLE_STATUS] == S.WORKING
    comes = vehicle[S.VEHICLE_LEG] in (S.JOINING, S.TO_PICKUP)
    if waits and comes and tick >= vehicle[S.VEHICLE_LOADED_TICK] - vehicle[S.VEHICLE_PAUSE]:
        leave_pickup(problem, state, b, v)
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
        elif vehicle[S.VEHICLE_LEG] in (S.JOINING, S.TO_PICKUP):
            leg = S.TO_DELIVERY
            if vehicle[S.VEHICLE_LEG] == S.JOINING:
                leg = S.TO_PICKUP
                vehicle[S.VEHICLE_HIDDEN] = False
            start_leg(problem, state, b, v, leg, site, reached)
        else:
            vehicle[S.VEHICLE_LEG] = S.ARRIVED
            vehicle[S.VEHICLE_EDGE_FROM] = site
    if not vehicle[S.VEHICLE_HIDDEN]:
        vehicle[S.VEHICLE_SITE] = vehicle[S.VEHICLE_EDGE_FROM]


@S.unless_errands(lambda problem, state, b, v: None)
def finish_edge(problem, state, b, v):
    """Set vehicle v on what is left of the edge to the site where it may turn; a new way begins there."""
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    vehicle, place = state.vehicle[b, v], state.place[b, v]
    origin, site = vehicle[S.VEHICLE_STAND_FROM], vehicle[S.VEHICLE_STAND_SITE]
    is_first = site == vehicle[S.VEHICLE_TRIP_SITE] and origin == vehicle[S.VEHICLE_TRIP_FROM]
    vehicle[S.VEHICLE_REVERSED] &= is_first
    vehicle[S.VEHICLE_HIDDEN] = vehicle[S.VEHICLE_REVERSED]
    vehicle[S.VEHICLE_LEG], vehicle[S.VEHICLE_DESTINATION] = S.JOINING, site
    vehicle[S.VEHICLE_ROUTE_INDEX] = -1
    a, c = origin, site
    if vehicle[S.VEHICLE_REVERSED]:
        # It turned on the edge the other way, which may be the longer one: offsets count on that.
        a, c = site, origin
    length = problem.edge_length[problem.instance[i, S.INSTANCE_LAYOUT], a, c]
    rest = min(length, find_rest(state, b, v))
    set_on_edge(problem, state, b, v, origin, site, now, length, rest)
    vehicle[S.VEHICLE_EDGE_END_TICK] = vehicle[S.VEHICLE_STAND_TICK]
    note_trip(state, b, v, site, vehicle[S.VEHICLE_STAND_TICK])
    vehicle[S.VEHICLE_TRIP_FROM] = origin
    place[S.PLACE_TRIP_REACHED] = place[S.PLACE_STAND_REACHED]
    place[S.PLACE_TRIP_PACE] = place[S.PLACE_STAND_PACE]


@S.unless_errands(lambda state, b, v, site, tick: None)
def note_trip(state, b, v, site, tick):
    """Note that vehicle v begins a way at a site, for `find_turn`."""
    vehicle, place = state.vehicle[b, v], state.place[b, v]
    vehicle[S.VEHICLE_TRIP_SITE], vehicle[S.VEHICLE_TRIP_TICK] = site, tick
    place[S.PLACE_TRIP_METRES], place[S.PLACE_TRIP_SLOWDOWN] = 0.0, 0.0
    place[S.PLACE_TRIP_REACHED] = np.float64(tick)


@inner_kernel
def set_out(problem, state, b, v, target):
    """Set the free vehicle v on its way to a site, that of its task's pickup or its destination.

    Returns
    -------
    tuple of (float, float, int)
        Metres and seconds of speed limits from where it sets out, and the tick at which it does.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    vehicle, place = state.vehicle[b, v], state.place[b, v]
    metres, slowdown, turns = find_approach(problem, state, b, v, target)
    if may_turn(state, b, v):
        tick, stand = vehicle[S.VEHICLE_STAND_TICK], vehicle[S.VEHICLE_STAND_SITE]
        if tick > now:
            finish_edge(problem, state, b, v)
        else:
            vehicle[S.VEHICLE_HIDDEN] = vehicle[S.VEHICLE_REVERSED] = False
            note_trip(state, b, v, stand, now)
            start_leg(problem, state, b, v, S.TO_PICKUP, stand, now)
        vehicle[S.VEHICLE_STAND_SITE] = -1
        return metres, slowdown, tick
    site, ahead = vehicle[S.VEHICLE_SITE], vehicle[S.VEHICLE_HALTED_TOWARDS]
    done = place[S.PLACE_HALTED_AT]
    vehicle[S.VEHICLE_HALTED_TOWARDS] = -1
    vehicle[S.VEHICLE_HIDDEN] = ahead >= 0
    vehicle[S.VEHICLE_REVERSED] = turns
    note_trip(state, b, v, site, now)
    if ahead < 0 or done == 0.0:
        # Also where it broke down exactly at a site, whatever the edge ahead.
        start_leg(problem, state, b, v, S.TO_PICKUP, site, now)
        return metres, slowdown, now
    vehicle[S.VEHICLE_LEG] = S.TO_PICKUP
    vehicle[S.VEHICLE_ROUTE_INDEX] = -1
    length = problem.edge_length[problem.instance[i, S.INSTANCE_LAYOUT], site, ahead]
    origin, end, rest = (ahead, site, done) if turns else (site, ahead, length - done)
    set_on_edge(problem, state, b, v, origin, end, now, length, rest)
    vehicle[S.VEHICLE_TRIP_SITE], vehicle[S.VEHICLE_TRIP_FROM] = end, origin
    place[S.PLACE_TRIP_METRES] = rest
    place[S.PLACE_TRIP_SLOWDOWN] = slow_part(problem, i, v, origin, end, rest)
    place[S.PLACE_TRIP_PACE] = find_pace(problem, i, v, origin, end)
    place[S.PLACE_TRIP_REACHED] = np.float64(now) + rest / place[S.PLACE_TRIP_PACE]
    return metres, slowdown, now


@inner_kernel
def set_stand(state, b, v, origin, site, tick, reached, pace):
    """Write that v may turn at a site from a tick on; it comes from `origin`, `reached` s, at a pace, m/s."""
    state.vehicle[b, v, S.VEHICLE_STAND_FROM] = origin
    state.vehicle[b, v, S.VEHICLE_STAND_SITE] = site
    state.vehicle[b, v, S.VEHICLE_STAND_TICK] = tick
    state.place[b, v, S.PLACE_STAND_REACHED] = reached
    state.place[b, v, S.PLACE_STAND_PACE] = pace


@kernel
def find_turn(problem, state, b, v):
    """Find where vehicle v, which drives, may turn: the first site of its way reached now or later."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    now = state.episode[b, S.EPISODE_TIME]
    vehicle, place = state.vehicle[b, v], state.place[b, v]
    if S.has_traffic(problem, i):
        k, plan = traffic.find_next_visit(state.plan[b, v], now), state.plan[b, v]
        site, tick = plan[k, S.PLAN_SITE], max(now, plan[k, S.PLAN_IN])
        set_stand(state, b, v, site, site, tick, np.float64(tick), 0.0)
        return
    end = vehicle[S.VEHICLE_DESTINATION]
    if vehicle[S.VEHICLE_TASK] >= 0:
        end = problem.ends[i, vehicle[S.VEHICLE_TASK], S.ENDS_PICKUP]
        pause = vehicle[S.VEHICLE_PAUSE]
        if pause > 0 and now >= vehicle[S.VEHICLE_LOADED_TICK] - pause:
            set_stand(state, b, v, end, end, now, np.float64(now), 0.0)
            return
    start, site = vehicle[S.VEHICLE_TRIP_TICK], vehicle[S.VEHICLE_TRIP_SITE]
    origin = vehicle[S.VEHICLE_TRIP_FROM]
    metres, slowdown = place[S.PLACE_TRIP_METRES], place[S.PLACE_TRIP_SLOWDOWN]
    reached, pace = place[S.PLACE_TRIP_REACHED], place[S.PLACE_TRIP_PACE]
    speed = problem.fleet[i, v, S.FLEET_SPEED]
    tick = min(vehicle[S.VEHICLE_EVENT_TICK], start + S.count_ticks(metres / speed + slowdown))
    k = np.int64(problem.way[layout, site, end, S.WAY_NAMED_ROUTE])
    while tick < now and site != end:
        if k >= 0:
            following = problem.route_sites[k]
            k += 1
        else:
            following = np.int64(problem.way[layout, site, end, S.WAY_NEXT_SITE])
        length = problem.edge_length[layout, site, following]
        metres += length
        slowdown += slow_part(problem, i, v, site, following, length)
        pace = find_pace(problem, i, v, site, following)
        reached = np.float64(start) + metres / speed + slowdown
        tick = min(vehicle[S.VEHICLE_EVENT_TICK], start + S.count_ticks(metres / speed + slowdown))
        origin, site = site, following
    set_stand(state, b, v, origin, site, max(now, tick), reached, pace)
