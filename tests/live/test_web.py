"""The service over HTTP: answers, a stream of orders that resumes, and who is refused."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import acerl_np
from acerl_np.commands.serving import read_address
from acerl_np.live import audit
from acerl_np.live.audit import format_line
from acerl_np.live.service import MAX_MESSAGE, Service
from acerl_np.live.web import check_door, is_local, make_server
from acerl_np.support.errors import InputError

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})


@contextmanager
def serving(log, **how):
    """A server in a thread; gives what asks it: method, path, body, headers -> status, text."""
    make = acerl_np.Dispatcher.recover if log.exists() else acerl_np.Dispatcher
    dispatcher = make(LAYOUT, "nearest", audit=log, start=how.pop("start", 0.0))
    server = make_server(Service(dispatcher), "127.0.0.1", **how)
    with dispatcher, socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()

        def ask(method, path, body=None, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
            try:
                named = {key.replace("_", "-"): x for key, x in headers.items()}
                connection.request(method, path, body, named)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            finally:
                connection.close()

        ask.port = port
        try:
            yield ask
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def listening(ask, path="/orders", **headers):
    """Give what reads the next order of the stream."""
    connection = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=10.0)
    connection.request("GET", path, headers={k.replace("_", "-"): x for k, x in headers.items()})
    stream = connection.getresponse()

    def read():
        line = b""
        while not line.startswith(b"data: "):
            line = stream.readline()
        return json.loads(line.removeprefix(b"data: "))

    try:
        yield read
    finally:
        connection.close()


def arrive(number, now=0.0):
    own = {"kind": "TaskArrived", "number": number, "time": now, "task": f"t{number}"}
    return format_line({**own, "pickup": "st1", "delivery": "st5", "expiry": 400.0})


def test_orders_are_answered_and_streamed_from_where_a_client_was(tmp_path):
    with serving(tmp_path / "day.jsonl") as ask:
        with listening(ask) as read:
            told = arrive(1) + arrive(2) + format_line({"kind": "Decide", "time": 0.0})
            status, text = ask("POST", "/events", f"{told}\nnonsense\n")
            answers = [json.loads(line) for line in text.splitlines()]
            kinds = ["Ok", "Ok", "Assigned", "Assigned", "Ok", "Refused"]
            assert (status, [x["kind"] for x in answers]) == (200, kinds)
            assert [read(), read()] == answers[2:4]
        with listening(ask, Last_Event_ID="1") as read, listening(ask, "/orders?after=0") as all_:
            assert read() == answers[3] and [all_(), all_()] == answers[2:4]
            ask("POST", "/events", arrive(3, 5.0) + format_line({"kind": "Decide", "time": 5.0}))
            assert read()["task"] == all_()["task"] == "t3"
        state = json.loads(ask("GET", "/state")[1])
        assert set(state["under_way"]) == {"t1", "t2", "t3"} and state["last_number"] == 3
        assert ask("GET", "/healthz") == (200, '{"ok":true}')
        assert ask("GET", "/orders?after=x")[0] == 400
        assert ask("GET", "/events")[0] == 405


def test_what_was_not_acknowledged_is_streamed_again_after_a_restart(tmp_path):
    log, decide = tmp_path / "day.jsonl", format_line({"kind": "Decide", "time": 0.0})
    with serving(log) as ask:
        acknowledge = '{"kind": "Acknowledge", "number": 0}\n'
        told = acknowledge + arrive(1) + arrive(2) + arrive(3) + decide
        orders = list(map(json.loads, ask("POST", "/events", told)[1].splitlines()))[4:7]
        assert ask("POST", "/events", acknowledge.replace("0", "1"))[1].startswith('{"kind": "Ok"')
        assert json.loads(ask("GET", "/state")[1])["acknowledged"] == 1
    with serving(log) as ask:
        again = [{**x, "repeated": True} for x in orders[1:]]
        with listening(ask, Last_Event_ID="1") as read, listening(ask) as viewer:
            assert [read(), read()] == [viewer(), viewer()] == again
            ask("POST", "/events", decide)  # which repeats them, once for all
            text = ask("POST", "/events", arrive(4, 5.0) + decide.replace("0.0", "5.0"))[1]
            assert not json.loads(text.splitlines()[-1])["next_time"]
            vehicle = orders[0]["vehicle"]
            idle = {"kind": "VehicleIdle", "time": 9.0, "vehicle": vehicle, "site": "st5"}
            told = format_line(idle) + decide.replace("0.0", "9.0")
            ask("POST", "/events", told)
            assert read()["number"] == viewer()["number"] == 4


def test_who_may_not_is_refused_before_anything_is_read(tmp_path):
    log = tmp_path / "day.jsonl"
    with serving(log, token="secret") as ask:
        before, own = log.read_bytes(), {"Authorization": "Bearer secret"}
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer secreT"}, 401),
            ({"Authorization": "Bearer "}, 401),
            ({**own, "Origin": "http://evil.example"}, 403),
            ({**own, "Host": "evil.example"}, 400),
        ):
            assert ask("POST", "/events", arrive(1), **headers)[0] == status
            assert ask("GET", "/state", **headers)[0] == status
        assert ask("POST", "/events", " " * (MAX_MESSAGE + 1), **own)[0] == 413
        assert log.read_bytes() == before
        same = {**own, "Origin": f"http://127.0.0.1:{ask.port}"}
        assert ask("POST", "/events", arrive(1), **same)[0] == 200
        assert ask("GET", "/healthz")[0] == 200


def test_by_the_clock_on_the_wall_orders_come_unasked(tmp_path):
    now = time.time()
    with serving(tmp_path / "day.jsonl", wall=True, start=now) as ask, listening(ask) as read:
        ask("POST", "/events", arrive(1, now))
        assert read()["task"] == "t1"


def test_orders_come_once_the_log_can_be_written_again(tmp_path, monkeypatch):
    now, failing, write = time.time(), [3], audit.os.write

    def fail(file, data):
        if b"Assigned" in data and failing[0]:
            failing[0] -= 1
            raise OSError(28, "No space left on device")
        return write(file, data)

    with serving(tmp_path / "day.jsonl", wall=True, start=now) as ask, listening(ask) as read:
        monkeypatch.setattr(audit.os, "write", fail)
        ask("POST", "/events", arrive(1, now))
        assert read()["task"] == "t1" and failing == [0]


def test_addresses_and_doors():
    assert read_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert read_address("[::1]:0") == ("::1", 0)
    for text in ("8080", "x:", ":80", "x:y", "x:70000"):
        with pytest.raises(InputError, match=r"--http: read .*; expected HOST:PORT"):
            read_address(text)
    assert [is_local(x) for x in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "plant", "")] == [
        *[True] * 3,
        *[False] * 3,
    ]
    check_door("127.0.0.1", "")
    check_door("0.0.0.0", "secret")
    with pytest.raises(InputError, match=r"--http: 0\.0\.0\.0 may be reached by others; expected"):
        check_door("0.0.0.0", "")


@pytest.mark.slow
def test_a_termination_writes_the_state(tmp_path):
    state = tmp_path / "live.npz"
    words = f"serve nearest --layout dmh --log {tmp_path / 'day.jsonl'} --state {state}"
    command = [sys.executable, "-m", "acerl_np", *words.split(), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        port = json.loads(process.stdout.readline())["http"].rpartition(":")[2]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10.0)
        connection.request("POST", "/events", arrive(1))
        assert json.loads(connection.getresponse().read())["kind"] == "Ok"
        connection.close()
        process.terminate()
        assert process.wait(10.0) == 0
    assert acerl_np.Dispatcher.load(state).waiting == ("t1",)


def test_a_policy_is_posted_as_its_file_or_by_name(tmp_path):
    log, path = tmp_path / "day.jsonl", tmp_path / "own.npz"
    acerl_np.IndexPolicy.of_weights(approach=-1.0).save(path)
    with serving(log) as ask:
        status, text = ask("POST", "/policy", path.read_bytes())
        assert status == 200 and json.loads(text)["kind"] == "Ok"
        for body in (b"{}", b"", b'{"name": 1}', b"PK\x03\x04", b'{"name": "x:y"}'):
            status, text = ask("POST", "/policy", body)
            assert status == 200 and json.loads(text)["kind"] == "Refused"
        assert '"taken": true' in log.read_text() and log.read_text().count("Started") == 2
        assert json.loads(ask("POST", "/policy", b'{"name": "EDD", "number": 3}')[1])["number"] == 3
        status, text = ask("POST", "/policy", b'{"kind": "Decide", "time": 1.0, "name": "EDD"}')
        assert "Policy: " in text and "Refused" in text  # whatever else it says it is
        assert json.loads(ask("GET", "/state")[1])["tasks"] == {}
    assert len(list(tmp_path.glob("day.jsonl.*.npz"))) == 1
