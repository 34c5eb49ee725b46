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
    GROUND,
    ORANGE,
    PALE,
    SKY,
    Style,
    clear_rows,
    count_letters,
    cut,
    cut_path,
    open_figure,
    wrap,
)
from acerl_np.simulation.trace import Trace

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
LONGEST_ID, LONGEST_NAME = 40, 90


class Look(NamedTuple):
    """How a kind of bar looks; its height is a share of a row."""

    label: str
    face: str
    hatch: str
    height: float

    def style(self) -> Style:
        """Return it as matplotlib's patches take it."""
        face = {"facecolor": self.face, "hatch": self.hatch}
        return {**face, "edgecolor": BLACK, "linewidth": 0.5}


LOOKS = {
    "way": Look("way to the pickup", SKY, "", THIN),
    "loaded": Look("loaded, in time", BLUE, "", THICK),
    "late": Look("loaded, late", ORANGE, "////", THICK),
    "undone": Look("undone by a breakdown", "white", "....", THICK),
    "broken": Look("broken down", GREY, "xxxx", THICK),
}
"""Kinds of bars, no two of the same brightness and pattern."""


class Bar(NamedTuple):
    """What a vehicle did for a while: a kind of `LOOKS`, positions in fleet and record, times in s."""

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
        own, task = trip.vehicle, trip.task
        if not trip.delivered:
            bars.append(Bar("undone", own, trip.start, trip.end, task))
            continue
        pickup = trip.end if trip.pickup is None else trip.pickup
        kind = "late" if delay[task] > 0.0 else "loaded"
        bars += [Bar("way", own, trip.start, pickup, task), Bar(kind, own, pickup, trip.end, task)]
    bars += [
        Bar("broken", stop.vehicle, stop.start, min(stop.end, trace.end)) for stop in trace.stops
    ]
    return [bar for bar in bars if bar.end > bar.start]


def draw_gantt(path: str | os.PathLike[str], trace: Trace) -> None:
    """Draw a row of bars for each vehicle; empty stretches of a row are idle."""
    names = [cut(vehicle.id, LONGEST_ID) for vehicle in trace.instance.layout.vehicles]
    trips = Counter(trip.vehicle for trip in trace.trips)
    width = min(WIDE, max(NARROW, PER_TASK * max(trips.values(), default=0)))
    # The letters of a title of 10 points are about 0.08 inches wide.
    heading = wrap(_describe(trace), int(width / 0.08), 3)
    above = 0.45 + 0.17 * heading.count("\n")
    height = AROUND + above - 0.45 + ROW * len(names)
    bars = list_bars(trace)
    with open_figure(path, width, height, tidy=False) as figure:
        from matplotlib.patches import Patch
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        left = 0.25 + 0.085 * max(map(count_letters, names))
        wide, tall = 1.0 - (left + 0.2) / width, 1.0 - (0.85 + above) / height
        axes = figure.add_axes((left / width, 0.85 / height, wide, tall))
        end = max(1.0, float(trace.end))
        axes.set_xlim(0.0, end)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for v in range(len(names)):
            axes.axhline(v, color=PALE, linewidth=1.0, zorder=0)
        for kind, look in LOOKS.items():
            for v in range(len(names)):
                own = [bar for bar in bars if bar.kind == kind and bar.vehicle == v]
                if own:
                    spans = [(bar.start, bar.end - bar.start) for bar in own]
                    rows = (v - look.height / 2, look.height)
                    axes.broken_barh(spans, rows, **look.style(), zorder=2, gid=kind)
        _write_ids(figure, axes, trace, bars)
        axes.set_yticks(range(len(names)), names)
        clear_rows(axes)
        axes.xaxis.set_major_locator(MaxNLocator(max(4, int(width))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("time (s)")
        title: Style = {"va": "top", "fontsize": 10, "gid": "title"}
        figure.text(0.1 / width, 1.0 - 0.12 / height, heading, **title)
        used = [LOOKS[kind] for kind in LOOKS if any(bar.kind == kind for bar in bars)]
        handles = [Patch(label=look.label, **look.style()) for look in used]
        place: Style = {"loc": "lower left", "bbox_to_anchor": (0.1 / width, 0.04 / height)}
        spaces: Style = {"ncols": len(LOOKS), "borderaxespad": 0.0, "columnspacing": 1.4}
        figure.legend(handles=handles, **place, **spaces)


def _write_ids(figure: Figure, axes: Axes, trace: Trace, bars: list[Bar]) -> None:
    """Write the tasks' ids into the bars that have room for them, on a ground that lets them be read."""
    low, high = axes.get_xlim()
    inches = figure.get_figwidth() * axes.get_position().width / (high - low)
    for bar in bars:
        if bar.task is None or bar.kind == "way":
            continue
        text = cut(trace.instance.tasks[bar.task], LONGEST_ID)
        # Letters of DejaVu Sans are at most about 0.65 of their size wide on average.
        if count_letters(text) * 0.65 * ID_SIZE / 72.0 + 0.03 > (bar.end - bar.start) * inches:
            continue
        middle = (bar.start + bar.end) / 2
        look: Style = {"color": "white", "bbox": None}
        if LOOKS[bar.kind].hatch:
            look = {"color": BLACK, "bbox": {**GROUND, "pad": 0.6}}
        centre: Style = {"ha": "center", "va": "center", "fontsize": ID_SIZE}
        axes.text(middle, bar.vehicle, text, **centre, **look, zorder=3, gid="id")


def _describe(trace: Trace) -> str:
    """Return the picture's title."""
    text = f"{cut_path(trace.label, LONGEST_NAME)} on {cut(trace.instance.name, LONGEST_NAME)}: "
    if math.isnan(trace.makespan):
        delivered = int(np.isfinite(trace.finish).sum())
        return text + f"not finished; {delivered} of {trace.instance.n_tasks} tasks delivered"
    return (
        f"{text}makespan {trace.makespan:,.1f} s, tardiness {trace.tardiness:,.1f} s, "
        f"{int(np.sum(trace.delay > 0.0))} of {trace.instance.n_tasks} tasks late"
    )
