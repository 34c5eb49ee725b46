"""Layouts: sites, edges, named routes, vehicles with their breakdowns; shortest routes between sites."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from acerl_np.support.errors import MAX_SHOWN, LayoutError, describe, make_printable
from acerl_np.support.files import read_text
from acerl_np.support.numbers import is_real

MAX_SITES = 5_000
MAX_EDGES = 100_000
MAX_VEHICLES = 1_000
MAX_TASK_SLOTS = 10_000
MAX_BREAKDOWNS = 10_000
MAX_NUMBER = 1e9
"""Largest coordinate, length, time, speed or load that is accepted."""
MIN_SPEED = 1e-6
MEAN_TIMES = {"mean_time_between_failures": 1.0, "mean_time_to_repair": 0.0}
"""Fields of `RandomBreakdowns` and their least values, s."""

MAX_SITES_WITH_ZERO_EDGES = 300
"""Edges of no length need every route looked at one by one."""

TOLERANCE = 1e-9
"""Metres within which two routes count as equally long."""

SCALING_PAIRS = ("distance", "waiting", "expiry", "demand", "total_distance")
SCALING_DIVISORS = ("speed", "capacity")


@dataclass(frozen=True)
class Site:
    """A point of the floor; x and y in metres, `kind` free text such as "workstation"."""

    id: str
    x: float
    y: float
    kind: str = ""


@dataclass(frozen=True)
class Edge:
    """A way from site `a` to site `b`, and back unless `one_way`; `length` in metres."""

    a: str
    b: str
    length: float
    one_way: bool = False


@dataclass(frozen=True)
class Breakdown:
    """A vehicle breaks down `time` seconds into the episode; its repair lasts `repair_time` seconds."""

    time: float
    repair_time: float


@dataclass(frozen=True)
class RandomBreakdowns:
    """A vehicle breaks down at random, in the mean after so many seconds of use, for so many seconds.

    Both times are exponential and are drawn anew for every breakdown of every episode. They count
    whether the vehicle works or waits, and not while it is broken.

    Raises
    ------
    LayoutError
        If a mean time is out of range.
    """

    mean_time_between_failures: float
    mean_time_to_repair: float

    def __post_init__(self) -> None:
        item = _Reader(vars(self), "")
        for key, least in MEAN_TIMES.items():
            object.__setattr__(self, key, item.number(key, None, least))


@dataclass(frozen=True)
class Vehicle:
    """A vehicle: start site, speed in m/s, capacity in units of load (0: unlimited), breakdowns.

    `breakdowns` are listed ones, the same in every episode; `random_breakdowns` come besides.
    """

    id: str
    start: str
    speed: float = 1.0
    capacity: float = 0.0
    breakdowns: tuple[Breakdown, ...] = ()
    random_breakdowns: RandomBreakdowns | None = None


@dataclass(frozen=True)
class Routes:
    """Shortest routes between all ordered pairs of S sites.

    Attributes
    ----------
    distance : ndarray(float64, (S, S)), m
        inf where there is no way.
    edge_length : ndarray(float64, (S, S)), m
        inf where there is no edge.
    next_site : ndarray(int32, (S, S))
        The site after a on the route from a to b; a itself where a = b or there is no way.
    explicit : dict
        Routes by (a, b), as sites, that `next_site` does not lead along: named ones, and some over
        edges of no length.
    """

    distance: np.ndarray
    edge_length: np.ndarray
    next_site: np.ndarray
    explicit: dict[tuple[int, int], tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """A floor and its fleet.

    Attributes
    ----------
    name : str
    sites : tuple of Site
    edges : tuple of Edge
    vehicles : tuple of Vehicle
    task_slots : int
        Waiting tasks that a network sees.
    truncate_distances : bool
        Whether rules, durations and observations cut distances to whole metres.
    named_routes : tuple of tuple of str
        Routes to take where several are equally short, each as its sites.
    scaling : dict or None
        Feature constants: (mid, half) of each of `SCALING_PAIRS`, divisors of `SCALING_DIVISORS`.

    Raises
    ------
    LayoutError
        If the parts contradict each other: duplicate ids, unknown sites, named routes that are not
        shortest routes.
    """

    name: str
    sites: tuple[Site, ...]
    edges: tuple[Edge, ...]
    vehicles: tuple[Vehicle, ...]
    task_slots: int = 30
    truncate_distances: bool = False
    named_routes: tuple[tuple[str, ...], ...] = ()
    scaling: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_unique("sites", [site.id for site in self.sites])
        _check_unique("vehicles", [vehicle.id for vehicle in self.vehicles])
        for k, edge in enumerate(self.edges):
            for end, site in (("a", edge.a), ("b", edge.b)):
                self._check_site(site, f"edges[{k}].{end}")
            if edge.a == edge.b:
                raise LayoutError(f"edges[{k}]: goes from '{edge.a}' to itself; expected two sites")
        for k, vehicle in enumerate(self.vehicles):
            self._check_site(vehicle.start, f"vehicles[{k}].start")
            check_model(vehicle.random_breakdowns, f"vehicles[{k}].random_breakdowns")
        self._check_routes()

    def _check_site(self, site: str, where: str) -> None:
        if site not in self.site_index:
            raise LayoutError(
                f"{where}: unknown site '{describe(site)}'; expected the id of one of the sites"
            )

    def _check_routes(self) -> None:
        seen: set[tuple[str, str]] = set()
        for k, route in enumerate(self.named_routes):
            where = f"routes[{k}]"
            if len(route) < 2:
                raise LayoutError(f"{where}: {len(route)} sites; expected at least two")
            for site in route:
                self._check_site(site, where)
            if len(set(route)) < len(route):
                raise LayoutError(f"{where}: visits a site twice; expected each site once")
            ends = (route[0], route[-1])
            if ends in seen:
                raise LayoutError(
                    f"{where}: a second route from '{ends[0]}' to '{ends[1]}'; expected one"
                )
            seen.add(ends)
            indices = [self.site_index[site] for site in route]
            length = 0.0
            for a, b in pairwise(indices):
                step = float(self.routes.edge_length[a, b])
                if math.isinf(step):
                    raise LayoutError(
                        f"{where}: no edge from '{self.sites[a].id}' to '{self.sites[b].id}'"
                    )
                length += step
            shortest = float(self.routes.distance[indices[0], indices[-1]])
            if length > shortest + TOLERANCE * max(1.0, shortest):
                raise LayoutError(
                    f"{where}: {length:g} m from '{ends[0]}' to '{ends[1]}'; "
                    f"expected a shortest route ({shortest:g} m)"
                )

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Position of each site by its id."""
        return {site.id: k for k, site in enumerate(self.sites)}

    @cached_property
    def routes(self) -> Routes:
        """Shortest routes between all pairs of sites; ties go to the first by the sites' order."""
        return _find_routes(self)

    def with_breakdowns(self, breakdowns: Mapping[str, Sequence[Breakdown]]) -> Layout:
        """Return this floor and fleet with other breakdowns; the routes are shared, not found anew.

        Parameters
        ----------
        breakdowns : mapping of sequences of Breakdown
            By vehicle id; a vehicle that is not in it has none.

        Returns
        -------
        Layout
        """
        return self._with_vehicles(
            replace(vehicle, breakdowns=tuple(breakdowns.get(vehicle.id, ())))
            for vehicle in self.vehicles
        )

    def with_random_breakdowns(self, model: RandomBreakdowns | None) -> Layout:
        """Return this floor and fleet with all vehicles breaking down at random as `model` says.

        Parameters
        ----------
        model : RandomBreakdowns or None
            None for no random breakdowns; listed ones stay.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If it is neither.
        """
        check_model(model, "random_breakdowns")
        return self._with_vehicles(
            replace(vehicle, random_breakdowns=model) for vehicle in self.vehicles
        )

    def _with_vehicles(self, vehicles: Iterable[Vehicle]) -> Layout:
        _ = self.routes
        other = copy.copy(self)
        object.__setattr__(other, "vehicles", tuple(vehicles))
        return other

    @property
    def has_random_breakdowns(self) -> bool:
        """Whether some vehicle breaks down at random, so that episodes differ."""
        return any(vehicle.random_breakdowns is not None for vehicle in self.vehicles)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Layout:
        """Read a layout from a JSON file.

        Parameters
        ----------
        path : path-like
            Format in `instances/README.md`.

        Raises
        ------
        LayoutError
            If the file cannot be read or does not describe a layout; the message names the field.
        """
        text = read_text(path, LayoutError)
        try:
            name = make_printable(Path(path).stem)[:200]
            layout = cls.from_dict(parse_json(text), default_name=name)
            _ = layout.routes  # refuses lengths that routes cannot be told by
            return layout
        except LayoutError as error:
            raise LayoutError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, data: object, *, default_name: str = "layout") -> Layout:
        """Build a layout from the parsed JSON.

        Parameters
        ----------
        data : dict
            Format in `instances/README.md`.
        default_name : str
            Name of a layout that has none.

        Raises
        ------
        LayoutError
            If a key is unknown or missing, or a value is of the wrong kind or out of range.
        """
        reader = _Reader(data, "")
        reader.check_keys(
            required={"format", "sites", "edges", "vehicles"},
            optional={"name", "task_slots", "truncate_distances", "routes", "scaling"},
        )
        if reader.raw("format") != 1 or isinstance(reader.raw("format"), bool):
            reader.fail("format", "1")
        sites = tuple(_read_site(item) for item in reader.items("sites", 1, MAX_SITES))
        points = {site.id: site for site in sites}
        edges = tuple(_read_edge(item, points) for item in reader.items("edges", 0, MAX_EDGES))
        vehicles = tuple(_read_vehicle(item) for item in reader.items("vehicles", 1, MAX_VEHICLES))
        routes = []
        for k, route in enumerate(reader.entries("routes", 0, MAX_SITES**2)):
            if not isinstance(route, list) or not all(isinstance(site, str) for site in route):
                raise LayoutError(
                    f"routes[{k}]: read {shorten(route)}; expected a list of site ids"
                )
            routes.append(tuple(route))
        return cls(
            name=reader.text("name", default_name),
            sites=sites,
            edges=edges,
            vehicles=vehicles,
            task_slots=int(reader.number("task_slots", 30, 1, MAX_TASK_SLOTS, whole=True)),
            truncate_distances=reader.flag("truncate_distances", False),
            named_routes=tuple(routes),
            scaling=_read_scaling(reader),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as `from_dict` reads it, every field given."""
        data: dict[str, Any] = {
            "format": 1,
            "name": self.name,
            "task_slots": self.task_slots,
            "truncate_distances": self.truncate_distances,
            "sites": [
                {"id": site.id, "x": site.x, "y": site.y, "kind": site.kind} for site in self.sites
            ],
            "edges": [
                {"a": edge.a, "b": edge.b, "length": edge.length, "one_way": edge.one_way}
                for edge in self.edges
            ],
            "routes": [list(route) for route in self.named_routes],
            "vehicles": [
                {
                    "id": vehicle.id,
                    "start": vehicle.start,
                    "speed": vehicle.speed,
                    "capacity": vehicle.capacity,
                    "breakdowns": [
                        {"time": item.time, "repair_time": item.repair_time}
                        for item in vehicle.breakdowns
                    ],
                    **(
                        {"random_breakdowns": asdict(vehicle.random_breakdowns)}
                        if vehicle.random_breakdowns is not None
                        else {}
                    ),
                }
                for vehicle in self.vehicles
            ],
        }
        if self.scaling is not None:
            data["scaling"] = {
                key: list(value) if key in SCALING_PAIRS else value
                for key, value in self.scaling.items()
            }
        return data


def check_model(model: object, where: str) -> None:
    """Refuse what is no model of random breakdowns and not None.

    Raises
    ------
    LayoutError
        With the place `where`.
    """
    if model is not None and not isinstance(model, RandomBreakdowns):
        raise LayoutError(f"{where}: read {describe(model)}; expected RandomBreakdowns or None")


def _check_unique(what: str, ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for k, name in enumerate(ids):
        if name in seen:
            raise LayoutError(f"{what}[{k}].id: '{name}' again; expected each id once")
        seen.add(name)


def shorten(value: object) -> str:
    """Return a value as it stood in its file, cut to a length that fits an error's line."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = describe(value) if isinstance(value, int | float) else type(value).__name__
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class _Reader:
    """An object of the JSON tree that knows its place, so that errors can name it."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise LayoutError(f"{where or 'the file'}: read {shorten(data)}; expected an object")
        self.data = data
        self.where = where

    def name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def raw(self, key: str) -> object:
        return self.data.get(key)

    def fail(self, key: str, expected: str) -> NoReturn:
        raise LayoutError(f"{self.name(key)}: read {shorten(self.raw(key))}; expected {expected}")

    def check_keys(self, required: set[str], optional: set[str]) -> None:
        for key in self.data:
            if key not in required | optional:
                known = ", ".join(sorted(required | optional))
                raise LayoutError(
                    f"{self.name(shorten(key))}: unknown key; expected one of {known}"
                )
        for key in sorted(required):
            if key not in self.data:
                raise LayoutError(f"{self.name(key)}: missing; this key is required")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            self.fail(key, "a non-empty text")
        if len(value) > 200 or not value.isprintable():
            self.fail(key, "at most 200 printable characters")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def number(
        self,
        key: str,
        default: float | None,
        low: float,
        high: float = MAX_NUMBER,
        *,
        whole: bool = False,
    ) -> float:
        value: Any = self.data.get(key, default)
        what = "a whole number" if whole else "a number"
        if not is_real(value) or not low <= value <= high or (whole and value != int(value)):
            self.fail(key, f"{what} from {low:g} to {high:g}")
        return float(value) + 0.0  # minus zero is zero

    def entries(self, key: str, least: int, most: int) -> list[Any]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not least <= len(value) <= most:
            found = f"{len(value)} entries" if isinstance(value, list) else shorten(value)
            raise LayoutError(
                f"{self.name(key)}: read {found}; expected a list of {least} to {most}"
            )
        return value

    def items(self, key: str, least: int, most: int) -> list[_Reader]:
        return [
            _Reader(item, f"{self.name(key)}[{k}]")
            for k, item in enumerate(self.entries(key, least, most))
        ]


def parse_json(text: str) -> object:
    """Parse JSON without a key that stands twice; NaN and infinities are left to the fields' checks.

    Raises
    ------
    LayoutError
        With line and column of the first fault.
    """

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise LayoutError(f"key {shorten(twice)} stands twice in one object; expected it once")
        return data

    try:
        return json.loads(text, object_pairs_hook=refuse_duplicates)
    except json.JSONDecodeError as error:
        raise LayoutError(
            f"line {error.lineno} column {error.colno}: not JSON: {error.msg.lower()}"
        ) from error
    except RecursionError as error:
        raise LayoutError("objects nested too deeply; expected a layout") from error
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        raise LayoutError(f"not JSON: {error}") from error


def _read_site(item: _Reader) -> Site:
    item.check_keys({"id", "x", "y"}, {"kind"})
    return Site(
        id=item.text("id"),
        x=item.number("x", None, -MAX_NUMBER),
        y=item.number("y", None, -MAX_NUMBER),
        kind=item.text("kind", ""),
    )


def _read_edge(item: _Reader, points: Mapping[str, Site]) -> Edge:
    item.check_keys({"a", "b"}, {"length", "one_way"})
    a, b = item.text("a"), item.text("b")
    euclidean = 0.0
    if a in points and b in points:
        euclidean = math.hypot(points[a].x - points[b].x, points[a].y - points[b].y)
    return Edge(
        a=a,
        b=b,
        length=item.number("length", euclidean, 0.0, 4 * MAX_NUMBER),
        one_way=item.flag("one_way", False),
    )


def _read_vehicle(item: _Reader) -> Vehicle:
    item.check_keys({"id", "start"}, {"speed", "capacity", "breakdowns", "random_breakdowns"})
    breakdowns = []
    for entry in item.items("breakdowns", 0, MAX_BREAKDOWNS):
        entry.check_keys({"time", "repair_time"}, set())
        breakdowns.append(
            Breakdown(
                time=entry.number("time", None, 0.0),
                repair_time=entry.number("repair_time", None, 0.0),
            )
        )
    return Vehicle(
        id=item.text("id"),
        start=item.text("start"),
        speed=item.number("speed", 1.0, MIN_SPEED),
        capacity=item.number("capacity", 0.0, 0.0),
        breakdowns=tuple(breakdowns),
        random_breakdowns=_read_random_breakdowns(item),
    )


def _read_random_breakdowns(vehicle: _Reader) -> RandomBreakdowns | None:
    if "random_breakdowns" not in vehicle.data:
        return None
    item = _Reader(vehicle.raw("random_breakdowns"), vehicle.name("random_breakdowns"))
    item.check_keys(set(MEAN_TIMES), set())
    return RandomBreakdowns(
        **{key: item.number(key, None, least) for key, least in MEAN_TIMES.items()}
    )


def _read_scaling(reader: _Reader) -> dict[str, Any] | None:
    if "scaling" not in reader.data:
        return None
    item = _Reader(reader.raw("scaling"), "scaling")
    item.check_keys({*SCALING_PAIRS, *SCALING_DIVISORS}, set())
    scaling: dict[str, Any] = {}
    for key in SCALING_PAIRS:
        pair = item.raw(key)
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(is_real(value) and abs(value) <= MAX_NUMBER for value in pair)
            or pair[1] < 1e-9
        ):
            item.fail(key, "[middle, half width], both numbers, the half width above 0")
        scaling[key] = (float(pair[0]), float(pair[1]))
    for key in SCALING_DIVISORS:
        scaling[key] = item.number(key, None, 1e-9)
    return scaling


def _find_routes(layout: Layout) -> Routes:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n_sites = len(layout.sites)
    edge_length = np.full((n_sites, n_sites), np.inf)
    for edge in layout.edges:
        a, b = layout.site_index[edge.a], layout.site_index[edge.b]
        edge_length[a, b] = min(edge_length[a, b], edge.length)
        if not edge.one_way:
            edge_length[b, a] = min(edge_length[b, a], edge.length)
    starts, ends = np.nonzero(np.isfinite(edge_length))
    lengths = edge_length[starts, ends]
    # Before SciPy 1.15 the shortest paths take indices of 32 bits only.
    ways = starts.astype(np.int32), ends.astype(np.int32)
    graph = csr_array((lengths, ways), shape=(n_sites, n_sites))
    distance = shortest_path(graph, method="D", directed=True)

    _check_shortest_edge(lengths, distance)

    # Going through edges by descending end, the first neighbour on a shortest route stays.
    next_site = np.tile(np.arange(n_sites, dtype=np.int32)[:, None], (1, n_sites))
    finite = np.isfinite(distance)
    slack = TOLERANCE * np.maximum(1.0, np.where(finite, distance, 1.0))
    for k in np.argsort(-ends, kind="stable"):
        a, b = starts[k], ends[k]
        shortest = finite[a] & (lengths[k] + distance[b] <= distance[a] + slack[a])
        shortest[a] = False
        next_site[a, shortest] = b
    explicit: dict[tuple[int, int], tuple[int, ...]] = {}
    if (lengths == 0.0).any():
        explicit = _route_over_zero_edges(edge_length, distance, slack, next_site)
    for route in layout.named_routes:
        if len(route) > 1 and all(site in layout.site_index for site in route):
            indices = tuple(layout.site_index[site] for site in route)
            explicit[indices[0], indices[-1]] = indices
    return Routes(
        distance=distance, edge_length=edge_length, next_site=next_site, explicit=explicit
    )


def _check_shortest_edge(lengths: np.ndarray, distance: np.ndarray) -> None:
    """Refuse lengths within the tolerance of routes: a vehicle could go to and fro for ever."""
    positive = lengths[lengths > 0.0]
    if not len(positive):
        return
    longest = float(distance[np.isfinite(distance)].max())
    # Every step over an edge of no length may be off by the tolerance.
    steps = 2 if len(positive) == len(lengths) else len(distance)
    least = steps * TOLERANCE * max(1.0, longest)
    if positive.min() <= least:
        raise LayoutError(
            f"edges: one is {positive.min():g} m long and the longest route {longest:g} m; "
            f"expected lengths of 0 or above {least:g} m"
        )


def _route_over_zero_edges(
    edge_length: np.ndarray, distance: np.ndarray, slack: np.ndarray, next_site: np.ndarray
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Find the first shortest route that visits no site twice, where edges of no length allow loops.

    `next_site` is set to the first step of each route; routes that it does not lead along are
    returned.
    """
    n_sites = len(distance)
    if n_sites > MAX_SITES_WITH_ZERO_EDGES:
        raise LayoutError(
            f"edges: some have length 0 on a floor of {n_sites} sites; expected lengths above 0, or at "
            f"most {MAX_SITES_WITH_ZERO_EDGES} sites"
        )
    neighbours = [np.flatnonzero(np.isfinite(row)).tolist() for row in edge_length]

    def leads_on(a: int, b: int, target: int) -> bool:
        step = edge_length[a, b] + distance[b, target]
        return bool(step <= distance[a, target] + slack[a, target])

    def arrives(site: int, target: int, visited: set[int]) -> bool:
        # A step of positive length never comes back, so only steps of no length are followed.
        seen, stack = {site}, [site]
        while stack:
            a = stack.pop()
            if a == target:
                return True
            for b in neighbours[a]:
                if b not in visited and b not in seen and leads_on(a, b, target):
                    if edge_length[a, b] > 0.0:
                        return True
                    seen.add(b)
                    stack.append(b)
        return False

    routes: dict[tuple[int, int], tuple[int, ...]] = {}
    for a, target in zip(*np.nonzero(np.isfinite(distance)), strict=True):
        route = [int(a)]
        while route[-1] != target:
            here, visited = route[-1], set(route)
            route.append(
                next(
                    b
                    for b in neighbours[here]
                    if b not in visited
                    and leads_on(here, b, target)
                    and (edge_length[here, b] > 0.0 or arrives(b, int(target), visited))
                )
            )
        routes[int(a), int(target)] = tuple(route)
    for (start, target), steps in routes.items():
        if len(steps) > 1:
            next_site[start, target] = steps[1]
    return {
        ends: steps
        for ends, steps in routes.items()
        if any(next_site[a, ends[1]] != b for a, b in pairwise(steps))
    }
