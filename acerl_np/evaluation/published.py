"""The figures of the paper's tables, as printed.

Source: C. Hu, Z. Wang, B. Yuan, J. Liu, C. Zhang and X. Yao, "Robust Dynamic Material Handling via
Adaptive Constrained Evolutionary Reinforcement Learning", IEEE Transactions on Neural Networks and
Learning Systems, with its supplement. Marks compare a cell with ACERL's: "+" better, "~" similar,
"-" worse.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from acerl_np.problem.bundled import bundled_instances, load_instance

HERE = Path(__file__).parent
COST_LIMIT = 50.0
"""xi of the paper, s."""


class PublishedCell(NamedTuple):
    """One cell of a table: mean makespan and tardiness (s), and their marks against ACERL."""

    makespan: float
    tardiness: float
    makespan_mark: str
    tardiness_mark: str


@dataclass(frozen=True)
class PublishedRow:
    """One row of a table: cells by instance, and the printed M, C and P (fractions)."""

    table: str
    policy: str
    suite: str
    cells: dict[str, PublishedCell]
    m: float
    c: float
    p: float

    def values(self, instances: Sequence[str]) -> list[PublishedCell]:
        """Return the cells of some instances: makespan, tardiness (s), and their marks."""
        return [self.cells[name] for name in instances]


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    text = path.read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return every row of every table of the paper, in its order."""
    cells: dict[tuple[str, str], dict[str, PublishedCell]] = {}
    for line in read_table(HERE / "paper-cells.csv"):
        table, policy, instance, makespan, mark, tardiness, other = line.values()
        own = cells.setdefault((table, policy), {})
        own[instance] = PublishedCell(float(makespan), float(tardiness), mark, other)
    rows = []
    for line in read_table(HERE / "paper-rows.csv"):
        table, policy, suite, m, c, percent = line.values()
        own = cells.get((table, policy), {})
        p = float(percent) / 100.0
        rows.append(PublishedRow(table, policy, suite, own, float(m), float(c), p))
    return tuple(rows)


def find_row(table: str, policy: str, suite: str = "") -> PublishedRow | None:
    """Return one row of the paper, None if it has no such row."""
    rows = (row for row in table_rows(table) if (row.policy, row.suite) == (policy, suite))
    return next(rows, None)


def table_rows(table: str) -> tuple[PublishedRow, ...]:
    """Return the rows of one table of the paper, in its order."""
    return tuple(row for row in published_rows() if row.table == table)


def is_published(name: str, content: str) -> bool:
    """Whether a record of this name and content is one of the paper's figures.

    Its noised instances are not published, so only the training instances can be compared.
    """
    row = find_row("comparison-train", "ACERL")
    known = row is not None and name in row.cells and name in bundled_instances()
    return known and load_instance(name).content_hash == content
