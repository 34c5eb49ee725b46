"""Index policies: one small function scores every pair of an idle vehicle and a waiting task.

A pair is described by features in units of the floor, so that one function serves any floor and fleet:
times are divided by the time that a vehicle takes for the mean distance between two sites. Half of them say
what becomes of all the tasks that wait already, see `completion`. Features of users come after these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels import completion as C
from acerl_np.kernels import state as S
from acerl_np.kernels.completion import (
    Completion,
    allocate_completion,
    complete,
    gather,
    keep_least,
)
from acerl_np.kernels.network import draw_softmax
from acerl_np.kernels.offers import find_priority, has_choice, is_offered
from acerl_np.kernels.own import OwnPairs, allocate_asked, rate_pairs
from acerl_np.kernels.random import draw_uniform
from acerl_np.support.compiled import inner_kernel

F = np.float32

# Those of a completion come last, in the order of its results.
N_INDEX_FEATURES = 10
APPROACH, LOADED, SLACK, LATENESS, WAITING, COMPLETED = range(6)

MOST_PAIRS = 24
"""Pairs that are compared, those of the least keys."""

FAR = 4.0
"""Units of time at which the time to spare is cut."""


class Index(NamedTuple):
    """Linear functions of the same features, one in each row: F of the package and G of users.

    Attributes
    ----------
    parameters : ndarray(float32, (N, n_used)), a weight per feature that is used
    used : ndarray(int32, (n_used,)), features, ascending; N_INDEX_FEATURES and above are users'
    planned_breakdowns : bool, whether planned breakdowns are looked at
    own : ndarray(uint64, (G,)), users' features, see `compile_own`
    in_units : ndarray(bool, (G,)), which of them are times
    """

    parameters: np.ndarray
    used: np.ndarray
    planned_breakdowns: bool
    own: np.ndarray
    in_units: np.ndarray


class Pairs(NamedTuple):
    """Scratch of one decision, and the pairs that it is between.

    Attributes
    ----------
    n : ndarray(int64, (1,)), number of pairs
    vehicle, position : ndarray(int32, (P,)), idle vehicle, and position of the task in the pool
    score : ndarray(float64, (P,))
    x : ndarray(float32, (P, N_INDEX_FEATURES + G)), features of each pair
    place : ndarray(int64, (W * K, 2)), vehicle and task of all that are possible, by the completion's numbers
    lead, weight : ndarray(float64, (W * K,)), by how much their priority leads, -1 where no way leads, and
        their keys; `weight` is also scratch of a draw
    kept : ndarray(int64, (P,)), those that are compared
    completion : Completion, of W vehicles and K tasks
    asked : OwnPairs, for features of users
    """

    n: np.ndarray
    vehicle: np.ndarray
    position: np.ndarray
    score: np.ndarray
    x: np.ndarray
    place: np.ndarray
    lead: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    completion: Completion
    asked: OwnPairs


def allocate_pairs(n_vehicles: int, n_tasks: int, n_own: int = 0) -> Pairs:
    """Return room for the pairs of so many vehicles and tasks, and so many features of users."""
    completion = allocate_completion(n_vehicles, n_tasks)
    possible = completion.loaded.size
    n = min(MOST_PAIRS, possible)
    return Pairs(
        n=np.zeros(1, np.int64),
        vehicle=np.empty(n, np.int32),
        position=np.empty(n, np.int32),
        score=np.empty(n),
        x=np.empty((n, N_INDEX_FEATURES + n_own), np.float32),
        place=np.empty((possible, 2), np.int64),
        lead=np.empty(possible),
        weight=np.empty(possible),
        kept=np.empty(n, np.int64),
        completion=completion,
        asked=allocate_asked(n if n_own else 0),
    )


@inner_kernel
def write_features(problem, state, b, index, own, w, k, x):
    """Write the features of the pair of vehicle w and task k of a completion."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    per_second = 1.0 / problem.unit[i, S.UNIT_SECONDS]
    since = state.waiting_since[b, state.pool[b, own.position[k]]]
    reach = max(own.reach[w, k], own.ready[k])
    slack = (own.due[k] - reach - own.loaded[w, k]) * per_second
    x[APPROACH] = reach * per_second
    x[LOADED] = own.loaded[w, k] * per_second
    x[SLACK] = min(max(slack, 0.0), FAR)
    x[LATENESS] = max(0.0, -slack)
    x[WAITING] = max(0.0, np.float64(state.episode[b, S.EPISODE_TIME]) - since) * per_second
    last = len(index.used) - 1 - len(index.own)
    if last < 0 or index.used[last] < COMPLETED:
        return
    complete(problem, i, own, w, k)
    for n in range(C.N_RESULTS):
        x[COMPLETED + n] = own.result[n] * (1.0 if n == C.N_LATE else per_second)


@inner_kernel
def write_own_features(problem, state, b, index, pairs, key, decision):
    """Write the users' features of all pairs."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    asked = pairs.asked
    asked.n[0] = pairs.n[0]
    for n in range(pairs.n[0]):
        asked.vehicle[n], asked.task[n] = pairs.vehicle[n], state.pool[b, pairs.position[n]]
    for k in range(len(index.own)):
        rate_pairs(problem, state, b, index.own[k], asked, key, decision)
        factor = 1.0 / problem.unit[i, S.UNIT_SECONDS] if index.in_units[k] else 1.0
        for n in range(pairs.n[0]):
            value = asked.value[n]  # what is no number says nothing
            pairs.x[n, N_INDEX_FEATURES + k] = factor * value if np.isfinite(value) else 0.0


@inner_kernel
def score_pairs(problem, state, b, index, row, pairs, key, decision):
    """Score every pair of episode b that is possible; list them by vehicle, then by place in the pool.

    On a large floor those that `gather` looks at.
    """
    own, n = pairs.completion, 0
    gather(problem, state, b, index.planned_breakdowns, own)
    for w in range(own.n[1]):
        v = own.vehicle[w]
        if not has_choice(problem, state, b, v):
            continue
        priority = find_priority(problem, state, b, v)
        for k in range(own.n[0]):
            if is_offered(problem, state, b, v, state.pool[b, own.position[k]], priority):
                pairs.place[n, 0], pairs.place[n, 1] = w, k
                # Where no way leads from one part of a floor to another, others come first.
                pairs.lead[n] = own.urgent[k] if own.reach[w, k] < np.inf else -1.0
                pairs.weight[n] = own.key[0, w, k]
                n += 1
    pairs.n[0] = keep_least(pairs.lead, pairs.weight, n, MOST_PAIRS, pairs.kept)
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
        pairs.score[n] = score if own.reach[w, k] < np.inf else -np.inf


@inner_kernel
def choose_pair(problem, state, b, index, row, greedy, key, decision, pairs):
    """Return vehicle and pool position of the pair of largest score, or one drawn from the softmax.

    The first of equals wins. Draw (decision, 0) of the stream of `key` samples; -1 twice without a pair.
    """
    score_pairs(problem, state, b, index, row, pairs, key, decision)
    n = pairs.n[0]
    if n == 0:
        return np.int64(-1), np.int64(-1)
    best = 0
    for k in range(1, n):
        if pairs.score[k] > pairs.score[best]:
            best = k
    if not greedy:
        for k in range(n):
            pairs.weight[k] = pairs.score[k]
        best = draw_softmax(pairs.weight, n, draw_uniform(key, decision, np.int64(0)))
    return np.int64(pairs.vehicle[best]), np.int64(pairs.position[best])
