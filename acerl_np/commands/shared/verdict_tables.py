"""Tables of a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acerl_np.commands.shared.tables import (
    FIGURES,
    Column,
    explain_usage,
    list_figures,
    list_usage,
    render,
)
from acerl_np.support.report import clear_cell

if TYPE_CHECKING:
    from acerl_np.evaluation.verdict import BadDay, Verdict


def list_verdict(verdict: Verdict) -> list[dict[str, object]]:
    """Return the figures of a verdict's rows, the means of `list_figures`, and the tails of their delays."""
    from acerl_np.evaluation.verdict import show_difference

    rows = []
    for row in verdict.rows:
        found = {"latest": row.find_worst(), **row.find_tail()}
        tail = {name: clear_cell(x) for name, x in found.items()}
        change = "" if row.difference is None else show_difference(*row.difference[:2], "+")
        rows.append({**list_figures(row.label, row.trials)[-1], **tail, "difference": change})
    return rows


def render_means(verdict: Verdict, form: str = "text", *, more: bool) -> str:
    """Return the table of a verdict's means."""
    from acerl_np.evaluation.verdict import SHOWN

    goal, best = verdict.goal, verdict.best_rule
    is_shift = any(row.lateness for row in verdict.rows)
    columns = [Column("policy", "policy")]
    if goal.objective not in SHOWN:
        columns.append(Column("value", f"{goal.objective}", goal.format))
    usage = {x.name: x for x in list_usage(verdict.policy.trials.has_traffic)}
    late, empty = (usage[name]._replace(form=".1%") for name in ("late_share", "empty_share"))
    own = [] if is_shift and not more else [FIGURES[0]]
    own += [late, FIGURES[1]]
    own += [Column("latest", "longest delay, s", ".0f")] if is_shift else []
    own.append(usage["waiting_s"])
    if more:
        own += [usage["utilisation_share"], empty, *list(usage.values())[4:]]
    if more and is_shift:
        own += [Column("worst_record", "worst record", goal.format)]
        own += [Column("late_95", "95 % late, s", ".0f")]
    columns += [*own, *(FIGURES[2:] if goal.has_limit else ())]
    columns += [] if more else [Column("difference", f"difference to {best}")]
    rows = list_verdict(verdict)
    return render(columns, [{name: row[name] for name, *_ in columns} for row in rows], form)


def render_verdict(verdict: Verdict, form: str = "text") -> list[str]:
    """Return all tables of a verdict: means, and differences to the best rule; before each, what is in it."""
    from acerl_np.evaluation.verdict import SHOWN, show_difference

    goal, best = verdict.goal, verdict.best_rule
    trials = sorted({row.trials.makespan.shape[1] for row in verdict.rows}, reverse=True)
    title = f"Means over {trials[0]} trials"
    title += f" ({trials[-1]} with lookahead)" if len(trials) > 1 else ""
    if goal.has_limit:
        title += f"; within limit: share of the trials with {goal.cost} below {goal.limit}"
    lines = [title, explain_usage(verdict.policy.trials.has_traffic)]
    lines.append(render_means(verdict, form, more=True))
    titles = {} if goal.objective in SHOWN else {"value": f"{goal.objective}"}
    titles |= {name: f"{name}, {unit}" for name, (_, unit, _) in SHOWN.items()}
    columns = [Column("policy", "policy"), *(Column(*both) for both in titles.items())]
    shown: list[dict[str, object]] = []
    for row in verdict.rows:
        if row.difference is not None:
            cells = {name: show_difference(*row.changes[name][:2], "+") for name in titles}
            shown.append({"policy": row.label, **cells})
    difference = verdict.policy.difference
    unknown = difference is None or difference.sign is None
    error = "too few records for an error" if unknown else "(se: its standard error)"
    what = "mean difference over the records"
    lines.append(f"Compared with {best}, the best rule on the training records: {what}, {error}")
    lines.append(render(columns, shown, form))
    for day in verdict.bad_days:
        title = f"A bad day, with {day.label}: means; after: s from the last arrival to the end"
        lines.append(title)
        lines.append(render(*list_bad_day(verdict, day), form))
    return lines


def list_bad_day(verdict: Verdict, day: BadDay) -> tuple[list[Column], list[dict[str, object]]]:
    """Return the columns and rows of a bad day, with differences to `nearest`."""
    from acerl_np.evaluation.verdict import show_difference

    goal = verdict.goal
    columns = [Column("policy", "policy"), Column("value", f"{goal.objective}", goal.format)]
    columns += [
        Column("tardiness", "tardiness, s", ".1f"),
        Column("latest", "longest delay, s", ".0f"),
    ]
    columns.append(Column("after", "after, s", ".0f"))
    columns.append(Column("change", "difference to nearest"))
    rows: list[dict[str, object]] = []
    for row, after in zip(day.rows, day.after, strict=True):
        change = "" if row.difference is None else show_difference(*row.difference[:2], "+")
        rows.append({"policy": row.label, "after": after, "change": change})
        rows[-1] |= {name: row.mean(name) for name in ("value", "tardiness")}
        rows[-1]["latest"] = clear_cell(row.find_worst())
    return columns, rows
