"""Tables of policies beside each other, and of every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.shared.tables import (
    DELAY,
    ERROR,
    FIGURES,
    USAGE,
    USAGE_MEANING,
    Column,
    Values,
    list_figures,
    list_usage,
    make_value_column,
    name_columns,
    render,
    show_error,
    show_pair,
)
from acerl_np.evaluation.references import bundled_references
from acerl_np.problem.bundled import display_name
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.files import write_atomically
from acerl_np.support.report import DATA_FORMATS, render_data

if TYPE_CHECKING:
    from acerl_np.evaluation.margin import Comparison
    from acerl_np.evaluation.trials import Trials

BESIDE = (
    Column(
        "m",
        "M",
        ".2f",
        meaning="M, C: makespan and tardiness from 0, the worst policy of this table, to 1, the best; mean "
        "over the records",
    ),
    Column("c", "C", ".2f"),
    Column(
        "satisfied_share",
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
)


def list_standings(
    labels: Sequence[str],
    results: Sequence[Trials],
    comparison: Comparison,
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

    For people a policy is one row, a record one column.
    """
    if form in DATA_FORMATS:
        return render_data(rows, form), []
    n = len(instances)
    known = rows[-1]["policy"] == "hindsight"
    if not more and not all(item.content_hash in bundled_references() for item in instances):
        return render_means(rows, n, goal, form, known=known)
    columns = [Column("policy", "policy")]
    columns += [Column(f"cell{i}", display_name(x.name)) for i, x in enumerate(instances)]
    columns.append(Column(f"cell{n}", "mean"))
    if goal.objective != PAPER.objective:
        told = more or goal.objective == "worst"
        columns += [make_value_column(goal), *([] if told else [USAGE[-1]])]
    hidden = {"satisfied_share"} if not goal.has_limit else set()
    hidden |= set() if known else {"above_hindsight_share", "of_the_way_share"}
    columns += [column for column in BESIDE if column.name not in hidden]
    if more:
        over = f"standard error of the mean makespan/tardiness over the {'records' if n > 1 else 'trials'}"
        columns += list_usage(DELAY.name in rows[0])
        columns.append(ERROR._replace(meaning=f"{USAGE_MEANING}; error: {over}"))
    shown = []
    for k in range(0, len(rows), n + 1):
        own, mean = rows[k : k + n + 1], rows[k + n]
        pairs = [show_pair(row["makespan_s"], row["tardiness_s"]) for row in own]
        error = None if mean["makespan_error_s"] is None else show_error(mean)
        cells = {f"cell{i}": pair for i, pair in enumerate(pairs)}
        shown.append({**mean, **cells, "error": error})
    meanings = ["Cells: mean makespan/tardiness, s"]
    meanings += [] if goal == PAPER else [f"Objective: {goal.describe()}"]
    meanings += [column.meaning for column in columns if column.meaning]
    return render(columns, shown, form), [f"{meaning}." for meaning in meanings]


def render_means(
    rows: Sequence[Values], n: int, goal: Goal, form: str, *, known: bool
) -> tuple[str, list[str]]:
    """Return the table of means over n records of one's own, and what its columns mean."""
    columns = [Column("policy", "policy")]
    columns += [] if goal.objective == PAPER.objective else [make_value_column(goal)]
    late, waiting, *_ = USAGE
    columns += [late._replace(form=".1%"), FIGURES[1]]
    columns += [Column("longest", "longest delay, s", ".0f"), waiting, FIGURES[0]]
    columns += FIGURES[2:] if goal.has_limit else ()
    columns += BESIDE[-2:] if known else ()
    shown = []
    for k in range(0, len(rows), n + 1):
        delays = [row["worst_s"] for row in rows[k : k + n]]
        longest = None if None in delays else max(delays)  # type: ignore[type-var]
        shown.append({**rows[k + n], "longest": longest})
    meanings = [f"Means over {n} record{'s' * (n > 1)}; longest delay: of a single task"]
    meanings += [] if goal == PAPER else [f"Objective: {goal.describe()}"]
    meanings += [column.meaning for column in columns if column.meaning]
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
