"""Vehicles that meet: trips planned around each other as their tasks are given, and pushed by breakdowns."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import copy_records
from acerl_np.kernels.motion import lanes, planner, ways
from acerl_np.support.compiled import inner_kernel


@S.unless_traffic()
def forget_plan(problem, state, b, v):
    """Let vehicle v have planned nothing, as an episode begins."""
    state.plan[b, v, 0, :] = 0


@inner_kernel
def find_visit(plan, tick):
    """Return the last visit of a plan that has begun by a tick, 0 if there is no plan."""
    k = plan[0, S.PLANNED_VISITS]
    while k > 1 and plan[k, S.PLAN_IN] > tick:
        k -= 1
    return k


@inner_kernel
def find_next_visit(plan, tick):
    """Return the visit from which a vehicle may turn elsewhere: the first not left before a tick."""
    # Once it has delivered it stands there, even where edges of no time led to it.
    k, first = plan[0, S.PLANNED_VISITS], plan[0, S.PLANNED_DELIVERY]
    if first > 0 and plan[first, S.PLAN_IN] + plan[first, S.PLAN_STAY] > tick:
        first = np.int64(0)
    while k > max(1, first) and plan[k - 1, S.PLAN_OUT] >= tick:
        k -= 1
    return k


@S.unless_traffic()
def locate(state, b, v, tick):
    """Write which site vehicle v has visited last at a tick, and on which edge it is."""
    plan, vehicle = state.plan[b, v], state.vehicle[b, v]
    k = find_visit(plan, tick)
    if k > 0:
        vehicle.site = plan[k, S.PLAN_SITE]
        following = min(k + 1, plan[0, S.PLANNED_VISITS])
        vehicle.leg = S.ARRIVED if following == k else S.TO_DELIVERY
        vehicle.edge_from = plan[k, S.PLAN_SITE]
        vehicle.edge_to = plan[following, S.PLAN_SITE]
        vehicle.edge_tick = plan[k, S.PLAN_OUT]
        vehicle.edge_end_tick = plan[following, S.PLAN_IN]


@inner_kernel
def add_metres(problem, state, b, v, first, sign):
    """Add the metres of a plan from a visit on to what vehicle v has driven, or take them back."""
    i = state.episode[b].instance
    length = problem.edge_length[problem.instance[i].layout]
    plan, vehicle = state.plan[b, v], state.vehicle[b, v]
    for k in range(first, plan[0, S.PLANNED_VISITS]):
        metres = sign * length[plan[k, S.PLAN_SITE], plan[k + 1, S.PLAN_SITE]]
        vehicle.driven = max(0.0, vehicle.driven + metres)
        if not plan[0, S.PLANNED_PICKUP] <= k < plan[0, S.PLANNED_DELIVERY]:
            vehicle.empty = max(0.0, vehicle.empty + metres)


@inner_kernel
def write_plan(problem, state, b, v, task, last, start, forgets):
    """Write the way that ends with a node in place of the visits of vehicle v from `start` on.

    With `forgets`, visits before that, which no one else must know any more, are forgotten. Return the ticks
    at which the task is loaded and delivered, 0 both without one, -1 both if the plan has no room for the
    way; and which visit `start` is now.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    node, plan = state.node, state.plan[b, v]
    adjacency = problem.adjacency[problem.instance[i].layout]
    n_lists = len(adjacency) + problem.block_member.shape[1]
    width = len(adjacency) + node[n_lists].first
    since = plan[start, S.PLAN_IN] if start > 0 else now
    first = min(1, start)
    while forgets and first < start and not lanes.is_reserved(problem, i, plan, first, now):
        first += 1
    while first > 1 and adjacency[plan[first, S.PLAN_SITE], S.SPOT_NEXT] >= 0:
        first -= 1  # by which way it is in its blocks is told by the visits before
    kept = start - first
    for k in range(first, start):
        for field in range(S.N_PLAN_FIELDS):
            plan[k - first + 1, field] = plan[k, field]
    n, a = 0, last
    while a >= 0:
        before = node[a].before
        n += before < 0 or before // width == a // width
        a = before
    if kept + n >= len(plan):
        return np.int64(-1), np.int64(-1), start
    plan[0, S.PLANNED_VISITS] = at = kept + n
    plan[0, S.PLANNED_PICKUP] = plan[0, S.PLANNED_DELIVERY] = 0
    out, stay, loaded, end = S.NEVER, np.int64(0), np.int64(0), np.int64(0)
    a = last
    while a >= 0:
        before, tick = node[a].before, node[a].tick
        if before < 0 or before // width == a // width:
            plan[at, S.PLAN_SITE] = lanes.find_site(problem, i, node[a].spot)
            plan[at, S.PLAN_IN], plan[at, S.PLAN_OUT], plan[at, S.PLAN_STAY] = tick, out, stay
            at, out, stay = at - 1, node[a].leaves, np.int64(0)
        elif a // width == planner.REST:
            plan[0, S.PLANNED_DELIVERY], end = at, tick
            stay += tick - node[before].tick
        else:
            ready = np.int64(np.ceil(S.find_ready(problem, state, b, task)))
            plan[0, S.PLANNED_PICKUP], loaded = at, max(node[before].tick, ready)
            stay += tick - loaded
        a = before
    plan[kept + 1, S.PLAN_IN] = since
    plan[0, S.PLANNED_FROM] = 1
    add_metres(problem, state, b, v, kept + 1, 1.0)
    return loaded, end, kept + 1


@inner_kernel
def plan_from(problem, state, b, v, task, goal, start, tick, forgets):
    """Plan the way of vehicle v from visit `start` of its plan, 0 for where it stands, and a tick on.

    Return what `write_plan` does, -1 where there is no way.
    """
    plan, spot, since = state.plan[b, v], state.vehicle[b, v].site, tick
    if start > 0:
        spot = lanes.find_spot(problem, state.episode[b].instance, plan, start)
        since = plan[start, S.PLAN_IN]
        add_metres(problem, state, b, v, start, -1.0)
    tick = max(tick, since)
    last = planner.search_way(problem, state, b, v, task, goal, spot, tick, since)
    if last < 0:
        return np.int64(-1), np.int64(-1), start
    return write_plan(problem, state, b, v, task, last, start, forgets)


@S.unless_traffic()
def take_way(problem, state, b, v, task, goal):
    """Plan the way of the free vehicle v from where it may turn, and write when it loads and is done.

    It leads to a task, its delivery and to rest; without a task, -1, to `goal`, -1 for any site aside.
    """
    now = state.episode[b].time
    vehicle, plan = state.vehicle[b, v], state.plan[b, v]
    start = plan[0, S.PLANNED_VISITS]
    if vehicle.stand_site >= 0:
        start = find_next_visit(plan, now)
    loaded, end, begin = plan_from(problem, state, b, v, task, goal, start, now, True)
    if end < 0 and start > 0:
        # Pushed together, vehicles may stand on edges, where no search lets them wait: first to rest then.
        plan[0, S.PLANNED_PICKUP] = plan[0, S.PLANNED_DELIVERY] = 0
        add_metres(problem, state, b, v, start, 1.0)
        start = plan[0, S.PLANNED_VISITS]
        loaded, end, begin = plan_from(problem, state, b, v, task, goal, start, now, True)
    if end < 0:
        state.episode[b].phase = S.STUCK
        return
    if task < 0:
        vehicle.event_tick = max(now + 1, plan[plan[0, S.PLANNED_VISITS], S.PLAN_IN])
        return
    vehicle.stand_site = -1
    vehicle.loaded_tick, vehicle.event_tick = loaded, end
    if goal != planner.ABOARD and measure_delay(problem, state, b, v) > 0:
        let_pass(problem, state, b, v, begin)
    came = max(now, plan[plan[0, S.PLANNED_PICKUP], S.PLAN_IN])
    vehicle.pause = vehicle.loaded_tick - came


@inner_kernel
def hold(problem, state, b, v, k):
    """Let the plan of vehicle v end where it first stands clear of the lane, from visit k on.

    It is not done there. `estimate` is when it was to leave, `NEVER` if it stands nowhere. Return whether
    it stands.
    """
    i, vehicle, plan = state.episode[b].instance, state.vehicle[b, v], state.plan[b, v]
    end = plan[0, S.PLANNED_VISITS]
    if vehicle.status == S.WORKING:
        end = plan[0, S.PLANNED_DELIVERY]
    while k < end and not lanes.is_off_lane(problem, i, plan[k, S.PLAN_SITE]):
        k += 1
    stands = k < end and vehicle.status in (S.WORKING, S.PARKING, S.TO_CHARGER)
    vehicle.estimate = plan[k, S.PLAN_OUT] if stands else S.NEVER
    if stands:
        add_metres(problem, state, b, v, k, -1.0)
        plan[0, S.PLANNED_VISITS], plan[k, S.PLAN_OUT] = k, S.NEVER
    return stands


@inner_kernel
def weigh_end(problem, state, b, v):
    """Return the square of the ticks from when the task of vehicle v was ready, or v was idle, to its end.

    So nobody who has waited for long is passed by many.
    """
    vehicle, since = state.vehicle[b, v], np.float64(state.vehicle[b, v].since)
    if vehicle.status == S.WORKING:
        since = np.ceil(S.find_ready(problem, state, b, vehicle.task))
    return (np.float64(vehicle.event_tick) - since) ** 2


@inner_kernel
def find_next(state, b, n, site, tick):
    """Return which of n vehicles, of those that are held, is to leave next, -1 for none.

    First are those that stand at a site by a tick, then the one that was to leave first.
    """
    found, follows = np.int64(-1), False
    for v in range(n):
        stand = state.plan[b, v, state.plan[b, v, 0, S.PLANNED_VISITS]]
        joins, leaves = (
            stand[S.PLAN_SITE] == site and stand[S.PLAN_IN] <= tick,
            state.vehicle[b, v].estimate,
        )
        if leaves == S.NEVER or follows > joins:
            continue
        if found < 0 or joins > follows or leaves < state.vehicle[b, found].estimate:
            found, follows = np.int64(v), joins
    return found


@inner_kernel
def go_on(problem, state, b, v):
    """Plan vehicle v anew from the end of its plan, where it stands clear of the lane.

    Return whether there is room for the way.
    """
    vehicle, plan, tick = state.vehicle[b, v], state.plan[b, v], state.episode[b].time
    k, pickup = plan[0, S.PLANNED_VISITS], plan[0, S.PLANNED_PICKUP]
    stay, task, goal = plan[k, S.PLAN_STAY], np.int64(-1), vehicle.destination
    if vehicle.status == S.WORKING:
        task, goal = vehicle.task, np.int64(-1)
        if k > pickup or (k == pickup and vehicle.loaded_tick + stay <= tick):
            goal = planner.ABOARD
        elif k == pickup:
            i, tick = state.episode[b].instance, vehicle.loaded_tick - vehicle.pause
            handling = problem.record[i, task].handling
            if stay > S.count_ticks(planner.find_first_part(problem, i, handling)):
                # It broke down as it loaded; only its plan knows when that is done.
                goal, tick = planner.ABOARD, vehicle.loaded_tick + stay
    if plan_from(problem, state, b, v, task, goal, k, tick, False)[1] < 0:
        return False
    if goal == planner.ABOARD:
        plan[0, S.PLANNED_PICKUP] = pickup
        plan[k, S.PLAN_STAY] = stay
    follow_plan(problem, state, b, v)
    return True


@inner_kernel
def let_pass(problem, state, b, v, begin):
    """Let vehicle v pass before others that stand clear of the lane, if all are done sooner so in sum.

    It has a plan for its task from visit `begin` on. Others wait where they next stand clear of the lane.
    From there to where they stand next, and v from where it stands next, they are planned anew: those that
    stand at one site one behind another, else in the order in which they were to leave.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    n, vehicle = problem.instance[i].n_vehicles, state.vehicle[b, v]
    before, busy, waiting = weigh_end(problem, state, b, v), vehicle.busy, vehicle.waiting
    stands, found = False, (np.int64(-1), np.int64(-1), begin)
    copy_records(state.vehicle[b], 0, state.kept_vehicle, 0, n)
    for u in range(n):
        visits = state.plan[b, u, 0, S.PLANNED_VISITS]
        S.copy_table(state.plan[b], u, state.kept_plan, u, visits + 1)
        k, cost = find_visit(state.plan[b, u], now), weigh_end(problem, state, b, u)
        k += state.plan[b, u, k, S.PLAN_OUT] < now
        state.vehicle[b, u].estimate, state.kept_vehicle[u].estimate = S.NEVER, 0
        if u != v and hold(problem, state, b, u, k):
            before, stands = before + cost, True
    if stands:  # else nothing is in the way of v that was not
        found = plan_from(problem, state, b, v, vehicle.task, np.int64(-1), begin, now, True)
    after, is_sooner = 0.0, 0 <= found[1] < vehicle.event_tick
    vehicle.loaded_tick, vehicle.event_tick = found[0], found[1]
    w, k = np.int64(v), found[2]
    while is_sooner and w >= 0:
        # Planned anew from where it stands next, as others have planned more, it is not done sooner.
        cost = weigh_end(problem, state, b, w)
        after += cost - state.kept_vehicle[w].estimate
        state.kept_vehicle[w].estimate = np.int64(cost)
        site, leaves = state.plan[b, w, k, S.PLAN_SITE], state.plan[b, w, k, S.PLAN_OUT]
        hold(problem, state, b, w, k + 1)
        w = find_next(state, b, n, site, leaves)
        if w >= 0:
            k = state.plan[b, w, 0, S.PLANNED_VISITS]
            is_sooner = after < before and go_on(problem, state, b, w)
    if is_sooner and after < before:
        vehicle.busy, vehicle.waiting = busy, waiting
        return
    copy_records(state.kept_vehicle, 0, state.vehicle[b], 0, n)
    for u in range(n):
        visits = state.kept_plan[u, 0, S.PLANNED_VISITS]
        S.copy_table(state.kept_plan, u, state.plan[b], u, visits + 1)


@S.unless_traffic()
def go_to_rest(problem, state, b, v):
    """Let vehicle v, which has just become idle, go on to where its plan ends, if it is not there."""
    plan, vehicle = state.plan[b, v], state.vehicle[b, v]
    n = plan[0, S.PLANNED_VISITS]
    if n > 0 and plan[n, S.PLAN_IN] > state.episode[b].time:
        vehicle.status = S.ROAMING
        vehicle.destination = plan[n, S.PLAN_SITE]
        vehicle.event_tick = plan[n, S.PLAN_IN]
    elif n > 0:
        vehicle.site = plan[n, S.PLAN_SITE]


@inner_kernel
def measure_delay(problem, state, b, v):
    """Return how many ticks longer vehicle v drives for its task than where nobody meets, as planned.

    Both from the first place of its way on: the rest of the edge on which it got the task is of no way.
    """
    i, vehicle, plan = state.episode[b].instance, state.vehicle[b, v], state.plan[b, v]
    task = vehicle.task
    k, pickup = find_next_visit(plan, state.task[b, task].start), plan[0, S.PLANNED_PICKUP]
    start = max(state.task[b, task].start, plan[k, S.PLAN_IN])
    # Where edges of no time led it stands already.
    while k < pickup and plan[k + 1, S.PLAN_IN] <= start:
        k += 1
    pause = vehicle.loaded_tick - max(start, plan[pickup, S.PLAN_IN])
    site = plan[k, S.PLAN_SITE]
    metres, slowdown = ways.measure_way(problem, i, v, site, problem.ends[i, task].pickup)
    alone = ways.count_trip(problem, i, v, task, metres, slowdown, True)[1]
    return vehicle.event_tick - start - pause - alone - vehicle.held


@S.unless_traffic()
def add_delay(problem, state, b, v):
    """Note how much longer vehicle v, which delivers now, has driven for its task."""
    state.vehicle[b, v].delay += np.float64(measure_delay(problem, state, b, v))


@inner_kernel
def push_plans(problem, state, b, n_reserved):
    """Delay what all have planned, in the order of the plans, until nobody is in another's way.

    `State.reserved` has the times as they were planned. Ends only grow, and nobody waits for who comes later,
    so each round settles one entry at least. Plans that are no such order end the episode as stuck.
    """
    i, now = state.episode[b].instance, state.episode[b].time
    node, reserved, headway = state.node, state.reserved, problem.instance[i].headway
    shared = not problem.instance[i].lanes_apart
    adjacency = problem.adjacency[problem.instance[i].layout]
    n_sites, moves, rounds = problem.time_bound.shape[1], True, 0
    while moves:
        if rounds > n_reserved:
            state.episode[b].phase = S.STUCK
            return
        moves, rounds = False, rounds + 1
        for site in range(n_sites):
            for at in range(node[site].first, node[site + 1].first):
                entry = reserved[at]
                following = entry.next
                if following < 0 or entry.next_in < now:
                    continue
                plan, k = state.plan[b, entry.vehicle], entry.visit
                out, arrives = plan[k, S.PLAN_OUT], plan[k + 1, S.PLAN_IN]
                # A vehicle that breaks down a tick after it was to leave has not left.
                has_left = out < now
                if not has_left:
                    out = max(out, plan[k, S.PLAN_IN] + plan[k, S.PLAN_STAY])
                begin, end = node[following].first, node[following + 1].first
                for other in range(begin, end if shared else begin):
                    if reserved[other].next == site and comes_before(reserved, other, at):
                        out = max(out, read_arrival(state, b, reserved, other))
                for other in range(node[site].first, node[site + 1].first):
                    if reserved[other].next == following and comes_before(reserved, other, at):
                        out = max(out, read_departure(state, b, reserved, other) + headway)
                        arrives = max(arrives, read_arrival(state, b, reserved, other) + headway)
                if S.has_blocks(problem):
                    v, spot = entry.vehicle, lanes.find_spot(problem, i, plan, k)
                    way = lanes.find_way(adjacency, spot, following)
                    clear = find_end(problem, state, b, v, spot, 1 + way, entry.until)
                    out, spot = max(out, clear), adjacency[spot, S.SPOT_NEIGHBOURS + way]
                    clear = find_end(problem, state, b, v, spot, 0, entry.next_in)
                    arrives = max(arrives, clear)
                if has_left:
                    out = entry.until
                arrives = max(arrives, out + entry.next_in - entry.until)
                if not lanes.is_off_lane(problem, i, following):
                    is_wide = adjacency[following, S.SPOT_HOLDS] > 1
                    for other in range(begin, end):
                        own = reserved[other].vehicle == entry.vehicle
                        # Where there is room beside others, it follows those who were to have left.
                        gone = (
                            reserved[other].until + headway
                            if is_wide
                            else reserved[other].since + 1
                        )
                        if reserved[other].next >= 0 and not own and gone <= entry.next_in:
                            arrives = max(
                                arrives, read_departure(state, b, reserved, other) + headway
                            )
                moves |= out > plan[k, S.PLAN_OUT] or arrives > plan[k + 1, S.PLAN_IN]
                plan[k, S.PLAN_OUT], plan[k + 1, S.PLAN_IN] = out, arrives
    for v in range(problem.instance[i].n_vehicles):
        follow_plan(problem, state, b, v)


@inner_kernel
def find_end(problem, state, b, v, spot, place, begins):
    """Return until when, as pushed, others than v are in the blocks of a place.

    Of those who were to be there before a tick. The place is as in `Problem.block_reservation`.
    """
    i, node, found = state.episode[b].instance, state.node, np.int64(0)
    for reservation in problem.block_reservation[problem.instance[i].layout, spot, place]:
        if reservation[0] < 0:
            break
        first = problem.adjacency.shape[1] + reservation[0]
        for at in range(node[first].first, node[first + 1].first):
            entry = state.reserved[at]
            u, k, part = entry.vehicle, entry.visit, entry.next_in
            joins = reservation[1] >= 0 and entry.next == reservation[1]
            if u != v and not joins and entry.since < begins:
                found = max(found, lanes.find_inside(problem, i, state.plan[b, u], k, part)[1])
    return found


@inner_kernel
def comes_before(reserved, other, own):
    """Whether an entry of another vehicle leaves its site before an own one, as it was planned."""
    if reserved[other].vehicle == reserved[own].vehicle:
        return False
    if reserved[other].until != reserved[own].until:
        return reserved[other].until < reserved[own].until
    return reserved[other].next_in < reserved[own].next_in


@inner_kernel
def read_departure(state, b, reserved, entry):
    """Return when the vehicle of an entry leaves its site, as far as it has been pushed."""
    return state.plan[b, reserved[entry].vehicle, reserved[entry].visit, S.PLAN_OUT]


@inner_kernel
def read_arrival(state, b, reserved, entry):
    """Return when the vehicle of an entry is at its next site, as far as it has been pushed."""
    return state.plan[b, reserved[entry].vehicle, reserved[entry].visit + 1, S.PLAN_IN]


@S.unless_traffic(S.NEVER)
def find_delivery(state, b, v):
    """Return the tick at which vehicle v will have delivered its task, as planned."""
    visit = state.plan[b, v, state.plan[b, v, 0, S.PLANNED_DELIVERY]]
    return visit[S.PLAN_IN] + visit[S.PLAN_STAY]


@inner_kernel
def follow_plan(problem, state, b, v):
    """Write when vehicle v loads, delivers, or is at rest, after its plan was changed."""
    i, now = state.episode[b].instance, state.episode[b].time
    plan, vehicle = state.plan[b, v], state.vehicle[b, v]
    if S.ROAMING <= vehicle.status <= S.TO_CHARGER:
        end = plan[plan[0, S.PLANNED_VISITS], S.PLAN_IN]
        vehicle.event_tick = end if end > now else vehicle.event_tick
    if vehicle.status != S.WORKING or plan[0, S.PLANNED_DELIVERY] == 0:
        return
    task, pause = vehicle.task, vehicle.pause
    if now <= vehicle.loaded_tick:  # at the very tick it may be pushed, too
        came = max(state.task[b, task].start, plan[plan[0, S.PLANNED_PICKUP], S.PLAN_IN])
        loaded = max(came, np.int64(np.ceil(S.find_ready(problem, state, b, task))))
        waits = S.find_weight(problem, i, task) * np.float64(loaded - vehicle.loaded_tick)
        vehicle.last_waiting += waits
        vehicle.waiting += waits
        vehicle.loaded_tick, vehicle.pause = loaded, loaded - came
    end = find_delivery(state, b, v)
    vehicle.busy += np.float64(end - vehicle.event_tick - (vehicle.pause - pause))
    vehicle.event_tick = end


@inner_kernel
def find_rest_of_edge(problem, state, b, v, k):
    """Return how many ticks vehicle v, which was on the edge after visit k a tick ago, drives to its end.

    A vehicle that has stopped for others stands a headway before the end.
    """
    i, plan = state.episode[b].instance, state.plan[b, v]
    a, c = plan[k, S.PLAN_SITE], plan[k + 1, S.PLAN_SITE]
    metres = problem.edge_length[problem.instance[i].layout, a, c]
    ticks = S.count_ticks(metres / ways.find_pace(problem, i, v, a, c))
    driven = state.episode[b].time - 1 - plan[k, S.PLAN_OUT] + plan[k, S.PLAN_STAY]
    return max(ticks - driven, min(ticks, problem.instance[i].headway))


@S.unless_traffic()
def halt(problem, state, b, v, ticks):
    """Let vehicle v stand where it was a tick ago, for so many ticks; then it drives on as it can.

    Without its task its way ends at the first place aside; with a load that it keeps it goes on with its
    plan. It keeps its turn before those that have planned after it, and these are pushed.
    """
    now = state.episode[b].time
    plan, until = state.plan[b, v], now + ticks + 1
    k = find_visit(plan, now - 1)
    drives = k < plan[0, S.PLANNED_VISITS] and plan[k, S.PLAN_OUT] < now - 1
    if state.vehicle[b, v].held > 0:
        end = plan[0, S.PLANNED_VISITS]
        began = plan[k, S.PLAN_IN]
        if k == plan[0, S.PLANNED_PICKUP]:
            began = state.vehicle[b, v].loaded_tick
        if not drives and plan[k, S.PLAN_STAY] > 0 and began + plan[k, S.PLAN_STAY] >= now:
            # What is left of the handling comes after the repair.
            plan[k, S.PLAN_STAY] += until - (now - 1)
            until = began + plan[k, S.PLAN_STAY]
    elif k == plan[0, S.PLANNED_VISITS]:
        return
    else:
        end = shorten_plan(problem, state, b, v, k + drives)
    n_reserved = lanes.sort_reservations(problem, state, b, np.int64(-1))
    if drives:
        plan[k, S.PLAN_STAY] = min(np.int64(0), plan[k, S.PLAN_STAY])
        came, rest = plan[k + 1, S.PLAN_IN], find_rest_of_edge(problem, state, b, v, k)
        plan[k + 1, S.PLAN_IN] = max(came, until + min(rest, came - (now - 1)))
        plan[k, S.PLAN_STAY] -= until - (now - 1)
    elif k < end:
        plan[k, S.PLAN_OUT] = max(plan[k, S.PLAN_OUT], until)
    push_plans(problem, state, b, n_reserved)


@inner_kernel
def shorten_plan(problem, state, b, v, end):
    """Let the way of vehicle v, without a task now, end at the first place aside from visit `end` on."""
    plan, first = state.plan[b, v], end
    add_metres(problem, state, b, v, first, -1.0)
    plan[0, S.PLANNED_PICKUP] = plan[0, S.PLANNED_DELIVERY] = 0
    for j in range(end, plan[0, S.PLANNED_VISITS] + 1):
        plan[j, S.PLAN_STAY] = 0
    while not lanes.is_off_lane(problem, state.episode[b].instance, plan[end, S.PLAN_SITE]):
        end += 1
    plan[0, S.PLANNED_VISITS], plan[end, S.PLAN_OUT] = end, S.NEVER
    add_metres(problem, state, b, v, first, 1.0)
    return end


@S.unless_traffic(lambda problem, state, b, v, level, until: (level, S.NEVER))
def spend(problem, state, b, v, level, until):
    """Return what vehicle v, under way, will hold at a tick, and when that is used up, `NEVER` if it is not.

    `level` is what it held at `level_tick`.
    """
    battery = problem.battery[state.episode[b].instance, v]
    vehicle, plan = state.vehicle[b, v], state.plan[b, v]
    pickup, delivery = plan[0, S.PLANNED_PICKUP], plan[0, S.PLANNED_DELIVERY]
    at, n = vehicle.level_tick, plan[0, S.PLANNED_VISITS]
    for k in range(1, n + 1):
        handles = vehicle.loaded_tick if k == pickup else plan[k, S.PLAN_IN]
        done, out = handles + plan[k, S.PLAN_STAY], plan[k, S.PLAN_OUT]
        ends = (handles, done, out, plan[k + 1, S.PLAN_IN] if k < n else out)
        drives = battery.loaded if 0 < pickup <= k < delivery else battery.empty
        uses = (battery.idle, battery.loaded, battery.idle, drives)
        for part in range(4):
            ticks, rate = min(ends[part], until) - at, uses[part]
            if ticks <= 0:
                continue
            if rate > 0 and -(-level // rate) <= ticks:
                return np.int64(0), max(vehicle.level_tick + 1, at - (-level // rate))
            level, at = level - (rate * ticks if rate > 0 else 0), at + ticks
    return level, S.NEVER
