"""What each vehicle did in an episode, as a row of bars: ways to pickups, loaded ways, breakdowns."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from acerl_np.pictures.drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SKY,
    cut,
    cut_path,
    fit_text,
    open_figure,
    show_time,
)
from acerl_np.simulation.trace import Trace, Trip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW, WIDE, PER_TASK = 10.0, 24.0, 0.34
"""Inches: of the narrowest and the widest picture, and of a task of the busiest vehicle between them."""

ROW, AROUND = 0.42, 1.5
"""Inches of a row, and of what stands above and below."""

THICK, THIN = 0.62, 0.26
"""Heights of bars, as shares of a row."""

ID_SIZE = 8.0
LONGEST_ID, LONGEST_NAME = 16, 50


class Look(NamedTuple):
    """How a kind of bar looks.

    Attributes
    ----------
    label, face, hatch : str
    height : float
        As a share of a row.
    """

    label: str
    face: str
    hatch: str
    height: float


LOOKS = {
    "way": Look("way to the pickup", SKY, "", THIN),
    "loaded": Look("loaded, in time", BLUE, "", THICK),
    "late": Look("loaded, late", ORANGE, "////", THICK),
    "undone": Look("undone by a breakdown", "white", "....", THICK),
    "broken": Look("broken down", GREY, "xxxx", THICK),
}
"""Kinds of bars, no two of the same brightness and pattern."""


class Bar(NamedTuple):
    """What a vehicle did for a while.

    Attributes
    ----------
    kind : str
        One of `LOOKS`.
    vehicle : int
        Position in the fleet.
    start, end : float, s
    task : int or None
        Position in the record.
    """

    kind: str
    vehicle: int
    start: float
    end: float
    task: int | None = None


def list_bars(trace: Trace) -> list[Bar]:
    """Return what each vehicle did: of a trip the ways to and from its pickup, and breakdowns."""
    delay = trace.delay
    bars = []
    for trip in trace.trips:
        bars += _split_trip(trip, late=bool(delay[trip.task] > 0.0))
    bars += [
        Bar("broken", stop.vehicle, stop.start, min(stop.end, trace.end)) for stop in trace.stops
    ]
    return [bar for bar in bars if bar.end > bar.start]


def _split_trip(trip: Trip, *, late: bool) -> list[Bar]:
    own, task = trip.vehicle, trip.task
    if not trip.delivered:
        return [Bar("undone", own, trip.start, trip.end, task)]
    pickup = trip.end if trip.pickup is None else trip.pickup
    kind = "late" if late else "loaded"
    return [
        Bar("way", own, trip.start, pickup, task),
        Bar(kind, own, pickup, trip.end, task),
    ]


def draw_gantt(path: str | os.PathLike[str], trace: Trace) -> None:
    """Draw a row of bars for each vehicle; empty stretches of a row are idle.

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
    trips = Counter(trip.vehicle for trip in trace.trips)
    width = min(WIDE, max(NARROW, PER_TASK * max(trips.values(), default=0)))
    height = AROUND + ROW * len(trace.instance.layout.vehicles)
    with open_figure(path, width, height, tidy=False) as figure:
        plot_gantt(figure, trace)


def plot_gantt(figure: Figure, trace: Trace) -> None:
    """Draw into a figure what `draw_gantt` saves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    trace : Trace
    """
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    instance = trace.instance
    names = [cut(vehicle.id, LONGEST_ID) for vehicle in instance.layout.vehicles]
    width, height = figure.get_figwidth(), figure.get_figheight()
    left = 0.25 + 0.085 * max(map(len, names))
    axes = figure.add_axes(
        (left / width, 0.85 / height, 1.0 - (left + 0.2) / width, 1.0 - (0.85 + 0.45) / height)
    )
    end = max(1.0, float(trace.end))
    axes.set_xlim(0.0, end)
    axes.set_ylim(len(names) - 0.5, -0.5)
    bars = list_bars(trace)
    for v in range(len(names)):
        axes.axhline(v, color=PALE, linewidth=1.0, zorder=0)
    for kind, look in LOOKS.items():
        for v in range(len(names)):
            own = [bar for bar in bars if bar.kind == kind and bar.vehicle == v]
            if own:
                axes.broken_barh(
                    [(bar.start, bar.end - bar.start) for bar in own],
                    (v - look.height / 2, look.height),
                    facecolors=look.face,
                    edgecolors=BLACK,
                    hatch=look.hatch,
                    linewidth=0.5,
                    zorder=2,
                    gid=kind,
                )
    _write_ids(figure, axes, trace, bars)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(max(4, int(width))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("time (s)")
    figure.text(
        0.1 / width, 1.0 - 0.12 / height, _describe(trace), va="top", fontsize=10, gid="title"
    )
    used = {bar.kind for bar in bars}
    handles = [
        Patch(
            facecolor=look.face, edgecolor=BLACK, linewidth=0.5, hatch=look.hatch, label=look.label
        )
        for kind, look in LOOKS.items()
        if kind in used
    ]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.1 / width, 0.04 / height),
        ncols=len(LOOKS),
        borderaxespad=0.0,
        columnspacing=1.4,
    )


def _write_ids(figure: Figure, axes: Axes, trace: Trace, bars: list[Bar]) -> None:
    """Write the tasks' ids into the bars that have room for them, on a ground that lets them be read."""
    for bar in bars:
        if bar.task is None or bar.kind == "way":
            continue
        text = cut(trace.instance.tasks[bar.task], LONGEST_ID)
        if not fit_text(figure, axes, text, bar.end - bar.start, ID_SIZE):
            continue
        plain = not LOOKS[bar.kind].hatch
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        axes.text(
            (bar.start + bar.end) / 2,
            bar.vehicle,
            text,
            ha="center",
            va="center",
            fontsize=ID_SIZE,
            color="white" if plain else BLACK,
            bbox=None if plain else ground,
            zorder=3,
            gid="id",
        )


def _describe(trace: Trace) -> str:
    """Return the picture's title."""
    late = int(np.sum(trace.delay > 0.0))
    text = f"{cut_path(trace.label, LONGEST_NAME)} on {cut(trace.instance.name, LONGEST_NAME)}: "
    if math.isnan(trace.makespan):
        delivered = int(np.isfinite(trace.finish).sum())
        return text + f"not finished; {delivered} of {trace.instance.n_tasks} tasks delivered"
    return (
        f"{text}makespan {show_time(trace.makespan)}, tardiness {show_time(trace.tardiness)}, "
        f"{late} of {trace.instance.n_tasks} tasks late"
    )
