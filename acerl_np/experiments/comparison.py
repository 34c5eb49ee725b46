"""Comparison with the rules and the published algorithms on training and unseen instances (Tables I, II)."""

from __future__ import annotations

from acerl_np.experiments.published import table_rows
from acerl_np.experiments.study import Finished, Study, Training, build_table
from acerl_np.experiments.tables import TRAINING_POOL, StudyTable
from acerl_np.problem.instance import load_suite

NAME = "comparison"
SUITES = ("dmh-train", "dmh-test")


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: ACERL on DMH-01 to -08."""
    return [acerl_training(study)]


def acerl_training(study: Study) -> Training:
    """Return the paper's main run, played on every suite so that studies share it."""
    instances = tuple(load_suite("dmh-train"))
    noised = tuple(f"dmh-noise-{n}" for n in (10, 15, 20, 25, 30))
    suites = tuple((name, tuple(load_suite(name))) for name in (*SUITES, *noised))
    return Training("ACERL", instances, study.config(), suites)


def tables(study: Study, results: dict[str, list[Finished]]) -> list[StudyTable]:
    """Return the study's tables."""
    found = []
    for suite in SUITES:
        instances = load_suite(suite)
        name = f"comparison-{suite.removeprefix('dmh-')}"
        pool = [row for table in TRAINING_POOL for row in table_rows(table)]
        layout = build_table(
            instances,
            [*study.rows(results, suite), *study.rule_rows(instances)],
            table_rows(name),
            reference="ACERL",
            pool_published=pool if suite == "dmh-train" else (),
        )
        found.append(StudyTable(name, f"ACERL, published algorithms and rules on {suite}", *layout))
    return found
