"""A vehicle on its way: its legs, the edge that it is on, and where it could turn to something else."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import traffic
from acerl_np.kernels.motion.ways import find_approach, find_pace, find_rest, may_turn, slow_part
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def drives(status):
    """Whether a vehicle of this status is on its way."""
    return status == S.WORKING or S.ROAMING <= status <= S.TO_CHARGER


@inner_kernel
def count_busy(state, b, v):
    """Return the seconds that the working vehicle v is still busy for its task, a wait for it left out."""
    vehicle, now = state.vehicle[b, v], state.episode[b].time
    idle = min(vehicle.pause, max(np.int64(0), vehicle.loaded_tick - now))
    return np.float64(vehicle.event_tick - now - idle)


@inner_kernel
def find_target(problem, state, b, v):
    """Return the site at the end of the leg that vehicle v is on."""
    if state.vehicle[b, v].leg == S.JOINING or state.vehicle[b, v].task < 0:
        return state.vehicle[b, v].destination
    ends = problem.ends[state.episode[b].instance, state.vehicle[b, v].task]
    return ends.pickup if state.vehicle[b, v].leg == S.TO_PICKUP else ends.delivery


@inner_kernel
def set_on_edge(problem, state, b, v, origin, target, tick, length, rest):
    """Set vehicle v on the edge from `origin` to `target` at `tick`; `rest` of its length, m, is ahead."""
    vehicle = state.vehicle[b, v]
    vehicle.edge_from = origin
    vehicle.edge_to = target
    vehicle.edge_tick = tick
    state.vehicle[b, v].edge_offset = length - rest
    pace = find_pace(problem, state.episode[b].instance, v, origin, target)
    vehicle.edge_end_tick = tick + S.count_ticks(rest / pace)


@inner_kernel
def enter_edge(problem, state, b, v, site, k, tick):
    """Set vehicle v on the edge after `site`, at `tick`; k is where a named route has its end, or -1."""
    layout = problem.instance[state.episode[b].instance].layout
    vehicle = state.vehicle[b, v]
    vehicle.route_index = k
    if k >= 0:
        following = problem.route_sites[k]
    else:
        target = find_target(problem, state, b, v)
        following = np.int64(problem.way[vehicle.floor, site, target].next_site)
    length = problem.edge_length[layout, site, following]
    set_on_edge(problem, state, b, v, site, following, tick, length, length)


@inner_kernel
def start_leg(problem, state, b, v, leg, site, tick):
    """Begin a leg at `site`; legs that are over at once are passed."""
    i = state.episode[b].instance
    task = state.vehicle[b, v].task
    if leg == S.TO_PICKUP and (task < 0 or site == problem.ends[i, task].pickup):
        leg = S.TO_DELIVERY
    state.vehicle[b, v].leg = leg
    target = find_target(problem, state, b, v)
    if site == target:
        state.vehicle[b, v].leg = S.ARRIVED
        state.vehicle[b, v].edge_from = site
        return
    way = problem.way[state.vehicle[b, v].floor, site, target]
    enter_edge(problem, state, b, v, site, np.int64(way.named_route), tick)


@kernel
def leave_pickup(problem, state, b, v):
    """Set vehicle v, which waits for its task at the pickup, on the way that begins once it is loaded."""
    vehicle = state.vehicle[b, v]
    i = state.episode[b].instance
    pickup = problem.ends[i, vehicle.task].pickup
    vehicle.hidden = vehicle.reversed = False
    start_leg(problem, state, b, v, S.TO_DELIVERY, pickup, vehicle.loaded_tick)


@inner_kernel
def locate_vehicle(problem, state, b, v, tick):
    """Move a vehicle that drives along its route to where it is at `tick`.

    A vehicle's position is only looked up at a decision or a breakdown, so it is brought up to date
    here and not by events of its own.
    """
    if S.has_traffic(problem, state.episode[b].instance):
        traffic.locate(state, b, v, tick)
        return
    vehicle = state.vehicle[b, v]
    waits = vehicle.pause > 0 and vehicle.status == S.WORKING
    comes = vehicle.leg in (S.JOINING, S.TO_PICKUP)
    if waits and comes and tick >= vehicle.loaded_tick - vehicle.pause:
        leave_pickup(problem, state, b, v)
    while vehicle.leg != S.ARRIVED and vehicle.edge_end_tick <= tick:
        site, reached = vehicle.edge_to, vehicle.edge_end_tick
        vehicle.reversed = False
        target = find_target(problem, state, b, v)
        if site != target:
            k = vehicle.route_index
            if state.vehicle[b, v].edge_offset > 0.0:
                # The rest of a broken edge is behind: the route proper begins at its end.
                k = np.int64(problem.way[vehicle.floor, site, target].named_route)
            elif k >= 0:
                k += 1
            enter_edge(problem, state, b, v, site, k, reached)
        elif vehicle.leg in (S.JOINING, S.TO_PICKUP):
            leg = S.TO_DELIVERY
            if vehicle.leg == S.JOINING:
                leg = S.TO_PICKUP
                vehicle.hidden = False
            start_leg(problem, state, b, v, leg, site, reached)
        else:
            vehicle.leg = S.ARRIVED
            vehicle.edge_from = site
    if not vehicle.hidden:
        vehicle.site = vehicle.edge_from


@S.unless_auxiliary()
def finish_edge(problem, state, b, v):
    """Set vehicle v on what is left of the edge to the site where it may turn; a new way begins there."""
    i, now = state.episode[b].instance, state.episode[b].time
    vehicle = state.vehicle[b, v]
    origin, site = vehicle.stand_from, vehicle.stand_site
    is_first = site == vehicle.trip_site and origin == vehicle.trip_from
    vehicle.reversed &= is_first
    vehicle.hidden = vehicle.reversed
    vehicle.leg, vehicle.destination = S.JOINING, site
    vehicle.route_index = -1
    a, c = origin, site
    if vehicle.reversed:
        # It turned on the edge the other way, which may be the longer one: offsets count on that.
        a, c = site, origin
    length = problem.edge_length[problem.instance[i].layout, a, c]
    rest = min(length, find_rest(state, b, v))
    set_on_edge(problem, state, b, v, origin, site, now, length, rest)
    vehicle.edge_end_tick = vehicle.stand_tick
    note_trip(state, b, v, site, vehicle.stand_tick)
    vehicle.trip_from = origin
    vehicle.trip_reached = vehicle.stand_reached
    vehicle.trip_pace = vehicle.stand_pace


@S.unless_auxiliary()
def note_trip(state, b, v, site, tick):
    """Note that vehicle v begins a way at a site, for `find_turn`."""
    vehicle = state.vehicle[b, v]
    vehicle.trip_site, vehicle.trip_tick = site, tick
    vehicle.trip_metres, vehicle.trip_slowdown = 0.0, 0.0
    vehicle.trip_reached = np.float64(tick)


@inner_kernel
def set_out(problem, state, b, v, target):
    """Set the free vehicle v on its way to a site, that of its task's pickup or its destination.

    Returns
    -------
    tuple of (float, float, int)
        Metres and seconds of speed limits from where it sets out, and the tick at which it does.
    """
    i = state.episode[b].instance
    now = state.episode[b].time
    vehicle = state.vehicle[b, v]
    metres, slowdown, turns = find_approach(problem, state, b, v, target)
    vehicle.floor = problem.instance[i].layout
    if may_turn(state, b, v):
        tick, stand = vehicle.stand_tick, vehicle.stand_site
        if tick > now:
            finish_edge(problem, state, b, v)
        else:
            vehicle.hidden = vehicle.reversed = False
            note_trip(state, b, v, stand, now)
            start_leg(problem, state, b, v, S.TO_PICKUP, stand, now)
        vehicle.stand_site = -1
        return metres, slowdown, tick
    site, ahead = vehicle.site, vehicle.halted_towards
    done = vehicle.halted_at
    vehicle.halted_towards = -1
    vehicle.hidden = ahead >= 0
    vehicle.reversed = turns
    note_trip(state, b, v, site, now)
    if ahead < 0 or done == 0.0:
        # Also where it broke down exactly at a site, whatever the edge ahead.
        start_leg(problem, state, b, v, S.TO_PICKUP, site, now)
        return metres, slowdown, now
    vehicle.leg = S.TO_PICKUP
    vehicle.route_index = -1
    length = problem.edge_length[problem.instance[i].layout, site, ahead]
    origin, end, rest = (ahead, site, done) if turns else (site, ahead, length - done)
    set_on_edge(problem, state, b, v, origin, end, now, length, rest)
    vehicle.trip_site, vehicle.trip_from = end, origin
    vehicle.trip_metres = rest
    vehicle.trip_slowdown = slow_part(problem, i, v, origin, end, rest)
    vehicle.trip_pace = find_pace(problem, i, v, origin, end)
    vehicle.trip_reached = np.float64(now) + rest / vehicle.trip_pace
    return metres, slowdown, now


@inner_kernel
def set_stand(state, b, v, origin, site, tick, reached, pace):
    """Write that v may turn at a site from a tick on; it comes from `origin`, `reached` s, at a pace, m/s."""
    state.vehicle[b, v].stand_from = origin
    state.vehicle[b, v].stand_site = site
    state.vehicle[b, v].stand_tick = tick
    state.vehicle[b, v].stand_reached = reached
    state.vehicle[b, v].stand_pace = pace


@kernel
def find_turn(problem, state, b, v):
    """Find where vehicle v, which drives, may turn: the first site of its way reached now or later."""
    i = state.episode[b].instance
    layout = problem.instance[i].layout
    now = state.episode[b].time
    vehicle = state.vehicle[b, v]
    if S.has_traffic(problem, i):
        k, plan = traffic.find_next_visit(state.plan[b, v], now), state.plan[b, v]
        site, tick = plan[k, S.PLAN_SITE], max(now, plan[k, S.PLAN_IN])
        set_stand(state, b, v, site, site, tick, np.float64(tick), 0.0)
        return
    end = vehicle.destination
    if vehicle.task >= 0:
        end = problem.ends[i, vehicle.task].pickup
        pause = vehicle.pause
        if pause > 0 and now >= vehicle.loaded_tick - pause:
            set_stand(state, b, v, end, end, now, np.float64(now), 0.0)
            return
    start, site = vehicle.trip_tick, vehicle.trip_site
    origin = vehicle.trip_from
    metres, slowdown = vehicle.trip_metres, vehicle.trip_slowdown
    reached, pace = vehicle.trip_reached, vehicle.trip_pace
    speed = problem.fleet[i, v].speed
    tick = min(vehicle.event_tick, start + S.count_ticks(metres / speed + slowdown))
    k = np.int64(problem.way[vehicle.floor, site, end].named_route)
    while tick < now and site != end:
        if k >= 0:
            following = problem.route_sites[k]
            k += 1
        else:
            following = np.int64(problem.way[vehicle.floor, site, end].next_site)
        length = problem.edge_length[layout, site, following]
        metres += length
        slowdown += slow_part(problem, i, v, site, following, length)
        pace = find_pace(problem, i, v, site, following)
        reached = np.float64(start) + metres / speed + slowdown
        tick = min(vehicle.event_tick, start + S.count_ticks(metres / speed + slowdown))
        origin, site = site, following
    set_stand(state, b, v, origin, site, max(now, tick), reached, pace)
