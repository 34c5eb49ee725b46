"""What vehicles do of themselves, without a task: charge, park, and when something comes of it."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.driving import commitment, energy, offers, trips, ways
from acerl_np.kernels.ground import state as S
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def mark_free(problem, state, b, v):
    """Write where vehicle v may turn to a task, if it drives without one, queues or charges, and may."""
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    vehicle = state.vehicle[b, v]
    vehicle[S.VEHICLE_STAND_SITE] = -1
    status = vehicle[S.VEHICLE_STATUS]
    if status in (S.TO_CHARGER, S.QUEUED, S.CHARGING):
        if energy.find_level(problem, state, b, v, now) < problem.battery[i, v, S.BATTERY_RESUME]:
            return
        if status != S.TO_CHARGER:
            site = vehicle[S.VEHICLE_SITE]
            trips.set_stand(state, b, v, site, site, now, np.float64(now), 0.0)
            return
    if S.ROAMING <= status <= S.TO_CHARGER:
        trips.find_turn(problem, state, b, v)


@inner_kernel
def find_offer(problem, state, b, v, after):
    """Return the first tick after another one at which the charging vehicle v may take more of what waits."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    tick = S.NEVER
    if state.episode[b, S.EPISODE_POOL_SIZE] == 0:
        return tick
    resume = problem.battery[i, v, S.BATTERY_RESUME]
    reached = energy.find_charged(problem, state, b, v, resume)
    if reached > after:
        return reached
    site = state.vehicle[b, v, S.VEHICLE_SITE]
    full = problem.battery[i, v, S.BATTERY_FULL]
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if S.may_carry(problem, i, v, task):
            need = find_site_need(problem, i, v, task, site)
            if need <= full:
                reached = energy.find_charged(problem, state, b, v, need)
                if reached > after:
                    tick = min(tick, reached)
    return tick


@inner_kernel
def find_site_need(problem, i, v, task, site):
    """Return what vehicle v must hold at a site to take a task, `NEVER` where no way leads."""
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    pickup = problem.ends[i, task, S.ENDS_PICKUP]
    slowdown = ways.find_slowdown(problem, problem.fleet[i, v, S.FLEET_SLOWDOWN], site, pickup)
    metres = problem.distance[layout, site, pickup]
    return energy.find_need(problem, i, v, task, np.int64(0), metres, slowdown, True)


@S.unless_errands(lambda problem, state, b: S.NEVER)
def find_errand_tick(problem, state, b):
    """Return the tick of the next event of batteries and parking, `NEVER` if there is none."""
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    tick = S.NEVER
    if not S.has_errands(problem, i):
        return tick
    if state.episode[b, S.EPISODE_SETTLED] < 0:
        return np.int64(0)
    if state.episode[b, S.EPISODE_FREED] == now:
        tick = now + 1
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, v]
        status = vehicle[S.VEHICLE_STATUS]
        park_after = problem.instance[i, S.INSTANCE_PARK_AFTER]
        # Of a live vehicle that stands since before now the sum may be below what is never.
        parks = park_after < S.NEVER and now < vehicle[S.VEHICLE_SINCE] + park_after
        if status == S.IDLE and parks:
            tick = min(tick, vehicle[S.VEHICLE_SINCE] + park_after)
        if energy.has_battery(problem, state, b, v):
            battery = problem.battery[i, v]
            if status != S.BROKEN:
                exhausted = energy.find_exhaustion(problem, state, b, v)
                # Of a live vehicle the level may have come to 0 before, as far as is known.
                tick = min(tick, exhausted) if exhausted > now else tick
            if status == S.CHARGING:
                tick = min(tick, find_offer(problem, state, b, v, now))
            elif status == S.IDLE and battery[S.BATTERY_IDLE] > 0:
                above = vehicle[S.VEHICLE_LEVEL] - battery[S.BATTERY_GOOD]
                if above >= 0:
                    low = vehicle[S.VEHICLE_LEVEL_TICK] + above // battery[S.BATTERY_IDLE] + 1
                    tick = min(tick, low) if low > now else tick
    return tick


@S.unless_errands(lambda problem, state, b, tick: False)
def end_errands(problem, state, b, tick):
    """Let ways without a task end, charging reach `full`, and free slots be given, at a tick.

    Return whether a vehicle that charges may take more of what waits.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    n_vehicles = problem.instance[i, S.INSTANCE_N_VEHICLES]
    opens = False
    if not S.has_errands(problem, i):
        return opens
    for v in range(n_vehicles):
        vehicle = state.vehicle[b, v]
        status = vehicle[S.VEHICLE_STATUS]
        if not S.ROAMING <= status <= S.TO_CHARGER or vehicle[S.VEHICLE_EVENT_TICK] != tick:
            continue
        energy.set_level(problem, state, b, v)
        vehicle[S.VEHICLE_SITE] = vehicle[S.VEHICLE_DESTINATION]
        vehicle[S.VEHICLE_SINCE] = tick
        vehicle[S.VEHICLE_STATUS] = S.IDLE
        if status == S.TO_CHARGER:
            vehicle[S.VEHICLE_STATUS] = S.QUEUED
            vehicle[S.VEHICLE_EVENT_TICK] = S.NEVER
    for v in range(n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] != S.CHARGING:
            continue
        opens |= find_offer(problem, state, b, v, tick - 1) == tick
        if vehicle[S.VEHICLE_EVENT_TICK] == tick:
            energy.set_level(problem, state, b, v)
            vehicle[S.VEHICLE_STATUS] = S.IDLE
            vehicle[S.VEHICLE_SINCE] = tick
    for k in range(problem.berth.shape[1]):
        free = problem.berth[i, k, S.BERTH_PLACES] if problem.berth[i, k, S.BERTH_CHARGES] else 0
        site = problem.berth[i, k, S.BERTH_SITE]
        for v in range(n_vehicles):
            vehicle = state.vehicle[b, v]
            free -= vehicle[S.VEHICLE_STATUS] == S.CHARGING and vehicle[S.VEHICLE_SITE] == site
        while free > 0:
            first = np.int64(-1)
            for v in range(n_vehicles):
                vehicle = state.vehicle[b, v]
                if vehicle[S.VEHICLE_STATUS] == S.QUEUED and vehicle[S.VEHICLE_SITE] == site:
                    since = vehicle[S.VEHICLE_SINCE]
                    if first < 0 or since < state.vehicle[b, first, S.VEHICLE_SINCE]:
                        first = np.int64(v)
            if first < 0:
                break
            energy.set_level(problem, state, b, first)
            state.vehicle[b, first, S.VEHICLE_STATUS] = S.CHARGING
            full = problem.battery[i, first, S.BATTERY_FULL]
            charged = energy.find_charged(problem, state, b, first, full)
            state.vehicle[b, first, S.VEHICLE_EVENT_TICK] = max(tick + 1, charged)
            free -= 1
    return opens


@inner_kernel
def find_slot(problem, state, b, places, arrival):
    """Return when who comes to a charger of so many places at `arrival` begins; estimates go before."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    n_vehicles = problem.instance[i, S.INSTANCE_N_VEHICLES]
    start = arrival
    for u in range(n_vehicles):
        # Slots are free from the latest ends on, one each.
        end, n = state.vehicle[b, u, S.VEHICLE_ESTIMATE], 0
        for w in range(n_vehicles):
            n += state.vehicle[b, w, S.VEHICLE_ESTIMATE] >= end
        if n >= places:
            start = max(start, end)
    return start


@inner_kernel
def find_start(problem, state, b, v, site, places, arrival):
    """Return the tick at which vehicle v, at a charger's site from a tick on, would begin to charge there.

    Those that are there before, or on the way and there before, charge to `full` first. Writes the estimates
    of when these are done, ticks.
    """
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    n_vehicles = problem.instance[i, S.INSTANCE_N_VEHICLES]
    for u in range(n_vehicles):
        vehicle = state.vehicle[b, u]
        charges = vehicle[S.VEHICLE_STATUS] == S.CHARGING and vehicle[S.VEHICLE_SITE] == site
        vehicle[S.VEHICLE_ESTIMATE] = vehicle[S.VEHICLE_EVENT_TICK] if charges else -1
    while True:
        first, comes = np.int64(-1), arrival
        for u in range(n_vehicles):
            vehicle = state.vehicle[b, u]
            tick = S.NEVER
            if vehicle[S.VEHICLE_ESTIMATE] >= 0:
                continue
            if vehicle[S.VEHICLE_STATUS] == S.QUEUED and vehicle[S.VEHICLE_SITE] == site:
                tick = vehicle[S.VEHICLE_SINCE]
            goes = vehicle[S.VEHICLE_STATUS] == S.TO_CHARGER
            if goes and vehicle[S.VEHICLE_DESTINATION] == site:
                tick = vehicle[S.VEHICLE_EVENT_TICK]
            if tick < comes or (tick == comes and first < 0 and u < v):
                first, comes = np.int64(u), tick
        if first < 0:
            return find_slot(problem, state, b, places, arrival)
        battery = problem.battery[i, first]
        here = max(now, comes)
        start = max(here, find_slot(problem, state, b, places, comes))
        level = energy.find_level(problem, state, b, first, here)
        level = max(np.int64(0), level - battery[S.BATTERY_IDLE] * (start - here))
        missing = battery[S.BATTERY_FULL] - level
        ticks = max(np.int64(1), energy.divide_up(missing, battery[S.BATTERY_CHARGE]))
        state.vehicle[b, first, S.VEHICLE_ESTIMATE] = start + ticks


@inner_kernel
def helps(problem, state, b, v, site):
    """Whether vehicle v, charged to `full` at a site, could take one of the waiting tasks."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    full = problem.battery[i, v, S.BATTERY_FULL]
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if S.may_carry(problem, i, v, task) and find_site_need(problem, i, v, task, site) <= full:
            return True
    return False


@inner_kernel
def find_charger(problem, state, b, v, needed):
    """Return the site at which the idle vehicle v begins to charge first, -1 for none.

    `needed`: only where it could take a waiting task then.
    """
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    level = energy.find_level(problem, state, b, v, now)
    best, earliest = np.int64(-1), S.NEVER
    for k in range(problem.berth.shape[1]):
        if not problem.berth[i, k, S.BERTH_CHARGES]:
            continue
        site = problem.berth[i, k, S.BERTH_SITE]
        metres, slowdown, _ = ways.find_approach(problem, state, b, v, site)
        if metres == np.inf or (needed and not helps(problem, state, b, v, site)):
            continue
        full = problem.battery[i, v, S.BATTERY_FULL]
        if level >= full and commitment.stands_at(state, b, v, site):
            continue
        halted = state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS] >= 0
        arrival = now + ways.count_errand(problem, i, v, metres, slowdown, not halted)
        places = problem.berth[i, k, S.BERTH_PLACES]
        start = find_start(problem, state, b, v, site, places, arrival)
        if start < earliest:
            best, earliest = np.int64(site), start
    return best


@inner_kernel
def lacks_energy(problem, state, b, v):
    """Whether tasks wait that the idle vehicle v may carry, but holds enough for none of them."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    lacks = False
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        task = state.pool[b, k]
        if S.may_carry(problem, i, v, task):
            if energy.can_serve(problem, state, b, v, task):
                return False
            lacks = True
    return lacks


@inner_kernel
def count_places(problem, state, b, k):
    """Return how many parking places are free at entry k of the berths; none at a charger."""
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    if problem.berth[i, k, S.BERTH_CHARGES]:
        return np.int64(0)
    site, free = problem.berth[i, k, S.BERTH_SITE], problem.berth[i, k, S.BERTH_PLACES]
    for u in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        vehicle = state.vehicle[b, u]
        left = vehicle[S.VEHICLE_LEFT_TICK] == now and vehicle[S.VEHICLE_LEFT_SITE] == site
        free -= left or vehicle[S.VEHICLE_PLACE] == site
    return free


@S.unless_errands(lambda problem, state, b, v: None)
def begin_parked(problem, state, b, v):
    """Let vehicle v have a parking place where it starts, however many are there."""
    i, vehicle = state.episode[b, S.EPISODE_INSTANCE], state.vehicle[b, v]
    vehicle[S.VEHICLE_PLACE] = -1
    for k in range(problem.berth.shape[1]):
        berth = problem.berth[i, k]
        parks = berth[S.BERTH_PLACES] > 0 and not berth[S.BERTH_CHARGES]
        if parks and berth[S.BERTH_SITE] == vehicle[S.VEHICLE_SITE]:
            vehicle[S.VEHICLE_PLACE] = vehicle[S.VEHICLE_SITE]


@inner_kernel
def take_place(problem, state, b, v):
    """Let the idle vehicle v have a free parking place where it stands; return whether it has one."""
    vehicle = state.vehicle[b, v]
    for k in range(problem.berth.shape[1] if vehicle[S.VEHICLE_PLACE] < 0 else 0):
        site = problem.berth[state.episode[b, S.EPISODE_INSTANCE], k, S.BERTH_SITE]
        stands = commitment.stands_at(state, b, v, site)
        if stands and count_places(problem, state, b, k) > 0:
            vehicle[S.VEHICLE_PLACE] = site
    return vehicle[S.VEHICLE_PLACE] >= 0


@inner_kernel
def find_parking(problem, state, b, v):
    """Return the site of the nearest free parking place, -1 for none."""
    best, least = np.int64(-1), np.inf
    for k in range(problem.berth.shape[1]):
        if count_places(problem, state, b, k) > 0:
            site = problem.berth[state.episode[b, S.EPISODE_INSTANCE], k, S.BERTH_SITE]
            metres = S.round_sum(ways.find_approach(problem, state, b, v, site)[0])
            if metres < least:
                best, least = np.int64(site), metres
    return best


@inner_kernel
def find_refill(problem, state, b, v):
    """Return the charger's site to which the idle vehicle v shall drive now, -1 for none."""
    if not energy.has_battery(problem, state, b, v):
        return np.int64(-1)
    level = energy.find_level(problem, state, b, v, state.episode[b, S.EPISODE_TIME])
    low = level < problem.battery[state.episode[b, S.EPISODE_INSTANCE], v, S.BATTERY_GOOD]
    if low or lacks_energy(problem, state, b, v):
        return find_charger(problem, state, b, v, not low)
    return np.int64(-1)


@inner_kernel
def find_rest_site(problem, state, b, v):
    """Return the site to which the idle vehicle v shall drive to park now, -1 for none."""
    if take_place(problem, state, b, v):
        return np.int64(-1)
    idle = state.episode[b, S.EPISODE_TIME] - state.vehicle[b, v, S.VEHICLE_SINCE]
    if idle < problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_PARK_AFTER]:
        return np.int64(-1)
    return find_parking(problem, state, b, v)


@inner_kernel
def settle_idle(problem, state, b):
    """Send idle vehicles to charge or to park, once nobody decides any more at this tick."""
    state.episode[b, S.EPISODE_SETTLED] = 1
    for v in range(problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_N_VEHICLES]):
        if state.vehicle[b, v, S.VEHICLE_STATUS] != S.IDLE:
            continue
        site = find_refill(problem, state, b, v)
        if site >= 0:
            commitment.send_vehicle(problem, state, b, v, S.TO_CHARGER, site)
            continue
        site = find_rest_site(problem, state, b, v)
        if site >= 0:
            commitment.send_vehicle(problem, state, b, v, S.PARKING, site)


@S.unless_errands(lambda problem, state, b: False)
def find_free(problem, state, b):
    """Find who is free at this tick; return whether one that has just become so has a choice.

    What did not fit when decisions were last made may do so where its way has ended.
    """
    i, now = state.episode[b, S.EPISODE_INSTANCE], state.episode[b, S.EPISODE_TIME]
    opens = False
    if not S.has_errands(problem, i):
        return opens
    state.episode[b, S.EPISODE_SETTLED] = 0
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        mark_free(problem, state, b, v)
        vehicle = state.vehicle[b, v]
        if vehicle[S.VEHICLE_STATUS] == S.IDLE and vehicle[S.VEHICLE_SINCE] == now:
            opens |= offers.has_choice(problem, state, b, v)
    return opens


@S.unless_errands(lambda problem, state, b: None)
def settle_tick(problem, state, b):
    """Let tasks that nobody took go on with their vehicles, and idle vehicles charge or park."""
    if not S.has_errands(problem, state.episode[b, S.EPISODE_INSTANCE]):
        return
    commitment.close_round(problem, state, b)
    state.episode[b, S.EPISODE_WAITS] = 1
    if state.episode[b, S.EPISODE_SETTLED] == 0:
        settle_idle(problem, state, b)
