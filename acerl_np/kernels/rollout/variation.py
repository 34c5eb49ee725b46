"""Training records drawn anew: perturbed copies, and synthetic days made of the records' own tasks."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import copy_records, swap_records
from acerl_np.kernels.episode import chains
from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def copy_task(source, i, task, target, k, position):
    """Copy a task of instance i of one Problem to a row of another one, arrival tick included.

    Priorities count in that row from then on, if they do in instance i.
    """
    if source.instance[i].has_priorities:
        target.instance[k].has_priorities = 1
    copy_records(source.record[i], task, target.record[k], position, 1)
    copy_records(source.ends[i], task, target.ends[k], position, 1)
    target.arrival_tick[k, position] = source.arrival_tick[i, task]
    if target.chain.shape[1] == 0:
        return
    if source.chain.shape[1] == 0:
        target.chain[k, position].after = target.chain[k, position].machine = -1
        target.lead[k, position].announced = 0.0
        return
    copy_records(source.chain[i], task, target.chain[k], position, 1)
    copy_records(source.lead[i], task, target.lead[k], position, 1)


@inner_kernel
def place_task(target, k, position, arrival):
    """Give the task at `position`, the last of row k so far, its arrival, and sort it in, stably."""
    record, ticks = target.record[k], target.arrival_tick[k]
    record[position].arrival = arrival
    ticks[position] = np.int64(np.ceil(arrival))
    while position > 0 and record[position - 1].arrival > arrival:
        swap_records(record, position, position - 1)
        swap_records(target.ends[k], position, position - 1)
        ticks[position], ticks[position - 1] = ticks[position - 1], ticks[position]
        position -= 1


@kernel
def draw_noise(arrival, magnitude, uniform):
    """Return by how much an arrival, s, moves: whole seconds within +-magnitude, not below 0."""
    return max(-arrival, np.floor(uniform * (2 * magnitude + 1)) - magnitude)


@inner_kernel
def perturb_arrival(arrival, magnitude, uniform):
    """Return an arrival, s, moved by whole seconds within +-magnitude, cut at 0; one of 0 stays."""
    return arrival + draw_noise(arrival, magnitude, uniform) if arrival > 0.0 else arrival


@inner_kernel
def is_relative(source, i, other):
    """Whether records i and other are of one floor, and of parts of it that lead to each other.

    A record that can be served lies in one such part, so its first task tells which.
    """
    layout = source.instance[i].layout
    if source.instance[other].layout != layout or source.instance[other].record != other:
        return False
    own, its = source.ends[i, 0].pickup, source.ends[other, 0].pickup
    there, back = source.distance[layout, own, its], source.distance[layout, its, own]
    return there < np.inf and back < np.inf


@inner_kernel
def draw_relative(source, i, key, task, draw):
    """Return a relative of instance i, or itself, and one of its tasks, all alike probable."""
    n = 0
    for other in range(len(source.instance)):
        if is_relative(source, i, other):
            n += source.instance[other].n_tasks
    k = np.int64(random.draw_uniform(key, task, draw) * n)
    for other in range(len(source.instance)):
        if is_relative(source, i, other):
            if k < source.instance[other].n_tasks:
                return other, k
            k -= source.instance[other].n_tasks
    return i, np.int64(0)


@kernel
def draw_chains(source, i, key, target, k):
    """Fill row k of `target` with as many tasks as instance i has, or a few less: whole chains of relatives.

    The first task of each has the arrival of another one's, and those that follow it move with it.
    """
    n, n_tasks, draw = np.int64(0), source.instance[i].n_tasks, np.int64(0)
    while True:
        other, first = draw_relative(source, i, key, draw, np.int64(3))
        first = chains.find_root(source, other, first)
        end = first + 1
        while end < source.instance[other].n_tasks and source.chain[other, end].after >= 0:
            end += 1
        if n > 0 and n + end - first > n_tasks:
            break
        end = min(end, first + n_tasks)
        for task in range(first, end):
            copy_task(source, other, task, target, k, n + task - first)
            if task > first:
                target.chain[k, n + task - first].after += n - first
        other, task = draw_relative(source, i, key, draw, np.int64(4))
        task = chains.find_root(source, other, task)
        arrival = source.record[other, task].arrival
        noise = arrival - target.record[k, n].arrival
        for task in range(n + 1, n + end - first):
            moved = target.record[k, task].arrival + noise
            target.record[k, task].arrival = max(arrival, moved)
        target.record[k, n].arrival = arrival
        n += end - first
        draw += 1
    target.instance[k].n_tasks = n


@S.unless_auxiliary()
def copy_stages(source, i, target, k, n):
    """Write after n variants what row k of `target` becomes as edges of record i are closed and opened."""
    n_tasks, at = target.instance[k].n_tasks, np.int64(k)
    new = n + k * (len(target.instance) // n - 1)
    while source.instance[i].changes_at < S.NEVER:
        target.instance[at].changes_at, target.instance[at].becomes = (
            source.instance[i].changes_at,
            new,
        )
        i = source.instance[i].becomes
        S.copy_floor(source, i, target, new)
        target.instance[new].n_tasks = n_tasks
        breakdown = source.breakdown[i]
        for v in range(len(breakdown)):
            copy_records(breakdown[v], 0, target.breakdown[new, v], 0, breakdown.shape[1])
        distance = source.distance[source.instance[i].layout]
        for task in range(n_tasks):
            copy_task(target, k, task, target, new, task)
            ends, truncates = target.ends[new, task], target.instance[new].truncates
            metres = distance[ends.pickup, ends.delivery]
            target.record[new, task].loaded = S.measure_distance(metres, truncates)
        at, new = new, new + 1


@kernel
def draw_records(source, target, bases, magnitude, synthetic, seed, generation, key):
    """Fill rows of `target` with variants of records of `source`.

    Row k is record bases[k], every arrival moved by whole seconds within +-m, m drawn from 0 to
    `magnitude`; arrivals of 0 stay. Or it is a synthetic day on its floor: as many tasks, each with the
    pickup and delivery of one, the arrival of another and the expiry of a third task of its relatives, in
    the slots of the record's own tasks. A chain moves with its first task, and a synthetic day of a chained
    record is made of whole chains.
    Draws are keyed by (seed, generation, k).

    Parameters
    ----------
    target : Problem, output: the first len(bases) instances. It has the layouts of `source`.
    bases : ndarray(int64, (n,))
    magnitude : int, s
    synthetic : float, probability of a synthetic day
    key : ndarray(uint32, (4,)), scratch
    """
    for k in range(len(bases)):
        i = bases[k]
        random.derive_key(seed, random.RECORD, generation, k, key)
        S.copy_floor(source, i, target, k)
        for v in range(source.fleet.shape[1]):
            n = source.breakdown.shape[2]
            copy_records(source.breakdown[i, v], 0, target.breakdown[k, v], 0, n)
        n_tasks = source.instance[i].n_tasks
        own = np.floor(random.draw_uniform(key, 0, 1) * (magnitude + 1))
        is_synthetic = random.draw_uniform(key, 0, 2) < synthetic
        chained = S.is_chained(source, i)
        if chained and is_synthetic:
            draw_chains(source, i, key, target, k)
            n_tasks = 0
        for task in range(target.record.shape[1]):
            if task >= n_tasks:
                target.arrival_tick[k, task] = S.NEVER
                continue
            if is_synthetic:
                other, its = draw_relative(source, i, key, task, np.int64(3))
                copy_task(source, other, its, target, k, task)
                other, its = draw_relative(source, i, key, task, np.int64(4))
                target.record[k, task].expiry = source.record[other, its].expiry
                target.record[k, task].slot = source.record[i, task].slot
                other, its = draw_relative(source, i, key, task, np.int64(5))
                arrival = source.record[other, its].arrival
            else:
                copy_task(source, i, task, target, k, task)
                arrival = source.record[i, task].arrival
            if chained:
                root = chains.find_root(source, i, np.int64(task))
                first = source.record[i, root].arrival
                if first > 0.0:
                    uniform = random.draw_uniform(key, root, 0)
                    target.record[k, task].arrival += draw_noise(first, own, uniform)
            else:
                uniform = random.draw_uniform(key, task, 0)
                place_task(target, k, task, perturb_arrival(arrival, own, uniform))
        if chained:
            chains.plan_arrivals(target, k, 0)
            for task in range(target.instance[k].n_tasks, target.record.shape[1]):
                target.arrival_tick[k, task] = S.NEVER
        copy_stages(source, i, target, k, len(bases))
