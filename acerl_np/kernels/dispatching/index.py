"""Index policies: one small function scores every pair of a free vehicle and a waiting task, and waiting.

A pair is described by features in units of the floor, so that one function serves any floor and fleet:
times are divided by the time that a vehicle takes for the mean distance between two sites. Some of them say
what becomes of all the tasks that wait already, see `greedy_rollout`; those of call-backs and of batteries
come after these, then those of chains, and features of users last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import greedy_rollout as G
from acerl_np.kernels.dispatching.own import OwnPairs, allocate_asked, rate_pairs
from acerl_np.kernels.episode import chains
from acerl_np.kernels.motion import energy, offers
from acerl_np.kernels.networks import network
from acerl_np.support.compiled import inner_kernel, kernel

F = np.float32

# Those of a rollout are in the order of its results.
N_INDEX_FEATURES = 18
APPROACH, LOADED, SLACK, LATENESS, WAITING, COMPLETED = range(6)
CURRENT, GAIN, LEVEL, RESERVE, CHARGER_NEAR = range(COMPLETED + G.N_RESULTS, N_INDEX_FEATURES - 3)
WORK_LEFT, MACHINE_BUSY, READY_IN = range(CHARGER_NEAR + 1, N_INDEX_FEATURES)

N_WAIT_FEATURES = 6
WAIT, IDLE_SHARE, CROWD, NEXT_FREE, NEXT_DUE, CHARGING_SHARE = range(N_WAIT_FEATURES)

MOST_PAIRS = 24
"""Pairs that are compared, those of the least keys."""

FAR = 4.0
"""Units of time at which the time to spare, and that of waiting, is cut."""


class Index(NamedTuple):
    """Linear functions of the same features, one in each row: F of the package and G of users.

    Attributes
    ----------
    parameters : ndarray(float32, (N, n_used)), a weight per feature that is used, then those of waiting
    used : ndarray(int32, (n_used,)), features, ascending; N_INDEX_FEATURES and above are users'
    waits : bool, whether waiting is a choice
    planned_breakdowns : bool, whether planned breakdowns are looked at
    own : ndarray(uint64, (G,)), users' features, see `call_own`
    in_units : ndarray(bool, (G,)), which of them are times
    """

    parameters: np.ndarray
    used: np.ndarray
    waits: bool
    planned_breakdowns: bool
    own: np.ndarray
    in_units: np.ndarray


class Pairs(NamedTuple):
    """Scratch of one decision, and the pairs that it is between; waiting, if it is a choice, is the last.

    Attributes
    ----------
    n : ndarray(int64, (1,)), number of pairs
    vehicle, position : ndarray(int64, (P,)), free vehicle, and position of the task in the pool; -1 to wait
    score : ndarray(float64, (P,))
    x : ndarray(float32, (P, N_INDEX_FEATURES + G)), features of each pair
    wait : ndarray(float32, (N_WAIT_FEATURES,)), features of waiting
    place : ndarray(int64, (W * K, 2)), vehicle and task of all that are possible, by the rollout's numbers
    lead, weight : ndarray(float64, (W * K,)), by how much their priority leads, and their keys; `weight` is
        also scratch of a draw
    kept : ndarray(int64, (P,)), those that are compared
    rollout : GreedyRollout, of W vehicles and K tasks
    asked : OwnPairs, for features of users
    """

    n: np.ndarray
    vehicle: np.ndarray
    position: np.ndarray
    score: np.ndarray
    x: np.ndarray
    wait: np.ndarray
    place: np.ndarray
    lead: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    rollout: G.GreedyRollout
    asked: OwnPairs


def allocate_pairs(n_vehicles: int, n_tasks: int, n_own: int = 0) -> Pairs:
    """Return room for the pairs of so many vehicles and tasks, and so many features of users."""
    rollout = G.allocate_rollout(n_vehicles, n_tasks)
    possible = rollout.loaded.size
    n = min(MOST_PAIRS, possible)
    return Pairs(
        n=np.zeros(1, np.int64),
        vehicle=np.empty(n + 1, np.int64),
        position=np.empty(n + 1, np.int64),
        score=np.empty(n + 1),
        x=np.empty((n, N_INDEX_FEATURES + n_own), np.float32),
        wait=np.empty(N_WAIT_FEATURES, np.float32),
        place=np.empty((possible, 2), np.int64),
        lead=np.empty(possible),
        weight=np.empty(possible + 1),
        kept=np.empty(n, np.int64),
        rollout=rollout,
        asked=allocate_asked(n if n_own else 0),
    )


@inner_kernel
def write_features(problem, state, b, index, own, w, k, x):
    """Write the features of the pair of vehicle w and task k of a rollout."""
    i = state.episode[b].instance
    per_second = 1.0 / problem.unit[i].seconds
    since = state.waiting_since[b, state.pool[b, own.position[k]]]
    reach = max(own.reach[w, k], own.ready[k])
    slack = (own.due[k] - reach - own.loaded[w, k]) * per_second
    x[APPROACH] = reach * per_second
    x[LOADED] = own.loaded[w, k] * per_second
    x[SLACK] = min(max(slack, 0.0), FAR)
    x[LATENESS] = max(0.0, -slack)
    x[WAITING] = max(0.0, np.float64(state.episode[b].time) - since) * per_second
    completes, asks_more = False, False
    for j in range(len(index.used) - len(index.own)):
        completes |= COMPLETED <= index.used[j] < CURRENT
        asks_more |= index.used[j] >= CURRENT
    if asks_more:
        write_vehicle_features(problem, state, b, own, w, k, x)
    if not completes:
        return
    G.rollout_greedily(problem, i, own, w, k)
    for n in range(G.N_RESULTS):
        x[COMPLETED + n] = own.result[n] * (1.0 if n == G.N_LATE else per_second)


@kernel
def write_vehicle_features(problem, state, b, own, w, k, x):
    """Write what a pair has of call-backs, of the battery and of its chain; without one a battery is full."""
    i = state.episode[b].instance
    per_second = 1.0 / problem.unit[i].seconds
    now = state.episode[b].time
    v, task = own.vehicle[w], state.pool[b, own.position[k]]
    present = state.task[b, task].vehicle
    x[CURRENT] = present == v
    x[GAIN] = 0.0
    if present >= 0 and present != v:
        loaded = np.float64(state.vehicle[b, present].loaded_tick - now)
        x[GAIN] = (loaded - own.reach[w, k]) * per_second
    capacity = problem.battery[i, v].capacity
    x[LEVEL], x[RESERVE], x[CHARGER_NEAR] = 1.0, 1.0, 0.0
    if capacity > 0:
        level = energy.find_level(problem, state, b, v, now)
        x[LEVEL] = level / capacity
        x[RESERVE] = (level - energy.find_own_need(problem, state, b, v, task)) / capacity
        x[CHARGER_NEAR] = energy.find_back(problem, i, v, own.delivery[k]) * per_second
    x[WORK_LEFT] = x[MACHINE_BUSY] = x[READY_IN] = 0.0
    if S.is_chained(problem, i):
        x[WORK_LEFT] = problem.lead[i, task].work_left * per_second
        x[MACHINE_BUSY] = chains.find_machine_busy(problem, state, b, task) * per_second
        x[READY_IN] = own.ready[k] * per_second


@kernel
def write_waiting(problem, state, b, planned_breakdowns, x):
    """Write the features of waiting: what the fleet does, and how soon something is free or due."""
    i = state.episode[b].instance
    per_second = 1.0 / problem.unit[i].seconds
    now = np.float64(state.episode[b].time)
    n_vehicles = problem.instance[i].n_vehicles
    n_free, n_charging, soonest, due = 0, 0, np.inf, np.inf
    for v in range(n_vehicles):
        status = state.vehicle[b, v].status
        n_charging += status in (S.TO_CHARGER, S.QUEUED, S.CHARGING)
        if offers.is_free(state, b, v):
            n_free += 1
        else:
            soonest = min(soonest, G.find_free(problem, state, b, v, planned_breakdowns)[0])
    size = state.episode[b].pool_size
    for k in range(size):
        due = min(due, S.find_due(problem, state, b, state.pool[b, k]) - now)
    x[WAIT] = 1.0
    x[IDLE_SHARE] = n_free / n_vehicles
    x[CROWD] = size / n_vehicles
    x[NEXT_FREE] = min(soonest * per_second, FAR)
    x[NEXT_DUE] = max(-FAR, min(due * per_second, FAR))
    x[CHARGING_SHARE] = n_charging / n_vehicles


@inner_kernel
def score_waiting(problem, state, b, index, row, pairs):
    """Add waiting to the pairs, with its score."""
    write_waiting(problem, state, b, index.planned_breakdowns, pairs.wait)
    n, first = pairs.n[0], len(index.used)
    score = F(0.0)
    for j in range(N_WAIT_FEATURES):
        score += index.parameters[row, first + j] * pairs.wait[j]
    pairs.vehicle[n] = pairs.position[n] = -1
    pairs.score[n] = score
    pairs.n[0] = n + 1


@inner_kernel
def write_own_features(problem, state, b, index, pairs, key, decision):
    """Write the users' features of all pairs."""
    i = state.episode[b].instance
    asked = pairs.asked
    asked.n[0] = pairs.n[0]
    for n in range(pairs.n[0]):
        asked.vehicle[n], asked.task[n] = pairs.vehicle[n], state.pool[b, pairs.position[n]]
    for k in range(len(index.own)):
        rate_pairs(problem, state, b, index.own[k], asked, key, decision)
        factor = 1.0 / problem.unit[i].seconds if index.in_units[k] else 1.0
        for n in range(pairs.n[0]):
            value = asked.value[n]  # what is no number says nothing
            pairs.x[n, N_INDEX_FEATURES + k] = factor * value if np.isfinite(value) else 0.0


@inner_kernel
def score_pairs(problem, state, b, index, row, pairs, key, decision):
    """Score every pair of episode b that is possible; list them by vehicle, then by place in the pool.

    On a large floor those that `collect_candidates` looks at.
    """
    own, n = pairs.rollout, 0
    G.collect_candidates(problem, state, b, index.planned_breakdowns, own)
    for w in range(own.n[1]):
        v = own.vehicle[w]
        if not offers.has_choice(problem, state, b, v):
            continue
        priority = offers.find_priority(problem, state, b, v)
        for k in range(own.n[0]):
            if offers.is_offered(problem, state, b, v, state.pool[b, own.position[k]], priority):
                pairs.place[n, 0], pairs.place[n, 1] = w, k
                pairs.lead[n] = own.urgent[k]
                pairs.weight[n] = own.key[0, w, k]
                n += 1
    pairs.n[0] = G.keep_least(pairs.lead, pairs.weight, n, MOST_PAIRS, pairs.kept)
    for n in range(pairs.n[0]):
        w, k = pairs.place[pairs.kept[n]]
        write_features(problem, state, b, index, own, w, k, pairs.x[n])
        pairs.vehicle[n] = own.vehicle[w]
        pairs.position[n] = own.position[k]
    if len(index.own) > 0:
        write_own_features(problem, state, b, index, pairs, key, decision)
    for n in range(pairs.n[0]):
        w, k = pairs.place[pairs.kept[n]]
        score = F(0.0)
        for j in range(len(index.used)):
            score += index.parameters[row, j] * pairs.x[n, index.used[j]]
        pairs.score[n] = score
    # Only if a vehicle is to come for each task that waits: else tasks might pile up all day.
    n_waiting = state.episode[b].pool_size
    returning = index.waits and n_waiting <= offers.count_returning(problem, state, b)
    if returning and pairs.n[0] > 0:
        score_waiting(problem, state, b, index, row, pairs)


@inner_kernel
def decide_by_index(problem, state, b, decider, row, key, decision):
    """Decide as `deciders.decide`: by the pair of largest score, or one drawn from the softmax.

    The first of equals wins. Draw (decision, 0) of the stream of `key` samples; -1 three times to wait, too.
    `decider.pairs` holds the scores of all pairs after it.
    """
    pairs, none = decider.pairs, np.int64(-1)
    score_pairs(problem, state, b, decider.indices, row, pairs, key, decision)
    n = pairs.n[0]
    if n == 0:
        return none, none, none
    best = 0
    for k in range(1, n):
        if pairs.score[k] > pairs.score[best]:
            best = k
    if not decider.greedy:
        for k in range(n):
            pairs.weight[k] = pairs.score[k]
        uniform = random.draw_uniform(key, decision, np.int64(0))
        best = network.draw_softmax(pairs.weight, n, uniform)
    return pairs.vehicle[best], pairs.position[best], none
