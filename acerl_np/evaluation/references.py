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
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError, describe
from acerl_np.support.files import read_text, write_atomically
from acerl_np.support.numbers import is_whole


@dataclass(frozen=True)
class Reference:
    """The best action sequence found for an instance whose future is known.

    Attributes
    ----------
    instance : str
    content_hash : str
        Of the instance.
    cost_limit : float
        s; the tardiness is below it.
    makespan, tardiness : float, s
    actions : tuple of int
        vehicle * 4 + rule, one per decision.
    """

    instance: str
    content_hash: str
    cost_limit: float
    makespan: float
    tardiness: float
    actions: tuple[int, ...]


def save_references(path: str | os.PathLike[str], references: Sequence[Reference]) -> None:
    """Write references as JSON, atomically.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    lines = [
        json.dumps(
            {
                "instance": item.instance,
                "content_hash": item.content_hash,
                "cost_limit": item.cost_limit,
                "makespan": item.makespan,
                "tardiness": round(item.tardiness, 9),
                "actions": list(item.actions),
            }
        )
        for item in references
    ]
    text = '{"format": 1, "references": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomically(path, text.encode())


def load_references(path: str | os.PathLike[str]) -> list[Reference]:
    """Read references that `save_references` wrote.

    Raises
    ------
    InputError
        If the file is missing or holds no references; the message names the field.
    """
    text = read_text(path, InputError)

    def is_score(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and 0.0 <= value <= 1e12

    kinds: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "instance": ("a text", lambda value: isinstance(value, str)),
        "content_hash": ("a text", lambda value: isinstance(value, str)),
        "cost_limit": ("a number of seconds", is_score),
        "makespan": ("a number of seconds", is_score),
        "tardiness": ("a number of seconds", is_score),
        "actions": (
            "a list of whole numbers",
            lambda value: isinstance(value, list) and all(map(is_whole, value)),
        ),
    }

    def check(data: Any, key: str, place: str, expected: str, fits: Callable[[Any], bool]) -> Any:
        found = "nothing"
        if isinstance(data, dict) and key in data:
            if fits(data[key]):
                return data[key]
            found = describe(data[key])
        raise InputError(
            f"{path}: holds no references: {place}{key}: read {found}; expected {expected}"
        )

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)
        place = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(
            f"{path}: holds no references: {place}not JSON: {reason[:200]}; expected a file written by "
            "acerl-np hindsight --out"
        ) from error
    check(data, "format", "", "1, the format of this version", lambda value: value == 1)
    items = check(data, "references", "", "a list", lambda value: isinstance(value, list))
    found = []
    for k, item in enumerate(items):
        values = {key: check(item, key, f"references[{k}].", *kind) for key, kind in kinds.items()}
        values["actions"] = tuple(values["actions"])
        found.append(Reference(**values))
    return found


@cache
def bundled_references() -> dict[str, Reference]:
    """Return the bundled references by content hash of their instances."""
    found: dict[str, Reference] = {}
    for path in sorted(Path(instances_folder()).glob("*/hindsight.json")):
        found.update({item.content_hash: item for item in load_references(path)})
    return found


def find_known(
    instances: Sequence[Instance], references: Mapping[str, Reference], cost_limit: float
) -> list[Reference | None]:
    """Return the reference of each instance for this limit, None where there is none.

    Parameters
    ----------
    instances : sequence of Instance
    references : mapping of Reference
        By the content hash of their instances.
    cost_limit : float
        s.

    Returns
    -------
    list of Reference or None
    """
    known = [references.get(instance.content_hash) for instance in instances]
    return [item if item is not None and item.cost_limit == cost_limit else None for item in known]
