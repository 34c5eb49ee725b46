"""Noise of low rank beside full noise, at the budget of the paper and at ten million decisions."""

from __future__ import annotations

from typing import Any

from studies.checks import FIRST
from studies.learning import SUITES
from studies.study import Results, Study, Training, load_suites
from studies.study_tables import StudyTable

__all__ = ["FIRST", "NAME", "tables", "trainings"]

NAME = "noise"
TEN_MILLION = {"decisions": 10_000_000}
NOISES: dict[str, dict[str, Any]] = {
    "full": {},
    **{f"rank {rank}": {"noise_rank": rank} for rank in (1, 2, 4)},
    "full, 10 million decisions": TEN_MILLION,
    "rank 1, 10 million decisions": {"noise_rank": 1, **TEN_MILLION},
}
"""Options by the label of a row; rows of ten million decisions have five seeds."""


def trainings(study: Study) -> list[Training]:
    """Return the rows to train."""
    suites = load_suites(*SUITES)
    few = {label: 5 for label in NOISES if label.endswith("decisions")}
    return [
        Training(label, suites[0][1], study.config(**options), suites, seeds=few.get(label))
        for label, options in NOISES.items()
    ]


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return a table for each suite."""
    return study.spread(results, NAME, "Noise of low rank", SUITES, "full")
