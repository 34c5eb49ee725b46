"""The service over HTTP: answers, a stream of orders that resumes, and who is refused."""

import http.client
import json
import socket
import subprocess
import sys
import time

import pytest
from live_plant import PAGE, arrive_numbered, listening, serving

import acerl_np
from acerl_np.commands.serve import read_address
from acerl_np.live import log as log_module
from acerl_np.live.wire import MAX_MESSAGE, format_line
from acerl_np.support.errors import InputError

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from acerl_np.live.web import check_door, is_local, make_cookie, open_door


def arrive(*given):
    return format_line(arrive_numbered(*given))


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
        status, health = ask("GET", "/healthz")
        assert status == 200 and json.loads(health)["ok"]
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


def test_orders_come_once_the_log_can_be_written_again(tmp_path, monkeypatch):
    now, failing, write = time.time(), [3], log_module.os.write

    def fail(file, data):
        if b"Assigned" in data and failing[0]:
            failing[0] -= 1
            raise OSError(28, "No space left on device")
        return write(file, data)

    with serving(tmp_path / "day.jsonl", wall=True, start=now) as ask, listening(ask) as read:
        monkeypatch.setattr(log_module.os, "write", fail)
        ask("POST", "/events", arrive(1, now))
        assert read()["task"] == "t1" and failing == [0]


def test_an_answer_waits_for_no_acknowledgement():
    door = open_door(("127.0.0.1", 0))  # a client may keep its connection open
    with door, socket.create_connection(door.getsockname()), door.accept()[0] as own:
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


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


def test_anybody_gets_the_page_and_who_logged_in_what_it_shows(tmp_path):
    log = tmp_path / "day.jsonl"
    with serving(log, token="secret", page=PAGE) as ask:
        ask("POST", "/events", arrive(1), Authorization="Bearer secret")
        before = log.read_bytes()
        status, html = ask("GET", "/")
        assert status == 200 and "dmh" not in html and "t1" not in html
        for path in ("/watch", "/state", "/orders"):
            assert ask("GET", path)[0] == 401
        for body, refused in (
            ("Secret", 401),
            ("", 401),
            ("\udcff".encode(errors="replace"), 401),
            ("x" * 1001, 413),
        ):
            status, text = ask("POST", "/login", body)
            assert (status, text.count("\n")) == (refused, 1) and text.startswith("token: ")
            assert "Set-Cookie" not in ask.headers
        assert ask("GET", "/login")[0] == 405
        evil = {"Origin": "http://evil.example"}
        assert ask("POST", "/login", "secret", **evil)[0] == 403
        assert ask("POST", "/login", "secret\n")[0] == 204
        cookie, *rules = ask.headers["Set-Cookie"].split("; ")
        assert {x.lower() for x in rules} == {"httponly", "path=/", "samesite=strict"}
        assert "secret" not in cookie
        ask("POST", "/login", "secret", X_Forwarded_Proto="https")
        assert ask.headers["Set-Cookie"].endswith("; Secure")
        # It lets look, and change nothing.
        assert '"t1"' in ask("GET", "/state", Cookie=cookie)[1]
        with listening(ask, "/watch", Cookie=cookie) as read:
            assert read(b"tasks")[0][0] == "t1"
        assert ask("GET", "/state", Cookie=cookie, **evil)[0] == 403
        assert ask("GET", "/state", Cookie=f"{cookie[:-1]}!")[0] == 401
        for path in ("/events", "/policy"):
            assert ask("POST", path, arrive(2), Cookie=cookie)[0] == 401
        assert log.read_bytes() == before
    with serving(tmp_path / "other.jsonl", token="secret", page=PAGE) as ask:
        assert ask("GET", "/state", Cookie=cookie)[0] == 200  # after a restart, too
    with serving(tmp_path / "third.jsonl", token="another", page=PAGE) as ask:
        assert ask("GET", "/state", Cookie=cookie)[0] == 401
        name, value = make_cookie("another")
        assert name != cookie.partition("=")[0]
        assert ask("GET", "/state", Cookie=f"{cookie}; {name}={value}")[0] == 200


def test_the_page_may_talk_to_nobody_else(tmp_path):
    with serving(tmp_path / "day.jsonl", page=PAGE) as ask:
        html = ask("GET", "/")[1]
        policy = dict(x.split(" ", 1) for x in ask.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["form-action"] == "'none'"
        assert all("unsafe" not in x and "http" not in x for x in policy.values())
        assert ask.headers["Cache-Control"] == "no-store" and "http" not in html.replace(
            "http-equiv", ""
        )
        assert ask("POST", "/login", "")[0] == 204 and "Set-Cookie" not in ask.headers  # needs none
        assert ask("POST", "/")[0] == 405


def test_a_viewer_is_told_all_and_then_what_changes(tmp_path):
    with serving(tmp_path / "day.jsonl", page=PAGE) as ask:
        ask("POST", "/events", arrive(1) + format_line({"kind": "Decide", "time": 0.0}) + "{}\n")
        with listening(ask, "/watch") as read, listening(ask, "/watch") as other:
            floor = read(b"floor")
            assert [row[0] for row in floor["vehicles"]] == ["v0", "v1", "v2"]
            assert floor["version"] == acerl_np.__version__
            assert read(b"queue") == [[0.0, 0, 0]]
            assert read(b"tasks")[0][:1] == ["t1"]
            assert read(b"orders")[-1]["task"] == "t1"
            figures = read(b"figures")
            assert (figures["policy"], figures["refused"]) == ("nearest", 1)
            assert "kind" in read(b"refused")[0]["why"] and read(b"now") is None
            assert other(b"tasks")[0][0] == "t1"
            read.events.clear()
            ask("POST", "/events", arrive(2, 40.0))
            assert read(b"queue") == [[40.0, 0, 0]]
            for viewer in (read, other):
                assert [row[0] for row in viewer(b"tasks")] == ["t1", "t2"]
            assert read(b"now") is None and read.events == ["queue", "tasks", "figures", "now"]
            own = {"kind": "VehicleAdded", "time": 41.0, "vehicle": "w", "site": "st1"}
            ask("POST", "/events", format_line(own))
            assert read(b"floor")["vehicles"][-1][0] == "w"
            assert read(b"vehicles")[-1][0] == "idle"


def test_streams_end_with_the_server(tmp_path, capfd):
    log = tmp_path / "day.jsonl"
    with serving(log, page=PAGE) as ask, listening(ask, "/watch") as read, listening(ask):
        read(b"now")
        ask.server.should_exit = True
        ask.thread.join(5.0)
        assert not ask.thread.is_alive()
    told = capfd.readouterr().err.splitlines()
    assert [x for x in told if "compiling kernels" not in x] == []  # nothing was cut off
