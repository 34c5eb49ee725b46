"""What is to be expected of the tasks that a dispatcher knows."""

import copy
import math

import numpy as np
import pytest
from live_events import line, look, play_reckoned, quiet, tell_row
from machine import JIT

from acerl_np import Dispatcher, IndexPolicy, Instance, Layout, Lookahead, Simulator, load_layout
from acerl_np.kernels.rollout import forecast as forecasts
from acerl_np.live import events as E
from acerl_np.policies.rules import RulePolicy
from acerl_np.support.errors import EventError, InputError, PolicyError

LAYOUT = load_layout("dmh").with_breakdowns({})
INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)
POLICIES = {"index": INDEX, "nearest": "nearest", "lookahead": Lookahead("STD", futures=0)}


def simulate(policy, instance):
    """Return when each task is delivered if the policy plays the record."""
    player = RulePolicy(policy) if isinstance(policy, str) else policy
    sim = Simulator(instance, slots="pool")
    while not sim.done[0]:
        sim.assign(*player.choose(sim))
    schedule = sim.schedule(0)
    return dict(zip(schedule.task, schedule.finish.tolist(), strict=True))


@pytest.mark.oracle
@pytest.mark.compiles
@pytest.mark.parametrize("name", ["index", "nearest"])
def test_what_is_known_is_forecast_as_it_is_simulated(name):
    """A day whose tasks are held back from its start, and one that goes on as its record: to the second."""
    policy, instance = POLICIES[name], quiet("DMH-03")
    expected, dispatcher = simulate(policy, instance), Dispatcher(LAYOUT, policy)
    for row in instance.rows():
        dispatcher.feed(tell_row(row, 0.0))
    found = dispatcher.forecast(0.0, budget=None)
    assert {item.task: item.delivery for item in found} == expected
    for item, row in zip(found, instance.rows(), strict=True):
        assert item.due == row["arrival_time"] + row["expiry_time"]
        assert item.late == (expected[item.task] > item.due)
        assert (item.vehicle, item.spread, item.futures, item.records) == (None, 0.0, 1, 0)
    # What is still to come is found in the history, which has the day itself.
    dispatcher = Dispatcher(LAYOUT, policy)
    play_reckoned(dispatcher, instance, until=100.0)
    found = dispatcher.forecast(100.5, history=[instance], futures=3, budget=None)
    assert {item.task for item in found} == {*dispatcher.waiting, *dispatcher.under_way}
    assert {item.task: item.vehicle for item in found if item.vehicle} == dispatcher.under_way
    assert len(dispatcher.waiting) > 1 and len(dispatcher.under_way) == 3
    # Seconds are counted from now, and begun ones are whole.
    for item in found:
        assert abs(item.delivery - expected[item.task]) <= 0.5
        assert (item.futures, item.records) == (3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_a_forecast_changes_nothing(name):
    instance = quiet("DMH-05")
    dispatcher = Dispatcher(LAYOUT, POLICIES[name])
    for row in instance.rows()[-3:]:
        dispatcher.feed(tell_row(row, 0.0))
    play_reckoned(
        dispatcher, Instance.from_rows("early", LAYOUT, instance.rows()[:-3]), until=200.0
    )
    dispatcher.feed(E.VehicleOutOfService(201.0, "v1"))
    twin = copy.deepcopy(dispatcher)
    board = dispatcher._floor

    def read():
        tables = *board.problem, *board.state, *board.clock
        return look(dispatcher), [table.tobytes() for table in tables], dispatcher.desk.feed.time

    before = read()
    first = dispatcher.forecast(300.0, history=[instance], futures=2, budget=None)
    assert read() == before
    assert dispatcher.forecast(300.0, history=[instance], futures=2, budget=None) == first
    assert read() == before
    assert len(first) == len(board.tasks) + len(board.planned) and len(board.planned) > 0
    for time in (301.0, 350.0):
        for task, vehicle in twin.under_way.items():
            event = E.VehicleIdle(time, vehicle, board.tasks[task].event.delivery)
            dispatcher.feed(event)
            twin.feed(event)
        assert dispatcher.decide(time) == twin.decide(time)
    assert read()[0] == look(twin)


def test_the_chance_to_be_late_is_the_share_of_futures():
    """By hand: of two records one has a task at about 40 s that is due before, which is taken first."""
    layout = line(("v", "a"))

    def record(name, arrival):
        row = {"task": "r", "pickup": "b", "delivery": "a", "expiry_time": 30}
        return Instance.from_rows(name, layout, [{**row, "arrival_time": arrival}])

    dispatcher = Dispatcher(layout, "edd-nearest")
    dispatcher.feed(E.TaskArrived(5.0, "x", "a", "c", expiry=100.0, handling_time=60.0))
    dispatcher.decide(5.0)
    dispatcher.feed(E.TaskArrived(6.0, "y", "b", "a", expiry=101.0))
    history = [record("none", 4000.0), record("one", 40.0)]
    y, x = dispatcher.forecast(10.0, history=history, futures=10, budget=None)
    assert x == ("x", "v", 85.0, 0.0, 105.0, 0.0, 10, 2, False)
    # 10 m to b and 10 m back; or as much for the other task before, and 10 m to b again.
    assert y == ("y", None, 105.0 + 20.0 * y.late, y.spread, 107.0, y.late, 10, 2, False)
    assert 0.4 <= y.late <= 0.6
    assert y.spread == pytest.approx(20.0 * math.sqrt(y.late * (1.0 - y.late)))


def test_who_cannot_be_served_and_who_is_back_after_a_while():
    layout = line(("v", "a"), ("small", "a", 1))
    dispatcher = Dispatcher(layout, "nearest")
    assert dispatcher.forecast(0.0) == []
    dispatcher.feed(E.VehicleOutOfService(1.0, "v"))
    dispatcher.feed(E.TaskArrived(2.0, "large", "b", "c", 90.0, demand=5.0))
    dispatcher.feed(E.TaskArrived(2.0, "light", "b", "c", 90.0, demand=1.0))
    large, light = dispatcher.forecast(2.0)
    assert (large.delivery, large.late) == (math.inf, 1.0) and math.isnan(large.spread)
    assert (light.delivery, light.late) == (22.0, 0.0)
    dispatcher.feed(E.VehicleBroke(3.0, "small"))
    _, light = dispatcher.forecast(3.0)
    assert 23.0 < light.delivery < 90.0


@pytest.mark.slow
def test_the_records_are_those_of_the_policy_if_they_fit():
    record = quiet("DMH-01")
    policy = Lookahead("nearest", history=[record])
    assert Dispatcher(LAYOUT, policy).forecast(0.0) == []
    for given, n in ((policy, 1), ("nearest", 0)):
        dispatcher = Dispatcher(LAYOUT, given)
        dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", 90.0))
        [found] = dispatcher.forecast(0.0, futures=2)
        assert found.records == n


def test_a_budget_of_nothing_plays_one_future():
    dispatcher = Dispatcher(LAYOUT, "nearest")
    for k in range(1, 6):
        dispatcher.feed(E.TaskArrived(0.0, f"t{k}", f"st{k}", "st7", 90.0))
    history = [quiet("DMH-01"), quiet("DMH-02")]
    found = dispatcher.forecast(0.0, history=history, budget=0.0)
    assert {item.futures for item in found} == {1}
    found = dispatcher.forecast(0.0, history=history, futures=8, budget=None)
    assert {item.futures for item in found} == {8}
    assert max(item.spread for item in found) > 0.0


def test_what_is_no_forecast_is_refused():
    class Own:
        def choose(self, sim):
            return np.zeros(1, np.int64), np.zeros(1, np.int64)

    dispatcher = Dispatcher(LAYOUT, "nearest")
    dispatcher.feed(E.TaskArrived(9.0, "a", "st1", "st2", 90.0))
    elsewhere = Dispatcher(line(("v", "a")), "nearest")
    for own, time, options, error, message in (
        (Dispatcher(LAYOUT, Own()), 9.0, {}, PolicyError, "must be compiled"),
        (dispatcher, 9.0, {"futures": 0}, InputError, "futures: read 0; .* whole number from 1"),
        (dispatcher, 9.0, {"budget": "x"}, InputError, "budget: read x; .* seconds, or None"),
        (dispatcher, 8.0, {}, EventError, "forecast at 8"),
        (elsewhere, 9.0, {"history": [quiet("DMH-01")]}, PolicyError, "no site .* record DMH-01"),
    ):
        with pytest.raises(error, match=message):
            own.forecast(time, **options)


@pytest.mark.oracle
@pytest.mark.compiles(long=True)
def test_a_task_that_no_battery_can_serve_is_never_delivered(monkeypatch):
    if not JIT:  # else a week of towing is over in no time
        monkeypatch.setattr(forecasts, "GIVEN_UP", 3600)
    rates = {"idle": 1, "empty": 2, "loaded": 3, "charge": 5, "capacity": 120, "start": 120}
    levels = {"critical": 82, "resume": 85, "good": 90, "full": 110, "tow": 60}
    data = line(("v", "a")).to_dict()
    data |= {"battery": rates | levels, "chargers": [{"site": "a"}]}
    dispatcher = Dispatcher(Layout.from_dict(data), "nearest")
    # 20 s empty, 20 s loaded, and what a vehicle must have left: more than it is charged to.
    dispatcher.feed(E.TaskArrived(0.0, "t", "c", "e", 90.0))
    assert dispatcher.decide(0.0) == []
    [found] = dispatcher.forecast(0.0)
    assert (found.vehicle, found.delivery, found.late) == (None, math.inf, 1.0)
