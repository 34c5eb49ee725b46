"""Traces of episodes: where each vehicle is at each tick, beside the slow simulator, and by hand."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from episodes import list_waiting, scaling_dict
from hypothesis import given
from worlds import worlds

from acerl_np import Instance, Layout, Simulator
from acerl_np.evaluation.trials import Trials
from acerl_np.kernels.commitment import assign_task
from acerl_np.kernels.offers import is_decision_due
from acerl_np.kernels.state import NEVER, VEHICLE_STATUS, read_outcome
from acerl_np.kernels.trace import rate_tasks
from acerl_np.problem.goal import MEASURES, Goal
from acerl_np.problem.scaling import find_scaling
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.trace import PLAYED, Reason, place_on, trace_episode

NO_KEY = np.zeros(4, np.uint32)


class Given:
    """A player that gives the assignments of a list, (vehicle, task) each."""

    def __init__(self, assignments):
        self.assignments = list(assignments)

    def assign(self, problem, state):
        given = []
        while is_decision_due(problem, state, PLAYED):
            v, task = self.assignments.pop(0)
            position = list_waiting(state).tolist().index(task)
            assign_task(problem, state, PLAYED, v, position)
            given.append((v, Reason("given")))
        return given, int(NEVER)


class Filmed(naive.NaiveEpisode):
    """The slow simulator, with status, place and task of every vehicle at the end of every tick."""

    def __init__(self, *args, **kwargs):
        self.film = []
        super().__init__(*args, **kwargs)

    def _process_tick(self):
        self.snap()
        super()._process_tick()

    def snap(self):
        self.film.append([(v.status, self.find(v)) for v in self._vehicles])

    def find(self, vehicle):
        if vehicle.status == naive.WORKING:
            return vehicle.place()
        return vehicle.standing or naive.Standing(vehicle.site, vehicle.site, 0.0)


def film(world):
    """The slow simulator after an episode by the world's choices, and the assignments."""
    instance = world.instance()
    scaling = scaling_dict(find_scaling([instance]))
    slow = Filmed(world.layout, world.rows, scaling=scaling)
    simulator = Simulator(instance)
    given = []
    k = 0
    while not slow.done:
        action = world.choose(np.flatnonzero(simulator.action_mask[0]), k)
        waiting = list_waiting(simulator.state).tolist()
        position = slow.select(action // 4, naive.RULES[action % 4])
        given.append((action // 4, waiting[position], slow.time))
        simulator.step([action])
        slow.step(action)
        k += 1
    slow.snap()
    return instance, slow, given


@pytest.mark.oracle
@given(worlds())
def test_vehicles_are_where_the_slow_simulator_has_them_at_every_tick(world):
    instance, slow, given = film(world)
    problem = build_problem([instance])
    trace = trace_episode(
        "given", instance, problem, NO_KEY, Given([(v, task) for v, task, _ in given])
    )
    assert [(d.vehicle, d.task, d.time) for d in trace.decisions] == given
    assert (trace.makespan, trace.status) == (slow.makespan, "finished")
    assert trace.tardiness == pytest.approx(slow.tardiness, abs=1e-9)
    assert trace.delay.mean() == pytest.approx(slow.tardiness, abs=1e-9)
    layout = instance.layout
    length = layout.routes.edge_length
    # The first picture is that of tick 0 or before it.
    first = slow.time - len(slow.film) + 1
    for k, vehicles in enumerate(slow.film):
        time = first + k
        for v, (status, standing) in enumerate(vehicles):
            broken = any(s.vehicle == v and s.start <= time < s.end for s in trace.stops)
            busy = any(t.vehicle == v and t.start <= time < t.end for t in trace.trips)
            if time < slow.time:  # nothing lasts beyond the end
                assert (broken, busy) == (status == naive.BROKEN, status == naive.WORKING)
            a, b = layout.site_index[standing.last], layout.site_index[standing.next]
            part = standing.offset / length[a, b] if a != b else 0.0
            assert trace.locate(v, time) == pytest.approx(place_on(layout, a, b, part), abs=1e-6)


@given(worlds())
def test_trips_are_ways_that_hold_together(world):
    instance, _, given = film(world)
    problem = build_problem([instance])
    trace = trace_episode(
        "given", instance, problem, NO_KEY, Given([(v, task) for v, task, _ in given])
    )
    assert sorted(trip.task for trip in trace.trips if trip.delivered) == list(
        range(instance.n_tasks)
    )
    for trip in trace.trips:
        decision = trace.decisions[trip.decision]
        assert (trip.vehicle, trip.task, trip.start) == decision[1:3] + decision[:1]
        loaded = [step.loaded for step in trip.steps]
        assert loaded == sorted(loaded)
        assert (trip.pickup is not None) >= trip.delivered
        for before, after in zip(trip.steps, trip.steps[1:], strict=False):
            assert before.target == after.origin
            assert before.end <= after.start
        for step in trip.steps:
            assert trip.start <= step.start <= step.end <= trip.end
            assert 0.0 <= step.first <= step.last + 1e-9 <= 1.0 + 2e-9


WEIGHTS = (1.0, 3.0, 0.5)


def add_up(trace):
    """Seconds with a task, and an episode's measures for `WEIGHTS`: trip by trip, edge by edge."""
    layout, record = trace.instance.layout, trace.instance
    busy, driven, empty, total, makespan = 0.0, 0.0, 0.0, 0.0, 0.0
    tardiness, late, waiting = 0.0, 0.0, 0.0
    for trip in trace.trips:
        busy += trip.end - trip.start
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
            makespan = max(makespan, trip.end)
    measures = makespan, tardiness / total, late / total, waiting / total, empty / driven
    return busy, measures


@pytest.mark.oracle
@given(worlds())
def test_figures_are_what_the_trips_add_up_to(world):
    instance, _, given = film(world)
    goal = Goal("0.5*makespan+2*late+waiting", "3*tardiness+0.25*empty", 9.0, WEIGHTS)
    simulator = Simulator(instance, goal=goal)
    player = Given((v, task) for v, task, _ in given)
    trace = trace_episode("given", instance, build_problem([instance]), NO_KEY, player)
    for v, task, _ in given:
        simulator.assign([v], [task])
    played = read_outcome(simulator.state)
    if np.isfinite(trace.makespan):
        busy, measures = add_up(trace)
        makespan, tardiness, late, waiting, empty = measures
        found = [getattr(played, name)[0] for name in MEASURES]
        assert played.busy[0] == busy
        assert found == pytest.approx(measures, abs=1e-6)
        assert played.value[0] == pytest.approx(0.5 * makespan + 200 * late + waiting, abs=1e-6)
        assert played.cost[0] == pytest.approx(3 * tardiness + 25 * empty, abs=1e-6)
        assert simulator.value[0] == played.value[0]
        assert simulator.cost[0] == played.cost[0]
        trials = Trials.of([instance], played)
        assert 0.0 <= trials.utilisation[0, 0] <= 1.0


LAYOUT = {
    "format": 1,
    "sites": [
        {"id": "a", "x": 0, "y": 0},
        {"id": "b", "x": 10, "y": 0},
        {"id": "c", "x": 10, "y": 5},
    ],
    "edges": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
    "vehicles": [
        {"id": "v", "start": "a", "speed": 2, "breakdowns": [{"time": 4, "repair_time": 5}]}
    ],
}
ROWS = [{"task": "t", "pickup": "b", "delivery": "c", "arrival_time": 1, "expiry_time": 10}]


def trace_by_hand(**options):
    instance = Instance.from_rows("hand", Layout.from_dict(LAYOUT), ROWS)
    problem = build_problem([instance], **options)
    return trace_episode("given", instance, problem, NO_KEY, Given([(0, 0)] * 2))


@pytest.mark.oracle
def test_an_episode_traced_by_hand():
    """It leaves a at 1, breaks down at 4 where it was at 3, stands there until 10, and drives on."""
    trace = trace_by_hand()
    undone, done = trace.trips
    assert (undone.start, undone.end, undone.pickup, undone.delivered) == (1, 4, None, False)
    assert undone.steps == ((1, 3, 0, 1, 0.0, 0.4, False, 0.2),)
    (stop,) = trace.stops
    assert stop == (0, 4, 10, 0, 1, 0.4)
    # 6 m to b, 5 m to c: 3 ticks and 2.5, in all 5.5, that is 6.
    assert (done.start, done.end, done.pickup, done.delivered) == (10, 16, 13, True)
    assert done.steps == ((10, 13, 0, 1, 0.4, 1.0, False, 0.2), (13, 16, 1, 2, 0.0, 1.0, True, 0.4))
    assert (trace.makespan, trace.tardiness, trace.end) == (16.0, 5.0, 16)
    assert [trace.locate(0, t) for t in (0, 2, 3, 9, 11.5)] == [
        (0, 0),
        (2, 0),
        (4, 0),
        (4, 0),
        (pytest.approx(7), 0),
    ]
    assert trace.locate(0, 16) == (10, 5)


@pytest.mark.parametrize(
    ("horizon", "n_trips", "n_stops"), [(2, 1, 0), (6, 1, 1), (12, 2, 1), (14, 2, 1)]
)
def test_an_episode_that_is_stopped(horizon, n_trips, n_stops):
    trace = trace_by_hand(horizon=horizon)
    assert (trace.status, trace.end) == ("stopped", horizon)
    assert (len(trace.trips), len(trace.stops)) == (n_trips, n_stops)
    assert np.isnan(trace.makespan)
    assert not any(trip.delivered for trip in trace.trips)
    assert all(x.end <= horizon for x in (*trace.trips, *trace.stops))
    whole = trace_by_hand()
    for time in range(horizon):
        assert trace.locate(0, time) == whole.locate(0, time)


@pytest.mark.oracle
@given(worlds())
def test_keys_of_rules_are_those_of_the_slow_simulator(world):
    instance = world.instance()
    simulator = Simulator(instance)
    scaling = scaling_dict(find_scaling([instance]))
    slow = naive.NaiveEpisode(world.layout, world.rows, scaling=scaling)
    k = 0
    while not slow.done:
        n = len(list_waiting(simulator.state))
        for v in np.flatnonzero(simulator.state.vehicle[0, :, VEHICLE_STATUS] == naive.IDLE):
            for rule, name in enumerate(["FCFS", "EDD", "NVF", "STD", "LWT", "AHP"]):
                keys = np.empty(n)
                rate_tasks(simulator.problem, simulator.state, 0, v, rule, keys)
                if np.isfinite(keys).any():
                    assert int(np.argmin(keys)) == slow.select(int(v), name)
        action = world.choose(np.flatnonzero(simulator.action_mask[0]), k)
        simulator.step([action])
        slow.step(action)
        k += 1
