"""What nobody says of the compared learners: a search on the training records, the same effort for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from acerl_np.experiments.jobs import RivalConfig, Training
from acerl_np.experiments.study import Finished, Study
from acerl_np.experiments.study_tables import COST_LIMIT, Shown, StudyTable, spread
from acerl_np.problem.bundled import load_suite
from acerl_np.support.errors import InputError

NAME = "rival-settings"
STEPS = 200_000
SEEDS = 2
PENALTY = 4.0
"""Seconds of makespan that a second of tardiness beyond the limit weighs, as in the preset "best"."""

REWARDS: list[dict[str, Any]] = [
    {"reward_scale": scale, "reward_shift": shift}
    for scale in (3.0, 10.0, 30.0, 100.0)
    for shift in (0.0, 1.0)
]
MULTIPLIERS: list[dict[str, Any]] = [
    {"reward_scale": scale, "multiplier": multiplier}
    for scale in (30.0, 100.0)
    for multiplier in (0.3, 1.0, 3.0, 10.0)
]
CANDIDATES = {
    "ppo": REWARDS,
    "sac": REWARDS,
    "lsac": MULTIPLIERS,
    "rcpom": REWARDS,
    "mappo": REWARDS,
}
"""Eight for each algorithm; one with adaptive sampling takes what its sibling takes."""


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: every candidate of every algorithm.

    Raises
    ------
    InputError
        If no algorithm is asked for that is searched.
    """
    if not set(CANDIDATES) & set(study.rivals):
        raise InputError(
            f"--rivals: read {','.join(study.rivals) or 'none'}; expected some of {', '.join(CANDIDATES)}, "
            "as one with adaptive sampling takes what its sibling takes"
        )
    instances = tuple(load_suite("dmh-train"))
    steps = min(STEPS, study.rival_steps)
    return [
        Training(
            _label(name, settings),
            instances,
            RivalConfig(name, steps, {"look_every": 0, **settings}),
            (("dmh-train", instances),),
            seeds=SEEDS,
        )
        for name, candidates in CANDIDATES.items()
        for settings in candidates
        if name in study.rivals
    ]


def _label(name: str, settings: dict[str, Any]) -> str:
    words = {"reward_scale": "scale", "reward_shift": "shift", "multiplier": "multiplier"}
    return ", ".join(
        [name.upper(), *(f"{words[key]} {value:g}" for key, value in settings.items())]
    )


def score(makespan: np.ndarray, tardiness: np.ndarray) -> float:
    """Return the mean over trials of the makespan and of what its tardiness weighs beyond the limit, s."""
    return float((makespan + PENALTY * np.maximum(0.0, tardiness - COST_LIMIT)).mean())


def tables(study: Study, results: dict[str, list[Finished]]) -> list[StudyTable]:
    """Return one table, the best candidate of each algorithm marked."""
    scores = {
        label: np.array(
            [score(run.makespan["dmh-train"], run.tardiness["dmh-train"]) for run in runs]
        )
        for label, runs in results.items()
        if runs
    }
    best = {
        min((x for x in scores if x.split(",")[0] == name), key=lambda x: scores[x].mean())
        for name in {label.split(",")[0] for label in scores}
    }
    lines: list[list[Shown]] = []
    for label, found in scores.items():
        runs, taken = results[label], label in best
        makespan = np.mean([run.makespan["dmh-train"].mean() for run in runs])
        kept = np.mean([(run.tardiness["dmh-train"] < COST_LIMIT).mean() for run in runs])
        lines.append(
            [
                (label, {"settings": label}),
                (len(runs), {"seeds": len(runs)}),
                spread("score_s", found),
                (f"{makespan:.1f}", {"makespan_s": makespan}),
                (f"{kept:.0%}", {"satisfied_share": kept}),
                ("*" if taken else "", {"taken": taken}),
            ]
        )
    header = ["settings", "seeds", "score", "makespan", "within limit", "taken"]
    note = (
        f"Trained for {min(STEPS, study.rival_steps):,} steps on DMH-01 to -08 and played there. Score: "
        f"mean of makespan + {PENALTY:g} * max(0, tardiness - {COST_LIMIT:g}), s, over all trials; mean ± "
        "standard deviation over seeds. The least of an algorithm is taken (*)."
    )
    title = "What the paper does not say of the compared learners"
    return [StudyTable.of("rival-settings", title, header, lines, note)]
