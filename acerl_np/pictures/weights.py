"""What an index policy has learned: the weight of each feature, or what it would cost to leave it out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from acerl_np.evaluation.importance import Importance, Part
from acerl_np.pictures.drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    Style,
    clear_rows,
    cut,
    cut_path,
    open_figure,
    write_title,
)
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW, AROUND = 9.0, 0.24, 1.3
"""Inches of the picture, of a feature's row, and of what stands above and below the rows."""

MAX_PARTS = 60
LONGEST_NAME, LONGEST_LABEL, LONGEST_EFFECT = 26, 60, 72


def sort_parts(importance: Importance) -> list[Part]:
    """Return the parts of a policy by the sizes of their weights, or by what they are worth."""
    parts = list(importance.parts)
    if all(part.weight is not None for part in parts):
        return sorted(parts, key=lambda part: -abs(part.weight or 0.0))[:MAX_PARTS]
    if importance.value is None:
        raise InputError(
            "a policy with hidden units, and no records in its file to tell what a feature is worth; "
            "expected --tasks or --suite"
        )
    return sorted(parts, key=lambda part: -(part.value or 0.0))[:MAX_PARTS]


def draw_weights(path: str | os.PathLike[str], label: str, importance: Importance) -> None:
    """Draw what each feature of an index policy does, the strongest first.

    A linear policy shows its weights; one with hidden units how much larger the objective is without each
    feature, as hidden units mix the weights.
    """
    parts = sort_parts(importance)
    with open_figure(path, WIDTH, AROUND + ROW * len(parts)) as figure:
        axes = figure.add_subplot()
        if all(part.weight is not None for part in parts):
            values = np.array([part.weight for part in parts], np.float64)
            what = "weight, per typical difference between the choices of a decision"
            title = "weights of its features, the largest first"
        else:
            base = importance.value or 0.0
            values = np.array([(part.value or np.nan) - base for part in parts])
            what = f"mean {importance.goal.objective} without the feature, less that with all"
            title = f"what its features are worth, on {importance.n_records} noised copies of the records"
        _plot_bars(axes, values, parts)
        axes.set_xlabel(what)
        dropped = len(importance.parts) - len(parts)
        left_out = f" ({dropped} more are not shown)" if dropped else ""
        write_title(figure, f"{cut_path(label, LONGEST_LABEL)}: {title}{left_out}")


def _plot_bars(axes: Axes, values: np.ndarray, parts: Sequence[Part]) -> None:
    """Draw a bar for each part, and beside the axes what it does."""
    for sign, face, hatch in ((1.0, BLUE, ""), (-1.0, ORANGE, "////")):
        own = np.flatnonzero(values * sign >= 0.0 if sign > 0.0 else values < 0.0)
        look: Style = {"color": face, "hatch": hatch, "edgecolor": BLACK, "linewidth": 0.5}
        axes.barh(own, values[own], height=0.7, **look, gid="bars")
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(parts)), [cut(part.name, LONGEST_NAME) for part in parts])
    axes.set_ylim(len(parts) - 0.4, -0.6)
    clear_rows(axes)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    # What each feature does stands at the right, as names stand at the left.
    effects = axes.secondary_yaxis("right")
    effects.set_yticks(range(len(parts)), [cut(part.effect, LONGEST_EFFECT) for part in parts])
    effects.tick_params(length=0)
    effects.spines["right"].set_visible(False)
