"""Training curves: how the policy did on each record as training went on, beside rules and the limit."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acerl_np.pictures.drawing import (
    BLACK,
    GREY,
    MARKERS,
    MAX_LINES,
    choose_style,
    cut,
    cut_path,
    open_figure,
)
from acerl_np.pictures.runs import MEMBERS, Line
from acerl_np.support.errors import InputError, list_some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Levels = Mapping[str, tuple[float, float]]
"""Makespan and tardiness, s, by record."""

MAX_RECORDS = 24
"""Records that have panels of their own."""

COLUMNS = 4
WIDTH, MEAN_HEIGHT, PANEL_HEIGHT, GAP, HEAD, FOOT = 9.0, 2.2, 1.3, 0.36, 0.62, 0.5
"""Inches of the picture, of the panels of the means, of the others, between and around them."""

RECORD_LETTERS, LINE_LETTERS = 24, 40

WHAT = ("makespan (s)", "tardiness (s)")


class Mean(NamedTuple):
    """A line over its seeds.

    Attributes
    ----------
    decisions : ndarray(float64, (n_looks,))
        Mean over the seeds at each generation that all of them looked at.
    centre, spread : ndarray(float64, (2, n_looks))
        Mean and standard deviation over the seeds of makespan and tardiness, s; a single seed has no
        spread: nan.
    """

    decisions: np.ndarray
    centre: np.ndarray
    spread: np.ndarray


def average_seeds(line: Line, records: Sequence[str]) -> Mean:
    """Return mean and standard deviation over the seeds of the mean over these records.

    Parameters
    ----------
    line : Line
    records : sequence of str
        Those that the line has not are left out.
    """
    common = line.looks[0].generations
    for looks in line.looks[1:]:
        common = np.intersect1d(common, looks.generations)
    decisions, values = [], []
    for looks in line.looks:
        own = np.searchsorted(looks.generations, common)
        decisions.append(looks.decisions[own])
        values.append(
            [
                np.mean([by_record[name][own] for name in records if name in by_record], axis=0)
                for by_record in (looks.makespan, looks.tardiness)
            ]
        )
    seeds = np.array(values)
    spread = seeds.std(axis=0, ddof=1) if len(seeds) > 1 else np.full(seeds.shape[1:], np.nan)
    return Mean(np.mean(decisions, axis=0), seeds.mean(axis=0), spread)


def list_records(lines: Sequence[Line]) -> list[str]:
    """Return the records of all lines, in their order."""
    names = (name for line in lines for looks in line.looks for name in looks.makespan)
    return list(dict.fromkeys(names))


def draw_curves(
    path: str | os.PathLike[str],
    lines: Sequence[Line],
    *,
    rules: Mapping[str, Levels] | None = None,
    paper: tuple[str, Levels] | None = None,
    limit: float | None = None,
) -> None:
    """Draw makespan and tardiness against decisions: the mean of the records, and each of them.

    Lines are means over seeds, bands one standard deviation to each side.

    Parameters
    ----------
    path : path-like
        Picture to write; its ending, png, svg or pdf, says in which format.
    lines : sequence of Line
    rules : mapping of Levels, optional
        Rules to draw beside them, by name; only on records that they have.
    paper : (str, Levels), optional
        What a published level is called, and the level.
    limit : float, optional
        xi on the tardiness, s.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the ending is another, there is nothing to draw, or there are too many lines.
    StorageError
        If the picture cannot be written.
    """
    if not lines:
        raise InputError("no lines to draw; expected at least one")
    if len(lines) > MAX_LINES:
        names = list_some([line.label for line in lines], 3)
        raise InputError(
            f"{len(lines)} lines ({names}); expected at most {MAX_LINES} (--only names some)"
        )
    shown = _list_panels(lines)
    blocks = math.ceil(len(shown) / COLUMNS)
    entries = len(lines) + len(rules or {}) + (paper is not None) + (limit is not None)
    height = HEAD + MEAN_HEIGHT + FOOT + _find_legend_height(lines, entries)
    height += blocks * (2 * (PANEL_HEIGHT + 0.16) + GAP)
    with open_figure(path, WIDTH, height, tidy=False) as figure:
        plot_curves(figure, lines, rules=rules, paper=paper, limit=limit)


def _count_columns(lines: Sequence[Line]) -> int:
    longest = max(len(line.label) for line in lines)
    return 4 if longest <= 22 else 2


def _find_legend_height(lines: Sequence[Line], entries: int) -> float:
    return 0.2 * math.ceil(entries / _count_columns(lines)) + 0.25


def _list_panels(lines: Sequence[Line]) -> list[str]:
    """Return the records that have panels of their own: none where the mean shows the same."""
    records = list_records(lines)
    return records[:MAX_RECORDS] if len(records) > 1 else []


def plot_curves(
    figure: Figure,
    lines: Sequence[Line],
    *,
    rules: Mapping[str, Levels] | None = None,
    paper: tuple[str, Levels] | None = None,
    limit: float | None = None,
) -> None:
    """Draw into a figure what `draw_curves` saves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    lines : sequence of Line
    rules : mapping of Levels, optional
    paper : (str, Levels), optional
    limit : float, optional
    """
    records, shown = list_records(lines), _list_panels(lines)
    height = figure.get_figheight()

    def add_panel(left: float, top: float, wide: float, tall: float) -> Axes:
        place = (left / WIDTH, 1.0 - (top + tall) / height, wide / WIDTH, tall / height)
        return figure.add_axes(place)

    figure.text(0.02, 1.0 - 0.12 / height, _describe(lines, records, shown), va="top", fontsize=10)
    handles: dict[str, Any] = {}
    for which, what in enumerate(WHAT):
        axes = add_panel(0.65 + 4.4 * which, HEAD, 3.7, MEAN_HEIGHT)
        _plot_panel(axes, which, lines, records, rules, paper, limit)
        name = f"mean of {len(records)} records" if shown else cut(records[0], RECORD_LETTERS)
        axes.set_title(f"{what.removesuffix(' (s)')}, {name}", loc="left", fontsize=10)
        axes.set(ylabel=what, xlabel="decisions (thousand)")
        own, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, own, strict=True))
    top = HEAD + MEAN_HEIGHT + FOOT
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="upper left",
        bbox_to_anchor=(0.02, 1.0 - (top - 0.05) / height),
        ncols=_count_columns(lines),
        handlelength=3.5,
        borderaxespad=0.0,
        columnspacing=1.2,
    )
    top += _find_legend_height(lines, len(handles))
    blocks = math.ceil(len(shown) / COLUMNS)
    wide = (WIDTH - 0.65 - 0.15 - 0.5 * (COLUMNS - 1)) / COLUMNS
    for k, record in enumerate(shown):
        block, column = divmod(k, COLUMNS)
        for which, what in enumerate(WHAT):
            down = block * (2 * (PANEL_HEIGHT + 0.16) + GAP) + which * (PANEL_HEIGHT + 0.16)
            axes = add_panel(0.65 + column * (wide + 0.5), top + down, wide, PANEL_HEIGHT - 0.12)
            _plot_panel(axes, which, lines, [record], rules, paper, limit, small=True)
            if which == 0:
                axes.set_title(cut(record, RECORD_LETTERS), loc="left", fontsize=9, pad=3)
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
    rules: Mapping[str, Levels] | None,
    paper: tuple[str, Levels] | None,
    limit: float | None,
    *,
    small: bool = False,
) -> None:
    """Draw one measure on the mean of some records."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = 0.0
    for k, line in enumerate(lines):
        if not any(name in line.looks[0].makespan for name in records):
            continue
        mean, style = average_seeds(line, records), choose_style(k)
        end = max(end, float(mean.decisions.max(initial=0.0)))
        axes.plot(
            mean.decisions,
            mean.centre[which],
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markersize=2.5 if small else 4.0,
            markevery=max(1, len(mean.decisions) // 8),
            linewidth=1.2 if small else 1.6,
            label=cut_path(line.label, LINE_LETTERS),
            zorder=4,
        )
        low, high = (mean.centre[which] + sign * mean.spread[which] for sign in (-1, 1))
        if np.isfinite(low).any():
            axes.fill_between(
                mean.decisions, low, high, color=style.colour, alpha=0.25, linewidth=0, zorder=2
            )
    for k, (label, levels) in enumerate((rules or {}).items()):
        level = _find_level(levels, records, which)
        if level is not None:
            axes.plot(
                [0.0, 1.02 * end],
                [level, level],
                color=GREY,
                linestyle=(0, (1, 1)),
                linewidth=0.8,
                marker=MARKERS[k + 1],
                markevery=[1],
                markerfacecolor="white",
                markersize=4.5 if small else 6.0,
                clip_on=False,
                label=label,
                zorder=5,
            )
    if paper is not None:
        level = _find_level(paper[1], records, which)
        if level is not None:
            axes.axhline(
                level, color=BLACK, linewidth=1.1, linestyle="-.", label=paper[0], zorder=3
            )
    if which == 1 and limit is not None:
        label = f"limit on the tardiness, {limit:g} s"
        axes.axhline(limit, color=BLACK, linewidth=1.2, label=label, zorder=3)
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
