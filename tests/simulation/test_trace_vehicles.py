"""Traces where vehicles wait, park, charge and are called back, and of chains, beside the slow simulator."""

from __future__ import annotations

import random
from itertools import pairwise

import naive
import naive_chains
import naive_vehicles
import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from acerl_np import Instance, Layout, Simulator
from acerl_np.kernels.commitment import find_waiting, take_decision
from acerl_np.kernels.offers import is_decision_due
from acerl_np.kernels.state import NEVER
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.scene import STATUSES
from acerl_np.simulation.trace import PLAYED, Reason, place_on, trace_episode

WORDS = ("idle", "working", "broken", "roaming", "parking", "to_charger", "queued", "charging")
NO_KEY = np.zeros(4, np.uint32)


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


class Filmed:
    """The slow simulator, with status, place and level of every vehicle at the end of every tick."""

    def __init__(self, *args, **kwargs):
        self.film = []
        super().__init__(*args, **kwargs)

    def _process_tick(self):
        self.snap()
        super()._process_tick()

    def snap(self):
        places = [self.find(vehicle) for vehicle in self._vehicles]
        self.film.append(list(zip(self.statuses(), places, self.levels(), strict=True)))

    def find(self, vehicle):
        if vehicle.status == naive.WORKING and vehicle.word not in ("queued", "charging"):
            return vehicle.place()
        return vehicle.standing or naive.Standing(vehicle.site, vehicle.site, 0.0)


class FilmedVehicles(Filmed, naive_vehicles.NaiveEpisode):
    pass


class FilmedChains(Filmed, naive_chains.NaiveEpisode):
    pass


def play(world, commitment, max_changes, seed, episode=FilmedVehicles):
    """The slow simulator after an episode of drawn decisions, these, and the trace of them."""
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment, max_changes)
    instance = Instance.from_rows("random", layout, world.rows)
    how = {"commitment": commitment, "max_changes": max_changes, "scaling": worlds.RAW}
    slow = episode(world.layout, world.rows, **how)
    rows = {name: k for k, name in enumerate(instance.tasks)}
    decisions = []
    while not slow.done:
        now = slow.time
        if draws.random() < 0.15 and slow.may_wait():
            slow.wait()
            decisions.append((now, -1, -1))
        else:
            v, task = draws.choice(slow.candidates())
            slow.assign(v, task)
            decisions.append((now, v, rows[task]))
    slow.snap()
    player = Given([chosen for _, *chosen in decisions])
    trace = trace_episode("given", instance, build_problem([instance]), NO_KEY, player)
    return slow, decisions, trace


def find_word(trace, v, time):
    """What a vehicle does at a moment, of all that the trace notes."""
    found = {"broken" for s in trace.stops if s.vehicle == v and s.start <= time < s.end}
    found |= {"working" for t in trace.trips if t.vehicle == v and t.start <= time < t.end}
    found |= {WORDS[e.status] for e in trace.errands if e.vehicle == v and e.start <= time < e.end}
    [word] = found or {"idle"}
    return word


KINDS = worlds.with_parking(worlds.with_chargers(worlds.worlds())) | worlds.worlds()


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@settings(max_examples=60)
@given(world=KINDS, max_changes=st.integers(0, 8), seed=st.integers(0, 10**6))
def test_a_trace_shows_what_the_slow_simulator_does(world, commitment, max_changes, seed):
    compare_trace(*play(world, commitment, max_changes, seed))


def compare_trace(slow, decisions, trace):
    """What the vehicles do in the slow simulator, and in the trace of the same decisions."""
    layout = trace.instance.layout
    assert [(d.time, d.vehicle, d.task) for d in trace.decisions] == decisions
    assert trace.status == "finished" and trace.end == slow.time
    recalled = [trip.task for trip in trace.trips if trip.recall is not None]
    assert [recalled.count(task) for task in range(len(slow.changes))] == slow.changes
    for v in range(len(layout.vehicles)):
        ways = [way for way in trace.list_ways() if way.vehicle == v and way.steps]
        for way, then in pairwise(ways):
            last, next_one = way.steps[-1], then.steps[0]
            if way.end == then.start and last[2:4] == next_one[2:4]:
                assert last.last == next_one.first  # what it leaves off it takes up
    length = layout.routes.edge_length
    first = slow.time - len(slow.film) + 1
    late = set()
    for k, vehicles in enumerate(slow.film):
        time = first + k
        for v, (word, standing, level) in enumerate(vehicles):
            if level is not None and time >= 0:
                assert trace.find_level(v, time) == level
            if 0 <= time < slow.time:
                assert find_word(trace, v, time) == word
            a, b = layout.site_index[standing.last], layout.site_index[standing.next]
            part = standing.offset / length[a, b] if a != b else 0.0
            if a != b and 0.0 < min(standing.offset, length[a, b] - standing.offset) < 1e-9:
                late.add(v)  # by rounding it is short of a site, and there a tick after the trace
            if v not in late:
                assert trace.locate(v, time) == pytest.approx(
                    place_on(layout, a, b, part), abs=1e-6
                )


@pytest.mark.oracle
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("seed", range(40))
def test_a_trace_of_chains_shows_what_the_slow_simulator_does(commitment, seed):
    world = worlds.chained_world(seed)
    slow, decisions, trace = play(world, commitment, seed % 9, seed, FilmedChains)
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


@pytest.mark.oracle
@settings(max_examples=60)
@given(
    world=KINDS, commitment=st.sampled_from(["assignment", "pickup"]), seed=st.integers(0, 10**6)
)
def test_a_policy_in_python_is_told_what_the_slow_simulator_has(world, commitment, seed):
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment)
    instance = Instance.from_rows("random", layout, world.rows)
    simulator = Simulator(instance)
    slow = naive_vehicles.NaiveEpisode(
        world.layout, world.rows, commitment=commitment, scaling=worlds.RAW
    )
    rows = {name: k for k, name in enumerate(instance.tasks)}
    while not slow.done:
        fleet = simulator.fleet(0)
        assert simulator.time[0] == slow.time
        assert [STATUSES.index(status) for status in fleet.status] == [
            WORDS.index(word) for word in slow.statuses()
        ]
        for v, (battery, level) in enumerate(zip(layout.batteries, slow.levels(), strict=True)):
            share = np.nan if battery is None else level / battery.capacity
            assert fleet.level[v] == pytest.approx(share, nan_ok=True)
            stand = None if v in slow._settled else slow.stand(v)
            if stand is None:
                assert (fleet.stand[v], str(fleet.stand_time[v])) == (-1, "nan")
            else:
                assert (layout.sites[fleet.stand[v]].id, fleet.stand_time[v]) == stand[:2]
            task = slow._vehicles[v].task
            assert fleet.task[v] == (-1 if task is None else rows[task.name])
        assert bool(simulator.may_wait()[0]) == slow.may_wait()
        if draws.random() < 0.15 and slow.may_wait():
            slow.wait()
            simulator.assign([-1], [-1])
        else:
            v, task = draws.choice(slow.candidates())
            slow.assign(v, task)
            simulator.assign([v], [rows[task]])
    assert simulator.done[0] and simulator.makespan[0] == slow.makespan
    assert not simulator.may_wait()[0]
