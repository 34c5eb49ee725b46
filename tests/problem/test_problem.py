"""Layouts and task records: what is read, what is refused and how, routes, feature constants."""

import copy
import csv
import io
import json
import sys
from functools import partial
from itertools import pairwise

import full
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import BATTERY
from tables_and_refusals import HEADER, list_unrefused, list_unrefused_files, refused
from worlds import floors, make_task

from acerl_np import Instance, Layout, Simulator, load_instance, load_layout, load_suite
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import count_ticks, cut_metres, measure_metres
from acerl_np.problem import columns, records, task_rows
from acerl_np.problem.interface import find_scaling, scaling_of
from acerl_np.problem.parts import Breakdown
from acerl_np.problem.tables import build_problem
from acerl_np.support.errors import InputError, LayoutError, RecordError

SCALING = {
    **{"distance": [7.5, 2.5], "waiting": [10, 10], "expiry": [15, 5], "demand": [0, 1]},
    **{"total_distance": [10, 4], "speed": 1.5, "capacity": 4},
}

FLOOR = {
    **{"format": 1, "name": "small", "task_slots": 5, "truncate_distances": False},
    "sites": [
        {"id": "A", "x": 0, "y": 0, "kind": "parking"},
        {"id": "B", "x": 3, "y": 4},
        {"id": "C", "x": 0, "y": 8},
        {"id": "D", "x": -3, "y": 4},
    ],
    # two ways of 10 m from A to C, over B and over D; back from D to A it is 6.5 m
    "edges": [
        *({"a": a, "b": b} for a, b in ("AB", "BC", "CD")),
        {"a": "D", "b": "A", "one_way": True, "length": 6.5},
        {"a": "A", "b": "D", "one_way": True},
    ],
    "routes": [["A", "D", "C"]],
    "vehicles": [
        {"id": "v0", "start": "A", "speed": 1.5, "capacity": 4}
        | {"breakdowns": [{"time": 12.5, "repair_time": 30}]},
        {"id": "v1", "start": "C"},
    ],
    "scaling": SCALING,
}

RECORD = """\
task,pickup,delivery,arrival_time,expiry_time,handling_time,demand
t0,A,B,0,20,0,1
t1,C,D,2.5,15,1.25,0
t2,D,A,2.5,30,0,2.5
"""


def floor(**changes):
    """A copy of the floor; names give changed parts of it, None takes a part away."""
    data = copy.deepcopy(FLOOR) | changes
    return {key: value for key, value in data.items() if value is not None}


def small_layout(**changes):
    return Layout.from_dict(floor(**changes))


# Layouts that are refused


def with_part(key, k, **changes):
    """The floor with entry k of a list changed."""
    data = floor()
    data[key][k] = {**data[key][k], **changes}
    return data


TEXT = json.dumps(FLOOR, indent=1)

WORDS = ("1e999", "NaN", "Infinity", "-Infinity")
LEADS = FLOOR["edges"][:3]
MALFORMED_LAYOUTS = [
    # not JSON, or JSON that is no layout
    ("", "line 1 column 1"),
    (TEXT.replace('"edges": [', '"edges": ', 1), "line  ... not JSON"),
    (TEXT.replace('"name"', '"format"', 1), '"format" ... twice'),
    *(
        (TEXT.replace('"x": 3', f'"x": {word}', 1), f"sites[1].x: read {read} ... number")
        for word, read in zip(WORDS, ("Infinity", *WORDS[1:]), strict=True)
    ),
    (TEXT.replace('"x": 3', f'"x": {"7" * 5000}', 1), "digits"),
    ("[" * 100_000, "nested too deeply"),
    (TEXT.replace("parking", "Bühne").encode("latin-1"), "line 11 ... 0xfc ... UTF-8"),
    ("[]", "read [] ... object"),
    (floor(sites=[]), "sites ... 0 entries ... 1 to 5000"),
    (floor(vehicles=[]), "vehicles ... 0 entries ... 1 to 1000"),
    # contradictions
    (with_part("sites", 2, id="A"), "sites[2].id ... 'A' ... once"),
    (with_part("vehicles", 0, id="v1"), "vehicles[1].id ... 'v1' ... once"),
    (with_part("edges", 1, b="B"), "edges[1] ... 'B' to itself"),
    (
        floor(edges=[*FLOOR["edges"], {"a": "A", "b": "C", "length": 1e-10}], routes=None),
        "edges: one is 1e-10 m long ... expected lengths of 0 or above",
    ),
    (
        floor(edges=[{**LEADS[0], "length": 0.5}, {**LEADS[1], "length": 1e9}], routes=None),
        "edges: one is 0.5 m long ... longest route 1e+09 m ... above 2 m",
    ),
    # named routes
    (floor(routes=["AB"]), 'routes[0] ... read "AB" ... list of site ids'),
    (floor(routes=[["A", "X"]]), "routes[0] ... 'X'"),
    (floor(routes=[["A"]]), "routes[0] ... 1 sites ... two"),
    (floor(routes=[[*"ABCB"]]), "routes[0] ... twice"),
    (floor(routes=[[*"ADC"], [*"BC"], [*"ABC"]]), "routes[2] ... 'A' to 'C'"),
    (floor(routes=[["A", "C"]]), "routes[0] ... no edge ... 'A' to 'C'"),
    (floor(edges=[*LEADS, FLOOR["edges"][3]], routes=[["A", "D"]]), "no edge ... 'A' to 'D'"),
    (floor(routes=[["A", "\u2028" + "x" * 900]]), "routes[0]: unknown site '\\u2028xxx"),
    (floor(routes=[[*"ADC"], [*"CDA"]]), "routes[1] ... 11.5 m ... 'C' to 'A' ... 10 m"),
]


def test_malformed_layouts(tmp_path):
    cases = [
        (json.dumps(content) if isinstance(content, dict) else content, words)
        for content, words in MALFORMED_LAYOUTS
    ]
    for load in (Layout.load, load_layout):
        assert list_unrefused_files(tmp_path / "floor.json", cases, load, LayoutError) == []


def test_what_is_no_file(tmp_path):
    (tmp_path / "layout.json").write_text(json.dumps(FLOOR))
    (tmp_path / "folder").mkdir()
    no_layout = dict.fromkeys(("missing", "x" * 5000), "no such layout ... dmh")
    no_record = dict.fromkeys(("missing", "x" * 300), "no such task record ... DMH-01")
    for load, error, cases in (
        (Layout.load, LayoutError, {"missing": "expected a file"}),
        (load_layout, LayoutError, no_layout),
        (load_instance, RecordError, no_record),
    ):
        for name, words in {"folder": "directory", **cases}.items():
            path = tmp_path / name
            start = f"{path}: " if name in ("folder", "missing") else ""
            assert list_unrefused(load, [(path, words)], error, start) == []
        with pytest.raises(error):
            load(tmp_path / "a\0b")


# Layouts that are read


def test_layout_is_read_as_written(tmp_path):
    path = tmp_path / "floor.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(FLOOR).replace(", ", ",\r\n").encode())
    layout = Layout.load(path)
    assert layout == small_layout()
    assert (layout.name, layout.task_slots) == ("small", 5)
    sites = [(site.id, site.x, site.y, site.kind) for site in layout.sites]
    assert sites == [("A", 0, 0, "parking"), ("B", 3, 4, ""), ("C", 0, 8, ""), ("D", -3, 4, "")]
    assert [edge.length for edge in layout.edges] == [5, 5, 5, 6.5, 5]
    assert [edge.one_way for edge in layout.edges] == [False, False, False, True, True]
    assert layout.named_routes == (("A", "D", "C"),)
    assert [(x.id, x.start, x.speed, x.capacity, x.breakdowns) for x in layout.vehicles] == [
        ("v0", "A", 1.5, 4, (Breakdown(12.5, 30),)),
        ("v1", "C", 1, 0, ()),
    ]
    assert scaling_of(layout).tolist() == [7.5, 2.5, 10, 10, 15, 5, 0, 1, 10, 4, 1.5, 4]
    # What need not be said.
    data = {"format": 1, "sites": [{"id": "A", "x": 0, "y": 0}], "edges": []}
    path = tmp_path / "hall 7.json"
    path.write_text(json.dumps({**data, "vehicles": [{"id": "v", "start": "A"}]}))
    bare = Layout.load(path)
    assert (bare.name, bare.task_slots, bare.truncate_distances) == ("hall 7", 30, False)
    assert (bare.named_routes, bare.scaling, scaling_of(bare)) == ((), None, None)
    for read in (layout, bare, small_layout(scaling=None), load_layout("dmh")):
        again = Layout.from_dict(json.loads(json.dumps(read.to_dict())))
        assert again == read and again.to_dict() == read.to_dict()


# Records that are refused


def rows_of(*lines, header=HEADER):
    return "\n".join([header, *lines, ""])


MALFORMED_RECORDS = [
    # the file
    ("", "empty ... header"),
    ("\n\r\n\n", "empty ... header"),
    (HEADER + "\n", "no tasks"),
    (
        rows_of("t0,A,B,0,1", "\x81,A,B,0,1").encode("latin-1"),
        "line 3 ... 0x81 ... UTF-8 or CP1252 ... --encoding",
    ),
    (rows_of('"t0,A,B,0,1'), "line  ... not CSV"),
    (rows_of('"t0"x,A,B,0,1'), "line 2 ... not CSV"),
    # columns
    (
        rows_of("t0,A,B,0", header="task,pickup,delivery,arrival_time"),
        "line 1 ... 'expiry_time' ... \"task,pickup,delivery,arrival_time\"",
    ),
    ("t0,A,B,0,1\n", 'line 1 ... "t0,A,B,0,1"'),
    (rows_of("t0,A,B,0,1", "t1,A,B,0"), "line 3 ... 4 fields ... expected 5"),
    (rows_of("t0,A,B,0,1,2"), "line 2 ... 6 fields ... expected 5"),
    # ids and sites
    (rows_of(" ,A,B,0,1"), 'line 2 ... task: read " "'),
    (rows_of("t" * 201 + ",A,B,0,1"), 'line 2 ... task: read "ttt'),
    (rows_of('"t\n0",A,B,0,1'), r'line 3 ... task: read "t\n0"'),
    (rows_of("t0,A,B,0,1", "", "t0,B,C,0,1"), "line 4 ... 't0' ... line 2"),
    (rows_of("t0,X,B,0,1"), "line 2 ... pickup ... 'X' ... 'small'"),
    (rows_of("t0,A,X,0,1"), "line 2 ... delivery ... 'X' ... 'small'"),
    (rows_of("t0,,B,0,1"), 'line 2 ... pickup ... read ""'),
    (rows_of("t0,A,A,0,1"), "line 2 ... delivery ... 'A'"),
    (
        rows_of("t0,A,B,0,1,6", "t1,A,B,0,1,7.5", header=HEADER + ",demand"),
        "line 3 ... demand: 7.5 ... at most 6",
    ),
]


ENDS = {"task": "t0", "pickup": "A", "delivery": "B"}
WHEN = {"arrival_time": 0, "expiry_time": 1}
MALFORMED_ROWS = [
    ([], "no tasks"),
    ([{}], "row 1 ... task"),
    ([ENDS], "row 1 ... arrival_time ... null"),
    (
        [ENDS | WHEN, {**ENDS, "task": "t1", "arrival_time": True}],
        "row 2 ... arrival_time ... true",
    ),
    ([{"task": None, "pickup": "A"}], "row 1 ... task ... null"),
    ([{"task": "t0", "pickup": ["A"]}], 'row 1 ... pickup ... ["A"]'),
    ([ENDS | WHEN | {"earliest_start": 3}], "row 1 ... earliest_start: 2 s after the task is due"),
]
LONG = 10**5000
"""It cannot be shown."""


def test_malformed_records(tmp_path):
    vehicles = [FLOOR["vehicles"][0], {**FLOOR["vehicles"][1], "capacity": 6}]
    load = partial(load_instance, layout=small_layout(vehicles=vehicles))
    assert list_unrefused_files(tmp_path / "tasks.csv", MALFORMED_RECORDS, load) == []
    make = partial(Instance.from_rows, "rows", small_layout())
    assert list_unrefused(make, MALFORMED_ROWS, RecordError) == []
    for name in ("task", "arrival_time"):
        with pytest.raises(RecordError, match=f"^row 1: {name}: read int too large to show"):
            make([{**ENDS, name: LONG}])


@pytest.mark.skipif(sys.platform != "linux", reason="names are text on this system")
def test_a_name_that_is_not_text_is_shown_as_escapes(tmp_path):
    path = tmp_path / "\udcff\n.csv"
    path.write_text(RECORD)
    (tmp_path / "\udcff.json").write_text(json.dumps(floor(name=None)))
    instance = load_instance(path, layout=tmp_path / "\udcff.json")
    assert instance.name == "%udcff%n"
    assert instance.layout.name == "\\udcff"


# Records that are read

SPREADSHEET = io.StringIO()
csv.writer(
    SPREADSHEET, delimiter=";", quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n"
).writerows(csv.reader(io.StringIO(RECORD)))

SAME_RECORDS = {
    "plain": RECORD,
    "no line break at the end": RECORD.rstrip("\n"),
    "blank lines": "\n\n" + RECORD.replace("\n", "\n\n") + "\n  \n\r\n",
    "a spreadsheet's": "\ufeff" + SPREADSHEET.getvalue().replace(".", ",") + ";;;;;;\r\n\r\n\r\n",
    "empty rows of a spreadsheet": RECORD + ",,,,,,\n,,,,,,\n",
    "spaces": RECORD.replace(",", "  ,  "),
    "unsorted": "".join(RECORD.splitlines(keepends=True)[k] for k in (0, 2, 3, 1)),
    "optional fields left empty": RECORD.replace(",0,1\n", ",,1\n").replace("1.25,0\n", "1.25,\n"),
    "other numbers": RECORD.replace(",0,20,0,1", ",0.0,2e1,+0,01").replace("2.5", "25e-1"),
}
COLUMNS = {
    **{"pickup": [0, 2, 3], "delivery": [1, 3, 0], "arrival": [0, 2.5, 2.5]},
    **{"expiry": [20, 15, 30], "handling_time": [0, 1.25, 0], "demand": [1, 0, 2.5]},
}


def test_record_in_many_forms(tmp_path):
    path = tmp_path / "morning shift.csv"
    for form, text in SAME_RECORDS.items():
        path.write_bytes(text.encode())
        instance = load_instance(path, layout=small_layout())
        assert (instance.name, instance.tasks) == ("morning shift", ("t0", "t1", "t2")), form
        for name, column in COLUMNS.items():
            found = getattr(instance, name)
            assert found.tolist() == column, form
            assert found.dtype == (np.int32 if name in ("pickup", "delivery") else np.float64)


def test_rows_round_trip_and_arrays_stay():
    for instance in (load_instance("DMH-02"), small_instance()):
        again = Instance.from_rows(instance.name, instance.layout, instance.rows())
        assert again.rows() == instance.rows()
        assert again.content_hash == instance.content_hash
        for name in COLUMNS:
            with pytest.raises(ValueError, match="read-only"):
                getattr(instance, name)[0] = 1


def test_where_the_layout_comes_from(empty):
    """What is named, else that beside the record; a file comes before a bundled name."""
    path = empty / "DMH-01"
    path.write_text(RECORD)
    for name in (None, "nowhere"):
        words = ["no such layout", "dmh" if name else "--layout"]
        where = name or empty / "layout.json"
        refused(where, words, load_instance, path, layout=name, error=LayoutError)
    (empty / "layout.json").write_text(json.dumps(FLOOR))
    other = empty / "other.json"
    other.write_text(json.dumps(floor(name="other")))
    for layout, name in ((None, "small"), (other, "other"), (str(other), "other")):
        assert load_instance(path, layout=layout).layout.name == name
        assert load_instance("DMH-01", layout=layout).layout.name == name
    layout = small_layout(name="third")
    assert load_instance(path, layout=layout).layout is layout
    (empty / "dmh").mkdir()  # a folder of that name is no layout
    path.write_text(rows_of("t0,st1,warehouse,0,1"))
    assert load_instance(path, layout="dmh").layout.name == "dmh"
    assert load_instance("DMH-02").n_tasks == 30


# The bundled instances


def test_dmh_suite():
    suite = load_suite("dmh-train")
    assert [instance.name for instance in suite] == [f"DMH-{k:02d}" for k in range(1, 9)]
    assert len({instance.content_hash for instance in suite}) == 8
    for instance in suite:
        assert load_instance(instance.name).content_hash == instance.content_hash
        assert instance.layout.name == "dmh"
        assert instance.n_tasks == len(set(instance.tasks)) == 30
        assert (np.diff(instance.arrival) >= 0).all()
        assert (instance.expiry > 0).all()
        assert not instance.handling_time.any() and not instance.demand.any()
    at, distance = suite[0].layout.site_index, suite[0].layout.routes.distance
    ways = {("carport", "warehouse"): 190, ("carport", "st2"): 20, ("p0", "p2"): 150}
    assert {(a, b): distance[at[a], at[b]] for a, b in ways} == ways
    expected = [153, 73, 126.5, 223.5, 404, 77, 10.5, 3.5, 288, 130, 1.5, 20]
    assert find_scaling(suite).tolist() == expected
    with pytest.raises(InputError, match=r"^suite 'dmh-trian': unknown; expected .*dmh-train"):
        load_suite("dmh-trian")


# Hash


def small_instance(layout=None, rows=None, name="small"):
    return Instance.from_rows(
        name,
        small_layout() if layout is None else Layout.from_dict(layout),
        list(csv.DictReader(io.StringIO(RECORD))) if rows is None else rows,
    )


def places_of(value, place=()):
    """The place of every leaf of a tree of dicts and lists."""
    if not isinstance(value, dict | list):
        yield place
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places_of(inner, (*place, key))


def test_hash_ignores_names_and_how_the_same_is_written():
    expected = small_instance().content_hash
    assert len(expected) == 64
    assert small_instance(name="other").content_hash == expected
    assert small_instance(layout=floor(name="other")).content_hash == expected
    assert small_instance(layout=small_layout().to_dict()).content_hash == expected
    rows = list(csv.DictReader(io.StringIO(RECORD)))
    assert small_instance(rows=[rows[k] for k in (1, 2, 0)]).content_hash == expected
    rows[0].update(arrival_time="-0", handling_time=-0.0, priority=0, earliest_start=0)
    assert small_instance(rows=rows).content_hash == expected


def test_hash_changes_with_any_figure_and_part():
    rows = small_instance().rows()
    data = small_layout(routes=None).to_dict()
    data["edges"][0]["max_speed"] = 1.25
    times = {"mean_time_between_failures": 400.0, "mean_time_to_repair": 90.0}
    battery = {**BATTERY, "start": 3000, "tow": 60}
    data["vehicles"][1] |= {"random_breakdowns": times, "battery": battery}
    data |= {"chargers": [{"site": "A", "slots": 2}], "machines": [{"site": "B", "servers": 1}]}
    data["parking"] = {"after": 9, "places": [{"site": "C", "places": 2}]}
    layouts = [data]
    for place in places_of(data):
        part = other = copy.deepcopy(data)
        for key in place[:-1]:
            part = part[key]
        value = part[place[-1]]
        if not isinstance(value, str) and place != ("format",):
            part[place[-1]] = not value if isinstance(value, bool) else value + 1
            layouts.append(other)
    assert len(layouts) == 57
    layouts += [
        {**data, "quickest_routes": True},
        {**data, "edges": [{**data["edges"][0], "max_reverse_speed": 1}, *data["edges"][1:]]},
        *({key: x for key, x in data.items() if key != part} for part in ("parking", "machines")),
    ]
    floors = [data, *layouts[57:], small_layout(routes=None).to_dict()]
    assert len({Layout.from_dict(other).floor_hash for other in floors}) == 6
    layouts += [
        floor(),
        floor(routes=None),
        floor(scaling=None),
        floor(sites=[*FLOOR["sites"], {"id": "E", "x": 0, "y": 0}]),
        floor(edges=[*FLOOR["edges"], {"a": "B", "b": "D", "length": 50}]),
        floor(vehicles=FLOOR["vehicles"][:1]),
        with_part("vehicles", 0, start="B"),
        with_part("vehicles", 0, breakdowns=[]),
    ]
    times = {"arrival_time": 2.25, "expiry_time": 19.5, "handling_time": 0.5, "demand": 0.25}
    times["priority"] = 3
    changes = [{"task": "x"}, {"pickup": "B", "delivery": "C"}, *({k: x} for k, x in times.items())]
    changed = [
        [{**row, **change} if i == k else row for i, row in enumerate(rows)]
        for k in range(3)
        for change in changes
    ]
    found = [small_instance(layout, rows).content_hash for layout in layouts]
    found += [small_instance(rows=other).content_hash for other in changed]
    assert len(set(found)) == len(found) == len(layouts) + 21


# Routes


def follow(routes, a, b):
    """The positions of the sites from a to b."""
    if (a, b) in routes.explicit:
        return list(routes.explicit[a, b])
    route = [a]
    while route[-1] != b:
        route.append(int(routes.next_site[route[-1], b]))
        assert len(route) <= len(routes.next_site), "the route goes in a circle"
    return route


VEHICLE = {"id": "v", "start": "s0"}


@given(floors() | floors(zero_lengths=True), st.integers(0, 3))
def test_routes_equal_those_of_the_slow_version(data, n_missing):
    """Without its first edges, and then named routes, a floor may fall apart, or not be entered again."""
    if n_missing:
        data = {**data, "edges": data["edges"][n_missing:], "routes": []}
    data["vehicles"] = [{"id": "v", "start": data["sites"][0]["id"]}]
    layout = Layout.from_dict(data)
    slow = full.Floor(data)
    ids = list(slow.order)
    for a, start in enumerate(ids):
        for b, goal in enumerate(ids):
            assert layout.routes.distance[a, b] == pytest.approx(slow.distances[start, goal])
            expected = slow.arcs.get((start, goal), np.inf)
            assert layout.routes.edge_length[a, b] == pytest.approx(expected)
            if np.isinf(slow.distances[start, goal]):
                assert layout.routes.next_site[a, b] == a
                continue
            route = follow(layout.routes, a, b)
            assert [ids[k] for k in route] == slow.route(start, goal)
            length = sum(layout.routes.edge_length[step] for step in pairwise(route))
            assert length == pytest.approx(layout.routes.distance[a, b])


# Feature constants


def test_scaling_by_hand():
    # A-B, B-C, C-D and A to D are 5 m, D to A 6.5 m, all other ways 10 m. Loaded: t0 A to B 5 m,
    # t1 C to D 5 m, t2 D to A 6.5 m. In all at least 0 + 5 m (from A to t0), at most 10 + 6.5 m
    # (from B to t2).
    instance = small_instance(layout=floor(scaling=None))
    expected = {
        "distance": [5.75, 0.75],
        "waiting": [15, 15],  # 0 to the largest expiry, 30
        "expiry": [22.5, 7.5],  # 15 to 30
        "demand": [1.25, 1.25],  # 0 to 2.5
        "total_distance": [10.75, 5.75],  # 5 to 16.5
    }
    flat = [x for pair in expected.values() for x in pair] + [1.5, 4]
    assert find_scaling([instance]).tolist() == flat

    # whole metres: 5, 5 and 6; totals 5 to 16
    cut = small_instance(layout=floor(scaling=None, truncate_distances=True))
    flat[0:2] = [5.5, 0.5]
    flat[8:10] = [10.5, 5.5]
    assert find_scaling([cut]).tolist() == flat


def test_scaling_of_empty_ranges():
    layout = floor(scaling=None, vehicles=[{"id": "v", "start": "A"}])
    array = find_scaling([small_instance(layout=layout, rows=[make_task("t0", "A", "B", 3)])])
    # totals 5 (from A) to 15 (from C)
    assert array.tolist() == [5, 1, 0, 1, 0, 1, 0, 1, 10, 5, 1, 1]
    # 2.1 - 0.7 and 1.4 - 0 differ by the last bit: an empty range all the same.
    data = {
        "format": 1,
        "sites": [{"id": f"s{k}", "x": 0, "y": k * 0.7} for k in range(4)],
        "edges": [{"a": f"s{k}", "b": f"s{k + 1}"} for k in range(3)],
        "vehicles": [VEHICLE],
    }
    rows = [make_task("t0", "s1", "s3", 0, 9), make_task("t1", "s2", "s0", 0, 9)]
    instance = Instance.from_rows("noise", Layout.from_dict(data), rows)
    distance = instance.layout.routes.distance[instance.pickup, instance.delivery]
    assert 0 < abs(distance[0] - distance[1]) < 1e-12
    np.testing.assert_allclose(find_scaling([instance])[:2], [1.4, 1], rtol=1e-9)


def test_scaling_of_several_instances():
    own, none = small_instance(), small_instance(layout=floor(scaling=None))
    other = small_instance(layout=floor(scaling={**SCALING, "speed": 3}))
    assert find_scaling([own]).tolist() == scaling_of(own.layout).tolist()
    assert find_scaling([own, own]).tolist() == scaling_of(own.layout).tolist()
    # layouts that do not agree: computed from the records
    computed = find_scaling([none]).tolist()
    for instances in ([own, other], [own, none], [none, own]):
        assert find_scaling(instances).tolist() == computed
    later = none.rows()
    later[2].update(expiry_time=50, demand=4)
    both = find_scaling([none, small_instance(layout=floor(scaling=None), rows=later)])
    assert both[2:8].tolist() == [25, 25, 32.5, 17.5, 2, 2]
    # A site without a way is left out.
    island = floor(scaling=None, sites=[*FLOOR["sites"], {"id": "E", "x": 9, "y": 9}])
    assert find_scaling([small_instance(layout=island)]).tolist() == computed


@given(st.floats(0, 1e6) | st.integers(0, 10**6).map(lambda k: k + 1e-10 * (k % 7 - 3)))
def test_arrays_are_rounded_as_the_simulator_rounds(value):
    array = np.array([value])
    assert count_ticks(array)[0] == S.count_ticks(value)
    for truncates in (False, True):
        assert measure_metres(array, truncates)[0] == S.measure_distance(value, truncates)
    assert cut_metres(array, False) is array


def test_limits(tmp_path, monkeypatch):
    path = tmp_path / "tasks.csv"
    path.write_text(RECORD)
    instance = small_instance()
    limited = columns.RECORD._replace(limit=2)
    for module in (task_rows, records):
        monkeypatch.setattr(module, "RECORD", limited)
    expected = ["line 4", "more than 2 tasks"]
    refused(path, expected, load_instance, path, layout=small_layout())
    with pytest.raises(RecordError, match=r"^3 tasks; expected at most 2$"):
        small_instance(rows=instance.rows())
    monkeypatch.setattr("acerl_np.problem.tables.MAX_TABLE_BYTES", 500)
    with pytest.raises(InputError, match=r"^1 instances on 1 layouts of up to 4 sites need"):
        build_problem([instance])
    with pytest.raises(InputError, match="at least one"):
        Simulator([])
