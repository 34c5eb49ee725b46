"""`acerl-np records replay`: play past assignments."""

from __future__ import annotations

import argparse

from acerl_np.commands.common import (
    add_breakdowns,
    add_layout,
    vary_breakdowns,
)
from acerl_np.support.report import FORMATS, Cell, render_table

SUMMARY = "play past assignments"

DESCRIPTION = """\
Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.
"""

EXAMPLES = """\
examples:
  acerl-np records replay assignments.csv --tasks week1.csv --layout floor.json --schedule-csv times.csv
  acerl-np evaluate EDD STD --replay assignments.csv --tasks week1.csv --layout floor.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    parser.add_argument(
        "assignments", metavar="ASSIGNMENTS.csv", help="which vehicle served which task from when"
    )
    parser.add_argument(
        "--tasks", required=True, metavar="TASKS", help="the task record or bundled instance"
    )
    add_layout(parser)
    add_breakdowns(parser)
    parser.add_argument(
        "--schedule-csv",
        metavar="FILE.csv",
        help="write of every task start and finish as simulated, beside planned_start and planned_finish "
        "as recorded",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the table")


def run(arguments: argparse.Namespace) -> None:
    """Play past assignments and print their scores."""
    from acerl_np.evaluation.past import count_late, measure_delays
    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.bundled import load_instance
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    instance = load_instance(
        arguments.tasks, layout=arguments.layout, breakdowns=arguments.breakdowns
    )
    [instance] = vary_breakdowns([instance], "none")
    assignments = read_assignments(arguments.assignments, instance)
    played = replay_assignments(assignments)
    behind = measure_delays(played)
    header = ["record", "makespan", "tardiness", "late tasks", "assignments"]
    header += ["mean start behind, s", "largest, s"]
    row: list[Cell] = [
        instance.name,
        f"{played.makespan:.1f}",
        f"{played.tardiness:.1f}",
        str(count_late(played)),
        str(played.decisions),
        f"{behind.mean():.1f}",
        f"{behind.max():.1f}",
    ]
    if arguments.schedule_csv is not None:
        write_schedule(arguments.schedule_csv, played)
    print(render_table(header, [row], arguments.format), end="")
