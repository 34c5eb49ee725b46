"""`acerl-np records perturb` and `generate`: records that are made, and their names and files."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import load_instances
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import count
from acerl_np.problem import columns, records
from acerl_np.problem.bundled import find_breakdowns, load_layout
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import BREAKDOWNS_FILE
from acerl_np.problem.servable import measure_load
from acerl_np.support.errors import InputError
from acerl_np.support.files import path_exists, read_bytes, write_atomically


def perturb(arguments: argparse.Namespace) -> None:
    """Add noise to arrival times.

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
    from acerl_np.problem.generate import perturb

    instances = load_instances(arguments)
    breakdowns = read_own_breakdowns(arguments)
    n, how = arguments.magnitude, {"seed": arguments.seed, "zeros": arguments.zeros}
    names = []
    for k, instance in enumerate(instances, arguments.first):
        values = {"{name}": instance.name, "{n}": str(n), "{k}": f"{k:02d}"}
        names.append(make_name(arguments.names, values))
    declare_records(arguments, names, "{name} or {k}")
    named = zip(instances, names, strict=True)
    made = [perturb(instance, n, name=name, **how) for instance, name in named]
    write_made(made, arguments.out, breakdowns)


PERTURB = opt.Action(
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
    r"""Draw records for a floor.

    Draw task records for a floor: pickups and deliveries at random among its stations, arrivals in whole
    seconds. The same options and seed give the same files.

    Stations are what the layout lists as such and all sites of a kind other than "waypoint", "parking",
    "charger" and none; `acerl-np floor show` lists them. On a floor without any, tasks join all sites but the
    vehicles' start sites.

    A task is due S x its loaded time (way and handling), plus the mean travel time from the other sites to
    its pickup, after its arrival, both at the fleet's mean speed. Sites that cannot be reached are left out.
    Demands and handling times are uniform: whole numbers between bounds that are both whole.

    --process shift is a plant's shift, of --hours and not of --tasks. Lorries, every 2,700 s in the mean,
    bring 5 to 14 loads each, 25 to 70 s apart, from a goods-in dock to storage, due in 1,500 s. Each work
    station has a takt of 260 s, with a spread of a quarter of it and a stop now and then. By the takt it
    calls parts from storage, due in 480 to 900 s, and in turn with that sends goods to a goods-out dock, due
    when the lorry leaves, on the hour, but in no less than 420 s and no more than 2,400 s. Breaks after two
    and after four and a half hours let 15 % of the demand through. --scale divides the gaps between lorries
    and the takt; --utilisation chooses the scale by the offered load (acerl-np floor check --help) of the
    layout's fleet. What was drawn is said on the standard error stream.

    A folder with a breakdowns.csv is refused: it would replace the layout's breakdowns.

    Examples
    --------
      acerl-np records generate --layout dmh --tasks 30 --rate 60 --count 8 --out made
      acerl-np records generate --layout dmh --tasks 30 --process bursts --burst-size 6 --sites workstation \
          --seed 1 --out bursts
      acerl-np records generate --layout dmh --tasks 30 --sites st1 st2 warehouse --out made
      acerl-np records generate --layout floor.json --tasks 200 --demand 1 4 --handling-time 10 30 --out made
      acerl-np records generate --layout floor.json --process shift --utilisation 0.9 --count 12 --out shifts
      acerl-np records generate --layout floor.json --process shift --scale 1.5 --goods-in D1 D2 \
          --storage Shelf --work Press Saw --goods-out D3 --out shifts
    """
    for option in TASKS_ALONE if arguments.process == "shift" else SHIFT_ALONE:
        if getattr(arguments, option.key) != option.default:
            said = f"given with --process {arguments.process}; expected it with another process"
            raise InputError(f"{option.name}: {said}")
    check_breakdowns_there(arguments.out, None)
    names = [make_name(arguments.names, {"{k}": f"{k + 1:02d}"}) for k in range(arguments.count)]
    declare_records(arguments, names, "{k}")
    draw = draw_shifts if arguments.process == "shift" else draw_tasks
    write_made(draw(arguments, load_layout(arguments.layout), names), arguments.out)


def draw_tasks(
    arguments: argparse.Namespace, layout: Layout, names: Sequence[str]
) -> list[Instance]:
    """Return records of so many tasks."""
    from acerl_np.problem.generate import generate_record

    if arguments.tasks is None:
        raise InputError("--tasks: missing; expected the number of tasks of each record")
    own = ("process", "rate", "burst_size", "slack", "sites", "seed", "demand", "handling_time")
    options = {name: getattr(arguments, name) for name in own}
    return [
        generate_record(layout, arguments.tasks, index=k, name=name, **options)
        for k, name in enumerate(names)
    ]


def draw_shifts(
    arguments: argparse.Namespace, layout: Layout, names: Sequence[str]
) -> list[Instance]:
    """Return records of shifts, and say who does what in them and what they ask of the fleet."""
    from acerl_np.problem.shift import ROLES, find_roles, find_scale, generate_shift, name_place

    given = {role: getattr(arguments, role.replace("-", "_")) for role in ROLES}
    roles = {role: words for role, words in given.items() if words is not None}
    for role, places in find_roles(layout, roles).items():
        shown = ", ".join(name_place(layout, place) for place in places)
        print(f"{role}: {shown}", file=sys.stderr)
    own = ("hours", "demand", "handling_time", "scale")
    options: dict[str, Any] = {x: getattr(arguments, x) for x in own}
    options = {"roles": roles, **{name: x for name, x in options.items() if x is not None}}
    if arguments.utilisation is not None:
        if arguments.scale is not None:
            raise InputError("--utilisation: given with --scale; expected one of both")
        options["scale"] = find_scale(layout, arguments.utilisation, **options)
    scale, how = options.setdefault("scale", 1.0), {**options, "seed": arguments.seed}
    made = [generate_shift(layout, index=k, name=name, **how) for k, name in enumerate(names)]
    loads = [measure_load(instance) for instance in made]
    tasks = sum(instance.n_tasks for instance in made) / len(made)
    offered, loaded = (sum(x) / len(made) for x in zip(*(load[:2] for load in loads), strict=True))
    load = f"offered load {offered:.2f} ({loaded:.2f} without approaches)"
    fleet = count(len(layout.vehicles), "vehicle")
    print(f"scale {scale:g}: {tasks:.0f} tasks a shift, {load} for {fleet}", file=sys.stderr)
    return made


TASKS_ALONE = (
    opt.CommandOption("--tasks N", "tasks of each record; a shift has none", int),
    opt.CommandOption("--rate R", "tasks per hour", float, 60.0),
    opt.CommandOption("--burst-size K", "tasks of a burst", int, 5),
    opt.CommandOption("--slack S", "factor on the loaded time", float, 2.0),
    opt.CommandOption(
        "--sites SITE+",
        "kinds of sites, names of sites or stations, 'stations', or 'all' for all sites but the "
        "vehicles' start sites (default: stations, if the floor has any, else all)",
    ),
)
"""What holds for all processes but the shift."""

ROLE = (
    "{}: kinds of sites, or names of sites or stations (default: what types and names of stations tell; if "
    "these do not tell all that is not given, stations are dealt out)"
)
SHIFT_ALONE = (
    opt.CommandOption("--hours H", "length of a shift", float, 8.0),
    opt.CommandOption("--scale F", "divides the gaps of a shift (default: 1)", float),
    opt.CommandOption(
        "--utilisation U",
        "choose the scale at which a shift's offered load is U in the mean",
        float,
    ),
    opt.CommandOption("--goods-in SITE+", ROLE.format("docks where lorries bring a shift's loads")),
    opt.CommandOption("--storage SITE+", "a shift's storage, likewise"),
    opt.CommandOption("--work SITE+", "a shift's work stations, likewise"),
    opt.CommandOption("--goods-out SITE+", "docks where a shift's goods go, likewise"),
)
"""What holds for the shift alone."""

NAMES = "names of the records, {k} a two-digit number from 1"

GENERATE = opt.Action(
    generate,
    (
        opt.ONE_FLOOR,
        opt.CommandOption(
            "--process",
            "arrivals: independent over N / R hours; exponential gaps; several at once; a plant's shift",
            default="poisson",
            choices=("uniform", "poisson", "bursts", "shift"),
        ),
        *TASKS_ALONE,
        *SHIFT_ALONE,
        opt.CommandOption(
            "--demand LOW HIGH",
            "draw demands between these, no more than a vehicle carries (default: 0)",
            float,
        ),
        opt.CommandOption(
            "--handling-time LOW HIGH",
            "draw handling times between these, s (default: 0, of a shift 10 40)",
            float,
        ),
        opt.SEED.but(help="seed of the draws"),
        opt.CommandOption("--count", "number of records", int, 1, (1, 10_000)),
        opt.CommandOption("--out DIR", "folder for the records", required=True),
        opt.CommandOption("--names PATTERN", NAMES, default="tasks-{k}"),
        opt.FORCE,
    ),
)


def read_own_breakdowns(arguments: argparse.Namespace) -> bytes | None:
    """Return what must stand in the file of breakdowns beside new variants, None if those of the layout hold.

    One file holds for all records of a folder, so records with unlike files are refused.
    """
    content: bytes | None
    if arguments.breakdowns == records.NO_BREAKDOWNS:
        content = f"{','.join(columns.BREAKDOWNS.required)}\n".encode()
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
        expected = f"expected no braces but those of {', '.join(values)}"
        raise InputError(f"--names: read '{pattern}'; {expected}")
    name = re.sub(placeholders, lambda found: values[found[0]], pattern)
    if not name or name in {".", ".."} or any(letter in name for letter in "/\\\0"):
        raise InputError(f"--names: read '{name}'; expected the name of a file")
    return name


def declare_records(arguments: argparse.Namespace, names: Sequence[str], fields: str) -> None:
    """Refuse names that new records cannot have in the arguments' folder; `fields` make names differ."""
    if len(set(names)) < len(names):
        raise InputError(f"--names: '{arguments.names}' gives one name twice; expected {fields}")
    if Path(BREAKDOWNS_FILE).stem in names:
        expected = f"expected another name than that of {BREAKDOWNS_FILE}"
        raise InputError(f"--names: read '{arguments.names}'; {expected}")
    files = [Path(arguments.out) / f"{name}.csv" for name in names]
    declare_outputs(arguments, files, folder=arguments.out)


def write_made(made: list[Instance], out: str, breakdowns: bytes | None = None) -> None:
    """Write records into a folder, after the breakdowns beside them, if any, and print their paths."""
    contents = {f"{item.name}.csv": records.format_record(item).encode() for item in made}
    folder = make_folder(out)
    # What is there already has the same content.
    if breakdowns is not None and not path_exists(folder / BREAKDOWNS_FILE):
        write_atomically(folder / BREAKDOWNS_FILE, breakdowns)
        print(f"breakdowns {folder / BREAKDOWNS_FILE}", file=sys.stderr)
    for name, content in contents.items():
        write_atomically(folder / name, content)
        print(folder / name)
