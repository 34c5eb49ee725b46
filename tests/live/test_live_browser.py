"""The live page in a browser: what it shows is what the service has, also after that was killed."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from browser import ask, emulate, skip_without_browser
from live_plant import LAYOUT, PAGE, Plant, make_fleet, serving
from pages import EVIL, make_instance, make_powered

from acerl_np.live.wire import format_line

skip_without_browser()
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.browser


def read_text(chrome, name):
    return ask(chrome, "document.getElementById(arguments[0]).textContent.trim()", name)


def read_title(chrome, name):
    return ask(chrome, "document.querySelector(`#${arguments[0]} h3`).textContent", name)


def read_rows(chrome, name):
    words = """[...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
        .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    return ask(chrome, words, name)


def wait(condition, seconds=20.0):
    """Wait until a condition holds, and give what it found."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "nothing came of it"
        time.sleep(0.1)
    return found


def see(chrome, path="", **media):
    """Open the page, and wait for what it shows."""
    emulate(chrome, **media)
    chrome.get(path)
    wait(lambda: read_text(chrome, "connection") == "live" and read_text(chrome, "n-waiting"))


def task(name, time=0.0, **more):
    own = {"kind": "TaskArrived", "time": time, "task": name, "pickup": "st1", "delivery": "st5"}
    return {**own, "expiry": 400.0, **more}


@contextmanager
def process(tmp_path, port):
    """The command, at a port; it is killed at the end."""
    (tmp_path / "token").write_text("open-sesame-1a2b3c4d\n")
    files = f"--log {tmp_path / 'day.jsonl'} --token-file {tmp_path / 'token'}"
    words = f"serve nearest --layout dmh {files} --http 127.0.0.1:{port}"
    command = [sys.executable, "-m", "acerl_np", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        json.loads(server.stdout.readline())
        try:
            yield
        finally:
            server.kill()


@pytest.mark.slow
def test_two_viewers_of_a_plant_and_a_service_that_is_killed_and_comes_back(chrome, tmp_path):
    """The plant runs at sixty times its clock."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, token = f"http://127.0.0.1:{port}/", "open-sesame-1a2b3c4d"
    plant = Plant(LAYOUT, port, every=25.0, token=token)
    emulate(chrome)

    def run(seconds):
        begun, until = time.monotonic(), plant.now + seconds
        first = plant.now
        while plant.coming[0][0] <= until:
            time.sleep(max(0.0, begun + (plant.coming[0][0] - first) / 60 - time.monotonic()))
            plant.step()

    def agrees():
        state = plant.ask("/state")
        shown = {row[0] for row in read_rows(chrome, "waiting")} - {"none"}
        carried = {row[3]: row[0] for row in read_rows(chrome, "vehicles") if row[3] != "–"}
        return shown == set(state["waiting"]) and carried == state["under_way"]

    with process(tmp_path, port):
        chrome.get(url)
        wait(lambda: chrome.find_element("id", "token").is_displayed())
        assert not chrome.find_element("id", "runs").is_displayed()
        for given, told in (("sesame", "token: not the one of this service"), (token, "")):
            chrome.find_element("id", "token").send_keys(given)
            chrome.find_element("css selector", "#login button").click()
            wait(lambda told=told: read_text(chrome, "refusal") == told)
        wait(lambda: chrome.find_element("id", "runs").is_displayed())
        assert "sesame" not in chrome.current_url + ask(chrome, "document.cookie")
        first = chrome.current_window_handle
        chrome.switch_to.new_window("window")
        second = chrome.current_window_handle
        see(chrome, url)  # the cookie is that of both
        places = set()
        telling = threading.Thread(target=run, args=(600.0,))
        telling.start()
        while telling.is_alive():
            places.add(tuple(row[2] for row in read_rows(chrome, "vehicles")))
            time.sleep(0.1)
        telling.join()
        assert len(places) > 10  # they were seen to drive
        for viewer in (first, second):
            chrome.switch_to.window(viewer)
            wait(agrees)
            assert read_rows(chrome, "orders")[0][1].endswith(f" {plant.last['task']}")
            assert int(read_text(chrome, "n-delivered")) > 5
    wait(lambda: "connection lost" in read_text(chrome, "connection"))
    before, delivered = read_rows(chrome, "orders"), read_text(chrome, "n-delivered")
    queue = ask(chrome, "watcher.parts.queue")
    time.sleep(3.0)  # it asks in vain
    with process(tmp_path, port):
        for viewer in (first, second):
            chrome.switch_to.window(viewer)
            wait(lambda: read_text(chrome, "connection") == "live")
            wait(agrees)
            assert ask(chrome, "watcher.parts.queue") == queue
            assert read_rows(chrome, "orders") == before
            assert read_text(chrome, "n-delivered") == delivered
        run(300.0)
        for viewer in (first, second):
            chrome.switch_to.window(viewer)
            wait(agrees)
            assert read_rows(chrome, "orders") != before
            loaded = ask(chrome, "performance.getEntriesByType('resource').map((x) => x.name)")
            assert loaded and all(name.startswith(url) for name in loaded)
    chrome.close()
    chrome.switch_to.window(next(iter(chrome.window_handles)))


@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("n_vehicles, n_tasks", [(3, 0), (50, 200)])
def test_it_fits_and_counts(chrome, tmp_path, width, n_vehicles, n_tasks):
    layout = make_fleet("dmh", n_vehicles)
    with serving(tmp_path / "day.jsonl", layout, page=PAGE) as tell:
        plant = Plant(layout, tell.port)
        # Each is due 10 s later than the one before.
        crowd = [task(f"x{k}", expiry=10.0 * k) for k in range(n_tasks)]
        plant.tell(
            *crowd, {"kind": "Decid"}, {"kind": "VehicleBroke", "time": 15.0, "vehicle": "v2"}
        )
        see(chrome, tell.url, width=width)
        assert ask(chrome, "document.documentElement.scrollWidth") <= width
        wait(lambda: read_title(chrome, "refused") == "Messages refused (1)")
        assert read_rows(chrome, "refused")[0][2].endswith("did you mean 'Decide'?")
        assert read_title(chrome, "vehicles") == f"Vehicles ({n_vehicles})"
        assert read_rows(chrome, "vehicles")[2][1] == "broken"
        waiting = [row[0] for row in read_rows(chrome, "waiting")]
        assert waiting == ([f"x{k}" for k in range(n_tasks)] or ["none"])
        assert (read_text(chrome, "n-waiting"), read_text(chrome, "n-late")) == (
            str(n_tasks),
            "2" if n_tasks else "0",
        )
        # The last message was at 15 s. After its way, at 1 m/s, less than a minute would be left.
        way = layout.routes.distance[layout.site_index["st1"], layout.site_index["st5"]]
        risk = [row[0] for row in read_rows(chrome, "risk")]
        soon = [f"x{k}" for k in range(n_tasks) if 10 * k - way - 15 < 60]
        assert risk == (soon or ["none"]) and len(soon) < 30
        seen = ask(
            chrome, "[...document.querySelectorAll('canvas[role=img]')].map((x) => x.ariaLabel)"
        )
        assert f"{n_tasks} tasks wait" in seen[0] and f"{n_vehicles - 1} idle, 1 broken" in seen[0]
        assert seen[1].startswith("Curves of tasks")


def test_orders_that_are_overdue_are_named_until_they_are_done(chrome, tmp_path):
    with serving(tmp_path / "day.jsonl", page=PAGE) as tell:

        def say(*told):
            tell("POST", "/events", "".join(map(format_line, told)))

        say(task("t1"), {"kind": "Decide", "time": 0.0})
        see(chrome, tell.url, width=400)
        [order] = read_rows(chrome, "orders")
        vehicle, section = order[1].split()[0], chrome.find_element("id", "overdue")
        assert not section.is_displayed()
        say(task("t2", 4000.0))
        wait(section.is_displayed)
        assert read_rows(chrome, "overdue") == [["t1", vehicle]]
        assert read_title(chrome, "overdue") == "Overdue orders (1)"
        assert ask(chrome, "document.documentElement.scrollWidth") <= 400
        say({"kind": "VehicleIdle", "time": 4001.0, "vehicle": vehicle, "site": "st5"})
        wait(lambda: not section.is_displayed())


def test_the_clock_on_the_wall_moves_vehicles_between_messages(chrome, tmp_path):
    now = time.time()
    with serving(tmp_path / "day.jsonl", page=PAGE, wall=True, start=now) as tell:
        see(chrome, tell.url)
        tell("POST", "/events", format_line(task("t1", now, expiry=5.0)))
        wait(lambda: read_rows(chrome, "vehicles")[0][3] == "t1")
        assert re.fullmatch(r"\d\d:\d\d:\d\d", read_text(chrome, "clock"))

        def look():
            place = ask(chrome, "watcher.live.locate(0, watcher.time)")
            return place["part"], read_text(chrome, "clock"), read_rows(chrome, "risk")[0][2]

        part, clock, due = look()
        assert int(due.removesuffix(" s")) <= 5
        # Before the service speaks again.
        wait(lambda: look()[0] > part and look()[1] != clock and look()[2] != due, 8.0)
        wait(lambda: read_rows(chrome, "risk")[0][2].startswith("late by"))
        assert ask(chrome, "document.title").startswith("(1 late)")


def test_names_of_messages_stay_text(chrome, tmp_path):
    layout = make_instance(EVIL).layout.with_breakdowns({})
    sites = [site.id for site in layout.sites]
    with serving(tmp_path / "day.jsonl", layout, page=PAGE) as tell:
        own = task(EVIL[3], pickup=sites[0], delivery=sites[2])
        waiting = {**own, "task": f"<b>{EVIL[3]}", "expiry": 1.0}
        bad = {"kind": "VehicleIdle", "time": 0.0, "vehicle": EVIL[3], "site": EVIL[0]}
        decide = {"kind": "Decide", "time": 0.0}
        told = [own, {**own, "task": "u"}, decide, waiting, bad, {"kind": EVIL[3]}]
        tell("POST", "/events", "".join(map(format_line, told)))
        chrome.get_log("browser")
        see(chrome, tell.url, width=400)
        assert ask(chrome, "document.images.length") == 0
        assert read_rows(chrome, "waiting")[0][0] == f"<b>{EVIL[3]}"
        assert any(EVIL[3] in row[1] for row in read_rows(chrome, "orders"))
        assert len(read_rows(chrome, "refused")) == 2
        assert [row[0] for row in read_rows(chrome, "vehicles")] == [EVIL[1], EVIL[2]]
        assert ask(chrome, "document.documentElement.scrollWidth") <= 400
        assert chrome.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
def test_batteries_service_and_a_fleet_that_grows(chrome, tmp_path):
    with serving(tmp_path / "day.jsonl", make_powered().layout, page=PAGE) as tell:
        own = {"time": 1.0, "vehicle": "v1"}
        told = [task("t1"), {"kind": "VehicleLevel", **own, "percent": 12.5}]
        told += [{"kind": "VehicleOutOfService", **own}, {"kind": "Decide", "time": 1.0}]
        tell("POST", "/events", "".join(map(format_line, told)))
        see(chrome, tell.url)
        rows = {row[0]: row for row in read_rows(chrome, "vehicles")}
        assert rows["v1"][1].replace("\u00a0", " ") == "out of service, 12.5 %"
        assert "level of the battery" in read_text(chrome, "legend")
        added = {"kind": "VehicleAdded", "time": 2.0, "vehicle": "w", "site": "st2"}
        tell("POST", "/events", format_line(added))
        wait(lambda: read_rows(chrome, "vehicles")[-1][0] == "w")
        assert chrome.find_elements("css selector", "#tip:not([hidden])") == []


def test_themes(chrome, tmp_path):
    ground = "getComputedStyle(document.body).backgroundColor"
    with serving(tmp_path / "day.jsonl", page=PAGE) as tell:
        see(chrome, tell.url, prefers_color_scheme="dark")
        dark = ask(chrome, ground)
        chrome.find_element("id", "theme").click()
        light = ask(chrome, ground)
        see(chrome, tell.url, prefers_color_scheme="light")
        assert ask(chrome, ground) == light != dark
