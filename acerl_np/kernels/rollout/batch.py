"""Rows of a simulator: started, advanced by actions or assignments, and seen."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import observation, rules
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import commitment, offers
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def apply_rule(problem, state, b, v, rule):
    """Let the idle vehicle v of episode b take what a rule picks; advance to its next decision."""
    commitment.assign_task(problem, state, b, v, rules.select_task(problem, state, b, v, rule))
    events.advance_events(problem, state, b)


@kernel
def advance_batch(problem, state, rows, restart, choices, view):
    """Restart some rows or take one decision in each that still runs; write what is seen then.

    Parameters
    ----------
    rows : ndarray(int64, (n,)), the rows concerned, all else stays as it is
    choices : ndarray(int64, (n,))
        Instances to restart on, or legal actions; those of rows that are over are ignored.
    """
    for k in range(len(rows)):
        b = rows[k]
        if restart:
            events.start_episode(problem, state, b, choices[k])
        elif state.episode[b].phase == S.RUNNING:
            action, n_rules = choices[k], len(view.rules)
            apply_rule(problem, state, b, action // n_rules, view.rules[action % n_rules])
        observation.write_view(problem, state, b, view)


@kernel
def find_impossible(problem, state, rows, vehicles, tasks):
    """Return the first of some rows' positions whose assignment is impossible, -1 if there is none.

    Parameters
    ----------
    rows : ndarray(int64, (n,)), the rows concerned
    vehicles, tasks : ndarray(int64, (n,))
        -1 both lets all wait; those of rows that are over are ignored.
    """
    for k in range(len(rows)):
        b, v, task = rows[k], vehicles[k], tasks[k]
        if state.episode[b].phase != S.RUNNING:
            continue
        if v == -1 and task == -1 and offers.may_wait(problem, state, b):
            continue
        i = state.episode[b].instance
        known = 0 <= v < problem.instance[i].n_vehicles
        if not known or commitment.find_waiting(state, b, task) < 0:
            return k
        priority = offers.find_priority(problem, state, b, v)
        offered = offers.is_offered(problem, state, b, v, task, priority)
        if not offered or not offers.is_free(state, b, v):
            return k
    return -1


@kernel
def assign_batch(problem, state, rows, vehicles, tasks, view):
    """Carry out a possible assignment, or wait, in each of some rows that runs; write what is seen then.

    Parameters
    ----------
    rows : ndarray(int64, (n,)), the rows concerned, all else stays as it is
    vehicles, tasks : ndarray(int64, (n,)), as of `find_impossible`
    """
    for k in range(len(rows)):
        b = rows[k]
        if state.episode[b].phase == S.RUNNING:
            position = commitment.find_waiting(state, b, tasks[k])
            commitment.take_decision(problem, state, b, vehicles[k], position)
            events.advance_events(problem, state, b)
            observation.write_view(problem, state, b, view)


@kernel
def list_pairs(problem, state, tasks, pairs):
    """Write the task in each slot of every row, and which vehicle may take it; none once a row is over.

    Parameters
    ----------
    tasks : ndarray(int64, (B, slots)), output: 0 in empty slots
    pairs : ndarray(bool, (B, n_vehicles, slots)), output
    """
    n_slots = tasks.shape[1]
    tasks[:] = 0
    pairs[:] = False
    for b in range(len(tasks)):
        i = state.episode[b].instance
        if state.episode[b].phase != S.RUNNING:
            continue
        for v in range(problem.instance[i].n_vehicles):
            free = offers.is_free(state, b, v)
            priority = offers.find_priority(problem, state, b, v)
            for k in range(state.episode[b].pool_size):
                task = state.pool[b, k]
                own = np.int64(problem.record[i, task].slot)
                slot = own - 1 if own > 0 else k
                if slot < n_slots:
                    tasks[b, slot] = task
                    offered = offers.is_offered(problem, state, b, v, task, priority)
                    pairs[b, v, slot] = free and offered


@kernel
def list_waits(problem, state, waits):
    """Write which rows may wait (ndarray(bool, (B,)), output): a decision is due, and may be left open."""
    for b in range(len(waits)):
        runs = state.episode[b].phase == S.RUNNING
        waits[b] = runs and offers.may_wait(problem, state, b)
