"""Names and files of the records that actions make."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.common import make_folder
from acerl_np.commands.outputs import declare_outputs
from acerl_np.support.errors import InputError
from acerl_np.support.files import path_exists

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance


def make_name(pattern: str, values: Mapping[str, str]) -> str:
    """Return a record's name: the pattern with its placeholders, such as "{k}", replaced by their values."""
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


def declare_records(arguments: argparse.Namespace, names: Sequence[str], fields: str) -> None:
    """Refuse names that new records cannot have in the arguments' folder; `fields` make names differ."""
    from acerl_np.problem.records import BREAKDOWNS_FILE

    if len(set(names)) < len(names):
        raise InputError(f"--names: '{arguments.names}' gives one name twice; expected {fields}")
    if Path(BREAKDOWNS_FILE).stem in names:
        raise InputError(
            f"--names: read '{arguments.names}'; expected another name than that of {BREAKDOWNS_FILE}"
        )
    declare_outputs(arguments, [Path(arguments.out) / f"{name}.csv" for name in names])


def write_made(made: list[Instance], out: str, breakdowns: bytes | None = None) -> None:
    """Write records into a folder, after the breakdowns beside them, if any, and print their paths."""
    from acerl_np.problem.records import BREAKDOWNS_FILE, format_record
    from acerl_np.support.files import write_atomically

    contents = {f"{instance.name}.csv": format_record(instance).encode() for instance in made}
    folder = make_folder(out)
    # What is there already has the same content.
    if breakdowns is not None and not path_exists(folder / BREAKDOWNS_FILE):
        write_atomically(folder / BREAKDOWNS_FILE, breakdowns)
        print(f"breakdowns {folder / BREAKDOWNS_FILE}", file=sys.stderr)
    for name, content in contents.items():
        write_atomically(folder / name, content)
        print(folder / name)


def check_breakdowns_there(folder: str, content: bytes | None) -> None:
    """Refuse a folder whose breakdowns would replace those of new records, `content` or the layout's."""
    from acerl_np.problem.records import BREAKDOWNS_FILE
    from acerl_np.support.files import read_bytes

    there = Path(folder) / BREAKDOWNS_FILE
    if path_exists(there) and read_bytes(there, InputError) != content:
        raise InputError(
            f"{there}: holds other breakdowns than those of the records, and would replace them; "
            "expected another --out"
        )
