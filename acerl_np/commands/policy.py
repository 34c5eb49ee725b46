"""`acerl-np policy`: show what a policy holds, bound what any policy could reach.

Show what a policy holds; bound what any policy could reach.

Examples
--------
  acerl-np policy show runs/dmh-train-seed0/policy.npz
  acerl-np policy bound week1.csv --layout floor.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import load_instances, names_records
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import check_fit, read_goal
from acerl_np.commands.shared.progress import compile_ahead, make_report
from acerl_np.commands.shared.tables import Column, find_below, render, show_below
from acerl_np.commands.shared.teams import open_team
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import PolicyWarning, list_some, make_printable
from acerl_np.support.report import render_data, render_table
from acerl_np.support.trust import TRUST, is_own_name, trusting

if TYPE_CHECKING:
    from acerl_np.evaluation.importance import Importance
    from acerl_np.evaluation.margin import Margin
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Trials
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.support.fields import Whole
    from acerl_np.support.team import Team

SHOWN = 8
"""Most names in a line."""


def show(arguments: argparse.Namespace) -> None:
    """Show what a policy holds, and what each weight does.

    Of an index policy each weight is set to 0 in turn: the table shows what that costs on perturbed copies of
    the training records.

    Examples
    --------
      acerl-np policy show runs/dmh-train-seed0/policy.npz
      acerl-np policy show policy.npz --on week3.csv --layout floor.json
      acerl-np policy show policy.npz --format json
    """
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy

    with trusting(bool(arguments.trust_code) or None):
        policy: AnyPolicy = load_policy(arguments.file)
        importance = measure(arguments, policy) if isinstance(policy, IndexPolicy) else None
    facts = list_facts(policy)
    if importance is None and names_records(arguments):
        check_fit({arguments.file: policy}, load_instances(arguments))
    form = arguments.format
    shown = [[make_printable(name), make_printable(text)] for name, text in facts]
    if form == "json":
        print(render_json(facts, importance), end="")
    elif importance is None and form != "text":
        print(render_table(["policy", make_printable(arguments.file)], shown, form), end="")
    else:
        end, below = find_below(form)
        for name, text in shown:
            print(f"{name}: {text}{end}", file=below)
        if importance is not None:
            print(file=below)
            print(render_features(importance, form), end="")
            show_below(form, explain(importance))


def has_unread(features: Iterable[str]) -> bool:
    """Whether there are functions among the features that must not be imported."""
    return any(map(is_own_name, features)) and not TRUST.get()


def measure(arguments: argparse.Namespace, policy: IndexPolicy) -> Importance:
    """Return what each weight is worth on the records that the arguments name, or on those in the file."""
    from acerl_np.evaluation.importance import measure_importance

    records: list[Instance] = list(policy.origin.history) if policy.origin is not None else []
    records = load_instances(arguments) if names_records(arguments) else records
    records = [] if has_unread(policy.features) else records
    goal = read_goal(arguments, [policy])
    # Where it was trained is shown.
    with warnings.catch_warnings(action="ignore", category=PolicyWarning):
        return measure_importance(policy, records, goal)


def list_facts(policy: AnyPolicy) -> list[tuple[str, str]]:
    """Return what there is to say about a policy of any form, by name."""
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.network import Policy
    from acerl_np.policies.own import OwnRule

    facts = [("form", policy.form)]
    if isinstance(policy, IndexPolicy):
        facts.append(("function", f"linear, {len(policy.features)} features"))
        if policy.commitment == "pickup":
            facts.append(("commitment", f"pickup, at most {policy.max_changes} changes of a task"))
        looks = "looked at" if policy.planned_breakdowns else "not looked at"
        facts.append(("planned breakdowns", looks))
    elif isinstance(policy, Policy):
        pair = " each: one chooses the vehicle, one its rule" if policy.form == "agents" else ""
        layers = "-".join(str(size) for size in policy.sizes.tolist()) + pair
        facts += [("layers", layers), ("parameters", f"{policy.n_parameters:,}")]
        facts.append(("serves", f"{policy.n_vehicles} vehicles, {policy.task_slots} tasks seen"))
        own = f"each of {len(policy.task_ids)} tasks its own, by id"
        facts.append(("slots", own if policy.task_ids else "by place in the pool"))
        facts.append(("rules", ", ".join(policy.rules)))
    elif isinstance(policy, OwnRule):
        facts.append(("function", policy.name))
    origin = policy.origin
    if origin is None:
        return [*facts, ("origin", "not known")]
    for place in origin.places:
        fleet = f"{list_some(list(place.vehicles), SHOWN)} (hash {place.fleet_hash[:12]})"
        facts.append(("floor", f"{place.floor} (hash {place.floor_hash[:12]})"))
        facts.append(("fleet", fleet))
    names = list_some([record.name for record in origin.records], SHOWN)
    kept = "" if origin.history else "; names and hashes alone"
    facts.append(("records", f"{names}{kept}"))
    if origin.goal != PAPER:
        facts.append(("trained for", origin.goal.describe()))
    facts.append(("trained by", f"acerl_np {origin.version}"))
    return facts


def list_features(importance: Importance) -> list[dict[str, Any]]:
    """Return the rows of the table of features."""
    names = ("feature", "weight", "effect", "value_without", "satisfied_without_share")
    return [dict(zip(names, part, strict=True)) for part in importance.parts]


def render_features(importance: Importance, form: str) -> str:
    """Return the table of features."""
    rows = list_features(importance)
    if form == "csv":
        return render_data(rows, form)
    whole, goal = importance.value, importance.goal
    columns = [Column("feature", "feature"), Column("weight", "weight", ".3f")]
    if whole is not None:
        columns.append(Column("value_without", f"{goal.objective} without", goal.format))
        columns.append(Column("more", "more", f"+{goal.format}"))
        rows = [{**row, "more": row["value_without"] - whole} for row in rows]
        if goal.has_limit:
            columns.append(Column("satisfied_without_share", "within without", ".0%"))
    columns.append(Column("effect", "effect", words=True))
    return render(columns, rows, form)


def explain(importance: Importance) -> list[str]:
    """Return what stands below the table of features."""
    weight = "weight: per typical difference of the feature between the pairs of a decision"
    why = "no records in the file; --on names some"
    if has_unread(part.name for part in importance.parts):
        why = "its functions are not imported unasked; --trust-code does"
    without = f"{why}, to tell what each is worth"
    if importance.value is not None:
        goal = importance.goal
        within = f", {importance.satisfied:.0%} within {goal.limit}" if goal.has_limit else ""
        aim = "" if goal.objective == PAPER.objective else f"{goal.objective} "
        without = (
            f"without: set to 0, on {importance.n_records} noised copies of the records; with all of them "
            f"{aim}{goal.show(importance.value)}{within}"
        )
    return [weight, without]


def render_json(facts: list[tuple[str, str]], importance: Importance | None) -> str:
    """Return everything as one JSON object."""
    data: dict[str, Any] = {}
    for name, text in facts:
        data[name] = int(text.replace(",", "")) if name == "parameters" else text
    # A policy may come from several floors and fleets.
    for name in data.keys() & {"floor", "fleet"}:
        data[name] = [text for own, text in facts if own == name]
    if importance is not None:
        data["value"], data["satisfied_share"] = importance.value, importance.satisfied
        data["features"] = list_features(importance)
    return json.dumps(data, indent=1) + "\n"


COLUMNS = (
    Column("instance", "instance"),
    Column("makespan_s", "hindsight", ".1f", none="none"),
    Column("tardiness_s", "tardiness", ".1f"),
    Column("value"),
    Column("bound", "bound", ".1f"),
    Column("limit", "limit", unknown=""),
    Column("decisions", "decisions", "d"),
    Column("stored_makespan_s", "stored", ".1f"),
    Column("stored_tardiness_s"),
    Column("rule", "best rule"),
    Column("rule_makespan_s", "its makespan", ".1f"),
    Column("rule_tardiness_s"),
)


class Bounds(NamedTuple):
    """How good any policy could be on records.

    Attributes
    ----------
    found, stored : list of Reference or None
        Of each record the best schedule found, with all known in advance, and the bundled one.
    bounds : list of float
        Proven: no schedule's objective is below.
    rule : str
        The best rule.
    trials : Trials
        Of that rule.
    margin : Margin or None
        How far it is from hindsight.
    """

    found: Sequence[Reference | None]
    stored: Sequence[Reference | None]
    bounds: list[float]
    rule: str
    trials: Trials
    margin: Margin | None


def bound(
    records: Sequence[Instance],
    objective: Goal | str = PAPER,
    *,
    effort: float = 1.0,
    seed: Whole = 0,
    threads: int | None = None,
    team: Team | None = None,
) -> Bounds:
    """Search the best schedule of each record, all known in advance, and compare the best rule.

    Parameters
    ----------
    records : sequence of Instance
        Without random breakdowns.
    objective : Goal or str
    effort : float
        Factor on the work; 1 is about seven seconds of a core for a record.
    seed : int
    threads : int, optional
    team : Team, optional
        Workers; by default this process.
    """
    from acerl_np.evaluation.bounds import bound_objective
    from acerl_np.evaluation.hindsight import find_references
    from acerl_np.evaluation.margin import measure_margin, play_best_rule
    from acerl_np.evaluation.references import bundled_references, find_known
    from acerl_np.evaluation.trials import Playing
    from acerl_np.problem.goal import find_goal

    goal = find_goal(objective)
    report, places = make_report("records"), itertools.count(1)

    def tell(record: Instance, found: Reference | None) -> None:
        what = "no schedule finishes" if found is None else found.goal.show(found.value)
        over = ", over the limit" if found is not None and not found.within else ""
        report(next(places), len(records), f"{record.name}: {what}{over}")

    how: dict[str, Any] = {"effort": effort, "seed": seed, "callback": tell}
    references = find_references(records, goal, executor=team, **how)
    rule, trials = play_best_rule(records, Playing(seed=seed, goal=goal, threads=threads))
    some = [k for k, item in enumerate(references) if item is not None]
    margin = None
    if some:
        best = [item for item in references if item is not None]
        margin = measure_margin(rule, trials.select(some), [records[k] for k in some], best)
    known = find_known(records, bundled_references(), goal)
    bounds = [bound_objective(record, goal) for record in records]
    return Bounds(references, known, bounds, rule, trials, margin)


def run_bound(arguments: argparse.Namespace) -> None:
    """Search the best schedules with all known in advance, and prove bounds.

    Hindsight is the best schedule found by a dispatcher who knew all arrivals and breakdowns; it is verified
    by replay. "bound" is proven: no schedule's objective is below it. Random breakdowns have to be left out:
    --breakdowns listed.

    Examples
    --------
      acerl-np policy bound week1.csv --layout floor.json
      acerl-np policy bound 'days/*.csv' --layout floor.json --out bounds.json
      acerl-np policy bound bu-all --format csv
    """
    from acerl_np.evaluation.hindsight import check_future
    from acerl_np.evaluation.references import save_references
    from acerl_np.support.workers import count_cores

    declare_outputs(arguments, [arguments.out])
    every = [x for x, path in bundled_instances().items() if path.parent.name == "dmh"]
    records = load_instances(arguments, tasks=None if names_records(arguments) else every)
    goal = read_goal(arguments)
    for record in records:
        check_future(record)
    compile_ahead("search")
    started = time.perf_counter()
    own = min(arguments.threads or count_cores(), len(records))
    with open_team(vars(arguments), own=own) as team:
        how = {name: getattr(arguments, name) for name in ("effort", "seed", "threads")}
        found = bound(records, goal, **how, team=team)
    show_bounds(found, records, goal, arguments.format)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.out is not None:
        save_references(arguments.out, [item for item in found.found if item is not None])
        print(f"references {arguments.out}", file=sys.stderr)


def show_bounds(found: Bounds, records: Sequence[Instance], goal: Goal, form: str) -> None:
    """Print the table of hindsight, bounds and the best rule."""
    means = zip(found.trials.mean("makespan"), found.trials.mean("tardiness"), strict=True)
    rows = []
    parts = records, found.found, found.stored, found.bounds, means
    for record, best, stored, least, values in zip(*parts, strict=True):
        cells = (
            record.name,
            *((best.makespan, best.tardiness, best.value) if best else [None] * 3),
            least,
            None if best is None else "kept" if best.within else "over",
            len(best.actions) if best else None,
            *((stored.makespan, stored.tardiness) if stored else [None] * 2),
            *(found.rule, *values),
        )
        rows.append(dict(zip((column.name for column in COLUMNS), cells, strict=True)))
    columns = [
        column._replace(title=f"{goal.objective}", form=goal.format)
        if column.name == "value" and goal.objective not in ("makespan", "tardiness")
        else column
        for column in COLUMNS
        if column.name != "limit" or goal.has_limit
    ]
    print(render(columns, rows, form), end="")
    margin = found.margin
    show_below(form, [margin.sentence()] if margin is not None and margin.is_little else [])


ACTIONS = {
    "show": opt.Action(
        show,
        {
            "": (opt.Argument("file FILE", "policy.npz, of any form"),),
            opt.RECORDS: (
                opt.ON.but(help=f"{opt.RECORDS_PLACE.help} (default: those in the file)"),
                *opt.READING,
            ),
            opt.OBJECTIVE: opt.GOAL,
            opt.OUTPUT: (opt.FORMAT,),
        },
    ),
    "bound": opt.Action(
        run_bound,
        {
            "": (opt.RECORDS_PLACE,),
            opt.PLAY: (opt.TRAFFIC,),
            opt.RECORDS: opt.READING,
            opt.OBJECTIVE: opt.GOAL,
            opt.OUTPUT: (
                opt.OUT.but(help="schedules with their actions (JSON), for evaluate --references"),
                *(opt.FORMAT, opt.FORCE),
            ),
            opt.RUNNING: (opt.EFFORT, opt.SEED_OPTION, opt.THREADS, *opt.TEAM),
        },
    ),
}
