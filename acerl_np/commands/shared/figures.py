"""Tables of policies beside each other, of every trial, and of a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acerl_np.commands.shared.tables import (
    IN_TENTHS,
    USAGE,
    USAGE_MEANING,
    Column,
    Values,
    choose,
    count,
    explain_usage,
    list_figures,
    name_columns,
    render,
    show_error,
    show_pair,
)
from acerl_np.evaluation.margin import Comparison
from acerl_np.evaluation.references import bundled_references
from acerl_np.evaluation.trials import Trials
from acerl_np.evaluation.verdict import SHOWN, BadDay, Verdict, show_difference
from acerl_np.problem.bundled import display_name
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.files import write_atomically
from acerl_np.support.report import DATA_FORMATS, clear_cell, render_data


def list_standings(
    labels: Sequence[str], results: Sequence[Trials], comparison: Comparison
) -> list[dict[str, object]]:
    """Return the figures of all policies, and those of hindsight where it is known."""
    rows: list[dict[str, object]] = []
    names = ("m", "c", "above_hindsight_share", "of_the_way_share")
    beside = comparison.m, comparison.c, comparison.above_hindsight, comparison.of_the_way
    for k, (label, trials) in enumerate(zip(labels, results, strict=True)):
        own = list_figures(label, trials)
        rows += [{**row, **dict.fromkeys(names)} for row in own]
        rows[-1] |= zip(names, (values[k] for values in beside), strict=True)
    best = [(item.makespan, item.tardiness) for item in comparison.hindsight]
    if best:
        n = len(best)
        best.append((sum(x for x, _ in best) / n, sum(x for _, x in best) / n))
        for row, (makespan, tardiness) in zip(rows[: n + 1], best, strict=True):
            known = {"policy": "hindsight", "record": row["record"], "records": row["records"]}
            known |= {"makespan_s": makespan, "tardiness_s": tardiness, "satisfied_share": 1.0}
            rows.append({**dict.fromkeys(row), **known})
        rows[-1] |= {"above_hindsight_share": 0.0, "of_the_way_share": 1.0}
    return rows


def render_standings(
    instances: Sequence[Instance], rows: Sequence[Values], goal: Goal, form: str, *, more: bool
) -> tuple[str, list[str]]:
    """Return the table of all policies, and what its columns mean.

    For people a policy is one row. Of bundled records, or with `more`, a record is a column; of records of
    one's own the means are shown.
    """
    if form in DATA_FORMATS:
        return render_data(rows, form), []
    n, shown = len(instances), []
    for k in range(0, len(rows), n + 1):
        own, mean = rows[k : k + n + 1], rows[k + n]
        cells = {
            f"cell{i}": show_pair(x["makespan_s"], x["tardiness_s"]) for i, x in enumerate(own)
        }
        delays: list[Any] = [row["worst_s"] for row in own[:-1]]
        known = {"latest": None if None in delays else max(delays), "p": mean["satisfied_share"]}
        shown.append({**mean, **cells, **known, "error": show_error(mean)})
    hindsight = " above_hindsight_share of_the_way_share" * (shown[-1]["policy"] == "hindsight")
    if not more and not all(item.content_hash in bundled_references() for item in instances):
        names = "policy value late_share tardiness_s latest waiting_s makespan_s satisfied_share"
        columns = choose(names + hindsight, shown[0], goal, **IN_TENTHS)
        meanings = [f"Means over {count(n, 'record')}; longest delay: of a single task"]
    else:
        titles = [*(display_name(item.name) for item in instances), "mean"]
        names = "value" + " worst_s" * (not more and goal.objective not in ("makespan", "worst"))
        names += f" m c p{hindsight}" + f" {USAGE} error" * more
        columns = [Column("policy", "policy")]
        columns += [Column(f"cell{i}", title) for i, title in enumerate(titles)]
        columns += choose(names, shown[0], goal)
        meanings = ["Cells: mean makespan/tardiness, s"]
    meanings += [] if goal == PAPER else [f"Objective: {goal.describe()}"]
    meanings += [column.meaning for column in columns if column.meaning]
    if more:
        over = f"standard error of the mean makespan/tardiness over the {'records' if n > 1 else 'trials'}"
        meanings.append(f"{USAGE_MEANING}; error: {over}")
    return render(columns, shown, form), [f"{meaning}." for meaning in meanings]


def write_trials(path: str, labels: Sequence[str], results: Sequence[Trials]) -> None:
    """Write every single trial as CSV."""
    rows = []
    for label, trials in zip(labels, results, strict=True):
        names = name_columns(trials.has_traffic)
        for i, name in enumerate(trials.instances):
            for k in range(trials.makespan.shape[1]):
                values = {key: float(getattr(trials, x)[i, k]) for x, key in names.items()}
                makespan, tardiness = values.pop("makespan_s"), values.pop("tardiness_s")
                row = {"policy": label, "instance": name, "trial": k, "makespan": str(makespan)}
                within = int(trials.cost[i, k] < trials.cost_limit)
                row |= {"tardiness": str(tardiness), "satisfied": within, **values}
                if trials.goal.objective != PAPER.objective:
                    row["value"] = float(trials.value[i, k])
                rows.append(row)
    write_atomically(path, render_data(rows, "csv").encode())


# A verdict


def list_verdict(verdict: Verdict) -> list[dict[str, object]]:
    """Return the figures of a verdict's rows, the means of `list_figures`, and the tails of their delays."""
    rows = []
    for row in verdict.rows:
        found = {"latest": row.find_worst(), **row.find_tail()}
        tail = {name: clear_cell(x) for name, x in found.items()}
        change = "" if row.difference is None else show_difference(*row.difference[:2], "+")
        rows.append({**list_figures(row.label, row.trials)[-1], **tail, "difference": change})
    return rows


def render_means(verdict: Verdict, form: str = "text", *, more: bool) -> str:
    """Return the table of a verdict's means."""
    goal, is_shift = verdict.goal, any(row.lateness for row in verdict.rows)
    names = "policy" + " value" * (goal.objective not in SHOWN)
    names += " makespan_s" * (more or not is_shift) + " late_share tardiness_s"
    names += " latest" * is_shift + " waiting_s"
    if more:
        names += " utilisation_share empty_share worst_s delay_s"
        names += " worst_record late_95" * is_shift
    rows = list_verdict(verdict)
    columns = choose(f"{names} satisfied_share", rows[0], goal, **IN_TENTHS)
    if not more:
        columns.append(Column("difference", f"difference to {verdict.best_rule}"))
    return render(columns, rows, form)


def render_verdict(verdict: Verdict, form: str = "text") -> list[str]:
    """Return all tables of a verdict: means, and differences to the best rule; before each, what is in it."""
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
        lines += [title, render_bad_day(day, goal, form)]
    return lines


def render_bad_day(day: BadDay, goal: Goal, form: str) -> str:
    """Return the table of a bad day, with differences to `nearest`."""
    rows: list[dict[str, object]] = []
    for row, after in zip(day.rows, day.after, strict=True):
        change = "" if row.difference is None else show_difference(*row.difference[:2], "+")
        rows.append({"policy": row.label, "after": after, "difference": change})
        rows[-1] |= {"value": row.mean("value"), "tardiness_s": row.mean("tardiness")}
        rows[-1]["latest"] = clear_cell(row.find_worst())
    columns = choose("policy value tardiness_s latest after difference", rows[0], goal)
    return render(columns, rows, form)
