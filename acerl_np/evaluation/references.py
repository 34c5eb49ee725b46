"""References: the best action sequences found in hindsight, as files and as they come with the package."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from acerl_np.problem import json_tree
from acerl_np.problem.bundled import instances_folder
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import ConfigError, InputError, LayoutError
from acerl_np.support.fields import MOST
from acerl_np.support.files import read_text, write_atomically


@dataclass(frozen=True)
class Reference:
    """The best action sequence found for an instance whose future is known.

    An action is vehicle * 4 + rule; beyond those of all vehicles vehicle * n_tasks + task, where a policy's
    schedule is the best. Of an instance that is not plain it is vehicle * n_tasks + task, from 0 on, and each
    vehicle takes its tasks in this order, as soon as they are known. `value` and `cost` are what the goal
    minimises and limits. Where nothing below the limit was found, it is that of the least cost.
    """

    instance: str
    content_hash: str
    goal: Goal
    makespan: float
    tardiness: float
    value: float
    cost: float
    actions: tuple[int, ...]

    @property
    def within(self) -> bool:
        """Whether the cost is below the limit."""
        return self.cost < self.goal.cost_limit


def _read_goal(value: Any, where: str) -> Goal:
    if not isinstance(value, dict):
        json_tree.refuse(where, value, "a table")
    try:
        return Goal.from_dict(value)
    except (ConfigError, TypeError) as error:
        raise LayoutError(f"{where}: {error}") from error


def _make_of_paper(cost_limit: float, **own: Any) -> Reference:
    scores = {"value": own["makespan"], "cost": own["tardiness"]}
    return Reference(goal=Goal(cost_limit=cost_limit), **scores, **own)


def _read_reference(value: Any, where: str) -> Any:
    is_of_goal = isinstance(value, dict) and "goal" in value
    return (OF_GOAL if is_of_goal else OF_PAPER).read(where, value)


SECONDS, NUMBER = json_tree.number(0.0, 1e12), json_tree.number(-MOST, MOST)
COMMON = {
    **dict.fromkeys(("instance", "content_hash"), json_tree.text()),
    **dict.fromkeys(("makespan", "tardiness"), SECONDS),
    "actions": json_tree.items(json_tree.whole(0, 10**12), 0, 10**6),
}
OF_PAPER = json_tree.table({**COMMON, "cost_limit": SECONDS}, _make_of_paper)
"""A reference whose objective is the makespan, and whose cost the tardiness."""

OWN_GOAL = {"goal": json_tree.Key(reader=_read_goal), "value": NUMBER, "cost": NUMBER}
OF_GOAL = json_tree.table({**COMMON, **OWN_GOAL}, Reference)
"""Any other."""

LIST = json_tree.items(json_tree.Key(reader=_read_reference), 0, 10**6)
FORM = json_tree.table({"format": json_tree.one(), "references": LIST}, dict)


def save_references(path: str | os.PathLike[str], references: Sequence[Reference]) -> None:
    """Write references as JSON, atomically."""
    lines = []
    for item in references:
        goal = item.goal
        own = {"goal": goal.to_dict(), "value": item.value, "cost": item.cost}
        is_paper = goal == Goal(cost_limit=goal.cost_limit) and goal.has_limit
        row = {
            "instance": item.instance,
            "content_hash": item.content_hash,
            **({"cost_limit": goal.cost_limit} if is_paper else own),
            "makespan": item.makespan,
            "tardiness": round(item.tardiness, 9),
            "actions": item.actions,
        }
        lines.append(json.dumps(row))
    text = '{"format": 1, "references": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomically(path, text.encode())


def load_references(path: str | os.PathLike[str]) -> list[Reference]:
    """Read references that `save_references` wrote; an `InputError` names the field that is none."""
    try:
        found = FORM.read("", json_tree.parse_json(read_text(path, InputError)))
    except LayoutError as error:
        expected = "expected a file written by acerl-np hindsight --out"
        raise InputError(f"{path}: holds no references: {error}; {expected}") from error
    return list(found["references"])


@cache
def bundled_references() -> dict[str, Reference]:
    """Return the bundled references by content hash of their instances."""
    found: dict[str, Reference] = {}
    for path in sorted(Path(instances_folder()).glob("*/hindsight.json")):
        found.update({item.content_hash: item for item in load_references(path)})
    return found


def find_known(
    instances: Sequence[Instance], references: Mapping[str, Reference], goal: Goal
) -> list[Reference | None]:
    """Return each instance's reference for this goal, of those by content hash, None if there is none."""
    known = [references.get(instance.content_hash) for instance in instances]
    return [item if item is not None and item.goal == goal else None for item in known]
