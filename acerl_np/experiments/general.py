"""The policy `general`: trained on a family of random floors, judged on floors that trained nothing.

`docs/general.md` tells what comes of it. All is made from seeds alone: `acerl-np experiments general`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.trials import Trials, evaluate_policy
from acerl_np.experiments.family import KINDS, Sort, draw_day, draw_floor
from acerl_np.experiments.generalisation import noised_suites
from acerl_np.policies.general import BEYOND, SETS
from acerl_np.policies.index import IndexPolicy
from acerl_np.problem.bundled import load_layout, load_suite
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import resize_fleet
from acerl_np.problem.shift import HANDLING, find_scale, generate_shift
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config

DECISIONS = 4_000_000

CHOSEN, JUDGED = 1000, 2000
"""Families by whose floors settings were chosen, and by whose floors the policy is judged."""

FLOORS, SHIFTS = 20, 20
"""Floors of the family that judge, and shifts of each floor."""

LOAD = 0.85
"""Offered load of the judged shifts."""

FACTORS = (0.8, 1.0, 1.25, 1.5)
"""Of the demand of a load of 0.9, in the table of overload."""


class Recipe(NamedTuple):
    """What a set of weights is trained on: days of a sort on so many floors, so many each; options besides."""

    sort: Sort
    floors: int
    days: int
    options: dict[str, Any]


RECIPES = {
    "late": Recipe("shift", 50, 1, {}),
    "makespan": Recipe("batch", 60, 2, {"perturb": 0, "margin": 10.0}),
}


def make_days(
    recipe: Recipe, seed: int, n_floors: int | None = None, kinds: Sequence[str] = KINDS
) -> list[Instance]:
    """Return days of the family of a seed, by default those that train."""
    found = []
    for k in range(recipe.floors if n_floors is None else n_floors):
        floor = draw_floor(seed, k, sort=recipe.sort, kinds=kinds)
        days = range(k * recipe.days, (k + 1) * recipe.days)
        found += [draw_day(floor, seed, day, sort=recipe.sort) for day in days]
    return found


def train(
    name: str, seed: int, decisions: int = DECISIONS, kinds: Sequence[str] = KINDS
) -> IndexPolicy:
    """Train a set of weights on the family of a seed."""
    recipe = RECIPES[name]
    options = {"objective": SETS[name].objective, "decisions": decisions, **recipe.options}
    trainer = ACERL(
        make_days(recipe, seed, kinds=kinds), Config.preset("best", **options), seed=seed, threads=1
    )
    while not trainer.done:
        trainer.step()
    policy = trainer.policy
    assert isinstance(policy, IndexPolicy)
    return policy.switch(BEYOND if recipe.sort == "shift" else None)


def list_judges(name: str) -> Iterator[tuple[str, list[Instance]]]:
    """Return what judges a set of weights: no floor and no record of it has trained anything."""
    recipe = RECIPES[name]
    if recipe.sort == "batch":
        records = list(load_suite("dmh-train"))
        yield "dmh-train", records
        yield from ((suite, list(own)) for suite, own in noised_suites(records))
        yield "family", make_days(replace_days(recipe), JUDGED, FLOORS)
        return
    for factor in FACTORS:
        days = [
            draw_day(floor, JUDGED, k * SHIFTS + j, load=0.9, factor=factor)
            for k, floor in enumerate(draw_floor(JUDGED, k) for k in range(FLOORS))
            for j in range(SHIFTS if factor == 1.0 else 3)
        ]
        yield f"family x {factor:g}", days
    for floor in ("supply-loop", "cross-aisles"):
        for n in (3, 6):
            layout = resize_fleet(load_layout(floor), n)
            same: dict[str, Any] = {"handling_time": HANDLING, "scale": find_scale(layout, LOAD)}
            yield (
                f"{floor}, {n} vehicles",
                [generate_shift(layout, seed=JUDGED, index=k, **same) for k in range(SHIFTS)],
            )


def replace_days(recipe: Recipe) -> Recipe:
    """Return a recipe of one day a floor."""
    return recipe._replace(days=1)
