"""`acerl-np policy`: show what a policy file holds.

Show a policy of any form: its sizes or its plan, and where it comes from (floor, fleet, records, version).

Of a linear index policy each weight is shown, what it does, and what leaving it out would cost: makespan
and share within the limit when it is set to 0, played on noised copies of the training records (arrivals
moved by up to 5 s). With hidden units a weight alone means little, so that only the cost is shown.

Examples
--------
  acerl-np policy show runs/dmh-train-seed0/policy.npz
  acerl-np policy show policy.npz week3.csv --layout floor.json
  acerl-np policy show policy.npz --format json
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

from acerl_np.commands import options as opt
from acerl_np.commands.common import load_instances, names_records
from acerl_np.commands.players import check_fit
from acerl_np.commands.tables import Column, render
from acerl_np.support.errors import PolicyWarning, list_some, make_printable
from acerl_np.support.report import render_data, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.importance import Importance
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.origin import Origin
    from acerl_np.problem.instance import Instance

SHOWN = 8
"""Most names in a line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        help="what a file holds, and what each weight does",
        description=parser.description,
        epilog=parser.epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.description = "Show what a policy file holds.\n"
    opt.declare(
        show, opt.CommandOption("file", "policy.npz, of any form", metavar="FILE", positional=True)
    )
    opt.declare(show, *MEASURING, opt.FORMAT)


MEASURING = (
    opt.BEHIND,
    opt.SUITE.but(help="a bundled suite to play"),
    *opt.READING,
    opt.SEED.but(help="seed of the copies"),
    opt.COST_LIMIT,
    opt.THREADS,
)
"""On what `measure` plays, and how."""


def run(arguments: argparse.Namespace) -> int:
    """Show the policy; return the exit status."""
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy

    policy: AnyPolicy = load_policy(arguments.file)
    facts = list_facts(policy)
    importance = None
    if isinstance(policy, IndexPolicy):
        importance = measure(arguments, policy)
    elif names_records(arguments):
        check_fit([arguments.file], [policy], load_instances(arguments))
    form = arguments.format
    if form == "json":
        print(render_json(facts, importance), end="")
        return 0
    shown = [[make_printable(name), make_printable(text)] for name, text in facts]
    if importance is None and form != "text":
        print(render_table(["policy", make_printable(arguments.file)], shown, form), end="")
        return 0
    # A table for another program stays one.
    below = sys.stdout if form in ("text", "markdown") else sys.stderr
    for name, text in shown:
        print(f"{name}: {text}{'  ' if form == 'markdown' else ''}", file=below)
    if importance is None:
        return 0
    print(file=below)
    if form == "csv":
        print(render_data(list_data(importance), form), end="")
    else:
        print(render_features(importance, form), end="")
    if form == "markdown":
        print()
    for line in explain(importance):
        print(line, file=below)
    return 0


def measure(arguments: argparse.Namespace, policy: IndexPolicy) -> Importance:
    """Return what each weight is worth on the records that the arguments name, or on those in the file."""
    from acerl_np.evaluation.importance import measure_importance

    records: list[Instance] = list(policy.origin.history) if policy.origin is not None else []
    if names_records(arguments):
        records = load_instances(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # where it was trained is shown
        return measure_importance(
            policy,
            records,
            seed=arguments.seed,
            cost_limit=arguments.cost_limit,
            threads=arguments.threads,
        )


def list_facts(policy: AnyPolicy) -> list[tuple[str, str]]:
    """Return what there is to say about a policy of any form, by name."""
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.network import Policy
    from acerl_np.policies.static import StaticPlan

    facts = [("form", policy.form)]
    if isinstance(policy, IndexPolicy):
        kind = f"{policy.shape.hidden} hidden units" if policy.shape.hidden else "linear"
        facts.append(("function", f"{len(policy.features)} features, {kind}"))
        facts.append(("parameters", f"{policy.n_parameters:,}"))
        facts.append(
            ("knows", ", ".join(policy.shape.knowledge) or "nothing that not every floor knows")
        )
    elif isinstance(policy, Policy):
        pair = " each: one chooses the vehicle, one its rule" if policy.form == "agents" else ""
        facts.append(("layers", "-".join(str(size) for size in policy.sizes.tolist()) + pair))
        facts.append(("parameters", f"{policy.n_parameters:,}"))
        facts.append(("serves", f"{policy.n_vehicles} vehicles, {policy.task_slots} tasks seen"))
        own = f"each of {len(policy.task_ids)} tasks its own, by id"
        facts.append(("slots", own if policy.task_ids else "by place in the pool"))
    elif isinstance(policy, StaticPlan):
        facts.append(("plan", policy.describe()))
    return facts + list_origin(policy.origin)


def list_origin(origin: Origin | None) -> list[tuple[str, str]]:
    """Return where a policy comes from."""
    if origin is None:
        return [("origin", "not known")]
    facts = []
    for place in origin.places:
        facts.append(("floor", f"{place.floor} (hash {place.floor_hash[:12]})"))
        fleet = f"{list_some(list(place.vehicles), SHOWN)} (hash {place.fleet_hash[:12]})"
        facts.append(("fleet", fleet))
    names = list_some([record.name for record in origin.records], SHOWN)
    kept = "" if origin.history else "; names and hashes alone"
    facts.append(("records", f"{names}{kept}"))
    facts.append(("trained by", f"acerl_np {origin.version}"))
    return facts


def render_features(importance: Importance, form: str) -> str:
    """Return the table of features for people."""
    is_linear = any(part.weight is not None for part in importance.parts)
    whole = importance.makespan
    columns = [
        Column("feature", "feature"),
        *([Column("weight", "weight", ".3f")] if is_linear else []),
    ]
    if whole is not None:
        columns.append(Column("makespan_without_s", "makespan without", ".1f"))
        columns.append(Column("more", "more", "+.1f"))
        columns.append(Column("satisfied_without_share", "within without", ".0%"))
    columns.append(Column("effect", "effect" if is_linear else "what it is", words=True))
    rows = [
        {
            **row,
            "feature": make_printable(part.name),
            "more": None if whole is None or part.makespan is None else part.makespan - whole,
        }
        for row, part in zip(list_data(importance), importance.parts, strict=True)
    ]
    return render(columns, rows, form)


def list_data(importance: Importance) -> list[dict[str, object]]:
    """Return the table of features for programs."""
    return [
        {
            "feature": part.name,
            "weight": part.weight,
            "effect": part.effect,
            "makespan_without_s": part.makespan,
            "satisfied_without_share": part.satisfied,
        }
        for part in importance.parts
    ]


def explain(importance: Importance) -> list[str]:
    """Return what stands below the table of features."""
    lines = []
    if any(part.weight is not None for part in importance.parts):
        lines.append(
            "weight: per typical difference of the feature between the pairs of a decision"
        )
    if importance.makespan is None:
        lines.append(
            "no records in the file; TASKS or --suite name some, to tell what each is worth"
        )
        return lines
    lines.append(
        f"without: set to 0, on {importance.n_records} noised copies of the records; with all of them "
        f"{importance.makespan:.1f} s, {importance.satisfied:.0%} within {importance.cost_limit:g} s"
    )
    return lines


def render_json(facts: list[tuple[str, str]], importance: Importance | None) -> str:
    """Return everything as one JSON object."""
    data: dict[str, Any] = {}
    for name, text in facts:
        # A policy may come from several floors and fleets.
        if name in ("floor", "fleet"):
            data.setdefault(name, []).append(text)
        else:
            data[name] = int(text.replace(",", "")) if name == "parameters" else text
    if importance is not None:
        data["makespan_s"], data["satisfied_share"] = importance.makespan, importance.satisfied
        data["features"] = list_data(importance)
    return json.dumps(data, indent=1) + "\n"
