"""What becomes of the tasks that a dispatcher knows: its policy plays futures of the situation."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import copy_records
from acerl_np.kernels.episode import events
from acerl_np.kernels.rollout import futures, variation
from acerl_np.support.compiled import inner_kernel, large_kernel

GIVEN_UP = np.int64(7 * 86_400)
"""Seconds after the last task that is known to come at which what is not delivered counts as never: where no
battery can serve a task, vehicles may do no more than run empty and be towed."""


@large_kernel
def begin_forecast(problem, state, b, ahead, latest):
    """Weigh the history and write what all futures share; arrivals reach at least to `latest`.

    Parameters
    ----------
    ahead : Ahead, its key is set
    latest : float, s, when the last of those tasks arrives that are known and still to come
    """
    ahead.reach[0] = max(futures.find_reach(problem, state, b, ahead), latest)
    futures.weigh_history(problem, state, b, ahead)
    futures.write_present(problem, state, b, ahead)


@inner_kernel
def place_planned(ahead, record, ends, rows):
    """Add tasks that are known to come, by arrival, to the future at hand; write the row of each.

    Parameters
    ----------
    record, ends
        As of `play_forecast`.
    rows : ndarray(int64, (n,)), output
    """
    future = ahead.future
    n = future.instance[0].n_tasks
    for k in range(len(record)):
        arrival = record[k].arrival
        copy_records(record, k, future.record[0], n, 1)
        copy_records(ends, k, future.ends[0], n, 1)
        # Those before it, of which none comes later, stay where they are.
        row = n
        while row > 0 and future.record[0, row - 1].arrival > arrival:
            row -= 1
        rows[k] = row
        variation.place_task(future, 0, n, arrival)
        if record[k].priority != 0.0:
            future.instance[0].has_priorities = 1
        n += 1
    future.instance[0].n_tasks = n


@inner_kernel
def find_finish(states, task):
    """Return the tick at which a task of the played future was or will be delivered, NEVER if unknown."""
    finish = states.task[futures.PLAYED, task].finish
    if finish > 0:
        return finish
    v = states.task[futures.PLAYED, task].vehicle
    if v < 0:
        return S.NEVER
    vehicle = states.vehicle[futures.PLAYED, v]
    tick = vehicle.event_tick
    return tick if vehicle.status == S.WORKING and vehicle.breakdown_at > tick else S.NEVER


@large_kernel
def play_forecast(problem, state, b, ahead, f, record, ends, rows, finish):
    """Play future f until all tasks that are known are delivered, or surely will be.

    Parameters
    ----------
    ahead : Ahead, as `begin_forecast` has left it
    f : int
    record : ndarray(RECORD, (n,)), tasks that are known to come, by arrival
    ends : ndarray(ENDS, (n,)), their sites
    rows : ndarray(int64, (K,)), output: the future's rows of the K known tasks: those that wait, in pool
        order, those under way by their vehicles, those that are expected, and those to come; the first
        three by their rows where tasks are called back
    finish : ndarray(float64, (K,)), output: tick of each delivery, inf where it cannot be
    """
    states, future = ahead.states, ahead.future
    futures.open_future(problem, state, b, ahead, f, futures.pick_future(ahead, f))
    last = record[-1].arrival if len(record) else 0.0
    future.instance[0].horizon = min(future.instance[0].horizon, np.int64(last) + GIVEN_UP)
    n = len(rows) - len(record)
    present = states.episode[futures.PRESENT]
    recalls = problem.instance[0].max_changes >= 0
    # What machines still do stands before what is expected, or after all of these.
    for k in range(n):
        is_open = recalls or k < n - present.n_expected
        rows[k] = k if is_open else k + present.n_processed
    place_planned(ahead, record, ends, rows[n:])
    S.copy_row(states, futures.PRESENT, states, futures.PLAYED)
    for k in range(n, len(rows)):  # what the last future has left there
        states.task[futures.PLAYED, rows[k]].vehicle = -1
        states.task[futures.PLAYED, rows[k]].finish = 0
    first = 0
    while True:
        events.advance_events(future, states, futures.PLAYED)
        while first < len(rows) and states.task[futures.PLAYED, rows[first]].finish > 0:
            first += 1
        k = first
        while k < len(rows) and find_finish(states, rows[k]) < S.NEVER:
            k += 1
        if k == len(rows) or states.episode[futures.PLAYED].phase != S.RUNNING:
            break
        futures.play_decision(ahead, np.int64(0))
    for k in range(len(rows)):
        tick = find_finish(states, rows[k])
        finish[k] = np.float64(tick) if tick < S.NEVER else np.inf
