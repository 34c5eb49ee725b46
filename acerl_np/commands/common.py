"""What several commands share: naming instances, making folders, compiling ahead."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from acerl_np.support.files import claim_folder, describe_os_error

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


def add_data_arguments(
    parser: argparse._ArgumentGroup | argparse.ArgumentParser, default: str | None = None
) -> None:
    """Declare TASKS, --suite, --layout, --breakdowns and --date-format."""
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="TASKS",
        help="task records (CSV; '-' for the standard input) or bundled instances such as DMH-01",
    )
    what = f" (default: {default})" if default else ""
    parser.add_argument("--suite", help=f"a bundled suite such as dmh-test{what}")
    add_reading(parser)


def add_records(
    parser: argparse.ArgumentParser,
    tasks: str = "task records (CSV; '-' for the standard input) or bundled instances",
    suite: str = "a bundled suite (default: dmh-train)",
) -> None:
    """Declare --tasks, --suite, --layout, --breakdowns and --date-format beside other names.

    Parameters
    ----------
    parser : ArgumentParser
    tasks, suite : str
        What the first two are for; by default records that judge policies.
    """
    parser.add_argument("--tasks", nargs="+", metavar="TASKS", default=[], help=tasks)
    parser.add_argument("--suite", help=suite)
    add_reading(parser)


def add_reading(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare what records are read with: --layout, --breakdowns and --date-format."""
    parser.add_argument(
        "--layout",
        metavar="LAYOUT.json",
        help="floor and fleet of the records: a JSON file or 'dmh' (default: layout.json beside each)",
    )
    add_breakdowns(parser)
    add_date_format(parser)


def add_layout(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Declare --layout of one floor."""
    default = "" if required else " (default: layout.json beside the record)"
    parser.add_argument(
        "--layout",
        metavar="LAYOUT.json",
        required=required,
        help=f"floor and fleet: a JSON file or 'dmh'{default}",
    )


def add_breakdowns(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare --breakdowns."""
    parser.add_argument(
        "--breakdowns",
        type=read_breakdowns_name,
        metavar="FILE.csv",
        help="listed breakdowns (vehicle,time,repair_time) of every record in the place of the layout's, "
        "or 'none', then no random ones either (default: breakdowns.csv beside a record, else the "
        "layout's)",
    )


def add_date_format(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare --date-format."""
    parser.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="how the records write dates, such as '%%d.%%m.%%Y %%H:%%M' for 06.05.2024 07:30 (%%Y year, "
        "%%m month, %%d day, %%H hour, %%M minute, %%S second). Seconds, seconds since 1970, times of "
        "day (07:30) and ISO 8601 timestamps need none",
    )


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


def read_breakdowns_name(text: str) -> str:
    """Return what --breakdowns names.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is empty: to leave the option out means something else.
    """
    if not text:
        raise argparse.ArgumentTypeError("read ''; expected the name of a file, or none")
    return text


def add_random_breakdowns(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare --random-breakdowns."""
    parser.add_argument(
        "--random-breakdowns",
        metavar="MTBF,MTTR",
        help="every vehicle also breaks down at random: mean seconds between failures and to repair, "
        "such as 3600,300; 'none': no random breakdowns (default: as the layout says)",
    )


def vary_breakdowns(instances: list[Instance], text: str | None) -> list[Instance]:
    """Return the instances with the random breakdowns that --random-breakdowns asks for.

    Parameters
    ----------
    instances : list of Instance
    text : str or None
        None leaves them as they are.

    Raises
    ------
    InputError
        If the text is not "none" or two usable numbers.
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

    Returns
    -------
    list of Instance

    Raises
    ------
    InputError
        If both or neither are given, or something cannot be loaded.
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


def drop_breakdowns(tasks: list[str]) -> list[str]:
    """Return the names without those of `breakdowns.csv`, which "*.csv" finds among records."""
    from acerl_np.problem.records import BREAKDOWNS_FILE

    return [task for task in tasks if Path(task).name != BREAKDOWNS_FILE] or tasks


def make_folder(path: str | Path) -> Path:
    """Make a folder for results if need be.

    Raises
    ------
    StorageError
        If it cannot be made.
    InputError
        If no folder can have this name.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder}: cannot make the folder: {describe_os_error(error)}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{make_printable(str(folder))}: {error}; expected the name of a folder"
        ) from error
    return folder


def make_new_folder(base: Path) -> Path:
    """Make a folder that did not exist: `base`, or `base` with the first free number.

    Raises
    ------
    StorageError
        If it cannot be made.
    """
    folder, k = base, 1
    make_folder(base.parent)
    while True:
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            k += 1
            folder = base.with_name(f"{base.name}-{k}")
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot make the folder: {describe_os_error(error)}"
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

    Raises
    ------
    InputError
        If another run is writing there, or has done so since `declare_run` was asked.
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
