"""`acerl-np records`: make task records, look through them, replay past assignments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    OFFERED_LOAD,
    add_breakdowns,
    add_data_arguments,
    load_instances,
    make_folder,
    vary_breakdowns,
)
from acerl_np.support.errors import InputError
from acerl_np.support.report import FORMATS, Cell, name_cells, render_json, render_table

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance

DESCRIPTION = """\
Make task records, look through them, replay past assignments.

acerl-np records ACTION --help explains an action's options.
"""

EPILOG = """\
examples:
  acerl-np records check week1.csv --layout floor.json
  acerl-np records generate --layout floor.json --tasks 200 --process poisson --rate 80 --out made
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records replay assignments.csv --tasks week1.csv --layout floor.json
"""

PERTURB = """\
Add uniform whole-number noise to the arrival times, cut at 0: noised variants of known records, as in the
paper's test suites. Tasks that arrive at 0 stay there unless --zeros move is given. The same seed gives
the same files.

Timestamps stay timestamps, with the same time zero. Breakdowns of the records' own (breakdowns.csv beside
them, or --breakdowns) are written as breakdowns.csv beside the new ones; random ones stay the layout's.
"""

PERTURB_EXAMPLES = """\
examples:
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records perturb --suite dmh-train --magnitude 5 --first 9 --names 'DMH-{k}' --out test
"""

GENERATE = """\
Draw task records for a floor: pickups and deliveries at random among its sites, arrivals in whole
seconds. The same options and seed give the same files.

A task is due S x its loaded time (way and handling), plus the mean travel time from the other sites to its
pickup, after its arrival, both at the fleet's mean speed. Sites that cannot be reached are left out.
Demands and handling times are uniform: whole numbers between bounds that are both whole.

A folder with a breakdowns.csv is refused: it would replace the layout's breakdowns.
"""

GENERATE_EXAMPLES = """\
examples:
  acerl-np records generate --layout dmh --tasks 30 --rate 60 --count 8 --out made
  acerl-np records generate --layout dmh --tasks 30 --process bursts --burst-size 6 --sites workstation \\
      --seed 1 --out bursts
  acerl-np records generate --layout floor.json --tasks 200 --demand 1 4 --handling-time 10 30 --out made
"""

CHECK = f"""\
Look through task records: what they ask of the fleet, and what in them nobody could do.

{OFFERED_LOAD}
Tasks that no vehicle may carry or reach make a record unusable for the other commands; the exit status is
0 all the same.
"""

REPLAY = """\
Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.
"""

REPLAY_EXAMPLES = """\
examples:
  acerl-np records replay assignments.csv --tasks week1.csv --layout floor.json --schedule-csv times.csv
  acerl-np evaluate EDD STD --replay assignments.csv --tasks week1.csv --layout floor.json
"""

MOST_NAMES = 5
"""Tasks that a table names before it says only how many there are."""


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    return actions.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_layout(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    default = "" if required else " (default: layout.json beside the record)"
    parser.add_argument(
        "--layout",
        metavar="LAYOUT.json",
        required=required,
        help=f"floor and fleet: a JSON file or 'dmh'{default}",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    perturb = _add_action(
        actions, "perturb", "add noise to arrival times", PERTURB, PERTURB_EXAMPLES
    )
    add_data_arguments(perturb)
    perturb.add_argument(
        "--magnitude", type=int, required=True, metavar="N", help="noise in -N .. N, s"
    )
    perturb.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    perturb.add_argument(
        "--zeros",
        choices=("keep", "move"),
        default="keep",
        help="tasks that arrive at 0 stay there, or move like the others (default: keep)",
    )
    perturb.add_argument("--out", required=True, metavar="DIR", help="folder for the new records")
    perturb.add_argument(
        "--names",
        default="{name}-n{n}",
        metavar="PATTERN",
        help="names of the new records: {name} the old one, {n} the magnitude, {k} a two-digit number "
        "(default: {name}-n{n})",
    )
    perturb.add_argument("--first", type=int, default=1, help="first {k} (default: 1)")

    generate = _add_action(
        actions, "generate", "draw records for a floor", GENERATE, GENERATE_EXAMPLES
    )
    _add_layout(generate, required=True)
    generate.add_argument(
        "--tasks", type=int, required=True, metavar="N", help="tasks of each record"
    )
    generate.add_argument(
        "--process",
        choices=("uniform", "poisson", "bursts"),
        default="poisson",
        help="arrivals: independent over N / R hours; exponential gaps; several at once "
        "(default: poisson)",
    )
    generate.add_argument(
        "--rate", type=float, default=60.0, metavar="R", help="tasks per hour (default: 60)"
    )
    generate.add_argument(
        "--burst-size", type=int, default=5, metavar="K", help="tasks of a burst (default: 5)"
    )
    generate.add_argument(
        "--slack",
        type=float,
        default=2.0,
        metavar="S",
        help="factor on the loaded time (default: 2)",
    )
    generate.add_argument(
        "--demand",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="draw demands between these, no more than a vehicle carries (default: 0)",
    )
    generate.add_argument(
        "--handling-time",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="draw handling times between these, s (default: 0)",
    )
    generate.add_argument(
        "--sites",
        metavar="KIND",
        help="only sites of this kind (default: all but the vehicles' start sites)",
    )
    generate.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    generate.add_argument("--count", type=int, default=1, help="number of records (default: 1)")
    generate.add_argument("--out", required=True, metavar="DIR", help="folder for the records")
    generate.add_argument(
        "--names",
        default="tasks-{k}",
        metavar="PATTERN",
        help="names of the records, {k} a two-digit number from 1 (default: tasks-{k})",
    )

    check = _add_action(actions, "check", "look through records", CHECK)
    add_data_arguments(check)
    check.add_argument("--format", choices=FORMATS, default="text", help="form of the tables")

    replay = _add_action(actions, "replay", "play past assignments", REPLAY, REPLAY_EXAMPLES)
    replay.add_argument(
        "assignments", metavar="ASSIGNMENTS.csv", help="which vehicle served which task from when"
    )
    replay.add_argument(
        "--tasks", required=True, metavar="TASKS", help="the task record or bundled instance"
    )
    _add_layout(replay)
    add_breakdowns(replay)
    replay.add_argument(
        "--schedule-csv",
        metavar="FILE.csv",
        help="write of every task start and finish as simulated, beside planned_start and planned_finish "
        "as recorded",
    )
    replay.add_argument("--format", choices=FORMATS, default="text", help="form of the table")


def run(arguments: argparse.Namespace) -> int:
    """Run the action; return the exit status."""
    actions = {
        "perturb": perturb_records,
        "generate": generate_records,
        "check": check_records,
        "replay": replay_record,
    }
    actions[arguments.action](arguments)
    return 0


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


def check_overwriting(outputs: Iterable[Path], inputs: Iterable[str | Path | None]) -> None:
    """Refuse to write over what was read.

    Parameters
    ----------
    outputs : iterable of Path
    inputs : iterable of str, Path or None
        Names that are no files, as of bundled instances, do no harm; None is passed over.

    Raises
    ------
    InputError
        If one file is among both.
    """
    read = {os.path.realpath(item) for item in inputs if item is not None}
    for path in outputs:
        if os.path.realpath(path) in read:
            raise InputError(
                f"{path}: was read, and would be overwritten; expected another --out or --names"
            )


def write_records(
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


def perturb_records(arguments: argparse.Namespace) -> None:
    """Write perturbed records."""
    from acerl_np.problem.bundled import bundled_instances, bundled_suites
    from acerl_np.problem.perturb import perturb

    if not 0 <= arguments.seed < 2**63:
        raise InputError(
            f"--seed: read {arguments.seed}; expected a whole number from 0 to 2**63 - 1"
        )
    instances = load_instances(arguments)
    breakdowns = read_own_breakdowns(arguments)
    made = []
    for k, instance in enumerate(instances):
        values = {"{name}": instance.name, "{n}": str(arguments.magnitude)}
        name = make_name(arguments.names, values | {"{k}": f"{arguments.first + k:02d}"})
        made.append(
            perturb(
                instance,
                arguments.magnitude,
                seed=arguments.seed,
                zeros=arguments.zeros,
                name=name,
            )
        )
    named = [*arguments.tasks, *bundled_suites().get(arguments.suite, [])]
    inputs = [*named, arguments.layout, arguments.breakdowns, *map(bundled_instances().get, named)]
    write_records(made, arguments, "{name} or {k}", inputs, breakdowns)


def read_own_breakdowns(arguments: argparse.Namespace) -> bytes | None:
    """Return what must stand in the file of breakdowns beside new variants of the records.

    Returns
    -------
    bytes or None
        Content of the file of breakdowns that belongs to the records; None if those of the layout hold.

    Raises
    ------
    InputError
        If the records have unlike files, or the folder of the new ones holds another: one file holds for
        all records of a folder.
    """
    from acerl_np.problem.bundled import find_breakdowns
    from acerl_np.problem.records import BREAKDOWN_COLUMNS, BREAKDOWNS_FILE, NO_BREAKDOWNS
    from acerl_np.support.files import read_bytes

    content: bytes | None
    if arguments.breakdowns == NO_BREAKDOWNS:
        content = f"{','.join(BREAKDOWN_COLUMNS)}\n".encode()
    elif arguments.breakdowns is not None:
        content = read_bytes(arguments.breakdowns, InputError)
    else:
        found: dict[bytes | None, str] = {}
        for task in arguments.tasks:
            beside = find_breakdowns(task)
            found.setdefault(None if beside is None else read_bytes(beside, InputError), task)
        if len(found) > 1:
            first, second, *_ = found.values()
            raise InputError(
                f"{second}: other breakdowns ({BREAKDOWNS_FILE} beside it) than those of {first}, and one "
                "folder has one such file; expected records with the same, or --breakdowns"
            )
        content = next(iter(found), None)
    check_breakdowns_there(arguments.out, content)
    return content


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
    from acerl_np.support.files import path_exists, read_bytes

    there = Path(folder) / BREAKDOWNS_FILE
    if path_exists(there) and read_bytes(there, InputError) != content:
        raise InputError(
            f"{there}: holds other breakdowns than those of the records, and would replace them; "
            "expected another --out"
        )


def generate_records(arguments: argparse.Namespace) -> None:
    """Write records that are drawn."""
    from acerl_np.problem.bundled import load_layout
    from acerl_np.problem.generate import generate_record

    if not 1 <= arguments.count <= 10_000:
        raise InputError(f"--count: read {arguments.count}; expected a number from 1 to 10,000")
    check_breakdowns_there(arguments.out, None)
    layout = load_layout(arguments.layout)
    made = [
        generate_record(
            layout,
            arguments.tasks,
            process=arguments.process,
            rate=arguments.rate,
            burst_size=arguments.burst_size,
            slack=arguments.slack,
            demand=arguments.demand and tuple(arguments.demand),
            handling_time=arguments.handling_time and tuple(arguments.handling_time),
            sites=arguments.sites,
            seed=arguments.seed,
            index=k,
            name=make_name(arguments.names, {"{k}": f"{k + 1:02d}"}),
        )
        for k in range(arguments.count)
    ]
    write_records(made, arguments, "{k}", [arguments.layout])


def check_records(arguments: argparse.Namespace) -> None:
    """Print one table per record, or one JSON document."""
    found = [
        (instance.name, describe_record(instance))
        for instance in load_instances(arguments, servable=False)
    ]
    if arguments.format == "json":
        header = ["what", "value", "which"]
        tables = ({"record": name, "rows": name_cells(header, rows)} for name, rows in found)
        print(render_json(tables), end="")
        return
    for k, (name, rows) in enumerate(found):
        if k:
            print()
        print(render_table([name, "value", "which"], rows, arguments.format), end="")


def describe_record(instance: Instance) -> list[list[Cell]]:
    """Return the rows of a record's table: what, its value, which tasks."""
    from acerl_np.problem.servable import check_record

    found = check_record(instance)
    load, vehicles = found.load, len(instance.layout.vehicles)
    fleet = f"{vehicles} vehicle{'s' if vehicles > 1 else ''}"

    def count(what: str, names: tuple[str, ...]) -> list[Cell]:
        shown = " ".join(names[:MOST_NAMES]) + (" ..." if names[MOST_NAMES:] else "")
        return [what, str(len(names)), shown]

    begins = f"from {instance.epoch}" if instance.epoch is not None else ""
    return [
        ["tasks", str(found.n_tasks), ""],
        ["first arrival, s", f"{found.first:g}", begins],
        ["last arrival, s", f"{found.last:g}", ""],
        count("equal arrivals", found.equal_arrivals),
        count("no vehicle may carry", found.too_heavy),
        count("cannot be reached", found.unreached),
        count("lead into a dead end", found.dead_ends),
        count("due too early for any vehicle", found.hopeless),
        ["breakdowns until the last arrival", str(found.n_breakdowns), ""],
        ["first arrival to last due time, s", f"{load.span:g}", ""],
        ["fleet's time without repairs, s", f"{load.fleet_time:g}", fleet],
        ["offered load", f"{load.offered:.2f}", f"{load.loaded:.2f} without approaches"],
        ["usable", "yes" if found.servable else "no", ""],
    ]


def replay_record(arguments: argparse.Namespace) -> None:
    """Play past assignments and print their scores."""
    import numpy as np

    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.bundled import load_instance
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    instance = load_instance(
        arguments.tasks, layout=arguments.layout, breakdowns=arguments.breakdowns
    )
    [instance] = vary_breakdowns([instance], "none")
    assignments = read_assignments(arguments.assignments, instance)
    played = replay_assignments(assignments)
    late = played.finish > instance.arrival + instance.expiry + 1e-9
    behind = played.start - assignments.start
    header = ["record", "makespan", "tardiness", "late tasks", "assignments"]
    header += ["mean start behind, s", "largest, s"]
    row: list[Cell] = [
        instance.name,
        f"{played.makespan:.1f}",
        f"{played.tardiness:.1f}",
        str(int(np.count_nonzero(late))),
        str(played.decisions),
        f"{behind.mean():.1f}",
        f"{behind.max():.1f}",
    ]
    if arguments.schedule_csv is not None:
        write_schedule(arguments.schedule_csv, played)
    print(render_table(header, [row], arguments.format), end="")
