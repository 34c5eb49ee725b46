"""Robustness against noise on the arrivals, from +-0 to +-30 (the paper's noised instances)."""

from __future__ import annotations

import numpy as np

from acerl_np.evaluation.published import find_row
from acerl_np.problem.bundled import load_suite
from acerl_np.support.report import Cell
from studies.comparison import DRAWS, NOISED, draw_suite, trainings
from studies.study import Results, Study
from studies.study_tables import Measured, StudyTable, build_table, spread

__all__ = ["tables", "trainings"]

NAME = "robustness"
RULE_BLOCKS = 5
"""Of a rule's trials on each further draw, of which there are eight."""


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return one table per magnitude from 10 to 30, the summary, and the further draws."""
    found = []
    summary: dict[str, list[Cell]] = {}
    data: list[dict[str, object]] = []
    for magnitude, suite in {0: "dmh-train", **NOISED}.items():
        instances = load_suite(suite)
        rows = [*study.rows(results, suite), *study.rule_rows(suite, instances)]
        if magnitude >= 10:
            title = f"Arrivals perturbed by up to {magnitude} s"
            found.append(
                build_table(f"robustness-{magnitude}", title, instances, rows, same_records=False)
            )
        for row in rows:
            paper = find_row("robustness-summary", row.label, f"DMH±{magnitude}")
            makespan, tardiness = (values.mean() for values in row.means())
            share = row.satisfied
            text = f"{makespan:.0f}/{tardiness:.0f} ({share:.0%})" + (
                f" [{paper.p:.0%}]" if paper else ""
            )
            summary.setdefault(row.label, [row.label, row.n_seeds]).append(text)
            data.append(
                {
                    "policy": row.label,
                    "seeds": row.n_seeds,
                    "magnitude_s": magnitude,
                    "makespan_s": makespan,
                    "tardiness_s": tardiness,
                    "satisfied_share": share,
                    "paper_satisfied_share": paper.p if paper else None,
                }
            )
    header = ["policy", "seeds", *(f"DMH±{magnitude}" for magnitude in (0, *NOISED))]
    note = (
        "Mean makespan/tardiness (s), share of trials within the limit; in brackets the share that the "
        "paper prints, for its own noised records, which are not published."
    )
    title = "The bundled suites, one draw of noise each"
    lines = list(summary.values())
    found.append(StudyTable("robustness-summary", title, header, lines, data, notes=[note]))
    found.append(_tabulate_draws(study, results))
    return found


def _tabulate_draws(study: Study, results: Results) -> StudyTable:
    """Lay out mean and spread over the further draws of each magnitude."""
    lines: dict[str, list[Cell]] = {}
    data: list[dict[str, object]] = []
    for magnitude in NOISED:
        drawn: dict[str, list[Measured]] = {}
        for draw in DRAWS:
            name = f"draw-{magnitude}-{draw}"
            for row in study.rows(results, name):
                drawn.setdefault(row.label, []).append(row)
            for row in study.rule_rows(name, draw_suite(magnitude, draw), RULE_BLOCKS):
                drawn.setdefault(row.label, []).append(row)
        for label, rows in drawn.items():
            n_seeds = rows[0].n_seeds
            own = {"policy": label, "seeds": n_seeds, "magnitude_s": magnitude, "draws": len(rows)}
            text, makespan = spread("makespan_s", np.array([x.makespan.mean() for x in rows]), 0)
            late, tardiness = spread("tardiness_s", np.array([x.tardiness.mean() for x in rows]), 0)
            kept, share = spread("satisfied_share", np.array([x.satisfied for x in rows]), 0)
            data.append({**own, **makespan, **tardiness, **share})
            line = lines.setdefault(label, [label, n_seeds])
            line.append(f"{text} / {late} ({kept} %)")
    header = ["policy", "seeds", *(f"±{magnitude}" for magnitude in NOISED)]
    note = (
        f"Mean ± standard deviation over {len(DRAWS)} further draws (seeds {DRAWS[0]} to {DRAWS[-1]}) of "
        "eight records, each the mean over all seeds or blocks of trials: makespan / tardiness (s), share of "
        "trials within the limit. The spread between seeds is not in it."
    )
    title = "Further draws of each noised suite"
    return StudyTable("robustness-draws", title, header, list(lines.values()), data, notes=[note])
