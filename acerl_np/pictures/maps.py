"""Pictures of floors: sites, edges and starts; and how busy each edge was in an episode."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from acerl_np.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    GROUND,
    ORANGE,
    PURPLE,
    RED,
    Style,
    cut,
    open_figure,
    write_beside,
)
from acerl_np.problem.layout import Layout
from acerl_np.simulation.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LABELS = 200
"""Sites of a floor whose names are still drawn."""

SMALL = 40
"""Sites, and edges, of a floor that has room for large letters and for the lengths of its edges."""

KINDS = {BLUE: "o", GREY: "v", ORANGE: "D", GREEN: "s", PURPLE: "^"}
"""Colour and marker of each kind of site, the most frequent first; a floor of more kinds has one for all."""

LONGEST_NAME, LONGEST_LABEL, LONGEST_KIND, LONGEST_ID = 60, 40, 40, 16
"""Letters that are shown of the floor's name, of a policy's or record's, of a kind and of a site's id."""

WIDEST, WIDEST_OF_MANY, NARROWEST = 9.0, 6.5, 1.5
"""Points: lines of the busiest edge, on small floors and on others, and of one that was hardly taken."""

COLOURS, LIGHTEST = "viridis_r", 0.1
"""From light to dark, also in grey and for those who see fewer colours; what is lighter is lost on white."""


ARROW: Style = {
    **{"angles": "xy", "scale": 60, "pivot": "mid", "width": 0.002, "color": "0.4", "zorder": 2},
    **{"headwidth": 5, "headlength": 5, "headaxislength": 5},
}
"""Look of a one-way edge's arrow."""


@contextmanager
def _open_map(
    path: str | os.PathLike[str], layout: Layout, width: float, tall: float, above: float
) -> Iterator[tuple[Figure, Axes]]:
    """Open a picture as high as its floor, and write at its end below it what the markers mean."""
    x, y = ([getattr(site, which) for site in layout.sites] for which in "xy")
    wide, deep = max(x) - min(x), max(y) - min(y)
    shape = min(max(deep / wide, 0.3), 1.5) if wide > 0.0 else 1.0
    with open_figure(path, width, tall * shape + above) as figure:
        axes = figure.add_subplot()
        yield figure, axes
        longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
        figure.legend(loc="outside lower center", ncols=3 if longest <= 20 else 2)


def draw_layout(layout: Layout, path: str | os.PathLike[str]) -> None:
    """Draw a floor: sites with their names, edges (arrows where one-way), starts of the fleet.

    On a small floor every edge shows its length.
    """
    with _open_map(path, layout, 8.0, 8.0, 0.8) as (_, axes):
        _plot_edges(axes, layout)
        _plot_sites(axes, layout)
        axes.set_title(
            f"{cut(layout.name, LONGEST_NAME)}: {len(layout.sites)} sites, {len(layout.edges)} edges, "
            f"{len(layout.vehicles)} vehicles"
        )


def count_traffic(trace: Trace) -> np.ndarray:
    """Return how often each edge of the floor was taken in an episode, either way; half of one counts half.

    Two rows, with and without a task on the vehicle; of edges between the same two sites the first has all.
    """
    layout = trace.instance.layout
    index = layout.site_index
    place: dict[frozenset[int], int] = {}
    for position, edge in enumerate(layout.edges):
        place.setdefault(frozenset((index[edge.a], index[edge.b])), position)
    passes = np.zeros((2, len(layout.edges)))
    for trip in trace.trips:
        for step in trip.steps:
            k = place.get(frozenset((step.origin, step.target)))
            if step.origin != step.target and k is not None:
                passes[int(not step.loaded), k] += step.last - step.first
    return passes


def draw_traffic(path: str | os.PathLike[str], trace: Trace) -> None:
    """Draw a floor with its edges as wide and as dark as they were busy."""
    layout, instance = trace.instance.layout, trace.instance
    loaded, empty = count_traffic(trace)
    passes = loaded + empty
    whole = float(passes.sum())
    hours = max(trace.end, 1) / 3600.0
    rate = passes / hours
    busy = np.flatnonzero(passes > 0.0)
    small = len(layout.edges) <= SMALL
    labels = {}
    if small:
        labels = {k: f"{rate[k]:.3g} ({empty[k] / passes[k]:.0%})" for k in busy.tolist()}
    with _open_map(path, layout, 9.0, 7.5, 1.3) as (figure, axes):
        import matplotlib
        from matplotlib.collections import LineCollection
        from matplotlib.colors import ListedColormap

        _plot_edges(axes, layout, labels=labels)
        place = {site.id: (site.x, site.y) for site in layout.sites}
        busiest = float(rate.max(initial=0.0)) or 1.0
        order = busy[np.argsort(rate[busy], kind="stable")]  # the busiest lie on top
        widest = WIDEST if small else WIDEST_OF_MANY
        colours = matplotlib.colormaps[COLOURS](np.linspace(LIGHTEST, 1.0, 256))
        ways = [[place[layout.edges[k].a], place[layout.edges[k].b]] for k in order]
        widths = NARROWEST + (widest - NARROWEST) * rate[order] / busiest
        look: Style = {"cmap": ListedColormap(colours), "capstyle": "round", "zorder": 1.8}
        lines = LineCollection(ways, linewidths=widths, **look)
        lines.set_array(rate[order])
        lines.set_clim(0.0, busiest)
        axes.add_collection(lines)
        _plot_sites(axes, layout)
        bar = figure.colorbar(lines, ax=axes, shrink=0.8, pad=0.02)
        bar.set_label("drives along an edge, per hour")
        bar.outline.set_visible(False)
        idle = float(empty.sum()) / whole if whole > 0.0 else 0.0
        explained = "\non each edge: drives an hour (and how much of that was without a load)"
        axes.set_title(
            f"{cut(trace.label, LONGEST_LABEL)} on {cut(instance.name, LONGEST_LABEL)}: {whole:,.0f} drives "
            f"along an edge in {hours:.1f} h, {idle:.0%} without a load{explained if labels else ''}"
        )


def _plot_edges(axes: Axes, layout: Layout, *, labels: Mapping[int, str] | None = None) -> None:
    """Draw edges as lines, one-way ones with an arrow, and on a small floor their lengths or `labels`.

    Of labels, by the edge's position, those that are not given stay empty.
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
        both = [(*arrow, length) for arrow, length in zip(arrows, lengths, strict=True)]
        axes.quiver(
            [(a + c) / 2 for a, _, c, _, _ in both],
            [(b + d) / 2 for _, b, _, d, _ in both],
            [(c - a) / length for a, _, c, _, length in both],
            [(d - b) / length for _, b, _, d, length in both],
            **ARROW,
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
        # Beside the arrow of a one-way edge, on the line of another.
        shift = (0, -9 if edge.one_way else 0)
        look: Style = {
            "va": "center",
            "color": "0.35",
            "bbox": {**GROUND, "pad": 1.0},
            "zorder": 2.5,
        }
        write_beside(axes, label, ((a + c) / 2, (b + d) / 2), shift, **look)


def _plot_sites(axes: Axes, layout: Layout) -> None:
    """Draw sites by kind, their names unless there are too many, and where vehicles start."""
    from matplotlib.patheffects import withStroke

    small = len(layout.sites) <= SMALL
    kinds = [kind for kind, _ in Counter(site.kind for site in layout.sites).most_common()]
    if len(kinds) > len(KINDS):
        kinds = []
    for kind, (colour, marker) in zip(kinds or [""], KINDS.items(), strict=False):
        sites = [site for site in layout.sites if not kinds or site.kind == kind]
        look: Style = {"color": colour, "edgecolors": "white", "linewidths": 0.8, "marker": marker}
        label = cut(kind.lstrip("_ "), LONGEST_KIND) or "site"
        places = [site.x for site in sites], [site.y for site in sites]
        axes.scatter(*places, s=70 if small else 28, **look, zorder=3, label=label)
    starts = [
        layout.sites[k] for k in sorted({layout.site_index[v.start] for v in layout.vehicles})
    ]
    look = {"marker": "s", "facecolors": "none", "edgecolors": RED, "linewidths": 1.5}
    places = [site.x for site in starts], [site.y for site in starts]
    axes.scatter(*places, s=220 if small else 70, **look, zorder=4, label="start of a vehicle")
    # Names stay readable on whatever lies below them.
    halo: Style = {"path_effects": [withStroke(linewidth=2.0, foreground="white")], "ha": "left"}
    for site in layout.sites if len(layout.sites) <= MAX_LABELS else ():
        shift, size = ((8, 8), 11) if small else ((4, 4), 8)
        name = cut(site.id, LONGEST_ID)
        write_beside(axes, name, (site.x, site.y), shift, fontsize=size, **halo, zorder=5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.09)
    axes.set(xlabel="x (m)", ylabel="y (m)")
