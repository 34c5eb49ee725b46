"""`acerl-np list`: what there is to name in the other commands.

List what other commands can name: bundled suites, rules and other policies without a file, presets of
training, features of index policies.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from acerl_np.commands.options import FORMAT, CommandOption, declare
from acerl_np.commands.tables import Column, render

RULES = {
    "FCFS": "the task that came first",
    "EDD": "the task that is due first",
    "NVF": "the task with the nearest pickup",
    "STD": "the task with the shortest way in all",
    "LWT": "the task that has waited longest",
    "AHP": "the task with the largest weighted sum of due time and loaded way, by their means",
    "MIX": "at each decision one of FCFS, EDD, NVF, STD, drawn",
    "Random": "a vehicle and a task, drawn",
    "Static": "the best fixed order of vehicles with one rule each, fitted on --fit",
}


def list_suites() -> list[dict[str, object]]:
    """Return the bundled suites and their records."""
    from acerl_np.problem.bundled import bundled_suites

    return [
        {"name": name, "what": f"{len(records)} records, {records[0]} to {records[-1]}"}
        for name, records in bundled_suites().items()
    ]


def list_rules() -> list[dict[str, object]]:
    """Return the policies that go by a name."""
    from acerl_np.policies.rules import POLICY_NAMES

    return [{"name": name, "what": RULES.get(name, "")} for name in POLICY_NAMES]


def list_presets() -> list[dict[str, object]]:
    """Return the presets."""
    how = "; acerl-np train --preset best --print-config shows its options"
    return [
        {"name": "paper", "what": "the paper's network and search, the defaults"},
        {"name": "best", "what": f"an index function and a search for unseen days{how}"},
    ]


def list_features() -> list[dict[str, object]]:
    """Return the features of index policies, with what a floor must tell for them."""
    from acerl_np.policies.index import FEATURES

    return [
        {"name": feature.name, "what": feature.words, "knowledge": feature.needs}
        for feature in FEATURES
    ]


KINDS: dict[str, Callable[[], list[dict[str, object]]]] = {
    "suites": list_suites,
    "rules": list_rules,
    "presets": list_presets,
    "features": list_features,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    what = CommandOption("what", ", ".join(KINDS), choices=tuple(KINDS), positional=True, nargs="?")
    declare(parser, what.but(metavar="WHAT", help=f"{', '.join(KINDS)} (default: all)"), FORMAT)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables, one for programs; return the exit status."""
    kinds = [arguments.what] if arguments.what else list(KINDS)
    rows = [
        {"kind": kind.removesuffix("s"), "knowledge": None, **row}
        for kind in kinds
        for row in KINDS[kind]()
    ]
    columns = [Column("kind", "kind"), Column("name", "name", words=True)]
    columns.append(Column("what", "what", words=True))
    if "features" in kinds:
        columns.append(Column("knowledge", "needs to know", words=True))
    print(render(columns, rows, arguments.format), end="")
    return 0
