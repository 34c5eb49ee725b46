"""Policies without a network, played in the same lockstep: dispatching rules, random ones, fixed plans."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.compiled import inner_kernel, kernel
from acerl_np.kernels.events import advance_events, assign_task, has_choice, start_episode
from acerl_np.kernels.random import draw_uniform
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import (
    INSTANCE,
    MAKESPAN,
    N_DECISIONS,
    N_VEHICLES,
    PHASE,
    POOL_SIZE,
    RUNNING,
    TARDINESS,
    may_carry,
)

MIX, RANDOM = 6, 7
"""Policies besides the rules of `rules.py`: a random rule, and a random task."""


@inner_kernel
def choose_vehicle(problem, state, b, uniform):
    """Return one of the vehicles that have a choice, each with the same probability."""
    n_vehicles = problem.instance[state.episode[b, INSTANCE], N_VEHICLES]
    n = 0
    for v in range(n_vehicles):
        if has_choice(problem, state, b, v):
            n += 1
    k = int(uniform * n)
    for v in range(n_vehicles):
        if has_choice(problem, state, b, v):
            if k == 0:
                return v
            k -= 1
    return -1


@inner_kernel
def choose_task(problem, state, b, v, uniform):
    """Return the position of one of the waiting tasks that v may carry, each equally probable."""
    i = state.episode[b, INSTANCE]
    n = 0
    for k in range(state.episode[b, POOL_SIZE]):
        if may_carry(problem, i, v, state.pool[b, k]):
            n += 1
    k = int(uniform * n)
    for position in range(state.episode[b, POOL_SIZE]):
        if may_carry(problem, i, v, state.pool[b, position]):
            if k == 0:
                return position
            k -= 1
    return -1


@inner_kernel
def pick_by_rule(problem, state, b, rule, key, decision):
    """Return what a rule would do: vehicle, position of its task in the pool, and the rule used.

    The vehicle is drawn uniformly from those that have a choice; draw (decision, 0) of the stream
    picks it, draw (decision, 1) the rule of MIX and the task of RANDOM. -1 three times when no vehicle
    has a choice.
    """
    v = choose_vehicle(problem, state, b, draw_uniform(key, decision, np.int64(0)))
    if v < 0:
        return np.int64(-1), np.int64(-1), np.int64(-1)
    if rule == RANDOM:
        uniform = draw_uniform(key, decision, np.int64(1))
        return np.int64(v), np.int64(choose_task(problem, state, b, v, uniform)), np.int64(rule)
    used = np.int64(rule)
    if rule == MIX:
        used = np.int64(draw_uniform(key, decision, np.int64(1)) * N_RULES)
    return np.int64(v), np.int64(select_task(problem, state, b, v, used)), used


@inner_kernel
def decide_by_rule(problem, state, b, rule, key):
    """Take one decision of episode b by a rule, and advance it."""
    v, position, _ = pick_by_rule(problem, state, b, rule, key, state.episode[b, N_DECISIONS])
    assign_task(problem, state, b, v, position)
    advance_events(problem, state, b)


@kernel
def play_rules(problem, state, rule, instances, keys, first, last, makespan, tardiness, decisions):
    """Play episodes first to last - 1 by one rule, in lockstep tiles.

    Parameters
    ----------
    problem : Problem
    state : State
    rule : int
        A rule of `rules.py`, MIX or RANDOM.
    instances : ndarray(int64, (n_episodes,))
    keys : ndarray(uint32, (n_episodes, 4))
        Streams of the draws.
    makespan, tardiness : ndarray(float64, (n_episodes,))
        Output, s; nan for an episode that cannot end.
    decisions : ndarray(int64, (n_episodes,))
        Output.
    """
    tile = len(state.episode)
    episode = first
    while episode < last:
        n_tile = min(tile, last - episode)
        for b in range(n_tile):
            start_episode(problem, state, b, instances[episode + b])
        running = True
        while running:
            running = False
            for b in range(n_tile):
                if state.episode[b, PHASE] == RUNNING:
                    decide_by_rule(problem, state, b, rule, keys[episode + b])
                    running = True
        for b in range(n_tile):
            makespan[episode + b] = state.outcome[b, MAKESPAN]
            tardiness[episode + b] = state.outcome[b, TARDINESS]
            decisions[episode + b] = state.episode[b, N_DECISIONS]
        episode += n_tile


@kernel
def play_plans(
    problem, state, instances, orders, rules, first, last, makespan, tardiness, decisions
):
    """Play episodes first to last - 1 by static plans: the first vehicle in order acts by its rule.

    Parameters not named here are those of `play_rules`; one row of `state` is used.

    Parameters
    ----------
    orders : ndarray(int32, (n_episodes, n_vehicles))
        Vehicles, the preferred one first.
    rules : ndarray(int32, (n_episodes, n_vehicles))
        The rule of each vehicle.
    """
    for episode in range(first, last):
        i = instances[episode]
        start_episode(problem, state, 0, i)
        while state.episode[0, PHASE] == RUNNING:
            for k in range(orders.shape[1]):
                v = orders[episode, k]
                if v < problem.instance[i, N_VEHICLES] and has_choice(problem, state, 0, v):
                    position = select_task(problem, state, 0, v, rules[episode, v])
                    assign_task(problem, state, 0, v, position)
                    break
            advance_events(problem, state, 0)
        makespan[episode] = state.outcome[0, MAKESPAN]
        tardiness[episode] = state.outcome[0, TARDINESS]
        decisions[episode] = state.episode[0, N_DECISIONS]
