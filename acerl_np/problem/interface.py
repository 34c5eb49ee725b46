"""What a policy sees and names: scaled features, slots of waiting tasks, and rules among which it chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state
from acerl_np.kernels.core.rounding import cut_metres
from acerl_np.kernels.core.state import Problem
from acerl_np.kernels.dispatching.rules import AHP, EDD, FCFS, LWT, NVF, STD
from acerl_np.problem.choices import PAPER_RULES, RULE_NAMES, RULES, SlotKind
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import SCALING_DIVISORS, SCALING_PAIRS
from acerl_np.support.errors import AcerlError, InputError, PolicyError, describe

# The constants that scale features: a layout's own, or found from the records

MAX_SCALE = 1e18
MIN_DIVISOR = 1e-10
"""Feature constants within these leave every feature of every layout a finite float32."""

RANGES = [(k, k + 1) for k in range(0, 2 * len(SCALING_PAIRS), 2)]
"""Where the kernels have the mid and the half width of each range."""

DIVISORS = [*(half for _, half in RANGES), state.SCALING_SPEED, state.SCALING_CAPACITY]
"""Which of the feature constants are divisors."""


def scaling_of(layout: Layout) -> np.ndarray | None:
    """Return a layout's own feature constants (float64, (12,)), None if it has none."""
    if layout.scaling is None:
        return None
    pairs = [value for key in SCALING_PAIRS for value in layout.scaling[key]]
    return np.array(pairs + [layout.scaling[key] for key in SCALING_DIVISORS], np.float64)


def check_scaling(
    scaling: ArrayLike, error: Callable[[str], AcerlError] = InputError
) -> np.ndarray:
    """Return feature constants, as `kernels.state.Problem` lists them, as an own array (float64, (12,))."""
    try:
        constants = np.array(scaling, np.float64)
    except (TypeError, ValueError):
        constants = np.empty(0)
    if constants.shape != (state.N_SCALING_FIELDS,) or not (
        (np.abs(constants) <= MAX_SCALE).all() and (constants[DIVISORS] >= MIN_DIVISOR).all()
    ):
        raise error(
            f"scaling: expected {state.N_SCALING_FIELDS} numbers of at most {MAX_SCALE:g}, "
            f"divisors of at least {MIN_DIVISOR:g}"
        )
    return constants


def find_scaling(instances: Sequence[Instance]) -> np.ndarray:
    """Return the feature constants for policies trained on `instances`, float64 (12,).

    The layouts' own constants if all layouts share them; otherwise computed from the records: each
    feature is (x - mid) / half, mid and half width of its range, half 1 for an empty range.
    """
    own = [scaling_of(instance.layout) for instance in instances]
    if own[0] is not None and all(x is not None and (x == own[0]).all() for x in own):
        return own[0]

    distances, totals = [], []
    for instance in instances:
        table = instance.layout.routes.distance
        loaded = table[instance.pickup, instance.delivery]
        total = table[:, instance.pickup] + loaded
        total = total[np.isfinite(total)]
        truncates = instance.layout.truncate_distances
        distances.append(cut_metres(loaded, truncates))
        totals.append(cut_metres(total, truncates))
    # What is never due is shown to no network.
    expiries = [np.where(np.isinf(x.expiry), 0.0, x.expiry) for x in instances]
    demands = [instance.demand for instance in instances]
    waiting = [np.zeros(1), *expiries]
    fleet = [vehicle for instance in instances for vehicle in instance.layout.vehicles]
    scaling = np.empty(state.N_SCALING_FIELDS)
    seen = (distances, waiting, expiries, demands, totals)
    for (mid, half), values in zip(RANGES, map(np.concatenate, seen), strict=True):
        low, high = float(values.min()), float(values.max())
        scaling[mid] = (low + high) / 2.0
        # A range within rounding error is empty.
        empty = high - low <= 1e-9 * max(1.0, abs(high))
        scaling[half] = 1.0 if empty else (high - low) / 2.0
    scaling[state.SCALING_SPEED] = max(vehicle.speed for vehicle in fleet)
    capacity = max(vehicle.capacity for vehicle in fleet)
    scaling[state.SCALING_CAPACITY] = max(capacity, 1e-9) if capacity else 1.0
    return scaling


# Which slot of an observation a waiting task stands in

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
    """Return the slot of each task of a record, from 1, ndarray(int64, (n_tasks,)).

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


_recall_slots = lru_cache(1024)(assign_slots)
"""As a policy asks for the same slots of an instance at every decision."""


def place_tasks(problem: Problem, instances: Sequence[Instance], slots: Slots) -> Problem:
    """Return the tables, whose first rows are those of these instances, with their tasks in slots."""
    record = problem.record.copy()
    record["slot"] = 0.0
    # Tables that a lookahead fills by itself have fewer rows than there are records.
    for i, instance in enumerate(instances[: len(record)] if slots.ids else ()):
        record["slot"][i, : instance.n_tasks] = _recall_slots(instance.tasks, slots.ids)
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


# Rules by name: action = vehicle * number of rules + rule

TASK_RULES = dict(zip(RULES, (FCFS, EDD, NVF, STD, LWT, AHP), strict=True))
"""Rules that pick a task for a vehicle."""


class HasRules(Protocol):
    """A network's policy, or another that remembers what its actions were."""

    rules: tuple[str, ...]


def find_rules(rules: Any) -> tuple[str, ...]:
    """Return rules by their names, or those of a policy; one that has none to choose among: the paper's."""
    if hasattr(rules, "rules") or hasattr(rules, "check_fits"):
        own = getattr(rules, "rules", None)
        rules = own if isinstance(own, tuple) else PAPER_RULES
    return RULE_NAMES.read("rules", rules, InputError)


def number_rules(rules: Sequence[str]) -> np.ndarray:
    """Return the rules as kernels number them, ndarray(int64, (R,))."""
    return np.array([TASK_RULES[name] for name in rules], np.int64)
