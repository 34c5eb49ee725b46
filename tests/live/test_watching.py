"""What a page shows of a dispatcher: tasks, vehicles on their ways, orders, the queue over the day."""

import copy
import json
import random
from itertools import pairwise

import pytest
from live_events import do_anything, floor, line

from acerl_np import Dispatcher, Layout, load_layout
from acerl_np.live import events as E
from acerl_np.live.watching import EVERY
from acerl_np.live.wire import format_line
from acerl_np.support.errors import EventError

LAYOUT = load_layout("dmh").with_breakdowns({})


def arrive(time, name, pickup="b", delivery="e", expiry=90.0):
    return E.TaskArrived(time, name, pickup, delivery, expiry)


def test_a_day_by_hand():
    dispatcher = Dispatcher(line(("v0", "a"), ("v1", "e")), "nearest", explain=True)
    dispatcher.feed(arrive(0.0, "t1"))
    dispatcher.decide(0.0)
    dispatcher.feed(arrive(5.0, "t2", "c", "d"))
    seen = dispatcher.describe()
    # 10 m to its pickup at 1 m/s; then 30 m more.
    assert seen["vehicles"] == [
        ["to pickup", "t1", None, [(0, 0.0), (1, 10.0)]],
        ["idle", None, None, [(4, 0.0)]],
    ]
    given, waiting = ["t1", 1, 4, 90.0, "given", 0, 40.0], ["t2", 2, 3, 95.0, "waiting", -1, 10.0]
    assert seen["tasks"] == [given, waiting]
    [order] = seen["orders"]
    assert (order["kind"], order["time"], order["reason"]["by"]) == ("Assigned", 0.0, "nearest")
    dispatcher.feed(E.VehiclePassed(14.0, "v0", "b"))
    dispatcher.feed(E.VehicleOutOfService(14.0, "v1"))
    dispatcher.feed(E.VehiclePassed(26.0, "v0", "c"))
    seen = dispatcher.describe()
    assert seen["vehicles"] == [
        ["loaded", "t1", None, [(2, 26.0), (3, 36.0), (4, 46.0)]],
        ["out of service", None, None, [(4, 14.0)]],
    ]
    dispatcher.feed(E.VehicleIdle(100.0, "v0", "e"))
    figures = {"time": 100.0, "start": 0.0, "waiting": 1, "announced": 0, "delivered": 1}
    assert dispatcher.describe()["figures"] == {**figures, "delay": 10.0}


@pytest.mark.parametrize("other", "bc")
def test_named_routes_are_followed(other):
    """From a to d the ways over b and c are as short, and the layout names one of them."""
    places = {"a": (0, 0), "b": (9, 0), "c": (0, 9), "d": (9, 9)}
    data = {"format": 1, "name": "square", "routes": [["a", other, "d"]]}
    data["sites"] = [{"id": name, "x": x, "y": y} for name, (x, y) in places.items()]
    data["edges"] = [{"a": a, "b": b} for a, b in ("ab", "ac", "bd", "cd")]
    for start, ends in ((other, "ad"), ("a", "d" + other)):  # loaded, and to a pickup
        layout = Layout.from_dict({**data, "vehicles": [{"id": "v0", "start": start}]})
        dispatcher = Dispatcher(layout, "nearest")
        dispatcher.feed(arrive(0.0, "t1", *ends))
        dispatcher.decide(0.0)
        recalled = copy.copy(dispatcher)
        recalled.feed(E.TaskRecalled(2.0, "t1"))
        assert recalled.sites["v0"] == (other if start == "a" else "a")
        for passed, left in (("a", ["a", other, "d"]), (other, [other, "d"])):
            dispatcher.feed(E.VehiclePassed(9.0, "v0", passed))
            [[_, _, _, way]] = dispatcher.describe()["vehicles"]
            assert [layout.sites[site].id for site, _ in way] == left


def test_the_queue_is_what_waited_before_an_event_and_who_was_late():
    dispatcher = Dispatcher(line(("v0", "a")), "nearest")
    dispatcher.feed(arrive(0.0, "t1", expiry=20.0))
    dispatcher.feed(arrive(1.0, "t2", expiry=1000.0))
    dispatcher.decide(1.0)
    dispatcher.feed(E.TaskArrived(EVERY - 1.0, "t3", "b", "e", 9.0, earliest_start=EVERY))
    assert dispatcher.describe()["queue"] == ((0.0, 0, 0),)
    dispatcher.feed(arrive(EVERY, "t4"))  # t2 waits, and t3 from now on; t1 is late
    dispatcher.feed(arrive(2.5 * EVERY, "t5"))
    expected = ((0.0, 0, 0), (EVERY, 2, 1), (2.5 * EVERY, 3, 2))
    assert dispatcher.describe()["queue"] == expected
    with pytest.raises(EventError):
        dispatcher.feed(arrive(9.0 * EVERY, "t5"))  # refused: says nothing
    assert dispatcher.describe()["queue"] == expected


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
@pytest.mark.parametrize("errands", [False, True])
def test_ways_follow_edges_and_all_is_there_after_a_restart(tmp_path, errands):
    """Whatever happened: what is shown agrees with what the dispatcher tells, and comes back from its log."""
    layout = floor(3) if errands else LAYOUT
    draw, log, now, told = random.Random(errands), tmp_path / "day.jsonl", 0.0, []
    options = {"commitment": "pickup", "max_changes": 2} if errands else {}
    dispatcher = Dispatcher(layout, "nearest", audit=log, **options)
    moving = 0
    for k in range(300):
        now += draw.choice((0.0, 0.5, 2.0, 6.0))
        do_anything(dispatcher, draw, now, k, told)
        seen, states = dispatcher.describe(), dispatcher.tasks()
        index, routes = dispatcher.layout.site_index, dispatcher.layout.routes
        fleet = [vehicle.id for vehicle in dispatcher.layout.vehicles]
        for name, _, _, _, state, v, _ in seen["tasks"]:
            assert state == states[name].state
            assert (fleet[v] if v >= 0 else "") == states[name].vehicle
        carried = {own[1]: fleet[v] for v, own in enumerate(seen["vehicles"]) if own[1]}
        assert carried == dispatcher.under_way
        for vehicle, (state, _, _, way) in zip(fleet, seen["vehicles"], strict=True):
            moving += len(way) > 1
            assert [site for site, _ in way[:2]].count(index[dispatcher.sites[vehicle]]) == 1
            assert len(way) == 1 or state not in ("idle", "parked", "charging", "broken")
            for (a, before), (b, after) in pairwise(way):
                assert before <= after and routes.edge_length[a, b] < float("inf")
    assert moving > 100
    seen, sound = format_line(dispatcher.describe()), dispatcher.check()
    dispatcher.save(tmp_path / "live.npz")
    dispatcher.close()
    assert sound == [] and len(json.loads(seen)["queue"]) > 5
    for state in (None, tmp_path / "live.npz"):
        own = Dispatcher.recover(layout, "nearest", audit=log, state=state, **options)
        again = json.loads(format_line(own.describe()))
        own.close()
        assert again["orders"] == json.loads(seen)["orders"]
        assert again["queue"] == json.loads(seen)["queue"]
        assert again["vehicles"] == json.loads(seen)["vehicles"]
