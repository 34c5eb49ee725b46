"""The service's core against a model written from docs/service.md alone: messages in, answers out."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import acerl_np
from acerl_np.live.service import Service

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
SITES = ("st1", "st2", "st3", "st5", "st8")
IDLE, WORKING, BROKEN = "idle", "working", "broken"
SERVES, LEAVING, OUT, REMOVING = "serves", "leaving", "out", "removing"
WAITING, ANNOUNCED, GIVEN, LOADED = "waiting", "announced", "given", "loaded"
STRANDED = "stranded"

# Never 0: of one moment, what says the same as before counts as told twice.
steps = st.sampled_from([0.25, 0.5, 3.0, 40.0])
sites = st.sampled_from(SITES)
anything = st.integers(0, 99)


@dataclass
class Task:
    pickup: str
    delivery: str
    state: str
    opens: float = 0.0
    """When one that is announced begins to wait, s."""
    vehicle: str = ""


@dataclass
class Vehicle:
    status: str = IDLE
    service: str = SERVES
    task: str = ""
    site: str = ""
    """Where it was seen last; empty where the page does not tell."""


@dataclass
class Plant:
    """What the page says of tasks and vehicles, and no more."""

    now: float = 0.0
    tasks: dict[str, Task] = field(default_factory=dict)
    fleet: dict[str, Vehicle] = field(default_factory=dict)

    def of(self, *states):
        return sorted(name for name, task in self.tasks.items() if task.state in states)

    def vehicles(self, *statuses):
        return sorted(name for name, own in self.fleet.items() if own.status in statuses)

    def pass_time(self, now):
        self.now = now
        for task in self.tasks.values():
            if task.state == ANNOUNCED and task.opens <= now:
                task.state = WAITING

    def give(self, vehicle, task):
        """Whether an assignment may be; it is made."""
        own, wanted = self.fleet.get(vehicle), self.tasks.get(task)
        good = own is not None and wanted is not None and wanted.state == WAITING
        if not good or (own.status, own.service) != (IDLE, SERVES):
            return False
        state = LOADED if own.site == wanted.pickup else GIVEN if own.site else ""
        own.status, own.task, wanted.state, wanted.vehicle = WORKING, task, state, vehicle
        return True

    def free(self, vehicle, ended, status=IDLE, site=""):
        """A vehicle is without a task, which has ended or waits again."""
        own = self.fleet[vehicle]
        own.site = site or (own.site if not own.task else "")
        if own.task and ended:
            del self.tasks[own.task]
        elif own.task:
            self.tasks[own.task].state, self.tasks[own.task].vehicle = WAITING, ""
        own.status, own.task = status, ""
        own.service = OUT if own.service == LEAVING else own.service
        if own.service == REMOVING:
            del self.fleet[vehicle]


class Core(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.plant = Plant(fleet={own.id: Vehicle(site=own.start) for own in LAYOUT.vehicles})
        self.number, self.names, self.orders, self.told = 0, 0, {}, []

    @initialize(policy=st.sampled_from(["FCFS", "nearest"]))
    def begin(self, policy):
        self.folder = TemporaryDirectory()
        self.place, self.policy, self.restarts = Path(self.folder.name), policy, 0
        self.log = self.place / "day-0.jsonl"
        self.dispatcher = acerl_np.Dispatcher(LAYOUT, policy, audit=self.log)
        self.service = Service(self.dispatcher)

    def teardown(self):
        if hasattr(self, "folder"):
            self.dispatcher.close()
            self.folder.cleanup()

    # What is said, and heard

    def say(self, kind, **own):
        """Tell a message; its orders and whether it was taken."""
        self.number += 1
        message = {"kind": kind, "number": self.number, **own}
        *orders, last = self.service.answer(json.dumps(message))
        assert last["number"] == self.number and last["kind"] in ("Ok", "Refused")
        return orders, last["kind"] == "Ok"

    def tell(self, wanted, kind, step=0.25, **own):
        """Tell an event, which the page allows or not; whether it was taken."""
        before = self.show()
        now = self.plant.now + step
        orders, taken = self.say(kind, time=now, **own)
        assert taken == wanted and not orders, (kind, own, wanted)
        if taken:
            self.plant.pass_time(now)
            self.told.append({"kind": kind, "number": self.number, "time": now, **own})
        else:
            assert self.show() == before
        return taken

    def show(self):
        state, _ = self.service.answer('{"kind": "State"}')
        return state

    def pick(self, names, k):
        return names[k % len(names)] if names else None

    # Tasks

    @rule(step=steps, ends=st.permutations(SITES), later=st.sampled_from([0.0, 0.0, 20.0]))
    def task_arrives(self, step, ends, later):
        name, now = f"t{self.names}", self.plant.now + step
        self.names += 1
        more = {"earliest_start": now + later} if later else {}
        pickup, delivery = ends[:2]
        own = {"pickup": pickup, "delivery": delivery, "expiry": 400.0 + self.names, **more}
        self.tell(True, "TaskArrived", step, task=name, **own)
        state = ANNOUNCED if later else WAITING
        self.plant.tasks[name] = Task(pickup, delivery, state, now + later)

    @precondition(lambda self: self.plant.tasks)
    @rule(k=anything)
    def known_task_arrives_with_other_content(self, k):
        name = self.pick(sorted(self.plant.tasks), k)
        own = {"pickup": "st1", "delivery": "st2", "expiry": 99_999.0}
        self.tell(False, "TaskArrived", task=name, **own)

    @precondition(lambda self: self.plant.tasks)
    @rule(k=anything, step=steps, kind=st.sampled_from(["TaskChanged", "TaskCancelled"]))
    def task_is_changed_or_cancelled(self, k, step, kind):
        name = self.pick(sorted(self.plant.tasks), k)
        task = self.plant.tasks[name]
        allowed = task.state in (WAITING, ANNOUNCED)
        allowed |= task.state == STRANDED and kind == "TaskCancelled"
        more = {"due": 5_000.0 + self.number} if kind == "TaskChanged" else {}
        if self.tell(allowed, kind, step, task=name, **more) and kind == "TaskCancelled":
            self.unload(task)
            del self.plant.tasks[name]

    def unload(self, task):
        if task.state == STRANDED:
            broken = self.plant.fleet[task.vehicle].status == BROKEN
            self.plant.free(task.vehicle, ended=False, status=BROKEN if broken else IDLE)

    @precondition(lambda self: self.plant.tasks)
    @rule(k=anything, step=steps, site=sites)
    def task_is_moved(self, k, step, site):
        name = self.pick(sorted(self.plant.tasks), k)
        task = self.plant.tasks[name]
        allowed = task.state in (WAITING, ANNOUNCED, STRANDED) and site != task.delivery
        if self.tell(allowed, "TaskMoved", step, task=name, site=site):
            self.unload(task)
            task.pickup = site

    @precondition(lambda self: self.plant.tasks)
    @rule(k=anything, step=steps, cancel=st.booleans())
    def task_is_recalled(self, k, step, cancel):
        name = self.pick(sorted(self.plant.tasks), k)
        task = self.plant.tasks[name]
        if self.tell(task.state == GIVEN, "TaskRecalled", step, task=name, cancel=cancel):
            self.plant.free(task.vehicle, ended=cancel)

    # Vehicles

    @precondition(lambda self: self.plant.fleet)
    @rule(k=anything, step=steps, site=sites, to_pickup=st.booleans())
    def vehicle_passes(self, k, step, site, to_pickup):
        name = self.pick(sorted(self.plant.fleet), k)
        own = self.plant.fleet[name]
        task = self.plant.tasks.get(own.task)
        if task and to_pickup:
            site = task.pickup
        if not self.tell(own.status != BROKEN, "VehiclePassed", step, vehicle=name, site=site):
            return
        own.site = site
        if task and site == task.pickup and task.state != STRANDED:
            task.state = LOADED

    @precondition(lambda self: self.plant.fleet)
    @rule(k=anything, step=steps, delivered=st.booleans())
    def vehicle_is_idle(self, k, step, delivered):
        name = self.pick(self.plant.vehicles(WORKING) or sorted(self.plant.fleet), k)
        own = self.plant.fleet[name]
        task = self.plant.tasks.get(own.task)
        site = task.delivery if task else "st1"
        told = {"vehicle": name, "site": site, "delivered": delivered}
        if self.tell(own.status == WORKING, "VehicleIdle", step, **told):
            self.plant.free(name, ended=delivered, site=site)

    @precondition(lambda self: self.plant.fleet)
    @rule(k=anything, step=steps)
    def vehicle_breaks(self, k, step):
        name = self.pick(sorted(self.plant.fleet), k)
        own = self.plant.fleet[name]
        if self.tell(own.status != BROKEN, "VehicleBroke", step, vehicle=name):
            if self.has_load(own):
                own.status, self.plant.tasks[own.task].state = BROKEN, STRANDED
            else:
                self.plant.free(name, ended=False, status=BROKEN)

    def has_load(self, own):
        return bool(own.task) and self.plant.tasks[own.task].state in (LOADED, STRANDED)

    @precondition(lambda self: self.plant.fleet)
    @rule(k=anything, step=steps)
    def vehicle_is_repaired(self, k, step):
        name = self.pick(self.plant.vehicles(BROKEN) or sorted(self.plant.fleet), k)
        own = self.plant.fleet[name]
        if self.tell(own.status == BROKEN, "VehicleRepaired", step, vehicle=name):
            own.status = WORKING if own.task else IDLE
            if own.task and own.service != OUT:
                self.plant.tasks[own.task].state = LOADED

    @precondition(lambda self: any(x.service == SERVES for x in self.plant.fleet.values()))
    @rule(k=anything, step=steps, at_once=st.booleans())
    def vehicle_leaves_service(self, k, step, at_once):
        serving = sorted(name for name, x in self.plant.fleet.items() if x.service == SERVES)
        name = self.pick(serving, k)
        own = self.plant.fleet[name]
        self.tell(True, "VehicleOutOfService", step, vehicle=name, at_once=at_once)
        if own.status == WORKING and not at_once:
            own.service = LEAVING
        elif self.has_load(own):
            own.service, self.plant.tasks[own.task].state = OUT, STRANDED
        else:
            own.service = OUT
            self.plant.free(name, ended=False, status=BROKEN if own.status == BROKEN else IDLE)

    @precondition(lambda self: any(x.service in (LEAVING, OUT) for x in self.plant.fleet.values()))
    @rule(k=anything, step=steps)
    def vehicle_is_back(self, k, step):
        out = sorted(n for n, x in self.plant.fleet.items() if x.service in (LEAVING, OUT))
        name = self.pick(out, k)
        self.tell(True, "VehicleBack", step, vehicle=name)
        own = self.plant.fleet[name]
        own.service = SERVES
        if own.task and own.status == WORKING and self.has_load(own):
            self.plant.tasks[own.task].state = LOADED

    @rule(step=steps, site=sites)
    def vehicle_joins(self, step, site):
        if len(self.plant.fleet) < 6:
            self.names += 1
            name = f"n{self.names}"
            self.tell(True, "VehicleAdded", step, vehicle=name, site=site)
            self.plant.fleet[name] = Vehicle(site=site)

    @precondition(lambda self: len(self.plant.fleet) > 1)
    @rule(k=anything, step=steps, at_once=st.booleans())
    def vehicle_is_removed(self, k, step, at_once):
        name = self.pick(sorted(self.plant.fleet), k)
        own = self.plant.fleet[name]
        others = [x for x in self.plant.fleet.values() if x is not own and x.service != REMOVING]
        if own.service == REMOVING or not others:
            return
        stays = self.has_load(own) and (own.status == BROKEN or at_once)
        if not self.tell(not stays, "VehicleRemoved", step, vehicle=name, at_once=at_once):
            return
        own.service = REMOVING
        if self.has_load(own):
            self.plant.tasks[own.task].state = LOADED
        elif own.status != WORKING or at_once:
            self.plant.free(name, ended=False)

    # Orders

    @rule(step=steps)
    def decide(self, step):
        now = self.plant.now + step
        orders, taken = self.say("Decide", time=now)
        assert taken
        self.plant.pass_time(now)
        for order in orders:
            assert order["kind"] == "Assigned"
            kept = {**order, "time": 0.0, "repeated": False}
            if order["repeated"]:
                assert self.orders[order["number"]] == kept
            else:
                assert order["number"] == max(self.orders, default=0) + 1
                assert self.plant.give(order["vehicle"], order["task"]), order
            self.orders[order["number"]] = kept
        free = [x for x in self.plant.fleet.values() if (x.status, x.service) == (IDLE, SERVES)]
        assert not (free and self.plant.of(WAITING)), "a task waits, and a vehicle is free"

    @precondition(lambda self: self.plant.fleet and self.plant.tasks)
    @rule(k=anything, n=anything, step=steps)
    def somebody_else_assigns(self, k, n, step):
        vehicle = self.pick(sorted(self.plant.fleet), k)
        task, now = self.pick(sorted(self.plant.tasks), n), self.plant.now + step
        orders, taken = self.say("Assign", time=now, vehicle=vehicle, task=task)
        if taken:
            self.plant.pass_time(now)
            assert self.plant.give(vehicle, task)
            (order,) = orders
            self.orders[order["number"]] = {**order, "time": 0.0, "repeated": False}
        else:
            own, wanted = self.plant.fleet[vehicle], self.plant.tasks[task]
            opens = wanted.state == WAITING or (wanted.state == ANNOUNCED and wanted.opens <= now)
            assert not opens or (own.status, own.service) != (IDLE, SERVES)

    # Nonsense, repetition, restarts

    @rule(
        text=st.text(max_size=40)
        | st.sampled_from(
            ['{"kind": "Decide"}', '{"kind": "Decide", "time": "1"}', "[]", "{", "null", "1e999"]
        )
    )
    def nonsense_is_said(self, text):
        before = self.show()
        (answer,) = self.service.answer(text)
        assert answer["kind"] == "Refused" and "\n" not in answer["why"]
        assert self.show() == before

    @precondition(lambda self: self.told)
    @rule(k=anything, other=st.booleans())
    def event_comes_again(self, k, other):
        """Its number is known: it changes nothing, whatever it says."""
        before, message = self.show(), self.pick(self.told, k)
        (answer,) = self.service.answer(json.dumps({**message, "time": 0.0} if other else message))
        assert answer["kind"] == "Ok" and self.show() == before

    @rule(from_state=st.booleans(), cut=st.booleans())
    def process_is_killed(self, from_state, cut):
        """What was answered is known to the next one; a last line that was cut off is not."""
        before, state = self.show(), None
        if from_state:
            state = self.place / "live.npz"
            self.dispatcher.save(state)
        self.restarts += 1
        log = self.place / f"day-{self.restarts}.jsonl"
        shutil.copyfile(self.log, log)
        if cut:
            with open(log, "a") as file:
                file.write('{"kind": "TaskArr')
        self.dispatcher.close()
        own = {"audit": log, "state": state}
        if cut:
            with pytest.warns(acerl_np.LogWarning):
                self.dispatcher = acerl_np.Dispatcher.recover(LAYOUT, self.policy, **own)
        else:
            self.dispatcher = acerl_np.Dispatcher.recover(LAYOUT, self.policy, **own)
        self.log, self.service = log, Service(self.dispatcher)
        assert self.show() == before

    @invariant()
    def service_tells_what_the_page_says(self):
        if not hasattr(self, "service"):
            return
        state, plant = self.show(), self.plant
        assert sorted(state["waiting"]) == plant.of(WAITING)
        assert sorted(state["planned"]) == plant.of(ANNOUNCED)
        under_way = {x.task: name for name, x in plant.fleet.items() if x.task}
        assert state["under_way"] == under_way
        idle = [n for n, x in plant.fleet.items() if (x.status, x.service) == (IDLE, SERVES)]
        assert sorted(state["idle"]) == sorted(idle)
        assert sorted(state["sites"]) == sorted(plant.fleet)
        for name, task in plant.tasks.items():
            seen = state["tasks"][name]["state"]
            if not task.state and seen in (GIVEN, LOADED):  # where its vehicle stood is not told
                task.state = seen
            assert seen == task.state
        assert sorted(state["tasks"]) == sorted(plant.tasks)
        assert self.dispatcher.check() == []


def test_core_does_what_the_page_says():
    run_state_machine_as_test(Core, settings=settings(stateful_step_count=40, deadline=None))
