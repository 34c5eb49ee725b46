"""The log of a dispatcher: what it holds, and what it is read back as."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from acerl_np import (
    Dispatcher,
    EventError,
    RecordError,
    StorageError,
    TaskArrived,
    TaskCancelled,
    TaskChanged,
    TaskRecalled,
    VehicleAdded,
    VehicleBroke,
    VehicleIdle,
    VehicleOutOfService,
    VehicleRemoved,
    VehicleRepaired,
    load_layout,
)
from acerl_np.commands.main import main
from acerl_np.evaluation.past import measure_utilisation
from acerl_np.live.audit import read_audit
from acerl_np.simulation.replay import replay_assignments

LAYOUT = load_layout("dmh").with_breakdowns({})
BEGINNING = (
    '{"kind": "Started", "start": 0, "options": {}, "line": 0, "mark": "m"}\n'
    '{"line": 1, "mark": "m", '
)


def play(log, start=1000.0, restart=None):
    """A short day with a breakdown, a recall, a cancelled task and a vehicle that joins."""
    dispatcher = Dispatcher(LAYOUT, "FCFS", seed=4, start=start, explain=True, audit=log)
    feed = dispatcher.feed
    feed(TaskArrived(start, "a", "st1", "st2", 300.0, handling_time=2.0))
    feed(TaskArrived(start + 1, "b", "st3", "st4", 300.0, priority=1.0))
    feed(TaskArrived(start + 2, "gone", "st3", "st4", 300.0))
    feed(TaskCancelled(start + 3, "gone"))
    first = dispatcher.decide(start + 4)
    if restart is not None:
        dispatcher = restart(dispatcher)
        feed = dispatcher.feed
    by = {item.task: item.vehicle for item in first}
    feed(VehicleBroke(start + 20, by["a"]))
    feed(VehicleAdded(start + 21, "extra", "st1"))
    (again,) = [item for item in dispatcher.decide(start + 22) if item.task == "a"]
    feed(TaskRecalled(start + 23, "b"))
    feed(TaskChanged(start + 23, "b", due=start + 500))
    dispatcher.assign(start + 24, by["b"], "b")
    feed(VehicleRepaired(start + 90, by["a"]))
    feed(VehicleIdle(start + 300, again.vehicle, "st2"))
    feed(VehicleIdle(start + 310, by["b"], "st4"))
    feed(TaskArrived(start + 320, "a", "st5", "st6", 300.0, earliest_start=start + 330))
    dispatcher.decide(start + 330)
    feed(TaskArrived(start + 340, "waits", "st5", "st6", 300.0))
    return by, again


def test_a_line_for_every_event_and_assignment(tmp_path):
    log = tmp_path / "day.jsonl"
    by, _ = play(log)
    lines = [json.loads(row) for row in log.read_text().splitlines()]
    assert lines[0]["kind"] == "Started" and lines[0]["start"] == 1000.0
    kinds = [line["kind"] for line in lines]
    assert kinds.count("Assigned") == 5
    assert kinds.count("TaskArrived") == 5
    assert kinds[1:5] == ["TaskArrived", "TaskArrived", "TaskArrived", "TaskCancelled"]
    given = lines[5]
    assert (given["task"], given["vehicle"], given["time"]) == ("b", by["b"], 1004.0)
    assert given["reason"]["by"] == "FCFS" and given["finish"] > 1004.0
    manual = next(line for line in lines if line.get("rule") == "manual")
    assert "reason" not in manual


def test_refused_and_repeated_events_are_not_logged(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    event = TaskArrived(np.float32(1.0), "a", "st1", "st2", np.int64(300))
    for _ in range(3):
        dispatcher.feed(event)
    with pytest.raises(EventError):
        dispatcher.feed(TaskCancelled(2.0, "x"))
    dispatcher.begin_day(5.0)
    rows = log.read_text().splitlines()
    assert [json.loads(row)["kind"] for row in rows] == ["Started", "TaskArrived", "DayBegan"]


def test_a_log_is_read_as_record_and_assignments(tmp_path):
    log = tmp_path / "day.jsonl"
    by, again = play(log)
    past = read_audit(log, LAYOUT)
    record = past.instance
    assert record.name == "day"
    assert record.tasks == ("a", "b", "a (2)")
    assert record.arrival.tolist() == [0.0, 1.0, 330.0]
    assert record.expiry.tolist() == [300.0, 499.0, 290.0]
    assert record.priority.tolist() == [0.0, 1.0, 0.0]
    fleet = [vehicle.id for vehicle in record.layout.vehicles]
    assert fleet == ["v0", "v1", "v2", "extra"]
    assert [fleet[v] for v in past.vehicle[:2]] == [again.vehicle, by["b"]]
    assert past.start.tolist() == [22.0, 24.0, 330.0]
    assert past.finish.tolist()[:2] == [300.0, 310.0] and np.isnan(past.finish[2])
    broken = record.layout.vehicles[fleet.index(by["a"])].breakdowns
    assert [(item.time, item.repair_time) for item in broken] == [(20.0, 70.0)]
    assert past.present.tolist() == [*[[0.0, np.inf]] * 3, [21.0, np.inf]]
    assert np.isfinite(replay_assignments(past).makespan)


def test_a_restart_continues_the_log(tmp_path):
    straight, log = tmp_path / "straight.jsonl", tmp_path / "day.jsonl"
    play(straight)

    def restart(dispatcher):
        dispatcher.save(tmp_path / "live.npz")
        with open(log, "ab") as file:  # the machine fails in the middle of a line
            file.write(b'{"kind": "TaskArr')
        dispatcher.close()
        return Dispatcher.load(tmp_path / "live.npz", audit=log)

    play(log, restart=restart)
    rows = log.read_text().splitlines()
    assert len(rows) == len(straight.read_text().splitlines()) + 2
    one, other = read_audit(log, LAYOUT), read_audit(straight, LAYOUT)
    assert one.instance.rows() == other.instance.rows()
    for name in ("order", "vehicle", "start", "finish"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)


def test_a_task_that_lost_its_vehicle_is_left_out(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    for k, name in enumerate(("kept", "broken", "stopped")):
        dispatcher.feed(TaskArrived(1.0, name, "st1", "st2", 300.0))
        dispatcher.assign(1.0, f"v{k}", name)
    dispatcher.feed(VehicleBroke(2.0, "v1"))
    dispatcher.feed(VehicleOutOfService(2.0, "v2", at_once=True))
    assert read_audit(log, LAYOUT).instance.tasks == ("kept",)


def test_events_fed_again_after_a_restart_count_once(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    dispatcher.save(tmp_path / "live.npz")
    for _ in range(2):
        dispatcher.feed(TaskArrived(1.0, "a", "st1", "st2", 300.0))
        dispatcher.decide(2.0)
        dispatcher.close()
        dispatcher = Dispatcher.load(tmp_path / "live.npz", audit=log)
    assert read_audit(log, LAYOUT).instance.tasks == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no task was given to a vehicle"),
        ("[1]\n", "line 1: kind: read 'None'; expected a line of a log"),
        ('{"kind": "x"}\n', "line 1: kind: read 'x'"),
        ('{"kind": "VehicleIdle", "vehicle": "v0"}\n', "line 1: time: read 'None'"),
        ('{\n{"kind": "VehicleIdle", "time": 1}\n', "line 1: not JSON"),
        (
            BEGINNING + '"kind": "TaskCancelled", "time": 1, "task": "q"}',
            "line 2: .* 'q' is unknown",
        ),
        ('{"kind": "VehicleIdle", "time": 1}\n', "line 1: VehicleIdle: 'vehicle' is missing"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, text, message):
    log = tmp_path / "day.jsonl"
    log.write_text(text)
    with pytest.raises(RecordError, match=message) as caught:
        read_audit(log, LAYOUT)
    assert str(caught.value).startswith(str(log)) and "\n" not in str(caught.value)


def test_a_log_that_cannot_be_written(tmp_path):
    with pytest.raises(StorageError, match="cannot write"):
        Dispatcher(LAYOUT, "FCFS", audit=tmp_path / "none" / "day.jsonl")


def test_the_command_replays_a_log(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    play(tmp_path / "day.jsonl")
    assert main(["records", "replay", "--audit", "day.jsonl", "--layout", "dmh"]) == 0
    out = capsys.readouterr().out
    played = replay_assignments(read_audit("day.jsonl", LAYOUT))
    assert "day" in out and f"{played.makespan:.1f}" in out
    for words, message in (
        (["--audit", "day.jsonl"], "--layout: missing"),
        (["--audit", "none.jsonl", "--layout", "dmh"], "none.jsonl: expected a file"),
        (["--audit", "day.jsonl", "--layout", "dmh", "--tasks", "DMH-01"], "--tasks: given with"),
        (["past.csv", "--audit", "day.jsonl", "--layout", "dmh"], "read 1 files and --audit"),
        ([], "read 0 files; expected assignments or --audit LOG"),
    ):
        assert main(["records", "replay", *words]) == 2
        assert message in capsys.readouterr().err


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
        other.feed(TaskArrived(1.0, "a", "st1", "st2", 300.0))
        assert [item.task for item in other.decide(2.0)] == ["a"]
        other.begin_day(5.0)
        assert (tmp_path / file.name).read_bytes() == b""
    assert log.read_bytes() == lines


def test_utilisation_counts_a_vehicle_while_it_is_there(tmp_path):
    """By hand: one vehicle of three drives all the while; a fourth is there from 40 s to 60 s."""
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", audit=log)
    dispatcher.feed(TaskArrived(0.0, "a", "st1", "st2", 300.0))
    dispatcher.assign(0.0, "v0", "a")
    dispatcher.feed(VehicleAdded(40.0, "extra", "st1"))
    dispatcher.feed(VehicleRemoved(60.0, "extra"))
    past = read_audit(log, LAYOUT)
    assert past.present.tolist() == [*[[0.0, np.inf]] * 3, [40.0, 60.0]]
    replay = replay_assignments(past)
    busy = replay.makespan
    assert busy > 60.0
    assert measure_utilisation(replay) == pytest.approx(busy / (3.0 * busy + 20.0))
    whole = replace(replay, assignments=replace(past, present=None))
    assert measure_utilisation(whole) == pytest.approx(0.25)


def test_a_breakdown_from_before_the_start_ends_when_it_ended(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "FCFS", start=1000.0, audit=log)
    for time, kind in ((970, VehicleBroke), (980, VehicleRepaired), (990, VehicleBroke)):
        dispatcher.feed(kind(float(time), "v0"))
    dispatcher.feed(TaskArrived(1000.0, "a", "st1", "st2", 300.0))
    dispatcher.feed(VehicleRepaired(1030.0, "v0"))
    dispatcher.decide(1031.0)
    [broken] = read_audit(log, LAYOUT).instance.layout.vehicles[0].breakdowns
    assert (broken.time, broken.repair_time) == (0.0, 30.0)
