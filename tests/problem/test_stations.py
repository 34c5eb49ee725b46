"""Stations, aliases and levels: how records name sites, which site serves, what imports make of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acerl_np
from acerl_np.commands.main import main
from acerl_np.problem.generate import find_task_places, generate_record
from acerl_np.problem.importers.files import import_floor
from acerl_np.problem.importers.lif import import_lif
from acerl_np.problem.importers.opentcs import import_opentcs
from acerl_np.problem.packing import pack_instances, unpack_instances
from acerl_np.problem.stations import find_ends, find_sites, find_stations, find_type
from acerl_np.support.errors import EventError, InputError, LayoutError, RecordError

DATA = Path(__file__).parents[1] / "data"
HEADER = "task,pickup,delivery,arrival_time,expiry_time\n"


def line(**more):
    """Return sites a, b, ..., f on a line, 10 m apart, a vehicle at a."""
    return {
        "format": 1,
        "name": "line",
        "sites": [{"id": name, "x": 10 * k, "y": 0} for k, name in enumerate("abcdef")],
        "edges": [{"a": a, "b": b} for a, b in zip("abcde", "bcdef", strict=True)],
        "vehicles": [{"id": "v", "start": "a"}],
        **more,
    }


NAMED = line(
    stations={"ends": ["f", "a"], "mid": ["d", "c"], "one": ["c"]},
    aliases={"N-17": "b", "Hall": "ends", "Rack 3": "one"},
)


def ends_of(pickup, delivery, data=NAMED):
    layout = acerl_np.Layout.from_dict(data)
    row = {"task": "t", "pickup": pickup, "delivery": delivery}
    made = acerl_np.Instance.from_rows(
        "r", layout, [{**row, "arrival_time": 0, "expiry_time": 9}], ["line 2"]
    )
    return made.rows()[0]["pickup"] + made.rows()[0]["delivery"]


def test_no_task_is_drawn_to_a_charger():
    data = line()
    for site, kind in zip(data["sites"], ("Rack", "charger", "Rack", "Press"), strict=False):
        site["kind"] = kind
    layout = acerl_np.Layout.from_dict(data)
    assert find_task_places(layout) == [(0,), (2,), (3,)]
    assert find_task_places(layout, ["charger", "Press"]) == [(1,), (3,)]  # asked for


@pytest.mark.parametrize(
    ("pickup", "delivery", "expected"),
    [
        ("a", "f", "af"),
        ("N-17", "f", "bf"),
        ("N-17", "a", "ba"),
        ("b", "ends", "ba"),  # 10 m to a, 40 m to f
        ("e", "ends", "ef"),
        ("ends", "e", "fe"),
        ("Hall", "e", "fe"),
        ("mid", "b", "cb"),
        ("mid", "ends", "ca"),  # 20 m both ways, c to a and d to f: c is the first
        ("ends", "mid", "ac"),
        ("one", "mid", "cd"),  # never the same site
        ("mid", "Rack 3", "dc"),
    ],
)
def test_the_nearest_pair_of_sites_serves(pickup, delivery, expected):
    assert ends_of(pickup, delivery) == expected


@pytest.mark.parametrize(
    ("pickup", "delivery", "message"),
    [
        ("ends", "ends", "line 2: delivery: 'ends' is also the pickup; expected another site"),
        ("ends", "Hall", "line 2: delivery: 'Hall' is also the pickup"),
        ("b", "N-17", "line 2: delivery: 'N-17' is also the pickup"),
        ("one", "c", "line 2: delivery: 'c' is served from 'c', as is the pickup 'one'; expected"),
        ("end", "a", "line 2: pickup: unknown site 'end'; expected a site of layout 'line'"),
        ("a", "Rack", "line 2: delivery: unknown site 'Rack'; expected a site of layout 'line'"),
    ],
)
def test_names_that_serve_no_task_are_refused(pickup, delivery, message):
    with pytest.raises(RecordError) as caught:
        ends_of(pickup, delivery)
    assert str(caught.value).startswith(message)


def test_sites_that_no_vehicle_reaches_do_not_serve():
    data = copy.deepcopy(NAMED)
    data["edges"][4] = {"a": "f", "b": "e", "one_way": True}  # f only leads in
    assert ends_of("ends", "e", data) == "ae"
    assert ends_of("e", "ends", data) == "ea"
    data["stations"]["far"] = ["f"]
    with pytest.raises(
        RecordError, match=r"pickup: 'f' \(of station ends, far\) cannot be reached"
    ):
        ends_of("far", "e", data)
    data["stations"] = {"far": ["f"], "wide": ["f", "b"]}
    data["aliases"] = {}
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
    layout = acerl_np.Layout.from_dict(NAMED)
    data = layout.to_dict()
    assert data["stations"] == NAMED["stations"] and data["aliases"] == NAMED["aliases"]
    again = acerl_np.Layout.from_dict(json.loads(json.dumps(data)))
    assert again == layout and again.to_dict() == data and hash(again) == hash(layout)
    plain = acerl_np.Layout.from_dict(line())
    assert plain != layout and not {"stations", "aliases"} & set(plain.to_dict())
    assert find_sites(layout, "mid") == (2, 3) and find_sites(layout, "nowhere") == ()


def test_hashes_and_packing_see_the_sites_that_serve():
    rows = [{"task": "t", "pickup": "mid", "delivery": "Hall", "arrival_time": 0, "expiry_time": 9}]
    own = [{**rows[0], "pickup": "c", "delivery": "a"}]
    layout, plain = (acerl_np.Layout.from_dict(data) for data in (NAMED, line()))
    named, direct = (
        acerl_np.Instance.from_rows("r", floor, tasks)
        for floor, tasks in ((layout, rows), (plain, own))
    )
    assert layout.floor_hash == plain.floor_hash
    assert named.content_hash == direct.content_hash
    assert named.rows() == direct.rows()
    (again,) = unpack_instances(pack_instances([named]))
    assert again.content_hash == named.content_hash and again.layout == layout
    noised = acerl_np.perturb(named, 5, seed=0)
    assert noised.rows()[0]["pickup"] == "c"


def test_the_hash_of_a_layout_without_names_stays():
    dmh = acerl_np.load_layout("dmh")
    assert dmh.floor_hash == "fc0fe479ffb965ddc26e6fe7636ca52fbfadc99a1840fd1a42d2dffa75e37322"
    found = acerl_np.load_instance("DMH-01").content_hash
    assert found == "aca214361d46ff1367b93c3468e960b96d7007720482dbdb2122e3b91812cae0"


BAD = {
    "stations.S: no sites; expected at least one": {"stations": {"S": []}},
    "stations.S: unknown site 'z'; expected the id of one of the sites": {"stations": {"S": ["z"]}},
    "stations.S: 'a' again; expected each site once": {"stations": {"S": ["a", "a"]}},
    "stations.a: is also the id of a site; expected another name": {"stations": {"a": ["b"]}},
    'stations: read the name " "; expected at most 200 printable': {"stations": {" ": ["b"]}},
    "aliases.a: is also a site or station; expected another name": {"aliases": {"a": "b"}},
    "aliases.N: read 'z'; expected the id of a site or a station": {"aliases": {"N": "z"}},
    "aliases.S: is also a site or station": {"stations": {"S": ["a"]}, "aliases": {"S": "b"}},
}


@pytest.mark.parametrize("message", list(BAD))
def test_names_that_contradict_each_other_are_refused(message):
    with pytest.raises(LayoutError) as caught:
        acerl_np.Layout.from_dict(line(**BAD[message]))
    assert str(caught.value).startswith(message)


KINDS = line(
    stations={"twin": ["d", "e"], "desk": ["c"], "till": ["c"]}, aliases={"N-17": "b", "T": "twin"}
)
for site, kind in zip(
    KINDS["sites"], ["", "dock", "desk", "shelf", "shelf", "parking"], strict=True
):
    site["kind"] = kind


def test_stations_are_named_ones_and_sites_of_a_kind():
    layout = acerl_np.Layout.from_dict(KINDS)
    found = find_stations(layout)
    assert list(found.items()) == [("b", (1,)), ("desk", (2,)), ("till", (2,)), ("twin", (3, 4))]
    assert [find_type(layout, sites) for sites in found.values()] == [
        "dock",
        "desk",
        "desk",
        "shelf",
    ]
    assert find_type(layout, [0, 5]) == "station"
    assert find_stations(acerl_np.Layout.from_dict(line())) == {}


@pytest.mark.parametrize(
    ("sites", "expected"),
    [
        (None, [(1,), (2,), (3, 4)]),
        ("stations", [(1,), (2,), (3, 4)]),
        ("all", [(1,), (2,), (3,), (4,), (5,)]),
        (["shelf", "dock"], [(1,), (3, 4)]),
        (["T", "parking", "N-17"], [(1,), (3, 4), (5,)]),
        (["e", "d"], [(3,), (4,)]),
        (["desk", "f", "till"], [(2,), (5,)]),
    ],
)
def test_tasks_are_drawn_between_places(sites, expected):
    assert find_task_places(acerl_np.Layout.from_dict(KINDS), sites) == expected


def test_words_that_say_nothing_are_refused():
    layout = acerl_np.Layout.from_dict(KINDS)
    message = '^sites: read "oven"; expected one of desk, dock, parking, shelf, stations or names of sites'
    with pytest.raises(InputError, match=message):
        find_task_places(layout, ["dock", "oven"])
    with pytest.raises(InputError, match=r"^sites: 1 of 1 can be reached .* expected at least two"):
        find_task_places(layout, "twin")
    with pytest.raises(
        InputError, match=r'^sites: read "stations"; expected all or names of sites'
    ):
        find_task_places(acerl_np.Layout.from_dict(line()), "stations")


def test_drawn_tasks_go_to_the_nearest_site_of_a_station():
    made = generate_record(acerl_np.Layout.from_dict(KINDS), 300, seed=1)
    ends, counts = np.unique([made.pickup, made.delivery], axis=1, return_counts=True)
    # b at 10 m, c at 20 m, the twin at 30 and 40 m: its far site never serves.
    assert ends.T.tolist() == [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2]]
    assert counts.min() > 30
    # Twice the way, and the mean way to the pickup from the other two places.
    due = {
        tuple(map(int, key)): expiry
        for *key, expiry in zip(made.pickup, made.delivery, made.expiry, strict=True)
    }
    assert due[1, 3] == 2 * 20 + (10 + 20) / 2 and due[3, 2] == 2 * 10 + (20 + 10) / 2


def test_stations_that_share_a_site_are_apart():
    data = line(stations={"left": ["b", "c"], "right": ["d", "c"]})
    made = generate_record(acerl_np.Layout.from_dict(data), 50)
    assert {(1, 2), (2, 1)} == {*zip(made.pickup.tolist(), made.delivery.tolist(), strict=True)}
    assert {*made.expiry.tolist()} == {2 * 10 + 10}


def test_live_events_may_name_stations(tmp_path):
    data = {**NAMED, "aliases": {**NAMED["aliases"], "Hall 1": "a"}}
    layout = acerl_np.Layout.from_dict(data)
    dispatcher = acerl_np.Dispatcher(layout, "EDD")
    dispatcher.feed(acerl_np.TaskArrived(0.0, "t", "mid", "Hall", expiry=100.0))
    dispatcher.feed(acerl_np.TaskArrived(0.0, "u", "N-17", "ends", expiry=50.0))
    (sent,) = dispatcher.decide(0.0)
    assert sent.task == "u"
    # 10 m to b and 10 m back to the nearer of its ends.
    dispatcher.feed(acerl_np.VehicleIdle(20.0, "v", "Hall 1"))
    with pytest.raises(EventError, match="pickup and delivery are one site"):
        dispatcher.feed(acerl_np.TaskArrived(21.0, "w", "ends", "Hall", expiry=50.0))
    with pytest.raises(EventError, match="site 'end' unknown"):
        dispatcher.feed(acerl_np.TaskArrived(21.0, "w", "end", "Hall", expiry=50.0))
    with pytest.raises(
        EventError, match="site 'mid' is a station of 2 sites; expected one of them"
    ):
        dispatcher.feed(acerl_np.VehiclePassed(21.0, "v", "mid"))
    (sent,) = dispatcher.decide(21.0)
    state = tmp_path / "state.npz"
    dispatcher.save(state)
    assert acerl_np.Dispatcher.load(state).under_way == dispatcher.under_way == {"t": "v"}


# What importers make of stations


def lif(*stations, nodes="abcd"):
    places = [
        {"nodeId": name, "nodePosition": {"x": 10 * k, "y": 0}} for k, name in enumerate(nodes)
    ]
    edges = [{"startNodeId": a, "endNodeId": b} for a in nodes for b in nodes if a != b]
    listed = [
        {"stationId": name, "interactionNodeIds": list(at), **more} for name, at, more in stations
    ]
    return {"nodes": places, "edges": edges, "stations": listed}


def read(*layouts, **options):
    return import_lif(json.dumps({"layouts": list(layouts)}), **options)


def kinds_of(data):
    return {site["id"]: site["kind"] for site in data["sites"]}


def test_the_kind_is_the_type_or_the_common_name_of_stations():
    data, _ = read(
        lif(
            ("A", "a", {"stationName": "Rack 1", "stationType": "gate"}),
            ("B", "b", {"stationName": "Rack-12"}),
            ("C", "c", {"stationName": "Rack 3", "stationType": " "}),
            ("D", "d", {"stationName": "Lonely 4"}),
        )
    )
    assert kinds_of(data) == {"A": "gate", "B": "Rack", "C": "Rack", "D": "station"}


def test_the_kind_is_the_type_of_locations():
    points = "".join(
        f'<point name="{name}" xPosition="{1000 * k}" yPosition="0" type="{kind}"/>'
        for k, (name, kind) in enumerate(
            (("a", "HALT"), ("b", "PARK_POSITION"), ("c", "PARK_POSITION"), ("d", "HALT"))
        )
    )
    at = (("L", "a", "Shelf"), ("M", "b", "Shelf"), ("N", "d", ""))
    body = "".join(
        f'<location name="{name}" type="{kind}"><link point="{point}"/></location>'
        for name, point, kind in at
    )
    data, _ = import_opentcs(f"<model>{points}{body}</model>")
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
    data, _ = read(
        lif(
            ("S", "a", {"stationName": "Goods in"}),
            ("b", "bc", {"stationName": "Lost"}),  # a node has its id
            ("W", "cd", {"stationName": "Goods out"}),
            ("X", "d", {"stationName": "Twice"}),
            ("Y", "d", {"stationName": "Twice"}),
        )
    )
    assert [site["id"] for site in data["sites"]] == ["S", "b", "c", "d"]
    assert data["stations"] == {"W": ["c", "d"], "X": ["d"], "Y": ["d"]}
    assert data["aliases"] == {"a": "S", "Goods in": "S", "Goods out": "W"}
    data["vehicles"] = [{"id": "v", "start": "S"}]
    assert ends_of("a", "Goods out", data) == "Sc"


def test_an_old_name_goes_before_a_station_of_several_nodes():
    data, _ = read(lif(("S", "a", {}), ("a", "cd", {})))
    assert data["aliases"] == {"a": "S"} and "stations" not in data


def test_the_samples_keep_old_names():
    data, _ = import_floor(DATA / "plant.xml")
    assert data["aliases"] == {"P2": "Inbound", "P4": "Outbound"} and "stations" not in data
    data, _ = import_floor(DATA / "hall.lif.json")
    assert data["aliases"] == {"n2": "pick", "n4": "drop", "Goods in": "pick"}
    assert data["stations"] == {"wide": ["n1", "n3"], "upper": ["n5"], "lower": ["n5"]}


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
    lower, upper = level("0", "ab"), level("1", "cda")
    lower["edges"] += [
        {"startNodeId": "b", "endNodeId": "d"},  # above each other
        {"startNodeId": "a", "endNodeId": "d"},  # 10 m apart in the plan
        {"startNodeId": "b", "endNodeId": "e"},
    ]
    lower["stations"] = [{"stationId": "S", "interactionNodeIds": ["b", "c"]}]
    data, warnings = read(lower, upper, join=True)
    ways = {(edge["a"], edge["b"]): (edge["length"], edge["one_way"]) for edge in data["edges"]}
    assert ways["b", "d"] == (10, True) and ways["0/a", "d"] == (10, True)
    assert data["stations"] == {"S": ["b", "c"]}
    assert warnings == [
        "layouts[0].edges[2]: between levels, from 'b' to 'd', taken as 10 m",
        "layouts[0].edges[4]: unknown node 'e', left out",
        "station 'S': 2 nodes (b, c), which keep their ids as sites",
    ]


def test_an_id_that_two_other_levels_have_is_unknown():
    upper = level("2", "cd")
    upper["edges"].append({"startNodeId": "c", "endNodeId": "a"})
    data, warnings = read(level("0"), level("1"), upper, join=True)
    assert "layouts[2].edges[2]: unknown node 'a', left out" in warnings
    assert {"0/a", "1/a", "c"} <= {site["id"] for site in data["sites"]}


def test_stations_of_two_levels_keep_apart():
    stations = [{"stationId": "S", "interactionNodeIds": ["a"], "stationName": "Rack 1"}]
    data, _ = read(
        level("0", stations=stations), level("1", stations=copy.deepcopy(stations)), join=True
    )
    assert [site["id"] for site in data["sites"]] == ["0/S", "0/b", "1/S", "1/b"]
    assert kinds_of(data)["0/S"] == "Rack"
    assert data["aliases"] == {"0/a": "0/S", "1/a": "1/S"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([("h", "0"), ("h", "1")], ["0/a", "1/a"]),
        ([("h", ""), ("i", "")], ["h/a", "i/a"]),
        ([("h", "0"), ("h", "1"), ("i", "0"), ("i", "1")], ["h/0/a", "h/1/a", "i/0/a", "i/1/a"]),
        ([("h", "0"), ("h", "0")], ["1/a", "2/a"]),
        ([("h", "0\n"), ("h", "1")], ["0/a", "1/a"]),
        ([("h", "0\u0007"), ("h", "1")], ["0\\x07/a", "1/a"]),
    ],
)
def test_a_level_is_called_by_what_tells_it_apart(ids, expected):
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


TOWER = (DATA / "tower.lif.json").read_text()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1), st.integers(0, 8), st.sampled_from(["", '"', "lift", "1e9", "/", "u"])
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_stands_in_levels_is_joined_or_refused_in_one_line(changes):
    text = TOWER
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


def import_tower(capsys, *words):
    status = main(["floor", "import", str(DATA / "tower.lif.json"), "--out", "tower.json", *words])
    return status, capsys.readouterr()


FLEET = ("--vehicles", "2", "--start", "dock")


def test_a_tower_is_joined_by_its_lifts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    status, _ = import_tower(capsys, "--join", *FLEET)
    assert status == 0 and main(["floor", "check", "tower.json"]) == 0
    assert "unreachable pairs: 22 (" in capsys.readouterr().out  # the hoist leads up alone
    lift = "ground/lift:upper/lift:25.5"
    lifts = ("--lift", lift, "--lift", "g2:rail")
    status, _ = import_tower(capsys, "--join", *FLEET, *lifts, "--force")
    assert status == 0
    assert '    "buffer": ["g2", "hoist"],\n' in Path("tower.json").read_text()
    layout = acerl_np.load_layout("tower.json")
    assert [(e.a, e.b, e.length, e.one_way) for e in layout.edges[-2:]] == [
        ("ground/lift", "upper/lift", 25.5, False),
        ("g2", "rail", 10.0, False),
    ]
    assert main(["floor", "check", "tower.json"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "2 stations of type gate: dock, buffer",
        "1 station of type station: wide",
        "2 stations of type Rack: r1, r2",
        "every site can be reached from every other",
    ]
    assert main(["floor", "show", "tower.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("stations:")
    assert lines[place + 1 : place + 6] == [
        "  dock  gate; also called g1",
        "  buffer  gate; served from g2, hoist",
        "  wide  station; served from upper/lift, rail; also called Rack wide",
        "  r1  Rack; also called u1, Rack 1",
        "  r2  Rack; also called u2, Rack 2",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (FLEET, '("tower/ground", "tower/upper"); expected one, or the one to take (--layout-id), or --join'),
        (("--join", "--layout-id", "upper", *FLEET), "--layout-id: given beside --join, which takes all"),
        (("--join", "--lift", "g1:lift", *FLEET), "--lift: read 'g1:lift'; expected A:B or A:B:LENGTH, two"),
        (("--join", "--lift", "g1:g1", *FLEET), "--lift: read 'g1:g1'; expected"),
        (("--join", "--lift", "g1:dock:4", *FLEET), "--lift: read 'g1:dock:4'; expected"),
        (("--join", "--lift", "g1:u1:0", *FLEET), "--lift: read 'g1:u1:0'; expected"),
        (("--join", "--lift", "g1:u1:nan", *FLEET), "--lift: read 'g1:u1:nan'; expected"),
    ],
)  # fmt: skip
def test_bad_words_for_levels_are_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    status, said = import_tower(capsys, *words)
    assert status == 2 and said.err.count("\n") == 1 and message in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_plant_model_has_no_levels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["floor", "import", str(DATA / "plant.xml"), "--out", "p.json", "--join"]
    assert main(words) == 2
    assert (
        "plant.xml: --join: given for a plant model; expected it for LIF" in capsys.readouterr().err
    )


def test_names_with_colons_may_be_joined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    layouts = [level("0"), level("1", "cd")]
    for layout, names in zip(layouts, (("x:1", "x"), ("1:2", "y")), strict=True):
        layout["edges"] = []
        for node, name in zip(layout["nodes"], names, strict=True):
            node["nodeId"] = name
    Path("m.json").write_text(json.dumps({"layouts": layouts}))
    words = ["floor", "import", "m.json", "--join", "--vehicles", "1", "--start", "x"]
    words += ["--out", "l.json", "--lift", "x:1:1:2:7", "--lift", "x:1:1:2", "--lift", "x:y:3"]
    assert main(words) == 0
    edges = [(edge.a, edge.b, edge.length) for edge in acerl_np.load_layout("l.json").edges]
    assert edges == [("x:1", "1:2", 7.0), ("x:1", "1:2", 10.0), ("x", "y", 3.0)]


def test_records_are_made_for_an_imported_floor_and_played(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    import_tower(capsys, "--join", *FLEET, "--lift", "ground/lift:upper/lift:20")
    words = ["records", "generate", "--layout", "tower.json", "--tasks", "40", "--rate", "20"]
    assert main([*words, "--out", "made"]) == 0
    made = acerl_np.load_instance("made/tasks-01.csv", layout="tower.json")
    used = {made.layout.sites[k].id for k in {*made.pickup.tolist(), *made.delivery.tolist()}}
    assert used <= {"dock", "g2", "hoist", "upper/lift", "rail", "r1", "r2"}
    assert {"dock", "r1", "r2"} < used and "ground/lift" not in used
    assert acerl_np.evaluate_policy("EDD", made, trials=1).makespan.max() > 0
    assert main([*words, "--sites", "Rack", "--out", "racks"]) == 0
    made = acerl_np.load_instance("racks/tasks-01.csv", layout="tower.json")
    assert {made.layout.sites[k].id for k in {*made.pickup.tolist()}} == {"r1", "r2"}
