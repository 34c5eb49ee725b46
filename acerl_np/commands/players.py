"""Who plays, and how: what a command makes of the policies, records and options that are named for it."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.common import (
    compile_ahead,
    load_instances,
    part_names,
    report_ignored,
)
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
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.problem.assignments import Assignments
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team

DEFAULT_FIT = "dmh-train"
"""Suite that Static is fitted on if bundled records of its floor are judged."""


def read_playing(arguments: argparse.Namespace, executor: Team | None = None) -> Playing:
    """Return how the options of a command say that policies are played, usual where it has no such option."""
    from acerl_np.evaluation.trials import Playing

    names = [field.name for field in fields(Playing)]
    given = {name: x for name, x in vars(arguments).items() if name in names}
    return Playing(**{**given, "executor": executor})


def play_quietly(
    policy: AnyPolicy | Lookahead | str, instances: Sequence[Instance], playing: Playing
) -> Trials:
    """Return the trials of a policy; that it was trained elsewhere was said by `check_fit`."""
    from acerl_np.evaluation.trials import play_policy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return play_policy(policy, instances, playing)


def take_names(arguments: argparse.Namespace) -> list[str]:
    """Return the names that are those of policies; the others are records then."""
    names, records = part_names(arguments.names)
    arguments.tasks = [*records, *arguments.tasks]
    if not names:
        raise InputError("no policy; expected policy.npz or a name such as EDD before the records")
    return names


def load_episode(arguments: argparse.Namespace) -> tuple[list[str], Instance]:
    """Return the policies' names, none or one, and the record of the episode that the arguments name."""
    *policies, name = arguments.names
    if len(policies) > 1 or not (policies or arguments.past):
        shown = ", ".join(map(make_printable, arguments.names[:3]))
        expected = "INSTANCE" if arguments.past and len(policies) > 1 else "POLICY and INSTANCE"
        raise InputError(f"read {len(arguments.names)} names ({shown}); expected {expected}")
    data = {**vars(arguments), "tasks": [name], "suite": None}
    return policies, load_instances(argparse.Namespace(**data))[0]


class Seat(NamedTuple):
    """A policy and its label."""

    label: str
    policy: AnyPolicy | Lookahead | str


def find_policy(name: str) -> AnyPolicy | str:
    """Return the policy in a file, or the name of a known policy."""
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.rules import find_policy_name

    if name.endswith(".npz") or path_exists(name):
        policy: AnyPolicy = load_policy(name)
        return policy
    return find_policy_name(name)


def seat_policies(
    arguments: argparse.Namespace,
    policies: Sequence[AnyPolicy | str],
    names: Sequence[str],
    instances: Sequence[Instance],
) -> list[Seat]:
    """Return the policies with their labels, those that play and fit.

    Parameters
    ----------
    arguments : argparse.Namespace
        With --fit and the options of playing.
    policies : sequence of AnyPolicy or str
    names : sequence of str
        What a policy from a file is called; others are called as they are.
    instances : sequence of Instance
        The records that judge.
    """
    labels = [
        policy if isinstance(policy, str) else name
        for name, policy in zip(names, policies, strict=True)
    ]
    rows = fit_named(arguments, list(map(Seat, labels, policies)), instances)
    check_fit(labels, [row.policy for row in rows], instances)
    return rows


def check_fit(names: Sequence[str], policies: Sequence[Any], instances: Sequence[Instance]) -> None:
    """Refuse a policy that was trained for floors of another size; say which were trained elsewhere.

    Parameters
    ----------
    names : sequence of str
        What the policies are called in messages, such as the names of their files.
    policies : sequence of AnyPolicy or str
        Rules, given by name, fit all floors.
    instances : sequence of Instance
    """
    from acerl_np.policies.origin import describe_difference

    for name, policy in zip(names, policies, strict=True):
        for instance in instances:
            try:
                if not isinstance(policy, str):
                    policy.check_fits(instance)
            except PolicyError as error:
                raise PolicyError(f"{name}: {error}") from error
    layouts = [(instance.name, instance.layout) for instance in instances]
    for name, policy in zip(names, policies, strict=True):
        line = describe_difference(policy, layouts)
        if line is not None:
            print(f"{make_printable(name)}: {line}", file=sys.stderr)


def fit_named(
    arguments: argparse.Namespace, rows: list[Seat], instances: Sequence[Instance]
) -> list[Seat]:
    """Put a plan that is fitted on --fit in the place of the name "Static", and say so in its label.

    The plan is never fitted on the records that judge unless --fit names them.
    """
    from acerl_np.policies.rules import STATIC
    from acerl_np.policies.static import fit_static

    fit = arguments.fit
    if not any(isinstance(row.policy, str) and row.policy == STATIC for row in rows):
        if fit is not None:
            raise InputError(f"--fit: given without {STATIC}; expected it among the policies")
        return rows
    if fit is None:
        if not are_bundled(arguments, instances):
            raise InputError(
                f"{STATIC}: no records to fit it on; expected --fit TASKS.csv or a bundled suite "
                "(other records than those that judge it)"
            )
        fit = [DEFAULT_FIT]
    training = load_named(arguments, fit)
    playing = read_playing(arguments)
    plan = fit_static(
        training,
        cost_limit=playing.cost_limit,
        seed=playing.seed,
        horizon=playing.horizon,
        threads=playing.threads,
    )
    on = list_some(fit if is_suite(fit) else [make_printable(item.name) for item in training], 3)
    fitted = Seat(f"{STATIC} (fitted on {on})", plan)
    return [fitted if isinstance(row.policy, str) and row.policy == STATIC else row for row in rows]


def is_suite(names: Sequence[str]) -> bool:
    """Whether these names are that of a bundled suite, and of no file."""
    from acerl_np.problem.bundled import bundled_suites

    return len(names) == 1 and names[0] in bundled_suites() and not path_exists(names[0])


def load_named(arguments: argparse.Namespace, names: Sequence[str]) -> list[Instance]:
    """Load records besides those that judge, or a bundled suite; layout and breakdowns hold for them, too."""
    data: dict[str, list[str] | str | None] = {"tasks": list(names), "suite": None}
    if is_suite(names):
        data = {"tasks": [], "suite": names[0], "layout": None}
    return load_instances(argparse.Namespace(**{**vars(arguments), **data}))


def are_bundled(arguments: argparse.Namespace, instances: Sequence[Instance]) -> bool:
    """Whether all records are bundled ones, on the floor and with the fleet of `DEFAULT_FIT`."""
    from acerl_np.problem.bundled import bundled_instances, load_suite

    if any(task not in bundled_instances() or path_exists(task) for task in arguments.tasks):
        return False
    layout = load_suite(DEFAULT_FIT)[0].layout
    return all(
        item.layout.floor_hash == layout.floor_hash and item.layout.fleet_hash == layout.fleet_hash
        for item in instances
    )


def read_past(arguments: argparse.Namespace, instances: Sequence[Instance]) -> list[Assignments]:
    """Return the past assignments of each record, none if --past names none."""
    from acerl_np.problem.assignments import read_assignments

    paths = arguments.past
    if paths is None:
        return []
    if len(paths) != len(instances):
        raise InputError(
            f"--past: read {len(paths)} files for {len(instances)} records; expected one each"
        )
    with report_ignored():
        return [
            read_assignments(path, instance, date_format=arguments.date_format)
            for path, instance in zip(paths, instances, strict=True)
        ]


def look_ahead(
    arguments: argparse.Namespace, rows: Sequence[Seat], instances: Sequence[Instance]
) -> list[Seat]:
    """Return the rows, those that can look ahead with a second one that does."""
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.policies.network import Policy
    from acerl_np.policies.rules import RULES

    if arguments.lookahead is None:
        for name in ("history", "weights", "bases"):
            if getattr(arguments, name) is not None:
                raise InputError(f"--{name}: given without --lookahead; expected it as well")
        return list(rows)
    history = None if arguments.history is None else load_named(arguments, arguments.history)
    bases = 1 if arguments.bases is None else arguments.bases
    found: list[Seat] = []
    for label, policy in rows:
        found.append(Seat(label, policy))
        is_rule = isinstance(policy, str) and policy in RULES
        if not is_rule and not isinstance(policy, Policy | IndexPolicy):
            continue
        several = bases if isinstance(policy, IndexPolicy) else 1
        words = [label, f"lookahead {arguments.lookahead}"]
        words += [arguments.weights] if arguments.weights else []
        words += [f"{bases} bases"] if several > 1 else []
        try:
            ahead = Lookahead(
                policy,  # type: ignore[arg-type]
                history=history,
                futures=arguments.lookahead,
                seed=arguments.seed,
                weights=arguments.weights or "match",
                bases=several,
                cost_limit=arguments.cost_limit,
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
    return found


def compile_lookahead(rows: Sequence[Seat]) -> None:
    """Compile or load what the rows need, so that no row's time has it in it."""
    from acerl_np.policies.lookahead import Lookahead

    if any(isinstance(row.policy, Lookahead) for row in rows):
        compile_ahead("lookahead")


def play_rows(
    playing: Playing, rows: Sequence[Seat], instances: Sequence[Instance]
) -> tuple[list[Trials], list[str]]:
    """Return the trials of each policy, and a line for each that looked ahead: how long that took."""
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.support.team import find_team
    from acerl_np.support.workers import count_cores

    compile_lookahead(rows)
    team = playing.executor
    workers = find_team(team).n_workers if team is not None else playing.threads or count_cores()
    results: list[Trials] = []
    times: list[str] = []
    for label, policy in rows:
        started = time.perf_counter()
        try:
            trials = play_quietly(policy, instances, playing)
        except PolicyError as error:
            if isinstance(policy, Lookahead):
                raise PolicyError(f"{label}: {error}") from error
            raise
        seconds = time.perf_counter() - started
        if isinstance(policy, Lookahead):
            busy = min(workers, trials.makespan.size)
            times.append(
                f"{label}: {1e3 * seconds * busy / max(1, trials.decisions):.2g} ms a decision"
            )
        results.append(trials)
    return results, times
