"""Search for the best action sequence of an episode whose future is known.

Two searches that err differently: a beam over partial schedules, and simulated annealing of whole
action strings. Both play the exact simulator; neither proves a bound.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.events import advance_events, assign_task, has_choice, start_episode
from acerl_np.kernels.random import SEARCH, derive_key, draw_uniform
from acerl_np.kernels.rollout import apply_action
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import (
    ENDS_DELIVERY,
    ENDS_PICKUP,
    EPISODE_INSTANCE,
    EPISODE_N_ARRIVED,
    EPISODE_PHASE,
    EPISODE_POOL_SIZE,
    EPISODE_TIME,
    FINISHED,
    IDLE,
    INSTANCE_LAYOUT,
    INSTANCE_N_TASKS,
    INSTANCE_N_VEHICLES,
    OUTCOME_MAKESPAN,
    OUTCOME_TARDINESS,
    RECORD_ARRIVAL,
    RECORD_EXPIRY,
    RUNNING,
    TASK_FINISH,
    TASK_VEHICLE,
    VEHICLE_BREAKDOWN_AT,
    VEHICLE_EVENT_TICK,
    VEHICLE_HALTED_TOWARDS,
    VEHICLE_SITE,
    VEHICLE_STATUS,
    VEHICLE_TASK,
    copy_row,
)
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def has_alternatives(problem, state, b):
    """Whether the decision of episode b could assign more than one (vehicle, task) pair."""
    if state.episode[b, EPISODE_POOL_SIZE] > 1:
        return True
    n = 0
    for v in range(problem.instance[state.episode[b, EPISODE_INSTANCE], INSTANCE_N_VEHICLES]):
        if has_choice(problem, state, b, v):
            n += 1
    return n > 1


@inner_kernel
def play_genes(problem, state, b, instance, genes, actions, is_open):
    """Play row b by a gene string and write the actions taken; return their number.

    Gene k is the action that decision k would take; where its vehicle has no choice, the next
    vehicle that has one acts by the same rule.
    """
    start_episode(problem, state, b, instance)
    n_vehicles = problem.instance[instance, INSTANCE_N_VEHICLES]
    k = 0
    while state.episode[b, EPISODE_PHASE] == RUNNING and k < len(actions):
        is_open[k] = has_alternatives(problem, state, b)
        v = genes[k] // N_RULES
        while not has_choice(problem, state, b, v):
            v = (v + 1) % n_vehicles
        actions[k] = v * N_RULES + genes[k] % N_RULES
        apply_action(problem, state, b, actions[k])
        k += 1
    return k


@inner_kernel
def score_episode(problem, state, b, cost_limit, mean_weight):
    """Return what the search minimises: makespan, a little of the mean finish, and a penalty.

    The mean finish leads across the plateaus of the makespan; a tardiness at or above the limit
    costs more the larger it is.
    """
    if state.episode[b, EPISODE_PHASE] != FINISHED:
        return np.inf
    n = problem.instance[state.episode[b, EPISODE_INSTANCE], INSTANCE_N_TASKS]
    total = 0.0
    for task in range(n):
        total += np.float64(state.task[b, task, TASK_FINISH])
    score = state.outcome[b, OUTCOME_MAKESPAN] + mean_weight * total / n
    excess = state.outcome[b, OUTCOME_TARDINESS] - cost_limit
    if excess >= 0.0:
        score += 20.0 + 10.0 * excess
    return score


@kernel
def anneal_actions(
    problem, state, instance, seed, content, chain, n_steps, cost_limit, best_actions, outcome
):
    """Anneal the action sequence of one instance; keep the best that is within the limit.

    Chains differ in their draws and, odd from even, in how they move: no setting was best on all of
    the bundled records.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is used.
    instance : int
        Row of `problem`.
    seed, content, chain : int
        Key of the search's draws.
    n_steps : int
        Episodes to play.
    cost_limit : float
        s; the tardiness of a kept sequence is below it.
    best_actions : ndarray(int32, (n_max,))
        Output: the best sequence, -1 after its end.
    outcome : ndarray(float64, (2,))
        Output: its makespan and tardiness, s; inf if none was within the limit.
    """
    n_max = len(best_actions)
    most_changes = 6.0 if chain % 2 == 0 else 4.0
    mean_weight = 0.1 if chain % 2 == 0 else 0.3
    key = np.empty(4, np.uint32)
    derive_key(seed, SEARCH, content, chain, key)
    n_genes = problem.instance[instance, INSTANCE_N_VEHICLES] * N_RULES
    genes = np.empty(n_max, np.int32)
    candidate = np.empty(n_max, np.int32)
    actions = np.empty(n_max, np.int32)
    is_open = np.zeros(n_max, np.bool_)
    was_open = np.zeros(n_max, np.bool_)
    for k in range(n_max):
        genes[k] = np.int32(draw_uniform(key, 0, k) * n_genes)
    used = play_genes(problem, state, 0, instance, genes, actions, is_open)
    current = score_episode(problem, state, 0, cost_limit, mean_weight)
    outcome[0] = np.inf
    outcome[1] = np.inf
    for step in range(1, n_steps + 1):
        heat = 1.0 - step / n_steps
        temperature = 0.2 + 12.0 * heat * heat
        candidate[:] = genes
        n_changes = 1 + np.int64(most_changes * draw_uniform(key, step, 0) ** 2)
        for k in range(n_changes):
            place = min(np.int64(used * draw_uniform(key, step, 2 * k + 1)), used - 1)
            # A decision without alternatives passes its change on to the next that has some.
            tries = 0
            while not is_open[place] and tries < used:
                place = (place + 1) % used
                tries += 1
            candidate[place] = np.int32(draw_uniform(key, step, 2 * k + 2) * n_genes)
        n = play_genes(problem, state, 0, instance, candidate, actions, was_open)
        score = score_episode(problem, state, 0, cost_limit, mean_weight)
        makespan, tardiness = (
            state.outcome[0, OUTCOME_MAKESPAN],
            state.outcome[0, OUTCOME_TARDINESS],
        )
        better = makespan < outcome[0] or (makespan == outcome[0] and tardiness < outcome[1])
        if state.episode[0, EPISODE_PHASE] == FINISHED and tardiness < cost_limit and better:
            outcome[0] = makespan
            outcome[1] = tardiness
            best_actions[:] = -1
            best_actions[:n] = actions[:n]
        accept = score <= current
        if not accept:
            accept = draw_uniform(key, step, 99) < np.exp((current - score) / temperature)
        if accept:
            genes[:] = candidate
            is_open[:] = was_open
            current = score
            used = n


@inner_kernel
def estimate_rest(problem, state, b, approach, delay_weight, most_delay):
    """Estimate how much a partial schedule will cost; smaller is better, inf if it is too late already.

    The vehicles' clocks, plus the loaded ways and `approach` metres of empty way for every task not
    yet assigned, plus `delay_weight` times the delay that is certain or likely by now.
    """
    i = state.episode[b, EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, INSTANCE_LAYOUT]]
    now = np.float64(state.episode[b, EPISODE_TIME])
    estimate = 0.0
    for v in range(problem.instance[i, INSTANCE_N_VEHICLES]):
        idle = state.vehicle[b, v, VEHICLE_STATUS] == IDLE
        estimate += now if idle else np.float64(state.vehicle[b, v, VEHICLE_EVENT_TICK])
    delay = 0.0
    for task in range(problem.instance[i, INSTANCE_N_TASKS]):
        v = state.task[b, task, TASK_VEHICLE]
        rest = (
            distance[problem.ends[i, task, ENDS_PICKUP], problem.ends[i, task, ENDS_DELIVERY]]
            + approach
        )
        if v < 0:
            estimate += rest
        if task < state.episode[b, EPISODE_N_ARRIVED]:
            if v < 0:
                finish = now + rest
            elif state.vehicle[b, v, VEHICLE_TASK] == task:
                finish = np.float64(state.vehicle[b, v, VEHICLE_EVENT_TICK])
            else:
                finish = np.float64(state.task[b, task, TASK_FINISH])
            delay += max(
                0.0,
                finish
                - (
                    problem.record[i, task, RECORD_ARRIVAL] + problem.record[i, task, RECORD_EXPIRY]
                ),
            )
    return np.inf if delay >= most_delay else estimate + delay_weight * delay


@inner_kernel
def mix_hash(h, x):
    """Mix the integer x into the hash h (the finaliser of splitmix64)."""
    z = np.uint64(h) ^ np.uint64(x)
    z = np.uint64(z * np.uint64(0x9E3779B97F4A7C15))
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    return np.uint64(z ^ (z >> np.uint64(27)))


@inner_kernel
def hash_row(problem, state, b):
    """Hash what decides the rest of an episode: clock, waiting tasks as a set, vehicles."""
    h = mix_hash(np.uint64(1), state.episode[b, EPISODE_TIME])
    waiting = np.uint64(0)
    for k in range(state.episode[b, EPISODE_POOL_SIZE]):
        waiting = np.uint64(waiting + mix_hash(np.uint64(2), state.pool[b, k]))
    h = mix_hash(h, waiting)
    for v in range(problem.instance[state.episode[b, EPISODE_INSTANCE], INSTANCE_N_VEHICLES]):
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_STATUS])
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_SITE])
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_TASK] + 1)
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_EVENT_TICK])
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_HALTED_TOWARDS] + 1)
        h = mix_hash(h, state.vehicle[b, v, VEHICLE_BREAKDOWN_AT])
    return h


@inner_kernel
def is_new(table, h):
    """Enter h into an open-addressing table; return False if it stands there already."""
    size = np.uint64(len(table))
    place = h % size
    while table[place] != np.uint64(0):
        if table[place] == h:
            return False
        place = (place + np.uint64(1)) % size
    table[place] = h
    return True


@kernel
def search_beam(
    problem,
    parents,
    children,
    instance,
    cost_limit,
    approach,
    delay_weight,
    origin,
    taken,
    estimates,
    hashes,
    child_of,
    child_action,
    table,
    best_actions,
    outcome,
):
    """Search the best action sequence of one instance by a beam over partial schedules.

    All partial schedules of a level have taken the same number of decisions. Of those that agree in
    `hash_row` the one of smallest estimate stays; of the rest the W best.

    Parameters
    ----------
    problem : Problem
    parents, children : State
        W rows each, and one more in `children` to try an action in.
    instance : int
        Row of `problem`.
    cost_limit : float
        s; the tardiness of a kept sequence is below it.
    approach : float
        m, see `estimate_rest`.
    delay_weight : float
    origin, taken : ndarray(int32, (n_levels, W))
        Scratch: parent and action of every partial schedule.
    estimates : ndarray(float64, (n,)); hashes : ndarray(uint64, (n,))
    child_of, child_action : ndarray(int32, (n,))
        Scratch for the children of a level; those beyond n are dropped.
    table : ndarray(uint64, (4 W,))
        Scratch.
    best_actions : ndarray(int32, (n_levels,))
        Output: the best sequence, -1 after its end.
    outcome : ndarray(float64, (2,))
        Output: its makespan and tardiness, s; inf if none was within the limit.
    """
    width = origin.shape[1]
    n_levels = origin.shape[0]
    most_delay = cost_limit * problem.instance[instance, INSTANCE_N_TASKS]
    outcome[0] = np.inf
    outcome[1] = np.inf
    start_episode(problem, parents, 0, instance)
    n = 1
    for level in range(n_levels):
        n_children = 0
        for b in range(n):
            for v in range(problem.instance[instance, INSTANCE_N_VEHICLES]):
                if not has_choice(problem, parents, b, v):
                    continue
                for rule in range(N_RULES):
                    position = select_task(problem, parents, b, v, rule)
                    repeated = False
                    for other in range(rule):
                        if select_task(problem, parents, b, v, other) == position:
                            repeated = True
                    if repeated or n_children >= len(estimates):
                        continue
                    copy_row(parents, b, children, width)
                    assign_task(problem, children, width, v, position)
                    advance_events(problem, children, width)
                    action = v * N_RULES + rule
                    if children.episode[width, EPISODE_PHASE] != RUNNING:
                        makespan, tardiness = (
                            children.outcome[width, OUTCOME_MAKESPAN],
                            children.outcome[width, OUTCOME_TARDINESS],
                        )
                        if tardiness < cost_limit and makespan < outcome[0]:
                            outcome[0] = makespan
                            outcome[1] = tardiness
                            best_actions[:] = -1
                            best_actions[level] = action
                            row = b
                            for back in range(level - 1, -1, -1):
                                best_actions[back] = taken[back, row]
                                row = origin[back, row]
                        continue
                    estimate = estimate_rest(
                        problem, children, width, approach, delay_weight, most_delay
                    )
                    if estimate < np.inf:
                        estimates[n_children] = estimate
                        hashes[n_children] = hash_row(problem, children, width)
                        child_of[n_children] = b
                        child_action[n_children] = action
                        n_children += 1
        order = np.argsort(estimates[:n_children], kind="mergesort")
        table[:] = np.uint64(0)
        n = 0
        for k in order:
            if n == width:
                break
            if is_new(table, hashes[k]):
                b, action = child_of[k], child_action[k]
                copy_row(parents, b, children, n)
                apply_action(problem, children, n, action)
                origin[level, n] = b
                taken[level, n] = action
                n += 1
        parents, children = children, parents
        if n == 0:
            return
