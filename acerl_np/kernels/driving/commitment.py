"""Tasks given to vehicles and called back, until they are loaded; the waiting tasks."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.driving import energy, traffic, trips, ways
from acerl_np.kernels.ground import state as S
from acerl_np.support.compiled import inner_kernel, kernel


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
def remove_waiting(state, b, position):
    """Take the task at `position` out of the pool."""
    for k in range(position, state.episode[b, S.EPISODE_POOL_SIZE] - 1):
        state.pool[b, k] = state.pool[b, k + 1]
    state.episode[b, S.EPISODE_POOL_SIZE] -= 1


@inner_kernel
def stands_at(state, b, v, site):
    """Whether vehicle v stands at a site, idle, queued or charging."""
    vehicle = state.vehicle[b, v]
    if vehicle[S.VEHICLE_STATUS] not in (S.IDLE, S.QUEUED, S.CHARGING):
        return False
    halted = vehicle[S.VEHICLE_HALTED_TOWARDS] >= 0 and state.place[b, v, S.PLACE_HALTED_AT] != 0.0
    return vehicle[S.VEHICLE_SITE] == site and not halted


@inner_kernel
def note_leaving(problem, state, b, v):
    """Let vehicle v give up the parking place that it has, or is under way to, as it sets out at this tick.

    Who leaves such a place, or a charger's slot for which others queue, makes the next tick an event: it is
    given then.
    """
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    vehicle = state.vehicle[b, v]
    charges = vehicle[S.VEHICLE_STATUS] == S.CHARGING
    frees = vehicle[S.VEHICLE_PLACE] >= 0
    if frees:
        vehicle[S.VEHICLE_LEFT_SITE], vehicle[S.VEHICLE_LEFT_TICK] = vehicle[S.VEHICLE_PLACE], now
        vehicle[S.VEHICLE_PLACE] = -1
    for u in range(problem.instance[i, S.INSTANCE_N_VEHICLES] if charges else 0):
        other = state.vehicle[b, u]
        queues = other[S.VEHICLE_STATUS] == S.QUEUED
        frees |= queues and other[S.VEHICLE_SITE] == vehicle[S.VEHICLE_SITE]
    if frees:
        state.episode[b, S.EPISODE_FREED] = now


@inner_kernel
def undo_task(state, b, v):
    """Take back the time that vehicle v will not be busy for its task, and what the task has waited."""
    usage = state.usage[b, v]
    usage[S.USAGE_BUSY] -= trips.count_busy(state, b, v)
    usage[S.USAGE_WAITING] -= usage[S.USAGE_LAST_WAITING]


@inner_kernel
def undo_rest(problem, state, b, v):
    """Take back what vehicle v will not do of its way, as it turns at the next site."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    task, end = vehicle[S.VEHICLE_TASK], vehicle[S.VEHICLE_DESTINATION]
    stand, loaded = vehicle[S.VEHICLE_STAND_SITE], 0.0
    if task >= 0:
        end = problem.ends[i, task, S.ENDS_PICKUP]
        loaded = distance[end, problem.ends[i, task, S.ENDS_DELIVERY]]
        undo_task(state, b, v)
    usage[S.USAGE_EMPTY] = max(0.0, usage[S.USAGE_EMPTY] - distance[stand, end])
    driven = usage[S.USAGE_DRIVEN] - distance[stand, end] - loaded
    usage[S.USAGE_DRIVEN] = max(usage[S.USAGE_EMPTY], driven)


@kernel
def leave_way(problem, state, b, v):
    """Let the free vehicle v leave what it does without a task, or with one that another shall take."""
    vehicle = state.vehicle[b, v]
    energy.set_level(problem, state, b, v)
    note_leaving(problem, state, b, v)
    task = vehicle[S.VEHICLE_TASK]
    if S.has_traffic(problem, state.episode[b, S.EPISODE_INSTANCE]):
        # Its metres are taken back where it is planned anew.
        if task >= 0:
            undo_task(state, b, v)
    elif trips.drives(vehicle[S.VEHICLE_STATUS]):
        undo_rest(problem, state, b, v)
    if task >= 0:
        state.task[b, task, S.TASK_VEHICLE] = -1
        state.task[b, task, S.TASK_CHANGES] += 1
        vehicle[S.VEHICLE_TASK] = -1


@kernel
def recall_vehicle(problem, state, b, v):
    """Let vehicle v lose its task to another one: it is idle from its next site on, if nothing else comes."""
    vehicle, now = state.vehicle[b, v], state.episode[b, S.EPISODE_TIME]
    leave_way(problem, state, b, v)
    stand, tick = vehicle[S.VEHICLE_STAND_SITE], vehicle[S.VEHICLE_STAND_TICK]
    vehicle[S.VEHICLE_SINCE] = tick
    if S.has_traffic(problem, state.episode[b, S.EPISODE_INSTANCE]):
        vehicle[S.VEHICLE_STATUS], vehicle[S.VEHICLE_SITE] = S.IDLE, stand
        traffic.take_way(problem, state, b, v, np.int64(-1), np.int64(-1))
        traffic.go_to_rest(problem, state, b, v)
        if vehicle[S.VEHICLE_STATUS] == S.IDLE:
            vehicle[S.VEHICLE_STAND_SITE] = -1
    elif tick > now:
        trips.finish_edge(problem, state, b, v)
        vehicle[S.VEHICLE_STATUS] = S.ROAMING
        vehicle[S.VEHICLE_EVENT_TICK] = tick
    else:
        vehicle[S.VEHICLE_STATUS] = S.IDLE
        vehicle[S.VEHICLE_SITE] = stand
        vehicle[S.VEHICLE_STAND_SITE] = -1


@S.unless_errands(lambda problem, state, b, v, task: False)
def take_over(problem, state, b, v, task):
    """Let vehicle v leave what it does for a task, and another one lose that; whether v has it already."""
    before = state.task[b, task, S.TASK_VEHICLE]
    if before == v:
        state.vehicle[b, v, S.VEHICLE_STAND_SITE] = -1
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
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    task = state.pool[b, position]
    remove_waiting(state, b, position)
    state.episode[b, S.EPISODE_N_DECISIONS] += 1

    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    if S.has_errands(problem, i) and take_over(problem, state, b, v, task):
        return
    vehicle[S.VEHICLE_TASK] = task
    vehicle[S.VEHICLE_STATUS] = S.WORKING
    state.task[b, task, S.TASK_VEHICLE] = v
    state.task[b, task, S.TASK_START] = now
    if S.has_traffic(problem, i):
        traffic.take_way(problem, state, b, v, task, np.int64(-1))
    else:
        drive_alone(problem, state, b, v, task)
    busy = vehicle[S.VEHICLE_EVENT_TICK] - now - vehicle[S.VEHICLE_PAUSE]
    usage[S.USAGE_BUSY] += busy
    waiting = np.float64(vehicle[S.VEHICLE_LOADED_TICK]) - S.find_ready(problem, state, b, task)
    usage[S.USAGE_LAST_WAITING] = S.find_weight(problem, i, task) * waiting
    usage[S.USAGE_WAITING] += usage[S.USAGE_LAST_WAITING]


@inner_kernel
def drive_alone(problem, state, b, v, task):
    """Set vehicle v on its way to a task, as if it met nobody."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    pickup, delivery = problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
    halted = vehicle[S.VEHICLE_HALTED_TOWARDS] >= 0
    approach, slowdown, leaves = trips.set_out(problem, state, b, v, pickup)
    usage[S.USAGE_DRIVEN] += approach + problem.distance[layout, pickup, delivery]
    usage[S.USAGE_EMPTY] += approach
    to_pickup, duration = ways.count_trip(problem, i, v, task, approach, slowdown, not halted)
    pause = S.find_pause(problem, state, b, task, leaves + to_pickup)
    vehicle[S.VEHICLE_PAUSE] = pause
    vehicle[S.VEHICLE_LOADED_TICK] = leaves + to_pickup + pause
    vehicle[S.VEHICLE_EVENT_TICK] = leaves + duration + pause
    if pause > 0 and vehicle[S.VEHICLE_LEG] not in (S.JOINING, S.TO_PICKUP):
        trips.leave_pickup(problem, state, b, v)


@inner_kernel
def take_decision(problem, state, b, v, position):
    """Give the waiting task at `position` of the pool to vehicle v; -1 lets all wait for an event."""
    if v >= 0:
        assign_task(problem, state, b, v, position)
        return
    state.episode[b, S.EPISODE_N_DECISIONS] += 1
    state.episode[b, S.EPISODE_WAITS] = 1


@inner_kernel
def send_vehicle(problem, state, b, v, status, site):
    """Send the idle vehicle v without a task to a site, where it then parks or charges."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    vehicle, usage = state.vehicle[b, v], state.usage[b, v]
    energy.set_level(problem, state, b, v)
    note_leaving(problem, state, b, v)
    vehicle[S.VEHICLE_STATUS] = status
    vehicle[S.VEHICLE_DESTINATION] = site
    vehicle[S.VEHICLE_PLACE] = site if status == S.PARKING else -1
    if S.has_traffic(problem, i):
        traffic.take_way(problem, state, b, v, np.int64(-1), site)
        return
    halted = vehicle[S.VEHICLE_HALTED_TOWARDS] >= 0
    metres, slowdown, leaves = trips.set_out(problem, state, b, v, site)
    usage[S.USAGE_DRIVEN] += metres
    usage[S.USAGE_EMPTY] += metres
    ticks = ways.count_errand(problem, i, v, metres, slowdown, not halted)
    vehicle[S.VEHICLE_EVENT_TICK] = leaves + ticks


@inner_kernel
def find_turn_of(problem, state, b, task):
    """Return where a task that may change hands stands among those that wait, as if it had not been given.

    Before the first that was ready, or was put back by a breakdown, later than this one was ready; of the
    same time by row.
    """
    ready = S.find_ready(problem, state, b, task)
    size = state.episode[b, S.EPISODE_POOL_SIZE]
    for k in range(size):
        other = state.pool[b, k]
        since = state.waiting_since[b, other]
        if since > ready or (since == ready and other > task):
            return k
    return size


@S.unless_errands(lambda problem, state, b: None)
def open_round(problem, state, b):
    """Put tasks that are not loaded yet between the waiting ones, so that all may change."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    now = state.episode[b, S.EPISODE_TIME]
    if problem.instance[i, S.INSTANCE_MAX_CHANGES] < 0:
        return
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] != S.WORKING or now >= vehicle[S.VEHICLE_LOADED_TICK]:
            continue
        task = vehicle[S.VEHICLE_TASK]
        if state.task[b, task, S.TASK_CHANGES] >= problem.instance[i, S.INSTANCE_MAX_CHANGES]:
            continue
        trips.find_turn(problem, state, b, v)
        size, position = (
            state.episode[b, S.EPISODE_POOL_SIZE],
            find_turn_of(problem, state, b, task),
        )
        for k in range(size, position, -1):
            state.pool[b, k] = state.pool[b, k - 1]
        state.pool[b, position] = task
        state.episode[b, S.EPISODE_POOL_SIZE] = size + 1


@S.unless_errands(lambda problem, state, b: None)
def close_round(problem, state, b):
    """Let the tasks that nobody else took go on with their vehicles."""
    if problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_MAX_CHANGES] < 0:
        return
    kept = 0
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        v = state.task[b, task, S.TASK_VEHICLE]
        if v < 0:
            state.pool[b, kept] = task
            kept += 1
        else:
            state.vehicle[b, v, S.VEHICLE_STAND_SITE] = -1
    state.episode[b, S.EPISODE_POOL_SIZE] = kept
