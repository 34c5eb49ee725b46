"""The policy `general`: trained on a family of random floors, judged on floors that trained nothing.

`docs/general.md` tells what comes of it. All is made from seeds alone: `python -m studies general`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.published import COST_LIMIT
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.general import SETS
from acerl_np.policies.index import NAMES, IndexPolicy
from acerl_np.policies.rules import BASELINES, GENERAL
from acerl_np.problem.bundled import load_layout, load_suite
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout, resize_fleet
from acerl_np.problem.shift import HANDLING, find_scale, generate_shift
from acerl_np.support.report import render_csv
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import USUAL_GUARD, Config
from studies.family import KINDS, Sort, draw_day, draw_floor
from studies.generalisation import noised_suites
from studies.stored import gather
from studies.study_tables import Shown, StudyTable

OWN, BARE, SHIPPED = "own training", "general, no switch", "general, shipped"
PAIRS, LEFT = "general, five features", "kind left out"
"""A policy trained on shifts of the judged floor itself; the weights alone, whatever waits; one that does not
finish the plan; one that has seen no floor of the judged one's kind. `SHIPPED`: the first training."""

OWN_DECISIONS, OWN_SHIFTS = 1_000_000, 12

JUDGED = 2000
"""The family whose floors judge; settings were chosen on families 1000 to 1099, seeds below 1000 train."""

FLOORS, SHIFTS, LOAD = 20, 20, 0.85
"""Floors of the family that judge, shifts of each floor, and their offered load."""

FACTORS = (0.95, 1.1, 1.25, 1.5)
"""Offered loads of the table of overload."""


class Recipe(NamedTuple):
    """What trains a set of weights: a day of a sort on each of so many floors, decisions, options besides.

    What relieves a policy under overload is put around it after the training.
    """

    sort: Sort
    floors: int
    decisions: int
    options: dict[str, Any]


RECIPES = {
    "late": Recipe("shift", 50, 4_000_000, {"beyond": 10.0, "guard": None, "waiting_weight": 0.0}),
    "makespan": Recipe("batch", 120, 8_000_000, {"perturb": 0, "beyond": None}),
}


class Part(NamedTuple):
    """A training of a set by its seed; floors of users that judge it, too; which kind it has not seen."""

    name: str
    seed: int
    config: Config
    floors: tuple[Layout, ...] = ()
    label: str = GENERAL
    without: str = ""

    def describe(self) -> str:
        """Say which it is."""
        return f"{self.name}, {self.label} {self.without}, seed {self.seed}".replace(" ,", ",")


class Judge(NamedTuple):
    """A floor, or a suite, and its records; shifts of its own that may train."""

    label: str
    records: list[Instance]
    own: list[Instance]


Row = dict[str, Any]


def list_parts(trainings: int, floors: Sequence[Layout] = (), **fewer: Any) -> list[Part]:
    """Return all trainings; `fewer` shortens them, as `Config` says."""
    parts = []
    for name, recipe in RECIPES.items():
        options = {"objective": SETS[name].objective, "decisions": recipe.decisions}
        config = Config.preset("best", **{**options, **recipe.options, **fewer})
        for seed in range(trainings):
            own = Part(name, seed, config, tuple(floors))
            parts.append(own)
            if name == "late":
                simple = replace(config, features=NAMES[:5])
                parts += [own._replace(label=LEFT, without=kind) for kind in KINDS]
                parts.append(own._replace(label=PAIRS, config=simple))
    return parts


def make_days(part: Part) -> list[Instance]:
    """Return the days that train a set of weights."""
    sort, seed = RECIPES[part.name].sort, part.seed
    kinds = [kind for kind in KINDS if kind != part.without]
    floors = [draw_floor(seed, k, sort=sort, kinds=kinds) for k in range(RECIPES[part.name].floors)]
    return [draw_day(floor, seed, k, sort=sort) for k, floor in enumerate(floors)]


def train(days: Sequence[Instance], config: Config, seed: int) -> IndexPolicy:
    """Train on one thread."""
    trainer = ACERL(list(days), config, seed=seed, threads=1)
    trainer.run()
    assert isinstance(trainer.policy, IndexPolicy)
    return trainer.policy


def list_judges(name: str, floors: Sequence[Layout]) -> Iterator[Judge]:
    """Return what judges a set of weights: no floor and no record of it has trained the set."""
    if name == "makespan":
        records = load_suite("dmh-train")
        for suite, own in (("dmh-train", records), *noised_suites(records)):
            yield Judge(suite, list(own), [])
        floors = [draw_floor(JUDGED, k, sort="batch") for k in range(5 * FLOORS)]
        days = [draw_day(floor, JUDGED, k, sort="batch") for k, floor in enumerate(floors)]
        yield Judge("family", days, [])
        return
    for k in range(FLOORS):
        floor = draw_floor(JUDGED, k)
        days = [draw_day(floor, JUDGED, j, load=LOAD) for j in range(SHIFTS + OWN_SHIFTS)]
        yield Judge(f"family {k}", days[:SHIFTS], days[SHIFTS:])
    for plant in (*map(load_layout, ("supply-loop", "cross-aisles")), *floors):
        for n in (3, 6):
            layout = resize_fleet(plant, n)
            days = list(make_shifts(layout, LOAD, SHIFTS + OWN_SHIFTS))
            yield Judge(f"{plant.name}, {n} vehicles", days[:SHIFTS], days[SHIFTS:])
    for load in FACTORS:
        layouts = [resize_fleet(load_layout(x), 4) for x in ("supply-loop", "cross-aisles")]
        own = [day for layout in layouts for day in make_shifts(layout, load, 8)]
        yield Judge(f"both at a load of {load:g}", own, [])


def make_shifts(layout: Layout, load: float, n: int) -> Iterator[Instance]:
    """Return shifts of a plant at an offered load."""
    how: dict[str, Any] = {"scale": find_scale(layout, load), "handling_time": HANDLING}
    for k in range(n):
        name = f"{layout.name}-{k}"
        yield generate_shift(layout, **how, seed=JUDGED, index=k, name=name)


def play(part: Part, judge: Judge, players: Mapping[str, Any]) -> list[Row]:
    """Return a row for each policy and record."""
    rows, playing = [], Playing(trials=1, goal=SETS[part.name], threads=1)
    for label, player in players.items():
        played = play_policy(player, judge.records, playing)
        rows += [
            {
                **{"set": part.name, "judge": judge.label, "policy": label, "seed": part.seed},
                "record": record.name,
                **{x: float(getattr(played, x)[k, 0]) for x in ("makespan", "tardiness", "late")},
            }
            for k, record in enumerate(judge.records)
        ]
    return rows


def run_part(part: Part) -> tuple[dict[str, Any], list[Row]]:
    """Train, and play what judges; the first seed plays the baselines, and trains on each floor's own."""
    policy, rows = train(make_days(part), part.config, part.seed), list[Row]()
    relief: dict[str, Any] = {}
    if policy.beyond is not None:
        relief = {"relief": "shortest", "guard": USUAL_GUARD}
    alone = part.label == GENERAL and bool(relief)
    policy = policy.switch(policy.beyond, **relief)
    for judge in list_judges(part.name, part.floors):
        if part.without and not judge.records[0].layout.name.startswith(part.without):
            continue
        players: dict[str, Any] = {part.label: policy}
        if alone:
            players[BARE] = policy.switch(None)
        if part.seed == 0 and part.label == GENERAL:
            players |= {rule: rule for rule in (*BASELINES, "STD", "EDD")}
            if judge.own:
                fewer = {"generations": part.config.generations}
                if part.config.decisions is not None:
                    fewer = {"decisions": min(OWN_DECISIONS, part.config.decisions)}
                own = Config.preset("best", waiting_weight=0.0, **fewer)
                players[OWN] = train(judge.own, own, part.seed)
        rows += play(part, judge, players)
    weights = dict(zip(policy.features, policy.theta.tolist(), strict=True))
    made = {"set": part.name, "weights": weights, "beyond": policy.beyond, **relief}
    made["seed"] = part.seed
    return made if part.label == GENERAL else {**made, "set": part.label}, rows


def show(name: str, policy: str, by_seed: Sequence[np.ndarray]) -> Shown:
    """Return the cell of a policy with a judge: means over records, of several seeds with their deviation."""
    if not by_seed:
        return "", {}
    makespan, tardiness, late = zip(*(own.T for own in by_seed), strict=True)
    if name == "makespan":
        within = [x < COST_LIMIT for x in tardiness]
        mean, kept = (np.mean([x.mean() for x in own]) for own in (makespan, within))
        facts = {f"{policy}_makespan_s": mean, f"{policy}_satisfied_share": kept}
        return f"{mean:.1f} s, {100.0 * kept:.0f} %", facts
    share = 100.0 * np.array([x.mean() for x in late])
    deviation = f" ± {share.std(ddof=1):.2f}" if len(share) > 1 else ""
    return f"{share.mean():.2f}{deviation}", {f"{policy}_late_share": share.mean() / 100.0}


def tables(rows: Sequence[Row]) -> list[StudyTable]:
    """Return a table of each set: what each policy comes to with each judge, over seeds and records."""
    found = []
    cells: dict[str, dict[str, dict[str, list[np.ndarray]]]] = {}
    by_seed = gather(rows, "set judge policy seed", "makespan tardiness late")
    for (name, judge, policy, _), own in by_seed.items():
        cells.setdefault(name, {}).setdefault(judge, {}).setdefault(policy, []).append(own)
    for name, judges in cells.items():
        policies = [SHIPPED, *dict.fromkeys(x for judged in judges.values() for x in judged)]
        lines: list[list[Shown]] = []
        for judge, judged in judges.items():
            judged[SHIPPED] = judged.get(GENERAL, [])[:1]
            shown = (show(name, policy, judged.get(policy, [])) for policy in policies)
            lines.append([(judge, {"judge": judge}), *shown])
        what = "makespan, and share within 50 s" if name == "makespan" else "late tasks, %"
        note = f"{GENERAL}: mean ± standard deviation over trainings; none has seen a floor that judges."
        title = f"{GENERAL} for {SETS[name].objective}: {what}"
        found.append(StudyTable.of(f"{GENERAL}-{name}", title, ["judge", *policies], lines, note))
    return found


def finish(
    found: Sequence[tuple[dict[str, Any], list[Row]]],
) -> tuple[dict[str, str], list[StudyTable]]:
    """Return the contents of files, and tables: all trials, and the weights of each set's first training.

    `policies.general` reads these weights.
    """
    rows = [row for _, own in found for row in own]
    weights = {name: next(made for made, _ in found if made["set"] == name) for name in SETS}
    return {
        f"{GENERAL}.csv": render_csv([list(rows[0]), *(list(row.values()) for row in rows)]),
        f"{GENERAL}.json": json.dumps(weights, indent=1) + "\n",
    }, tables(rows)
