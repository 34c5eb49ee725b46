"""`acerl-np records check`: look through task records."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from acerl_np.commands.common import OFFERED_LOAD, add_data_arguments, load_instances
from acerl_np.support.report import FORMATS, Cell, name_cells, render_json, render_table

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance

SUMMARY = "look through records"

DESCRIPTION = f"""\
Look through task records: what they ask of the fleet, and what in them nobody could do.

{OFFERED_LOAD}
Tasks that no vehicle may carry or reach make a record unusable for the other commands; the exit status is
0 all the same.
"""

EXAMPLES = ""

MOST_NAMES = 5
"""Tasks that a table names before it says only how many there are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    add_data_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the tables")


def run(arguments: argparse.Namespace) -> None:
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
    from acerl_np.problem.times import show_moment

    found = check_record(instance)
    load, vehicles = found.load, len(instance.layout.vehicles)
    fleet = f"{vehicles} vehicle{'s' if vehicles > 1 else ''}"

    def count(what: str, names: tuple[str, ...]) -> list[Cell]:
        shown = " ".join(names[:MOST_NAMES]) + (" ..." if names[MOST_NAMES:] else "")
        return [what, str(len(names)), shown]

    begins = (
        f"from {show_moment(instance.epoch).replace('T', ' ')}"
        if instance.epoch is not None
        else ""
    )
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
