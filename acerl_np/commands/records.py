"""`acerl-np records`: convert, check and make task records.

Convert, check and make task records.

Examples
--------
  acerl-np records convert export.csv --layout floor.json --out week1.csv
  acerl-np records check week1.csv --layout floor.json
  acerl-np records make --layout floor.json --tasks 200 --rate 80 --out made
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from acerl_np.commands.floor import format_layout
from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import Column, count, render
from acerl_np.problem import columns, records
from acerl_np.problem.bundled import BESIDE, SERVED, expand_names, find_breakdowns, load_layout
from acerl_np.problem.conversion import Conversion, convert_records
from acerl_np.problem.export import Export, format_mapping, parse_columns, read_mapping
from acerl_np.problem.fields import show_moment
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import BREAKDOWNS_FILE
from acerl_np.problem.servable import (
    RecordCheck,
    check_record,
    describe_charging,
    list_doubts,
    measure_load,
)
from acerl_np.problem.source import DELIMITERS, normalise
from acerl_np.support import errors
from acerl_np.support.errors import InputError, RecordError, describe, make_printable
from acerl_np.support.fields import Field, refuse
from acerl_np.support.files import (
    STDIN,
    FilePath,
    path_exists,
    read_bytes,
    show_path,
    write_atomically,
)
from acerl_np.support.report import DATA_FORMATS, render_csv, render_data, render_table

# Check

LISTS = (
    Column("equal_arrivals", "equal arrivals"),
    Column("too_heavy", "no vehicle may carry"),
    Column("unreached", "cannot be reached"),
    Column("dead_ends", "lead into a dead end"),
    Column("beyond_battery", "need more than a full battery"),
    Column("hopeless", "due too early for any vehicle"),
)
"""What tasks are listed for."""

CHECKS = (
    Column("tasks", "tasks"),
    Column("first_arrival_s", "first arrival, s", "g"),
    Column("last_arrival_s", "last arrival, s", "g"),
    Column("handling_s", "handling"),
    *LISTS,
    Column("breakdowns", "breakdowns until the last arrival"),
    Column("span_s", "first arrival to last due time, s", "g"),
    Column("fleet_time_s", "fleet's time without repairs, s", "g"),
    Column("offered_load", "offered load", ".2f"),
    Column("chains", "chains of tasks"),
    Column("longest_chain", "tasks of the longest chain"),
    Column("machine_load", "largest load of a machine", ".2f"),
    Column("charging_share", "share of its time that a vehicle must charge", ".0%"),
    Column("slots_needed", "slots of chargers needed for that", ".1f"),
    Column("usable", "usable"),
)
"""What stands below each other in a table for people."""

OF_BATTERIES = ("beyond_battery", "charging_share", "slots_needed")
"""What people are shown of fleets with batteries alone."""

OF_CHAINS = ("chains", "longest_chain", "machine_load")
"""What is shown of records with chains, or processing, alone."""

MOST_NAMES = 5
"""Tasks that a table names before it says only how many there are."""


FAULTS = (
    Column("place", "row"),
    Column("field", "field", words=True),
    Column("read", "read", words=True),
    Column("text", "what is wrong", words=True),
)


def read_export(arguments: argparse.Namespace) -> Export:
    """Return how the records are written that the arguments name: by --mapping, and the options beside it."""
    export = read_mapping(arguments.mapping)
    names = vars(export).keys() - {"columns", "sites", "timezone", "fold"}
    given = {x: own for x in names if (own := getattr(arguments, x, None)) is not None}
    if arguments.timezone is not None:
        zone, _, fold = arguments.timezone.partition(",")
        given |= {"timezone": zone, "fold": fold or export.fold}
    if arguments.columns:
        given["columns"] = {**export.columns, **parse_columns(arguments.columns)}
    return replace(export, **given)


class FileCheck(NamedTuple):
    """What a file of records holds.

    Attributes
    ----------
    path : str
    records : list of Instance
        Of the rows that can be read.
    checks : list of RecordCheck
        Of each record.
    faults : tuple of Fault
        What is wrong with the other rows.
    n_rows : int
        Rows in all if there are faults.
    ignored : tuple of RecordWarning
        Columns that nothing reads.
    error : str
        Why nothing could be read, if that is not told by faults.
    """

    path: str
    records: list[Instance]
    checks: list[RecordCheck]
    faults: tuple[errors.Fault, ...]
    n_rows: int
    ignored: tuple[errors.RecordWarning, ...]
    error: str


def check_records(
    paths: Sequence[str],
    layout: FilePath | Layout | None = None,
    *,
    breakdowns: Sequence[str] = (),
    mapping: FilePath | Export | None = None,
) -> list[FileCheck]:
    """List what is wrong with files of records, and what each record asks of the fleet.

    Parameters
    ----------
    paths : sequence of str
        Files, bundled records or suites.
    layout : path-like or Layout, optional
        By default layout.json beside each file.
    breakdowns : sequence of str
        Each a file, "listed", "none", or such as "3600,300": mean times between failures and to repair, in s.
    mapping : path-like or Export, optional
        How the files are read.

    Returns
    -------
    list of FileCheck

    Raises
    ------
    LayoutError, InputError
        If the layout, the breakdowns or the mapping cannot be read.
    """
    export = replace(read_mapping(mapping), skip_bad=True)
    found = []
    for path in paths:
        said: list[errors.RecordWarning] = []
        loaded: list[Instance] = []
        error = ""
        try:
            with inputs.report_ignored(said):
                loaded = inputs.load_files([path], layout, breakdowns, export, servable=False)
        except RecordError as failure:
            said.append(errors.RecordWarning(path, (), failure.faults, failure.n_rows))
            error = "" if failure.faults else str(failure)
        faults = tuple(fault for warning in said for fault in warning.faults)
        n_rows = sum(warning.n_rows for warning in said if warning.faults)
        ignored = tuple(warning for warning in said if warning.columns)
        checks = [check_record(item) for item in loaded]
        found.append(FileCheck(path, loaded, checks, faults, n_rows, ignored, error))
    return found


def check(arguments: argparse.Namespace) -> None:
    """List what is wrong with records, and what they ask of the fleet.

    All rows that cannot be read are listed. The exit status is 2 if there are any; tasks that no vehicle may
    carry or reach are counted as well. Offered load is the time that the tasks take, divided by the fleet's.

    Examples
    --------
      acerl-np records check week1.csv --layout floor.json
      acerl-np records check 'days/*.csv' --layout floor.json --format csv
      acerl-np records check export.csv --layout floor.json --date-format '%d.%m.%Y %H:%M'
    """
    names = expand_names(arguments.tasks)
    if not names:
        inputs.refuse_none(arguments)
    breakdowns, export = arguments.breakdowns or (), read_export(arguments)
    found = check_records(names, arguments.layout, breakdowns=breakdowns, mapping=export)
    inputs.tell_traffic([item for file in found for item in file.records])
    show_checks(found, arguments.format)


def show_checks(found: Sequence[FileCheck], form: str) -> None:
    """Print what checks of files found; refuse files with anything that cannot be read."""
    is_data, wrong = form in DATA_FORMATS, [file.error for file in found if file.error]
    for file in found:
        if not file.faults:
            continue
        n_tasks = sum(item.n_tasks for item in file.records)
        shown = f"{file.path}: {errors.count_rows(file.faults, file.n_rows)} are bad"
        shown += f", {n_tasks:,} are fine"
        wrong.append(shown + "; --skip-bad leaves bad ones out" * bool(n_tasks))
        if not (is_data and file.records):
            causes = errors.list_causes(file.faults)
            told = [shown, *(causes if len(causes) < len(file.faults) else ())]
            rows = [fault._asdict() for fault in file.faults]
            table = render(FAULTS, rows, "text" if is_data else form)
            # A table for programs has no row of a file without a record.
            stream = sys.stderr if is_data else sys.stdout
            print("\n".join([*map(errors.make_printable, told), table]), file=stream)
    with inputs.report_ignored():
        for warning in (x for file in found for x in file.ignored):
            warnings.warn(warning, stacklevel=1)
    # Faults of a file stand beside the first of its records.
    checked = [
        (item, () if k else file.faults, file.checks[k])
        for file in found
        for k, item in enumerate(file.records)
    ]
    if is_data and checked:
        rows = [list_check(*one) for one in checked]
        if all(item.is_plain for item, *_ in checked):
            rows = [{key: row[key] for key in row if key not in OF_CHAINS} for row in rows]
        print(render_data(rows, form), end="")
    for k, (instance, faults, result) in enumerate(() if is_data else checked):
        if k:
            print()
        data, notes = list_check(instance, faults, result), note_check(instance, result)
        data["usable"] = "yes" if result.servable else "no"
        mean = data["handling_s"]
        data["handling_s"] = f"{mean:g} s a task" if mean else "none, 0 s"
        hidden = [] if result.load.slots else [*OF_BATTERIES]
        hidden += OF_CHAINS if instance.is_plain else ()
        columns = [x for x in CHECKS if x.name not in hidden]
        lines = [[x.title, x.show(data[x.name]), notes.get(x.name, "")] for x in columns]
        header = [instance.name, "value", "which"]
        print(render_table(header, lines, form), end="")
    for instance, *_ in checked:
        for line in list_doubts(instance):
            print(f"{instance.name}: warning: {line}", file=sys.stderr)
    if len(wrong) > 1:
        print("\n".join(map(errors.make_printable, wrong)), file=sys.stderr)
        raise RecordError(f"{len(wrong)} of {len(found)} files cannot be read as they are")
    if wrong:
        raise RecordError(wrong[0])


def list_check(
    instance: Instance, faults: Sequence[errors.Fault], found: RecordCheck
) -> dict[str, object]:
    """Return a record's row of the table for programs; tasks' names are separated by blanks."""
    counts = {item.name: getattr(found, item.name) for item in LISTS}
    return {
        "record": instance.name,
        "tasks": found.n_tasks,
        "first_arrival_s": found.first,
        "last_arrival_s": found.last,
        "handling_s": float(instance.handling_time.mean()),
        "begins": show_moment(instance.epoch) if instance.epoch is not None else None,
        **{name: len(tasks) for name, tasks in counts.items()},
        **{f"{name}_tasks": " ".join(tasks) or None for name, tasks in counts.items()},
        "breakdowns": found.n_breakdowns,
        "span_s": found.load.span,
        "vehicles": len(instance.layout.vehicles),
        "fleet_time_s": found.load.fleet_time,
        "offered_load": found.load.offered,
        "offered_load_without_approaches": found.load.loaded,
        "chains": found.chains,
        "longest_chain": found.longest,
        "machine_load": max(found.machines.values(), default=0.0),
        "charging_share": found.load.charging,
        "slots_needed": found.load.slots,
        "slots": sum(charger.slots for charger in instance.layout.chargers),
        "usable": bool(found.servable),
        "bad_rows": len({fault.place for fault in faults}),
        "faults": "\n".join(map(str, faults)) or None,
    }


def note_check(instance: Instance, found: RecordCheck) -> dict[str, str]:
    """Return what a table for people says beside values: which tasks, above all."""
    notes = {
        "fleet_time_s": count(len(instance.layout.vehicles), "vehicle"),
        "offered_load": f"{found.load.loaded:.2f} without approaches",
        "machine_load": " ".join(f"{site} {load:.2f}" for site, load in found.machines.items()),
    }
    if found.load.slots:
        share, slots, *said = describe_charging(found.load, instance.layout)
        notes |= {"charging_share": share, "slots_needed": "; ".join([slots, *said])}
    if instance.epoch is not None:
        notes["first_arrival_s"] = f"from {show_moment(instance.epoch).replace('T', ' ')}"
    for item in LISTS:
        names = getattr(found, item.name)
        notes[item.name] = " ".join(names[:MOST_NAMES]) + " ..." * bool(names[MOST_NAMES:])
    return notes


# Convert

NUMBERS = ("tasks", "first arrival", "last arrival")
"""What a table for programs gives as numbers."""


def convert(arguments: argparse.Namespace) -> None:
    """Read another system's records, show how they were understood, write them plainly.

    Encoding, separators, titles, usual column names and most forms of times are recognised (docs/exports.md);
    options declare the rest. --write-mapping keeps them for --mapping. --audit reads logs of acerl-np serve,
    and writes OUT.served.csv, for --past, as well. Rows that --skip-bad leaves out stand in OUT.left-out.csv.

    Examples
    --------
      acerl-np records convert erp.xlsx --layout floor.json --write-mapping erp.toml --out week1.csv
      acerl-np records convert export.csv --layout floor.json --split shift --skip-bad --out week1
      acerl-np records convert --audit day.jsonl --layout floor.json --out day.csv
    """
    if (arguments.audit is None) == (arguments.tasks is None):
        read = "both" if arguments.audit else "neither"
        raise InputError(f"IN: read {read}; expected a task record or --audit LOG")
    if arguments.audit is not None:
        _convert_log(arguments)
        return
    with inputs.report_ignored():
        found = convert_records(arguments.tasks, arguments.layout, read_export(arguments))
    instances, reading, export = found
    out = arguments.out
    if export.split is None and not Path(out).suffix:
        out += ".csv"
    files, folder = {out: instances[0]}, None if export.split is None else out
    if folder is not None:
        # A file's name has no brackets: not "<stdin>-2024-05-06-0600.csv".
        named = [item.name.removeprefix(f"{show_path(STDIN)}-") for item in instances]
        files = {str(Path(out) / f"{x}.csv"): y for x, y in zip(named, instances, strict=True)}
    left_out = Path(out.removesuffix(".csv") + records.LEFT_OUT) if reading.faults else None
    declare_outputs(arguments, [arguments.write_mapping, *files, left_out], folder=folder)
    if folder is not None:
        make_folder(folder)
    for file, instance in files.items():
        records.write_record(instance, file)
    show_conversion(found, arguments.format)
    for instance in instances:
        for line in list_doubts(instance):
            print(f"{instance.name}: warning: {line}", file=sys.stderr)
    for file in files:
        print(f"record {file}", file=sys.stderr)
    if left_out is not None:
        bad = [["place", "field", "read", "wrong"], *reading.faults]
        write_atomically(left_out, render_csv(bad).encode())
        print(f"left out {left_out}", file=sys.stderr)
    if arguments.write_mapping is not None:
        write_atomically(arguments.write_mapping, format_mapping(export).encode())
        print(f"mapping {arguments.write_mapping}", file=sys.stderr)


def show_conversion(found: Conversion, form: str) -> None:
    """Print how records were understood."""
    told, first, last = describe_reading(*found), found.records[0], found.records[-1]
    if form in DATA_FORMATS:
        row: dict[str, object] = {"record": first.name}
        row |= {name.replace(" ", "_"): x for name, x in told.items() if name not in NUMBERS}
        row["tasks"] = sum(instance.n_tasks for instance in found.records)
        row |= {"first_arrival_s": first.arrival.min(), "last_arrival_s": last.arrival.max()}
        print(render_data([row], form), end="")
    else:
        columns = [Column("what", first.name), Column("text", "understood as", words=True)]
        rows = [{"what": what, "text": text} for what, text in told.items()]
        print(render(columns, rows, form), end="")


def describe_reading(
    instances: Sequence[Instance], reading: records.Reading, export: Export
) -> dict[str, str]:
    """Return what was understood of a record, and as what."""
    first, last = instances[0], instances[-1]
    table, columns = reading.table, reading.table.columns
    task, arrival, expiry = reading.first_row
    arrival_read, expiry_read = reading.first
    due = "" if reading.expiries in ("seconds", "--due") else " after the arrival"
    expiries = f"{reading.expiries}; task {task}: {expiry} -> {expiry_read:g} s{due}"
    if reading.rolled:
        late = f"{count(len(reading.rolled), 'task')} due the day after"
        expiries += f"; {late}, at most {max(reading.rolled):g} s after the arrival"
    named = [
        name if normalise(own) == name else f"{name} ({own})"
        for name, own in zip(columns.at, columns.named, strict=True)
    ]
    found = {"sheet": table.form}
    if table.delimiter:
        found = {"columns separated by": DELIMITERS[table.delimiter], "encoding": table.form}
    found |= {
        "header": f"line {columns.line}",
        "columns used": ", ".join(named),
        "columns ignored": errors.list_names(columns.ignored) or "none",
        "arrivals": f"{reading.arrivals}; task {task}: {arrival} -> {arrival_read:g} s",
        "expiries": expiries if reading.expiries else "none, never due",
        "tasks": str(sum(instance.n_tasks for instance in instances)),
    }
    if len(instances) == 1:
        found["first arrival"] = f"{first.arrival.min():g} s"
        found["last arrival"] = f"{last.arrival.max():g} s"
    found["time zero"] = "second 0" if first.epoch is None else show_moment(first.epoch)
    if len(instances) > 1:
        found["records"] = f"{len(instances)}, {first.name} to {last.name}"
    if export.sites:
        pairs = [f"{name} -> {own}" for name, own in export.sites.items()]
        found["sites read as"] = errors.list_some(pairs, 20)
    if reading.faults:
        found["left out"] = errors.count_rows(reading.faults, reading.n_rows)
    return {what: errors.make_printable(text) for what, text in found.items()}


# A dispatcher's log


def _convert_log(arguments: argparse.Namespace) -> None:
    """Write the days of a dispatcher's log as records, and who served them."""
    from acerl_np.live.daybook import read_days

    if arguments.mapping is not None:
        raise InputError("--mapping: given with --audit; the log tells all")
    if arguments.layout is None:
        raise InputError("--layout: missing; expected the floor of the log of --audit")
    layout = load_layout(arguments.layout).with_random_breakdowns(None)
    stem = arguments.out.removesuffix(".csv")
    with inputs.report_ignored():
        days = [day for path in arguments.audit for day in read_days(path, layout)]
    ends = [f"-{k}" for k in range(1, len(days) + 1)] if len(days) > 1 else [""]
    files = [(f"{stem}{end}.csv", f"{stem}{end}{SERVED}") for end in ends]
    known = {vehicle.id for vehicle in layout.vehicles}
    fleets = [day.instance.layout.vehicles for day in days]
    joined = {x.id: x for own in fleets for x in own if x.id not in known}
    floor = f"{stem}.layout.json" if joined else None
    declare_outputs(arguments, [floor, *(path for both in files for path in both)])
    for (record, served), day in zip(files, days, strict=True):
        records.write_record(day.instance, record)
        records.write_assignments(served, day)
        print(make_printable(f"{record}: {count(day.instance.n_tasks, 'task')}, served: {served}"))
    if floor is not None:
        whole = layout.with_fleet([*layout.vehicles, *joined.values()]).with_breakdowns({})
        write_atomically(floor, format_layout(whole).encode())
        print(make_printable(f"{floor}: with the vehicles that joined, for --layout"))


# Make


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
    made, breakdowns = (vary if arguments.tasks_of else draw)(arguments)
    write_made(made, arguments.out, breakdowns)


def vary(arguments: argparse.Namespace) -> tuple[list[Instance], bytes | None]:
    """Return perturbed records, or such of another demand; and their breakdowns."""
    from acerl_np.problem.demand import draw_shift
    from acerl_np.problem.generate import perturb

    loaded = inputs.load_instances(arguments, tasks=arguments.tasks_of)
    breakdowns = read_own_breakdowns(arguments)
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
        return [replace(x, name=name) for x, name in zip(drawn, names, strict=True)], breakdowns
    named = zip(loaded, names, strict=True)
    made = [perturb(x, magnitude, name=name, seed=seed, zeros=zeros) for x, name in named]
    return made, breakdowns


def draw(arguments: argparse.Namespace) -> tuple[list[Instance], None]:
    """Return records that are drawn for a floor."""
    if arguments.layout is None:
        raise InputError("--layout: missing; expected a layout, or RECORDS to vary")
    check_breakdowns_there(arguments.out, None)
    pattern = arguments.names or "tasks-{k}"
    names = [make_name(pattern, k) for k in range(1, arguments.count + 1)]
    declare_records(arguments, names, "{k}")
    draw_some = draw_shifts if arguments.arrivals == "shift" else draw_tasks
    return draw_some(arguments, load_layout(arguments.layout), names), None


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


def read_own_breakdowns(arguments: argparse.Namespace) -> bytes | None:
    """Return what must stand in the file of breakdowns beside new variants, None if those of the layout hold.

    One file holds for all records of a folder, so records with unlike files are refused.
    """
    content: bytes | None
    path, _ = inputs.read_breakdowns(arguments.breakdowns or ())
    if path == records.NO_BREAKDOWNS:
        content = f"{','.join(columns.BREAKDOWNS.required)}\n".encode()
    elif path is not None:
        content = read_bytes(path, InputError, streams=True)
    else:
        found: dict[bytes | None, str] = {}
        for task in expand_names(arguments.tasks_of):
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
    if Path(BREAKDOWNS_FILE).stem in names:
        expected = f"expected another name than that of {BREAKDOWNS_FILE}"
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
COLUMN_OPTIONS = (
    opt.CommandOption(
        "--columns KNOWN=COLUMN,...",
        "the records' names of columns, such as task=TA-Nr; 'column 3'",
    ),
    opt.CommandOption(
        "--date-format FORMAT",
        "such as '%d.%m.%Y %H:%M', or 'excel', 'seconds'; ISO 8601 needs none",
    ),
    opt.CommandOption(
        "--encoding NAME",
        "text encoding, if neither UTF-8 nor UTF-16 (those are detected) (default: cp1252)",
    ),
    opt.CommandOption("--sheet NAME", "of a workbook (default: the first with a header)"),
    opt.CommandOption(
        "--split WHEN", "several records: shift, shifts such as 05:30/17:30, day, or a pause in s"
    ),
    opt.CommandOption(
        "--due SECONDS", "default due time, in seconds after arrival", opt.number(1.0, 1e9)
    ),
    opt.CommandOption("--handling SECONDS", "default handling time", opt.number(0.0, 1e9)),
    opt.CommandOption("--decimal MARK", "'.' or ',', where numbers do not tell", Field((".", ","))),
    opt.CommandOption(
        "--timezone ZONE[,FOLD]",
        "of the plant, such as Europe/Berlin; FOLD, earlier or later, decides times that occur twice",
    ),
)
"""How records are read, which a mapping keeps; they win over --mapping."""

TASKS_ALONE = (
    opt.CommandOption("--tasks N", "tasks of each record", Field(int)),
    opt.CommandOption("--rate R", "tasks per hour", opt.number(), 60.0),
    opt.CommandOption("--slack S", "factor on the loaded time", opt.number(), 2.0),
    opt.CommandOption(
        "--sites SITES",
        "sites, stations, kinds, 'stations' or 'all' (default: stations)",
        opt.NAMES,
    ),
)
"""Options of all arrivals but shifts."""

SHIFT_ALONE = (
    opt.CommandOption("--hours H", "length of a shift", opt.number(), 8.0),
    opt.CommandOption("--scale X", "divides the gaps of a shift (default: 1)", opt.number()),
    opt.CommandOption(
        "--utilisation U", "choose the scale by a shift's offered load", opt.number()
    ),
    opt.CommandOption(
        "--role ROLE=SITES",
        "sites of goods-in, storage, work or goods-out; may be repeated (default: by types and names)",
        opt.EACH,
        default=[],
    ),
)
"""Options of shifts alone."""

OF_FLOORS = (
    opt.CommandOption(
        "--arrivals HOW", "poisson, uniform, bursts[:N], or shift", parse_arrivals, "poisson"
    ),
    opt.CommandOption("--demand LOW:HIGH", "range of demands (default: 0)", parse_range),
    opt.CommandOption(
        "--handling-time LOW:HIGH",
        "range of handling times, s (default: 0; shift 10:40)",
        parse_range,
    ),
    opt.CommandOption("--count N", "number of records", Field(int, 1, 10_000), 1),
)
"""Options of records that are drawn."""

OF_RECORDS = (
    opt.CommandOption(
        "--magnitude N", "perturb arrivals by -N to N s; 'N,move' those at 0, too", parse_magnitude
    ),
    opt.CommandOption("--demand-factor X", "factor of the number of tasks", opt.number(0.01, 100)),
)
"""Options of records that are varied."""

ACTIONS = {
    "convert": opt.Action(
        convert,
        {
            "": (opt.CommandOption("tasks IN?", "a record (CSV, .xlsx), or '-'"),),
            opt.RECORDS: (
                opt.CommandOption("--audit LOGS", "logs of acerl-np serve instead", opt.NAMES),
                *(opt.LAYOUT, opt.MAPPING, *COLUMN_OPTIONS),
                opt.CommandOption(
                    "--skip-bad", "leave out rows that cannot be read, and list them", opt.SWITCH
                ),
            ),
            opt.OUTPUT: (
                opt.OUT.but(
                    usage="-o/--out CSV",
                    help="record; with --split a folder. A name without an ending gets .csv",
                    required=True,
                ),
                opt.CommandOption("--write-mapping FILE", "write how records were read"),
                *(opt.FORMAT, opt.FORCE),
            ),
        },
    ),
    "check": opt.Action(
        check,
        {
            "": (opt.RECORDS_PLACE,),
            opt.RECORDS: (*opt.READING, *COLUMN_OPTIONS),
            opt.OUTPUT: (opt.FORMAT,),
        },
    ),
    "make": opt.Action(
        make,
        {
            "": (opt.CommandOption("tasks_of RECORDS*", "records to vary", default=[]),),
            opt.PLAY: (*OF_FLOORS, *TASKS_ALONE, *SHIFT_ALONE, *OF_RECORDS),
            opt.RECORDS: opt.READING,
            opt.OUTPUT: (
                opt.OUT.but(usage="-o/--out DIR", help="folder for the records", required=True),
                opt.CommandOption(
                    "--names PATTERN",
                    "{k} counts from 1, {k+8} from 9; of RECORDS also {name}, {n}",
                ),
                opt.FORCE,
            ),
            opt.RUNNING: (opt.SEED_OPTION,),
        },
    ),
}
