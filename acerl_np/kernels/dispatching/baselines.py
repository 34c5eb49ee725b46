"""The baselines of a control system: rules that choose the vehicle, too, and draw nothing.

Each compares the pairs of an idle vehicle and a waiting task that it is offered, by the seconds of the
approach from where the vehicle truly stands, or until the task is ready if that is longer.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.matching import match_rows, settle_ties
from acerl_np.kernels.dispatching import drawn
from acerl_np.kernels.episode import auxiliary
from acerl_np.kernels.motion import energy, offers, ways
from acerl_np.support.compiled import inner_kernel, kernel

NEAREST, FCFS_NEAREST, EDD_NEAREST, OPENTCS, ASSIGNMENT = range(drawn.RANDOM + 1, drawn.RANDOM + 6)
"""Rules besides those of `rules.py` and `drawn.py`."""

SHORTEST, OVERDUE = ASSIGNMENT + 1, ASSIGNMENT + 2
"""Rules that relieve an index policy: of overload, and of tasks that are overdue."""

LOADED_WEIGHT = 0.5
"""Share of the loaded way that SHORTEST adds to the approach."""

LEAST_TIME = 4.0
"""Units of time that a task was given at least, when it is asked whether it is overdue."""

WAITING_WEIGHT = 0.3
"""s of approach that ASSIGNMENT gives for each second that a task has waited."""

BEST, PLACE, MOMENT = range(3)
"""Rows of what a decider keeps in a moment."""

MOST_ANEW = 32
"""Pairs up to which ASSIGNMENT leaves ties to the order of its search; of more it settles them."""

NO_PAIR = np.int64(2**50)
"""ms, in place of the cost of a pair that cannot be: more than all others together."""


@inner_kernel
def rate_pair(problem, state, b, rule, scarce, v, k, task):
    """Return the value of a pair, s, the least is the best, and what a baseline compares, in order.

    openTCS asks a vehicle for its task where vehicles are scarce, and a task for its vehicle otherwise.
    """
    pickup = problem.ends[state.episode[b].instance, task].pickup
    approach = S.round_sum(ways.time_way(problem, state, b, v, np.int64(-1), pickup))
    seconds = max(approach, S.find_ready_in(problem, state, b, task))
    place, arrival = np.float64(k), S.find_ready(problem, state, b, task)
    if rule in (NEAREST, OVERDUE):
        return seconds, (seconds, approach, place, 0.0, 0.0)
    if rule == SHORTEST:
        loaded = ways.time_loaded(problem, state.episode[b].instance, v, task)
        value = S.round_sum(seconds + LOADED_WEIGHT * loaded)
        return value, (value, seconds, place, 0.0, 0.0)
    if rule == FCFS_NEAREST:
        return arrival, (arrival, place, seconds, approach, 0.0)
    if rule == ASSIGNMENT:
        waited = np.float64(state.episode[b].time) - state.waiting_since[b, task]
        value = S.round_sum(seconds - WAITING_WEIGHT * max(0.0, waited))
        return value, (value, place, 0.0, 0.0, 0.0)
    due = S.find_due(problem, state, b, task)
    if rule == EDD_NEAREST:
        return due, (due, place, seconds, approach, 0.0)
    if scarce:
        return due, (np.float64(v), due, arrival, seconds, approach)
    return due, (due, arrival, place, seconds, approach)


@inner_kernel
def is_overdue(problem, state, b, task, guard):
    """Whether a task is late by more than `guard` times the time that it was given."""
    i = state.episode[b].instance
    given = max(problem.record[i, task].expiry, LEAST_TIME * problem.unit[i].seconds)
    return state.episode[b].time - S.find_due(problem, state, b, task) > guard * given


@inner_kernel
def find_place(state, b, task):
    """Return the position of a task in the pool, -1 if it does not wait."""
    for k in range(state.episode[b].pool_size):
        if state.pool[b, k] == task:
            return np.int64(k)
    return np.int64(-1)


@inner_kernel
def compare_pairs(problem, state, b, decider, rule, guard):
    """Write the value of each pair; return vehicle and pool position of the best, by `rate_pair`.

    The first of equals by vehicle, then by place in the pool; -1 twice without a pair. OVERDUE compares the
    tasks that `is_overdue` finds. Where a moment goes on, only vehicles whose best task is gone are compared
    anew.
    """
    i, size = state.episode[b].instance, state.episode[b].pool_size
    moment = decider.kept[MOMENT, 0]
    keeps = moment > 0 and rule == decider.rule
    goes_on = keeps and decider.kept[MOMENT, 1] == moment
    decider.kept[MOMENT, 1] = moment if keeps else 0
    scarce = offers.count_free(problem, state, b) < size
    best_v, best_k = np.int64(-1), np.int64(-1)
    best = (np.inf, np.inf, np.inf, np.inf, np.inf)
    for k in range(size if goes_on else 0):
        decider.kept[PLACE, state.pool[b, k]] = k
    for v in range(problem.instance[i].n_vehicles):
        free = offers.is_free(state, b, v)
        first, last = np.int64(0), size
        if goes_on:
            kept = decider.kept[BEST, v]
            if kept < 0:
                continue
            k = decider.kept[PLACE, kept]
            if free and k < size and state.pool[b, k] == kept:
                first, last = k, k + 1
        priority = offers.find_priority(problem, state, b, v) if free else 0.0
        own_k, own_best = np.int64(-1), best
        if keeps:
            own_best = (np.inf, np.inf, np.inf, np.inf, np.inf)
        for k in range(first, last):
            task = state.pool[b, k]
            decider.value[v, task] = np.inf
            if not free or not offers.is_offered(problem, state, b, v, task, priority):
                continue
            if rule == OVERDUE and not is_overdue(problem, state, b, task, guard):
                continue
            value, own = rate_pair(problem, state, b, rule, scarce, v, k, task)
            decider.value[v, task] = value
            if own < own_best:
                own_k, own_best = np.int64(k), own
        if keeps:
            decider.kept[BEST, v] = state.pool[b, own_k] if own_k >= 0 else -1
        if own_k >= 0 and (not keeps or own_best < best):
            best_v, best_k, best = np.int64(v), own_k, own_best
    return best_v, best_k


@kernel
def add_later(problem, state, b, decider):
    """Write the values of vehicles with a task, free at their deliveries, beside those of free ones."""
    i, now = state.episode[b].instance, state.episode[b].time
    size = state.episode[b].pool_size
    for v in range(problem.instance[i].n_vehicles):
        vehicle = state.vehicle[b, v]
        if offers.is_free(state, b, v) or vehicle.status != S.WORKING:
            continue
        end = vehicle.event_tick
        site = problem.ends[i, vehicle.task].delivery
        highest = -np.inf
        for k in range(size):
            task = state.pool[b, k]
            decider.value[v, task] = np.inf
            takes = S.may_carry(problem, i, v, task)
            if takes and energy.has_battery(problem, state, b, v):
                level = energy.find_level(problem, state, b, v, end)
                takes = level >= auxiliary.find_site_need(problem, i, v, task, site)
            if takes:
                pickup = problem.ends[i, task].pickup
                way = ways.time_way(problem, state, b, v, site, pickup)
                waited = np.float64(now) - state.waiting_since[b, task]
                seconds = np.float64(end - now) + way
                decider.value[v, task] = S.round_sum(seconds - WAITING_WEIGHT * waited)
                highest = max(highest, problem.record[i, task].priority)
        for k in range(size):
            task = state.pool[b, k]
            if problem.record[i, task].priority < highest:
                decider.value[v, task] = np.inf


@kernel
def choose_assigned(problem, state, b, decider):
    """Return the first free vehicle of the best assignment and its task's position; -1 twice without a pair.

    The assignment has as many pairs as can be, and of those the least sum of values, in whole milliseconds.
    Where tasks may change hands, vehicles with a task are partners, too: what they shall take waits for them.
    Without the pair it is still the best of the others. Of more than `MOST_ANEW` pairs also those of the
    same sum are told apart so, and it serves the moment.
    """
    i, n_waiting = state.episode[b].instance, state.episode[b].pool_size
    n_vehicles, n_free = problem.instance[i].n_vehicles, offers.count_free(problem, state, b)
    settles = min(n_free, n_waiting) > MOST_ANEW
    meant, moment = decider.kept[BEST], decider.kept[MOMENT]
    if settles and moment[1] == moment[0] > 0:
        for v in range(n_vehicles):
            if meant[v] >= 0 and offers.is_free(state, b, v):
                return np.int64(v), find_place(state, b, meant[v])
            if meant[v] >= 0:  # it is gone
                meant[v], decider.value[v] = -1, np.inf
        return np.int64(-1), np.int64(-1)
    compare_pairs(problem, state, b, decider, ASSIGNMENT, np.inf)
    if problem.instance[i].max_changes >= 0:
        add_later(problem, state, b, decider)
    matching, n = decider.matching, 0
    for v in range(n_vehicles):
        takes_part = settles and offers.is_free(state, b, v)
        for k in range(n_waiting):
            takes_part = takes_part or decider.value[v, state.pool[b, k]] < np.inf
        if takes_part:
            decider.vehicle[n] = v
            n += 1
        meant[v] = -1
    by_vehicle = n <= n_waiting
    for j in range(n):
        for k in range(n_waiting):
            value, cost = decider.value[decider.vehicle[j], state.pool[b, k]], NO_PAIR
            if value < np.inf:
                cost = np.int64(np.floor(1e3 * value + 0.5))
            if by_vehicle:
                matching.cost[j, k] = cost
            else:
                matching.cost[k, j] = cost
    n_rows, n_columns = min(n, n_waiting), max(n, n_waiting)
    match_rows(n_rows, n_columns, matching)
    if settles:
        settle_ties(n_rows, n_columns, matching)
    first, position = np.int64(n), np.int64(-1)
    for c in range(n_columns):
        row = matching.row_of[c]
        own, place = (row, np.int64(c)) if by_vehicle else (np.int64(c), row)
        if row < 0 or decider.value[decider.vehicle[own], state.pool[b, place]] == np.inf:
            continue
        meant[decider.vehicle[own]] = state.pool[b, place]
        if own < first and offers.is_free(state, b, decider.vehicle[own]):
            first, position = own, place
    # Of others the tasks that are offered may change as the most urgent one is taken.
    moment[1] = 0 if problem.instance[i].has_priorities else moment[0]
    if position < 0:
        return np.int64(-1), position
    return decider.vehicle[first], position


@inner_kernel
def choose_by_baseline(problem, state, b, decider):
    """Return what `deciders.decide` returns, by a baseline; `decider.value` then holds what it compared."""
    if decider.rule == ASSIGNMENT:
        v, k = choose_assigned(problem, state, b, decider)
    else:
        v, k = compare_pairs(problem, state, b, decider, decider.rule, np.inf)
    return v, k, np.int64(decider.rule if v >= 0 else -1)


@inner_kernel
def decide_by_baseline(problem, state, b, decider, row, key, decision):
    """Decide as `deciders.decide`, by a baseline; nothing is drawn."""
    return choose_by_baseline(problem, state, b, decider)
