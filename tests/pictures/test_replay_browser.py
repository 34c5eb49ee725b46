"""The replay page in a browser: what it shows is what the simulator has, and nothing leaves it."""

import socket
import time
from datetime import datetime

import numpy as np
import pytest
from browser import ask, emulate, skip_without_browser
from pages import EVIL, make_chained, make_instance, make_meeting, make_powered
from worlds import make_task

import acerl_np
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.pictures.replay import write_replay
from acerl_np.policies.general import make_general
from acerl_np.simulation.scene import STATUSES

skip_without_browser()
pytestmark = pytest.mark.browser


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


def seek(chrome, moment):
    chrome.execute_script("player.seek(arguments[0])", moment)


def read_texts(chrome, selector):
    words = "[...document.querySelectorAll(arguments[0])].map((n) => n.textContent.trim())"
    return ask(chrome, words, selector)


def read_figures(chrome, run=0):
    script = """
        const panel = document.querySelectorAll(".run")[arguments[0]];
        return Object.fromEntries(
            [...panel.querySelectorAll("dd")].map((n) => [n.dataset.figure, n.textContent]));
    """
    return chrome.execute_script(script, run)


def read_rows(chrome, table):
    words = """[...document.querySelectorAll(".run")[0].querySelectorAll(arguments[0] + " tbody tr")]
        .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    return ask(chrome, words, table)


def read_curves(chrome, now):
    words = """Object.values(player.episode.runs[0].curves)
        .map((curve) => curve.findLast(({ start }) => start <= arguments[0]).count)"""
    return ask(chrome, words, now)


def read_span(chrome):
    return ask(chrome, "[player.span.from, player.span.to]")


def read_time(chrome):
    return ask(chrome, "player.time")


def play_for(chrome, seconds):
    """At the highest speed."""
    chrome.execute_script("player.setSpeed(200); player.play()")
    time.sleep(seconds)
    chrome.execute_script("player.pause()")


def press(chrome, *keys):
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(chrome).send_keys(key).perform()


def name_state(trace, v, now):
    if any(own.vehicle == v and own.start <= now < own.end for own in trace.stops):
        return "broken"
    for trip in trace.trips:
        if trip.vehicle == v and trip.start <= now < trip.end:
            return "to pickup" if trip.pickup is None or now < trip.pickup else "loaded"
    return "idle"


def test_figures_are_those_of_the_trace_at_ten_moments(show, dmh):
    """What `tests/simulation/test_trace.py` sets beside the slow simulator."""
    trace = dmh[0]
    chrome = show(dmh)
    chrome.execute_script("document.querySelectorAll('details').forEach((n) => { n.open = true; })")
    instance, finish = trace.instance, trace.finish
    due = instance.arrival + instance.expiry
    moments = sorted({decision.time for decision in trace.decisions})
    moments = moments[:: max(1, len(moments) // 10)]
    assert len(moments) >= 10
    seen = set()
    for now in moments:
        taken = {trip.task for trip in trace.trips if trip.start <= now < trip.end}
        here = {k for k in range(30) if instance.arrival[k] <= now < finish[k]}
        waiting = {instance.tasks[k] for k in here - taken}
        seek(chrome, now)
        figures = read_figures(chrome)
        delay = np.maximum(0.0, np.minimum(finish, now) - due)
        expected = {"finished": f"{(finish <= now).sum()} of 30", "waiting": str(len(waiting))}
        expected |= {"late": f"{(delay > 1e-9).sum()}", "tardiness": f"{delay.mean():.1f} s"}
        assert {name: figures[name] for name in expected} == expected
        assert {row[0] for row in read_rows(chrome, ".waiting")} == (waiting or {"none"})
        assert read_curves(chrome, now) == [len(waiting), ((finish > now) & (delay > 1e-9)).sum()]
        states = [tuple(row[:2]) for row in read_rows(chrome, ".vehicles")]
        assert states == [(f"v{v}", name_state(trace, v, now)) for v in range(3)]
        seen |= {state for _, state in states}
    assert seen >= {"to pickup", "loaded", "broken"}
    seek(chrome, 1e9)
    for run, own in enumerate(dmh):
        figures = read_figures(chrome, run)
        assert figures["outcome"] == f"{own.makespan:,.0f} s / {own.tardiness:.1f} s · finished"
        assert figures["service"] == f"{100 * own.late:.1f} % / {own.waiting:.1f} s"
        assert figures["tardiness"] == f"{own.tardiness:.1f} s"
        assert figures["finished"] == "30 of 30"


@pytest.mark.parametrize("powered", [False, True])
def test_vehicles_are_where_the_trace_has_them_and_do_what_it_says(show, powered):
    instance = make_powered() if powered else make_instance()
    trace = trace_policy("nearest" if powered else "STD", instance)
    chrome = show([trace], prefers_color_scheme="dark")
    times, fleet = np.linspace(0.0, trace.end, 301).tolist(), range(len(instance.layout.vehicles))
    script = """
        const { sites, runs: [run] } = player.episode;
        return arguments[0].map((time) => arguments[1].map((v) => {
            const { a, b, part } = run.locate(v, time);
            const [p, q] = [sites[a], sites[b]];
            const place = [p.x + part * (q.x - p.x), p.y + part * (q.y - p.y)];
            return [place, run.findState(v, time).state, run.findLevel(v, time)];
        }));
    """
    seen = set()
    for now, found in zip(times, chrome.execute_script(script, times, [*fleet]), strict=True):
        for v, (place, state, level) in enumerate(found):
            assert place == pytest.approx(trace.locate(v, now), abs=0.02), (now, v)
            own = [x for x in trace.auxiliary_moves if x.vehicle == v and x.start <= now < x.end]
            expected = STATUSES[own[0].status] if own else name_state(trace, v, now)
            assert state.replace("parked", "idle") == expected
            seen.add(state)
            if powered:
                capacity = instance.layout.battery.capacity
                assert level == pytest.approx(trace.find_level(v, now) / capacity)
    assert seen >= {"idle", "to pickup", "loaded", "broken"}
    if not powered:
        return
    assert seen > {"parked", "charging"}
    recalled = [trip for trip in trace.trips if trip.recall is not None]
    assert recalled and len({own.status for own in trace.auxiliary_moves}) == 5
    texts = read_texts(chrome, ".recalls td:last-child")
    assert len(texts) == len(recalled)
    for text, trip in zip(texts, sorted(recalled, key=lambda trip: trip.recall), strict=True):
        assert text.startswith(f"v{trip.vehicle} l") and trace.instance.tasks[trip.task] in text
    k = min(trip.recall for trip in recalled)
    chrome.execute_script(f"for (let n = 0; n <= {k}; n++) player.stepDecision(1)")
    assert texts[0] in read_texts(chrome, ".chosen")[0]
    for now in times[::30]:  # nothing that is drawn or told complains
        seek(chrome, now)


def test_nothing_reaches_the_network(show, dmh):
    chrome = show(dmh)
    assert ask(chrome, "performance.getEntriesByType('resource').length") == 0
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
    # Who wants less motion sees few pictures.
    chrome = show(dmh, prefers_reduced_motion="reduce")
    chrome.execute_script("player.play()")
    time.sleep(1.2)
    assert 1 <= ask(chrome, "player.frames") <= 3


def test_keys(show, dmh):
    from selenium.webdriver.common.keys import Keys

    chrome = show(dmh)
    press(chrome, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert read_time(chrome) == 10
    press(chrome, Keys.END)
    assert read_time(chrome) == max(trace.end for trace in dmh)
    press(chrome, Keys.HOME)
    assert read_time(chrome) == 0
    before = ask(chrome, "player.speed")
    press(chrome, "+", "+", Keys.ARROW_DOWN)
    assert ask(chrome, "player.speed") > before
    assert chrome.find_element("id", "speed").get_attribute("value") != str(before)
    # The slider goes where it is put.
    script = """
        const slider = document.getElementById("time");
        slider.value = "640";
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        return [document.getElementById("clock").textContent, slider.getAttribute("aria-valuetext")];
    """
    assert chrome.execute_script(script) == ["640 s · 0:10:40"] * 2
    press(chrome, Keys.SPACE)
    assert ask(chrome, "player.playing")
    press(chrome, Keys.SPACE)
    assert not ask(chrome, "player.playing")
    press(chrome, "?")
    assert chrome.find_element("id", "keys").is_displayed()
    press(chrome, Keys.ESCAPE)
    assert not chrome.find_element("id", "keys").is_displayed()
    # A button that has the focus takes the space bar itself.
    chrome.execute_script("document.getElementById('forward').focus()")
    press(chrome, Keys.SPACE)
    assert read_texts(chrome, "#announce") != [""]
    assert not ask(chrome, "player.playing")


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
    seek(chrome, 1)
    press(chrome, "j")
    assert read_time(chrome) == 0
    seek(chrome, 1)
    press(chrome, ".")
    assert read_time(chrome) == later
    assert read_texts(chrome, "#announce") != [""]
    # At speed nothing is read out.
    [told] = read_texts(chrome, "#announce")
    play_for(chrome, 0.5)
    assert read_texts(chrome, "#announce") == [told]


def test_two_policies_have_their_decisions_by_time_and_a_chart_each(show, dmh):
    from selenium.webdriver import ActionChains

    chrome, found = show(dmh), []
    for _ in range(12):
        press(chrome, ".")
        found.append(read_time(chrome))
    assert found == sorted(d.time for trace in dmh for d in trace.decisions)[:12]
    assert set(ask(chrome, "player.decisions.slice(0, 6).map((d) => d.panel)")) == {0, 1}
    # A click into a chart goes there.
    chrome.find_element("id", "restart").click()
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
    seek(chrome, 900)
    press(chrome, "i")
    assert read_span(chrome) == [450, 450 + end / 2]  # the clock stays where it is
    assert read_texts(chrome, ".span")[0].startswith("450 s to ")
    press(chrome, "l", "l")
    assert read_span(chrome) == [end / 2, end]
    press(chrome, *"hhh")
    assert read_span(chrome)[0] == 0
    for button in chrome.find_elements("css selector", ".run:first-child [data-zoom='in']") * 9:
        button.click()
    a, b = read_span(chrome)
    assert b - a == 30
    # The charts go with the clock, also while it runs.
    seek(chrome, 1200)
    a, b = read_span(chrome)
    assert a <= 1200 <= b and b - a == 30
    play_for(chrome, 0.5)
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
    ends = [((7 * k) % 256 // 19 * 19, (11 * k + 1) % 256 // 37 * 37) for k in range(150)]
    rows = [make_task(f"t{k}", ids[a], ids[b], 0, 60) for k, (a, b) in enumerate(ends) if a != b]
    instance = acerl_np.Instance.from_rows("crowd", acerl_np.Layout.from_dict(grid), rows)
    chrome = show([trace_policy("EDD", instance)])
    seek(chrome, 1)
    assert len(read_rows(chrome, ".waiting")) == len(rows) - 2 > 100
    script = """
        const view = player.panels[0].floor, { context } = view.layer, texts = [];
        context.fillText = (text, x, y) => {
            texts.push([text, x, y - 9, x + context.measureText(text).width, y + 2]);
        };
        view.drawSites(view.layer);
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


def test_hostile_names_stay_text(show):
    chrome = show([trace_policy("EDD", make_instance(EVIL), label=EVIL[3])])
    chrome.execute_script("document.querySelector('details').open = true; player.seek(30)")
    chrome.execute_script("player.stepDecision(1)")
    assert ask(chrome, "document.images.length") == 0
    assert read_texts(chrome, ".run h2") == [EVIL[3]]
    assert [row[0] for row in read_rows(chrome, ".vehicles")] == [EVIL[1], EVIL[2]]
    assert EVIL[3] in read_texts(chrome, ".chosen")[0]
    assert EVIL[3] in chrome.title
    for width in (360, 1000):
        emulate(chrome, width)
        assert ask(chrome, "document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("count", [1, 2])
def test_it_fits_every_width(show, dmh, width, count):
    chrome = show(dmh[:count], width=width)
    assert ask(chrome, "document.documentElement.scrollWidth") <= width
    words = "[...document.querySelectorAll('.run')].map((n) => n.getBoundingClientRect().top)"
    tops = ask(chrome, words)
    assert (len(set(tops)) == 1) == (count == 1 or width == 1400)  # else below each other


def test_themes(show, dmh):
    ground = "getComputedStyle(document.body).backgroundColor"
    chrome = show(dmh, prefers_color_scheme="dark")
    dark = ask(chrome, ground)
    chrome.find_element("id", "theme").click()
    light = ask(chrome, ground)
    assert ask(show(dmh, prefers_color_scheme="light"), ground) == light != dark


def test_pictures_have_words(show, dmh):
    chrome = show(dmh)
    seek(chrome, 820)
    labels = ask(
        chrome, "[...document.querySelectorAll('canvas[role=img]')].map((n) => n.ariaLabel)"
    )
    assert labels[0].startswith("Floor at 820 s. v0: ") and "v1: broken" in labels[0]
    most = "at most 6 waiting, at 1,481 s; at most 3 late, at 1,095 s"
    assert labels[1] == f"Curves of tasks over 1,820 s: {most}"
    assert "30 tasks delivered" in labels[2] and "3 breakdowns" in labels[2]
    words = """[...document.querySelectorAll('button, select, input, [tabindex="0"]')]
        .filter((n) => !(n.ariaLabel || n.textContent.trim())).length"""
    assert ask(chrome, words) == 0


def test_the_records_own_time_and_an_episode_that_was_stopped(show):
    instance = make_instance(epoch=datetime(2024, 5, 6, 7, 8, 9))
    chrome = show([trace_policy("EDD", instance, horizon=40.0)])
    seek(chrome, 20)
    assert read_texts(chrome, "#clock") == ["20 s · 2024-05-06 07:08:29"]
    seek(chrome, 1e9)
    assert read_figures(chrome)["outcome"] == "– (stopped)"
    assert read_time(chrome) == 40


@pytest.mark.slow
def test_machines_and_vehicles_that_wait_for_a_task(show):
    trace = trace_policy("edd-nearest", make_chained())
    chrome = show([trace])
    trip = next(trip for trip in trace.trips if trip.pause)
    time = trip.pickup - trip.pause
    state, words = chrome.execute_script(
        "const [v, t] = arguments, { run } = player.panels[0]; player.seek(t);"
        "return [run.findState(v, t).state, player.panels[0].describe(t)]",
        trip.vehicle,
        time,
    )
    assert state == "waits until the task is ready"
    tasks, sites = trace.instance.tasks, [item.site for item in trace.instance.layout.machines]
    for own in trace.processing:
        if own.start <= time < own.end:
            assert f"{sites[own.machine]}: processes {tasks[own.task]} until {own.end} s" in words
    assert "processing" in read_texts(chrome, "#legend span")
    rows = ask(chrome, "player.panels[0].gantt.names")
    assert rows == ["v1", "v2", "m1", "m1", "m2", "m3", "m4"]


def test_where_a_baseline_decides_in_the_place_of_a_policy(show):
    """A band lasts to the next decision; at last tasks come one by one, and the policy decides again."""
    policy = make_general("makespan").switch(1.5)
    trace = trace_policy(policy, acerl_np.load_instance("DMH-01"))
    chrome = show([trace])
    by = [decision.reason.by for decision in trace.decisions]
    ends = [*(decision.time for decision in trace.decisions[1:]), trace.end]
    assert set(by) == {"index", "nearest"}
    handed = ask(chrome, "player.episode.runs[0].handed")
    assert {own["by"] for own in handed} == {"nearest"}
    for name, decision, end in zip(by, trace.decisions, ends, strict=True):
        inside = [own for own in handed if own["start"] <= decision.time and end <= own["end"]]
        assert end == decision.time or bool(inside) == (name == "nearest")
    assert "nearest decides" in read_texts(chrome, "#legend span")


@pytest.mark.compiles
def test_vehicles_that_wait_in_traffic_and_for_whom(show):
    chrome = show([trace_policy("nearest", make_meeting())] * 2)
    chrome.execute_script("document.querySelector('details').open = true")
    states = {}
    for moment in (1, 10, 31, 33):
        seek(chrome, moment)
        states[moment] = read_rows(chrome, ".vehicles")[1][2]
        waits = ask(
            chrome, "player.panels[1].floor.vehicles.map(({ wait }) => wait?.holder ?? null)"
        )
        assert waits == [None, 0 if 2 <= moment < 32 else None]
    waits = "waits for v0 at D, next c"
    assert states == {1: "at D", 10: waits, 31: waits, 33: "from D to c"}
    seek(chrome, 10)
    assert f"v1: loaded, t1 {waits}; 1 waits for others" in ask(
        chrome, "player.panels[0].describe(10)"
    )
    # Heat of the lane c - D and of the place D, and a strip below the bar, which tells it, too.
    waited = "Object.values(player.episode.runs[0].waited).map((map) => [...map])"
    assert ask(chrome, waited) == [[[3, 30]], [["2,3", 30]]]
    point = "const g = player.panels[0].gantt; return g.describePoint(g.toX(10), 4 + 1.5 * g.row)"
    assert chrome.execute_script(point).endswith(f"\n{waits}")
    blank = """[...document.querySelectorAll("#legend canvas")].filter((canvas) => !canvas
        .getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)).length"""
    assert ask(chrome, blank) == 0
    legend = " ".join(read_texts(chrome, "#legend span"))
    assert "waits for another vehicle" in legend and "whole episode: at most 30 s" in legend
    emulate(chrome, 360)
    assert ask(chrome, "document.documentElement.scrollWidth") <= 360
