"""Work that any worker can do and that is kept, by a key of all that decides it."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from acerl_np.support.team import Team, list_versions

J = TypeVar("J")
Done = TypeVar("Done")
Kept = TypeVar("Kept")

ROOMS = tuple(
    Path(__file__).parents[1] / room
    for room in (
        "support",
        "kernels",
        "problem",
        "simulation",
        "policies",
        "evolution",
        "training",
        "evaluation",
    )
)
"""Folders of the code that decides what comes of a training."""


def hash_content(content: Mapping[str, Any], rooms: Iterable[Path] = ROOMS) -> str:
    """Return the key of a run: the hash of what decides it, and of the code in these folders."""
    text = json.dumps({**content, "code": hash_rooms(tuple(rooms))}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def hash_rooms(rooms: tuple[Path, ...] = ROOMS) -> str:
    """Return the hash of the code in folders, and of the libraries that compute for it.

    Returns
    -------
    str
        64 hexadecimal digits; comments and docstrings do not change them.
    """
    versions = " ".join(" ".join(item) for item in list_versions().items())
    digest = hashlib.sha256(versions.encode())
    for room in sorted(rooms):
        for path in sorted(room.rglob("*.py")):
            name = path.relative_to(room.parent).as_posix()
            digest.update(f"\0{name}\0{strip_source(path.read_bytes())}".encode())
    return digest.hexdigest()


def strip_source(source: bytes) -> str:
    """Return what Python makes of a source file, without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [item for item in node.body if not _is_text(item)]
    return ast.dump(tree, annotate_fields=False)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def finish(
    jobs: Sequence[J],
    find: Callable[[J], Kept | None],
    work: Callable[[J], Done],
    keep: Callable[[J, Done], Kept],
    team: Team,
) -> Iterator[tuple[int, Kept, bool]]:
    """Take what is kept of jobs, let a team do the others, and keep what it has done.

    Yields
    ------
    int, object, bool
        Position of the job, what is kept of it, and whether it was done now.
    """
    missing = []
    for k, job in enumerate(jobs):
        kept = find(job)
        if kept is None:
            missing.append(k)
        else:
            yield k, kept, False
    for place, done in team.run(work, [jobs[k] for k in missing]):
        k = missing[place]
        yield k, keep(jobs[k], done), True
