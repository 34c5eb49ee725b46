"""Floors from LIF and openTCS: what is carried over, what is said, what is refused."""

import json
import math
import operator
from pathlib import Path

import pytest
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np.problem.importers import opentcs
from acerl_np.problem.importers.files import read_floor
from acerl_np.problem.importers.lif import import_lif, measure_trajectory
from acerl_np.problem.importers.opentcs import import_opentcs
from acerl_np.support.errors import LayoutError

DATA = Path(__file__).parents[1] / "data"
HALL = (DATA / "hall.lif.json").read_text()
PLANT = (DATA / "plant.xml").read_text()

CORNER = [{"x": 0, "y": 0}, {"x": 3, "y": 0}, {"x": 3, "y": 4}]


def lif(nodes=("a", "b"), edges=("ab",), stations=(), edit=None, **layout):
    """Return a LIF text; an edge "ab" goes from a to b, nodes lie 3 m apart on a line; `edit` changes it."""
    places = {name: {"x": 3 * nodes.index(name), "y": 0} for name in nodes}
    ends = [{"startNodeId": e[0], "endNodeId": e[1]} if len(e) == 2 else e for e in edges]
    layout = {
        "nodes": [{"nodeId": name, "nodePosition": dict(places[name])} for name in nodes],
        "edges": ends,
        "stations": [{"stationId": name, "interactionNodeIds": list(at)} for name, at in stations],
        **layout,
    }
    if edit is not None:
        edit(layout)
    return json.dumps({"layouts": [layout]})


def levels(*pairs):
    """A building whose levels, pairs of layoutId and layoutLevelId, differ in their only node."""
    texts = [lif([f"n{k}"], [], layoutId=a, layoutLevelId=b) for k, (a, b) in enumerate(pairs)]
    return json.dumps({"layouts": [json.loads(text)["layouts"][0] for text in texts]})


def plant(body, points="ab"):
    lines = (
        f'<point name="{x}" xPosition="{3000 * k}" yPosition="0"/>' for k, x in enumerate(points)
    )
    return f'<model name="m">{"".join(lines)}{body}</model>'


def path(a="a", b="b", **attributes):
    given = {"length": 3000, "maxVelocity": 1000, "maxReverseVelocity": 0, **attributes}
    words = " ".join(f'{key}="{value}"' for key, value in given.items() if value is not None)
    return f'<path name="{a}-{b}" sourcePoint="{a}" destinationPoint="{b}" {words}/>'


def ways(layout):
    return [(e["a"], e["b"], e["length"], e["one_way"]) for e in layout["edges"]]


def told(warnings):
    """The warnings but the one of keys that no reader looked at."""
    return [line for line in warnings if not line.startswith("not read: ")]


def places(layout):
    return {site["id"]: (site["x"], site["y"], site["kind"]) for site in layout["sites"]}


def test_the_lif_sample_is_carried_over():
    layout, warnings = read_floor(DATA / "hall.lif.json")
    assert (layout["name"], layout["vehicles"]) == ("ground", [])
    stations = {"n1": (0, 0), "pick": (20, 0), "n3": (30, 10), "drop": (20, 20), "n5": (0, 20)}
    expected = {name: (*at, "station") for name, at in stations.items()}
    assert places(layout) == {**expected, "6": (-10, 20, "")}
    # A quarter of a circle, sampled; its straight line would be 14.14 m.
    arc = layout["edges"][1]["length"]
    assert arc == pytest.approx(5 * math.pi, rel=1e-4) and arc < 5 * math.pi
    assert ways(layout) == [
        ("n1", "pick", 20.0, True),
        ("pick", "n3", arc, True),
        ("n3", "drop", 14.142136, True),
        ("drop", "n5", 20.0, True),
        ("n5", "n1", 20.0, True),
        ("n5", "6", 10.0, False),
    ]
    assert layout["aliases"] == {"n2": "pick", "n4": "drop", "Goods in": "pick"}
    assert layout["stations"] == {"wide": ["n1", "n3"], "upper": ["n5"], "lower": ["n5"]}
    line = "not read: metaInformation (1), layouts.nodes.mapId (1), layouts.edges.edgeId (8)"
    assert line in warnings
    assert told(warnings) == [
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
    layout, warnings = read_floor(DATA / "plant.xml")
    assert layout["name"] == "plant"
    assert places(layout) == {
        "P1": (0, 0, ""),
        "Inbound": (12, 0, "Shelf"),
        "P3": (12, 8, ""),
        "Outbound": (0, 8, "Shelf"),
        "Park": (-3, 8, "parking"),
    }
    assert layout["aliases"] == {"P2": "Inbound", "P4": "Outbound"} and "stations" not in layout
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
    assert told(warnings) == [
        "path[5]: another edge from 'P1' to 'P4', the shortest (8 m) stays",
        'path[7]: "P1 --- P3" is locked, left out',
        "vehicle[2]: none of loopback:initialPosition, tcs:preferredParkingPosition, "
        "tcs:assignedParkingPosition; 'Truck-2' starts at 'Park'",
        "operations that links allow: 1 (Inbound) left out; tasks are drawn to and from all stations, "
        "but shifts (--arrivals shift --role)",
    ]


def test_opposite_edges_of_equal_length_become_one():
    layout, warnings = import_lif(lif(edges=("ab", "ba")))
    assert ways(layout) == [("a", "b", 3.0, False)] and warnings == []
    for length, expected in (
        (3000, [("a", "b", 3.0, False)]),
        (4000, [("a", "b", 3.0, True), ("b", "a", 4.0, True)]),
    ):
        assert ways(import_opentcs(plant(path() + path("b", "a", length=length)))[0]) == expected


def test_stations_name_sites_only_where_nothing_is_ambiguous():
    for stations, ids, said in (
        ([("S", "a")], ["S", "b"], []),
        ([("a", "a")], ["a", "b"], []),
        ([("b", "a")], ["a", "b"], ["another node has this id"]),
        ([("S", "ab")], ["a", "b"], ["2 nodes (a, b)"]),
        ([("S", "a"), ("T", "a")], ["a", "b"], ["2 stations (S, T)"]),
        ([("S", "a"), ("S", "b")], ["S", "b"], ["'S': again, left out"]),
    ):
        layout, warnings = import_lif(lif(stations=stations))
        assert [site["id"] for site in layout["sites"]] == ids
        assert all(map(operator.contains, warnings, said)) and len(warnings) == len(said)


def test_optional_parts_may_be_missing_and_the_version_is_not_looked_at():
    node = {"nodeId": " a ", "nodePosition": {"x": "1e1", "y": 0, "theta": "no"}, "actions": 3}
    data = {"metaInformation": {"lifVersion": [9]}, "layouts": [{"nodes": [node]}], "more": {}}
    layout, _ = import_lif(json.dumps(data), name="mine")
    assert layout["sites"] == [{"id": "a", "x": 10.0, "y": 0.0, "kind": ""}]
    assert layout["edges"] == [] and layout["name"] == "mine"


def test_a_floor_without_edges_is_said():
    none = "so no site can be reached from another"
    for edit, said in (
        (lambda layout: layout.pop("edges"), "missing"),
        (lambda layout: layout.update(edges=[]), "an empty list"),
    ):
        assert import_lif(lif(edit=edit))[1] == [f"layouts[0].edges: {said}, {none}"]
    assert import_opentcs(plant(""))[1] == [f"path: none, {none}"]
    assert import_lif(lif("a", []))[1] == import_opentcs(plant("", "a"))[1] == []


def test_one_of_several_layouts_is_chosen():
    own = [json.loads(lif(layoutId=name))["layouts"][0] for name in ("one", "two")]
    own[1]["nodes"] = own[1]["nodes"][:1]
    text = json.dumps({"layouts": own})
    with pytest.raises(LayoutError, match=r'read 2 of them \("one", "two"\); expected one'):
        import_lif(text)
    with pytest.raises(LayoutError, match=r'0 with layoutId "six"; expected one of "one", "two"'):
        import_lif(text, layout_id="six")
    layout, warnings = import_lif(text, layout_id="two")
    assert [site["id"] for site in layout["sites"]] == ["a"]
    assert warnings == ["layouts[1].edges[0]: unknown node 'b', left out"]
    # Levels that share a layoutId are told apart.
    text = levels(("hall", "0"), ("hall", "1"), ("yard", "0"))
    for layout_id, node in (("yard", "n2"), ("hall/1", "n1"), ("hall/0", "n0"), ("1", "n1")):
        assert import_lif(text, layout_id=layout_id)[0]["sites"][0]["id"] == node
    names = '"hall/0", "hall/1", "yard"'
    cases = [
        (own, f'layouts: {count} with layoutId "{own}"; expected one of {names} (--layout-id)')
        for own, count in (("hall", 2), ("0", 0), ("attic", 0))
    ]
    cases.append((None, f"layouts: read 3 of them ({names})"))
    assert list_unrefused(lambda own: import_lif(text, layout_id=own), cases) == []


def test_layouts_below_origins_are_found():
    for speed in (2, 0):
        data = json.loads(edge_with(maxSpeed=speed, trajectory={"controlPoints": CORNER}))
        [edge] = data["layouts"][0]["edges"]
        edge["mobileRobotTypeEdgeProperties"] = edge.pop("vehicleTypeEdgeProperties")
        layout, warnings = import_lif(json.dumps({"origins": [data]}))
        assert ways(layout) == [("a", "b", 7.0, True)]
        assert layout["edges"][0].get("max_speed") == (speed or None)
        assert len(warnings) == (not speed)
    assert "origins[0].layouts[0].edges[0].mobileRobotTypeEdgeProperties[0].max" in warnings[0]


LIF_WARNINGS = {
    "unknown node 'z', left out": {"edges": ("ab", "az")},
    "goes from 'a' to itself, left out": {"edges": ("ab", "aa")},
    "another edge from 'a' to 'b', the shortest (3 m) stays": {"edges": ("ab", "ab")},
    "nodes[2]: 'a' again, left out": {"nodes": "aba"},
    "interactionNodeIds[1]: unknown node 'z', left out": {"stations": [("a", "az")]},
}


def edge_with(*types, **properties):
    own = types or [properties]
    return lif(edit=lambda layout: layout["edges"][0].update(vehicleTypeEdgeProperties=own))


FLAT = {"degree": 2, "controlPoints": [{"x": 0, "y": 0}] * 3}
NO_TRAJECTORIES = [
    ({}, "controlPoints: read null"),
    ([], "read []; expected an object"),
    ({"controlPoints": CORNER[:1]}, "controlPoints: read 1"),
    ({"controlPoints": [CORNER[0], {"x": "q"}]}, 'controlPoints[1].x: read "q"'),
    ({"controlPoints": [CORNER[0], {"x": 1, "y": 0}]}, "1 m long, its nodes lie 3 m"),
    (FLAT, "knotVector: read null"),
    ({**FLAT, "knotVector": [0] * 6}, "expected rising numbers"),
]


def test_trajectories_have_the_length_of_their_curve_if_they_can_be_read():
    for trajectory, message in NO_TRAJECTORIES:
        layout, warnings = import_lif(edge_with(trajectory=trajectory))
        [warning] = told(warnings)
        assert ways(layout) == [("a", "b", 3.0, True)]
        assert message in warning and "taken as straight" in warning
    assert measure_trajectory({"controlPoints": CORNER}) == 7.0
    # A parabola of degree 2, its length in closed form.
    bend = [{"x": 0, "y": 0}, {"x": 1, "y": 2}, {"x": 2, "y": 0}]
    curve = {"degree": 2, "knotVector": [0, 0, 0, 1, 1, 1], "controlPoints": bend}
    exact = math.sqrt(5) + math.asinh(2) / 2
    assert measure_trajectory(curve) == pytest.approx(exact, rel=1e-4)


def test_restrictions_that_a_layout_cannot_hold_are_said():
    text = edge_with(vehicleTypeId="t", loadRestriction={"loaded": False, "unloaded": True})
    [line] = told(import_lif(text)[1])
    assert "loadRestriction: not known to a layout" in line
    restricted = ["odd", {"loadRestriction": {"loaded": False}}]
    [line] = import_lif(with_node(mobileRobotTypeNodeProperties=restricted))[1]
    place = "layouts[0].nodes[1].mobileRobotTypeNodeProperties[1].loadRestriction"
    assert line == f"{place}: not known to a layout, the node is open to all"
    speeds = [{"vehicleTypeId": str(k), "maxSpeed": v} for k, v in enumerate((1.5, 1.5, 0.5))]
    layout, warnings = import_lif(edge_with(*speeds[:2]))
    assert (layout["edges"][0]["max_speed"], warnings) == (1.5, [])
    layout, [line] = import_lif(edge_with(*speeds[1:]))
    assert layout["edges"][0]["max_speed"] == 0.5
    assert "[1].maxSpeed: 0.5 m/s, the lowest of its limits, holds for every vehicle" in line


def test_edges_for_some_types_are_open_to_all():
    def edges(key, *types):
        """A way there and a way back, each for types of vehicles."""
        ends = zip(("ab", "ba"), types, strict=True)
        own = [{"startNodeId": a, "endNodeId": b, key: properties} for (a, b), properties in ends]
        return import_lif(lif(edges=own))[1]

    def named(names):  # as LIF 2 names several types in one
        types = [{"manufacturer": "M", "seriesName": name} for name in names]
        return [{"mobileRobotTypes": types}]

    x, y = ({"mobileRobotTypeId": name} for name in "xy")
    t, u = ({"vehicleTypeId": name} for name in "tu")
    said = "layouts[0].edges[{}]: for 1 of 2 vehicle types, taken as open to all".format
    new = "mobileRobotTypeEdgeProperties"
    assert edges("vehicleTypeEdgeProperties", [t, u], [t]) == [said(1)]
    assert edges(new, [x], [x, y]) == [said(0)]
    assert edges(new, named("xy"), named("yx")) == []
    assert edges(new, named("xy"), named("y")) == [said(1)]
    own = {"startNodeId": "a", "endNodeId": "b", new: [named("x")[0] | {"maximumSpeed": 0.5}]}
    layout, warnings = import_lif(lif(edges=[own]))
    assert (layout["edges"][0]["max_speed"], warnings) == (0.5, [])


def with_node(**node):
    return lif(edit=lambda layout: layout["nodes"][1].update(node))


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


def test_lengths_and_speeds_that_are_none_are_said():
    for length, found in ((None, "none"), ("", "none"), (0, 'read "0"'), (-156, 'read "-156"')):
        layout, warnings = import_opentcs(plant(path(length=length)))
        assert ways(layout) == [("a", "b", 3.0, True)]
        assert warnings == [f"path[1].length: {found}, taken as straight, 3 m"]
    layout, warnings = import_opentcs(plant(path(length=1)))
    assert ways(layout) == [("a", "b", 0.001, True)]
    assert warnings == ["path[1].length: 0.001 m, its points lie 3 m apart"]
    start = '<property name="loopback:initialPosition" value="a"/>'
    speeds = {"": "none", 'maxVelocity="0"': 'read "0"', 'maxVelocity=" "': "none"}
    for speed, found in speeds.items():
        text = plant(f'{path()}<vehicle name="v" {speed}>{start}</vehicle>')
        layout, warnings = import_opentcs(text)
        assert layout["vehicles"] == [{"id": "v", "start": "a", "speed": 1.0}]
        assert warnings == [f"vehicle[1].maxVelocity: {found}, taken as 1 m/s"]


def test_a_vehicles_size_is_read_where_the_model_tells_one():
    for own, inner, found in (
        ('length="1000"', "", {}),
        ('length="1800"', "", {"length": 1.8}),
        ("", '<boundingBox length="1000" width="1000" height="1000"/>', {}),
        ("", '<boundingBox length="1000" width="600" height="1000"/>', {"length": 1, "width": 0.6}),
    ):
        text = plant(f'{path()}<vehicle name="v" maxVelocity="1000" {own}>{inner}</vehicle>')
        [vehicle] = import_opentcs(text)[0]["vehicles"]
        assert {key: vehicle[key] for key in vehicle if key in ("length", "width")} == found


def test_paths_are_open_as_their_speeds_say():
    for there, back, ends, one_way, limits in (
        (None, None, ("a", "b"), True, (None, None)),
        (0, 5, ("b", "a"), True, (0.005, None)),
        (1000, 5, ("a", "b"), False, (1.0, 0.005)),
        (1000, 1000, ("a", "b"), False, (1.0, None)),
    ):
        [edge] = import_opentcs(plant(path(maxVelocity=there, maxReverseVelocity=back)))[0]["edges"]
        assert (edge["a"], edge["b"], edge["one_way"]) == (*ends, one_way)
        assert (edge.get("max_speed"), edge.get("max_reverse_speed")) == limits


BAD_PLANTS = {
    "": "not XML: no element found",
    "<model>": "line 1 column 8: not XML",
    "<html/>": 'root element: read "html"; expected a plant model\'s <model>',
    "<model/>": "no nodes; expected at least one",
    "<model><point/></model>": "point[1].name: read null; expected a name",
    "<model>" + "<a>" * 60: "more than 50 elements deep",
    **{
        plant(body): words
        for body, words in {
            '<point name="a" xPosition="5" yPosition="0"/>': "point[3]: 'a' again, at another",
            '<point name="c" xPosition="nan"/>': 'point[3].xPosition: read "nan"; expected a number of',
            '<point name="c" positionX="x"/>': 'point[3].positionX: read "x"; expected a number of mm',
            path(length="far"): 'path[1].length: read "far"; expected a number of mm',
            path(length="inf"): 'path[1].length: read "inf"; expected a number of mm',
            path(maxVelocity=-1): 'path[1].maxVelocity: read "-1"; expected a number of mm/s',
            '<path sourcePoint="a"/>': "path[1].destinationPoint: read null; expected a name",
            '<vehicle name="v"/><vehicle name="v"/>': "vehicle[2].name: 'v' again",
            '<vehicle name="v"/>' * 1001: "vehicle: 1,001 of them; expected at most 1,000",
        }.items()
    },
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


def test_declarations_are_refused_before_anything_is_parsed(tmp_path, monkeypatch):
    (tmp_path / "m.xml").write_bytes(ATTACKS["laughs"].encode("utf-16"))
    with pytest.raises(LayoutError, match="not UTF-8"):
        read_floor(tmp_path / "m.xml")
    text = "<?xml version='1.0' encoding='utf-7'?>" + plant(path())
    assert len(import_opentcs(text)[0]["sites"]) == 2  # decoded already; what it claims is moot
    monkeypatch.setattr(opentcs.ElementTree, "XMLParser", None)
    for name in ATTACKS:
        (tmp_path / "m.xml").write_text(ATTACKS[name])
        with pytest.raises(LayoutError, match=r"m\.xml: line \d: read a <!DOCTYPE> declaration"):
            read_floor(tmp_path / "m.xml")


def test_endless_models_and_huge_tags_are_refused(monkeypatch):
    for value in ("", ">", "x"):
        attributes = " ".join(f'a{k}="{value}"' for k in range(20_000))
        text = f"<model>\n<point {attributes}/></model>"
        huge = r'^line 2: "<point a0=.* more than 100,000 characters'
        with pytest.raises(LayoutError, match=huge):
            import_opentcs(text)
        # Below that length they are counted.
        with monkeypatch.context() as patch:
            patch.setattr(opentcs, "MAX_TAG", len(text))
            many = r"^<point>: 20,000 attributes; expected at most 200"
            with pytest.raises(LayoutError, match=many):
                import_opentcs(text)
    monkeypatch.setattr(opentcs, "MAX_ELEMENTS", 100)
    with pytest.raises(LayoutError, match="100 in all; expected a plant model"):
        import_opentcs("<model>" + "<a/>" * 200)


def test_keys_that_no_reader_looked_at_are_named():
    extra = " ".join(f'a{k}="{"x" * 100}"' for k in range(20))
    body = f"""<point name="P" {extra} xPosition="1000" type="REPORT_POSITION">
        <property name="tcs:parkingPositionPriority" value="2"/><a0/></point>
        <path name="p" sourcePoint="a" destinationPoint="b" length="10">
        <property name="tcs:routingCostForward" value="9"/></path><odd><inner/></odd><odd/>
        <location name="L" type="D"><link point="a"><allowedOperation name="Load"/></link></location>"""
    warnings = import_opentcs(plant(body))[1]
    assert "report points: 1 (P) left out; vehicles may stop there, too" in warnings
    [line] = [line for line in warnings if line.startswith("operations that links allow: 1 (L)")]
    assert "--arrivals shift --role" in line
    [line] = [line for line in warnings if line not in told(warnings)]
    for key in ("odd (2)", "point.a0 (2)", "path.property.tcs:routingCostForward (1)"):
        assert key in line
    assert "point.b (1)" not in line
    data = json.loads(edge_with())
    data["layouts"][0]["nodes"][0] |= {"loadSetNames": [1], "mapDescription": {"a": {"b": 1}}}
    [line] = import_lif(json.dumps(data))[1]
    assert line.startswith("not read: ") and "layouts.nodes.loadSetNames (1)" in line
    assert "mapDescription (1)" in line and "nodeId" not in line


def test_a_length_that_is_said_goes_before_a_straight_line():
    layout, warnings = import_lif(edge_with(physicalLineGuidedProperty={"length": 7.5}))
    assert (ways(layout), told(warnings)) == ([("a", "b", 7.5, True)], [])
    layout, warnings = import_lif(edge_with(physicalLineGuidedProperty={"length": 0.5}))
    assert ways(layout)[0][2] == 3.0 and "Property.length: 0.5 m long" in told(warnings)[0]
    with pytest.raises(LayoutError, match='length: read "long"'):
        import_lif(edge_with(physicalLineGuidedProperty={"length": "long"}))


def test_actions_of_either_version_make_a_charger():
    name = "startCharging"
    for key, action in (("actions", {"actionType": name}), ("feasibleActions", name)):
        data = json.loads(edge_with())
        data["layouts"][0]["nodes"][0]["mobileRobotTypeNodeProperties"] = [{key: [action]}]
        layout, _ = import_lif(json.dumps(data))
        assert layout["chargers"] == [{"site": "a"}]


def test_a_flag_is_true_or_false():
    text = plant('<path name="p" sourcePoint="a" destinationPoint="b" length="9" locked="{}"/>')
    for word, n in (("false", 1), ("0", 1), ("", 1), ("true", 0), ("TRUE", 0), ("1", 0)):
        assert len(import_opentcs(text.format(word))[0]["edges"]) == n
    with pytest.raises(LayoutError, match=r"path\[1\].locked: read \"yes\"; expected true"):
        import_opentcs(text.format("yes"))


def test_many_warnings_are_counted():
    layout, warnings = import_lif(lif(edges=[("a", "b"), *[("a", "z")] * 50]))
    assert len(warnings) == 4 and warnings[-1] == "edges left out: 47 more like these"
    assert len(layout["edges"]) == 1
    # Large floors have no edges of no length.
    nodes = [f"n{k}" for k in range(400)]
    edges = [("n0", "n1"), ("n1", "n2")]
    text = lif(nodes, edges, edit=lambda layout: layout["nodes"][1]["nodePosition"].update(x=0))
    layout, warnings = import_lif(text)
    assert [edge["length"] for edge in layout["edges"]] == [0.001, 6.0]
    assert warnings == ["edge from 'n0' to 'n1': 0 m, made 0.001 m"]
    layout["vehicles"] = [{"id": "v", "start": "n0"}]
    assert acerl_np.Layout.from_dict(layout).routes.distance[0, 2] == pytest.approx(6.001)


def test_the_format_is_told_by_the_content(tmp_path):
    for name, text in (("a.txt", "\n " + HALL), ("b.txt", "\ufeff" + PLANT)):
        (tmp_path / name).write_text(text)
        assert len(read_floor(tmp_path / name)[0]["sites"]) in (5, 6)
    (tmp_path / "c.txt").write_text("point,x,y")
    with pytest.raises(LayoutError, match=r'c\.txt: begins with "point,x,y"; expected LIF'):
        read_floor(tmp_path / "c.txt")
    (tmp_path / "d.txt").write_text("<a")
    with pytest.raises(LayoutError, match=r"d\.txt: line 1 column 1: not XML"):
        read_floor(tmp_path / "d.txt")


def test_locked_locations_are_said_and_stay_sites():
    body = path(length=3000) + '<location name="L" locked="true">{}</location>'
    layout, warnings = import_opentcs(plant(body.format('<link point="b"/>')))
    assert warnings == ["station 'L': locked, kept as a site"]
    assert [site["id"] for site in layout["sites"]] == ["a", "L"]
    lost = "station 'L': locked, no known node, left out"
    assert import_opentcs(plant(body.format("")))[1] == [lost]


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
    chargers = [(name, "charger") for name in ("P1", "c", "d")]
    sites = [("S", "Shelf"), *chargers, ("P4", "parking")]
    assert [(site["id"], site["kind"]) for site in data["sites"]] == sites
    assert "stations" not in data
    assert warnings[0] == "chargers: 4 (P1, P2, P3, P4) kept as sites; no tasks are drawn to them"
    assert "station 'P2': no node without another station, left out" in warnings
    assert not any("'D'" in line for line in warnings)


def test_chargers_of_lif_are_told_by_their_type_or_by_what_vehicles_do_there():
    def edit(layout):
        layout["stations"][1]["stationType"] = "Charging station"
        layout["stations"][3]["stationType"] = "Discharge"
        for node, word in ((0, "stopCharging"), (2, "pick")):
            actions = [{"actionType": "startCharging"}, {"actionType": word}]
            layout["nodes"][node]["vehicleTypeNodeProperties"] = [{"actions": actions}]

    stations = [*zip("ABCD", "abcd", strict=True)]
    made, warnings = import_lif(lif("abcd", stations=stations, edit=edit))
    kinds = ["charger", "charger", "station", "Discharge"]
    assert [site["kind"] for site in made["sites"]] == kinds
    assert made["chargers"] == [{"site": "A"}, {"site": "B"}]
    assert "chargers: 2 (A, B) kept as sites; LIF has neither levels" in warnings[-1]


LEVELS = ["Critical", "SufficientlyRecharged", "Good", "FullyRecharged"]


def test_levels_come_from_a_plant_model():
    def powered(*vehicles):
        fleet = ""
        for k, shares in enumerate(vehicles):
            given = [f'energyLevel{x}="{n}"' for x, n in zip(LEVELS, shares, strict=False)]
            fleet += f'<vehicle name="v{k}" maxVelocity="1000" {" ".join(given)}/>'
        location = '<location name="P1" type="Plug"><link point="b"/></location>'
        return plant(path() + TYPES + location + fleet)

    text = powered((30, 45, 90, 95), (), (30, 90, 60))
    data, warnings = import_opentcs(text)
    assert data["chargers"] == [{"site": "P1"}]
    assert all("battery" not in vehicle for vehicle in data["vehicles"])
    left_out = "energy levels of vehicles: 2 (v0, v2) left out; no vehicle has to charge"
    assert any(line.startswith(left_out) for line in warnings)
    battery = {"capacity": 2000, "idle": 1, "empty": 3, "loaded": 7, "charge": 10, "full": 1999}
    data, warnings = import_opentcs(text, battery=battery)
    first, none, third = (vehicle.get("battery") for vehicle in data["vehicles"])
    keys = ("critical", "resume", "good", "full")
    assert [first[key] for key in keys] == [600, 900, 1800, 1999] and none is None
    assert [third[key] for key in keys] == [600, 1200, 1800, 1999]
    places = [line.partition(":")[0] for line in warnings if "evel" in line]
    assert places == ["vehicle[3]", "energy levels"]
    with pytest.raises(LayoutError, match=r"vehicle\[1\].energyLevelCritical: read .*percent"):
        import_opentcs(powered(("much",)), battery=battery)


def test_what_a_layout_cannot_hold_is_named():
    body = f"""{TYPES}<location name="Gate" type="Door"/><block name="B1"/><block name="B2"/>
        <path name="p" sourcePoint="a" destinationPoint="b" length="3000">
        <peripheralOperation name="Open" locationName="Gate"/></path>
        <vehicle name="v" maxVelocity="1000" energyLevelCritical="20"/>"""
    without = "no vehicle has to charge without rates of use (--battery)"
    assert told(import_opentcs(plant(body))[1]) == [
        "block[1]: 'B1' holds nothing of the floor, left out",
        "block[2]: 'B2' holds nothing of the floor, left out",
        "vehicle[1]: none of loopback:initialPosition, tcs:preferredParkingPosition, "
        "tcs:assignedParkingPosition; 'v' starts at 'a'",
        f"energy levels of vehicles: 1 (v) left out; {without}",
        "peripheral operations of locations and paths: 2 (Gate, p) left out; no vehicle waits for them",
    ]


def block(*members, **attributes):
    words = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    listed = "".join(f'<member name="{member}"/>' for member in members)
    return f"<block {words}>{listed}</block>"


def test_blocks_are_of_points_and_open_paths():
    station = '<location name="S"><link point="b"/></location>'
    floor = path() + path("b", "c") + path("c", "d") + path("d", "a", locked="true") + station
    names = "a-b", "b-c", "d-a", "S", "zz"
    body = floor + block(*names, name="x", type="SAME_DIRECTION_ONLY") + block("c", "c-d", name="y")
    layout, warnings = import_opentcs(plant(body, "abcd"))
    assert layout["blocks"] == [
        # The point between the two paths is in, by its station's name; ends of the way are not.
        {"id": "x", "kind": "same_direction", "sites": ["S"], "edges": [["a", "S"], ["S", "c"]]},
        {"id": "y", "kind": "single", "sites": ["c"], "edges": [["c", "d"]]},
    ]
    assert warnings == [
        'path[4]: "d-a" is locked, left out',
        "block[1]: members of 'x': 2 (S, zz) left out; expected points and paths",
    ]
    named = path().replace("/>", '><property name="tcs:blockEntryDirection" value="x"/></path>')
    said = "tcs:blockEntryDirection of paths: 1 (a-b) left out; each path is a direction of its own"
    assert import_opentcs(plant(named))[1] == [said]
    cases = [
        (block("a", name="x", type="PLATOON"), 'block[1].type: read "PLATOON"; expected one of SI'),
        (block("a"), "block[1].name: read null; expected a name"),
    ]
    read = lambda fault: import_opentcs(plant(path() + fault))  # noqa: E731
    assert list_unrefused(read, cases, LayoutError) == []


def test_a_vehicle_may_start_where_it_parks():
    prefers, assigned = "tcs:preferredParkingPosition", "tcs:assignedParkingPosition"
    first, location = "loopback:initialPosition", '<location name="L"><link point="b"/></location>'
    none = f"vehicle[1]: none of {first}, {prefers}, {assigned}; 'v' starts at 'a'"
    unknown = "unknown point {}; 'v' starts at 'a'".format
    for properties, place, start, said in (
        ({prefers: "b"}, "", "b", []),
        ({assigned: "b"}, "", "b", []),
        ({prefers: "b", first: "a"}, "", "a", []),
        ({first: "x", prefers: "b"}, "", "b", []),
        ({prefers: "b"}, location, "L", []),
        ({prefers: "x"}, "", "a", [unknown(f'"x" ({prefers})')]),
        ({first: "x", assigned: "y"}, "", "a", [unknown(f'"x" ({first}), "y" ({assigned})')]),
        ({}, "", "a", [none]),
    ):
        inner = "".join(f'<property name="{key}" value="{x}"/>' for key, x in properties.items())
        fleet = f'<vehicle name="v" maxVelocity="1000">{inner}</vehicle>'
        layout, warnings = import_opentcs(plant(path() + place + fleet))
        assert layout["vehicles"][0]["start"] == start
        assert len(warnings) == len(said) and all(map(operator.contains, warnings, said))
    # Not where no path leads away, whatever the order of the points.
    text = plant(path("b", "c") + '<vehicle name="v"/>', "abc")
    for kind in ("HALT_POSITION", "PARK_POSITION"):
        made, _ = import_opentcs(text.replace('name="a"', f'name="a" type="{kind}"'))
        assert made["vehicles"][0]["start"] == "b"
