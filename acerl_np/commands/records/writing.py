"""Names and files of the records that actions make."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.common import make_folder
from acerl_np.support.errors import InputError
from acerl_np.support.files import STDIN, path_exists

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance


def make_name(pattern: str, values: Mapping[str, str]) -> str:
    """Return a record's name: the pattern with its placeholders replaced.

    Parameters
    ----------
    pattern : str
    values : mapping
        By placeholder, such as "{k}".

    Raises
    ------
    InputError
        If the pattern has another placeholder, or the name is empty or leads to another folder.
    """
    placeholders = "|".join(map(re.escape, values))
    # A record's own name may hold braces, so the pattern is looked at and not what comes of it.
    if re.search("[{}]", re.sub(placeholders, "", pattern)):
        raise InputError(
            f"--names: read '{pattern}'; expected no braces but those of {', '.join(values)}"
        )
    name = re.sub(placeholders, lambda found: values[found[0]], pattern)
    if not name or name in {".", ".."} or any(letter in name for letter in "/\\\0"):
        raise InputError(f"--names: read '{name}'; expected the name of a file")
    return name


def check_overwriting(
    outputs: Iterable[Path],
    inputs: Iterable[str | Path | None],
    expected: str = "another --out or --names",
) -> None:
    """Refuse to write over what was read.

    Parameters
    ----------
    outputs : iterable of Path
    inputs : iterable of str, Path or None
        Names that are no files, as of bundled instances, do no harm; None is passed over.
    expected : str
        What helps, for the error.

    Raises
    ------
    InputError
        If one file is among both.
    """
    read = {os.path.realpath(item) for item in inputs if item is not None}
    for path in outputs:
        if os.path.realpath(path) in read:
            raise InputError(f"{path}: was read, and would be overwritten; expected {expected}")


def check_output(out: str, inputs: Iterable[str | Path | None], *, force: bool) -> None:
    """Refuse an output that was read, or that exists and is not meant to be replaced.

    Parameters
    ----------
    out : str
    inputs : iterable of str, Path or None
    force : bool
        Whether what exists may be replaced.

    Raises
    ------
    InputError
        If it is refused.
    """
    if out == STDIN:
        raise InputError("--out: read '-'; expected the name of a file")
    if os.path.realpath(out) in {os.path.realpath(item) for item in inputs if item is not None}:
        raise InputError(f"--out: {out} is read, and would be overwritten; expected another name")
    if not force and path_exists(out):
        raise InputError(f"--out: {out} exists; expected a new name, or --force to replace it")


def write_made(
    made: list[Instance],
    arguments: argparse.Namespace,
    fields: str,
    inputs: Iterable[str | Path | None],
    breakdowns: bytes | None = None,
) -> None:
    """Write records into the folder of the arguments and print their paths.

    Parameters
    ----------
    made : list of Instance
    arguments : argparse.Namespace
    fields : str
        What makes names differ, for the error.
    inputs : iterable of str, Path or None
        Files that were read, which stay as they are.
    breakdowns : bytes, optional
        Content of a file of breakdowns to be written beside them, before them.

    Raises
    ------
    InputError
        If a name stands twice, is that of the file of breakdowns, or leads to a file that was read.
    """
    from acerl_np.problem.records import BREAKDOWNS_FILE, format_record
    from acerl_np.support.files import write_atomically

    names = [instance.name for instance in made]
    if len(set(names)) < len(names):
        raise InputError(f"--names: '{arguments.names}' gives one name twice; expected {fields}")
    if Path(BREAKDOWNS_FILE).stem in names:
        raise InputError(
            f"--names: read '{arguments.names}'; expected another name than that of {BREAKDOWNS_FILE}"
        )
    contents = {f"{instance.name}.csv": format_record(instance).encode() for instance in made}
    folder = make_folder(arguments.out)
    check_overwriting((folder / name for name in contents), inputs)
    if breakdowns is not None:
        write_atomically(folder / BREAKDOWNS_FILE, breakdowns)
        print(f"breakdowns {folder / BREAKDOWNS_FILE}", file=sys.stderr)
    for name, content in contents.items():
        write_atomically(folder / name, content)
        print(folder / name)


def check_breakdowns_there(folder: str, content: bytes | None) -> None:
    """Refuse a folder whose file of breakdowns would replace those of the new records.

    Parameters
    ----------
    folder : str
    content : bytes or None
        What the file may hold; None if those of the layout hold.

    Raises
    ------
    InputError
        If it holds something else.
    """
    from acerl_np.problem.records import BREAKDOWNS_FILE
    from acerl_np.support.files import read_bytes

    there = Path(folder) / BREAKDOWNS_FILE
    if path_exists(there) and read_bytes(there, InputError) != content:
        raise InputError(
            f"{there}: holds other breakdowns than those of the records, and would replace them; "
            "expected another --out"
        )
