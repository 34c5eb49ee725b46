"""Policies beside each other: as a table for people, as one for programs, and every single trial."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from acerl_np.commands.summary import USAGE_HEADER, USAGE_MEANING, show_number, show_usage
from acerl_np.support.files import write_atomically
from acerl_np.support.report import Cell

if TYPE_CHECKING:
    import numpy as np

    from acerl_np.evaluation.margin import Comparison
    from acerl_np.evaluation.trials import Trials
    from acerl_np.problem.instance import Instance


def write_trials(path: str, labels: list[str], results: list[Trials]) -> None:
    """Write every single trial as CSV."""
    import numpy as np

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = ["policy", "instance", "trial", "makespan", "tardiness", "satisfied"]
    writer.writerow([*header, "late_share", "waiting_s", "utilisation_share", "empty_share"])
    for label, trials in zip(labels, results, strict=True):
        more = (trials.late, trials.waiting, trials.utilisation, trials.empty)
        for i, name in enumerate(trials.instances):
            for k in range(trials.makespan.shape[1]):
                makespan, tardiness = trials.makespan[i, k], trials.tardiness[i, k]
                inside = int(tardiness < trials.cost_limit)
                cells = ["" if np.isnan(values[i, k]) else values[i, k] for values in more]
                writer.writerow([label, name, k, makespan, tardiness, inside, *cells])
    write_atomically(path, text.getvalue().encode())


def tabulate(
    instances: Sequence[Instance],
    labels: Sequence[str],
    results: Sequence[Trials],
    comparison: Comparison,
    *,
    more: bool = False,
) -> tuple[list[str], list[list[Cell]]]:
    """Return header and rows of the table for people; a dash where no episode finished."""
    import numpy as np

    from acerl_np.evaluation.metrics import standard_error
    from acerl_np.problem.bundled import display_name

    def show_times(makespan: np.ndarray, tardiness: np.ndarray) -> list[Cell]:
        pairs = [*zip(makespan, tardiness, strict=True), (makespan.mean(), tardiness.mean())]
        return ["-" if np.isnan(a) else f"{a:.1f}/{b:.1f}" for a, b in pairs]

    header = ["policy", *(display_name(instance.name) for instance in instances)]
    header += ["mean", "M", "C", "P"]
    best, means = comparison.hindsight, (comparison.makespan, comparison.tardiness)
    if best:
        header += ["above hindsight", "of the way"]
    if more:
        header += [*USAGE_HEADER, "error"]
    rows: list[list[Cell]] = []
    for k, (label, trials) in enumerate(zip(labels, results, strict=True)):
        row: list[Cell] = [label]
        row += show_times(comparison.makespan[k], comparison.tardiness[k])
        row += [show_number(comparison.m[k], ".2f"), show_number(comparison.c[k], ".2f")]
        row.append(f"{comparison.p[k]:.0%}")
        if best:
            row.append(show_number(comparison.above_hindsight[k], ".1%"))
            row.append(show_number(comparison.of_the_way[k], ".0%", ""))
        if more:
            usage = [trials.mean_late(), trials.mean_waiting()]
            usage += [trials.mean_utilisation(), trials.mean_empty()]
            row += show_usage(*(float(x.mean()) for x in usage))
            both = ((trials.makespan, means[0][k]), (trials.tardiness, means[1][k]))
            errors = [standard_error(own if len(own) > 1 else x[0]) for x, own in both]
            row.append("/".join(show_number(x, ".1f") for x in errors))
        rows.append(row)
    if best:
        makespan = np.array([item.makespan for item in best])
        tardiness = np.array([item.tardiness for item in best])
        cells = show_times(makespan, tardiness)
        unknown: list[Cell] = [None] * (5 if more else 0)
        rows.append(["hindsight", *cells, None, None, "100%", "0.0%", "100%", *unknown])
    return header, rows


def explain(header: Sequence[str], n_instances: int) -> list[str]:
    """Return what the columns of the table for people mean."""
    meanings = {
        "M": "M, C: makespan and tardiness from 0, the worst policy of this table, to 1, the best; mean over "
        "the records. P: share of trials with a tardiness below the limit",
        "of the way": "of the way: share of the way, in makespan, from the best static plan for these very "
        "records (0%) to hindsight (100%)",
        "waiting, s": f"{USAGE_MEANING}; error: standard error of the mean makespan/tardiness over the "
        + ("records" if n_instances > 1 else "trials"),
    }
    cells = "Cells: mean makespan/tardiness, s."
    return [cells, *(text + "." for name, text in meanings.items() if name in header)]


def list_data(
    instances: Sequence[Instance],
    labels: Sequence[str],
    results: Sequence[Trials],
    comparison: Comparison,
    plans: Mapping[str, str],
) -> list[dict[str, object]]:
    """Return the table for programs: a row for each policy and record, and one for its mean over them."""
    import numpy as np

    from acerl_np.evaluation.metrics import satisfied_share, standard_error

    n = len(instances)
    rows: list[dict[str, object]] = []
    for k, (label, trials) in enumerate(zip(labels, results, strict=True)):
        figures = {
            "makespan_s": trials.mean_makespan(),
            "tardiness_s": trials.mean_tardiness(),
            "late_share": trials.mean_late(),
            "waiting_s": trials.mean_waiting(),
            "utilisation_share": trials.mean_utilisation(),
            "empty_share": trials.mean_empty(),
        }
        for i, name in enumerate([*trials.instances, "mean"]):
            whole = i == n
            row: dict[str, object] = {
                "policy": label,
                "record": name,
                "records": n if whole else 1,
                "trials": trials.makespan.shape[1],
                "unfinished": int(np.isnan(trials.makespan if whole else trials.makespan[i]).sum()),
            }
            row |= {key: x.mean() if whole else x[i] for key, x in figures.items()}
            spread = (trials.makespan, trials.tardiness)
            for key, x in zip(("makespan_s", "tardiness_s"), spread, strict=True):
                # Of the mean over the records, unless there is but one.
                over = figures[key] if whole and n > 1 else x[0 if whole else i]
                row[key.replace("_s", "_error_s")] = standard_error(over)
            row["satisfied_share"] = satisfied_share(
                trials.tardiness if whole else trials.tardiness[i], trials.cost_limit
            )
            row["m"] = comparison.m[k] if whole else None
            row["c"] = comparison.c[k] if whole else None
            row["above_hindsight_share"] = comparison.above_hindsight[k] if whole else None
            row["of_the_way_share"] = comparison.of_the_way[k] if whole else None
            row["plan"] = plans.get(label)
            rows.append(row)
    best = [(item.makespan, item.tardiness) for item in comparison.hindsight]
    if best:
        names = [*(instance.name for instance in instances), "mean"]
        for i, (name, pair) in enumerate(zip(names, [*best, np.mean(best, axis=0)], strict=True)):
            known = {"policy": "hindsight", "record": name, "records": n if i == n else 1}
            known |= {"makespan_s": pair[0], "tardiness_s": pair[1], "satisfied_share": 1.0}
            if i == n:
                known |= {"above_hindsight_share": 0.0, "of_the_way_share": 1.0}
            rows.append({key: known.get(key) for key in rows[0]})
    return rows
