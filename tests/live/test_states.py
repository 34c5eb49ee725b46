"""States of tasks: where each is and since when, which event is allowed, and what always holds."""

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from worlds import row_floor

import acerl_np
from acerl_np.live import events as E
from acerl_np.live import parts, watching
from acerl_np.live import states as T
from acerl_np.live.service import Service
from acerl_np.support.errors import EventError

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
LIMITED = acerl_np.Layout.from_dict(
    {
        **LAYOUT.to_dict(),
        "vehicles": [{"id": f"v{k}", "start": "st1", "capacity": 5.0} for k in range(2)],
    }
)


def arrive(task, time=0.0, **more):
    return E.TaskArrived(time, task, "st1", "st5", 900.0, **more)


def reach(state, policy="FCFS", **own):
    """Return a dispatcher whose task "t" is in a state."""
    dispatcher = acerl_np.Dispatcher(LIMITED, policy, **own)
    if state == T.UNKNOWN:
        return dispatcher
    start = 50.0 if state == T.ANNOUNCED else None
    heavy = 9.0 if state == T.UNSERVABLE else 0.0
    dispatcher.feed(arrive("t", earliest_start=start, demand=heavy))
    if state in (T.GIVEN, T.LOADED, T.STRANDED, T.DELIVERED):
        dispatcher.feed(E.VehiclePassed(1.0, "v0", "st2"))
        dispatcher.assign(2.0, "v0", "t")
    if state in (T.LOADED, T.STRANDED, T.DELIVERED):
        dispatcher.feed(E.VehiclePassed(3.0, "v0", "st1"))
    if state == T.DELIVERED:
        dispatcher.feed(E.VehicleIdle(4.0, "v0", "st5"))
    if state == T.STRANDED:
        dispatcher.feed(E.VehicleBroke(3.5, "v0"))
    if state == T.CANCELLED:
        dispatcher.feed(E.TaskCancelled(4.0, "t"))
    return dispatcher


SINCE = dict(zip(T.STATES, (0.0, 0.0, 0.0, 2.0, 3.0, 3.5, 4.0, 4.0), strict=True))


@pytest.mark.parametrize("state", T.STATES)
def test_every_state_has_its_time_also_after_save_and_recover(state, tmp_path):
    with reach(state, audit=tmp_path / "day.jsonl") as dispatcher:
        found = dispatcher.tasks()
        vehicle = "v0" if state in (T.GIVEN, T.LOADED, T.STRANDED, T.DELIVERED) else ""
        assert found["t"][:3] == (state, SINCE[state], vehicle)
        assert bool(found["t"].reason) == (state == T.UNSERVABLE)
        dispatcher.save(tmp_path / "live.npz")
    own = {"audit": tmp_path / "day.jsonl"}
    for again in (
        acerl_np.Dispatcher.load(tmp_path / "live.npz"),
        acerl_np.Dispatcher.recover(LIMITED, "FCFS", **own),
    ):
        assert again.tasks() == found and again.check() == []
        again.close()


def test_the_table_says_which_event_is_allowed():
    """Each event in each state: it is refused as the table says, in words that name the state."""
    made = {
        E.TaskArrived: arrive("t", 5.0),
        E.TaskChanged: E.TaskChanged(5.0, "t", priority=1.0),
        E.TaskCancelled: E.TaskCancelled(5.0, "t"),
        E.TaskMoved: E.TaskMoved(5.0, "t", "st3"),
        E.TaskAnnounced: E.TaskAnnounced(5.0, "t", 60.0),
        E.TaskReady: E.TaskReady(5.0, "t"),
        E.TaskRecalled: E.TaskRecalled(5.0, "t"),
    }
    assert made.keys() == T.OF_TASKS.keys()
    for state, (kind, event) in product((T.UNKNOWN, *T.STATES), made.items()):
        dispatcher = reach(state)
        known = T.UNKNOWN if state in (T.DELIVERED, T.CANCELLED) else state
        before, refusal = dispatcher.tasks(), ""
        try:
            dispatcher.feed(event)
        except EventError as error:
            refusal = str(error)
            assert dispatcher.tasks() == before
        allowed, expected = T.OF_TASKS[kind]
        assert (f"; expected {expected}" in refusal) == (known not in allowed), (state, refusal)
        assert dispatcher.check() == []


def test_the_page_has_the_table():
    """A row for each event, a column for each state, in the order of both."""
    page = (Path(__file__).parents[2] / "docs/events.md").read_text()

    LATER = T.GIVEN, T.LOADED, T.STRANDED

    def find_row(kind, cells):
        return f"| `{kind.__name__}` |" + "".join(" yes |" if cell else " |" for cell in cells)

    for kind, (allowed, _) in T.OF_TASKS.items():
        row = find_row(kind, [state in allowed for state in (*T.OPEN, *LATER)])
        assert (row in page) == (kind is not E.TaskArrived)
    for kind, statuses in T.OF_VEHICLES.items():
        assert find_row(kind, [status in statuses for status in T.ANY]) in page


def test_what_no_vehicle_can_do_waits_for_one_that_can():
    dispatcher = reach(T.UNSERVABLE)
    dispatcher.feed(arrive("light", 1.0))
    assert [x.task for x in dispatcher.decide(1.0)] == ["light"]
    dispatcher.feed(E.VehicleAdded(2.0, "strong", "st1", capacity=20.0))
    assert dispatcher.tasks()["t"].state == T.WAITING
    assert [x[:2] for x in dispatcher.decide(2.0)] == [("strong", "t")]
    with pytest.raises(EventError, match="with the load of task 't' on it"):
        dispatcher.feed(E.VehicleRemoved(3.0, "strong", at_once=True))
    dispatcher.feed(E.VehicleOutOfService(3.0, "strong", at_once=True))
    dispatcher.feed(E.TaskMoved(3.0, "t", "st3"))
    dispatcher.feed(E.VehicleRemoved(3.0, "strong", at_once=True))
    assert dispatcher.tasks()["t"].state == T.UNSERVABLE and dispatcher.check() == []
    dispatcher.feed(E.TaskCancelled(4.0, "t"))
    assert dispatcher.tasks()["t"][:2] == (T.CANCELLED, 4.0)


def test_a_service_tells_open_tasks_and_a_day_forgets_what_ended():
    service = Service(reach(T.DELIVERED))
    service.dispatcher.feed(arrive("u", 5.0))
    told, answer = service.answer('{"kind": "State", "number": 3}')
    assert told["tasks"] == {"u": {"state": "waiting", "since": 5.0, "vehicle": "", "reason": ""}}
    assert (told["kind"], answer["number"]) == ("State", 3) and json.dumps(told)
    assert [*service.dispatcher.tasks()] == ["t", "u"]
    service.dispatcher.begin_day(6.0)
    assert [*service.dispatcher.tasks()] == ["u"]


def test_a_late_event_does_not_end_a_task_twice():
    dispatcher = reach(T.DELIVERED)
    dispatcher.feed(E.VehiclePassed(3.5, "v1", "st2"))
    assert len(dispatcher._floor.day.ended) == 1 and dispatcher.check() == []


def test_of_very_many_tasks_that_ended_the_last_are_known(monkeypatch, tmp_path):
    monkeypatch.setattr(parts, "MOST_ENDED", 3)
    monkeypatch.setattr(watching, "MOST_ENDED", 3)
    dispatcher = acerl_np.Dispatcher(LIMITED, "FCFS", lateness=20.0)
    for k in range(11):
        dispatcher.feed(arrive(f"t{k}", float(k)))
        dispatcher.feed(E.TaskCancelled(float(k), f"t{k}"))
    known = dispatcher.tasks()
    assert 3 <= len(known) < 6 and [*known] == [f"t{k}" for k in range(11)][-len(known) :]
    dispatcher.feed(E.VehiclePassed(3.0, "v0", "st2"))  # late: all since happens again
    assert {*dispatcher.tasks()} >= {"t8", "t9", "t10"} and dispatcher.check() == []
    dispatcher.save(tmp_path / "live.npz")
    again = acerl_np.Dispatcher.load(tmp_path / "live.npz")
    assert {*again.tasks()} >= {"t8", "t9", "t10"} and again.check() == []


def test_check_sees_what_is_broken():
    for harm in (
        lambda floor: floor.pool.append("x"),
        lambda floor: floor.clock.used.fill(True),
        lambda floor: floor.vehicles.__setitem__(1, floor.vehicles[1]._replace(task="t")),
        lambda floor: floor.planned.update(floor.tasks),
        lambda floor: floor.day.ended.append(("z", True, 0.0, "v0")),
    ):
        dispatcher = reach(T.GIVEN)
        assert dispatcher.check() == []
        harm(dispatcher._floor)
        assert dispatcher.check()


@pytest.mark.compiles
def test_what_nobody_can_reach_is_unservable_until_somebody_can(tmp_path):
    """Two parts, a to b and c to d, a vehicle in the first: no event is refused, and nobody is sent."""
    parted = {"name": "parts", "edges": [{"a": "a", "b": "b"}, {"a": "c", "b": "d"}]}
    floor = row_floor("abcd", [{"id": "v0", "start": "a"}], **parted)
    layout = acerl_np.Layout.from_dict(floor)
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    with acerl_np.Dispatcher(layout, "nearest", audit=log) as own:
        own.feed(E.TaskArrived(0.0, "none", "a", "c", 90.0))
        own.feed(E.TaskArrived(0.0, "far", "c", "d", 90.0))
        own.feed(E.TaskArrived(1.0, "later", "c", "d", 90.0, earliest_start=30.0))
        reasons = {
            "none": "no way from 'a' to 'c'",
            **dict.fromkeys(("far", "later"), "no vehicle that may carry it can reach 'c'"),
        }
        assert {n: (x.state, x.reason) for n, x in own.tasks().items()} == {
            name: (T.UNSERVABLE, reason) for name, reason in reasons.items()
        }
        assert own.decide(2.0) == [] and own.next_time is None and own.waiting == ()
        with pytest.raises(EventError, match="task 'far' does not wait"):
            own.assign(2.0, "v0", "far")
        own.feed(E.TaskArrived(3.0, "near", "b", "a", 90.0))
        own.save(state)
        assert [x[:2] for x in own.decide(40.0)] == [("v0", "near")] and own.check() == []
        found, promised = own.tasks(), own.forecast(40.0)
        assert [(x.task, math.isinf(x.delivery)) for x in promised] == [
            ("near", False),
            *[(name, True) for name in reasons],
        ]
    for how in ({}, {"state": state}):
        with acerl_np.Dispatcher.recover(layout, "nearest", audit=log, **how) as again:
            assert again.tasks() == found and again.check() == []
    with acerl_np.Dispatcher.recover(layout, "nearest", audit=log) as own:
        own.feed(E.VehicleAdded(50.0, "w", "d"))
        assert {n: x.state for n, x in own.tasks().items() if n in reasons} == {
            "none": T.UNSERVABLE,
            **dict.fromkeys(("far", "later"), T.WAITING),
        }
        orders = own.decide(51.0)
        assert [x[:2] for x in orders if not x.repeated] == [("w", "far")] and own.check() == []
        with pytest.raises(EventError, match="no way for vehicle 'v0' to 'c'"):
            own.feed(E.VehicleIdle(52.0, "v0", "a"))
            own.assign(52.0, "v0", "later")
        own.feed(E.VehicleRemoved(53.0, "w", at_once=True))
        assert {n: x.state for n, x in own.tasks().items() if n in reasons} == dict.fromkeys(
            reasons, T.UNSERVABLE
        )
        assert own.waiting == () and own.check() == []
        own.feed(E.TaskChanged(54.0, "far", priority=1.0))
        own.feed(E.TaskCancelled(54.0, "far"))
        assert own.tasks()["far"].state == T.CANCELLED and own.check() == []
    with acerl_np.Dispatcher.recover(layout, "nearest", audit=log) as again:
        assert again.tasks() == own.tasks()


def test_a_load_stays_on_its_vehicle_or_is_told_elsewhere(tmp_path):
    log = tmp_path / "day.jsonl"
    live = reach(T.STRANDED, "nearest", audit=log)
    assert live.decide(4.0) == [] and live.under_way == {"t": "v0"}
    [told] = live.forecast(4.0)
    assert told.vehicle == "v0" and math.isfinite(told.delivery)
    live.feed(E.VehicleRepaired(50.0, "v0"))
    assert live.tasks()["t"][:3] == (T.LOADED, 50.0, "v0") and live.decide(50.0) == []
    # It was to deliver at some time after 3.5, from where as much is left at 50.
    [then] = live.forecast(50.0)
    assert then.delivery - 50.0 == pytest.approx(live._floor.vehicles[0].finish - 50.0, abs=1.0)
    live.feed(E.VehicleBroke(60.0, "v0"))
    live.feed(E.TaskMoved(61.0, "t", "st3"))
    assert live.waiting == ("t",) and live.idle == ("v1",)
    assert [order[:2] for order in live.decide(61.0)] == [("v1", "t")]
    live.feed(arrive("u", 62.0))
    with pytest.raises(EventError, match="another site than the delivery"):
        live.feed(E.TaskMoved(62.0, "u", "st5"))
    seen = live.tasks(), live.describe()
    live.save(tmp_path / "live.npz")
    live.close()
    for state in (None, tmp_path / "live.npz"):
        again = acerl_np.Dispatcher.recover(LIMITED, "nearest", audit=log, state=state)
        assert (again.tasks(), again.describe(), again.check()) == (*seen, [])
        again.close()


def test_a_log_without_the_rule_goes_on_by_the_papers(tmp_path):
    log, old = tmp_path / "day.jsonl", tmp_path / "old.jsonl"
    reach(T.LOADED, audit=log).close()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["options"].pop("loads") == "stay"
    old.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for path, state in ((log, T.STRANDED), (old, T.WAITING)):
        for _ in range(2):  # and what it writes then goes on by it, too
            with acerl_np.Dispatcher.recover(LIMITED, "FCFS", audit=path) as live:
                pass
        with acerl_np.Dispatcher.recover(LIMITED, "FCFS", audit=path) as live:
            live.feed(E.VehicleBroke(9.0, "v0"))
            assert live.tasks()["t"].state == state and live.check() == []


def test_a_vehicle_taken_out_at_once_keeps_its_load():
    live = reach(T.LOADED)
    live.feed(E.VehicleOutOfService(10.0, "v0", at_once=True))
    assert live.tasks()["t"].state == T.STRANDED and live.check() == []
    live.feed(E.VehicleBack(20.0, "v0", "st5"))
    assert live.tasks()["t"].state == T.LOADED
    live.feed(E.VehicleIdle(21.0, "v0", "st5"))
    assert live.tasks()["t"].state == T.DELIVERED and live.check() == []


RING = {
    "sites": [{"id": x, "x": 10 * (x in "BCE"), "y": 10 * (x in "CD")} for x in "ABCDE"],
    "edges": [{"a": a, "b": b, "length": 10} for a, b in ("AB", "BC", "CD", "DA", "BE")],
    "vehicles": [{"id": "v", "start": "A"}, {"id": "w", "start": "C"}],
}


@pytest.mark.parametrize("traffic", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_closed_edge_is_as_none_until_it_is_opened(tmp_path, traffic):
    layout = acerl_np.Layout.from_dict({"format": 1, **RING})
    less = replace(layout, edges=layout.edges[1:])
    if traffic:
        layout, less = layout.with_traffic("beside"), less.with_traffic("beside")
    log, saved = tmp_path / "day.jsonl", tmp_path / "live.npz"
    live = acerl_np.Dispatcher(layout, "nearest", audit=log)
    other = acerl_np.Dispatcher(less, "nearest")
    live.feed(E.EdgeClosed(1.0, "B", "A"))
    for own in (live, other):
        own.feed(E.TaskArrived(2.0, "t", "A", "B", 90.0))
        own.feed(E.TaskArrived(2.0, "u", "D", "B", 90.0))
    assert live.decide(2.0) == other.decide(2.0)
    assert live.forecast(3.0) == other.forecast(3.0)
    assert traffic or {own.delivery for own in live.forecast(3.0)} == {32.0}
    live.feed(E.EdgeClosed(4.0, "B", "E"))
    live.feed(E.TaskArrived(4.0, "x", "A", "E", 99.0))
    assert live.tasks()["x"].state == T.UNSERVABLE
    for event in (E.EdgeClosed, "E", "B"), (E.EdgeOpened, "C", "B"), (E.EdgeClosed, "A", "E"):
        with pytest.raises(EventError):
            live.feed(event[0](5.0, *event[1:]))
    live.feed(E.VehicleAdded(5.0, "n", layout.vehicles[0].start))
    live.save(saved)
    live.feed(E.EdgeOpened(6.0, "E", "B"))
    assert live.tasks()["x"].state == T.WAITING and live.closed == (("A", "B"),)
    seen = live.tasks(), live.forecast(7.0), live.closed
    live.close()
    for state in (None, saved):
        with acerl_np.Dispatcher.recover(layout, "nearest", audit=log, state=state) as again:
            assert (again.tasks(), again.forecast(7.0), again.closed, again.check()) == (*seen, [])
    told, _ = Service(again).answer('{"kind": "State"}')
    assert (told["closed"], told["missing_numbers"]) == ((("A", "B"),), [])
