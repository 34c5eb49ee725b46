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
    take_pairs,
    vary_breakdowns,
)
from acerl_np.commands.options import PAIRS, declare
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.support.errors import InputError
from acerl_np.support.report import (
    DATA_FORMATS,
    FORMAT_HELP,
    FORMATS,
    Cell,
    render_data,
    render_table,
)

if TYPE_CHECKING:
    from acerl_np.problem.assignments import Assignments
    from acerl_np.simulation.replay import Replay

SUMMARY = "play past assignments"

DESCRIPTION = """\
Play past assignments in the simulator, to compare yesterday's dispatching with rules and policies.

ASSIGNMENTS.csv has the header task,vehicle,start and may have a column finish; each task of the record
stands in it once. Each vehicle serves its tasks in the order of their recorded starts; an assignment
happens at the first moment, not before its recorded start, at which the vehicle is idle and the task has
arrived. A task whose vehicle breaks down in mid-way returns to the pool and is served again by the same
vehicle as soon as that is idle. Listed breakdowns happen, random ones do not.

--audit reads both from the log of a live dispatcher, with the breakdowns that were.

Several files of assignments are played with as many records, in pairs: a row for each, and their mean.
"""

EXAMPLES = """\
examples:
  acerl-np records replay week1.csv --past assignments.csv --layout floor.json --schedule-csv times.csv
  acerl-np records replay mon.csv tue.csv --past mon-served.csv tue-served.csv --layout floor.json
  acerl-np records replay --audit day.jsonl --layout floor.json
  acerl-np evaluate EDD STD week1.csv --past assignments.csv --layout floor.json
"""


COLUMNS = (
    ("makespan_s", "makespan", ".1f"),
    ("tardiness_s", "tardiness", ".1f"),
    ("late_tasks", "late tasks", ""),
    ("assignments", "assignments", ""),
    ("start_behind_mean_s", "mean start behind, s", ".1f"),
    ("start_behind_largest_s", "largest, s", ".1f"),
    ("waiting_s", "waiting, s", ".1f"),
    ("utilisation_share", "utilisation", ".0%"),
    ("empty_share", "empty", ".0%"),
)
"""Figures of a table for people, their titles and forms; counts are whole but for their mean."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    declare(parser, *PAIRS)
    parser.add_argument(
        "--audit",
        metavar="LOG",
        help="a dispatcher's log instead of assignments and tasks; needs --layout",
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
    parser.add_argument(
        "--more",
        action="store_true",
        help="show waiting, utilisation and empty travel, too (csv and json always do)",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT_HELP)


def run(arguments: argparse.Namespace) -> None:
    """Play past assignments and print their scores, and their mean if there are several."""
    from acerl_np.problem.assignments import read_assignments
    from acerl_np.problem.bundled import load_instance
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    paths, names = take_pairs(arguments)
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
    if arguments.schedule_csv is not None:
        declare_outputs(arguments, [arguments.schedule_csv], option="--schedule-csv")
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
    rows = list_data(played)
    if arguments.format in DATA_FORMATS:
        print(render_data(rows, arguments.format), end="")
        return
    columns = COLUMNS if arguments.more else COLUMNS[:-3]
    header = ["record", *(title for _, title, _ in columns)]
    rules = [len(rows) - 1] if len(rows) > 1 else []
    cells: list[list[Cell]] = []
    for k, row in enumerate(rows):
        count = ".1f" if k in rules else ".0f"
        shown = [f"{row[name]:{form or count}}" for name, _, form in columns]
        cells.append([str(row["record"]), *shown])
    print(render_table(header, cells, arguments.format, rules=rules), end="")


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


def list_data(played: Sequence[Replay]) -> list[dict[str, object]]:
    """Return the table for programs: a row for each record, and their mean if there are several."""
    rows = [score_replay(replay) for replay in played]
    labels = [replay.assignments.instance.name for replay in played]
    if len(rows) > 1:
        rows.append({name: sum(row[name] for row in rows) / len(rows) for name in rows[0]})
        labels.append("mean")
    return [{"record": label, **row} for label, row in zip(labels, rows, strict=True)]


def score_replay(played: Replay) -> dict[str, float]:
    """Return the figures of a replay by the names of their columns."""
    from acerl_np.evaluation.past import count_late, measure_delays
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
        "waiting_s": float(trials.waiting[0, 0]),
        "utilisation_share": float(trials.utilisation[0, 0]),
        "empty_share": float(trials.empty[0, 0]),
        "late_share": late / instance.n_tasks,
    }
