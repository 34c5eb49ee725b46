"""What each vehicle, and each machine, did in an episode, as a row of bars."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from acerl_np.kernels.ground.state import CHARGING, QUEUED
from acerl_np.pictures import drawing
from acerl_np.pictures.drawing import Style
from acerl_np.simulation.trace import Trace
from acerl_np.simulation.waits import list_waits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW, WIDE, PER_TASK = 10.0, 24.0, 0.34
"""Inches: of the narrowest and the widest picture, and of a task of the busiest vehicle between them."""

ROW, AROUND = 0.42, 1.5
"""Inches of a row, and of what stands above and below."""

THICK, THIN, LINE = 0.62, 0.26, 0.1
"""Heights of bars, as shares of a row."""

MOST_BESIDE = 5
"""Kinds of bars beside each other in the legend."""

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
        return {**face, "edgecolor": drawing.BLACK, "linewidth": 0.5}


LOOKS = {
    "way": Look("way to the pickup", drawing.SKY, "", THIN),
    "loaded": Look("loaded, in time", drawing.BLUE, "", THICK),
    "late": Look("loaded, late", drawing.ORANGE, "////", THICK),
    "undone": Look("undone by a breakdown", "white", "....", THICK),
    "broken": Look("broken down", drawing.GREY, "xxxx", THICK),
    "recalled": Look("way, called back", "white", "////", THIN),
    "errand": Look("way to charge or park", "white", "", THIN),
    "queue": Look("in a charger's queue", drawing.PALE, "||||", THIN),
    "charging": Look("charging", drawing.GREEN, "", THICK),
    "pause": Look("stands until a task is ready", drawing.PALE, "....", THIN),
    "queued": Look("a task in a machine's queue", drawing.BLACK, "", LINE),
    "processed": Look("processing", drawing.PURPLE, "----", THICK),
    "held": Look("waits for other vehicles", drawing.ORANGE, "", LINE),
}
"""Kinds of bars, no two of the same brightness and pattern."""


class Bar(NamedTuple):
    """What stands in a row for a while: a kind of `LOOKS`, the task's position in the record, times in s."""

    kind: str
    row: int
    start: float
    end: float
    task: int | None = None


def list_bars(trace: Trace) -> list[Bar]:
    """Return what each vehicle did: of a trip the ways to and from its pickup, errands, and breakdowns.

    And what machines did, each server in a row as `Trace.servers` has them, below those of the fleet.
    """
    lateness = trace.lateness
    bars = []
    for trip in trace.trips:
        own, task = trip.vehicle, trip.task
        if not trip.delivered:
            kind = "undone" if trip.recall is None else "recalled"
            bars.append(Bar(kind, own, trip.start, trip.end, task))
            continue
        pickup = trip.end if trip.pickup is None else trip.pickup
        kind = "late" if lateness[task] > 0.0 else "loaded"
        there = pickup - trip.pause
        bars += [Bar("way", own, trip.start, there, task), Bar(kind, own, pickup, trip.end, task)]
        bars.append(Bar("pause", own, there, pickup, task))
    for stop in trace.stops:
        bars.append(Bar("broken", stop.vehicle, stop.start, min(stop.end, trace.end)))
    bars += [Bar("held", own.vehicle, own.start, own.end) for own in list_waits(trace)]
    kinds = {QUEUED: "queue", CHARGING: "charging"}
    for errand in trace.errands:
        kind = kinds.get(errand.status, "errand")
        bars.append(Bar(kind, errand.vehicle, errand.start, errand.end))
    rows = {place: k for k, place in enumerate(trace.servers, len(trace.instance.layout.vehicles))}
    for item in trace.processing:
        row = rows[item.machine, item.server]
        bars.append(Bar("queued", row, item.queued, item.start))
        bars.append(Bar("processed", row, item.start, item.end, item.task))
    return [bar for bar in bars if bar.end > bar.start]


def draw_gantt(path: str | os.PathLike[str], trace: Trace) -> None:
    """Draw a row of bars for each vehicle, then machine; empty stretches of a row are idle, parked or not."""
    layout = trace.instance.layout
    names = [drawing.cut(vehicle.id, LONGEST_ID) for vehicle in layout.vehicles]
    names += [drawing.cut(layout.machines[k].site, LONGEST_ID) for k, _ in trace.servers]
    trips = Counter(trip.vehicle for trip in trace.trips)
    width = min(WIDE, max(NARROW, PER_TASK * max(trips.values(), default=0)))
    # The letters of a title of 10 points are about 0.08 inches wide.
    heading = drawing.wrap(_describe(trace), int(width / 0.08), 3)
    above = 0.45 + 0.17 * heading.count("\n")
    height = AROUND + above - 0.45 + ROW * len(names)
    bars = list_bars(trace)
    used = [look for kind, look in LOOKS.items() if any(bar.kind == kind for bar in bars)]
    below = 0.85 + 0.2 * ((len(used) - 1) // MOST_BESIDE)
    height += below - 0.85
    with drawing.open_figure(path, width, height, tidy=False) as figure:
        from matplotlib.patches import Patch
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        left = 0.25 + 0.085 * max(map(drawing.count_letters, names))
        wide, tall = 1.0 - (left + 0.2) / width, 1.0 - (below + above) / height
        axes = figure.add_axes((left / width, below / height, wide, tall))
        end = max(1.0, float(trace.end))
        axes.set_xlim(0.0, end)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for v in range(len(names)):
            axes.axhline(v, color=drawing.PALE, linewidth=1.0, zorder=0)
        for kind, look in LOOKS.items():
            for v in range(len(names)):
                own = [bar for bar in bars if bar.kind == kind and bar.row == v]
                if own:
                    spans = [(bar.start, bar.end - bar.start) for bar in own]
                    low = v + THICK / 2 if look.height == LINE else v - look.height / 2
                    rows = (low, look.height)
                    axes.broken_barh(spans, rows, **look.style(), zorder=2, gid=kind)
        _write_ids(figure, axes, trace, bars)
        axes.set_yticks(range(len(names)), names)
        drawing.clear_rows(axes)
        axes.xaxis.set_major_locator(MaxNLocator(max(4, int(width))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("time (s)")
        title: Style = {"va": "top", "fontsize": 10, "gid": "title"}
        figure.text(0.1 / width, 1.0 - 0.12 / height, heading, **title)
        handles = [Patch(label=look.label, **look.style()) for look in used]
        place: Style = {"loc": "lower left", "bbox_to_anchor": (0.1 / width, 0.04 / height)}
        spaces: Style = {"ncols": MOST_BESIDE, "borderaxespad": 0.0, "columnspacing": 1.4}
        figure.legend(handles=handles, **place, **spaces)


def _write_ids(figure: Figure, axes: Axes, trace: Trace, bars: list[Bar]) -> None:
    """Write the tasks' ids into the bars that have room for them, on a ground that lets them be read."""
    low, high = axes.get_xlim()
    inches = figure.get_figwidth() * axes.get_position().width / (high - low)
    for bar in bars:
        if bar.task is None or LOOKS[bar.kind].height < THICK:
            continue
        text = drawing.cut(trace.instance.tasks[bar.task], LONGEST_ID)
        # Letters of DejaVu Sans are at most about 0.65 of their size wide on average.
        least = drawing.count_letters(text) * 0.65 * ID_SIZE / 72.0 + 0.03
        if least > (bar.end - bar.start) * inches:
            continue
        middle = (bar.start + bar.end) / 2
        look: Style = {"color": "white", "bbox": None}
        if LOOKS[bar.kind].hatch:
            look = {"color": drawing.BLACK, "bbox": {**drawing.GROUND, "pad": 0.6}}
        centre: Style = {"ha": "center", "va": "center", "fontsize": ID_SIZE}
        axes.text(middle, bar.row, text, **centre, **look, zorder=3, gid="id")


def _describe(trace: Trace) -> str:
    """Return the picture's title."""
    label = drawing.cut_path(trace.label, LONGEST_NAME)
    text = f"{label} on {drawing.cut(trace.instance.name, LONGEST_NAME)}: "
    if math.isnan(trace.makespan):
        delivered = int(np.isfinite(trace.finish).sum())
        return text + f"not finished; {delivered} of {trace.instance.n_tasks} tasks delivered"
    return (
        f"{text}makespan {trace.makespan:,.1f} s, tardiness {trace.tardiness:,.1f} s, "
        f"{int(np.sum(trace.lateness > 0.0))} of {trace.instance.n_tasks} tasks late"
    )
