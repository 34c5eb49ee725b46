"""References: the best action sequences found in hindsight, as files and as they come with the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from acerl_np.policies.origin import GOAL
from acerl_np.problem import json_tree
from acerl_np.problem.bundled import instances_folder
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError, LayoutError
from acerl_np.support.fields import MOST
from acerl_np.support.files import FilePath, read_text, write_atomically


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


SECONDS, NUMBER = json_tree.number(0.0, 1e12), json_tree.number(-MOST, MOST)
REFERENCE = json_tree.table(
    {
        **dict.fromkeys(("instance", "content_hash"), json_tree.text()),
        "goal": GOAL,
        **dict.fromkeys(("makespan", "tardiness"), SECONDS),
        **dict.fromkeys(("value", "cost"), NUMBER),
        "actions": json_tree.items(json_tree.whole(0, 10**12), 0, 10**6),
    },
    Reference,
)
LIST = json_tree.items(REFERENCE, 0, 10**6)
FORM = json_tree.table({"format": json_tree.VERSION, "references": LIST}, dict)


def save_references(path: FilePath, references: Sequence[Reference]) -> None:
    """Write references as JSON, atomically."""
    lines = [json.dumps(REFERENCE.write(item)) for item in references]
    text = '{"format": 1, "references": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomically(path, text.encode())


def load_references(path: FilePath) -> list[Reference]:
    """Read references that `save_references` wrote; an `InputError` names the field that is none."""
    try:
        found = FORM.read("", json_tree.parse_json(read_text(path, InputError)))
    except LayoutError as error:
        expected = "expected a file written by acerl-np policy bound --out"
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
