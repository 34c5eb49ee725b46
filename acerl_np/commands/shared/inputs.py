"""What a command works on: the records, past assignments and policies that its arguments name."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from acerl_np.problem import bundled, records
from acerl_np.problem.choices import MAX_CHANGES
from acerl_np.problem.export import read_mapping
from acerl_np.problem.instance import Instance, change_layouts, commit_instances
from acerl_np.problem.layout import describe_traffic
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.support import errors
from acerl_np.support.errors import InputError, LayoutError, LogWarning, RecordWarning
from acerl_np.support.files import is_stream, path_exists

TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
"""Endings of the names of tables, where there is no file that tells."""


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
        warning = RecordWarning(errors.list_some(paths, 3), list(found))
        print(" ".join(str(warning).split()), file=sys.stderr)


def list_faults(warning: RecordWarning) -> str:
    """Return what was left out of a table, a line for each cause."""
    causes = errors.list_causes(warning.faults)
    rest = len(causes) - MOST_FAULTS
    lines = causes[:MOST_FAULTS]
    lines += [f"and {rest:,} causes more (acerl-np records check lists all)"] * (rest > 0)
    shown = errors.describe_left_out(warning.faults, warning.n_rows)
    return "\n  ".join(map(errors.make_printable, [f"{warning.path}: {shown}:", *lines]))


def vary_breakdowns(instances: list[Instance], text: str | None) -> list[Instance]:
    """Return the instances with the breakdowns that --random-breakdowns asks for; None is for their own."""
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
            said = f"--random-breakdowns: read {errors.describe(text)}; {expected}"
            raise InputError(said) from error
    return change_layouts(instances, lambda layout: layout.with_random_breakdowns(model))


def load_instances(
    arguments: argparse.Namespace,
    default: str | None = None,
    *,
    tasks: Sequence[str] | None = None,
    servable: bool = True,
    ignored: list[RecordWarning] | None = None,
) -> list[Instance]:
    """Load the records or suites that are named: `tasks`, else the arguments', else the suite `default`.

    With `servable` records are refused some of whose tasks may be impossible to reach or to carry. What is
    ignored goes to the list `ignored`, if there is one, as `report_ignored` says.
    """
    suite, breakdowns = getattr(arguments, "suite", None), arguments.breakdowns
    tasks = arguments.tasks if tasks is None else tasks
    if tasks and suite is not None:
        raise InputError(f"--suite: read '{suite}' besides task records; expected one of the two")
    if not tasks and arguments.layout is not None:
        raise InputError("--layout: given without task records; expected TASKS.csv as well")
    usual = default if suite is None else suite
    if not tasks and usual is None:
        given = (
            "nothing to work on" if breakdowns is None else "--breakdowns: given without records"
        )
        raise InputError(f"{given}; expected task records or --suite")
    export = None if arguments.mapping is None else read_mapping(arguments.mapping)
    found: list[Instance] = []
    with report_ignored(ignored):
        layout = None if arguments.layout is None else bundled.load_layout(arguments.layout)
        how = {"layout": layout, "breakdowns": breakdowns, "mapping": export}
        for name in drop_breakdowns(tasks) or [usual or ""]:
            if not tasks or is_suite(name):
                found += bundled.load_suite(name, breakdowns=breakdowns)
            else:
                found += bundled.load_records(name, **how, servable=servable)
    found = vary_breakdowns(found, getattr(arguments, "random_breakdowns", None))
    if isinstance(traffic := getattr(arguments, "traffic", None), str):
        found = change_layouts(found, lambda layout: layout.with_traffic(traffic))
    for floor in {id(item.layout): item.layout for item in found}.values():
        if floor.traffic is not None:
            print(
                f"{errors.make_printable(floor.name)}: {describe_traffic(floor)}", file=sys.stderr
            )
    most = getattr(arguments, "max_changes", None)
    if getattr(arguments, "commitment", None) == "pickup":
        found = commit_instances(found, "pickup", MAX_CHANGES if most is None else most)
    elif most is not None:
        raise InputError("--max-changes: given without --commitment pickup")
    return found


def load_named(arguments: argparse.Namespace, names: Sequence[str]) -> list[Instance]:
    """Load records or suites besides those that judge; layout and breakdowns hold for them, too."""
    return load_instances(argparse.Namespace(**{**vars(arguments), "suite": None}), tasks=names)


def names_records(arguments: argparse.Namespace) -> bool:
    """Whether the arguments name any records, or their floor."""
    return bool(arguments.tasks) or arguments.suite is not None or arguments.layout is not None


def drop_breakdowns(tasks: Sequence[str]) -> Sequence[str]:
    """Return the names without those that "*.csv" finds beside records: of breakdowns, of rows left out."""
    left_out, breakdowns = records.LEFT_OUT, records.BREAKDOWNS_FILE
    return [x for x in tasks if Path(x).name != breakdowns and not x.endswith(left_out)] or tasks


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
