"""Plants that never pause, clocks of vehicles that are wrong, and decisions that fail."""

import argparse
import json
import math
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_plant import arrive, tell
from live_plant import serving as serving_http

import acerl_np
from acerl_np.commands import serve
from acerl_np.commands.main import main
from acerl_np.commands.shared import options
from acerl_np.live import rounds
from acerl_np.live.clock import MOST, PAUSE, QUIET, Asker
from acerl_np.live.service import MOST_FAILURES, Service
from acerl_np.live.worker import Worker
from acerl_np.support.errors import StorageError, WorkerError

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
NOW = 1.75e9


# When it is asked


@given(
    st.lists(
        st.tuples(st.floats(0.001, 0.3), st.booleans(), st.one_of(st.none(), st.floats(0.0, 1.0))),
        max_size=60,
    )
)
def test_what_was_opened_is_asked_about_in_time(messages):
    asker, now, opened, due, asked = Asker(), NOW, math.inf, math.inf, -math.inf

    def let_pass(until):
        nonlocal now, opened, due, asked
        while (moment := asker.next(now)) is not None and moment <= until:
            assert moment >= now - 1e-6 and asker.is_due(moment + 1e-6)
            assert moment - 1e-6 < now or not asker.is_due(moment - 1e-6)
            now = max(now, moment)
            assert now <= max(min(opened + MOST, due), asked + QUIET) + 1e-6
            assert opened < math.inf or due <= now + 1e-6
            opened, due, asked = math.inf, math.inf, now
            asker.note_question(now, None)
        now = until

    for gap, opens, later in messages:
        let_pass(now + gap)
        due = math.inf if later is None else now + later
        asker.note(now, opens=opens, due=None if later is None else due)
        opened = min(opened, now) if opens else opened
    let_pass(now + 10.0)
    assert opened == due == math.inf and asker.next(now) is None


def test_a_clock_that_is_set_back_keeps_nobody_waiting():
    asker = Asker()
    asker.note(NOW, opens=True, due=None)
    assert not asker.is_due(NOW) and asker.is_due(NOW - 3600.0)
    asker.note_failure(NOW)
    assert not asker.is_due(NOW + 0.9 * PAUSE) and asker.is_due(NOW + PAUSE)
    assert asker.is_due(NOW - 3600.0)


def test_a_plant_that_never_pauses_gets_its_orders(tmp_path):
    found, now = threading.Event(), time.time()
    with serving_http(tmp_path / "day.jsonl", wall=True, start=now) as ask:
        ask("GET", "/healthz")  # it has started
        publish, n = ask.worker.publish, 0

        def note(messages, text):
            publish(messages, text)
            if "Assigned" in text:
                found.set()

        ask.worker.publish = note
        ask("POST", "/events", json.dumps(arrive("t1", now)))
        while not found.is_set() and n < 300:  # which takes several seconds
            n += 1
            own = {"kind": "VehiclePassed", "time": time.time(), "vehicle": "v2", "site": "carport"}
            assert '"Ok"' in ask("POST", "/events", json.dumps(own))[1]
            time.sleep(0.01)
        assert found.is_set()


# Vehicles whose clocks are wrong


@pytest.mark.parametrize("wrong", [-3600.0, -60.0, -4.0, 0.0, 4.0, 60.0, 600.0, 6 * 86_400.0])
def test_a_clock_that_is_wrong_stops_its_vehicle_alone(wrong, tmp_path):
    is_off = abs(wrong) > 5.0
    with acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW, audit=tmp_path / "d.jsonl") as own:
        service, now = Service(own, ahead=5.0), NOW
        for k in range(4):
            now += 10.0
            for vehicle in ("v1", "v2"):
                passed = {"kind": "VehiclePassed", "time": now, "site": "carport"}
                assert tell(service, now, **passed, vehicle=vehicle)[-1]["kind"] == "Ok"
            [answer] = tell(
                service,
                now,
                kind="VehiclePassed",
                time=now + wrong,
                vehicle="v0",
                site="st1" if k % 2 else "carport",
            )
            assert (answer["kind"] == "Refused") == is_off
            assert tell(service, now, **arrive(f"t{k}", now))[-1]["kind"] == "Ok"
        orders = list(service.ask(now))
        assert {x["vehicle"] for x in orders} == {"v1", "v2"} | ({"v0"} if not is_off else set())
        state, _ = tell(service, now, kind="State")
        assert state["off_clock"] == ({"v0": wrong} if is_off else {})
        assert service.show_health(now)["off_clock"] == is_off
        assert "v0" in state["idle"] or not is_off
        own_clock = {"kind": "VehiclePassed", "time": now, "vehicle": "v0", "site": "st3"}
        assert tell(service, now, **own_clock)[-1]["kind"] == "Ok"
        assert tell(service, now, kind="State")[0]["off_clock"] == {}
        assert own.is_open == is_off and own.check() == []
        assert [x["vehicle"] for x in service.ask(now + 1.0)] == ["v0"] * is_off
    with acerl_np.Dispatcher.recover(LAYOUT, "nearest", audit=tmp_path / "d.jsonl") as again:
        assert len(again.under_way) == 3 and again.check() == []


def test_what_is_ahead_of_the_service_is_refused_and_names_who_told_it():
    service = Service(acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW), ahead=5.0)
    later = NOW + 600.0
    for message in (
        arrive("t1", later),
        {"kind": "Decide", "time": later},
        {"kind": "BeginDay", "start": later},
        {"kind": "VehicleBroke", "time": later, "vehicle": "v1"},
    ):
        [answer] = tell(service, NOW, **message)
        assert answer["kind"] == "Refused" and "600.0 s ahead" in answer["why"]
        assert ("'v1'" in answer["why"]) == ("vehicle" in message)
    assert tell(service, NOW, **arrive("t1", NOW))[-1]["kind"] == "Ok"
    for time_, vehicle in ((10**400, "v0"), (1e308, "v0"), (later, "x"), (-(10**400), "x")):
        told = {"kind": "VehicleBroke", "time": time_, "vehicle": vehicle}
        [answer] = tell(service, NOW, **told)
        assert answer["kind"] == "Refused" and len(answer["why"]) < 400
    assert {*service.off_clock} == {"v0", "v1"} and service.n_failures == 0
    free = Service(acerl_np.Dispatcher(LAYOUT, "nearest"))  # of another clock
    assert tell(free, NOW, **arrive("t1", 600.0))[-1]["kind"] == "Ok"


def test_a_clock_as_far_ahead_as_may_be_makes_no_other_one_late(tmp_path):
    words = ["--layout", "dmh", "--log", str(tmp_path / "d.jsonl")]
    parser = argparse.ArgumentParser(add_help=False)
    options.complete_parser(parser, serve.ACTION)
    for ahead in (0.0, 5.0, 60.0):
        arguments = parser.parse_args([*words, "--clock", f"wall:{ahead}"])
        assert arguments.clock == ("wall", ahead)
        with serve.start(arguments, ahead) as own:
            service, now = Service(own, ahead=ahead), own.time + 10.0
            if not math.isfinite(now):
                now = time.time()
            for vehicle, off in (("v0", ahead), ("v1", -4.5), ("v2", 0.0), ("v1", -4.4)):
                passed = {"kind": "VehiclePassed", "vehicle": vehicle, "site": "carport"}
                assert tell(service, now, **passed, time=now + off)[-1]["kind"] == "Ok"
            assert service.off_clock == {}


def test_only_what_a_vehicle_tells_says_something_of_its_clock():
    service = Service(acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW), ahead=5.0)
    passed = {"kind": "VehiclePassed", "vehicle": "v0", "site": "carport"}
    assert tell(service, NOW, **passed, time=NOW + 60.0)[-1]["kind"] == "Refused"
    assert tell(service, NOW, **arrive("t1", NOW))[-1]["kind"] == "Ok"
    by_hand = {"kind": "Assign", "task": "t1"}
    assert tell(service, NOW, **by_hand, time=NOW, vehicle="v0")[-1]["kind"] == "Ok"
    assert tell(service, NOW, **by_hand, time=NOW + 60.0, vehicle="v1")[-1]["kind"] == "Refused"
    assert service.off_clock == {"v0": 60.0}


# Decisions that fail


def test_a_question_that_fails_is_said_counted_logged_and_asked_again(tmp_path, monkeypatch):
    log, said, failing, decide = tmp_path / "day.jsonl", [], [2], rounds.decide

    def fail(*given):
        if failing[0]:
            failing[0] -= 1
            raise ZeroDivisionError("a bug of mine\nand more")
        return decide(*given)

    monkeypatch.setattr(rounds, "decide", fail)
    with acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW, audit=log) as own:
        service = Service(own, ahead=5.0, say=said.append)
        tell(service, NOW, **arrive("t1", NOW))
        for k in (1, 2):
            assert list(service.ask(NOW + k)) == [] and service.in_a_row == k
            assert not service.show_health(NOW)["ok"]
        assert [x["task"] for x in service.ask(NOW + 3.0)] == ["t1"] and service.in_a_row == 0
        health = service.show_health(NOW)
        assert health["ok"] and health["failures"] == 2 and health["asked"] == NOW + 3.0
        failing[0] = 1
        [answer] = tell(service, NOW, kind="Decide", time=NOW + 4.0, number=7)
        assert (answer["kind"], answer["number"]) == ("Refused", 7) and service.in_a_row == 0
    assert len(said) == 3 and all("ZeroDivisionError" in x and "\n" not in x for x in said)
    assert log.read_text().count('"kind": "Failed"') == 3
    with acerl_np.Dispatcher.recover(LAYOUT, "nearest", audit=log) as again:
        assert set(again.under_way) == {"t1"}


def test_three_questions_in_a_row_that_fail_end_the_service(empty, capsys, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a bug")

    class Told:  # and then nothing, for as long as anybody waits
        texts = iter([json.dumps(arrive("t1", time.time())) + "\n"])

        def read(self, most):
            text = next(self.texts, "")
            return text.encode() if text else bytes(threading.Event().wait(60.0))

    Told.buffer = Told.raw = Told()
    monkeypatch.setattr(rounds, "decide", fail)
    monkeypatch.setattr("acerl_np.live.clock.PAUSE", 0.01)
    monkeypatch.setattr("sys.stdin", Told)
    words = ["serve", "nearest", "--layout", "dmh", "--log", "day.jsonl", "--clock", "wall"]
    assert main(words) == 1
    err = capsys.readouterr().err
    assert err.count("ZeroDivisionError") == MOST_FAILURES and "in a row" in err
    assert acerl_np.Dispatcher.load("day.jsonl.state.npz").waiting == ("t1",)


def test_a_log_that_cannot_be_written_is_told_and_tried_again(monkeypatch):
    said = []
    service = Service(acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW), ahead=5.0, say=said.append)
    worker = Worker(service, wall=True)
    tell(service, NOW, **arrive("t1", NOW))

    def fail(*_):
        raise StorageError("day.jsonl: no space left")

    with monkeypatch.context() as patch:
        patch.setattr(rounds, "decide", fail)
        for _ in range(MOST_FAILURES + 1):
            worker._ask(worker._asker, NOW)
        assert said == ["day.jsonl: no space left"]
        health = service.show_health(NOW)
        assert not health["ok"] and health["log"] != "ok"
    worker._ask(worker._asker, NOW)
    assert service.show_health(NOW)["ok"] and len(service.dispatcher.under_way) == 1


def test_what_is_not_in_the_log_is_never_answered_ok(tmp_path):
    log, away, said = tmp_path / "day.jsonl", tmp_path / "away", []
    with acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW, audit=log) as own:
        service = Service(own, ahead=5.0, say=said.append)
        log.rename(away)
        told = {**arrive("t1", NOW), "number": 1}
        for message in (told, told, {"kind": "State"}, {"kind": "Decide", "time": NOW}, told):
            with pytest.raises(StorageError):
                tell(service, NOW, **message)
            with pytest.raises(StorageError):
                list(service.ask(NOW))
            assert not service.show_health(NOW)["ok"]
        with pytest.raises(StorageError):  # without a service, too
            own.feed(acerl_np.TaskArrived(NOW, "t1", "st1", "st5", 400.0), number=1)
        assert len(said) == 1 and "TaskArrived" not in away.read_text()
        away.rename(log)
        assert tell(service, NOW, **told)[-1]["kind"] == "Ok"
        assert log.read_text().count("TaskArrived") == 1 and service.show_health(NOW)["ok"]


def test_a_server_that_ends_at_once_fails_no_question(tmp_path):
    with serving_http(tmp_path / "day.jsonl", wall=True, start=time.time()) as ask:
        ask("GET", "/healthz")
        ask.server.force_exit = ask.server.should_exit = True
        ask.thread.join()
        ask.worker.submit(lambda: ask.worker.publish([], "")).result()


def test_whoever_ends_the_worker_ends_the_server(tmp_path, monkeypatch):
    with serving_http(tmp_path / "day.jsonl", wall=True, start=time.time()) as ask:
        monkeypatch.setattr(ask.worker, "_ask", lambda *_: 1 / 0)
        ask("POST", "/events", json.dumps(arrive("t1", time.time())))
        ask.thread.join(10.0)
        assert not ask.thread.is_alive() and isinstance(ask.worker.error, ZeroDivisionError)
    with pytest.raises(WorkerError, match="has ended"):
        ask.worker.submit(lambda: None)
