"""Comparison with the rules and the published algorithms on training and noised instances (Tables I, II)."""

from __future__ import annotations

from functools import cache

import numpy as np

from acerl_np.problem.bundled import load_suite
from acerl_np.problem.generate import perturb
from acerl_np.problem.instance import Instance
from acerl_np.training.history import HISTORY_COLUMNS
from studies import study_tables
from studies.study import Results, Study, Training, load_suites

NAME = "comparison"
NOISED = {5: "dmh-test", **{m: f"dmh-noise-{m}" for m in range(10, 31, 5)}}
"""Bundled suites by how far their arrivals are moved at most, s."""
SUITES = ("dmh-train", "dmh-test")
DRAWS = range(1, 9)
"""Seeds of the further draws of each noised suite; the bundled ones are drawn with 0."""


def trainings(study: Study) -> list[Training]:
    """Return the rows to train on DMH-01 to -08: ACERL, and the learners that it is compared with."""
    main = acerl_training(study)
    return [main, *study.beside(main, rewards=True)]


def acerl_training(study: Study) -> Training:
    """Return the paper's main run, played on every suite and draw so that studies share it."""
    instances = tuple(load_suite("dmh-train"))
    suites = load_suites("dmh-train", *NOISED.values())
    draws = tuple((f"draw-{m}-{draw}", draw_suite(m, draw)) for m in NOISED for draw in DRAWS)
    return Training("ACERL", instances, study.config(), (*suites, *draws))


@cache
def draw_suite(magnitude: int, draw: int) -> tuple[Instance, ...]:
    """Return DMH-01 to -08 with noise of this magnitude, drawn with this seed."""
    return tuple(perturb(item, magnitude, seed=draw) for item in load_suite("dmh-train"))


def tables(study: Study, results: Results) -> list[study_tables.StudyTable]:
    """Return the paper's two tables, and the spread over training seeds on both suites."""
    found = []
    for suite in SUITES:
        instances, name = load_suite(suite), f"comparison-{suite.removeprefix('dmh-')}"
        rows = [*study.rows(results, suite), *study.rule_rows(suite, instances)]
        title = f"ACERL, published algorithms and rules on {suite}"
        same = suite == "dmh-train"
        found.append(study_tables.build_table(name, title, instances, rows, same_records=same))
        title = f"Spread over training seeds and blocks of trials on {suite}"
        found.append(study_tables.spread_table(f"{name}-spread", title, rows))
    found.append(tabulate_times(results))
    return found


def tabulate_times(results: Results) -> study_tables.StudyTable:
    """Return how long the trainings took, each on one thread beside the others."""
    lines: list[list[study_tables.Shown]] = []
    for label, runs in results.items():
        if runs:
            last = np.array([run.history[-1] for run in runs])
            decisions, seconds = (
                last[:, HISTORY_COLUMNS.index(name)] for name in ("decisions", "seconds")
            )
            speed = decisions.sum() / max(1e-9, seconds.sum())
            lines.append(
                [
                    (label, {"policy": label}),
                    (len(runs), {"seeds": len(runs)}),
                    (f"{decisions.mean():,.0f}", {"decisions": decisions.mean()}),
                    study_tables.spread("training_s", seconds, 0),
                    (f"{speed:,.0f}", {"decisions_per_s": speed}),
                ]
            )
    header = ["policy", "seeds", "decisions", "seconds", "decisions a second"]
    note = "Mean ± standard deviation over the seeds; looks at the policy and trials are not in it."
    return study_tables.StudyTable.of("comparison-times", "Training time", header, lines, note)
