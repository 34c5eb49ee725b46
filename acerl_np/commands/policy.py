"""`acerl-np policy`: show what a policy file holds.

Show what a policy file holds.

Examples
--------
  acerl-np policy show runs/dmh-train-seed0/policy.npz
  acerl-np policy show policy.npz week3.csv --layout floor.json
  acerl-np policy show policy.npz --format json
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import load_instances, names_records
from acerl_np.commands.shared.players import Seat, check_fit, read_goal
from acerl_np.commands.shared.tables import Column, find_below, render, show_below
from acerl_np.problem.goal import PAPER
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import PolicyWarning, list_some, make_printable
from acerl_np.support.own import TRUST, is_own_name, trusting
from acerl_np.support.report import render_data, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.importance import Importance
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.policies.index import IndexPolicy

SHOWN = 8
"""Most names in a line."""

MEASURING = (
    *(opt.BEHIND, opt.SUITE.but(help="a bundled suite to play"), *opt.READING),
    *(opt.SEED.but(help="seed of the copies"), *opt.GOAL, opt.THREADS, opt.TRUST),
)
"""On what `measure` plays, and how."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options = opt.CommandOption("file FILE", "policy.npz, of any form"), *MEASURING, opt.FORMAT
    opt.add_actions(parser, {"show": opt.Action(run, options)})


def run(arguments: argparse.Namespace) -> None:
    """Show what a file holds, and what each weight does.

    Show a policy of any form: its sizes or its plan, and where it comes from (floor, fleet, records,
    version).

    Of an index policy each weight is shown, what it does, and what leaving it out would cost: objective and
    share within the limit when it is set to 0, played on noised copies of the training records (arrivals
    moved by up to 5 s). Functions that it names are not imported but with --trust-code: without, nothing is
    played.
    """
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy

    with trusting(arguments.trust_code or None):
        policy: AnyPolicy = load_policy(arguments.file)
        importance = measure(arguments, policy) if isinstance(policy, IndexPolicy) else None
    facts = list_facts(policy)
    if importance is None and names_records(arguments):
        check_fit([Seat(arguments.file, policy)], load_instances(arguments))
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
    how = {"seed": arguments.seed, "threads": arguments.threads}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # where it was trained is shown
        return measure_importance(policy, records, goal, **how)


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
    why = "no records in the file; TASKS or --suite name some"
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
