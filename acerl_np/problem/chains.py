"""Chains of tasks: what goes before what, and when each is ready at the earliest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acerl_np.support.errors import Fault

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance


def find_roots(after: np.ndarray) -> np.ndarray:
    """Return the row of the first task of each task's chain, int64 (n,), by the rows before, int (n,).

    A first task has -1 before it. A task that follows itself, or one that does, has -1.
    """
    own = np.arange(len(after))
    root = np.where(after < 0, own, after)
    for _ in range(len(after).bit_length()):
        further = root[root]
        if (further == root).all():
            break
        root = further
    return np.where(after[root] < 0, root, -1)


def find_before(tasks: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """Return the row of the task that each goes after, int64 (n,): -1 of none, itself where it is unknown.

    Where several have the id, as in a table of several records, it is the last one above, or else the first.
    """
    before = np.full(len(tasks), -1)
    if any(after):
        first = {task: k for k, task in reversed([*enumerate(tasks)])}
        above: dict[str, int] = {}
        for k, task in enumerate(after):
            if task:
                before[k] = above.get(task, first.get(task, k))
            above[tasks[k]] = k
    return before


def list_unlinked(
    columns: Mapping[str, Sequence[Any]],
    before: np.ndarray,
    roots: np.ndarray,
    places: Sequence[str],
    lost: Collection[str],
) -> list[Fault]:
    """Return the faults of tasks whose chain has no first task; `lost` are ids that stand in the table."""
    tasks, after = columns["tasks"], columns["after"]
    texts: dict[int, str] = {}
    for start in np.flatnonzero(roots < 0).tolist():
        path: dict[int, int] = {}
        k = start
        while k not in path and k not in texts:
            path[k] = len(path)
            k = int(before[k])
        if k in path and before[k] != k:
            ring = [*path][path[k] :]
            way = ", ".join(f"'{tasks[x]}'" for x in ring[1:4]) + ", ..." * (len(ring) > 4)
            text = (
                f"'{tasks[k]}' follows itself by way of {way}; expected a chain with a first task"
            )
            texts |= dict.fromkeys(ring, text)
        elif k in path and after[k] == tasks[k]:
            texts[k] = f"'{tasks[k]}' is the task itself; expected another"
        elif k in path and after[k] not in lost:
            texts[k] = f"unknown task '{after[k]}'; expected a task of the record"
        for x in path:
            texts.setdefault(x, f"'{after[x]}' cannot be used; expected a task that can")
    return [Fault(places[k], "after", after[k], text) for k, text in texts.items()]


def count_before(after: np.ndarray) -> np.ndarray:
    """Return how many tasks of its chain go before each, int64 (n,), by the rows before, -1 of none."""
    before = np.where(after < 0, np.arange(len(after)), after)
    found = (after >= 0).astype(np.int64)
    while found[before].any():
        found += found[before]
        before = before[before]
    return found


def find_earliest(instance: Instance, seconds: np.ndarray) -> np.ndarray:
    """Return when each task is ready at the earliest, s, float64 (n_tasks,), if trips take so long."""
    ready, after = instance.arrival.copy(), instance.after
    ends = seconds + instance.processing
    for k in np.argsort(count_before(after), kind="stable").tolist():
        if after[k] >= 0:
            ready[k] = max(ready[k], ready[after[k]] + ends[after[k]])
    return ready
