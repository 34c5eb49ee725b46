"""What a command works on: the records, past assignments and policies that its arguments name."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.support.errors import (
    InputError,
    LayoutError,
    LogWarning,
    RecordWarning,
    describe,
    describe_left_out,
    list_causes,
    list_some,
    make_printable,
)
from acerl_np.support.files import is_stream, path_exists

if TYPE_CHECKING:
    from acerl_np.problem.assignments import Assignments
    from acerl_np.problem.instance import Instance


TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
"""Endings of the names of tables."""


MOST_FAULTS = 20
"""Causes that are listed of what was left out."""


@contextmanager
def report_ignored(kept: list[RecordWarning] | None = None) -> Iterator[None]:
    """Say on the standard error stream what of the files read inside is ignored, their columns in one line.

    Where there is a list for what would be said, `kept`, it goes there.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RecordWarning)
        warnings.simplefilter("always", LogWarning)
        yield
    found: dict[str, list[str]] = {}
    for item in caught:
        message = item.message
        if isinstance(message, LogWarning):
            print(message, file=sys.stderr)
        elif not isinstance(message, RecordWarning):
            warnings.warn_explicit(message, item.category, item.filename, item.lineno)
        elif kept is not None:
            kept.append(message)
        elif message.faults:
            print(list_faults(message), file=sys.stderr)
        else:
            for column in message.columns:
                found.setdefault(column, []).append(message.path)
    if found:
        paths = list(dict.fromkeys(path for some in found.values() for path in some))
        warning = RecordWarning(list_some(paths, 3), list(found))
        print(" ".join(str(warning).split()), file=sys.stderr)


def list_faults(warning: RecordWarning) -> str:
    """Return what was left out of a table, a line for each cause."""
    causes = list_causes(warning.faults)
    rest = len(causes) - MOST_FAULTS
    lines = causes[:MOST_FAULTS]
    lines += [f"and {rest:,} causes more (acerl-np records check lists all)"] * (rest > 0)
    shown = describe_left_out(warning.faults, warning.n_rows)
    return "\n  ".join(map(make_printable, [f"{warning.path}: {shown}:", *lines]))


def vary_breakdowns(instances: list[Instance], text: str | None) -> list[Instance]:
    """Return the instances with the breakdowns that --random-breakdowns asks for; None is for their own."""
    from acerl_np.problem.parts import RandomBreakdowns

    if text is None:
        return instances
    model = None
    if text.strip().lower() != "none":
        try:
            between, repair = (float(part) for part in text.split(","))
            model = RandomBreakdowns(between, repair)
        except LayoutError as error:
            raise InputError(f"--random-breakdowns: {error}") from error
        except ValueError as error:
            expected = "expected MTBF,MTTR in seconds such as 3600,300, or none"
            raise InputError(f"--random-breakdowns: read {describe(text)}; {expected}") from error
    # Instances that share a layout go on sharing it.
    layouts = {id(item.layout): item.layout.with_random_breakdowns(model) for item in instances}
    return [replace(item, layout=layouts[id(item.layout)]) for item in instances]


def load_instances(
    arguments: argparse.Namespace,
    default: str | None = None,
    *,
    servable: bool = True,
    ignored: list[RecordWarning] | None = None,
) -> list[Instance]:
    """Load the records or the suite that the arguments name, else the suite `default`, if any.

    With `servable` records are refused some of whose tasks may be impossible to reach or to carry. What is
    ignored goes to the list `ignored`, if there is one, as `report_ignored` says.
    """
    from acerl_np.problem.bundled import load_layout, load_records, load_suite
    from acerl_np.problem.export import read_mapping

    tasks, suite, breakdowns = arguments.tasks, arguments.suite, arguments.breakdowns
    random = getattr(arguments, "random_breakdowns", None)
    if not tasks:
        if arguments.layout is not None:
            raise InputError("--layout: given without task records; expected TASKS.csv as well")
        name = default if suite is None else suite
        if name is None:
            given = "nothing to work on"
            if breakdowns is not None:
                given = "--breakdowns: given without records"
            raise InputError(f"{given}; expected task records or --suite")
        with report_ignored():
            found = load_suite(name, breakdowns=breakdowns)
        return vary_commitment(vary_breakdowns(found, random), arguments)
    if suite is not None:
        raise InputError(f"--suite: read '{suite}' besides task records; expected one of the two")
    export = read_mapping(arguments.mapping)
    with report_ignored(ignored):
        layout = None if arguments.layout is None else load_layout(arguments.layout)
        how = {"layout": layout, "breakdowns": breakdowns, "mapping": export}
        found = []
        for task in drop_breakdowns(tasks):
            found += load_records(task, **how, servable=servable)
    return vary_commitment(vary_breakdowns(found, random), arguments)


def vary_commitment(instances: list[Instance], arguments: argparse.Namespace) -> list[Instance]:
    """Return instances whose tasks may change hands as --commitment and --max-changes say."""
    from acerl_np.problem.instance import commit_instances
    from acerl_np.problem.layout import MAX_CHANGES

    commitment = getattr(arguments, "commitment", None)
    most = getattr(arguments, "max_changes", None)
    if commitment != "pickup":
        if most is not None:
            raise InputError("--max-changes: given without --commitment pickup")
        return instances
    return commit_instances(instances, commitment, MAX_CHANGES if most is None else most)


def load_named(arguments: argparse.Namespace, names: Sequence[str]) -> list[Instance]:
    """Load records besides those that judge, or a bundled suite; layout and breakdowns hold for them, too."""
    data: dict[str, object] = {"tasks": list(names), "suite": None}
    if is_suite(names):
        data = {"tasks": [], "suite": names[0], "layout": None}
    return load_instances(argparse.Namespace(**{**vars(arguments), **data}))


def names_records(arguments: argparse.Namespace) -> bool:
    """Whether the arguments name any records, or their floor."""
    return bool(arguments.tasks) or arguments.suite is not None or arguments.layout is not None


def drop_breakdowns(tasks: list[str]) -> list[str]:
    """Return the names without those that "*.csv" finds beside records: of breakdowns, of rows left out."""
    from acerl_np.problem.records import BREAKDOWNS_FILE, LEFT_OUT

    return [
        x for x in tasks if Path(x).name != BREAKDOWNS_FILE and not x.endswith(LEFT_OUT)
    ] or tasks


def is_table(name: str) -> bool:
    """Whether a name is that of a table: of a CSV file, a workbook, a pipe or the standard input."""
    return name.lower().endswith(TABLES) or is_stream(name)


def is_bundled(name: str) -> bool:
    """Whether a name is that of a bundled instance, and of no file."""
    from acerl_np.problem.bundled import bundled_instances

    return name in bundled_instances() and not path_exists(name)


def is_suite(names: Sequence[str]) -> bool:
    """Whether these names are that of a bundled suite, and of no file."""
    from acerl_np.problem.bundled import bundled_suites

    return len(names) == 1 and names[0] in bundled_suites() and not path_exists(names[0])


def take_names(arguments: argparse.Namespace, *, needed: bool = True) -> list[str]:
    """Return the names that are those of policies; the others, of records, become the arguments' tasks.

    Without any policy it is an error if one is `needed`.
    """
    records = [name for name in arguments.names if is_table(name) or is_bundled(name)]
    names = [name for name in arguments.names if name not in records]
    arguments.tasks = records
    if not names and needed:
        raise InputError("no policy; expected policy.npz or a name such as EDD before the records")
    return names


def load_episode(arguments: argparse.Namespace) -> tuple[list[str], Instance]:
    """Return the policies' names, none or one, and the record of the episode that the arguments name."""
    *policies, name = arguments.names
    if len(policies) > 1 or not (policies or arguments.past):
        shown = ", ".join(map(make_printable, arguments.names[:3]))
        expected = "INSTANCE" if arguments.past and len(policies) > 1 else "POLICY and INSTANCE"
        raise InputError(f"read {len(arguments.names)} names ({shown}); expected {expected}")
    data = {**vars(arguments), "tasks": [name], "suite": None}
    found = load_instances(argparse.Namespace(**data))
    if len(found) > 1:
        raise InputError(
            f"{name}: {len(found)} records by the mapping's split; expected one (acerl-np records convert "
            "writes them)"
        )
    return policies, found[0]


def read_past(
    arguments: argparse.Namespace, paths: Sequence[str], instances: Sequence[Instance]
) -> list[Assignments]:
    """Return the past assignments of each record."""
    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.export import read_mapping

    if len(paths) != len(instances):
        raise InputError(
            f"--past: read {len(paths)} files for {len(instances)} records; expected one each"
        )
    export = read_mapping(arguments.mapping)
    with report_ignored():
        return [
            read_assignments(path, instance, export)
            for path, instance in zip(paths, instances, strict=True)
        ]
