"""`acerl-np evaluate`: policies and rules on task records, compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import standings, tables
from acerl_np.commands.shared.episode_tables import write_tables
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.players import Plan, Seat, list_known, make_plan, sort_names
from acerl_np.commands.shared.progress import report_unfinished
from acerl_np.commands.shared.teams import open_team
from acerl_np.problem.goal import SHIFT
from acerl_np.support.errors import make_printable
from acerl_np.support.report import DATA_FORMATS

if TYPE_CHECKING:
    from acerl_np.evaluation.margin import Comparison
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Playing, Trials
    from acerl_np.problem.instance import Instance
    from acerl_np.simulation.trace import Trace
    from acerl_np.support.team import Team

FILES = TRIALS, TASKS, VEHICLES = "trials.csv", "tasks.csv", "vehicles.csv"
"""What --out holds, the last two with --details."""

LEAST_TRIPS = 20
"""With a recorded finish, from which on it is said how long driving took."""

POLICIES = opt.CommandOption(
    "policies POLICY+", "files, rules (acerl-np list rules), general, or module:name of yours"
)
OPTIONS: opt.Options = {
    "": (POLICIES,),
    opt.PLAY: (*opt.LOOKAHEAD, opt.GREEDY, opt.COMMIT, opt.TRAFFIC, opt.HORIZON),
    opt.RECORDS: (
        *(opt.ON, *opt.READING),
        opt.PAST.but(help=f"{opt.PAST.help}: one more row"),
        opt.CommandOption("--references FILE", "bounds of your records, from policy bound --out"),
    ),
    opt.OBJECTIVE: opt.GOAL,
    opt.OUTPUT: (
        opt.OUT.but(
            usage="-o/--out DIR",
            help="folder for trials.csv; with --details also tasks.csv, vehicles.csv, and of --past "
            "schedule-RECORD.csv (planned and simulated times)",
        ),
        *(opt.FORMAT, opt.REPORT, opt.FORCE, opt.DETAILS),
    ),
    opt.RUNNING: (opt.SEED_OPTION, opt.TRIALS, opt.THREADS, *opt.TEAM),
}


class Evaluation(NamedTuple):
    """What policies come to on records.

    Attributes
    ----------
    labels : list of str
    trials : list of Trials
        Of each policy.
    comparison : Comparison
        M, C, and the distances to hindsight and to the best rule where hindsight is known.
    times : list of str
        How long decisions took that looked ahead.
    records : list of Instance
    """

    labels: list[str]
    trials: list[Trials]
    comparison: Comparison
    times: list[str]
    records: list[Instance]

    def __repr__(self) -> str:
        """Return the objective of each policy."""
        goal, told = self.trials[0].goal, []
        for label, trials in zip(self.labels, self.trials, strict=True):
            told.append(f"{label} {goal.show(float(trials.mean('value').mean()))}")
        return f"<Evaluation on {len(self.records)} records, {goal.objective}: {', '.join(told)}>"


def evaluate(
    policies: Mapping[str, Any],
    records: Sequence[Instance],
    playing: Playing | None = None,
    *,
    references: Mapping[str, Reference] | None = None,
    team: Team | None = None,
) -> Evaluation:
    """Play policies, rules or past assignments on records, and compare them.

    Parameters
    ----------
    policies : mapping of str to policy
        By their labels: a policy, a rule's name, or a tuple of `Assignments`, one of each record.
    records : sequence of Instance
    playing : Playing, optional
        Trials, seed, objective and so on.
    references : mapping of str to Reference, optional
        Of known schedules by the records' content hashes; by default those that are bundled.
    team : Team, optional
        Workers; by default threads of this process.
    """
    from acerl_np.evaluation.margin import compare_trials
    from acerl_np.evaluation.past import measure_past
    from acerl_np.evaluation.references import bundled_references
    from acerl_np.evaluation.trials import Playing

    playing = Playing() if playing is None else playing
    seats = tuple(Seat(label, policy) for label, policy in policies.items())
    results, times = Plan(seats, tuple(records), playing).play(team)
    labels = list(policies)
    for k, (label, policy) in enumerate(policies.items()):
        was = measure_past(policy, playing) if isinstance(policy, tuple) else None
        if was is not None:
            labels[k] = f"{label}, as simulated"
            labels.append(f"{label}, as it was")
            results.append(was)
    known = bundled_references() if references is None else references
    comparison = compare_trials(records, results, known, playing)
    return Evaluation(labels, results, comparison, times, list(records))


def run(arguments: argparse.Namespace) -> None:
    """Compare policies and rules on task records.

    A sentence compares the first policy with the best of the others. Below are means over your records; of
    bundled ones, or with --details, makespan/tardiness of each record. M and C are makespan and tardiness
    from 0, the worst policy, to 1, the best; P is the share of trials within the limit.

    Examples
    --------
      acerl-np evaluate nearest EDD --on DMH-01,DMH-02
      acerl-np evaluate policy.npz nearest --on 'days/*.csv' --layout floor.json --details
      acerl-np evaluate policy.npz --on week.csv --past week.served.csv --report page.html
    """
    from acerl_np.simulation.replay import replay_assignments, write_schedule

    players = sort_names(arguments)
    folder = arguments.out
    names = FILES if arguments.details else FILES[:1]
    files = [] if folder is None else [Path(folder) / name for name in names]
    declare_outputs(arguments, [arguments.report])
    declare_outputs(arguments, files, folder=folder)
    plan, told = fit_driving(
        make_plan(arguments, players, shifts=SHIFT if arguments.past else None)
    )
    references = gather_references(arguments.references, plan)
    with open_team(vars(arguments)) as team:
        policies = {seat.label: seat.policy for seat in plan.seats}
        found = evaluate(policies, plan.records, plan.playing, references=references, team=team)
    below = [*told, *found.times, *(line for seat in plan.seats for line in describe_past(seat))]
    show(found, plan, below, arguments.format, details=bool(arguments.details))
    if folder is not None:
        make_folder(folder)
        standings.write_trials(str(files[0]), found.labels, found.trials)
        if arguments.details:
            write_tables(str(files[1]), str(files[2]), trace_all(plan, found.trials))
            for item in [
                x for seat in plan.seats if isinstance(seat.policy, tuple) for x in seat.policy
            ]:
                path = Path(folder) / f"schedule-{item.instance.name}.csv"
                write_schedule(str(path), replay_assignments(item))
    if arguments.report is not None:
        from acerl_np.commands.shared.reporting import report_policies

        report_policies(arguments.report, found.labels, found.trials, plan.records, below)
    for label, trials in zip(found.labels, found.trials, strict=True):
        report_unfinished(label, trials)


def show(found: Evaluation, plan: Plan, below: list[str], form: str, *, details: bool) -> None:
    """Print a sentence, the table, and what stands below it."""
    from acerl_np.evaluation.headline import write_comparison

    figures = standings.list_standings(found.labels, found.trials, found.comparison)
    records, goal = plan.records, plan.playing.goal
    table, meanings = standings.render_standings(records, figures, goal, form, more=details)
    first = write_comparison(found.labels, found.trials)
    if first and form not in DATA_FORMATS:
        print(f"{first}\n")
    print(table, end="")
    lines = [*meanings, *list_known(plan.seats, records), *below]
    margin = found.comparison.margin
    if margin is not None:
        lines.append(f"best rule on these records: {margin.rule}")
        lines += [margin.sentence()] if margin.is_little else []
    tables.show_below(form, lines)


def describe_past(seat: Seat) -> list[str]:
    """Say how the starts of past assignments differ from those that were recorded."""
    from acerl_np.evaluation.past import measure_delays
    from acerl_np.simulation.replay import replay_assignments

    if not isinstance(seat.policy, tuple):
        return []
    played = [replay_assignments(item) for item in seat.policy]
    behind = [float(x) for item in played for x in measure_delays(item)]
    mean = sum(behind) / len(behind)
    return [
        f"{seat.label}: tasks start {mean:.1f} s after the recorded start on average, at most "
        f"{max(behind):.1f} s"
    ]


def fit_driving(plan: Plan) -> tuple[Plan, list[str]]:
    """Return the plan with driving as slow as past assignments show it, and say so.

    That is where the recorded finishes of enough trips differ from the simulator's by two errors. Futures of
    lookahead are of the floor as it is given; where one looks ahead nothing is changed.
    """
    from acerl_np.evaluation.past import estimate_lengthening
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.problem.layout import LENGTHEN, lengthen
    from acerl_np.simulation.replay import replay_assignments

    past = [item for seat in plan.seats if isinstance(seat.policy, tuple) for item in seat.policy]
    factor, error, n = estimate_lengthening([replay_assignments(item) for item in past])
    if n < LEAST_TRIPS:
        return plan, []
    said = f"Driving took {factor:.3f} (se {error:.3f}) times as long as the floor says, over {n} trips"
    factor = float(f"{factor:.4g}")
    looks = any(isinstance(seat.policy, Lookahead) for seat in plan.seats)
    if looks or not abs(factor - 1.0) > 2.0 * error or not LENGTHEN.low <= factor <= LENGTHEN.high:
        return plan, [f"{said}; all rows drive as the floor says."]
    floors = {id(record.layout): lengthen(record.layout, factor) for record in plan.records}
    records = tuple(replace(item, layout=floors[id(item.layout)]) for item in plan.records)

    def place(seat: Seat) -> Seat:
        if not isinstance(seat.policy, tuple):
            return seat
        both = zip(seat.policy, records, strict=True)
        return seat._replace(policy=tuple(replace(x, instance=own) for x, own in both))

    seats = tuple(map(place, plan.seats))
    how = f"to keep it: acerl-np floor edit LAYOUT --lengthen {factor:g}"
    return replace(plan, seats=seats, records=records), [
        f"{said}: so all that is simulated drives ({how})."
    ]


def trace_all(plan: Plan, results: Sequence[Trials]) -> Iterator[tuple[str, int, Trace]]:
    """Play all trials once more and give what happened in them; of equal trials of a record the first."""
    import numpy as np

    from acerl_np.evaluation.trials import METRICS

    for seat, trials in zip(plan.seats, results, strict=False):
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


ACTION = opt.Action(run, OPTIONS)
