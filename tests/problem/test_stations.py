"""Stations, aliases and levels: how records name sites, which site serves, what imports make of them."""

import copy
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_and_refusals import list_unrefused
from worlds import make_task, row_floor

import acerl_np
from acerl_np.problem.generate import find_task_places, generate_record
from acerl_np.problem.importers.lif import import_lif
from acerl_np.problem.importers.opentcs import import_opentcs
from acerl_np.problem.layout import find_ends, find_sites, find_stations, find_type
from acerl_np.problem.packing import pack_instances, unpack_instances
from acerl_np.support.errors import EventError, InputError, LayoutError, RecordError

DATA = Path(__file__).parents[1] / "data"


def line(**more):
    """Return sites a, b, ..., f on a line, 10 m apart, a vehicle at a."""
    return row_floor("abcdef", [{"id": "v", "start": "a"}], **{"name": "line", **more})


STATIONS = {"ends": ["f", "a"], "mid": ["d", "c"], "one": ["c"]}
NAMED = line(stations=STATIONS, aliases={"N-17": "b", "Hall": "ends", "Rack 3": "one"})


def record_of(data, *ends, **options):
    """A record of one task on a floor."""
    layout = acerl_np.Layout.from_dict(data)
    return acerl_np.Instance.from_rows("r", layout, [make_task("t", *ends, 0, 9)], **options)


def ends_of(pickup, delivery, data=NAMED):
    [row] = record_of(data, pickup, delivery, places=["line 2"]).rows()
    return row["pickup"] + row["delivery"]


def test_the_nearest_pair_of_sites_serves():
    served = {
        ("N-17", "f"): "bf",
        ("b", "ends"): "ba",  # 10 m to a, 40 m to f
        ("e", "ends"): "ef",
        ("ends", "e"): "fe",
        ("Hall", "e"): "fe",
        ("mid", "b"): "cb",
        ("mid", "ends"): "ca",  # 20 m both ways, c to a and d to f: c is the first
        ("ends", "mid"): "ac",
        ("one", "mid"): "cd",  # never the same site
        ("mid", "Rack 3"): "dc",
    }
    assert {ends: ends_of(*ends) for ends in served} == served


def test_names_that_serve_no_task_are_refused():
    cases = [
        (("ends", "ends"), "delivery: 'ends' is also the pickup; expected another site"),
        (("ends", "Hall"), "delivery: 'Hall' is also the pickup"),
        (("b", "N-17"), "delivery: 'N-17' is also the pickup"),
        (("one", "c"), "delivery: 'c' is served from 'c', as is the pickup 'one'; expected"),
        (("end", "a"), "pickup: unknown site 'end'; expected a site of layout 'line'"),
        (("a", "Rack"), "delivery: unknown site 'Rack'; expected a site of layout 'line'"),
    ]
    assert list_unrefused(lambda ends: ends_of(*ends), cases, RecordError, "line 2: ") == []


def test_sites_that_no_vehicle_reaches_do_not_serve():
    data = copy.deepcopy(NAMED)
    data["edges"][4] = {"a": "f", "b": "e", "one_way": True}  # f only leads in
    assert (ends_of("ends", "e", data), ends_of("e", "ends", data)) == ("ae", "ea")
    data["stations"]["far"] = ["f"]
    told = r"pickup: 'f' \(of station ends, far\) cannot be reached"
    with pytest.raises(RecordError, match=told):
        ends_of("far", "e", data)
    data |= {"stations": {"far": ["f"], "wide": ["f", "b"]}, "aliases": {}}
    with pytest.raises(RecordError, match="pickup: 'f'"):
        ends_of("wide", "b", data)  # its only pickup within reach is the delivery


@given(st.data())
def test_no_other_pair_is_shorter(data):
    """Against the slow, obvious search over all pairs."""
    layout = acerl_np.Layout.from_dict(line())
    some = st.sets(st.integers(0, 5), min_size=1)
    pickups, deliveries = (sorted(data.draw(some)) for _ in range(2))
    if len({*pickups, *deliveries}) == 1:
        return
    pairs = [
        (abs(a - b), a, b) for a in range(6) for b in range(6) if a in pickups and b in deliveries
    ]
    assert find_ends(layout, pickups, deliveries) == min(pair for pair in pairs if pair[0])[1:]


def test_a_layout_with_names_is_read_as_written():
    layout, plain = (acerl_np.Layout.from_dict(data) for data in (NAMED, line()))
    data = layout.to_dict()
    assert (data["stations"], data["aliases"]) == (NAMED["stations"], NAMED["aliases"])
    again = acerl_np.Layout.from_dict(json.loads(json.dumps(data)))
    assert again == layout and again.to_dict() == data and hash(again) == hash(layout)
    assert plain != layout and not {"stations", "aliases"} & set(plain.to_dict())
    assert find_sites(layout, "mid") == (2, 3) and find_sites(layout, "nowhere") == ()
    # Hashes and packing see the sites that serve.
    named, direct = record_of(NAMED, "mid", "Hall"), record_of(line(), "c", "a")
    assert layout.floor_hash == plain.floor_hash
    assert (named.content_hash, named.rows()) == (direct.content_hash, direct.rows())
    (again,) = unpack_instances(pack_instances([named]))
    assert again.content_hash == named.content_hash and again.layout == layout
    assert acerl_np.perturb(named, 5, seed=0).rows()[0]["pickup"] == "c"
    # What has no names has the hashes that it ever had.
    dmh = acerl_np.load_layout("dmh").floor_hash
    assert dmh == "fc0fe479ffb965ddc26e6fe7636ca52fbfadc99a1840fd1a42d2dffa75e37322"
    found = acerl_np.load_instance("DMH-01").content_hash
    assert found == "aca214361d46ff1367b93c3468e960b96d7007720482dbdb2122e3b91812cae0"


BAD = [
    ({"stations": {"S": []}}, "stations.S: no sites; expected at least one"),
    ({"stations": {"S": ["z"]}}, "stations.S: unknown site 'z'; expected the id of one of the"),
    ({"stations": {"S": ["a", "a"]}}, "stations.S: 'a' again; expected each site once"),
    ({"stations": {"a": ["b"]}}, "stations.a: is also the id of a site; expected another name"),
    ({"stations": {" ": ["b"]}}, 'stations: read the name " "; expected at most 200 printable'),
    ({"aliases": {"a": "b"}}, "aliases.a: is also a site or station; expected another name"),
    ({"aliases": {"N": "z"}}, "aliases.N: read 'z'; expected the id of a site or a station"),
    ({"stations": {"S": ["a"]}, "aliases": {"S": "b"}}, "aliases.S: is also a site or station"),
]


def test_names_that_contradict_each_other_are_refused():
    read = acerl_np.Layout.from_dict
    assert list_unrefused(lambda names: read(line(**names)), BAD, LayoutError) == []


def with_kinds(*kinds, **more):
    data = line(**more)
    for site, kind in zip(data["sites"], kinds, strict=False):
        site["kind"] = kind
    return acerl_np.Layout.from_dict(data)


TWIN = {"twin": ["d", "e"], "desk": ["c"], "till": ["c"]}
OWN = ("", "dock", "desk", "shelf", "shelf", "parking")
KINDS = with_kinds(*OWN, stations=TWIN, aliases={"N-17": "b", "T": "twin"})


def test_stations_are_named_ones_and_sites_of_a_kind():
    found = find_stations(KINDS)
    assert list(found.items()) == [("b", (1,)), ("desk", (2,)), ("till", (2,)), ("twin", (3, 4))]
    types = [find_type(KINDS, sites) for sites in found.values()]
    assert types == ["dock", "desk", "desk", "shelf"] and find_type(KINDS, [0, 5]) == "station"
    assert find_stations(acerl_np.Layout.from_dict(line())) == {}


def test_tasks_are_drawn_between_places():
    for sites, expected in (
        (None, [(1,), (2,), (3, 4)]),
        ("stations", [(1,), (2,), (3, 4)]),
        ("all", [(1,), (2,), (3,), (4,), (5,)]),
        (["shelf", "dock"], [(1,), (3, 4)]),
        (["T", "parking", "N-17"], [(1,), (3, 4), (5,)]),
        (["e", "d"], [(3,), (4,)]),
        (["desk", "f", "till"], [(2,), (5,)]),
    ):
        assert find_task_places(KINDS, sites) == expected
    powered = with_kinds("Rack", "charger", "Rack", "Press")
    assert find_task_places(powered) == [(0,), (2,), (3,)]
    assert find_task_places(powered, ["charger", "Press"]) == [(1,), (3,)]  # asked for
    expected = "expected one of desk, dock, parking, shelf, stations or names of sites"
    cases = [
        (["dock", "oven"], f'sites: read "oven"; {expected}'),
        ("twin", "sites: 1 of 1 can be reached  ... expected at least two"),
    ]
    assert list_unrefused(lambda sites: find_task_places(KINDS, sites), cases) == []
    told = r'^sites: read "stations"; expected all or names of sites'
    with pytest.raises(InputError, match=told):
        find_task_places(acerl_np.Layout.from_dict(line()), "stations")


def test_drawn_tasks_go_to_the_nearest_site_of_a_station():
    made = generate_record(KINDS, 300, seed=1)
    ends, counts = np.unique([made.pickup, made.delivery], axis=1, return_counts=True)
    # b at 10 m, c at 20 m, the twin at 30 and 40 m: its far site never serves.
    assert ends.T.tolist() == [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2]]
    assert counts.min() > 30
    # Twice the way, and the mean way to the pickup from the other two places.
    pairs = zip(made.pickup.tolist(), made.delivery.tolist(), strict=True)
    due = dict(zip(pairs, made.expiry, strict=True))
    assert due[1, 3] == 2 * 20 + (10 + 20) / 2 and due[3, 2] == 2 * 10 + (20 + 10) / 2
    # Stations that share a site are apart.
    data = line(stations={"left": ["b", "c"], "right": ["d", "c"]})
    made = generate_record(acerl_np.Layout.from_dict(data), 50)
    assert {(1, 2), (2, 1)} == {*zip(made.pickup.tolist(), made.delivery.tolist(), strict=True)}
    assert {*made.expiry.tolist()} == {2 * 10 + 10}


def test_live_events_may_name_stations(tmp_path):
    data = {**NAMED, "aliases": {**NAMED["aliases"], "Hall 1": "a"}}
    dispatcher = acerl_np.Dispatcher(acerl_np.Layout.from_dict(data), "EDD")
    dispatcher.feed(acerl_np.TaskArrived(0.0, "t", "mid", "Hall", expiry=100.0))
    dispatcher.feed(acerl_np.TaskArrived(0.0, "u", "N-17", "ends", expiry=50.0))
    (sent,) = dispatcher.decide(0.0)
    assert sent.task == "u"
    # 10 m to b and 10 m back to the nearer of its ends.
    dispatcher.feed(acerl_np.VehicleIdle(20.0, "v", "Hall 1"))
    arrived, passed = partial(acerl_np.TaskArrived, 21.0, "w", expiry=50.0), acerl_np.VehiclePassed
    cases = [
        (arrived(pickup="ends", delivery="Hall"), "pickup and delivery are one site"),
        (arrived(pickup="end", delivery="Hall"), "site 'end' unknown"),
        (passed(21.0, "v", "mid"), "'mid' is a station of 2 sites; expected one of them"),
    ]
    assert list_unrefused(dispatcher.feed, cases, EventError) == []
    dispatcher.decide(21.0)
    dispatcher.save(tmp_path / "state.npz")
    again = acerl_np.Dispatcher.load(tmp_path / "state.npz")
    assert again.under_way == dispatcher.under_way == {"t": "v"}


# What importers make of stations


def lif(*stations, nodes="abcd"):
    places = [{"nodeId": x, "nodePosition": {"x": 10 * k, "y": 0}} for k, x in enumerate(nodes)]
    edges = [{"startNodeId": a, "endNodeId": b} for a in nodes for b in nodes if a != b]
    listed = [{"stationId": x, "interactionNodeIds": list(at), **more} for x, at, more in stations]
    return {"nodes": places, "edges": edges, "stations": listed}


def read(*layouts, **options):
    return import_lif(json.dumps({"layouts": list(layouts)}), **options)


def kinds_of(data):
    return {site["id"]: site["kind"] for site in data["sites"]}


def test_the_kind_is_the_type_or_the_common_name_of_stations():
    names = ({"stationName": "Rack 1", "stationType": "gate"}, {"stationName": "Rack-12"})
    names += ({"stationName": "Rack 3", "stationType": " "}, {"stationName": "Lonely 4"})
    data, _ = read(lif(*zip("ABCD", "abcd", names, strict=True)))
    assert kinds_of(data) == {"A": "gate", "B": "Rack", "C": "Rack", "D": "station"}


def test_the_kind_is_the_type_of_locations():
    kinds = {"a": "HALT", "b": "PARK_POSITION", "c": "PARK_POSITION", "d": "HALT"}
    body = "".join(
        f'<point name="{x}" xPosition="{ord(x)}000" yPosition="0" type="{kinds[x]}"/>'
        for x in kinds
    )
    for name, point, kind in (("L", "a", "Shelf"), ("M", "b", "Shelf"), ("N", "d", "")):
        body += f'<location name="{name}" type="{kind}"><link point="{point}"/></location>'
    data, _ = import_opentcs(f"<model>{body}</model>")
    assert kinds_of(data) == {"L": "Shelf", "M": "Shelf", "c": "parking", "N": "station"}


def test_a_location_with_several_links_is_a_name():
    points = "".join(f'<point name="{name}" xPosition="{ord(name)}000"/>' for name in "abc")
    paths = "".join(
        f'<path name="{a}{b}" sourcePoint="{a}" destinationPoint="{b}" maxReverseVelocity="1"/>'
        for a, b in ("ab", "bc")
    )
    location = '<location name="L" type="Shelf"><link point="a"/><link point="c"/></location>'
    vehicle = '<vehicle name="v" maxVelocity="1000"/>'
    data, warnings = import_opentcs(f"<model>{points}{paths}{location}{vehicle}</model>")
    assert data["stations"] == {"L": ["a", "c"]} and "aliases" not in data
    assert any("station 'L': 2 nodes (a, c), which keep their ids" in line for line in warnings)
    assert kinds_of(data) == {"a": "Shelf", "b": "", "c": "Shelf"}
    assert ends_of("b", "L", data) == "ba" and ends_of("L", "c", data) == "ac"


def test_old_names_and_names_of_stations_become_aliases():
    # A node has the id of the second.
    names = ("Goods in", "Lost", "Goods out", "Twice", "Twice")
    ends = zip("SbWXY", ("a", "bc", "cd", "d", "d"), names, strict=True)
    data, _ = read(lif(*((x, at, {"stationName": name}) for x, at, name in ends)))
    assert [site["id"] for site in data["sites"]] == ["S", "b", "c", "d"]
    assert data["stations"] == {"W": ["c", "d"], "X": ["d"], "Y": ["d"]}
    assert data["aliases"] == {"a": "S", "Goods in": "S", "Goods out": "W"}
    data["vehicles"] = [{"id": "v", "start": "S"}]
    assert ends_of("a", "Goods out", data) == "Sc"
    # An old name goes before a station of several nodes.
    data, _ = read(lif(("S", "a", {}), ("a", "cd", {})))
    assert data["aliases"] == {"a": "S"} and "stations" not in data


# Levels


def level(title, nodes="ab", **more):
    return {"layoutId": "hall", "layoutLevelId": title, **lif(nodes=nodes), **more}


def test_levels_stand_side_by_side_and_share_no_id():
    data, warnings = read(level("0", "abc"), level("1", "axy"), join=True)
    assert warnings == [] and data["name"] == "hall"
    assert [(site["id"], site["x"]) for site in data["sites"]] == [
        *[("0/a", 0), ("b", 10), ("c", 20)],
        *[("1/a", 22), ("x", 32), ("y", 42)],
    ]
    lengths = {(edge["a"], edge["b"]): edge["length"] for edge in data["edges"]}
    assert lengths["1/a", "x"] == 10 and lengths["0/a", "b"] == 10
    assert len(lengths) == 6 and not {("0/a", "x"), ("x", "b"), ("c", "1/a")} & set(lengths)


def test_edges_may_lead_to_another_level():
    lower, upper, third = level("0", "ab"), level("1", "cda"), level("2", "gh")
    # Above each other; 10 m apart in the plan; to an id that no level, and that two others have.
    lower["edges"] += [{"startNodeId": x[0], "endNodeId": x[1]} for x in ("bd", "ad", "be")]
    third["edges"].append({"startNodeId": "g", "endNodeId": "a"})
    lower["stations"] = [{"stationId": "S", "interactionNodeIds": ["b", "c"]}]
    data, warnings = read(lower, upper, third, join=True)
    ways = {(edge["a"], edge["b"]): (edge["length"], edge["one_way"]) for edge in data["edges"]}
    assert ways["b", "d"] == (10, True) and ways["0/a", "d"] == (10, True)
    assert data["stations"] == {"S": ["b", "c"]}
    assert {"0/a", "1/a", "g"} <= {site["id"] for site in data["sites"]}
    assert warnings == [
        "layouts[0].edges[2]: between levels, from 'b' to 'd', taken as 10 m",
        "layouts[0].edges[4]: unknown node 'e', left out",
        "layouts[2].edges[2]: unknown node 'a', left out",
        "station 'S': 2 nodes (b, c), which keep their ids as sites",
    ]


def test_stations_of_two_levels_keep_apart():
    stations = [{"stationId": "S", "interactionNodeIds": ["a"], "stationName": "Rack 1"}]
    data, _ = read(*(level(x, stations=copy.deepcopy(stations)) for x in "01"), join=True)
    assert [site["id"] for site in data["sites"]] == ["0/S", "0/b", "1/S", "1/b"]
    assert kinds_of(data)["0/S"] == "Rack"
    assert data["aliases"] == {"0/a": "0/S", "1/a": "1/S"}


def test_a_level_is_called_by_what_tells_it_apart():
    for ids, expected in (
        ([("h", "0"), ("h", "1")], ["0/a", "1/a"]),
        ([("h", ""), ("i", "")], ["h/a", "i/a"]),
        ([(a, b) for a in "hi" for b in "01"], ["h/0/a", "h/1/a", "i/0/a", "i/1/a"]),
        ([("h", "0"), ("h", "0")], ["1/a", "2/a"]),
        ([("h", "0\n"), ("h", "1")], ["0/a", "1/a"]),
        ([("h", "0\u0007"), ("h", "1")], ["0\\x07/a", "1/a"]),
    ):
        layouts = [{**level(b, "a"), "layoutId": a} for a, b in ids]
        data, _ = read(*layouts, join=True, name="file")
        assert [site["id"] for site in data["sites"]] == expected
        assert data["name"] == ("h" if len({a for a, _ in ids}) == 1 else "file")


def test_one_layout_joined_is_that_layout():
    assert read(level("0"), join=True) == read(level("0"))
    with pytest.raises(LayoutError, match=r"^--layout-id: given beside --join"):
        read(level("0"), join=True, layout_id="0")
    with pytest.raises(LayoutError, match=r"^layouts: an empty list"):
        read(join=True)


TOWER = DATA / "tower.lif.json"
ADDED = st.sampled_from(["", '"', "lift", "1e9", "/", "u"])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), ADDED), min_size=1, max_size=4))
def test_whatever_stands_in_levels_is_joined_or_refused_in_one_line(changes):
    text = TOWER.read_text()
    for place, removed, added in changes:
        at = round(place * len(text))
        text = text[:at] + added + text[at + removed :]
    try:
        data, warnings = import_lif(text, join=True)
        data["vehicles"] = [{"id": "v", "start": data["sites"][0]["id"]}]
        layout = acerl_np.Layout.from_dict(data)
        assert all(line.isprintable() for line in warnings)
    except LayoutError as error:
        assert "\n" not in str(error)
        return
    for name in (*layout.stations, *layout.aliases):
        assert find_sites(layout, name)


# As users call it


IMPORT = f"floor import {TOWER} --out tower.json"
FLEET = "--vehicles 2 --start dock"


def test_a_tower_is_joined_by_its_lifts(empty, run):
    run(f"{IMPORT} --join {FLEET}")
    found = run("floor check tower.json").out
    assert "unreachable pairs: 22 (" in found  # the hoist leads up alone
    run(f"{IMPORT} --join {FLEET} --lift ground/lift:upper/lift:25.5 --lift g2:rail --force")
    assert '    "buffer": ["g2", "hoist"],\n' in Path("tower.json").read_text()
    layout = acerl_np.load_layout("tower.json")
    assert [(e.a, e.b, e.length, e.one_way) for e in layout.edges[-2:]] == [
        ("ground/lift", "upper/lift", 25.5, False),
        ("g2", "rail", 10.0, False),
    ]
    assert run("floor check tower.json").out.splitlines()[1:] == [
        "2 stations of type gate: dock, buffer",
        "1 station of type station: wide",
        "2 stations of type Rack: r1, r2",
        "every site can be reached from every other",
    ]
    lines = run("floor show tower.json").out.splitlines()
    place = lines.index("stations:")
    assert lines[place + 1 : place + 6] == [
        "  dock  gate; also called g1",
        "  buffer  gate; served from g2, hoist",
        "  wide  station; served from upper/lift, rail; also called Rack wide",
        "  r1  Rack; also called u1, Rack 1",
        "  r2  Rack; also called u2, Rack 2",
    ]


def test_bad_words_for_levels_are_one_line(empty, run):
    lift = "--lift: read '{}'; expected".format
    levels = (
        '("tower/ground", "tower/upper"); expected one, or the one to take (--layout-id), or --join'
    )
    for words, message in {
        "": levels,
        "--join --layout-id upper": "--layout-id: given beside --join, which takes all",
        "--join --lift g1:lift": f"{lift('g1:lift')} A:B or A:B:LENGTH, two",
        **{f"--join --lift {x}": lift(x) for x in ("g1:g1", "g1:dock:4", "g1:u1:0", "g1:u1:nan")},
    }.items():
        assert message in run(f"{IMPORT} {FLEET} {words}", 2).err
    line = run(f"floor import {DATA / 'plant.xml'} --out p.json --join", 2).err
    assert "plant.xml: --join: given for a plant model; expected it for LIF" in line


def test_names_with_colons_may_be_joined(empty, run):
    layouts = [level("0"), level("1", "cd")]
    for layout, names in zip(layouts, (("x:1", "x"), ("1:2", "y")), strict=True):
        layout["edges"] = []
        for node, name in zip(layout["nodes"], names, strict=True):
            node["nodeId"] = name
    Path("m.json").write_text(json.dumps({"layouts": layouts}))
    lifts = "--lift x:1:1:2:7 --lift x:1:1:2 --lift x:y:3"
    run(f"floor import m.json --join --vehicles 1 --start x --out l.json {lifts}")
    edges = [(edge.a, edge.b, edge.length) for edge in acerl_np.load_layout("l.json").edges]
    assert edges == [("x:1", "1:2", 7.0), ("x:1", "1:2", 10.0), ("x", "y", 3.0)]
