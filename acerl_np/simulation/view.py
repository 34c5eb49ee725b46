"""What an episode looks like at its present decision: as lines of text and as a small picture."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion.trips import drives
from acerl_np.problem.layout import Layout
from acerl_np.simulation.simulator import Simulator

SIDE = 400
"""Longer side of a picture, pixels."""

MARGIN = 32
DOT = 6
"""Radius of a vehicle, pixels."""

MAX_PILE = 8
"""Waiting tasks that are drawn at a site."""

WHITE, EDGE, SITE_COLOUR, WAITING = (255, 255, 255), (205, 205, 205), (120, 120, 120), (230, 140, 0)
ERRAND, CHARGING = (130, 150, 190), (0, 170, 170)
COLOURS = (
    *((40, 160, 70), (40, 90, 200), (205, 40, 40)),  # idle, working, broken
    *(ERRAND, ERRAND, ERRAND, CHARGING, CHARGING),
)
"""Of vehicles, by their status."""


def describe_episode(simulator: Simulator, b: int) -> str:
    """Return an episode as text: clock, each vehicle's status, site, level and task, and the tasks.

    Returns
    -------
    str
        Lines without a newline at the end.
    """
    instance = simulator.instances[b]
    state = simulator.state
    sites = instance.layout.sites
    lines = [
        f"{instance.name} at {simulator.time[b]:g} s: "
        f"{state.episode['n_finished'][b]} of {instance.n_tasks} tasks finished"
    ]
    if simulator.done[b]:
        lines[0] += (
            f"; {simulator.status[b]}, makespan {simulator.makespan[b]:g} s, "
            f"tardiness {simulator.tardiness[b]:.1f} s"
        )
    fleet = simulator.fleet(b)
    for v, vehicle in enumerate(instance.layout.vehicles):
        line = f"  {vehicle.id}: {fleet.status[v]} at {sites[state.vehicle[b, v].site].id}"
        if fleet.task[v] >= 0:
            line += f", task {instance.tasks[fleet.task[v]]}"
        if not np.isnan(fleet.level[v]):
            line += f", level {fleet.level[v]:.0%}"
        lines.append(line)
    for task in state.pool[b, : state.episode["pool_size"][b]]:
        due = S.find_due(simulator.problem, state, b, task)
        ready = S.find_ready(simulator.problem, state, b, task)
        lines.append(
            f"  waiting: {instance.tasks[task]} from {sites[instance.pickup[task]].id} "
            f"to {sites[instance.delivery[task]].id}, "
            + (f"ready at {ready:g} s, " if ready > simulator.time[b] else "")
            + (f"due at {due:g} s" if due < np.inf else "never due")
        )
    for task in state.processed[b, : state.episode["n_processed"][b]]:
        done = state.job["done"][b, task]
        what = "in the queue" if done == S.NEVER else f"until {done} s"
        lines.append(f"  at {sites[instance.delivery[task]].id}: {instance.tasks[task]}, {what}")
    return "\n".join(lines)


def draw_episode(simulator: Simulator, b: int) -> np.ndarray:
    """Return an episode as a picture.

    Lines are edges, grey squares sites, orange squares above a site the tasks that wait there.
    Vehicles are dots: green idle, blue working, red broken, pale on a way without a task, cyan at a charger,
    with an orange centre when loaded.

    Returns
    -------
    ndarray(uint8, (height, width, 3))
        Red, green and blue; both sides are even, the longer one is 400 pixels. Episodes on unlike floors
        have pictures of one size, white where a floor is smaller.
    """
    instance = simulator.instances[b]
    state = simulator.state
    layout = instance.layout
    places, picture = _draw_floor(layout)
    waiting = state.pool[b, : state.episode["pool_size"][b]]
    sites, counts = np.unique(instance.pickup[waiting], return_counts=True)
    for site, count in zip(sites, counts, strict=True):
        column, row = places[site]
        for k in range(min(int(count), MAX_PILE)):
            _fill_box(picture, column, row - 9 - 7 * k, 2.5, WAITING)
    standing: dict[tuple[int, int], int] = {}
    for v in range(len(layout.vehicles)):
        column, row = (int(x) for x in np.round(_locate(simulator, b, v, places)))
        beside = standing.get((column, row), 0)
        standing[column, row] = beside + 1
        column += (2 * DOT + 1) * beside
        status = int(state.vehicle[b, v].status)
        _fill_disc(picture, column, row, DOT, COLOURS[status])
        if state.vehicle[b, v].task >= 0 and state.vehicle[b, v].leg == S.TO_DELIVERY:
            _fill_disc(picture, column, row, DOT // 2, WAITING)
    layouts = {id(item.layout): item.layout for item in simulator.pool}.values()
    height, width = np.max([_measure_floor(item)[1] for item in layouts], axis=0)
    padding = ((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0))
    return np.pad(picture, padding, constant_values=WHITE[0])


def _measure_floor(layout: Layout) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the sites' columns and rows in pixels, and height and width of the picture."""
    points = np.array([(site.x, -site.y) for site in layout.sites], np.float64)
    points -= points.min(axis=0)
    extent = points.max(axis=0)
    scale = (SIDE - 2 * MARGIN) / max(extent.max(), 1e-9)
    width, height = (int(x) + int(x) % 2 for x in np.ceil(extent * scale) + 2 * MARGIN)
    return points * scale + MARGIN, (min(height, SIDE), min(width, SIDE))


def _draw_floor(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the sites' columns and rows in pixels, and the picture of sites and edges."""
    places, size = _measure_floor(layout)
    picture = np.full((*size, 3), WHITE, np.uint8)
    for edge in layout.edges:
        a, b = places[layout.site_index[edge.a]], places[layout.site_index[edge.b]]
        n = int(np.abs(b - a).max()) + 2
        columns, rows = np.round(np.linspace(a, b, n)).astype(int).T
        for shift in (0, 1):
            picture[rows + shift, columns] = EDGE
            picture[rows, columns + shift] = EDGE
    for column, row in places:
        _fill_box(picture, column, row, 3.5, SITE_COLOUR)
    return places, picture


def _locate(simulator: Simulator, b: int, v: int, places: np.ndarray) -> np.ndarray:
    """Return where vehicle v stands or drives, as column and row."""
    layout = simulator.instances[b].layout
    row = simulator.state.vehicle[b, v]
    start, end, metres = row.site, row.site, 0.0
    if drives(row.status) and row.leg != S.ARRIVED:
        start, end = row.edge_from, row.edge_to
        seconds = simulator.state.episode["time"][b] - row.edge_tick
        metres = row.edge_offset + seconds * layout.find_pace(v, start, end)
    elif not drives(row.status) and row.halted_towards >= 0:
        end, metres = row.halted_towards, row.halted_at
    length = layout.routes.edge_length[start, end]
    part = min(metres / length, 1.0) if 0.0 < length < np.inf else 0.0
    return np.asarray(places[start] + part * (places[end] - places[start]))


def _fill_box(
    picture: np.ndarray, column: float, row: float, half: float, colour: tuple[int, int, int]
) -> None:
    top, left = max(round(row - half), 0), max(round(column - half), 0)
    picture[top : max(round(row + half), 0), left : max(round(column + half), 0)] = colour


def _fill_disc(
    picture: np.ndarray, column: int, row: int, radius: int, colour: tuple[int, int, int]
) -> None:
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    picture[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = colour
