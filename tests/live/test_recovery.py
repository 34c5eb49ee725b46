"""A dispatcher is built again from its log, whatever of it there is."""

import copy
import json
import os
import random
import warnings
from contextlib import suppress
from dataclasses import replace

import own_rules
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from live_events import do_anything, floor, line, look

from acerl_np import Dispatcher, Layout, load_layout
from acerl_np.live import daybook
from acerl_np.live import events as E
from acerl_np.live import log as log_module
from acerl_np.live.feed import Numbers
from acerl_np.live.wire import format_line
from acerl_np.support.errors import EventError, InputError, LogWarning, RecordError, StorageError

LAYOUT = load_layout("dmh").with_breakdowns({})


def look_wholly(dispatcher):
    """All that is seen, and all that what comes may depend on."""
    under_way, feed, orders = dispatcher.under_way, dispatcher.desk.feed, dispatcher.desk.orders
    entries = [(entry.time, entry.item, entry.holds, entry.is_settled) for entry in feed.entries]
    numbers = {
        made[1]: made.number for made in orders.given.values() if under_way.get(made[1]) == made[0]
    }
    counts = orders.decisions, orders.lines, feed.numbers
    # A question releases what is held back, and is in no log: count what is released by now.
    floor = copy.copy(dispatcher)._floor
    floor.advance(feed.time)
    seen = look(dispatcher)
    if dispatcher.layout.chargers:  # when to ask next it knows once it was asked
        seen = seen[:-1]
    recalls = orders.recalls, orders.last, format_line(orders.latest)
    places = [vehicle.place for vehicle in floor.vehicles]
    return seen, feed.time, entries, floor.day.mark, numbers, recalls, orders.queue, places, counts


def end():
    """Let go of all logs, as a process does at its end."""
    for log in list(log_module._OPEN):
        log.close()


def recover(log, layout=LAYOUT, policy="EDD", **options):
    """Recover after the end of a process, whether or not a line was cut off."""
    end()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        return Dispatcher.recover(layout, policy, audit=log, **options)


def names(assignments):
    return [(item.number, item.vehicle, item.task, item.repeated) for item in assignments]


def play(dispatcher, draw, log, n_steps, state):
    """Do random things, some of them refused; return the states after each line of the log, and the last."""
    note, seen = dispatcher.desk.note, [look_wholly(dispatcher)]

    def watch(kind, **values):
        note(kind, **values)
        seen.append(look_wholly(copy.copy(dispatcher)))

    dispatcher.desk.note = watch
    now, told = 100.0, []
    for k in range(n_steps):
        now += draw.choice((0.0, 0.0, 1.0, 4.0, 9.0))
        do_anything(dispatcher, draw, now, k, told)
        if draw.random() < 0.08:
            with suppress(EventError):
                dispatcher.begin_day(now - draw.choice((0.0, 0.0, 30.0)))
        if k == n_steps // 2:
            dispatcher.save(state)
            saved = len(seen), look_wholly(dispatcher)
    dispatcher.close()
    # Questions without an answer are not in the log, but in a state.
    return seen, saved[1] if saved[0] == len(seen) else seen[-1]


ERRANDS = {"commitment": "pickup", "max_changes": 2}


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
@pytest.mark.parametrize(
    ("layout", "policy", "options"),
    [(LAYOUT, "EDD", {}), (floor(3), "nearest", ERRANDS)],
    ids=["plain", "errands"],
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_log_cut_anywhere_recovers_to_what_was_then(
    tmp_path_factory, seed, layout, policy, options
):
    draw = random.Random(seed)
    log = tmp_path_factory.mktemp("log") / "day.jsonl"
    state = log.with_name("live.npz")
    dispatcher = Dispatcher(layout, policy, seed=3, start=50.0, audit=log, **options)
    seen, last = play(dispatcher, draw, log, 40, state)
    whole = log.read_bytes()
    assert whole.count(b"\n") == len(seen)
    for _ in range(3):
        log.write_bytes(whole[: draw.randint(0, len(whole))])
        n = sum(row.endswith(b"}") and is_json(row) for row in log.read_bytes().split(b"\n"))
        again = recover(log, layout, policy)
        if n:
            expected = seen[n - 1]
            assert look_wholly(again)[:-1] == expected[:-1]
            decisions, lines, numbers = expected[-1]  # and a line more: that it started
            assert look_wholly(again)[-1] == (decisions, max(1, lines) + 1, numbers)
    log.write_bytes(whole)
    # How long what happened is kept as entries depends on when the process started.
    found = look_wholly(recover(log, layout, policy, state=state))
    same = (0, 1, 5) if options else (0, 1, 4)
    assert [found[k] for k in same] == [last[k] for k in same]


def test_an_order_that_holds_again_after_the_state_comes_again(tmp_path):
    """When the state was saved its vehicle had gone; as was told after it, it finishes its task before."""
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    with Dispatcher(LAYOUT, "EDD", audit=log) as dispatcher:
        dispatcher.feed(E.TaskArrived(10.0, "a", "st1", "st2", 300.0))
        dispatcher.assign(10.0, "v0", "a")
        dispatcher.feed(E.VehicleOutOfService(12.0, "v0", at_once=True), hold=True)
        dispatcher.save(state)
        dispatcher.feed(E.VehicleOutOfService(11.0, "v0"))
        assert dispatcher.under_way == {"a": "v0"}
    again = Dispatcher.recover(LAYOUT, "EDD", audit=log, state=state)
    assert names(again.decide(13.0)) == [(1, "v0", "a", True)]


def is_json(row):
    try:
        return bool(json.loads(row))
    except ValueError:
        return False


def begin(log, **options):
    """Two vehicles under way, one of which has been seen at its pickup."""
    dispatcher = Dispatcher(LAYOUT, "EDD", audit=log, **options)
    dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", 300.0), number=7)
    dispatcher.feed(E.TaskArrived(0.0, "b", "st3", "st4", 200.0), number=8)
    first = dispatcher.decide(1.0)
    assert names(first) == [(1, first[0].vehicle, "b", False), (2, first[1].vehicle, "a", False)]
    dispatcher.feed(E.VehiclePassed(40.0, first[0].vehicle, "st3"), number=9)
    return dispatcher, [item.vehicle for item in first]


def test_what_is_not_confirmed_comes_once_more_with_its_number(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher, (_, other) = begin(log)
    finish = dispatcher.desk.orders.given[other].finish
    for _ in range(2):  # also if the process ends again at once
        again = recover(log)
        assert again.last_number == 9
    # What it was told before the decision counts.
    again.feed(E.TaskArrived(0.0, "a", "st1", "st2", 300.0), number=7)
    again.feed(E.TaskArrived(50.0, "c", "st5", "st6", 100.0), number=10)
    found = again.decide(50.0)
    assert names(found)[0] == (2, other, "a", True) and found[0].finish == finish
    assert names(found)[1][0] == 3 and not found[1].repeated
    assert again.decide(51.0) == []
    third = recover(log)
    third.feed(E.VehicleIdle(60.0, other, "st2"), number=11)
    assert [item.task for item in third.decide(60.0)] == ["c"]


def test_acknowledged_orders_do_not_come_again_the_others_are_kept(tmp_path):
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    dispatcher = Dispatcher(LAYOUT, "EDD", audit=log)
    dispatcher.acknowledge(0)
    assert dispatcher.acknowledged == 0 and dispatcher.unacknowledged == ()
    for k in range(3):
        dispatcher.feed(E.TaskArrived(0.0, f"t{k}", "st1", "st2", 300.0))
    orders = dispatcher.decide(1.0)
    dispatcher.acknowledge(2)
    dispatcher.acknowledge(1)  # late: it changes nothing
    dispatcher.save(state)
    dispatcher.feed(E.VehicleIdle(90.0, orders[2].vehicle, "st2"))
    dispatcher.feed(E.TaskArrived(91.0, "last", "st3", "st2", 300.0))
    (last,) = dispatcher.decide(91.0)
    kept = dispatcher.unacknowledged
    told = [(x["number"], x["task"], x["time"]) for x in kept]
    assert told == [(3, orders[2].task, 1.0), (4, "last", 91.0)]
    for own in ({}, {"state": state}):
        again = recover(log, **own)
        assert again.acknowledged == 2 and again.unacknowledged == kept
        assert names(again.decide(92.0)) == [(4, last.vehicle, "last", True)]
        # What comes again is kept once.
        assert [x["number"] for x in again.unacknowledged] == [3, 4]
    again.acknowledge(4)
    assert recover(log).decide(93.0) == [] and recover(log).unacknowledged == ()


def test_a_vehicle_that_goes_on_standing_confirms_nothing(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher(LAYOUT, "EDD", audit=log)
    for vehicle in dispatcher.idle:
        dispatcher.feed(E.VehiclePassed(0.0, vehicle, "st1"))
    dispatcher.feed(E.TaskArrived(1.0, "a", "st1", "st2", 300.0))
    (made,) = dispatcher.decide(1.0)
    dispatcher.feed(E.VehiclePassed(2.0, made.vehicle, "st1"))
    again = recover(log)
    assert names(again.decide(3.0)) == [(1, made.vehicle, "a", True)]
    again.feed(E.VehiclePassed(4.0, made.vehicle, "st3"))  # but that it has left does
    assert recover(log).decide(5.0) == []


def test_known_numbers_are_harmless_and_refused_ones_may_come_again(tmp_path):
    log = tmp_path / "day.jsonl"
    begin(log)
    again = recover(log)
    idle = again.idle[0]
    before = look_wholly(again)
    for number in (7, 8, 9):  # whatever they say now
        again.feed(E.TaskArrived(60.0, "z", "st1", "st2", 300.0), number=number)
    assert look_wholly(again) == before
    with pytest.raises(EventError, match="is idle; expected it to be working"):
        again.feed(E.VehicleIdle(60.0, idle, "st1"), number=12)
    again.feed(E.VehiclePassed(60.0, idle, "st1"), number=12)
    assert again.desk.feed.numbers.ends == (7, 10, 12, 13)
    with pytest.raises(EventError, match=r"number: read 1\.5; expected a whole number"):
        again.feed(E.VehiclePassed(61.0, idle, "st1"), number=1.5)


@given(st.lists(st.integers(-3, 9)))
def test_numbers_are_a_set(found):
    numbers = Numbers()
    for number in found:
        numbers = numbers.add(number)
    assert {number for number in range(-5, 12) if number in numbers} == set(found)
    assert numbers.last == max(found, default=None)
    assert numbers.ends == tuple(sorted({*numbers.ends}))


@pytest.mark.parametrize("way", ["recover", "load"])
def test_a_line_that_was_cut_off_is_said(tmp_path, way):
    """The log goes on, and reads as any other."""
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    dispatcher, _ = begin(log)
    dispatcher.save(state)
    n = log.read_bytes().count(b"\n")
    with open(log, "ab") as file:
        file.write(b'{"kind": "VehicleId\xff')
    end()
    if way == "recover":
        with pytest.warns(LogWarning, match=f"day.jsonl: line {n + 1}: cut off, as by a kill"):
            again = Dispatcher.recover(LAYOUT, "EDD", audit=log)
    else:
        again = Dispatcher.load(state, audit=log)
    assert look(again) == look(dispatcher)
    again.feed(E.VehiclePassed(60.0, again.idle[0], "st1"))
    again.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look(Dispatcher.recover(LAYOUT, "EDD", audit=log)) == look(again)


def test_a_saved_state_and_a_new_file(tmp_path):
    log, new, state = tmp_path / "day.jsonl", tmp_path / "next.jsonl", tmp_path / "live.npz"
    dispatcher, vehicles = begin(log, seed=5, lateness=20.0)
    dispatcher.save(state)
    dispatcher = Dispatcher.load(state, audit=new)
    dispatcher.feed(E.VehicleAdded(61.0, "v9", "st1"))
    dispatcher.feed(E.TaskArrived(45.0, "c", "st5", "st6", 100.0), number=10)
    with pytest.raises(RecordError, match=r"line 1: read the log's line 6; .* or state="):
        recover(new)
    again = recover(new, state=state)
    assert look_wholly(again)[:-1] == look_wholly(dispatcher)[:-1]
    assert (again.seed, again.lateness) == (5, 20.0)
    assert names(again.decide(61.0))[0] == (2, vehicles[1], "a", True)
    with pytest.raises(InputError, match="of another floor than layout 'line'"):
        again.close()
        Dispatcher.recover(line(("v", "a")), "EDD", audit=new, state=state)


def test_a_saved_policy_is_not_imported_where_another_is_given(tmp_path, monkeypatch):
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    Dispatcher(LAYOUT, own_rules.near, audit=log).save(state)
    monkeypatch.setattr("acerl_np.support.own.KNOWN", {})
    with pytest.raises(InputError, match=r"own_rules:near.*trust=True"):
        Dispatcher.load(state)
    with Dispatcher.recover(LAYOUT, "EDD", audit=log, state=state) as again:
        assert again.policy == "EDD"


def test_a_restart_from_an_older_state_replaces_what_came_after(tmp_path):
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    dispatcher, _ = begin(log)
    dispatcher.save(state)
    dispatcher.feed(E.TaskArrived(50.0, "gone", "st5", "st6", 100.0))
    dispatcher.close()
    older = Dispatcher.load(state, audit=log)
    older.feed(E.TaskArrived(51.0, "c", "st5", "st6", 100.0))
    assert recover(log).waiting == older.waiting == ("c",)
    # A dispatcher that is made anew begins anew.
    end()
    Dispatcher(LAYOUT, "EDD", audit=log)
    assert (recover(log).waiting, recover(log).under_way) == ((), {})


def test_what_cannot_be_recovered_is_refused(tmp_path):
    log = tmp_path / "day.jsonl"
    with pytest.raises(RecordError, match=r"none\.jsonl: cannot read: no such file"):
        recover(tmp_path / "none.jsonl")
    for text in (b"hello\nworld\n", b'{"x": 1}\n'):
        log.write_bytes(text)
        with pytest.raises(RecordError, match=r"day\.jsonl: line 1: (not JSON|kind: read 'None')"):
            recover(log)
    for text in (b"", b"\0\0", b'{"kin', b'{"kind": "Started", "line": 0'):
        log.write_bytes(text)
        assert recover(log, start=9.0)._floor.day.start == 9.0
    begin(log)
    rows = log.read_text().splitlines()[-6:]
    for change, message in (
        (lambda line: line.pop("line"), "line 2: line: read 'None'; expected the count of"),
        (lambda line: line.update(kind="x"), "line 2: kind: read 'x'"),
        (lambda line: line.update(line=5), "line 3: line: read 2; expected 5 or more"),
        (lambda line: line.update(clock="x"), "line 2: TaskArrived: time: read x; expected"),
        (lambda line: line.update(pickup="x"), "line 2: TaskArrived: .* site 'x' unknown"),
        (lambda line: line.pop("pickup"), "line 2: TaskArrived: 'pickup' is missing"),
    ):
        line = json.loads(rows[1])
        change(line)
        log.write_text("\n".join([rows[0], json.dumps(line), *rows[2:]]) + "\n")
        with pytest.raises(RecordError, match=message):
            recover(log)
    log.write_text("\n".join(rows) + "\n")
    other = LAYOUT.with_fleet(LAYOUT.vehicles[:2])
    with pytest.raises(RecordError, match=r"vehicles: read v0, v1, v2; .* 'dmh': v0, v1$"):
        Dispatcher.recover(other, "EDD", audit=log)
    other = replace(LAYOUT, truncate_distances=not LAYOUT.truncate_distances)
    with pytest.raises(RecordError, match=r"line 1: floor: of another floor than layout 'dmh'"):
        Dispatcher.recover(other, "EDD", audit=log)


def test_what_a_full_disk_kept_back_comes_later(tmp_path, monkeypatch):
    log = tmp_path / "day.jsonl"
    dispatcher, _ = begin(log)
    write, room = os.write, [30]

    def fill(file, data):
        if room[0] == 0:
            raise OSError(28, "No space left on device")
        n = write(file, data[: room[0]])
        room[0] -= n
        return n

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(StorageError, match="no space left"):
        dispatcher.feed(E.TaskArrived(50.0, "c", "st5", "st6", 100.0), number=10)
    for _ in range(2):
        with pytest.raises(StorageError, match="no space left"):
            dispatcher.decide(51.0)
    assert "c" in dispatcher.under_way
    monkeypatch.setattr(os, "write", write)
    (made,) = dispatcher.decide(52.0)
    assert (made.task, made.number, made.repeated) == ("c", 3, True)
    again = recover(log)
    assert (look(again), again.last_number) == (look(dispatcher), 10)
    assert [item.number for item in again.decide(53.0)] == [2, 3]


def test_lines_are_on_the_disk_if_asked(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    begin(tmp_path / "day.jsonl")
    assert not synced
    begin(tmp_path / "other.jsonl", fsync=True)
    assert len(synced) == 6


def test_a_vehicle_that_is_idle_elsewhere(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher, (vehicle, _) = begin(log)
    line = f"at 60.0 s: vehicle '{vehicle}' is at 'st1', task 'b' goes to 'st4'; .*delivered=False"
    with pytest.raises(EventError, match=line):
        dispatcher.feed(E.VehicleIdle(60.0, vehicle, "st1"))
    dispatcher.feed(E.VehicleIdle(60.0, vehicle, "st1", delivered=False))
    assert (dispatcher.waiting, dispatcher.sites[vehicle]) == (("b",), "st1")
    assert vehicle in dispatcher.idle and dispatcher._floor.day.delivered == 0
    assert look(recover(log)) == look(dispatcher)
    assert "b" not in daybook.read_audit(log, LAYOUT).instance.tasks


@pytest.mark.parametrize("way", ["log", "state", "both"])
def test_who_has_a_parking_place_has_it_after_a_restart(way, tmp_path):
    """v1 has the place at B before v0 delivers there, though v0 comes first by index."""
    layout = Layout.from_dict(
        worlds.straight_floor(
            [{"id": "v0", "start": "A"}, {"id": "v1", "start": "A"}],
            parking={"after": 15, "places": [{"site": "B"}, {"site": "C"}]},
        )
    )
    log, state = tmp_path / "day.jsonl", tmp_path / "state.npz"
    dispatcher = Dispatcher(layout, "nearest", audit=log)
    for k, vehicle in enumerate(("v1", "v0")):
        now = 10.0 * k
        dispatcher.feed(E.TaskArrived(now, f"t{k}", "A", "B", 99.0))
        dispatcher.assign(now, vehicle, f"t{k}")
        dispatcher.feed(E.VehicleIdle(now + 10.0, vehicle, "B"))
        assert dispatcher.decide(now + 10.0) == []
    if way != "log":
        dispatcher.save(state)
    end()
    given = {"state": state} if way == "both" else {}
    if way == "state":
        dispatcher = Dispatcher.load(state)
    else:
        dispatcher = Dispatcher.recover(layout, "nearest", audit=log, **given)
    assert [order[:2] for order in dispatcher.decide(40.0)] == [("v0", "C")]
