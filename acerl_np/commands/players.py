"""Who plays: what a command makes of the policies that are named for it, and of the records beside them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from acerl_np.commands.common import load_instances
from acerl_np.support.errors import InputError, PolicyError, list_some, make_printable
from acerl_np.support.files import path_exists

if TYPE_CHECKING:
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.problem.instance import Instance

DEFAULT_FIT = "dmh-train"
"""Suite that Static is fitted on if bundled records of its floor are judged."""


class Row(NamedTuple):
    """A policy and its label.

    Attributes
    ----------
    label : str
    policy : AnyPolicy, Lookahead or str
    """

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
) -> list[Row]:
    """Return the policies with their labels, those that play and fit.

    Parameters
    ----------
    arguments : argparse.Namespace
        With those of `add_fit` and of playing.
    policies : sequence of AnyPolicy or str
    names : sequence of str
        What a policy from a file is called; others are called as they are.
    instances : sequence of Instance
        The records that judge.

    Raises
    ------
    InputError
        If "Static" and --fit do not go together.
    PolicyError
        If a policy does not fit.
    """
    labels = [
        policy if isinstance(policy, str) else name
        for name, policy in zip(names, policies, strict=True)
    ]
    policies, shown = fit_named(arguments, policies, instances, labels)
    check_fit(labels, policies, instances)
    return [Row(*pair) for pair in zip(shown, policies, strict=True)]


def check_fit(
    names: Sequence[str], policies: Sequence[AnyPolicy | str], instances: Sequence[Instance]
) -> None:
    """Refuse a policy that was trained for floors of another size; say which were trained elsewhere.

    Parameters
    ----------
    names : sequence of str
        What the policies are called in messages, such as the names of their files.
    policies : sequence of AnyPolicy or str
        Rules, given by name, fit all floors.
    instances : sequence of Instance

    Raises
    ------
    PolicyError
        With the name of the first that does not fit.
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


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Declare --fit."""
    parser.add_argument(
        "--fit",
        nargs="+",
        metavar="TASKS",
        help="records that Static is fitted on, or a bundled suite (default for bundled records of the DMH "
        f"floor: {DEFAULT_FIT}); --layout and breakdowns hold for them, too",
    )


def fit_named(
    arguments: argparse.Namespace,
    policies: Sequence[AnyPolicy | str],
    instances: Sequence[Instance],
    labels: Sequence[str],
) -> tuple[list[AnyPolicy | str], list[str]]:
    """Put a plan that is fitted on --fit in the place of the name "Static", and say so in its label.

    Parameters
    ----------
    arguments : argparse.Namespace
    policies : sequence of AnyPolicy or str
    instances : sequence of Instance
        The records that judge; the plan is never fitted on them unless --fit names them.
    labels : sequence of str
        Of the policies.

    Returns
    -------
    policies : list of AnyPolicy or str
    labels : list of str

    Raises
    ------
    InputError
        If "Static" is named without records to fit it on, or they are named without it.
    """
    from acerl_np.policies.rules import STATIC
    from acerl_np.policies.static import fit_static

    named = [isinstance(policy, str) and policy == STATIC for policy in policies]
    fit = arguments.fit
    if not any(named):
        if fit is not None:
            raise InputError(f"--fit: given without {STATIC}; expected it among the policies")
        return list(policies), list(labels)
    if fit is None:
        if not are_bundled(arguments, instances):
            raise InputError(
                f"{STATIC}: no records to fit it on; expected --fit TASKS.csv or a bundled suite "
                "(other records than those that judge it)"
            )
        fit = [DEFAULT_FIT]
    training = load_named(arguments, fit)
    plan = fit_static(
        training,
        cost_limit=arguments.cost_limit,
        seed=arguments.seed,
        horizon=arguments.horizon,
        threads=arguments.threads,
    )
    on = list_some(fit if is_suite(fit) else [make_printable(item.name) for item in training], 3)
    return (
        [plan if own else policy for own, policy in zip(named, policies, strict=True)],
        [f"{STATIC} (fitted on {on})" if own else x for own, x in zip(named, labels, strict=True)],
    )


def is_suite(names: Sequence[str]) -> bool:
    """Whether these names are that of a bundled suite, and of no file."""
    from acerl_np.problem.bundled import bundled_suites

    return len(names) == 1 and names[0] in bundled_suites() and not path_exists(names[0])


def load_named(arguments: argparse.Namespace, names: Sequence[str]) -> list[Instance]:
    """Load records besides those that judge, or a bundled suite; layout and breakdowns hold for them, too.

    Raises
    ------
    InputError
        If something cannot be loaded.
    """
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
