"""Settings of a floor beside each other: the objective, late tasks, waiting and utilisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acerl_np.evaluation.whatif import KNOBS, UNITS, Row, Target, find_varied, group_rows
from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style
from acerl_np.support.errors import InputError
from acerl_np.support.files import FilePath

WIDTH, HEIGHT, LEGEND_ROW = 9.0, 5.4, 0.2
"""Inches of the picture, and of a line of its legend."""

SHOWN = ("utilisation", "waiting", "late", "empty")
"""What is drawn beside the objective and the measure of the target: as many as there is room for."""

LETTERS = 40
WIDE = 20.0
"""Times the smallest mean from which on a linear axis shows little."""

LINE: Style = {"markersize": 4.5, "linewidth": 1.2, "capsize": 2.5, "elinewidth": 1.0}


def draw_settings(path: FilePath, rows: Sequence[Row], target: Target | None = None) -> None:
    """Draw four measures against the first knob that varies, a line for each policy and other setting.

    Bars are standard errors, a dashed line the target, a dotted one the base. Where a measure grows as it
    does when a fleet is overrun, its axis is logarithmic above 1.
    """
    varied = find_varied(rows)
    if not varied:
        raise InputError("all settings are the base; expected another one to draw")
    groups = group_rows(rows)
    # The base may be a line of a single point, which nobody asked for.
    groups = {key: group for key, group in groups.items() if len(group) > 1} or groups
    if not 1 <= len(groups) <= drawing.MAX_LINES:
        raise InputError(f"{len(groups)} lines to draw; expected 1 to {drawing.MAX_LINES}")
    asked, goal = varied[0], rows[0].trials.goal
    own = goal.objective if goal.objective in UNITS else "value"
    more = dict.fromkeys([target.measure if target else SHOWN[0], *SHOWN])
    names = [own, *sorted([x for x in more if x != own][:3], key=list(UNITS).index)]
    with drawing.open_figure(path, WIDTH, HEIGHT + LEGEND_ROW * len(groups)) as figure:
        for name, axes in zip(names, figure.subplots(2, 2, sharex=True).flat, strict=True):
            for k, ((policy, others), group) in enumerate(groups.items()):
                x = [row.setting[asked] for row in group]
                means, errors = np.array([row.measure(name) for row in group]).T
                label = ", ".join(filter(None, (drawing.cut_path(policy, LETTERS), others)))
                bars = np.nan_to_num(errors)
                axes.errorbar(x, means, yerr=bars, label=label, **drawing.choose_style(k), **LINE)
            base = next(row.setting[asked] for row in rows if row.is_base)
            axes.axvline(base, color=drawing.GREY, linewidth=0.8, linestyle=":", zorder=0)
            unit = goal.unit if name == "value" else UNITS[name]
            axes.set_ylabel(f"{goal.objective if name == 'value' else name}{unit and f' ({unit})'}")
            if target is not None and name == target.measure:
                dashed: Style = {"color": drawing.BLACK, "linewidth": 1.2, "linestyle": "--"}
                axes.axhline(target.limit, **dashed, zorder=1)
            axes.margins(y=0.12)
            known = [mean for row in rows if np.isfinite(mean := row.measure(name)[0])]
            # Logarithmic above 1, linear below, where the means reach from few to very many.
            if known and max(known) > WIDE * max(1.0, min(known)):
                axes.set_yscale("symlog", linthresh=1.0)
                axes.yaxis.set_major_formatter("{x:g}")
                axes.set_ylim(bottom=0.0 if min(known) < 1.0 else None)
        kind = KNOBS[asked].field.kind
        for axes in figure.axes[2:]:
            axes.set_xlabel(asked.replace("_", " ") + (" (1: as given)" if kind is float else ""))
            if not isinstance(kind, tuple):
                axes.locator_params(axis="x", integer=kind is int)
        n, trials = rows[0].trials.makespan.shape
        what = f"{n} record{'s' * (n > 1)}, {trials} trial{'s' * (trials > 1)} of each"
        words = ["bars: standard errors", "dotted: as given"]
        words += [f"dashed: {target}"] if target else []
        drawing.write_title(figure, f"{what}; {', '.join(words)}")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=2)
