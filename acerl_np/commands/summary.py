"""What a training has achieved: its trials beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acerl_np.support.report import Cell, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials
    from acerl_np.evaluation.verdict import Verdict, VerdictRow
    from acerl_np.experiments.published import PublishedCell
    from acerl_np.problem.instance import Instance


MORE_HELP = "show late share, waiting, utilisation, empty travel and standard errors, too"
MORE_SEEDS_HELP = f"{MORE_HELP}; with --seeds all but the errors"

USAGE_HEADER = ("late", "waiting, s", "utilisation", "empty")
USAGE_MEANING = (
    "late: share of the tasks; waiting: from arrival to pickup; utilisation: share of the fleet's time with "
    "a task; empty: share of the metres driven without a load"
)


def show_number(value: float, form: str, unknown: str = "-") -> str:
    """Return a number as text, a dash where it is nan."""
    return unknown if math.isnan(value) else f"{value:{form}}"


def show_usage(late: float, waiting: float, utilisation: float, empty: float) -> list[Cell]:
    """Return cells below `USAGE_HEADER`."""
    shares = (show_number(late, ".0%"), show_number(waiting, ".1f"))
    return [*shares, show_number(utilisation, ".0%"), show_number(empty, ".0%")]


def find_published(instance: Instance, policy: str = "ACERL") -> PublishedCell | None:
    """Return what the paper prints of a policy on this instance, None if this is none of its records."""
    from acerl_np.experiments.published import find_row
    from acerl_np.problem.bundled import bundled_instances, load_instance

    row = find_row("comparison-train", policy)
    if row is None or instance.name not in row.cells or instance.name not in bundled_instances():
        return None
    # The paper's noised instances are not published, so only its training instances can be compared.
    if load_instance(instance.name).content_hash != instance.content_hash:
        return None
    return row.cells[instance.name]


def summarise(
    instances: Sequence[Instance],
    trials: Trials,
    *,
    on: str = "",
    policy: str = "ACERL",
    more: bool = False,
) -> str:
    """Return the final table: means over the trials beside the paper's figures.

    Parameters
    ----------
    instances : sequence of Instance
    trials : Trials
    on : str
        Which records these are.
    policy : str
        The paper's name of what was trained.
    more : bool
        Show what `USAGE_HEADER` names, and standard errors.
    """
    import numpy as np

    from acerl_np.evaluation.metrics import satisfied_share, standard_error

    def show_mean(value: float) -> str:
        return show_number(value, ".1f")

    def show_errors(makespan: np.ndarray, tardiness: np.ndarray) -> str:
        return "/".join(show_mean(standard_error(x)) for x in (makespan, tardiness))

    rows: list[list[Cell]] = []
    makespan, tardiness = trials.mean_makespan(), trials.mean_tardiness()
    cells = [find_published(instance, policy) for instance in instances]
    paper = [(cell.makespan, cell.tardiness) for cell in cells if cell is not None]
    for k, (instance, cell) in enumerate(zip(instances, cells, strict=True)):
        inside = satisfied_share(trials.tardiness[k], trials.cost_limit)
        row: list[Cell] = [
            instance.name,
            show_mean(makespan[k]),
            show_mean(tardiness[k]),
            f"{inside:.0%}",
        ]
        row += ["", ""] if cell is None else [f"{cell.makespan:.1f}", f"{cell.tardiness:.1f}"]
        rows.append(row)
    mean: list[Cell] = ["mean", show_mean(makespan.mean()), show_mean(tardiness.mean())]
    mean.append(f"{trials.satisfied:.0%}")
    mean += [f"{x:.1f}" for x in np.mean(paper, axis=0)] if len(paper) == len(rows) else ["", ""]
    rows.append(mean)
    header = ["instance", "makespan", "tardiness", "satisfied", "paper makespan", "paper tardiness"]
    if not paper:
        header, rows = header[:4], [row[:4] for row in rows]
    below = ""
    if more:
        header += [*USAGE_HEADER, "error"]
        usage = [trials.mean_late(), trials.mean_waiting()]
        usage += [trials.mean_utilisation(), trials.mean_empty()]
        for k, row in enumerate(rows[:-1]):
            row += show_usage(*(float(x[k]) for x in usage))
            row.append(show_errors(trials.makespan[k], trials.tardiness[k]))
        rows[-1] += show_usage(*(float(x.mean()) for x in usage))
        rows[-1].append(show_errors(makespan, tardiness))
        below = (
            f"{USAGE_MEANING}\nerror: standard error of the mean makespan/tardiness over the trials; in the "
            "last row over the records\n"
        )
    title = (
        f"{on}{'means' if on else 'Means'} over {trials.makespan.shape[1]} trials; satisfied: tardiness "
        f"below {trials.cost_limit:g} s"
    )
    return f"{title}\n{render_table(header, rows, rules=[len(rows) - 1])}{below}"


def tabulate_verdict(
    verdict: Verdict, *, more: bool = False
) -> tuple[str, list[str], list[list[Cell]]]:
    """Return what the columns mean, header and rows of a verdict."""
    best = verdict.best_rule
    trials = sorted({row.trials for row in verdict.rows}, reverse=True)
    ahead = f" ({trials[-1]} with lookahead)" if len(trials) > 1 else ""
    title = (
        f"Means over {trials[0]} trials{ahead}; late: share of the tasks; within: share of the trials with "
        f"a\ntardiness below {verdict.cost_limit:g} s; beside {best}, the best rule on the training records: "
        "makespan less\nthat of the rule, record by record, and its standard error"
    )
    header = ["policy", "makespan", "tardiness", "late", "within"]
    header += [f"beside {best}, s", f"beside {best}, %"]
    rows = [_show_row(row) for row in verdict.rows]
    if more:
        title += f"\n{USAGE_MEANING}"
        header += USAGE_HEADER[1:]
        for cells, row in zip(rows, verdict.rows, strict=True):
            cells += show_usage(row.late, row.waiting, row.utilisation, row.empty)[1:]
    return title, header, rows


def _show_row(row: VerdictRow) -> list[Cell]:
    show = show_number
    cells: list[Cell] = [row.label, show(row.makespan, ".1f"), show(row.tardiness, ".1f")]
    cells += [show(row.late, ".0%"), f"{row.satisfied:.0%}"]
    if row.difference is None:
        return [*cells, None, None]
    seconds, error, percent, percent_error = row.difference
    if math.isnan(error):
        return [*cells, f"{show(seconds, '+.1f')} (too few to tell)", show(percent, "+.1f")]
    return [*cells, f"{seconds:+.1f} ± {error:.1f}", f"{percent:+.1f} ± {percent_error:.1f}"]
