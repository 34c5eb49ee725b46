"""VDMA LIF (Layout Interchange Format, JSON) as a layout: metres, directed edges, stations."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acerl_np.problem.importers import common
from acerl_np.problem.json_tree import parse_json, refuse, shorten
from acerl_np.problem.layout import CHARGER
from acerl_np.problem.limits import LIFT_LENGTH, MIN_SPEED
from acerl_np.support.errors import LayoutError, make_printable

MAX_DEGREE = 20
MAX_CONTROL_POINTS = 10_000
SAMPLES_PER_SPAN = 64

Entry = tuple[str, dict[str, Any]]
"""An object with its place in the file."""

PROPERTIES = ("vehicleTypeEdgeProperties", "mobileRobotTypeEdgeProperties")
"""Where an edge lists what holds for each type of vehicle, in versions 1 and 2."""

NODE_PROPERTIES = ("vehicleTypeNodeProperties", "mobileRobotTypeNodeProperties")
TYPES = ("vehicleTypeId", "mobileRobotTypeId", "mobileRobotTypes")
"""Keys that name a type, or since version 2 list several."""

ACTIONS = ("actions", "feasibleActions")
"""Where a node lists them, in versions 1 and 2."""

SPEEDS = ("maxSpeed", "maximumSpeed")

GAP = 0.1
"""Between levels beside each other, as a share of their width."""


def import_lif(
    text: str, *, layout_id: str | None = None, join: bool = False, name: str = "layout"
) -> tuple[dict[str, Any], list[str]]:
    """Turn a LIF file into a layout without vehicles.

    Nodes become sites, edges one-way edges, two opposite ones of equal length one two-way edge; lengths
    follow the first trajectory given, or are straight. A station alone on its only node gives that site its
    id; the node's id, its name and the station's name become aliases. The kind of a station's sites is its
    type, or what its name shares with others but for a number at the end, or "station"; it is "charger" where
    that type is about charging, or where vehicles charge at all nodes and neither pick nor drop. The format's
    version is not looked at.

    Of several layouts `layout_id` chooses one: its layoutId, its layoutLevelId where one layout has several
    levels, or both with a slash in between. Or `join` takes all as the levels of one floor, side by side: an
    id that stands in several of them gets the level's name before it, with a slash in between. `name` is that
    of a layout that has none. What is returned is what `read_floor` says.
    """
    data = parse_json(text, common.Entry)
    if not isinstance(data, common.Entry):
        refuse("the file", data, "an object with layouts")
    if "layouts" not in data and "sites" in data:
        raise LayoutError("sites: this is a layout of acerl_np already; expected LIF, with layouts")
    if "layouts" in data or "origins" not in data:
        layouts = common.read_entries(data, "layouts", "", required=True)
    else:  # since version 2 layouts stand below the origins of their coordinates
        layouts = []
        for place, origin in common.read_entries(data, "origins", ""):
            layouts += common.read_entries(origin, "layouts", place)
    if join and layout_id is not None:
        raise LayoutError("--layout-id: given beside --join, which takes all layouts")
    if not join or not layouts:
        chosen = _choose(layouts, layout_id)
        for _, other in layouts:
            if other is not chosen[1]:
                other.clear()
        layouts = [chosen]
    draft = common.Draft()
    levels = [common.Draft(warnings=draft.warnings) for _ in layouts]
    for level, (where, layout) in zip(levels, layouts, strict=True):
        for place, node in common.read_entries(layout, "nodes", where, required=True):
            _read_node(level, place, node)
    titles = _name_levels(layouts)
    names = _share_names([list(level.points) for level in levels], titles)
    shifts = _set_side_by_side(draft, levels, names, layouts)
    for (where, layout), level, own in zip(layouts, levels, names, strict=True):
        edges = common.read_entries(layout, "edges", where)
        if not edges and len(level.points) > 1:
            found = "missing" if layout.get("edges") is None else "an empty list"
            said = f"{found}, so no site can be reached from another"
            draft.warnings.add("edges", f"{where}.edges", said)
        _read_edges(draft, edges, own, shifts)
    entries = [common.read_entries(layout, "stations", where) for where, layout in layouts]
    _read_stations(draft, entries, names, titles)
    ids = {str(layout.get("layoutId")) for _, layout in layouts}
    for key in ("layoutName", "layoutId") if len(layouts) == 1 else ("layoutId",):
        title = layouts[0][1].get(key)
        if isinstance(title, str) and title.strip() and len(ids) == 1:
            name = title.strip()
            break
    draft.note_unread(data)
    return draft.finish(name)


def _list_ids(layouts: Sequence[Entry]) -> tuple[list[str], list[str], list[str]]:
    """Return each layout's id, its level's, and both: the levels of a building may share one layoutId."""
    ids, levels = (
        [str(layout.get(key) or "").strip() for _, layout in layouts]
        for key in ("layoutId", "layoutLevelId")
    )
    return ids, levels, [f"{a}/{b}" for a, b in zip(ids, levels, strict=True)]


def _name_levels(layouts: Sequence[Entry]) -> list[str]:
    """Return a name for each layout: its level's, its own, or both, whichever differ; else its number."""
    ids, levels, both = _list_ids(layouts)
    for names in (levels, ids, both):
        shown = [make_printable(name) for name in names]
        if all(shown) and len(set(shown)) == len(shown):
            return shown
    return [str(k + 1) for k in range(len(layouts))]


def _share_names(ids: Sequence[Sequence[str]], titles: Sequence[str]) -> list[dict[str, str]]:
    """Return what each level's ids become: one of several levels gets the level's title before it."""
    several = Counter(name for own in ids for name in own)
    return [
        {name: f"{title}/{name}" if several[name] > 1 else name for name in own}
        for own, title in zip(ids, titles, strict=True)
    ]


def _set_side_by_side(
    draft: common.Draft,
    levels: Sequence[common.Draft],
    names: Sequence[Mapping[str, str]],
    layouts: Sequence[Entry],
) -> dict[str, float]:
    """Add the nodes of all levels, each level to the right of those before; return each node's shift."""
    shifts: dict[str, float] = {}
    right = None
    spans = [[x for x, _ in level.points.values()] for level in levels]
    width = max((max(xs) - min(xs) for xs in spans if xs), default=0.0)
    for level, own, xs, (where, _) in zip(levels, names, spans, layouts, strict=True):
        if not xs:
            continue
        shift = 0.0 if right is None else float(math.ceil(right - min(xs)))
        for node, (x, y) in level.points.items():
            draft.add_point(f"{where}.nodes", own[node], x + shift, y)
            shifts[own[node]] = shift
        draft.kinds |= {own[node]: kind for node, kind in level.kinds.items()}
        draft.titles |= {own[node]: title for node, title in level.titles.items()}
        right = max(xs) + shift + max(1.0, GAP * width)
    return shifts


def _choose(layouts: Sequence[Entry], layout_id: str | None) -> Entry:
    if not layouts:
        raise LayoutError("layouts: an empty list; expected at least one layout")
    ids, levels, whole = _list_ids(layouts)
    several = Counter(ids)
    shown = [b if several[a] > 1 else a for a, b in zip(ids, whole, strict=True)]
    listed = ", ".join(shorten(name) for name in shown[:10])
    if layout_id is not None:
        for names in (ids, whole, levels):
            if names.count(layout_id) == 1:
                return layouts[names.index(layout_id)]
        raise LayoutError(
            f"layouts: {ids.count(layout_id)} with layoutId {shorten(layout_id)}; expected one of "
            f"{listed} (--layout-id)"
        )
    if len(layouts) != 1:
        raise LayoutError(
            f"layouts: read {len(layouts)} of them ({listed}); expected one, or the one to take "
            "(--layout-id), or --join"
        )
    return layouts[0]


def _read_node(draft: common.Draft, where: str, node: dict[str, Any]) -> None:
    position = node.get("nodePosition")
    if not isinstance(position, dict):
        refuse(f"{where}.nodePosition", position, "an object with x and y")
    place, said = f"{where}.nodePosition", draft.warnings
    x, y = (
        common.read_number(position.get(axis), f"{place}.{axis}", unit="metres", warnings=said)
        for axis in ("x", "y")
    )
    name = common.read_name(node.get("nodeId"), f"{where}.nodeId", draft.warnings)
    draft.add_point(where, name, x, y)
    if isinstance(node.get("nodeName"), str):
        draft.titles[name] = node["nodeName"].strip()
    actions: set[str] = set()
    for key in NODE_PROPERTIES:
        for k, item in enumerate(_take_list(node, key)):
            if isinstance(item, dict):
                _note_restriction(draft.warnings, f"{where}.{key}[{k}]", item, "the node")
                for action in (x for name in ACTIONS for x in _take_list(item, name)):
                    kind = action.get("actionType") if isinstance(action, dict) else action
                    actions.add(str(kind))
    if any(map(common.is_charging, actions)) and actions.isdisjoint(("pick", "drop")):
        draft.kinds[name] = CHARGER


def _take_list(item: dict[str, Any], key: str) -> list[Any]:
    """Return the list at a key, an empty one where something else is there."""
    value = item.get(key)
    return value if isinstance(value, list) else []


def _note_restriction(
    warnings: common.Warnings, place: str, item: dict[str, Any], what: str
) -> None:
    limits = item.get("loadRestriction")
    if isinstance(limits, dict) and not all(
        common.read_flag(limits.get(key), f"{place}.loadRestriction.{key}", True)
        for key in ("loaded", "unloaded")
    ):
        said = f"not known to a layout, {what} is open to all"
        warnings.add("load restrictions", f"{place}.loadRestriction", said)


def _list_types(item: dict[str, Any]) -> set[str]:
    """Return the types of vehicle for which these properties hold."""
    found = [item[key] for key in TYPES if item.get(key) is not None]
    each = [entry for value in found for entry in (value if isinstance(value, list) else [value])]
    for entry in each:
        if isinstance(entry, common.Entry):
            entry.asked.update(entry)
    return {json.dumps(entry, sort_keys=True) for entry in each}


def _read_limit(properties: Sequence[Entry], warnings: common.Warnings) -> float:
    """Return an edge's speed limit, m/s, inf without: the lowest, if its types of vehicle have several."""
    limits = {}
    for place, item in properties:
        for key in SPEEDS:
            if item.get(key) is None:
                continue
            name = f"{place}.{key}"
            limit = common.read_number(item[key], name, 0.0, unit="m/s", warnings=warnings)
            if limit < MIN_SPEED:
                warnings.add("speed limits", name, f"read {shorten(item[key])}, taken as none")
            else:
                limits[name] = limit
    lowest = min(limits.values(), default=math.inf)
    if limits and max(limits.values()) > lowest:
        name = min(limits, key=lambda key: limits[key])
        said = f"{lowest:g} m/s, the lowest of its limits, holds for every vehicle"
        warnings.add("speed limits", name, said)
    return lowest


def _read_edges(
    draft: common.Draft, entries: list[Entry], names: Mapping[str, str], shifts: Mapping[str, float]
) -> None:
    warnings = draft.warnings
    types: set[str] = set()
    allowed: list[tuple[str, set[str]]] = []
    for where, edge in entries:
        a = common.read_name(edge.get("startNodeId"), f"{where}.startNodeId", warnings)
        b = common.read_name(edge.get("endNodeId"), f"{where}.endNodeId", warnings)
        a, b = names.get(a, a), names.get(b, b)
        if not draft.can_join(where, a, b):
            continue
        properties = [item for key in PROPERTIES for item in common.read_entries(edge, key, where)]
        (ax, ay), (bx, by) = draft.points[a], draft.points[b]
        where_told = where
        length = straight = math.hypot(ax - bx - shifts[a] + shifts[b], ay - by)
        curved = [(place, x) for place, x in properties if x.get("trajectory") is not None]
        for place, item in curved[:1]:
            try:
                length = measure_trajectory(item["trajectory"])
            except LayoutError as error:
                warnings.add("trajectories", f"{place}.trajectory", f"{error}; taken as straight")
            where_told = f"{place}.trajectory"
        for place, item in properties:
            guided = item.get("physicalLineGuidedProperty")
            if isinstance(guided, dict) and guided.get("length") is not None:
                where_told = f"{place}.physicalLineGuidedProperty.length"
                length = common.read_number(guided["length"], where_told, 0.0, unit="metres")
        if length < 0.999 * straight:
            said = f"{length:g} m long, its nodes lie {straight:g} m apart; taken as straight"
            warnings.add("trajectories", where_told, said)
            length = straight
        for place, item in properties:
            _note_restriction(warnings, place, item, "the edge")
        if shifts[a] != shifts[b] and length == 0.0:
            length = LIFT_LENGTH
            said = f"between levels, from '{a}' to '{b}', taken as {length:g} m"
            warnings.add("lifts", where, said)
        limit = _read_limit(properties, warnings)
        named = {name for _, item in properties for name in _list_types(item)}
        types |= named
        allowed.append((where, named))
        draft.add_edge(where, a, b, length, limit)
    for where, named in allowed:
        if named and len(named) < len(types):
            said = f"for {len(named)} of {len(types)} vehicle types, taken as open to all"
            warnings.add("vehicle types", where, said)


def _read_stations(
    draft: common.Draft,
    entries: Sequence[list[Entry]],
    names: Sequence[Mapping[str, str]],
    titles: Sequence[str],
) -> None:
    """Read the stations of all levels, with what each level calls its nodes."""
    found = [
        [_read_station(where, item, draft, own) for where, item in listed]
        for listed, own in zip(entries, names, strict=True)
    ]
    ids = _share_names([list(dict.fromkeys(item.id for item in own)) for own in found], titles)
    stations: list[common.Station] = []
    for level, own in zip(found, ids, strict=True):
        stations += [item._replace(id=own[item.id]) for item in level]
    classes = common.find_class([item.name for item in stations])
    for item, shared in zip(stations, classes, strict=True):
        kind = item.kind or shared
        charges = item.nodes and all(draft.kinds.get(node) == CHARGER for node in item.nodes)
        kind = CHARGER if charges or common.is_charging(kind) else kind
        draft.stations.append(item._replace(kind=kind))
    draft.note_chargers("LIF has neither levels of energy nor rates of use (--battery)")


def _read_station(
    where: str, station: dict[str, Any], draft: common.Draft, names: Mapping[str, str]
) -> common.Station:
    name = common.read_name(station.get("stationId"), f"{where}.stationId", draft.warnings)
    listed = station.get("interactionNodeIds")
    listed = listed if isinstance(listed, list) else [] if listed is None else [listed]
    places = [(f"{where}.interactionNodeIds[{k}]", value) for k, value in enumerate(listed)]
    nodes = draft.find_nodes("interaction nodes", "node", places, names)
    kind, label = (
        value.strip() if isinstance(value, str) else ""
        for value in (station.get("stationType"), station.get("stationName"))
    )
    return common.Station(name, nodes, kind, label)


def measure_trajectory(trajectory: object) -> float:
    """Return the length of a trajectory, a NURBS curve, m, to about one part in 10,000."""
    if not isinstance(trajectory, dict):
        raise LayoutError(f"read {shorten(trajectory)}; expected an object")
    degree = int(common.read_number(trajectory.get("degree", 1), "degree", 1, MAX_DEGREE))
    entries = common.read_entries(trajectory, "controlPoints", "", required=True)
    if not degree < len(entries) <= MAX_CONTROL_POINTS:
        raise LayoutError(f"controlPoints: read {len(entries)}; expected more than degree {degree}")
    points = np.array(
        [
            [common.read_number(item.get(axis), f"{place}.{axis}") for axis in ("x", "y")]
            for place, item in entries
        ]
    )
    if degree == 1:  # runs through its control points, whatever knots and weights
        return float(np.hypot(*np.diff(points, axis=0).T).sum())
    from scipy.interpolate import BSpline

    listed = [(place, item.get("weight")) for place, item in entries]
    weights = np.array(
        [common.read_number(1 if x is None else x, f"{place}.weight", 1e-9) for place, x in listed]
    )
    vector, n_knots = trajectory.get("knotVector"), len(points) + degree + 1
    if not isinstance(vector, list) or len(vector) != n_knots:
        refuse("knotVector", vector, f"{n_knots} numbers")
    knots = np.array(
        [common.read_number(value, f"knotVector[{k}]") for k, value in enumerate(vector)]
    )
    inner = np.unique(knots[degree : len(points) + 1])
    if (np.diff(knots) < 0).any() or len(inner) < 2:
        refuse("knotVector", vector, "rising numbers")
    places = np.unique(np.linspace(inner[:-1], inner[1:], SAMPLES_PER_SPAN + 1))
    curve = BSpline(knots, np.column_stack([points * weights[:, None], weights]), degree)(places)
    length = float(np.hypot(*np.diff(curve[:, :2] / curve[:, 2:], axis=0).T).sum())
    if not math.isfinite(length):
        raise LayoutError("not a finite curve")
    return length
