"""The policy `general`: weights that were trained on random floors alone, for any floor, without training.

`general.json` holds a set of weights for each of `SETS`, and the recipe that made it: `docs/general.md`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from acerl_np.policies.index import IndexPolicy
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.problem.json_tree import hash_json

FILE = Path(__file__).with_name("general.json")

SETS = {"late": Goal(SHIFT), "makespan": PAPER}
"""Sets of weights, and what each was trained for: shifts, and records that end, within a limit."""


@cache
def read_sets() -> dict[str, dict[str, Any]]:
    """Return each set: its weights by feature, what relieves it, its seed."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


@cache
def make_general(name: str) -> IndexPolicy:
    """Return the policy of a set of weights."""
    own = read_sets()[name]
    relief = {key: own[key] for key in ("beyond", "relief", "guard") if key in own}
    return IndexPolicy.of_weights(**own["weights"])._change(**relief)


def find_set(instances: Sequence[Instance] = (), goal: Goal | None = None) -> str:
    """Return which set of weights `general` means.

    That for the makespan where it is the objective and no record is a shift; else, as for a live floor, that
    for late tasks.
    """
    wants_end = goal is None or goal.objective == PAPER.objective
    return "makespan" if instances and wants_end and not are_shifts(instances) else "late"


def describe_general(name: str, goal: Goal) -> str:
    """Return in one line what `general` is here."""
    own, trained = read_sets()[name], SETS[name].objective
    line = f"general: weights trained on random floors for {trained}, hash {hash_json(own)[:12]}"
    if goal.objective != trained or len(goal.class_weights) > 1:
        line += f"; not for {goal.objective}{' by class' if goal.class_weights else ''}"
    return line
