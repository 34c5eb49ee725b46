"""`acerl-np records make`: records that are drawn for a floor, or made of others."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import count
from acerl_np.problem import columns, records
from acerl_np.problem.bundled import (
    BESIDE,
    expand_names,
    find_breakdowns,
    find_closures,
    load_layout,
)
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import BREAKDOWNS_FILE, CLOSURES_FILE
from acerl_np.problem.servable import measure_load
from acerl_np.support import errors
from acerl_np.support.errors import InputError, describe, make_printable, refuse
from acerl_np.support.fields import Field
from acerl_np.support.files import path_exists, read_bytes, write_atomically


def make(arguments: argparse.Namespace) -> None:
    """Make records: drawn for a floor, or from records, with perturbed arrivals or another demand.

    Without RECORDS pickups, deliveries and arrivals are drawn among the floor's stations. A task is due S x
    its loaded time, plus the mean approach, after its arrival. --arrivals shift is a plant's shift with
    lorries and takts (docs/making-shifts.md). With RECORDS each is varied by --magnitude, or by
    --demand-factor. The same options and seed give the same files.

    Examples
    --------
      acerl-np records make --layout floor.json --tasks 200 --rate 80 --count 8 --out made
      acerl-np records make --layout floor.json --arrivals shift --utilisation 0.9 --count 12 --out shifts
      acerl-np records make week1.csv --layout floor.json --magnitude 10 --out perturbed
    """
    how = "with RECORDS" if arguments.tasks_of else "without RECORDS"
    needless = [*TASKS_ALONE, *SHIFT_ALONE, *OF_FLOORS]
    if not arguments.tasks_of:
        needless = [*(TASKS_ALONE if arguments.arrivals == "shift" else SHIFT_ALONE), *OF_RECORDS]
    for option in needless:
        if getattr(arguments, option.key) != option.default:
            arrivals = f" and --arrivals {arguments.arrivals}" if option not in OF_RECORDS else ""
            raise InputError(f"{option.name}: given {how}{arrivals}; expected it left out")
    made, beside = (vary if arguments.tasks_of else draw)(arguments)
    write_made(made, arguments.out, beside)


def vary(arguments: argparse.Namespace) -> tuple[list[Instance], dict[str, bytes]]:
    """Return perturbed records, or such of another demand; and the tables beside them."""
    from acerl_np.problem.demand import draw_shift
    from acerl_np.problem.generate import perturb

    loaded = inputs.load_instances(arguments, tasks=arguments.tasks_of)
    beside = read_own_tables(arguments)
    factor = arguments.demand_factor
    magnitude: int | None
    zeros: Literal["keep", "move"]
    magnitude, zeros = arguments.magnitude or (None, "keep")
    if (magnitude is None) == (factor is None):
        raise InputError("--magnitude, --demand-factor: expected one of the two with RECORDS")
    n = factor if magnitude is None else magnitude
    names = []
    for k, record in enumerate(loaded, 1):
        names.append(make_name(arguments.names or "{name}-n{n}", k, record.name, f"{n:g}"))
    declare_records(arguments, names, "{name} or {k}")
    seed = arguments.seed
    if magnitude is None:
        drawn = [draw_shift(record, factor, seed=seed) for record in loaded]
        return [replace(x, name=name) for x, name in zip(drawn, names, strict=True)], beside
    named = zip(loaded, names, strict=True)
    made = [perturb(x, magnitude, name=name, seed=seed, zeros=zeros) for x, name in named]
    return made, beside


def draw(arguments: argparse.Namespace) -> tuple[list[Instance], dict[str, bytes]]:
    """Return records that are drawn for a floor."""
    if arguments.layout is None:
        raise InputError("--layout: missing; expected a layout, or RECORDS to vary")
    check_beside(arguments.out, {})
    pattern = arguments.names or "tasks-{k}"
    names = [make_name(pattern, k) for k in range(1, arguments.count + 1)]
    declare_records(arguments, names, "{k}")
    draw_some = draw_shifts if arguments.arrivals == "shift" else draw_tasks
    return draw_some(arguments, load_layout(arguments.layout), names), {}


def draw_tasks(
    arguments: argparse.Namespace, layout: Layout, names: Sequence[str]
) -> list[Instance]:
    """Return records of so many tasks."""
    from acerl_np.problem.generate import generate_record

    if arguments.tasks is None:
        raise InputError("--tasks: missing; expected the number of tasks of each record")
    own = ("rate", "slack", "sites", "seed", "demand", "handling_time")
    options = {name: getattr(arguments, name) for name in own}
    process, _, size = arguments.arrivals.partition(":")
    options |= {"process": process, **({"burst_size": int(size)} if size else {})}
    return [
        generate_record(layout, arguments.tasks, index=k, name=name, **options)
        for k, name in enumerate(names)
    ]


def draw_shifts(
    arguments: argparse.Namespace, layout: Layout, names: Sequence[str]
) -> list[Instance]:
    """Return records of shifts, and say who does what in them and what they ask of the fleet."""
    from acerl_np.problem.shift import ROLES, find_roles, find_scale, generate_shift, name_place

    roles: dict[str, list[str]] = {}
    for text in arguments.role:
        role, _, words = text.partition("=")
        if role not in ROLES or not words:
            refuse("--role", text, f"ROLE=SITES, a role of {', '.join(ROLES)}")
        roles[role] = [word.strip() for word in words.split(",")]
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


def read_own_tables(arguments: argparse.Namespace) -> dict[str, bytes]:
    """Return what must stand beside new variants, by the files' names: breakdowns and closures.

    Those of the layout hold where a name is left out. One file holds for all records of a folder, so records
    with unlike files are refused.
    """
    path, _ = inputs.read_breakdowns(arguments.breakdowns or ())
    content: bytes | None
    found: dict[str, bytes] = {}
    for name, find in BESIDE_FOUND.items():
        contents: dict[bytes | None, str] = {}
        for task in expand_names(arguments.tasks_of):
            beside = find(task)
            content = None if beside is None else read_bytes(beside, InputError)
            contents.setdefault(content, task)
        if name == BREAKDOWNS_FILE and path == records.NO_BREAKDOWNS:
            contents = {f"{','.join(columns.BREAKDOWNS.required)}\n".encode(): path}
        elif name == BREAKDOWNS_FILE and path is not None:
            contents = {read_bytes(path, InputError, streams=True): path}
        if len(contents) > 1:
            first, second, *_ = contents.values()
            raise InputError(
                f"{second}: other {Path(name).stem} ({name} beside it) than those of {first}, and one "
                "folder has one such file; expected records with the same"
                + ", or --breakdowns"
                * (name == BREAKDOWNS_FILE)
            )
        content = next(iter(contents), None)
        if content is not None:
            found[name] = content
    check_beside(arguments.out, found)
    return found


BESIDE_FOUND = {BREAKDOWNS_FILE: find_breakdowns, CLOSURES_FILE: find_closures}


def check_beside(folder: str, contents: Mapping[str, bytes]) -> None:
    """Refuse a folder whose breakdowns or closures would replace those of new records, or the layout's."""
    for name in BESIDE_FOUND:
        there = Path(folder) / name
        if path_exists(there) and read_bytes(there, InputError) != contents.get(name):
            raise InputError(
                f"{there}: holds other {Path(name).stem} than those of the records, and would replace them; "
                "expected another --out"
            )


COUNTER = re.compile(r"\{k(?:\+([0-9]{1,6}))?\}")
"""A placeholder of --names: {k} counts from 1, {k+8} from 9."""


def make_name(pattern: str, k: int, name: str | None = None, n: str = "") -> str:
    """Return a record's name: the pattern with {k}, and of a known record's {name} and {n}, replaced."""
    known = {} if name is None else {"{name}": name, "{n}": n}
    left = COUNTER.sub("", pattern)
    for placeholder in known:
        left = left.replace(placeholder, "")
    # A record's own name may hold braces, so the pattern is looked at and not what comes of it.
    if re.search("[{}]", left):
        expected = f"no braces but those of {', '.join([*known, '{k}'])}"
        refuse("--names", pattern, expected)
    made = COUNTER.sub(lambda found: f"{k + int(found[1] or 0):02d}", pattern)
    made = re.sub(r"\{name\}|\{n\}", lambda found: known[found[0]], made) if known else made
    if not made or made in {".", ".."} or any(letter in made for letter in "/\\\0"):
        refuse("--names", made, "the name of a file")
    return made


def declare_records(arguments: argparse.Namespace, names: Sequence[str], fields: str) -> None:
    """Refuse names that new records cannot have in the arguments' folder; `fields` make names differ."""
    if len(set(names)) < len(names):
        raise InputError(f"--names: '{arguments.names}' gives one name twice; expected {fields}")
    if taken := {f"{name}.csv" for name in names}.intersection(BESIDE_FOUND):
        expected = f"expected another name than that of {min(taken)}"
        raise InputError(f"--names: read '{arguments.names}'; {expected}")
    files = [Path(arguments.out) / f"{name}.csv" for name in names]
    there = expand_names([arguments.out], needed=False) if Path(arguments.out).is_dir() else []
    read = {Path(x) for x in expand_names(arguments.tasks_of, needed=False)}
    own = {*files, *read}
    others = [make_printable(x) for x in there if Path(x) not in own and not x.endswith(BESIDE)]
    if others and arguments.names is None:
        held = errors.list_some(others, 3)
        raise InputError(
            f"--out: {arguments.out} holds other records ({held}); expected a new folder, or --names"
        )
    declare_outputs(arguments, files, folder=arguments.out)


def write_made(made: list[Instance], out: str, beside: Mapping[str, bytes]) -> None:
    """Write records into a folder, after the tables beside them, and print their paths."""
    contents = {f"{item.name}.csv": records.format_record(item).encode() for item in made}
    folder = make_folder(out)
    for name, content in beside.items():
        if not path_exists(folder / name):  # what is there already has the same content
            write_atomically(folder / name, content)
            print(f"{Path(name).stem} {folder / name}", file=sys.stderr)
    for name, content in contents.items():
        write_atomically(folder / name, content)
        print(folder / name)


def parse_arrivals(text: str) -> str:
    """Return how tasks arrive: a process, of bursts with how many tasks each."""
    process, _, size = text.partition(":")
    if process not in PROCESSES or (size and not (process == "bursts" and size.isdecimal())):
        expected = f"one of {', '.join(PROCESSES)}, or bursts:N"
        raise argparse.ArgumentTypeError(f"read {describe(text)}; expected {expected}")
    return text


def parse_range(text: str) -> tuple[float, float]:
    """Return a range such as 10:40; a number alone is both its ends."""
    try:
        low, _, high = text.partition(":")
        return float(low), float(high or low)
    except ValueError as error:
        said = f"read {describe(text)}; expected LOW:HIGH such as 10:40"
        raise argparse.ArgumentTypeError(said) from error


def parse_magnitude(text: str) -> tuple[int, Literal["keep", "move"]]:
    """Return by how much arrivals are perturbed, and whether those at 0 are: "10", or "10,move"."""
    number, comma, word = text.partition(",")
    try:
        if comma and word != "move":
            raise ValueError
        return int(number), "move" if comma else "keep"
    except ValueError:
        said = f"read {describe(text)}; expected a whole number, or such as 10,move"
        raise argparse.ArgumentTypeError(said) from None


PROCESSES = ("uniform", "poisson", "bursts", "shift")
TASKS_ALONE = (
    opt.Argument("--tasks N", "tasks of each record", Field(int)),
    opt.Argument("--rate R", "tasks per hour", opt.number(), 60.0),
    opt.Argument("--slack S", "factor on the loaded time", opt.number(), 2.0),
    opt.Argument(
        "--sites SITES",
        "sites, stations, kinds, 'stations' or 'all' (default: stations)",
        opt.NAMES,
    ),
)
"""Options of all arrivals but shifts."""

SHIFT_ALONE = (
    opt.Argument("--hours H", "length of a shift", opt.number(), 8.0),
    opt.Argument("--scale X", "divides the gaps of a shift (default: 1)", opt.number()),
    opt.Argument("--utilisation U", "choose the scale by a shift's offered load", opt.number()),
    opt.Argument(
        "--role ROLE=SITES",
        "sites of goods-in, storage, work or goods-out; may be repeated (default: by types and names)",
        opt.EACH,
        default=[],
    ),
)
"""Options of shifts alone."""

OF_FLOORS = (
    opt.Argument(
        "--arrivals HOW", "poisson, uniform, bursts[:N], or shift", parse_arrivals, "poisson"
    ),
    opt.Argument("--demand LOW:HIGH", "range of demands (default: 0)", parse_range),
    opt.Argument(
        "--handling-time LOW:HIGH",
        "range of handling times, s (default: 0; shift 10:40)",
        parse_range,
    ),
    opt.Argument("--count N", "number of records", Field(int, 1, 10_000), 1),
)
"""Options of records that are drawn."""

OF_RECORDS = (
    opt.Argument(
        "--magnitude N", "perturb arrivals by -N to N s; 'N,move' those at 0, too", parse_magnitude
    ),
    opt.Argument("--demand-factor X", "factor of the number of tasks", opt.number(0.01, 100)),
)
"""Options of records that are varied."""

ACTION = opt.Action(
    make,
    {
        "": (opt.Argument("tasks_of RECORDS*", "records to vary", default=[]),),
        opt.PLAY: (*OF_FLOORS, *TASKS_ALONE, *SHIFT_ALONE, *OF_RECORDS),
        opt.RECORDS: opt.READING,
        opt.OUTPUT: (
            opt.OUT.but(usage="-o/--out DIR", help="folder for the records", required=True),
            opt.Argument(
                "--names PATTERN", "{k} counts from 1, {k+8} from 9; of RECORDS also {name}, {n}"
            ),
            opt.FORCE,
        ),
        opt.RUNNING: (opt.SEED_OPTION,),
    },
)
