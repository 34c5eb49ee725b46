"""Tables: declared columns, which people and programs are shown; those of what trials say."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from acerl_np.evaluation.metrics import satisfied_share, standard_error
from acerl_np.evaluation.published import find_row, is_published
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.report import DATA_FORMATS, render_data, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials

Values = Mapping[str, object]
"""A row of a table: values by the names of the columns, for programs."""


class Column(NamedTuple):
    """A column of a table: one declaration for people and for programs."""

    name: str
    """Of the value, with its unit, for programs; where `title` stands alone, for this package alone."""
    title: str = ""
    """For people; they are not shown a column without one."""
    form: str = ""
    none: str = ""
    unknown: str = "-"
    """What people are shown for None and for nan."""
    meaning: str = ""
    """What stands below the table."""
    words: bool = False
    """Values are words that begin below each other."""

    def show(self, value: object) -> str:
        """Return a value as people are shown it."""
        if value is None:
            return self.none
        if isinstance(value, str):
            return value
        return self.unknown if math.isnan(value) else format(value, self.form)  # type: ignore[arg-type]


def render(
    columns: Sequence[Column], rows: Sequence[Values], form: str, rules: Sequence[int] = ()
) -> str:
    """Return a table in one of `support.report.FORMATS`."""
    if form in DATA_FORMATS:
        return render_data([{c.name: row[c.name] for c in columns} for row in rows], form)
    shown = [column for column in columns if column.title]
    parts = [[c.title, *(c.show(row[c.name]) for row in rows)] for c in shown]
    if form == "text":
        for column, part in zip(shown, parts, strict=True):
            if column.words:
                width = max(map(len, part))
                part[:] = [text.ljust(width) for text in part]
    header, *cells = zip(*parts, strict=True)
    return render_table(header, cells, form, rules=rules)


def count(number: int, noun: str) -> str:
    """Return so many of something in words."""
    return f"{number} {noun}{'s' if number > 1 else ''}"


def find_below(form: str) -> tuple[str, TextIO]:
    """Return how a line beside a table ends, and where it goes: a table for another program stays one."""
    end = "  " if form == "markdown" else ""
    return end, sys.stdout if form in ("text", "markdown") else sys.stderr


def show_below(form: str, lines: Sequence[str]) -> None:
    """Print what stands below a table."""
    end, stream = find_below(form)
    if form == "markdown" and lines:
        print()  # or they would be rows of the table
    for line in dict.fromkeys(lines):
        print(f"{line}{end}", file=stream)


# Figures of policies

DELAY_MEANING = (
    "delay: how much longer the way to a pickup and the loaded way took than if vehicles met nobody"
)
COLUMNS = (
    *(Column("policy", "policy"), Column("record", "instance")),
    Column("makespan_s", "makespan, s", ".1f"),
    Column("tardiness_s", "tardiness, s", ".1f"),
    Column("late_share", "late", ".0%"),
    Column("waiting_s", "waiting, s", ".1f"),
    Column("utilisation_share", "utilisation", ".0%"),
    Column("empty_share", "empty", ".0%"),
    Column("worst_s", "worst, s", ".0f"),
    Column("delay_s", "delay, s", ".1f", meaning=DELAY_MEANING),
    Column("satisfied_share", "within limit", ".0%"),
    Column(
        "m",
        "M",
        ".2f",
        meaning="M, C: makespan and tardiness from 0, the worst policy of this table, to 1, the best; mean "
        "over the records",
    ),
    Column("c", "C", ".2f"),
    Column(
        "p",
        "P",
        ".0%",
        meaning="P: share of trials with a tardiness, or other --cost, below the limit",
    ),
    Column("above_hindsight_share", "above hindsight", ".1%"),
    Column(
        "of_the_way_share",
        "of the way",
        ".0%",
        unknown="",
        meaning="of the way: share of the way, in the objective, from the best rule on these records (0%) to "
        "hindsight (100%)",
    ),
    Column("latest", "longest delay, s", ".0f"),
    Column("late_95", "95 % late, s", ".0f"),
    Column("paper", "paper makespan", ".1f"),
    Column("paper_tardiness", "paper tardiness", ".1f"),
    Column("after", "after, s", ".0f"),
    *(Column("difference", "difference to nearest"), Column("error", "error")),
)
"""All that tables of policies show, but for the objective, whose title is a goal's."""

USAGE = "late_share waiting_s utilisation_share empty_share worst_s delay_s"
MEASURED = ("makespan_s", "tardiness_s", *USAGE.split())
"""Columns of what trials hold of each episode: "makespan" stands in "makespan_s"."""

USAGE_MEANING = (
    "late: share of the tasks; waiting: from arrival to pickup; utilisation: share of the fleet's time with "
    "a task; empty: share of the metres driven without a load; worst: how late the latest task of a record "
    "was, in the mean"
)
IN_TENTHS = {"late_share": ".1%", "empty_share": ".1%"}
"""Forms of shares where few tasks are late."""


def choose(names: str, row: Values, goal: Goal, **forms: str) -> list[Column]:
    """Return columns by their names: those that a row has, the share within a limit where there is one."""
    title = f"{goal.objective}{goal.unit and f', {goal.unit}'}"
    own = Column("value", title, goal.format), Column("worst_record", "worst record", goal.format)
    known = {column.name: column for column in (*COLUMNS, *own)}
    hidden = () if goal.has_limit else ("satisfied_share", "p")
    found = [known[name] for name in names.split() if name in row and name not in hidden]
    return [column._replace(form=forms.get(column.name, column.form)) for column in found]


def name_columns(has_traffic: bool) -> dict[str, str]:
    """Return the column of each measure that trials hold; that of the delay where vehicles meet."""
    names = MEASURED if has_traffic else MEASURED[:-1]
    return {name.rpartition("_")[0]: name for name in names}


def explain_usage(has_traffic: bool) -> str:
    """Return what the columns of `USAGE` mean, that of the delay where vehicles meet."""
    return f"{USAGE_MEANING}; {DELAY_MEANING}" if has_traffic else USAGE_MEANING


def describe_share(goal: Goal) -> str:
    """Return what trials have to keep to be within the limit."""
    return f"; within limit: {goal.cost} below {goal.limit}" if goal.has_limit else ""


def list_figures(label: str, trials: Trials) -> list[dict[str, object]]:
    """Return the figures of a policy: a row for each record, and one for its mean over them.

    A standard error is over the trials, that of the mean over the records unless there is but one.
    """
    n = len(trials.instances)
    figures = {
        column: trials.mean(name) for name, column in name_columns(trials.has_traffic).items()
    }
    rows: list[dict[str, object]] = []
    for i, name in enumerate([*trials.instances, "mean"]):
        part = slice(None) if i == n else slice(i, i + 1)
        row: dict[str, object] = {
            "policy": label,
            "record": name,
            "records": n if i == n else 1,
            "trials": trials.makespan.shape[1],
            "unfinished": int(np.isnan(trials.makespan[part]).sum()),
            **{key: float(x[part].mean()) for key, x in figures.items()},
        }
        for key, x in (("makespan", trials.makespan), ("tardiness", trials.tardiness)):
            over = figures[f"{key}_s"] if i == n and n > 1 else x[0 if i == n else i]
            row[f"{key}_error_s"] = standard_error(over)
        row["satisfied_share"] = satisfied_share(trials.cost[part], trials.cost_limit)
        if trials.goal.objective != PAPER.objective:
            row["value"] = float(trials.mean("value")[part].mean())
        rows.append(row)
    return rows


def show_pair(one: Any, other: Any) -> str:
    """Return two figures of a cell, such as a makespan and a tardiness; a dash for both if unknown."""
    return "-" if math.isnan(one) else f"{one:.1f}/{other:.1f}"


def show_error(row: Values) -> str | None:
    """Return the standard errors of a row, a dash where one is unknown; None where it has none."""
    errors: list[Any] = [row["makespan_error_s"], row["tardiness_error_s"]]
    shown = ["-" if x is None or math.isnan(x) else f"{x:.1f}" for x in errors]
    return None if None in errors else "/".join(shown)


# A trained policy on its training records


def summarise(
    instances: Sequence[Instance], trials: Trials, *, on: str, policy: str, more: bool
) -> str:
    """Return the table of a trained policy, `policy` by the paper's name, beside the paper's figures.

    `on` says which records these are, and `more` shows what `USAGE` names, and standard errors.
    """
    printed = find_row("comparison-train", policy)
    cells = {} if printed is None else printed.cells
    paper: list[Any] = [
        cells[x.name][:2] if cells and is_published(x.name, x.content_hash) else None
        for x in instances
    ]
    known = [pair for pair in paper if pair is not None]
    every = len(known) == len(paper)
    paper.append(tuple(sum(x) / len(known) for x in zip(*known, strict=True)) if every else None)
    rows = list_figures("policy", trials)
    for row, pair in zip(rows, paper, strict=True):
        row |= {"error": show_error(row)}
        row |= zip(("paper", "paper_tardiness"), pair or (None, None), strict=True) if known else ()
    names = "record value makespan_s tardiness_s satisfied_share paper paper_tardiness"
    columns = choose(f"{names} {USAGE} error" if more else names, rows[0], trials.goal)
    below = ""
    if more:
        over = "standard error of the mean makespan/tardiness over the trials"
        below = f"{explain_usage(trials.has_traffic)}\nerror: {over}; in the last row over the records\n"
    means = f"{on}{'means' if on else 'Means'} over {trials.makespan.shape[1]} trials"
    title = f"{means}{describe_share(trials.goal)}"
    return f"{title}\n{render(columns, rows, 'text', rules=[len(rows) - 1])}{below}"
