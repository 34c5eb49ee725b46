"""Who plays, and how: what a command makes of the policies and options that are named for it."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.inputs import is_bundled, is_suite, load_instances, load_named
from acerl_np.commands.progress import compile_ahead
from acerl_np.support.errors import (
    InputError,
    PolicyError,
    PolicyWarning,
    list_some,
    make_printable,
)
from acerl_np.support.files import path_exists

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing, Trials
    from acerl_np.policies.files import AnyPolicy, BasePolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.problem.goal import Goal
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team

DEFAULT_FIT = "dmh-train"
"""Suite that judges by default, and that Static is fitted on if bundled records of its floor judge."""


def read_playing(arguments: argparse.Namespace, executor: Team | None = None) -> Playing:
    """Return how the options of a command say that policies are played, usual where it has no such option."""
    from acerl_np.evaluation.trials import Playing

    names = [field.name for field in fields(Playing)]
    given = {name: x for name, x in vars(arguments).items() if name in names}
    return Playing(**{**given, "goal": read_goal(arguments), "executor": executor})


def read_goal(arguments: argparse.Namespace, policies: Sequence[object] = ()) -> Goal:
    """Return the goal that the options of a command name.

    Without an objective it is that for which all trained policies were trained, if they have the same, else
    the paper's. What a policy's file names is not imported: a function counts where an option names it.
    """
    from acerl_np.problem.goal import PAPER, Goal

    names = (field.name for field in fields(Goal))
    given: dict[str, Any] = {
        name: x for name in names if (x := getattr(arguments, name, None)) is not None
    }
    aims = [item.origin.goal for item in policies if getattr(item, "origin", None) is not None]  # type: ignore[attr-defined]
    same = bool(aims) and all(goal == aims[0] for goal in aims)
    if same and aims[0].own and "objective" not in given:
        same = False
        named = " ".join(f"--{name} {own}" for name, own in aims[0].own.items())
        print(f"trained for a function, which is not imported unasked: {named}", file=sys.stderr)
    if "objective" in given or not same or aims[0].objective == PAPER.objective:
        return Goal(**given)
    limit = {"cost_limit": None} if "cost" in given else {}
    return Goal(**{**vars(aims[0]), **limit, **given})


def play_quietly(
    policy: AnyPolicy | Lookahead | str, instances: Sequence[Instance], playing: Playing
) -> Trials:
    """Return the trials of a policy; that it was trained elsewhere was said by `check_fit`."""
    from acerl_np.evaluation.trials import play_policy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return play_policy(policy, instances, playing)


class Seat(NamedTuple):
    """A policy and its label."""

    label: str
    policy: Any

    @property
    def is_static(self) -> bool:
        """Whether it is the name of a plan that is still to be fitted."""
        from acerl_np.policies.rules import STATIC

        return isinstance(self.policy, str) and self.policy == STATIC


def find_policy(name: str) -> BasePolicy | str:
    """Return the policy in a file, the name of a known one, or what a `module:name` says."""
    from acerl_np.policies.agent import seat_policy
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.rules import find_policy_name
    from acerl_np.problem.bundled import bundled_instances
    from acerl_np.support.own import is_own_name, load_own

    if name.endswith(".npz") or path_exists(name):
        policy: AnyPolicy = load_policy(name)
        return policy
    if name.endswith(".py"):
        raise PolicyError(
            f"policy '{make_printable(name)}': no name; expected {make_printable(name)}:NAME"
        )
    if is_own_name(name):
        return seat_policy(load_own(name, "policy", PolicyError))
    return find_policy_name(name, others=bundled_instances())


def seat_named(
    arguments: argparse.Namespace, names: Sequence[str]
) -> tuple[list[Seat], list[Instance]]:
    """Return the policies of these names, and the records that judge: those of dmh-train by default."""
    from acerl_np.problem.instance import check_names

    policies = [find_policy(name) for name in names]
    instances = load_instances(arguments, DEFAULT_FIT)
    check_names(instances)
    labels = list(map(make_printable, names))
    return seat_policies(arguments, policies, labels, instances), instances


def seat_policies(
    arguments: argparse.Namespace,
    policies: Sequence[BasePolicy | str],
    names: Sequence[str],
    instances: Sequence[Instance],
) -> list[Seat]:
    """Return the policies with their labels, `names` for those from a file; all fit the records.

    Static is fitted, never on the records that judge unless --fit names them. The options take over the goal
    that the policies have in common, see `read_goal`.
    """
    vars(arguments).update(vars(read_goal(arguments, policies)))
    rows = [
        Seat(policy if isinstance(policy, str) else name, policy)
        for name, policy in zip(names, policies, strict=True)
    ]
    fitted = [_fit_static(arguments, instances)] if any(row.is_static for row in rows) else []
    if arguments.fit is not None and not fitted:
        raise InputError("--fit: given without Static; expected it among the policies")
    seats = [fitted[0] if row.is_static else row for row in rows]
    check_fit(
        [Seat(row.label, seat.policy) for row, seat in zip(rows, seats, strict=True)], instances
    )
    return seats


def _fit_static(arguments: argparse.Namespace, instances: Sequence[Instance]) -> Seat:
    """Return a plan fitted on --fit, or on `DEFAULT_FIT` for bundled records of its floor and fleet."""
    from acerl_np.policies.static import fit_static
    from acerl_np.problem.bundled import load_suite

    fit = arguments.fit
    if fit is None:
        fit, own = [DEFAULT_FIT], load_suite(DEFAULT_FIT)[0].layout
        if not all(map(is_bundled, arguments.tasks)) or not all(
            (item.layout.floor_hash, item.layout.fleet_hash) == (own.floor_hash, own.fleet_hash)
            for item in instances
        ):
            raise InputError(
                "Static: no records to fit it on; expected --fit TASKS.csv or a bundled suite "
                "(other records than those that judge it)"
            )
    training, playing = load_named(arguments, fit), read_playing(arguments)
    how = {name: getattr(playing, name) for name in ("seed", "horizon", "threads")}
    plan = fit_static(training, objective=playing.goal, **how)
    names = fit if is_suite(fit) else [make_printable(item.name) for item in training]
    return Seat(f"Static (fitted on {list_some(names, 3)})", plan)


def check_fit(rows: Sequence[Seat], instances: Sequence[Instance]) -> None:
    """Refuse a policy that was trained for floors of another size; say which were trained elsewhere."""
    from acerl_np.policies.origin import describe_difference

    for label, policy in rows:
        try:
            for instance in instances if not isinstance(policy, str) else ():
                policy.check_fits(instance)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
    layouts = [(instance.name, instance.layout) for instance in instances]
    for label, policy in rows:
        line = describe_difference(policy, layouts)
        if line is not None:
            print(f"{make_printable(label)}: {line}", file=sys.stderr)


def look_ahead(
    arguments: argparse.Namespace, rows: Sequence[Seat], instances: Sequence[Instance]
) -> list[Seat]:
    """Return the rows, those that can look ahead with a second one that does."""
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
        return list(rows)
    history = None if arguments.history is None else load_named(arguments, arguments.history)
    bases = arguments.bases or 1
    found: list[Seat] = []
    for label, policy in rows:
        found.append(Seat(label, policy))
        is_rule = isinstance(policy, OwnRule) or (isinstance(policy, str) and policy in RULES)
        if not is_rule and not isinstance(policy, Policy | IndexPolicy):
            continue
        several = bases if isinstance(policy, IndexPolicy) else 1
        words = [label, f"lookahead {arguments.lookahead}"]
        words += [arguments.weights] if arguments.weights else []
        words += [f"{bases} bases"] if several > 1 else []
        try:
            ahead = Lookahead(
                policy,
                history=history,
                futures=arguments.lookahead,
                seed=arguments.seed,
                weights=arguments.weights or "match",
                bases=several,
                objective=read_goal(arguments),
                horizon=arguments.ahead,
            )
            for instance in instances:
                ahead.check_fits(instance)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
        found.append(Seat(", ".join(words), ahead))
    if len(found) == len(rows):
        raise PolicyError("--lookahead: no trained policy and no rule to look ahead with")
    if bases != 1 and not any(isinstance(row.policy, IndexPolicy) for row in rows):
        raise PolicyError(f"--bases: read {bases}; expected an index policy among the policies")
    compile_ahead("lookahead")  # so that no row's time has it in it
    return found


def play_rows(
    playing: Playing, rows: Sequence[Seat], instances: Sequence[Instance]
) -> tuple[list[Trials], list[str]]:
    """Return the trials of each policy, and a line for each that looked ahead: how long that took."""
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.support.team import find_team
    from acerl_np.support.workers import count_cores

    team = playing.executor
    workers = find_team(team).n_workers if team is not None else playing.threads or count_cores()
    results: list[Trials] = []
    times: list[str] = []
    for label, policy in rows:
        started, looks = time.perf_counter(), isinstance(policy, Lookahead)
        try:
            trials = play_quietly(policy, instances, playing)
        except PolicyError as error:
            if looks:
                raise PolicyError(f"{label}: {error}") from error
            raise
        seconds = time.perf_counter() - started
        if looks:
            busy = min(workers, trials.makespan.size)
            each = 1e3 * seconds * busy / max(1, trials.decisions)
            times.append(f"{label}: {each:.2g} ms a decision")
        results.append(trials)
    return results, times
