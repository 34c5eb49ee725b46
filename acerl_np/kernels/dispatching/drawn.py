"""Policies without parameters: dispatching rules, random ones, and past assignments."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import rules
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import commitment, offers
from acerl_np.support.compiled import inner_kernel, kernel

MIX, RANDOM = 6, 7
"""Policies besides the rules of `rules.py`: a random rule, and a random task."""


@inner_kernel
def count_choices(problem, state, b):
    """Return how many vehicles have a choice."""
    n = 0
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if offers.has_choice(problem, state, b, v):
            n += 1
    return n


@inner_kernel
def choose_vehicle(problem, state, b, uniform):
    """Return one of the vehicles that have a choice, alike probable, by a number in [0, 1); -1 for none."""
    k = int(uniform * count_choices(problem, state, b))
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if offers.has_choice(problem, state, b, v):
            if k == 0:
                return v
            k -= 1
    return -1


@inner_kernel
def choose_task(problem, state, b, v, uniform):
    """Return the position of a waiting task that v is offered, all alike probable, by a number in [0, 1)."""
    priority = offers.find_priority(problem, state, b, v)
    n = 0
    for k in range(state.episode[b].pool_size):
        n += offers.is_offered(problem, state, b, v, state.pool[b, k], priority)
    k = int(uniform * n)
    for position in range(state.episode[b].pool_size):
        if offers.is_offered(problem, state, b, v, state.pool[b, position], priority):
            if k == 0:
                return position
            k -= 1
    return -1


@inner_kernel
def decide_by_rule(problem, state, b, decider, row, key, decision):
    """Decide as `deciders.decide`, by a rule.

    The vehicle is drawn uniformly from those that have a choice; draw (decision, 0) of the stream
    picks it, draw (decision, 1) the rule of MIX and the task of RANDOM.
    """
    v = choose_vehicle(problem, state, b, random.draw_uniform(key, decision, np.int64(0)))
    if v < 0:
        return np.int64(-1), np.int64(-1), np.int64(-1)
    rule = decider.rule
    if rule == RANDOM:
        uniform = random.draw_uniform(key, decision, np.int64(1))
        return np.int64(v), np.int64(choose_task(problem, state, b, v, uniform)), np.int64(rule)
    used = np.int64(rule)
    if rule == MIX:
        used = np.int64(random.draw_uniform(key, decision, np.int64(1)) * rules.N_RULES)
    return np.int64(v), np.int64(rules.select_task(problem, state, b, v, used)), used


@inner_kernel
def assign_due(problem, state, b, order, bounds, start_tick, head):
    """Let every free vehicle without a task begin its next recorded one if that is due and waits.

    Parameters
    ----------
    order, bounds, start_tick, head
        As of `play_assignments`; `head` is modified.

    Returns
    -------
    int
        Tick at which the next recorded task of a free vehicle is due, `NEVER` if there is none.
    """
    now = state.episode[b].time
    next_tick = S.NEVER
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if not offers.is_free(state, b, v) or state.vehicle[b, v].task >= 0:
            continue
        # A task that it has had is finished, or a breakdown has taken it off the vehicle.
        while head[v] < bounds[v + 1] and state.task[b, order[head[v]]].vehicle == v:
            head[v] += 1
        if head[v] == bounds[v + 1]:
            continue
        task = order[head[v]]
        if start_tick[task] > now:
            next_tick = min(next_tick, start_tick[task])
        else:
            position = commitment.find_waiting(state, b, task)
            if position >= 0:
                commitment.assign_task(problem, state, b, v, position)
    return next_tick


@kernel
def play_assignments(problem, state, instance, order, bounds, start_tick, head):
    """Play one episode by recorded assignments, in row 0 of `state`.

    Each vehicle serves its tasks in the recorded order; an assignment happens at the first tick, not
    before the recorded one, at which the vehicle is idle and the task waits. A task whose vehicle
    breaks down is served again by that vehicle, before its other tasks.

    Parameters
    ----------
    state : State, output: row 0 holds the finished episode. Its breakdown key must be set.
    instance : int, row of `problem`
    order : ndarray(int64, (n_tasks,)), the tasks of vehicle 0 in its order, then those of vehicle 1, ..
    bounds : ndarray(int64, (n_vehicles + 1,)), the tasks of vehicle v are order[bounds[v]:bounds[v + 1]]
    start_tick : ndarray(int64, (n_tasks,)), recorded start of each task
    head : ndarray(int64, (n_vehicles,)), scratch: where each vehicle is in `order`
    """
    for v in range(len(head)):
        head[v] = bounds[v]
    # No assignment is possible before the first decision: no task waits for a vehicle that is free.
    events.start_episode(problem, state, 0, instance)
    while state.episode[0].phase == S.RUNNING:
        due = assign_due(problem, state, 0, order, bounds, start_tick, head)
        events.pass_tick(problem, state, 0, due)
