"""`acerl-np evaluate`: play policies and rules on task records and compare them.

Play policies on task records and compare them: mean makespan/tardiness per instance over the trials,
M and C (makespan and tardiness normalised over the policies of this table, 1 is best), P (share of
trials with tardiness below the limit), and how far the mean makespan is from hindsight. --more adds the
share of late tasks, the waiting from arrival to pickup, the share of the fleet's time with a task, the
share of metres driven empty, and standard errors. --format csv and json hold all of that as plain numbers,
a row for each policy and record.

--objective says what else is to be small, such as late+0.05*tardiness: it gets a column. By default it is
what all the trained policies were trained for, if that is the same.

Policies are files written by acerl-np train, or names: FCFS, EDD, NVF, STD, LWT, AHP (a free vehicle is
drawn, the rule picks its task), MIX (a random rule), Random (a random task), nearest, fcfs-nearest,
edd-nearest, opentcs, assignment (what a control system does, which choose the vehicle, too), or a rule or
policy of your own: mine.py:NAME or module:NAME (docs/extending.md). --past adds past assignments as a row,
played as by acerl-np records replay.

--lookahead N adds a row for each trained policy and rule that looks ahead: before each decision it plays
its best assignments to the end of N sampled futures. How long a decision takes stands below the table.

The suites dmh-test and dmh-noise-10 to -30 are noised copies of the training records, not unseen ones.

Examples
--------
  acerl-np evaluate runs/dmh-train-seed0/policy.npz EDD STD
  acerl-np evaluate policy.npz EDD --more
  acerl-np evaluate policy.npz MIX --suite dmh-test --greedy --format markdown
  acerl-np evaluate policy.npz EDD week1.csv week2.csv --layout floor.json --trials-csv all.csv
  acerl-np evaluate policy.npz nearest shift1.csv --layout floor.json --tasks-csv tasks.csv
  acerl-np evaluate policy.npz nearest shifts/*.csv --layout floor.json --report report.html
  acerl-np hindsight week1.csv --layout floor.json --out best.json
  acerl-np evaluate EDD STD week1.csv --layout floor.json --references best.json
  acerl-np evaluate policy.npz EDD week1.csv --past assignments.csv --layout floor.json
  acerl-np evaluate policy.npz STD week3.csv --layout floor.json --lookahead 32 --history week1.csv
  acerl-np evaluate policy.npz --suite dmh-train --lookahead 32 --weights even
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import tables
from acerl_np.commands.shared.episode_tables import write_tables
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import DEFAULT_SUITE, Plan, make_plan, sort_names
from acerl_np.commands.shared.progress import report_unfinished
from acerl_np.commands.shared.teams import open_team
from acerl_np.support.errors import make_printable

if TYPE_CHECKING:
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Trials
    from acerl_np.simulation.trace import Trace

OWN = (
    opt.CommandOption(
        "--references FILE.json",
        "hindsight references of your own records, written by acerl-np hindsight --out",
    ),
    opt.PAST.but(help=f"{opt.PAST.help}: adds the row 'replay'"),
    opt.CommandOption("--trials-csv FILE.csv", "write every single trial"),
    opt.CommandOption(
        "--tasks-csv FILE.csv",
        "write every task of every trial: waited, vehicle, picked up, delivered, late; of a record "
        "whose trials are all the same, the first",
    ),
    opt.CommandOption(
        "--vehicles-csv FILE.csv",
        "write every vehicle of these trials: shares of time loaded, driving empty, in a charger's queue, "
        "charging and broken down, lowest level, tasks called back",
    ),
    opt.REPORT,
    opt.FORCE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, *opt.NAMES, *opt.READING, *opt.VARYING)
    opt.declare(parser.add_argument_group("lookahead"), *opt.LOOKAHEAD)
    opt.declare(parser, *opt.PLAYING, *opt.list_team("play"), opt.MORE, opt.FORMAT, *OWN)


def run(arguments: argparse.Namespace) -> None:
    """Evaluate, show and write."""
    from acerl_np.evaluation.margin import compare_trials

    named = sort_names(arguments)
    traced = arguments.tasks_csv, arguments.vehicles_csv
    declare_outputs(arguments, [arguments.trials_csv, arguments.report, *traced])
    plan = make_plan(arguments, named, DEFAULT_SUITE)
    labels, instances, goal = plan.labels, plan.records, plan.playing.goal
    references = gather_references(arguments.references, plan)
    with open_team(vars(arguments)) as team:
        results, times = plan.play(team)
    if arguments.trials_csv is not None:
        tables.write_trials(arguments.trials_csv, labels, results)
    if any(traced):
        write_tables(*traced, trace_all(plan, results))
    comparison = compare_trials(instances, results, references, plan.playing)
    figures = tables.list_standings(labels, results, comparison)
    form, more = arguments.format, arguments.more
    table, below = tables.render_standings(instances, figures, goal, form, more=more)
    print(table, end="")
    below += times
    if comparison.margin is not None:
        below.append(f"best rule on these records: {comparison.margin.rule}")
        below += [comparison.margin.sentence()] if comparison.margin.is_little else []
    tables.show_below(form, below)
    if arguments.report is not None:
        from acerl_np.commands.shared.reporting import report_policies

        report_policies(arguments.report, labels, results, instances, times)
    for label, trials in zip(labels, results, strict=True):
        report_unfinished(label, trials)


def trace_all(plan: Plan, results: Sequence[Trials]) -> Iterator[tuple[str, int, Trace]]:
    """Play all trials once more and give what happened in them; of equal trials of a record the first."""
    import numpy as np

    from acerl_np.evaluation.trials import METRICS

    for seat, trials in zip(plan.seats, results, strict=True):
        for i in range(len(plan.records)):
            figures = np.array([getattr(trials, name)[i] for name in METRICS])
            first = np.broadcast_to(figures[:, :1], figures.shape)
            same = np.array_equal(figures, first, equal_nan=True)
            for k in range(1 if same else plan.playing.trials):
                yield seat.label, k, plan.trace(seat, i, k)


def gather_references(path: str | None, plan: Plan) -> dict[str, Reference]:
    """Return bundled references and those of --references; say what the latter lack."""
    from acerl_np.evaluation.references import bundled_references, find_known, load_references

    references, goal = dict(bundled_references()), plan.playing.goal
    if path is None:
        return references
    references |= {item.content_hash: item for item in load_references(path) if item.goal == goal}
    known = find_known(plan.records, references, goal)
    why = "(other tasks, floor, breakdowns, objective or cost limit)"
    for record, reference in zip(plan.records, known, strict=True):
        if reference is None:
            line = f"{make_printable(path)}: no reference for {record.name} {why}"
            print(line, file=sys.stderr)
    return references
