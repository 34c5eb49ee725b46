"""Which slot of an observation a waiting task stands in: one of its own, or its place in the pool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol, get_args
from weakref import WeakKeyDictionary

import numpy as np

from acerl_np.kernels.state import RECORD_SLOT, Problem
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import AcerlError, InputError, PolicyError, describe

SlotKind = Literal["task", "pool"]

MAX_IDS = 100
"""Most tasks that have slots of their own."""


class Slots(NamedTuple):
    """How the task slots of an observation are given out.

    "task": each task has a slot of its own, `ids` in the order of the slots. "pool": its place in the pool.
    """

    kind: SlotKind
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"'{self.kind}'" + (f" of {len(self.ids)} tasks" if self.ids else "")


POOL = Slots("pool")


class HasSlots(Protocol):
    """A network's policy, or another that remembers what it was shown."""

    slots: SlotKind
    task_ids: tuple[str, ...]


_found: WeakKeyDictionary[Instance, tuple[tuple[str, ...], np.ndarray]] = WeakKeyDictionary()
"""The last slots of an instance, as a policy asks for the same at every decision."""


def find_slots(slots: Any, instances: Sequence[Instance]) -> Slots:
    """Return slots by their kind for the tasks of some records, or those that a policy has.

    They are told by "task" or "pool", as `Slots`, or by what has `slots` and `task_ids`, such as a network's
    policy; one of another form sees no slots: those of the records, "task". Ids stand in natural order:
    task_2 before task_10.
    """
    if isinstance(slots, Slots):
        return slots
    if hasattr(slots, "task_ids"):
        return Slots(slots.slots, slots.task_ids)
    if hasattr(slots, "check_fits"):
        slots = "task"
    if not isinstance(slots, str) or slots not in get_args(SlotKind):
        raise InputError(f"slots: read {describe(slots)}; expected 'task', 'pool' or a policy")
    if slots == "pool":
        return POOL
    ids = {task for instance in instances for task in instance.tasks}
    if len(ids) > MAX_IDS:
        raise InputError(
            f"slots: read 'task' with {len(ids):,} different task ids; expected at most {MAX_IDS}, or "
            "'pool' (train --set slots=pool, or --preset best)"
        )
    return Slots("task", tuple(sorted(ids, key=_natural)))


def check_slots(kind: str, ids: Iterable[str], error: type[AcerlError] = InputError) -> Slots:
    """Return slots as they are given to a policy; an `error` refuses ids that are none of the kind."""
    if kind not in get_args(SlotKind):
        raise error(f"slots: read {describe(kind)}; expected 'task' or 'pool'")
    known = tuple(ids)
    fits = 1 <= len(known) <= MAX_IDS if kind == "task" else not known
    if not (fits and all(isinstance(x, str) for x in known) and len(set(known)) == len(known)):
        expected = f"1 to {MAX_IDS} different ids" if kind == "task" else "none"
        raise error(f"task_ids: read {len(known):,}; expected {expected} with slots '{kind}'")
    return Slots(kind, known)  # type: ignore[arg-type]


def assign_slots(tasks: Sequence[str], ids: Sequence[str]) -> np.ndarray:
    """Return the slot of each task of a record as `RECORD_SLOT` counts, from 1, ndarray(int64, (n_tasks,)).

    Tasks that are not among the ids take, in natural order, the lowest slots that none of this record's has.
    """
    place = {task: k for k, task in enumerate(ids, start=1)}
    slots = np.array([place.get(task, 0) for task in tasks], np.int64)
    if not slots.all():
        taken = set(slots.tolist())
        free = (k for k in count(1) if k not in taken)
        for k in sorted(np.flatnonzero(slots == 0).tolist(), key=lambda k: _natural(tasks[k])):
            slots[k] = next(free)
    return slots


def place_tasks(problem: Problem, instances: Sequence[Instance], slots: Slots) -> Problem:
    """Return the tables, whose first rows are those of these instances, with their tasks in slots."""
    record = problem.record.copy()
    record[..., RECORD_SLOT] = 0.0
    # Tables that a lookahead fills by itself have fewer rows than there are records.
    for i, instance in enumerate(instances[: len(record)] if slots.ids else ()):
        found = _found.get(instance)
        if found is None or found[0] != slots.ids:
            found = _found[instance] = slots.ids, assign_slots(instance.tasks, slots.ids)
        record[i, : instance.n_tasks, RECORD_SLOT] = found[1]
    return problem._replace(record=record)


def refuse_other_slots(name: str, shown: Any, policy: Any) -> None:
    """Refuse a policy that sees tasks in other slots than `shown`, called `name`, has them in."""
    if hasattr(policy, "task_ids"):
        own, other = Slots(policy.slots, policy.task_ids), Slots(shown.slots, shown.task_ids)
        if own != other:
            raise PolicyError(
                f"{name}: shows slots {other}, this policy has learned with {own}; expected slots=policy"
            )


def are_never_the_same(instances: Sequence[Instance]) -> bool:
    """Whether fewer than half of the ids of several records stand in more than one of them."""
    ids = [task for instance in instances for task in instance.tasks]
    return len(instances) > 1 and 2 * len(ids) < 3 * len(set(ids))


def _natural(name: str) -> tuple[Any, ...]:
    """Return a key that sorts by the numbers in a name, not by their digits."""
    parts = re.split("([0-9]+)", name)
    return tuple(int(part) if k % 2 else part for k, part in enumerate(parts)), name
