"""Pictures of floors; matplotlib is the extra `plot`."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from acerl_np.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    cut,
    find_shape,
    open_figure,
)
from acerl_np.problem.layout import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LABELS = 200
"""Sites of a floor whose names are still drawn."""

SMALL = 40
"""Sites, and edges, of a floor that has room for large letters and for the lengths of its edges."""

KINDS = {BLUE: "o", GREY: "v", ORANGE: "D", GREEN: "s", PURPLE: "^"}
"""Colour and marker of each kind of site, the most frequent first; a floor of more kinds has one for all."""

LONGEST_NAME, LONGEST_KIND, LONGEST_ID = 60, 40, 16
"""Letters that are shown of the floor's name, of a kind and of a site's id."""


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
    shape = find_shape([site.x for site in layout.sites], [site.y for site in layout.sites])
    with open_figure(path, 8.0, 8.0 * shape + 0.8) as figure:
        axes = figure.add_subplot()
        draw_edges(axes, layout)
        draw_sites(axes, layout)
        axes.set_title(
            f"{cut(layout.name, LONGEST_NAME)}: {len(layout.sites)} sites, {len(layout.edges)} edges, "
            f"{len(layout.vehicles)} vehicles"
        )
        add_legend(figure, axes)


def add_legend(figure: Figure, axes: Axes) -> None:
    """Put what the markers mean below a floor.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes
    """
    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    columns = 3 if longest <= 20 else 2
    figure.legend(loc="outside lower center", ncols=columns)


def draw_edges(axes: Axes, layout: Layout, *, labels: Mapping[int, str] | None = None) -> None:
    """Draw edges as lines, one-way ones with an arrow, and on a small floor their lengths.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    layout : Layout
    labels : mapping of str, optional
        What stands on an edge in the place of its length, by the edge's position; others then bear nothing.
    """
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
    shown = {frozenset((edge.a, edge.b)): k for k, edge in reversed([*enumerate(layout.edges)])}
    for k in shown.values():
        edge = layout.edges[k]
        label = f"{edge.length:g} m" if labels is None else labels.get(k)
        if label is None:
            continue
        (a, b), (c, d) = place[edge.a], place[edge.b]
        axes.annotate(
            label,
            ((a + c) / 2, (b + d) / 2),
            # Beside the arrow of a one-way edge, on the line of another.
            xytext=(0, -9 if edge.one_way else 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            zorder=2.5,
        )


def draw_sites(axes: Axes, layout: Layout) -> None:
    """Draw sites by kind, their names unless there are too many, and where vehicles start.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    layout : Layout
    """
    from matplotlib.patheffects import withStroke

    small = len(layout.sites) <= SMALL
    kinds = [kind for kind, _ in Counter(site.kind for site in layout.sites).most_common()]
    if len(kinds) > len(KINDS):
        kinds = []
    for kind, (colour, marker) in zip(kinds or [""], KINDS.items(), strict=False):
        sites = [site for site in layout.sites if not kinds or site.kind == kind]
        axes.scatter(
            [site.x for site in sites],
            [site.y for site in sites],
            s=70 if small else 28,
            color=colour,
            edgecolors="white",
            linewidths=0.8,
            marker=marker,
            zorder=3,
            label=cut(kind.lstrip("_ "), LONGEST_KIND) or "site",
        )
    starts = sorted({layout.site_index[vehicle.start] for vehicle in layout.vehicles})
    axes.scatter(
        [layout.sites[k].x for k in starts],
        [layout.sites[k].y for k in starts],
        s=220 if small else 70,
        marker="s",
        facecolors="none",
        edgecolors=RED,
        linewidths=1.5,
        zorder=4,
        label="start of a vehicle",
    )
    # Names stay readable on whatever lies below them.
    halo = [withStroke(linewidth=2.0, foreground="white")]
    names = layout.sites if len(layout.sites) <= MAX_LABELS else ()
    for site in names:
        axes.annotate(
            cut(site.id, LONGEST_ID),
            (site.x, site.y),
            xytext=(8, 8) if small else (4, 4),
            textcoords="offset points",
            fontsize=11 if small else 8,
            path_effects=halo,
            zorder=5,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.09)
    axes.set(xlabel="x (m)", ylabel="y (m)")
