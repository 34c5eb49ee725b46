"""Traces of episodes: what vehicles and machines do, beside the slow simulator and by hand."""

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import full
import numpy as np
import pytest
import worlds
from episodes import play_and_compare
from full import Episode
from hypothesis import given, settings
from hypothesis import strategies as st
from played import WORDS, decide_drawn

from acerl_np import Instance, Layout, Simulator
from acerl_np.evaluation.trials import Trials
from acerl_np.kernels.core.state import NEVER, read_outcome
from acerl_np.kernels.motion.commitment import find_waiting, take_decision
from acerl_np.kernels.motion.offers import is_decision_due
from acerl_np.kernels.rollout.trace import rate_tasks
from acerl_np.problem.goal import MEASURES, Goal
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.scene import STATUSES
from acerl_np.simulation.trace import PLAYED, Reason, Step, place_on, trace_episode

KINDS = worlds.with_parking(worlds.with_chargers(worlds.worlds())) | worlds.worlds()


class Given:
    """A player that takes the decisions of a list, (vehicle, task) each."""

    def __init__(self, decisions):
        self.decisions = iter(decisions)

    def assign(self, problem, state):
        given = []
        while is_decision_due(problem, state, PLAYED):
            v, task = (np.int64(x) for x in next(self.decisions))
            take_decision(problem, state, PLAYED, v, find_waiting(state, PLAYED, task))
            given.append((int(v), Reason("given")))
        return given, int(NEVER)


def trace_given(instance, decisions, **options):
    problem = build_problem([instance], **options)
    return trace_episode("given", instance, problem, np.zeros(4, np.uint32), Given(decisions))


class Filmed(Episode):
    """The slow simulator, with status, place and level of every vehicle at the end of every tick."""

    def __init__(self, *args, **kwargs):
        self.film = []
        super().__init__(*args, **kwargs)

    def process_tick(self):
        self.snap()
        super().process_tick()

    def snap(self):
        places = [self.find(vehicle) for vehicle in self.vehicles]
        self.film.append(list(zip(self.statuses(), places, self.levels(), strict=True)))

    def find(self, vehicle):
        drives = vehicle.status == full.WORKING and vehicle.word not in ("queued", "charging")
        if drives or vehicle.task is not None:  # which it keeps where it is broken
            return vehicle.place()
        return vehicle.standing or full.Standing(vehicle.site, vehicle.site, 0.0)


def play(world, commitment, max_changes, seed):
    """The slow simulator after an episode of drawn decisions, these, and the trace of them."""
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment, max_changes)
    instance = Instance.from_rows("random", layout, world.rows)
    how = {"commitment": commitment, "max_changes": max_changes, "scaling": worlds.RAW}
    slow = Filmed(world.layout, world.rows, **how)
    rows = {name: k for k, name in enumerate(instance.tasks)} | {"": -1}
    decisions = []
    while not slow.done:
        now = slow.time
        v, task = decide_drawn(slow, draws)
        decisions.append((now, v, rows[task]))
    slow.snap()
    return slow, decisions, trace_given(instance, [chosen for _, *chosen in decisions])


def find_word(trace, v, time):
    """What a vehicle does at a moment, of all that the trace notes."""
    found = {"broken" for s in trace.stops if s.vehicle == v and s.start <= time < s.end}
    found = found or {"working" for t in trace.trips if t.vehicle == v and t.start <= time < t.end}
    found |= {
        WORDS[e.status] for e in trace.auxiliary_moves if e.vehicle == v and e.start <= time < e.end
    }
    [word] = found or {"idle"}
    return word


def check_trips(trace):
    """Trips are ways that hold together, and each task is delivered once."""
    delivered = sorted(trip.task for trip in trace.trips if trip.delivered)
    assert delivered == list(range(trace.instance.n_tasks))
    for trip in trace.trips:
        decision = trace.decisions[trip.decision]
        assert (trip.vehicle, trip.task, trip.start) == decision[1:3] + decision[:1]
        loaded = [step.loaded for step in trip.steps]
        assert loaded == sorted(loaded)
        assert (trip.pickup is not None) >= trip.delivered
        for before, after in pairwise(trip.steps):
            goes_on = before[2:4] == after[2:4]  # with a load that it has kept
            assert (
                trip.pause or goes_on or before.target == after.origin
            )  # a pause is at the pickup
            assert before.end <= after.start
        for step in trip.steps:
            assert trip.start <= step.start <= step.end <= trip.end
            assert 0.0 <= step.first <= step.last + 1e-9 <= 1.0 + 2e-9
    for v in range(len(trace.instance.layout.vehicles)):
        ways = [way for way in trace.list_ways() if way.vehicle == v and way.steps]
        for way, then in pairwise(ways):
            last, next_one = way.steps[-1], then.steps[0]
            if way.end == then.start and last[2:4] == next_one[2:4]:
                assert last.last == next_one.first  # what it leaves off it takes up


def compare_trace(slow, decisions, trace):
    """What the vehicles do in the slow simulator, and in the trace of the same decisions."""
    layout = trace.instance.layout
    assert [(d.time, d.vehicle, d.task) for d in trace.decisions] == decisions
    assert (trace.status, trace.end, trace.makespan) == ("finished", slow.time, slow.makespan)
    assert trace.tardiness == pytest.approx(slow.tardiness, abs=1e-9)
    assert trace.lateness.mean() == pytest.approx(slow.tardiness, abs=1e-9)
    recalled = [trip.task for trip in trace.trips if trip.recall is not None]
    assert [recalled.count(task) for task in range(len(slow.changes))] == slow.changes
    check_trips(trace)
    length = layout.routes.edge_length
    late = set()
    # The first picture is that of tick 0 or before it.
    for time, vehicles in enumerate(slow.film, slow.time - len(slow.film) + 1):
        for v, (word, standing, level) in enumerate(vehicles):
            if level is not None and time >= 0:
                assert trace.find_level(v, time) == level
            if 0 <= time < slow.time:  # nothing lasts beyond the end
                assert find_word(trace, v, time) == word
            a, b = layout.site_index[standing.last], layout.site_index[standing.next]
            part = standing.offset / length[a, b] if a != b else 0.0
            if a != b and 0.0 < min(standing.offset, length[a, b] - standing.offset) < 1e-9:
                late.add(v)  # by rounding it is short of a site, and there a tick after the trace
            if v not in late:
                place = place_on(layout, a, b, part)
                assert trace.locate(v, time) == pytest.approx(place, abs=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@settings(max_examples=60)
@given(world=KINDS, max_changes=st.integers(0, 8), seed=st.integers(0, 10**6))
def test_a_trace_shows_what_the_slow_simulator_does(world, commitment, max_changes, seed):
    compare_trace(*play(world, commitment, max_changes, seed))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["recalled-at-a-site", "recalled-some-edges-on"])
def test_a_vehicle_that_is_called_back_as_it_comes_to_a_site_stands_there(name):
    """Drawn worlds, some of thousands, in which it is not sent elsewhere then."""
    path = Path(__file__).parents[1] / "data" / f"{name}.json"
    drawn = json.loads(path.read_text())
    world = SimpleNamespace(layout=drawn["layout"], rows=drawn["rows"])
    compare_trace(*play(world, "pickup", drawn["max_changes"], drawn["seed"]))


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("seed", range(40))
def test_a_trace_of_chains_shows_what_the_slow_simulator_does(commitment, seed):
    slow, decisions, trace = play(worlds.chained_world(seed), commitment, seed % 9, seed)
    compare_trace(slow, decisions, trace)
    record = trace.instance
    delivered = {trip.task: trip for trip in trace.trips if trip.delivered}
    work = {item.task: item for item in trace.processing}
    for name, ready, loaded, finish, processed in slow.times:
        task = record.tasks.index(name)
        trip, item = delivered[task], work.get(task)
        assert (trace.ready[task], trip.pickup, trip.end) == (ready, loaded, finish)
        assert (item.queued, item.end) == (finish, processed) if item else processed == finish
    log = [(item.end, "end", item.task) for item in trace.processing]
    log += [(item.start, "begin", item.task) for item in trace.processing]
    assert sorted(log) == sorted(
        (tick, what, record.tasks.index(name)) for tick, _, what, name in slow.machine_log
    )
    servers = [machine.servers for machine in record.layout.machines]
    for machine, server in trace.servers:
        assert server < servers[machine]
        own = [item for item in trace.processing if item[:2] == (machine, server)]
        assert all(item.end <= then.start for item, then in pairwise(own))


def compare_fleet(world, commitment, seed):
    """What a policy in Python is told of the fleet, and what the slow simulator has, in drawn decisions."""
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment)
    instance = Instance.from_rows("random", layout, world.rows)
    simulator = Simulator(instance)
    slow = Episode(world.layout, world.rows, commitment=commitment, scaling=worlds.RAW)
    rows = {name: k for k, name in enumerate(instance.tasks)} | {"": -1}
    while not slow.done:
        fleet = simulator.fleet(0)
        assert simulator.time[0] == slow.time
        assert [WORDS[STATUSES.index(status)] for status in fleet.status] == slow.statuses()
        for v, (battery, level) in enumerate(zip(layout.batteries, slow.levels(), strict=True)):
            share = np.nan if battery is None else level / battery.capacity
            assert fleet.level[v] == pytest.approx(share, nan_ok=True)
            stand = None if v in slow._settled else slow.stand(v)
            if stand is None:
                assert (fleet.stand[v], str(fleet.stand_time[v])) == (-1, "nan")
            else:
                assert (layout.sites[fleet.stand[v]].id, fleet.stand_time[v]) == stand[:2]
            task = slow.vehicles[v].task
            assert fleet.task[v] == (-1 if task is None else rows[task.name])
        assert bool(simulator.may_wait()[0]) == slow.may_wait()
        v, task = decide_drawn(slow, draws)
        simulator.assign([v], [rows[task]])
    assert simulator.done[0] and simulator.makespan[0] == slow.makespan
    assert not simulator.may_wait()[0]


@pytest.mark.oracle
@settings(max_examples=60)
@given(
    world=KINDS, commitment=st.sampled_from(["assignment", "pickup"]), seed=st.integers(0, 10**6)
)
def test_a_policy_in_python_is_told_what_the_slow_simulator_has(world, commitment, seed):
    compare_fleet(world, commitment, seed)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(12))
def test_a_vehicle_that_has_turned_back_where_the_way_there_is_the_shorter_edge(seed):
    """It is 5 m past A when it turns, more than the edge to A is long; it may break down again then."""
    breakdowns = [{"time": time, "repair_time": 0} for time in (6, 9, 15)]
    fleet = [{"id": "v", "start": "A", "speed": 1, "breakdowns": breakdowns}]
    floor = worlds.straight_floor(fleet, task_slots=8)
    ways = [("A", "B", 10), ("B", "A", 4), ("B", "C", 4), ("C", "B", 4)]
    floor["edges"] = [{"a": a, "b": b, "length": x, "one_way": True} for a, b, x in ways]
    rows = [worlds.make_task("t", "B", "C", 0, 10)]
    rows += [worlds.make_task(f"u{k}", "A", "B", k, 10) for k in (7, 8, 11, 14)]
    world = SimpleNamespace(layout=floor, rows=rows)
    compare_fleet(world, "pickup", seed)
    compare_trace(*play(world, "pickup", 8, seed))


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("time", "steps"),
    [(4, [(4, 4, 2, 3, 0.0, 1.0)]), (5, [(4, 5, 2, 3, 0.0, 1.0), (5, 5, 3, 4, 0.0, 1.1 / 1.3)])],
)
def test_a_vehicle_that_is_called_back_passes_what_is_behind_it_at_once(time, steps, waits):
    """At 4 it stands at D, at 5 it is 1.1 m past it; but two ticks an edge it comes there at 6."""
    names = "ABCDEFG"
    layout = {
        "format": 1,
        "sites": [{"id": name, "x": 1.3 * k, "y": 0} for k, name in enumerate(names)],
        "edges": [{"a": a, "b": b, "length": 1.3} for a, b in pairwise(names)],
        "vehicles": [{"id": "v", "start": "A", "speed": 1}, {"id": "w", "start": "G", "speed": 1}],
    }
    rows = [worlds.make_task("t", "G", "F", 0), worlds.make_task("u", "A", "B", time)]
    layout = Layout.from_dict(layout).with_commitment("pickup")
    instance = Instance.from_rows("hand", layout, rows)
    given = [(0, 0), (1, 0), *[(-1, -1)] * waits, *[(0, 1)] * 3]  # kept whenever it is asked for
    trace = trace_given(instance, given)
    check_trips(trace)
    undone = trace.trips[0]
    assert (undone.start, undone.end, undone.recall) == (0, time, 1)
    expected = [(0, 2, 0, 1, 0.0, 1.0), (2, 4, 1, 2, 0.0, 1.0), *steps]
    if waits and time == 4:
        expected.append((4, 4, 3, 3, 1.0, 1.0))  # idle there
    assert [step[:6] for step in undone.steps] == [pytest.approx(own) for own in expected]
    then = [way for way in trace.list_ways() if way.vehicle == 0][1]
    first = then.steps[0]
    assert undone.steps[-1].target in ((first.origin,) if time == 4 else (first.target,))
    assert trace.locate(0, time) == pytest.approx((3.9 if time == 4 else 5.0, 0.0))


WEIGHTS = (1.0, 3.0, 0.5)


def add_up(trace):
    """Seconds with a task, and an episode's measures for `WEIGHTS`: trip by trip, edge by edge."""
    layout, record = trace.instance.layout, trace.instance
    busy, driven, empty, total, makespan = 0.0, 0.0, 0.0, 0.0, 0.0
    tardiness, late, waiting, worst = 0.0, 0.0, 0.0, 0.0
    for trip in trace.trips:
        busy += trip.end - trip.start
        for stop in trace.stops:  # of one that keeps its load
            if stop.vehicle == trip.vehicle and trip.start < stop.start < trip.end:
                busy -= stop.end - stop.start
        approach = 0.0
        for step in trip.steps:
            if step.origin == step.target:
                continue
            speed = layout.find_pace(trip.vehicle, step.origin, step.target)
            metres = (step.last - step.first) * speed / step.pace
            driven += metres
            empty += 0.0 if step.loaded else metres
            approach += 0.0 if step.loaded else metres / speed
        if trip.delivered:
            weight = WEIGHTS[min(int(record.priority[trip.task]), 2)]
            total += weight
            pickup = min(trip.end, trip.start + math.ceil(approach - 1e-8))
            waiting += weight * (pickup - record.arrival[trip.task])
            delay = trip.end - record.arrival[trip.task] - record.expiry[trip.task]
            tardiness += weight * max(0.0, delay)
            late += weight * (delay > 1e-9)
            worst = max(worst, delay)
            makespan = max(makespan, trip.end)
    means = tardiness / total, late / total, waiting / total, empty / driven
    return busy, (makespan, *means, worst)


@pytest.mark.oracle
@given(worlds.worlds(), st.integers(0, 10**6))
def test_figures_are_what_the_trips_add_up_to(world, seed):
    _, decisions, trace = play(world, "assignment", 0, seed)
    goal = Goal("0.5*makespan+2*late+waiting", "3*tardiness+0.25*empty+worst", 9.0, WEIGHTS)
    simulator = Simulator(trace.instance, goal=goal)
    for _, v, task in decisions:
        simulator.assign([v], [task])
    played = read_outcome(simulator.state)
    busy, measures = add_up(trace)
    makespan, tardiness, late, waiting, empty, worst = measures
    found = [getattr(played, name)[0] for name in MEASURES]
    assert played.busy[0] == busy
    assert found == pytest.approx(measures, abs=1e-6)
    assert played.value[0] == pytest.approx(0.5 * makespan + 200 * late + waiting, abs=1e-6)
    assert played.cost[0] == pytest.approx(3 * tardiness + 25 * empty + worst, abs=1e-6)
    assert (simulator.value[0], simulator.cost[0]) == (played.value[0], played.cost[0])
    assert 0.0 <= Trials.of([trace.instance], played).utilisation[0, 0] <= 1.0


def trace_by_hand(**options):
    """It leaves A at 1, breaks down at 4 where it was at 3, stands there until 10, and drives on."""
    breakdowns = [{"time": 4, "repair_time": 5}]
    fleet = [{"id": "v", "start": "A", "speed": 2, "breakdowns": breakdowns}]
    layout = Layout.from_dict(worlds.straight_floor(fleet))
    instance = Instance.from_rows("hand", layout, [worlds.make_task("t", "B", "C", 1, 10)])
    return trace_given(instance, [(0, 0)] * 2, **options)


@pytest.mark.parametrize(
    ("horizon", "n_trips", "n_stops"), [(2, 1, 0), (6, 1, 1), (12, 2, 1), (14, 2, 1)]
)
def test_an_episode_that_is_stopped(horizon, n_trips, n_stops):
    trace, whole = trace_by_hand(horizon=horizon), trace_by_hand()
    undone, done = whole.trips
    assert undone.steps == (Step(1, 3, 0, 1, 0.0, 0.4, False, 0.2),)
    assert whole.stops == ((0, 4, 10, 0, 1, 0.4),)
    assert (done.start, done.pickup, done.end, whole.tardiness) == (10, 13, 16, 5.0)
    assert (trace.status, trace.end) == ("stopped", horizon)
    assert (len(trace.trips), len(trace.stops)) == (n_trips, n_stops)
    assert np.isnan(trace.makespan)
    assert not any(trip.delivered for trip in trace.trips)
    assert all(x.end <= horizon for x in (*trace.trips, *trace.stops))
    assert all(trace.locate(0, time) == whole.locate(0, time) for time in range(horizon))


def check_keys(simulator, slow):
    """What each rule compares picks, for each idle vehicle, what the slow simulator picks."""
    state = simulator.state
    for v in np.flatnonzero(state.vehicle[0]["status"] == full.IDLE):
        for rule, name in enumerate(full.RULES):
            keys = np.empty(state.episode["pool_size"][0])
            rate_tasks(simulator.problem, state, 0, v, rule, keys)
            if np.isfinite(keys).any():
                assert int(np.argmin(keys)) == slow.select(int(v), name)


@pytest.mark.oracle
@given(worlds.worlds())
def test_keys_of_rules_are_those_of_the_slow_simulator(world):
    play_and_compare(world, check=check_keys)
