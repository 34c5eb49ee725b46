"""The live dispatcher where vehicles meet: as the simulator, if the plant does as planned; sound, if not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from live_events import line
from meeting import draw_day

from acerl_np import Dispatcher, IndexPolicy
from acerl_np.kernels.deciding import deciders
from acerl_np.kernels.driving import commitment, offers
from acerl_np.kernels.episode import errands, events
from acerl_np.kernels.ground import state as S
from acerl_np.kernels.playing.futures import Ahead
from acerl_np.kernels.playing.lookahead import decide_ahead
from acerl_np.live import events as E
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem.tables import build_problem

pytestmark = [pytest.mark.oracle, pytest.mark.compiles(long=True)]

INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)


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
        return int(self.state.episode[0, S.EPISODE_TIME])

    def read(self, field):
        return self.state.vehicle[0, : len(self.names), field].tolist()

    def ask(self):
        """Take the policy's decisions, and compare them with those of the dispatcher."""
        state, made = (self.problem, self.state, np.int64(0)), []
        while offers.is_decision_due(*state):
            n = self.state.episode[0, S.EPISODE_N_DECISIONS]
            v, position, _ = self.choose(*state, self.decider, np.int64(0), self.key, n)
            task = self.state.pool[0, position]
            if self.state.task[0, task, S.TASK_VEHICLE] != v:
                made.append((self.names[v], self.day.tasks[task]))
            commitment.take_decision(*state, v, position)
        errands.settle_tick(*state)
        for v, status in enumerate(self.read(S.VEHICLE_STATUS)):
            if status != self.before[v] and status in (S.PARKING, S.TO_CHARGER):
                made.append((self.names[v], self.sites[self.read(S.VEHICLE_DESTINATION)[v]]))
        found = self.dispatcher.decide(float(self.now))
        got = [order[:2] for order in found if not isinstance(order, E.Recall)]
        assert got == made, (self.now, got, made)
        self.n_orders += len(made)

    def tell(self):
        """Feed what has happened since the last tick."""
        now, feed = float(self.now), []
        for v, name in enumerate(self.names):
            old, new, site = self.before[v], self.read(S.VEHICLE_STATUS)[v], self.state.plan[0, v]
            site = self.sites[self.read(S.VEHICLE_SITE)[v]]
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
        for task in self.state.pool[0, : self.state.episode[0, S.EPISODE_POOL_SIZE]].tolist():
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
        """What vehicles are believed to do is what they do."""
        for v, own in enumerate(self.dispatcher._floor.vehicles):
            plan = self.state.plan[0, v]
            n = plan[0, S.PLANNED_VISITS]
            assert own.plan[1:] == tuple(map(tuple, plan[1 : n + 1].tolist())), (self.now, v)
            if own.status == S.WORKING:
                assert own.finish == self.state.vehicle[0, v, S.VEHICLE_EVENT_TICK]
                self.n_plans += 1
        assert self.dispatcher.unplanned == () == tuple(self.dispatcher.check())

    def play(self):
        self.before, self.last = self.read(S.VEHICLE_STATUS), -1
        while True:
            self.before, self.tasks = self.read(S.VEHICLE_STATUS), self.read(S.VEHICLE_TASK)
            events.pass_tick(self.problem, self.state, np.int64(0), S.NEVER)
            if self.state.episode[0, S.EPISODE_PHASE] != S.RUNNING:
                return self
            self.tell()
            self.before, self.last = self.read(S.VEHICLE_STATUS), self.now
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
@given(SEEDS, st.sampled_from(["nearest", INDEX, "general"]), st.booleans())
def test_a_perfect_plant_goes_as_the_simulator(seed, policy, passes):
    draw = random.Random(seed)
    day = even(draw_day(draw, breakdowns=draw.random() < 0.5, errands=True))
    assume(day.is_plain or day.layout.machines)
    dispatcher = Dispatcher(day.layout, policy, budget=None)
    plant = Plant(day, dispatcher.policy, dispatcher, passes).play()
    assert plant.n_orders and plant.n_plans


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
    finish = dict(zip(day.tasks, plant.state.task[0, :, S.TASK_FINISH].tolist(), strict=True))
    told = [
        (item.delivery, finish[name]) for found in seen.values() for name, item in found.items()
    ]
    assert told and all(one == other for one, other in told)


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
