"""Events out of order, or twice: settled by their own times."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_events import MAKERS, SITES, look

from acerl_np import Dispatcher, EventError, Layout, load_layout
from acerl_np.live import events as E
from acerl_np.live.feed import LATE

LAYOUT = load_layout("dmh")


def make():
    """A dispatcher in the midst of its day: two tasks under way, one vehicle idle."""
    dispatcher = Dispatcher(LAYOUT, "FCFS")
    for k in range(2):
        dispatcher.feed(E.TaskArrived(90.0, f"busy{k}", "st1", "st2", 300.0))
        dispatcher.assign(90.0, f"v{k}", f"busy{k}")
    return dispatcher


@pytest.mark.parametrize("earliest_start", [None, 300.0])
def test_an_arrival_told_again_later_counts_once(tmp_path, earliest_start):
    """Also between stations, of which the task has one site each, and where it is held back or changed."""
    data = LAYOUT.to_dict()
    data["stations"] = {"in": ["st1", "st2"], "out": ["st7", "st8"]}
    dispatcher = Dispatcher(Layout.from_dict(data), "FCFS")
    event = E.TaskArrived(90.0, "x", "in", "out", 300.0, earliest_start=earliest_start)
    dispatcher.feed(event)
    dispatcher.feed(E.TaskChanged(91.0, "x", due=390.5))
    for now in (100.0, 110.0, 120.0):  # more than 5 s: the event itself is forgotten
        dispatcher.feed(E.VehiclePassed(now, "v2", "st3"))
        dispatcher.save(tmp_path / "live.npz")
        dispatcher = Dispatcher.load(tmp_path / "live.npz")
        before = look(dispatcher)
        dispatcher.feed(event)
        assert look(dispatcher) == before
    with pytest.raises(EventError, match="more than 5 s before"):
        dispatcher.feed(replace(event, demand=1.0))


def test_older_events_are_refused():
    dispatcher = make()
    dispatcher.decide(100.0)
    dispatcher.feed(E.VehiclePassed(95.0, "v0", "st3"))
    dispatcher.feed(E.VehicleBroke(99.5, "v1"))
    before = look(dispatcher)
    for event, message in (
        (
            E.VehiclePassed(94.9, "v0", "st4"),
            r"^VehiclePassed at 94.9 s: more than 5 s before the last event at 100.0 s; "
            r"expected events at most 5 s late$",
        ),
        (E.VehicleBroke(99.0, "v1"), r"VehicleBroke at 99\.0 s: contradicts what came after it"),
    ):
        with pytest.raises(EventError, match=message):
            dispatcher.feed(event)
        assert look(dispatcher) == before


def test_a_late_event_takes_back_no_assignment():
    """The vehicle had broken down before: its task waits again, as if it had broken down just after."""
    dispatcher = make()
    dispatcher.feed(E.TaskArrived(100.0, "x", "st1", "st2", 50.0))
    (taken,) = dispatcher.decide(102.0)
    with pytest.raises(EventError, match="task 'x' is on vehicle 'v2'; expected a waiting task"):
        dispatcher.feed(E.TaskCancelled(101.0, "x"))
    with pytest.raises(EventError, match="task 'x' is on vehicle 'v2'"):
        dispatcher.feed(E.TaskChanged(101.0, "x", due=500.0))
    dispatcher.feed(E.TaskArrived(99.0, "y", "st1", "st2", 50.0))
    assert dispatcher.under_way["x"] == taken.vehicle == "v2"
    assert dispatcher.waiting == ("y",)
    dispatcher.feed(E.VehicleBroke(101.0, "v2"))
    assert dispatcher.waiting == ("y", "x")
    assert "x" not in dispatcher.under_way
    assert dispatcher.desk.orders.decisions == 3


def test_a_late_position_corrects_where_an_assignment_began():
    dispatcher = make()
    dispatcher.feed(E.TaskArrived(100.0, "x", "st1", "st2", 50.0))
    (taken,) = dispatcher.decide(102.0)
    before = dispatcher._floor.vehicles[2].finish
    assert before == taken.finish
    dispatcher.feed(E.VehiclePassed(101.0, "v2", "st1"))
    assert dispatcher.sites["v2"] == "st1"
    assert dispatcher._floor.vehicles[2].finish < before


def test_an_event_before_its_cause_is_held(tmp_path):
    dispatcher = make()
    repaired = E.VehicleRepaired(100.0, "v2", "st5")
    with pytest.raises(EventError, match="is idle; expected it to be broken"):
        dispatcher.feed(repaired)
    dispatcher.feed(repaired, hold=True)
    assert dispatcher.held == (repaired,)
    assert dispatcher.sites["v2"] == "carport"
    dispatcher.save(tmp_path / "live.npz")
    dispatcher = Dispatcher.load(tmp_path / "live.npz")
    assert dispatcher.held == (repaired,)
    dispatcher.feed(E.VehicleBroke(98.0, "v2"))
    assert (dispatcher.held, dispatcher.sites["v2"], dispatcher.idle) == ((), "st5", ("v2",))


def test_a_late_release_and_a_refused_event():
    """What a refused event would have released goes on being held back; late ones come before a release."""
    for out in (False, True):
        dispatcher = make()
        if out:
            dispatcher.feed(E.VehicleOutOfService(100.0, "v2"))
        dispatcher.feed(E.TaskArrived(100.0, "x", "st1", "st2", 90.0, earliest_start=103.0))
        with pytest.raises(EventError, match="unknown"):
            dispatcher.feed(E.TaskCancelled(104.0, "y"))
        assert dispatcher.planned == ("x",)
        if not out:
            dispatcher.feed(E.TaskArrived(102.0, "z", "st1", "st2", 90.0))
        assert [item.task for item in dispatcher.decide(103.5)] == ["z"][out:]
        dispatcher.feed(E.TaskArrived(102.5, "w", "st1", "st2", 90.0))
        assert dispatcher.waiting == ("w", "x")


@st.composite
def bursts(draw):
    """Events of at most five seconds, no two at one time, and another order of them."""
    kinds = draw(st.lists(st.integers(0, len(MAKERS) - 1), min_size=2, max_size=12))
    times = draw(
        st.lists(st.integers(0, 49), min_size=len(kinds), max_size=len(kinds), unique=True)
    )
    sites = draw(st.lists(st.sampled_from(SITES), min_size=len(kinds), max_size=len(kinds)))
    events = [
        MAKERS[kind](100.0 + time / 10.0, k, site)
        for k, (kind, time, site) in enumerate(zip(kinds, times, sites, strict=True))
    ]
    order = draw(st.permutations(events))
    return sorted(events, key=lambda event: event.time), order


@settings(max_examples=300, deadline=None)
@given(bursts(), st.booleans(), st.booleans())
def test_any_order_comes_to_the_same(burst, twice, hold):
    """What is held comes to its time; else what is taken comes to what the same comes to in order."""
    ordered, order = burst
    assert ordered[-1].time - ordered[0].time <= LATE
    straight, shuffled, taken = make(), make(), []
    for event in order + (order if twice else []):
        before = look(shuffled)
        try:
            shuffled.feed(event, hold=hold)
            taken.append(event)
        except EventError:
            assert not hold and look(shuffled) == before
    for event in ordered if hold else sorted(taken, key=lambda event: event.time):
        straight.feed(event, hold=hold)
    assert look(shuffled) == look(straight)
    assert sorted(shuffled.held, key=lambda event: event.time) == list(straight.held)
    # What is in the tables is the same, too.
    assert shuffled.decide(106.0) == straight.decide(106.0)


def test_a_long_day_of_late_events_is_that_in_order(tmp_path):
    """Hundreds of them, across what is forgotten and across restarts, with no decision in between."""
    draw = random.Random(3)
    events = []
    for k in range(600):
        now = 100.0 + 0.5 * k
        kind = draw.choice((E.VehiclePassed, E.TaskArrived))
        site = draw.choice(SITES)
        if kind is E.VehiclePassed:
            events.append(E.VehiclePassed(now, f"v{k % 3}", site))
        else:
            events.append(E.TaskArrived(now, f"n{k}", site, "carport", 60.0))
    straight, shuffled = make(), make()
    for event in events:
        straight.feed(event)
    late = sorted(events, key=lambda event: event.time + draw.uniform(0.0, 4.9))
    longest = 0
    for k, event in enumerate(late):
        shuffled.feed(event)
        longest = max(longest, len(shuffled.desk.feed.entries))
        if k % 97 == 5:
            shuffled.save(tmp_path / "live.npz")
            shuffled = Dispatcher.load(tmp_path / "live.npz")
    assert look(shuffled) == look(straight)
    # 10 events come in 5 s: no more than a few windows of them are kept.
    assert longest <= 50
