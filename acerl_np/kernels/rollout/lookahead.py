"""One step of lookahead: try each promising assignment on sampled futures, and take the best.

The bases list their candidates in a future, too, so that the true one is never looked at.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import deciders, rules
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import commitment, offers
from acerl_np.kernels.rollout import futures
from acerl_np.support.compiled import inner_kernel, kernel, large_kernel

UNFINISHED = 1e9
"""In place of the value of a future that cannot end."""

LEAST_FUTURES, CLEARLY = 4, 2.5
"""Futures before a candidate is dropped, and the standard errors that it is behind then."""


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

    An index function: its pairs of largest score. Others: their own choice, then what `ahead.rules`
    pick for each vehicle. The future at hand, as a base may look at what is still to come.
    """
    decider, future, states = ahead.decider, ahead.future, ahead.states
    ahead.n_candidates[row] = 0
    decision = states.episode[futures.PRESENT].n_decisions
    key = states.breakdown_key[futures.PRESENT]
    own, its, _ = deciders.decide(future, states, futures.PRESENT, decider, row, key, decision)
    add_candidate(ahead, row, own, its)
    if ahead.ranks_pairs:
        pairs = ahead.pairs
        n = pairs.n[0]
        for _ in range(min(n, ahead.candidate.shape[1])):
            best = 0
            for k in range(1, n):
                if pairs.score[k] > pairs.score[best]:
                    best = k
            add_candidate(ahead, row, pairs.vehicle[best], pairs.position[best])
            pairs.score[best] = -np.inf
        return
    for v in range(future.instance[0].n_vehicles):
        if offers.has_choice(future, states, futures.PRESENT, v):
            for rule in ahead.rules:
                position = np.int64(rules.select_task(future, states, futures.PRESENT, v, rule))
                add_candidate(ahead, row, np.int64(v), position)


@inner_kernel
def read_value(ahead):
    """Return the value of the future that has been played: its objective, and the penalty of its cost."""
    states, future, past = ahead.states, ahead.future, ahead.past
    if states.episode[futures.PLAYED].phase != S.FINISHED:
        return UNFINISHED
    outcome = states.outcome[futures.PLAYED]
    if ahead.reach[0] == np.inf:  # what has left the tables counts, too
        n = future.instance[0].n_tasks
        delay = outcome[S.OUTCOME_TARDINESS] * n + past[futures.PAST_DELAY]
        outcome[S.OUTCOME_TARDINESS] = delay / (n + past[futures.PAST_TASKS])
    cost = S.weigh_measures(future, outcome, S.GOAL_COST)
    excess = max(0.0, cost - (ahead.cost_limit - ahead.margin))
    return S.weigh_measures(future, outcome, S.GOAL_OBJECTIVE) + ahead.penalty * excess


@inner_kernel
def count_candidates(ahead):
    """Return how many different assignments are candidates, 2 for more."""
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            own, first = ahead.candidate[row, k], ahead.candidate[0, 0]
            if own[0] != first[0] or own[1] != first[1]:
                return 2
    return 1


@large_kernel
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
        uniform = random.draw_uniform(key, decision, np.int64(word + 2))
        ahead.key[word] = np.uint32(uniform * 4294967296.0)
    low = np.int64(0xFFFFFFFF)
    ahead.key[0] ^= np.uint32(ahead.seed & low)
    ahead.key[1] ^= np.uint32((ahead.seed >> np.int64(32)) & low)
    for k in range(len(ahead.progress)):
        ahead.progress[k] = 0
    for row in range(len(ahead.candidate)):
        ahead.n_candidates[row] = 0
    if not offers.is_decision_due(problem, state, b):
        ahead.progress[futures.PROGRESS_FUTURE] = ahead.n_futures
        return 0
    ahead.reach[0] = futures.find_reach(problem, state, b, ahead)
    futures.weigh_history(problem, state, b, ahead)
    futures.write_present(problem, state, b, ahead)
    f = np.int64(0)
    futures.open_future(problem, state, b, ahead, f, futures.pick_future(ahead, f))
    for row in range(len(ahead.candidate)):
        list_candidates(ahead, row)
        for k in range(ahead.candidate.shape[1]):
            ahead.total[row, k] = ahead.square[row, k] = 0.0
            ahead.n_seen[row, k] = 0
            ahead.is_behind[row, k] = False
    for h in range(len(ahead.known)):
        ahead.known[h] = False
    return count_candidates(ahead)


@inner_kernel
def play_candidates(ahead, h, n_steps):
    """Play the candidates on the future at hand, of record h, for so many decisions.

    Return how many of these are left, -1 where there were too few: the next call goes on.
    """
    states, future, progress = ahead.states, ahead.future, ahead.progress
    most = ahead.candidate.shape[1]
    while progress[futures.PROGRESS_CANDIDATE] < len(ahead.candidate) * most:
        candidate = progress[futures.PROGRESS_CANDIDATE]
        row, k = candidate // most, candidate % most
        if k < ahead.n_candidates[row] and not ahead.is_behind[row, k]:
            if not progress[futures.PROGRESS_PLAYS]:
                S.copy_row(states, futures.PRESENT, states, futures.PLAYED)
                v, position = ahead.candidate[row, k, 0], ahead.candidate[row, k, 1]
                commitment.take_decision(future, states, futures.PLAYED, v, position)
                progress[futures.PROGRESS_PLAYS] = 1
            while True:
                events.advance_events(future, states, futures.PLAYED)
                if states.episode[futures.PLAYED].phase != S.RUNNING:
                    break
                if n_steps <= 0:
                    return np.int64(-1)
                n_steps -= 1
                futures.play_decision(ahead, row)
            ahead.value[h, row, k] = read_value(ahead)
            progress[futures.PROGRESS_PLAYS] = 0
        progress[futures.PROGRESS_CANDIDATE] += 1
    progress[futures.PROGRESS_CANDIDATE] = 0
    return n_steps


@inner_kernel
def add_values(ahead, h):
    """Add the values of a future, of record h, to the sums of the candidates that are still played."""
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            if not ahead.is_behind[row, k]:
                value = ahead.value[h, row, k]
                ahead.total[row, k] += value
                ahead.square[row, k] += (value - ahead.value[h, 0, 0]) ** 2
                ahead.n_seen[row, k] += 1


@inner_kernel
def compare_with_own(ahead, row, k):
    """Return by how much a candidate's values are above the base's own choice's: mean, standard error."""
    n = ahead.n_seen[row, k]
    mean = (ahead.total[row, k] - ahead.total[0, 0]) / n
    if n < 2:
        # Without a history nothing is left to chance.
        return mean, np.inf if ahead.trip > 0.0 else 0.0
    return mean, np.sqrt(max(0.0, ahead.square[row, k] / n - mean * mean) / (n - 1))


@inner_kernel
def drop_behind(ahead):
    """Drop the candidates that are not to win; return whether none is left beside the leader.

    They are clearly behind the leader, or by their standard error behind the base's own choice, or have come
    to the same as that in all futures: most do, where few tasks are late. That choice, which all are compared
    with, is played on. The standard error of a difference of two others is at most the sum of theirs.
    """
    if ahead.n_seen[0, 0] < LEAST_FUTURES:
        return False
    best_row, best_k = find_least(ahead)
    least, error = compare_with_own(ahead, best_row, best_k)
    is_clear = True
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            if ahead.is_behind[row, k] or (row == best_row and k == best_k):
                continue
            is_own = row + k == 0
            mean, own = (0.0, 0.0) if is_own else compare_with_own(ahead, row, k)
            is_no_better = not is_own and mean >= own
            if is_no_better or mean - least > CLEARLY * (error + own):
                ahead.is_behind[row, k] = not is_own
            else:
                is_clear = False
    return is_clear


@large_kernel
def rate_candidates(problem, state, b, ahead, n_steps):
    """Rate the candidates of episode b by the futures, from where the last call has ended.

    Parameters
    ----------
    n_steps : int, decisions within the futures, after which it returns

    Returns
    -------
    bool
        Whether there is nothing left to play.
    """
    progress = ahead.progress
    while progress[futures.PROGRESS_FUTURE] < ahead.n_futures:
        f = progress[futures.PROGRESS_FUTURE]
        h = futures.pick_future(ahead, f)
        if not ahead.known[h]:
            if progress[futures.PROGRESS_CANDIDATE] == 0 and not progress[futures.PROGRESS_PLAYS]:
                futures.open_future(problem, state, b, ahead, f, h)
            n_steps = play_candidates(ahead, h, n_steps)
            if n_steps < 0:
                return False
            ahead.known[h] = futures.is_repeated(ahead, h)
        add_values(ahead, h)
        progress[futures.PROGRESS_FUTURE] = f + 1
        if ahead.reach[0] < np.inf and drop_behind(ahead):
            return True
    return True


@inner_kernel
def find_least(ahead):
    """Return base and place of the candidate with the least sum, of those still played; -1 twice for none.

    The first of equals wins.
    """
    best_row, best_k = np.int64(-1), np.int64(-1)
    least = np.inf
    for row in range(len(ahead.candidate)):
        for k in range(ahead.n_candidates[row]):
            if not ahead.is_behind[row, k] and ahead.total[row, k] < least:
                least = ahead.total[row, k]
                best_row, best_k = np.int64(row), np.int64(k)
    return best_row, best_k


@kernel
def pick_candidate(ahead):
    """Return base, place among its candidates, vehicle and pool position of the best; -1 four times for none.

    With a horizon, the base's own choice is kept unless another is ahead by more than its standard error.
    """
    row, k = find_least(ahead)
    if row < 0:
        return row, k, np.int64(-1), np.int64(-1)
    if ahead.reach[0] < np.inf and row + k > 0:
        mean, error = compare_with_own(ahead, row, k)
        # A gain of just its error, as of two futures with one equal, is none, however it is rounded.
        if -mean <= error * (1.0 + 1e-9):
            row, k = np.int64(0), np.int64(0)
    chosen = ahead.candidate[row, k]
    return row, k, chosen[0], chosen[1]


@large_kernel
def decide_ahead(problem, state, b, ahead, row, key, decision):
    """Decide as `deciders.decide`, by a lookahead over all its futures."""
    found = begin_lookahead(problem, state, b, ahead, key, decision)
    if found == 0:
        return deciders.NOTHING
    if found > 1:  # else there is nothing to compare
        rate_candidates(problem, state, b, ahead, S.NEVER)
    _, _, v, position = pick_candidate(ahead)
    return v, position, deciders.NO_RULE
