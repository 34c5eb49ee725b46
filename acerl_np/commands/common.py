"""What several commands share: naming instances, making folders, compiling ahead."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.options import (
    BREAKDOWNS,
    DATE_FORMAT,
    LAYOUT,
    READING,
    SUITE,
    TASKS,
    Parser,
    declare,
)
from acerl_np.commands.outputs import declare_run
from acerl_np.support.errors import (
    InputError,
    LayoutError,
    RecordWarning,
    StorageError,
    describe,
    list_some,
    make_printable,
)
from acerl_np.support.files import claim_folder, describe_os_error, is_stream, path_exists

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials
    from acerl_np.problem.instance import Instance

OFFERED_LOAD = """\
offered load: the time that the tasks take (mean approach, way from pickup to delivery, handling), by the
time that the fleet has from the first arrival to the last due time, repairs taken off (random ones by
their mean times). A task that only some vehicles may carry counts against these alone: the load is that
of the worst such group. Above 1 the fleet keeps up only with approaches shorter than the mean, and not
at all if the load without approaches is above 1. A little below 1 tasks may still be late.
"""


def add_data_arguments(parser: Parser, default: str | None = None, *, given: bool = False) -> None:
    """Declare TASKS, --suite (`default` says of which if none is named), and what records are read with."""
    suite = SUITE if default is None else SUITE.but(help=f"{SUITE.help} (default: {default})")
    declare(parser, TASKS, suite, *READING, given=given)


def add_layout(parser: Parser, *, required: bool = False) -> None:
    """Declare --layout of one floor."""
    default = "" if required else " (default: layout.json beside the record)"
    help = f"floor and fleet: a JSON file or 'dmh'{default}"
    LAYOUT.but(required=required, help=help).declare(parser)


def add_breakdowns(parser: Parser) -> None:
    """Declare --breakdowns."""
    BREAKDOWNS.declare(parser)


def add_date_format(parser: Parser) -> None:
    """Declare --date-format."""
    DATE_FORMAT.declare(parser)


@contextmanager
def report_ignored() -> Iterator[None]:
    """Say on the standard error stream, in one line, which columns of the files read inside are ignored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RecordWarning)
        yield
    found: dict[str, list[str]] = {}
    for item in caught:
        if isinstance(item.message, RecordWarning):
            for column in item.message.columns:
                found.setdefault(column, []).append(item.message.path)
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    if found:
        paths = list(dict.fromkeys(path for some in found.values() for path in some))
        warning = RecordWarning(list_some(paths, 3), list(found))
        print(" ".join(str(warning).split()), file=sys.stderr)


def vary_breakdowns(instances: list[Instance], text: str | None) -> list[Instance]:
    """Return the instances with the random breakdowns that --random-breakdowns asks for.

    None leaves them as they are.
    """
    from acerl_np.problem.parts import RandomBreakdowns

    if text is None:
        return instances
    expected = "expected MTBF,MTTR in seconds such as 3600,300, or none"
    model = None
    if text.strip().lower() != "none":
        try:
            between, repair = (float(part) for part in text.split(","))
        except ValueError as error:
            raise InputError(f"--random-breakdowns: read {describe(text)}; {expected}") from error
        try:
            model = RandomBreakdowns(between, repair)
        except LayoutError as error:
            raise InputError(f"--random-breakdowns: {error}") from error
    # Instances that share a layout go on sharing it.
    layouts = {id(item.layout): item.layout.with_random_breakdowns(model) for item in instances}
    return [replace(item, layout=layouts[id(item.layout)]) for item in instances]


def load_instances(
    arguments: argparse.Namespace, default: str | None = None, *, servable: bool = True
) -> list[Instance]:
    """Load the records or the suite that the arguments name.

    Parameters
    ----------
    arguments : argparse.Namespace
    default : str, optional
        Suite to load if none is named; by default that is an error.
    servable : bool
        Refuse records some of whose tasks may be impossible to reach or to carry.
    """
    with report_ignored():
        instances = _find_instances(arguments, default, servable)
    return vary_breakdowns(instances, getattr(arguments, "random_breakdowns", None))


def _find_instances(
    arguments: argparse.Namespace, default: str | None, servable: bool
) -> list[Instance]:
    from acerl_np.problem.bundled import load_instance, load_layout, load_suite

    breakdowns = arguments.breakdowns
    if arguments.tasks and arguments.suite is not None:
        raise InputError(
            f"--suite: read '{arguments.suite}' besides task records; expected one of the two"
        )
    if arguments.tasks:
        layout = None if arguments.layout is None else load_layout(arguments.layout)
        return [
            load_instance(
                task,
                layout=layout,
                breakdowns=breakdowns,
                date_format=arguments.date_format,
                servable=servable,
            )
            for task in drop_breakdowns(arguments.tasks)
        ]
    if arguments.layout is not None:
        raise InputError("--layout: given without task records; expected TASKS.csv as well")
    suite = default if arguments.suite is None else arguments.suite
    if suite is None:
        given = "nothing to work on"
        if breakdowns is not None:
            given = "--breakdowns: given without records"
        raise InputError(f"{given}; expected task records or --suite")
    return load_suite(suite, breakdowns=breakdowns)


def names_records(arguments: argparse.Namespace) -> bool:
    """Whether the arguments name any records, or their floor."""
    return bool(arguments.tasks) or arguments.suite is not None or arguments.layout is not None


def drop_breakdowns(tasks: list[str]) -> list[str]:
    """Return the names without those of `breakdowns.csv`, which "*.csv" finds among records."""
    from acerl_np.problem.records import BREAKDOWNS_FILE

    return [task for task in tasks if Path(task).name != BREAKDOWNS_FILE] or tasks


def is_table(name: str) -> bool:
    """Whether a name is that of a table: of a CSV file, a pipe or the standard input."""
    return name.lower().endswith(".csv") or is_stream(name)


def part_names(names: list[str]) -> tuple[list[str], list[str]]:
    """Return those of policies, and those of records: CSV files, streams, and bundled instances."""
    from acerl_np.problem.bundled import bundled_instances

    bundled = bundled_instances()
    records = [
        name for name in names if is_table(name) or (name in bundled and not path_exists(name))
    ]
    return [name for name in names if name not in records], records


def take_pairs(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the files of past assignments and their records; --tasks once named these behind those."""
    if arguments.tasks or arguments.past is None:
        return arguments.names, arguments.tasks
    return arguments.past, arguments.names


def make_folder(path: str | Path) -> Path:
    """Make a folder for results if need be."""
    folder = Path(path)
    _make(folder, lambda: folder.mkdir(parents=True, exist_ok=True))
    return folder


def make_new_folder(base: Path) -> Path:
    """Make a folder that did not exist: `base`, or `base` with the first free number."""
    folder, k = base, 1
    make_folder(base.parent)
    while True:
        try:
            _make(folder, folder.mkdir)
            return folder
        except FileExistsError:
            k += 1
            folder = base.with_name(f"{base.name}-{k}")


def _make(folder: Path, make: Callable[[], None]) -> None:
    try:
        make()
    except OSError as error:
        if isinstance(error, FileExistsError) and folder.is_dir():
            raise
        raise StorageError(
            f"{folder}: cannot make the folder: {describe_os_error(error)}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{make_printable(str(folder))}: {error}; expected the name of a folder"
        ) from error


@contextmanager
def open_results(arguments: argparse.Namespace, name: str) -> Iterator[Path]:
    """Make the folder of a run's results if need be, and hold it for this run alone.

    Parameters
    ----------
    arguments : argparse.Namespace
        With what `declare_run` looks at. Without `out` the folder is that of the checkpoint, or a new one
        below runs/.
    name : str
        Of a new folder.
    """
    out, resume = arguments.out, arguments.resume
    if out is not None:
        folder = make_folder(out)
    elif resume is not None:
        folder = make_folder(Path(resume).parent)
    else:
        folder = make_new_folder(Path("runs") / name)
    with claim_folder(folder):
        declare_run(arguments)
        yield folder


def report_unfinished(name: str, trials: Trials) -> None:
    """Say on the standard error stream how many episodes did not finish, if any."""
    if trials.unfinished:
        print(
            f"{name}: {trials.unfinished} of {trials.makespan.size} episodes did not finish; "
            "means are over the others",
            file=sys.stderr,
        )


def compile_ahead(*parts: str, quiet: bool = False) -> None:
    """Compile or load kernels before a command begins to take its time; say how long compiling took.

    Parameters
    ----------
    *parts : str
        Of `acerl_np.warm.PARTS`.
    quiet : bool
        Say nothing about compiling, neither now nor later.
    """
    from acerl_np.support.machine_code import count_compiled
    from acerl_np.warm import warm_up

    started, before = time.perf_counter(), count_compiled()
    for part in parts:
        warm_up(part, quiet=quiet)
    if count_compiled() > before and not quiet:
        print(f"compiled in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
