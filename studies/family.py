"""A family of random floors, fleets and days: what trains the policy `general`, and what judges it.

Floors are made up from a seed: grids of two-way lanes, one-way loops with short cuts, and ladders, which are
two lanes of opposite directions with rungs between them. No floor of a plant or of the benchmark is one of
them. Days are of two sorts: shifts (lorries and work stations, Poisson arrivals, or bursts) at an offered
load, and batches that end, with due times in the floor's own unit of time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, pairwise
from typing import Any, Literal

from acerl_np.kernels.core.random import GENERATION, draw_uniform, make_key
from acerl_np.problem.generate import generate_record
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Edge, RandomBreakdowns, Site, Vehicle
from acerl_np.problem.servable import measure_load
from acerl_np.problem.shift import HANDLING, ROLES, SPLIT, find_scale, generate_shift, spread

Sort = Literal["shift", "batch"]

KINDS = ("grid", "loop", "ladder")
"""Kinds of floors."""

DAYS = ("shift", "poisson", "bursts")
"""What makes a day of the sort "shift", each equally often."""

HOURS = 3.0
"""Length of a shift."""

LOADS: dict[Sort, tuple[float, float]] = {"shift": (0.5, 0.95), "batch": (0.9, 1.4)}
"""Bounds of the offered load, uniform."""

FLEETS: dict[Sort, tuple[int, int]] = {"shift": (2, 10), "batch": (2, 5)}
"""Bounds of the number of vehicles."""

PER_VEHICLE = 10
"""Tasks of a batch for each vehicle."""

THERE = 1 / 6
"""Share of a batch's tasks that wait at the start."""

WAY, DUE = (70.0, 110.0), (240.0, 390.0)
"""Of a batch: mean way between two stations, and time until a task is due, s."""


def draw(seed: int, index: int) -> Iterator[float]:
    """Return the uniform draws in [0, 1) of a floor or a day, one after the other."""
    key = make_key(seed, GENERATION, index)
    return (float(draw_uniform(key, k, 7)) for k in count())


def pick(draws: Iterator[float], low: int, high: int) -> int:
    """Return the next draw as a whole number from `low` to `high`."""
    return low + int(next(draws) * (high - low + 1))


def draw_lanes(
    kind: str, draws: Iterator[float]
) -> tuple[list[Site], list[tuple[Site, Site, bool]]]:
    """Return the waypoints of a floor, and its lanes: from, to, and whether one way."""
    step = spread(draws, 8.0, 25.0)
    if kind == "grid":
        n, m = pick(draws, 2, 5), pick(draws, 2, 4)
        at = {
            (x, y): Site(f"w{x}-{y}", step * x, step * y, "waypoint")
            for x in range(n)
            for y in range(m)
        }
        right = [(at[x, y], at[x + 1, y], False) for x, y in at if (x + 1, y) in at]
        return [*at.values()], right + [
            (at[x, y], at[x, y + 1], False) for x, y in at if (x, y + 1) in at
        ]
    n = pick(draws, 6, 16)
    if kind == "loop":
        radius = step * n / (2 * math.pi)
        angles = [2 * math.pi * k / n for k in range(n)]
        ring = [
            Site(f"w{k}", radius * math.cos(a), radius * math.sin(a), "waypoint")
            for k, a in enumerate(angles)
        ]
        lanes = [(a, b, True) for a, b in pairwise([*ring, ring[0]])]
        for _ in range(pick(draws, 0, 3)):
            first = pick(draws, 0, n - 1)
            lanes.append((ring[first], ring[(first + pick(draws, 2, n - 2)) % n], True))
        return ring, lanes
    there = [Site(f"e{k}", step * k, 0.0, "waypoint") for k in range(n)]
    back = [Site(f"w{k}", step * k, 4.0, "waypoint") for k in range(n)]
    lanes = [(a, b, True) for row in (there, back[::-1]) for a, b in pairwise(row)]
    rungs = {0, n - 1, *(k for k in range(n) if next(draws) < 0.6)}
    return [*there, *back], lanes + [(there[k], back[k], False) for k in sorted(rungs)]


def draw_floor(
    seed: int, index: int, *, sort: Sort = "shift", kinds: Sequence[str] = KINDS
) -> Layout:
    """Return a floor with its fleet.

    6 to 24 stations stand beside the lanes. Vehicles drive 0.8 to 2 m/s, on a third of the floors each at its
    own speed; where batches are played, so fast that the mean way takes 70 to 110 s. On a quarter of the
    floors they break down at random.

    Parameters
    ----------
    seed, index : int
        Which family, and which of its floors.
    sort : {"shift", "batch"}
        Fleets have 2 to 10 vehicles, or 2 to 5.
    kinds : sequence of str
        Kinds of floors to draw from, some of `KINDS`.
    """
    draws = draw(seed, index)
    kind = kinds[pick(draws, 0, len(kinds) - 1)]
    points, lanes = draw_lanes(kind, draws)
    edges = [Edge(a.id, b.id, math.hypot(a.x - b.x, a.y - b.y), one_way) for a, b, one_way in lanes]
    roles, stations = [*ROLES, *SPLIT], []
    for k in range(pick(draws, 6, 24)):
        at = points[pick(draws, 0, len(points) - 1)]
        angle, role = spread(draws, 0.0, 2 * math.pi), roles[k % len(roles)]
        x, y = at.x + 5.0 * math.cos(angle), at.y + 5.0 * math.sin(angle)
        stations.append(Site(f"s{k}", x, y, role))
        edges.append(Edge(at.id, stations[-1].id, 5.0))
    n, speed = pick(draws, *FLEETS[sort]), spread(draws, 0.8, 2.0)
    differ, breaks = next(draws) < 1 / 3, next(draws) < 1 / 4
    floor = Layout(f"{kind}-{index}", (*points, *stations), tuple(edges), (Vehicle("v0", "s0"),))
    if sort == "batch":
        ends = [floor.site_index[site.id] for site in stations]
        ways = floor.routes.distance[ends][:, ends]
        speed = float(ways.sum()) / (len(ends) * (len(ends) - 1)) / spread(draws, *WAY)
    model = RandomBreakdowns(spread(draws, 3600.0, 14400.0), spread(draws, 60.0, 600.0))
    fleet = [
        Vehicle(
            f"v{k}",
            stations[pick(draws, 0, len(stations) - 1)].id,
            round(speed * (spread(draws, 0.7, 1.3) if differ else 1.0), 3),
            random_breakdowns=model if breaks and sort == "shift" else None,
        )
        for k in range(n)
    ]
    return floor.with_fleet(fleet)


def draw_day(
    layout: Layout,
    seed: int,
    index: int,
    *,
    sort: Sort = "shift",
    load: float | None = None,
    factor: float = 1.0,
) -> Instance:
    """Return a day on a floor of the family.

    Parameters
    ----------
    layout : Layout
    seed, index : int
    sort : {"shift", "batch"}
    load : float, optional
        Offered load, by default uniform between the bounds of `LOADS`.
    factor : float
        By what the load is multiplied.
    """
    draws = draw(seed, index)
    low, high = LOADS[sort]
    aim = factor * (spread(draws, low, high) if load is None else load)
    name, n = f"{layout.name}-{index}", len(layout.vehicles)
    process = (
        DAYS[pick(draws, 0, 2)] if sort == "shift" else ("uniform", *DAYS[1:])[pick(draws, 0, 2)]
    )
    same: dict[str, Any] = {"seed": seed, "index": index, "name": name}
    if process == "shift":
        scale = find_scale_once(layout, aim)
        return generate_shift(layout, hours=HOURS, scale=scale, handling_time=HANDLING, **same)
    same |= {"process": process, "sites": list(ROLES)}
    if sort == "shift":
        same |= {"slack": spread(draws, 2.5, 6.0), "handling_time": HANDLING}
        tasks, rate = find_size(layout, aim, same)
        return generate_record(layout, tasks, rate=rate, **same)
    tasks = PER_VEHICLE * n
    _, rate = find_size(layout, aim, same)
    made = generate_record(layout, tasks, rate=rate, **same)
    rows = made.rows()
    for k, row in enumerate(rows):
        row["arrival_time"] = 0 if k < THERE * tasks else row["arrival_time"]
        row["expiry_time"] = pick(draws, *map(int, DUE))
    return Instance.from_rows(name, layout, rows)


@lru_cache(256)
def find_scale_once(layout: Layout, load: float) -> float:
    """Return the scale of shifts of an offered load: many days of a floor may have one load."""
    return find_scale(layout, load, hours=HOURS)


def find_size(layout: Layout, load: float, options: dict[str, Any]) -> tuple[int, float]:
    """Return the number of tasks and the rate, tasks an hour, at which `HOURS` have an offered load."""
    tasks, rate = 200, 60.0
    for _ in range(3):
        found = measure_load(generate_record(layout, tasks, rate=rate, **options)).offered
        rate *= load / found
    return max(1, round(rate * HOURS)), rate
