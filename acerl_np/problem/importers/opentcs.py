"""openTCS plant models (XML) as a layout: millimetres to metres, paths to edges, vehicles to a fleet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import compress
from typing import Any, NamedTuple
from xml.etree import ElementTree

from acerl_np.problem.importers import common
from acerl_np.problem.json_tree import refuse, shorten
from acerl_np.problem.layout import CHARGER, PARKING
from acerl_np.problem.limits import MAX_NUMBER, MAX_VEHICLES, MIN_SPEED
from acerl_np.support.errors import LayoutError

MAX_ELEMENTS = 1_000_000
MAX_DEPTH = 50
MAX_TAG = 100_000
"""Characters from a tag's beginning to the next tag's: the parser takes a tag as a whole."""
MAX_ATTRIBUTES = 200

CHUNK = 2**20
"""Characters parsed at a time: the parser itself does not stop within a piece that has been refused."""

MILLIMETRES = 1000.0
"""In a metre: plant models count in millimetres and mm/s."""

START_PROPERTIES = (
    "loopback:initialPosition",
    "tcs:preferredParkingPosition",
    "tcs:assignedParkingPosition",
)
"""Properties of a vehicle that name a point: where openTCS's simulation starts it, where it parks."""


LEVELS = {
    "critical": "energyLevelCritical",
    "resume": "energyLevelSufficientlyRecharged",
    "good": "energyLevelGood",
    "full": "energyLevelFullyRecharged",
}
"""What the levels of a battery are called, in percent."""

TAGS = ("point", "path", "locationType", "location", "vehicle", "block")

RECHARGING = "rechargeOperation"
"""End of a vehicle's property that names its operation at chargers, such as "loopback:rechargeOperation"."""

PROPERTY, OPERATION = "property", "allowedOperation"
PERIPHERALS = ("peripheralOperation", "allowedPeripheralOperation")

BLOCKS = {"SINGLE_VEHICLE_ONLY": "single", "SAME_DIRECTION_ONLY": "same_direction"}
ENTRY = "tcs:blockEntryDirection"
"""Property of a path: another name for the direction in which it leads into blocks."""

IDLE_OPERATIONS = {"NOP", "PARK", "MOVE"}
"""Operations at a location that move no load, of chargers, too."""


class _Element(NamedTuple):
    """An element of the model, and its place in the file."""

    where: str
    xml: common.Entry

    @property
    def name(self) -> str:
        """What it is called, "" where it has no name."""
        return str(self.xml.get("name", "")).strip()

    @property
    def has_levels(self) -> bool:
        """Whether it says one of a battery's levels."""
        told = [self.xml.get(name) for name in LEVELS.values()]
        return told != [None] * len(told)

    @property
    def properties(self) -> common.Entry:
        """What its properties hold, by their names."""
        return self.xml.get(PROPERTY) or common.Entry()

    def list_children(self, tag: str) -> list[common.Entry]:
        """Return its elements of a tag."""
        return _list_children(self.xml, tag)

    def list_names(self, *tags: str) -> list[str]:
        """Return the names of its children with these tags."""
        return [x.get("name", "") for tag in tags for x in self.list_children(tag)]

    def describe(self, name: str) -> str:
        """Return what an attribute holds, for a warning: "none" where it is missing or empty."""
        value = self.xml.get(name, "")
        return f"read {shorten(value)}" if value.strip() else "none"

    def read_name(self, key: str = "name") -> str:
        """Return the name that an attribute holds."""
        return common.read_name(self.xml.get(key), f"{self.where}.{key}")

    def read_metres(self, name: str, low: float, default: float | None = None) -> float | None:
        """Return an attribute in metres (or m/s), the default where it is missing or empty."""
        value = self.xml.get(name, "")
        if not value.strip():
            return default
        high = MAX_NUMBER * MILLIMETRES
        unit = "mm/s" if "Velocity" in name else "mm"
        return common.read_number(value, f"{self.where}.{name}", low, high, unit) / MILLIMETRES


Model = Mapping[str, list[_Element]]
"""Elements of `TAGS` by their tags."""


def _list_children(element: common.Entry, tag: str) -> list[common.Entry]:
    found: list[common.Entry] = element.get(f"<{tag}>", [])
    return found


class _Builder:
    """Builds a model's tree of objects; refuses what is too deep or too large for one.

    Elements stand below their parents by their tags in brackets, values of properties by their names.
    """

    def __init__(self) -> None:
        self._above = [common.Entry()]
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        name, said = tag.rpartition("}")[2], ""
        if len(self._above) > MAX_DEPTH or self._count > MAX_ELEMENTS:
            said = f"more than {MAX_DEPTH} elements deep or {MAX_ELEMENTS:,} in all; expected a plant model"
        elif len(attributes) > MAX_ATTRIBUTES:
            said = f"{len(attributes):,} attributes; expected at most {MAX_ATTRIBUTES}"
        if said:
            raise LayoutError(f"<{shorten(name)[1:-1]}>: {said}")
        if len(self._above) == 1 and name != "model":
            refuse("root element", name, "a plant model's <model>")
        element, parent = common.Entry(attributes), self._above[-1]
        if name == "property":
            own = parent.setdefault(PROPERTY, common.Entry())
            own.setdefault(attributes.get("name", ""), attributes.get("value", ""))
        else:
            parent.setdefault(f"<{name}>", []).append(element)
        self._above.append(element)

    def end(self, _: str) -> None:
        self._above.pop()

    def close(self) -> common.Entry:
        [root] = _list_children(self._above[0], "model")
        return root


def _parse(text: str) -> Any:
    # Entities can only be declared in a DOCTYPE, which no plant model needs.
    declared = re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE)
    found = declared or re.search(rf"<[^<]{{{MAX_TAG}}}", text)
    if found:
        said = f"{shorten(found[0][:20])} and more than {MAX_TAG:,} characters until the next tag"
        expected = "a plant model"
        if declared:
            said = f"read a <!{declared[1].upper()}> declaration"
            expected += " without one"
        line = text.count("\n", 0, found.start()) + 1
        raise LayoutError(f"line {line}: {said}; expected {expected}")
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        for start in range(0, len(text), CHUNK):
            parser.feed(text[start : start + CHUNK])
        model: Any = parser.close()
    except ElementTree.ParseError as error:
        line, column = error.position
        reason = str(error).partition(":")[0]
        raise LayoutError(f"line {line} column {column + 1}: not XML: {reason}") from error
    return model


def import_opentcs(
    text: str, *, name: str = "layout", battery: Mapping[str, int] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Turn an openTCS plant model into a layout with the model's vehicles.

    Paths are open forwards where maxVelocity is above 0 or missing, backwards where maxReverseVelocity is;
    both are speed limits. A location alone on its only point gives that site its name, the point's becomes an
    alias; a location's type is the kind of its sites, "charger" where its operations are charging only.
    The layout's `chargers` are those, a slot each. The model holds levels of energy, but no rates: `battery`
    gives them, with a capacity.
    Blocks are those of points and paths. In one of one direction a point between its paths belongs to it.
    A vehicle starts where the first of `START_PROPERTIES` that it has says, else on the parking points in
    turn, or on the first point, of those from which a path leads. `name` is that of a model that has none.
    What is returned is what `read_floor` says.
    """
    root: common.Entry = _parse(text)
    draft = common.Draft()
    found = {tag: enumerate(_list_children(root, tag), 1) for tag in TAGS}
    model = {tag: [_Element(f"{tag}[{k}]", xml) for k, xml in found[tag]] for tag in TAGS}
    for item in model["point"]:
        _read_point(draft, item)
    if not model["path"] and len(draft.points) > 1:
        draft.warnings.add("paths", "path", "none, so no site can be reached from another")
    for item in model["path"]:
        _read_path(draft, item)
    _read_blocks(draft, model)
    _read_locations(draft, model)
    _read_vehicles(draft, model["vehicle"], battery)
    _note_left_out(draft, model)
    root.asked |= {"version", "<visualLayout>"}
    name = root.get("name", "").strip() or name
    draft.note_unread(root)
    return draft.finish(name)


def _read_point(draft: common.Draft, item: _Element) -> None:
    name = item.read_name()
    position = []
    # Version 7 of the format calls positionX what earlier ones call xPosition.
    for old, new in (("xPosition", "positionX"), ("yPosition", "positionY")):
        key = new if new in item.xml and old not in item.xml else old
        metres = item.read_metres(key, -MAX_NUMBER * MILLIMETRES)
        if metres is None:
            draft.warnings.add("positions", f"{item.where}.{key}", "missing, taken as 0")
        position.append(metres or 0.0)
    draft.add_point(item.where, name, position[0], position[1])
    if item.xml.get("type", "").upper().startswith("PARK"):
        draft.kinds[name] = PARKING


def _read_path(draft: common.Draft, item: _Element) -> None:
    """Add a path's edges."""
    warnings = draft.warnings
    a, b = item.read_name("sourcePoint"), item.read_name("destinationPoint")
    title = shorten(item.xml.get("name", ""))
    forward = item.read_metres("maxVelocity", 0.0)
    backward = item.read_metres("maxReverseVelocity", 0.0, 0.0)
    length = item.read_metres("length", -MAX_NUMBER * MILLIMETRES)
    if common.read_flag(item.xml.get("locked"), f"{item.where}.locked"):
        warnings.add("locked paths", item.where, f"{title} is locked, left out")
        return
    if not draft.can_join(item.where, a, b):
        return
    if forward == 0.0 and not backward:
        warnings.add("edges left out", item.where, f"{title} is open in no direction, left out")
        return
    if length is None or length <= 0.0:
        length = draft.distance(a, b)
        found = item.describe("length")
        warnings.add("lengths", f"{item.where}.length", f"{found}, taken as straight, {length:g} m")
    elif length < 0.5 * draft.distance(a, b):
        said = f"{length:g} m, its points lie {draft.distance(a, b):g} m apart"
        warnings.add("lengths", f"{item.where}.length", said)
    if forward is None or forward > 0.0:
        limit = math.inf if forward is None else max(forward, MIN_SPEED)
        draft.add_edge(item.where, a, b, length, limit)
    if backward:
        draft.add_edge(item.where, b, a, length, max(backward, MIN_SPEED))


def _read_blocks(draft: common.Draft, model: Model) -> None:
    """Add blocks, of their known points and paths that are open."""
    keys = "sourcePoint", "destinationPoint"
    ends = {x.name: [x.xml.get(key, "").strip() for key in keys] for x in model["path"]}
    joined: dict[str, set[frozenset[str]]] = {}
    for pair in draft.ways:
        for node in pair:
            joined.setdefault(node, set()).add(frozenset(pair))
    for item in model["block"]:
        name, word = item.read_name(), item.xml.get("type", "") or "SINGLE_VEHICLE_ONLY"
        if word not in BLOCKS:
            refuse(f"{item.where}.type", word, f"one of {', '.join(BLOCKS)}")
        members = [member.strip() for member in item.list_names("member")]
        sites = [member for member in members if member in draft.points]
        edges = {frozenset(ends[x]): ends[x] for x in members if x in ends}
        edges = {both: pair for both, pair in edges.items() if both in joined.get(pair[0], ())}
        lost = [x for x in members if x not in draft.points and x not in ends]
        if lost:
            said = f"members of '{name}': {common.count_names(lost)} left out; expected points and paths"
            draft.warnings.add("block members", item.where, said)
        if BLOCKS[word] == "same_direction":
            between = [x for x, own in joined.items() if len(own) > 1 and own <= edges.keys()]
            sites += [node for node in between if node not in sites]
        if sites or edges:
            block = {"id": name, "kind": BLOCKS[word], "sites": sites, "edges": [*edges.values()]}
            draft.blocks.append(block)
        else:
            draft.warnings.add(
                "blocks", item.where, f"'{name}' holds nothing of the floor, left out"
            )


def _read_locations(draft: common.Draft, model: Model) -> None:
    """Add locations as stations, those of charging alone as chargers, but no peripherals."""
    types = {item.name: item for item in model["locationType"]}
    recharging = {
        item.properties.get(name).strip()
        for item in model["vehicle"]
        for name in item.properties
        if name.endswith(RECHARGING)
    }
    for item in model["location"]:
        name, kind = item.read_name(), item.xml.get("type", "").strip()
        if kind in types:
            operations = types[kind].list_names(OPERATION)
            if types[kind].list_names(*PERIPHERALS) and not operations:
                continue
            useful = [word for word in operations if word.strip().upper() not in IDLE_OPERATIONS]
            if useful and all(common.is_charging(x) or x.strip() in recharging for x in useful):
                kind = CHARGER
        links = enumerate(item.list_children("link"), 1)
        places = [(f"{item.where}.link[{k}].point", link.get("point")) for k, link in links]
        points = draft.find_nodes("links", "point", places, {})
        is_locked = common.read_flag(item.xml.get("locked"), f"{item.where}.locked")
        draft.stations.append(common.Station(name, points, kind, is_locked=is_locked))
    draft.note_chargers("no tasks are drawn to them")


def _note_left_out(draft: common.Draft, model: Model) -> None:
    """Name what a layout does not hold: peripherals, ways into blocks, report points, links' operations."""

    def note(what: str, items: list[_Element], said: str) -> None:
        if items:
            draft.warnings.add(what, what, f"{_count_named(items)} left out; {said}")

    def is_door(item: _Element) -> bool:
        return bool(item.list_names(*PERIPHERALS)) or item.xml.get("type", "").strip() in doors

    doors = {item.name for item in model["locationType"] if item.list_names(*PERIPHERALS)}
    directed = [x for x in model["path"] if x.properties.get(ENTRY) is not None]
    note(f"{ENTRY} of paths", directed, "each path is a direction of its own")
    doubtful = [*filter(is_door, (*model["location"], *model["path"]))]
    note("peripheral operations of locations and paths", doubtful, "no vehicle waits for them")
    reports = [x for x in model["point"] if x.xml.get("type", "").upper().startswith("REPORT")]
    note("report points", reports, "vehicles may stop there, too")
    links = [[_Element("", link) for link in x.list_children("link")] for x in model["location"]]
    told = [sum(len(link.list_names(OPERATION)) for link in own) for own in links]
    said = "tasks are drawn to and from all stations, but shifts (--arrivals shift --role)"
    note("operations that links allow", [*compress(model["location"], told)], said)
    for item in (*model["point"], *model["path"], *model["location"], *model["vehicle"]):
        _ = item.list_children("outgoingPath"), item.name, item.properties  # the latter one by one


def _count_named(items: list[_Element]) -> str:
    return common.count_names([shorten(item.xml.get("name", ""))[1:-1] for item in items])


def _read_battery(draft: common.Draft, item: _Element, given: Mapping[str, int]) -> dict[str, int]:
    """Return a vehicle's battery: its levels are the model's, where none are given."""
    shares = dict(common.SHARES)
    for key, name in LEVELS.items():
        value, where = item.xml.get(name, ""), f"{item.where}.{name}"
        if value.strip():
            shares[key] = common.read_number(value, where, 0.0, 100.0, "percent, 0 to 100")
    if list(shares.values()) != sorted(shares.values()):
        read = ", ".join(f"{LEVELS[key]} {share:g}" for key, share in shares.items())
        shares = dict(zip(shares, sorted(shares.values()), strict=True))
        draft.warnings.add("levels", item.where, f"{read}, taken in ascending order")
    return common.complete_battery(given, shares)


def _read_size(item: _Element) -> dict[str, float]:
    """Return a vehicle's length and width, m, unless both are the 1 m that editors write at first."""
    boxes = [_Element(f"{item.where}.boundingBox", x) for x in item.list_children("boundingBox")]
    box = (boxes or [item])[0]
    found = {key: box.read_metres(key, 0.0) or 0.0 for key in ("length", "width")}
    is_told = found["length"] > 0.0 and {*found.values()} - {0.0, 1.0}
    return {key: metres for key, metres in found.items() if metres} if is_told else {}


def _read_vehicles(
    draft: common.Draft, items: list[_Element], battery: Mapping[str, int] | None
) -> None:
    if items and not draft.points:
        return
    if len(items) > MAX_VEHICLES:
        raise LayoutError(f"vehicle: {len(items):,} of them; expected at most {MAX_VEHICLES:,}")
    leaving = dict.fromkeys(a for a, _ in draft.ways) or draft.points
    parking = [name for name, kind in draft.kinds.items() if kind == PARKING and name in leaving]
    seen: set[str] = set()
    for k, item in enumerate(items):
        name = item.read_name()
        if name in seen:
            raise LayoutError(f"{item.where}.name: '{name}' again; expected each name once")
        seen.add(name)
        speed = item.read_metres("maxVelocity", 0.0)
        if speed is None or speed < MIN_SPEED:
            found = item.describe("maxVelocity")
            draft.warnings.add("speeds", f"{item.where}.maxVelocity", f"{found}, taken as 1 m/s")
            speed = 1.0
        named = {key: item.properties.get(key, "").strip() for key in START_PROPERTIES}
        start = next((point for point in named.values() if point in draft.points), "")
        if not start:
            unknown = [f"{shorten(point)} ({key})" for key, point in named.items() if point]
            found = f"none of {', '.join(START_PROPERTIES)}"
            if unknown:
                found = f"unknown point {', '.join(unknown)}"
            start = parking[k % len(parking)] if parking else next(iter(leaving))
            draft.warnings.add("starts", item.where, f"{found}; '{name}' starts at '{start}'")
        draft.vehicles.append({"id": name, "start": start, "speed": speed, **_read_size(item)})
        if battery is not None and item.has_levels:
            draft.vehicles[-1]["battery"] = _read_battery(draft, item, battery)
    told = [item for item in items if item.has_levels]
    if battery is None and told:
        said = "left out; no vehicle has to charge without rates of use (--battery)"
        draft.warnings.add("levels", "energy levels of vehicles", f"{_count_named(told)} {said}")
    untold = [item for item in items if not item.has_levels]
    if battery is not None and untold:
        taken = ", ".join(f"{share:g}" for share in common.SHARES.values())
        said = f"{taken} % of the capacity where --battery says nothing else"
        have = f"{_count_named(untold)} have none in the model"
        draft.warnings.add("levels", "energy levels", f"{have}; {said}")
