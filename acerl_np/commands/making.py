"""`acerl-np records perturb` and `generate`: records that are made, and their names and files."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands import options as opt
from acerl_np.commands.inputs import load_instances
from acerl_np.commands.outputs import declare_outputs, make_folder
from acerl_np.support.errors import InputError
from acerl_np.support.files import path_exists

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance


def perturb(arguments: argparse.Namespace) -> None:
    """Write perturbed records.

    Add uniform whole-number noise to the arrival times, cut at 0: noised variants of known records, as in the
    paper's test suites. Tasks that arrive at 0 stay there unless --zeros move is given. The same seed gives
    the same files.

    Timestamps stay timestamps, with the same time zero. Breakdowns of the records' own (breakdowns.csv beside
    them, or --breakdowns) are written as breakdowns.csv beside the new ones; random ones stay the layout's.

    Examples
    --------
      acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
      acerl-np records perturb --suite dmh-train --magnitude 5 --first 9 --names 'DMH-{k}' --out test
    """
    from acerl_np.problem import perturb as noise

    instances = load_instances(arguments)
    breakdowns = read_own_breakdowns(arguments)
    n = arguments.magnitude
    names = []
    for k, instance in enumerate(instances):
        values = {"{name}": instance.name, "{n}": str(n), "{k}": f"{arguments.first + k:02d}"}
        names.append(make_name(arguments.names, values))
    declare_records(arguments, names, "{name} or {k}")
    made = [
        noise.perturb(instance, n, name=name, seed=arguments.seed, zeros=arguments.zeros)
        for instance, name in zip(instances, names, strict=True)
    ]
    write_made(made, arguments.out, breakdowns)


PERTURB = opt.Action(
    "add noise to arrival times",
    perturb,
    (
        *opt.list_data(),
        opt.CommandOption("--magnitude N", "noise in -N .. N, s", int, required=True),
        opt.SEED.but(help="seed of the noise"),
        opt.CommandOption(
            "--zeros",
            "tasks that arrive at 0 stay there, or move like the others",
            default="keep",
            choices=("keep", "move"),
        ),
        opt.CommandOption("--out DIR", "folder for the new records", required=True),
        opt.CommandOption(
            "--names PATTERN",
            "names of the new records: {name} the old one, {n} the magnitude, {k} a two-digit number",
            default="{name}-n{n}",
        ),
        opt.CommandOption("--first", "first {k}", int, 1),
        opt.FORCE,
    ),
)


def generate(arguments: argparse.Namespace) -> None:
    r"""Write records that are drawn.

    Draw task records for a floor: pickups and deliveries at random among its stations, arrivals in whole
    seconds. The same options and seed give the same files.

    Stations are what the layout lists as such and all sites of a kind other than "waypoint", "parking" and
    none; `acerl-np floor show` lists them. On a floor without any, tasks join all sites but the vehicles'
    start sites.

    A task is due S x its loaded time (way and handling), plus the mean travel time from the other sites to
    its pickup, after its arrival, both at the fleet's mean speed. Sites that cannot be reached are left out.
    Demands and handling times are uniform: whole numbers between bounds that are both whole.

    A folder with a breakdowns.csv is refused: it would replace the layout's breakdowns.

    Examples
    --------
      acerl-np records generate --layout dmh --tasks 30 --rate 60 --count 8 --out made
      acerl-np records generate --layout dmh --tasks 30 --process bursts --burst-size 6 --sites workstation \
          --seed 1 --out bursts
      acerl-np records generate --layout dmh --tasks 30 --sites st1 st2 warehouse --out made
      acerl-np records generate --layout floor.json --tasks 200 --demand 1 4 --handling-time 10 30 --out made
    """
    from acerl_np.problem.bundled import load_layout
    from acerl_np.problem.generate import generate_record

    check_breakdowns_there(arguments.out, None)
    names = [make_name(arguments.names, {"{k}": f"{k + 1:02d}"}) for k in range(arguments.count)]
    declare_records(arguments, names, "{k}")
    layout = load_layout(arguments.layout)
    own = ("process", "rate", "burst_size", "slack", "sites", "seed", "demand", "handling_time")
    options = {name: getattr(arguments, name) for name in own}
    made = [
        generate_record(layout, arguments.tasks, index=k, name=name, **options)
        for k, name in enumerate(names)
    ]
    write_made(made, arguments.out)


GENERATE = opt.Action(
    "draw records for a floor",
    generate,
    (
        opt.ONE_FLOOR,
        opt.CommandOption("--tasks N", "tasks of each record", int, required=True),
        opt.CommandOption(
            "--process",
            "arrivals: independent over N / R hours; exponential gaps; several at once",
            default="poisson",
            choices=("uniform", "poisson", "bursts"),
        ),
        opt.CommandOption("--rate R", "tasks per hour", float, 60.0),
        opt.CommandOption("--burst-size K", "tasks of a burst", int, 5),
        opt.CommandOption("--slack S", "factor on the loaded time", float, 2.0),
        opt.CommandOption(
            "--demand LOW HIGH",
            "draw demands between these, no more than a vehicle carries (default: 0)",
            float,
        ),
        opt.CommandOption(
            "--handling-time LOW HIGH", "draw handling times between these, s (default: 0)", float
        ),
        opt.CommandOption(
            "--sites SITE+",
            "kinds of sites, names of sites or stations, 'stations', or 'all' for all sites but the "
            "vehicles' start sites (default: stations, if the floor has any, else all)",
        ),
        opt.SEED.but(help="seed of the draws"),
        opt.CommandOption("--count", "number of records", int, 1, (1, 10_000)),
        opt.CommandOption("--out DIR", "folder for the records", required=True),
        opt.CommandOption(
            "--names PATTERN",
            "names of the records, {k} a two-digit number from 1",
            default="tasks-{k}",
        ),
        opt.FORCE,
    ),
)


def read_own_breakdowns(arguments: argparse.Namespace) -> bytes | None:
    """Return what must stand in the file of breakdowns beside new variants, None if those of the layout hold.

    One file holds for all records of a folder, so records with unlike files are refused.
    """
    from acerl_np.problem.bundled import find_breakdowns
    from acerl_np.problem.records import BREAKDOWN_COLUMNS, BREAKDOWNS_FILE, NO_BREAKDOWNS
    from acerl_np.support.files import read_bytes

    content: bytes | None
    if arguments.breakdowns == NO_BREAKDOWNS:
        content = f"{','.join(BREAKDOWN_COLUMNS)}\n".encode()
    elif arguments.breakdowns is not None:
        content = read_bytes(arguments.breakdowns, InputError, streams=True)
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
    """Refuse a folder whose breakdowns would replace those of new records, `content` or the layout's."""
    from acerl_np.problem.records import BREAKDOWNS_FILE
    from acerl_np.support.files import read_bytes

    there = Path(folder) / BREAKDOWNS_FILE
    if path_exists(there) and read_bytes(there, InputError) != content:
        raise InputError(
            f"{there}: holds other breakdowns than those of the records, and would replace them; "
            "expected another --out"
        )


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
