"""What a command may not write: what it reads, and what exists and is not meant to be replaced."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from acerl_np.commands.options import FORCE, Parser
from acerl_np.support.errors import AcerlError, InputError, make_printable
from acerl_np.support.files import STDIN, TEMPORARY, has_mark, path_exists

WRITTEN = ("out", "schedule_csv", "trials_csv")
"""Options that name what is written; all others may name what is read."""

RUN_FILES = (
    "policy.npz",
    "run.npz",
    "config.json",
    "history.csv",
    "curves.csv",
    "curves.png",
    "results.csv",
    "held-back.npz",
    "static.npz",
)
"""What a training leaves in its folder."""


def add_force(parser: Parser) -> None:
    """Declare --force."""
    FORCE.declare(parser)


def declare_outputs(
    arguments: argparse.Namespace,
    outputs: Iterable[str | os.PathLike[str]],
    *,
    option: str = "--out",
    own: bool = False,
    force: bool | None = None,
) -> None:
    """Refuse what must not be written, before any work.

    Files are written beside their names and moved there, so what is read under another name stays as it is;
    only a name that is read itself is refused, also with --force.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `force`; whatever it names may be read.
    outputs : iterable of path-like
    option : str
        What names the outputs, for the error.
    own : bool
        Whether what this package made (`has_mark`) may be replaced unasked: for default names, nobody chose
        them.
    force : bool, optional
        In the place of the arguments'.
    """
    from acerl_np.problem.bundled import bundled_instances, bundled_suites

    force = bool(arguments.force) if force is None else force
    read = [
        name
        for key, value in vars(arguments).items()
        if key not in WRITTEN
        for name in (value if isinstance(value, list) else [value])
        if isinstance(name, str)
    ]
    bundled, suites = bundled_instances(), bundled_suites()
    for name in read.copy():
        read += [str(bundled[item]) for item in suites.get(name, [name]) if item in bundled]
    for output in outputs:
        path = os.fspath(output)
        shown = make_printable(path)
        source = next((name for name in read if _are_same(name, path)), None)
        if source is not None:
            name = make_printable(source)
            same = "is" if name == shown else f"is the same file as {name}, which is"
            raise InputError(
                f"{option}: {shown} {same} read, and would be overwritten; expected another name"
            )
        if path == STDIN or (path_exists(path) and not Path(path).is_file()):
            what = "a folder" if Path(path).is_dir() else "no file"
            found = "read '-'" if path == STDIN else f"{shown} is {what}"
            raise InputError(f"{option}: {found}; expected the name of a file")
        if os.path.lexists(path) and not force and not (own and has_mark(path)):
            raise InputError(
                f"{option}: {shown} exists; expected a new name, or --force to replace it"
            )


def _are_same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def declare_run(arguments: argparse.Namespace) -> None:
    """Refuse the folder of a training if it holds another run; a resumed one goes on in its own.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `out`, `resume` and `force`. Without the first two a new folder is made.
    """
    out, resume = arguments.out, arguments.resume
    if out is None and resume is None:
        return
    folder = Path(resume).parent if out is None else Path(out)
    if resume is not None and _are_same(resume, str(folder / "run.npz")):
        return
    force = bool(arguments.force) or is_killed_start(folder)
    declare_outputs(arguments, [folder / name for name in RUN_FILES], force=force)


def is_killed_start(folder: Path) -> bool:
    """Whether all that a folder holds is what a training writes before its first checkpoint.

    That is config.json, and the held-back records that it names: nothing was trained there.
    """
    from acerl_np.commands.judging import FILE, read_facts, read_held_back

    try:
        names = {item.name for item in folder.iterdir()}
    except (OSError, ValueError):
        return False
    names = {name for name in names if not TEMPORARY.fullmatch(name)}
    facts = read_facts(folder)
    # The folder of --seeds has a config.json with "seeds", and of a study none of these.
    if not names <= {"config.json", FILE} or not {"acerl_np", "seed"} <= facts.keys():
        return False
    try:
        held_back = read_held_back(folder / FILE) if FILE in names else []
    except AcerlError:
        return False
    return not held_back or {x.name: x.content_hash for x in held_back} == facts.get("held_back")
