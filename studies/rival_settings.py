"""What nobody says of the compared learners: a search on the training records, the same effort for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from acerl_np.evaluation.published import COST_LIMIT
from studies.rivals.training import ALGORITHMS, RivalConfig
from studies.study import Finished, Results, Study, Training, load_suites
from studies.study_tables import Shown, StudyTable, spread

NAME = "rival-settings"
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
CANDIDATES = {name: MULTIPLIERS if name == "lsac" else REWARDS for name in ALGORITHMS[:5]}
"""Eight for each algorithm; one with adaptive sampling takes what its sibling takes."""

WORDS = {"reward_scale": "scale", "reward_shift": "shift", "multiplier": "multiplier"}


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: every candidate of the study's algorithms."""
    suites = load_suites("dmh-train")
    rows = []
    for name in study.rivals:
        for settings in CANDIDATES[name]:
            words = (f"{WORDS[key]} {value:g}" for key, value in settings.items())
            config = RivalConfig(name, study.rival_steps, {"look_every": 0, **settings})
            rows.append(Training(", ".join([name.upper(), *words]), suites[0][1], config, suites))
    return rows


def score(run: Finished) -> float:
    """Return the mean over trials of the makespan and of what its tardiness weighs beyond the limit, s."""
    late = np.maximum(0.0, run.tardiness["dmh-train"] - COST_LIMIT)
    return float((run.makespan["dmh-train"] + PENALTY * late).mean())


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return one table, the best candidate of each algorithm marked."""
    scores = {label: np.array([*map(score, runs)]) for label, runs in results.items()}
    best: dict[str, str] = {}
    for label in sorted(scores, key=lambda x: scores[x].mean()):
        best.setdefault(label.split(",")[0], label)
    lines: list[list[Shown]] = []
    for label, found in scores.items():
        runs, taken = results[label], label in best.values()
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
        f"Trained for {study.rival_steps:,} steps on DMH-01 to -08 and played there. Score: mean of makespan "
        f"+ {PENALTY:g} * max(0, tardiness - {COST_LIMIT:g}), s, over all trials; mean ± standard deviation "
        "over seeds, of two both. The least of an algorithm is taken (*)."
    )
    title = "What the paper does not say of the compared learners"
    return [StudyTable.of(NAME, title, header, lines, note)]
