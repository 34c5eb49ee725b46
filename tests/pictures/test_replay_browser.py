"""The replay page in a browser: what it shows is what the simulator has, and nothing leaves it."""

from __future__ import annotations

import socket
import time
from datetime import datetime

import numpy as np
import pytest
from browser import emulate, open_browser, skip_without_browser
from episodes import list_waiting
from pages import EVIL, make_instance

import acerl_np
from acerl_np import Simulator
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.state import (
    BROKEN,
    EPISODE_N_FINISHED,
    IDLE,
    TO_DELIVERY,
    VEHICLE_LEG,
    VEHICLE_STATUS,
)
from acerl_np.pictures.replay import write_replay

skip_without_browser()
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def dmh():
    instance = acerl_np.load_instance("DMH-01")
    return [trace_policy(rule, instance) for rule in ("STD", "EDD")]


@pytest.fixture
def show(chrome, tmp_path):
    """Open the page of some traces; at the end nothing may have been complained about."""

    def open_page(traces, **media):
        emulate(chrome, **media)
        path = tmp_path / "page.html"
        write_replay(traces, path)
        chrome.get(path.as_uri())
        return chrome

    chrome.get_log("browser")
    yield open_page
    assert chrome.get_log("browser") == []


def read_texts(chrome, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((n) => n.textContent.trim())"
    return chrome.execute_script(script, selector)


def read_figures(chrome, run=0):
    script = """
        const panel = document.querySelectorAll(".run")[arguments[0]];
        return Object.fromEntries(
            [...panel.querySelectorAll("dd")].map((n) => [n.dataset.figure, n.textContent]));
    """
    return chrome.execute_script(script, run)


def read_rows(chrome, table, run=0):
    script = """
        const panel = document.querySelectorAll(".run")[arguments[1]];
        return [...panel.querySelectorAll(arguments[0] + " tbody tr")].map((row) =>
            [...row.cells].map((cell) => cell.textContent));
    """
    return chrome.execute_script(script, table, run)


def read_curves(chrome, now):
    script = """
        return Object.values(player.episode.runs[0].curves).map(({ times, counts }) =>
            counts[findLast(times, arguments[0])]);
    """
    return chrome.execute_script(script, now)


def read_span(chrome):
    return chrome.execute_script("return [player.span.from, player.span.to]")


def read_time(chrome):
    return chrome.execute_script("return player.time")


def press(chrome, *keys):
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(chrome).send_keys(key).perform()


def film(trace):
    """The simulator at each moment of a decision, after the decisions of that moment."""
    simulator = Simulator(trace.instance)
    pictures = {}
    for decision in trace.decisions:
        now = int(simulator.time[0])
        assert now == decision.time
        if now not in pictures:
            state = simulator.state
            finished = int(state.episode[0, EPISODE_N_FINISHED])
            waiting = set(list_waiting(state).tolist())
            pictures[now] = [finished, waiting, state.vehicle[0].copy(), set()]
        pictures[now][1].discard(decision.task)
        pictures[now][3].add(decision.vehicle)
        simulator.assign([decision.vehicle], [decision.task])
    assert simulator.done[0]
    return pictures, simulator


def name_state(row, v, new):
    if row[v, VEHICLE_STATUS] == BROKEN:
        return {"broken"}
    if v in new:
        return {"to pickup", "loaded"}  # which of them the simulator tells with its next tick
    if row[v, VEHICLE_STATUS] == IDLE:
        return {"idle"}
    return {"loaded" if row[v, VEHICLE_LEG] == TO_DELIVERY else "to pickup"}


def test_figures_are_the_simulators_at_ten_moments(show, dmh):
    trace = dmh[0]
    chrome = show(dmh)
    chrome.execute_script("document.querySelectorAll('details').forEach((n) => { n.open = true; })")
    pictures, simulator = film(trace)
    instance, schedule = trace.instance, simulator.schedule(0)
    ends = dict(zip(schedule.task, schedule.finish, strict=True))
    finish = np.array([ends[task] for task in instance.tasks])
    due = instance.arrival + instance.expiry
    moments = sorted(pictures)[:: max(1, len(pictures) // 10)]
    assert len(moments) >= 10
    seen = set()
    for now in moments:
        finished, waiting, vehicles, new = pictures[now]
        chrome.execute_script("player.seek(arguments[0])", now)
        figures = read_figures(chrome)
        delay = np.maximum(0.0, np.minimum(finish, now) - due)
        assert figures["finished"] == f"{finished} of 30"
        assert figures["waiting"] == str(len(waiting))
        assert figures["late"] == str(int((delay > 1e-9).sum()))
        assert figures["tardiness"] == f"{delay.mean():.1f} s"
        rows = read_rows(chrome, ".waiting")
        assert {row[0] for row in rows} == ({instance.tasks[k] for k in waiting} or {"none"})
        assert read_curves(chrome, now) == [
            len(waiting),
            int(((finish > now) & (delay > 1e-9)).sum()),
        ]
        for v, (name, state, _, _) in enumerate(read_rows(chrome, ".vehicles")):
            assert name == f"v{v}" and state in name_state(vehicles, v, new)
            seen.add(state)
    assert seen >= {"to pickup", "loaded", "broken"}
    for run, own in enumerate(dmh):
        ends = f"{own.makespan:,.0f} s / {own.tardiness:.1f} s"
        assert read_figures(chrome, run)["outcome"] == ends
        ends = f"{100 * own.late:.1f} % / {own.waiting:.1f} s"
        assert read_figures(chrome, run)["service"] == ends
    chrome.execute_script("player.seek(1e9)")
    for run, own in enumerate(dmh):
        assert read_figures(chrome, run)["tardiness"] == f"{own.tardiness:.1f} s"
        assert read_figures(chrome, run)["finished"] == "30 of 30"
    assert simulator.tardiness[0] == pytest.approx(trace.tardiness)


@pytest.mark.parametrize("rule", ["EDD", "STD"])
def test_vehicles_are_where_the_trace_has_them(show, rule):
    trace = trace_policy(rule, make_instance())
    chrome = show([trace])
    times = np.linspace(0.0, trace.end, 97).tolist()
    script = """
        const { sites, runs } = player.episode;
        return arguments[0].map((time) => arguments[1].map((v) => {
            const { a, b, part } = runs[0].locate(v, time);
            const [p, q] = [sites[a], sites[b]];
            return [p.x + part * (q.x - p.x), p.y + part * (q.y - p.y)];
        }));
    """
    found = chrome.execute_script(script, times, [0, 1])
    for time_, places in zip(times, found, strict=True):
        for v, place in enumerate(places):
            assert place == pytest.approx(trace.locate(v, time_), abs=0.02), (time_, v)


def test_nothing_reaches_the_network(show, dmh):
    chrome = show(dmh)
    assert chrome.execute_script("return performance.getEntriesByType('resource').length") == 0
    script = """
        const [address, done] = arguments, blocked = [];
        document.addEventListener("securitypolicyviolation", (e) => blocked.push(e.effectiveDirective));
        new Image().src = address + "/image";
        const script = document.createElement("script");
        script.src = address + "/script";
        document.body.append(script);
        fetch(address + "/fetch", { mode: "no-cors" }).catch(() => 0).then(() =>
            setTimeout(() => done(blocked.sort()), 300));
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        blocked = chrome.execute_async_script(script, address)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody called
            listener.accept()
    assert blocked == ["connect-src", "img-src", "script-src-elem"]
    chrome.get_log("browser")  # the refusals


def test_it_plays_when_told_and_stops_at_the_end(show, dmh):
    chrome = show(dmh)
    time.sleep(0.3)
    assert read_time(chrome) == 0
    chrome.find_element("id", "play").click()
    time.sleep(0.5)
    assert read_time(chrome) > 1 and read_texts(chrome, "#play") == ["Pause"]
    chrome.execute_script("player.setSpeed(200); player.seek(player.episode.end - 1)")
    time.sleep(0.5)
    assert read_time(chrome) == max(trace.end for trace in dmh)
    assert read_texts(chrome, "#play") == ["Play"]
    chrome.execute_script("player.setSpeed(20)")
    chrome.find_element("id", "play").click()  # from the start again
    time.sleep(0.2)
    assert 0 < read_time(chrome) < 100
    chrome.find_element("id", "restart").click()
    chrome.find_element("id", "play").click()
    assert read_time(chrome) < 30


def test_less_motion_means_few_pictures(show, dmh):
    chrome = show(dmh, prefers_reduced_motion="reduce")
    chrome.execute_script("player.play()")
    time.sleep(1.2)
    assert 1 <= chrome.execute_script("return player.frames") <= 3


def test_keys(show, dmh):
    from selenium.webdriver.common.keys import Keys

    chrome = show(dmh)
    press(chrome, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert read_time(chrome) == 10
    press(chrome, Keys.END)
    assert read_time(chrome) == max(trace.end for trace in dmh)
    press(chrome, Keys.HOME)
    assert read_time(chrome) == 0
    before = chrome.execute_script("return player.speed")
    press(chrome, "+", "+", Keys.ARROW_DOWN)
    assert chrome.execute_script("return player.speed") > before
    assert chrome.find_element("id", "speed").get_attribute("value") != str(before)
    press(chrome, Keys.SPACE)
    assert chrome.execute_script("return player.playing")
    press(chrome, Keys.SPACE)
    assert not chrome.execute_script("return player.playing")
    press(chrome, "?")
    assert chrome.find_element("id", "keys").is_displayed()
    press(chrome, Keys.ESCAPE)
    assert not chrome.find_element("id", "keys").is_displayed()
    # A button that has the focus takes the space bar itself.
    chrome.execute_script("document.getElementById('forward').focus()")
    press(chrome, Keys.SPACE)
    assert read_texts(chrome, "#announce") != [""]
    assert not chrome.execute_script("return player.playing")


def test_each_decision_is_shown_and_told(show, dmh):
    chrome = show(dmh[:1])
    trace = dmh[0]
    assert read_texts(chrome, "#announce") == [""]
    for k, decision in enumerate(trace.decisions):
        press(chrome, "." if k % 2 else "k")
        assert read_time(chrome) == decision.time
        vehicle, task = f"v{decision.vehicle}", trace.instance.tasks[decision.task]
        assert read_texts(chrome, ".decision h3") == [f"Decision {k + 1} of {len(trace.decisions)}"]
        [told] = read_texts(chrome, "#announce")
        assert f"{vehicle} takes {task}," in told and "by STD" in told
        rows = read_rows(chrome, ".alternatives")
        assert [float(row[3]) for row in rows] == pytest.approx(
            [item.value for item in decision.reason.alternatives], rel=1e-3
        )
        [picked] = read_texts(chrome, ".alternatives tr.picked td:nth-child(2)")
        assert picked == task
    press(chrome, ".")
    assert read_time(chrome) == trace.decisions[-1].time
    for decision in trace.decisions[-2::-1]:
        press(chrome, ",")
        assert read_time(chrome) == decision.time
    # Between two decisions: back to the last that has fallen, on to the next.
    later = next(d.time for d in trace.decisions if d.time > 1)
    chrome.execute_script("player.seek(1)")
    press(chrome, "j")
    assert read_time(chrome) == 0
    chrome.execute_script("player.seek(1)")
    press(chrome, ".")
    assert read_time(chrome) == later
    assert read_texts(chrome, "#announce") != [""]
    # At speed nothing is read out.
    [told] = read_texts(chrome, "#announce")
    chrome.execute_script("player.setSpeed(200); player.play()")
    time.sleep(0.5)
    chrome.execute_script("player.pause()")
    assert read_texts(chrome, "#announce") == [told]


def test_decisions_of_two_policies_come_in_the_order_of_time(show, dmh):
    chrome = show(dmh)
    times = sorted(d.time for trace in dmh for d in trace.decisions)
    found = []
    for _ in range(12):
        press(chrome, ".")
        found.append(read_time(chrome))
    assert found == times[:12]
    said = chrome.execute_script("return player.decisions.slice(0, 6).map((d) => d.panel)")
    assert set(said) == {0, 1}


def test_a_click_into_the_chart_goes_there(show, dmh):
    from selenium.webdriver import ActionChains

    chrome = show(dmh)
    chart = chrome.find_elements("css selector", ".gantt canvas")[1]
    chrome.execute_script("arguments[0].scrollIntoView({ block: 'center' })", chart)
    ActionChains(chrome).move_to_element(chart).click().perform()
    view = "const g = player.panels[1].gantt; return g.toTime(g.width / 2)"
    assert read_time(chrome) == pytest.approx(chrome.execute_script(view), abs=5)
    assert read_time(chrome) > 100
    tip = chrome.find_element("id", "tip")
    assert tip.is_displayed() and tip.text.startswith("v")


def test_keys_and_buttons_zoom_the_charts(show, dmh):
    chrome = show(dmh)
    end = max(trace.end for trace in dmh)
    assert read_span(chrome) == [0, end] and read_texts(chrome, ".span") == ["whole episode"] * 2
    chrome.execute_script("player.seek(900)")
    press(chrome, "i")
    assert read_span(chrome) == [450, 450 + end / 2]  # the clock stays where it is
    assert read_texts(chrome, ".span")[0].startswith("450 s to ")
    press(chrome, "l", "l")
    assert read_span(chrome) == [end / 2, end]
    for key in "hhh":
        press(chrome, key)
    assert read_span(chrome)[0] == 0
    for button in chrome.find_elements("css selector", ".run:first-child [data-zoom='in']") * 9:
        button.click()
    a, b = read_span(chrome)
    assert b - a == 30
    # The charts go with the clock, also while it runs.
    chrome.execute_script("player.seek(1200)")
    a, b = read_span(chrome)
    assert a <= 1200 <= b and b - a == 30
    chrome.execute_script("player.setSpeed(200); player.play()")
    time.sleep(0.5)
    chrome.execute_script("player.pause()")
    a, b = read_span(chrome)
    assert a <= read_time(chrome) <= b and a > 1200
    press(chrome, "0")
    assert read_span(chrome) == [0, end]


def test_wheel_and_drag_zoom_and_move_the_charts(show, dmh):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    chrome = show(dmh[:1])
    chart, day = (chrome.find_element("css selector", f".{x} canvas") for x in ("gantt", "day"))
    chrome.execute_script("arguments[0].scrollIntoView({ block: 'end' })", chart)
    top = "return window.scrollY"
    before = chrome.execute_script(top)
    origin = ScrollOrigin.from_element(chart)
    ActionChains(chrome).scroll_from_origin(origin, 0, -300).perform()
    a, b = read_span(chrome)
    assert 0 < a < b < dmh[0].end and chrome.execute_script(top) == before
    ActionChains(chrome).drag_and_drop_by_offset(chart, -100, 0).perform()
    assert read_span(chrome)[0] > a and read_time(chrome) == 0
    ActionChains(chrome).scroll_from_origin(origin, 0, 900).perform()
    assert read_span(chrome) == [0, dmh[0].end]
    # On the day: a new part, then the same part elsewhere, then its right end; twice shows all.
    at = "const d = player.panels[0].day; return d.toX(arguments[0]) - d.width / 2"

    def drag(first, last):
        places = [round(chrome.execute_script(at, x)) for x in (first, last)]
        chain = ActionChains(chrome).move_to_element_with_offset(day, places[0], 0).click_and_hold()
        chain.move_by_offset(places[1] - places[0], 0).release().perform()

    drag(400, 800)
    assert read_span(chrome) == pytest.approx([400, 800], abs=3)
    drag(600, 1000)
    assert read_span(chrome) == pytest.approx([800, 1200], abs=3)
    drag(1200, 1500)
    assert read_span(chrome) == pytest.approx([800, 1500], abs=3)
    ActionChains(chrome).double_click(day).perform()
    assert read_span(chrome) == [0, dmh[0].end]


def test_parts_of_a_score_add_up(show):
    policy = acerl_np.IndexPolicy.of_weights(
        approach=-1.0, imbalance=-1.0, total_late=-0.5, loaded=0.3
    )
    trace = trace_policy(policy, acerl_np.load_instance("DMH-01"))
    chrome = show([trace])
    told = 0
    for decision in trace.decisions:
        press(chrome, ".")
        parts = read_rows(chrome, ".parts") if decision.reason.parts else []
        assert chrome.find_element("class name", "parts").is_displayed() == bool(parts)
        if not parts:
            continue
        told += 1
        value = [float(x.replace("−", "-")) for _, _, x in parts]
        best, other = sorted((x.value for x in decision.reason.alternatives), reverse=True)[:2]
        assert parts[-1][0] == "in all" and value[-1] == pytest.approx(best - other, abs=0.006)
        assert sum(value[:-1]) == pytest.approx(value[-1], abs=0.03)
        assert [row[0] for row in parts[: len(decision.reason.parts)]] == [
            part.words for part in decision.reason.parts
        ]
    assert told > 10


def test_all_waiting_tasks_are_listed_and_all_stations_named(show):
    ids = [f"station {k}" for k in range(256)]
    grid = {
        "format": 1,
        "name": "grid",
        "sites": [{"id": x, "x": 9 * (k % 16), "y": 9 * (k // 16)} for k, x in enumerate(ids)],
        "edges": [{"a": ids[k], "b": ids[k + d]} for d in (1, 16) for k in range(256 - d)],
        "vehicles": [{"id": f"v{k}", "start": ids[k]} for k in range(2)],
        "stations": {"dock": [ids[19], ids[38]]},
    }
    rows = [
        {
            "task": f"t{k}",
            "pickup": ids[(7 * k) % 256 // 19 * 19],
            "delivery": ids[(11 * k + 1) % 256 // 37 * 37],
            "arrival_time": 0,
            "expiry_time": 60,
        }
        for k in range(150)
    ]
    rows = [row for row in rows if row["pickup"] != row["delivery"]]
    instance = acerl_np.Instance.from_rows("crowd", acerl_np.Layout.from_dict(grid), rows)
    chrome = show([trace_policy("EDD", instance)])
    chrome.execute_script("player.seek(1)")
    assert len(read_rows(chrome, ".waiting")) == len(rows) - 2 > 100
    script = """
        const view = player.panels[0].floor, { context } = view.layer, texts = [];
        context.fillText = (text, x, y) => {
            texts.push([text, x, y - 9, x + context.measureText(text).width, y + 2]);
        };
        view.drawSites(context);
        return [view.width, view.isCrowded, texts];
    """
    width, is_crowded, texts = chrome.execute_script(script)
    stations = {row[end] for row in rows for end in ("pickup", "delivery")}
    assert {ids[19], ids[38]} <= stations
    names = ["dock" if x in (ids[19], ids[38]) else x for x in stations]
    assert is_crowded and sorted(text[0] for text in texts) == sorted(names)
    for k, (_, a, b, c, d) in enumerate(texts):
        assert a >= 40 and c <= width and b >= 0
        assert all(a >= z or c <= x or b >= w or d <= y for _, x, y, z, w in texts[:k])


def test_the_slider_goes_where_it_is_put(show, dmh):
    chrome = show(dmh)
    script = """
        const slider = document.getElementById("time");
        slider.value = "640";
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        return [document.getElementById("clock").textContent, slider.getAttribute("aria-valuetext")];
    """
    assert chrome.execute_script(script) == ["640 s · 0:10:40"] * 2


def test_hostile_names_stay_text(show):
    chrome = show([trace_policy("EDD", make_instance(EVIL), label=EVIL[3])])
    chrome.execute_script("document.querySelector('details').open = true; player.seek(30)")
    chrome.execute_script("player.stepDecision(1)")
    assert chrome.execute_script("return document.images.length") == 0
    assert read_texts(chrome, ".run h2") == [EVIL[3]]
    assert [row[0] for row in read_rows(chrome, ".vehicles")] == [EVIL[1], EVIL[2]]
    assert EVIL[3] in read_texts(chrome, ".chosen")[0]
    assert EVIL[3] in chrome.title
    for width in (360, 1000):
        emulate(chrome, width)
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("count", [1, 2])
def test_it_fits_every_width(show, dmh, width, count):
    chrome = show(dmh[:count], width=width)
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= width
    tops = chrome.execute_script(
        "return [...document.querySelectorAll('.run')].map((n) => n.getBoundingClientRect().top)"
    )
    assert (len(set(tops)) == 1) == (count == 1 or width == 1400)  # else below each other


def test_themes(show, dmh):
    ground = "return getComputedStyle(document.body).backgroundColor"
    chrome = show(dmh, prefers_color_scheme="dark")
    dark = chrome.execute_script(ground)
    chrome.find_element("id", "theme").click()
    light = chrome.execute_script(ground)
    assert show(dmh, prefers_color_scheme="light").execute_script(ground) == light != dark


def test_pictures_have_words(show, dmh):
    chrome = show(dmh)
    chrome.execute_script("player.seek(820)")
    labels = chrome.execute_script(
        "return [...document.querySelectorAll('canvas[role=img]')].map((n) => n.ariaLabel)"
    )
    assert labels[0].startswith("Floor at 820 s. v0: ") and "v1: broken" in labels[0]
    most = "at most 6 waiting, at 1,481 s; at most 3 late, at 1,095 s"
    assert labels[1] == f"Curves of tasks over 1,820 s: {most}"
    assert "30 tasks delivered" in labels[2] and "3 breakdowns" in labels[2]
    assert (
        chrome.execute_script(
            "return [...document.querySelectorAll('button, select, input, [tabindex=\"0\"]')]"
            ".filter((n) => !(n.ariaLabel || n.textContent.trim())).length"
        )
        == 0
    )


def test_the_clock_shows_the_records_own_time(show):
    instance = make_instance(epoch=datetime(2024, 5, 6, 7, 8, 9))
    chrome = show([trace_policy("EDD", instance)])
    chrome.execute_script("player.seek(60)")
    assert read_texts(chrome, "#clock") == ["60 s · 2024-05-06 07:09:09"]


def test_an_episode_that_was_stopped(show):
    chrome = show([trace_policy("EDD", make_instance(), horizon=40.0)])
    chrome.execute_script("player.seek(1e9)")
    assert read_figures(chrome)["outcome"] == "– (stopped)"
    assert read_time(chrome) == 40
