"""What the instance sampler chose: each record's share of a generation's episodes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from acerl_np.pictures.drawing import BLACK, BLUE, GREY, ORANGE, cut, cut_path, open_figure
from acerl_np.pictures.runs import Counts
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS, MAX_RECORDS = 4, 24
WIDTH, PANEL_HEIGHT, AROUND = 9.0, 1.55, 1.0
"""Inches of the picture, of a panel, and of what stands above and below them."""

POINTS = 32
"""Most points of a line: generations are averaged until there are no more."""

LONGEST_NAME, LONGEST_LABEL = 20, 40


def find_shares(runs: Sequence[Counts]) -> np.ndarray:
    """Return each record's share of the episodes of each generation, over all runs together.

    Parameters
    ----------
    runs : sequence of Counts
        One for each seed; what some have more generations than others is left out.

    Returns
    -------
    ndarray(float64, (n_generations, n_records))
        nan where nobody played.

    Raises
    ------
    InputError
        If the runs are of different records.
    """
    for run in runs:
        if run.names != runs[0].names:
            raise InputError(
                f"runs on different records: {', '.join(runs[0].names[:3])} and {', '.join(run.names[:3])}"
            )
    n = min(len(run.generations) for run in runs)
    members = np.sum([run.members[:n] for run in runs], axis=0)
    total = members.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0.0, members / np.maximum(total, 1.0), np.nan))


def average_blocks(shares: np.ndarray, most: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle generation and the mean shares of blocks of generations, at most so many.

    Parameters
    ----------
    shares : ndarray(float64, (n_generations, n_records))
    most : int

    Returns
    -------
    generations : ndarray(float64, (n_blocks,))
        Counted from 1.
    means : ndarray(float64, (n_blocks, n_records))
    """
    blocks = np.array_split(np.arange(len(shares)), min(most, len(shares)))
    middle = [1.0 + block.mean() for block in blocks]
    return np.array(middle), np.array([shares[block].mean(axis=0) for block in blocks])


def draw_sampler(path: str | os.PathLike[str], label: str, runs: Sequence[Counts]) -> None:
    """Draw each record's share of the episodes over the generations, beside the uniform share.

    Parameters
    ----------
    path : path-like
        Picture to write; its ending, png, svg or pdf, says in which format.
    label : str
        What the runs are called.
    runs : sequence of Counts
        One for each seed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the ending is another, or the runs are of different records.
    StorageError
        If the picture cannot be written.
    """
    find_shares(runs)
    shown = min(MAX_RECORDS, len(runs[0].names))
    height = AROUND + PANEL_HEIGHT * math.ceil(shown / COLUMNS)
    with open_figure(path, WIDTH, height) as figure:
        plot_sampler(figure, label, runs)


def plot_sampler(figure: Figure, label: str, runs: Sequence[Counts]) -> None:
    """Draw into a figure what `draw_sampler` saves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    label : str
    runs : sequence of Counts
    """
    shares = find_shares(runs)
    names, uniform = runs[0].names, 100.0 / len(runs[0].names)
    total = (
        100.0 * np.nanmean(shares, axis=0) if np.isfinite(shares).any() else np.zeros(len(names))
    )
    # Those that the sampler treats least like the others, in their order.
    chosen = sorted(np.argsort(-np.abs(total - uniform), kind="stable")[:MAX_RECORDS].tolist())
    generations, means = average_blocks(100.0 * shares)
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(chosen) :]:
        axes.set_visible(False)
    for place, (axes, k) in enumerate(zip(panels.flat, chosen, strict=False)):
        line = means[:, k]
        more = {"hatch": "////", "facecolor": ORANGE, "edgecolor": BLACK}
        less = {"facecolor": BLUE, "alpha": 0.3}
        for where, look in ((line >= uniform, more), (line <= uniform, less)):
            own = "chosen more often" if look is more else "chosen less often"
            axes.fill_between(
                generations,
                uniform,
                line,
                where=where,
                interpolate=True,
                linewidth=0.0,
                label=f"{own} than evenly",
                **look,
            )
        axes.plot(generations, line, color=BLACK, linewidth=1.2, label="share of the episodes")
        axes.axhline(
            uniform, color=GREY, linestyle="--", linewidth=1.2, label=f"even share, {uniform:.1f}%"
        )
        axes.set_title(f"{cut(names[k], LONGEST_NAME)}: {total[k]:.1f}%", loc="left", fontsize=9)
        if place % columns == 0:
            axes.set_ylabel("share (%)")
        if place + columns >= len(chosen):
            axes.set_xlabel("generation")
            axes.tick_params(labelbottom=True)
    panels[0, 0].set_ylim(bottom=0.0)
    seeds = f", {len(runs)} seeds together" if len(runs) > 1 else ""
    left_out = f"; {len(chosen)} of {len(names)} records" if len(chosen) < len(names) else ""
    figure.suptitle(
        f"{cut_path(label, LONGEST_LABEL)}: each record's share of the episodes; in each title: of all"
        f"{seeds}{left_out}",
        fontsize=10,
        x=0.01,
        ha="left",
    )
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower left", ncols=4)
