"""Tasks given to vehicles and called back, until they are loaded; the waiting tasks."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import energy, traffic, trips, ways
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def find_waiting(state, b, task):
    """Return the position of `task` in the pool, -1 if it does not wait."""
    for position in range(state.episode[b].pool_size):
        if state.pool[b, position] == task:
            return position
    return -1


@inner_kernel
def append_waiting(problem, state, b, task):
    """Put a task at the end of the pool, or aside while no way leads there."""
    if ways.is_cut_off(problem, state.episode[b].instance, task):
        state.task[b, task].vehicle = -2
        return
    state.task[b, task].vehicle = -1
    state.pool[b, state.episode[b].pool_size] = task
    state.episode[b].pool_size += 1


@inner_kernel
def remove_waiting(state, b, position):
    """Take the task at `position` out of the pool."""
    for k in range(position, state.episode[b].pool_size - 1):
        state.pool[b, k] = state.pool[b, k + 1]
    state.episode[b].pool_size -= 1


@inner_kernel
def stands_at(state, b, v, site):
    """Whether vehicle v stands at a site, idle, queued or charging."""
    vehicle = state.vehicle[b, v]
    if vehicle.status not in (S.IDLE, S.QUEUED, S.CHARGING):
        return False
    halted = vehicle.halted_towards >= 0 and state.vehicle[b, v].halted_at != 0.0
    return vehicle.site == site and not halted


@inner_kernel
def note_leaving(problem, state, b, v):
    """Let vehicle v give up the parking place that it has, or is under way to, as it sets out at this tick.

    Who leaves such a place, or a charger's slot for which others queue, makes the next tick an event: it is
    given then.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    vehicle = state.vehicle[b, v]
    charges = vehicle.status == S.CHARGING
    frees = vehicle.place >= 0
    if frees:
        vehicle.left_site, vehicle.left_tick = vehicle.place, now
        vehicle.place = -1
    for u in range(problem.instance[i].n_vehicles if charges else 0):
        other = state.vehicle[b, u]
        queues = other.status == S.QUEUED
        frees |= queues and other.site == vehicle.site
    if frees:
        state.episode[b].freed = now


@inner_kernel
def undo_task(state, b, v):
    """Take back the time that vehicle v will not be busy for its task, and what the task has waited."""
    vehicle = state.vehicle[b, v]
    vehicle.busy -= trips.count_busy(state, b, v)
    vehicle.waiting -= vehicle.last_waiting


@inner_kernel
def undo_rest(problem, state, b, v):
    """Take back what vehicle v will not do of its way, as it turns at the next site."""
    i = state.episode[b].instance
    vehicle = state.vehicle[b, v]
    distance = problem.distance[vehicle.floor]
    task, end = vehicle.task, vehicle.destination
    stand, loaded = vehicle.stand_site, 0.0
    if task >= 0:
        end = problem.ends[i, task].pickup
        loaded = distance[end, problem.ends[i, task].delivery]
        undo_task(state, b, v)
    vehicle.empty = max(0.0, vehicle.empty - distance[stand, end])
    driven = vehicle.driven - distance[stand, end] - loaded
    vehicle.driven = max(vehicle.empty, driven)


@kernel
def leave_way(problem, state, b, v):
    """Let the free vehicle v leave what it does without a task, or with one that another shall take."""
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    note_leaving(problem, state, b, v)
    task = vehicle.task
    if S.has_traffic(problem, state.episode[b].instance):
        # Its metres are taken back where it is planned anew.
        if task >= 0:
            undo_task(state, b, v)
    elif trips.drives(vehicle.status):
        undo_rest(problem, state, b, v)
    if task >= 0:
        state.task[b, task].vehicle = -1
        state.task[b, task].changes += 1
        vehicle.task = -1


@kernel
def recall_vehicle(problem, state, b, v):
    """Let vehicle v lose its task to another one: it is idle from its next site on, if nothing else comes."""
    vehicle, now = state.vehicle[b, v], state.episode[b].time
    leave_way(problem, state, b, v)
    stand, tick = vehicle.stand_site, vehicle.stand_tick
    vehicle.since = tick
    if S.has_traffic(problem, state.episode[b].instance):
        vehicle.status, vehicle.site = S.IDLE, stand
        traffic.take_way(problem, state, b, v, np.int64(-1), np.int64(-1))
        traffic.go_to_rest(problem, state, b, v)
        if vehicle.status == S.IDLE:
            vehicle.stand_site = -1
    elif tick > now:
        trips.finish_edge(problem, state, b, v)
        vehicle.status = S.ROAMING
        vehicle.event_tick = tick
    else:
        vehicle.status = S.IDLE
        vehicle.site = stand
        vehicle.stand_site = -1


@S.unless_auxiliary(False)
def take_over(problem, state, b, v, task):
    """Let vehicle v leave what it does for a task, and another one lose that; whether v has it already."""
    before = state.task[b, task].vehicle
    if before == v:
        state.vehicle[b, v].stand_site = -1
        return True
    if before >= 0:
        recall_vehicle(problem, state, b, before)
    leave_way(problem, state, b, v)
    return False


@inner_kernel
def assign_task(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to the free vehicle v, now.

    Until it is loaded, the task may be on its way already: with v, which goes on then, or with another
    vehicle, which loses it.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    task = state.pool[b, position]
    remove_waiting(state, b, position)
    state.episode[b].n_decisions += 1

    vehicle = state.vehicle[b, v]
    if S.has_auxiliary(problem, i) and take_over(problem, state, b, v, task):
        return
    vehicle.task = task
    vehicle.held = 0
    vehicle.status = S.WORKING
    state.task[b, task].vehicle = v
    state.task[b, task].start = now
    if S.has_traffic(problem, i):
        traffic.take_way(problem, state, b, v, task, np.int64(-1))
    else:
        drive_alone(problem, state, b, v, task)
    busy = vehicle.event_tick - now - vehicle.pause
    vehicle.busy += busy
    waiting = np.float64(vehicle.loaded_tick) - S.find_ready(problem, state, b, task)
    vehicle.last_waiting = S.find_weight(problem, i, task) * waiting
    vehicle.waiting += vehicle.last_waiting


@inner_kernel
def drive_alone(problem, state, b, v, task):
    """Set vehicle v on its way to a task, as if it met nobody."""
    i = state.episode[b].instance
    layout = problem.instance[i].layout
    vehicle = state.vehicle[b, v]
    pickup, delivery = problem.ends[i, task].pickup, problem.ends[i, task].delivery
    halted = vehicle.halted_towards >= 0
    approach, slowdown, leaves = trips.set_out(problem, state, b, v, pickup)
    vehicle.driven += approach + problem.distance[layout, pickup, delivery]
    vehicle.empty += approach
    to_pickup, duration = ways.count_trip(problem, i, v, task, approach, slowdown, not halted)
    pause = S.find_pause(problem, state, b, task, leaves + to_pickup)
    vehicle.pause = pause
    vehicle.loaded_tick = leaves + to_pickup + pause
    vehicle.event_tick = leaves + duration + pause
    if pause > 0 and vehicle.leg not in (S.JOINING, S.TO_PICKUP):
        trips.leave_pickup(problem, state, b, v)


@inner_kernel
def take_decision(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to vehicle v; -1 lets all wait for an event."""
    if v >= 0:
        assign_task(problem, state, b, v, position)
        return
    state.episode[b].n_decisions += 1
    state.episode[b].waits = 1


@inner_kernel
def send_vehicle(problem, state, b, v, status, site):
    """Send the idle vehicle v without a task to a site, where it then parks or charges."""
    i = state.episode[b].instance
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    note_leaving(problem, state, b, v)
    vehicle.status = status
    vehicle.destination = site
    vehicle.place = site if status == S.PARKING else -1
    if S.has_traffic(problem, i):
        traffic.take_way(problem, state, b, v, np.int64(-1), site)
        return
    halted = vehicle.halted_towards >= 0
    metres, slowdown, leaves = trips.set_out(problem, state, b, v, site)
    vehicle.driven += metres
    vehicle.empty += metres
    ticks = ways.count_move(problem, i, v, metres, slowdown, not halted)
    vehicle.event_tick = leaves + ticks


@inner_kernel
def find_turn_of(problem, state, b, task):
    """Return where a task that may change hands stands among those that wait, as if it had not been given.

    Before the first that was ready, or was put back by a breakdown, later than this one was ready; of the
    same time by row.
    """
    ready = S.find_ready(problem, state, b, task)
    size = state.episode[b].pool_size
    for k in range(size):
        other = state.pool[b, k]
        since = state.waiting_since[b, other]
        if since > ready or (since == ready and other > task):
            return k
    return size


@S.unless_auxiliary()
def open_round(problem, state, b):
    """Put tasks that are not loaded yet between the waiting ones, so that all may change."""
    i = state.episode[b].instance
    now = state.episode[b].time
    if problem.instance[i].max_changes < 0:
        return
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle.status != S.WORKING or now >= vehicle.loaded_tick:
            continue
        task = vehicle.task
        if state.task[b, task].changes >= problem.instance[i].max_changes:
            continue
        if ways.is_cut_off(problem, i, task):
            continue
        trips.find_turn(problem, state, b, v)
        size, position = (state.episode[b].pool_size, find_turn_of(problem, state, b, task))
        for k in range(size, position, -1):
            state.pool[b, k] = state.pool[b, k - 1]
        state.pool[b, position] = task
        state.episode[b].pool_size = size + 1


@S.unless_auxiliary()
def close_round(problem, state, b):
    """Let the tasks that nobody else took go on with their vehicles."""
    if problem.instance[state.episode[b].instance].max_changes < 0:
        return
    kept = 0
    for k in range(state.episode[b].pool_size):
        task = state.pool[b, k]
        v = state.task[b, task].vehicle
        if v < 0:
            state.pool[b, kept] = task
            kept += 1
        else:
            state.vehicle[b, v].stand_site = -1
    state.episode[b].pool_size = kept
