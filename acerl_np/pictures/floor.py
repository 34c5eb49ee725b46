"""Pictures of floors; matplotlib is the extra `plot`."""

from __future__ import annotations

import io
import math
import os
import warnings
from pathlib import Path

from acerl_np.problem.layout import Layout
from acerl_np.support.errors import InputError, MissingExtraError
from acerl_np.support.files import write_atomically

FORMATS = ("png", "svg", "pdf")

MAX_LABELS = 200
"""Sites of a floor whose names are still drawn."""


def draw_layout(layout: Layout, path: str | os.PathLike[str]) -> None:
    """Draw a floor: sites with their names, edges (arrows where one-way), starts of the fleet.

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
    figure = Figure(figsize=(10.0, 10.0 * shape + 0.8), layout="constrained")
    axes = figure.add_subplot()
    # Drawn in two strokes, not edge by edge: floors have up to 100,000.
    ends = [(layout.site_index[edge.a], layout.site_index[edge.b]) for edge in layout.edges]
    for one_way in (False, True):
        lines = [
            point
            for edge, (a, b) in zip(layout.edges, ends, strict=True)
            if edge.one_way == one_way
            for point in ((x[a], y[a]), (x[b], y[b]), (float("nan"), float("nan")))
        ]
        if lines:
            axes.plot(*zip(*lines, strict=True), color="0.6", linewidth=1.0, zorder=1)
    arrows = [ends[k] for k, edge in enumerate(layout.edges) if edge.one_way]
    if arrows:
        lengths = [math.hypot(x[b] - x[a], y[b] - y[a]) or 1.0 for a, b in arrows]
        axes.quiver(
            [(x[a] + x[b]) / 2 for a, b in arrows],
            [(y[a] + y[b]) / 2 for a, b in arrows],
            [(x[b] - x[a]) / length for (a, b), length in zip(arrows, lengths, strict=True)],
            [(y[b] - y[a]) / length for (a, b), length in zip(arrows, lengths, strict=True)],
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
    axes.scatter(x, y, s=18, color="tab:blue", zorder=3)
    starts = sorted({layout.site_index[vehicle.start] for vehicle in layout.vehicles})
    axes.scatter(
        [x[k] for k in starts],
        [y[k] for k in starts],
        s=70,
        marker="s",
        facecolors="none",
        edgecolors="tab:red",
        zorder=4,
        label="start of a vehicle",
    )
    if len(layout.sites) <= MAX_LABELS:
        for site in layout.sites:
            axes.annotate(
                site.id,
                (site.x, site.y),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=8,
                parse_math=False,
            )
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="x (m)", ylabel="y (m)")
    axes.set_title(
        f"{layout.name}: {len(layout.sites)} sites, {len(layout.edges)} edges, "
        f"{len(layout.vehicles)} vehicles",
        parse_math=False,
    )
    axes.legend(loc="best")
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are boxes, which shows
        figure.savefig(picture, format=form, dpi=150)
    write_atomically(path, picture.getvalue())
