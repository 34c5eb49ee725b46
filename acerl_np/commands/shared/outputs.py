"""What a command may not write: what it reads, what exists, and where nothing can be written; folders."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from acerl_np.problem.bundled import bundled_instances, bundled_suites, expand_names
from acerl_np.support import files
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.files import FilePath, has_mark

WRITTEN = ("out", "report", "write_mapping")
"""Options that name what is written; all others may name what is read."""


def declare_outputs(
    arguments: argparse.Namespace,
    outputs: Iterable[FilePath | None],
    *,
    option: str = "--out",
    folder: FilePath | None = None,
    own: bool = False,
    force: bool | None = None,
) -> None:
    """Refuse what exists, unless it is to be replaced, and what is read; an output of None is none.

    Whatever the arguments name may be read; `force` stands in the place of the arguments'. `option` names
    what is no option's value, for the error. `folder` is made later, if need be (`make_folder`). With `own`
    what this package made (`has_mark`) may be replaced unasked: for default names, nobody chose them.
    """
    force = bool(arguments.force) if force is None else force
    named = {vars(arguments).get(key): f"--{key.replace('_', '-')}" for key in WRITTEN}
    read, seen = _list_read(arguments), set[Path]()
    for path in (os.fspath(output) for output in outputs if output is not None):
        shown, place, wrong = make_printable(path), Path(path), ""
        if any(are_same(name, path) for name in read):
            wrong = "is read, and would be overwritten; expected another name"
        elif place.resolve() in seen:
            wrong = "is what another option writes, too; expected another name"
        elif os.path.lexists(path) and not place.is_file() and not place.is_symlink():
            wrong = "is no file; expected the name of a file"
        elif os.path.lexists(path) and not force and not (own and has_mark(path)):
            wrong = "exists; expected a new name, or --force to replace it"
        if wrong:
            raise InputError(f"{named.get(path, option)}: {shown} {wrong}")
        seen.add(place.resolve())
        while folder and not place.parent.exists() and place.parent != place.parent.parent:
            place = place.parent
        try:
            files.check_place(place)
        except InputError as error:
            raise InputError(f"{named.get(path, option)}: {error}") from error


def _list_read(arguments: argparse.Namespace) -> list[str]:
    """Return all names among the arguments that may be of files that are read."""
    values = [value for key, value in vars(arguments).items() if key not in WRITTEN]
    every = [x for value in values for x in (value if isinstance(value, list) else [value])]
    texts = [name for name in every if isinstance(name, str)]
    names = [*texts, *(x for text in texts for x in expand_names([text], needed=False))]
    bundled, suites = bundled_instances(), bundled_suites()
    known = (x for name in names for x in suites.get(name, [name]) if x in bundled)
    return [*names, *(str(bundled[x]) for x in known)]


def are_same(one: str, other: str) -> bool:
    """Whether two names are of one file that is there."""
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def make_folder(path: str | Path, *, new: bool = False) -> Path:
    """Make a folder for results if need be; with `new` one that did not exist, with the first free number."""
    folder = Path(path)
    for k in count(2):
        try:
            folder.mkdir(parents=True, exist_ok=not new)
            break
        except (OSError, ValueError) as error:
            if not isinstance(error, FileExistsError) or not folder.is_dir():
                reason = str(error)
                if isinstance(error, OSError):
                    reason = f"cannot make the folder: {files.describe_os_error(error)}"
                name = make_printable(str(folder))
                raise InputError(f"{name}: {reason}; expected the name of a folder") from error
        folder = Path(f"{path}-{k}")
    return folder
