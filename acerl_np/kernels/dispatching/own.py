"""Rules and features of users: loops over pairs around them, and who decides by such a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from acerl_np.kernels.core.random import draw_uniform
from acerl_np.kernels.core.state import Problem
from acerl_np.kernels.dispatching.baselines import OVERDUE
from acerl_np.kernels.dispatching.drawn import choose_vehicle
from acerl_np.kernels.dispatching.floor import (
    Floor,
    Rows,
    Tables,
    list_rows,
    list_tables,
    with_guards,
)
from acerl_np.kernels.motion.offers import find_priority, is_free, is_offered
from acerl_np.support.callbacks import N_WORDS, call_own
from acerl_np.support.compiled import compile_inner, inner_kernel

OWN = np.int64(OVERDUE + 1)
"""In place of a rule's number where a user's rule has chosen."""


class OwnPairs(NamedTuple):
    """Pairs of an idle vehicle and a waiting task, and what a user's function says of them.

    Attributes
    ----------
    n : ndarray(int64, (1,)), number of pairs
    vehicle, position, task : ndarray(int64, (P,)), by vehicle, then by place in the pool
    value : ndarray(float64, (P,))
    words : ndarray(uint64, (N_WORDS,)), see `call_own`
    """

    n: np.ndarray
    vehicle: np.ndarray
    position: np.ndarray
    task: np.ndarray
    value: np.ndarray
    words: np.ndarray


class FloorView(NamedTuple):
    """What the loop over pairs works on."""

    problem: Tables
    state: Rows
    vehicle: np.ndarray
    task: np.ndarray
    value: np.ndarray


class OwnDecider(NamedTuple):
    """A user's rule, and a worker's own scratch for it.

    Attributes
    ----------
    rate : int or function, see `call_own`
    draws_vehicle : bool, whether the vehicle is drawn, and the rule asked for its task alone
    pairs : OwnPairs
    """

    rate: Any
    draws_vehicle: bool
    pairs: OwnPairs


def allocate_asked(n: int) -> OwnPairs:
    """Return room for n pairs."""
    v, position, task = np.empty((3, n), np.int64)
    words = np.zeros(N_WORDS, np.uint64)
    return OwnPairs(np.zeros(1, np.int64), v, position, task, np.empty(n), words)


def make_own_decider(rate: Any, draws_vehicle: bool, problem: Problem) -> OwnDecider:
    """Return the decider that follows a user's rule on instances of `problem`."""
    n = problem.fleet.shape[1] * problem.record.shape[1]
    return OwnDecider(rate, draws_vehicle, allocate_asked(n))


def make_rating(function: Callable[[Floor, int, int], float]) -> Callable[..., None]:
    """Return the loop over pairs around a user's function, for `compile_own`."""
    function = compile_inner(function)

    def rate(view, key, b, decision, n):
        i = view.state.episode[b].instance
        floor = with_guards(Floor(view.problem, view.state, b, i, key, decision))
        for k in range(n):  # should one raise, which ends the loop
            view.value[k] = np.nan
        for k in range(n):
            view.value[k] = np.float64(function(floor, view.vehicle[k], view.task[k]))

    return rate


@inner_kernel
def rate_pairs(problem, state, b, rate, pairs, key, decision):
    """Write what a user's function says of each of the pairs."""
    tables, rows = list_tables(problem), list_rows(state)
    view = FloorView(tables, rows, pairs.vehicle, pairs.task, pairs.value)
    call_own(rate, pairs.words, view, key, b, decision, pairs.n[0])


@inner_kernel
def list_pairs(problem, state, b, v, pairs):
    """Add the pairs of vehicle v, if it is idle, and the tasks that it is offered."""
    if not is_free(state, b, v):
        return
    priority = find_priority(problem, state, b, v)
    for k in range(state.episode[b].pool_size):
        task = state.pool[b, k]
        if not is_offered(problem, state, b, v, task, priority):
            continue
        n = pairs.n[0]
        pairs.vehicle[n], pairs.position[n], pairs.task[n] = v, k, task
        pairs.n[0] = n + 1


@inner_kernel
def decide_by_own(problem, state, b, decider, row, key, decision):
    """Decide as `deciders.decide`, by a user's rule; `decider.pairs` holds what it said of several.

    The first of equals by place in the pool, then by vehicle. What is no number comes last.
    """
    pairs = decider.pairs
    pairs.n[0] = 0
    if decider.draws_vehicle:
        v = choose_vehicle(problem, state, b, draw_uniform(key, decision, np.int64(0)))
        if v >= 0:
            list_pairs(problem, state, b, v, pairs)
    else:
        i = state.episode[b].instance
        for v in range(problem.instance[i].n_vehicles):
            list_pairs(problem, state, b, v, pairs)
    if pairs.n[0] == 0:
        return np.int64(-1), np.int64(-1), np.int64(-1)
    if pairs.n[0] > 1:  # else nothing is to be compared
        rate_pairs(problem, state, b, decider.rate, pairs, key, decision)
    else:
        pairs.value[0] = np.nan
    best, least = 0, np.inf
    for k in range(pairs.n[0]):
        value = pairs.value[k] if pairs.value[k] == pairs.value[k] else np.inf
        comes_first = pairs.position[k] < pairs.position[best]
        if value < least or (value == least and comes_first):
            best, least = k, value
    return pairs.vehicle[best], pairs.position[best], OWN
