"""What vehicles do of themselves, without a task: charge, park, and when something comes of it."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import commitment, energy, offers, trips, ways
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def mark_free(problem, state, b, v):
    """Write where vehicle v may turn to a task, if it drives without one, queues or charges, and may."""
    i, now = state.episode[b].instance, state.episode[b].time
    vehicle = state.vehicle[b, v]
    vehicle.stand_site = -1
    status = vehicle.status
    if status in (S.TO_CHARGER, S.QUEUED, S.CHARGING):
        if energy.find_level(problem, state, b, v, now) < problem.battery[i, v].resume:
            return
        if status != S.TO_CHARGER:
            site = vehicle.site
            trips.set_stand(state, b, v, site, site, now, np.float64(now), 0.0)
            return
    if S.ROAMING <= status <= S.TO_CHARGER:
        trips.find_turn(problem, state, b, v)


@inner_kernel
def find_offer(problem, state, b, v, after):
    """Return the first tick after another one at which the charging vehicle v may take more of what waits."""
    i = state.episode[b].instance
    tick = S.NEVER
    if state.episode[b].pool_size == 0:
        return tick
    resume = problem.battery[i, v].resume
    reached = energy.find_charged(problem, state, b, v, resume)
    if reached > after:
        return reached
    site = state.vehicle[b, v].site
    full = problem.battery[i, v].full
    for task in state.pool[b, : state.episode[b].pool_size]:
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
    metres, slowdown = ways.measure_way(problem, i, v, site, problem.ends[i, task].pickup)
    return energy.find_need(problem, i, v, task, np.int64(0), metres, slowdown, True)


@S.unless_auxiliary(S.NEVER)
def find_auxiliary_tick(problem, state, b):
    """Return the tick of the next event of batteries and parking, `NEVER` if there is none."""
    i, now = state.episode[b].instance, state.episode[b].time
    tick = S.NEVER
    if not S.has_auxiliary(problem, i):
        return tick
    if state.episode[b].settled < 0:
        return np.int64(0)
    if state.episode[b].freed == now:
        tick = now + 1
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        status = vehicle.status
        park_after = problem.instance[i].park_after
        # Of a live vehicle that stands since before now the sum may be below what is never.
        parks = park_after < S.NEVER and now < vehicle.since + park_after
        if status == S.IDLE and parks:
            tick = min(tick, vehicle.since + park_after)
        if energy.has_battery(problem, state, b, v):
            battery = problem.battery[i, v]
            if status != S.BROKEN:
                exhausted = energy.find_exhaustion(problem, state, b, v)
                # Of a live vehicle the level may have come to 0 before, as far as is known.
                tick = min(tick, exhausted) if exhausted > now else tick
            if status == S.CHARGING:
                tick = min(tick, find_offer(problem, state, b, v, now))
            elif status == S.IDLE and battery.idle > 0:
                above = vehicle.level - battery.good
                if above >= 0:
                    low = vehicle.level_tick + above // battery.idle + 1
                    tick = min(tick, low) if low > now else tick
    return tick


@S.unless_auxiliary(False)
def end_auxiliary(problem, state, b, tick):
    """Let ways without a task end, charging reach `full`, and free slots be given, at a tick.

    Return whether a vehicle that charges may take more of what waits.
    """
    i = state.episode[b].instance
    n_vehicles = problem.instance[i].n_vehicles
    opens = False
    for v in range(n_vehicles):
        vehicle = state.vehicle[b, v]
        status = vehicle.status
        if not S.ROAMING <= status <= S.TO_CHARGER or vehicle.event_tick != tick:
            continue
        energy.set_level(problem, state, b, v)
        vehicle.site = vehicle.destination
        vehicle.since = tick
        vehicle.status = S.IDLE
        if status == S.TO_CHARGER:
            vehicle.status = S.QUEUED
            vehicle.event_tick = S.NEVER
    for v in range(n_vehicles):
        vehicle = state.vehicle[b, v]
        if vehicle.status != S.CHARGING:
            continue
        opens |= find_offer(problem, state, b, v, tick - 1) == tick
        if vehicle.event_tick == tick:
            energy.set_level(problem, state, b, v)
            vehicle.status = S.IDLE
            vehicle.since = tick
    for k in range(problem.station.shape[1]):
        free = problem.station[i, k].places if problem.station[i, k].charges else 0
        site = problem.station[i, k].site
        for v in range(n_vehicles):
            vehicle = state.vehicle[b, v]
            free -= vehicle.status == S.CHARGING and vehicle.site == site
        while free > 0:
            first = np.int64(-1)
            for v in range(n_vehicles):
                vehicle = state.vehicle[b, v]
                if vehicle.status == S.QUEUED and vehicle.site == site:
                    since = vehicle.since
                    if first < 0 or since < state.vehicle[b, first].since:
                        first = np.int64(v)
            if first < 0:
                break
            energy.set_level(problem, state, b, first)
            state.vehicle[b, first].status = S.CHARGING
            full = problem.battery[i, first].full
            charged = energy.find_charged(problem, state, b, first, full)
            state.vehicle[b, first].event_tick = max(tick + 1, charged)
            free -= 1
    return opens


@inner_kernel
def find_slot(problem, state, b, places, arrival):
    """Return when who comes to a charger of so many places at `arrival` begins; estimates go before."""
    i = state.episode[b].instance
    n_vehicles = problem.instance[i].n_vehicles
    start = arrival
    for u in range(n_vehicles):
        # Slots are free from the latest ends on, one each.
        end, n = state.vehicle[b, u].estimate, 0
        for w in range(n_vehicles):
            n += state.vehicle[b, w].estimate >= end
        if n >= places:
            start = max(start, end)
    return start


@inner_kernel
def find_start(problem, state, b, v, site, places, arrival):
    """Return the tick at which vehicle v, at a charger's site from a tick on, would begin to charge there.

    Those that are there before, or on the way and there before, charge to `full` first. Writes the estimates
    of when these are done, ticks.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    n_vehicles = problem.instance[i].n_vehicles
    for u in range(n_vehicles):
        vehicle = state.vehicle[b, u]
        charges = vehicle.status == S.CHARGING and vehicle.site == site
        vehicle.estimate = vehicle.event_tick if charges else -1
    while True:
        first, comes = np.int64(-1), arrival
        for u in range(n_vehicles):
            vehicle = state.vehicle[b, u]
            tick = S.NEVER
            if vehicle.estimate >= 0:
                continue
            if vehicle.status == S.QUEUED and vehicle.site == site:
                tick = vehicle.since
            goes = vehicle.status == S.TO_CHARGER
            if goes and vehicle.destination == site:
                tick = vehicle.event_tick
            if tick < comes or (tick == comes and first < 0 and u < v):
                first, comes = np.int64(u), tick
        if first < 0:
            return find_slot(problem, state, b, places, arrival)
        battery = problem.battery[i, first]
        here = max(now, comes)
        start = max(here, find_slot(problem, state, b, places, comes))
        level = energy.find_level(problem, state, b, first, here)
        level = max(np.int64(0), level - battery.idle * (start - here))
        missing = battery.full - level
        ticks = max(np.int64(1), energy.divide_up(missing, battery.charge))
        state.vehicle[b, first].estimate = start + ticks


@inner_kernel
def helps(problem, state, b, v, site):
    """Whether vehicle v, charged to `full` at a site, could take one of the waiting tasks."""
    i = state.episode[b].instance
    full = problem.battery[i, v].full
    for task in state.pool[b, : state.episode[b].pool_size]:
        if S.may_carry(problem, i, v, task) and find_site_need(problem, i, v, task, site) <= full:
            return True
    return False


@inner_kernel
def find_charger(problem, state, b, v, needed):
    """Return the site at which the idle vehicle v begins to charge first, -1 for none.

    `needed`: only where it could take a waiting task then.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    level = energy.find_level(problem, state, b, v, now)
    best, earliest = np.int64(-1), S.NEVER
    for k in range(problem.station.shape[1]):
        if not problem.station[i, k].charges:
            continue
        site = problem.station[i, k].site
        metres, slowdown, _ = ways.find_approach(problem, state, b, v, site)
        if metres == np.inf or (needed and not helps(problem, state, b, v, site)):
            continue
        full = problem.battery[i, v].full
        if level >= full and commitment.stands_at(state, b, v, site):
            continue
        halted = state.vehicle[b, v].halted_towards >= 0
        arrival = now + ways.count_move(problem, i, v, metres, slowdown, not halted)
        places = problem.station[i, k].places
        start = find_start(problem, state, b, v, site, places, arrival)
        if start < earliest:
            best, earliest = np.int64(site), start
    return best


@inner_kernel
def lacks_energy(problem, state, b, v):
    """Whether tasks wait that the idle vehicle v may carry, but holds enough for none of them."""
    i = state.episode[b].instance
    lacks = False
    for task in state.pool[b, : state.episode[b].pool_size]:
        if S.may_carry(problem, i, v, task):
            if energy.can_serve(problem, state, b, v, task):
                return False
            lacks = True
    return lacks


@inner_kernel
def count_places(problem, state, b, k):
    """Return how many parking places are free at entry k of the stations; none at a charger."""
    i, now = state.episode[b].instance, state.episode[b].time
    if problem.station[i, k].charges:
        return np.int64(0)
    site, free = problem.station[i, k].site, problem.station[i, k].places
    for u in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, u]
        left = vehicle.left_tick == now and vehicle.left_site == site
        free -= left or vehicle.place == site
    return free


@S.unless_auxiliary()
def begin_parked(problem, state, b, v):
    """Let vehicle v have a parking place where it starts, however many are there."""
    i, vehicle = state.episode[b].instance, state.vehicle[b, v]
    for k in range(problem.station.shape[1]):
        station = problem.station[i, k]
        parks = station.places > 0 and not station.charges
        if parks and station.site == vehicle.site:
            vehicle.place = vehicle.site


@inner_kernel
def take_place(problem, state, b, v):
    """Let the idle vehicle v have a free parking place where it stands; return whether it has one."""
    vehicle = state.vehicle[b, v]
    for k in range(problem.station.shape[1] if vehicle.place < 0 else 0):
        site = problem.station[state.episode[b].instance, k].site
        stands = commitment.stands_at(state, b, v, site)
        if stands and count_places(problem, state, b, k) > 0:
            vehicle.place = site
    return vehicle.place >= 0


@inner_kernel
def find_parking(problem, state, b, v):
    """Return the site of the nearest free parking place, -1 for none."""
    best, least = np.int64(-1), np.inf
    for k in range(problem.station.shape[1]):
        if count_places(problem, state, b, k) > 0:
            site = problem.station[state.episode[b].instance, k].site
            metres = S.round_sum(ways.find_approach(problem, state, b, v, site)[0])
            if metres < least:
                best, least = np.int64(site), metres
    return best


@inner_kernel
def find_refill(problem, state, b, v):
    """Return the charger's site to which the idle vehicle v shall drive now, -1 for none."""
    if not energy.has_battery(problem, state, b, v):
        return np.int64(-1)
    level = energy.find_level(problem, state, b, v, state.episode[b].time)
    low = level < problem.battery[state.episode[b].instance, v].good
    if low or lacks_energy(problem, state, b, v):
        return find_charger(problem, state, b, v, not low)
    return np.int64(-1)


@inner_kernel
def find_rest_site(problem, state, b, v):
    """Return the site to which the idle vehicle v shall drive to park now, -1 for none."""
    if take_place(problem, state, b, v):
        return np.int64(-1)
    idle = state.episode[b].time - state.vehicle[b, v].since
    if idle < problem.instance[state.episode[b].instance].park_after:
        return np.int64(-1)
    return find_parking(problem, state, b, v)


@inner_kernel
def settle_idle(problem, state, b):
    """Send idle vehicles to charge or to park, once nobody decides any more at this tick."""
    state.episode[b].settled = 1
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if state.vehicle[b, v].status != S.IDLE:
            continue
        site = find_refill(problem, state, b, v)
        if site >= 0:
            commitment.send_vehicle(problem, state, b, v, S.TO_CHARGER, site)
            continue
        site = find_rest_site(problem, state, b, v)
        if site >= 0:
            commitment.send_vehicle(problem, state, b, v, S.PARKING, site)


@S.unless_auxiliary(False)
def find_free(problem, state, b):
    """Find who is free at this tick; return whether one that has just become so has a choice.

    What did not fit when decisions were last made may do so where its way has ended.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    opens = False
    state.episode[b].settled = 0
    for v in range(problem.instance[i].n_vehicles):
        mark_free(problem, state, b, v)
        vehicle = state.vehicle[b, v]
        if vehicle.status == S.IDLE and vehicle.since == now:
            opens |= offers.has_choice(problem, state, b, v)
    return opens


@S.unless_auxiliary()
def settle_tick(problem, state, b):
    """Let tasks that nobody took go on with their vehicles, and idle vehicles charge or park."""
    if not S.has_auxiliary(problem, state.episode[b].instance):
        return
    commitment.close_round(problem, state, b)
    state.episode[b].waits = 1
    if state.episode[b].settled == 0:
        settle_idle(problem, state, b)
