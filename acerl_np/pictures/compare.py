"""Policies beside each other on the same records: each record's means joined, and the mean of all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from acerl_np.evaluation.trials import Trials
from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW, AROUND = 9.0, 0.5, 1.75
"""Inches of the picture, of a policy's row, and of what stands above and below the rows."""

LETTERS, LINES = 32, 3
"""Of a line of a policy's name, and lines that it may have."""

FAR = 4.0
"""A policy ends the axis if the axis would be so many times as long with it: the others would be one blot."""

RECORD: Style = {
    **{"color": drawing.GREY, "linewidth": 0.6, "zorder": 2},
    **{"marker": "o", "markersize": 3.5, "markerfacecolor": "white"},
}
MEAN: Style = {
    **{"color": drawing.BLUE, "zorder": 4, "fmt": "D", "markersize": 7},
    **{"elinewidth": 2.0, "capsize": 4.0},
}
"""Looks of a record's line, and of a policy's mean."""


def compare_records(by_record: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error of policies' differences to the first, record by record.

    Of means of shape (n_policies, n_records); the errors of fewer than two records are nan.
    """
    paired = by_record - by_record[0]
    n = by_record.shape[1]
    error = paired.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(by_record), np.nan)
    return paired.mean(axis=1), error


def find_far(by_record: np.ndarray) -> np.ndarray:
    """Return which policies are so far above the others that an axis with them would hide those.

    From the better half on, of at least two, each is looked at in the order of the means, (n_policies,)
    bool; all from the first on that is too far are left out. Of means of shape (n_policies, n_records).
    """
    means = np.nan_to_num(by_record.mean(axis=1), nan=np.inf)
    order = np.argsort(means, kind="stable")
    far = np.zeros(len(means), bool)
    for n in range(max(2, (len(means) + 1) // 2), int(np.isfinite(means).sum())):
        near, more = by_record[order[:n]], by_record[order[: n + 1]]
        if np.ptp(more) > FAR * np.ptp(near) > 0.0:
            far[order[n:]] = np.isfinite(means[order[n:]])
            break
    return far


def draw_comparison(
    path: str | os.PathLike[str], labels: Sequence[str], results: Sequence[Trials]
) -> None:
    """Draw objective and cost of policies on the same records, a row for each policy.

    Where both are the same, the makespan stands in the objective's place.
    """
    if not 1 <= len(results) <= drawing.MAX_LINES:
        raise InputError(f"{len(results)} policies; expected 1 to {drawing.MAX_LINES}")
    names = [drawing.wrap(drawing.cut_path(x, 80), LETTERS, LINES) for x in labels]
    row = ROW + 0.14 * max(0, max(name.count("\n") for name in names) - 1)
    with drawing.open_figure(path, WIDTH, AROUND + row * len(results)) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        goal, values = results[0].goal, np.array([x.mean_value() for x in results])
        costs = np.array([x.mean_cost() for x in results])
        _plot_measure(right, costs, f"{goal.cost}{goal.cost_unit and f' ({goal.cost_unit})'}")
        if goal.objective == goal.cost:
            goal = replace(goal, objective="makespan")
            values = np.array([x.mean_makespan() for x in results])
        what = f"{goal.objective}{goal.unit and f' ({goal.unit})'}"
        _plot_measure(left, values, what, goal.format)
        limit = goal.cost_limit
        if goal.has_limit and (limit < right.get_xlim()[1] or not find_far(costs).any()):
            right.axvline(limit, color=drawing.BLACK, linewidth=1.2, linestyle="--", zorder=1)
            above: Style = {"transform": right.get_xaxis_transform(), "fontsize": 8}
            right.text(limit, 1.01, f"limit {goal.limit}", ha="center", va="bottom", **above)
        n, trials = results[0].makespan.shape
        if goal.has_limit:
            kept = [f"{x.satisfied:.0%} within limit" for x in results]
            names = [f"{name}\n{share}" for name, share in zip(names, kept, strict=True)]
        left.set_yticks(range(len(labels)), names)
        left.set_ylim(len(labels) - 0.45, -0.6)
        means = f"means over {trials} trial{'s' * (trials > 1)} of each"
        title = f"{len(labels)} policies on {n} record{'s' * (n > 1)}, {means}"
        drawing.write_title(figure, title)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)


def _plot_measure(axes: Axes, by_record: np.ndarray, what: str, form: str = ".1f") -> None:
    """Draw one measure: a thin line for each record, a large marker for the mean."""
    means, rows = by_record.mean(axis=1), np.arange(len(by_record))
    difference, error = compare_records(by_record)
    far = find_far(by_record)
    for k, record in enumerate(by_record.T):
        axes.plot(record, rows, **RECORD, label="a record" if k == 0 else None)
    for row in rows.tolist():
        axes.axhline(row, color=drawing.PALE, linewidth=0.6, zorder=0)
    what_bars = "bar: standard error of the difference to the first, record by record"
    shown, bars = np.where(far, np.nan, means), np.nan_to_num(error, posinf=0.0)
    axes.errorbar(shown, rows, xerr=bars, **MEAN, label=f"mean; {what_bars}")
    if far.any():
        near = by_record[~far]
        low, high = np.nanmin(near), np.nanmax(near)
        axes.set_xlim(low - 0.2 * (high - low), high + 0.3 * (high - low))
    for row, mean in enumerate(means):
        if np.isnan(mean):
            continue
        text = f"{mean:,{form}}"
        if row > 0:
            text += f" ({difference[row]:+z,{form}}".replace("-", "−")
            text += ")" if np.isnan(error[row]) else f" ± {error[row]:,{form}})"
        ground: Style = {**drawing.GROUND, "pad": 0.5, "alpha": 0.85}
        if far[row]:
            edge: Style = {"transform": axes.get_yaxis_transform(), "clip_on": False, "zorder": 5}
            axes.plot([1.0], [row], marker=">", color=drawing.BLUE, markersize=8, **edge)
            place: Style = {"xycoords": edge["transform"], "ha": "right", "va": "bottom"}
            drawing.write_beside(axes, text, (1.0, row), (2, 8), bbox=ground, zorder=5, **place)
            continue
        drawing.write_beside(axes, text, (mean, row), (0, 8), va="bottom", bbox=ground, zorder=5)
    axes.set_xlabel(what + ("; ▶: beyond the axis" if far.any() else ""))
    if not far.any():
        axes.margins(x=0.12)
    drawing.clear_rows(axes)
