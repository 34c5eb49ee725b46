"""What a command makes of policies and records that are named for it: static plans."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.common import load_instances
from acerl_np.support.errors import InputError, list_some, make_printable
from acerl_np.support.files import path_exists

if TYPE_CHECKING:
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.problem.instance import Instance

DEFAULT_FIT = "dmh-train"
"""Suite that Static is fitted on if bundled records of its floor are judged."""


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
