"""`acerl-np evaluate`: play policies and rules on task records and compare them."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    add_breakdowns,
    add_random_breakdowns,
    load_instances,
    report_unfinished,
)
from acerl_np.support.errors import InputError, PolicyError, make_printable
from acerl_np.support.files import path_exists, write_atomically
from acerl_np.support.report import FORMATS, Cell, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Trials
    from acerl_np.policies.network import Policy
    from acerl_np.problem.assignments import Assignments
    from acerl_np.problem.instance import Instance

DESCRIPTION = """\
Play policies on task records and compare them: mean makespan/tardiness per instance over the trials,
M and C (makespan and tardiness normalised over the policies of this table, 1 is best), P (share of
trials with tardiness below the limit), and how far the mean makespan is from hindsight.

Policies are files written by acerl-np train, or names: FCFS, EDD, NVF, STD, LWT, AHP (a free vehicle is
drawn, the rule picks its task), MIX (a random rule), Random (a random task), Static (the best fixed
vehicle order and rule per vehicle on these records). --replay adds past assignments as a row, played as
by acerl-np records replay.
"""

EPILOG = """\
examples:
  acerl-np evaluate runs/dmh-train-seed0/policy.npz EDD STD Static
  acerl-np evaluate policy.npz MIX --suite dmh-test --greedy --format markdown
  acerl-np evaluate policy.npz EDD --tasks week1.csv week2.csv --layout floor.json --trials-csv all.csv
  acerl-np hindsight week1.csv --layout floor.json --out best.json
  acerl-np evaluate EDD STD Static --tasks week1.csv --layout floor.json --references best.json
  acerl-np evaluate policy.npz EDD --replay assignments.csv --tasks week1.csv --layout floor.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.add_argument("policies", nargs="+", metavar="POLICY", help="policy.npz or a name")
    parser.add_argument(
        "--tasks", nargs="+", metavar="TASKS", default=[], help="task records or bundled instances"
    )
    parser.add_argument("--suite", help="a bundled suite (default: dmh-train)")
    parser.add_argument(
        "--layout",
        metavar="LAYOUT.json",
        help="floor and fleet of the records: a JSON file or 'dmh' (default: layout.json beside each)",
    )
    add_breakdowns(parser)
    add_random_breakdowns(parser)
    parser.add_argument(
        "--trials", type=int, default=30, help="episodes per instance (default: 30)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    parser.add_argument(
        "--greedy",
        action="store_true",
        help="take a policy's most probable action (default: sample, as in training and in the paper)",
    )
    parser.add_argument(
        "--cost-limit", type=float, default=50.0, help="xi, limit on the tardiness, s (default: 50)"
    )
    parser.add_argument(
        "--horizon",
        type=float,
        metavar="SECONDS",
        help="stop an episode after so many seconds, finished or not (default: never)",
    )
    parser.add_argument("--threads", type=int, help="worker threads (default: one per core)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the table")
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


def load_policy(name: str) -> Policy | str:
    """Return the policy in a file, or the name of a known policy."""
    from acerl_np.policies.network import Policy
    from acerl_np.policies.rules import find_policy_name

    if name.endswith(".npz") or path_exists(name):
        return Policy.load(name)
    return find_policy_name(name)


def check_fit(
    names: Sequence[str], policies: Sequence[Policy | str], instances: Sequence[Instance]
) -> None:
    """Refuse a policy that was trained for floors of another size.

    Parameters
    ----------
    names : sequence of str
        What the policies are called in the error, such as the names of their files.
    policies : sequence of Policy or str
        Rules, given by name, fit all floors.
    instances : sequence of Instance

    Raises
    ------
    PolicyError
        With the name of the first that does not fit.
    """
    for name, policy in zip(names, policies, strict=True):
        for instance in instances:
            try:
                if not isinstance(policy, str):
                    policy.check_fits(instance)
            except PolicyError as error:
                raise PolicyError(f"{name}: {error}") from error


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, show and write; return the exit status."""
    from acerl_np.problem.instance import check_names

    if not 1 <= arguments.trials <= 1_000_000:
        raise InputError(
            f"--trials: read {arguments.trials}; expected a number from 1 to 1,000,000"
        )
    if not 0.0 <= arguments.cost_limit <= 1e9:
        raise InputError(
            f"--cost-limit: read {arguments.cost_limit}; expected seconds from 0 to 1e9"
        )
    policies = [load_policy(name) for name in arguments.policies]
    instances = load_instances(arguments, "dmh-train")
    check_names(instances)
    check_fit(arguments.policies, policies, instances)
    from acerl_np.evaluation.references import bundled_references, load_references

    references = dict(bundled_references())
    if arguments.references is not None:
        own = load_references(arguments.references)
        references.update(
            {item.content_hash: item for item in own if item.cost_limit == arguments.cost_limit}
        )
        for instance in instances:
            if not knows_all([instance], references, arguments.cost_limit):
                print(
                    f"{make_printable(arguments.references)}: no reference for {instance.name} "
                    "(other tasks, floor, breakdowns or cost limit)",
                    file=sys.stderr,
                )
    past = load_assignments(arguments.replay, instances)
    from acerl_np.evaluation.trials import evaluate_policy

    labels = [
        policy if isinstance(policy, str) else make_printable(name)
        for name, policy in zip(arguments.policies, policies, strict=True)
    ]
    results = [
        evaluate_policy(
            policy,
            instances,
            trials=arguments.trials,
            seed=arguments.seed,
            greedy=arguments.greedy,
            cost_limit=arguments.cost_limit,
            threads=arguments.threads,
            horizon=arguments.horizon,
        )
        for policy in policies
    ]
    if past:
        labels.append("replay")
        results.append(play_past(past, arguments))
    if arguments.trials_csv is not None:
        write_trials(arguments.trials_csv, labels, results)
    header, rows = compare(instances, labels, results, references)
    print(render_table(header, rows, arguments.format), end="")
    for label, trials in zip(labels, results, strict=True):
        report_unfinished(label, trials)
    return 0


def load_assignments(paths: list[str] | None, instances: list[Instance]) -> list[Assignments]:
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
    return [
        read_assignments(path, instance) for path, instance in zip(paths, instances, strict=True)
    ]


def play_past(past: list[Assignments], arguments: argparse.Namespace) -> Trials:
    """Play past assignments; only random breakdowns are drawn, those of the policies' trials."""
    import numpy as np

    from acerl_np.evaluation.trials import Trials
    from acerl_np.simulation.arena import stream_keys
    from acerl_np.simulation.replay import replay_assignments

    shape = (len(past), arguments.trials)
    makespan, tardiness, decisions = np.empty(shape), np.empty(shape), 0
    for i, item in enumerate(past):
        random = item.instance.layout.has_random_breakdowns
        different = arguments.trials if random else 1
        for trial, key in enumerate(stream_keys([item.instance], different, arguments.seed)):
            played = replay_assignments(item, horizon=arguments.horizon, key=key)
            # Without random breakdowns all trials are equal.
            trials = trial if random else slice(None)
            makespan[i, trials], tardiness[i, trials] = played.makespan, played.tardiness
            decisions += played.decisions
    return Trials(
        instances=tuple(item.instance.name for item in past),
        makespan=makespan,
        tardiness=tardiness,
        decisions=decisions,
        cost_limit=arguments.cost_limit,
    )


def write_trials(path: str, labels: list[str], results: list[Trials]) -> None:
    """Write every single trial as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["policy", "instance", "trial", "makespan", "tardiness", "satisfied"])
    for label, trials in zip(labels, results, strict=True):
        for i, name in enumerate(trials.instances):
            for k in range(trials.makespan.shape[1]):
                makespan, tardiness = trials.makespan[i, k], trials.tardiness[i, k]
                inside = int(tardiness < trials.cost_limit)
                writer.writerow([label, name, k, makespan, tardiness, inside])
    write_atomically(path, text.getvalue().encode())


def knows_all(
    instances: list[Instance], references: dict[str, Reference], cost_limit: float
) -> bool:
    """Whether there is a reference of each instance for this limit, so that "of the way" is shown."""
    known = [references.get(instance.content_hash) for instance in instances]
    return all(item is not None and item.cost_limit == cost_limit for item in known)


def compare(
    instances: list[Instance],
    labels: list[str],
    results: list[Trials],
    references: dict[str, Reference],
) -> tuple[list[str], list[list[Cell]]]:
    """Return header and rows of the comparison."""
    import numpy as np

    from acerl_np.evaluation.metrics import normalise
    from acerl_np.policies.static import find_static
    from acerl_np.problem.instance import display_name

    makespan = np.array([trials.mean_makespan() for trials in results])
    tardiness = np.array([trials.mean_tardiness() for trials in results])
    m, c = normalise(makespan, makespan), normalise(tardiness, tardiness)
    limit = results[0].cost_limit
    known = [references.get(instance.content_hash) for instance in instances]
    complete = knows_all(instances, references, limit)
    header = ["policy", *(display_name(instance.name) for instance in instances)]
    header += ["mean", "M", "C", "P"]
    if complete:
        header += ["above hindsight", "of the way"]
        best = float(np.mean([item.makespan for item in known if item is not None]))
        static = find_static(instances, cost_limit=limit)
        start = float(static.makespan.mean()) if static is not None else best
    rows: list[list[Cell]] = []
    for k, label in enumerate(labels):
        mean = float(makespan[k].mean())
        row: list[Cell] = [label]
        pairs = [*zip(makespan[k], tardiness[k], strict=True), (mean, tardiness[k].mean())]
        row += ["-" if np.isnan(a) else f"{a:.1f}/{b:.1f}" for a, b in pairs]
        row += ["-" if np.isnan(value) else f"{value:.2f}" for value in (m[k], c[k])]
        row.append(f"{results[k].satisfied:.0%}")
        if complete:
            finished = not np.isnan(mean)
            row.append(f"{mean / best - 1.0:.1%}" if finished else "-")
            row.append(
                f"{(start - mean) / (start - best):.0%}" if finished and start > best else ""
            )
        rows.append(row)
    if complete:
        cells = [f"{item.makespan:.1f}/{item.tardiness:.1f}" for item in known if item is not None]
        tard = float(np.mean([item.tardiness for item in known if item is not None]))
        rows.append(
            ["hindsight", *cells, f"{best:.1f}/{tard:.1f}", None, None, "100%", "0.0%", "100%"]
        )
    return header, rows
