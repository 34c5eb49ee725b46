"""Pictures of floors; matplotlib is the extra `plot`."""

from __future__ import annotations

import io
import math
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.problem.layout import Layout
from acerl_np.support.errors import InputError, MissingExtraError
from acerl_np.support.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg", "pdf")

MAX_LABELS = 200
"""Sites of a floor whose names are still drawn."""

SMALL = 40
"""Sites, and edges, of a floor that has room for large letters and for the lengths of its edges."""

KINDS = {"tab:blue": "o", "0.5": "o", "tab:orange": "D", "tab:green": "s", "tab:purple": "^"}
"""Colour and marker of each kind of site, the most frequent first; a floor of more kinds has one for all."""

LONGEST_KIND = 40
"""Letters of a kind that the legend shows."""


def draw_layout(layout: Layout, path: str | os.PathLike[str]) -> None:
    """Draw a floor: sites with their names, edges (arrows where one-way), starts of the fleet.

    On a small floor every edge shows its length.

    Parameters
    ----------
    layout : Layout
    path : path-like
        Picture to write; its ending, png, svg or pdf, says in which format.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the ending is another.
    StorageError
        If the picture cannot be written.
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(
            f"{path}: ends in '{form}'; expected a picture's name in {', '.join(FORMATS)}"
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "matplotlib is not installed; install it with: pip install 'acerl_np[plot]'"
        ) from error
    x, y = [site.x for site in layout.sites], [site.y for site in layout.sites]
    width, height = max(x) - min(x), max(y) - min(y)
    shape = min(max(height / width, 0.3), 1.5) if width > 0.0 else 1.0
    figure = Figure(figsize=(8.0, 8.0 * shape + 0.8), layout="constrained")
    axes = figure.add_subplot()
    _draw_edges(axes, layout)
    _draw_sites(axes, layout)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.09)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel="x (m)", ylabel="y (m)")
    axes.set_title(
        f"{layout.name}: {len(layout.sites)} sites, {len(layout.edges)} edges, "
        f"{len(layout.vehicles)} vehicles",
        parse_math=False,
    )
    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    columns = 3 if longest <= 20 else 2
    legend = figure.legend(loc="outside lower center", ncols=columns, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are boxes, which shows
        figure.savefig(picture, format=form, dpi=120)
    write_atomically(path, picture.getvalue())


def _draw_edges(axes: Axes, layout: Layout) -> None:
    """Draw edges as lines, one-way ones with an arrow, and on a small floor their lengths."""
    place = {site.id: (site.x, site.y) for site in layout.sites}
    # Drawn in one stroke, not edge by edge: floors have up to 100,000.
    gap = (math.nan, math.nan)
    lines = [point for edge in layout.edges for point in (place[edge.a], place[edge.b], gap)]
    if lines:
        thick = 2.0 if len(layout.edges) <= SMALL else 1.0
        axes.plot(*zip(*lines, strict=True), color="0.7", linewidth=thick, zorder=1)
    arrows = [(*place[edge.a], *place[edge.b]) for edge in layout.edges if edge.one_way]
    if arrows:
        lengths = [math.hypot(c - a, d - b) or 1.0 for a, b, c, d in arrows]
        axes.quiver(
            [(a + c) / 2 for a, b, c, d in arrows],
            [(b + d) / 2 for a, b, c, d in arrows],
            [(c - a) / length for (a, b, c, d), length in zip(arrows, lengths, strict=True)],
            [(d - b) / length for (a, b, c, d), length in zip(arrows, lengths, strict=True)],
            angles="xy",
            scale=60,
            pivot="mid",
            width=0.002,
            headwidth=5,
            headlength=5,
            headaxislength=5,
            color="0.4",
            zorder=2,
        )
    if len(layout.edges) > SMALL:
        return
    # Opposite one-way edges share a place; the first of them is shown.
    shown = {frozenset((edge.a, edge.b)): edge for edge in reversed(layout.edges)}
    for edge in shown.values():
        (a, b), (c, d) = place[edge.a], place[edge.b]
        axes.annotate(
            f"{edge.length:g} m",
            ((a + c) / 2, (b + d) / 2),
            # Beside the arrow of a one-way edge, on the line of another.
            xytext=(0, -9 if edge.one_way else 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            zorder=1.5,
        )


def _draw_sites(axes: Axes, layout: Layout) -> None:
    """Draw sites by kind, their names unless there are too many, and where vehicles start."""
    small = len(layout.sites) <= SMALL
    kinds = [kind for kind, _ in Counter(site.kind for site in layout.sites).most_common()]
    if len(kinds) > len(KINDS):
        kinds = []
    for kind, (colour, marker) in zip(kinds or [""], KINDS.items(), strict=False):
        sites = [site for site in layout.sites if not kinds or site.kind == kind]
        axes.scatter(
            [site.x for site in sites],
            [site.y for site in sites],
            s=60 if small else 18,
            color=colour,
            marker=marker,
            zorder=3,
            label=kind.lstrip("_ ")[:LONGEST_KIND] or "site",
        )
    starts = sorted({layout.site_index[vehicle.start] for vehicle in layout.vehicles})
    axes.scatter(
        [layout.sites[k].x for k in starts],
        [layout.sites[k].y for k in starts],
        s=220 if small else 70,
        marker="s",
        facecolors="none",
        edgecolors="tab:red",
        linewidths=1.5,
        zorder=4,
        label="start of a vehicle",
    )
    if len(layout.sites) > MAX_LABELS:
        return
    for site in layout.sites:
        axes.annotate(
            site.id,
            (site.x, site.y),
            xytext=(8, 8) if small else (4, 4),
            textcoords="offset points",
            fontsize=11 if small else 8,
            parse_math=False,
            zorder=5,
        )
