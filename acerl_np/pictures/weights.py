"""What an index policy has learned: the weight of each feature."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from acerl_np.evaluation.importance import Part
from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW, AROUND = 9.0, 0.24, 1.3
"""Inches of the picture, of a feature's row, and of what stands above and below the rows."""

LONGEST_NAME, LONGEST_LABEL, LONGEST_EFFECT = 26, 60, 72


def draw_weights(path: str | os.PathLike[str], label: str, parts: Sequence[Part]) -> None:
    """Draw what each feature of an index policy does, the strongest first."""
    shown = sorted(parts, key=lambda part: -abs(part.weight))
    with drawing.open_figure(path, WIDTH, AROUND + ROW * len(shown)) as figure:
        axes = figure.add_subplot()
        _plot_bars(axes, np.array([part.weight for part in shown]), shown)
        axes.set_xlabel("weight, per typical difference between the choices of a decision")
        title = "weights of its features, the largest first"
        drawing.write_title(figure, f"{drawing.cut_path(label, LONGEST_LABEL)}: {title}")


def _plot_bars(axes: Axes, values: np.ndarray, parts: Sequence[Part]) -> None:
    """Draw a bar for each part, and beside the axes what it does."""
    for sign, face, hatch in ((1.0, drawing.BLUE, ""), (-1.0, drawing.ORANGE, "////")):
        own = np.flatnonzero(values * sign >= 0.0 if sign > 0.0 else values < 0.0)
        look: Style = {"color": face, "hatch": hatch, "edgecolor": drawing.BLACK, "linewidth": 0.5}
        axes.barh(own, values[own], height=0.7, **look, gid="bars")
    axes.axvline(0.0, color=drawing.GREY, linewidth=0.8)
    axes.set_yticks(range(len(parts)), [drawing.cut(part.name, LONGEST_NAME) for part in parts])
    axes.set_ylim(len(parts) - 0.4, -0.6)
    drawing.clear_rows(axes)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    # What each feature does stands at the right, as names stand at the left.
    effects = axes.secondary_yaxis("right")
    effects.set_yticks(
        range(len(parts)), [drawing.cut(part.effect, LONGEST_EFFECT) for part in parts]
    )
    effects.tick_params(length=0)
    effects.spines["right"].set_visible(False)
