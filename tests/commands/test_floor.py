"""`acerl-np floor` as users call it: import, check, show."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tables_and_refusals import read_rows
from worlds import make_task, row_floor

import acerl_np
from acerl_np.pictures.text import HEIGHT, MARK, WIDTH, draw_text
from acerl_np.problem.parts import Site
from acerl_np.problem.servable import find_no_return, find_unreachable

DATA = Path(__file__).parents[1] / "data"
HALL, PLANT = str(DATA / "hall.lif.json"), str(DATA / "plant.xml")

RECORD = "task,pickup,delivery,arrival_time,expiry_time,handling_time,demand\n"


def make_layout(edges, vehicles=({"id": "v", "start": "a", "speed": 2},), sites="abc", **more):
    edges = [{"a": a, "b": b, "one_way": one_way} for a, b, one_way in edges]
    return row_floor(sites, list(vehicles), **{"name": "small", "edges": edges, **more})


def make_plant(points, ways, more=""):
    """A plant model of points a metre apart, one-way paths of so many metres, and a vehicle."""
    parts = [f'<point name="{x}" xPosition="{k}000" yPosition="0"/>' for k, x in enumerate(points)]
    for (a, b), length in ways.items():
        ends = f'name="{a}{b}" sourcePoint="{a}" destinationPoint="{b}"'
        parts.append(f'<path {ends} length="{1000 * length:g}"/>')
    return f'<model>{"".join(parts)}{more}<vehicle name="v" maxVelocity="1000"/></model>'


def write(name, data):
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data))


START = "--start Park"
ALONE = "--vehicles 2 --start pick --layout-id ground"
IMPORTS = [
    # Truck-1: 12 m to the pickup; 9.5 m at 1 m/s and 12 m at 0.3 m/s to the delivery.
    (PLANT, "", "Truck-1 P1 1.0 0.0, Truck-2 Park 1.5 0.0", "Inbound Outbound", 61.5),
    (PLANT, START, "Truck-1 Park 1.0 0.0, Truck-2 Park 1.5 0.0", "Outbound Inbound", None),
    # From where it stands over the arc to the delivery.
    (HALL, ALONE, "v1 pick 1.0 0.0, v2 pick 1.0 0.0", "pick drop", 5 * np.pi + np.hypot(10, 10)),
]


@pytest.mark.parametrize(("file", "words", "fleet", "ends", "seconds"), IMPORTS)
def test_imported_layouts_are_loaded_checked_shown_and_played(
    empty, run, file, words, fleet, ends, seconds
):
    # A line stays a line whatever the file is called.
    write("new\nline", Path(file).read_text())
    shown = []
    for source, out in ((file, "layout.json"), ("new\nline", "new\nlayout.json")):
        captured = run(["floor", "import", source, *words.split(), "--out", out])
        assert captured.out.count("\n") == 1 and captured.out.endswith("2 vehicles\n")
        shown = captured.err.splitlines()
        assert shown and all(": warning: " in line for line in shown)
    assert Path("layout.json").read_bytes() == Path("new\nlayout.json").read_bytes()
    run(["floor", "check", "new\nlayout.json"])
    layout = acerl_np.load_layout("layout.json")
    assert acerl_np.Layout.from_dict(layout.to_dict()).to_dict() == layout.to_dict()
    found = (f"{v.id} {v.start} {v.speed} {v.capacity}" for v in layout.vehicles)
    assert ", ".join(found) == fleet
    pickup, delivery = ends.split()
    tasks = "".join(f"t{k},{pickup},{delivery},{60 * k},200,5,1\n" for k in range(6))
    write("tasks.csv", RECORD + tasks)
    trials = acerl_np.evaluate_policy("EDD", acerl_np.load_instance("tasks.csv"), trials=2)
    assert np.isfinite(trials.makespan).all() and trials.makespan.min() > 300
    one = acerl_np.Instance.from_rows("one", layout, [make_task("t", pickup, delivery, 5, 100)])
    played = acerl_np.evaluate_policy("nearest", one, trials=1).makespan[0, 0]
    assert seconds is None or played == np.ceil(5 + seconds)
    found = run("floor check layout.json --on tasks.csv").out
    assert "tasks: 6 tasks in 500 s, offered load " in found
    assert f"*{pickup}" in run("floor show layout.json").out


def test_a_floor_gets_another_fleet(empty, run):
    run("floor edit dmh --vehicles 5 --speed 2 --out five.json")
    dmh, five = acerl_np.load_layout("dmh"), acerl_np.load_layout("five.json")
    assert five.floor_hash == dmh.floor_hash
    listed = [*(vehicle.breakdowns for vehicle in dmh.vehicles), (), ()]
    assert [(v.id, v.start, v.speed, v.breakdowns) for v in five.vehicles] == [
        (f"v{k}", "carport", 2.0, listed[k]) for k in range(5)
    ] and all(listed[:3])
    line = run("floor edit five.json --vehicles 2 --start p0 --out two.json").out
    assert line == "two.json: 14 sites, 14 edges (0 one-way), 2 vehicles\n"
    assert [v.start for v in acerl_np.load_layout("two.json").vehicles] == ["p0", "p0"]
    assert run("floor edit dmh --vehicles 2 --start st1,nix --out x.json", 2).err.endswith(
        "--start: read 'nix'; expected sites, nodes or stations such as p0, p1, p2, p3, carport, ..., or "
        "'parking' (1 parking place on this floor)\n"
    )


def test_a_floor_lets_vehicles_meet(empty, run):
    """What is changed later lies aside, too; what the file says of traffic stays."""

    def list_aside(name):
        layout = acerl_np.load_layout(name)
        return layout.traffic, {site.id for site in layout.sites if site.aside}

    racks = {f"rack-{k}" for k in range(1, 8)}
    power = "--chargers receiving-1 --battery hours=2,minutes=40"
    run(f"floor edit supply-loop --aside storage,line-1 {power} --out met.json")
    traffic, aside = list_aside("met.json")
    assert traffic.headway == 3 and aside == racks | {"line-1", "park", "receiving-1"}
    data = json.loads(Path("met.json").read_text())
    write("met.json", data | {"traffic": {"headway": 7}})
    run("floor edit met.json --start line-2 --out moved.json")
    traffic, moved = list_aside("moved.json")
    assert traffic.headway == 7 and moved == aside | {"line-2"}
    run("floor edit met.json --traffic off --out off.json")
    assert list_aside("off.json")[0] is None
    for words, message in (
        (
            "--traffic lane --aside work",
            "--aside: given with --traffic lane; expected --traffic file",
        ),
        (
            "--aside nix",
            "--aside: read 'nix'; expected sites, stations or kinds of sites: goods-in,",
        ),
    ):
        assert message in run(f"floor edit supply-loop {words} --out x.json", 2).err


def test_an_import_asks_which_stations_stand_beside_the_lane(empty, run):
    block = '<block name="x"><member name="P2"/></block></model>'
    Path("blocked.xml").write_text(Path(PLANT).read_text().replace("</model>", block))
    asked = "no file says which stations stand beside the lane (Inbound, Outbound); 0% of the routes between"
    said = run("floor import blocked.xml --out a.json").err
    assert f"1 block kept for traffic (floor edit --traffic or --aside): {asked}" in said
    assert acerl_np.load_layout("a.json").traffic is None
    for words, n, aside in (
        ("--traffic lane", 0, {"P1", "Park"}),
        ("--aside Inbound", 1, {"P1", "Park", "Inbound"}),
        ("--aside Shelf", 2, {"P1", "Park", "Inbound", "Outbound"}),
    ):
        told = run(f"floor edit a.json {words} --out c.json --force")
        assert f"{n} of 2 sites of stations lie aside" in told.out and asked not in told.err
        assert "headway 3 s, blocks: 1; 0% of the routes between two stations lead" in told.out
        layout = acerl_np.load_layout("c.json")
        assert {site.id for site in layout.sites if site.aside} == aside
        assert [block.sites for block in layout.blocks] == [("Inbound",)]


@pytest.mark.long  # what vehicles that meet need is compiled
def test_checks_say_how_much_longer_vehicles_drive_that_meet(empty, run):
    run("records make --layout supply-loop --arrivals shift --hours 1 --utilisation 0.9 --out s")
    lines = run("floor check supply-loop --on s/tasks-01.csv --traffic lane").out.splitlines()
    assert "vehicles meet: 0 of 18 sites of stations lie aside, 1 of all 39, headway 3 s" in lines
    assert lines[-2] == "tasks-01: 0% of the loaded trips lead through another station"
    assert lines[-1].startswith("tasks-01: with nearest driving takes 1.")


def test_vehicles_are_dealt_over_several_starts(empty, run):
    data = json.loads(Path(HALL).read_text())
    [floor] = data["layouts"]
    floor["nodes"][3]["nodeName"], floor["nodes"][5]["nodeName"] = "Drop", "n6"
    stations = {"pick": ["n2"], "wide": ["n1", "n3"], "p": ["n4"], "q": ["n5"]}
    floor["stations"] = [{"stationId": x, "interactionNodeIds": stations[x]} for x in stations]
    for station in floor["stations"][2:]:
        station["stationType"] = "parking"
    write("hall.lif.json", data)
    for words, starts in (
        ("n6", "6 6 6 6"),  # the node's own id
        ("Drop,6", "p 6 p 6"),  # a node with a name, and a number
        ("n2,wide", "pick n1 n3 pick"),  # a station of two nodes
        ("parking", "p q p q"),
    ):
        fleet = ["--force", "--vehicles", "4", "--start", words]
        run(["floor", "import", "hall.lif.json", "--out", "a.json", *fleet])
        run(["floor", "edit", "a.json", "--out", "b.json", *fleet])
        for name in ("a.json", "b.json"):
            assert [v.start for v in acerl_np.load_layout(name).vehicles] == starts.split()


def test_a_file_that_lists_each_way_once_is_opened_both_ways(empty, run):
    write("m.xml", make_plant("abc", {"ab": 1, "bc": 1, "cb": 1.5}))
    for words, expected in (("", [True] * 3), ("--two-way", [False, True, True])):
        run(f"floor import m.xml --out l.json --force {words}")
        layout = acerl_np.load_layout("l.json")
        assert [edge.one_way for edge in layout.edges] == expected
    assert layout.routes.distance.tolist() == [[0, 1, 2], [1, 0, 1], [2.5, 1.5, 0]]


def test_chargers_and_places_at_dead_ends_are_left_out(empty, run):
    dock = PLUG + '<location name="Dock" type="Plug"><link point="b"/></location>'
    text = make_plant("abc", {"ab": 9, "ac": 9}, dock)
    write("m.xml", text.replace('name="c"', 'name="c" type="PARK_POSITION"'))
    captured = run("floor import m.xml --out l.json")
    assert "chargers: 1 (Dock) left out, as no edge leads away from there\n" in captured.err
    assert not acerl_np.load_layout("l.json").chargers
    captured = run("floor edit l.json --parking 9 --out p.json", status=2)
    assert "sites of kind parking: 1 (c) left out, as no edge leads away\n" in captured.err
    run("floor import m.xml --two-way --out l.json --force")
    captured = run("floor edit l.json --parking 9 --out p.json")
    assert "left out" not in captured.err
    layout = acerl_np.load_layout("p.json")
    assert [x.site for x in (*layout.chargers, *layout.parking.places)] == ["Dock", "c"]


def test_what_cannot_be_reached_is_listed(empty, run):
    # a and b are joined both ways, c is a dead end, d is cut off.
    write("l.json", make_layout([("a", "b", False), ("b", "c", True)], sites="abcd"))
    parts = "the floor falls in 2 parts: 3 sites (a, b, c; vehicles: 1), without an edge 1 (d; vehicles: 0)"
    assert run("floor check l.json").out.splitlines() == [
        f"small: {parts}",
        "small: 4 sites, 2 edges (1 one-way), 1 vehicle",
        "unreachable pairs: 8 (a -> d, b -> d, c -> a, c -> b, c -> d, ...)",
        "vehicle v: cannot return to its start from 1 site: c",
    ]
    layout = acerl_np.load_layout("l.json")
    assert find_unreachable(layout, 2) == (8, [("a", "d"), ("b", "d")])
    assert len(find_unreachable(layout, 9)[1]) == 8
    assert find_no_return(layout) == {"v": ["c"]}
    assert "every site can be reached from every other" in run("floor check dmh").out


def test_vehicles_that_stand_apart_are_said_before_all_else(empty, run):
    fleet = [{"id": f"v{k}", "start": start} for k, start in enumerate("dac")]
    edges = [("b", "a", False), ("f", "e", False), ("e", "g", False), ("b", "c", True)]
    write("l.json", make_layout(edges, fleet, sites="abcdefg"))
    assert run("floor check l.json").out.startswith(
        "small: vehicles that cannot leave their starts: 2 of 3 (v0 at d, v2 at c); the floor falls in 3 "
        "parts: 3 sites (a, b, c; vehicles: 2), 3 sites (e, f, g; vehicles: 0), without an edge 1 "
        "(d; vehicles: 1)\nsmall: 7 sites"
    )
    write("m.xml", make_plant("abc", {"bc": 1}, '<block name="B"/>'))
    lines = run("floor import m.xml --start a --out m.json").err.splitlines()
    starts = "m.xml: warning: vehicles that cannot leave their starts: 1 of 1 (v at a)"
    assert lines[0].startswith(starts) and "'B' holds nothing of the floor" in lines[1]
    assert run("floor check dmh").out.startswith("dmh: 14 sites")


def test_speeds_that_may_be_of_another_unit_are_said(empty, run):
    fleet = [{"id": f"v{k}", "start": "a", "speed": speed} for k, speed in enumerate((5, 1000))]
    data = make_layout([("a", "b", False), ("b", "c", False)], fleet)
    data["edges"][0] |= {"max_speed": 1.0, "max_reverse_speed": 0.04}
    data["edges"][1]["max_speed"] = 0.05
    write("l.json", data)
    assert run("floor check l.json").out.startswith(
        "small: vehicles above 5 m/s: 1 (v1 at 1000 m/s); edges below 0.05 m/s: 1 (a to b at 0.04 m/s)\n"
    )


def test_the_load_of_records_is_told(empty, run):
    edges = [("a", "b", False), ("b", "c", False)]
    write("l.json", make_layout(edges, [{"id": "v", "start": "a", "capacity": 4}]))
    # Ways of 20 m; of five tasks four are approached from c, 20 m, the first from a.
    write("rush.csv", RECORD + "".join(f"t{k},a,c,{k},20,0,{k}\n" for k in range(7)))
    write("now.csv", RECORD + "t,a,c,0,0,0,0\n")
    write("calm.csv", RECORD + "".join(f"t{k},a,c,{60 * k},60,0,1\n" for k in range(7)))
    assert run("floor check l.json --on rush.csv,now.csv,calm.csv").out.splitlines()[2:] == [
        "rush: 7 tasks in 26 s, offered load 7.14 (3.85 without approaches)",
        "rush: demand above every capacity (4) in 2 tasks: t5 (5), t6 (6); no vehicle can carry them",
        "rush: this fleet cannot keep up with these records",
        "now: 1 tasks in 0 s, offered load inf (inf without approaches)",
        "now: this fleet cannot keep up with these records",
        "calm: 7 tasks in 420 s, offered load 0.62 (0.33 without approaches)",
    ]
    # Bundled ones are told by name.
    found = re.search(r"DMH-01: 30 tasks in 1859 s, (.*)", run("floor check dmh --on DMH-01").out)
    [row] = read_rows(run("records check DMH-01 --format csv").out)
    load, loaded = float(row["offered_load"]), float(row["offered_load_without_approaches"])
    assert found[1] == f"offered load {load:.2f} ({loaded:.2f} without approaches)"


def test_a_floor_is_shown_in_characters(run):
    lines = run("floor show dmh").out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    top, bottom = (
        next(k for k, line in enumerate(lines) if name in line) for name in ("*carport", "*ware")
    )
    assert top < bottom and bottom - top < HEIGHT
    row = next(line for line in lines if "*p3" in line)
    assert row.split() == ["*p3", "*st1", "*st2", "*st3", "*p2"]
    assert "  p0 -- st8  25 m" in lines
    place = lines.index("  v0 at carport, 1 m/s, any load")
    assert lines[place + 1] == "    breaks down at 400 for 300 s"


def test_breakdowns_one_way_edges_limits_and_crowded_sites_are_shown(empty, run):
    times = [{"time": 10 * k, "repair_time": k / 2} for k in range(1, 8)]
    model = {"mean_time_between_failures": 3600, "mean_time_to_repair": 90.5}
    vehicle = {"id": "v", "start": "a", "breakdowns": times, "random_breakdowns": model}
    data = make_layout([("a", "b", True), ("b", "c", False)], [vehicle])
    data["vehicles"].append({"id": "w", "start": "a", "capacity": 4})
    for site, x in zip(data["sites"], (500, 500.001, 1000), strict=True):
        site["x"] = x
    data["sites"].append({"id": "d", "x": 0, "y": 0})
    data["edges"][1]["max_speed"] = 0.8
    write("l.json", data)
    out = run("floor show l.json").out
    assert out.splitlines()[-4:] == [
        "  v at a, 1 m/s, any load",
        "    breaks down at 10 for 0.5, 20 for 1, 30 for 1.5, 40 for 2, 50 for 2.5, ... s",
        "    breaks down at random: every 3600 s for 90.5 s on average",
        "  w at a, 1 m/s, capacity 4",
    ]
    assert "  a -> b  0.001 m\n  b -- c  499.999 m, at most 0.8 m/s\n" in out
    assert "without room for their names:\n  b at (500.001, 0)\n" in out


def test_every_site_of_any_floor_has_its_mark():
    rng = np.random.default_rng(3)
    for n_sites in (1, 2, 50, 400):
        for scale in ((1, 1), (1e6, 1), (1, 1e6), (0, 0)):
            xy = enumerate(np.round(rng.random((n_sites, 2)) * scale, 3).tolist())
            sites = tuple(Site(f"site{k}" * (1 + k % 9), *row) for k, row in xy)
            picture, unnamed = draw_text(acerl_np.Layout("random", sites, (), ()))
            lines = picture.splitlines()
            assert len(lines) <= HEIGHT and max(map(len, lines)) <= WIDTH
            assert picture.count(MARK) >= 1
            named = [site.id for k, site in enumerate(sites) if k not in set(unnamed)]
            assert sorted(picture.replace(MARK, " ").split()) == sorted(named)


def test_a_picture_is_drawn(empty, run):
    pytest.importorskip("matplotlib")
    data = make_layout([("a", "b", True), ("b", "c", False)])
    data["name"] = "$x_{$ 货"  # neither mathematics nor a letter of the font
    data["sites"][0]["id"] = data["vehicles"][0]["start"] = data["edges"][0]["a"] = "$\\frac{$"
    write("l.json", data)
    for name, start in (("f.png", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.pdf", b"%PDF")):
        assert run(f"plot floor l.json --out {name}").out == f"{name}\n"
        assert Path(name).read_bytes().startswith(start)


PLUG = '<locationType name="Plug"><allowedOperation name="Charge"/></locationType>'


RATES = "idle=1,empty=3,loaded=7,charge=10"


def test_batteries_chargers_and_parking_places_are_given(empty, run):
    dock = PLUG + '<location name="Dock" type="Plug"><link point="P3"/></location>'
    text = Path(PLANT).read_text().replace("<visualLayout", dock + "<visualLayout")
    write("m.xml", text.replace('name="Truck-2"', 'name="Truck-2" energyLevelGood="70"'))
    run("floor import m.xml --out bare.json")
    bare = acerl_np.load_layout("bare.json")
    assert [charger.site for charger in bare.chargers] == ["Dock"] and bare.parking is None
    assert "1 charger: Dock; no vehicle has a battery" in run("floor check bare.json").out
    words = f"--battery capacity=4000,start=999,{RATES}"
    captured = run(f"floor import m.xml --out i.json {words}")
    run("floor edit i.json --parking 9 --out l.json")
    assert "energy levels: 1 (Truck-1) have none in the model; 20, 45, 60, 95 %" in captured.err
    layout = acerl_np.load_layout("l.json")
    assert [(x.good, x.start) for x in layout.batteries] == [(2400, 999), (2800, 999)]
    assert [place.site for place in layout.parking.places] == ["Park"] and layout.parking.after == 9
    # The fleet keeps its batteries, in turn, and gets others for all.
    run("floor edit l.json --vehicles 3 --out three.json")
    assert [x.good for x in acerl_np.load_layout("three.json").batteries] == [2400, 2800, 2400]
    words = "--battery hours=2,minutes=40 --chargers P2:3,P1"
    run(f"floor edit l.json --vehicles 2 --out hours.json {words}")
    hours = acerl_np.load_layout("hours.json")
    assert {(x.capacity, x.charge, x.full) for x in hours.batteries} == {(3600000, 1500, 3420000)}
    assert [(x.site, x.slots) for x in hours.chargers] == [("Inbound", 3), ("P1", 1)]
    assert {
        "2 chargers: Inbound (3 slots), P1",
        "parking after 9 s without a task: 1 site: Park",
        "battery of Truck-1, Truck-2: lasts 3.3 h empty or 1.4 h loaded, charged in 0.7 h; critical 20%, "
        "resume 45%, good 60%, full 95%",
    } <= set(run("floor check hours.json").out.splitlines())
    assert "2 chargers: Inbound (3 slots), P1\n" in run("floor show hours.json").out


def test_a_record_is_set_against_the_time_to_charge(empty, run):
    words = f"--vehicles 2 --battery capacity=9000,{RATES[:-2]}4 --chargers park"
    run(f"floor edit supply-loop --out l.json {words}")
    write("day.csv", RECORD + "".join(f"t{k},rack-1,line-1,{120 * k},99,0,0\n" for k in range(30)))
    told = run("floor check l.json --on day.csv").out.splitlines()[-3:]
    words = r"day: a vehicle must charge \d+% of its time, .* with it; slots: 2.\d of 1"
    assert re.search(words, told[0])
    fleet = "day: this fleet cannot keep up while it charges"
    assert told[1:] == ["day: the chargers cannot keep up", fleet]
    assert "need more than a full battery" in run("records check day.csv --layout l.json").out
    [row] = read_rows(run("records check day.csv --layout l.json --format csv").out)
    assert float(row["charging_share"]) == float(row["slots_needed"]) / 2 > 0.5
    assert (row["slots"], row["beyond_battery"]) == ("1", "0")
    run("floor edit supply-loop --vehicles 2 --chargers rack-1 --out charger.json")
    assert not any(acerl_np.load_layout("charger.json").batteries)
    bare = run("records check day.csv --layout supply-loop").out
    assert "battery" not in bare and "slots" not in bare
