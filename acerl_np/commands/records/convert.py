"""`acerl-np records convert`: other systems' records, and logs of `acerl-np serve`, as plain records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from acerl_np.commands.floor import format_layout
from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import Column, count, render
from acerl_np.problem import records
from acerl_np.problem.bundled import SERVED, load_layout
from acerl_np.problem.conversion import Conversion, convert_records
from acerl_np.problem.export import Export, format_mapping, parse_columns, read_mapping
from acerl_np.problem.fields import show_moment
from acerl_np.problem.instance import Instance
from acerl_np.problem.records import CLOSURES_FILE
from acerl_np.problem.servable import list_doubts
from acerl_np.problem.source import DELIMITERS, normalise
from acerl_np.support import errors
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.faults import count_rows, list_names
from acerl_np.support.fields import Field
from acerl_np.support.files import STDIN, show_path, write_atomically
from acerl_np.support.report import DATA_FORMATS, render_csv, render_data

COLUMN_OPTIONS = (
    opt.Argument(
        "--columns KNOWN=COLUMN,...",
        "the records' names of columns, such as task=TA-Nr; 'column 3'",
    ),
    opt.Argument(
        "--date-format FORMAT",
        "such as '%d.%m.%Y %H:%M', or 'excel', 'seconds'; ISO 8601 needs none",
    ),
    opt.Argument(
        "--encoding NAME",
        "text encoding, if neither UTF-8 nor UTF-16 (those are detected) (default: cp1252)",
    ),
    opt.Argument("--sheet NAME", "of a workbook (default: the first with a header)"),
    opt.Argument(
        "--split WHEN", "several records: shift, shifts such as 05:30/17:30, day, or a pause in s"
    ),
    opt.Argument(
        "--due SECONDS", "default due time, in seconds after arrival", opt.number(1.0, 1e9)
    ),
    opt.Argument("--handling SECONDS", "default handling time", opt.number(0.0, 1e9)),
    opt.Argument("--decimal MARK", "'.' or ',', where numbers do not tell", Field((".", ","))),
    opt.Argument(
        "--timezone ZONE[,FOLD]",
        "of the plant, such as Europe/Berlin; FOLD, earlier or later, decides times that occur twice",
    ),
)
"""How records are read, which a mapping keeps; they win over --mapping."""


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
        "columns ignored": list_names(columns.ignored) or "none",
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
        found["left out"] = count_rows(reading.faults, reading.n_rows)
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
    shut = {
        f"{stem}{end}.{CLOSURES_FILE}": day.instance.layout
        for end, day in zip(ends, days, strict=True)
        if day.instance.layout.closures or layout.closures
    }
    known = {vehicle.id for vehicle in layout.vehicles}
    fleets = [day.instance.layout.vehicles for day in days]
    joined = {x.id: x for own in fleets for x in own if x.id not in known}
    floor = f"{stem}.layout.json" if joined else None
    declare_outputs(arguments, [floor, *shut, *(path for both in files for path in both)])
    for path, own in shut.items():
        records.write_closures(own, path)
        print(make_printable(f"{path}: {count(len(own.closures), 'closure')} of edges"))
    for (record, served), day in zip(files, days, strict=True):
        records.write_record(day.instance, record)
        records.write_assignments(served, day)
        print(make_printable(f"{record}: {count(day.instance.n_tasks, 'task')}, served: {served}"))
    if floor is not None:
        whole = layout.with_fleet([*layout.vehicles, *joined.values()]).with_breakdowns({})
        write_atomically(floor, format_layout(whole).encode())
        print(make_printable(f"{floor}: with the vehicles that joined, for --layout"))


ACTION = opt.Action(
    convert,
    {
        "": (opt.Argument("tasks IN?", "a record (CSV, .xlsx), or '-'"),),
        opt.RECORDS: (
            opt.Argument("--audit LOGS", "logs of acerl-np serve instead", opt.NAMES),
            *(opt.LAYOUT, opt.MAPPING, *COLUMN_OPTIONS),
            opt.Argument(
                "--skip-bad", "leave out rows that cannot be read, and list them", opt.SWITCH
            ),
        ),
        opt.OUTPUT: (
            opt.OUT.but(
                usage="-o/--out CSV",
                help="record; with --split a folder. A name without an ending gets .csv",
                required=True,
            ),
            opt.Argument("--write-mapping FILE", "write how records were read"),
            *(opt.FORMAT, opt.FORCE),
        ),
    },
)
