"""The dispatcher as a service: messages that are answered, refused, told again after a kill."""

import gc
import json
import re
import sys
import types
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_plant import arrive_numbered as arrive
from live_plant import give_input, tell
from machine import needs_jit

import acerl_np
from acerl_np.commands import serve as serving
from acerl_np.live import events as E
from acerl_np.live import feed, orders, parts, watching
from acerl_np.live.clock import Asker
from acerl_np.live.service import Service
from acerl_np.live.wire import ASKED, FIELDS, format_line, make_schema, read_message
from acerl_np.live.worker import Worker
from acerl_np.problem.parts import Parking, ParkingPlace

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})


@pytest.mark.parametrize(("names", "first"), [("site", "st1"), ("node", "N-1")])
def test_orders_may_name_nodes(names, first):
    aliases = {"N-1": "st1", "station one": "st1", "N-0": "carport"}
    layout = replace(LAYOUT, aliases=aliases, parking=Parking((ParkingPlace("st1"),)))
    with acerl_np.Dispatcher(layout, "nearest") as dispatcher:
        service = Service(dispatcher, names=names)
        idle = next(iter(dispatcher.idle))
        order, _ = tell(service, kind="Send", time=1.0, vehicle=idle, site="station one")
        assert (order["kind"], order["site"]) == ("Park", first)
        state = tell(service, kind="State")[0]
        assert state["sites"][idle] == ("N-0" if names == "node" else "carport")
    with acerl_np.Dispatcher(layout, "nearest") as dispatcher:
        assert dispatcher.follow(1.0, idle, site="station one").site == "st1"


def test_orders_come_before_the_answer_that_they_come_of(tmp_path):
    with acerl_np.Dispatcher(LAYOUT, "nearest", audit=tmp_path / "day.jsonl") as dispatcher:
        service = Service(dispatcher, str(tmp_path / "live.npz"))
        ok = {"kind": "Ok", "next_time": None}
        assert tell(service, **arrive(1)) == [{**ok, "number": 1}]
        assert tell(service, **arrive(1)) == [{**ok, "number": 1}]  # again: ignored
        order, answer = tell(service, kind="Decide", time=3, number=2)
        assert (order["kind"], order["task"], order["time"]) == ("Assigned", "t1", 3)
        assert order["repeated"] is False and answer == {**ok, "number": 2}
        later = arrive(3, 4.0, earliest_start=60.0)
        assert tell(service, **later) == [{**ok, "number": 3, "next_time": 60.0}]
        tell(service, **arrive(4, 4.0))
        idle = next(iter(dispatcher.idle))
        by_hand = tell(service, kind="Assign", time=5.0, vehicle=idle, task="t4")
        assert by_hand[0]["rule"] == "manual" and by_hand[1]["kind"] == "Ok"
        assert tell(service, kind="Save")[0]["kind"] == "Ok"
        assert tell(service, kind="BeginDay", start=100.0)[0]["kind"] == "Ok"
    again = acerl_np.Dispatcher.load(tmp_path / "live.npz")
    assert set(again.under_way) == {"t1", "t4"} and again.planned == ("t3",)


REFUSED = [
    ("[1]", "message: read \\[1\\]; expected a JSON object"),
    ("{", "message: read {; expected a JSON object"),
    ("[" * 100_000, "expected a JSON object"),
    (" " * 1_000_001, "1,000,001 letters; expected at most 1,000,000"),
    ('{"kind": "TaskArived"}', "kind: read TaskArived; .*did you mean 'TaskArrived'"),
    ('{"kind": ["Decide"]}', "kind: read .*; expected one of"),
    ('{"kind": "Decide"}', "Decide: time: missing"),
    ('{"kind": "Decide", "time": "now"}', "Decide: time: read now; expected number or null"),
    ('{"kind": "Decide", "time": true}', "Decide: time: read True; expected number or null"),
    ('{"kind": "Decide", "time": null}', "expected seconds"),
    ('{"kind": "Decide", "time": 1e300}', "expected seconds of one clock"),
    ('{"kind": "Decide", "time": 1, "at": 2}', "Decide: at: unknown; expected time, number"),
    ('{"kind": "TaskCancelled", "time": 1, "task": "x"}', "task 'x' is unknown"),
    ('{"kind": "TaskReady", "time": 1, "task": 7}', "TaskReady: task: read 7; expected string"),
    ('{"kind": "VehicleIdle", "time": 1, "vehicle": "v0", "site": "st1"}', "vehicle 'v0' is idle"),
    ('{"kind": "Assign", "time": 1, "vehicle": "v9", "task": "t"}', "v9"),
    ('{"kind": "Send", "time": 1, "vehicle": "v0", "site": "st1"}', "st1"),
    ('{"kind": "Acknowledge"}', "Acknowledge: number: missing"),
    ('{"kind": "Acknowledge", "number": 1}', "read 1; expected 0 to 0, the last order's"),
    ('{"kind": "Acknowledge", "number": -1}', "read -1; expected 0 to 0, the last order's"),
    ('{"kind": "Save"}', "Save: no --state to write"),
    (json.dumps(arrive(1.5)), "TaskArrived: number: read 1.5; expected integer"),
    (json.dumps(arrive(1, expiry="soon")), "TaskArrived: expiry: read soon; expected number"),
]


def test_what_is_refused_changes_nothing(tmp_path):
    log = tmp_path / "day.jsonl"
    with acerl_np.Dispatcher(LAYOUT, "nearest", audit=log) as dispatcher:
        service, before = Service(dispatcher), log.read_bytes()
        for text, why in REFUSED:
            [answer] = service.answer(text)
            assert answer["kind"] == "Refused" and "\n" not in answer["why"]
            assert re.search(why, answer["why"]), answer["why"]
        assert log.read_bytes() == before and dispatcher.last_number is None
        assert tell(service, **arrive(1))[-1]["kind"] == "Ok"


def test_the_schema_has_every_event_with_what_it_needs():
    schema = make_schema()
    assert set(schema["$defs"]) == {*E.EVENTS, *ASKED}
    for name, kind in E.EVENTS.items():
        own = schema["$defs"][name]
        assert {*own["properties"]} == {"kind", "number", "hold", *(x.name for x in fields(kind))}
        assert own["required"][:2] == ["kind", "time"] and not own["additionalProperties"]
    assert json.loads(json.dumps(schema)) == schema


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 500),
    st.floats(),
    st.sampled_from(["v0", "st1", "t1"]),
)


@st.composite
def draw_messages(draw):
    kind = draw(st.sampled_from([*E.EVENTS, *ASKED, "x"]))
    known = [*FIELDS[kind][0]] if kind != "x" else ["time"]
    names = draw(st.lists(st.sampled_from([*known, "more"]), max_size=len(known)))
    return {"kind": kind, **{name: draw(VALUES) for name in names}}


@needs_jit
@given(st.lists(st.one_of(draw_messages().map(json.dumps), st.text(max_size=20)), max_size=12))
def test_whatever_is_told_is_answered_in_a_line(texts):
    service = Service(acerl_np.Dispatcher(LAYOUT, "FCFS"))
    for text in texts:
        answers = list(service.answer(text))
        assert [x["kind"] in ("Ok", "Refused") for x in answers] == [False] * (len(answers) - 1) + [
            True
        ]
        for answer in answers:
            line = format_line(answer)
            assert line.count("\n") == 1 and isinstance(json.loads(line), dict)
        if answers[-1]["kind"] == "Ok":
            read_message(text)
        else:
            assert answers[-1]["why"]


def test_the_command_goes_on_where_it_ended(empty, run, monkeypatch):
    def serve(*messages, status=0, words=""):
        lines = give_input(*map(format_line, messages))
        monkeypatch.setattr(serving.sys, "stdin", lines)
        out = run(f"serve nearest --layout dmh --log day.jsonl {words}", status).out
        return [json.loads(line) for line in out.splitlines()]

    first = serve(arrive(1), {"kind": "Decide", "time": 0.0}, words="--state live.npz --explain")
    assert [x["kind"] for x in first] == ["Ready", "Ok", "Assigned", "Ok"]
    assert first[2]["reason"]["by"] == "nearest" and (empty / "live.npz").exists()
    again = serve(
        arrive(1), arrive(2, 1.0), {"kind": "Decide", "time": 2.0}, words="--state live.npz"
    )
    assert again[0]["last_number"] == 1
    given = [(x["task"], x["repeated"]) for x in again if x["kind"] == "Assigned"]
    assert given == [("t1", True), ("t2", False)]
    later = serve({"kind": "Decide", "time": 3.0}, words="--state live.npz --log new.jsonl")
    assert later[0]["last_number"] == 2  # a new log may go on from the state
    schema = json.loads(run("serve --schema").out)
    assert schema == make_schema()
    assert "--layout: missing" in run("serve", 2).err
    assert "no --log: what is told is lost" in run("serve FCFS --layout dmh").err


def test_of_another_clock_it_is_refused_once():
    service, asker, now = Service(acerl_np.Dispatcher(LAYOUT, "nearest")), Asker(), 1.75e9
    tell(service, **arrive(1, 4.0, earliest_start=60.0))
    asker.note(now, opens=service.dispatcher.is_open, due=service.dispatcher.next_time)
    assert asker.is_due(now + 0.05)
    assert [x["kind"] for x in service.ask(now)] == ["Refused"] and service.in_a_row == 0


LIMITS = [
    *((feed, name) for name in ("MOST_RUNS", "MOST_EXPIRED")),
    *((orders, name) for name in ("MOST_KEPT", "MOST_LATEST", "MOST_LISTED")),
    *((parts, name) for name in ("MOST_SEEN", "MOST_ENDED")),
    *((watching, name) for name in ("MOST_ENDED", "MOST_SAMPLES")),
]
"""What bounds the memory of a service, whatever its age."""


def count_bytes(root):
    """Return the bytes of all objects that one leads to, but for code."""
    code = type | types.ModuleType | types.FunctionType | types.BuiltinFunctionType
    known, left = {id(root): root}, [root]
    while left:
        more = {id(x): x for x in gc.get_referents(left.pop()) if not isinstance(x, code)}
        left += (x for key, x in more.items() if key not in known)
        known |= more
    return sum(map(sys.getsizeof, known.values()))


def live_on(door, rounds, *, shadow):
    """Let a service live so many tasks; return the bytes that it has at most, counted after every tenth."""
    service, most = door.worker.service, 0
    for k in rounds:
        time, number = 100.0 * k, 10 * k  # with gaps
        (free,) = service.dispatcher.idle
        tell(service, **arrive(number, time))
        order = {"kind": "Assign", "vehicle": "v9" if k % 2 else free, "task": f"t{number}"}
        door.keep(tell(service, time=time, **(order if shadow else {"kind": "Decide"})))
        if shadow and k % 2:
            tell(service, kind="Assign", time=time, vehicle=free, task=f"t{number}")
        door.keep(tell(service, kind="Save"))  # refused
        idle = {"kind": "VehicleIdle", "vehicle": free, "site": "st5", "number": number + 2}
        assert tell(service, time=time + 90.0, **idle)[-1]["kind"] == "Ok"
        repaired = {"kind": "VehicleRepaired", "vehicle": free, "number": number + 4}
        tell(service, time=time + 90.0, hold=True, **repaired)
        most = max(most, count_bytes(door) if k % 10 == 0 else 0)
    return most


@pytest.mark.parametrize("shadow", [False, True])
def test_a_service_of_any_age_has_as_much_in_memory(monkeypatch, shadow):
    pytest.importorskip("uvicorn")
    from acerl_np.live import web

    for module, name in (*LIMITS, (web, "MOST_KEPT"), (web, "MOST_REFUSED")):
        monkeypatch.setattr(module, name, 20)
    dispatcher = acerl_np.Dispatcher(LAYOUT.with_fleet(LAYOUT.vehicles[:1]), "nearest")
    door = web.Web(Worker(Service(dispatcher, shadow=shadow)))
    tell(door.worker.service, kind="Acknowledge", number=0)
    young = live_on(door, range(1, 151), shadow=shadow)
    old = live_on(door, range(151, 401), shadow=shadow)
    assert old - young < 2_000, (young, old)
    assert dispatcher.check() == []


def test_a_number_of_which_nothing_is_known_any_more_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(feed, "MOST_RUNS", 3)
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    with acerl_np.Dispatcher(LAYOUT, "nearest", audit=log) as own:
        for number in (1, 2, 4, 6, 8, 9):
            tell(Service(own), **arrive(number, number + 10.0))
        own.save(state)
        tell(Service(own), **arrive(11, 21.0))
    for known in (None, state):
        with acerl_np.Dispatcher.recover(LAYOUT, "nearest", audit=log, state=known) as own:
            service, before = Service(own), own.waiting
            assert own.missing_numbers == (range(7, 8), range(10, 11))
            for number in (1, 3, 4, 5):
                (answer,) = tell(service, **arrive(number, 21.0))
                assert answer["kind"] == "Refused"
                assert f"number: read {number}; expected 6 or more" in answer["why"]
            assert [x["kind"] for x in tell(service, **arrive(6, 21.0))] == ["Ok"]
            assert own.waiting == before
