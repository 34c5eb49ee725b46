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
from typing import TYPE_CHECKING

from acerl_np.commands import options as opt
from acerl_np.commands.inputs import load_instances, report_ignored, vary_breakdowns
from acerl_np.commands.making import GENERATE, PERTURB
from acerl_np.commands.outputs import declare_outputs
from acerl_np.commands.tables import COLUMN_OF, FIGURES, USAGE, Column, count, render
from acerl_np.support.errors import InputError
from acerl_np.support.report import DATA_FORMATS, render_data, render_table

if TYPE_CHECKING:
    from acerl_np.problem.assignments import Assignments
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.records import Reading
    from acerl_np.problem.servable import RecordCheck
    from acerl_np.simulation.replay import Replay


# Check

LISTS = (
    Column("equal_arrivals", "equal arrivals"),
    Column("too_heavy", "no vehicle may carry"),
    Column("unreached", "cannot be reached"),
    Column("dead_ends", "lead into a dead end"),
    Column("hopeless", "due too early for any vehicle"),
)
"""What tasks are listed for."""

CHECKS = (
    Column("tasks", "tasks"),
    Column("first_arrival_s", "first arrival, s", "g"),
    Column("last_arrival_s", "last arrival, s", "g"),
    *LISTS,
    Column("breakdowns", "breakdowns until the last arrival"),
    Column("span_s", "first arrival to last due time, s", "g"),
    Column("fleet_time_s", "fleet's time without repairs, s", "g"),
    Column("offered_load", "offered load", ".2f"),
    Column("usable", "usable"),
)
"""What stands below each other in a table for people."""

MOST_NAMES = 5
"""Tasks that a table names before it says only how many there are."""


def check(arguments: argparse.Namespace) -> None:
    """Print one table per record, or one for programs with a row for each.

    Look through task records: what they ask of the fleet, and what in them nobody could do.

    Tasks that no vehicle may carry or reach make a record unusable for the other commands; the exit status is
    0 all the same.
    """
    from acerl_np.problem.servable import check_record

    found = [(item, check_record(item)) for item in load_instances(arguments, servable=False)]
    if arguments.format in DATA_FORMATS:
        print(render_data([list_check(*pair) for pair in found], arguments.format), end="")
        return
    for k, (instance, checked) in enumerate(found):
        if k:
            print()
        data, notes = list_check(instance, checked), note_check(instance, checked)
        data["usable"] = "yes" if checked.servable else "no"
        rows = [[x.title, x.show(data[x.name]), notes.get(x.name, "")] for x in CHECKS]
        header = [instance.name, "value", "which"]
        print(render_table(header, rows, arguments.format), end="")


def list_check(instance: Instance, found: RecordCheck) -> dict[str, object]:
    """Return a record's row of the table for programs; tasks' names are separated by blanks."""
    from acerl_np.problem.fields import show_moment

    counts = {item.name: getattr(found, item.name) for item in LISTS}
    return {
        "record": instance.name,
        "tasks": found.n_tasks,
        "first_arrival_s": found.first,
        "last_arrival_s": found.last,
        "begins": show_moment(instance.epoch) if instance.epoch is not None else None,
        **{name: len(tasks) for name, tasks in counts.items()},
        **{f"{name}_tasks": " ".join(tasks) or None for name, tasks in counts.items()},
        "breakdowns": found.n_breakdowns,
        "span_s": found.load.span,
        "vehicles": len(instance.layout.vehicles),
        "fleet_time_s": found.load.fleet_time,
        "offered_load": found.load.offered,
        "offered_load_without_approaches": found.load.loaded,
        "usable": bool(found.servable),
    }


def note_check(instance: Instance, found: RecordCheck) -> dict[str, str]:
    """Return what a table for people says beside values: which tasks, above all."""
    from acerl_np.problem.fields import show_moment

    notes = {
        "fleet_time_s": count(len(instance.layout.vehicles), "vehicle"),
        "offered_load": f"{found.load.loaded:.2f} without approaches",
    }
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
    """Print how a record was understood, and write it.

    Read a task record as another system exported it, show how it was understood, and write it as this program
    writes records: separated by commas, arrivals as seconds, ISO 8601 timestamps or times of day, expiries in
    seconds from the arrival.

    Upper and lower case of the header, commas, semicolons or tabs, and further columns do no harm; a misspelt
    column is refused. Times are told apart by their look:
      12.5                        seconds from the start of the episode, to 1e9
      1714980600                  seconds since 1970, above 1e9 (September 2001)
      07:30, 07:30:15             times of one day
      2024-05-06T07:30:15+02:00   ISO 8601 timestamps, with or without an offset from UTC
      06.05.2024 07:30            anything else with --date-format, here '%d.%m.%Y %H:%M'
    Of all but seconds, time zero is the first arrival. '-' is the standard input.

    Examples
    --------
      acerl-np records convert export.csv --layout floor.json --out week1.csv
      acerl-np records convert export.csv --layout floor.json --date-format '%d.%m.%Y %H:%M' --out week1.csv
      gunzip -c export.csv.gz | acerl-np records convert - --layout floor.json --out week1.csv
    """
    from acerl_np.problem.bundled import find_record
    from acerl_np.problem.records import examine_record, write_record

    out = arguments.out
    declare_outputs(arguments, [out])
    path, layout = find_record(arguments.tasks, arguments.layout)
    with report_ignored():
        instance, reading = examine_record(
            path, layout, date_format=arguments.date_format, servable=False
        )
    write_record(instance, out)
    found = describe_reading(instance, reading)
    if arguments.format in DATA_FORMATS:
        row = {
            "record": instance.name,
            **{name.replace(" ", "_"): x for name, x in found.items() if name not in NUMBERS},
            "tasks": instance.n_tasks,
            "first_arrival_s": instance.arrival[0],
            "last_arrival_s": instance.arrival[-1],
        }
        print(render_data([row], arguments.format), end="")
    else:
        columns = [Column("what", instance.name), Column("text", "understood as", words=True)]
        rows = [{"what": what, "text": text} for what, text in found.items()]
        print(render(columns, rows, arguments.format), end="")
    print(f"record {out}", file=sys.stderr)


def describe_reading(instance: Instance, reading: Reading) -> dict[str, str]:
    """Return what was understood of a record, and as what."""
    from acerl_np.problem.fields import show_moment
    from acerl_np.problem.source import DELIMITERS
    from acerl_np.support.errors import list_some, make_printable

    task, arrival, expiry = reading.first_row
    arrival_read, expiry_read = reading.first
    due = "" if reading.expiries == "seconds" else " after the arrival"
    ignored = [make_printable(name[:60]) for name in reading.columns.ignored]
    found = {
        "columns separated by": DELIMITERS[reading.delimiter],
        "columns used": ", ".join(reading.columns.used),
        "columns ignored": list_some(ignored, 20) or "none",
        "arrivals": f"{reading.arrivals}; task {task}: {arrival} -> {arrival_read:g} s",
        "expiries": f"{reading.expiries}; task {task}: {expiry} -> {expiry_read:g} s{due}",
        "tasks": str(instance.n_tasks),
        "first arrival": f"{instance.arrival[0]:g} s",
        "last arrival": f"{instance.arrival[-1]:g} s",
        "time zero": "second 0" if instance.epoch is None else show_moment(instance.epoch),
    }
    return {what: make_printable(text) for what, text in found.items()}


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
    """Play past assignments and print their scores, and their mean if there are several.

    Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

    ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
    stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
    happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
    arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
    vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.

    --audit reads both from the log of a live dispatcher, with the breakdowns that were.

    Several files of assignments are played with as many records, in pairs: a row for each, and their mean.

    Examples
    --------
      acerl-np records replay week1.csv --past assignments.csv --layout floor.json --schedule-csv times.csv
      acerl-np records replay mon.csv tue.csv --past mon-served.csv tue-served.csv --layout floor.json
      acerl-np records replay --audit day.jsonl --layout floor.json
      acerl-np evaluate EDD STD week1.csv --past assignments.csv --layout floor.json
    """
    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.bundled import load_instance
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    # --tasks once named the records behind the assignments.
    older = bool(arguments.tasks) or arguments.past is None
    paths, names = (
        (arguments.names, arguments.tasks) if older else (arguments.past, arguments.names)
    )
    if (arguments.audit is None) != bool(paths):
        found = f"{len(paths)} files" + ("" if arguments.audit is None else " and --audit")
        raise InputError(f"ASSIGNMENTS.csv: read {found}; expected assignments or --audit LOG")
    pairs = [] if arguments.audit is None else [_read_log(arguments)]
    if len(paths) != len(names):
        raise InputError(
            f"--tasks: read {len(names)} records for {len(paths)} files of assignments; expected one each"
        )
    if arguments.schedule_csv is not None and len(paths) > 1:
        raise InputError(
            f"--schedule-csv: given with {len(paths)} files of assignments; expected one"
        )
    declare_outputs(arguments, [arguments.schedule_csv], option="--schedule-csv")
    with report_ignored():
        for path, name in zip(paths, names, strict=True):
            read = {"layout": arguments.layout, "breakdowns": arguments.breakdowns}
            instance = load_instance(name, **read, date_format=arguments.date_format)
            [instance] = vary_breakdowns([instance], "none")
            pairs.append(read_assignments(path, instance, date_format=arguments.date_format))
    played = [replay_assignments(assignments) for assignments in pairs]
    if arguments.schedule_csv is not None:
        write_schedule(arguments.schedule_csv, played[0])
    rows = [score_replay(item) for item in played]
    names = [item.assignments.instance.name for item in played]
    rules = [len(rows)] if len(rows) > 1 else []
    if rules:
        rows.append({name: sum(row[name] for row in rows) / len(rows) for name in rows[0]})
        names.append("mean")
    shown: list[dict[str, object]] = []
    for k, (name, row) in enumerate(zip(names, rows, strict=True)):
        shown.append({"record": name, **row})
        if k in rules and arguments.format not in DATA_FORMATS:
            shown[-1] |= {key: f"{row[key]:.1f}" for key in COUNTS}
    is_whole = arguments.more or arguments.format in DATA_FORMATS
    columns = COLUMNS if is_whole else COLUMNS[:-4]
    print(render(columns, shown, arguments.format, rules), end="")


def _read_log(arguments: argparse.Namespace) -> Assignments:
    """Return what the log of a dispatcher says, with the breakdowns that were."""
    from acerl_np.live.audit import read_audit
    from acerl_np.problem.bundled import load_layout

    for name in ("tasks", "breakdowns", "date_format"):
        if getattr(arguments, name):
            raise InputError(f"--{name.replace('_', '-')}: given with --audit; the log tells all")
    if arguments.layout is None:
        raise InputError("--layout: missing; expected the floor of the log of --audit")
    return read_audit(arguments.audit, load_layout(arguments.layout).with_random_breakdowns(None))


def score_replay(played: Replay) -> dict[str, float]:
    """Return the figures of a replay by the names of their columns."""
    from acerl_np.evaluation.past import count_late, measure_delays, measure_utilisation
    from acerl_np.evaluation.trials import Trials

    behind, instance = measure_delays(played), played.assignments.instance
    trials, late = Trials.of([instance], played.outcome), count_late(played)
    return {
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


ACTIONS = {
    "perturb": PERTURB,
    "generate": GENERATE,
    "convert": opt.Action(
        "show how a record is understood, write it plainly",
        convert,
        (
            opt.CommandOption("tasks IN", "a task record (CSV), '-' for the standard input"),
            opt.CommandOption("--out OUT.csv", "the record to write", required=True),
            *(opt.FORCE, opt.ONE_LAYOUT, opt.DATE_FORMAT, opt.FORMAT),
        ),
    ),
    "check": opt.Action(
        "look through records", check, (*opt.list_data(), opt.FORMAT), opt.OFFERED_LOAD
    ),
    "replay": opt.Action(
        "play past assignments",
        replay,
        (
            *opt.PAIRS,
            opt.CommandOption(
                "--audit LOG", "a dispatcher's log instead of assignments and tasks; needs --layout"
            ),
            *(opt.ONE_LAYOUT, opt.BREAKDOWNS, opt.DATE_FORMAT),
            opt.CommandOption(
                "--schedule-csv FILE.csv",
                "write of every task start and finish as simulated, beside planned_start and "
                "planned_finish as recorded; of one record",
            ),
            opt.FORCE,
            opt.MORE.but(
                help="show waiting, utilisation and empty travel, too (csv and json always do)"
            ),
            opt.FORMAT,
        ),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.add_actions(parser, ACTIONS)
