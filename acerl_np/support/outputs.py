"""The one rule for what a command writes: no output is an input, and nothing is replaced unasked."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.files import STDIN, show_path

MARK = "made by acerl_np"
"""What stands near the beginning of pictures and pages, so that a later one may take their default name."""

MARK_BYTES = 4096
"""How far into a file the mark is looked for."""


def check_outputs(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[str | os.PathLike[str] | None],
    *,
    force: bool,
    option: str = "--out",
    own: bool = False,
) -> None:
    """Refuse files that must not be written, before anything is computed for them.

    Parameters
    ----------
    outputs : iterable of path-like
        Files that will be written.
    inputs : iterable of path-like or None
        Names of what is read; names that are no files do no harm, None is passed over, "-" is the standard
        input.
    force : bool
        Whether what exists may be replaced. What is read never is.
    option : str
        What names the outputs, for the error.
    own : bool
        Whether what this package made (`has_mark`) may be replaced unasked: for default names, nobody chose
        them.

    Raises
    ------
    InputError
        If an output is read, also under another name (a link, another path); exists and may not be
        replaced; or is no file.
    """
    files = list(outputs)
    check_not_read(files, inputs, option)
    for path in files:
        if os.path.lexists(path) and not force and not (own and has_mark(path)):
            raise InputError(
                f"{option}: {make_printable(os.fspath(path))} exists; expected a new name, or --force to "
                "replace it"
            )


def check_not_read(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[str | os.PathLike[str] | None],
    option: str = "--out",
) -> None:
    """Refuse outputs that are read, or are no files, as `check_outputs`."""
    sources = [source for source in inputs if source is not None]
    for path in outputs:
        shown = make_printable(os.fspath(path))
        if os.fspath(path) == STDIN:
            raise InputError(f"{option}: read '-'; expected the name of a file")
        found = _stat(path)
        if found is None:
            continue
        source = next((source for source in sources if _are_same(source, path)), None)
        if source is not None:
            name = make_printable(show_path(source))
            same = "is" if name == shown else f"is the same file as {name}, which is"
            raise InputError(
                f"{option}: {shown} {same} read, and would be overwritten; expected another name"
            )
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "no file"
            raise InputError(f"{option}: {shown} is {what}; expected the name of a file")


def _are_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    # Looked at together: a run may replace a file at any time, and its number be another's then.
    found = _stat(one), _stat(other)
    return found[0] is not None and found[1] is not None and os.path.samestat(found[0], found[1])


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what the system says of a file, None if there is none of such a name."""
    try:
        if os.fspath(path) == STDIN:
            return None if sys.stdin is None else os.fstat(sys.stdin.fileno())
        return Path(path).stat() if os.fspath(path) else None
    except (OSError, ValueError):
        return None


def has_mark(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a picture or a page that this package made."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(MARK_BYTES)
    except (OSError, ValueError):
        return False
