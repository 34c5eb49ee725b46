"""What a vehicle's battery holds, uses and needs; and when something comes of it."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import traffic, trips, ways
from acerl_np.support.compiled import inner_kernel, kernel


@S.unless_auxiliary(False)
def has_battery(problem, state, b, v):
    """Whether vehicle v has a battery."""
    return problem.battery[state.episode[b].instance, v].capacity > 0


@inner_kernel
def find_rate(battery, status):
    """Return what a vehicle of this battery (BATTERY) uses a tick without a load."""
    if status in (S.BROKEN, S.CHARGING):
        return np.int64(0)
    if status in (S.IDLE, S.QUEUED):
        return battery.idle
    return battery.empty


@S.unless_traffic(False)
def meets_under_way(problem, state, b, v):
    """Whether vehicle v drives where vehicles meet: its plan tells what it uses."""
    meets = S.has_traffic(problem, state.episode[b].instance)
    return meets and trips.drives(state.vehicle[b, v].status)


@inner_kernel
def find_level(problem, state, b, v, tick):
    """Return the level of vehicle v, which has a battery, at a tick from its last change on."""
    battery = problem.battery[state.episode[b].instance, v]
    vehicle = state.vehicle[b, v]
    level, since = vehicle.level, vehicle.level_tick
    status = vehicle.status
    if status == S.CHARGING:
        level += battery.charge * (tick - since)
        return min(level, battery.capacity)
    if meets_under_way(problem, state, b, v):
        return max(np.int64(0), traffic.spend(problem, state, b, v, level, tick)[0])
    if status == S.WORKING:
        loaded = min(tick, max(since, vehicle.loaded_tick))
        level -= battery.loaded * (tick - loaded)
        tick = min(loaded, max(since, vehicle.loaded_tick - vehicle.pause))
        level -= battery.idle * (loaded - tick)
    return max(np.int64(0), level - find_rate(battery, status) * (tick - since))


@S.unless_auxiliary()
def set_level(problem, state, b, v):
    """Write the level of vehicle v at this tick, before what it does changes."""
    if has_battery(problem, state, b, v):
        now = state.episode[b].time
        state.vehicle[b, v].level = find_level(problem, state, b, v, now)
        state.vehicle[b, v].level_tick = now


@inner_kernel
def divide_up(a, b):
    """Return a / b, at least 0, rounded up, of whole numbers."""
    return max(np.int64(0), -(-a // b))


@inner_kernel
def find_exhaustion(problem, state, b, v):
    """Return the tick at which the battery of vehicle v is empty, `NEVER` if that does not come so."""
    battery = problem.battery[state.episode[b].instance, v]
    vehicle = state.vehicle[b, v]
    level, since = vehicle.level, vehicle.level_tick
    rate = find_rate(battery, vehicle.status)
    tick = S.NEVER
    if meets_under_way(problem, state, b, v):
        return traffic.spend(problem, state, b, v, level, S.NEVER)[1]
    if rate > 0:
        tick = since + max(np.int64(1), divide_up(level, rate))
    if vehicle.status != S.WORKING:
        return tick
    loaded = max(since, vehicle.loaded_tick)
    waits = max(since, loaded - vehicle.pause)
    if tick <= waits:
        return tick
    level -= rate * (waits - since)
    rate = battery.idle
    if waits < loaded and rate > 0:
        tick = max(since + 1, waits + divide_up(level, rate))
        if tick <= loaded:
            return tick
        level -= rate * (loaded - waits)
    rate = battery.loaded
    return max(since + 1, loaded + divide_up(level, rate)) if rate > 0 else S.NEVER


@inner_kernel
def find_charged(problem, state, b, v, level):
    """Return the tick at which the charging vehicle v has reached a level."""
    battery = problem.battery[state.episode[b].instance, v]
    vehicle = state.vehicle[b, v]
    missing = level - vehicle.level
    return vehicle.level_tick + divide_up(missing, battery.charge)


@inner_kernel
def find_back(problem, i, v, site):
    """Return the ticks of vehicle v from a site to the nearest charger, `NEVER` where no way leads."""
    back = S.NEVER
    for k in range(problem.station.shape[1]):
        if problem.station[i, k].charges:
            back = min(back, ways.count_way(problem, i, v, site, problem.station[i, k].site))
    return back


@S.unless_traffic(lambda problem, i, use: use)
def reserve(problem, i, use):
    """Return what a vehicle must hold for ways that use so much without others."""
    percent = problem.instance[i].reserve
    return divide_up(use * percent, np.int64(100)) if percent else use


@inner_kernel
def find_need(problem, i, v, task, delay, metres, slowdown, truncates):
    """Return what vehicle v must hold to take a task, `NEVER` where no way leads.

    Its way to the pickup begins after `delay` ticks and has so many metres, slowed down by so many seconds.
    From the delivery it must still come to a charger, with the critical level left. `truncates` as of
    `count_trip`.
    """
    if metres == np.inf:
        return S.NEVER
    battery = problem.battery[i, v]
    if battery.capacity == 0:
        return np.int64(0)
    to_pickup, duration = ways.count_trip(problem, i, v, task, metres, slowdown, truncates)
    back = find_back(problem, i, v, problem.ends[i, task].delivery)
    if back == S.NEVER:
        return S.NEVER
    use = battery.empty * (delay + to_pickup + back)
    use += battery.loaded * (duration - to_pickup)
    return battery.critical + reserve(problem, i, use)


@kernel
def find_own_need(problem, state, b, v, task):
    """Return what vehicle v, which is free, must hold now to take a task."""
    i = state.episode[b].instance
    metres, slowdown, _ = ways.find_approach(problem, state, b, v, problem.ends[i, task].pickup)
    delay = np.int64(ways.find_delay(state, b, v))
    truncates = state.vehicle[b, v].halted_towards < 0
    return find_need(problem, i, v, task, delay, metres, slowdown, truncates)


@inner_kernel
def is_plenty(problem, state, b, v, task, level):
    """Whether a level is enough for a task by far: what is cheap to tell, and true of most."""
    i = state.episode[b].instance
    battery, pickup = problem.battery[i, v], problem.ends[i, task].pickup
    layout = problem.instance[i].layout
    if problem.distance[layout, ways.find_stand(state, b, v), pickup] == np.inf:
        return False
    plenty = battery.plenty
    plenty += battery.empty * np.int64(ways.find_delay(state, b, v))
    plenty += battery.loaded * S.count_ticks(problem.record[i, task].handling)
    halted = state.vehicle[b, v].halted_towards >= 0
    return level >= battery.critical + reserve(problem, i, plenty) and not halted


@S.unless_auxiliary(True)
def is_sure(problem, state, b, v):
    """Whether vehicle v has the energy for any task, and a way to it, without a look."""
    lacks = problem.instance[state.episode[b].instance].lacks_ways
    return not lacks and not has_battery(problem, state, b, v)


@S.unless_auxiliary(True)
def can_serve(problem, state, b, v, task):
    """Whether vehicle v, which is free, has a way to a task and holds what that needs."""
    if is_sure(problem, state, b, v):
        return True
    level = find_level(problem, state, b, v, state.episode[b].time)
    if is_plenty(problem, state, b, v, task, level):
        return True
    return level >= find_own_need(problem, state, b, v, task)


@S.unless_auxiliary(False)
def is_exhausted(problem, state, b, v):
    """Whether vehicle v has a battery that is empty at this tick."""
    if not has_battery(problem, state, b, v):
        return False
    return find_exhaustion(problem, state, b, v) == state.episode[b].time
