"""The live dispatcher where vehicles meet: as the simulator, if the plant does as planned; sound, if not."""

import copy
import json
import random
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from live_events import line
from meeting import draw_day, make_floor

from acerl_np import Dispatcher, EventError, IndexPolicy, InputError, Lookahead
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import deciders
from acerl_np.kernels.episode import auxiliary, events
from acerl_np.kernels.motion import commitment, energy, offers
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.kernels.rollout.lookahead import decide_ahead
from acerl_np.live import events as E
from acerl_np.live.meeting import find_repair_ticks
from acerl_np.live.parts import LiveVehicle
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem.tables import build_problem
from acerl_np.support.files import read_arrays, write_arrays

pytestmark = [pytest.mark.oracle, pytest.mark.compiles(long=True)]

INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)

POLICIES = ["nearest", INDEX, "general", Lookahead("nearest", futures=0)]


class Plant:
    """An episode of the simulator that tells a dispatcher what happens, and compares what is ordered."""

    def __init__(self, day, policy, dispatcher, passes=True):
        self.day, self.dispatcher, self.passes = day, dispatcher, passes
        self.names = [vehicle.id for vehicle in day.layout.vehicles]
        self.sites = [site.id for site in day.layout.sites]
        self.problem = build_problem([day])
        self.state = S.allocate_state(self.problem, 1)
        player = RulePolicy(policy) if isinstance(policy, str) else policy
        self.decider = player.prepare(self.problem, [day.layout], True)[1]()
        self.choose = decide_ahead if isinstance(self.decider, Ahead) else deciders.decide
        self.key, self.n_orders, self.n_plans = np.zeros(4, np.uint32), 0, 0
        self.told, self.known = set(), set()
        events.open_episode(self.problem, self.state, 0, 0)

    @property
    def now(self):
        return int(self.state.episode["time"][0])

    def read(self, field):
        return self.state.vehicle[0, : len(self.names)][field].tolist()

    def ask(self):
        """Take the policy's decisions, and compare them with those of the dispatcher."""
        state, made = (self.problem, self.state, np.int64(0)), []
        while offers.is_decision_due(*state):
            n = self.state.episode["n_decisions"][0]
            v, position, _ = self.choose(*state, self.decider, np.int64(0), self.key, n)
            task = self.state.pool[0, position]
            if self.state.task["vehicle"][0, task] != v:
                made.append((self.names[v], self.day.tasks[task]))
            commitment.take_decision(*state, v, position)
        auxiliary.settle_tick(*state)
        for v, status in enumerate(self.read("status")):
            if status != self.before[v] and status in (S.PARKING, S.TO_CHARGER):
                made.append((self.names[v], self.sites[self.read("destination")[v]]))
        found = self.dispatcher.decide(float(self.now))
        got = [order[:2] for order in found if not isinstance(order, E.Recall)]
        assert got == made, (self.now, got, made)
        self.n_orders += len(made)

    def tell(self):
        """Feed what has happened since the last tick."""
        now, feed = float(self.now), []
        for v, name in enumerate(self.names):
            old, new, site = self.before[v], self.read("status")[v], self.state.plan[0, v]
            site = self.sites[self.read("site")[v]]
            if new == S.BROKEN != old:
                feed.append((now, 0, v, E.VehicleBroke(now, name)))
            elif old == S.BROKEN != new:
                feed.append((now, 0, v, E.VehicleRepaired(now, name)))
            if old == S.WORKING != new != S.BROKEN:
                task = self.tasks[v]
                site = self.sites[self.day.delivery[task]]
                feed.append((now, 2, v, E.VehicleIdle(now, name, site)))
            elif old in (S.ROAMING, S.PARKING) and new == S.IDLE:
                kind = E.VehicleParked if old == S.PARKING else E.VehiclePassed
                feed.append((now, 3, v, kind(now, name, site)))
            elif old == S.TO_CHARGER and new in (S.QUEUED, S.CHARGING):
                feed.append((now, 3, v, E.VehiclePassed(now, name, site)))
            if old == S.CHARGING != new != S.BROKEN:
                feed.append((now, 4, v, E.VehicleCharging(now, name, site, begins=False)))
            elif new == S.CHARGING != old:
                feed.append((now, 4, v, E.VehicleCharging(now, name, site)))
            plan = self.state.plan[0, v]
            for k in range(1, plan[0, S.PLANNED_VISITS] + 1 if self.passes else 0):
                came = int(plan[k, S.PLAN_IN])
                if self.last < came <= now - (new == S.BROKEN):
                    site = self.sites[plan[k, S.PLAN_SITE]]
                    feed.append((float(came), 1, v, E.VehiclePassed(float(came), name, site)))
        for task in self.state.pool[0, : self.state.episode["pool_size"][0]].tolist():
            feed += [(item.time, 5, 0, item) for item in self.list_news(task)]
        for *_, event in sorted(feed, key=lambda item: item[:3]):
            self.dispatcher.feed(event)

    def list_news(self, task):
        """What is told of a task that begins to wait: its chain with the first, then when it is ready."""
        if task in self.known:
            return []
        self.known.add(task)
        now, day, news = float(self.now), self.day, []
        ready = S.find_ready(self.problem, self.state, 0, task)
        for other in range(task, day.n_tasks):
            after = day.after[other] if not day.is_plain else -1
            if other not in self.told and (other == task or after in self.told):
                self.told.add(other)
                name, ends = day.tasks[other], (self.sites[day.pickup[other]],)
                own = (*ends, self.sites[day.delivery[other]], day.expiry[other])
                more = {"handling_time": day.handling_time[other], "priority": day.priority[other]}
                if not day.is_plain:
                    more |= {"after": day.tasks[after] if after >= 0 else ""}
                    more |= {"processing": day.processing[other]}
                    more |= {"announced": day.announced[other] if after >= 0 else 0.0}
                news.append(E.TaskArrived(min(now, ready), name, *own, **more))
        after = -1 if day.is_plain else day.after[task]
        if after >= 0 and ready == now:
            news.append(E.TaskReady(now, day.tasks[task]))
        elif after >= 0 or ready > now:
            news.append(E.TaskAnnounced(now, day.tasks[task], float(ready)))
        return news

    def compare(self):
        """What vehicles are believed to do, and to hold of energy, is what they do."""
        state = self.problem, self.state, np.int64(0)
        for v, own in enumerate(self.dispatcher._floor.vehicles):
            plan = self.state.plan[0, v]
            n = plan[0, S.PLANNED_VISITS]
            assert own.plan[1:] == tuple(map(tuple, plan[1 : n + 1].tolist())), (self.now, v)
            if own.status == S.WORKING:
                assert own.finish == self.state.vehicle[0, v].event_tick
                self.n_plans += 1
            if (level := self.dispatcher.levels.get(self.names[v])) is not None:
                assert level == energy.find_level(*state, np.int64(v), self.now)
        assert self.dispatcher.unplanned == () == tuple(self.dispatcher.check())
        assert (self.dispatcher.next_time or 0.0) < 1e6

    def play(self):
        self.before, self.last = self.read("status"), -1
        while True:
            self.before, self.tasks = self.read("status"), self.read("task")
            events.pass_tick(self.problem, self.state, np.int64(0), S.NEVER)
            if self.state.episode["phase"][0] != S.RUNNING:
                return self
            self.tell()
            self.before, self.last = self.read("status"), self.now
            self.ask()
            self.compare()


def even(day):
    """A day on which the repairs of a vehicle take as long: what is believed of them is right."""
    listed = {
        own.id: [
            replace(item, repair_time=own.breakdowns[0].repair_time) for item in own.breakdowns
        ]
        for own in day.layout.vehicles
    }
    return replace(day, layout=day.layout.with_breakdowns(listed))


SEEDS = st.integers(0, 2**32)


@settings(max_examples=40)
@example(
    96, INDEX, True
)  # who drives through a pickup, and loads later, may be called back meanwhile
@given(SEEDS, st.sampled_from(POLICIES), st.booleans())
def test_a_perfect_plant_goes_as_the_simulator(seed, policy, passes):
    draw = random.Random(seed)
    # Index policies look at when a broken vehicle is back, which a dispatcher is not told.
    breaks = policy == "nearest" and draw.random() < 0.5
    day = even(draw_day(draw, breakdowns=breaks, errands=True, wide=seed % 4 > 1))
    # Nor what the simulator's lookahead knows of chains, or the order of tasks announced for one moment.
    assume(day.is_plain or not isinstance(policy, Lookahead))
    first = day.arrival[day.after < 0]
    assume(day.is_plain or (day.layout.machines and len({*first}) == len(first)))
    dispatcher = Dispatcher(day.layout, policy, budget=None, loads=day.layout.loads)
    plant = Plant(day, dispatcher.policy, dispatcher, passes).play()
    assert plant.n_orders and plant.n_plans


@settings(max_examples=40)
@example(60, "stay")  # broken at the second of its loading, long at the pickup
@example(75, "stay")  # pushed while it is broken
@example(188, "stay")  # at rest by edges of no time: its level
@example(730, "stay")  # the same: since when it is idle
@example(1406, "stay")  # twice at a site, by edges of no time
@example(1424, "stay")  # broken at its parking place as the day begins
@example(37940, "stay")  # it takes the place at which it stands, and others look for one
@example(22846, "stay")  # broken with its load, and again a second after it has delivered
@given(SEEDS, st.sampled_from(["return", "stay"]))
def test_a_disturbed_plant_goes_as_the_simulator(seed, loads):
    how = {"whole": seed % 3 == 0, "errands": seed % 2 == 0, "wide": seed % 4 > 1}
    day = even(draw_day(random.Random(seed), breakdowns=True, **how))
    day = replace(day, layout=day.layout.with_loads(loads))
    first = day.arrival[day.after < 0]
    assume(day.is_plain or (day.layout.machines and len({*first}) == len(first)))
    dispatcher = Dispatcher(day.layout, "nearest", budget=None, loads=loads)
    Plant(day, dispatcher.policy, dispatcher).play()


@settings(max_examples=15)
@given(SEEDS)
def test_a_forecast_of_all_that_is_known_comes_true(seed):
    """Once the last task has come, and where nobody breaks down, nothing is left to chance."""
    day = draw_day(random.Random(seed), errands=True)
    assume(day.is_plain and not day.layout.battery)
    seen = {}

    class Asked(Plant):
        def ask(self):
            super().ask()
            if len(self.told) == day.n_tasks:
                found = self.dispatcher.forecast(float(self.now), budget=None)
                seen.setdefault(self.now, {item.task: item for item in found})

    plant = Asked(day, "nearest", Dispatcher(day.layout, "nearest")).play()
    finish = dict(zip(day.tasks, plant.state.task["finish"][0].tolist(), strict=True))
    told = [
        (item.delivery, finish[name]) for found in seen.values() for name, item in found.items()
    ]
    assert told and all(one == other for one, other in told)


@pytest.mark.compiles
@pytest.mark.parametrize("seed", range(8))
def test_kills_change_nothing(seed, tmp_path):
    """Saved and loaded, or recovered from its log, it knows the same plans, and goes on as the simulator."""
    log, file = tmp_path / "day.jsonl", tmp_path / "live.npz"
    day = even(draw_day(random.Random(seed), breakdowns=True, errands=True))
    if not (day.is_plain or day.layout.machines):
        day = draw_day(random.Random(seed))

    class Killed(Plant):
        def ask(self):
            super().ask()
            before = self.dispatcher._floor.vehicles
            if seed % 2:
                self.dispatcher.save(file)
                self.dispatcher = Dispatcher.load(file)
            else:
                self.dispatcher.close()
                self.dispatcher = Dispatcher.recover(day.layout, "nearest", audit=log)
            assert self.dispatcher._floor.vehicles == before
            assert [
                own for own in self.dispatcher.decide(float(self.now)) if not own.repeated
            ] == []

    audit = None if seed % 2 else log
    first = Dispatcher(day.layout, "nearest", audit=audit, loads=day.layout.loads)
    assert Killed(day, "nearest", first).play().n_orders


@pytest.mark.parametrize(
    "plan",
    [
        [[2, 0, 0, 1], [0, 0, 9, 0]],
        [[1, 0, 2, 1], [0, 0, 9, 0]],
        [[1, 0, 0, 1], [4, 0, 9, 0]],
        [[2, 0, 0, 1], [0, 0, 9, 0], [1, 9, 9, 0]],
        [[1, 0, 0, 1], [0, 0, 9]],
        [[1, 0, 0, 1], ["A", 0, 9, 0]],
        [[400, 0, 0, 1], *[[0, 0, 0, 0]] * 400],
    ],
)
def test_states_whose_plans_cannot_be_are_refused(plan, tmp_path):
    cross().save(tmp_path / "live.npz")
    arrays = read_arrays(tmp_path / "live.npz", InputError)
    data = json.loads(arrays["state"].tobytes())
    data["vehicles"][0][LiveVehicle._fields.index("plan")] = plan
    arrays["state"] = np.frombuffer(json.dumps(data).encode(), np.uint8)
    write_arrays(tmp_path / "live.npz", arrays)
    with pytest.raises(InputError, match="not a usable dispatcher"):
        Dispatcher.load(tmp_path / "live.npz")


# Traced by hand: a line A - b - c - D of edges of 10 s


def cross(*more, **options):
    """v0 crosses the line from A to D, 2 to 32, and v1, which loads at D, is planned to wait for it."""
    edges = [("A", "b", 10), ("b", "c", 10), ("c", "D", 10)]
    floor = make_floor(["A", "b", "c", "D"], edges, ["A", "D", *more], {"headway": 3})
    dispatcher = Dispatcher(floor, "nearest", **options)
    for name, *ends in (("t0", "A", "D"), ("t1", "D", "A")):
        dispatcher.feed(E.TaskArrived(0.0, name, *ends, expiry=100.0, handling_time=4.0))
    assert [order.finish for order in dispatcher.decide(0.0)] == [34.0, 64.0]
    return dispatcher


def foresee(dispatcher, now):
    """When tasks should be delivered, and which of it is told as if nobody met."""
    found = dispatcher.forecast(now, budget=None)
    return {item.task: item.delivery for item in found}, [item.task for item in found if item.free]


def test_who_is_late_pushes_who_waits_for_it():
    dispatcher = cross()
    assert foresee(dispatcher, 1.0) == ({"t0": 34.0, "t1": 64.0}, [])
    dispatcher.feed(E.VehiclePassed(12.0, "v0", "b"))
    assert foresee(dispatcher, 12.0) == ({"t0": 34.0, "t1": 64.0}, [])
    dispatcher.feed(E.VehiclePassed(27.0, "v0", "c"))  # 5 s late
    assert foresee(dispatcher, 27.0) == ({"t0": 39.0, "t1": 69.0}, [])
    dispatcher.feed(E.VehicleIdle(43.0, "v0", "D"))  # 4 s late at the delivery: v1 has left by then
    assert foresee(dispatcher, 43.0) == ({"t1": 69.0}, [])
    # Said to stand at D still: it leaves now.
    dispatcher.feed(E.VehiclePassed(44.0, "v1", "D"))
    assert foresee(dispatcher, 44.0) == ({"t1": 76.0}, [])


def test_who_is_early_gives_way_or_is_waited_for():
    dispatcher = cross()
    dispatcher.feed(E.VehiclePassed(12.0, "v0", "b"))
    # Where it should have let v0 pass, with time to give way to it: back to D, and off again at 32.
    dispatcher.feed(E.VehiclePassed(14.0, "v1", "c"))
    assert foresee(dispatcher, 14.0) == ({"t0": 34.0, "t1": 64.0}, [])
    # It stands there still, so v0 stops before c: v1 leaves c at 20, and v0 enters it at 23.
    dispatcher.feed(E.VehiclePassed(20.0, "v1", "c"))
    assert foresee(dispatcher, 20.0) == ({"t0": 35.0, "t1": 65.0}, [])


def test_who_is_planned_anew_keeps_its_load():
    rates = {"idle": 1, "empty": 10, "loaded": 100, "charge": 50, "capacity": 9000, "start": 9000}
    levels = {"critical": 500, "resume": 500, "good": 500, "full": 9000}
    more = {"battery": rates | levels, "chargers": [{"site": "A"}]}
    floor = make_floor(["A", "b", "C"], [("A", "b", 10), ("b", "C", 10)], ["A"], {}, more=more)
    dispatcher = Dispatcher(floor, "nearest")
    dispatcher.feed(E.TaskArrived(0.0, "t0", "A", "C", expiry=100.0, handling_time=4.0))
    dispatcher.decide(0.0)
    dispatcher.feed(E.VehiclePassed(11.0, "v0", "b"))  # 1 s early
    assert foresee(dispatcher, 20.0)[0] == {"t0": 23.0}
    dispatcher.feed(E.VehiclePassed(21.0, "v0", "C"))
    assert dispatcher.levels == {"v0": 9000 - 21 * 100}
    dispatcher.feed(E.VehicleIdle(22.0, "v0", "C"))  # and 1 s early again
    assert dispatcher.levels == {"v0": 9000 - 22 * 100} and dispatcher.idle == ("v0",)


def test_a_breakdown_holds_the_lane_until_the_repair_is_told():
    dispatcher = cross("A", loads="return")
    guess = find_repair_ticks(dispatcher._floor, 0)
    dispatcher.feed(E.VehicleBroke(15.0, "v0"))  # 2 s beyond b; it drives on at 16 + guess, from 14
    left = 15 + guess + 1 + 8
    # v2 takes t0, and passes v1: it follows v0 to D a headway behind.
    assert foresee(dispatcher, 15.0)[0]["t1"] == left + 10 + 3 + 30 + 2
    # Not told by 80: v0 is at D at 81 + 8 + 10, and v2, which is sent from A now, at 110. v1 crosses then.
    dispatcher.feed(E.TaskCancelled(80.0, "t0"))
    dispatcher.feed(E.TaskArrived(80.0, "t2", "A", "D", expiry=100.0))
    (order,) = dispatcher.decide(80.0)
    assert 16 + guess < 80 and order[:2] == ("v2", "t2") and order.finish == 80 + 30
    dispatcher.feed(E.VehicleRepaired(100.0, "v0"))
    assert dispatcher.idle == ()
    assert foresee(dispatcher, 100.0)[0]["t1"] == 108 + 10 + 3 + 30 + 2


def test_where_no_way_is_left_predictions_say_so(tmp_path):
    dispatcher = cross(audit=tmp_path / "day.jsonl")
    dispatcher.feed(E.VehiclePassed(12.0, "v0", "b"))
    # It should have let v0 pass, which is there at 22: too late to turn back to D.
    dispatcher.feed(E.VehiclePassed(20.0, "v1", "c"))
    assert dispatcher.unplanned == ("v1",)
    assert foresee(dispatcher, 20.0) == ({"t0": 34.0, "t1": 42.0}, ["t1"])
    dispatcher.close()
    dispatcher = Dispatcher.recover(dispatcher.layout, "nearest", audit=tmp_path / "day.jsonl")
    assert dispatcher.unplanned == ("v1",)
    dispatcher.feed(E.VehiclePassed(30.0, "v1", "b"))  # however it went past v0
    assert dispatcher.unplanned == ()
    assert foresee(dispatcher, 30.0) == ({"t0": 34.0, "t1": 42.0}, [])


def test_a_fleet_manager_that_parks_on_the_lane_is_believed_to_clear_it():
    dispatcher = cross()
    with pytest.raises(EventError, match=r"vehicles\[2\].start: 'b' is on the lane"):
        dispatcher.feed(E.VehicleAdded(1.0, "v2", "b"))
    dispatcher.feed(E.VehicleIdle(12.0, "v0", "b", delivered=False))
    assert dispatcher.under_way == {"t1": "v1"} and dispatcher.idle == ()
    dispatcher.feed(E.VehiclePassed(22.0, "v0", "A"))
    assert dispatcher.idle == ("v0",)


def test_a_task_that_is_taken_off_leaves_a_way_to_rest():
    dispatcher = cross("A")
    dispatcher.feed(E.TaskArrived(2.0, "t2", "c", "A", expiry=100.0))
    assert [order[:2] for order in dispatcher.decide(2.0)] == [("v2", "t2")]
    dispatcher.feed(E.VehiclePassed(15.0, "v2", "b"))  # a headway behind v0
    dispatcher.feed(E.TaskRecalled(16.0, "t2", cancel=True))
    # It goes on to c, at 25. As v1 leaves D at 32, it goes back to A.
    assert dispatcher.idle == () and dispatcher._floor.vehicles[2].plan[-1][:2] == (0, 45)
    dispatcher.feed(E.VehiclePassed(45.0, "v2", "A"))
    assert dispatcher.idle == ("v2",)


def report(dispatcher, draw, now, k):
    """Something that may not be: reports in any order, early, late, and of vehicles elsewhere."""
    time, v = now - draw.choice((0.0, 0.0, 0.3, 2.5)), f"v{draw.randrange(4)}"
    site, under = draw.choice(dispatcher.layout.sites).id, sorted(dispatcher.under_way.items())
    ends = draw.sample([own.id for own in dispatcher.layout.sites], 2)
    events = [
        *[E.VehiclePassed(time, v, site)] * 4,
        *[E.TaskArrived(time, f"t{k}", *ends, 100.0, handling_time=draw.choice((0.0, 3.5)))] * 2,
        *[
            E.VehicleParked(time, v, site),
            E.VehicleCharging(time, v, site),
            E.VehicleBroke(time, v),
        ],
        *[E.VehicleRepaired(time, v, draw.choice((None, site))), E.VehicleBack(time, v, site)],
        *[E.VehicleOutOfService(time, v, k % 2 == 0), E.VehicleRemoved(time, v)],
        *[E.VehicleAdded(time, v, site), E.RecallAnswered(time, v, f"t{k // 2}", done=False)],
        E.VehicleIdle(time, v, site, delivered=False),
    ]
    if under:
        task, v = draw.choice(under)
        events.append(E.VehicleIdle(time, v, dispatcher._floor.tasks[task].event.delivery))
        events.append(E.TaskRecalled(time, task))
    dispatcher.feed(draw.choice(events))


@settings(max_examples=30)
@given(SEEDS)
def test_whatever_is_reported_something_is_predicted(seed):
    draw = random.Random(seed)
    how = {"errands": True, "wide": seed % 4 > 1}
    layout = draw_day(draw, whole=draw.random() < 0.5, **how).layout
    dispatcher, now, n_tasks = Dispatcher(layout, "nearest"), 0.0, 0
    for k in range(40):
        now += draw.choice((0.0, 0.4, 1.0, 7.0, 20.0))
        with suppress(EventError):
            report(dispatcher, draw, now, k)
            dispatcher.decide(now)
        assert dispatcher.check() == []
        if k % 8 == 7 and not layout.battery:  # else a task may be too far for ever
            n_tasks += len(found := dispatcher.forecast(now, budget=None))
            assert all(item.delivery >= now for item in found)
    board = dispatcher._floor
    again = copy.deepcopy(dispatcher)
    again.desk.feed._replay(anew=True)
    assert again._floor.vehicles == board.vehicles


@pytest.mark.compiles
def test_a_page_shows_a_way_as_it_is_planned():
    floor = line(("v0", "a"), ("v1", "e")).with_traffic("beside")
    dispatcher = Dispatcher(floor, "nearest")
    dispatcher.feed(E.TaskArrived(0.0, "t1", "b", "e", 90.0))
    dispatcher.decide(0.0)
    seen = [dispatcher.describe()["vehicles"][0][3]]
    for event in (
        E.VehiclePassed(14.0, "v0", "b"),
        E.VehiclePassed(26.0, "v0", "c"),
        E.VehicleIdle(100.0, "v0", "e"),
    ):
        dispatcher.feed(event)
        seen.append(dispatcher.describe()["vehicles"][0][3])
    # 10 m an edge at 1 m/s; who is late is later from there on.
    assert seen == [
        [(0, 0.0), (1, 10.0)],
        [(1, 14.0), (2, 24.0), (3, 34.0), (4, 44.0)],
        [(2, 26.0), (3, 36.0), (4, 46.0)],
        [(4, 46.0)],
    ]
