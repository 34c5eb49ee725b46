"""Robustness against noise on the arrivals, from +-0 to +-30 (the paper's noised instances)."""

from __future__ import annotations

from acerl_np.experiments.comparison import acerl_training
from acerl_np.experiments.published import find_row, table_rows
from acerl_np.experiments.study import Finished, Study, Training, build_table
from acerl_np.experiments.tables import TRAINING_POOL, StudyTable
from acerl_np.metrics import normalise, satisfied_share
from acerl_np.problem.instance import load_suite
from acerl_np.report import Cell

NAME = "robustness"
SUITES = {
    0: "dmh-train",
    5: "dmh-test",
    10: "dmh-noise-10",
    15: "dmh-noise-15",
    20: "dmh-noise-20",
    25: "dmh-noise-25",
    30: "dmh-noise-30",
}


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: the main run, played on all suites."""
    return [acerl_training(study)]


def tables(study: Study, results: dict[str, list[Finished]]) -> list[StudyTable]:
    """Return one table per magnitude from 10 to 30, and the summary."""
    found = []
    summary: dict[str, list[Cell]] = {}
    for magnitude, suite in SUITES.items():
        instances = load_suite(suite)
        measured = [*study.rows(results, suite), *study.rule_rows(instances)]
        if magnitude >= 10:
            name = f"robustness-{magnitude}"
            layout = build_table(instances, measured, table_rows(name), reference="ACERL")
            title = f"Arrivals perturbed by up to {magnitude} s"
            found.append(StudyTable(name, title, *layout))
        pool = [[row.makespan.mean(axis=1), row.tardiness.mean(axis=1)] for row in measured]
        if magnitude == 0:
            for table in TRAINING_POOL:
                for paper_row in table_rows(table):
                    cells = [paper_row.cells[instance.name] for instance in instances]
                    pool.append(
                        [[cell.makespan for cell in cells], [cell.tardiness for cell in cells]]
                    )
        for row in measured:
            m = normalise(row.makespan.mean(axis=1), [item[0] for item in pool])[0]
            c = normalise(row.tardiness.mean(axis=1), [item[1] for item in pool])[0]
            p = satisfied_share(row.tardiness, 50.0)
            paper = find_row("robustness-summary", row.label, f"DMH±{magnitude}")
            printed = f" [{paper.m:.2f}/{paper.c:.2f} ({paper.p:.0%})]" if paper else ""
            summary.setdefault(row.label, [row.label]).append(f"{m:.2f}/{c:.2f} ({p:.0%}){printed}")
    header = ["policy", *(f"DMH±{magnitude}" for magnitude in SUITES)]
    title = "M/C (P) by magnitude of the noise, the paper's values in brackets"
    found.append(StudyTable("robustness-summary", title, header, list(summary.values()), []))
    return found
