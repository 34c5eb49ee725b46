"""`acerl-np evaluate`: policies and rules on task records, compared."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.replay import replay
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.episode_tables import write_tables
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.players import Plan, list_known, make_plan, sort_names
from acerl_np.commands.shared.progress import report_unfinished
from acerl_np.commands.shared.tables import show_below
from acerl_np.commands.shared.teams import open_team
from acerl_np.problem.goal import SHIFT
from acerl_np.support.errors import PolicyError, PolicyWarning, make_printable
from acerl_np.support.report import DATA_FORMATS

if TYPE_CHECKING:
    from acerl_np.evaluation.margin import Comparison
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Playing, Trials
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.records import Assignments
    from acerl_np.simulation.trace import Trace
    from acerl_np.support.team import Team

FILES = TRIALS, TASKS, VEHICLES = "trials.csv", "tasks.csv", "vehicles.csv"
"""What --out holds, the last two with --details."""

LEAST_TRIPS = 20
"""With a recorded finish, from which on it is said how long driving took."""

POLICIES = opt.Argument(
    "policies POLICY+", "files, rules (acerl-np list rules), general, or module:name of yours"
)
OPTIONS: opt.Options = {
    "": (POLICIES,),
    opt.PLAY: (*opt.LOOKAHEAD, opt.GREEDY, opt.COMMIT, opt.TRAFFIC, opt.HORIZON),
    opt.RECORDS: (
        *(opt.ON, *opt.READING),
        opt.PAST.but(help=f"{opt.PAST.help}: one more row"),
        opt.Argument("--references FILE", "bounds of your records, from policy bound --out"),
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
    from acerl_np.evaluation.past import measure_past, play_past
    from acerl_np.evaluation.references import bundled_references
    from acerl_np.evaluation.trials import Playing, play_policy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.support.workers import count_cores

    playing = Playing() if playing is None else playing
    how = replace(playing, executor=team)
    workers = (playing.threads or count_cores()) if team is None else team.n_workers
    played: dict[str, Trials] = {}
    real: dict[str, Trials] = {}
    times: list[str] = []
    for label, policy in policies.items():
        if isinstance(policy, tuple):
            was = measure_past(policy, playing)
            played[label if was is None else f"{label}, as simulated"] = play_past(policy, playing)
            real |= {} if was is None else {f"{label}, as it was": was}
            continue
        started, looks = time.perf_counter(), isinstance(policy, Lookahead)
        try:
            # That it was trained elsewhere was said by `check_fit`.
            with warnings.catch_warnings(action="ignore", category=PolicyWarning):
                trials = played[label] = play_policy(policy, records, how)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}" if looks else str(error)) from error
        if looks:
            busy = min(workers, trials.makespan.size)
            each = 1e3 * (time.perf_counter() - started) * busy / max(1, trials.decisions)
            times.append(f"{label}: {each:.2g} ms a decision")
    labels, results = [*played, *real], [*played.values(), *real.values()]
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
    from acerl_np.commands.shared.figures import write_trials
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
        found = evaluate(*plan, references=references, team=team)
    past = {x: policy for x, policy in plan.policies.items() if isinstance(policy, tuple)}
    below = [*told, *found.times, *(describe_past(*both) for both in past.items())]
    show(found, plan, below, arguments.format, details=bool(arguments.details))
    if folder is not None:
        make_folder(folder)
        write_trials(str(files[0]), found.labels, found.trials)
        if arguments.details:
            write_tables(str(files[1]), str(files[2]), trace_all(plan, found.trials))
            for item in (x for own in past.values() for x in own):
                path = Path(folder) / f"schedule-{item.instance.name}.csv"
                write_schedule(str(path), replay_assignments(item))
    if arguments.report is not None:
        from acerl_np.commands.shared.reporting import report_policies

        report_policies(arguments.report, found.labels, found.trials, plan.records, below)
    for label, trials in zip(found.labels, found.trials, strict=True):
        report_unfinished(label, trials)


def show(found: Evaluation, plan: Plan, below: list[str], form: str, *, details: bool) -> None:
    """Print a sentence, the table, and what stands below it."""
    from acerl_np.commands.shared.figures import list_standings, render_standings
    from acerl_np.evaluation.verdict import write_comparison

    figures = list_standings(found.labels, found.trials, found.comparison)
    records, goal = plan.records, plan.playing.goal
    table, meanings = render_standings(records, figures, goal, form, more=details)
    first = write_comparison(found.labels, found.trials)
    if first and form not in DATA_FORMATS:
        print(f"{first}\n")
    print(table, end="")
    lines = [*meanings, *list_known(plan.policies, records), *below]
    margin = found.comparison.margin
    if margin is not None:
        lines.append(f"best rule on these records: {margin.rule}")
        lines += [margin.sentence()] if margin.is_little else []
    show_below(form, lines)


def describe_past(label: str, past: Sequence[Assignments]) -> str:
    """Say how the starts of past assignments differ from those that were recorded."""
    from acerl_np.evaluation.past import measure_delays
    from acerl_np.simulation.replay import replay_assignments

    played = [replay_assignments(item) for item in past]
    behind = [float(x) for item in played for x in measure_delays(item)]
    mean = sum(behind) / len(behind)
    late = f"{mean:.1f} s after the recorded start on average, at most {max(behind):.1f} s"
    return f"{label}: tasks start {late}"


def fit_driving(plan: Plan) -> tuple[Plan, list[str]]:
    """Return the plan with driving as slow as past assignments show it, and say so.

    That is where the recorded finishes of enough trips differ from the simulator's by two errors. Futures of
    lookahead are of the floor as it is given; where one looks ahead nothing is changed.
    """
    from acerl_np.evaluation.past import estimate_lengthening
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.problem.layout import LENGTHEN, lengthen
    from acerl_np.simulation.replay import replay_assignments

    policies = plan.policies
    past = [item for own in policies.values() if isinstance(own, tuple) for item in own]
    factor, error, n = estimate_lengthening([replay_assignments(item) for item in past])
    if n < LEAST_TRIPS:
        return plan, []
    said = f"Driving took {factor:.3f} (se {error:.3f}) times as long as the floor says, over {n} trips"
    factor = float(f"{factor:.4g}")
    looks = any(isinstance(policy, Lookahead) for policy in policies.values())
    if looks or not abs(factor - 1.0) > 2.0 * error or not LENGTHEN.low <= factor <= LENGTHEN.high:
        return plan, [f"{said}; all rows drive as the floor says."]
    floors = {id(record.layout): lengthen(record.layout, factor) for record in plan.records}
    records = [replace(item, layout=floors[id(item.layout)]) for item in plan.records]

    def place(policy: Any) -> Any:
        if not isinstance(policy, tuple):
            return policy
        both = zip(policy, records, strict=True)
        return tuple(replace(item, instance=record) for item, record in both)

    placed = {label: place(policy) for label, policy in policies.items()}
    how = f"to keep it: acerl-np floor edit LAYOUT --lengthen {factor:g}"
    told = f"{said}: so all that is simulated drives ({how})."
    return Plan(placed, records, plan.playing), [told]


def trace_all(plan: Plan, results: Sequence[Trials]) -> Iterator[tuple[str, int, Trace]]:
    """Play all trials once more and give what happened in them; of equal trials of a record the first."""
    import numpy as np

    from acerl_np.evaluation.trials import METRICS

    for (label, policy), trials in zip(plan.policies.items(), results, strict=False):
        for i, record in enumerate(plan.records):
            own = policy[i : i + 1] if isinstance(policy, tuple) else policy
            figures = np.array([getattr(trials, name)[i] for name in METRICS])
            first = np.broadcast_to(figures[:, :1], figures.shape)
            same = np.array_equal(figures, first, equal_nan=True)
            for k in range(1 if same else plan.playing.trials):
                [trace] = replay({label: own}, record, plan.playing, trial=k)
                yield label, k, trace


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
