"""Who may be given what: free vehicles, and the waiting tasks that they may carry and have the energy for."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import energy, ways
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def is_free(state, b, v):
    """Whether vehicle v may be given a task: it is idle, or may turn at the next site of its way."""
    return state.vehicle[b, v].status == S.IDLE or ways.may_turn(state, b, v)


@inner_kernel
def count_free(problem, state, b):
    """Return the number of free vehicles of episode b."""
    n = 0
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        n += is_free(state, b, v)
    return n


@inner_kernel
def may_take(problem, state, b, v, task):
    """Whether the free vehicle v has the capacity and the energy for `task`, and a way to it."""
    i = state.episode[b].instance
    return S.may_carry(problem, i, v, task) and energy.can_serve(problem, state, b, v, task)


@inner_kernel
def find_priority(problem, state, b, v):
    """Return the highest priority of the waiting tasks that vehicle v may take; -inf where none has any."""
    i = state.episode[b].instance
    highest = -np.inf
    if problem.instance[i].has_priorities:
        for task in state.pool[b, : state.episode[b].pool_size]:
            priority = problem.record[i, task].priority
            if priority > highest and may_take(problem, state, b, v, task):
                highest = priority
    return highest


@inner_kernel
def is_offered(problem, state, b, v, task, priority):
    """Whether vehicle v may take a waiting task; `priority` is that of `find_priority`."""
    i = state.episode[b].instance
    ranks = problem.record[i, task].priority >= priority
    return ranks and may_take(problem, state, b, v, task)


@inner_kernel
def has_choice(problem, state, b, v):
    """Whether vehicle v is free and may take one of the waiting tasks."""
    n_waiting = state.episode[b].pool_size
    if n_waiting == 0 or not is_free(state, b, v):
        return False
    i = state.episode[b].instance
    if problem.fleet[i, v].capacity == 0.0 and energy.is_sure(problem, state, b, v):
        return True
    for task in state.pool[b, :n_waiting]:
        if may_take(problem, state, b, v, task):
            return True
    return False


@inner_kernel
def is_decision_due(problem, state, b):
    """Whether some vehicle of episode b has a choice, and nobody has said that all shall wait."""
    if state.episode[b].pool_size == 0 or state.episode[b].waits:
        return False
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if has_choice(problem, state, b, v):
            return True
    return False


@S.unless_auxiliary(False)
def comes_unasked(problem, state, b, task):
    """Whether an expected task will be known without any decision: what it follows is delivered."""
    if state.job[b, task].known < S.NEVER:
        return True
    after = problem.chain[state.episode[b].instance, task].after
    for k in range(state.episode[b].n_processed):
        if state.processed[b, k] == after:
            return True
    return False


@inner_kernel
def count_returning(problem, state, b):
    """Return the number of vehicles that a delivery or a repair will free."""
    n = 0
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        n += state.vehicle[b, v].status in (S.WORKING, S.BROKEN)
    return n


@inner_kernel
def may_wait(problem, state, b):
    """Whether something is to come that ends a wait: an arrival, a delivery, a repair, a listed breakdown."""
    i = state.episode[b].instance
    if state.episode[b].n_arrived < problem.instance[i].n_tasks:
        return True
    for k in range(state.episode[b].n_expected):
        if comes_unasked(problem, state, b, state.expected[b, k]):
            return True
    if count_returning(problem, state, b) > 0 or S.find_change(problem, i) < S.NEVER:
        return True
    for v in range(problem.instance[i].n_vehicles):
        k = state.vehicle[b, v].next_breakdown
        listed = k < problem.breakdown.shape[2]
        if listed and problem.breakdown[i, v, k].tick < S.NEVER:
            return True
    return False
