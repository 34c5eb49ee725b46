"""A log by day: the last day's, with the state, is all that a restart needs, wherever it was killed."""

from __future__ import annotations

import json
import os
import time
from datetime import date

import pytest
from live_plant import give_input

from acerl_np import Dispatcher, IndexPolicy, load_layout
from acerl_np.commands import serving
from acerl_np.live import audit, dispatcher
from acerl_np.live import events as E
from acerl_np.live.audit import read_audit
from acerl_np.live.service import Service
from acerl_np.live.wire import format_line
from acerl_np.support.errors import InputError, RecordError, StorageError

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


STEPS = ("write_dispatcher", "link", "_begin_log", "replace", "sync_folder")


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_kill_between_any_two_steps_loses_nothing(step, tmp_path, monkeypatch):
    """Nothing after a step happens any more: what was answered is known again, also the policy taken over."""
    kept = tmp_path / "day.1.jsonl"
    own = begin(tmp_path)
    own.take_policy(IndexPolicy.of_weights(approach=-1.0))
    expected = seen(own)

    def die(*_, **__):
        raise KeyboardInterrupt

    homes = dispatcher.saving, dispatcher.os, Dispatcher, dispatcher.os, dispatcher
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(homes[step], STEPS[step], die)
        own.rotate(tmp_path / "live.npz", kept)
    audit._shut_all()  # as at a process's end
    paths = {"audit": tmp_path / "day.jsonl"}
    paths |= {"state": tmp_path / "live.npz"} if (tmp_path / "live.npz").exists() else {}
    with Dispatcher.recover(LAYOUT, "FCFS", **paths) as again:
        assert seen(again) == expected and isinstance(again.policy, IndexPolicy)
        if step < 4:  # it was not rotated, and is now
            again.rotate(tmp_path / "live.npz", kept)
        again.feed(arrive(3, 2.0), number=3)
        expected = seen(again)
    with recover(tmp_path) as again:
        assert seen(again) == expected and isinstance(again.policy, IndexPolicy)
    assert not (tmp_path / "day.jsonl.new").exists()


def test_a_log_that_cannot_be_begun_leaves_the_old_one(tmp_path, monkeypatch):
    own, state = begin(tmp_path), tmp_path / "live.npz"
    with monkeypatch.context() as patch:
        patch.setattr(dispatcher.os, "link", lambda *_: os.open(tmp_path / "no" / "x", os.O_RDONLY))
        with pytest.raises(StorageError, match="cannot rotate: no such file"):
            own.rotate(state, tmp_path / "day.1.jsonl")
    own.feed(arrive(3, 2.0), number=3)
    own.close()
    with recover(tmp_path) as again:
        assert again.last_number == 3


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
    assert sorted(x.name for x in tmp_path.glob("day.2*")) == [
        f"day.{days[0]}-2.jsonl",
        f"day.{days[0]}.jsonl",
    ]
    pieces = (f"day.{days[0]}.jsonl", f"day.{days[0]}-2.jsonl", "day.jsonl")
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join((tmp_path / name).read_bytes() for name in pieces))
    assert read_audit(whole, LAYOUT).instance.tasks == ("t1",)
    with Dispatcher.recover(LAYOUT, "nearest", audit=whole) as own:
        assert own.last_number == 7 and len(own.waiting) == 6


def test_the_command_wants_a_state_to_rotate(empty, run, monkeypatch):
    assert (
        "--rotate: expected --log and --state" in run("serve --layout dmh --log x --rotate", 2).err
    )
    for number in (1, 2):
        lines = format_line({"kind": "State", "number": number})
        monkeypatch.setattr(serving.sys, "stdin", give_input(lines))
        words = "serve nearest --layout dmh --log day.jsonl --state live.npz --rotate"
        assert '"Ok"' in run(words).out
        os.utime("day.jsonl", (0, 0))
    assert sorted(x.name for x in empty.iterdir()) == [
        "day.1970-01-01.jsonl",
        "day.jsonl",
        "live.npz",
    ]
