"""Columns of the tables that commands print, and what trials say in them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from acerl_np.evaluation.published import find_row
from acerl_np.problem.bundled import bundled_instances, load_instance
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


USAGE = (
    Column("late_share", "late", ".0%"),
    Column("waiting_s", "waiting, s", ".1f"),
    Column("utilisation_share", "utilisation", ".0%"),
    Column("empty_share", "empty", ".0%"),
    Column("worst_s", "worst, s", ".0f"),
)
DELAY = Column(
    "delay_s",
    "delay, s",
    ".1f",
    meaning="delay: how much longer the way to a pickup and the loaded way took than if vehicles met nobody",
)
USAGE_MEANING = (
    "late: share of the tasks; waiting: from arrival to pickup; utilisation: share of the fleet's time with "
    "a task; empty: share of the metres driven without a load; worst: how late the latest task of a record "
    "was, in the mean"
)
FIGURES = (
    Column("makespan_s", "makespan, s", ".1f"),
    Column("tardiness_s", "tardiness, s", ".1f"),
    Column("satisfied_share", "within limit", ".0%"),
)
ERROR = Column("error", "error")
COLUMN_OF = {column.name.rpartition("_")[0]: column.name for column in (*FIGURES[:2], *USAGE)}
"""Columns of what trials hold of each episode: "makespan" stands in "makespan_s"."""


def list_usage(has_traffic: bool) -> tuple[Column, ...]:
    """Return the columns of `USAGE`, and of the delay where vehicles meet."""
    return (*USAGE, DELAY) if has_traffic else USAGE


def explain_usage(has_traffic: bool) -> str:
    """Return what the columns of `list_usage` mean."""
    return f"{USAGE_MEANING}; {DELAY.meaning}" if has_traffic else USAGE_MEANING


def name_columns(has_traffic: bool) -> dict[str, str]:
    """Return `COLUMN_OF`, and the delay's where vehicles meet."""
    return {**COLUMN_OF, "delay": DELAY.name} if has_traffic else COLUMN_OF


def make_value_column(goal: Goal) -> Column:
    """Return the column of an objective other than the makespan."""
    return Column("value", f"{goal.objective}{goal.unit and f', {goal.unit}'}", goal.format)


def describe_share(goal: Goal) -> str:
    """Return what trials have to keep to be within the limit."""
    return f"; within limit: {goal.cost} below {goal.limit}" if goal.has_limit else ""


def list_figures(label: str, trials: Trials) -> list[dict[str, object]]:
    """Return the figures of a policy: a row for each record, and one for its mean over them.

    A standard error is over the trials, that of the mean over the records unless there is but one.
    """
    import numpy as np

    from acerl_np.evaluation.metrics import satisfied_share, standard_error

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


def show_pair(one: object, other: object) -> str:
    """Return two figures of a cell, such as a makespan and a tardiness; a dash for both if unknown."""
    return "-" if math.isnan(one) else f"{one:.1f}/{other:.1f}"  # type: ignore[arg-type]


def show_error(row: Values) -> str:
    """Return the standard errors of a row, as `ERROR` shows them."""
    show = FIGURES[0].show
    return f"{show(row['makespan_error_s'])}/{show(row['tardiness_error_s'])}"


# What a training has achieved


def is_published(name: str, content: str) -> bool:
    """Whether a record of this name and content is one of the paper's figures.

    Its noised instances are not published, so only the training instances can be compared.
    """
    row = find_row("comparison-train", "ACERL")
    known = row is not None and name in row.cells and name in bundled_instances()
    return known and load_instance(name).content_hash == content


def summarise(
    instances: Sequence[Instance], trials: Trials, *, on: str, policy: str, more: bool
) -> str:
    """Return the table of a trained policy, `policy` by the paper's name, beside the paper's figures.

    `on` says which records these are, and `more` shows what `USAGE` holds, and standard errors.
    """
    printed = find_row("comparison-train", policy)
    paper: list[Any] = [None] * len(instances)
    if printed is not None:
        own = [is_published(item.name, item.content_hash) for item in instances]
        paper = [
            printed.cells[x.name][:2] if k else None for x, k in zip(instances, own, strict=True)
        ]
    known = [pair for pair in paper if pair is not None]
    every = len(known) == len(paper)
    paper.append(tuple(sum(x) / len(known) for x in zip(*known, strict=True)) if every else None)
    rows = list_figures("policy", trials)
    for row, pair in zip(rows, paper, strict=True):
        row["paper"], row["paper tardiness"] = pair or (None, None)
    goal, columns = trials.goal, [Column("record", "instance")]
    columns += [] if goal.objective == PAPER.objective else [make_value_column(goal)]
    columns += FIGURES if goal.has_limit else FIGURES[:2]
    if known:
        columns.append(Column("paper", "paper makespan", ".1f"))
        columns.append(Column("paper tardiness", "paper tardiness", ".1f"))
    below = ""
    if more:
        columns += [*list_usage(trials.has_traffic), ERROR]
        rows = [{**row, "error": show_error(row)} for row in rows]
        over = "standard error of the mean makespan/tardiness over the trials"
        below = f"{explain_usage(trials.has_traffic)}\nerror: {over}; in the last row over the records\n"
    means = f"{on}{'means' if on else 'Means'} over {trials.makespan.shape[1]} trials"
    title = f"{means}{describe_share(goal)}"
    return f"{title}\n{render(columns, rows, 'text', rules=[len(rows) - 1])}{below}"
