"""`acerl-np records convert`: say how a record was understood, and write it plainly."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from acerl_np.commands.common import add_date_format, add_layout, report_ignored
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.support.report import DATA_FORMATS, FORMAT_HELP, FORMATS, render_data, render_table

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.records import Reading

SUMMARY = "show how a record is understood, write it plainly"

DESCRIPTION = """\
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
"""

EXAMPLES = """\
examples:
  acerl-np records convert export.csv --layout floor.json --out week1.csv
  acerl-np records convert export.csv --layout floor.json --date-format '%d.%m.%Y %H:%M' --out week1.csv
  gunzip -c export.csv.gz | acerl-np records convert - --layout floor.json --out week1.csv
"""


COUNTS = ("tasks", "first arrival", "last arrival")
"""What a table for programs gives as numbers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    parser.add_argument(
        "tasks", metavar="IN", help="a task record (CSV), '-' for the standard input"
    )
    parser.add_argument("--out", required=True, metavar="OUT.csv", help="the record to write")
    add_force(parser)
    add_layout(parser)
    add_date_format(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT_HELP)


def run(arguments: argparse.Namespace) -> None:
    """Print how the record was understood, and write it."""
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
    rows = describe_reading(instance, reading)
    if arguments.format in DATA_FORMATS:
        shown = render_data([list_data(instance, dict(rows))], arguments.format)
    else:
        # Words begin below each other.
        width = max(len(text) for _, text in rows) if arguments.format == "text" else 0
        rows = [(what, text.ljust(width)) for what, text in rows]
        shown = render_table([instance.name, "understood as"], rows, arguments.format)
    print(shown, end="")
    print(f"record {out}", file=sys.stderr)


def describe_reading(instance: Instance, reading: Reading) -> list[tuple[str, str]]:
    """Return what was understood of a record, and as what."""
    from acerl_np.problem.fields import show_moment
    from acerl_np.problem.source import DELIMITERS
    from acerl_np.support.errors import list_some, make_printable

    task, arrival, expiry = reading.first_row
    arrival_read, expiry_read = reading.first
    zero = "second 0" if instance.epoch is None else show_moment(instance.epoch)
    due = "" if reading.expiries == "seconds" else " after the arrival"
    ignored = [make_printable(name[:60]) for name in reading.columns.ignored]
    found = [
        ("columns separated by", DELIMITERS[reading.delimiter]),
        ("columns used", ", ".join(reading.columns.used)),
        ("columns ignored", list_some(ignored, 20) or "none"),
        ("arrivals", f"{reading.arrivals}; task {task}: {arrival} -> {arrival_read:g} s"),
        ("expiries", f"{reading.expiries}; task {task}: {expiry} -> {expiry_read:g} s{due}"),
        ("tasks", str(instance.n_tasks)),
        ("first arrival", f"{instance.arrival[0]:g} s"),
        ("last arrival", f"{instance.arrival[-1]:g} s"),
        ("time zero", zero),
    ]
    return [(what, make_printable(text)) for what, text in found]


def list_data(instance: Instance, words: dict[str, str]) -> dict[str, object]:
    """Return the only row of the table for programs: what was understood, in numbers where it is one."""
    return {
        "record": instance.name,
        **{name.replace(" ", "_"): text for name, text in words.items() if name not in COUNTS},
        "tasks": instance.n_tasks,
        "first_arrival_s": instance.arrival[0],
        "last_arrival_s": instance.arrival[-1],
    }
