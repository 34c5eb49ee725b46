"""The manufacturing floor: a graph G(L, T) of sites L and paths T (Section II-A), and the tasks on it.

Units are metres and seconds.
"""

from __future__ import annotations

import csv
import heapq
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


def round9(value: float) -> float:
    """Return a sum without its noise: 3.0000000000000004 s are 3 s, and ties are ties."""
    return round(value, 9)


class Floor:
    """The sites and paths of a layout, the distances between its sites and the routes taken.

    Attributes
    ----------
    layout : dict
        As it stands in the layout's JSON file.
    order : dict
        Position of each site in the layout.
    arcs : dict
        (from, to) -> length; a path that is not one-way is two arcs.
    neighbours : dict
        Site -> the sites one arc away, in the layout's order.
    distances : dict
        (from, to) -> length of the shortest route, inf where there is none.
    named : dict
        (from, to) -> the route that the layout names for exactly this ordered pair.
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        self.layout = layout
        self.order = {site["id"]: index for index, site in enumerate(layout["sites"])}
        points = {site["id"]: (site["x"], site["y"]) for site in layout["sites"]}
        self.arcs: dict[tuple[str, str], float] = {}
        for edge in layout["edges"]:
            a, b = edge["a"], edge["b"]
            length = float(edge.get("length", math.dist(points[a], points[b])))
            for arc in [(a, b)] if edge.get("one_way") else [(a, b), (b, a)]:
                self.arcs[arc] = min(length, self.arcs.get(arc, math.inf))
        self.neighbours = {a: [b for b in self.order if (a, b) in self.arcs] for a in self.order}
        self.named = {(names[0], names[-1]): list(names) for names in layout.get("routes", [])}
        self.measure()

    def measure(self) -> None:
        """Find the distances."""
        self.distances = {
            (a, b): metres for a in self.order for b, metres in self._distances_from(a).items()
        }

    def _distances_from(self, source: str) -> dict[str, float]:
        """Dijkstra's algorithm."""
        distances = dict.fromkeys(self.order, math.inf)
        distances[source] = 0.0
        queue = [(0.0, source)]
        while queue:
            distance, site = heapq.heappop(queue)
            if distance > distances[site]:
                continue  # a shorter way to this site was found after this entry was queued
            for other in self.neighbours[site]:
                longer = distance + self.arcs[site, other]
                if longer < distances[other]:
                    distances[other] = longer
                    heapq.heappush(queue, (longer, other))
        return distances

    def route(self, a: str, b: str) -> list[str]:
        """Return the sites from `a` to `b`: as the layout names them, else the first shortest route.

        "First" is lexicographic in the sites' order in the layout.
        """
        if (a, b) in self.named:
            return list(self.named[a, b])
        found = None if math.isinf(self.distances[a, b]) else self._extend([a], b)
        assert found is not None, f"no route from {a} to {b}"
        return found

    def _extend(self, path: list[str], goal: str) -> list[str] | None:
        """Return the lexicographically first shortest way to complete `path`."""
        site = path[-1]
        if site == goal:
            return path
        for other in self.neighbours[site]:
            through = self.arcs[site, other] + self.distances[other, goal]
            # Arcs of length 0 could lead in circles, so no site is visited twice.
            if other not in path and abs(through - self.distances[site, goal]) <= 1e-9:
                completed = self._extend([*path, other], goal)
                if completed is not None:
                    return completed
        return None

    def compared(self, distance: float) -> float:
        """Return a distance as rules, state and durations use it; the DMH floor's are cut to whole metres."""
        rounded = round9(distance)
        return float(math.trunc(rounded)) if self.layout.get("truncate_distances") else rounded


@dataclass(eq=False)
class Task:
    """A transporting task u.

    Attributes
    ----------
    name : str
    pickup, delivery : str
        u.s and u.e.
    arrival : float
        u.o.
    expiry : float
        u.tau, from the arrival on.
    handling, demand : float
        Seconds of loading and unloading, and weight; 0 in DMH.
    waiting_since : float
        The arrival, or the second before the breakdown that put it back into the pool.
    vehicle, start, finish : int
        Who serves it, since when, and FT(u, v): when it is delivered; -1 while it waits.
    finished : bool
    """

    name: str
    pickup: str
    delivery: str
    arrival: float
    expiry: float
    handling: float
    demand: float
    waiting_since: float
    vehicle: int = -1
    start: int = -1
    finish: int = -1
    finished: bool = False

    @property
    def due(self) -> float:
        """When it is late."""
        return self.arrival + self.expiry


def read_task(row: dict[str, Any]) -> Task:
    """Return the task in a row of a record."""
    arrival = float(row["arrival_time"])
    return Task(
        name=row["task"],
        pickup=row["pickup"],
        delivery=row["delivery"],
        arrival=arrival,
        expiry=float(row["expiry_time"]),
        handling=float(row.get("handling_time", 0)),
        demand=float(row.get("demand", 0)),
        waiting_since=arrival,
    )


class Instance(NamedTuple):
    """A problem instance: a historical record of tasks on a floor."""

    name: str
    floor: Floor
    record: list[dict[str, Any]]


def load_suite(name: str = "dmh-train") -> list[Instance]:
    """Return the bundled instances of a suite; all of DMH are on one floor."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "instances"  # of an installed package; in a clone it is beside the package
    folder = folder if folder.is_dir() else package.parent / "instances"
    dmh = folder / "dmh"
    floor = Floor(json.loads((dmh / "layout.json").read_text(encoding="utf-8")))
    suite = json.loads((folder / "suites.json").read_text(encoding="utf-8"))[name]
    instances = []
    for record in suite:
        with (dmh / f"{record}.csv").open(encoding="utf-8", newline="") as file:
            instances.append(Instance(record, floor, list(csv.DictReader(file))))
    return instances


def number_slots(instances: list[Instance]) -> dict[str, int]:
    """Return the slot in the state of each task of the records: task_2 before task_10."""
    names = {row["task"] for instance in instances for row in instance.record}

    def natural(name: str) -> list[tuple[int, str]]:
        return [(int(x) if x.isdigit() else -1, x) for x in re.split(r"(\d+)", name)]

    return {name: slot for slot, name in enumerate(sorted(names, key=natural))}
