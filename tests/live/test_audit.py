"""The log of a dispatcher: what it holds, and what it is read back as."""

import copy
import json
import os
import pickle
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_events import do_anything, look

from acerl_np import Dispatcher, Instance, Layout, load_instance, load_layout
from acerl_np.commands.main import main
from acerl_np.evaluation.past import measure_past, play_past
from acerl_np.evaluation.trials import Playing
from acerl_np.live import events as E
from acerl_np.live.daybook import read_audit
from acerl_np.problem.records import read_assignments
from acerl_np.simulation.replay import replay_assignments
from acerl_np.support.errors import EventError, InputError, RecordError, StorageError

LAYOUT = load_layout("dmh").with_breakdowns({})
BEGINNING = (
    '{"kind": "Started", "format": 1, "start": 0, "options": {}, "vehicles": [], "line": 0, "mark": "m"}\n'
    '{"line": 1, "mark": "m", '
)


def read_lines(log):
    return [json.loads(row) for row in log.read_text().splitlines()]


def write_lines(log, lines):
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def play(log, start=1000.0):
    """A short day with a breakdown, a recall, a cancelled task and a vehicle that joins."""
    dispatcher = Dispatcher(LAYOUT, "FCFS", seed=4, start=start, explain=True, audit=log)
    feed = dispatcher.feed
    feed(E.TaskArrived(start, "a", "st1", "st2", 300.0, handling_time=2.0))
    feed(E.TaskArrived(start + 1, "b", "st3", "st4", 300.0, priority=1.0))
    feed(E.TaskArrived(start + 2, "gone", "st3", "st4", 300.0))
    feed(E.TaskCancelled(start + 3, "gone"))
    first = dispatcher.decide(start + 4)
    by = {item.task: item.vehicle for item in first}
    feed(E.VehicleBroke(start + 20, by["a"]))
    feed(E.VehicleAdded(start + 21, "extra", "st1"))
    (again,) = [item for item in dispatcher.decide(start + 22) if item.task == "a"]
    feed(E.TaskRecalled(start + 23, "b"))
    feed(E.TaskChanged(start + 23, "b", due=start + 500))
    dispatcher.assign(start + 24, by["b"], "b")
    feed(E.VehicleRepaired(start + 90, by["a"]))
    feed(E.VehicleIdle(start + 300, again.vehicle, "st2"))
    feed(E.VehicleIdle(start + 310, by["b"], "st4"))
    feed(E.TaskArrived(start + 320, "a", "st5", "st6", 300.0, earliest_start=start + 330))
    dispatcher.decide(start + 330)
    feed(E.TaskArrived(start + 340, "waits", "st5", "st6", 300.0))
    return by, again


def test_refused_and_repeated_events_are_not_logged(tmp_path):
    """Fed again after a restart they are logged again, and count once."""
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    dispatcher.save(state)
    event = E.TaskArrived(np.float32(1.0), "a", "st1", "st2", np.int64(300))
    for n in (4, 7):
        for _ in range(3):
            dispatcher.feed(event)
        with pytest.raises(EventError):
            dispatcher.feed(E.TaskCancelled(2.0, "x"))
        dispatcher.decide(2.0)
        dispatcher.begin_day(5.0)
        kinds = [line["kind"] for line in read_lines(log)]
        assert kinds[-3:] == ["TaskArrived", "Assigned", "DayBegan"] and len(kinds) in (n, n + 1)
        dispatcher.close()
        dispatcher = Dispatcher.load(state, audit=log)
    assert read_audit(log, LAYOUT).instance.tasks == ("a",)
    with pytest.raises(StorageError, match="cannot write"):
        Dispatcher(LAYOUT, "FCFS", audit=tmp_path / "none" / "day.jsonl")


def test_a_log_is_read_as_record_and_assignments(tmp_path):
    log = tmp_path / "day.jsonl"
    by, again = play(log)
    lines = read_lines(log)
    kinds = [line["kind"] for line in lines]
    assert kinds[:5] == ["Started", *["TaskArrived"] * 3, "TaskCancelled"]
    assert lines[0]["start"] == 1000.0
    assert (kinds.count("Assigned"), kinds.count("TaskArrived")) == (5, 5)
    given = lines[5]
    assert (given["task"], given["vehicle"], given["time"]) == ("b", by["b"], 1004.0)
    assert given["reason"]["by"] == "FCFS" and given["finish"] > 1004.0
    assert ["reason" in line for line in lines if line.get("rule") == "manual"] == [False]
    past = read_audit(log, LAYOUT)
    record = past.instance
    fleet = [vehicle.id for vehicle in record.layout.vehicles]
    assert (record.name, record.tasks) == ("day", ("a", "b", "a (2)"))
    assert record.arrival.tolist() == [0.0, 1.0, 330.0]
    assert record.expiry.tolist() == [300.0, 499.0, 290.0]
    assert record.priority.tolist() == [0.0, 1.0, 0.0]
    assert fleet == ["v0", "v1", "v2", "extra"]
    assert [fleet[v] for v in past.vehicle[:2]] == [again.vehicle, by["b"]]
    assert past.start.tolist() == [22.0, 24.0, 330.0]
    assert past.finish.tolist()[:2] == [300.0, 310.0] and np.isnan(past.finish[2])
    broken = record.layout.vehicles[fleet.index(by["a"])].breakdowns
    assert [(item.time, item.repair_time) for item in broken] == [(20.0, 70.0)]
    assert past.present.tolist() == [*[[0.0, np.inf]] * 3, [21.0, np.inf]]
    assert np.isfinite(replay_assignments(past).makespan)


def test_what_is_no_log_is_refused(tmp_path):
    log = tmp_path / "day.jsonl"
    cancelled = '"kind": "TaskCancelled", "time": 1, "task": "q"}'
    for text, message in [
        ("", "no task was given to a vehicle"),
        ("[1]\n", "line 1: kind: read 'None'; expected a line of a log"),
        ('{"kind": "x"}\n', "line 1: kind: read 'x'"),
        ('{"kind": "VehicleIdle", "vehicle": "v0"}\n', "line 1: time: read 'None'"),
        ('{\n{"kind": "VehicleIdle", "time": 1, "line": 1}\n', "line 1: not JSON"),
        (BEGINNING + cancelled, "line 2: .* 'q' is unknown"),
        (BEGINNING + '"kind": "VehicleIdle", "time": 1}\n', "VehicleIdle: 'vehicle' is missing"),
        ('{"kind": "VehicleIdle", "time": 1, "line": 0}\n', "line 1: kind: .* expected Started"),
        (BEGINNING.replace("1", "7", 1), "line 1: format: read '7'; this version reads format 1"),
    ]:
        log.write_text(text)
        with pytest.raises(RecordError, match=message) as caught:
            read_audit(log, LAYOUT)
        assert str(caught.value).startswith(str(log)) and "\n" not in str(caught.value)


def test_the_command_replays_a_log(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    play(tmp_path / "day.jsonl")
    assert main(["replay", "day.jsonl", "--layout", "dmh"]) == 0
    out = capsys.readouterr().out
    played = replay_assignments(read_audit("day.jsonl", LAYOUT))
    assert f"makespan {played.makespan:.1f} s, tardiness {played.tardiness:.1f} s" in out


def test_a_log_of_several_days_becomes_records_to_train_on(tmp_path, monkeypatch, capsys):
    """A restart lies between the days; the second has a vehicle that joined, and who waits is no task."""
    monkeypatch.chdir(tmp_path)
    play("one.jsonl")
    convert = "records convert --audit {0}.jsonl --layout dmh --out {0}.csv".format
    assert main(convert("one").split()) == 0
    [whole] = (read_audit("one.jsonl", LAYOUT),)
    floor = Layout.load("one.layout.json")
    assert [vehicle.id for vehicle in floor.vehicles] == ["v0", "v1", "v2", "extra"]
    record = load_instance("one.csv", layout=floor)
    assert record.content_hash == replace(whole.instance, layout=floor).content_hash
    past = read_assignments("one.served.csv", record)
    for name in ("order", "vehicle", "start", "finish"):
        np.testing.assert_array_equal(getattr(past, name), getattr(whole, name))
    # Two days in one log: each begins at its own time zero, and a chain stays whole.
    layout = load_layout("dmh").with_breakdowns({})
    with Dispatcher(layout, "nearest", start=100.0, audit="two.jsonl") as dispatcher:
        dispatcher.feed(E.TaskArrived(110.0, "a", "st1", "st2", 300.0))
        [taken] = dispatcher.decide(110.0)
        dispatcher.feed(E.VehicleIdle(180.0, taken.vehicle, "st2"))
    with Dispatcher.recover(layout, "nearest", audit="two.jsonl") as dispatcher:
        dispatcher.begin_day(5000.0)
        dispatcher.feed(E.TaskArrived(5030.0, "b", "st1", "st2", 300.0))
        dispatcher.feed(E.TaskArrived(5040.0, "c", "st3", "st4", 300.0))
        dispatcher.decide(5050.0)
    capsys.readouterr()
    assert main(convert("two").split()) == 0
    assert capsys.readouterr().out.splitlines() == [
        "two-1.csv: 1 task, served: two-1.served.csv",
        "two-2.csv: 2 tasks, served: two-2.served.csv",
    ]
    days = [load_instance(f"two-{k}.csv", layout=layout) for k in (1, 2)]
    assert [day.arrival.tolist() for day in days] == [[10.0], [30.0, 40.0]]
    assert read_assignments("two-1.served.csv", days[0]).finish.tolist() == [80.0]
    assert main(convert("two").split()) == 2  # what is there is not replaced unasked
    assert "two-1.csv exists" in capsys.readouterr().err
    # Of two logs the days are counted on; the floor has all who joined on one of them.
    both = "records convert --audit two.jsonl,one.jsonl --layout dmh --out both.csv"
    assert main(both.split()) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "both-2.csv: 2 tasks, served: both-2.served.csv",
        f"both-3.csv: {whole.instance.n_tasks} tasks, served: both-3.served.csv",
        "both.layout.json: with the vehicles that joined, for --layout",
    ]
    assert Layout.load("both.layout.json").fleet_hash == floor.fleet_hash
    assert (tmp_path / "both-3.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert main(["records", "convert", "--layout", "dmh", "--out", "x.csv"]) == 2
    assert "IN: read neither; expected a task record or --audit LOG" in capsys.readouterr().err


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda dispatcher: pickle.loads(pickle.dumps(dispatcher))]
)
def test_a_copy_has_no_log(tmp_path, way):
    """Else it would write into whatever file has the number of the log's, once that is closed."""
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    other = way(dispatcher)
    del dispatcher
    lines = log.read_bytes()
    with open(tmp_path / "unrelated.txt", "wb") as file:
        other.feed(E.TaskArrived(1.0, "a", "st1", "st2", 300.0))
        assert [item.task for item in other.decide(2.0)] == ["a"]
        other.begin_day(5.0)
        assert (tmp_path / file.name).read_bytes() == b""
    assert log.read_bytes() == lines


def test_a_vehicle_that_joins_and_leaves_is_present_between(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", 300.0))
    dispatcher.assign(0.0, "v0", "a")
    dispatcher.feed(E.VehicleAdded(40.0, "extra", "st1"))
    dispatcher.feed(E.VehicleRemoved(60.0, "extra"))
    past = read_audit(log, LAYOUT)
    assert past.present.tolist() == [*[[0.0, np.inf]] * 3, [40.0, 60.0]]
    busy = replay_assignments(past).makespan
    assert busy > 60.0
    playing = Playing(2)
    share = busy / (3.0 * busy + 20.0)
    assert play_past([past], playing).utilisation == pytest.approx(np.full((1, 2), share))
    whole = replace(past, present=None)
    assert play_past([whole], playing).utilisation == pytest.approx(np.full((1, 2), 0.25))
    assert measure_past([past], playing) is None
    past = replace(past, finish=np.full(1, busy))
    assert measure_past([past], playing).utilisation == pytest.approx(np.full((1, 2), share))


def test_a_breakdown_from_before_the_start_ends_when_it_ended(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", start=1000.0, audit=log)
    for time, kind in ((970, E.VehicleBroke), (980, E.VehicleRepaired), (990, E.VehicleBroke)):
        dispatcher.feed(kind(float(time), "v0"))
    dispatcher.feed(E.TaskArrived(1000.0, "a", "st1", "st2", 300.0))
    dispatcher.feed(E.VehicleRepaired(1030.0, "v0"))
    dispatcher.decide(1031.0)
    [broken] = read_audit(log, LAYOUT).instance.layout.vehicles[0].breakdowns
    assert (broken.time, broken.repair_time) == (0.0, 30.0)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_was_delivered_is_what_the_dispatcher_says(tmp_path_factory, seed):
    draw, log = random.Random(seed), tmp_path_factory.mktemp("log") / "day.jsonl"
    dispatcher, now, told = Dispatcher(LAYOUT, "EDD", audit=log), 100.0, []
    for k in range(50):
        now += draw.choice((0.0, 0.0, 1.0, 4.0, 9.0))
        do_anything(dispatcher, draw, now, k, told)
        if draw.random() < 0.08:
            dispatcher.save(log.with_name("live.npz"))
            dispatcher.close()
            if draw.random() < 0.5:
                dispatcher = Dispatcher.load(log.with_name("live.npz"), audit=log)
            else:
                dispatcher = Dispatcher.recover(LAYOUT, "EDD", audit=log)
    n_delivered, under_way = dispatcher._floor.day.delivered, dispatcher.under_way
    dispatcher.close()
    if not under_way and not n_delivered:
        return
    past = read_audit(log, LAYOUT)
    fleet = [vehicle.id for vehicle in past.instance.layout.vehicles]
    going = np.isnan(past.finish)
    assert sum(~going) == n_delivered
    assert sorted(fleet[v] for v in past.vehicle[going]) == sorted(under_way.values())
    assert all(row["arrival_time"] >= 0.0 for row in past.instance.rows())
    if (past.instance.priority >= 0.0).all():  # a record that is written of it can be read
        layout = past.instance.layout
        Instance.from_rows("again", layout, past.instance.rows(), servable=False)


def test_a_task_outlives_the_vehicle_that_was_told_late_to_be_broken(tmp_path):
    """It broke down before the order, as was told after it: the next breakdown takes no task from another."""
    log = tmp_path / "day.jsonl"
    with Dispatcher(LAYOUT, "FCFS", audit=log) as dispatcher:
        dispatcher.feed(E.TaskArrived(10.0, "a", "st1", "st2", 300.0))
        dispatcher.assign(10.0, "v0", "a")
        dispatcher.feed(E.VehicleBroke(9.0, "v0"))
        dispatcher.assign(12.0, "v1", "a")
        dispatcher.feed(E.VehicleRepaired(13.0, "v0"))
        dispatcher.feed(E.VehicleBroke(20.0, "v0"))
        dispatcher.feed(E.VehicleIdle(60.0, "v1", "st2"))
    past = read_audit(log, LAYOUT)
    found = past.vehicle.tolist(), past.start.tolist(), past.finish.tolist()
    assert found == ([1], [12.0], [60.0])


def test_a_locked_log_has_one_writer(tmp_path):
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    dispatcher.save(state)
    script = f"""
import acerl_np
layout = acerl_np.load_layout("dmh").with_breakdowns({{}})
for make in (
    lambda: acerl_np.Dispatcher(layout, "FCFS", audit={str(log)!r}),
    lambda: acerl_np.Dispatcher.load({str(state)!r}, audit={str(log)!r}),
    lambda: acerl_np.Dispatcher.recover(layout, "FCFS", audit={str(log)!r}),
):
    try:
        make()
        print("free")
    except acerl_np.StorageError as error:
        print("another dispatcher writes there" in str(error))
"""

    def run():
        words = [sys.executable, "-c", script]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

    n = len(log.read_bytes())
    assert run() == ["True"] * 3 and len(log.read_bytes()) == n
    with pytest.raises(StorageError, match="another dispatcher writes there"):
        Dispatcher(LAYOUT, "FCFS", audit=log)
    if child := os.fork():  # it keeps no lock, and writes nothing
        assert os.waitpid(child, 0)[1] == 0
    else:
        try:
            dispatcher.begin_day(5.0)
        except StorageError as error:
            os._exit("the log is closed" not in str(error))
        os._exit(1)
    assert len(log.read_bytes()) == n
    dispatcher.close()
    dispatcher.close()
    with pytest.raises(StorageError, match="cannot write: the log is closed"):
        dispatcher.feed(E.TaskArrived(1.0, "a", "st1", "st2", 300.0))
    assert run() == ["free"] * 3
    with Dispatcher(LAYOUT, "FCFS", audit=log):
        pass
    Dispatcher(LAYOUT, "FCFS", audit=log)  # the object is gone at once
    Dispatcher(LAYOUT, "FCFS", audit=log)
    for _ in range(2):
        Dispatcher(LAYOUT, "FCFS", audit="/dev/null")


def test_lines_of_two_writers_in_turn_are_refused(tmp_path):
    """As on a file system without locks; the last line may stand twice, as where it was sent again."""
    log = tmp_path / "day.jsonl"
    play(log)
    lines = read_lines(log)
    assert len({line["mark"] for line in lines}) == 1
    whole = read_audit(log, LAYOUT)
    write_lines(log, [*lines[:4], lines[3], *lines[4:]])
    assert read_audit(log, LAYOUT).instance.rows() == whole.instance.rows()
    Dispatcher.recover(LAYOUT, "FCFS", audit=log).close()
    for bad, message in (
        ([*lines[:5], {**lines[5], "mark": "other"}, *lines[6:]], "line 6: mark: read 'other'"),
        ([*lines[:8], lines[3], *lines[8:]], "line 9: line: read 3; expected 7 or more"),
    ):
        write_lines(log, bad)
        for read in (read_audit, lambda log, layout: Dispatcher.recover(layout, "FCFS", audit=log)):
            with pytest.raises(RecordError, match=rf"day\.jsonl: {message}"):
                read(log, LAYOUT)


def test_a_file_that_begins_after_a_saved_state_is_read(tmp_path):
    log, state = tmp_path / "next.jsonl", tmp_path / "live.npz"
    dispatcher = Dispatcher(LAYOUT, "FCFS")
    for name in ("under way", "waits"):
        dispatcher.feed(E.TaskArrived(1.0, name, "st1", "st2", 300.0))
    dispatcher.assign(1.0, "v0", "under way")
    dispatcher.save(state)
    with Dispatcher.load(state, audit=log) as dispatcher:
        dispatcher.assign(2.0, "v1", "waits")
        dispatcher.feed(E.VehicleIdle(50.0, "v0", "st2"))
        dispatcher.feed(E.TaskArrived(51.0, "a", "st1", "st2", 300.0))
        dispatcher.assign(52.0, "v0", "a")
        dispatcher.feed(E.VehicleIdle(60.0, "v1", "st2"))
        dispatcher.feed(E.VehicleIdle(99.0, "v0", "st2"))
    past = read_audit(log, LAYOUT)
    assert (past.instance.tasks, past.finish.tolist()) == (("a",), [99.0])


def test_a_clock_since_1970_says_itself_when_it_began(tmp_path):
    log, zero = tmp_path / "day.jsonl", 1.75e9
    play(log, start=zero)
    expected = read_audit(log, LAYOUT)
    lines = read_lines(log)
    write_lines(log, [{**lines[0], "start": 0.0}, *lines[1:]])
    found = read_audit(log, LAYOUT)
    assert found.instance.rows() == expected.instance.rows()
    assert np.array_equal(found.finish, expected.finish, equal_nan=True)


def test_a_log_is_json(tmp_path):
    data = load_layout("dmh").to_dict() | {"machines": [{"site": "st5"}]}
    layout, log = Layout.from_dict(data).with_breakdowns({}), tmp_path / "day.jsonl"
    with Dispatcher(layout, "nearest", audit=log) as dispatcher:
        dispatcher.feed(
            E.TaskArrived(0.0, "a", "st1", "st5", np.float32(np.inf), announced=float("inf"))
        )
        dispatcher.decide(0.0)
    for row in log.read_text().splitlines():
        json.loads(row, parse_constant=pytest.fail)
    again = Dispatcher.recover(layout, "nearest", audit=log)
    event = again._floor.tasks["a"].event
    assert (event.expiry, event.announced) == (np.inf, np.inf)
    assert read_audit(log, layout).instance.expiry.tolist() == [np.inf]


def test_an_option_that_is_wrong_is_named_with_its_line(tmp_path):
    log = tmp_path / "day.jsonl"
    play(log)
    lines = read_lines(log)
    lines[0]["options"]["task_ids"] = 5
    write_lines(log, lines)
    with pytest.raises(RecordError, match="line 1: Started: task_ids: read 5; expected ids"):
        Dispatcher.recover(LAYOUT, "FCFS", audit=log)
    with pytest.raises(InputError, match="task_ids: read 5"):
        Dispatcher(LAYOUT, "FCFS", task_ids=5)


def test_each_start_in_a_log_has_its_own_options(tmp_path):
    log = tmp_path / "day.jsonl"
    with Dispatcher(LAYOUT, "FCFS", audit=log) as dispatcher:
        dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", 300.0))
    options = {"lateness": 60.0, "ahead": 1e6}
    with Dispatcher.recover(LAYOUT, "FCFS", audit=log, **options) as dispatcher:
        dispatcher.feed(E.VehiclePassed(100.0, "v1", "st1"))
        dispatcher.feed(E.TaskArrived(41.0, "b", "st1", "st2", 300.0))
        with pytest.raises(EventError, match="more than 60 s before the last event"):
            dispatcher.feed(E.TaskArrived(39.0, "c", "st1", "st2", 300.0))
        dispatcher.feed(E.TaskArrived(8e5, "c", "st1", "st2", 300.0))
        assert len(dispatcher.decide(8e5)) == 3
    assert read_audit(log, LAYOUT).instance.tasks == ("a", "b", "c")
    again = Dispatcher.recover(LAYOUT, "FCFS", audit=log)
    assert look(again) == look(dispatcher) and (again.lateness, again.ahead) == (60.0, 1e6)
    with pytest.raises(InputError, match="lateness: read -1; expected seconds from 0 to 86,400"):
        Dispatcher(LAYOUT, "FCFS", lateness=-1)


def test_an_edge_of_the_layout_that_is_closed_at_first_is_a_closure(tmp_path):
    log, layout = tmp_path / "day.jsonl", LAYOUT.with_closed([("p0", "st8")])
    with Dispatcher(layout, "FCFS", audit=log) as dispatcher:
        dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", 300.0))
        assert dispatcher.decide(0.0)
        dispatcher.feed(E.EdgeOpened(5.0, "p0", "st8"))
    found = read_audit(log, layout).instance.layout
    assert [tuple(vars(item).values()) for item in found.closures] == [("p0", "st8", 0.0, 5.0)]
    assert found.closed == ()
