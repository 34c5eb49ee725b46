"""Traffic on a floor: which edges the vehicles of an episode took, and how often without a load."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from acerl_np.pictures.drawing import cut, find_shape, open_figure
from acerl_np.pictures.floor import SMALL, add_legend, draw_edges, draw_sites
from acerl_np.simulation.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST, WIDEST_OF_MANY, NARROWEST = 9.0, 6.5, 1.5
"""Points: lines of the busiest edge, on small floors and on others, and of one that was hardly taken."""

COLOURS, LIGHTEST = "viridis_r", 0.1
"""From light to dark, also in grey and for those who see fewer colours; what is lighter is lost on white."""

LONGEST_NAME = 40


class Traffic(NamedTuple):
    """How often each edge was taken, either way; half of an edge counts half.

    Attributes
    ----------
    loaded, empty : ndarray(float64, (n_edges,))
        With and without a task on the vehicle; of edges between the same two sites the first has all.
    """

    loaded: np.ndarray
    empty: np.ndarray


def count_traffic(trace: Trace) -> Traffic:
    """Return how often each edge of the floor was taken in an episode."""
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
    return Traffic(passes[0], passes[1])


def draw_traffic(path: str | os.PathLike[str], trace: Trace) -> None:
    """Draw a floor with its edges as wide and as dark as they were busy.

    Parameters
    ----------
    path : path-like
        Picture to write; its ending, png, svg or pdf, says in which format.
    trace : Trace

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the ending is another.
    StorageError
        If the picture cannot be written.
    """
    sites = trace.instance.layout.sites
    shape = find_shape([site.x for site in sites], [site.y for site in sites])
    with open_figure(path, 9.0, 7.5 * shape + 1.3) as figure:
        plot_traffic(figure, trace)


def plot_traffic(figure: Figure, trace: Trace) -> None:
    """Draw into a figure what `draw_traffic` saves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    trace : Trace
    """
    import matplotlib
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    layout, instance = trace.instance.layout, trace.instance
    traffic = count_traffic(trace)
    passes = traffic.loaded + traffic.empty
    whole = float(passes.sum())
    share = 100.0 * passes / whole if whole > 0.0 else passes
    busy = np.flatnonzero(passes > 0.0)
    small = len(layout.edges) <= SMALL
    labels = {}
    if small:
        labels = {k: f"{share[k]:.0f}% ({traffic.empty[k] / passes[k]:.0%})" for k in busy.tolist()}
    axes = figure.add_subplot()
    draw_edges(axes, layout, labels=labels)
    place = {site.id: (site.x, site.y) for site in layout.sites}
    busiest = float(share.max(initial=0.0)) or 1.0
    order = busy[np.argsort(share[busy], kind="stable")]  # the busiest lie on top
    widest = WIDEST if small else WIDEST_OF_MANY
    colours = matplotlib.colormaps[COLOURS](np.linspace(LIGHTEST, 1.0, 256))
    lines = LineCollection(
        [[place[layout.edges[k].a], place[layout.edges[k].b]] for k in order],
        linewidths=NARROWEST + (widest - NARROWEST) * share[order] / busiest,
        cmap=ListedColormap(colours),
        capstyle="round",
        zorder=1.8,
    )
    lines.set_array(share[order])
    lines.set_clim(0.0, busiest)
    axes.add_collection(lines)
    draw_sites(axes, layout)
    bar = figure.colorbar(lines, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label("share of all drives along an edge (%)")
    bar.outline.set_visible(False)
    empty = float(traffic.empty.sum()) / whole if whole > 0.0 else 0.0
    axes.set_title(
        f"{cut(trace.label, LONGEST_NAME)} on {cut(instance.name, LONGEST_NAME)}: {whole:,.0f} drives "
        f"along an edge, {empty:.0%} without a load"
        + ("\non each edge: its share (and how much of that was without a load)" if labels else "")
    )
    add_legend(figure, axes)
