"""`acerl-np list`: what other commands can name."""

from __future__ import annotations

import argparse

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.tables import Column, render
from acerl_np.problem.bundled import bundled_suites
from acerl_np.support.fields import Field

RULES = {
    "FCFS": "the task that came first",
    "EDD": "the task that is due first",
    "NVF": "the task with the nearest pickup",
    "STD": "the task with the shortest route in all",
    "LWT": "the task that has waited longest",
    "AHP": "the task with the largest weighted sum of due time and loaded route, by their means",
    "MIX": "at each decision one of FCFS, EDD, NVF, STD, drawn",
    "Random": "a vehicle and a task, drawn",
    "nearest": "the vehicle and the task with the shortest approach",
    "fcfs-nearest": "the task that came first, and the vehicle nearest to it",
    "edd-nearest": "the task that is due first, and the vehicle nearest to it",
    "opentcs": "the order of openTCS's default dispatcher: by due time, then age, then approach",
    "shortest": "the vehicle and the task of the least approach and half of the loaded way, for overload",
    "assignment": "all idle vehicles at once: the least sum of approaches, less 0.3 s a second waited",
}
OWN = {
    "general": "an index policy trained on random floors, for any floor",
    "module:name": "a rule or a policy of your own, see docs/extending.md",
}
PRESETS = {
    "paper": "the paper's network and search, the defaults",
    "best": "an index function and a search for unseen days; acerl-np train --preset best --settings shows "
    "its settings",
}


KINDS = ("suites", "floors", "rules", "presets", "features", "warm")


def list_rows(kind: str) -> list[dict[str, str]]:
    """Return what there is to name of a kind."""
    from acerl_np.policies.index import FEATURES
    from acerl_np.policies.rules import POLICY_NAMES
    from acerl_np.problem.bundled import bundled_floors, load_layout
    from acerl_np.warm import PARTS

    suites = bundled_suites().items()
    found = {
        "suites": {name: f"{len(own)} records, {own[0]} to {own[-1]}" for name, own in suites},
        "rules": {**{name: RULES.get(name, "") for name in POLICY_NAMES}, **OWN},
        "floors": {name: load_layout(name).sizes for name in bundled_floors()},
        "presets": PRESETS,
        "warm": dict.fromkeys(PARTS, "a part that acerl-np warm compiles"),
        "features": {feature.name: feature.words for feature in FEATURES},
    }
    return [
        {"kind": kind.removesuffix("s"), "name": name, "what": what}
        for name, what in found[kind].items()
    ]


def run(arguments: argparse.Namespace) -> None:
    """List suites, bundled floors, rules, presets, features of index policies, and what warm compiles.

    Examples
    --------
      acerl-np list
      acerl-np list rules
      acerl-np list suites --format csv
    """
    kinds = [arguments.what] if arguments.what else KINDS
    rows = [row for kind in kinds for row in list_rows(kind)]
    columns = [Column(name, name, words=name != "kind") for name in ("kind", "name", "what")]
    print(render(columns, rows, arguments.format), end="")


ACTION = opt.Action(
    run,
    {
        "": (opt.Argument("what WHAT?", f"{', '.join(KINDS)} (default: all)", Field(KINDS)),),
        opt.OUTPUT: (opt.FORMAT,),
    },
)
