"""Closed edges of layouts and records: how they are read and written, and what is played."""

import json

import numpy as np
import pytest
import worlds

import acerl_np
from acerl_np import Closure, Instance, Layout
from acerl_np import EdgeClosed as Closed
from acerl_np import EdgeOpened as Opened
from acerl_np.commands.main import main
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.core.state import NEVER
from acerl_np.kernels.rollout.variation import draw_records
from acerl_np.problem.servable import list_doubts
from acerl_np.problem.tables import allocate_variants, build_problem, count_records
from acerl_np.support.errors import LayoutError, RecordError

RING = {
    "sites": [{"id": x, "x": 10 * (x in "BCE"), "y": 10 * (x in "CD")} for x in "ABCDE"],
    "edges": [{"a": a, "b": b, "length": 10} for a, b in ("AB", "BC", "CD", "DA", "BE")],
    "vehicles": [{"id": "v", "start": "A"}],
    "format": 1,
}
LAYOUT = Layout.from_dict(RING)
ROWS = [
    worlds.make_task("t", "A", "B", 5, 99),
    worlds.make_task("u", "A", "E", 60, 99),
    worlds.make_task("w", "C", "D", 61, 99),
]
CLOSURES = [Closure("B", "A", 4.5, 40.0), Closure("B", "E", 50.0, 200.0)]


def write(folder, layout=LAYOUT, **files):
    (folder / "layout.json").write_text(json.dumps(layout.to_dict()))
    lines = [
        "task,pickup,delivery,arrival_time,expiry_time",
        *(",".join(map(str, list(x.values())[:5])) for x in ROWS),
    ]
    for name, text in {"day": "\n".join(lines), **files}.items():
        (folder / f"{name}.csv").write_text(text)
    return str(folder / "day.csv")


def list_trips(instance):
    """When each task was given and delivered."""
    return [(x.task, x.start, x.end) for x in trace_policy("nearest", instance).trips]


def test_a_closed_edge_is_no_way_until_it_is_opened():
    closed = LAYOUT.with_closures(CLOSURES)
    instance = Instance.from_rows("day", closed, ROWS)
    # A to D to C to B; from B to C, and to D at 81; to A and on to E once it is opened.
    assert list_trips(instance) == [(0, 5, 35), (2, 61, 81), (1, 200, 230)]
    assert list_trips(Instance.from_rows("day", LAYOUT, ROWS)) == [
        (0, 5, 15),
        (1, 60, 90),
        (2, 90, 120),
    ]
    assert closed.to_dict()["closures"][0] == {"a": "B", "b": "A", "time": 4.5, "until": 40.0}
    assert "closures" not in LAYOUT.to_dict()
    assert closed.floor_hash == LAYOUT.floor_hash
    assert Layout.from_dict(closed.to_dict()) == closed
    doubts = [
        line for line in list_doubts(instance) if line.startswith("closures from 50 s to 200 s")
    ]
    assert len(doubts) == 1 and "'u' from 'A' to 'E'" in doubts[0]


def test_a_file_beside_a_record_replaces_the_closures_of_the_layout(tmp_path):
    layout = LAYOUT.with_closures(CLOSURES)
    path = write(tmp_path, layout)
    assert acerl_np.load_instance(path).layout.closures == tuple(CLOSURES)
    write(tmp_path, layout, closures="a,b,time,until\nB,C,5,9\n")
    assert acerl_np.load_instance(path).layout.closures == (Closure("B", "C", 5.0, 9.0),)
    write(tmp_path, layout, **{"day.closures": "a,b,time,until\n"})
    found = acerl_np.load_records(str(tmp_path))
    assert [x.name for x in found] == ["day"] and found[0].layout.closures == ()
    # Variants of it have the same.
    made = tmp_path / "made"
    main(
        [
            "records",
            "make",
            path,
            "--layout",
            str(tmp_path / "layout.json"),
            "--magnitude",
            "1",
            "--out",
            str(made),
        ]
    )
    assert acerl_np.load_records(str(made), layout=layout)[0].layout.closures == ()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("A,C,1,2", "line 2: a, b: read 'A', 'C'; expected two sites that an edge joins"),
        ("A,X,1,2", "line 2: a, b: read 'A', 'X'"),
        ("A,B,5,5", "line 2: until: read 5; expected a time after 5"),
        ("A,B,1,9\nB,A,8,12", "line 3: time: read 8; expected at least 9"),
        ("A,B,1,x", 'line 2: until: read "x"'),
    ],
)
def test_what_cannot_be_closed(tmp_path, row, told):
    path = write(tmp_path, closures=f"a,b,time,until\n{row}\n")
    with pytest.raises(RecordError) as error:
        acerl_np.load_instance(path)
    assert told in str(error.value) and "closures.csv" in str(error.value)


def test_traffic_and_closures_exclude_each_other():
    with pytest.raises(LayoutError, match="traffic: together with closures"):
        LAYOUT.with_closures(CLOSURES).with_traffic("beside")
    with pytest.raises(LayoutError, match="traffic: together with closures"):
        LAYOUT.with_traffic("beside").with_closures(CLOSURES)


def test_variants_have_the_closures_of_their_record():
    own = [
        Instance.from_rows("a", LAYOUT.with_closures(CLOSURES), ROWS),
        Instance.from_rows("b", LAYOUT, ROWS),
    ]
    problem = build_problem(own)
    assert count_records(problem) == 2 and len(problem.instance) == 6
    target = allocate_variants(problem, 2 * 5)
    draw_records(problem, target, np.array([1, 0]), 0, 0.0, 0, 0, np.empty(4, np.uint32))
    rows, at = [], 1
    while target.instance["changes_at"][at] < NEVER:
        at = target.instance["becomes"][at]
        rows.append(at)
    for name in ("changes_at", "layout", "n_tasks"):
        assert target.instance[name][rows].tolist() == problem.instance[name][2:].tolist(), name
    np.testing.assert_array_equal(target.record["loaded"][rows, :3], problem.record["loaded"][2:])
    assert target.instance["changes_at"][0] == NEVER


@pytest.mark.parametrize("futures", [0, 2])
def test_nobody_foresees_a_closure(futures):
    late = LAYOUT.with_closures([Closure("B", "C", 62.0, 500.0)])
    rows = [{**row, "arrival_time": min(60, row["arrival_time"])} for row in ROWS]
    past = [Instance.from_rows("past", late, [{**row, "demand": 1.0} for row in rows])]
    ahead = acerl_np.Lookahead("nearest", history=past[:futures], futures=futures)
    played = [trace_policy(ahead, Instance.from_rows("day", own, rows)) for own in (LAYOUT, late)]
    before = [[x[:3] for x in own.decisions if x.time < 62] for own in played]
    assert before[0] == before[1] and len(before[0]) == 2


def test_a_log_tells_its_closures(tmp_path):
    live = acerl_np.Dispatcher(LAYOUT, "nearest", audit=tmp_path / "day.jsonl")
    live.feed(Closed(0.0, "A", "B"))
    live.feed(acerl_np.TaskArrived(1.0, "t", "A", "B", 90.0))
    live.decide(1.0)
    live.feed(Opened(20.0, "B", "A"))
    live.feed(Closed(25.0, "B", "E"))
    live.feed(acerl_np.VehicleIdle(31.0, "v", "B"))
    live.close()
    floor, out = write(tmp_path).replace("day.csv", "layout.json"), str(tmp_path / "log.csv")
    main(
        [
            "records",
            "convert",
            "--audit",
            str(tmp_path / "day.jsonl"),
            "--layout",
            floor,
            "--out",
            out,
        ]
    )
    found = acerl_np.load_instance(out, layout=floor)
    assert found.layout.closures == (Closure("A", "B", 0.0, 20.0), Closure("B", "E", 25.0, 31.0))
    assert list_trips(found) == [(0, 1, 31)]
