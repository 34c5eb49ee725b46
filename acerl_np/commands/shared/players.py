"""Who plays on which records, and how: one plan, which a command makes of its arguments once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.shared import inputs
from acerl_np.commands.shared.options import read_value
from acerl_np.commands.shared.progress import compile_ahead
from acerl_np.problem import bundled
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, are_shifts, check_names
from acerl_np.support.errors import (
    InputError,
    PolicyError,
    make_printable,
    refuse,
    suggest_name,
)
from acerl_np.support.fields import Field
from acerl_np.support.files import path_exists
from acerl_np.support.log import LOG
from acerl_np.support.own import load_own
from acerl_np.support.trust import is_own_name

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing

DEFAULT_SUITE = "dmh-train"
"""Suite that judges by default."""


class Look(NamedTuple):
    """How --lookahead looks ahead: sampled futures, their weights, bases, and how far they reach."""

    futures: int
    weights: str | None = None
    bases: int = 1
    reach: float | None = None


LOOK = {
    "futures": Field(int, 0, 100_000),
    "weights": Field(("match", "even")),
    "bases": Field(int, 1, 64),
    "reach": Field(float, 1.0, 1e9),
}


def read_look(text: str) -> Look:
    """Return what --lookahead says: "32", or "32,weights=even,bases=4,reach=900"."""
    first, *more = (part.strip() for part in text.split(","))
    given = {"futures": first, **dict(part.partition("=")[::2] for part in more)}
    found: dict[str, Any] = {}
    for key, value in given.items():
        field = LOOK.get(key)
        if field is None:
            expected = f"N, then one of {', '.join(list(LOOK)[1:])}{suggest_name(key, LOOK)}"
            refuse("--lookahead", key, expected)
        found[key] = field.read(f"--lookahead: {key}", read_value(field, value), InputError)
    look = Look(**found)
    if not look.futures and (look.weights or look.reach):
        refuse("--lookahead", text, "1 or more futures with weights and reach")
    return look


Policies = Mapping[str, Any]
"""By labels: a policy, a rule's name, or past assignments, a tuple of one a record."""


class Plan(NamedTuple):
    """What is played: who, on which records, and how."""

    policies: Policies
    records: list[Instance]
    playing: Playing


def sort_names(arguments: argparse.Namespace, *, needed: bool = True) -> dict[str, Any]:
    """Return who plays, by labels: names of policies, the files of --past; records are refused among them.

    Without any policy it is an error if one is `needed`.
    """
    names = dict.fromkeys(arguments.policies)
    if len(names) < len(arguments.policies):
        twice = next(x for x in names if arguments.policies.count(x) > 1)
        raise InputError(f"{make_printable(twice)}: given twice; expected each policy once")
    players: dict[str, Any] = {make_printable(name): name for name in names}
    for label, name in players.items():
        if not is_own_name(name) and (inputs.is_table(name) or inputs.is_bundled(name)):
            some = "--on 'days/*.csv', or names separated by commas"
            raise InputError(
                f"{label}: a record among the policies; expected it with --on ({some})"
            )
    if getattr(arguments, "past", None):
        players["past"] = arguments.past
    if not players and needed:
        raise InputError("no policy; expected policy.npz or a name such as EDD")
    return players


def make_plan(
    arguments: argparse.Namespace,
    players: Mapping[str, Any],
    default: str | None = DEFAULT_SUITE,
    *,
    records: Sequence[str] | None = None,
    shifts: str | None = None,
) -> Plan:
    """Return what the arguments say is played, on `records` or those named; else on the suite `default`.

    Players are names of policies, or files of past assignments, one for each record, by their labels. With
    --lookahead those that can look ahead play a second time. The objective of `shifts` is that where nothing
    else says one.
    """
    from acerl_np.policies.general import describe_general, find_set, make_general
    from acerl_np.policies.rules import GENERAL

    found = {x: find_policy(y) if isinstance(y, str) else y for x, y in players.items()}
    loaded = inputs.load_instances(arguments, default, tasks=records)
    check_names(loaded)
    goal = read_goal(arguments, [*found.values()], shifts if are_shifts(loaded) else None)
    policies: dict[str, Any] = {}
    for label, player in found.items():
        if isinstance(player, list):
            policies[label] = tuple(inputs.read_past(arguments, player, loaded))
        elif player == GENERAL:
            name = find_set(loaded, goal)
            LOG.debug(describe_general(name, goal))
            policies[GENERAL] = make_general(name)
        else:
            policies[player if isinstance(player, str) else label] = player
    if records is None and not inputs.names_records(arguments):
        refuse_others(policies, loaded)
    check_fit(policies, loaded)
    if "lookahead" in arguments:
        policies = look_ahead(arguments, policies, loaded, goal)
    return Plan(policies, loaded, read_playing(arguments, goal))


def read_playing(arguments: argparse.Namespace, goal: Goal) -> Playing:
    """Return how the options of a command say that policies are played, usual where it has no such option."""
    from acerl_np.evaluation.trials import Playing

    names = [field.name for field in fields(Playing)]
    given = {name: x for name, x in vars(arguments).items() if name in names}
    return Playing(**given, goal=goal)


def read_goal(
    arguments: argparse.Namespace, policies: Sequence[object] = (), usual: str | None = None
) -> Goal:
    """Return the goal that the options of a command name.

    Without an objective it is that for which all trained policies were trained, if they have the same, else
    the paper's, or `usual` if none was trained. What a policy's file names is not imported: a function counts
    where an option names it.
    """
    names = {field.name for field in fields(Goal)}
    given = {name: x for name, x in vars(arguments).items() if name in names and x is not None}
    if isinstance(text := given.get("objective"), str) and "@" in text:
        objective, _, weights = text.partition("@")
        given |= {"objective": objective, "class_weights": read_weights(weights)}
    aims = [item.origin.goal for item in policies if getattr(item, "origin", None) is not None]  # type: ignore[attr-defined]
    if usual and not aims:
        given.setdefault("objective", usual)
    same = bool(aims) and all(goal == aims[0] for goal in aims)
    if same and aims[0].own and "objective" not in given:
        same = False
        named = " ".join(f"--{name} {own}" for name, own in aims[0].own.items())
        print(f"trained for a function, which is not imported unasked: {named}", file=sys.stderr)
    if "objective" in given or not same or aims[0].objective == PAPER.objective:
        return Goal(**given)
    limit = {"cost_limit": None} if "cost" in given else {}
    return Goal(**{**vars(aims[0]), **limit, **given})


def read_weights(text: str) -> tuple[float, ...]:
    """Return the weights of priorities behind the @ of --objective."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        refuse("--objective", f"@{text}", "weights of priorities such as late@1,5")


def find_policy(name: str) -> Any:
    """Return the policy in a file, the name of a known one, or what a `module:name` says."""
    from acerl_np.policies.files import as_decider, load_policy
    from acerl_np.policies.rules import GENERAL, find_policy_name

    if name.lower() == GENERAL:  # whatever stands here under that name
        return GENERAL
    if name.endswith(".npz") or path_exists(name):
        return load_policy(name)
    if name.endswith(".py"):
        shown = make_printable(name)
        raise PolicyError(f"policy '{shown}': no name; expected {shown}:NAME")
    if is_own_name(name):
        return as_decider(load_own(name, "policy", PolicyError))
    return find_policy_name(name, others=bundled.bundled_instances())


def check_fit(policies: Policies, records: Sequence[Instance]) -> None:
    """Refuse a policy that was trained for floors of another size; say which were trained elsewhere."""
    from acerl_np.policies.origin import describe_difference

    trained = {x: policy for x, policy in policies.items() if not isinstance(policy, str | tuple)}
    for label, policy in trained.items():
        try:
            for record in records:
                policy.check_fits(record)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
    layouts = [(record.name, record.layout) for record in records]
    for label, policy in trained.items():
        line = describe_difference(policy, layouts)
        if line is not None:
            print(f"{make_printable(label)}: {line}", file=sys.stderr)


def refuse_others(policies: Policies, records: Sequence[Instance]) -> None:
    """Refuse policies that were trained on other floors where no records were named."""
    floors = {record.layout.floor_hash for record in records}
    for label, policy in policies.items():
        origin = getattr(policy, "origin", None)
        places = [] if origin is None else [x for x in origin.places if x.floor_hash not in floors]
        if places:
            said = (
                f"{label}: trained on {make_printable(places[0].floor)}, and no records are named"
            )
            raise InputError(f"{said}; expected --on RECORDS (dmh-train is the benchmark)")


def list_known(policies: Policies, records: Sequence[Instance]) -> list[str]:
    """Say which policies were trained on records that judge them here."""
    lines = []
    for label, policy in policies.items():
        origin = getattr(policy, "origin", None)
        known = () if origin is None else {item.content_hash for item in origin.records}
        n = sum(record.content_hash in known for record in records)
        if n:
            lines.append(f"{label}: trained on {n} of these records; others would tell more of it.")
    return lines


def look_ahead(
    arguments: argparse.Namespace, policies: dict[str, Any], records: Sequence[Instance], goal: Goal
) -> dict[str, Any]:
    """Return the policies, those that can look ahead with a second one that does."""
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.policies.network import Policy
    from acerl_np.policies.own import OwnRule
    from acerl_np.policies.rules import RULES

    if arguments.lookahead is None:
        if arguments.futures:
            raise InputError("--futures: given without --lookahead; expected both")
        return policies
    look = read_look(arguments.lookahead)
    if arguments.futures and not look.futures:
        raise InputError("--futures: given with --lookahead 0; expected 1 or more")
    futures = arguments.futures
    history = inputs.load_instances(arguments, tasks=futures) if futures else None
    same = {"history": history, "weights": look.weights or "match", "seed": arguments.seed}
    same |= {"futures": look.futures, "objective": goal, "horizon": look.reach}
    found: dict[str, Any] = {}
    for label, policy in policies.items():
        found[label] = policy
        is_rule = isinstance(policy, OwnRule) or (isinstance(policy, str) and policy in RULES)
        if not is_rule and not isinstance(policy, Policy | IndexPolicy):
            continue
        several = look.bases if isinstance(policy, IndexPolicy) else 1
        words = [label, f"lookahead {look.futures}"]
        words += [look.weights] if look.weights else []
        words += [f"{look.bases} bases"] if several > 1 else []
        try:
            ahead = found[", ".join(words)] = Lookahead(policy, bases=several, **same)
            for record in records:
                ahead.check_fits(record)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
    if len(found) == len(policies):
        raise PolicyError("--lookahead: no trained policy and no rule to look ahead with")
    if look.bases != 1 and not any(isinstance(x, IndexPolicy) for x in policies.values()):
        said = f"bases={look.bases}; expected an index policy among the policies"
        raise PolicyError(f"--lookahead: read {said}")
    compile_ahead("lookahead")  # so that no row's time has it in it
    return found
