"""The live dispatcher where vehicles charge, park and are called back."""

from __future__ import annotations

import math
from itertools import pairwise

import naive
import naive_vehicles
import numba
import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

import acerl_np
from acerl_np import (
    Assignment,
    Charge,
    Dispatcher,
    EventError,
    IndexPolicy,
    Instance,
    Layout,
    Park,
    Recall,
    RecallAnswered,
    TaskArrived,
    VehicleBroke,
    VehicleCharging,
    VehicleIdle,
    VehicleLevel,
    VehicleParked,
    VehiclePassed,
    VehicleRepaired,
)

JIT = not numba.config.DISABLE_JIT

INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)

KINDS = {
    "as they are": worlds.worlds(),
    "parking": worlds.with_parking(worlds.worlds()),
    "batteries": worlds.with_chargers(worlds.worlds()),
    "both": worlds.with_parking(worlds.with_chargers(worlds.worlds())),
}


class Plant(naive_vehicles.NaiveEpisode):
    """The slow simulator as a perfect plant: it tells what happens and does what a dispatcher decides.

    `trips` are those of each vehicle, as the ticks of its sites' passing; who sets out where it stands, and
    when, is the simulator's own affair, which the dispatcher must find out.
    """

    def __init__(self, instance, dispatcher, passes, **options):
        self.dispatcher, self.passes = dispatcher, passes
        self.events, self.names = [], [vehicle.id for vehicle in instance.layout.vehicles]
        self.sent, self.next_time, self.asked, self.orders = [], None, -1, []
        self.decided = []
        self._decide = dispatcher._decider.decide
        dispatcher._decider.decide = self._watch
        super().__init__(instance.layout.to_dict(), instance.rows(), **options)

    def _watch(self, board, decisions, now):
        """Note every pair that is chosen, also one that leaves a task with its vehicle."""
        found = self._decide(board, decisions, now)
        if found.vehicle >= 0:
            rows = {task.row: name for name, task in board.tasks.items()}
            self.decided.append((found.vehicle, rows[board.state.pool[0, found.position]]))
        return found

    def _process_tick(self):
        before = [(vehicle.word, list(vehicle.stops)) for vehicle in self._vehicles]
        waiting = len(self._to_arrive)
        super()._process_tick()
        now = float(self.time)
        for name, vehicle, (word, stops) in zip(self.names, self._vehicles, before, strict=True):
            self._tell_passes(name, vehicle, stops)
            if word != "broken" and vehicle.word == "broken":
                self.events.append(VehicleBroke(now, name))
            elif word == "broken" and vehicle.word == "idle":
                self.events.append(VehicleRepaired(now, name))
            elif word == "working" and vehicle.word == "idle":
                self.events.append(VehicleIdle(now, name, vehicle.site))
            elif word in ("parking", "roaming") and vehicle.word == "idle":
                kind = VehicleParked if word == "parking" else VehiclePassed
                self.events.append(kind(now, name, vehicle.site))
            elif word == "to_charger" and vehicle.word in ("queued", "charging"):
                self.events.append(VehiclePassed(now, name, vehicle.site))
            if word == "charging" != vehicle.word == "idle":
                self.events.append(VehicleCharging(now, name, vehicle.site, begins=False))
            elif word != "charging" == vehicle.word:
                self.events.append(VehicleCharging(now, name, vehicle.site))
        arrived = self._tasks[len(self._tasks) - waiting : len(self._tasks) - len(self._to_arrive)]
        for task in arrived:
            own = task.expiry, task.handling, task.demand
            self.events.append(
                TaskArrived(
                    task.arrival, task.name, task.pickup, task.delivery, *own, task.priority
                )
            )

    def _tell_passes(self, name, vehicle, stops):
        """The true moments at which it comes to sites, but for the end of its way."""
        if not self.passes or vehicle.stops != stops:
            return
        for stop in stops[:-1]:
            if stop.leg is not None and self.time - 1 < stop.moment <= self.time:
                self.events.append(VehiclePassed(stop.moment, name, stop.site))

    def ask(self):
        """Feed what has happened; return what is decided, and note who is sent to charge or to park."""
        due = self.next_time is not None and self.next_time <= self.time
        if not self.events and self.asked >= 0 and not due and self.asked != self.time:
            return
        self.fed = list(self.events)
        for event in sorted(self.events, key=lambda event: event.time):
            self.dispatcher.feed(event)
        self.events.clear()
        made = self.dispatcher.decide(float(self.time))
        self.asked, self.next_time = self.time, self.dispatcher.next_time
        self.orders += made
        self.sent += [order for order in made if isinstance(order, Charge | Park)]

    def _send_idle_vehicles(self):
        self.ask()
        assert not self.decided, (self.time, self.decided, self.statuses(), self.fed, self.pool)
        before = self.statuses()
        super()._send_idle_vehicles()
        sent = [
            (name, vehicle.word, vehicle.destination)
            for name, vehicle, word in zip(self.names, self._vehicles, before, strict=True)
            if word == "idle" and vehicle.word in ("parking", "to_charger")
        ]
        words = {Charge: "to_charger", Park: "parking"}
        assert [(item.vehicle, words[type(item)], item.site) for item in self.sent] == sent
        self.sent.clear()
        # What is believed of the levels.
        told = [self.dispatcher.levels.get(name) for name in self.names]
        levels = [level if level is None else float(level) for level in self.levels()]
        assert told == pytest.approx(levels), (self.time, self.statuses(), told, levels)

    def play(self):
        """Play the day by the dispatcher."""
        while not self.done:
            self.ask()
            assert self.decided
            decided, self.decided = self.decided, []
            for v, task in decided:
                assert not self.done
                self.assign(v, task)
        return self


def play(instance, policy, commitment, changes, passes):
    layout = instance.layout.with_commitment(commitment, changes)
    instance = Instance.from_rows("random", layout, instance.rows())
    dispatcher = Dispatcher(layout, policy)
    plant = Plant(instance, dispatcher, passes, commitment=commitment, max_changes=changes)
    plant.play()
    trials = acerl_np.evaluate_policy(policy, instance, trials=1, threads=1)
    assert plant.makespan == trials.makespan[0, 0]
    assert plant.tardiness == pytest.approx(trials.tardiness[0, 0], rel=1e-12)
    return plant


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8 if JIT else 3, deadline=None)
@given(data=st.data())
def test_a_perfect_plant_goes_as_the_simulator(kind, commitment, data):
    """Who takes what, who is called back, parks and charges, and when: as in an evaluation."""
    world = data.draw(KINDS[kind])
    layout = Layout.from_dict(world.layout).with_breakdowns({})
    instance = Instance.from_rows("random", layout, world.rows)
    policy = data.draw(st.sampled_from(["nearest", "assignment", INDEX]))
    changes = data.draw(st.sampled_from([0, 1, 8]))
    play(instance, policy, commitment, changes, data.draw(st.booleans()))
