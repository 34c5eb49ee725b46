"""What becomes of the tasks that wait already if a vehicle takes one of them now: the rest follows greedily.

Times are seconds from now. A large floor is cut to the tasks and vehicles that matter next to those that are
idle: a decision takes no longer on a large floor than on a small one, but for one look at each task.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import NOISE
from acerl_np.kernels.motion import energy, offers, ways
from acerl_np.support.compiled import inner_kernel, kernel

MOST_TASKS, MOST_VEHICLES, MOST_STEPS = 24, 12, 12
"""Tasks and vehicles that are looked at, those of the least keys, and tasks that are completed."""

FAVOUR_LOADED, FAVOUR_SLACK, MOST_SLACK = 0.5, 0.3, 1.7
"""Of the key of a task: shares of its loaded trip and of its slack, the most slack in units of time."""

UNKNOWN = 1e11
"""s; nobody knows when a vehicle is free that should be so later than that."""

NEVER_NEXT, PRIORITY = 1e13, 1e7
"""s; a key as of a task that cannot be, and by how much a task of higher priority is completed first."""

N_RESULTS = 5
LAST_END, TOTAL_LATE, N_LATE, EMPTY, IMBALANCE = range(N_RESULTS)


class GreedyRollout(NamedTuple):
    """Scratch: the tasks and vehicles that are looked at, and how the tasks are completed.

    K tasks, W vehicles. What `collect_candidates` finds holds for all pairs of a decision;
    `rollout_greedily` works on the rest.

    Attributes
    ----------
    n : ndarray(int64, (2,)), tasks and vehicles that are looked at
    position : ndarray(int64, (K,)), places in the pool, ascending
    vehicle : ndarray(int64, (W,)), ascending
    pickup, delivery : ndarray(int64, (K,)), sites
    due, ready : ndarray(float64, (K,)), s, until it should be delivered, and until it may be loaded
    weight : ndarray(float64, (K,)); urgent : ndarray(float64, (K,)), s, by how much priority leads
    free : ndarray(float64, (W,)), s, until each vehicle is free
    halt, back : ndarray(float64, (W,)), s, until its next planned breakdown, inf without, and its repair
    pace : ndarray(float64, (W,)), s/m
    slowdown : ndarray(float64, (W,)), as of `Problem.fleet`
    reach : ndarray(float64, (W, K)), s, from where it is free to each pickup
    loaded : ndarray(float64, (W, K)), s, pickup to delivery, handling included
    end, key : ndarray(float64, (2, W, K)), s, when each vehicle would deliver each task next, and the key of
        that, the least comes first; in row 0 from where it is free, in row 1 from where
        `rollout_greedily` has brought it
    offset : ndarray(float64, (W, K)), s, the part of a key that does not change; inf for what it cannot carry
    first : ndarray(int64, (W,)), the task that comes first for each vehicle, -1 for none
    first_key : ndarray(float64, (W,)), its key
    rest : ndarray(float64, (W,)), s, and site : ndarray(int64, (W,))
        During the rollout: until each vehicle is free, and where.
    row, best : ndarray(int64, (W,)), and bound : ndarray(float64, (W,))
        Which row counts, its next task, which may be gone by now, and the key of that.
    is_done : ndarray(bool, (K,)); left : ndarray(int64, (K,)), tasks that still wait
    most_slack : ndarray(float64, (1,)), s
    result : ndarray(float64, (N_RESULTS,)), what the last rollout came to
        LAST_END : s, when the last vehicle is free
        TOTAL_LATE, N_LATE : s late in all, and late tasks, each by the weight of its class
        EMPTY : s without a load
        IMBALANCE : s between the first and the last vehicle
    lead, least : ndarray(float64, (max(V, M),)), see `keep_least`, of each waiting task or of each vehicle
    nearest : ndarray(int64, (M,)), the free vehicle that has the least key for each task, -1 for none
    nearest_key : ndarray(float64, (M,)), that key
    wanted : ndarray(int64, (V,)), the task, of those looked at, that has the least key for each vehicle
    wanted_key : ndarray(float64, (V,)), that key
    was_free : ndarray(bool, (V,)), whether the vehicle was free then
    anew : ndarray(int64, (M,)), tasks that are rated anew
    seen : ndarray(int64, (M,)), the last look at each task; looks : ndarray(int64, (1,)), their number
    moment : ndarray(int64, (2,)), see `deciders.list_moments`: the present one, and that of the last six
    """

    n: np.ndarray
    position: np.ndarray
    vehicle: np.ndarray
    pickup: np.ndarray
    delivery: np.ndarray
    due: np.ndarray
    ready: np.ndarray
    weight: np.ndarray
    urgent: np.ndarray
    free: np.ndarray
    halt: np.ndarray
    back: np.ndarray
    pace: np.ndarray
    slowdown: np.ndarray
    reach: np.ndarray
    loaded: np.ndarray
    end: np.ndarray
    key: np.ndarray
    offset: np.ndarray
    first: np.ndarray
    first_key: np.ndarray
    rest: np.ndarray
    site: np.ndarray
    row: np.ndarray
    best: np.ndarray
    bound: np.ndarray
    is_done: np.ndarray
    left: np.ndarray
    most_slack: np.ndarray
    result: np.ndarray
    lead: np.ndarray
    least: np.ndarray
    nearest: np.ndarray
    nearest_key: np.ndarray
    wanted: np.ndarray
    wanted_key: np.ndarray
    was_free: np.ndarray
    anew: np.ndarray
    seen: np.ndarray
    looks: np.ndarray
    moment: np.ndarray


def allocate_rollout(n_vehicles: int, n_tasks: int) -> GreedyRollout:
    """Return room for so many vehicles and tasks."""
    k, w = min(MOST_TASKS, n_tasks), min(MOST_VEHICLES, n_vehicles)
    largest = max(n_vehicles, n_tasks)
    whole = {"n": 2, "position": k, "vehicle": w, "pickup": k, "delivery": k, "left": k}
    whole |= dict.fromkeys(("first", "site", "row", "best"), w)
    whole |= dict.fromkeys(("nearest", "anew", "seen"), n_tasks)
    whole |= {"wanted": n_vehicles, "looks": 1, "moment": 2}
    real: dict[str, int | tuple[int, ...]] = dict.fromkeys(("due", "ready", "weight", "urgent"), k)
    real |= dict.fromkeys(("free", "halt", "back", "pace", "slowdown"), w)
    real |= dict.fromkeys(("first_key", "rest", "bound"), w)
    real |= dict.fromkeys(("reach", "loaded", "offset"), (w, k))
    real |= {"end": (2, w, k), "key": (2, w, k), "most_slack": 1, "result": N_RESULTS}
    real |= {"lead": largest, "least": largest, "nearest_key": n_tasks, "wanted_key": n_vehicles}
    return GreedyRollout(
        is_done=np.empty(k, np.bool_),
        was_free=np.zeros(n_vehicles, np.bool_),
        **{name: np.zeros(n, np.int64) for name, n in whole.items()},
        **{name: np.zeros(shape) for name, shape in real.items()},
    )


@inner_kernel
def find_halt(problem, state, b, v, planned_breakdowns):
    """Return the seconds until the next planned breakdown of vehicle v, inf without, and until its repair.

    inf twice, too, unless `planned_breakdowns` are looked at.
    """
    i = state.episode[b].instance
    k = state.vehicle[b, v].next_breakdown
    if planned_breakdowns and k < problem.breakdown.shape[2]:
        tick = problem.breakdown[i, v, k].tick
        if tick < S.NEVER and state.vehicle[b, v].status != S.BROKEN:
            halt = np.float64(tick - state.episode[b].time)
            return halt, halt + problem.breakdown[i, v, k].repair_ticks + 1.0
    return np.inf, np.inf


@kernel
def find_charging(problem, state, b, v):
    """Return the seconds until vehicle v, which charges or is about to, may go, if it need not queue."""
    battery = problem.battery[state.episode[b].instance, v]
    vehicle, now = state.vehicle[b, v], state.episode[b].time
    begins = now
    if vehicle.status == S.TO_CHARGER:
        begins = max(now, vehicle.event_tick)
    missing = battery.resume - energy.find_level(problem, state, b, v, begins)
    return np.float64(begins - now + energy.divide_up(missing, battery.charge))


@inner_kernel
def find_free(problem, state, b, v, planned_breakdowns):
    """Return the seconds until vehicle v is free, inf if nobody knows, and where, -1 for where it stands."""
    i = state.episode[b].instance
    vehicle = state.vehicle[b, v]
    status = vehicle.status
    if problem.fleet[i, v].capacity < 0.0:  # out of service, or about to be
        return np.inf, np.int64(-1)
    if offers.is_free(state, b, v):
        return 0.0, np.int64(-1)
    free = np.float64(vehicle.event_tick - state.episode[b].time)
    if status == S.WORKING:
        halt, back = find_halt(problem, state, b, v, planned_breakdowns)
        delivery = problem.ends[i, vehicle.task].delivery
        if halt <= free:
            loaded = np.float64(vehicle.loaded_tick - state.episode[b].time)
            if problem.instance[i].loads_stay != 0 and loaded < halt:
                return free + back - halt + 1.0, np.int64(delivery)
            return back, vehicle.site
        return max(0.0, free), np.int64(delivery)
    if status != S.BROKEN:
        return find_charging(problem, state, b, v), vehicle.destination
    site = np.int64(-1)
    if vehicle.task >= 0:
        site = np.int64(problem.ends[i, vehicle.task].delivery)
    if problem.fleet[i, v].mean_uptime > 0.0:
        # Repairs of random failures have no memory: what is left is what they last in the mean.
        return problem.fleet[i, v].mean_repair + vehicle.left, site
    if not planned_breakdowns or free > UNKNOWN:
        return np.inf, site
    return free + vehicle.left, site


@inner_kernel
def rate_end(end, due, most_slack, offset):
    """Return the key, s, of a task that ends so and is `due`, the least first; `offset` stays of it."""
    slack = min(max(due - end, -UNKNOWN), most_slack)  # without a way there is no end
    return S.round_sum(end + FAVOUR_SLACK * slack + offset)


@inner_kernel
def comes_before(lead, value, j, k):
    """Whether place j comes before place k: it leads by more, or by as much and its value is less."""
    return lead[j] > lead[k] or (lead[j] == lead[k] and value[j] < value[k])


@inner_kernel
def keep_least(lead, value, n, most, kept):
    """List the `most` places that come first of n, ascending; the first of equals; return how many.

    Parameters
    ----------
    lead, value : ndarray(float64, (at least n,)), see `comes_before`
    kept : ndarray(int64, (min(n, most),)), output
    """
    if n <= most:
        for k in range(n):
            kept[k] = k
        return n
    # By insertion: few of many enter.
    size = 0
    for k in range(n):
        if size == most and not comes_before(lead, value, k, kept[size - 1]):
            continue
        place = size if size < most else most - 1
        size = min(most, size + 1)
        while place > 0 and comes_before(lead, value, k, kept[place - 1]):
            kept[place] = kept[place - 1]
            place -= 1
        kept[place] = k
    for place in range(1, size):
        k = kept[place]
        j = place
        while j > 0 and kept[j - 1] > k:
            kept[j] = kept[j - 1]
            j -= 1
        kept[j] = k
    return size


@inner_kernel
def rate_task(problem, state, b, v, free, site, task, urgent):
    """Return the key of a task as the next one of vehicle v, free in `free` s at a site as of `time_way`."""
    i = state.episode[b].instance
    loaded = ways.time_loaded(problem, i, v, task)
    pickup = problem.ends[i, task].pickup
    reach = free + ways.time_way(problem, state, b, v, site, pickup)
    end = max(reach, S.find_ready_in(problem, state, b, task)) + loaded
    due = S.find_due(problem, state, b, task) - np.float64(state.episode[b].time)
    most_slack = MOST_SLACK * problem.unit[i].seconds
    return rate_end(end, due, most_slack, -FAVOUR_LOADED * loaded - urgent)


@inner_kernel
def keep_tasks(problem, state, b, own, goes_on):
    """List the waiting tasks of the highest priority and least key for one of the idle vehicles.

    Where a moment goes on, only tasks whose nearest vehicle is gone are rated anew.
    """
    i = state.episode[b].instance
    size = state.episode[b].pool_size
    if size > MOST_TASKS:
        n_anew = 0
        for k in range(size):
            task = state.pool[b, k]
            v = own.nearest[task]
            if not goes_on or (v >= 0 and not offers.is_free(state, b, v)):
                own.nearest[task], own.nearest_key[task] = -1, np.inf
                own.anew[n_anew] = task
                n_anew += 1
        for v in range(problem.instance[i].n_vehicles if n_anew > 0 else 0):
            if not offers.is_free(state, b, v):
                continue
            for task in own.anew[:n_anew]:
                if S.may_carry(problem, i, v, task):
                    key = rate_task(problem, state, b, v, 0.0, np.int64(-1), task, 0.0)
                    if key < own.nearest_key[task]:  # not where no way leads
                        own.nearest[task], own.nearest_key[task] = v, key
        for k in range(size):
            task = state.pool[b, k]
            own.least[k] = own.nearest_key[task]
            own.lead[k] = problem.record[i, task].priority if own.nearest[task] >= 0 else -np.inf
    own.n[0] = keep_least(own.lead, own.least, size, MOST_TASKS, own.position)


@inner_kernel
def keep_vehicles(problem, state, b, planned_breakdowns, own, goes_on):
    """List the vehicles of least key for one of the tasks that are kept, the idle ones first.

    Where a moment goes on, a vehicle is rated anew once its task is not kept any more, and for new ones.
    """
    i = state.episode[b].instance
    n_vehicles = problem.instance[i].n_vehicles
    if n_vehicles > MOST_VEHICLES:
        look = own.looks[0]
        own.looks[0] = look + 1
        for k in range(own.n[0]):
            task = state.pool[b, own.position[k]]
            own.left[k] = own.seen[task]  # whether it was kept the last time
            own.seen[task] = look + 1
        for v in range(n_vehicles):
            is_free = offers.is_free(state, b, v)
            wanted = own.wanted[v]
            stays = goes_on and own.was_free[v] == is_free
            stays = stays and (wanted < 0 or own.seen[wanted] == look + 1)
            if not stays:
                own.wanted[v], own.wanted_key[v], own.was_free[v] = -1, np.inf, is_free
            free, site = find_free(problem, state, b, v, planned_breakdowns)
            for k in range(own.n[0]):
                task = state.pool[b, own.position[k]]
                if free == np.inf or (stays and own.left[k] == look):
                    continue
                if S.may_carry(problem, i, v, task):
                    key = rate_task(problem, state, b, v, free, site, task, own.urgent[k])
                    if key < own.wanted_key[v]:
                        own.wanted[v], own.wanted_key[v] = task, key
            own.least[v] = own.wanted_key[v]
            own.lead[v] = 1.0 if is_free and own.least[v] < np.inf else 0.0
    own.n[1] = keep_least(own.lead, own.least, n_vehicles, MOST_VEHICLES, own.vehicle)


@inner_kernel
def collect_candidates(problem, state, b, planned_breakdowns, own):
    """Find the tasks and vehicles that matter for this decision, and all that its pairs share."""
    i = state.episode[b].instance
    now = np.float64(state.episode[b].time)
    # A priority leads by tasks that are kept, which change.
    goes_on = own.moment[1] == own.moment[0] > 0 and not problem.instance[i].has_priorities
    own.moment[1] = own.moment[0]
    keep_tasks(problem, state, b, own, goes_on)
    for k in range(own.n[0]):
        task = state.pool[b, own.position[k]]
        own.pickup[k] = problem.ends[i, task].pickup
        own.delivery[k] = problem.ends[i, task].delivery
        own.due[k] = S.find_due(problem, state, b, task) - now
        own.ready[k] = S.find_ready_in(problem, state, b, task)
        own.weight[k] = S.find_weight(problem, i, task)
        own.urgent[k] = 0.0
        if problem.instance[i].has_priorities:
            priority = problem.record[i, task].priority
            for j in range(own.n[0]):
                other = state.pool[b, own.position[j]]
                if problem.record[i, other].priority < priority:
                    own.urgent[k] += PRIORITY
    keep_vehicles(problem, state, b, planned_breakdowns, own, goes_on)
    for k in range(own.n[0]):
        own.left[k] = k
    own.most_slack[0] = MOST_SLACK * problem.unit[i].seconds
    for w in range(own.n[1]):
        v = own.vehicle[w]
        own.pace[w] = 1.0 / problem.fleet[i, v].speed
        own.slowdown[w] = problem.fleet[i, v].slowdown
        own.free[w], site = find_free(problem, state, b, v, planned_breakdowns)
        own.rest[w] = own.free[w]
        own.halt[w], own.back[w] = find_halt(problem, state, b, v, planned_breakdowns)
        for k in range(own.n[0]):
            task = state.pool[b, own.position[k]]
            own.loaded[w, k] = ways.time_loaded(problem, i, v, task)
            own.offset[w, k] = -FAVOUR_LOADED * own.loaded[w, k] - own.urgent[k]
            own.reach[w, k] = ways.time_way(problem, state, b, v, site, own.pickup[k])
            if not S.may_carry(problem, i, v, task):
                own.offset[w, k] = np.inf
            there = max(own.free[w] + own.reach[w, k], own.ready[k])
            rate_next(own, 0, w, k, there + own.loaded[w, k])
        find_next(own, 0, w, own.n[0])
        own.first[w], own.first_key[w] = own.best[w], own.bound[w]


@inner_kernel
def rate_next(own, row, w, k, end):
    """Note that vehicle w would deliver task k at `end` s, but for a breakdown before; return its key.

    Of a task that w cannot carry or reach the key is above `NEVER_NEXT`.
    """
    if own.halt[w] <= end + NOISE and own.rest[w] < own.halt[w]:
        end += own.back[w] - own.rest[w]
    key = rate_end(end, own.due[k], own.most_slack[0], own.offset[w, k])
    own.end[row, w, k] = end
    own.key[row, w, k] = key
    return key


@inner_kernel
def find_next(own, row, w, n_left):
    """Find which of the first `n_left` of `own.left` w would take next, -1 for none. The first of equals."""
    best, least = np.int64(-1), NEVER_NEXT
    for n in range(n_left):
        k = own.left[n]
        key = own.key[row, w, k]
        if key < least or (key == least and k < best):
            best, least = k, key
    own.best[w] = best
    own.bound[w] = least


@inner_kernel
def follow(distance, problem, own, w, n_left):
    """Rate the tasks that are left for vehicle w, from where it is free now; find its next one."""
    site, row = own.site[w], own.slowdown[w]
    best, least = np.int64(-1), NEVER_NEXT
    for n in range(n_left):
        k = own.left[n]
        way = distance[site, own.pickup[k]] * own.pace[w]
        if row >= 0.0:
            way += ways.find_slowdown(problem, row, site, own.pickup[k])
        there = max(own.rest[w] + way, own.ready[k])
        key = rate_next(own, 1, w, k, there + own.loaded[w, k])
        if key < least or (key == least and k < best):
            best, least = k, key
    own.row[w] = 1
    own.best[w] = best
    own.bound[w] = least


@inner_kernel
def take_next(own, n_left):
    """Return the vehicle that takes the next task, -1 for none: it is the one whose task has the least key.

    What a vehicle would take is looked for anew only if what it wanted is gone and it might be the next.
    """
    while True:
        w, least = np.int64(-1), NEVER_NEXT
        for x in range(own.n[1]):
            if own.bound[x] < least:
                w, least = np.int64(x), own.bound[x]
        if w < 0 or not own.is_done[own.best[w]]:
            return w
        find_next(own, own.row[w], w, n_left)


@inner_kernel
def rollout_greedily(problem, i, own, w, u):
    """Let vehicle w take task u now, and all take what waits greedily; `own.result` says what comes of it."""
    distance = problem.distance[problem.instance[i].layout]
    n_left = own.n[0]
    for k in range(n_left):
        own.is_done[k] = False
        own.left[k] = k
    for x in range(own.n[1]):
        own.rest[x] = own.free[x]
        own.row[x] = 0
        own.best[x], own.bound[x] = own.first[x], own.first_key[x]
    total_late, n_late, empty = 0.0, 0.0, own.reach[w, u]
    end = max(own.reach[w, u], own.ready[u]) + own.loaded[w, u]
    task = u
    if own.halt[w] <= end + NOISE:  # the task waits on, and whoever wanted it still does
        own.rest[w] = own.back[w]
        own.site[w] = own.pickup[u]
        task = np.int64(-1)
    while True:
        if task >= 0:
            own.is_done[task] = True
            n = 0
            while own.left[n] != task:
                n += 1
            n_left -= 1
            own.left[n] = own.left[n_left]
            own.rest[w] = end
            own.site[w] = own.delivery[task]
            late = end - own.due[task]
            if late > 1e-9:
                total_late += own.weight[task] * late
                n_late += own.weight[task]
        if n_left == 0 or own.n[0] - n_left >= MOST_STEPS:
            break
        follow(distance, problem, own, w, n_left)
        w = take_next(own, n_left)
        if w < 0:
            break
        task = own.best[w]
        end = own.end[own.row[w], w, task]
        begin = own.back[w] if own.rest[w] < own.halt[w] <= end else own.rest[w]
        empty += end - begin - own.loaded[w, task]
    last, soonest = 0.0, np.inf
    for x in range(own.n[1]):
        if own.rest[x] < np.inf:
            last = max(last, own.rest[x])
            soonest = min(soonest, own.rest[x])
    own.result[LAST_END] = last
    own.result[TOTAL_LATE] = total_late
    own.result[N_LATE] = n_late
    own.result[EMPTY] = empty
    own.result[IMBALANCE] = last - soonest
