"""Pictures of floors: sites, edges and starts."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style
from acerl_np.problem.layout import Layout, name_stations
from acerl_np.support.errors import list_first
from acerl_np.support.files import FilePath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from acerl_np.problem.parts import Site

WIDTH = 8.0
"""Inches of the picture; it is as high as its floor."""

MAX_LABELS = 1000
"""Sites for whose names room is looked for."""

SMALL = 40
"""Sites, and edges, of a floor that has room for large letters and for the lengths of its edges."""

KINDS = {
    **{drawing.BLUE: "o", drawing.GREY: "v", drawing.ORANGE: "D"},
    **{drawing.GREEN: "s", drawing.PURPLE: "^"},
}
"""Colour and marker of each kind of site, the most frequent first; a floor of more kinds has one for all."""

LONGEST_NAME, LONGEST_KIND, LONGEST_ID = 60, 40, 40
"""Letters that are shown of the floor's name, of a kind and of a site's name."""

PLACES = (
    *(("left", "bottom"), ("right", "bottom"), ("left", "top"), ("right", "top")),
    *(("center", "bottom"), ("center", "top")),
)
"""Where a name may stand beside its site, the first best: "left" and "bottom" is to the right, above."""

SIDES = {"left": 1.0, "bottom": 1.0, "center": 0.0, "right": -1.0, "top": -1.0}
"""On which side of its site a text stands that is aligned so."""

ARROW: Style = {
    **{"angles": "xy", "scale": 60, "pivot": "mid", "width": 0.002, "color": "0.4", "zorder": 2},
    **{"headwidth": 5, "headlength": 5, "headaxislength": 5},
}
"""Look of a one-way edge's arrow."""


def draw_layout(layout: Layout, path: FilePath) -> None:
    """Draw a floor: sites, with their names where there is room, edges, starts of the fleet.

    One-way edges have arrows. On a small floor edges show their lengths.
    """
    x, y = ([getattr(site, which) for site in layout.sites] for which in "xy")
    wide, deep = max(x) - min(x), max(y) - min(y)
    shape = min(max(deep / wide, 0.3), 1.5) if wide > 0.0 else 1.0
    with drawing.open_figure(path, WIDTH, WIDTH * shape + 0.8) as figure:
        axes = figure.add_subplot()
        _plot_edges(axes, layout)
        _plot_sites(axes, layout)
        name, sites = drawing.cut(layout.name, LONGEST_NAME), len(layout.sites)
        rest = f"{len(layout.edges)} edges, {len(layout.vehicles)} vehicles"
        axes.set_title(f"{name}: {sites} sites, {rest}")
        longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
        figure.legend(loc="outside lower center", ncols=3 if longest <= 20 else 2)
        _write_names(figure, axes, layout)


def _plot_edges(axes: Axes, layout: Layout) -> None:
    """Draw edges as lines, one-way ones with an arrow, and on a small floor their lengths."""
    place = {site.id: (site.x, site.y) for site in layout.sites}
    # Drawn in one stroke, not edge by edge: floors have up to 100,000.
    gap = (math.nan, math.nan)
    lines = [point for edge in layout.edges for point in (place[edge.a], place[edge.b], gap)]
    if lines:
        thick = 2.0 if len(layout.edges) <= SMALL else 1.0
        axes.plot(*zip(*lines, strict=True), color="0.7", linewidth=thick, zorder=1)
    arrows = [(place[edge.a], place[edge.b]) for edge in layout.edges if edge.one_way]
    if arrows:
        start, end = np.array(arrows, float).transpose(1, 2, 0)
        length = np.hypot(*(end - start))
        length[length == 0.0] = 1.0
        axes.quiver(*(start + end) / 2, *(end - start) / length, **ARROW)
    if len(layout.edges) > SMALL:
        return
    # Opposite one-way edges share a place; the first of them is shown.
    shown = {frozenset((edge.a, edge.b)): k for k, edge in reversed([*enumerate(layout.edges)])}
    for k in shown.values():
        edge = layout.edges[k]
        (a, b), (c, d) = place[edge.a], place[edge.b]
        # Beside the arrow of a one-way edge, on the line of another.
        shift = (0, -9 if edge.one_way else 0)
        ground = {**drawing.GROUND, "pad": 1.0}
        look: Style = {"va": "center", "color": "0.35", "bbox": ground, "zorder": 2.5}
        drawing.write_beside(axes, f"{edge.length:g} m", ((a + c) / 2, (b + d) / 2), shift, **look)


def _plot_sites(axes: Axes, layout: Layout) -> None:
    """Draw sites by kind, and where vehicles start."""
    small = len(layout.sites) <= SMALL

    def scatter(sites: list[Site], **look: Any) -> None:
        axes.scatter([site.x for site in sites], [site.y for site in sites], **look)

    kinds = [kind for kind, _ in Counter(site.kind for site in layout.sites).most_common()]
    if len(kinds) > len(KINDS):
        kinds = []
    for kind, (colour, marker) in zip(kinds or [""], KINDS.items(), strict=False):
        sites = [site for site in layout.sites if not kinds or site.kind == kind]
        look: Style = {"color": colour, "edgecolors": "white", "linewidths": 0.8, "marker": marker}
        label = drawing.cut(kind.lstrip("_ "), LONGEST_KIND) or "site"
        scatter(sites, s=70 if small else 28, **look, zorder=3, label=label)
    starts = [layout.sites[k] for k in sorted({*layout.starts.tolist()})]
    look = {"marker": "s", "facecolors": "none", "edgecolors": drawing.RED, "linewidths": 1.5}
    scatter(starts, s=220 if small else 70, **look, zorder=4, label="start of a vehicle")
    charge = [item.site for item in layout.chargers]
    park = [item.site for item in layout.parking.places] if layout.parking else []
    marks = ("P", 120, "vehicles charge here", charge), ("X", 40, "vehicles park here", park)
    for marker, size, label, names in marks:
        sites = [layout.sites[layout.site_index[name]] for name in names]
        look = {"marker": marker, "color": "white", "edgecolors": "black", "linewidths": 0.8}
        if sites:
            scatter(sites, s=size if small else size // 3, **look, zorder=4.5, label=label)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.09)
    axes.set(xlabel="x (m)", ylabel="y (m)")


def _name_sites(layout: Layout) -> list[tuple[int, str, str]]:
    """Return sites with their names and colours on a picture: stations, then starts, then the others."""
    served = name_stations(layout)
    starts = [k for k in layout.starts.tolist() if k not in served]
    order = dict.fromkeys([*sorted(served), *starts, *range(len(layout.sites))])
    return [
        (k, list_first(served[k], 2), "black") if k in served else (k, layout.sites[k].id, "0.35")
        for k in list(order)[:MAX_LABELS]
    ]


def _write_names(figure: Figure, axes: Axes, layout: Layout) -> None:
    """Write the names of sites within the axes where they cover no marker and no other name.

    What stands on an edge gives way to a name that has no other place.
    """
    from matplotlib.patheffects import withStroke

    figure.draw_without_rendering()  # which finds where the axes lie
    small = len(layout.sites) <= SMALL
    shift, size, marker = (8, 11, 5) if small else (4, 8, 3)
    points = figure.dpi / 72.0
    centres = axes.transData.transform([(site.x, site.y) for site in layout.sites])
    taken = np.hstack([centres - marker * points, centres + marker * points])
    on_edges = [text for text in axes.texts if text.get_text()]
    edges = np.array([text.get_window_extent().extents for text in on_edges]).reshape(-1, 4)
    # Names stay readable on whatever lies below them.
    halo: Style = {"path_effects": [withStroke(linewidth=2.0, foreground="white")]}
    for site, name, colour in _name_sites(layout):
        look = {**drawing.BESIDE, **halo, "fontsize": size, "color": colour, "zorder": 5}
        at, text = (layout.sites[site].x, layout.sites[site].y), drawing.cut(name, LONGEST_ID)
        label = axes.annotate(text, at, xytext=(0.0, 0.0), in_layout=False, **look)
        extent = np.asarray(label.get_window_extent().size)
        far, centre = shift * points, centres[site]
        boxes = np.array([_place(centre, extent, far, *place) for place in PLACES])
        inside = (boxes[:, :2] >= axes.bbox.min).all(1) & (boxes[:, 2:] <= axes.bbox.max).all(1)
        free = inside & ~_overlap(boxes, taken).any(axis=1)
        best = free & ~_overlap(boxes, edges).any(axis=1)
        if not free.any():
            label.remove()
            continue
        k = int(np.argmax(best if best.any() else free))
        across, up = PLACES[k]
        label.set(ha=across, va=up)
        label.xyann = (shift * SIDES[across], shift * SIDES[up])
        for other in np.flatnonzero(_overlap(boxes[k : k + 1], edges)[0]):
            on_edges[other].set_visible(False)
        taken = np.vstack([taken, boxes[k] + [-2.0 * points, 0.0, 2.0 * points, 0.0]])


def _place(centre: np.ndarray, size: np.ndarray, shift: float, across: str, up: str) -> np.ndarray:
    """Return the corners of a text, left, bottom, right, top, at one of the places beside a site."""
    side = np.array([SIDES[across], SIDES[up]])
    low = centre + side * shift - 0.5 * (1.0 - side) * size
    return np.concatenate([low, low + size])


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which of the first boxes meet which of the others (ndarray(bool, (n, m)))."""
    a, b = boxes[:, None], others[None]
    return np.asarray(((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(axis=-1))
