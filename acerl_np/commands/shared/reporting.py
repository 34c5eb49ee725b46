"""What goes into a report page: of a verdict, of policies beside each other, of settings."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from acerl_np.commands.evaluate import Evaluation
from acerl_np.commands.shared.figures import render_means, render_verdict
from acerl_np.commands.shared.options import WORDS
from acerl_np.commands.shared.tables import (
    USAGE,
    choose,
    count,
    explain_usage,
    list_figures,
    render,
)
from acerl_np.commands.train import Training
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.left_out import describe_left_out
from acerl_np.evaluation.metrics import compare_paired, standard_error
from acerl_np.evaluation.trials import Trials
from acerl_np.evaluation.verdict import Verdict, show_difference, tell_objective
from acerl_np.evaluation.whatif import Row, find_varied, show_setting
from acerl_np.pictures import report as pages
from acerl_np.pictures.report import draw_dots
from acerl_np.problem.goal import MEASURES, Goal, read_objective
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.support.errors import InputError, list_some

FEW = 6
"""Series of a picture that are told apart."""

OF_REPLAYS = (
    "Replay: who served what in the past, driven as the model drives. What held a vehicle up, orders that "
    "nobody told, and what would have come had others decided, it cannot know."
)


def write(path: str, title: str, sentence: str, parts: dict[str, Iterable[str]]) -> None:
    """Write a page, with the command that it came from, if one runs."""
    import acerl_np

    told = f"With acerl_np {acerl_np.__version__}; the same files give the same page."
    words = WORDS.get()
    repeat = [*([shlex.join(["acerl-np", *words])] if words else []), told]
    shown = {heading: list(texts) for heading, texts in parts.items()}
    shown = {heading: texts for heading, texts in shown.items() if texts}
    pages.write_page(path, title, sentence, {**shown, "How to repeat it": repeat})


def report_verdict(
    path: str, verdict: Verdict, records: Sequence[Instance], said: Iterable[str]
) -> None:
    """Write the page of a verdict on these records; of noised copies the training records."""
    goal, rows = verdict.goal, {row.label: row for row in verdict.rows}
    shown = {name: rows[name].trials for name in ("policy", verdict.best_rule)}
    shown |= {"nearest": rows["nearest"].trials} if "nearest" in rows else {}
    judges = {item.name: item for item in records}
    parts: dict[str, Iterable[str]] = {
        "What it came to": [render_means(verdict, "html", more=False)],
        f"{describe_objective(goal)} of each record": draw_records(shown, judges, goal),
        "What to know": said,
        "In detail": [verdict.sentence(), *render_verdict(verdict, "html")],
        "What the model leaves out": describe_left_out(records),
    }
    write(path, name_page(records, verdict.n_records), verdict.headline, parts)


def name_page(records: Sequence[Instance], n: int) -> str:
    """Return the title of a page: floor, fleet, and how many records or shifts it is about."""
    floors = list(dict.fromkeys(item.layout.name for item in records))
    fleets = sorted({len(item.layout.vehicles) for item in records})
    noun = "shift" if are_shifts(records) else "record"
    fleet = (
        count(fleets[-1], "vehicle")
        if len(fleets) == 1
        else f"{fleets[0]} to {fleets[-1]} vehicles"
    )
    return f"Dispatching on {list_some(floors, 3)}, {fleet}, {count(n, noun)}"


def describe_objective(goal: Goal) -> str:
    """Return an objective with its unit, or those of its parts."""
    if goal.own or goal.objective in MEASURES:
        return f"{goal.objective}{goal.unit and f', {goal.unit}'}"
    units = ", ".join(f"{name} in {MEASURES[name]}" for name in read_objective(goal.objective))
    return f"{goal.objective} ({units})"


def draw_records(
    shown: dict[str, Trials], judges: dict[str, Instance], goal: Goal
) -> Iterable[str]:
    """Give the picture of some policies' objective on each record, with the bound where there is one."""
    names = next(iter(shown.values())).instances
    series = {label: trials.mean("value") for label, trials in shown.items()}
    if not goal.own and all(name in judges for name in names):
        bounds = np.array([bound_objective(judges[name], goal) for name in names])
        series |= {"bound": bounds} if bounds.any() else {}
        order = [names.index(name) for name in judges]
        names = tuple(judges)
        series = {label: values[order] for label, values in series.items()}
    yield draw_dots(names, series, describe_objective(goal))
    if "bound" in series:
        yield "bound: no schedule goes below it, which is proven; one at it need not exist."


def report_policies(
    path: str,
    labels: Sequence[str],
    results: Sequence[Trials],
    records: Sequence[Instance],
    notes: Iterable[str],
) -> None:
    """Write the page of policies beside each other: the first, and each other's difference to it."""
    goal, n = results[0].goal, len(records)
    values = [trials.mean("value") for trials in results]
    own = show_difference(float(values[0].mean()), standard_error(values[0]), "")
    lines = [
        f"On {count(n, 'record')} {labels[0]} has {goal.objective} {own}{goal.unit and f' {goal.unit}'}."
    ]
    for label, other in zip(labels[1:], values[1:], strict=True):
        told = tell_objective(goal, compare_paired(values[0], other))
        lines.append(f"{told[:1].upper()}{told[1:]}, beside {label}.")
    means = [list_figures(*both)[-1] for both in zip(labels, results, strict=True)]
    names = f"policy value makespan_s tardiness_s satisfied_share {USAGE}"
    table = render(choose(names, means[0], goal), means, "html")
    some = dict(zip(labels[:FEW], results, strict=False))
    replays = any(label.startswith("past") for label in labels)
    left_out = [*describe_left_out(records), *[OF_REPLAYS] * replays]
    parts: dict[str, Iterable[str]] = {
        "What they came to": [table, f"{explain_usage(results[0].has_traffic)}.", *notes],
        f"{describe_objective(goal)} of each record": draw_records(
            some, {x.name: x for x in records}, goal
        ),
        "What the model leaves out": left_out,
    }
    write(path, name_page(records, n), "\n".join(lines), parts)


def report_settings(
    path: str,
    rows: Sequence[Row],
    measure: str,
    records: Sequence[Instance],
    answers: Sequence[str],
    shown: Iterable[str],
) -> None:
    """Write the page of other fleets, demands or speeds, with a measure of each setting."""
    varied = find_varied(rows)
    told = [show_setting({name: row.setting[name] for name in varied}) for row in rows]
    names = list(dict.fromkeys(told))
    series = {row.policy: np.full(len(names), math.nan) for row in rows}
    for name, row in zip(told, rows, strict=True):
        series[row.policy][names.index(name)] = row.measure(measure)[0]
    series = dict(list(series.items())[:FEW])
    title = rows[0].trials.goal.objective if measure == "value" else measure
    base = next(name for name, row in zip(told, rows, strict=True) if row.is_base)
    meets = {row.trials.has_traffic for row in rows}
    some_meet = meets == {False, True} or (True in meets and records[0].layout.traffic is None)
    parts: dict[str, Iterable[str]] = {
        "What they came to": shown,
        f"{title} of each setting": [draw_dots(names, series, f"{title}")],
        "What the model leaves out": describe_left_out(records, some_meet=some_meet),
    }
    sentence = (
        "\n".join(answers) or f"{title} and more beside {base}, on {count(len(records), 'record')}."
    )
    write(path, f"{name_page(records, len(records))}: what if not {base}?", sentence, parts)


def write_report(path: str, found: Training | Evaluation) -> None:
    """Write what `train` or `evaluate` has found as one HTML page to hand on.

    Parameters
    ----------
    path : str
    found : Training or Evaluation

    Raises
    ------
    InputError
        If a training has no verdict.
    """
    if not isinstance(found, Training):
        report_policies(path, found.labels, found.trials, found.records, found.times)
    elif found.verdict is None:
        raise InputError("found: a training without a verdict; expected one with")
    else:
        report_verdict(path, found.verdict, found.records, found.notes)
