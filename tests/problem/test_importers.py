"""Floors from LIF and openTCS: what is carried over, what is said, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np.problem.importers import opentcs
from acerl_np.problem.importers.files import import_floor
from acerl_np.problem.importers.lif import import_lif, measure_trajectory
from acerl_np.problem.importers.opentcs import import_opentcs
from acerl_np.support.errors import LayoutError

DATA = Path(__file__).parents[1] / "data"
HALL = (DATA / "hall.lif.json").read_text()
PLANT = (DATA / "plant.xml").read_text()

CORNER = [{"x": 0, "y": 0}, {"x": 3, "y": 0}, {"x": 3, "y": 4}]


def lif(nodes=("a", "b"), edges=("ab",), stations=(), **layout):
    """Return a LIF text; an edge "ab" goes from a to b, nodes lie 3 m apart on a line."""
    return json.dumps(
        {
            "layouts": [
                {
                    "nodes": [
                        {"nodeId": name, "nodePosition": {"x": 3 * nodes.index(name), "y": 0}}
                        for name in nodes
                    ],
                    "edges": [
                        {"startNodeId": e[0], "endNodeId": e[1]} if len(e) == 2 else e
                        for e in edges
                    ],
                    "stations": [
                        {"stationId": name, "interactionNodeIds": list(at)} for name, at in stations
                    ],
                    **layout,
                }
            ]
        }
    )


def levels(*pairs):
    """A building whose levels, pairs of layoutId and layoutLevelId, differ in their only node."""
    text = [lif([f"n{k}"], [], layoutId=a, layoutLevelId=b) for k, (a, b) in enumerate(pairs)]
    return json.dumps(
        {"layouts": [layout for item in text for layout in json.loads(item)["layouts"]]}
    )


def plant(body, points="ab"):
    lines = [
        f'<point name="{name}" xPosition="{3000 * k}" yPosition="0"/>'
        for k, name in enumerate(points)
    ]
    return f'<model name="m">{"".join(lines)}{body}</model>'


def path(a="a", b="b", **attributes):
    given = {"length": 3000, "maxVelocity": 1000, "maxReverseVelocity": 0, **attributes}
    words = " ".join(f'{key}="{value}"' for key, value in given.items() if value is not None)
    return f'<path name="{a}-{b}" sourcePoint="{a}" destinationPoint="{b}" {words}/>'


def ways(layout):
    return [(e["a"], e["b"], e["length"], e["one_way"]) for e in layout["edges"]]


def test_the_lif_sample_is_carried_over():
    layout, warnings = import_floor(DATA / "hall.lif.json")
    assert layout["name"] == "ground"
    sites = {site["id"]: (site["x"], site["y"], site["kind"]) for site in layout["sites"]}
    assert sites == {
        "n1": (0, 0, "station"),
        "pick": (20, 0, "station"),
        "n3": (30, 10, "station"),
        "drop": (20, 20, "station"),
        "n5": (0, 20, "station"),
        "6": (-10, 20, ""),
    }
    # A quarter of a circle, sampled; its straight line would be 14.14 m.
    arc = layout["edges"][1].pop("length")
    assert arc == pytest.approx(5 * math.pi, rel=1e-4) and arc < 5 * math.pi
    layout["edges"][1]["length"] = None
    assert ways(layout) == [
        ("n1", "pick", 20.0, True),
        ("pick", "n3", None, True),
        ("n3", "drop", 14.142136, True),
        ("drop", "n5", 20.0, True),
        ("n5", "n1", 20.0, True),
        ("n5", "6", 10.0, False),
    ]
    assert layout["vehicles"] == []
    assert warnings == [
        'layouts[0].nodes[0].nodePosition.x: read the text "0.0" as a number',
        "numbers as texts: 4 more like these",
        "layouts[0].nodes[5].nodeId: read the number 6 as a name",
        "numbers as names: 2 more like these",
        "layouts[0].edges[7]: unknown node 'lift', left out",
        "station 'wide': 2 nodes (n1, n3), which keep their ids as sites",
        "station 'bare': no known node, left out",
        "node 'n5': 2 stations (upper, lower), it keeps its id as a site",
    ]


def test_the_plant_model_is_carried_over():
    layout, warnings = import_floor(DATA / "plant.xml")
    assert layout["name"] == "plant"
    sites = {site["id"]: (site["x"], site["y"], site["kind"]) for site in layout["sites"]}
    assert sites == {
        "P1": (0, 0, ""),
        "Inbound": (12, 0, "Shelf"),
        "P3": (12, 8, ""),
        "Outbound": (0, 8, "Shelf"),
        "Park": (-3, 8, "parking"),
    }
    assert ways(layout) == [
        ("P1", "Inbound", 12.0, True),
        ("Inbound", "P3", 9.5, False),  # reversible
        ("P3", "Outbound", 12.0, True),
        ("P1", "Outbound", 8.0, False),  # two paths, the first of them only backwards
        ("Outbound", "Park", 3.0, False),
    ]
    assert layout["vehicles"] == [
        {"id": "Truck-1", "start": "P1", "speed": 1.0},
        {"id": "Truck-2", "start": "Park", "speed": 1.5},
    ]
    assert warnings == [
        "path[5]: another edge from 'P1' to 'P4', the shortest (8 m) stays",
        'path[7]: "P1 --- P3" is locked, left out',
        "vehicle[2]: none of loopback:initialPosition, tcs:preferredParkingPosition, "
        "tcs:assignedParkingPosition; 'Truck-2' starts at 'Park'",
    ]


@pytest.mark.parametrize("name", ["hall.lif.json", "plant.xml"])
def test_imported_floors_are_loaded_and_played(tmp_path, name):
    data, _ = import_floor(DATA / name)
    ends = ("pick", "drop") if "lif" in name else ("Inbound", "Outbound")
    data["vehicles"] = data["vehicles"] or [{"id": "v1", "start": ends[0]}]
    (tmp_path / "layout.json").write_text(json.dumps(data))
    layout = acerl_np.load_layout(tmp_path / "layout.json")
    assert len(layout.sites) == len(data["sites"]) and len(layout.edges) == len(data["edges"])
    row = {"task": "t", "pickup": ends[0], "delivery": ends[1]}
    instance = acerl_np.Instance.from_rows(
        "one", layout, [{**row, "arrival_time": 5, "expiry_time": 100}]
    )
    sim = acerl_np.Simulator([instance])
    sim.reset()
    while not sim.done.all():
        sim.step(sim.action_mask.argmax(axis=1))
    if "lif" in name:  # from where it stands over the arc to the delivery
        assert sim.makespan[0] == math.ceil(5 + 5 * math.pi + math.hypot(10, 10))
    else:  # Truck-1: 12 m to the pickup; 9.5 m at 1 m/s and 12 m at 0.3 m/s to the delivery
        assert sim.schedule(0).vehicle[0] == "Truck-1"
        assert sim.makespan[0] == math.ceil(5 + 12 + 9.5 + 12 / 0.3)


def test_opposite_edges_of_equal_length_become_one():
    layout, warnings = import_lif(lif(edges=("ab", "ba")))
    assert ways(layout) == [("a", "b", 3.0, False)] and warnings == []
    both = path() + path("b", "a")
    assert ways(import_opentcs(plant(both))[0]) == [("a", "b", 3.0, False)]
    both = path() + path("b", "a", length=4000)
    assert ways(import_opentcs(plant(both))[0]) == [("a", "b", 3.0, True), ("b", "a", 4.0, True)]


def test_stations_name_sites_only_where_nothing_is_ambiguous():
    def ids(**parts):
        layout, warnings = import_lif(lif(**parts))
        return [site["id"] for site in layout["sites"]], warnings

    assert ids(stations=[("S", "a")]) == (["S", "b"], [])
    assert ids(stations=[("a", "a")]) == (["a", "b"], [])
    found, warnings = ids(stations=[("b", "a")])
    assert found == ["a", "b"] and "another node has this id" in warnings[0]
    found, warnings = ids(stations=[("S", "ab")])
    assert found == ["a", "b"] and "2 nodes (a, b)" in warnings[0]
    found, warnings = ids(stations=[("S", "a"), ("T", "a")])
    assert found == ["a", "b"] and "2 stations (S, T)" in warnings[0]
    found, warnings = ids(stations=[("S", "a"), ("S", "b")])
    assert found == ["S", "b"] and "'S': again, left out" in warnings[0]


def test_optional_parts_may_be_missing_and_the_version_is_not_looked_at():
    node = {"nodeId": " a ", "nodePosition": {"x": "1e1", "y": 0, "theta": "no"}, "actions": 3}
    data = {"metaInformation": {"lifVersion": [9]}, "layouts": [{"nodes": [node]}], "more": {}}
    layout, _ = import_lif(json.dumps(data), name="mine")
    assert layout["sites"] == [{"id": "a", "x": 10.0, "y": 0.0, "kind": ""}]
    assert layout["edges"] == [] and layout["name"] == "mine"


def test_a_floor_without_edges_is_said():
    data = json.loads(lif())
    layout = data["layouts"][0]
    layout["edgs"] = layout.pop("edges")
    assert import_lif(json.dumps(data))[1] == [
        "layouts[0].edges: missing, so no site can be reached from another"
    ]
    layout["edges"] = []
    assert import_lif(json.dumps(data))[1] == [
        "layouts[0].edges: an empty list, so no site can be reached from another"
    ]
    assert import_lif(lif("a", []))[1] == []
    assert import_opentcs(plant(""))[1] == ["path: none, so no site can be reached from another"]
    assert import_opentcs(plant("", "a"))[1] == []


def test_one_of_several_layouts_is_chosen():
    data = json.loads(lif())
    data["layouts"] = [{**data["layouts"][0], "layoutId": name} for name in ("one", "two")]
    data["layouts"][1]["nodes"] = data["layouts"][1]["nodes"][:1]
    text = json.dumps(data)
    with pytest.raises(LayoutError, match=r'read 2 of them \("one", "two"\); expected one'):
        import_lif(text)
    with pytest.raises(LayoutError, match=r'0 with layoutId "six"; expected one of "one", "two"'):
        import_lif(text, layout_id="six")
    layout, warnings = import_lif(text, layout_id="two")
    assert [site["id"] for site in layout["sites"]] == ["a"]
    assert warnings == ["layouts[1].edges[0]: unknown node 'b', left out"]


def test_layouts_below_origins_are_found():
    data = json.loads(edge_with(maxSpeed=2, trajectory={"controlPoints": CORNER}))
    [edge] = data["layouts"][0]["edges"]
    edge["mobileRobotTypeEdgeProperties"] = edge.pop("vehicleTypeEdgeProperties")
    layout, warnings = import_lif(json.dumps({"origins": [{"layouts": data["layouts"]}]}))
    assert ways(layout) == [("a", "b", 7.0, True)]
    assert warnings == []
    assert layout["edges"][0]["max_speed"] == 2.0
    edge["mobileRobotTypeEdgeProperties"][0]["maxSpeed"] = 0
    layout, warnings = import_lif(json.dumps({"origins": [{"layouts": data["layouts"]}]}))
    assert "origins[0].layouts[0].edges[0].mobileRobotTypeEdgeProperties[0].max" in warnings[0]
    assert "max_speed" not in layout["edges"][0]


LIF_WARNINGS = {
    "unknown node 'z', left out": {"edges": ("ab", "az")},
    "goes from 'a' to itself, left out": {"edges": ("ab", "aa")},
    "another edge from 'a' to 'b', the shortest (3 m) stays": {"edges": ("ab", "ab")},
    "nodes[2]: 'a' again, left out": {"nodes": "aba"},
    "interactionNodeIds[1]: unknown node 'z', left out": {"stations": [("a", "az")]},
}


def edge_with(**properties):
    data = json.loads(lif())
    data["layouts"][0]["edges"][0]["vehicleTypeEdgeProperties"] = [properties]
    return json.dumps(data)


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        ({}, "controlPoints: read null"),
        ([], "read []; expected an object"),
        ({"controlPoints": [{"x": 0, "y": 0}]}, "controlPoints: read 1"),
        ({"controlPoints": [{"x": 0, "y": 0}, {"x": "q"}]}, 'controlPoints[1].x: read "q"'),
        ({"controlPoints": [{"x": 0, "y": 0}, {"x": 1, "y": 0}]}, "1 m long, its nodes lie 3 m"),
        ({"degree": 2, "controlPoints": [{"x": 0, "y": 0}] * 3}, "knotVector: read null"),
        (
            {"degree": 2, "controlPoints": [{"x": 0, "y": 0}] * 3, "knotVector": [0] * 6},
            "expected rising numbers",
        ),
    ],
)
def test_trajectories_that_cannot_be_read_are_straight(trajectory, message):
    layout, warnings = import_lif(edge_with(trajectory=trajectory))
    assert ways(layout) == [("a", "b", 3.0, True)]
    assert len(warnings) == 1 and message in warnings[0] and "taken as straight" in warnings[0]


def test_trajectories_have_the_length_of_their_curve():
    assert measure_trajectory({"controlPoints": CORNER}) == 7.0
    # A parabola of degree 2, its length in closed form.
    bend = [{"x": 0, "y": 0}, {"x": 1, "y": 2}, {"x": 2, "y": 0}]
    curve = {"degree": 2, "knotVector": [0, 0, 0, 1, 1, 1], "controlPoints": bend}
    exact = math.sqrt(5) + math.asinh(2) / 2
    assert measure_trajectory(curve) == pytest.approx(exact, rel=1e-4)


def test_restrictions_that_a_layout_cannot_hold_are_said():
    _, warnings = import_lif(
        edge_with(vehicleTypeId="t", loadRestriction={"loaded": False, "unloaded": True})
    )
    assert len(warnings) == 1 and "loadRestriction: not known to a layout" in warnings[0]
    data = json.loads(lif(edges=("ab", "ba")))
    for edge, types in zip(data["layouts"][0]["edges"], ("tu", "t"), strict=True):
        edge["vehicleTypeEdgeProperties"] = [{"vehicleTypeId": name} for name in types]
    _, warnings = import_lif(json.dumps(data))
    assert warnings == ["layouts[0].edges[1]: for 1 of 2 vehicle types, taken as open to all"]


def with_node(**node):
    data = json.loads(lif())
    data["layouts"][0]["nodes"][1].update(node)
    return json.dumps(data)


BAD_LIF = {
    "[]": "the file: read []; expected an object",
    "{": "line 1 column 2: not JSON",
    "{}": "layouts: read null; expected a list",
    '{"layouts": []}': "layouts: an empty list; expected at least one layout",
    '{"origins": [{"layouts": []}]}': "layouts: an empty list; expected at least one layout",
    '{"layouts": [3]}': "layouts[0]: read 3; expected an object",
    '{"layouts": [{}]}': "layouts[0].nodes: read null; expected a list",
    '{"layouts": [{"nodes": []}]}': "no nodes; expected at least one",
    '{"format": 1, "sites": []}': "this is a layout of acerl_np already",
    with_node(nodeId=""): 'layouts[0].nodes[1].nodeId: read ""; expected a name',
    with_node(nodeId=None): "layouts[0].nodes[1].nodeId: read null; expected a name",
    with_node(nodeId="x" * 201): "expected a name of at most 200 characters",
    with_node(nodeId="a"): "layouts[0].nodes[1]: 'a' again, at another position",
    with_node(nodePosition=None): "nodePosition: read null; expected an object with x and y",
    with_node(nodePosition={"x": 1}): "nodes[1].nodePosition.y: read null; expected a number of m",
    with_node(nodePosition={"x": "nan", "y": 1}): 'nodePosition.x: read "nan"; expected a number',
    with_node(nodePosition={"x": math.inf, "y": 1}): "nodePosition.x: read Infinity; expected",
    with_node(nodePosition={"x": True, "y": 1}): "nodePosition.x: read true; expected a number",
    with_node(nodePosition={"x": "1_0", "y": 1}): 'nodePosition.x: read "1_0"; expected a number',
    with_node(nodePosition={"x": 1e10, "y": 1}): "nodePosition.x: read 10000000000.0; expected",
    lif(edges=[("a", None)]): "layouts[0].edges[0].endNodeId: read null; expected a name",
    "[" * 100_000: "nested too deeply",
}


PLANT_WARNINGS = {
    "path[2]: unknown node 'z', left out": path("a", "z"),
    "path[2]: goes from 'a' to itself, left out": path("a", "a"),
    'path[2]: "b-a" is open in no direction, left out': path("b", "a", maxVelocity=0),
    'path[2]: "b-a" is locked, left out': path("b", "a", locked="true"),
    "station 'L': no known": '<location name="L"/>',
    "location[1].link[1].point: unknown point 'z', left out": '<location name="L"><link point="z"/>'
    "</location>",
}


def test_what_a_floor_can_do_without_is_left_out():
    found = [(message, *import_lif(lif(**parts))) for message, parts in LIF_WARNINGS.items()]
    plants = ((message, plant(path() + body)) for message, body in PLANT_WARNINGS.items())
    found += [(message, *import_opentcs(text)) for message, text in plants]
    for message, layout, warnings in found:
        assert any(message in line for line in warnings), message
        assert ways(layout) == [("a", "b", 3.0, True)], message


@pytest.mark.parametrize(
    ("length", "found"),
    [(None, "none"), ("", "none"), (0, 'read "0"'), ("-15600", 'read "-15600"')],
)
def test_paths_without_a_length_are_straight(length, found):
    layout, warnings = import_opentcs(plant(path(length=length)))
    assert ways(layout) == [("a", "b", 3.0, True)]
    assert warnings == [f"path[1].length: {found}, taken as straight, 3 m"]


@pytest.mark.parametrize(
    ("speed", "found"), [("", "none"), ('maxVelocity="0"', 'read "0"'), ('maxVelocity=" "', "none")]
)
def test_vehicles_without_a_speed_are_said(speed, found):
    start = '<property name="loopback:initialPosition" value="a"/>'
    layout, warnings = import_opentcs(plant(f'{path()}<vehicle name="v" {speed}>{start}</vehicle>'))
    assert layout["vehicles"] == [{"id": "v", "start": "a", "speed": 1.0}]
    assert warnings == [f"vehicle[1].maxVelocity: {found}, taken as 1 m/s"]


def test_lengths_far_below_the_straight_line_are_said():
    layout, warnings = import_opentcs(plant(path(length=1)))
    assert ways(layout) == [("a", "b", 0.001, True)]
    assert warnings == ["path[1].length: 0.001 m, its points lie 3 m apart"]


def test_paths_are_open_as_their_speeds_say():
    def open_ways(**speeds):
        return [way[:2] for way in ways(import_opentcs(plant(path(**speeds)))[0])]

    assert open_ways(maxVelocity=None, maxReverseVelocity=None) == [("a", "b")]
    assert open_ways(maxVelocity=0, maxReverseVelocity=5) == [("b", "a")]
    two_way = import_opentcs(plant(path(maxReverseVelocity=5)))[0]
    assert ways(two_way) == [("a", "b", 3.0, False)]
    assert (
        two_way["edges"][0] | {"max_speed": 1.0, "max_reverse_speed": 0.005} == two_way["edges"][0]
    )
    (same,) = import_opentcs(plant(path(maxReverseVelocity=1000)))[0]["edges"]
    assert same["max_speed"] == 1.0 and "max_reverse_speed" not in same
    (free,) = import_opentcs(plant(path(maxVelocity=None)))[0]["edges"]
    assert "max_speed" not in free


def test_types_of_vehicles_share_the_lowest_limit():
    def limit(*speeds):
        types = [{"vehicleTypeId": str(k), "maxSpeed": v} for k, v in enumerate(speeds)]
        data = json.loads(edge_with())
        data["layouts"][0]["edges"][0]["vehicleTypeEdgeProperties"] = types
        layout, warnings = import_lif(json.dumps(data))
        return layout["edges"][0].get("max_speed"), warnings

    assert limit(1.5, 1.5) == (1.5, [])
    speed, (line,) = limit(1.5, 0.5)
    assert speed == 0.5
    assert "[1].maxSpeed: 0.5 m/s, the lowest of its limits, holds for every vehicle" in line


BAD_PLANTS = {
    "": "not XML: no element found",
    "<model>": "line 1 column 8: not XML",
    "<html/>": 'root element: read "html"; expected a plant model\'s <model>',
    "<model/>": "no nodes; expected at least one",
    "<model><point/></model>": "point[1].name: read null; expected a name",
    plant('<point name="a" xPosition="5" yPosition="0"/>'): "point[3]: 'a' again, at another",
    plant(
        '<point name="c" xPosition="nan"/>'
    ): 'point[3].xPosition: read "nan"; expected a number of',
    plant(
        '<point name="c" positionX="abc"/>'
    ): 'point[3].positionX: read "abc"; expected a number of mm',
    plant(path(length="far")): 'path[1].length: read "far"; expected a number of mm',
    plant(path(length="inf")): 'path[1].length: read "inf"; expected a number of mm',
    plant(path(maxVelocity=-1)): 'path[1].maxVelocity: read "-1"; expected a number of mm/s',
    plant('<path sourcePoint="a"/>'): "path[1].destinationPoint: read null; expected a name",
    plant('<vehicle name="v"/><vehicle name="v"/>'): "vehicle[2].name: 'v' again",
    plant('<vehicle name="v"/>' * 1001): "vehicle: 1,001 of them; expected at most 1,000",
    "<model>" + "<a>" * 60: "more than 50 elements deep",
}


def test_bad_floors_are_refused_in_one_line():
    assert list_unrefused(import_lif, BAD_LIF.items(), LayoutError) == []
    assert list_unrefused(import_opentcs, BAD_PLANTS.items(), LayoutError) == []


LAUGHS = "".join(
    f'<!ENTITY l{k + 1} "{f"&l{k};" * 10}">' if k else '<!ENTITY l1 "ha">' for k in range(10)
)
ATTACKS = {
    "laughs": f"<?xml version='1.0'?>\n<!DOCTYPE m [{LAUGHS}]>\n<model name='&l9;'/>",
    "file": '<!DOCTYPE m [<!ENTITY f SYSTEM "file:///etc/hostname">]><model name="&f;"/>',
    "small": "<!doctype m [<!entity l1 'ha'>]><model/>",
    "remote": '<!DOCTYPE model SYSTEM "http://localhost:9/m.dtd"><model/>',
}


@pytest.mark.parametrize("name", list(ATTACKS))
def test_declarations_are_refused_before_anything_is_parsed(tmp_path, monkeypatch, name):
    monkeypatch.setattr(opentcs.ElementTree, "XMLParser", None)
    (tmp_path / "m.xml").write_text(ATTACKS[name])
    with pytest.raises(LayoutError, match=r"m\.xml: line \d: read a <!DOCTYPE> declaration"):
        import_floor(tmp_path / "m.xml")


def test_entities_in_another_encoding_are_refused(tmp_path):
    (tmp_path / "m.xml").write_bytes(ATTACKS["laughs"].encode("utf-16"))
    with pytest.raises(LayoutError, match="not UTF-8"):
        import_floor(tmp_path / "m.xml")
    text = "<?xml version='1.0' encoding='utf-7'?>" + plant(path())
    assert len(import_opentcs(text)[0]["sites"]) == 2  # decoded already; what it claims is moot


def test_endless_models_are_refused(monkeypatch):
    monkeypatch.setattr(opentcs, "MAX_ELEMENTS", 100)
    with pytest.raises(LayoutError, match="100 in all; expected a plant model"):
        import_opentcs("<model>" + "<a/>" * 200)


@pytest.mark.parametrize("value", ["", ">", "x"])
def test_a_huge_tag_is_refused_before_it_is_parsed(value, monkeypatch):
    attributes = " ".join(f'a{k}="{value}"' for k in range(20_000))
    text = f"<model>\n<point {attributes}/></model>"
    with pytest.raises(LayoutError, match=r'^line 2: "<point a0=.* more than 100,000 characters'):
        import_opentcs(text)
    # Below that length they are counted.
    monkeypatch.setattr(opentcs, "MAX_TAG", len(text))
    with pytest.raises(LayoutError, match=r"^<point>: 20,000 attributes; expected at most 200"):
        import_opentcs(text)


def test_only_known_attributes_are_kept():
    extra = " ".join(f'a{k}="{"x" * 100}"' for k in range(150))
    text = f'<model><point name="P" {extra} xPosition="1000"/></model>'
    layout, _ = import_opentcs(text)
    assert (layout["sites"][0]["id"], layout["sites"][0]["x"]) == ("P", 1.0)
    # What is read and dropped shows only inside.
    kept = opentcs._parse(text).kept["point"][0]
    assert set(kept.attributes) == {"name", "xPosition"}


def test_many_warnings_are_counted():
    layout, warnings = import_lif(lif(edges=[("a", "b"), *[("a", "z")] * 50]))
    assert len(warnings) == 4 and warnings[-1] == "edges left out: 47 more like these"
    assert len(layout["edges"]) == 1


def test_large_floors_have_no_edges_of_no_length():
    data = json.loads(lif(nodes=[f"n{k}" for k in range(400)], edges=[("n0", "n1"), ("n1", "n2")]))
    data["layouts"][0]["nodes"][1]["nodePosition"]["x"] = 0
    layout, warnings = import_lif(json.dumps(data))
    assert [edge["length"] for edge in layout["edges"]] == [0.001, 6.0]
    assert warnings == ["edge from 'n0' to 'n1': 0 m, made 0.001 m"]
    layout["vehicles"] = [{"id": "v", "start": "n0"}]
    assert acerl_np.Layout.from_dict(layout).routes.distance[0, 2] == pytest.approx(6.001)


def test_the_format_is_told_by_the_content(tmp_path):
    for name, text in (("a.txt", "\n " + HALL), ("b.txt", "\ufeff" + PLANT)):
        (tmp_path / name).write_text(text)
        assert len(import_floor(tmp_path / name)[0]["sites"]) in (5, 6)
    (tmp_path / "c.txt").write_text("point,x,y")
    with pytest.raises(LayoutError, match=r'c\.txt: begins with "point,x,y"; expected LIF'):
        import_floor(tmp_path / "c.txt")
    with pytest.raises(LayoutError, match=r"a\.txt: line 2 column 2: not XML"):
        import_floor(tmp_path / "a.txt", kind="opentcs")


def test_levels_that_share_a_layout_id_are_told_apart():
    text = levels(("hall", "0"), ("hall", "1"), ("yard", "0"))
    for layout_id, node in (("yard", "n2"), ("hall/1", "n1"), ("hall/0", "n0"), ("1", "n1")):
        assert import_lif(text, layout_id=layout_id)[0]["sites"][0]["id"] == node
    listed = 'expected one of "hall/0", "hall/1", "yard" \\(--layout-id\\)$'
    for layout_id, count in (("hall", 2), ("0", 0), ("attic", 0)):
        with pytest.raises(
            LayoutError, match=f'^layouts: {count} with layoutId "{layout_id}"; {listed}'
        ):
            import_lif(text, layout_id=layout_id)
    with pytest.raises(
        LayoutError, match=r'^layouts: read 3 of them \("hall/0", "hall/1", "yard"\)'
    ):
        import_lif(text)


def test_lif_2_names_several_types_and_writes_words_out():
    def edge(a, b, *types, **more):
        types = [{"manufacturer": "M", "seriesName": name} for name in types]
        properties = [{"mobileRobotTypes": types, **more}]
        return {"startNodeId": a, "endNodeId": b, "mobileRobotTypeEdgeProperties": properties}

    def read(*edges):
        return import_lif(lif(edges=edges))[1]

    assert read(edge("a", "b", "x", "y"), edge("b", "a", "y", "x")) == []
    (line,) = read(edge("a", "b", "x", "y"), edge("b", "a", "y"))
    assert line == "layouts[0].edges[1]: for 1 of 2 vehicle types, taken as open to all"
    assert read(edge("a", "b", "x", maximumSpeed=0.5)) == []
    item = {"mobileRobotTypeId": "x"}, {"mobileRobotTypeId": "y"}
    old = [
        {"startNodeId": "a", "endNodeId": "b", "mobileRobotTypeEdgeProperties": list(item[:1])},
        {"startNodeId": "b", "endNodeId": "a", "mobileRobotTypeEdgeProperties": list(item)},
    ]
    assert read(*old) == ["layouts[0].edges[0]: for 1 of 2 vehicle types, taken as open to all"]


def test_nodes_with_load_restrictions_are_said():
    data = json.loads(lif())
    node = data["layouts"][0]["nodes"][1]
    node["mobileRobotTypeNodeProperties"] = ["odd", {"loadRestriction": {"loaded": False}}]
    _, (line,) = import_lif(json.dumps(data))
    assert line == (
        "layouts[0].nodes[1].mobileRobotTypeNodeProperties[1].loadRestriction: not known to a layout, "
        "the node is open to all"
    )


def test_locked_locations_are_said_and_stay_sites():
    layout, (line,) = import_opentcs(
        plant(path(length=3000) + '<location name="L" locked="true"><link point="b"/></location>')
    )
    assert line == "station 'L': locked, kept as a site"
    assert [site["id"] for site in layout["sites"]] == ["a", "L"]

    (line,) = import_opentcs(plant(path() + '<location name="L" locked="true"/>'))[1]
    assert line == "station 'L': locked, no known node, left out"


TYPES = """
<locationType name="Shelf"><allowedOperation name="Load"/><allowedOperation name="CHARGE"/></locationType>
<locationType name="Plug"><allowedOperation name="CHARGE"/><allowedOperation name="NOP"/></locationType>
<locationType name="Door"><allowedPeripheralOperation name="Open"/></locationType>
"""


def test_chargers_and_peripherals_are_no_stations():
    """Only a type without any other work is a charger's; a charger leaves a station its node."""
    places = (("S", "Shelf", "a"), ("P1", "Plug", "b"), ("P2", "Plug", "a"), ("P3", "Plug", "cd"))
    body = path() + path("b", "c") + path("c", "d") + path("d", "e") + TYPES
    for name, kind, points in (*places, ("P4", "Plug", "e"), ("D", "Door", "")):
        links = "".join(f'<link point="{point}"/>' for point in points)
        body += f'<location name="{name}" type="{kind}">{links}</location>'
    text = plant(body, "abcde").replace('name="e"', 'name="e" type="PARK_POSITION"', 1)
    data, warnings = import_opentcs(text)
    sites = [
        ("S", "Shelf"),
        ("P1", "charger"),
        ("c", "charger"),
        ("d", "charger"),
        ("P4", "parking"),
    ]
    assert [(site["id"], site["kind"]) for site in data["sites"]] == sites
    assert "stations" not in data
    assert warnings[0] == "chargers: 4 (P1, P2, P3, P4) kept as sites; no tasks are drawn to them"
    assert "station 'P2': no node without another station, left out" in warnings
    assert not any("'D'" in line for line in warnings)


def test_chargers_of_lif_are_told_by_their_type_or_by_what_vehicles_do_there():
    data = json.loads(lif("abcd", stations=[("A", "a"), ("B", "b"), ("C", "c"), ("D", "d")]))
    [layout] = data["layouts"]
    layout["stations"][1]["stationType"] = "Charging station"
    layout["stations"][3]["stationType"] = "Discharge"
    for node, words in ((0, ["startCharging", "stopCharging"]), (2, ["startCharging", "pick"])):
        actions = [{"actionType": word} for word in words]
        layout["nodes"][node]["vehicleTypeNodeProperties"] = [{"actions": actions}]
    made, _ = import_lif(json.dumps(data))
    kinds = ["charger", "charger", "station", "Discharge"]
    assert [site["kind"] for site in made["sites"]] == kinds


def test_what_a_layout_cannot_hold_is_named():
    body = f"""{TYPES}<location name="Gate" type="Door"/><block name="B1"/><block name="B2"/>
        <path name="p" sourcePoint="a" destinationPoint="b" length="3000">
        <peripheralOperation name="Open" locationName="Gate"/></path>
        <vehicle name="v" maxVelocity="1000" energyLevelCritical="20"/>"""
    without = "no vehicle has to charge without rates of use (--battery)"
    assert import_opentcs(plant(body))[1][1:] == [
        f"energy levels of vehicles: 1 (v) left out; {without}",
        "blocks: 2 (B1, B2) left out; vehicles do not wait for each other",
        "peripheral operations of locations and paths: 2 (Gate, p) left out; no vehicle waits for them",
    ]


def test_a_vehicle_may_start_where_it_parks():
    def start(*properties, location=""):
        inner = "".join(f'<property name="{key}" value="{value}"/>' for key, value in properties)
        layout, warnings = import_opentcs(
            plant(f'{path()}{location}<vehicle name="v" maxVelocity="1000">{inner}</vehicle>')
        )
        return layout["vehicles"][0]["start"], warnings

    parks, begins = ("tcs:preferredParkingPosition", "b"), ("loopback:initialPosition", "a")
    assert start(parks) == start(("tcs:assignedParkingPosition", "b")) == ("b", [])
    assert start(parks, begins) == ("a", [])
    assert start(("loopback:initialPosition", "x"), parks) == ("b", [])
    location = '<location name="L"><link point="b"/></location>'
    assert start(parks, location=location)[0] == "L"
    (line,) = start(("tcs:preferredParkingPosition", "x"))[1]
    assert "unknown point \"x\" (tcs:preferredParkingPosition); 'v' starts at 'a'" in line
    (line,) = start(("loopback:initialPosition", "x"), ("tcs:assignedParkingPosition", "y"))[1]
    assert '"x" (loopback:initialPosition), "y" (tcs:assignedParkingPosition); ' in line
    (line,) = start()[1]
    assert line == (
        "vehicle[1]: none of loopback:initialPosition, tcs:preferredParkingPosition, "
        "tcs:assignedParkingPosition; 'v' starts at 'a'"
    )
    # Not where no path leads away, whatever the order of the points.
    text = plant(path("b", "c") + '<vehicle name="v"/>', "abc")
    for kind in ("HALT_POSITION", "PARK_POSITION"):
        made, _ = import_opentcs(text.replace('name="a"', f'name="a" type="{kind}"'))
        assert made["vehicles"][0]["start"] == "b"
