"""The studies' tables as the paper lays them out: measured rows beside printed ones, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acerl_np.evaluation.metrics import normalise, satisfied_share
from acerl_np.evaluation.published import (
    COST_LIMIT,
    PublishedCell,
    PublishedRow,
    find_row,
    table_rows,
)
from acerl_np.problem.bundled import display_name
from acerl_np.problem.instance import Instance
from acerl_np.support.report import DATA_FORMATS, Cell, render_data, render_table
from studies.statistics import FEW, RankSum, compare_ranks

TOGETHER = ("comparison", "ablation", "ablation-single")
"""Studies whose rows on a suite are peers of each other."""
RULE_ROWS = ("MIX", "FCFS", "EDD", "NVF", "STD", "Random")
"""Rules in the order of the paper's tables."""
PLAYED_RULES = (*RULE_ROWS, "nearest")
FEW_SEEDS = 4
"""Below so many a side, no rank-sum test reaches 5 %."""
VALUES = ("makespan_s", "tardiness_s", "makespan_mark", "tardiness_mark")
SCORES = ("m", "c", "satisfied_share")
NEARLY_ALL = 0.965

Facts = dict[str, Any]
"""Columns of a row for programs."""

Pair = tuple[RankSum, RankSum]
"""Tests of makespan and tardiness."""

Shown = tuple[Cell, Facts]
"""A cell for people, and its columns for programs."""


def peers_of(table: str) -> list[PublishedRow]:
    """Return the peers of a published table's rows: those that their M and C range over."""
    study, _, suite = table.rpartition("-")
    tables = [f"{other}-{suite}" for other in TOGETHER] if study in TOGETHER else [table]
    return [row for name in tables for row in table_rows(name)]


def find_printed(table: str, policy: str) -> PublishedRow:
    """Return a row of the paper, which has it."""
    row = find_row(table, policy)
    assert row is not None
    return row


@dataclass(frozen=True)
class Measured:
    """Trials of one policy on one suite.

    Attributes
    ----------
    label : str
    makespan, tardiness : ndarray(float64, (n_instances, n_seeds, n_trials)), s
        Of a rule, the seeds are blocks of trials.
    """

    label: str
    makespan: np.ndarray
    tardiness: np.ndarray

    @property
    def n_seeds(self) -> int:
        """Number of training seeds."""
        return int(self.makespan.shape[1])

    @property
    def satisfied(self) -> float:
        """Share of the trials within the limit."""
        return satisfied_share(self.tardiness, COST_LIMIT)

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean makespan and tardiness of each instance, ndarray(float64, (n_instances,)), s."""
        return self.makespan.mean(axis=(1, 2)), self.tardiness.mean(axis=(1, 2))

    def by_seed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean makespan (s), tardiness (s) and satisfied share of each seed, (n_seeds,) each."""
        kept = [satisfied_share(self.tardiness[:, k], COST_LIMIT) for k in range(self.n_seeds)]
        return self.makespan.mean(axis=(0, 2)), self.tardiness.mean(axis=(0, 2)), np.array(kept)

    def show_size(self) -> str:
        """Say how many seeds it has, or blocks of a rule's trials."""
        what = "block" if self.label in PLAYED_RULES else "seed"
        return f"{self.n_seeds} {what}{'s' if self.n_seeds > 1 else ''}"

    def test(self, reference: Measured) -> list[Pair]:
        """Compare makespan and tardiness of each instance with the reference's, by the seeds' means."""
        both = ((self.makespan, reference.makespan), (self.tardiness, reference.tardiness))
        makespan, tardiness = (
            map(compare_ranks, own.mean(axis=2), other.mean(axis=2)) for own, other in both
        )
        return [*zip(makespan, tardiness, strict=True)]

    def list_values(self, reference: Measured | None) -> list[PublishedCell]:
        """Return means and marks against the reference of each instance, no marks without one."""
        tests = [] if reference is None else self.test(reference)
        marks = [(show_mark(a), show_mark(b)) for a, b in tests] or [("", "")] * len(self.makespan)
        parts = zip(*self.means(), marks, strict=True)
        return [PublishedCell(a, b, mark, other) for a, b, (mark, other) in parts]


def show_mark(test: RankSum) -> str:
    """Return the mark of a figure that is minimised: "+" smaller at 5 %, "-" larger, "~" neither."""
    return "~-+"[test.side]


def join_rows(rows: Iterable[Measured]) -> list[Measured]:
    """Return rows of one label as if they were one row on all their records."""
    by_label: dict[str, list[Measured]] = {}
    for row in rows:
        by_label.setdefault(row.label, []).append(row)
    return [
        Measured(
            label,
            np.concatenate([row.makespan for row in own]),
            np.concatenate([row.tardiness for row in own]),
        )
        for label, own in by_label.items()
    ]


@dataclass(frozen=True)
class StudyTable:
    """A table.

    Attributes
    ----------
    name, title : str
    header, rows : list
        For people.
    data : list of dict
        The same for programs: one number in a cell, all rows with the same columns.
    rules : list of int
        Rows before which a rule is drawn.
    notes : list of str
    """

    name: str
    title: str
    header: list[str]
    rows: list[list[Cell]]
    data: list[Facts]
    rules: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, name: str, title: str, header: list[str], lines: Iterable[Sequence[Shown]], note: str
    ) -> StudyTable:
        """Return a table of lines whose cells each say both: what people read, and what programs do."""
        kept = [[*line] for line in lines]
        rows = [[cell for cell, _ in line] for line in kept]
        data = [{key: x for _, facts in line for key, x in facts.items()} for line in kept]
        return cls(name, title, header, rows, data, notes=[note])

    def render(self, form: str = "text") -> str:
        """Return the table as text, CSV, JSON or Markdown."""
        if form in DATA_FORMATS:
            return render_data(self.data, form)
        body = render_table(self.header, self.rows, form, rules=self.rules)
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"{self.title}\n\n{body}{notes}"


def build_table(
    name: str,
    title: str,
    instances: Sequence[Instance],
    measured: Sequence[Measured],
    *,
    reference: str = "ACERL",
    same_records: bool,
    marked: bool = True,
) -> StudyTable:
    """Lay out a table as the paper does, its values beside the measured ones.

    Parameters
    ----------
    name, title : str
        The name is that of the paper's table, too.
    instances : sequence of Instance
    measured : sequence of Measured
    reference : str
        Label that the others are compared with.
    same_records : bool
        Whether the paper's records are these: then M and C of measured rows are normalised over its rows, as
        its own are. Where its records are others of the same name, the measured rows are peers of each other,
        and nothing is subtracted.
    marked : bool
        Whether the paper's table prints marks.
    """
    shown = [display_name(instance.name) for instance in instances]
    by_label = {row.label: row for row in measured}
    base = by_label.get(reference)
    paper_of = {row.policy: row for row in table_rows(name)}
    peer_values = find_peer_values(measured, name if same_records else None, shown)
    table = StudyTable(name, title, ["policy", "source", "seeds", *shown, "M/C (P)"], [], [])
    rows = table.rows
    starts: list[int] = []
    marks: list[list[Facts]] = []
    paper_marks: list[list[Facts]] = []
    for label in dict.fromkeys([*paper_of, *by_label]):
        starts.append(len(rows))
        row, paper = by_label.get(label), paper_of.get(label)
        own, printed = [], []
        if row is not None:
            other = marked and base is not None and row is not base
            values = row.list_values(base if other else None)
            first: list[Cell] = [label, "measured", row.n_seeds]
            own = _list_data(first, shown, values, score(row, peer_values))
            marks += [own] if other else []
            rows.append([*first, *_show(own)])
        if paper is not None:
            source = "paper" if same_records else "paper, other records"
            totals = (paper.m, paper.c, paper.p)
            printed = _list_data([label, source, None], shown, paper.values(shown), totals)
            paper_marks += [printed] if label != reference else []
            rows.append([label if row is None else "", source, None, *_show(printed)])
        if row is not None and paper is not None and same_records:
            rows.append(["", "difference", None, *_subtract(own, printed)])
        table.data.extend([*own, *printed])
    if marked:
        starts.append(len(rows))
        rows.append(["+/~/-", "measured", None, *_count_marks(marks, len(shown)), None])
        if paper_marks:
            rows.append(["", "paper", None, *_count_marks(paper_marks, len(shown)), None])
    table.rules.extend(starts[1:])
    table.notes.append(_explain(measured, same_records, reference, marked))
    table.notes.extend(_find_better_rules(measured, base))
    return table


def _list_data(
    own: Sequence[Cell],
    records: Sequence[str],
    values: Sequence[PublishedCell],
    scores: tuple[float, float, float],
) -> list[Facts]:
    """Return a policy's rows for programs: one for each record, and that of the means with M, C and P."""
    whole = (float(np.mean([line[k] for line in values])) for k in (0, 1))
    lines: list[tuple[object, ...]] = [
        (record, *line, None, None, None) for record, line in zip(records, values, strict=True)
    ]
    names = ("policy", "source", "seeds", "record", *VALUES, *SCORES)
    return [
        dict(zip(names, (*own, *line), strict=True))
        for line in [*lines, ("mean", *whole, None, None, *scores)]
    ]


def _show(facts: Sequence[Facts]) -> list[Cell]:
    """Return a policy's rows for programs as the cells of one row for people."""
    *records, whole = facts
    makespan, tardiness, *marks = VALUES
    cells: list[Cell] = [
        f"{x[makespan]:.1f}{x[marks[0]]}/{x[tardiness]:.1f}{x[marks[1]]}" for x in records
    ]
    return [*cells, "{:.2f}/{:.2f} ({:.0%})".format(*(whole[key] for key in SCORES))]


def _subtract(own: Sequence[Facts], other: Sequence[Facts]) -> list[Cell]:
    """Return the differences of two policies' rows as the cells of one row."""
    cells: list[Cell] = [
        "{:+.1f}/{:+.1f}".format(*(x[key] - y[key] for key in VALUES[:2]))
        for x, y in zip(own[:-1], other[:-1], strict=True)
    ]
    m, c, p = (own[-1][key] - other[-1][key] for key in SCORES)
    return [*cells, f"{m:+.2f}/{c:+.2f} ({100 * p:+.0f})"]


def find_peer_values(
    measured: Sequence[Measured], table: str | None, shown: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the makespans and tardinesses of the peers, ndarray(float64, (n_peers, n_instances)) each, s.

    They are those of a table of the paper's, else the measured rows.
    """
    if table is None:
        means = np.array([row.means() for row in measured])
        return means[:, 0], means[:, 1]
    values = np.array([[value[:2] for value in row.values(shown)] for row in peers_of(table)])
    return values[:, :, 0], values[:, :, 1]


def score(row: Measured, peers: tuple[np.ndarray, np.ndarray]) -> tuple[float, float, float]:
    """Return M, C and P of a row, M and C over the peers' makespans and tardinesses."""
    m, c = (float(normalise(*both)[0]) for both in zip(row.means(), peers, strict=True))
    return m, c, row.satisfied


def _count_marks(rows: Sequence[Sequence[Facts]], n_instances: int) -> list[Cell]:
    def count(k: int, which: str) -> str:
        return "/".join(str(sum(row[k][which] == mark for row in rows)) for mark in "+~-")

    return [f"({count(k, VALUES[2])})/({count(k, VALUES[3])})" for k in range(n_instances)]


def _explain(measured: Sequence[Measured], same_records: bool, reference: str, marked: bool) -> str:
    trials = measured[0].makespan.shape[2] if measured else 0
    text = f"Cells: mean makespan/tardiness (s) over the seeds, {trials} trials each. "
    if marked:
        text += (
            f"Marks against {reference}: two-sided rank-sum test at 5 % on the means of the seeds (of a "
            f"rule, of blocks of {trials} trials), each for itself; + better, ~ not told apart, - worse. "
        )
        if measured and min(row.n_seeds for row in measured) < FEW_SEEDS:
            text += f"Below {FEW_SEEDS} seeds no difference can show. "
    if same_records:
        return (
            f"{text}M and C of all rows are normalised over the paper's own rows, as printed there."
        )
    return (
        f"{text}The paper's records of this suite are not published: its rows are of others with the same "
        "names, and its M and C over other rows. M and C of measured rows are over these rows."
    )


def _find_better_rules(measured: Sequence[Measured], reference: Measured | None) -> list[str]:
    """Return a note on where a rule is significantly better than the reference."""
    if reference is None:
        return []
    notes = []
    for row in measured:
        if row.label not in RULE_ROWS:
            continue
        pairs = row.test(reference)
        parts = [
            f"in {what} on {sum(pair[which].side < 0 for pair in pairs)} of {len(pairs)}"
            for which, what in ((0, "makespan"), (1, "tardiness"))
            if any(pair[which].side < 0 for pair in pairs)
        ]
        if parts:
            notes.append(f"{row.label} is better than {reference.label} {' and '.join(parts)}")
    return [f"At 5 %, each test for itself: {'; '.join(notes)} records."] if notes else []


def spread_table(
    name: str, title: str, rows: Sequence[Measured], reference: str = "ACERL"
) -> StudyTable:
    """Lay out mean and standard deviation over seeds, and how sure a difference to the reference is.

    Parameters
    ----------
    name, title : str
    rows : sequence of Measured
    reference : str
        Label of the row that the others are compared with.
    """
    base = next((row for row in rows if row.label == reference), None)

    def test(row: Measured, which: int) -> float | None:
        if base is None or row is base or min(row.n_seeds, base.n_seeds) < 2:
            return None
        return compare_ranks(row.by_seed()[which], base.by_seed()[which]).p

    lines: list[list[Shown]] = []
    for row in rows:
        makespan, tardiness, share = row.by_seed()
        p, q = test(row, 0), test(row, 2)
        lines.append(
            [
                (row.label, {"policy": row.label}),
                (row.n_seeds, {"seeds": row.n_seeds}),
                spread("makespan_s", makespan),
                (show_p(p), {"makespan_p": p}),
                spread("tardiness_s", tardiness),
                spread("satisfied_share", share, 0),
                (show_p(q), {"satisfied_p": q}),
            ]
        )
    header = ["policy", "seeds", "makespan", "p", "tardiness", "within limit %", "p"]
    note = (
        "Mean ± standard deviation over the training seeds, of a rule over blocks of trials; of two both "
        f"values. p: two-sided rank-sum test of these means against {reference}, exact below {FEW} of a side."
    )
    return StudyTable.of(name, title, header, lines, note)


def spread(name: str, values: np.ndarray, digits: int = 1) -> tuple[str, Facts]:
    """Return mean and sample standard deviation, for people and for programs.

    Parameters
    ----------
    name : str
        Of the mean's column, the unit last; people read a share in percent.
    values : ndarray(float64, (n,))
        Of a single one, the deviation is not known.
    digits : int
    """
    what, _, unit = name.rpartition("_")
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    facts: Facts = {name: float(values.mean()), f"{what}_deviation_{unit}": deviation}
    return show_spread(values, digits, share=unit == "share"), facts


def show_spread(values: np.ndarray, digits: int = 1, *, share: bool = False) -> str:
    """Return mean ± standard deviation; of two both values; a share in %, near 100 with a decimal."""
    if share:
        values, digits = 100.0 * values, max(digits, int(values.mean() > NEARLY_ALL))
    if len(values) > 2:
        return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"
    return " and ".join(f"{x:.{digits}f}" for x in values)


def show_p(p: float | None) -> str:
    """Return a p-value as text, nothing where there is none."""
    if p is None:
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
