"""Ablation: ranking ISR, CF, R, F with sampler AIS, Uniform, Random, and trained on a single instance."""

from __future__ import annotations

from dataclasses import replace

from acerl_np.problem.bundled import load_suite
from studies.comparison import acerl_training
from studies.study import Results, Study, Training, load_suites
from studies.study_tables import StudyTable, build_table, spread_table

NAME = "ablation"
RANKINGS = {"ISR": "isr", "CF": "cf", "R": "r", "F": "f"}
SAMPLERS = {"AIS": "ais", "Uniform": "uniform", "Random": "random"}


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: 12 of the full training suite, 32 of single instances."""
    instances = tuple(load_suite("dmh-train"))
    suites = load_suites("dmh-train", "dmh-test")
    rows = []
    for mode, sampler in SAMPLERS.items():
        for strategy, ranking in RANKINGS.items():
            config = study.config(ranking=ranking, sampler=sampler)
            rows.append(Training(f"{strategy}+{mode}", instances, config, suites))
    # That of the other studies, so that it is trained once.
    rows[0] = replace(acerl_training(study), label=rows[0].label)
    for k, instance in enumerate(instances, start=1):
        for strategy, ranking in RANKINGS.items():
            config = study.config(ranking=ranking, sampler="single")
            rows.append(Training(f"{strategy}+DMH-{k}", (instance,), config, suites))
    return rows


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return the tables of the full suite and of single instances, on training and test suite."""
    found = []
    for suite in ("dmh-train", "dmh-test"):
        instances = load_suite(suite)
        which = suite.removeprefix("dmh-")
        rows = study.rows(results, suite)
        for name, single in ((f"ablation-{which}", False), (f"ablation-single-{which}", True)):
            chosen = [
                row for row in rows if row.label == "ISR+AIS" or ("+DMH-" in row.label) == single
            ]
            title = f"{'Single training instances' if single else 'Ranking and sampler'} on {suite}"
            beside, same = (name, title, instances, chosen), suite == "dmh-train"
            main = "ISR+AIS"
            found.append(build_table(*beside, reference=main, same_records=same, marked=False))
            found.append(spread_table(f"{name}-spread", f"{title}: spread", chosen, main))
    return found
