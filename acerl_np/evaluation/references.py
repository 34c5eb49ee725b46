"""References: the best action sequences found in hindsight, as files and as they come with the package."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from acerl_np.problem.bundled import instances_folder
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.fields import refuse
from acerl_np.support.files import read_text, write_atomically
from acerl_np.support.numbers import is_real, is_whole


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


def _is_score(value: Any) -> bool:
    return is_real(value) and 0.0 <= value <= 1e12


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


TEXT = ("a text", lambda value: isinstance(value, str))
SECONDS = ("a number of seconds", _is_score)
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "instance": TEXT,
    "content_hash": TEXT,
    "makespan": SECONDS,
    "tardiness": SECONDS,
    "actions": ("a list of whole numbers", lambda x: _is_list(x) and all(map(is_whole, x))),
}
"""Of a reference in a file: what is expected, and whether a value is it."""

OF_PAPER = {"cost_limit": SECONDS}
"""Of one whose objective is the makespan, and whose cost the tardiness."""

OF_GOAL = {
    "goal": ("a table", lambda value: isinstance(value, dict)),
    "value": ("a number", is_real),
    "cost": ("a number", is_real),
}
"""Of any other."""


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
    fault = f"{path}: holds no references: "

    def check(data: Any, key: str, place: str, expected: str, fits: Callable[[Any], bool]) -> Any:
        known = isinstance(data, dict) and key in data
        if not known or not fits(data[key]):
            refuse(f"{fault}{place}{key}", data[key] if known else "nothing", expected)
        return data[key]

    try:
        data = json.loads(read_text(path, InputError))
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = error.msg.lower()
            fault += f"line {error.lineno}: "
        raise InputError(
            f"{fault}not JSON: {reason[:200]}; expected a file written by acerl-np hindsight --out"
        ) from error
    check(data, "format", "", "1, the format of this version", lambda value: value == 1)
    found = []
    for k, item in enumerate(check(data, "references", "", "a list", _is_list)):
        other = OF_GOAL if isinstance(item, dict) and "goal" in item else OF_PAPER
        values = {
            key: check(item, key, f"references[{k}].", *kind)
            for key, kind in {**FIELDS, **other}.items()
        }
        if "goal" in values:
            try:
                values["goal"] = Goal.from_dict(values["goal"])
            except (ConfigError, TypeError) as error:
                raise InputError(f"{fault}references[{k}].goal: {error}") from error
        else:
            values["goal"] = Goal(cost_limit=values.pop("cost_limit"))
            values |= {"value": values["makespan"], "cost": values["tardiness"]}
        found.append(Reference(**{**values, "actions": tuple(values["actions"])}))
    return found


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
