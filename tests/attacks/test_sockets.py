"""Clients that are slow, deaf, many, huge or of elsewhere: whoever they are, the others are answered."""

import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from live_plant import LAYOUT, PAGE, arrive_numbered, listening, serving
from live_plant import arrive as arrive_message

import acerl_np

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from acerl_np.live import service, web, worker

STATE = '{"kind": "State"}\n'


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(web, "PATIENCE", 0.3)
    monkeypatch.setattr(web, "GLANCE", 0.05)
    monkeypatch.setattr(web, "HURRY", 0.2)
    monkeypatch.setattr(web, "CALM", 0.02)


def arrive(number):
    return json.dumps(arrive_numbered(number)) + "\n"


def dial(ask, data=b"", timeout=10.0):
    client = socket.create_connection(("127.0.0.1", ask.port), timeout)
    client.sendall(data)
    return client


def post(body, path="/events", length=None, host="127.0.0.1"):
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body.encode()


def read_until(client, end):
    data = b""
    while not data.endswith(end):
        data += client.recv(65536)
    return data


def is_ended(client):
    """Whether the other side ends a connection, once all is read that it has sent."""
    with client:
        try:
            while client.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True


HALF = b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: "


def test_half_a_head_keeps_nobody_out(tmp_path, monkeypatch, hurry):
    monkeypatch.setattr(web, "MOST_CONNECTIONS", 10)
    with serving(tmp_path / "day.jsonl") as ask, ExitStack() as kept:
        clients = [kept.enter_context(dial(ask, HALF)) for _ in range(40)]
        assert ask("GET", "/healthz")[0] == 200
        assert len(ask.server.server_state.connections) <= 11
        assert ask("POST", "/events", arrive(1))[0] == 200
        assert all(map(is_ended, clients))


@pytest.mark.parametrize(
    "data",
    [
        HALF,
        b"",
        b"\r\n",
        post("{", length=100),
        post("", length=900_000),
        b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + HALF,
    ],
)
def test_what_is_never_whole_is_ended(data, tmp_path, hurry):
    with serving(tmp_path / "day.jsonl") as ask:
        client = dial(ask, data)
        assert is_ended(client) and '"tasks": {}' in ask("GET", "/state")[1]


def test_a_head_that_comes_byte_by_byte_is_ended(tmp_path, hurry):
    with serving(tmp_path / "day.jsonl") as ask, dial(ask) as client, pytest.raises(OSError):
        for letter in HALF * 20:
            client.sendall(bytes([letter]))
            time.sleep(0.01)


def test_who_reads_nothing_is_ended_and_the_others_are_answered(tmp_path, hurry):
    with serving(tmp_path / "day.jsonl") as ask:
        ask("POST", "/events", "".join(arrive(k) for k in range(100)))
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", ask.port))
            deaf.sendall(post(STATE * 5000))
            assert ask("POST", "/events", arrive(1000))[1].startswith('{"kind": "Ok"')
            known = ask.server.server_state.connections
            until = time.monotonic() + 10.0
            while known and time.monotonic() < until:
                time.sleep(0.05)
            assert not known


def test_who_gets_on_a_little_at_a_time_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "LINGER", 1.0)
    monkeypatch.setattr(web, "GLANCE", 0.05)
    with serving(tmp_path / "day.jsonl") as ask, socket.socket() as slow:
        ask("POST", "/events", "".join(arrive(k) for k in range(100)))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", ask.port))
        slow.sendall(post(STATE * 5000))
        assert slow.recv(1)
        until = time.monotonic() + 8.0
        while ask.server.server_state.connections and time.monotonic() < until:
            slow.recv(2048)
            time.sleep(0.01)
        assert not ask.server.server_state.connections


def test_answers_stream_are_bounded_and_take_turns(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MAX_ANSWER", 300_000)
    with serving(tmp_path / "day.jsonl") as ask:
        ask("POST", "/events", "".join(arrive(k) for k in range(20)))
        status, text = ask("POST", "/events", STATE * 5000)
        *told, last = map(json.loads, text.splitlines())
        assert status == 200 and last["kind"] == "Failed" and "tell the rest" in last["why"]
        assert 300_000 < len(text) < 600_000 and told[-1]["kind"] == "Ok"
        status, text = ask("POST", "/events", "1\n" * (web.MOST_LINES + 1))
        assert status == 413 and "10,000 lines" in text
        assert ask("POST", "/events", "\n" * 10_000) == (200, "")
        assert ask("POST", "/events", " " * 1_000_001)[0] == 413


def test_pipelined_and_half_closed_requests(tmp_path):
    with serving(tmp_path / "day.jsonl") as ask:
        last = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        with dial(ask, post(arrive(1)) + post("nonsense") + last) as client:
            data = b""
            while more := client.recv(65536):
                data += more
        assert data.count(b"HTTP/1.1 200") == 3
        assert data.index(b'"Ok"') < data.index(b'"Refused"') < data.index(b'"failures"')
        client = dial(ask, post(arrive(2)))
        client.shutdown(socket.SHUT_WR)
        assert is_ended(client)
        assert ask("POST", "/events", arrive(3))[0] == 200


def test_a_head_that_is_huge_is_refused(tmp_path):
    with serving(tmp_path / "day.jsonl") as ask:
        with dial(ask, HALF + b"x" * 40_000) as client:
            assert b" 400 " in client.recv(65536)
        assert ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("127.0.0.2:8080", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("LocalHost", 200),
        ("plant.example:8443", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("2130706433", 400),
        ("0.0.0.0", 400),
        ("[::1", 400),
        ("", 400),
        ("[fe80::1]", 400),
    ],
)
def test_a_local_port_is_of_local_names_and_of_the_proxys(host, status, tmp_path):
    with serving(tmp_path / "day.jsonl", origin="https://plant.example:8443") as ask:
        assert ask("GET", "/state", Host=host)[0] == status


def test_a_host_is_no_path(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "is_local", lambda host: False)  # where any name will do
    with serving(tmp_path / "day.jsonl", token="0" * 16, page=PAGE) as ask:
        own = {"Authorization": "Bearer " + "0" * 16}
        for host in ("[::1", "a/policy?", "[", "a@b:c", "x" * 5000):
            assert '"Ok"' in ask("POST", "/events", STATE, Host=host, **own)[1], host
            assert ask("POST", "/login", "0" * 16, Host=host)[0] == 204


def test_an_order_number_that_is_none_is_refused(tmp_path):
    with serving(tmp_path / "day.jsonl") as ask:
        for after in ("9" * 5000, "%D9%A3", "-1", "1.0", "x", "%00"):
            assert ask("GET", f"/orders?after={after}")[0] == 400
        assert ask("GET", "/orders", Last_Event_ID="9" * 5000)[0] == 400


def test_a_separator_of_lines_within_a_name_cuts_no_message(tmp_path):
    name = "t\u2028\u2029\x85\x0b\x0c\x1c"
    with serving(tmp_path / "day.jsonl") as ask:
        told = json.dumps(arrive_message("t\u2028"), ensure_ascii=False)
        decide = json.dumps({"kind": "Decide", "time": 0.0})
        answers = ask("POST", "/events", f"{told}\r\n{decide}".encode())[1].splitlines()
        assert [json.loads(x)["kind"] for x in answers] == ["Ok", "Assigned", "Ok"]
        with listening(ask) as read:
            assert read()["task"] == "t\u2028"
        told = json.dumps({"kind": "TaskCancelled", "time": 0.0, "task": name}, ensure_ascii=False)
        assert len(ask("POST", "/events", told.encode())[1].splitlines()) == 1


def test_a_stream_that_lacks_orders_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MOST_KEPT", 2)
    log = tmp_path / "day.jsonl"
    layout = acerl_np.Layout.from_dict(
        {
            **LAYOUT.to_dict(),
            "vehicles": [{**LAYOUT.to_dict()["vehicles"][0], "id": f"v{k}"} for k in range(6)],
        }
    )
    with serving(log, layout) as ask:
        decide = json.dumps({"kind": "Decide", "time": 0.0})
        ask("POST", "/events", "".join(arrive(k) for k in range(5)) + decide)
        with listening(ask, "/orders?after=1") as late, listening(ask) as viewer:
            assert late() == {"after": 1, "before": 4} and late.events == ["gap"]
            assert [late()["number"] for _ in "ab"] == [4, 5]
            assert viewer()["number"] == 4
        with listening(ask, "/orders?after=3") as read:
            assert read()["number"] == 4
    with serving(log, layout) as ask, listening(ask, "/orders?after=3") as read:  # after a restart
        assert read() == {"after": 3, "before": 6} and read.events == ["gap"]


def test_a_stream_that_falls_behind_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MOST_KEPT", 2)
    with serving(tmp_path / "day.jsonl") as ask, listening(ask) as read:
        ask("GET", "/healthz")
        orders = [{"kind": "Assigned", "number": k, "repeated": False} for k in range(1, 6)]
        ask.worker.submit(lambda: ask.worker.publish(orders, "")).result()
        assert read() == {"after": 0, "before": 4} and read.events == ["gap"]
        assert [read()["number"] for _ in "ab"] == [4, 5]


def test_streams_are_so_many_and_their_ends_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MOST_STREAMS", 3)
    with serving(tmp_path / "day.jsonl", page=PAGE) as ask:
        streams = (listening(ask, path) for path in ("/watch", "/orders", "/watch"))
        with ExitStack() as kept:
            for stream in streams:
                kept.enter_context(stream).line()  # it has begun
            status, _ = ask("GET", "/orders")
            assert status == 503 and ask.headers["Retry-After"] == "1"
            assert ask("GET", "/state")[0] == 200
            assert ask("HEAD", "/orders") == ask("HEAD", "/watch") == (200, "")
        for _ in range(200):
            with listening(ask) as read:
                if read.status == 200:
                    return
            time.sleep(0.05)
        pytest.fail("streams that have ended count")


@contextmanager
def busy(ask):
    """Keep the thread that answers from answering."""
    ask("GET", "/healthz")
    begun, may_end = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert may_end.wait(30.0)

    ask.worker.submit(work)
    assert begun.wait(10.0)
    try:
        yield
    finally:
        may_end.set()


def test_where_too_much_waits_who_comes_is_asked_to_come_again(tmp_path, monkeypatch, hurry):
    monkeypatch.setattr(worker, "MOST_WAITING", 2)
    with serving(tmp_path / "day.jsonl") as ask:
        with busy(ask):
            waiting = [dial(ask, post(arrive(k))) for k in (1, 2)]
            while len(ask.worker._waiting) < 2:
                time.sleep(0.01)
            for method, path, body in (("POST", "/events", arrive(3)), ("GET", "/state", None)):
                assert ask(method, path, body)[0] == 503 and ask.headers["Retry-After"] == "1"
            time.sleep(2 * web.CALM)  # it is found anew then
            status, health = ask("GET", "/healthz")
            assert status == 503 and not json.loads(health)["ok"]
        for client in waiting:
            with client:
                assert b'"Ok"' in read_until(client, b"}\n")
        assert ask("GET", "/healthz")[0] == 200
        assert json.loads(ask("GET", "/state")[1])["last_number"] == 2


@pytest.mark.parametrize("spelled", ["Po", r"\u0050o"])
def test_a_policy_is_checked_beside_what_is_answered(spelled, tmp_path, monkeypatch):
    begun, may_end, read = threading.Event(), threading.Event(), service.read_policy

    def check(message):
        begun.set()
        assert may_end.wait(30.0)
        return read(message)

    monkeypatch.setattr(worker, "read_policy", check)
    with serving(tmp_path / "day.jsonl") as ask:
        told = json.dumps({"kind": "Policy", "name": "EDD", "number": 2}).replace("Po", spelled)
        with dial(ask, post(f"{arrive(1)}{told}\n{arrive(3)}")) as client:
            assert begun.wait(10.0)
            assert ask("GET", "/healthz")[0] == 200
            assert '"Ok"' in ask("POST", "/events", arrive(4))[1]
            assert "another is being checked" in ask("POST", "/policy", '{"name": "SPT"}')[1]
            may_end.set()
            while b'"number": 3' not in client.recv(65536):
                pass
        assert json.loads(ask("GET", "/state")[1])["waiting"] == ["t1", "t4", "t3"]
        assert ask.worker.service.dispatcher.policy == "EDD"
        may_end.set()
        assert "policy" in ask("POST", "/policy", b"PK\x03\x04")[1]
