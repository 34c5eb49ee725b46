"""Simulated annealing of the action string of an episode whose future is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import drawn, rules
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import offers
from acerl_np.kernels.rollout import batch, search
from acerl_np.support.compiled import inner_kernel, kernel

LATE_PENALTY = 20.0
"""What annealing adds, s, once the cost reaches the limit: a sequence within the limit is worth so much
makespan, or of another objective what weighs as much."""

LATE_WEIGHT = 10.0
"""What it adds for each second of tardiness above the limit, or for what of another cost weighs as much, so
that the way back pays at every step."""

COLDEST = 0.2
"""Temperature of annealing at the end, s: hardly a sequence that is 1 s worse is accepted."""

ACCEPT_DRAW = 99
"""Draw of an annealing step that decides whether it is accepted: after those of any `Style`'s changes."""


class Style(NamedTuple):
    """How an annealing chain moves.

    Attributes
    ----------
    most_changes : float, actions that a step changes at most; few are likelier than many; below 40
    mean_weight : float, weight of the mean finish in the score, see `score_episode`
    heat : float, temperature at the beginning above that at the end, s
    scale, cost_scale : float, what of the objective and of the cost weighs as much as 1 s
    """

    most_changes: float
    mean_weight: float
    heat: float
    scale: float
    cost_scale: float


@inner_kernel
def play_genes(problem, state, b, instance, genes, actions, is_open):
    """Play row b by a gene string and write the actions taken; return their number.

    Gene k is the action that decision k would take; where its vehicle has no choice, the next
    vehicle that has one acts by the same rule. A decision is open if it could assign several pairs.

    Parameters
    ----------
    genes : ndarray(int64, (n,))
    actions : ndarray(int64, (n,)), output; is_open : ndarray(bool, (n,)), output
    """
    events.start_episode(problem, state, b, instance)
    n_vehicles = problem.instance[instance].n_vehicles
    k = 0
    while state.episode[b].phase == S.RUNNING and k < len(actions):
        several = drawn.count_choices(problem, state, b) > 1
        is_open[k] = several or state.episode[b].pool_size > 1
        v = genes[k] // rules.N_RULES
        while not offers.has_choice(problem, state, b, v):
            v = (v + 1) % n_vehicles
        actions[k] = v * rules.N_RULES + genes[k] % rules.N_RULES
        batch.apply_rule(problem, state, b, v, genes[k] % rules.N_RULES)
        k += 1
    return k


@inner_kernel
def score_episode(problem, state, b, cost_limit, style):
    """Return what the search minimises, s: the objective, a little of the mean finish, and a penalty.

    The mean finish leads across the plateaus of the objective; a cost at or above the limit adds more the
    larger it is.
    """
    if state.episode[b].phase != S.FINISHED:
        return np.inf
    n = problem.instance[state.episode[b].instance].n_tasks
    total = 0.0
    for task in range(n):
        total += np.float64(state.task[b, task].finish)
    score = state.outcome[b, S.OUTCOME_VALUE] / style.scale + style.mean_weight * total / n
    excess = (state.outcome[b, S.OUTCOME_COST] - cost_limit) / style.cost_scale
    if excess >= 0.0:
        score += LATE_PENALTY + LATE_WEIGHT * excess
    return score


@inner_kernel
def change_genes(genes, is_open, used, n_genes, key, step, most_changes):
    """Change one gene or a few, by draws 0 to 2 * most_changes of an annealing step.

    A decision without alternatives passes its change on to the next that has some. `genes`, of which `used`
    were read, is modified: whole numbers below `n_genes`.
    """
    n_changes = 1 + np.int64(most_changes * random.draw_uniform(key, step, 0) ** 2)
    for k in range(n_changes):
        place = min(np.int64(used * random.draw_uniform(key, step, 2 * k + 1)), used - 1)
        tries = 0
        while not is_open[place] and tries < used:
            place = (place + 1) % used
            tries += 1
        genes[place] = np.int64(random.draw_uniform(key, step, 2 * k + 2) * n_genes)


@kernel
def anneal_actions(problem, state, instance, key, style, n_steps, cost_limit, start, found):
    """Anneal the action sequence of one instance; keep the best, see `Found`.

    Parameters
    ----------
    state : State, row 0 is used
    instance : int, row of `problem`
    key : ndarray(uint64, (4,)), stream of the draws
    n_steps : int, episodes to play
    cost_limit : float, the cost of a kept sequence is below it where that is within reach
    start : ndarray(int64, (n,)), actions to begin with, the others are drawn
    found : Found, output
    """
    n_max = len(found.actions)
    n_genes = problem.instance[instance].n_vehicles * rules.N_RULES
    genes = np.empty(n_max, np.int64)
    candidate = np.empty(n_max, np.int64)
    actions = np.empty(n_max, np.int64)
    is_open = np.zeros(n_max, np.bool_)
    was_open = np.zeros(n_max, np.bool_)
    for k in range(n_max):
        genes[k] = np.int64(random.draw_uniform(key, 0, k) * n_genes)
    for k in range(len(start)):
        genes[k] = start[k]
    used = play_genes(problem, state, 0, instance, genes, actions, is_open)
    current = score_episode(problem, state, 0, cost_limit, style)
    search.clear_found(found)
    best = found.outcome
    for step in range(1, n_steps + 1):
        heat = 1.0 - step / n_steps
        temperature = COLDEST + style.heat * heat * heat
        candidate[:] = genes
        change_genes(candidate, is_open, used, n_genes, key, step, style.most_changes)
        n = play_genes(problem, state, 0, instance, candidate, actions, was_open)
        score = score_episode(problem, state, 0, cost_limit, style)
        outcome = state.outcome[0]
        is_cheaper = outcome[S.OUTCOME_COST] < min(best[S.OUTCOME_COST], cost_limit)
        is_tie = is_cheaper and outcome[S.OUTCOME_VALUE] == best[S.OUTCOME_VALUE]
        is_over = state.episode[0].phase == S.FINISHED
        if is_over and (is_tie or search.is_better(found, outcome, cost_limit)):
            search.copy_outcome(outcome, found)
            found.actions[:] = -1
            found.actions[:n] = actions[:n]
        if search.is_accepted(score, current, temperature, key, step, ACCEPT_DRAW):
            genes[:] = candidate
            is_open[:] = was_open
            current = score
            used = n
