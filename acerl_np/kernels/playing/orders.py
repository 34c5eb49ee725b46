"""Annealing of orders: which vehicle takes which task, and after which, where tasks follow others.

A vehicle takes its tasks in its order, each as soon as it is known, and waits for it where it must. Nothing
else is to be decided, so an episode is played from delivery to delivery, without the simulator's ticks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.driving import commitment, offers, ways
from acerl_np.kernels.episode import chains, events
from acerl_np.kernels.ground import random
from acerl_np.kernels.ground import state as S
from acerl_np.kernels.playing import search
from acerl_np.support.compiled import inner_kernel, kernel

COLDEST, HOTTEST = 0.06, 1.0
"""Temperatures of annealing at the end and the beginning, in mean ticks of processing and loaded ways."""

MEAN_WEIGHT = 0.02
"""Weight of the mean end of all tasks in what is annealed: it leads across plateaus of the makespan."""

OVER_LIMIT = 10.0
"""What the cost counts that is over its limit."""

MOVED, SWAPPED, ONE_GIVEN = 0.4, 0.65, 0.9
"""Shares of the changes, added up: a chain's turn moved, two swapped, a task to another vehicle; else two."""


class OrderSearch(NamedTuple):
    """Scratch of an order that is played: n tasks, V vehicles, K machines with at most P servers each.

    Attributes
    ----------
    sequence : ndarray(int64, (n,)), tasks; each vehicle's are in this order
    vehicle : ndarray(int64, (n,)), of each task
    known, ready, done : ndarray(int64, (n,)), ticks, `NEVER` until they are found
    place, site, free : ndarray(int64, (V,)), next entry of `sequence`, and where and from when on it is free
    server : ndarray(int64, (K, P)), tick at which each server is free
    outcome : ndarray(float64, (N_OUTCOME_FIELDS,))
    """

    sequence: np.ndarray
    vehicle: np.ndarray
    known: np.ndarray
    ready: np.ndarray
    done: np.ndarray
    place: np.ndarray
    site: np.ndarray
    free: np.ndarray
    server: np.ndarray
    outcome: np.ndarray


def allocate_orders(problem: S.Problem) -> OrderSearch:
    """Return scratch for orders of the instances of `problem`."""
    n, n_vehicles = problem.record.shape[1], problem.fleet.shape[1]
    n_machines, n_servers = problem.servers.shape[1], int(problem.servers.max(initial=1))
    sequence, vehicle, known, ready, done = np.zeros((5, n), np.int64)
    place, site, free = np.zeros((3, n_vehicles), np.int64)
    server, outcome = np.zeros((n_machines, n_servers), np.int64), np.zeros(S.N_OUTCOME_FIELDS)
    return OrderSearch(sequence, vehicle, known, ready, done, place, site, free, server, outcome)


@inner_kernel
def process_task(problem, i, orders, task, tick):
    """Let a task be processed that is delivered at a tick; write when those are known that follow it."""
    machine, begins = problem.chain[i, task].machine, tick
    ends = tick
    if machine >= 0:
        first = 0
        for k in range(1, problem.servers[i, machine]):
            if orders.server[machine, k] < orders.server[machine, first]:
                first = k
        begins = max(tick, orders.server[machine, first])
        ends = begins + problem.chain[i, task].processing
        orders.server[machine, first] = ends
    orders.done[task] = ends
    # Rows of a chain stand together, each after the one that it follows.
    other = task + 1
    n = problem.instance[i].n_tasks
    while other < n and problem.chain[i, other].after >= 0:
        if problem.chain[i, other].after == task:
            ready = max(problem.record[i, other].arrival, np.float64(ends))
            orders.ready[other] = np.int64(np.ceil(ready))
            orders.known[other] = max(begins, chains.find_known(problem, i, other, ready))
        other += 1


@inner_kernel
def time_order(problem, i, orders, v, task):
    """Return when vehicle v sets out to its next task, is there, loads it and delivers it."""
    layout = problem.instance[i].layout
    pickup = problem.ends[i, task].pickup
    metres = problem.distance[layout, orders.site[v], pickup]
    row = problem.fleet[i, v].slowdown
    slowdown = ways.find_slowdown(problem, row, orders.site[v], pickup)
    to_pickup, duration = ways.count_trip(problem, i, v, task, metres, slowdown, True)
    leaves = max(orders.free[v], orders.known[task])
    loads = max(leaves + to_pickup, orders.ready[task])
    return metres, loads, loads + duration - to_pickup


@inner_kernel
def play_orders(problem, i, orders):
    """Play instance i by orders; return the mean end of its tasks, inf where some cannot be reached."""
    n, n_vehicles = S.count_rows(problem, i)
    distance = problem.distance[problem.instance[i].layout]
    for task in range(n):
        orders.known[task] = S.NEVER
        if problem.chain[i, task].after < 0:
            orders.known[task] = problem.chain[i, task].known
            orders.ready[task] = np.int64(np.ceil(problem.record[i, task].arrival))
    for v in range(n_vehicles):
        orders.place[v], orders.free[v] = 0, 0
        orders.site[v] = problem.start_site[i, v]
    orders.server[:] = 0
    outcome = orders.outcome
    outcome[:] = 0.0
    total, driven, empty, weights = 0.0, 0.0, 0.0, 0.0
    for _ in range(n):
        first, earliest = -1, S.NEVER
        for v in range(n_vehicles):
            k = orders.place[v]
            while k < n and orders.vehicle[orders.sequence[k]] != v:
                k += 1
            orders.place[v] = k
            if k < n and orders.known[orders.sequence[k]] < S.NEVER:
                tick = time_order(problem, i, orders, v, orders.sequence[k])[2]
                if tick < earliest:
                    first, earliest = v, tick
        if first < 0:
            return np.inf
        task = orders.sequence[orders.place[first]]
        record, chain = problem.record[i, task], problem.chain[i, task]
        metres, loads, tick = time_order(problem, i, orders, first, task)
        pickup, site = problem.ends[i, task].pickup, problem.ends[i, task].delivery
        empty += metres
        driven += metres + distance[pickup, site]
        orders.place[first] += 1
        orders.free[first], orders.site[first] = tick, site
        process_task(problem, i, orders, task, tick)
        after, ready = chain.after, record.arrival
        if after >= 0:
            ready = max(ready, np.float64(orders.done[after]))
        weight, done = S.find_weight(problem, i, task), np.float64(orders.done[task])
        weights += weight
        total += done
        S.add_delivery(outcome, weight, done, np.float64(tick) - ready - record.expiry)
        outcome[S.OUTCOME_WAITING] += weight * (np.float64(loads) - ready)
    S.close_outcome(problem, outcome, weights, driven, empty)
    return total / n


@inner_kernel
def draw_whole(key, step, draw, n):
    """Return a whole number below n."""
    return min(np.int64(random.draw_uniform(key, step, draw) * n), n - 1)


@inner_kernel
def give_task(problem, i, vehicle, key, step, draw):
    """Give a task that is drawn to a vehicle that is drawn (`vehicle`, modified), if that may carry it."""
    task = draw_whole(key, step, draw, problem.instance[i].n_tasks)
    v = draw_whole(key, step, draw + 1, problem.instance[i].n_vehicles)
    if S.may_carry(problem, i, v, task):
        vehicle[task] = v


@inner_kernel
def change_orders(problem, i, turns, vehicle, key, step):
    """Change the turns of chains (`turns`, int64 (n,)), or who takes a task (`vehicle`, int64 (n,))."""
    n = len(turns)
    kind = random.draw_uniform(key, step, 0)
    a, b = draw_whole(key, step, 1, n), draw_whole(key, step, 2, n)
    if kind < MOVED:
        own, way = turns[a], 1 if a < b else -1
        for k in range(a, b, way):
            turns[k] = turns[k + way]
        turns[b] = own
    elif kind < SWAPPED:
        turns[a], turns[b] = turns[b], turns[a]
    else:
        give_task(problem, i, vehicle, key, step, 3)
        if kind > ONE_GIVEN:
            give_task(problem, i, vehicle, key, step, 5)


@inner_kernel
def sort_tasks(turns, following, first, orders):
    """Write the tasks in the turns of their chains, named by their first rows, to `orders.sequence`.

    Parameters
    ----------
    turns, following : ndarray(int64, (n,)), a chain at each turn, and the task after each, -1 for none
    first : ndarray(int64, (n,)), scratch: the next task of each chain
    """
    for k in range(len(turns)):
        first[turns[k]] = turns[k]
    for k in range(len(turns)):
        task = first[turns[k]]
        orders.sequence[k] = task
        first[turns[k]] = following[task]


@kernel
def anneal_orders(problem, i, key, n_steps, cost_limit, orders, found):
    """Anneal the orders of one instance; keep the best, see `Found`: vehicle * n + task, by turn.

    Parameters
    ----------
    i : int, row of `problem`, without breakdowns, batteries and parking
    key : ndarray(uint32, (4,)), stream of the draws
    n_steps : int, orders to play
    cost_limit : float, the cost of a kept sequence is below it where that is within reach
    orders : OrderSearch, scratch
    found : Found, output
    """
    n, n_vehicles = S.count_rows(problem, i)
    turns, own_turns = np.empty(n, np.int64), np.empty(n, np.int64)
    own, first = np.empty(n, np.int64), np.empty(n, np.int64)
    following = np.full(n, -1, np.int64)
    unit = 0.0
    for task in range(n):
        # Where several tasks follow one, the first of them goes on with its chain, and the others begin one.
        after = problem.chain[i, task].after
        turns[task] = task
        if after >= 0 and following[after] < 0:
            following[after], turns[task] = task, turns[after]
        speed = problem.fleet[i, 0].speed
        unit += (problem.record[i, task].loaded / speed) / n
        unit += np.float64(problem.chain[i, task].processing) / n
        own[task] = draw_whole(key, 0, task, n_vehicles)
        for k in range(n_vehicles):
            v = (own[task] + k) % n_vehicles
            if S.may_carry(problem, i, v, task):
                own[task] = v
                break
    for k in range(n - 1, 0, -1):
        other = draw_whole(key, 0, n + k, k + 1)
        turns[k], turns[other] = turns[other], turns[k]
    search.clear_found(found)
    current = np.inf
    for step in range(n_steps):
        own_turns[:] = turns
        orders.vehicle[:n] = own
        if step > 0:
            change_orders(problem, i, own_turns, orders.vehicle, key, step)
        sort_tasks(own_turns, following, first, orders)
        mean = play_orders(problem, i, orders)
        score = orders.outcome[S.OUTCOME_VALUE] + MEAN_WEIGHT * mean
        score += OVER_LIMIT * max(0.0, orders.outcome[S.OUTCOME_COST] - cost_limit)
        temperature = unit * HOTTEST * (COLDEST / HOTTEST) ** (step / n_steps)
        if score <= current or random.draw_uniform(key, step, 7) < np.exp(
            (current - score) / temperature
        ):
            current = score
            turns[:] = own_turns
            own[:] = orders.vehicle[:n]
            if mean < np.inf and search.is_better(found, orders.outcome, cost_limit):
                search.copy_outcome(orders.outcome, found)
                for k in range(n):
                    task = orders.sequence[k]
                    found.actions[k] = own[task] * n + task


@kernel
def follow_orders(problem, state, b, i, actions):
    """Play row b by orders, `actions` (ndarray(int64)) as `anneal_orders` finds them, in the simulator."""
    events.start_episode(problem, state, b, i)
    n, n_vehicles = S.count_rows(problem, i)
    while state.episode[b].phase == S.RUNNING:
        gives = False
        for v in range(n_vehicles):
            k = 0
            while k < len(actions) and (
                actions[k] // n != v or state.task[b, actions[k] % n].vehicle >= 0
            ):
                k += 1
            if k < len(actions) and offers.is_free(state, b, v):
                position = commitment.find_waiting(state, b, actions[k] % n)
                if position >= 0:
                    commitment.assign_task(problem, state, b, v, position)
                    gives = True
        if not gives:
            commitment.take_decision(problem, state, b, np.int64(-1), np.int64(-1))
        events.advance_events(problem, state, b)
