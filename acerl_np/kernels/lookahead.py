"""One step of lookahead: try each promising assignment on sampled futures, and take the best.

The bases list their candidates in a future, too, so that the true one is never looked at.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.deciders import NO_RULE, NOTHING, decide, play_on
from acerl_np.kernels.events import assign_task, has_choice, is_decision_due
from acerl_np.kernels.futures import (
    PAST_DELAY,
    PAST_HOLES,
    PAST_TASKS,
    PLAYED,
    PRESENT,
    is_repeated,
    open_future,
    pick_future,
    weigh_history,
    write_present,
)
from acerl_np.kernels.random import draw_uniform
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import copy_row
from acerl_np.support.compiled import inner_kernel, kernel

UNFINISHED = 1e9
"""s, in place of the makespan of a future that cannot end."""


@inner_kernel
def add_candidate(ahead, row, v, position):
    """Add a candidate of a base unless it is one already, or there are enough."""
    n = ahead.n_candidates[row]
    for k in range(n):
        if ahead.candidate[row, k, 0] == v and ahead.candidate[row, k, 1] == position:
            return
    if n < ahead.candidate.shape[1]:
        ahead.candidate[row, n, 0] = v
        ahead.candidate[row, n, 1] = position
        ahead.n_candidates[row] = n + 1


@inner_kernel
def list_candidates(ahead, row):
    """List what a base would do first in the future at hand, the best first.

    An index function: its pairs of largest score. Others: their own choice, then what the four rules
    pick for each vehicle. The future at hand, as a base may look at what is still to come.
    """
    decider, future, states = ahead.decider, ahead.future, ahead.states
    ahead.n_candidates[row] = 0
    decision = states.episode[PRESENT, S.EPISODE_N_DECISIONS]
    key = states.breakdown_key[PRESENT]
    own, its, _ = decide(future, states, PRESENT, decider, row, key, decision)
    add_candidate(ahead, row, own, its)
    if ahead.ranks_pairs:
        pairs = ahead.pairs
        n = pairs.n[0]
        for _ in range(min(n, ahead.candidate.shape[1])):
            best = 0
            for k in range(1, n):
                if pairs.score[k] > pairs.score[best]:
                    best = k
            add_candidate(ahead, row, np.int64(pairs.vehicle[best]), np.int64(pairs.position[best]))
            pairs.score[best] = -np.inf
        return
    for v in range(future.instance[0, S.INSTANCE_N_VEHICLES]):
        if has_choice(future, states, PRESENT, v):
            for rule in range(N_RULES):
                position = np.int64(select_task(future, states, PRESENT, v, rule))
                add_candidate(ahead, row, np.int64(v), position)


@kernel
def play_out(ahead, row, v, position):
    """Return the value of the future at hand after an assignment, if base `row` decides from then on."""
    states, future = ahead.states, ahead.future
    copy_row(states, PRESENT, states, PLAYED)
    assign_task(future, states, PLAYED, v, position)
    play_on(future, states, PLAYED, ahead.decider, row, states.breakdown_key[PLAYED])
    if states.episode[PLAYED, S.EPISODE_PHASE] != S.FINISHED:
        return UNFINISHED
    past = ahead.past
    n = future.instance[0, S.INSTANCE_N_TASKS]
    delay = states.outcome[PLAYED, S.OUTCOME_TARDINESS] * n + past[PAST_DELAY]
    tardiness = delay / (n - past[PAST_HOLES] + past[PAST_TASKS])
    excess = max(0.0, tardiness - (ahead.cost_limit - ahead.margin))
    return states.outcome[PLAYED, S.OUTCOME_MAKESPAN] + ahead.penalty * excess


@inner_kernel
def count_candidates(ahead):
    """Return how many different assignments are candidates, 2 for more."""
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            if (
                ahead.candidate[row, k, 0] != ahead.candidate[0, 0, 0]
                or ahead.candidate[row, k, 1] != ahead.candidate[0, 0, 1]
            ):
                return 2
    return 1


@kernel
def begin_lookahead(problem, state, b, ahead, key, decision):
    """Derive a decision's key, weigh the history and list the candidates of episode b.

    Parameters
    ----------
    key : ndarray(uint32, (4,)), stream of the episode's draws
    decision : int, number of decisions before this one

    Returns
    -------
    int
        0 if no decision is due, 1 if there is one candidate, 2 for more: then `rate_candidates` tells.
    """
    for word in range(4):
        uniform = draw_uniform(key, decision, np.int64(word + 2))
        ahead.key[word] = np.uint32(uniform * 4294967296.0)
    low = np.int64(0xFFFFFFFF)
    ahead.key[0] ^= np.uint32(ahead.seed & low)
    ahead.key[1] ^= np.uint32((ahead.seed >> np.int64(32)) & low)
    if not is_decision_due(problem, state, b):
        return 0
    weigh_history(problem, state, b, ahead)
    write_present(problem, state, b, ahead)
    f = np.int64(0)
    open_future(problem, state, b, ahead, f, pick_future(ahead, f))
    for row in range(len(ahead.candidate)):
        list_candidates(ahead, row)
        for k in range(ahead.candidate.shape[1]):
            ahead.total[row, k] = 0.0
    for h in range(len(ahead.known)):
        ahead.known[h] = False
    return count_candidates(ahead)


@kernel
def rate_candidates(problem, state, b, ahead, first, last):
    """Add the values of futures `first` to `last` - 1 of episode b to the candidates' sums."""
    for f in range(first, last):
        h = pick_future(ahead, f)
        if not ahead.known[h]:
            open_future(problem, state, b, ahead, f, h)
            for row in range(len(ahead.candidate)):
                for k in range(ahead.n_candidates[row]):
                    v, position = ahead.candidate[row, k, 0], ahead.candidate[row, k, 1]
                    ahead.value[h, row, k] = play_out(ahead, row, v, position)
            ahead.known[h] = is_repeated(ahead, h)
        for row in range(len(ahead.candidate)):
            for k in range(ahead.n_candidates[row]):
                ahead.total[row, k] += ahead.value[h, row, k]


@kernel
def pick_candidate(ahead):
    """Return base, place among its candidates, vehicle and pool position of the least sum.

    The first of equals wins; -1 four times without a candidate.
    """
    best_row, best_k = np.int64(-1), np.int64(-1)
    least = np.inf
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            if ahead.total[row, k] < least:
                least = ahead.total[row, k]
                best_row, best_k = np.int64(row), np.int64(k)
    if best_row < 0:
        return best_row, best_k, np.int64(-1), np.int64(-1)
    chosen = ahead.candidate[best_row, best_k]
    return best_row, best_k, chosen[0], chosen[1]


@kernel
def decide_ahead(problem, state, b, ahead, row, key, decision):
    """Decide as `deciders.decide`, by a lookahead over all its futures."""
    found = begin_lookahead(problem, state, b, ahead, key, decision)
    if found == 0:
        return NOTHING
    if found > 1:  # else there is nothing to compare
        rate_candidates(problem, state, b, ahead, np.int64(0), np.int64(ahead.n_futures))
    _, _, v, position = pick_candidate(ahead)
    return v, position, NO_RULE
