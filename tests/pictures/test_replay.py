"""The replay page as a file: what it holds, what it may do, how large it is; no browser."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import EVIL, HOSTILE, make_chained, make_instance, make_meeting

import acerl_np
from acerl_np import IndexPolicy, Instance
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.pictures.replay import _read, format_data, join_modules, make_replay, write_replay


class Reader(HTMLParser):
    """Texts of the style and script elements, and the content of the policy."""

    def __init__(self, page):
        super().__init__()
        self.found, self.tags, self.inside, self.policy = [], [], None, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.inside = (tag, attrs.get("type", "")) if tag in ("script", "style") else None
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]

    def handle_data(self, data):
        if self.inside is not None:
            self.found.append((*self.inside, data))
            self.inside = None

    def part(self, tag, kind=""):
        [text] = [text for t, k, text in self.found if (t, k) == (tag, kind)]
        return text


def read_data(page):
    return json.loads(Reader(page).part("script", "application/json"))


@pytest.fixture(scope="module")
def dmh():
    instance = acerl_np.load_instance("DMH-01")
    return [trace_policy(rule, instance) for rule in ("STD", "EDD")]


def test_a_page_is_small_and_its_policy_allows_this_script_and_this_style_alone(dmh, tmp_path):
    for count in (1, 2):
        write_replay(dmh[:count], tmp_path / "page.html")
        assert 30_000 < (tmp_path / "page.html").stat().st_size < 300_000
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        kind = "module" if tag == "script" else ""
        digest = hashlib.sha256(page.part(tag, kind).encode()).digest()
        assert rules.pop(rule) == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert not rules
    # What the policy would block is not there to begin with.
    for tag, attrs in page.tags:
        assert tag not in ("img", "link", "iframe", "object", "embed", "base")
        assert not {"src", "href", "style"} & set(attrs)
        assert not any(name.startswith("on") for name in attrs)
    # The script sets texts only.
    script = page.part("script", "module")
    assert "textContent" in script
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http"):
        assert word not in script


DECLARED = re.compile(r"^(?:export )?(?:async )?(?:class|function|const|let) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("name", ["replay", "live"])
def test_modules_become_one_script_in_an_order_in_which_it_runs(name):
    script, folder = "".join(join_modules(name)), files("acerl_np.pictures") / "page"
    sources = [x.read_text(encoding="utf-8") for x in folder.iterdir() if x.name.endswith(".js")]
    assert not re.search(r"^(import|export|//|/\*|\*) ", script, re.MULTILINE)
    # They share one scope.
    names = [name for source in sources for name in DECLARED.findall(source)]
    assert len(names) == len(set(names)) > 50
    for parent in re.findall(r"^class \w+ extends (\w+)", script, re.MULTILINE):
        assert f"class {parent} " in script.split(f" extends {parent} ")[0]


@given(st.text())
def test_any_text_stays_inside_its_element(text):
    written = format_data([text])
    assert json.loads(written) == [text]
    assert not set(written) & set("<>&\u2028\u2029")


def test_hostile_names_stay_data():
    page = make_replay(trace_policy("EDD", make_instance(EVIL), label=HOSTILE))
    data = read_data(page)
    assert [site[0] for site in data["sites"]] == list(EVIL)
    assert data["runs"][0]["label"] == data["layout"] == HOSTILE
    plain = make_replay(trace_policy("EDD", make_instance(), label="EDD"))
    assert Reader(page).tags == Reader(plain).tags  # no element more
    head = page.split('type="application/json"')[0]
    assert "onerror" not in "".join(re.findall(r"<[^>]*>", head))


def test_the_objective_and_the_parts_of_scores_are_in_the_data():
    policy = IndexPolicy.of_weights(approach=-1.0, loaded=-1.0, total_late=-0.5)
    trace = trace_policy(policy, make_instance(), objective="late+0.05*waiting")
    [run] = read_data(make_replay(trace))["runs"]
    value = 100 * trace.late + 0.05 * trace.waiting
    assert trace.value == pytest.approx(value)
    assert run["objective"] == f"late+0.05*waiting: {value:.2f}"
    texts, told = run["texts"], 0
    for written, decision in zip(run["decisions"], trace.decisions, strict=True):
        parts = written[7] if len(written) > 7 else []
        told += len(parts)
        assert [(texts[a], texts[b]) for a, b, _, _ in parts] == [
            part[:2] for part in decision.reason.parts
        ]
        for row, part in zip(parts, decision.reason.parts, strict=True):
            assert row[2:] == pytest.approx(part[2:], rel=1e-2)
        outlooks = written[8] if parts else []
        for row, outlook in zip(outlooks, decision.reason.outlooks, strict=True):
            assert (*row[:2], texts[row[2]]) == outlook[:3] and texts[row[2]] == "all is"
            assert row[3:] == pytest.approx(outlook[3:], rel=1e-3)
    assert told > 10
    stopped = trace_policy(policy, make_instance(), objective="late", horizon=60.0)
    assert read_data(make_replay(stopped))["runs"][0]["objective"] == "late: –"


def read_way(run, trip):
    """(start, origin, target, seconds, shares) of the legs of a trip on the page."""
    starts, legs = trip[3][::2], trip[3][1::2]
    return [
        (start + begin, origin, target, reach - begin, shares or [0, 1])
        for start, leg in zip(starts, legs, strict=True)
        for begin, origin, target, reach, *shares in run["legs"][leg]
    ]


@pytest.mark.parametrize("rule", ["EDD", "STD", "MIX"])
def test_the_data_are_those_of_the_trace(rule):
    trace = trace_policy(rule, make_instance())
    data = read_data(make_replay(trace))
    tasks, [run] = data["tasks"], data["runs"]
    own = trace.makespan, trace.tardiness, trace.late, trace.waiting
    names = "makespan", "tardiness", "late", "waiting"
    assert [run[name] for name in names] == pytest.approx(own)
    assert run["objective"] == ""
    assert [t[3] for t in tasks] == np.ceil(trace.instance.arrival).tolist()
    ends = {
        d[2]: trip[0] for d, trip in zip(run["decisions"], run["trips"], strict=True) if trip[2]
    }
    assert [ends[k] for k in range(len(tasks))] == trace.finish.tolist()
    delay = [max(0.0, ends[k] - due) for k, (*_, due) in enumerate(tasks)]
    assert delay == pytest.approx(trace.lateness, abs=1e-9)
    assert [d[:3] for d in run["decisions"]] == [[*d[:3]] for d in trace.decisions]
    for written, decision in zip(run["decisions"], trace.decisions, strict=True):
        assert run["texts"][written[3]] == decision.reason.by
        chosen = written[6][written[5]] if written[6] else None
        assert chosen is None or chosen[:2] == list(decision[1:3])
        values = [a.value for a in decision.reason.alternatives]
        assert [a[3] for a in written[6]] == pytest.approx(values, rel=1e-5)
    assert [tuple(stop) for stop in run["stops"]] == [stop[:3] for stop in trace.stops] != []
    for written, trip in zip(run["trips"], trace.trips, strict=True):
        for row, step in zip(read_way(run, written), trip.steps, strict=True):
            assert row[:3] == (step.start, step.origin, step.target)
            drives = (step.last - step.first) / step.pace
            assert [row[3], *row[4]] == pytest.approx([drives, step.first, step.last], abs=1e-3)


def test_a_network_followed_one_rule_of_several_that_pick_one_task():
    instance = acerl_np.load_instance("DMH-01")
    config = acerl_np.Config(generations=1, population=2, hidden=(4,))
    policy = acerl_np.ACERL(instance, config, seed=0).policy
    trace = trace_policy(policy, instance)
    [run] = read_data(make_replay(trace))["runs"]
    checked = 0
    for written, decision in zip(run["decisions"], trace.decisions, strict=True):
        rule = decision.reason.by.removeprefix("network, ")
        chosen = written[6][written[5]]
        assert [*chosen[:2], run["texts"][chosen[2]]] == [*decision[1:3], rule]
        checked += written[5] > 0
    assert checked > 3


def test_a_stopped_episode_and_the_records_own_clock_whatever_its_zone():
    rows = make_instance().rows()
    for row in rows:
        row["arrival_time"] = f"2024-05-06T07:08:{int(row['arrival_time']) % 60:02}+05:30"
    instance = Instance.from_rows("zoned", make_instance().layout, rows)
    data = read_data(make_replay(trace_policy("EDD", instance)))
    assert data["epoch"] == "2024-05-06T07:08:00.000"
    [run] = read_data(make_replay(trace_policy("EDD", make_instance(), horizon=40.0)))["runs"]
    assert (run["makespan"], run["tardiness"], run["status"]) == (None, None, "stopped")
    assert run["end"] == 40 and 0 < sum(trip[2] for trip in run["trips"]) < 9


def test_what_cannot_be_shown_together_is_refused(dmh):
    other = trace_policy("EDD", acerl_np.load_instance("DMH-02"))
    for traces, words in (
        ([], "read 0; expected one or two"),
        ([*dmh, dmh[0]], "read 3; expected one or two"),
        ([dmh[0], other], "'DMH-01' and 'DMH-02'; expected the same tasks"),
    ):
        with pytest.raises(acerl_np.InputError, match=words):
            make_replay(traces)


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


TEXTS = [
    *((text, ground) for text in ("ink", "muted", "alarm") for ground in ("panel", "ground")),
    *(("on-load", "load"), ("on-alarm", "alarm"), ("ink", "control"), ("panel", "ink")),
]


@pytest.mark.parametrize("theme", [":root", ':root\\[data-theme="dark"\\]'])
def test_texts_stand_out_from_their_ground(theme):
    block = re.search(rf"^{theme} {{(.*?)}}", _read("replay.css"), re.MULTILINE | re.DOTALL)[1]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    for text, ground in TEXTS:
        ratio = contrast(colours[text], colours[ground])
        assert ratio >= 4.5, f"{text} on {ground}: {ratio:.2f}"
    # Marks are told apart in grey, too: by their lightness beside their shapes.
    assert contrast(colours["fetch"], colours["load"]) > 1.1
    assert contrast(colours["mark"], colours["panel"]) >= 3.0


def test_a_page_of_chains_has_machines_and_when_tasks_are_ready(dmh):
    trace = trace_policy("edd-nearest", make_chained())
    page = make_replay(trace)
    [run], tasks = read_data(page)["runs"], read_data(page)["tasks"]
    assert all(len(task) == 3 for task in tasks) and "machines" not in read_data(make_replay(dmh))
    after, due = trace.instance.after.tolist(), trace.ready + trace.instance.expiry
    assert [job[2] for job in run["jobs"]] == after
    assert [job[1] for job in run["jobs"]] == [x if np.isfinite(x) else None for x in due]
    for (begin, *_), ready, task in zip(run["jobs"], trace.ready, range(len(after)), strict=True):
        assert begin == min(ready, next(trip.start for trip in trace.trips if trip.task == task))
    assert sum(len(work) for _, work in run["machines"]) == len(trace.processing) == len(tasks)
    sites = [data[0] for data in read_data(page)["sites"]]
    assert [sites[site] for site, _ in run["machines"]] == ["m1", "m1", "m2", "m3", "m4"]
    pauses = [trip[5] for trip in run["trips"] if len(trip) > 5]
    assert pauses == [trip.pause for trip in trace.trips if trip.pause] != []


@pytest.mark.compiles
def test_a_page_of_vehicles_that_meet_has_who_waits_for_whom(dmh):
    trace = trace_policy("nearest", make_meeting())
    page = make_replay(trace)
    assert read_data(page)["runs"][0]["waits"] == [[1, 2, 32, 3, 2, 0]]
    assert "waits" not in read_data(make_replay(dmh))["runs"][0]
