"""Vehicles that break down, as listed or at random, and are repaired."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import commitment, energy, traffic, trips, ways
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def undo_usage(problem, state, b, v, length, moved):
    """Take back what vehicle v will not do of its trip, as it breaks down, `moved` m along its edge."""
    i = state.episode[b].instance
    vehicle = state.vehicle[b, v]
    distance = problem.distance[vehicle.floor]
    task, ahead = vehicle.task, vehicle.edge_to
    rest = length - state.vehicle[b, v].edge_offset - moved
    if task < 0:
        if vehicle.leg != S.ARRIVED:
            rest += distance[ahead, vehicle.destination]
            vehicle.empty = max(0.0, vehicle.empty - rest)
            vehicle.driven = max(vehicle.empty, vehicle.driven - rest)
        return
    pickup, delivery = problem.ends[i, task].pickup, problem.ends[i, task].delivery
    commitment.undo_task(state, b, v)
    if vehicle.leg == S.ARRIVED:
        return
    if vehicle.leg == S.JOINING:
        stand = vehicle.destination
        rest += distance[ahead, stand]
        ahead = stand
    if vehicle.leg != S.TO_DELIVERY:
        rest += distance[ahead, pickup]
        vehicle.empty = max(0.0, vehicle.empty - rest)
        rest += distance[pickup, delivery]
    else:
        rest += distance[ahead, delivery]
    vehicle.driven = max(vehicle.empty, vehicle.driven - rest)


@inner_kernel
def keeps_load(problem, state, b, v):
    """Whether vehicle v, as it breaks down now, has loaded its task and keeps it."""
    vehicle, stays = state.vehicle[b, v], problem.instance[state.episode[b].instance].loads_stay
    return stays != 0 and vehicle.task >= 0 and vehicle.loaded_tick < state.episode[b].time


@kernel
def hold_load(problem, state, b, v, ticks):
    """Let vehicle v stand where it was a tick ago for so many ticks, with its load, as it breaks down."""
    vehicle, before = state.vehicle[b, v], state.episode[b].time - 1
    end = vehicle.event_tick
    vehicle.held += 1
    if S.has_traffic(problem, state.episode[b].instance):
        traffic.halt(problem, state, b, v, ticks)
        # Where it waits for others anyway it is late by less.
        late = vehicle.event_tick - end
        vehicle.held += late - 1
        vehicle.busy -= late - 1
        vehicle.left = vehicle.event_tick - (before + ticks + 2)
        return
    trips.locate_vehicle(problem, state, b, v, before)
    vehicle.busy += 1.0  # as it drives the last tick before anew
    vehicle.edge_tick -= before
    vehicle.edge_end_tick -= before
    vehicle.left = vehicle.event_tick - before


@kernel
def break_vehicle(problem, state, b, v, ticks):
    """Break vehicle v down for so many ticks: it stands where it was a tick ago and gives its task back.

    Where loads stay, it keeps a task that it has loaded.
    """
    i = state.episode[b].instance
    now = state.episode[b].time
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    task = vehicle.task
    if keeps_load(problem, state, b, v):
        hold_load(problem, state, b, v, ticks)
        task = np.int64(-1)
    elif S.has_traffic(problem, i):
        if task >= 0:
            commitment.undo_task(state, b, v)
        traffic.halt(problem, state, b, v, ticks)
    elif trips.drives(vehicle.status):
        trips.locate_vehicle(problem, state, b, v, now - 1)
        origin, target = vehicle.edge_from, vehicle.edge_to
        if vehicle.leg == S.ARRIVED:
            target = origin
        # Where it waits for its task, the edge after the pickup is still to come.
        moved = np.float64(max(np.int64(0), now - 1 - vehicle.edge_tick))
        moved *= ways.find_pace(problem, i, v, origin, target)
        if vehicle.reversed:
            # Driven backwards the site behind is the one ahead: measure from the one truly passed.
            origin, target = target, origin
        length = problem.edge_length[problem.instance[i].layout, origin, target]
        undo_usage(problem, state, b, v, length, moved)
        offset = 0.0
        if vehicle.leg != S.ARRIVED:
            offset = state.vehicle[b, v].edge_offset + moved
        if vehicle.reversed:
            offset = length - offset
        vehicle.site = origin
        vehicle.halted_towards = target
        state.vehicle[b, v].halted_at = offset
    if task >= 0:
        vehicle.task = -1
        ready = S.find_ready(problem, state, b, task)
        state.waiting_since[b, task] = max(ready, np.float64(now - 1))
        commitment.append_waiting(problem, state, b, task)
    vehicle.status = S.BROKEN
    vehicle.place = -1
    vehicle.stand_site = -1
    vehicle.event_tick = now + ticks + 1


@inner_kernel
def find_repair_ticks(problem, state, b, v, tick):
    """Return how many ticks the repair of the breakdown at `tick` lasts; a listed one comes first."""
    i = state.episode[b].instance
    k = state.vehicle[b, v].next_breakdown
    if k < problem.breakdown.shape[2] and problem.breakdown[i, v, k].tick == tick:
        return problem.breakdown[i, v, k].repair_ticks
    n = state.vehicle[b, v].n_repairs
    mean = problem.fleet[i, v].mean_repair
    return S.count_ticks(mean * random.draw_waiting_time(state.breakdown_key[b], n, 2 * v + 1))


@inner_kernel
def plan_breakdown(problem, state, b, v, tick):
    """Find the next breakdown of vehicle v, which starts or is idle again at `tick`.

    Listed breakdowns up to `tick` fell while it was broken, and are dropped. Random ones come after a
    time of use that is exponential, and is drawn anew after every repair.
    """
    i = state.episode[b].instance
    k = state.vehicle[b, v].next_breakdown
    while k < problem.breakdown.shape[2] and problem.breakdown[i, v, k].tick <= tick:
        k += 1
    state.vehicle[b, v].next_breakdown = k
    planned = S.NEVER
    if k < problem.breakdown.shape[2]:
        planned = problem.breakdown[i, v, k].tick
    mean = problem.fleet[i, v].mean_uptime
    if mean > 0.0:
        n = state.vehicle[b, v].n_repairs
        uptime = S.count_ticks(mean * random.draw_waiting_time(state.breakdown_key[b], n, 2 * v))
        planned = min(planned, max(np.int64(0), tick) + max(np.int64(1), uptime))
    state.vehicle[b, v].breakdown_at = planned


@inner_kernel
def go_on(problem, state, b, v, tick):
    """Let vehicle v, repaired at a tick with its load on it, drive on to the delivery."""
    vehicle = state.vehicle[b, v]
    vehicle.status = S.WORKING
    vehicle.edge_tick += tick
    vehicle.edge_end_tick += tick
    vehicle.event_tick, vehicle.left = tick + vehicle.left, 0
    if S.has_traffic(problem, state.episode[b].instance):
        vehicle.event_tick = max(tick + 1, traffic.find_delivery(state, b, v))


@inner_kernel
def repair_vehicle(problem, state, b, v, tick):
    """Let the broken vehicle v be idle again at a tick, or go on with its load."""
    i = state.episode[b].instance
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    if vehicle.level == 0 and energy.has_battery(problem, state, b, v):
        vehicle.level = problem.battery[i, v].critical
    vehicle.status = S.IDLE
    vehicle.since = tick
    vehicle.n_repairs += 1
    if vehicle.task >= 0:
        go_on(problem, state, b, v, tick)
    elif S.has_traffic(problem, i):
        traffic.go_to_rest(problem, state, b, v)
    plan_breakdown(problem, state, b, v, tick)


@inner_kernel
def break_and_repair(problem, state, b, tick):
    """Let vehicles break down, also of an empty battery, and be repaired; return whether one does."""
    i = state.episode[b].instance
    opens = False
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle.status == S.BROKEN:
            if vehicle.event_tick == tick:
                repair_vehicle(problem, state, b, v, tick)
                opens = True
        elif vehicle.breakdown_at == tick:
            break_vehicle(problem, state, b, v, find_repair_ticks(problem, state, b, v, tick))
            opens = True
        elif energy.is_exhausted(problem, state, b, v):
            break_vehicle(problem, state, b, v, problem.battery[i, v].tow)
            opens = True
    return opens
