"""Annealing of orders: which vehicle takes which task, and after which, where tasks follow others.

A vehicle takes its tasks in its order, each as soon as it is known, and waits for it where it must. Nothing
else is to be decided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import drawn
from acerl_np.kernels.episode import events
from acerl_np.kernels.rollout import search
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
    """Orders of n tasks for V vehicles, as `play_assignments` takes them, and its scratch.

    Attributes
    ----------
    sequence : ndarray(int64, (n,)), tasks; each vehicle's are in this order
    vehicle : ndarray(int64, (n,)), of each task
    order : ndarray(int64, (n,)); bounds : ndarray(int64, (V + 1,)); start_tick : ndarray(int64, (n,)), zeros
    head : ndarray(int64, (V,))
    state : State, row 0 is played
    """

    sequence: np.ndarray
    vehicle: np.ndarray
    order: np.ndarray
    bounds: np.ndarray
    start_tick: np.ndarray
    head: np.ndarray
    state: S.State


def allocate_orders(problem: S.Problem) -> OrderSearch:
    """Return scratch for orders of the instances of `problem`."""
    n_vehicles = problem.fleet.shape[1]
    sequence, vehicle, order, start_tick = np.zeros((4, problem.record.shape[1]), np.int64)
    bounds, head = np.zeros(n_vehicles + 1, np.int64), np.zeros(n_vehicles, np.int64)
    return OrderSearch(
        sequence, vehicle, order, bounds, start_tick, head, S.allocate_state(problem, 1)
    )


@inner_kernel
def play_orders(problem, i, orders):
    """Play instance i by orders in row 0; return the mean end of its tasks, inf if it does not finish."""
    state = orders.state
    n_tasks, n_vehicles = S.count_rows(problem, i)
    n = 0
    for v in range(n_vehicles):
        orders.bounds[v] = n
        for k in range(n_tasks):
            if orders.vehicle[orders.sequence[k]] == v:
                orders.order[n] = orders.sequence[k]
                n += 1
    orders.bounds[n_vehicles] = n
    order, bounds, start_tick, head = orders.order, orders.bounds, orders.start_tick, orders.head
    drawn.play_assignments(problem, state, i, order, bounds, start_tick, head)
    total = 0.0
    for task in range(n_tasks):
        total += events.find_end(problem, state, 0, task)
    return total / n_tasks if state.episode[0].phase == S.FINISHED else np.inf


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
        mean, outcome = play_orders(problem, i, orders), orders.state.outcome[0]
        score = np.inf
        if mean < np.inf:
            score = outcome[S.OUTCOME_VALUE] + MEAN_WEIGHT * mean
            score += OVER_LIMIT * max(0.0, outcome[S.OUTCOME_COST] - cost_limit)
        temperature = unit * HOTTEST * (COLDEST / HOTTEST) ** (step / n_steps)
        if search.is_accepted(score, current, temperature, key, step, 7):
            current = score
            turns[:] = own_turns
            own[:] = orders.vehicle[:n]
            if mean < np.inf and search.is_better(found, outcome, cost_limit):
                search.copy_outcome(outcome, found)
                for k in range(n):
                    task = orders.sequence[k]
                    found.actions[k] = own[task] * n + task
