"""How the command is begun, behind which proxy, and what it keeps by itself."""

import base64
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_plant import PAGE, arrive, give_input, serving, tell

import acerl_np
from acerl_np.commands.serve import read_origin, read_token
from acerl_np.live import service as core
from acerl_np.live.service import RETRY, Service
from acerl_np.support.errors import InputError, PolicyError, StorageError

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
TOKEN = "0123456789abcdef"
NOW = 1.75e9


# What is refused at the start


@pytest.mark.parametrize(
    "token", ["", " \n", "secret", "0123456789abcde\n", f"{TOKEN}\nmore", "\u00e4" * 16]
)
def test_a_token_that_is_none_is_refused(token, tmp_path):
    path = tmp_path / "token"
    path.write_text(token, encoding="utf-8")
    with pytest.raises(InputError, match=r"--token-file: .*token: .*one line of at least 16"):
        read_token(str(path))
    path.write_text(f"{TOKEN}\n")
    assert read_token(str(path)) == TOKEN


@pytest.mark.parametrize(
    "origin", ["plant.example", "https://", "https://a/", "https://a b", "ftp://a", "*", "null", ""]
)
def test_an_origin_is_a_scheme_and_a_host(origin):
    with pytest.raises(InputError, match=r"--origin: read .*; expected such as"):
        read_origin(origin)
    assert read_origin("https://Plant.example:8443") == "https://plant.example:8443"


def test_a_port_in_use_is_found_before_anything_is_written(empty, run):
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = f"serve nearest --layout dmh --log day.jsonl --http 127.0.0.1:{port}"
        assert "cannot listen" in run(words, 2).err
        err = run(f"{words} --origin https://plant.example", 2).err
        assert "--token-file: everyone" in err and "cannot listen" in err
    assert "without --http" in run("serve --layout dmh --origin https://plant.example", 2).err
    for words in ("1" * 5000, "1.5", "\u0663"):
        assert "expected HOST:PORT" in run(f"serve --layout dmh --http 127.0.0.1:{words}", 2).err
    assert "--clock: read wall:x" in run("serve --layout dmh --clock wall:x", 2).err
    err = run("serve --layout dmh --log new --state ./new", 2).err
    assert "is the log, too" in err and not Path("new").exists()
    Path("token").write_text("\n")
    words = "serve nearest --layout dmh --http 127.0.0.1:0 --token-file token"
    assert "at least 16" in run(words, 2).err


def test_a_state_without_its_log_is_refused_unless_it_is_named(empty, run, monkeypatch):
    def serve(words="", status=0, *messages):
        lines = give_input(*(json.dumps(x) + "\n" for x in messages))
        monkeypatch.setattr("sys.stdin", lines)
        return run(f"serve nearest --layout dmh --log day.jsonl {words}", status)

    serve("", 0, arrive("t1", 0.0))
    assert acerl_np.Dispatcher.load("day.jsonl.state.npz").waiting == ("t1",)
    Path("day.jsonl").rename("moved")
    err = serve("", 2).err
    assert "day.jsonl.state.npz: a state without its log day.jsonl" in err
    out = serve("--state day.jsonl.state.npz", 0, {"kind": "State"}).out
    assert '"waiting": ["t1"]' in out


# A proxy with TLS

PROXY = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl; server_name plant.example;
    ssl_certificate {folder}/cert; ssl_certificate_key {folder}/key;
    location / {{
      proxy_pass http://127.0.0.1:{service}; proxy_buffering off; proxy_http_version 1.1; {host}
    }}
  }}
}}
"""


CADDY = """
{{
  admin off
  auto_https disable_redirects
  default_sni plant.example
  storage file_system {folder}
}}
https://plant.example:{port} {{
  bind 127.0.0.1
  tls {folder}/cert {folder}/key
  reverse_proxy 127.0.0.1:{service}
}}
"""

PROXIES = {
    "nginx": (PROXY.replace("{host}", ""), ["-c", "conf"]),
    "nginx, host": (PROXY.replace("{host}", "proxy_set_header Host $host;"), ["-c", "conf"]),
    "caddy": (CADDY, ["run", "--adapter", "caddyfile", "--config", "conf"]),
}


@contextmanager
def proxying(folder, service, kind):
    """Give what asks a service through a proxy with TLS."""
    (text, words), program = PROXIES[kind], kind.partition(",")[0]
    if not (shutil.which(program) and shutil.which("openssl")):
        pytest.skip(f"needs {program}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=plant.example -keyout key -out cert"
    subprocess.run(["openssl", *make.split()], cwd=folder, check=True, capture_output=True)
    (folder / "conf").write_text(text.format(folder=folder, port=port, service=service))
    words = [folder / "conf" if word == "conf" else word for word in words]
    with subprocess.Popen([program, *words], stderr=subprocess.DEVNULL) as proxy:
        try:
            for _ in range(100):
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            trusting = ssl._create_unverified_context()

            def ask(method, path, body=None, read=True, **headers):
                client = http.client.HTTPSConnection(
                    "127.0.0.1", port, timeout=10.0, context=trusting
                )
                named = {key.replace("_", "-"): x for key, x in headers.items()}
                client.request(method, path, body, {"Host": "plant.example", **named})
                answer = client.getresponse()
                text = answer.read() if read else answer.readline()
                client.close()
                return answer.status, text.decode(), answer.headers

            yield ask
        finally:
            proxy.terminate()


@pytest.mark.parametrize("kind", PROXIES)
def test_behind_a_proxy_with_tls_the_page_works(kind, tmp_path):
    own = {"Origin": "https://plant.example"}
    how = {"token": TOKEN, "page": PAGE, "origin": own["Origin"]}
    with serving(tmp_path / "day.jsonl", **how) as told, proxying(tmp_path, told.port, kind) as ask:
        assert ask("GET", "/")[0] == 200 and ask("GET", "/state")[0] == 401
        status, _, headers = ask("POST", "/login", TOKEN, **own)
        cookie, *rules = headers["Set-Cookie"].split("; ")
        assert status == 204 and "Secure" in rules
        assert ask("GET", "/state", Cookie=cookie, **own)[0] == 200
        for path in ("/watch", "/orders"):
            status, line, _ = ask("GET", path, read=False, Cookie=cookie)
            assert status == 200 and line.startswith(("event", ":"))
        evil = {"Origin": "https://evil.example", "Authorization": f"Bearer {TOKEN}"}
        assert ask("POST", "/events", "", **evil)[0] == 403
        assert ask("POST", "/events", "", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_the_origin_of_a_proxy_is_whole_and_of_nobody_else(tmp_path):
    with serving(tmp_path / "day.jsonl", origin="https://plant.example") as ask:
        local = f"127.0.0.1:{ask.port}"
        for origin, host, status in (
            ("https://plant.example", "plant.example", 200),
            ("https://plant.example", local, 200),
            (f"http://{local}", local, 200),
            ("http://plant.example", "plant.example", 403),
            ("https://plant.example:444", "plant.example", 403),
            ("https://evil.example", "plant.example", 403),
            ("https://evil.example", local, 403),
            ("null", local, 403),
            ("https://evil.example", "evil.example", 400),
        ):
            assert ask("GET", "/state", Origin=origin, Host=host)[0] == status, (origin, host)
    with serving(tmp_path / "other.jsonl") as ask:
        assert ask("GET", "/state", Host="plant.example")[0] == 400
        assert ask("GET", "/state", Origin="https://plant.example")[0] == 403


# What it keeps by itself


def test_the_state_is_written_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(core, "SAVE_MESSAGES", 3)
    state, said = tmp_path / "live.npz", []
    with acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW, audit=tmp_path / "d.jsonl") as own:
        service = Service(own, str(state), ahead=5.0, say=said.append)
        service.save(NOW)
        for k in range(3):
            service.tend(NOW + k)
            assert acerl_np.Dispatcher.load(state).waiting == ()
            tell(service, NOW + k, **arrive(f"t{k}", NOW + k))
        service.tend(NOW + 3.0)
        assert acerl_np.Dispatcher.load(state).waiting == ("t0", "t1", "t2")
        tell(service, NOW + 4.0, **arrive("t3", NOW + 4.0))
        service.tend(NOW + 5.0)
        assert len(acerl_np.Dispatcher.load(state).waiting) == 3
        service.tend(NOW + 3.0 + core.SAVE_SECONDS)
        assert len(acerl_np.Dispatcher.load(state).waiting) == 4
        # It fails: said once, and tried again later.
        save, tried = own.save, []

        def fail(path):
            tried.append(path)
            raise StorageError("no space left")

        monkeypatch.setattr(own, "save", fail)
        later = NOW + 1000.0
        for k in range(4):
            tell(service, later, **arrive(f"u{k}", later))
            service.tend(later + k)
        service.tend(later + 1.0 + RETRY)
        assert len(tried) == 2 and len(said) == 1 and "no space left" in said[0]
        health = service.show_health(later)
        assert health["ok"] and health["state"] != "ok" and health["log"] == "ok"
        monkeypatch.setattr(own, "save", save)
        service.tend(later + 2.0 + 2 * RETRY)
        assert service.show_health(later)["state"] == "ok"
        assert len(acerl_np.Dispatcher.load(state).waiting) == 8


def test_a_state_or_a_policy_that_cannot_be_written_is_refused_and_the_day_goes_on(
    tmp_path, monkeypatch
):
    with acerl_np.Dispatcher(LAYOUT, "nearest", audit=tmp_path / "day.jsonl") as own:
        service = Service(own, str(tmp_path / "none" / "live.npz"))
        place = str(tmp_path / "none" / "policy.npz")
        monkeypatch.setattr("acerl_np.live.recovery.place_policy", lambda *_: place)
        policy = acerl_np.IndexPolicy.of_weights(approach=-1.0)
        policy.save(tmp_path / "told.npz")
        told = base64.b64encode((tmp_path / "told.npz").read_bytes()).decode()
        for message in ({"kind": "Save"}, {"kind": "Policy", "file": told}):
            [answer] = tell(service, **message)
            assert answer["kind"] == "Refused" and "cannot write" in answer["why"]
        assert own.policy == "nearest" and service.show_health(0.0)["ok"]
        assert tell(service, **arrive("t1", 0.0))[-1]["kind"] == "Ok"


def test_a_log_that_cannot_be_rotated_stops_nobody(tmp_path, monkeypatch):
    log, said, now = tmp_path / "day.jsonl", [], time.time() + 86_400.0
    with acerl_np.Dispatcher(LAYOUT, "nearest", audit=log) as own:
        service = Service(own, str(tmp_path / "live.npz"), log=str(log), say=said.append)
        with monkeypatch.context() as patch:

            def fail(*_):
                raise StorageError("cannot rotate: operation not permitted")

            patch.setattr(own, "rotate", fail)
            for k in range(3):
                service.tend(now + k)
                assert tell(service, now, **arrive(f"t{k}", float(k)))[-1]["kind"] == "Ok"
        assert len(said) == 1 and not list(tmp_path.glob("day.2*"))
        service.tend(now + 1.0 + RETRY)
        assert len(list(tmp_path.glob("day.2*"))) == 1 and log.exists()


class Mine:
    def choose(self, scene):
        raise NotImplementedError


def test_a_policy_that_no_file_holds_has_no_state(empty, run, monkeypatch):
    Path("mine.py").write_text("class Mine:\n    def choose(self, sim): pass\nmine = Mine()\n")
    monkeypatch.syspath_prepend(empty)
    words = "serve mine.py:mine --layout dmh --log day.jsonl --trust-code"
    monkeypatch.setattr("sys.stdin", give_input())
    assert "no state is written" in run(words).err
    assert not Path("day.jsonl.state.npz").exists()
    own = acerl_np.Dispatcher(LAYOUT, Mine())
    for check in (own.check_save, Service(own, "live.npz").save):
        with pytest.raises(PolicyError, match="no file"):
            check()


def test_an_order_that_takes_far_too_long_is_overdue():
    own = acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW)
    service = Service(own, ahead=5.0, slack=300.0)
    tell(service, NOW, **arrive("t1", NOW))
    [order] = service.ask(NOW)
    limit = NOW + 2.0 * (order["finish"] - NOW) + 300.0
    assert service.show(limit)["overdue"] == {}
    assert service.show(limit + 1.0)["overdue"] == {"t1": order["vehicle"]}
    assert service.show_health(limit + 1.0)["overdue"] == 1
    tell(service, limit, kind="VehiclePassed", time=limit, vehicle=order["vehicle"], site="st1")
    assert service.show(limit + 1.0)["overdue"] == {}  # it gets on
    quick = Service(own, ahead=5.0, slack=0.0)
    assert quick.show(limit + 299.0)["overdue"] == {"t1": order["vehicle"]}
    by_messages = Service(own, slack=0.0)
    assert by_messages.show(limit + 299.0)["overdue"] == {}


def test_a_task_that_an_idle_vehicle_could_take_is_neglected(monkeypatch):
    own = acerl_np.Dispatcher(LAYOUT, "nearest", start=NOW)
    service = Service(own, ahead=5.0)
    assert service.show_health(NOW)["neglected"] is None
    tell(service, NOW, **arrive("t1", NOW))
    assert service.show_health(NOW + 7.0)["neglected"] == 7.0
    list(service.ask(NOW + 7.0))
    assert service.show_health(NOW + 8.0)["neglected"] is None
    for k in range(2, 5):
        tell(service, NOW + 8.0, **arrive(f"t{k}", NOW + 8.0))
    list(service.ask(NOW + 8.0))  # all vehicles have one
    assert own.waiting and service.show_health(NOW + 9.0)["neglected"] is None


@pytest.mark.slow
def test_the_process_writes_its_state_and_goes_on_from_there_after_a_kill(tmp_path):
    words = ["-m", "acerl_np", "serve", "nearest", "--layout", "dmh", "--log", "day.jsonl"]
    lines = [json.dumps(arrive(f"t{k}", float(k))) + "\n" for k in range(2_100)]
    out = tmp_path / "out"
    with out.open("wb") as told:
        pipes = {"stdin": subprocess.PIPE, "stdout": told, "text": True, "cwd": tmp_path}
        with subprocess.Popen([sys.executable, *words], **pipes) as process:
            process.stdin.writelines(lines)
            process.stdin.flush()
            while out.read_bytes().count(b'"Ok"') < len(lines) and process.poll() is None:
                time.sleep(0.05)
            state, end = tmp_path / "day.jsonl.state.npz", time.monotonic() + 60.0
            while not acerl_np.Dispatcher.load(state).waiting and time.monotonic() < end:
                time.sleep(0.05)
            process.kill()
    assert 2_000 <= len(acerl_np.Dispatcher.load(state).waiting) <= 2_100
    paths = {"audit": tmp_path / "day.jsonl", "state": state}
    with acerl_np.Dispatcher.recover(LAYOUT, "nearest", **paths) as again:
        assert len(again.waiting) == 2_100
