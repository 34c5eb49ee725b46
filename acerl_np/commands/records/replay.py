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
    if arguments.format in DATA_FORMATS:
        print(render_data(list_data(played), arguments.format), end="")
        return
    header = ["record", "makespan", "tardiness", "late tasks", "assignments"]
    header += ["mean start behind, s", "largest, s"]
    if arguments.more:
        header += ["waiting, s", "utilisation", "empty"]
    scores = [score_replay(replay) for replay in played]
    named = zip([item.instance.name for item in pairs], scores, strict=True)
    usage = [score_usage(replay) for replay in played] if arguments.more else [[] for _ in played]
    rows = [
        [*show_scores(name, row, whole=True), *show_usage(more)]
        for (name, row), more in zip(named, usage, strict=True)
    ]
    if len(rows) > 1:
        means = [sum(column) / len(rows) for column in zip(*scores, strict=True)]
        more = [sum(column) / len(rows) for column in zip(*usage, strict=True)]
        rows.append([*show_scores("mean", means, whole=False), *show_usage(more)])
    rules = [len(rows) - 1] if len(rows) > 1 else []
    print(render_table(header, rows, arguments.format, rules=rules), end="")


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


def score_usage(played: Replay) -> list[float]:
    """Return a replay's mean waiting, s, its utilisation, and its share of empty travel."""
    from acerl_np.evaluation.trials import Trials

    trials = Trials.of([played.assignments.instance], played.outcome)
    return [float(x[0, 0]) for x in (trials.waiting, trials.utilisation, trials.empty)]


def show_usage(usage: Sequence[float]) -> list[Cell]:
    """Return the cells of --more, none without it."""
    return [f"{value:{form}}" for value, form in zip(usage, (".1f", ".0%", ".0%"), strict=False)]


def list_data(played: Sequence[Replay]) -> list[dict[str, object]]:
    """Return the table for programs: a row for each record, and their mean if there are several."""
    names = ["makespan_s", "tardiness_s", "late_tasks", "assignments"]
    names += ["start_behind_mean_s", "start_behind_largest_s"]
    names += ["waiting_s", "utilisation_share", "empty_share", "late_share"]
    values = [
        [*scores, *score_usage(replay), scores[2] / replay.assignments.instance.n_tasks]
        for replay in played
        for scores in [score_replay(replay)]
    ]
    labels = [replay.assignments.instance.name for replay in played]
    if len(values) > 1:
        values.append([sum(column) / len(values) for column in zip(*values, strict=True)])
        labels.append("mean")
    return [
        {"record": label, **dict(zip(names, row, strict=True))}
        for label, row in zip(labels, values, strict=True)
    ]
