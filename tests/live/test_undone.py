"""Whatever a call raises, the dispatcher is as it was; and what is refused or reported as doubtful."""

from __future__ import annotations

import copy
import json
import math
import random
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from live_events import ERRAND_MAKERS, floor, look
from machine import JIT

from acerl_np import Dispatcher, EventError, EventWarning, InputError, Layout, SharingError
from acerl_np.kernels.core import state
from acerl_np.live import board
from acerl_np.live import events as E
from acerl_np.support.files import read_arrays

SEEN = [name for name, own in vars(Dispatcher).items() if isinstance(own, property)]


def describe(dispatcher, folder):
    dispatcher.save(folder / "state.npz")
    seen = [getattr(dispatcher, name) for name in SEEN if name != "layout"]
    state = read_arrays(folder / "state.npz", InputError)
    state.pop("log", None)  # a copy has none
    return {name: own.tobytes() for name, own in state.items()}, look(dispatcher), seen


def interrupt(call, n, kind):
    """Call, but raise when the package's live side is at its n-th call; return what was raised."""

    def watch(frame, event, _):
        nonlocal n
        is_ours = "acerl_np/live/" in frame.f_code.co_filename.replace("\\", "/")
        n -= event == "call" and is_ours and frame.f_code.co_name != "<genexpr>"
        if n < 0:
            sys.setprofile(None)
            raise kind("interrupted")

    sys.setprofile(watch)
    try:
        call()
    except (kind, EventError) as error:
        return error
    finally:
        sys.setprofile(None)
    return None


def draw_call(draw, now, k):
    """Return what to do next with a dispatcher, possible or not."""
    vehicle, site = f"v{draw.randrange(3)}", draw.choice("ABC")
    way = draw.randrange(8)
    if way == 0:
        return lambda own: own.assign(now, vehicle, draw_name(own, k))
    if way == 1:
        return lambda own: own.send(now, vehicle, site)
    if way == 2:
        return lambda own: own.begin_day(now)
    event = draw.choice(ERRAND_MAKERS)(now - draw.choice((0.0, 0.0, 3.0)), k, vehicle, site)
    if way == 3:
        event = draw.choice((E.VehicleAdded(now, f"w{k}", site), E.VehicleRemoved(now, vehicle)))
    if way == 4:
        event = E.TaskArrived(now, f"e{k}", "A", "C", 60.0, earliest_start=now + 4.0)
    holds, number = draw.random() < 0.3, draw.choice((None, k, k // 2))
    return lambda own: own.feed(event, hold=holds, number=number)


def draw_name(dispatcher, k):
    return [*dispatcher.waiting, "none"][k % (len(dispatcher.waiting) + 1)]


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
@pytest.mark.parametrize("seed", range(4 if JIT else 1))
def test_what_raises_changes_nothing(tmp_path, seed):
    """Errors of ours, of anybody and Ctrl-C, at any call within: all is as before, and goes on.

    Nobody has two tasks, and levels stay in bounds.
    """
    draw, now, log = random.Random(seed), 0.0, tmp_path / "day.jsonl"
    options = {"commitment": ("pickup", "assignment")[seed % 2], "max_changes": 2}
    dispatcher = Dispatcher(floor(3), "nearest", audit=log, **options)
    for k in range(40 if JIT else 5):
        now += draw.choice((0.0, 0.5, 2.0, 6.0))
        call = draw_call(draw, now, k)
        before, twin = describe(dispatcher, tmp_path), copy.copy(dispatcher)
        for n in (*sorted(draw.sample(range(80), 5)), 10**9):
            kind = draw.choice((RuntimeError, KeyboardInterrupt, MemoryError))
            error = interrupt(lambda call=call: call(dispatcher), n, kind)
            if error is None:
                call(twin)
                break
            assert describe(dispatcher, tmp_path) == before
            if isinstance(error, EventError):
                break
        if draw.random() < 0.5:
            assert dispatcher.decide(now) == twin.decide(now)
        carried = [own.task for own in dispatcher._floor.vehicles if own.task is not None]
        assert len(carried) == len(set(carried)) and not set(carried) & set(dispatcher.waiting)
        assert all(0 <= level <= 1000 for level in dispatcher.levels.values())
        found = describe(dispatcher, tmp_path)
        loaded = Dispatcher.load(tmp_path / "state.npz")
        assert look(loaded)[:6] == found[1][:6]  # when to ask next it knows once it was asked
        assert found == describe(twin, tmp_path)
    dispatcher.close()
    again = Dispatcher.recover(floor(3), "nearest", audit=log)
    for own in (dispatcher, again):
        # A log does not say to what time the last questions without an answer came.
        own.observe(now)
    assert look(again)[:6] == look(dispatcher)[:6]


def test_a_vehicle_without_tables_is_not_added(monkeypatch, tmp_path):
    dispatcher = Dispatcher("dmh", "STD")
    dispatcher.feed(E.TaskArrived(0.0, "t", "st1", "st5", 400.0))
    before, broken = describe(dispatcher, tmp_path), [True]

    def allocate(*given):
        if broken and broken.pop():
            raise IndexError("tables")
        return state.allocate_state(*given)

    with pytest.raises(IndexError), monkeypatch.context() as patch:
        patch.setattr(board, "S", SimpleNamespace(**{**vars(state), "allocate_state": allocate}))
        dispatcher.feed(E.VehicleAdded(1.0, "w", "st6"))
    assert describe(dispatcher, tmp_path) == before
    dispatcher.feed(E.VehicleAdded(1.0, "w", "st6"))
    assert dispatcher.idle == ("v0", "v1", "v2", "w")


def test_a_refused_order_does_not_move_the_clock():
    dispatcher = Dispatcher(floor(2), "nearest")
    dispatcher.feed(E.TaskArrived(0.0, "t", "B", "C", 60.0, earliest_start=10.0))
    for order, *more in ((dispatcher.assign, "none"), (dispatcher.send, "A")):
        with pytest.raises(EventError):
            order(20.0, "v0", *more)
    assert (dispatcher.planned, dispatcher.waiting) == (("t",), ())
    dispatcher.feed(E.VehiclePassed(8.0, "v0", "B"))
    assert dispatcher.assign(10.0, "v0", "t")[:2] == ("v0", "t")


def test_properties_in_use_are_refused():
    dispatcher = Dispatcher("dmh", "STD")
    for name in SEEN:
        told = pytest.raises(SharingError, match="dispatcher: in use by another")
        with dispatcher._use.acquire(), told:
            getattr(dispatcher, name)
        getattr(dispatcher, name)


@dataclass(frozen=True)
class Numbered(E.TaskArrived):
    message: object = None


def test_a_class_derived_from_an_event_counts_as_the_event(tmp_path):
    dispatcher = Dispatcher("dmh", "STD", audit=tmp_path / "day.jsonl")
    told = E.TaskArrived(0.0, "t", "st1", "st5", 400.0)
    dispatcher.feed(Numbered(**vars(told), message={}), number=1)
    dispatcher.feed(told)
    assert dispatcher.waiting == ("t",)
    dispatcher.save(tmp_path / "live.npz")
    assert look(Dispatcher.load(tmp_path / "live.npz")) == look(dispatcher)
    dispatcher.close()
    assert look(Dispatcher.recover("dmh", "STD", audit=tmp_path / "day.jsonl")) == look(dispatcher)


def test_stations_of_other_names():
    data = floor(1).to_dict() | {"aliases": {"dock": "B", "plug": "C"}}
    dispatcher = Dispatcher(Layout.from_dict(data), "nearest")
    dispatcher.feed(E.VehicleAdded(0.0, "w", "dock"))
    assert dispatcher.sites["w"] == "B"
    assert dispatcher.send(0.0, "v0", "plug").site == "C"


# Times of another clock or unit


@pytest.mark.parametrize("time", [1.75e9, -1e6, 604_801.0, 10**300])
def test_a_first_time_far_from_the_start_is_refused(tmp_path, time):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher("dmh", "STD", audit=log)
    before = describe(dispatcher, tmp_path), log.read_bytes()
    check_far(dispatcher, time, r"more than 604,800 s from .* start= or begin_day")
    assert (describe(dispatcher, tmp_path), log.read_bytes()) == before
    dispatcher.begin_day(1.75e9)
    dispatcher.feed(E.VehiclePassed(1.75e9 + 5.0, "v0", "st1"))
    Dispatcher("dmh", "STD", start=1.75e9).decide(1.75e9 - 60.0)


def test_a_time_far_ahead_is_refused_and_all_goes_on(tmp_path):
    dispatcher = Dispatcher("dmh", "STD", ahead=3600.0)
    dispatcher.feed(E.TaskArrived(5.0, "t", "st1", "st5", 400.0))
    dispatcher.save(tmp_path / "live.npz")
    for own in (dispatcher, Dispatcher.load(tmp_path / "live.npz")):
        check_far(own, 3606.0, r"more than 3,600 s from 5.0 s, the latest time")
        assert own.decide(3605.0)
        own.begin_day(9000.0)
        own.decide(12_600.0)
    for ahead in (0.0, -1.0, math.inf, True):
        with pytest.raises(InputError, match="ahead: read"):
            Dispatcher("dmh", "STD", ahead=ahead)


# Held in vain, missing, doubtful


@pytest.mark.parametrize("way", ["feed", "decide", "load", "recover"])
def test_what_is_held_in_vain_is_reported_and_may_come_again(tmp_path, way):
    log = tmp_path / "day.jsonl"
    dispatcher = Dispatcher("dmh", "STD", audit=log)
    dispatcher.feed(E.VehiclePassed(0.0, "v0", "st1"), number=7)
    dispatcher.feed(repaired := E.VehicleRepaired(1.0, "v0"), hold=True, number=9)
    dispatcher.feed(E.VehiclePassed(2.0, "v0", "st2"), number=10)
    assert (dispatcher.held, dispatcher.missing_numbers) == ((repaired,), (range(8, 9),))
    if way == "decide":
        dispatcher.decide(6.5)
        dispatcher.begin_day(0.0)
        assert (dispatcher.held, dispatcher.expired) == ((), (repaired,))
        assert dispatcher.missing_numbers == (range(8, 10),)
    if way == "load":
        dispatcher.save(tmp_path / "live.npz")
        dispatcher.close()
        dispatcher = Dispatcher.load(tmp_path / "live.npz", audit=log)
    if way == "recover":
        dispatcher.close()
        dispatcher = Dispatcher.recover("dmh", "STD", audit=log)
    dispatcher.feed(E.VehicleBroke(6.6, "v0"), number=9)  # the plant's counter began anew
    assert (dispatcher.held, dispatcher.expired) == ((), (repaired,))
    assert (dispatcher.missing_numbers, dispatcher.last_number) == ((range(8, 9),), 10)
    line = json.loads(log.read_text().splitlines()[-1])
    assert way == "decide" or line["expired"] == [{"kind": "VehicleRepaired", **vars(repaired)}]
    dispatcher.close()
    again = Dispatcher.recover("dmh", "STD", audit=log)
    assert (again.missing_numbers, look(again)) == ((range(8, 9),), look(dispatcher))
    assert again.idle == ("v1", "v2")


def test_levels_in_percent_and_levels_that_fall(tmp_path):
    dispatcher = Dispatcher(floor(1), "nearest", audit=tmp_path / "day.jsonl")
    dispatcher.feed(E.VehicleLevel(0.0, "v0", percent=85))
    assert dispatcher.levels == {"v0": 850.0}
    for level in (E.VehicleLevel(1.0, "v0"), E.VehicleLevel(1.0, "v0", 5, 5)):
        with pytest.raises(EventError, match="expected either a level or percent"):
            dispatcher.feed(level)
    with pytest.raises(EventError, match="percent: read 101; expected a number from 0 to 100"):
        dispatcher.feed(E.VehicleLevel(1.0, "v0", percent=101))
    with pytest.raises(EventWarning, match=r"v0' has 85 of 1,000; .* percent="):
        dispatcher.feed(E.VehicleLevel(1.0, "v0", 85))
    assert dispatcher.levels == {"v0": 850.0}  # as warnings are errors here
    with pytest.warns(EventWarning) as caught:
        dispatcher.feed(E.VehicleLevel(1.0, "v0", 85))
    assert (dispatcher.levels, caught[0].filename) == ({"v0": 85.0}, __file__)
    dispatcher.close()
    again = Dispatcher.recover(floor(1), "nearest", audit=tmp_path / "day.jsonl")
    assert again.levels == dispatcher.levels


def test_a_delivery_told_late_gives_no_energy():
    """It was before its own order, by the time it is told for: nothing was used, and nothing charged."""
    dispatcher = Dispatcher(floor(1), "nearest")
    dispatcher.feed(E.VehicleLevel(10.0, "v0", 1000))
    dispatcher.feed(E.TaskArrived(10.0, "a", "A", "B", 60.0))
    dispatcher.assign(12.0, "v0", "a")
    dispatcher.feed(E.VehicleIdle(9.0, "v0", "B"))
    assert dispatcher.levels == {"v0": 1000.0}


@pytest.mark.parametrize("hold", [False, True])
def test_no_number_is_refused_also_of_what_is_held(hold):
    """A log says of infinity what it says of no number."""
    dispatcher = Dispatcher(floor(1), "nearest")
    no_expiry = E.TaskArrived(1.0, "a", "A", "B", None)
    for event in (
        no_expiry,
        replace(no_expiry, expiry=9.0, priority=None),
        E.VehicleAdded(1.0, "w", "A", None),
    ):
        with pytest.raises(EventError, match=r"(expiry|priority|speed): read None; expected"):
            dispatcher.feed(event, hold=hold)


def check_far(dispatcher, time, message):
    for call in (
        lambda: dispatcher.feed(E.VehiclePassed(time, "v0", "st1")),
        lambda: dispatcher.feed(E.VehicleRepaired(time, "v0"), hold=True, number=3),
        lambda: dispatcher.decide(time),
        lambda: dispatcher.assign(time, "v0", "t"),
        lambda: dispatcher.send(time, "v0", "st1"),
        lambda: dispatcher.observe(time),
        lambda: dispatcher.forecast(time),
    ):
        with pytest.raises(EventError, match=message):
            call()
