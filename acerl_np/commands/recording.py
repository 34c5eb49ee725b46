"""`acerl-np records`: make, convert and check task records, replay past assignments.

Make task records, convert and check those of other systems, replay past assignments.

acerl-np records ACTION --help explains an action's options.

Examples
--------
  acerl-np records convert export.csv --layout floor.json --out week1.csv
  acerl-np records check week1.csv --layout floor.json
  acerl-np records generate --layout floor.json --tasks 200 --process poisson --rate 80 --out made
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records replay week1.csv --past assignments.csv --layout floor.json
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.floor import format_layout
from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.making import GENERATE, PERTURB
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import (
    COLUMN_OF,
    FIGURES,
    USAGE,
    Column,
    count,
    render,
    show_below,
)
from acerl_np.problem import records
from acerl_np.problem.bundled import find_record, load_layout
from acerl_np.problem.export import Export, format_mapping, parse_columns, read_mapping
from acerl_np.problem.fields import show_moment
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.servable import RecordCheck, check_record, describe_charging
from acerl_np.problem.source import DELIMITERS, normalise
from acerl_np.support import errors
from acerl_np.support.errors import InputError, RecordError, make_printable
from acerl_np.support.files import STDIN, show_path, write_atomically
from acerl_np.support.report import DATA_FORMATS, render_csv, render_data, render_table

if TYPE_CHECKING:
    from acerl_np.simulation.replay import Replay


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

SERVED = ".served.csv"
"""How names of files end that say who served the tasks of a record."""

LEAST_TRIPS = 20
"""With a recorded finish, from which on it is said how long driving took."""

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
    names = vars(export).keys() - {"columns", "sites"}
    given = {x: getattr(arguments, x) for x in names if getattr(arguments, x) is not None}
    if arguments.columns:
        given["columns"] = {**export.columns, **parse_columns(arguments.columns)}
    return replace(export, **given)


def check(arguments: argparse.Namespace) -> None:
    """Look through records.

    Look through task records: rows that cannot be read, all of them, and what is wrong with each; what the
    others ask of the fleet, and what in them nobody could do.

    The exit status is 2 if rows or files cannot be read, after all of them are listed; a mapping made with
    records convert --skip-bad leaves such rows out of what other commands do. Tasks that no vehicle may
    carry or reach make a record unusable for other commands; the exit status is 0 all the same.

    Where all is well, --write-mapping keeps the options of reading for the other commands.
    """
    declare_outputs(arguments, [arguments.write_mapping])
    given = read_export(arguments)
    export = replace(given, skip_bad=True)
    found: list[tuple[Instance, tuple[errors.Fault, ...]]] = []
    ignored: list[errors.RecordWarning] = []
    wrong: list[str] = []
    is_data, names = arguments.format in DATA_FORMATS, inputs.drop_breakdowns(arguments.tasks)
    for name in names or [""]:
        own = {**vars(arguments), "tasks": [name] if name else [], "mapping": export}
        said: list[errors.RecordWarning] = []
        loaded: list[Instance] = []
        try:
            loaded = inputs.load_instances(argparse.Namespace(**own), servable=False, ignored=said)
        except RecordError as error:
            said.append(errors.RecordWarning(name, (), error.faults, error.n_rows))
            wrong += [str(error)] * (not error.faults)
        ignored += [warning for warning in said if warning.columns]
        bad = [warning for warning in said if warning.faults]
        for warning in bad:
            n_tasks = sum(item.n_tasks for item in loaded)
            shown = f"{warning.path}: {errors.count_rows(warning.faults, warning.n_rows)} are bad"
            shown += f", {n_tasks:,} are fine"
            wrong.append(shown + "; --skip-bad leaves bad ones out" * bool(n_tasks))
            if not (is_data and loaded):
                causes = errors.list_causes(warning.faults)
                told = [shown, *(causes if len(causes) < len(warning.faults) else ())]
                rows = [fault._asdict() for fault in warning.faults]
                table = render(FAULTS, rows, "text" if is_data else arguments.format)
                # A table for programs has no row of a file without a record.
                stream = sys.stderr if is_data else sys.stdout
                print("\n".join([*map(errors.make_printable, told), table]), file=stream)
        # Those of a file stand beside the first of its records.
        found += zip(loaded, [*(x.faults for x in bad), *[()] * len(loaded)], strict=False)
    with inputs.report_ignored():
        for warning in ignored:
            warnings.warn(warning, stacklevel=1)
    checked = [(item, faults, check_record(item)) for item, faults in found]
    if is_data and checked:
        rows = [list_check(*one) for one in checked]
        if all(item.is_plain for item, *_ in checked):
            rows = [{key: row[key] for key in row if key not in OF_CHAINS} for row in rows]
        print(render_data(rows, arguments.format), end="")
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
        print(render_table(header, lines, arguments.format), end="")
    if len(wrong) > 1:
        print("\n".join(map(errors.make_printable, wrong)), file=sys.stderr)
        raise RecordError(f"{len(wrong)} of {len(names)} files cannot be read as they are")
    if wrong:
        raise RecordError(wrong[0])
    write_mapping(arguments.write_mapping, given)


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
    """Show how a record is understood, write it plainly.

    Read a task record as another system exported it, show how it was understood, and write it as this program
    writes records: separated by commas, arrivals as seconds, ISO 8601 timestamps or times of day, expiries in
    seconds from the arrival.

    A workbook (.xlsx), UTF-8, UTF-16 and Windows-1252 are told by their bytes. Upper and lower case of the
    header, titles above it, commas, semicolons or tabs, and further columns do no harm; a misspelt column is
    refused. Usual German and English names of columns are known; --columns says what others mean, and
    --date-format how dates are written. --write-mapping keeps all of it for the other commands: --mapping.
    Times are told apart by their look:
      12.5                        seconds from the start of the episode, to 1e9
      1714980600, 1714980600000   seconds, milliseconds since 1970, from September 2001 on
      07:30, 07:30:15             times of one day
      2024-05-06T07:30:15+02:00   ISO 8601 timestamps, with or without an offset from UTC
      06.05.2024 07:30            anything else with --date-format, here '%d.%m.%Y %H:%M'
    Of all but seconds, time zero is the first arrival, of a shift its beginning. '-' is the standard input.

    A due time of day that shares its date with the arrival and lies before it is of the next day.

    With --skip-bad, OUT.left-out.csv lists the rows that were left out. With --split --out is a folder.

    --audit reads the log of a live dispatcher: its tasks are the record, and OUT.served.csv, for records
    replay --past, says who served them. Several days, of one log or of more, are OUT-1.csv, OUT-2.csv and so
    on.

    Examples
    --------
      acerl-np records convert --audit day.jsonl --layout floor.json --out day.csv
      acerl-np records convert --audit mon.jsonl tue.jsonl --layout floor.json --out week.csv
      acerl-np records convert export.csv --layout floor.json --out week1.csv
      acerl-np records convert erp.xlsx --layout floor.json --write-mapping erp.toml --out week1.csv
      acerl-np records convert export.csv --layout floor.json --date-format '%d.%m.%Y %H:%M' --out week1.csv
      acerl-np records convert export.csv --layout floor.json --split shift --skip-bad --out week1
      gunzip -c export.csv.gz | acerl-np records convert - --layout floor.json --out week1.csv
    """
    if (arguments.audit is None) == (arguments.tasks is None):
        read = "both" if arguments.audit else "neither"
        raise InputError(f"IN: read {read}; expected a task record or --audit LOG")
    if arguments.audit is not None:
        _convert_log(arguments)
        return
    path, layout = find_record(arguments.tasks, arguments.layout)
    export, lines = records.name_columns(path, read_export(arguments))
    with inputs.report_ignored():
        instances, reading = records.examine_record(
            path, layout, export, lines=lines, servable=False
        )
    out, first, last = arguments.out, instances[0], instances[-1]
    files, folder = {out: first}, None if export.split is None else out
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
    found = describe_reading(instances, reading, export)
    if arguments.format in DATA_FORMATS:
        row: dict[str, object] = {"record": first.name}
        row |= {name.replace(" ", "_"): x for name, x in found.items() if name not in NUMBERS}
        row["tasks"] = sum(instance.n_tasks for instance in instances)
        row |= {"first_arrival_s": first.arrival.min(), "last_arrival_s": last.arrival.max()}
        print(render_data([row], arguments.format), end="")
    else:
        columns = [Column("what", first.name), Column("text", "understood as", words=True)]
        rows = [{"what": what, "text": text} for what, text in found.items()]
        print(render(columns, rows, arguments.format), end="")
    for file in files:
        print(f"record {file}", file=sys.stderr)
    if left_out is not None:
        bad = [["place", "field", "read", "wrong"], *reading.faults]
        write_atomically(left_out, render_csv(bad).encode())
        print(f"left out {left_out}", file=sys.stderr)
    write_mapping(arguments.write_mapping, export)


def write_mapping(path: str | None, export: Export) -> None:
    """Write how records are read, if that is wanted."""
    if path is not None:
        write_atomically(path, format_mapping(export).encode())
        print(f"mapping {path}", file=sys.stderr)


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


# Replay

COUNTS = ("late_tasks", "assignments")

COLUMNS = (
    Column("record", "record"),
    *FIGURES[:2],
    Column("late_tasks", "late tasks"),
    Column("assignments", "assignments"),
    Column("start_behind_mean_s", "mean start behind, s", ".1f"),
    Column("start_behind_largest_s", "largest, s", ".1f"),
    *USAGE[1:],
    Column("late_share"),
)


def replay(arguments: argparse.Namespace) -> None:
    """Play past assignments.

    Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

    ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
    stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
    happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
    arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
    vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.

    --audit reads both from the log of a live dispatcher, with the breakdowns that were.

    Several files of assignments are played with as many records, in pairs: a row for each, and their mean.
    Where finishes are recorded, a line says how many times as long driving took as here.

    Examples
    --------
      acerl-np records replay week1.csv --past assignments.csv --layout floor.json --schedule-csv times.csv
      acerl-np records replay mon.csv tue.csv --past mon-served.csv tue-served.csv --layout floor.json
      acerl-np records replay --audit day.jsonl --layout floor.json
      acerl-np evaluate EDD STD week1.csv --past assignments.csv --layout floor.json
    """
    from acerl_np.evaluation.past import estimate_lengthening
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    paths, names, is_log = arguments.past or [], arguments.names, arguments.audit is not None
    given = [*paths, *names] if is_log else paths
    if is_log == bool(given):
        found = f"{len(given)} files{' and --audit' if is_log else ''}"
        raise InputError(f"ASSIGNMENTS.csv: read {found}; expected assignments or --audit LOG")
    if arguments.schedule_csv is not None and len(paths) > 1:
        said = f"given with {len(paths)} files of assignments; expected one"
        raise InputError(f"--schedule-csv: {said}")
    declare_outputs(arguments, [arguments.schedule_csv])
    if is_log:
        pairs = [_read_log(arguments)]
    else:
        played_on = inputs.load_instances(arguments, tasks=names) if names else []
        pairs = inputs.read_past(arguments, paths, inputs.vary_breakdowns(played_on, "none"))
    played = [replay_assignments(assignments) for assignments in pairs]
    if arguments.schedule_csv is not None:
        write_schedule(arguments.schedule_csv, played[0])
    rows, is_data = [score_replay(item) for item in played], arguments.format in DATA_FORMATS
    rules = [len(rows)] if len(rows) > 1 else []
    if rules:
        mean = {x: sum(row[x] for row in rows) / len(rows) for x in rows[0] if x != "record"}
        words = {} if is_data else {x: f"{mean[x]:.1f}" for x in COUNTS}
        rows.append({"record": "mean", **mean, **words})
    columns = COLUMNS if arguments.more or is_data else COLUMNS[:-4]
    print(render(columns, rows, arguments.format, rules), end="")
    factor, error, n = estimate_lengthening(played)
    if n >= LEAST_TRIPS:
        how = f"(acerl-np floor fleet LAYOUT --lengthen {factor:.3g})"
        line = (
            f"Driving took {factor:.3f} ± {error:.3f} times as long as here, over {n} trips {how}."
        )
        show_below(arguments.format, [line])


def _convert_log(arguments: argparse.Namespace) -> None:
    """Write the days of a dispatcher's log as records, and who served them."""
    from acerl_np.live.daybook import read_days

    layout, stem = _read_floor(arguments), arguments.out.removesuffix(".csv")
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


def _read_floor(arguments: argparse.Namespace) -> Layout:
    """Return the floor of a log."""
    for option in (opt.BREAKDOWNS, opt.MAPPING):
        if getattr(arguments, option.key, None):
            raise InputError(f"{option.name}: given with --audit; the log tells all")
    if arguments.layout is None:
        raise InputError("--layout: missing; expected the floor of the log of --audit")
    return load_layout(arguments.layout).with_random_breakdowns(None)


def _read_log(arguments: argparse.Namespace) -> records.Assignments:
    """Return what the log of a dispatcher says, with the breakdowns that were."""
    from acerl_np.live.daybook import read_audit

    with inputs.report_ignored():
        return read_audit(arguments.audit, _read_floor(arguments))


def score_replay(played: Replay) -> dict[str, Any]:
    """Return the figures of a replay by the names of their columns."""
    from acerl_np.evaluation.past import count_late, measure_delays, measure_utilisation
    from acerl_np.evaluation.trials import Trials

    behind, instance = measure_delays(played), played.assignments.instance
    trials, late = Trials.of([instance], played.outcome), count_late(played)
    return {
        "record": instance.name,
        "makespan_s": played.makespan,
        "tardiness_s": played.tardiness,
        "late_tasks": late,
        "assignments": played.decisions,
        "start_behind_mean_s": float(behind.mean()),
        "start_behind_largest_s": float(behind.max()),
        COLUMN_OF["waiting"]: float(trials.waiting[0, 0]),
        COLUMN_OF["utilisation"]: measure_utilisation(played),
        COLUMN_OF["empty"]: float(trials.empty[0, 0]),
        "late_share": late / instance.n_tasks,
    }


MORE = "show waiting, utilisation and empty travel, too (csv and json always do)"
WRITE_MAPPING = opt.CommandOption(
    "--write-mapping FILE.toml", "write how the record was understood, for --mapping"
)

ACTIONS = {
    "perturb": PERTURB,
    "generate": GENERATE,
    "convert": opt.Action(
        convert,
        (
            opt.CommandOption(
                "tasks IN?", "a task record (CSV, .xlsx), '-' for the standard input"
            ),
            opt.CommandOption("--audit LOG+", "a dispatcher's logs instead; needs --layout"),
            opt.CommandOption(
                "--out OUT.csv", "the record to write, with --split a folder", required=True
            ),
            WRITE_MAPPING,
            *(opt.FORCE, opt.ONE_LAYOUT, opt.MAPPING, *opt.EXPORT, opt.FORMAT),
        ),
    ),
    "check": opt.Action(
        check,
        (*opt.list_data(), *opt.EXPORT, WRITE_MAPPING, opt.FORCE, opt.FORMAT),
        opt.OFFERED_LOAD,
    ),
    "replay": opt.Action(
        replay,
        (
            *opt.PAIRS,
            opt.CommandOption(
                "--audit LOG", "a dispatcher's log instead of assignments and tasks; needs --layout"
            ),
            *(opt.ONE_LAYOUT, opt.BREAKDOWNS, opt.MAPPING),
            opt.CommandOption(
                "--schedule-csv FILE.csv",
                "write of every task start and finish as simulated, beside planned_start and "
                "planned_finish as recorded; of one record",
            ),
            opt.FORCE,
            *(opt.MORE.but(help=MORE), opt.FORMAT),
        ),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.add_actions(parser, ACTIONS)
