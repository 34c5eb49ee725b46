"""A fleet that changes, urgent and later tasks, recalls, reasons: by hand."""

import pytest
from live_events import line
from worlds import make_task

from acerl_np import ACERL, Config, Dispatcher, IndexPolicy, Instance, Lookahead, load_suite
from acerl_np.live import events as E
from acerl_np.support.errors import EventError

NEAREST = IndexPolicy.of_weights(approach=-1.0)


def make(policy="FCFS", vehicles=(("v0", "a"),), **options):
    return Dispatcher(line(*vehicles), policy, **options)


def names(assignments):
    return [(item.vehicle, item.task) for item in assignments]


@pytest.mark.parametrize("policy", ["FCFS", NEAREST], ids=["rule", "index"])
def test_a_vehicle_joins_and_works(policy):
    dispatcher = make(policy)
    dispatcher.feed(E.TaskArrived(0.0, "t0", "b", "c", 90.0))
    dispatcher.feed(E.TaskArrived(0.0, "t1", "d", "e", 90.0, demand=3.0))
    assert len(dispatcher.decide(0.0)) == 1
    dispatcher.feed(E.VehicleAdded(1.0, "new", "e", speed=2.0, capacity=5.0))
    assert dispatcher.idle == ("new",)
    (given,) = dispatcher.decide(1.0)
    assert given.vehicle == "new"
    # It drives at its own speed: two edges if t1 was left, else three and one.
    metres = {"t1": 10 + 10, "t0": 30 + 10}[given.task]
    assert given.finish == 1.0 + metres / 2.0
    dispatcher.feed(E.TaskArrived(2.0, "heavy", "a", "b", 90.0, demand=6.0))
    dispatcher.feed(E.VehicleIdle(20.0, "new", "e"))
    assert dispatcher.decide(20.0) == []


def test_the_last_vehicle_stays():
    with pytest.raises(EventError, match="the last vehicle; expected at least one to stay"):
        make().feed(E.VehicleRemoved(3.0, "v0"))


@pytest.mark.parametrize("policy", ["FCFS", NEAREST], ids=["rule", "index"])
def test_out_of_service_and_back(policy):
    """However near it is: the model of the service's core has what else may become of it."""
    dispatcher = make(policy, vehicles=(("v0", "a"), ("v1", "e")))
    dispatcher.feed(E.VehicleOutOfService(0.0, "v0"))
    dispatcher.feed(E.TaskArrived(0.0, "near", "a", "b", 90.0))
    assert [item.vehicle for item in dispatcher.decide(0.0)] == ["v1"]
    dispatcher.feed(E.VehicleBack(4.0, "v0", site="c"))
    dispatcher.feed(E.TaskArrived(4.0, "other", "d", "e", 90.0))
    assert dispatcher.sites["v0"] == "c"
    assert [item.vehicle for item in dispatcher.decide(4.0)] == ["v0"]


def test_an_index_policy_counts_only_vehicles_in_service():
    """One that leaves, and one that has left, take no task and are not waited for."""
    policy = IndexPolicy.of_weights(approach=-1.0, last_end=-1.0, imbalance=-1.0)

    def decide(*more):
        fleet = (("v0", "a"), ("v1", "b"), *((vehicle, "e") for vehicle in more))
        dispatcher = make(policy, vehicles=fleet, explain=True)
        for vehicle in more:
            if vehicle == "leaves":
                dispatcher.feed(E.TaskArrived(0.0, "far", "e", "a", 900.0))
                assert names(dispatcher.decide(0.0)) == [("leaves", "far")]
            dispatcher.feed(E.VehicleOutOfService(1.0, vehicle))
        dispatcher.feed(E.TaskArrived(2.0, "t", "c", "d", 90.0))
        return [option[:4] for option in dispatcher.decide(2.0)[0].reason.options]

    assert decide("leaves") == decide("left") == decide()
    assert [option[0] for option in decide()] == ["v1", "v0"]


def test_a_policy_for_one_fleet_refuses_another_and_goes_on():
    fleet = ("v0", "a"), ("v1", "e")
    rows = [make_task("t", "a", "b", 0.0, 9.0)]
    record = Instance.from_rows("day", line(*fleet), rows)
    network = ACERL([record], Config(generations=0, hidden=(2,), slots="pool")).policy
    dispatcher = make(network, vehicles=fleet)
    for event in (E.VehicleAdded(0.0, "v2", "a"), E.VehicleRemoved(0.0, "v1")):
        with pytest.raises(EventError, match="vehicles"):
            dispatcher.feed(event)
    assert dispatcher.idle == ("v0", "v1")


# Tasks


@pytest.mark.parametrize("policy", ["FCFS", "NVF", NEAREST], ids=["FCFS", "NVF", "index"])
def test_the_highest_priority_that_a_vehicle_may_carry_is_offered(policy):
    """However low the priority of what it can carry, and as the priorities are by now."""
    dispatcher = make(policy, vehicles=(("small", "a", 5), ("large", "a", 50)))
    dispatcher.feed(E.TaskArrived(0.0, "x", "a", "b", 10.0, demand=60.0))
    assert "demand 60 exceeds every vehicle's capacity" in dispatcher.tasks()["x"].reason
    dispatcher.feed(E.TaskArrived(0.0, "plain", "a", "b", 90.0))
    for k in range(30):
        dispatcher.feed(E.TaskArrived(0.0, f"heavy{k}", "e", "d", 900.0, demand=9.0, priority=2.0))
    dispatcher.feed(E.TaskArrived(0.0, "soon", "d", "e", 900.0, demand=5.0, priority=3.0))
    dispatcher.feed(E.TaskChanged(0.0, "soon", priority=1.0))
    with pytest.raises(EventError, match="vehicle 'small' carries 5"):
        dispatcher.assign(0.0, "small", "heavy0")
    given = dict(names(dispatcher.decide(0.0)))
    assert given["large"].startswith("heavy") and given["small"] == "soon"
    dispatcher.feed(E.VehicleIdle(60.0, "small", "e"))
    assert names(dispatcher.decide(60.0)) == [("small", "plain")]
    # A full load may be given by hand, too.
    dispatcher.feed(E.VehicleIdle(90.0, "small", "b"))
    dispatcher.feed(E.TaskArrived(90.0, "full", "a", "b", 90.0, demand=5.0))
    assert dispatcher.assign(90.0, "small", "full").vehicle == "small"


def test_a_changed_due_time_counts():
    for due, first in ((None, "a"), (50.0, "b")):
        dispatcher = make("EDD")
        dispatcher.feed(E.TaskArrived(0.0, "a", "a", "b", 100.0))
        dispatcher.feed(E.TaskArrived(0.0, "b", "b", "c", 200.0))
        dispatcher.feed(E.TaskChanged(1.0, "b", due=due))
        assert names(dispatcher.decide(1.0)) == [("v0", first)]
        with pytest.raises(EventError, match=f"task '{first}' is on vehicle 'v0'"):
            dispatcher.feed(E.TaskChanged(2.0, first, due=500.0))
        dispatcher.feed(E.VehicleIdle(130.0, "v0", "b" if first == "a" else "c"))
        assert dispatcher._floor.day.delay == (80.0 if due else 30.0)


def test_a_task_is_held_back_until_its_earliest_start():
    dispatcher = make("EDD")
    dispatcher.feed(E.TaskArrived(0.0, "later", "b", "c", 60.0, earliest_start=20.0))
    dispatcher.feed(E.TaskArrived(0.0, "last", "b", "c", 60.0, earliest_start=40.0))
    assert (dispatcher.waiting, dispatcher.planned) == ((), ("later", "last"))
    assert dispatcher.next_time == 20.0
    with pytest.raises(EventError, match="task 'later' is announced; expected a name that no task"):
        dispatcher.feed(E.TaskArrived(1.0, "later", "b", "c", 60.0))
    # Until then it is changed and cancelled, too.
    dispatcher.feed(E.TaskArrived(1.0, "gone", "b", "c", 60.0, earliest_start=20.0))
    dispatcher.feed(E.TaskCancelled(1.0, "gone"))
    with pytest.raises(EventError, match=r"due: read 19\.0; expected a time from 20 s on"):
        dispatcher.feed(E.TaskChanged(2.0, "later", due=19.0))
    dispatcher.feed(E.TaskChanged(2.0, "later", due=50.0))
    assert dispatcher.planned == ("later", "last")
    assert dispatcher.decide(19.5) == []
    dispatcher.feed(E.TaskArrived(30.0, "plain", "b", "c", 300.0))
    assert dispatcher.waiting == ("later", "plain")
    (given,) = dispatcher.decide(30.0)
    assert (given.task, dispatcher.next_time) == ("later", 40.0)
    # It is due as it was told before.
    dispatcher.feed(E.VehicleIdle(70.0, "v0", "c"))
    assert dispatcher._floor.day.delay == 20.0
    dispatcher.feed(E.TaskCancelled(70.0, "plain"))
    assert (dispatcher.waiting, dispatcher.next_time) == (("last",), None)


@pytest.mark.parametrize("cancel", [False, True])
def test_a_recalled_task_waits_again_or_is_gone(cancel):
    dispatcher = make()
    dispatcher.feed(E.TaskArrived(0.0, "t", "d", "e", 90.0, handling_time=4.0))
    (given,) = dispatcher.decide(0.0)
    assert (given.finish, given.reason) == (0.0 + 30 + 10 + 4, None)
    dispatcher.feed(E.VehiclePassed(10.0, "v0", "b"))
    dispatcher.feed(E.TaskRecalled(14.0, "t", cancel=cancel))
    # Between b and c: it is idle at c.
    assert (dispatcher.sites["v0"], dispatcher.idle) == ("c", ("v0",))
    assert dispatcher.waiting == (() if cancel else ("t",))
    if cancel:  # what begins where the vehicle stands is fetched at once
        dispatcher.feed(E.TaskArrived(14.0, "t", "c", "e", 90.0))
        dispatcher.decide(14.0)
    else:
        (again,) = dispatcher.decide(14.0)
        assert again.finish == 14.0 + 10 + 10 + 4
        dispatcher.feed(E.VehiclePassed(24.0, "v0", "d"))
    with pytest.raises(EventError, match="'v0', which has been at its pickup"):
        dispatcher.feed(E.TaskRecalled(25.0, "t"))


# Answers


def test_the_parts_of_a_score_by_hand():
    # From a: b at 10 m, d at 30 m.
    dispatcher = make(NEAREST, explain=True)
    dispatcher.feed(E.TaskArrived(0.0, "far", "d", "b", 900.0))
    dispatcher.feed(E.TaskArrived(0.0, "near", "b", "c", 900.0))
    (given,) = dispatcher.decide(0.0)
    best, other = given.reason.options
    gain = best.value - other.value
    assert given.reason.parts == (f"way to the pickup: 20 s less ({gain:+.2f})",)
    line = f"v0 takes near rather than v0 far: way to the pickup: 20 s less ({gain:+.2f})"
    assert given.describe() == line
    assert make().decide(0.0) == []
    # A rule's are ways alone.
    dispatcher = make("NVF", explain=True)
    dispatcher.feed(E.TaskArrived(0.0, "far", "e", "d", 90.0))
    dispatcher.feed(E.TaskArrived(0.0, "near", "b", "c", 90.0))
    (given,) = dispatcher.decide(0.0)
    reason = given.reason
    assert (reason.by, reason.measure) == ("NVF", "way to the pickup, m")
    options = [(own.vehicle, own.task, own.value) for own in reason.options]
    assert options == [("v0", "near", 10.0), ("v0", "far", 40.0)]
    assert given.describe().startswith("v0 takes near")


def test_what_becomes_of_all_that_waits_by_hand():
    """Near first: at c after 20 s, at b with far after 50 s. Far first: at b after 50 s, at c after 60 s."""
    dispatcher = make(IndexPolicy.of_weights(last_end=-1.0), explain=True)
    dispatcher.feed(E.TaskArrived(5.0, "far", "d", "b", 900.0))
    dispatcher.feed(E.TaskArrived(5.0, "near", "b", "c", 25.0))
    (given,) = dispatcher.decide(5.0)
    outlook = "then all is done by 55 s, 0 s late in all; with v0 far: 65 s, 35 s late"
    assert given.reason.outlook == outlook
    assert given.describe().startswith(f"v0 takes near rather than v0 far: {outlook}; time until")
    # Of a long queue the next tasks are spoken of.
    dispatcher = make(
        IndexPolicy.of_weights(approach=-1.0, waiting=0.5, last_end=-0.1), explain=True
    )
    for k in range(13):
        dispatcher.feed(E.TaskArrived(float(k), f"t{k}", "bcde"[k % 4], "a", 900.0))
    (given,) = dispatcher.decide(13.0)
    assert given.reason.outlook.startswith("then the next 12 are done by ")


def test_reasons_of_other_policies():
    ahead = Lookahead(NEAREST, history=load_suite("dmh-train")[:2], futures=2)

    def decide(policy, **options):
        dispatcher = Dispatcher("dmh", policy, budget=None, **options)
        for name, site in (("x", "st1"), ("y", "st3")):
            dispatcher.feed(E.TaskArrived(0.0, name, site, "st5", 90.0))
        return dispatcher.decide(0.0)[0]

    for policy, by in ((NEAREST, "index"), (ahead, "lookahead")):
        first = decide(policy, explain=True)
        assert first.reason.by == by
        options = [(o.vehicle, o.task) for o in first.reason.options]
        assert (first.vehicle, first.task) in options and len(options) > 1
        assert decide(policy) == first
