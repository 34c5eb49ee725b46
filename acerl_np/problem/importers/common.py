"""What the importers share: lenient reading of names and numbers, warnings, and the layout they make."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.limits import MAX_EDGES, MAX_NUMBER, MAX_SITES
from acerl_np.problem.routes import MAX_SITES_WITH_ZERO_EDGES
from acerl_np.problem.stations import STATION
from acerl_np.support.errors import LayoutError
from acerl_np.support.numbers import is_real

MAX_NAME = 200
"""Characters of a name or of a site's kind."""

SHORTEST = 1e-3
"""Metres that an edge of no length gets on a floor too large for such edges."""

WARNINGS_OF_A_SORT = 3


class Warnings:
    """Warnings of one import: the first few of each sort, then how many more there are."""

    def __init__(self) -> None:
        self._messages: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, sort: str, message: str, most: int = WARNINGS_OF_A_SORT) -> None:
        """Keep a warning.

        Parameters
        ----------
        sort : str
            What its like have in common, such as "edges left out".
        message : str
            One line that names the place.
        most : int
            How many of the sort are kept.
        """
        self._counts[sort] = self._counts.get(sort, 0) + 1
        messages = self._messages.setdefault(sort, [])
        if len(messages) < most:
            messages.append(message)

    def lines(self) -> list[str]:
        """Return the warnings, sort by sort in the order in which each first came up."""
        lines = []
        for sort, messages in self._messages.items():
            lines += messages
            more = self._counts[sort] - len(messages)
            if more:
                lines.append(f"{sort}: {more} more like these")
        return lines


@dataclass(frozen=True)
class Station:
    """A place where loads change hands.

    Attributes
    ----------
    id : str
    nodes : tuple of str
        Those from which vehicles serve it.
    kind : str
        Its type, which several stations may share.
    name : str
        What it is called besides; may be empty.
    """

    id: str
    nodes: tuple[str, ...]
    kind: str = ""
    name: str = ""


@dataclass
class Draft:
    """A floor while it is read.

    Attributes
    ----------
    points : dict
        (x, y) of each node, m.
    kinds : dict
        Of some nodes without a station.
    lengths : dict
        Length of the shortest directed edge of each pair of nodes, m.
    limits : dict
        Speed limit of that edge, m/s, inf without.
    stations : list of Station
    vehicles : list of dict
        As in a layout, `start` being a node.
    warnings : Warnings
    """

    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    lengths: dict[tuple[str, str], float] = field(default_factory=dict)
    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    stations: list[Station] = field(default_factory=list)
    vehicles: list[dict[str, Any]] = field(default_factory=list)
    warnings: Warnings = field(default_factory=Warnings)

    def add_point(self, where: str, name: str, x: float, y: float) -> None:
        """Add a node.

        Parameters
        ----------
        where : str
            Its place in the file.
        name : str
        x, y : float, m

        Raises
        ------
        LayoutError
            If the node stands already elsewhere, or there are too many.
        """
        if name in self.points:
            if self.points[name] != (x, y):
                raise LayoutError(
                    f"{where}: '{name}' again, at another position; expected each id once"
                )
            self.warnings.add("repeated nodes", f"{where}: '{name}' again, left out")
            return
        if len(self.points) >= MAX_SITES:
            raise LayoutError(f"{where}: more than {MAX_SITES:,} nodes; expected fewer")
        self.points[name] = (x, y)

    def distance(self, a: str, b: str) -> float:
        """Return the straight distance of two nodes, m."""
        return math.hypot(
            self.points[a][0] - self.points[b][0], self.points[a][1] - self.points[b][1]
        )

    def can_join(self, where: str, a: str, b: str) -> bool:
        """Return whether an edge has two different known nodes; warn if not.

        Parameters
        ----------
        where : str
            The edge's place in the file.
        a, b : str
            Its nodes.
        """
        for name in (a, b):
            if name not in self.points:
                self.warnings.add("edges left out", f"{where}: unknown node '{name}', left out")
                return False
        if a == b:
            self.warnings.add("edges left out", f"{where}: goes from '{a}' to itself, left out")
        return a != b

    def add_edge(self, where: str, a: str, b: str, length: float, limit: float = math.inf) -> None:
        """Add a directed edge; of several from a to b the shortest stays, of equally long ones the fastest.

        Parameters
        ----------
        where : str
            Its place in the file.
        a, b : str
            Its nodes.
        length : float, m
        limit : float, m/s

        Raises
        ------
        LayoutError
            If there are too many.
        """
        length = round(length, 6)
        if (a, b) in self.lengths:
            known = self.lengths[a, b], -self.limits[a, b]
            length, negated = min((length, -limit), known)
            limit = -negated
            self.warnings.add(
                "parallel edges",
                f"{where}: another edge from '{a}' to '{b}', the shortest ({length:g} m) stays",
            )
        elif len(self.lengths) >= 2 * MAX_EDGES:
            raise LayoutError(f"{where}: more than {2 * MAX_EDGES:,} edges; expected fewer")
        self.lengths[a, b] = length
        self.limits[a, b] = limit

    def finish(self, name: str) -> tuple[dict[str, Any], list[str]]:
        """Return the layout and the warnings.

        Parameters
        ----------
        name : str
            Name of the floor.

        Returns
        -------
        layout : dict
            As `Layout.from_dict` reads it, but for a list of vehicles that may be empty.
        warnings : list of str
            One line each.

        Raises
        ------
        LayoutError
            If there are no nodes.
        """
        if not self.points:
            raise LayoutError("no nodes; expected at least one")
        sites, kinds, stations, aliases = self._name_sites()
        self._lengthen_edges()
        edges = []
        done: set[tuple[str, str]] = set()
        for (a, b), length in self.lengths.items():
            if (a, b) in done:
                continue
            two_way = self.lengths.get((b, a)) == length
            if two_way:
                done.add((b, a))
            edge = {"a": sites[a], "b": sites[b], "length": length, "one_way": not two_way}
            limit = self.limits[a, b]
            back = self.limits[b, a] if two_way else limit
            edge |= {"max_speed": limit} if limit < math.inf else {}
            edge |= {"max_reverse_speed": min(back, MAX_NUMBER)} if back != limit else {}
            edges.append(edge)
        layout: dict[str, Any] = {
            "format": 1,
            "name": _clip(name),
            "sites": [
                {"id": sites[node], "x": x, "y": y, "kind": kinds[node]}
                for node, (x, y) in self.points.items()
            ],
            "edges": edges,
            "vehicles": [{**item, "start": sites[item["start"]]} for item in self.vehicles],
        }
        layout |= {"stations": stations} if stations else {}
        layout |= {"aliases": aliases} if aliases else {}
        return layout, self.warnings.lines()

    def _name_sites(
        self,
    ) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]], dict[str, str]]:
        """Return each node's site and kind, the stations of other names, and the aliases.

        A station alone on its only node gives that node's site its name.
        """
        at: dict[str, list[Station]] = {}
        known: dict[str, Station] = {}
        for station in self.stations:
            if station.id in known:
                self.warnings.add("stations", f"station '{station.id}': again, left out")
                continue
            known[station.id] = station
            if not station.nodes:
                self.warnings.add("stations", f"station '{station.id}': no known node, left out")
            elif len(station.nodes) > 1:
                self.warnings.add(
                    "stations",
                    f"station '{station.id}': {len(station.nodes)} nodes "
                    f"({_join(station.nodes)}), which keep their ids as sites",
                )
            for node in station.nodes:
                at.setdefault(node, []).append(station)
        sites, kinds = {}, {}
        for node in self.points:
            sites[node] = node
            kinds[node] = _clip(self.kinds.get(node, ""))
            here = at.get(node, [])
            if here:
                kinds[node] = _clip(here[0].kind) or STATION
            if len(here) > 1:
                self.warnings.add(
                    "shared nodes",
                    f"node '{node}': {len(here)} stations ({_join([s.id for s in here])}), "
                    "it keeps its id as a site",
                )
            elif here and len(here[0].nodes) == 1 and here[0].id != node:
                if here[0].id in self.points:
                    self.warnings.add(
                        "stations",
                        f"station '{here[0].id}': another node has this id, its site stays '{node}'",
                    )
                else:
                    sites[node] = here[0].id
        return sites, kinds, *self._name_stations(sites, known)

    def _name_stations(
        self, sites: Mapping[str, str], known: Mapping[str, Station]
    ) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Return the stations that no site is named after, and what else nodes and stations are called."""
        ids = set(sites.values())
        stations = {
            station.id: [sites[node] for node in station.nodes]
            for station in known.values()
            if station.nodes and station.id not in ids and station.id not in self.points
        }
        aliases = {node: site for node, site in sites.items() if node != site}
        taken = {*ids, *self.points, *stations}
        called = Counter(station.name for station in known.values())
        for station in known.values():
            named = station.id in stations or (
                len(station.nodes) == 1 and sites[station.nodes[0]] == station.id
            )
            own = station.name not in taken and called[station.name] == 1
            if named and own and _is_name(station.name):
                aliases[station.name] = station.id
        return stations, aliases

    def _lengthen_edges(self) -> None:
        if len(self.points) <= MAX_SITES_WITH_ZERO_EDGES:
            return
        for (a, b), length in self.lengths.items():
            if length < SHORTEST:
                self.lengths[a, b] = SHORTEST
                self.warnings.add(
                    "edges of no length",
                    f"edge from '{a}' to '{b}': {length:g} m, made {SHORTEST} m",
                )


def find_class(names: Sequence[str]) -> list[str]:
    """Return what names have in common but for a number at their end, such as "Rack" of "Rack 12".

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    list of str
        Of each name; empty where no other name has the same.
    """
    stems = [name.rstrip("0123456789").rstrip(" .:_#/-") for name in names]
    several = Counter(stems)
    return [stem if several[stem] > 1 else "" for stem in stems]


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _clip(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 3]}..."


def _is_name(text: str) -> bool:
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def read_name(value: object, where: str, warnings: Warnings) -> str:
    """Return a name without the spaces around it; a whole number is read as one.

    Parameters
    ----------
    value : object
        As it stood in the file.
    where : str
        Place and field.
    warnings : Warnings
        Told of a number.

    Raises
    ------
    LayoutError
        If it is missing, empty, too long, or neither text nor a whole number.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        warnings.add("numbers as names", f"{where}: read the number {shorten(value)} as a name", 1)
        value = str(value)
    name = value.strip() if isinstance(value, str) else ""
    if not _is_name(name):
        raise LayoutError(
            f"{where}: read {shorten(value)}; expected a name of at most {MAX_NAME} characters"
        )
    return name


def read_number(
    value: object,
    where: str,
    low: float = -MAX_NUMBER,
    high: float = MAX_NUMBER,
    unit: str = "",
    warnings: Warnings | None = None,
) -> float:
    """Return a number; text that reads as one will do, with a decimal comma too.

    Parameters
    ----------
    value : object
        As it stood in the file.
    where : str
        Place and field.
    low, high : float
        Range.
    unit : str
        Named in the error.
    warnings : Warnings, optional
        Told of a number written as text.

    Raises
    ------
    LayoutError
        If it is missing, not a finite number, or out of range.
    """
    number: Any = value
    if isinstance(value, str) and len(value) <= 100 and "_" not in value:
        try:
            number = float(value.replace(",", "."))
            if warnings is not None:
                text = f"{where}: read the text {shorten(value)} as a number"
                warnings.add("numbers as texts", text, 1)
        except ValueError:
            number = None
    if not is_real(number) or not low <= number <= high:
        what = f"a number of {unit}" if unit else "a number"
        raise LayoutError(f"{where}: read {shorten(value)}; expected {what}")
    return float(number) + 0.0  # minus zero is zero


def read_flag(value: object) -> bool:
    """Return whether a value says yes: true, "true" or "1"."""
    return value is True or (isinstance(value, str) and value.strip().lower() in {"true", "1"})


def read_entries(
    item: Mapping[str, Any], key: str, where: str, *, required: bool = False
) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a list, each with its place.

    Parameters
    ----------
    item : dict
        Holds the list.
    key : str
        Under which it does.
    where : str
        Place of `item`.
    required : bool
        Whether a missing list is an error, and not an empty one.

    Raises
    ------
    LayoutError
        If it is not a list of objects.
    """
    place = f"{where}.{key}" if where else key
    value = item.get(key)
    if value is None and not required:
        return []
    if not isinstance(value, list):
        raise LayoutError(f"{place}: read {shorten(value)}; expected a list")
    for k, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise LayoutError(f"{place}[{k}]: read {shorten(entry)}; expected an object")
    return [(f"{place}[{k}]", entry) for k, entry in enumerate(value)]
