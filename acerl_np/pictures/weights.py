"""What an index policy has learned: the weight of each feature."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from acerl_np.evaluation.importance import Part
from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style

WIDTH, ROW, AROUND = 9.0, 0.24, 1.3
"""Inches of the picture, of a feature's row, and of what stands above and below the rows."""

LONGEST_NAME, LONGEST_LABEL, LONGEST_EFFECT = 26, 60, 72


def draw_weights(path: str | os.PathLike[str], label: str, parts: Sequence[Part]) -> None:
    """Draw a bar for each feature of an index policy, the strongest first, and beside it what it does."""
    shown = sorted(parts, key=lambda part: -abs(part.weight))
    values, rows = np.array([part.weight for part in shown]), range(len(shown))
    with drawing.open_figure(path, WIDTH, AROUND + ROW * len(shown)) as figure:
        axes = figure.add_subplot()
        for sign, face, hatch in ((1.0, drawing.BLUE, ""), (-1.0, drawing.ORANGE, "////")):
            own = np.flatnonzero(values * sign >= 0.0 if sign > 0.0 else values < 0.0)
            edge: Style = {"edgecolor": drawing.BLACK, "linewidth": 0.5, "hatch": hatch}
            axes.barh(own, values[own], height=0.7, color=face, **edge, gid="bars")
        axes.axvline(0.0, color=drawing.GREY, linewidth=0.8)
        axes.set_yticks(rows, [drawing.cut(part.name, LONGEST_NAME) for part in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        drawing.clear_rows(axes)
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
        # What each feature does stands at the right, as names stand at the left.
        effects = axes.secondary_yaxis("right")
        effects.set_yticks(rows, [drawing.cut(part.effect, LONGEST_EFFECT) for part in shown])
        effects.tick_params(length=0)
        effects.spines["right"].set_visible(False)
        axes.set_xlabel("weight, per typical difference between the choices of a decision")
        title = "weights of its features, the largest first"
        drawing.write_title(figure, f"{drawing.cut_path(label, LONGEST_LABEL)}: {title}")
