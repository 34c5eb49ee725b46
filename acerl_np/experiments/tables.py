"""The studies' tables as the paper lays them out: measured rows beside printed ones, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from acerl_np.evaluation.metrics import compare_samples, normalise, rank_sum_p, satisfied_share
from acerl_np.experiments.published import PublishedRow
from acerl_np.problem.bundled import display_name
from acerl_np.problem.instance import Instance
from acerl_np.support.report import DATA_FORMATS, Cell, render_data, render_table

TRAINING_PEERS = ("comparison-train", "ablation-train", "ablation-single-train")
TEST_PEERS = ("comparison-test", "ablation-test", "ablation-single-test")
RULE_ROWS = ("MIX", "FCFS", "EDD", "NVF", "STD", "Random")
"""Rules in the order of the paper's tables."""
FEW_SEEDS = 4
"""Below so many a side, no rank-sum test reaches 5 %."""
SCORES = ("m", "c", "satisfied_share")
COST_LIMIT = 50.0
"""xi of the paper, s."""


def peers_of(table: str) -> tuple[str, ...]:
    """Return the tables whose rows are the peers of a published table: those that its M and C range over."""
    for peers in (TRAINING_PEERS, TEST_PEERS):
        if table in peers:
            return peers
    return (table,)


@dataclass(frozen=True)
class Row:
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

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean makespan and tardiness of each instance, ndarray(float64, (n_instances,)), s."""
        return self.makespan.mean(axis=(1, 2)), self.tardiness.mean(axis=(1, 2))

    def satisfied_by_seed(self) -> np.ndarray:
        """Return the share of trials within the limit of each seed, ndarray(float64, (n_seeds,))."""
        return np.array(
            [satisfied_share(self.tardiness[:, k], COST_LIMIT) for k in range(self.n_seeds)]
        )

    def compare(self, reference: Row, k: int) -> tuple[str, str]:
        """Mark makespan and tardiness on instance k against the reference's, by the seeds' means."""
        return (
            compare_samples(self.makespan[k].mean(axis=1), reference.makespan[k].mean(axis=1)),
            compare_samples(self.tardiness[k].mean(axis=1), reference.tardiness[k].mean(axis=1)),
        )


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
    data: list[dict[str, object]]
    rules: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def render(self, form: str = "text") -> str:
        """Return the table as text, CSV, JSON, Markdown or LaTeX."""
        if form in DATA_FORMATS:
            return render_data(self.data, form)
        body = render_table(self.header, self.rows, form, rules=self.rules)
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"{self.title}\n\n{body}{notes}"


def build_table(
    name: str,
    title: str,
    instances: Sequence[Instance],
    measured: Sequence[Row],
    published: Sequence[PublishedRow],
    *,
    reference: str,
    peers: Sequence[PublishedRow] | None,
    marked: bool = True,
) -> StudyTable:
    """Lay out a table as the paper does, its values beside the measured ones.

    Parameters
    ----------
    name, title : str
    instances : sequence of Instance
    measured : sequence of Row
    published : sequence of PublishedRow
        The paper's rows of this table, in its order.
    reference : str
        Label that the others are compared with.
    peers : sequence of PublishedRow or None
        Rows that the paper's M and C are normalised over, and here the measured ones', too; None where
        the paper's records are others of the same name: then the measured rows are peers of each other,
        and nothing is subtracted.
    marked : bool
        Whether the paper's table prints marks.

    Returns
    -------
    StudyTable
    """
    shown = [display_name(instance.name) for instance in instances]
    by_label = {row.label: row for row in measured}
    base = by_label.get(reference)
    paper_of = {row.policy: row for row in published}
    labels = [row.policy for row in published]
    labels += [row.label for row in measured if row.label not in labels]
    peer_values = _find_peer_values(measured, peers, shown)
    rows: list[list[Cell]] = []
    data: list[dict[str, object]] = []
    rules: list[int] = []
    marks: list[list[tuple[str, str]]] = []
    paper_marks: list[list[tuple[str, str]]] = []
    for label in labels:
        rules.append(len(rows))
        row, paper = by_label.get(label), paper_of.get(label)
        if row is not None:
            pairs = [("", "")] * len(shown)
            if marked and base is not None and row is not base:
                pairs = [row.compare(base, k) for k in range(len(shown))]
                marks.append(pairs)
            rows.append([label, "measured", row.n_seeds, *_measured_cells(row, pairs, peer_values)])
            times, scores = zip(*row.means(), strict=True), score(row, peer_values)
            values = [(*own, *pair) for own, pair in zip(times, pairs, strict=True)]
            data += _list_data(label, "measured", row.n_seeds, shown, values, scores)
        if paper is not None:
            source = "paper" if peers is not None else "paper, other records"
            cells = [paper.cells[key] for key in shown]
            printed = [(x.makespan, x.tardiness, x.makespan_mark, x.tardiness_mark) for x in cells]
            data += _list_data(label, source, None, shown, printed, (paper.m, paper.c, paper.p))
            if label != reference:
                paper_marks.append([(cell.makespan_mark, cell.tardiness_mark) for cell in cells])
            line = [
                f"{cell.makespan:.1f}{cell.makespan_mark}/{cell.tardiness:.1f}{cell.tardiness_mark}"
                for cell in cells
            ]
            summary = f"{paper.m:.2f}/{paper.c:.2f} ({paper.p:.0%})"
            rows.append([label if row is None else "", source, None, *line, summary])
        if row is not None and paper is not None and peers is not None:
            rows.append(["", "difference", None, *_differences(row, paper, shown, peer_values)])
    if marked:
        rules.append(len(rows))
        rows.append(["+/~/-", "measured", None, *_count_marks(marks, len(shown)), None])
        if paper_marks:
            rows.append(["", "paper", None, *_count_marks(paper_marks, len(shown)), None])
    notes = [_explain(measured, peers, reference, marked), *_find_better_rules(measured, base)]
    header = ["policy", "source", "seeds", *shown, "M/C (P)"]
    return StudyTable(name, title, header, rows, data, rules[1:], notes)


def _list_data(
    policy: str,
    source: str,
    seeds: int | None,
    records: Sequence[str],
    values: Sequence[tuple[float, float, str, str]],
    scores: tuple[float, float, float],
) -> list[dict[str, object]]:
    """Return a policy's rows for programs: one for each record, and that of the means with M, C and P."""
    own = {"policy": policy, "source": source, "seeds": seeds}
    names = ("makespan_s", "tardiness_s", "makespan_mark", "tardiness_mark")
    rows = [
        {**own, "record": record, **dict(zip(names, line, strict=True)), **dict.fromkeys(SCORES)}
        for record, line in zip(records, values, strict=True)
    ]
    means = {name: float(np.mean([line[k] for line in values])) for k, name in enumerate(names[:2])}
    marks = dict.fromkeys(names[2:])
    return [
        *rows,
        {**own, "record": "mean", **means, **marks, **dict(zip(SCORES, scores, strict=True))},
    ]


def _find_peer_values(
    measured: Sequence[Row], peers: Sequence[PublishedRow] | None, shown: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the peers' makespans and tardinesses, ndarray(float64, (n_peers, n_instances)) each, s."""
    if peers is None:
        means = [row.means() for row in measured]
        return np.array([mean[0] for mean in means]), np.array([mean[1] for mean in means])
    cells = [[row.cells[key] for key in shown] for row in peers]
    return (
        np.array([[cell.makespan for cell in line] for line in cells]),
        np.array([[cell.tardiness for cell in line] for line in cells]),
    )


def score(row: Row, peers: tuple[np.ndarray, np.ndarray]) -> tuple[float, float, float]:
    """Return M, C and P of a row, M and C over the peers' makespans and tardinesses."""
    makespan, tardiness = row.means()
    return (
        float(normalise(makespan, peers[0])[0]),
        float(normalise(tardiness, peers[1])[0]),
        satisfied_share(row.tardiness, COST_LIMIT),
    )


def _measured_cells(
    row: Row, pairs: Sequence[tuple[str, str]], peers: tuple[np.ndarray, np.ndarray]
) -> list[Cell]:
    makespan, tardiness = row.means()
    line: list[Cell] = [
        f"{makespan[k]:.1f}{pair[0]}/{tardiness[k]:.1f}{pair[1]}" for k, pair in enumerate(pairs)
    ]
    m, c, p = score(row, peers)
    return [*line, f"{m:.2f}/{c:.2f} ({p:.0%})"]


def _differences(
    row: Row, paper: PublishedRow, shown: Sequence[str], peers: tuple[np.ndarray, np.ndarray]
) -> list[Cell]:
    makespan, tardiness = row.means()
    cells = [paper.cells[key] for key in shown]
    line: list[Cell] = [
        f"{makespan[k] - cell.makespan:+.1f}/{tardiness[k] - cell.tardiness:+.1f}"
        for k, cell in enumerate(cells)
    ]
    m, c, p = score(row, peers)
    return [*line, f"{m - paper.m:+.2f}/{c - paper.c:+.2f} ({100 * (p - paper.p):+.0f})"]


def _count_marks(marks: Sequence[Sequence[tuple[str, str]]], n_instances: int) -> list[Cell]:
    counts: list[Cell] = []
    for k in range(n_instances):
        parts = [
            "/".join(str(sum(1 for line in marks if line[k][which] == mark)) for mark in "+~-")
            for which in (0, 1)
        ]
        counts.append(f"({parts[0]})/({parts[1]})")
    return counts


def _explain(
    measured: Sequence[Row], peers: Sequence[PublishedRow] | None, reference: str, marked: bool
) -> str:
    trials = measured[0].makespan.shape[2] if measured else 0
    text = f"Cells: mean makespan/tardiness (s) over the seeds, {trials} trials each. "
    if marked:
        text += (
            f"Marks against {reference}: two-sided rank-sum test at 5 % on the means of the seeds (of a "
            f"rule, of blocks of {trials} trials), each for itself; + better, ~ not told apart, - worse. "
        )
        if measured and min(row.n_seeds for row in measured) < FEW_SEEDS:
            text += f"Below {FEW_SEEDS} seeds no difference can show. "
    if peers is None:
        text += (
            "The paper's records of this suite are not published: its rows are of others with the same "
            "names, and its M and C over other rows. M and C of measured rows are over these rows."
        )
    else:
        text += "M and C of all rows are normalised over the paper's own rows, as printed there."
    return text


def _find_better_rules(measured: Sequence[Row], reference: Row | None) -> list[str]:
    """Return a note on where a rule is significantly better than the reference."""
    if reference is None:
        return []
    notes = []
    for row in measured:
        if row.label not in RULE_ROWS:
            continue
        pairs = [row.compare(reference, k) for k in range(len(row.makespan))]
        parts = [
            f"in {what} on {sum(pair[which] == '+' for pair in pairs)} of {len(pairs)}"
            for which, what in ((0, "makespan"), (1, "tardiness"))
            if any(pair[which] == "+" for pair in pairs)
        ]
        if parts:
            notes.append(f"{row.label} is better than {reference.label} {' and '.join(parts)}")
    return [f"At 5 %, each test for itself: {'; '.join(notes)} records."] if notes else []


def spread_table(name: str, title: str, rows: Sequence[Row], reference: str) -> StudyTable:
    """Lay out mean and standard deviation over seeds, and how sure a difference to the reference is.

    Parameters
    ----------
    name, title : str
    rows : sequence of Row
    reference : str
        Label of the row that the others are compared with.

    Returns
    -------
    StudyTable
    """
    base = next((row for row in rows if row.label == reference), None)
    lines: list[list[Cell]] = []
    data: list[dict[str, object]] = []
    for row in rows:
        makespan, tardiness = row.makespan.mean(axis=(0, 2)), row.tardiness.mean(axis=(0, 2))
        share = row.satisfied_by_seed()
        p_values: list[Cell] = ["", ""]
        numbers: list[float | None] = [None, None]
        if base is not None and row is not base and min(row.n_seeds, base.n_seeds) > 1:
            numbers = [
                rank_sum_p(makespan, base.makespan.mean(axis=(0, 2))),
                rank_sum_p(share, base.satisfied_by_seed()),
            ]
            p_values = [show_p(p) for p in numbers if p is not None]
        data.append(
            {
                "policy": row.label,
                "seeds": row.n_seeds,
                **list_spread("makespan_s", makespan),
                "makespan_p": numbers[0],
                **list_spread("tardiness_s", tardiness),
                **list_spread("satisfied_share", share),
                "satisfied_p": numbers[1],
            }
        )
        lines.append(
            [
                row.label,
                row.n_seeds,
                show_spread(makespan),
                p_values[0],
                show_spread(tardiness),
                show_spread(100.0 * share, 0),
                p_values[1],
            ]
        )
    header = ["policy", "seeds", "makespan", "p", "tardiness", "satisfied %", "p"]
    note = (
        "Mean ± standard deviation over the training seeds, of a rule over blocks of trials; p: two-sided "
        f"rank-sum test of these means against {reference}."
    )
    return StudyTable(name, title, header, lines, data, notes=[note])


def show_spread(values: np.ndarray, digits: int = 1) -> str:
    """Return "mean ± sample standard deviation"."""
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {deviation:.{digits}f}"


def list_spread(name: str, values: np.ndarray) -> dict[str, object]:
    """Return mean and sample standard deviation as cells for programs, the latter None for one value."""
    what, _, unit = name.rpartition("_")
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return {name: float(values.mean()), f"{what}_deviation_{unit}": deviation}


def show_p(p: float) -> str:
    """Return a p-value as text."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
