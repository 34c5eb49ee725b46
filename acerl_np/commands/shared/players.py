"""Who plays on which records, and how: one plan, which a command makes of its arguments once."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.shared import inputs
from acerl_np.commands.shared.progress import compile_ahead
from acerl_np.problem import bundled
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, are_shifts, check_names
from acerl_np.support.errors import (
    InputError,
    PolicyError,
    PolicyWarning,
    make_printable,
)
from acerl_np.support.files import path_exists
from acerl_np.support.own import is_own_name, load_own

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing, Trials
    from acerl_np.simulation.trace import Trace
    from acerl_np.support.team import Team

DEFAULT_SUITE = "dmh-train"
"""Suite that judges by default."""


class Seat(NamedTuple):
    """Who plays, and the label: a policy, a rule's name, or past assignments, a tuple of one a record."""

    label: str
    policy: Any


class Named(NamedTuple):
    """What a command's names are those of; files of past assignments are a list, one for each record."""

    players: list[str | list[str]]
    labels: list[str]
    records: list[str]


@dataclass(frozen=True)
class Plan:
    """What is played: who, on which records, and how."""

    seats: tuple[Seat, ...]
    records: tuple[Instance, ...]
    playing: Playing

    @property
    def labels(self) -> list[str]:
        """Who plays, as tables say it."""
        return [seat.label for seat in self.seats]

    def play(self, team: Team | None = None) -> tuple[list[Trials], list[str]]:
        """Return the trials of each seat, and a line for each that looked ahead: how long that took."""
        from acerl_np.evaluation.past import play_past
        from acerl_np.policies.lookahead import Lookahead
        from acerl_np.support.workers import count_cores

        playing = replace(self.playing, executor=team)
        workers = (playing.threads or count_cores()) if team is None else team.n_workers
        results: list[Trials] = []
        times: list[str] = []
        for label, policy in self.seats:
            if isinstance(policy, tuple):
                results.append(play_past(policy, playing))
                continue
            started, looks = time.perf_counter(), isinstance(policy, Lookahead)
            try:
                trials = play_quietly(policy, self.records, playing)
            except PolicyError as error:
                raise PolicyError(f"{label}: {error}" if looks else str(error)) from error
            if looks:
                busy = min(workers, trials.makespan.size)
                each = 1e3 * (time.perf_counter() - started) * busy / max(1, trials.decisions)
                times.append(f"{label}: {each:.2g} ms a decision")
            results.append(trials)
        return results, times

    def trace(self, seat: Seat, i: int, trial: int) -> Trace:
        """Play a trial of a record once more, and return all that happens."""
        from acerl_np.evaluation.tracing import trace_past, trace_policy

        how: dict[str, Any] = {"trial": trial, "label": seat.label, "objective": self.playing.goal}
        how |= {"seed": self.playing.seed, "horizon": self.playing.horizon}
        if isinstance(seat.policy, tuple):
            return trace_past(seat.policy[i], **how)
        return trace_policy(seat.policy, self.records[i], greedy=self.playing.greedy, **how)


def play_quietly(policy: Any, instances: Sequence[Instance], playing: Playing) -> Trials:
    """Return the trials of a policy; that it was trained elsewhere was said by `check_fit`."""
    from acerl_np.evaluation.trials import play_policy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return play_policy(policy, instances, playing)


def sort_names(arguments: argparse.Namespace, *, needed: bool = True) -> Named:
    """Tell the names of policies from those of records, which what they hold tells apart; --past plays, too.

    Without any policy it is an error if one is `needed`.
    """
    records = [x for x in arguments.names if inputs.is_table(x) or inputs.is_bundled(x)]
    names = [name for name in arguments.names if name not in records]
    if not names and needed:
        raise InputError("no policy; expected policy.npz or a name such as EDD before the records")
    named = Named([*names], [*map(make_printable, names)], records)
    if getattr(arguments, "past", None):
        named.players.append(arguments.past)
        named.labels.append("replay")
    return named


def sort_episode(arguments: argparse.Namespace) -> Named:
    """Tell who plays in an episode from its record, the last name: a policy, --against and --past."""
    *policies, record = arguments.names
    if len(policies) > 1 or not (policies or arguments.past):
        shown = ", ".join(map(make_printable, arguments.names[:3]))
        expected = "INSTANCE" if arguments.past and len(policies) > 1 else "POLICY and INSTANCE"
        raise InputError(f"read {len(arguments.names)} names ({shown}); expected {expected}")
    others = [getattr(arguments, name, None) for name in ("against", "past")]
    names = [*policies, *(name for name in others if name is not None)]
    past = arguments.past
    players = [[name] if name == past or inputs.is_table(name) else name for name in names]
    return Named(players, names, [record])


def make_plan(
    arguments: argparse.Namespace,
    named: Named,
    default: str | None = None,
    *,
    shifts: str | None = None,
) -> Plan:
    """Return what the arguments say is played; without records the suite `default` judges.

    With --lookahead those that can look ahead have a second seat. The objective of `shifts` is that where
    nothing else says one.
    """
    from acerl_np.policies.general import describe_general, find_set, make_general
    from acerl_np.policies.rules import GENERAL

    found = [find_policy(name) if isinstance(name, str) else name for name in named.players]
    records = inputs.load_instances(arguments, default, tasks=named.records)
    check_names(records)
    goal = read_goal(arguments, found, shifts if are_shifts(records) else None)
    playing = read_playing(arguments, goal)
    seats = []
    for label, player in zip(named.labels, found, strict=True):
        if isinstance(player, list):
            seats.append(Seat(label, tuple(inputs.read_past(arguments, player, records))))
        elif player == GENERAL:
            name = find_set(records, goal)
            print(describe_general(name, goal), file=sys.stderr)
            seats.append(Seat(GENERAL, make_general(name)))
        else:
            seats.append(Seat(player if isinstance(player, str) else label, player))
    check_fit(seats, records)
    if "lookahead" in arguments:
        seats = look_ahead(arguments, seats, records, goal)
    return Plan(tuple(seats), tuple(records), playing)


def plan_episode(arguments: argparse.Namespace, named: Named) -> Plan:
    """Return the plan of an episode, whose record is one."""
    plan, [name] = make_plan(arguments, named), named.records
    if len(plan.records) > 1:
        n = len(plan.records)
        raise InputError(f"{name}: {n} records; expected one (acerl-np records convert parts them)")
    return plan


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


def find_policy(name: str) -> Any:
    """Return the policy in a file, the name of a known one, or what a `module:name` says."""
    from acerl_np.policies.agent import as_decider
    from acerl_np.policies.files import load_policy
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


def check_fit(seats: Sequence[Seat], records: Sequence[Instance]) -> None:
    """Refuse a policy that was trained for floors of another size; say which were trained elsewhere."""
    from acerl_np.policies.origin import describe_difference

    trained = [seat for seat in seats if not isinstance(seat.policy, str | tuple)]
    for label, policy in trained:
        try:
            for record in records:
                policy.check_fits(record)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
    layouts = [(record.name, record.layout) for record in records]
    for label, policy in trained:
        line = describe_difference(policy, layouts)
        if line is not None:
            print(f"{make_printable(label)}: {line}", file=sys.stderr)


def look_ahead(
    arguments: argparse.Namespace, seats: list[Seat], records: Sequence[Instance], goal: Goal
) -> list[Seat]:
    """Return the seats, those that can look ahead with a second one that does."""
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.policies.network import Policy
    from acerl_np.policies.own import OwnRule
    from acerl_np.policies.rules import RULES

    if not arguments.lookahead:
        needless, how = ["history", "weights", "ahead"], "with --lookahead 0"
        if arguments.lookahead is None:
            needless, how = [*needless, "bases"], "without --lookahead"
        for name in needless:
            if getattr(arguments, name) is not None:
                raise InputError(f"--{name}: given {how}; expected --lookahead 1 or more as well")
    if arguments.lookahead is None:
        return seats
    history = arguments.history and inputs.load_named(arguments, arguments.history)
    bases = arguments.bases or 1
    same = {"history": history, "weights": arguments.weights or "match", "seed": arguments.seed}
    same |= {"futures": arguments.lookahead, "objective": goal, "horizon": arguments.ahead}
    found: list[Seat] = []
    for label, policy in seats:
        found.append(Seat(label, policy))
        is_rule = isinstance(policy, OwnRule) or (isinstance(policy, str) and policy in RULES)
        if not is_rule and not isinstance(policy, Policy | IndexPolicy):
            continue
        several = bases if isinstance(policy, IndexPolicy) else 1
        words = [label, f"lookahead {arguments.lookahead}"]
        words += [arguments.weights] if arguments.weights else []
        words += [f"{bases} bases"] if several > 1 else []
        try:
            ahead = Lookahead(policy, bases=several, **same)
            for record in records:
                ahead.check_fits(record)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
        found.append(Seat(", ".join(words), ahead))
    if len(found) == len(seats):
        raise PolicyError("--lookahead: no trained policy and no rule to look ahead with")
    if bases != 1 and not any(isinstance(seat.policy, IndexPolicy) for seat in seats):
        raise PolicyError(f"--bases: read {bases}; expected an index policy among the policies")
    compile_ahead("lookahead")  # so that no row's time has it in it
    return found
