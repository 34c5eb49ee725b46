"""The live dispatcher where vehicles charge, park and are called back."""

import json
import math

import full
import numpy as np
import pytest
import worlds
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from live_events import BATTERY, floor
from machine import JIT
from played import KINDS as OPEN

import acerl_np
from acerl_np import Dispatcher, EventError, IndexPolicy, Instance, Layout, Lookahead
from acerl_np.kernels.dispatching.greedy_rollout import find_free
from acerl_np.live import events as E
from acerl_np.live.daybook import read_audit
from acerl_np.policies.rules import BASELINES
from acerl_np.problem.bundled import YARDSTICK, instances_folder
from studies.job_shops import import_bilge_ulusoy

CLOSED = {f"{kind}, closures": worlds.with_closures(drawn) for kind, drawn in OPEN.items()}
KINDS = OPEN | CLOSED
INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)


class Plant(full.Episode):
    """The slow simulator as a perfect plant: it tells what happens and does what a dispatcher decides.

    With `passes` it tells the true moments at which vehicles come to sites. Where there are machines, it
    tells of all tasks of a chain with the first, and when each is ready.
    """

    def __init__(self, instance, dispatcher, passes, **options):
        self.passes = passes
        self.events, self.names = [], [vehicle.id for vehicle in instance.layout.vehicles]
        self.sent, self.next_time, self.asked, self.orders = [], None, -1, []
        self.decided, self.told, self.known, self.work = [], set(), set(), {}
        self.hire(dispatcher)
        super().__init__(instance.layout.to_dict(), instance.rows(), **options)

    def hire(self, dispatcher):
        """Let this dispatcher decide from now on."""
        self.dispatcher, self._decide = dispatcher, dispatcher._decider.decide
        dispatcher._decider.decide = self._watch

    def _watch(self, board, decisions, now, goes_on=False):
        """Note every pair that is chosen, also one that leaves a task with its vehicle."""
        found = self._decide(board, decisions, now, goes_on)
        if found.vehicle >= 0:
            rows = {task.row: name for name, task in board.tasks.items()}
            self.decided.append((found.vehicle, rows[board.state.pool[0, found.position]]))
        return found

    def process_tick(self):
        before = [(vehicle.word, list(vehicle.stops)) for vehicle in self.vehicles]
        closed = self._closed
        super().process_tick()
        now = float(self.time)
        for kind, pairs in (
            (E.EdgeOpened, closed - self._closed),
            (E.EdgeClosed, self._closed - closed),
        ):
            self.events += [kind(now, *sorted(pair)) for pair in sorted(pairs, key=sorted)]
        for name, vehicle, (word, stops) in zip(self.names, self.vehicles, before, strict=True):
            self._tell_passes(name, vehicle, stops)
            if vehicle.word == "broken":  # a dispatcher does not know where on an edge it stands
                reject()
            if word == "working" and vehicle.word == "idle":
                self.events.append(E.VehicleIdle(now, name, vehicle.site))
            elif word in ("parking", "roaming") and vehicle.word == "idle":
                kind = E.VehicleParked if word == "parking" else E.VehiclePassed
                self.events.append(kind(now, name, vehicle.site))
            elif word == "to_charger" and vehicle.word in ("queued", "charging"):
                self.events.append(E.VehiclePassed(now, name, vehicle.site))
            if word == "charging" != vehicle.word == "idle":
                self.events.append(E.VehicleCharging(now, name, vehicle.site, begins=False))
            elif word != "charging" == vehicle.word:
                self.events.append(E.VehicleCharging(now, name, vehicle.site))
        self._tell_tasks()

    def _tell_chain(self, time, first):
        names = {first.name}
        for task in self.tasks:
            if task is first or task.after in names:
                names.add(task.name)
                own = task.expiry, task.handling, task.demand, task.priority, None
                chain = task.after or "", task.processing, task.announced if task.after else 0.0
                ends = task.pickup, task.delivery
                self.events.append(E.TaskArrived(time, task.name, *ends, *own, *chain))
        self.told |= names

    def _tell_tasks(self):
        now = float(self.time)
        for task in [*self.task_pool, *self._aside]:
            if task.name not in self.known:
                self.known.add(task.name)
                if task.name not in self.told:
                    self._tell_chain(min(now, task.arrival), task)
                if task.arrival == now and task.after:
                    self.events.append(E.TaskReady(now, task.name))
                elif task.after or task.arrival > now:
                    self.events.append(E.TaskAnnounced(now, task.name, task.arrival))
        for site, machine in self._machines.items():
            names = [task.name for task in (*machine.in_service, *machine.queue)]
            if names != self.work.get(site, []):
                self.work[site] = names
                left = sum(task.processed - self.time for task in machine.in_service)
                left += sum(map(full.count_ticks, machine.queue))
                self.events.append(E.MachineBusy(now, site, float(left)))

    def _tell_passes(self, name, vehicle, stops):
        """The true moments at which it comes to sites, but for the end of its way."""
        if not self.passes or vehicle.stops != stops:
            return
        for stop in stops[:-1]:
            if stop.leg is not None and self.time - 1 < stop.moment <= self.time:
                self.events.append(E.VehiclePassed(stop.moment, name, stop.site))

    def ask(self):
        """Feed what has happened; return what is decided, and note who is sent to charge or to park."""
        due = self.next_time is not None and self.next_time <= self.time
        if not self.events and self.asked >= 0 and not due and self.asked != self.time:
            return
        for event in sorted(self.events, key=lambda event: event.time):
            self.dispatcher.feed(event)
        self.events.clear()
        made = [own for own in self.dispatcher.decide(float(self.time)) if not own.repeated]
        self.asked, self.next_time = self.time, self.dispatcher.next_time
        self.orders += made
        self.sent += [order for order in made if isinstance(order, E.Charge | E.Park)]

    def _send_idle_vehicles(self):
        self.ask()
        assert not self.decided
        before = self.statuses()
        super()._send_idle_vehicles()
        sent = [
            (name, vehicle.word, vehicle.destination)
            for name, vehicle, word in zip(self.names, self.vehicles, before, strict=True)
            if word == "idle" and vehicle.word in ("parking", "to_charger")
        ]
        words = {E.Charge: "to_charger", E.Park: "parking"}
        assert [(item.vehicle, words[type(item)], item.site) for item in self.sent] == sent
        self.sent.clear()
        # What is believed of the levels.
        told = [self.dispatcher.levels.get(name) for name in self.names]
        levels = [level if level is None else float(level) for level in self.levels()]
        assert told == pytest.approx(levels)

    def play(self):
        """Play the day by the dispatcher."""
        while not self.done:
            self.ask()
            decided, self.decided = self.decided, []
            if not decided:
                self.wait()
            for v, task in decided:
                assert not self.done
                self.assign(v, task)
        return self


def play(instance, policy, commitment, changes, passes, kind=Plant, **options):
    layout = instance.layout.with_commitment(commitment, changes)
    instance = Instance.from_rows("random", layout, instance.rows())
    dispatcher = Dispatcher(layout, policy, budget=None, **options)
    plant = kind(instance, dispatcher, passes, commitment=commitment, max_changes=changes)
    plant.play()
    # The simulator was told of pairs that leave a task with its vehicle; what they changed is told in orders.
    n_recalls = sum(isinstance(order, E.Recall) for order in plant.orders)
    assert n_recalls == sum(plant.changes)
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
    policy = data.draw(st.sampled_from([*BASELINES, INDEX]))
    changes = data.draw(st.sampled_from([0, 1, 8]))
    play(instance, policy, commitment, changes, data.draw(st.booleans()))


CHAINS = IndexPolicy.of_weights(
    approach=-1.0, lateness=0.6, work_left=0.3, machine_busy=-0.4, ready_in=-0.8
)


def make_chains(seed):
    """A random floor with machines, tasks that follow each other, and who decides."""
    world = worlds.chained_world(seed)
    floor = {**world.layout, "machines": world.layout.get("machines") or [{"site": "s0"}]}
    layout = Layout.from_dict(floor).with_breakdowns({})
    policy = ["nearest", CHAINS, "edd-nearest", "assignment"][seed % 4]
    return Instance.from_rows("random", layout, world.rows), policy


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 7, 26, 28, 40, 53])
def test_a_perfect_plant_with_chains_goes_as_the_simulator(seed, commitment):
    instance, policy = make_chains(seed)
    play(instance, policy, commitment, seed % 9, seed % 2 == 0)


@pytest.mark.long
@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("policy", ["nearest", CHAINS])
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
def test_what_chains_bring_is_foreseen(commitment, policy, announced, tmp_path):
    """Nothing is left to chance: each forecast comes true, and a lookahead decides as in the simulator."""

    class Asked(Plant):
        def ask(self):
            super().ask()
            seen = self.dispatcher.forecast(float(self.time))
            self.seen += [(item.task, item.delivery) for item in seen]

    Asked.seen = []
    baseline = import_bilge_ulusoy(instances_folder() / YARDSTICK, announced=announced)
    instance = next(item for item in baseline if item.name == "EX11")
    plant = play(instance, policy, commitment, 3, False, Asked, audit=tmp_path / "day.jsonl")
    came = {name: finish for name, _, _, finish, _ in plant.times}
    assert len(plant.seen) > 150 and all(came[name] == time for name, time in plant.seen)
    play(instance, Lookahead(policy, futures=0), commitment, 3, False)
    # The log tells the record, and of a task that was announced for how long.
    found = read_audit(tmp_path / "day.jsonl", instance.layout).instance
    assert found.tasks == instance.tasks and (found.after == instance.after).all()
    assert found.is_plain is False and (found.processing == instance.processing).all()
    known = instance.processing[instance.after] * (instance.after >= 0) * announced
    assert (found.announced == known).all()
    assert announced or found.content_hash == instance.content_hash


def look_at_chains(dispatcher):
    """What is known of tasks and machines, wherever it stands."""
    own = dispatcher._floor.snapshot()
    tasks = [
        {name: task._replace(row=0) for name, task in x.items()} for x in (own.tasks, own.planned)
    ]
    return tasks, own.pool, own.machines.tolist()


def test_what_cannot_be_of_chains():
    data = acerl_np.load_layout("dmh").to_dict() | {"machines": [{"site": "st5", "servers": 2}]}
    dispatcher = Dispatcher(Layout.from_dict(data), "nearest")
    ends = "st1", "st5", 90.0
    dispatcher.feed(E.TaskArrived(0.0, "a", *ends, processing=9.0))
    dispatcher.feed(E.TaskArrived(0.0, "b", "st5", "st8", 90.0, after="a"))
    dispatcher.feed(E.TaskArrived(0.0, "c", "st8", "st5", math.inf, after="b"))
    held, count = "expected a task that is held back", "expected a number from 0"

    def arrived(*given, **own):
        return E.TaskArrived(1.0, "d", *given, **own)

    for event, fault in [
        (arrived(*ends, after="x"), f"after: read 'x'; {held}"),
        (arrived(*ends, after="d"), f"after: read 'd'; {held}"),
        (arrived("st5", "st1", 9.0, processing=1.0), "processing: no machine at 'st1'"),
        (arrived(*ends, announced=-1.0), f"announced: read -1.0; {count}"),
        (E.TaskReady(1.0, "d"), "task 'd' is unknown; expected one that is held back or waits"),
        (E.TaskAnnounced(1.0, "b", math.nan), "ready: read nan; expected a number"),
        (E.TaskChanged(1.0, "b", due=50.0), "due: nobody knows yet when task 'b' is ready"),
        (E.MachineBusy(1.0, "st1", 5.0), "site 'st1' has no machine"),
        (E.MachineBusy(1.0, "st5", -5.0), "seconds: read -5.0; expected a number from 0"),
    ]:
        before = look_at_chains(dispatcher)
        with pytest.raises(EventError, match=fault):
            dispatcher.feed(event)
        assert look_at_chains(dispatcher) == before
    # Without the one before it a task waits for its message.
    left = dispatcher._floor.problem.lead["work_left"][0, 2]
    dispatcher.feed(E.TaskCancelled(1.0, "b"))
    assert dispatcher.planned == ("c",) and left > 9.0
    assert dispatcher._floor.problem.lead["work_left"][0, 2] == 9.0
    dispatcher.feed(E.MachineBusy(2.0, "st5", 5.0))
    assert dispatcher._floor.clock.machine.tolist() == [4.0, 5.0]
    dispatcher.feed(E.TaskAnnounced(3.0, "c", 20.0))
    dispatcher.feed(E.TaskChanged(3.0, "c", due=50.0))
    assert (dispatcher.waiting, dispatcher._floor.tasks["c"].event.expiry) == (("a", "c"), 30.0)
    plain = Dispatcher("dmh", "nearest")
    plain.feed(E.TaskArrived(0.0, "a", *ends))
    for event in (E.TaskArrived(1.0, "b", *ends, after="a"), E.TaskReady(1.0, "a")):
        with pytest.raises(EventError, match="expected a layout with machines, and a rule"):
            plain.feed(event)


@pytest.mark.parametrize("way", ["save", "recover"])
@pytest.mark.parametrize("seed", [3, 5, 7, 8, 28])
def test_chains_go_on_after_restarts(seed, way, tmp_path):
    log, file = tmp_path / "day.jsonl", tmp_path / "day.npz"

    class Restarted(Plant):
        def ask(self):
            self.n_asked = getattr(self, "n_asked", 0) + 1
            if self.n_asked % 4:  # else what is saved would lie behind for ever
                return super().ask()
            before = look_at_chains(self.dispatcher)
            if way == "save":
                self.dispatcher.save(file)
                self.hire(Dispatcher.load(file))
            else:
                layout = self.dispatcher.layout
                self.dispatcher.close()
                self.hire(Dispatcher.recover(layout, policy, audit=log))
            assert look_at_chains(self.dispatcher) == before
            return super().ask()

    instance, policy = make_chains(seed)
    commitment = "pickup" if way == "save" else "assignment"
    options = {"lateness": 0.0} if way == "save" else {"audit": log}
    play(instance, policy, commitment, 3, False, Restarted, **options)


def say(orders):
    return [order[:2] for order in orders]


def recalled(**options):
    """v0 is on its way to B for t0 when t1 comes at A, and v1, which drives from C, is nearer to B."""
    layout = floor(parking={"after": 500, "places": [{"site": "B"}]})
    dispatcher = Dispatcher(layout, "nearest", commitment="pickup", **options)
    dispatcher.feed(E.VehiclePassed(0.0, "v1", "C"))
    dispatcher.feed(E.VehicleBroke(0.0, "v1"))
    dispatcher.feed(E.TaskArrived(0.0, "t0", "B", "C", 60.0))
    assert say(dispatcher.decide(0.0)) == [("v0", "t0")]
    dispatcher.feed(E.VehicleRepaired(2.0, "v1"))
    orders = dispatcher.decide(2.0)
    assert [type(order) for order in orders] == [E.Recall, E.Assignment]
    assert say(orders) == [("v0", "t0"), ("v1", "t0")]
    assert [order.number for order in orders] == [2, 3]
    return dispatcher


@pytest.mark.parametrize("late", [False, True])
def test_a_recall_that_crosses_the_loading_is_refused(late, tmp_path):
    """The task goes on with its vehicle, also in the log; the one that has it meanwhile is free again."""
    dispatcher = recalled(audit=tmp_path / "day.jsonl")
    if late:  # it had been at the pickup before
        dispatcher.feed(E.VehiclePassed(1.5, "v0", "B"))
    assert dispatcher.under_way == {"t0": "v1"}
    dispatcher.feed(E.RecallAnswered(1.9 if late else 4.0, "v0", "t0", done=False))
    assert dispatcher.under_way == {"t0": "v0"}
    dispatcher.feed(E.TaskArrived(5.0, "t1", "B", "A", 60.0))
    assert say(dispatcher.decide(5.0)) == [("v1", "t1")]  # and nobody calls t0 back
    dispatcher.feed(E.VehicleIdle(6.0, "v0", "C"))
    assert dispatcher._floor.day.delivered == 1
    day = read_audit(tmp_path / "day.jsonl", dispatcher.layout)
    assert (day.vehicle[0], day.start[0], day.finish[0]) == (0, 0.0, 6.0)
    with pytest.raises(EventError, match="task 't0' is unknown; expected one that was called back"):
        dispatcher.feed(E.RecallAnswered(6.0, "v0", "t0", done=False))


def test_a_policy_brings_its_commitment_and_thresholds():
    features, late = ["approach", "good"], {"commitment": "pickup", "max_changes": 3}
    for weight, sent in ((0.0, []), (0.5, [("v0", "C")])):
        policy = IndexPolicy([-1.0, weight], features=features, **late)
        dispatcher = Dispatcher(floor(1), policy)
        assert (dispatcher.commitment, dispatcher.max_changes) == ("pickup", 3)
        dispatcher.feed(E.VehicleLevel(0.0, "v0", BATTERY["good"] + 1))
        orders = dispatcher.decide(0.0)
        assert say(orders) == sent and all(order.reason.endswith("low") for order in orders)


def test_a_vehicle_that_comes_back_is_idle_from_then_on(tmp_path):
    dispatcher = Dispatcher(floor(1), "nearest")
    dispatcher.feed(E.VehicleOutOfService(0.0, "v0"))
    assert dispatcher.decide(90.0) == []
    dispatcher.feed(E.VehicleBack(100.0, "v0"))
    assert dispatcher.decide(100.0) == [] and dispatcher.next_time == 105.0
    dispatcher.save(tmp_path / "live.npz")
    assert Dispatcher.load(tmp_path / "live.npz").next_time == 105.0
    assert say(dispatcher.decide(105.0)) == [("v0", "B")]


def test_where_a_vehicle_charges_is_known_though_nobody_sent_it():
    dispatcher = Dispatcher(floor(1), "nearest", charges=False)
    dispatcher.feed(E.VehicleLevel(0.0, "v0", 200))
    dispatcher.feed(E.VehicleCharging(0.0, "v0", "C"))
    dispatcher.decide(0.0)
    problem, state = dispatcher._floor.problem, dispatcher._floor.state
    _, site = find_free(problem, state, np.int64(0), np.int64(0), False)
    assert dispatcher.layout.sites[site].id == "C"


def test_a_vehicle_that_breaks_down_on_its_way_to_a_charger_is_sent_again():
    dispatcher = Dispatcher(floor(1), "nearest")
    dispatcher.feed(E.VehicleLevel(0.0, "v0", 200))
    (order,) = dispatcher.decide(0.0)
    assert isinstance(order, E.Charge) and say([order]) == [("v0", "C")]
    assert order.reason == "level 200: low"
    dispatcher.feed(E.VehiclePassed(10.0, "v0", "B"))
    assert dispatcher.levels == {"v0": 190.0}
    dispatcher.feed(E.VehicleBroke(12.0, "v0"))
    dispatcher.feed(E.VehicleRepaired(50.0, "v0"))
    assert dispatcher.levels == {"v0": 188.0}  # a broken vehicle uses nothing
    (order,) = dispatcher.decide(50.0)
    assert isinstance(order, E.Charge) and order.number == 2
    # In the queue of another charger than it was sent to there is no queue to be in.
    dispatcher.feed(E.VehiclePassed(56.0, "v0", "C"))
    dispatcher.feed(E.VehicleCharging(57.0, "v0", "C"))
    assert dispatcher.decide(57.0) == []
    dispatcher.feed(E.TaskArrived(58.0, "t", "C", "B", 60.0))
    assert dispatcher.decide(58.0) == []  # it charges to `resume` first
    assert dispatcher.next_time == 57.0 + (300 - 181) // 10 + 1
    assert say(dispatcher.decide(dispatcher.next_time)) == [("v0", "t")]


@pytest.mark.long  # forecasts of vehicles that charge are compiled
def test_a_forecast_waits_for_a_vehicle_that_charges():
    dispatcher = Dispatcher(floor(1), "nearest")
    dispatcher.feed(E.VehicleLevel(0.0, "v0", 181))
    dispatcher.feed(E.VehiclePassed(0.0, "v0", "C"))
    dispatcher.feed(E.VehicleCharging(0.0, "v0", "C"))
    dispatcher.feed(E.TaskArrived(1.0, "t", "C", "B", 60.0))
    assert dispatcher.decide(1.0) == []
    assert dispatcher.next_time == (300 - 181) // 10 + 1
    assert dispatcher.forecast(1.0, budget=None)[0].delivery == dispatcher.next_time + 6.0


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
def test_levels_that_are_told_correct_what_is_believed():
    dispatcher = Dispatcher(floor(1), "nearest")
    dispatcher.feed(E.VehicleLevel(0.0, "v0", 41))
    dispatcher.feed(E.TaskArrived(0.0, "t", "B", "C", 60.0))
    (order,) = dispatcher.decide(0.0)
    assert isinstance(order, E.Charge)
    dispatcher.feed(E.VehicleLevel(4.0, "v0", 500))
    assert say(dispatcher.decide(4.0)) == [("v0", "t")]
    dispatcher.feed(E.VehicleLevel(3.0, "v0", 77))  # a late one, before the assignment
    assert dispatcher.levels == {"v0": 500.0}
    dispatcher.feed(E.VehicleLevel(5.0, "v0", 450.5))
    dispatcher.feed(E.VehicleLevel(5.0, "v0", 450.5))
    assert dispatcher.levels == {"v0": 450.5}
    for level in (-1, 1001, "full"):
        with pytest.raises(EventError, match=r"level: read .*; expected a number from 0 to 1,000"):
            dispatcher.feed(E.VehicleLevel(6.0, "v0", level))
    with pytest.raises(EventError, match=r"vehicle 'v0' is working; expected it to be idle$"):
        dispatcher.feed(E.VehicleCharging(90.0, "v0", "C"))
    dispatcher.feed(E.VehicleIdle(90.0, "v0", "C"))
    with pytest.raises(EventError, match="site 'A' is no charger; expected one"):
        dispatcher.feed(E.VehicleCharging(90.0, "v0", "A"))


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")
def test_a_plant_that_parks_and_charges_itself_says_so():
    dispatcher = Dispatcher(floor(2), "nearest", parks=False, charges=False)
    dispatcher.feed(E.VehicleLevel(0.0, "v0", 100))
    assert dispatcher.decide(9.0) == []
    assert isinstance(dispatcher.send(9.0, "v0", "C"), E.Charge)
    assert isinstance(dispatcher.send(9.0, "v1", "B"), E.Park)
    with pytest.raises(EventError, match="site 'A' is no charger and no parking place for it"):
        dispatcher.send(9.0, "v1", "A")
    dispatcher.feed(E.VehicleParked(20.0, "v1", "B"))
    dispatcher.feed(E.TaskArrived(21.0, "t", "C", "A", 60.0))
    # v0 is nearer, yet below `resume`.
    assert say(dispatcher.decide(21.0)) == [("v1", "t")]


def test_nobody_joins_or_parks_where_no_edge_leads_away():
    own = worlds.straight_floor([{"id": "v0", "start": "A"}])
    own["edges"][1]["one_way"] = True
    dispatcher = Dispatcher(Layout.from_dict(own), "nearest")
    for event in (E.VehicleParked(1.0, "v0", "C"), E.VehicleAdded(1.0, "v1", "C")):
        with pytest.raises(EventError, match="site: no edge leads away from 'C'; expected"):
            dispatcher.feed(event)
    dispatcher.feed(E.VehicleAdded(1.0, "v1", "B"))
    assert dispatcher.sites == {"v0": "A", "v1": "B"}


def test_orders_that_nobody_has_confirmed_come_again_after_a_restart(tmp_path):
    log = tmp_path / "day.jsonl"
    dispatcher = recalled(audit=log)
    layout = floor(parking={"after": 500, "places": [{"site": "B"}]})

    def restart():
        return Dispatcher.recover(layout, "nearest", audit=log)

    assert json.loads(log.read_text().split("\n")[0])["options"]["commitment"] == "pickup"
    dispatcher.close()
    again = restart()
    assert again._floor.vehicles == dispatcher._floor.vehicles
    owed = [order for order in again.decide(3.0) if order.repeated]
    assert say(owed) == [("v0", "t0"), ("v1", "t0")]
    assert [(type(order), order.number) for order in owed] == [(E.Recall, 2), (E.Assignment, 3)]
    again.close()
    again = restart()
    again.feed(E.RecallAnswered(3.0, "v0", "t0"))
    again.feed(E.VehiclePassed(8.0, "v1", "B"))
    assert not [order for order in again.decide(8.0) if order.repeated]
    again.save(tmp_path / "live.npz")
    loaded = Dispatcher.load(tmp_path / "live.npz")
    assert loaded._floor.vehicles == again._floor.vehicles
    orders = loaded.desk.orders
    assert (orders.opens, orders.asked, orders.last) == (False, 8.0, 3)
    # What was done: t0 by the vehicle that has it.
    again.feed(E.VehicleIdle(14.0, "v1", "C"))
    day = read_audit(log, layout)
    assert (day.vehicle.tolist(), day.start.tolist(), day.finish.tolist()) == ([1], [2.0], [14.0])
    again.decide(14.0)
    again.save(tmp_path / "live.npz")
    again.feed(E.TaskArrived(14.0, "t1", "B", "C", 60.0))
    again.close()
    again = Dispatcher.recover(layout, "nearest", audit=log, state=tmp_path / "live.npz")
    assert "t1" in [order.task for order in again.decide(14.0)]
