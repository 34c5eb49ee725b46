"""How trainings went: curves of the policy beside rules and the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style
from acerl_np.pictures.runs import MEMBERS, Line
from acerl_np.problem.goal import find_unit
from acerl_np.support.errors import InputError, list_some
from acerl_np.support.files import FilePath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Levels = Mapping[str, tuple[float, float]]
"""Makespan and tardiness, s, by record."""


class Beside(NamedTuple):
    """What is drawn beside the lines of curves: rules by name, a published level and its name, and xi, s.

    The objective is what the lines show first.
    """

    rules: Mapping[str, Levels] = MappingProxyType({})
    paper: tuple[str, Levels] | None = None
    limit: float | None = None
    objective: str = "makespan"

    @property
    def what(self) -> tuple[tuple[str, str], ...]:
        """What the two panels show, and how their axes say it with a unit."""
        unit = find_unit(self.objective)
        first = f"{self.objective}{unit and f' ({unit})'}"
        return (self.objective, first), ("tardiness", "tardiness (s)")


ALONE = Beside()


COLUMNS, WIDTH, MAX_RECORDS = 4, 9.0, 24
"""Panels side by side, inches of a picture, and most records that have panels of their own."""

MEAN_HEIGHT, PANEL_HEIGHT, GAP, HEAD, FOOT = 2.2, 1.3, 0.36, 0.62, 0.5
"""Inches of the panels of the means, of the others, between and around them."""

RECORD_LETTERS, LINE_LETTERS = 24, 40

RULE: dict[str, Any] = {
    **{"color": drawing.GREY, "linestyle": (0, (1, 1)), "linewidth": 0.8, "zorder": 5},
    **{"markevery": [1], "markerfacecolor": "white", "clip_on": False},
}
"""Look of a rule's level."""


class Mean(NamedTuple):
    """A line over its seeds, at each generation that all of them looked at.

    Mean decisions; mean and standard deviation of makespan and tardiness, s, of shape (2, n_looks). A single
    seed has no spread: nan.
    """

    decisions: np.ndarray
    centre: np.ndarray
    spread: np.ndarray


def average_seeds(line: Line, records: Sequence[str]) -> Mean:
    """Return mean and deviation over the seeds of the mean over these records, those that the line has."""
    common = line.looks[0].generations
    for looks in line.looks[1:]:
        common = np.intersect1d(common, looks.generations)
    decisions, values = [], []
    for looks in line.looks:
        own = np.searchsorted(looks.generations, common)
        decisions.append(looks.decisions[own])
        known = [looks.values[name][:, own] for name in records if name in looks.values]
        values.append(np.mean(known, axis=0))
    seeds = np.array(values)
    spread = seeds.std(axis=0, ddof=1) if len(seeds) > 1 else np.full(seeds.shape[1:], np.nan)
    return Mean(np.mean(decisions, axis=0), seeds.mean(axis=0), spread)


def list_records(lines: Sequence[Line]) -> list[str]:
    """Return the records of all lines, in their order."""
    names = (name for line in lines for looks in line.looks for name in looks.values)
    return list(dict.fromkeys(names))


def draw_curves(path: FilePath, lines: Sequence[Line], beside: Beside = ALONE) -> None:
    """Draw makespan, or the objective, and tardiness against decisions.

    Panels show the mean of the records, and each of them. Lines are means over seeds, bands one standard
    deviation to each side.
    """
    if not lines:
        raise InputError("no lines to draw; expected at least one")
    if len(lines) > drawing.MAX_LINES:
        names = list_some([line.label for line in lines], 3)
        raise InputError(
            f"{len(lines)} lines ({names}); expected at most {drawing.MAX_LINES} (--only names some)"
        )
    records = list_records(lines)
    # No panels of their own where the mean shows the same.
    shown = records[:MAX_RECORDS] if len(records) > 1 else []
    blocks = math.ceil(len(shown) / COLUMNS)
    entries = len(lines) + len(beside.rules)
    entries += sum(x is not None for x in (beside.paper, beside.limit))
    columns = 4 if max(len(line.label) for line in lines) <= 22 else 2

    def measure_legend(entries: int) -> float:
        return 0.2 * math.ceil(entries / columns) + 0.25

    height = HEAD + MEAN_HEIGHT + FOOT + measure_legend(entries)
    titles = [drawing.wrap(record, RECORD_LETTERS) for record in shown]
    gap = GAP + 0.15 * any("\n" in title for title in titles)
    height += blocks * (2 * (PANEL_HEIGHT + 0.16) + gap)
    with drawing.open_figure(path, WIDTH, height, tidy=False) as figure:

        def add_panel(left: float, top: float, wide: float, tall: float) -> Axes:
            place = (left / WIDTH, 1.0 - (top + tall) / height, wide / WIDTH, tall / height)
            return figure.add_axes(place)

        title = _describe(lines, records, shown)
        figure.text(0.02, 1.0 - 0.12 / height, title, va="top", fontsize=10)
        handles: dict[str, Any] = {}
        for which, (short, what) in enumerate(beside.what):
            axes = add_panel(0.65 + 4.4 * which, HEAD, 3.7, MEAN_HEIGHT)
            _plot_panel(axes, which, lines, records, beside)
            name = drawing.cut(records[0], 2 * RECORD_LETTERS)
            name = f"mean of {len(records)} records" if shown else name
            axes.set_title(f"{short}, {name}", loc="left", fontsize=10)
            axes.set(ylabel=what, xlabel="decisions (thousand)")
            own, labels = axes.get_legend_handles_labels()
            handles.update(zip(labels, own, strict=True))
        top = HEAD + MEAN_HEIGHT + FOOT
        place: Style = {"loc": "upper left", "bbox_to_anchor": (0.02, 1.0 - (top - 0.05) / height)}
        spaces: Style = {"handlelength": 3.5, "borderaxespad": 0.0, "columnspacing": 1.2}
        figure.legend(handles.values(), handles.keys(), ncols=columns, **place, **spaces)
        top += measure_legend(len(handles)) + gap - GAP
        wide = (WIDTH - 0.65 - 0.15 - 0.5 * (COLUMNS - 1)) / COLUMNS
        for k, record in enumerate(shown):
            block, column = divmod(k, COLUMNS)
            for which, (_, what) in enumerate(beside.what):
                down = block * (2 * (PANEL_HEIGHT + 0.16) + gap) + which * (PANEL_HEIGHT + 0.16)
                left = 0.65 + column * (wide + 0.5)
                axes = add_panel(left, top + down, wide, PANEL_HEIGHT - 0.12)
                _plot_panel(axes, which, lines, [record], beside, small=True)
                if which == 0:
                    axes.set_title(titles[k], loc="left", fontsize=9, pad=3)
                    axes.tick_params(labelbottom=False)
                elif block == blocks - 1 or k + COLUMNS >= len(shown):
                    axes.set_xlabel("decisions (thousand)")
                if column == 0:
                    axes.set_ylabel(what)


def _describe(lines: Sequence[Line], records: Sequence[str], shown: Sequence[str]) -> str:
    """Return the picture's title."""
    seeds = {len(line.looks) for line in lines}
    text = "The policy during training"
    if records == [MEMBERS]:
        text = "The search's members during training (no looks at the policy itself)"
    if max(seeds) > 1:
        number = f"{min(seeds)}" if len(seeds) == 1 else f"up to {max(seeds)}"
        text += f": mean over {number} seeds, band: ± 1 standard deviation"
    if shown and len(shown) < len(records):
        text += f"; below: the first {len(shown)} of {len(records)} records"
    return text


def _plot_panel(
    axes: Axes,
    which: int,
    lines: Sequence[Line],
    records: Sequence[str],
    beside: Beside,
    *,
    small: bool = False,
) -> None:
    """Draw one measure on the mean of some records."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = 0.0
    sizes: Style = {"markersize": 2.5 if small else 4.0, "linewidth": 1.2 if small else 1.6}
    for k, line in enumerate(lines):
        if not any(name in line.looks[0].values for name in records):
            continue
        decisions, centres, spreads = average_seeds(line, records)
        centre, spread = centres[which], spreads[which]
        look: Style = {**drawing.choose_style(k), **sizes, "markevery": max(1, len(decisions) // 8)}
        end = max(end, float(decisions.max(initial=0.0)))
        label = drawing.cut_path(line.label, LINE_LETTERS)
        axes.plot(decisions, centre, **look, label=label, zorder=4)
        if np.isfinite(spread).any():
            band: Style = {"color": look["color"], "alpha": 0.25, "linewidth": 0, "zorder": 2}
            axes.fill_between(decisions, centre - spread, centre + spread, **band)
    for k, (label, levels) in enumerate(beside.rules.items()):
        level = _find_level(levels, records, which)
        if level is not None:
            size: Style = {"marker": drawing.MARKERS[k + 1], "markersize": 4.5 if small else 6.0}
            axes.plot([0.0, 1.02 * end], [level, level], **RULE, **size, label=label)
    thin: dict[str, Any] = {"color": drawing.BLACK, "zorder": 3}
    label, levels = beside.paper or ("", {})
    level = _find_level(levels, records, which)
    if level is not None:
        axes.axhline(level, linewidth=1.1, linestyle="-.", label=label, **thin)
    if which == 1 and beside.limit is not None:
        label = f"limit on the tardiness, {beside.limit:g} s"
        axes.axhline(beside.limit, linewidth=1.2, label=label, **thin)
    axes.set_xlim(0.0, 1.02 * end if end > 0.0 else 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(4 if small else 7))
    axes.yaxis.set_major_locator(MaxNLocator(4 if small else 6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000.0:,g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(axis="y", color="0.92", zorder=0)


def _find_level(levels: Levels, records: Sequence[str], which: int) -> float | None:
    """Return the mean level over the records, None if one has none."""
    found = [levels[name][which] for name in records if name in levels]
    return float(np.mean(found)) if len(found) == len(records) else None
