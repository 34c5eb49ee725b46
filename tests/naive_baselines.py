"""The baselines on the slow simulator, from their words: the oracle of `kernels.dispatching.baselines`."""

import full
import naive_index
import numpy as np
from scipy.optimize import linear_sum_assignment

FORBIDDEN = 10**14


def choose(slow, rule):
    """Vehicle and position in the pool that a baseline takes first, but for "assignment"."""
    idle = sum(vehicle.status == full.IDLE for vehicle in slow.vehicles)

    def measure(v, k):
        vehicle, task = slow.vehicles[v], slow.waiting[k]
        ride = naive_index.drive(slow.floor, task.pickup, task.delivery, vehicle.speed)
        way = naive_index.true_way(slow.floor, vehicle, task.pickup)
        return full.round9(way), 0.0, ride + task.handling

    return choose_of(naive_index.pairs(slow), slow.waiting, rule, idle, measure)


def choose_of(pairs, pool, rule, n_free, measure):
    """Which of the possible pairs (vehicle, position in the pool) a baseline takes first.

    measure : seconds of a pair's approach, until its task is ready, and of its loaded way
    """

    def order(pair):
        (v, k), (approach, ready, ride) = pair, measure(*pair)
        task, near = pool[k], (max(approach, ready), approach)
        return {
            "nearest": (*near, k, v),
            "shortest": (full.round9(near[0] + 0.5 * ride), near[0], k, v),
            "fcfs-nearest": (task.arrival, k, *near, v),
            "edd-nearest": (task.due, k, *near, v),
            "opentcs": (v, task.due, task.arrival, *near, k)
            if n_free < len(pool)
            else (task.due, task.arrival, k, *near, v),
        }[rule]

    return min(pairs, key=order)


def list_costs(slow):
    """What "assignment" compares, ms: (vehicle, position in the pool) -> cost of each possible pair."""
    costs = {}
    for v, k in naive_index.pairs(slow):
        task = slow.waiting[k]
        seconds = naive_index.true_way(slow.floor, slow.vehicles[v], task.pickup)
        seconds -= 0.3 * (slow.time - task.waiting_since)
        costs[v, k] = int(np.floor(1e3 * full.round9(seconds) + 0.5))
    return costs


def find_best(costs):
    """Number of pairs and sum, ms, of the best assignment."""
    if not costs:
        return 0, 0
    vehicles, places = ({pair[side] for pair in costs} for side in (0, 1))
    table = np.array([[costs.get((v, k), FORBIDDEN) for k in places] for v in vehicles])
    taken = table[linear_sum_assignment(table)]
    return int((taken < FORBIDDEN).sum()), int(taken[taken < FORBIDDEN].sum())


def list_assigned(costs):
    """The pairs that may be taken first: each of the first vehicle in some best assignment."""
    number, least = find_best(costs)
    found = set()
    for (v, k), cost in costs.items():
        others, rest = find_best({(w, j): x for (w, j), x in costs.items() if w > v and j != k})
        if (others + 1, rest + cost) == (number, least):
            found.add((v, k))
    return found
