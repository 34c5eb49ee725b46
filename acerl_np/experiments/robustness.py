"""Robustness against noise on the arrivals, from +-0 to +-30 (the paper's noised instances)."""

from __future__ import annotations

import numpy as np

from acerl_np.evaluation.metrics import satisfied_share
from acerl_np.experiments.comparison import (
    DRAWS,
    MAGNITUDES,
    acerl_training,
    draw_name,
    draw_suite,
)
from acerl_np.experiments.published import find_row, table_rows
from acerl_np.experiments.runs import Training
from acerl_np.experiments.study import Finished, Study
from acerl_np.experiments.tables import (
    COST_LIMIT,
    Row,
    StudyTable,
    build_table,
    list_spread,
    show_spread,
)
from acerl_np.problem.bundled import load_suite
from acerl_np.support.report import Cell

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
    """Return the rows to train: those of the comparison, played on all suites."""
    main = acerl_training(study)
    return [main, *study.beside(main)]


def tables(study: Study, results: dict[str, list[Finished]]) -> list[StudyTable]:
    """Return one table per magnitude from 10 to 30, the summary, and the further draws."""
    found = []
    summary: dict[str, list[Cell]] = {}
    data: list[dict[str, object]] = []
    for magnitude, suite in SUITES.items():
        instances = load_suite(suite)
        rows = [*study.rows(results, suite), *study.rule_rows(instances)]
        if magnitude >= 10:
            found.append(
                build_table(
                    f"robustness-{magnitude}",
                    f"Arrivals perturbed by up to {magnitude} s",
                    instances,
                    rows,
                    table_rows(f"robustness-{magnitude}"),
                    reference="ACERL",
                    peers=None,
                )
            )
        for row in rows:
            paper = find_row("robustness-summary", row.label, f"DMH±{magnitude}")
            cells = summary.setdefault(row.label, [row.label, row.n_seeds])
            cells.append(_summarise(row) + (f" [{paper.p:.0%}]" if paper else ""))
            makespan, tardiness = row.means()
            data.append(
                {
                    "policy": row.label,
                    "seeds": row.n_seeds,
                    "magnitude_s": magnitude,
                    "makespan_s": makespan.mean(),
                    "tardiness_s": tardiness.mean(),
                    "satisfied_share": satisfied_share(row.tardiness, COST_LIMIT),
                    "paper_satisfied_share": paper.p if paper else None,
                }
            )
    header = ["policy", "seeds", *(f"DMH±{magnitude}" for magnitude in SUITES)]
    note = (
        "Mean makespan/tardiness (s), share of trials within the limit; in brackets the share that the "
        "paper prints, for its own noised records, which are not published."
    )
    title = "The bundled suites, one draw of noise each"
    lines = list(summary.values())
    found.append(StudyTable("robustness-summary", title, header, lines, data, notes=[note]))
    found.append(_tabulate_draws(study, results))
    return found


def _summarise(row: Row) -> str:
    makespan, tardiness = row.means()
    share = satisfied_share(row.tardiness, COST_LIMIT)
    return f"{makespan.mean():.0f}/{tardiness.mean():.0f} ({share:.0%})"


def _tabulate_draws(study: Study, results: dict[str, list[Finished]]) -> StudyTable:
    """Lay out mean and spread over the further draws of each magnitude."""
    lines: dict[str, list[Cell]] = {}
    data: list[dict[str, object]] = []
    for magnitude in MAGNITUDES:
        drawn: dict[str, list[Row]] = {}
        for draw in DRAWS:
            rows = [
                *study.rows(results, draw_name(magnitude, draw)),
                *study.rule_rows(draw_suite(magnitude, draw)),
            ]
            for row in rows:
                drawn.setdefault(row.label, []).append(row)
        for label, rows in drawn.items():
            makespan = np.array([row.makespan.mean() for row in rows])
            tardiness = np.array([row.tardiness.mean() for row in rows])
            share = np.array([satisfied_share(row.tardiness, COST_LIMIT) for row in rows])
            data.append(
                {
                    "policy": label,
                    "seeds": rows[0].n_seeds,
                    "magnitude_s": magnitude,
                    "draws": len(rows),
                    **list_spread("makespan_s", makespan),
                    **list_spread("tardiness_s", tardiness),
                    **list_spread("satisfied_share", share),
                }
            )
            lines.setdefault(label, [label, rows[0].n_seeds]).append(
                f"{show_spread(makespan, 0)} / {show_spread(tardiness, 0)} "
                f"({show_spread(100 * share, 0)} %)"
            )
    header = ["policy", "seeds", *(f"±{magnitude}" for magnitude in MAGNITUDES)]
    note = (
        f"Mean ± standard deviation over {len(DRAWS)} further draws (seeds {DRAWS[0]} to {DRAWS[-1]}) of "
        "eight records, each the mean over all seeds or blocks of trials: makespan / tardiness (s), share of "
        "trials within the limit. The spread between seeds is not in it."
    )
    title = "Further draws of each noised suite"
    return StudyTable("robustness-draws", title, header, list(lines.values()), data, notes=[note])
