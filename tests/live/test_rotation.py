"""A log by day: the last day's, with the state, is all that a restart needs, wherever it was killed."""

import json
import os
import time
from datetime import date

import pytest
from live_events import floor
from live_plant import give_input

from acerl_np import Assignment, Dispatcher, IndexPolicy, load_layout
from acerl_np.commands import serve
from acerl_np.live import dispatcher
from acerl_np.live import events as E
from acerl_np.live.daybook import read_audit
from acerl_np.live.log import AuditLog
from acerl_np.live.service import Service
from acerl_np.live.wire import format_line
from acerl_np.support.errors import EventError, InputError, RecordError, StorageError

LAYOUT = load_layout("dmh").with_breakdowns({})
DAY = 86_400.0


def arrive(number, now):
    return E.TaskArrived(now, f"t{number}", "st1", "st5", 400.0)


def begin(folder, policy="nearest"):
    """A dispatcher with a task under way and one that waits."""
    own = Dispatcher(LAYOUT, policy, audit=folder / "day.jsonl")
    own.feed(arrive(1, 0.0), number=1)
    own.decide(0.0)
    own.feed(arrive(2, 1.0), number=2)
    return own


def seen(own):
    return own.under_way, own.waiting, own.last_number, own.sites


def recover(folder, policy="nearest"):
    paths = {"audit": folder / "day.jsonl", "state": folder / "live.npz"}
    return Dispatcher.recover(LAYOUT, policy, **paths)


def test_the_last_log_and_the_state_are_enough(tmp_path):
    log, state, kept = (tmp_path / name for name in ("day.jsonl", "live.npz", "day.1.jsonl"))
    with begin(tmp_path) as own:
        whole = log.read_bytes()
        own.rotate(state, kept)
        assert kept.read_bytes() == whole and sorted(x.name for x in tmp_path.iterdir()) == [
            "day.1.jsonl",
            "day.jsonl",
            "live.npz",
        ]
        first = json.loads(log.read_text())
        assert first["kind"] == "Started" and first["line"] == whole.count(b"\n")
        assert first["floor"] == LAYOUT.floor_hash and first["version"]
        own.feed(arrive(3, 2.0), number=3)
        with pytest.raises(StorageError, match=r"day\.1\.jsonl: cannot rotate: file exists"):
            own.rotate(state, kept)
        own.feed(arrive(4, 3.0), number=4)
        with pytest.raises(StorageError, match="another dispatcher writes there"):
            Dispatcher(LAYOUT, "FCFS", audit=log)
        expected = seen(own)
    kept.unlink()
    with recover(tmp_path) as again:
        assert seen(again) == expected and again.check() == []
    with pytest.raises(RecordError, match="expected line 0, or state="):
        Dispatcher.recover(LAYOUT, "nearest", audit=log)
    with pytest.raises(InputError, match="rotate: read None; expected a dispatcher with a log"):
        Dispatcher(LAYOUT, "FCFS").rotate(state, kept)


STEPS = (
    (dispatcher.saving, "write_state"),
    (dispatcher.Path, "unlink"),
    (Dispatcher, "_begin_log"),
    (AuditLog, "move"),
    (dispatcher, "sync_folder"),
)
"""What `rotate` does, in order; the file is moved twice."""


def kill_at(step, folder):
    """Be a process that is killed before a step; the last is after all."""
    own = begin(folder)
    own.take_policy(IndexPolicy.of_weights(approach=-1.0))
    steps = [*STEPS[:4], *STEPS[3:]]
    home, name = steps[step]
    do, left = getattr(home, name), [1 + (step == 4)]

    def die(*given, **named):
        left[0] -= 1
        return os._exit(9) if left[0] == 0 else do(*given, **named)

    setattr(home, name, die)
    own.rotate(folder / "live.npz", folder / "day.1.jsonl")
    os._exit(1)


@pytest.mark.parametrize("step", range(6))
def test_a_kill_between_any_two_steps_loses_nothing(step, tmp_path):
    """What was answered is known again, also the policy taken over."""
    if (child := os.fork()) == 0:
        kill_at(step, tmp_path)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    (tmp_path / "alone").mkdir()
    expected = seen(begin(tmp_path / "alone"))
    log, state, kept = (tmp_path / name for name in ("day.jsonl", "live.npz", "day.1.jsonl"))
    assert log.exists() == (step != 4) and kept.exists() == (step >= 4)
    paths = {"audit": log, "state": state if state.exists() else None}
    with Dispatcher.recover(LAYOUT, "FCFS", **paths) as again:
        assert seen(again) == expected and isinstance(again.policy, IndexPolicy)
        if not kept.exists():  # it was not rotated, and is now
            again.rotate(state, kept)
        again.feed(arrive(3, 2.0), number=3)
        expected = seen(again)
    with recover(tmp_path) as again:
        assert seen(again) == expected and isinstance(again.policy, IndexPolicy)
    assert not (tmp_path / "day.jsonl.new").exists()


@pytest.mark.parametrize("broken", [1, 2])
def test_a_log_that_cannot_be_moved_goes_on(broken, tmp_path, monkeypatch):
    own, state, kept = begin(tmp_path), tmp_path / "live.npz", tmp_path / "day.1.jsonl"
    move, calls = AuditLog.move, []

    def fail(log, path):
        calls.append(path)
        if len(calls) == broken:
            raise PermissionError(13, "Permission denied")
        move(log, path)

    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "move", fail)
        with pytest.raises(StorageError, match="cannot rotate: permission denied"):
            own.rotate(state, kept)
    own.feed(arrive(3, 2.0), number=3)
    assert not kept.exists() and '"t3"' in (tmp_path / "day.jsonl").read_text()
    own.rotate(state, kept)
    own.close()
    with recover(tmp_path) as again:
        assert again.last_number == 3


@pytest.mark.parametrize("policy", ["nearest", "EDD"])
@pytest.mark.parametrize("layout", [LAYOUT, floor(3)], ids=["plain", "errands"])
def test_a_day_that_begins_earlier_sets_a_clock_back_that_was_ahead(layout, policy, tmp_path):
    """One message is six days ahead; after `begin_day` the plant goes on, and so after a restart."""
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    sites = [site.id for site in layout.sites if not site.id.startswith("x")][:3]
    with Dispatcher(layout, policy, audit=log) as own:
        own.feed(E.TaskArrived(10.0, "a", sites[0], sites[1], 400.0))
        own.assign(10.0, "v0", "a")
        own.feed(E.VehiclePassed(6.0 * DAY, "v0", sites[0]))
        with pytest.raises(EventError, match="more than 5 s before the last event"):
            own.feed(E.TaskArrived(20.0, "b", sites[1], sites[2], 400.0))
        with pytest.raises(EventError, match="begin_day: read -1000000"):
            own.begin_day(-1e6)
        own.begin_day(20.0)
        own.save(state)
        assert own.time == 20.0 and own.check() == []

        def go_on(own):
            own.feed(E.TaskArrived(21.0, "b", sites[1], sites[2], 400.0))
            orders = [order for order in own.decide(21.0) if isinstance(order, Assignment)]
            assert [order.task for order in orders if not order.repeated] == ["b"]
            return own.under_way, own.time, own.tasks()

        expected = go_on(own)
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:-2]))
    for paths in ({}, {"state": state}):
        log.write_bytes(b"".join(whole[:-2]))
        with Dispatcher.recover(layout, policy, audit=log, **paths) as again:
            assert go_on(again) == expected and again.check() == []


def test_the_service_rotates_as_the_date_changes(tmp_path, monkeypatch):
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    log, days = str(tmp_path / "day.jsonl"), [date.fromtimestamp(now[0] + k * DAY) for k in (0, 1)]

    def say(service, number):
        own = {"kind": "TaskArrived", "number": number, "time": float(number), "task": f"t{number}"}
        service.tend(now[0])
        [answer] = service.answer(
            format_line({**own, "pickup": "st1", "delivery": "st5", "expiry": 9.0})
        )
        assert answer["kind"] == "Ok"

    state = str(tmp_path / "live.npz")
    with begin(tmp_path) as own:
        service = Service(own, state, log=log)
        say(service, 3)
        assert not list(tmp_path.glob("day.2*"))
        now[0] += DAY
        say(service, 4)
        say(service, 5)
        assert [x.name for x in tmp_path.glob("day.2*")] == [f"day.{days[0]}.jsonl"]
        now[0] -= DAY  # a clock that is set back
        say(service, 6)
        assert len(list(tmp_path.glob("day.2*"))) == 1
    os.utime(log, (now[0], now[0]))
    with recover(tmp_path) as own:  # after a night without a process
        now[0] += DAY
        say(Service(own, state, log=log), 7)
    pieces = (f"day.{days[0]}.jsonl", f"day.{days[0]}-2.jsonl", "day.jsonl")
    assert {x.name for x in tmp_path.glob("day.2*")} == {*pieces[:2]}
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join((tmp_path / name).read_bytes() for name in pieces))
    assert read_audit(whole, LAYOUT).instance.tasks == ("t1",)
    with Dispatcher.recover(LAYOUT, "nearest", audit=whole) as own:
        assert own.last_number == 7 and len(own.waiting) == 6


def test_the_command_wants_a_state_to_rotate(empty, run, monkeypatch):
    err = run("serve --layout dmh --log x --rotate", 2).err
    assert "--rotate: expected --log and --state" in err
    for number in (1, 2):
        lines = format_line({"kind": "State", "number": number})
        monkeypatch.setattr(serve.sys, "stdin", give_input(lines))
        words = "serve nearest --layout dmh --log day.jsonl --state live.npz --rotate"
        assert '"Ok"' in run(words).out
        os.utime("day.jsonl", (0, 0))
    left = {x.name for x in empty.iterdir()}
    assert left == {"day.1970-01-01.jsonl", "day.jsonl", "live.npz"}
