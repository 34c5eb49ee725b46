"""What the importers share: lenient reading of names and numbers, warnings, and the layout they make."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from acerl_np.problem.fields import parse_number
from acerl_np.problem.json_tree import is_name, refuse, shorten
from acerl_np.problem.layout import CHARGER, STATION
from acerl_np.problem.limits import MAX_EDGES, MAX_NAME, MAX_NUMBER, MAX_SITES
from acerl_np.problem.routes import MAX_SITES_WITH_ZERO_EDGES
from acerl_np.support.errors import LayoutError, list_first, list_some, make_printable

SHORTEST = 1e-3
"""Metres that an edge of no length gets on a floor too large for such edges."""

WARNINGS_OF_A_SORT = 3
MOST_UNREAD = 25
FLAGS = {"true": True, "1": True, "false": False, "0": False}
SAID_ONCE = ("numbers as names", "numbers as texts")


class Warnings(dict[str, list[str]]):
    """Warnings of one import by their sort, such as "edges left out"; each names its place."""

    def add(self, sort: str, place: str, said: str) -> None:
        """Keep a line."""
        self.setdefault(sort, []).append(f"{place}: {said}")

    def lines(self) -> list[str]:
        """Return the first few of each sort, then how many more there are."""
        lines = []
        for sort, messages in self.items():
            most = 1 if sort in SAID_ONCE else WARNINGS_OF_A_SORT
            lines += messages[:most]
            if messages[most:]:
                lines.append(f"{sort}: {len(messages) - most} more like these")
        return lines


class Entry(dict[str, Any]):
    """An object of a file that remembers for which of its keys it was asked."""

    __slots__ = ("asked",)

    def __init__(self, pairs: Any = ()) -> None:
        super().__init__(pairs)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value at a key, and remember that somebody wanted it."""
        self.asked.add(key)
        return super().get(key, default)


def _count_unread(value: object, place: str, found: Counter[str]) -> None:
    """Count the keys of objects that nobody has asked for, below those that somebody has."""
    several = value if isinstance(value, list) else [value]
    for entry in (x for x in several if isinstance(x, Entry)):
        for key, inner in entry.items():
            where = f"{place}.{key.strip('<>')}".removeprefix(".")
            if key in entry.asked:
                _count_unread(inner, where, found)
            else:
                found[where] += len(inner) if key[:1] == "<" else 1


class Station(NamedTuple):
    """A place where loads change hands, with the nodes from which vehicles serve it, its type and name."""

    id: str
    nodes: tuple[str, ...]
    kind: str = ""
    name: str = ""
    is_locked: bool = False


@dataclass
class Draft:
    """A floor while it is read.

    `points` are (x, y) of each node, m; `kinds` those of some nodes without a station; `titles` what some
    nodes are called besides their ids; `ways` length, m, and speed limit, m/s, of the directed edge of each
    pair of nodes; `vehicles` and `blocks` as in a layout, of nodes.
    """

    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    ways: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    stations: list[Station] = field(default_factory=list)
    vehicles: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    warnings: Warnings = field(default_factory=Warnings)

    def add_point(self, where: str, name: str, x: float, y: float) -> None:
        """Add a node; `LayoutError` if it stands already elsewhere, or there are too many."""
        if name in self.points:
            if self.points[name] != (x, y):
                raise LayoutError(
                    f"{where}: '{name}' again, at another position; expected each id once"
                )
            self.warnings.add("repeated nodes", where, f"'{name}' again, left out")
            return
        if len(self.points) >= MAX_SITES:
            raise LayoutError(f"{where}: more than {MAX_SITES:,} nodes; expected fewer")
        self.points[name] = (x, y)

    def distance(self, a: str, b: str) -> float:
        """Return the straight distance of two nodes, m."""
        (ax, ay), (bx, by) = self.points[a], self.points[b]
        return math.hypot(ax - bx, ay - by)

    def note_chargers(self, said: str) -> None:
        """Warn that there are chargers, with what is `said` of them."""
        names = [item.id for item in self.stations if item.kind == CHARGER]
        if names:
            self.warnings.add("chargers", "chargers", f"{count_names(names)} kept as sites; {said}")

    def note_unread(self, data: Entry) -> None:
        """Warn of the keys of a file that no reader has asked for."""
        found: Counter[str] = Counter()
        _count_unread(data, "", found)
        ends = {key: make_printable(".".join(key.split(".")[-3:])) for key in found}
        if shown := [f"{ends[key][:60]} ({n:,})" for key, n in found.items()]:
            self.warnings.add("not read", "not read", list_some(shown, MOST_UNREAD))

    def can_join(self, where: str, a: str, b: str) -> bool:
        """Return whether an edge has two different known nodes; warn if not."""
        fault = f"goes from '{a}' to itself" if a == b else ""
        for name in (b, a):
            if name not in self.points:
                fault = f"unknown node '{name}'"
        if fault:
            self.warnings.add("edges left out", where, f"{fault}, left out")
        return not fault

    def find_nodes(
        self, sort: str, noun: str, listed: Iterable[tuple[str, object]], names: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Return the known ones of nodes that are listed with their places; `names` are what they became."""
        known: dict[str, None] = {}
        for place, value in listed:
            node = read_name(value, place, self.warnings)
            node = names.get(node, node)
            if node in self.points:
                known[node] = None
            else:
                self.warnings.add(sort, place, f"unknown {noun} '{node}', left out")
        return tuple(known)

    def add_edge(self, where: str, a: str, b: str, length: float, limit: float = math.inf) -> None:
        """Add a directed edge; of several from a to b the shortest stays, of equal ones the fastest."""
        way = (round(length, 6), limit)
        if (a, b) in self.ways:
            way = min(way, self.ways[a, b], key=lambda item: (item[0], -item[1]))
            said = f"another edge from '{a}' to '{b}', the shortest ({way[0]:g} m) stays"
            self.warnings.add("parallel edges", where, said)
        elif len(self.ways) >= 2 * MAX_EDGES:
            raise LayoutError(f"{where}: more than {2 * MAX_EDGES:,} edges; expected fewer")
        self.ways[a, b] = way

    def finish(self, name: str) -> tuple[dict[str, Any], list[str]]:
        """Return a layout as `Layout.from_dict` reads it, maybe without vehicles, and the warnings."""
        if not self.points:
            raise LayoutError("no nodes; expected at least one")
        served = {node for item in self.stations if item.kind != CHARGER for node in item.nodes}
        sites, kinds, stations, aliases = self._name_sites(served)
        plugs = {node for item in self.stations if item.kind == CHARGER for node in item.nodes}
        self._lengthen_edges()
        layout = {
            "format": 1,
            "name": _clip(name),
            "sites": [
                {"id": sites[node], "x": x, "y": y, "kind": kinds[node]}
                for node, (x, y) in self.points.items()
            ],
            "edges": self._join_ways(sites),
            "vehicles": [{**item, "start": sites[item["start"]]} for item in self.vehicles],
        }
        chargers = [
            {"site": sites[node]}
            for node in self.points
            if node not in served and (node in plugs or self.kinds.get(node) == CHARGER)
        ]
        blocks = []
        for block in self.blocks:
            edges = [[sites[node] for node in pair] for pair in block["edges"]]
            blocks.append(block | {"sites": [sites[x] for x in block["sites"]], "edges": edges})
        more = {"chargers": chargers, "stations": stations, "aliases": aliases, "blocks": blocks}
        return layout | {key: some for key, some in more.items() if some}, self.warnings.lines()

    def _join_ways(self, sites: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the edges: two opposite ways of equal length are one."""
        edges = []
        done: set[tuple[str, str]] = set()
        for (a, b), (length, limit) in self.ways.items():
            if (a, b) in done:
                continue
            back_length, back = self.ways.get((b, a), (None, limit))
            two_way = back_length == length
            edge = {"a": sites[a], "b": sites[b], "length": length, "one_way": not two_way}
            edge |= {"max_speed": limit} if limit < math.inf else {}
            if two_way:
                done.add((b, a))
                edge |= {"max_reverse_speed": min(back, MAX_NUMBER)} if back != limit else {}
            edges.append(edge)
        return edges

    def _name_sites(
        self, served: Collection[str]
    ) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]], dict[str, str]]:
        """Return each node's site and kind, the stations of other names, and the aliases.

        A station alone on its only node gives that node's site its name. A charger has only nodes that are
        not `served` by another station.
        """
        at: dict[str, list[Station]] = {node: [] for node in self.points}
        known: dict[str, Station] = {}
        for item in self.stations:
            station, said = item, ""
            if item.kind == CHARGER:
                station = item._replace(nodes=tuple(k for k in item.nodes if k not in served))
            n = len(station.nodes)
            if station.id in known:
                said = "again, left out"
            elif n == 0:
                lacks = "node without another station" if item.nodes else "known node"
                said = f"no {lacks}, left out"
            elif n > 1:
                said = f"{n} nodes ({list_first(station.nodes)}), which keep their ids as sites"
            elif station.is_locked:
                said = "kept as a site"
            if said:
                locked = "locked, " * station.is_locked
                self.warnings.add("stations", f"station '{station.id}'", f"{locked}{said}")
            if known.setdefault(station.id, station) is station:
                for node in station.nodes:
                    at[node].append(station)
        sites, kinds = {}, {}
        for node, here in at.items():
            sites[node] = node
            kind = here[0].kind or STATION if here else self.kinds.get(node, "")
            if kind == CHARGER:  # a parking place with a charger goes on being one
                kind = self.kinds.get(node, kind)
            kinds[node] = _clip(kind)
            if len(here) > 1:
                said = f"{len(here)} stations ({list_first([s.id for s in here])}), it keeps its id as a site"
                self.warnings.add("shared nodes", f"node '{node}'", said)
            elif here and len(here[0].nodes) == 1 and here[0].id != node:
                if here[0].id in self.points:
                    said = f"another node has this id, its site stays '{node}'"
                    self.warnings.add("stations", f"station '{here[0].id}'", said)
                else:
                    sites[node] = here[0].id
        return sites, kinds, *self._name_stations(sites, known)

    def _name_stations(
        self, sites: Mapping[str, str], known: Mapping[str, Station]
    ) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Return the stations that no site is named after, and what else nodes and stations are called."""
        ids = {*sites.values(), *self.points}
        stations = {
            station.id: [sites[node] for node in station.nodes]
            for station in known.values()
            if station.nodes and station.id not in ids and station.kind != CHARGER
        }
        aliases = {node: site for node, site in sites.items() if node != site}
        called = [
            (station.name, station.id)
            for station in known.values()
            if station.id in stations or [sites[node] for node in station.nodes] == [station.id]
        ]
        for names in (called, [(title, sites[node]) for node, title in self.titles.items()]):
            several = Counter(name for name, _ in names)
            for name, target in names:
                taken = name in ids or name in stations or name in aliases or several[name] > 1
                if not taken and is_name(name):
                    aliases[name] = target
        return stations, aliases

    def _lengthen_edges(self) -> None:
        if len(self.points) <= MAX_SITES_WITH_ZERO_EDGES:
            return
        for (a, b), (length, limit) in self.ways.items():
            if length < SHORTEST:
                self.ways[a, b] = SHORTEST, limit
                edge, said = f"edge from '{a}' to '{b}'", f"{length:g} m, made {SHORTEST} m"
                self.warnings.add("edges of no length", edge, said)


def leave_out_dead_ends(layout: dict[str, Any]) -> list[str]:
    """Take chargers that no edge leads away from out of an imported layout; return a warning, if any."""
    left = {a for edge in layout["edges"] for a in (edge["a"], edge["b"])[: 2 - edge["one_way"]]}
    chargers = layout.pop("chargers", [])
    if kept := [x for x in chargers if x["site"] in left or len(layout["sites"]) == 1]:
        layout["chargers"] = kept
    lost = [x["site"] for x in chargers if x not in kept]
    found = f"chargers: {count_names(lost)} left out, as no edge leads away from there"
    return [found] if lost else []


def count_names(names: Sequence[str]) -> str:
    """Return "2 (A, B)"."""
    return f"{len(names)} ({list_first(names)})"


SHARES = {"critical": 20.0, "resume": 45.0, "good": 60.0, "full": 95.0}
"""Levels of a battery of which none are known, in percent of its capacity."""


def complete_battery(
    given: Mapping[str, int], shares: Mapping[str, float] = SHARES
) -> dict[str, int]:
    """Return a battery as a layout has it, with a capacity and levels in percent where none are given."""
    levels = {key: round(given["capacity"] * share / 100.0) for key, share in shares.items()}
    return {**levels, **given}


def is_charging(word: str) -> bool:
    """Return whether an operation, an action or a type is about charging: "CHARGE", "startCharging"."""
    return re.match("(start|stop)?(re)?charg", word.lower()) is not None


def find_class(names: Sequence[str]) -> list[str]:
    """Return of each name what others share but for a number at the end: "Rack" of "Rack 12"; else ""."""
    stems = [name.rstrip("0123456789").rstrip(" .:_#/-") for name in names]
    several = Counter(stems)
    return [stem if several[stem] > 1 else "" for stem in stems]


def _clip(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 3]}..."


def read_name(value: object, where: str, warnings: Warnings | None = None) -> str:
    """Return a name without the spaces around it; a whole number is read as one, with a warning."""
    if isinstance(value, int) and not isinstance(value, bool) and warnings is not None:
        warnings.add("numbers as names", where, f"read the number {shorten(value)} as a name")
        value = str(value)
    name = value.strip() if isinstance(value, str) else ""
    if not is_name(name):
        refuse(where, value, f"a name of at most {MAX_NAME} characters")
    return name


def read_number(
    value: object,
    where: str,
    low: float = -MAX_NUMBER,
    high: float = MAX_NUMBER,
    unit: str = "",
    warnings: Warnings | None = None,
) -> float:
    """Return a number; text that reads as one will do, with a decimal comma too, and a warning."""
    number = parse_number(value.replace(",", ".") if isinstance(value, str) else value)
    if not low <= number <= high:
        refuse(where, value, f"a number of {unit}" if unit else "a number")
    if isinstance(value, str) and warnings is not None:
        warnings.add("numbers as texts", where, f"read the text {shorten(value)} as a number")
    return number + 0.0  # minus zero is zero


def read_flag(value: object, where: str, default: bool = False) -> bool:
    """Return whether a value, perhaps a text, says true (1) or false (0); the default of an empty one."""
    word = str(value).strip().lower()
    if value is None or word == "":
        return default
    return FLAGS[word] if word in FLAGS else refuse(where, value, "true or false")


def read_entries(
    item: Mapping[str, Any], key: str, where: str, *, required: bool = False
) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a list, each with its place; a missing list is empty unless it is required."""
    place = f"{where}.{key}" if where else key
    value = item.get(key)
    if value is None and not required:
        return []
    if not isinstance(value, list):
        refuse(place, value, "a list")
    for k, entry in enumerate(value):
        if not isinstance(entry, dict):
            refuse(f"{place}[{k}]", entry, "an object")
    return [(f"{place}[{k}]", entry) for k, entry in enumerate(value)]
