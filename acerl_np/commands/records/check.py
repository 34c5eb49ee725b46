"""`acerl-np records check`: what is wrong with records, and what they ask of the fleet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from acerl_np.commands.records.convert import COLUMN_OPTIONS, read_export
from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.tables import Column, count, render
from acerl_np.problem.bundled import expand_names
from acerl_np.problem.export import Export, read_mapping
from acerl_np.problem.fields import show_moment
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.servable import RecordCheck, check_record, describe_charging, list_doubts
from acerl_np.support import errors
from acerl_np.support.errors import RecordError
from acerl_np.support.faults import Fault, RecordWarning, count_rows, list_causes
from acerl_np.support.files import FilePath
from acerl_np.support.report import DATA_FORMATS, render_data, render_table

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
    faults: tuple[Fault, ...]
    n_rows: int
    ignored: tuple[RecordWarning, ...]
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
        said: list[RecordWarning] = []
        loaded: list[Instance] = []
        error = ""
        try:
            with inputs.report_ignored(said):
                loaded = inputs.load_files([path], layout, breakdowns, export, servable=False)
        except RecordError as failure:
            said.append(RecordWarning(path, (), failure.faults, failure.n_rows))
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
    wrong = [file.error for file in found if file.error]
    wrong += [show_faults(file, form) for file in found if file.faults]
    inputs.tell_ignored([warning for file in found for warning in file.ignored])
    # Faults of a file stand beside the first of its records.
    checked = [
        (item, () if k else file.faults, file.checks[k])
        for file in found
        for k, item in enumerate(file.records)
    ]
    if checked and form in DATA_FORMATS:
        hidden = OF_CHAINS if all(item.is_plain for item, *_ in checked) else ()
        rows = [list_check(*one) for one in checked]
        print(
            render_data([{x: row[x] for x in row if x not in hidden} for row in rows], form), end=""
        )
    elif checked:
        print("\n".join(render_check(*one, form) for one in checked), end="")
    for instance, *_ in checked:
        for line in list_doubts(instance):
            print(f"{instance.name}: warning: {line}", file=sys.stderr)
    if len(wrong) > 1:
        print("\n".join(map(errors.make_printable, wrong)), file=sys.stderr)
        raise RecordError(f"{len(wrong)} of {len(found)} files cannot be read as they are")
    if wrong:
        raise RecordError(wrong[0])


def show_faults(file: FileCheck, form: str) -> str:
    """Print the rows of a file that cannot be read; return in a line how many they are.

    A table for programs has their number beside the file's first record; without a record people are told.
    """
    n_tasks = sum(item.n_tasks for item in file.records)
    shown = f"{file.path}: {count_rows(file.faults, file.n_rows)} are bad"
    shown += f", {n_tasks:,} are fine"
    if form not in DATA_FORMATS or not file.records:
        causes = list_causes(file.faults)
        told = [shown, *(causes if len(causes) < len(file.faults) else ())]
        rows = [fault._asdict() for fault in file.faults]
        is_data = form in DATA_FORMATS
        table = render(FAULTS, rows, "text" if is_data else form)
        stream = sys.stderr if is_data else sys.stdout
        print("\n".join([*map(errors.make_printable, told), table]), file=stream)
    return shown + "; --skip-bad leaves bad ones out" * bool(n_tasks)


def render_check(instance: Instance, faults: Sequence[Fault], found: RecordCheck, form: str) -> str:
    """Return the table of a record for people: a line for each value, with which tasks."""
    data, notes = list_check(instance, faults, found), note_check(instance, found)
    data["usable"] = "yes" if found.servable else "no"
    mean = data["handling_s"]
    data["handling_s"] = f"{mean:g} s a task" if mean else "none, 0 s"
    hidden = [] if found.load.slots else [*OF_BATTERIES]
    hidden += OF_CHAINS if instance.is_plain else ()
    columns = [x for x in CHECKS if x.name not in hidden]
    lines = [[x.title, x.show(data[x.name]), notes.get(x.name, "")] for x in columns]
    return render_table([instance.name, "value", "which"], lines, form)


def list_check(
    instance: Instance, faults: Sequence[Fault], found: RecordCheck
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


ACTION = opt.Action(
    check,
    {
        "": (opt.RECORDS_PLACE,),
        opt.RECORDS: (*opt.READING, *COLUMN_OPTIONS),
        opt.OUTPUT: (opt.FORMAT,),
    },
)
