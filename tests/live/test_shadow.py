"""In the shadow of a plant's own control: its orders are followed, whatever they are, and compared."""

import copy
import html
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_events import do_anything, floor, line, look

from acerl_np import Dispatcher, load_layout
from acerl_np.live import events as E
from acerl_np.live.daybook import read_audit
from acerl_np.live.service import Service
from acerl_np.live.worker import Worker
from acerl_np.support.errors import EventError

LAYOUT = load_layout("dmh").with_breakdowns({})
ERRANDS = {"commitment": "pickup", "max_changes": 2}


def arrive(task, time=0.0, pickup="st1", **more):
    return E.TaskArrived(time, task, pickup, "st5", 400.0, **more)


def begin(*tasks, layout=LAYOUT, **own):
    dispatcher = Dispatcher(layout, "nearest", **own)
    for task in tasks:
        dispatcher.feed(task if isinstance(task, E.TaskArrived) else arrive(task))
    return dispatcher


def test_an_order_is_compared_with_what_the_policy_would_give():
    dispatcher = begin("a", "b")
    alone = copy.copy(dispatcher)
    expected = [list(order[:2]) for order in copy.copy(dispatcher).decide(1.0)]
    found = dispatcher.follow(1.0, *expected[0][:1], task=expected[0][1])
    assert found.policy == expected and found.agrees and found.then == "taken" and not found.why
    alone.assign(1.0, *expected[0])
    assert look(dispatcher) == look(alone)  # what the policy would have given has gone
    assert dispatcher.follow(1.0, *expected[0][:1], task=expected[0][1]) is None  # told again
    (other,) = {"a", "b"} - {expected[0][1]}
    idle = [name for name in dispatcher.idle if name != expected[1][0]]
    assert not dispatcher.follow(2.0, idle[0], task=other).agrees
    assert dispatcher.followed[:3] == (2, 1, 0)
    for own in ({}, {"task": "a", "site": "st1"}):
        with pytest.raises(EventError, match="expected either a task or a site"):
            dispatcher.follow(3.0, "v0", **own)
    with pytest.raises(EventError, match="before the last event"):
        dispatcher.follow(0.0, "v0", task="b")


def break_down(dispatcher):
    dispatcher.feed(E.VehicleBroke(1.0, "v0"))


def go_out(dispatcher):
    dispatcher.feed(E.VehicleOutOfService(1.0, "v0"))


def give_other(dispatcher):
    dispatcher.assign(1.0, "v1", "a")


def give_another(dispatcher):
    dispatcher.feed(arrive("b", 0.5))
    dispatcher.assign(1.0, "v0", "b")


IMPOSSIBLE = [
    (break_down, "taken", "vehicle 'v0' is not idle"),
    (go_out, "taken", "vehicle 'v0' is out of service"),
    (give_other, "taken", "task 'a' does not wait"),
    (give_another, "queued", "vehicle 'v0' is not idle"),
    (lambda own: own.feed(E.TaskCancelled(1.0, "a")), "away", "task 'a' does not wait"),
]


@pytest.mark.parametrize(("happen", "then", "why"), IMPOSSIBLE)
def test_an_impossible_order_is_followed_and_listed_also_after_a_restart(
    happen, then, why, tmp_path
):
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    with begin("a", audit=log) as dispatcher:
        dispatcher.save(state)
        happen(dispatcher)
        found = dispatcher.follow(2.0, "v0", task="a")
        assert (found.then, found.why) == (then, why)
        assert (dispatcher.under_way.get("a") == "v0") == (then == "taken")
        assert dispatcher.followed.last_impossible[0]["why"] == why and dispatcher.check() == []
        followed = dispatcher.followed
    for own in ({}, {"state": state}):
        with Dispatcher.recover(LAYOUT, "nearest", audit=log, **own) as again:
            assert again.followed == followed and look(again)[1:5] == look(dispatcher)[1:5]
            again.save(state)
    again = Dispatcher.load(state)
    assert again.followed == followed and look(again)[1:5] == look(dispatcher)[1:5]
    # Now the vehicle ends what it does.
    if then == "queued":
        again.feed(E.VehicleIdle(90.0, "v0", "st5"), number=1)
        assert again.under_way == {"a": "v0"} and again.followed.queued == ()
        again.feed(E.VehicleIdle(90.0, "v0", "st5"), number=1)  # told again
        assert again.followed.orders == 1 and again.followed.impossible == 1
    if then == "away":
        assert again.out_of_service == ("v0",)
    again.feed(E.VehicleIdle(200.0, "v0", "st5"), number=2)
    assert "v0" in again.idle and again.sites["v0"] == "st5" and again.followed.away == ()


def test_who_begins_before_the_earliest_start_and_who_cannot_carry():
    dispatcher = begin(arrive("early", earliest_start=90.0))
    assert dispatcher.follow(5.0, "v0", task="early").then == "taken"
    assert dispatcher.under_way == {"early": "v0"}
    assert dispatcher._floor.tasks["early"].due == 400.0
    data = [("w0", "a", 5.0), ("w1", "a", 20.0)]
    heavy = E.TaskArrived(0.0, "h", "b", "c", 400.0, demand=9.0)
    dispatcher = begin(heavy, layout=line(*data))
    found = dispatcher.follow(1.0, "w0", task="h")
    assert (found.policy, found.then) == ([["w1", "h"]], "away") and "demand 9" in found.why
    assert dispatcher.tasks()["h"].state == "cancelled" and dispatcher.idle == ("w1",)


def test_a_delivery_that_was_not_told_follows_from_the_next():
    dispatcher = begin("a", E.TaskArrived(0.0, "b", "st2", "st4", 400.0))
    dispatcher.assign(1.0, "v0", "a")
    assert dispatcher.follow(2.0, "v0", task="b").then == "queued"
    dispatcher.feed(E.VehicleIdle(200.0, "v0", "st4"), number=1)
    assert [dispatcher.tasks()[name].state for name in "ab"] == ["delivered"] * 2
    dispatcher.feed(arrive("c", 210.0))
    dispatcher.follow(210.0, "v0", task="c")
    assert dispatcher.follow(220.0, "v0", task="unknown").then == "queued"
    dispatcher.feed(E.VehicleIdle(300.0, "v0", "st2"), number=2)
    assert dispatcher.tasks()["c"].state == "delivered" and dispatcher.sites["v0"] == "st2"
    assert "v0" in dispatcher.idle and dispatcher.last_number == 2


def test_a_send_is_followed_too():
    dispatcher = Dispatcher(floor(2), "nearest")
    assert dispatcher.follow(0.0, "v0", site="B").then == "taken"
    found = dispatcher.follow(1.0, "v1", site="A")
    assert found.then == "left" and "no charger and no parking place" in found.why
    assert dispatcher.follow(1.0, "v9", site="B").then == "left"


def test_the_service_gives_no_orders_and_lists_what_is_impossible():
    service = Service(begin("a"), shadow=True)

    def tell(**message):
        return list(service.answer(json.dumps(message)))

    [refused] = tell(kind="Decide", time=1.0)
    assert refused["why"] == "Decide: --shadow gives no orders; expected Assign or Send"
    assert Worker(service, wall=True)._asker is None
    followed, answer = tell(kind="Assign", time=1.0, vehicle="v0", task="x", number=4)
    assert (followed["kind"], followed["then"]) == ("Followed", "away")
    assert (answer["kind"], answer["number"]) == ("Ok", 4)
    told = tell(kind="Assign", time=1.0, vehicle="v1", task="a")
    assert [x["kind"] for x in told] == ["Followed", "Ok"]
    state = tell(kind="State")[0]["followed"]
    assert (state["orders"], state["impossible"], state["away"]) == (2, 1, ("v0",))


def test_a_log_with_impossible_orders_is_a_day_beside_others(empty, run):
    log = empty / "day.jsonl"
    with begin("a", "b", "c", audit=log) as dispatcher:
        for vehicle, task in (("v0", "a"), ("v0", "b"), ("v1", "a"), ("v2", "x")):
            dispatcher.follow(2.0, vehicle, task=task)
        dispatcher.feed(E.VehicleIdle(90.0, "v1", "st5"))
        dispatcher.feed(E.VehicleIdle(95.0, "v2", "st3"))
        dispatcher.feed(E.VehicleIdle(120.0, "v0", "st5"))
    past = read_audit(log, LAYOUT)
    assert past.instance.tasks == ("a", "b") and past.vehicle.tolist() == [1, 0]
    assert past.finish.tolist() == [90.0, 120.0]
    run(f"records convert --audit {log} --layout dmh --out day.csv")
    run("evaluate nearest --on day.csv --past day.served.csv --layout dmh --report pilot.html")
    page = html.unescape((empty / "pilot.html").read_text())
    assert "Dispatching on dmh, 3 vehicles, 1 record" in page and "orders that nobody told" in page


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
@pytest.mark.parametrize(
    ("layout", "options"), [(LAYOUT, {}), (floor(3), ERRANDS)], ids=["plain", "errands"]
)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_whatever_a_plant_decides_is_followed(tmp_path_factory, seed, layout, options):
    """Orders at random among events at random: none is refused, the floor is sound, a restart knows all."""
    draw = random.Random(seed)
    log = tmp_path_factory.mktemp("log") / "day.jsonl"
    dispatcher = Dispatcher(layout, "nearest", start=50.0, audit=log, **options)
    now, told = 100.0, []
    for k in range(40):
        now += draw.choice((0.0, 1.0, 9.0))
        do_anything(dispatcher, draw, now, k, told)
        if draw.random() < 0.4:
            tasks = [*dispatcher._floor.tasks, *dispatcher._floor.planned, "unknown"]
            sent = {"site": draw.choice("ABC")} if draw.random() < 0.2 else None
            vehicle = f"v{draw.randrange(4)}"
            now = max(now, dispatcher.time)
            dispatcher.follow(now, vehicle, **(sent or {"task": draw.choice(tasks)}))
        assert dispatcher.check() == []
    dispatcher.close()
    again = Dispatcher.recover(layout, "nearest", audit=log)
    again.close()
    assert again.followed == dispatcher.followed and again.under_way == dispatcher.under_way
    assert again.sites == dispatcher.sites and again.out_of_service == dispatcher.out_of_service
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: draw.randint(1, len(lines))]))
    with Dispatcher.recover(layout, "nearest", audit=log) as again:  # a kill after any line
        assert again.check() == [] and again.followed.orders <= dispatcher.followed.orders
        n = len(again.followed.queued) + len(again.followed.away)
        while again.followed.away:  # who has more queued may be away once more
            name, n = again.followed.away[0], n - 1
            again.feed(E.VehicleIdle(again.time + 1.0, name, again.sites[name]))
            assert n >= 0 and again.check() == []
