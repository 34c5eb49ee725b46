"""What a command works on: the records, past assignments and policies that its arguments name."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, get_args

from acerl_np.problem import bundled, records
from acerl_np.problem.bundled import TABLES, expand_names
from acerl_np.problem.choices import MAX_CHANGES, Commitment
from acerl_np.problem.export import Export, read_mapping
from acerl_np.problem.instance import Instance, change_layouts, commit_instances
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.problem.servable import describe_traffic
from acerl_np.support import errors
from acerl_np.support.errors import InputError, LayoutError, LogWarning, refuse
from acerl_np.support.faults import RecordWarning, describe_left_out, list_causes
from acerl_np.support.files import FilePath, is_stream, path_exists

MOST_FAULTS = 20
"""Causes that are listed of what was left out."""


@contextmanager
def report_ignored(kept: list[RecordWarning] | None = None) -> Iterator[None]:
    """Say what of the files read inside is ignored, or put it into the list `kept`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RecordWarning)
        warnings.simplefilter("always", LogWarning)
        yield
    ignored = []
    for item in caught:
        if isinstance(item.message, RecordWarning):
            ignored.append(item.message)
        elif isinstance(item.message, LogWarning):
            print(item.message, file=sys.stderr)
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    if kept is None:
        tell_ignored(ignored)
    else:
        kept += ignored


def tell_ignored(ignored: Sequence[RecordWarning]) -> None:
    """Say on the standard error stream what is ignored of files, their columns in one line."""
    for warning in ignored:
        if warning.faults:
            print(list_faults(warning), file=sys.stderr)
    others = [warning for warning in ignored if not warning.faults]
    if others:
        columns = dict.fromkeys(column for warning in others for column in warning.columns)
        paths = dict.fromkeys(warning.path for warning in others)
        told = RecordWarning(errors.list_some(list(paths), 3), list(columns))
        print(" ".join(str(told).split()), file=sys.stderr)


def list_faults(warning: RecordWarning) -> str:
    """Return what was left out of a table, a line for each cause."""
    causes = list_causes(warning.faults)
    rest = len(causes) - MOST_FAULTS
    lines = causes[:MOST_FAULTS]
    lines += [f"and {rest:,} causes more (acerl-np records check lists all)"] * (rest > 0)
    shown = describe_left_out(warning.faults, warning.n_rows)
    return "\n  ".join(map(errors.make_printable, [f"{warning.path}: {shown}:", *lines]))


def read_breakdowns(texts: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """Return the file of listed breakdowns that --breakdowns names, and the model of random ones, if any.

    The file is None where the records' own hold; the model None where nothing breaks down at random.
    """
    path: str | None = None
    model: dict[str, Any] = {}
    for text in texts:
        numbers = text.split(",")
        if text == "listed":
            model = {"model": None}
        elif len(numbers) == 2 and not path_exists(text):
            try:
                model = {"model": RandomBreakdowns(float(numbers[0]), float(numbers[1]))}
            except (LayoutError, ValueError) as error:
                why = f": {error}" if isinstance(error, LayoutError) else ""
                expected = (
                    "expected FILE.csv, listed, none or MTBF,MTTR in seconds such as 3600,300"
                )
                said = f"--breakdowns: read {errors.describe(text)}; {expected}{why}"
                raise InputError(said) from error
        elif path is not None:
            raise InputError(f"--breakdowns: read {path} and {text}; expected one file")
        else:
            path = text
    return path, model


def vary_breakdowns(instances: list[Instance], model: Mapping[str, Any]) -> list[Instance]:
    """Return the instances with a model of random breakdowns, if there is one."""
    if not model:
        return instances
    return change_layouts(instances, lambda layout: layout.with_random_breakdowns(model["model"]))


def load_files(
    names: Sequence[str],
    layout: FilePath | Layout | None = None,
    breakdowns: Sequence[str] = (),
    mapping: FilePath | Export | None = None,
    *,
    servable: bool = True,
) -> list[Instance]:
    """Load records or suites; the breakdowns are what --breakdowns says.

    With `servable` records are refused some of whose tasks may be impossible to reach or to carry.
    """
    path, model = read_breakdowns(breakdowns)
    floor = layout if isinstance(layout, Layout | None) else bundled.load_layout(layout)
    how: dict[str, Any] = {"layout": floor, "breakdowns": path, "mapping": mapping}
    found: list[Instance] = []
    for name in names:
        if is_suite(name):
            found += bundled.load_suite(name, breakdowns=path)
        else:
            found += bundled.load_records(name, **how, servable=servable)
    return vary_breakdowns(found, model)


def refuse_none(arguments: argparse.Namespace) -> NoReturn:
    """Raise the line that says what is missing without any record."""
    if arguments.layout is not None:
        raise InputError("--layout: given without task records; expected RECORDS as well")
    breakdowns = getattr(arguments, "breakdowns", None)
    given = "nothing to work on" if not breakdowns else "--breakdowns: given without records"
    raise InputError(f"{given}; expected task records or a suite")


def tell_traffic(instances: Sequence[Instance]) -> None:
    """Say on the standard error stream of each floor how vehicles block each other there, if they do."""
    for floor in {id(item.layout): item.layout for item in instances}.values():
        if floor.traffic is not None:
            name = errors.make_printable(floor.name)
            print(f"{name}: {describe_traffic(floor)}", file=sys.stderr)


def load_instances(
    arguments: argparse.Namespace,
    default: str | None = None,
    *,
    tasks: Sequence[str] | None = None,
) -> list[Instance]:
    """Load the records or suites that are named: `tasks`, else the arguments', else the suite `default`."""
    tasks = expand_names(list_named(arguments) if tasks is None else tasks)
    if not tasks and (default is None or arguments.layout is not None):
        refuse_none(arguments)
    breakdowns = getattr(arguments, "breakdowns", None) or ()
    with report_ignored():
        names = tasks or [default or ""]
        found = load_files(names, arguments.layout, breakdowns, arguments.mapping)
    if isinstance(traffic := getattr(arguments, "traffic", None), str):
        found = change_layouts(found, lambda layout: layout.with_traffic(traffic))
    tell_traffic(found)
    if isinstance(text := getattr(arguments, "commitment", None), str):
        when, _, most = text.partition(":")
        if when not in get_args(Commitment) or (
            most and not (most.isdecimal() and when == "pickup")
        ):
            refuse("--commitment", text, "assignment, pickup or pickup:N")
        if when == "pickup":
            found = commit_instances(found, when, int(most) if most else MAX_CHANGES)
    return found


def list_named(arguments: argparse.Namespace) -> list[str]:
    """Return the records that the arguments name: by --on, or without an option."""
    return list(getattr(arguments, "on", None) or getattr(arguments, "tasks", None) or ())


def names_records(arguments: argparse.Namespace) -> bool:
    """Whether the arguments name any records, or their floor."""
    return bool(list_named(arguments)) or arguments.layout is not None


def is_table(name: str) -> bool:
    """Whether a name is that of a table: of any file but a policy's, a pipe or the standard input.

    A policy's file is an archive of arrays. Of what may be meant for one, or is not there, the ending tells
    who refuses it.
    """
    if is_stream(name):
        return True
    try:
        with Path(name).open("rb") as file:
            head = file.read(300)
    except (OSError, ValueError):
        return name.lower().endswith(TABLES)
    first_member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    is_archive = head.startswith(b"PK") and first_member.endswith(b".npy")
    return not is_archive and not name.endswith((".npz", ".py"))


def is_bundled(name: str) -> bool:
    """Whether a name is that of a bundled instance or suite, and of no file."""
    return (name in bundled.bundled_instances() and not path_exists(name)) or is_suite(name)


def is_suite(name: str) -> bool:
    """Whether a name is that of a bundled suite, and of no file."""
    return name in bundled.bundled_suites() and not path_exists(name)


def read_past(
    arguments: argparse.Namespace, paths: Sequence[str], instances: Sequence[Instance]
) -> list[records.Assignments]:
    """Return the past assignments of each record."""
    paths = expand_names(paths)
    if len(paths) != len(instances):
        raise InputError(
            f"--past: read {len(paths)} files of assignments for {len(instances)} records; expected one each"
        )
    export = read_mapping(arguments.mapping)
    with report_ignored():
        return [
            records.read_assignments(path, instance, export)
            for path, instance in zip(paths, instances, strict=True)
        ]
