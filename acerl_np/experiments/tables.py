"""A study's table as data, and the pools that the paper's M and C are normalised over."""

from __future__ import annotations

from dataclasses import dataclass

from acerl_np.report import Cell, render_table

TRAINING_POOL = ("comparison-train", "ablation-train", "ablation-single-train")
TEST_POOL = ("comparison-test", "ablation-test", "ablation-single-test")


def pool_of(table: str) -> tuple[str, ...]:
    """Return the tables whose rows form the pool of M and C of a published table."""
    for pool in (TRAINING_POOL, TEST_POOL):
        if table in pool:
            return pool
    return (table,)


@dataclass(frozen=True)
class StudyTable:
    """A table with its name, title, header, rows and the rows before which a rule is drawn."""

    name: str
    title: str
    header: list[str]
    rows: list[list[Cell]]
    rules: list[int]

    def render(self, form: str = "text") -> str:
        """Return the table as text, CSV, JSON, Markdown or LaTeX."""
        body = render_table(self.header, self.rows, form, rules=self.rules)
        return body if form in ("csv", "json") else f"{self.title}\n\n{body}"
