"""Every field of a layout: what it takes, what is missing without it, and that a refusal names its place."""

import json
import math

import pytest

import acerl_np
from acerl_np import Battery, Charger, Layout, LayoutError, Parking

BATTERY = {
    **{"capacity": 9000, "start": 8000, "idle": 1, "empty": 3, "loaded": 7, "charge": 30},
    **{"critical": 2000, "resume": 4500, "good": 6000, "full": 8500, "tow": 60},
}
MODEL = {"mean_time_between_failures": 60, "mean_time_to_repair": 7.5}
WHOLE = {
    **{"format": 1, "name": "small", "task_slots": 5, "truncate_distances": False},
    "sites": [{"id": name, "x": k, "y": 7 * k % 5, "kind": "k"} for k, name in enumerate("ABCD")],
    "edges": [{"a": "A", "b": "B", "length": 5, "max_speed": 1.5}, {"a": "B", "b": "C"}]
    + [{"a": a, "b": b, "one_way": True} for a, b in ("CD", "DA")],
    "vehicles": [
        {"id": "v0", "start": "A", "speed": 1.5, "capacity": 4, "battery": BATTERY}
        | {"breakdowns": [{"time": 12.5, "repair_time": 30}], "random_breakdowns": MODEL}
    ],
    "scaling": {
        **{
            key: [7.5, 2.5] for key in ("distance", "waiting", "expiry", "demand", "total_distance")
        },
        **{"speed": 1.5, "capacity": 4},
    },
    "battery": {**BATTERY},
    "chargers": [{"site": "A", "slots": 2}],
    "parking": {"after": 9, "places": [{"site": "B", "places": 2}]},
    "stations": {"S": ["C"]},
    "aliases": {"old": "S"},
    "machines": [{"site": "D", "servers": 2}],
    "blocks": [{"id": "x", "kind": "single", "sites": ["B"], "edges": [["B", "A"]]}],
}
ODD = ["3", "", " ", "A\nB", "x" * 201, True, None, [], {}, [1], {"z": 1}, math.nan, math.inf]
ODD += [10**400, -1, 0, 1, 2.5, 2e9, 1e13]


def list_places(value, place=()):
    if place:
        yield place, value
    parts = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inner in parts.items() if isinstance(parts, dict) else ():
        yield from list_places(inner, (*place, key))


def show(place):
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in place).lstrip(".")


def refuse(place, edit):
    """What is said of the whole floor with one part edited; nothing if it is taken."""
    data = json.loads(json.dumps(WHOLE))
    part = data
    for key in place[:-1]:
        part = part[key]
    edit(part, place[-1])
    try:
        Layout.from_dict(data)
    except LayoutError as error:
        return str(error)
    return ""


TAKEN = {
    "1": "format task_slots vehicles.battery.charge battery.charge chargers.slots parking.places.places "
    "machines.servers",
    "0 1": "vehicles.battery.start vehicles.battery.idle vehicles.battery.empty vehicles.battery.loaded "
    "vehicles.battery.tow battery.start battery.idle battery.empty battery.loaded battery.critical "
    "battery.tow parking.after",
    "1 2.5": "edges.max_speed vehicles.speed vehicles.random_breakdowns.mean_time_between_failures "
    "scaling.speed scaling.capacity",
    "0 1 2.5": "edges.length vehicles.capacity vehicles.breakdowns.time vehicles.breakdowns.repair_time "
    "vehicles.random_breakdowns.mean_time_to_repair",
    "-1 0 1 2.5": "sites.x sites.y",
    "2000000000.0": "vehicles.battery.capacity battery.capacity",
    "True": "truncate_distances edges.one_way",
    "'3' '' ' '": "name sites.kind",
    "'3'": "vehicles.id blocks.id",
    "[]": "vehicles.breakdowns machines blocks blocks.sites blocks.edges",
    "{}": "aliases",
}
"""Of the odd values those that are taken, and by which fields; by pairs of numbers, see below."""

OPTIONAL = """
name task_slots truncate_distances sites.kind edges.length edges.max_speed edges.one_way vehicles.speed
vehicles.capacity vehicles.battery vehicles.battery.start vehicles.battery.tow vehicles.breakdowns
vehicles.random_breakdowns scaling battery battery.start battery.tow chargers.slots parking parking.after
parking.places.places aliases aliases.old machines machines.servers blocks blocks.kind blocks.sites
blocks.edges
"""
SHARED = ("sites.id", "edges", "edges.a", "edges.b", "chargers", "stations", "stations.S")
"""What others name, or want: where it is another, they are refused."""


def test_what_a_field_may_not_be_is_refused_at_its_place():
    assert Layout.from_dict(WHOLE)
    takes, faults = {}, []
    for place, _ in list_places(WHOLE):
        name = ".".join(key for key in place if isinstance(key, str))
        taken = []
        for odd in ODD:
            line = refuse(place, lambda part, key, odd=odd: part.__setitem__(key, odd))
            where = line.partition(":")[0]
            if not line:
                taken.append(repr(odd))
            elif (
                "\n" in line
                or "; " not in line
                or not (where in show(place) or show(place) in where or name in SHARED)
            ):
                faults.append(f"{show(place)} = {odd!r:.30}: {line:.150}")
        if name.startswith("scaling.") and isinstance(place[-1], int):
            expected = ["-1", "0", "1", "2.5"][2 * place[-1] :]  # a middle, half a width
            faults += [f"{show(place)}: {taken}"] * (taken != expected)
        elif taken:
            takes.setdefault(" ".join(taken), []).append(name)
    assert faults == []
    assert {key: set(x) for key, x in takes.items()} == {
        k: set(x.split()) for k, x in TAKEN.items()
    }


def test_a_key_that_is_missing_or_unknown_is_named():
    faults = []
    for place, value in list_places(WHOLE):
        name = ".".join(key for key in place if isinstance(key, str))
        if isinstance(value, dict) and name not in ("stations", "aliases"):
            line = refuse(place, lambda part, key: part[key].update(z=1))
            faults += [f"{show(place)}: {line}"] * (f'{show(place)}."z": unknown key' not in line)
        if isinstance(place[-1], str) and name not in ("chargers", "stations", "stations.S"):
            line = refuse(place, lambda part, key: part.pop(key))
            missing = f"{show(place)}: missing; this key is required"
            expected = "" if name in OPTIONAL.split() else missing
            faults += [f"{expected or show(place)}? {line}"] * (line != expected)
    assert faults == []


PARTS = [
    (acerl_np.Edge, {"a": "a", "b": "b", "length": 3.0}, {"length": -1.0, "max_speed": 0.0}),
    (acerl_np.Edge, {"a": "a", "b": "b", "length": 3.0}, {"length": math.nan, "one_way": 2}),
    (acerl_np.Vehicle, {"id": "v", "start": "a"}, {"speed": math.nan, "capacity": -1.0, "id": ""}),
    (acerl_np.Site, {"id": "a", "x": 0.0, "y": 0.0}, {"x": math.inf, "holds": 0}),
    (acerl_np.Breakdown, {"time": 3.0, "repair_time": 1.0}, {"time": -1.0, "repair_time": -1.0}),
    (Battery, BATTERY, {"charge": 0, "idle": -1, "tow": 0.5}),
    (Charger, {"site": "a"}, {"slots": 0}),
    (Parking, {"places": ()}, {"after": -1}),
]


@pytest.mark.parametrize(("kind", "good", "bad"), PARTS)
def test_parts_of_a_layout_are_checked_where_they_are_made(kind, good, bad):
    """As those of a file are: an edge of negative length, a charger that charges nothing have no end."""
    made = kind(**good)
    assert all(getattr(made, name) == value for name, value in good.items())
    for name, value in bad.items():
        with pytest.raises(LayoutError, match=rf"^{kind.__name__}\.{name}: read .*; expected "):
            kind(**{**good, name: value})
