"""`acerl-np evaluate`: play policies and rules on task records and compare them."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.ahead import RANGES, Clock, add_lookahead, compile_lookahead, look_ahead
from acerl_np.commands.common import (
    add_random_breakdowns,
    add_records,
    load_instances,
    report_ignored,
    report_unfinished,
)
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.commands.players import Row, add_fit, find_policy, seat_policies
from acerl_np.commands.playing import add_playing, check_playing
from acerl_np.commands.ranges import check_ranges
from acerl_np.commands.standings import explain, list_data, tabulate, write_trials
from acerl_np.commands.summary import MORE_HELP
from acerl_np.commands.teams import add_team_options, open_team
from acerl_np.support.errors import (
    InputError,
    PolicyError,
    PolicyWarning,
    make_printable,
)
from acerl_np.support.report import (
    DATA_FORMATS,
    FORMAT_HELP,
    FORMATS,
    render_data,
    render_table,
)

if TYPE_CHECKING:
    from acerl_np.evaluation.margin import Comparison
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Playing, Trials
    from acerl_np.problem.assignments import Assignments
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team

DESCRIPTION = """\
Play policies on task records and compare them: mean makespan/tardiness per instance over the trials,
M and C (makespan and tardiness normalised over the policies of this table, 1 is best), P (share of
trials with tardiness below the limit), and how far the mean makespan is from hindsight. --more adds the
share of late tasks, the waiting from arrival to pickup, the share of the fleet's time with a task, the
share of metres driven empty, and standard errors. --format csv and json hold all of that as plain numbers,
a row for each policy and record.

Policies are files written by acerl-np train, or names: FCFS, EDD, NVF, STD, LWT, AHP (a free vehicle is
drawn, the rule picks its task), MIX (a random rule), Random (a random task), Static (the best fixed
vehicle order and rule per vehicle on the records of --fit, not on those that judge it). --replay adds past
assignments as a row, played as by acerl-np records replay.

--lookahead N adds a row for each trained policy and rule that looks ahead: before each decision it plays
its best assignments to the end of N sampled futures. How long a decision takes stands below the table.

The suites dmh-test and dmh-noise-10 to -30 are noised copies of the training records, not unseen ones.
"""

EPILOG = """\
examples:
  acerl-np evaluate runs/dmh-train-seed0/policy.npz EDD STD Static
  acerl-np evaluate policy.npz EDD --more
  acerl-np evaluate policy.npz MIX --suite dmh-test --greedy --format markdown
  acerl-np evaluate policy.npz EDD --tasks week1.csv week2.csv --layout floor.json --trials-csv all.csv
  acerl-np hindsight week1.csv --layout floor.json --out best.json
  acerl-np evaluate EDD STD Static --fit week1.csv --tasks week2.csv --layout floor.json
  acerl-np evaluate EDD STD --tasks week1.csv --layout floor.json --references best.json
  acerl-np evaluate policy.npz EDD --replay assignments.csv --tasks week1.csv --layout floor.json
  acerl-np evaluate policy.npz STD --tasks week3.csv --layout floor.json --lookahead 32 --history week1.csv
  acerl-np evaluate policy.npz --suite dmh-train --lookahead 32 --weights even
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.add_argument("policies", nargs="+", metavar="POLICY", help="policy.npz or a name")
    add_records(parser)
    add_fit(parser)
    add_random_breakdowns(parser)
    add_lookahead(parser)
    add_playing(parser, "trials", "seed", "greedy", "cost-limit", "horizon", "threads")
    add_team_options(parser, "play")
    parser.add_argument(
        "--more",
        action="store_true",
        help=MORE_HELP,
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT_HELP)
    parser.add_argument(
        "--references",
        metavar="FILE.json",
        help="hindsight references of your own records, written by acerl-np hindsight --out",
    )
    parser.add_argument(
        "--replay",
        nargs="+",
        metavar="ASSIGNMENTS.csv",
        help="past assignments (task,vehicle,start), one file per record: adds the row 'replay'",
    )
    parser.add_argument("--trials-csv", metavar="FILE.csv", help="write every single trial")
    add_force(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, show and write; return the exit status."""
    from acerl_np.problem.instance import check_names

    check_playing(arguments)
    check_ranges(arguments, RANGES)
    if arguments.trials_csv is not None:
        declare_outputs(arguments, [arguments.trials_csv], option="--trials-csv")
    policies = [find_policy(name) for name in arguments.policies]
    instances = load_instances(arguments, "dmh-train")
    check_names(instances)
    rows = seat_policies(
        arguments, policies, list(map(make_printable, arguments.policies)), instances
    )
    references = gather_references(arguments, instances)
    past = load_assignments(arguments.replay, instances, arguments.date_format)
    from acerl_np.evaluation.margin import compare_trials
    from acerl_np.policies.static import StaticPlan

    plans = {row.label: row.policy.describe() for row in rows if isinstance(row.policy, StaticPlan)}
    rows = look_ahead(arguments, rows, instances)
    labels = [*(row.label for row in rows), *(["replay"] if past else [])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # said above, by the files' names
        with open_team(arguments.processes, arguments.dask, arguments.silence) as team:
            results, times = play(arguments, rows, instances, past, team)
    if arguments.trials_csv is not None:
        write_trials(arguments.trials_csv, labels, results)
    comparison = compare_trials(instances, results, references)
    below = [f"{label}: {plan}" for label, plan in plans.items()]
    if comparison.static is not None:
        fleet = [vehicle.id for vehicle in instances[0].layout.vehicles]
        plan = comparison.static.plan.describe(fleet)
        below.append(f"best static plan for these very records: {plan}")
    below += [*times, *describe_margin(arguments, instances, comparison)]
    if arguments.format in DATA_FORMATS:
        data = list_data(instances, labels, results, comparison, plans)
        print(render_data(data, arguments.format), end="")
    else:
        header, cells = tabulate(instances, labels, results, comparison, more=arguments.more)
        print(render_table(header, cells, arguments.format), end="")
        below = [*explain(header, len(instances)), *below]
    # A table for another program stays one.
    stream = sys.stdout if arguments.format in ("text", "markdown") else sys.stderr
    if arguments.format == "markdown":
        print()  # or they would be rows of the table
    for line in dict.fromkeys(below):
        print(line + ("  " if arguments.format == "markdown" else ""), file=stream)
    for label, trials in zip(labels, results, strict=True):
        report_unfinished(label, trials)
    return 0


def gather_references(
    arguments: argparse.Namespace, instances: Sequence[Instance]
) -> dict[str, Reference]:
    """Return bundled references and those of --references; say what the latter lack."""
    from acerl_np.evaluation.references import bundled_references, find_known, load_references

    references = dict(bundled_references())
    if arguments.references is None:
        return references
    own = load_references(arguments.references)
    references.update(
        {item.content_hash: item for item in own if item.cost_limit == arguments.cost_limit}
    )
    known = find_known(instances, references, arguments.cost_limit)
    for instance, reference in zip(instances, known, strict=True):
        if reference is None:
            print(
                f"{make_printable(arguments.references)}: no reference for {instance.name} "
                "(other tasks, floor, breakdowns or cost limit)",
                file=sys.stderr,
            )
    return references


def play(
    arguments: argparse.Namespace,
    rows: Sequence[Row],
    instances: list[Instance],
    past: list[Assignments],
    team: Team | None,
) -> tuple[list[Trials], list[str]]:
    """Return the trials of each policy and of past assignments, if any; and how long lookahead took."""
    from acerl_np.evaluation.past import play_past
    from acerl_np.evaluation.trials import play_policy
    from acerl_np.policies.lookahead import Lookahead

    compile_lookahead(rows)
    results = []
    playing = read_playing(arguments, team)
    clock = Clock(arguments.threads)
    for label, policy in rows:
        clock.start()
        try:
            trials = play_policy(policy, instances, playing)
        except PolicyError as error:
            if isinstance(policy, Lookahead):
                raise PolicyError(f"{label}: {error}") from error
            raise
        if isinstance(policy, Lookahead):
            clock.stop(label, trials)
        results.append(trials)
    if past:
        results.append(play_past(past, playing))
    return results, clock.lines


def read_playing(arguments: argparse.Namespace, team: Team | None = None) -> Playing:
    """Return how the arguments say that policies are played."""
    from acerl_np.evaluation.trials import Playing

    names = ("trials", "seed", "greedy", "cost_limit", "horizon", "threads")
    return Playing(**{name: getattr(arguments, name) for name in names}, executor=team)


def load_assignments(
    paths: list[str] | None, instances: list[Instance], date_format: str | None
) -> list[Assignments]:
    """Return the past assignments of each record, none if no files are named.

    Raises
    ------
    InputError
        If there is not one file per record, or one is not usable.
    """
    from acerl_np.problem.assignments import read_assignments

    if paths is None:
        return []
    if len(paths) != len(instances):
        raise InputError(
            f"--replay: read {len(paths)} files for {len(instances)} records; expected one each"
        )
    with report_ignored():
        return [
            read_assignments(path, instance, date_format=date_format)
            for path, instance in zip(paths, instances, strict=True)
        ]


def describe_margin(
    arguments: argparse.Namespace,
    instances: Sequence[Instance],
    comparison: Comparison,
) -> list[str]:
    """Return one line if there is little to win, none if there is more or hindsight is not known."""
    from acerl_np.evaluation.margin import measure_margin, play_best_rule

    if not comparison.hindsight:
        return []
    rule, played = play_best_rule(instances, read_playing(arguments))
    margin = measure_margin(rule, played, comparison.hindsight)
    return [margin.sentence()] if margin.is_little else []
