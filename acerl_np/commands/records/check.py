"""`acerl-np records check`: look through task records."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from acerl_np.commands.common import OFFERED_LOAD, add_data_arguments, load_instances
from acerl_np.support.report import (
    DATA_FORMATS,
    FORMAT_HELP,
    FORMATS,
    Cell,
    render_data,
    render_table,
)

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.servable import RecordCheck

SUMMARY = "look through records"

DESCRIPTION = f"""\
Look through task records: what they ask of the fleet, and what in them nobody could do.

{OFFERED_LOAD}
Tasks that no vehicle may carry or reach make a record unusable for the other commands; the exit status is
0 all the same.
"""

EXAMPLES = ""

LISTS = {
    "equal_arrivals": "equal arrivals",
    "too_heavy": "no vehicle may carry",
    "unreached": "cannot be reached",
    "dead_ends": "lead into a dead end",
    "hopeless": "due too early for any vehicle",
}
"""What tasks are listed for, and what a table for people calls it."""

MOST_NAMES = 5
"""Tasks that a table names before it says only how many there are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    add_data_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT_HELP)


def run(arguments: argparse.Namespace) -> None:
    """Print one table per record, or one for programs with a row for each."""
    from acerl_np.problem.servable import check_record

    found = [
        (instance, check_record(instance)) for instance in load_instances(arguments, servable=False)
    ]
    if arguments.format in DATA_FORMATS:
        print(render_data([list_data(*pair) for pair in found], arguments.format), end="")
        return
    for k, (instance, check) in enumerate(found):
        if k:
            print()
        header = [instance.name, "value", "which"]
        print(render_table(header, describe_record(instance, check), arguments.format), end="")


def list_data(instance: Instance, found: RecordCheck) -> dict[str, object]:
    """Return a record's row of the table for programs; tasks' names are separated by blanks."""
    from acerl_np.problem.fields import show_moment

    counts = {name: getattr(found, name) for name in LISTS}
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


def describe_record(instance: Instance, found: RecordCheck) -> list[list[Cell]]:
    """Return the rows of a record's table: what, its value, which tasks."""
    from acerl_np.problem.fields import show_moment

    load, vehicles = found.load, len(instance.layout.vehicles)
    fleet = f"{vehicles} vehicle{'s' if vehicles > 1 else ''}"
    begins = ""
    if instance.epoch is not None:
        begins = f"from {show_moment(instance.epoch).replace('T', ' ')}"
    listed: list[list[Cell]] = []
    for name, what in LISTS.items():
        names = getattr(found, name)
        shown = " ".join(names[:MOST_NAMES]) + (" ..." if names[MOST_NAMES:] else "")
        listed.append([what, str(len(names)), shown])
    return [
        ["tasks", str(found.n_tasks), ""],
        ["first arrival, s", f"{found.first:g}", begins],
        ["last arrival, s", f"{found.last:g}", ""],
        *listed,
        ["breakdowns until the last arrival", str(found.n_breakdowns), ""],
        ["first arrival to last due time, s", f"{load.span:g}", ""],
        ["fleet's time without repairs, s", f"{load.fleet_time:g}", fleet],
        ["offered load", f"{load.offered:.2f}", f"{load.loaded:.2f} without approaches"],
        ["usable", "yes" if found.servable else "no", ""],
    ]
