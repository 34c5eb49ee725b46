"""Index functions beside the slow ones: features, scores, the pair that is taken, and what is drawn."""

from dataclasses import replace

import full
import naive_evolution
import naive_index
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT, needs_jit
from worlds import World, make_task, straight_floor, worlds

from acerl_np import Simulator
from acerl_np.kernels.dispatching.deciders import make_index_decider
from acerl_np.kernels.rollout.episodes import decide_rows
from acerl_np.policies.index import FEATURES, NAMES, IndexPolicy

KEY = (1, 2, 3, 4)
WEIGHTS = (1.0, 2.5)
"""Of classes of priority."""


@st.composite
def uncertain_worlds(draw):
    """Worlds, some of whose vehicles also break down at random."""
    world = draw(worlds())
    between, repair = st.sampled_from([50.0, 70.0]), st.sampled_from([0.0, 4.5, 9.0])
    vehicles = [dict(vehicle) for vehicle in world.layout["vehicles"]]
    for vehicle in vehicles:
        if draw(st.integers(0, 3)) == 0:
            times = {"mean_time_between_failures": draw(between)}
            vehicle["random_breakdowns"] = {**times, "mean_time_to_repair": draw(repair)}
    return replace(world, layout={**world.layout, "vehicles": vehicles})


@st.composite
def policies(draw):
    features = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    theta = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=len(features))
    return IndexPolicy(theta, features=features, planned_breakdowns=draw(st.booleans()))


class Twins:
    """An episode in the kernels and the same one in the slow simulator."""

    def __init__(self, world):
        self.fast = Simulator(world.instance(), breakdown_keys=[KEY])
        self.problem = self.fast.problem._replace(class_weight=np.array(WEIGHTS))
        self.slow = full.Episode(
            world.layout,
            world.rows,
            waiting_time=lambda v, n, what: naive_evolution.waiting_time(KEY, n, 2 * v + what),
        )

    def make_decider(self, policy, greedy=True):
        return make_index_decider(policy.index, self.problem, greedy)

    def decide(self, decider, key=(0, 0, 0, 0)):
        """(vehicle, position) that the kernel chooses, and {pair: score} in its order."""
        chosen = np.empty((1, 3), np.int64)
        decide_rows(self.problem, self.fast.state, decider, np.array([key], np.uint32), chosen)
        assert chosen[0, 2] == -1
        pairs = decider.pairs
        n = int(pairs.n[0])
        found = zip(pairs.vehicle[:n].tolist(), pairs.position[:n].tolist(), strict=True)
        return tuple(chosen[0, :2].tolist()), dict(zip(found, pairs.score[:n], strict=True))

    def find_features(self, planned_breakdowns=True):
        """{pair: {feature: value}} of the kernel."""
        policy = IndexPolicy(np.zeros(len(NAMES)), planned_breakdowns=planned_breakdowns)
        decider = self.make_decider(policy)
        _, scores = self.decide(decider)
        rows = decider.pairs.x[: len(scores)].tolist()
        return {
            pair: dict(zip(NAMES, row, strict=False))  # without those of call-backs and batteries
            for pair, row in zip(scores, rows, strict=True)
        }

    def look(self, planned_breakdowns=True):
        return naive_index.Scene(self.slow, planned_breakdowns, WEIGHTS)

    def check_features(self, planned_breakdowns=True, most=None):
        """Compare the pairs with the slow ones, and the features of the first `most` of them."""
        found, scene = self.find_features(planned_breakdowns), self.look(planned_breakdowns)
        assert list(found) == scene.pairs
        for pair in scene.pairs[:most]:
            look = naive_index.Look(scene, *pair)
            for name in NAMES:
                expected = pytest.approx(getattr(look, name)(), rel=1e-5, abs=1e-5)
                assert found[pair][name] == expected, (pair, name)
        return scene

    def assign(self, v, k):
        """Carry out an assignment in both, and compare what comes of it."""
        self.fast.assign([v], [self.fast.state.pool[0, k]])
        self.slow.assign(v, k)
        assert self.fast.done[0] == self.slow.done
        assert self.fast.time[0] == self.slow.time


# Scores


@settings(max_examples=100 if JIT else 20)
@given(uncertain_worlds(), policies(), st.booleans(), st.randoms(use_true_random=False))
def test_features_scores_and_choices_are_the_slow_ones(world, policy, goes_by_score, random):
    """The same pairs in the same order, feature by feature, the first of the largest scores."""
    twins = Twins(world)
    decider = twins.make_decider(policy)
    features = [FEATURES[NAMES.index(name)] for name in policy.features]
    while not twins.slow.done:
        chosen, scores = twins.decide(decider)
        scene = twins.check_features(policy.planned_breakdowns)
        assert list(scores) == scene.pairs == naive_index.pairs(twins.slow)
        for pair, score in scores.items():
            look = naive_index.Look(scene, *pair)
            expected, size = naive_index.score(look, features, policy.theta)
            assert score == pytest.approx(expected, rel=0, abs=1e-5 * (1.0 + size))
        assert chosen == max(scores, key=scores.get)
        twins.assign(*(chosen if goes_by_score else random.choice(scene.pairs)))
    assert twins.fast.makespan[0] == twins.slow.makespan
    assert twins.fast.tardiness[0] == pytest.approx(twins.slow.tardiness, rel=1e-9, abs=1e-9)


@settings(max_examples=30 if JIT else 6)
@given(uncertain_worlds(), st.randoms(use_true_random=False))
def test_the_pairs_of_a_simulator_are_the_slow_ones(world, random):
    """In the order of the pool, all in seconds, and the same whether one episode is asked for or all."""
    twins = Twins(world)
    while not twins.slow.done:
        scene, found = twins.look(), twins.fast.pairs()
        for one, other in zip(found, twins.fast.pairs(0), strict=True):
            assert np.array_equal(one, other)
        listed = sorted(scene.pairs, key=lambda pair: pair[::-1])
        positions = [twins.fast.state.pool[0].tolist().index(task) for task in found.task]
        assert list(zip(found.vehicle.tolist(), positions, strict=True)) == listed
        assert not found.episode.any()
        for n, (v, k) in enumerate(listed):
            look, task = naive_index.Look(scene, v, k), twins.slow.waiting[k]
            values = [x[n] for x in found[3:]]
            expected = [look.way, look.ride, look.spare, scene.now - task.waiting_since]
            assert values == pytest.approx([*expected, task.arrival, task.due], abs=1e-6)
        twins.assign(*random.choice(listed))
    assert len(twins.fast.pairs().task) == 0


# Large floors


def make_crowd(seed, n_vehicles, n_tasks, weak=False):
    """A grid of 4 x 4 sites, where fleet and queue may be longer than what is looked at.

    Priorities differ by little or by much. Of a weak fleet few may carry much.
    """
    rng = np.random.default_rng(seed)
    ids = [f"s{x}{y}" for x in range(4) for y in range(4)]
    sites = [{"id": name, "x": 3 * int(name[1]), "y": 5 * int(name[2])} for name in ids]
    near = [(f"s{x}{y}", f"s{x}{y + 1}") for x in range(4) for y in range(3)]
    near += [(f"s{x}{y}", f"s{x + 1}{y}") for x in range(3) for y in range(4)]
    vehicles = [
        {
            "id": f"v{k}",
            "start": str(rng.choice(ids)),
            "speed": float(rng.choice([0.7, 1.0, 2.0])),
            "capacity": float(rng.choice([1, 1, 1, 2] if weak and k else [0, 0, 2])),
            "breakdowns": [{"time": int(rng.integers(1, 60)), "repair_time": 9}],
        }
        for k in range(n_vehicles)
    ]
    rows = []
    for k in range(n_tasks):
        a, b = rng.choice(ids, 2, replace=False)
        more = {"demand": float(rng.choice([0.0, 1.0, 2.0]))}
        if weak:
            more["priority"] = float(rng.choice([0.0, 1.0, 1.0 + 1e-6, 2e6]))
        expiry = float(rng.integers(20, 400))
        arrival = int(rng.choice([0, 0, 0, 9]))
        rows.append(make_task(f"t{k}", str(a), str(b), arrival, expiry, **more))
    edges = [{"a": a, "b": b} for a, b in near]
    layout = {"format": 1, "sites": sites, "edges": edges, "vehicles": vehicles, "task_slots": 9}
    return World(layout, rows, [0])


@needs_jit
@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize(("n_vehicles", "n_tasks"), [(3, 60), (16, 50), (20, 60)])
def test_on_large_floors_what_comes_first_is_looked_at(n_vehicles, n_tasks, weak):
    """Tasks, vehicles and pairs are cut as the slow ones are, and some pair is always left."""
    rng = np.random.default_rng(5)
    twins = Twins(make_crowd(n_vehicles + weak, n_vehicles, n_tasks, weak))
    was_cut, decisions = np.zeros(3, bool), 0
    while not twins.slow.done:
        scene = twins.check_features(most=0 if decisions % 12 else 2)
        waiting, fleet = len(twins.slow.waiting), len(twins.slow.vehicles)
        pairs = naive_index.pairs(twins.slow)
        possible = sum(v in scene.fleet and k in scene.tasks for v, k in pairs)
        was_cut[0] |= waiting > len(scene.tasks)
        was_cut[1] |= fleet > len(scene.fleet)
        was_cut[2] |= possible > len(scene.pairs)
        twins.assign(*scene.pairs[rng.integers(len(scene.pairs))])
        decisions += 1
    assert was_cut.tolist() == [True, n_vehicles > 12, True]


# By hand


def test_the_noise_of_a_sum_moves_no_breakdown():
    """A trip of 0.1 and 0.7 + 0.2 s takes 1 s, and a breakdown at 1 s comes before its end.

    It is back at 2 s, at the pickup, and needs 0.9 s.
    """
    assert 0.1 + (0.7 + 0.2) < 1.0
    breakdowns = [{"time": 1, "repair_time": 0}]
    layout = straight_floor([{"id": "v", "start": "A", "speed": 1, "breakdowns": breakdowns}])
    layout["edges"] = [{"a": "A", "b": "B", "length": 0.1}, {"a": "B", "b": "C", "length": 0.7}]
    rows = [make_task("t", "B", "C", 0, handling_time=0.2)]
    twins = Twins(World({**layout, "task_slots": 1}, rows, [0]))
    unit = naive_index.mean_distance(twins.slow.floor)
    assert twins.find_features()[0, 0]["last_end"] * unit == pytest.approx(2.9, rel=1e-6)


# The pair that is taken


def test_of_equals_the_first_is_taken():
    """Two vehicles at one place, two tasks between the same sites: by vehicle, then by place in the pool."""
    layout = straight_floor([{"id": v, "start": "A", "speed": 1} for v in ("v0", "v1")])
    rows = [make_task(name, "B", "C", 0, 50) for name in ("a", "b")]
    twins = Twins(World({**layout, "task_slots": 2}, rows, [0]))
    policy = IndexPolicy(np.random.default_rng(0).normal(size=len(NAMES)))
    chosen, scores = twins.decide(twins.make_decider(policy))
    assert list(scores) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(set(scores.values())) == 1
    assert chosen == (0, 0)


@settings(max_examples=30 if JIT else 6)
@given(worlds(), policies(), st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4))
def test_a_drawn_pair_is_the_inverted_softmax(world, policy, key):
    """Draw (decision, 0) of the stream against the cumulated probabilities, in the order of the pairs."""
    twins = Twins(world)
    decider = twins.make_decider(policy, greedy=False)
    decision = 0
    while not twins.slow.done:
        chosen, scores = twins.decide(decider, key)
        probability = naive_index.softmax(list(scores.values()))
        u = naive_evolution.uniform(key, decision, 0)
        # Where the draw falls between two, either may be taken.
        assert chosen in {
            list(scores)[naive_evolution.invert(probability, x)] for x in (u - 1e-9, u, u + 1e-9)
        }
        twins.assign(*chosen)
        decision += 1
