"""Tasks that follow others, the machines between them, and tasks that are known before they are ready.

A task that may not be given yet, though its chain has begun, is expected. It is known once it is in the pool,
and ready once it may be loaded.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion.commitment import append_waiting
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def find_known(problem, i, task, ready):
    """Return the tick from which a task may be given, if nothing but its own lead holds it back."""
    lead = problem.lead[i, task].announced
    return np.int64(np.ceil(ready - lead)) if lead < np.inf else np.int64(0)


@inner_kernel
def find_root(problem, i, task):
    """Return the first task of a task's chain."""
    while problem.chain[i, task].after >= 0:
        task = problem.chain[i, task].after
    return task


@kernel
def plan_arrivals(problem, i, first):
    """Write from when on the tasks of instance i may be given that follow none, and when rows are looked at.

    Rows from `first` on. A task is looked at no later than those after it, and than the one it follows.
    """
    tick = S.NEVER
    for task in range(problem.instance[i].n_tasks - 1, first - 1, -1):
        root = find_root(problem, i, np.int64(task))
        arrival = problem.record[i, root].arrival
        known = np.int64(np.ceil(arrival))
        if problem.lead[i, root].announced < np.inf:
            known = max(np.int64(0), find_known(problem, i, root, arrival))
        problem.chain[i, task].known = known
        tick = min(tick, known)
        problem.arrival_tick[i, task] = tick


@inner_kernel
def expect_task(state, b, task, known):
    """Put a task at the end of those that are expected."""
    state.job[b, task].known = known
    state.expected[b, state.episode[b].n_expected] = task
    state.episode[b].n_expected += 1


@inner_kernel
def plan_followers(problem, state, b, task, begins, ends):
    """Write when those are ready that follow a task, as its processing begins; and when they are known."""
    i = state.episode[b].instance
    state.job[b, task].done = ends
    for k in range(state.episode[b].n_expected):
        other = state.expected[b, k]
        if problem.chain[i, other].after == task:
            ready = max(problem.record[i, other].arrival, np.float64(ends))
            state.ready[b, other] = ready
            known = find_known(problem, i, other, ready)
            state.job[b, other].known = max(begins, known)


@S.unless_auxiliary()
def queue_task(problem, state, b, task, tick):
    """Let a task that is delivered queue at its machine; what needs none is done at once."""
    i = state.episode[b].instance
    if problem.chain[i, task].machine < 0:
        plan_followers(problem, state, b, task, tick, tick)
        return
    state.job[b, task].done = S.NEVER
    state.processed[b, state.episode[b].n_processed] = task
    state.episode[b].n_processed += 1


@inner_kernel
def run_machines(problem, state, b, tick):
    """Let processing end at a tick, then free servers take what was delivered first."""
    i = state.episode[b].instance
    left = 0
    for k in range(state.episode[b].n_processed):
        task = state.processed[b, k]
        if state.job[b, task].done > tick:
            state.processed[b, left] = task
            left += 1
    state.episode[b].n_processed = left
    for k in range(left):
        task = state.processed[b, k]
        if state.job[b, task].done < S.NEVER:
            continue
        machine = problem.chain[i, task].machine
        free = problem.servers[i, machine]
        for j in range(left):
            other = state.processed[b, j]
            works = state.job[b, other].done < S.NEVER
            free -= works and problem.chain[i, other].machine == machine
        if free > 0:
            ends = tick + problem.chain[i, task].processing
            plan_followers(problem, state, b, task, tick, ends)


@inner_kernel
def release_tasks(problem, state, b, tick):
    """Put those tasks into the pool that are known at a tick: what was expected, then arrivals.

    Return whether there are any.
    """
    i = state.episode[b].instance
    left, opens = 0, False
    for k in range(state.episode[b].n_expected):
        task = state.expected[b, k]
        if state.job[b, task].known <= tick:
            state.waiting_since[b, task] = state.ready[b, task]
            append_waiting(problem, state, b, task)
            opens = True
        else:
            state.expected[b, left] = task
            left += 1
    state.episode[b].n_expected = left
    n = state.episode[b].n_arrived
    while n < problem.instance[i].n_tasks and problem.arrival_tick[i, n] <= tick:
        if problem.chain[i, n].after >= 0:
            expect_task(state, b, n, S.NEVER)
        else:
            ready = problem.record[i, n].arrival
            state.ready[b, n] = state.waiting_since[b, n] = ready
            known = problem.chain[i, n].known
            if known <= tick:
                append_waiting(problem, state, b, n)
                opens = True
            else:
                expect_task(state, b, n, known)
        n += 1
    state.episode[b].n_arrived = n
    return opens


@S.unless_auxiliary(False)
def go_on(problem, state, b, tick):
    """Let machines go on, then tasks wait that are known at a tick; return whether there are any."""
    run_machines(problem, state, b, tick)
    return release_tasks(problem, state, b, tick)


@S.unless_auxiliary(0.0)
def find_done(problem, state, b, task):
    """Return when the processing of a delivered task ends."""
    return np.float64(state.job[b, task].done)


@S.unless_auxiliary(S.NEVER)
def find_chain_tick(problem, state, b):
    """Return the tick at which a machine is done next or an expected task is known, `NEVER` for none."""
    tick = S.NEVER
    for k in range(state.episode[b].n_expected):
        tick = min(tick, state.job[b, state.expected[b, k]].known)
    for k in range(state.episode[b].n_processed):
        tick = min(tick, state.job[b, state.processed[b, k]].done)
    return tick


@inner_kernel
def find_machine_busy(problem, state, b, task):
    """Return the seconds that a delivery of a task now would queue at its machine, servers shared evenly."""
    i, now = state.episode[b].instance, state.episode[b].time
    machine = problem.chain[i, task].machine
    if machine < 0:
        return 0.0
    ticks = np.int64(0)
    for k in range(state.episode[b].n_processed):
        other = state.processed[b, k]
        if problem.chain[i, other].machine == machine:
            done = state.job[b, other].done
            own = problem.chain[i, other].processing
            ticks += own if done == S.NEVER else done - now
    return np.float64(ticks) / np.float64(problem.servers[i, machine])
