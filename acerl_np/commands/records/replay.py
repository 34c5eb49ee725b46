"""`acerl-np records replay`: play past assignments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    add_breakdowns,
    add_date_format,
    add_layout,
    report_ignored,
    vary_breakdowns,
)
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.support.errors import InputError
from acerl_np.support.report import FORMATS, Cell, render_table

if TYPE_CHECKING:
    from acerl_np.simulation.replay import Replay

SUMMARY = "play past assignments"

DESCRIPTION = """\
Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.

Several files of assignments are played with as many records, in pairs: a row for each, and their mean.
"""

EXAMPLES = """\
examples:
  acerl-np records replay assignments.csv --tasks week1.csv --layout floor.json --schedule-csv times.csv
  acerl-np records replay mon.csv tue.csv --tasks mon-tasks.csv tue-tasks.csv --layout floor.json
  acerl-np evaluate EDD STD --replay assignments.csv --tasks week1.csv --layout floor.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    parser.add_argument(
        "assignments",
        nargs="+",
        metavar="ASSIGNMENTS.csv",
        help="which vehicle served which task from when, one file per record",
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        required=True,
        metavar="TASKS",
        help="the task records or bundled instances, in the order of the assignments",
    )
    add_layout(parser)
    add_breakdowns(parser)
    add_date_format(parser)
    parser.add_argument(
        "--schedule-csv",
        metavar="FILE.csv",
        help="write of every task start and finish as simulated, beside planned_start and planned_finish "
        "as recorded; of one record",
    )
    add_force(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the table")


def run(arguments: argparse.Namespace) -> None:
    """Play past assignments and print their scores, and their mean if there are several."""
    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.bundled import load_instance
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    paths, names = arguments.assignments, arguments.tasks
    if len(paths) != len(names):
        raise InputError(
            f"--tasks: read {len(names)} records for {len(paths)} files of assignments; expected one each"
        )
    if arguments.schedule_csv is not None and len(paths) > 1:
        raise InputError(
            f"--schedule-csv: given with {len(paths)} files of assignments; expected one"
        )
    if arguments.schedule_csv is not None:
        declare_outputs(arguments, [arguments.schedule_csv], option="--schedule-csv")
    pairs = []
    with report_ignored():
        for path, name in zip(paths, names, strict=True):
            instance = load_instance(
                name,
                layout=arguments.layout,
                breakdowns=arguments.breakdowns,
                date_format=arguments.date_format,
            )
            [instance] = vary_breakdowns([instance], "none")
            pairs.append(read_assignments(path, instance, date_format=arguments.date_format))
    played = [replay_assignments(assignments) for assignments in pairs]
    if arguments.schedule_csv is not None:
        write_schedule(arguments.schedule_csv, played[0])
    header = ["record", "makespan", "tardiness", "late tasks", "assignments"]
    header += ["mean start behind, s", "largest, s"]
    scores = [score_replay(replay) for replay in played]
    named = zip([item.instance.name for item in pairs], scores, strict=True)
    rows = [show_scores(name, row, whole=True) for name, row in named]
    if len(rows) > 1:
        means = [sum(column) / len(rows) for column in zip(*scores, strict=True)]
        rows.append(show_scores("mean", means, whole=False))
    rules = [len(rows) - 1] if len(rows) > 1 else []
    print(render_table(header, rows, arguments.format, rules=rules), end="")


def score_replay(played: Replay) -> list[float]:
    """Return a replay's makespan, tardiness, late tasks, assignments, mean and largest delay of a start."""
    from acerl_np.evaluation.past import count_late, measure_delays

    behind = measure_delays(played)
    return [
        played.makespan,
        played.tardiness,
        count_late(played),
        played.decisions,
        float(behind.mean()),
        float(behind.max()),
    ]


def show_scores(name: str, scores: Sequence[float], *, whole: bool) -> list[Cell]:
    """Return a row of the table; counts are `whole` but for their mean."""
    makespan, tardiness, *counts, mean, largest = scores
    shown = [f"{count:.{0 if whole else 1}f}" for count in counts]
    return [name, f"{makespan:.1f}", f"{tardiness:.1f}", *shown, f"{mean:.1f}", f"{largest:.1f}"]
