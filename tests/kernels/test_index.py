"""Index functions beside the slow ones: features, scores, the pair that is taken, and what is drawn."""

from dataclasses import replace

import naive
import naive_evolution
import naive_index
import numba
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from worlds import World, make_task, straight_floor, worlds

from acerl_np import Simulator
from acerl_np.kernels.deciders import make_index_decider
from acerl_np.kernels.episodes import decide_rows
from acerl_np.policies.index import FEATURES, KNOWLEDGE, IndexPolicy, IndexShape

JIT = not numba.config.DISABLE_JIT
KEY = (1, 2, 3, 4)


@st.composite
def uncertain_worlds(draw):
    """Worlds, some of whose vehicles also break down at random."""
    world = draw(worlds())
    times = st.fixed_dictionaries(
        {
            "mean_time_between_failures": st.sampled_from([50.0, 70.0]),
            "mean_time_to_repair": st.sampled_from([0.0, 4.5, 9.0]),
        }
    )
    vehicles = [
        {**vehicle, "random_breakdowns": draw(times)} if draw(st.integers(0, 3)) == 0 else vehicle
        for vehicle in world.layout["vehicles"]
    ]
    return replace(world, layout={**world.layout, "vehicles": vehicles})


def shapes():
    knowledge = st.sets(st.sampled_from(KNOWLEDGE)).map(
        lambda kinds: tuple(kind for kind in KNOWLEDGE if kind in kinds)
    )
    return st.builds(IndexShape, knowledge, st.sampled_from([0, 0, 1, 3]))


def name_vehicles(shape, world):
    ids = tuple(vehicle["id"] for vehicle in world.layout["vehicles"])
    return shape._replace(vehicles=ids if "vehicles" in shape.knowledge else ())


class Twins:
    """An episode in the kernels and the same one in the slow simulator."""

    def __init__(self, world):
        self.fast = Simulator(world.instance(), breakdown_keys=[KEY])
        self.slow = naive.NaiveEpisode(
            world.layout,
            world.rows,
            waiting_time=lambda v, n, what: naive_evolution.waiting_time(KEY, n, 2 * v + what),
        )

    def decide(self, decider, key=(0, 0, 0, 0)):
        """(vehicle, position) that the kernel chooses, and {pair: score} in its order."""
        chosen = np.empty((1, 3), np.int64)
        decide_rows(self.fast.problem, self.fast.state, decider, np.array([key], np.uint32), chosen)
        assert chosen[0, 2] == -1
        pairs = decider.pairs
        n = int(pairs.n[0])
        found = zip(pairs.vehicle[:n].tolist(), pairs.position[:n].tolist(), strict=True)
        return tuple(chosen[0, :2].tolist()), dict(zip(found, pairs.score[:n], strict=True))

    def assign(self, v, k):
        """Carry out an assignment in both, and compare what comes of it."""
        self.fast.assign([v], [self.fast.state.pool[0, k]])
        self.slow.assign(v, k)
        assert self.fast.done[0] == self.slow.done
        assert self.fast.time[0] == self.slow.time

    def make_decider(self, shape, theta, greedy=True):
        return make_index_decider(shape.build(theta[np.newaxis]), self.fast.problem, greedy)


def note_cases(slow):
    """What a situation contains, for Hypothesis's statistics."""
    for vehicle in slow.vehicles:
        if vehicle.standing is not None and vehicle.standing.offset > 0.0:
            event("halted in mid-edge")
            arc = vehicle.standing.next, vehicle.standing.last
            if arc not in slow.floor.arcs:
                event("halted on a one-way edge")
        if vehicle.status == naive.BROKEN:
            event("broken")


# Scores


@settings(max_examples=60 if JIT else 20)
@given(uncertain_worlds(), shapes(), st.integers(0, 2**32 - 1))
def test_an_episode_by_its_own_scores_is_the_slow_one(world, shape, seed):
    """At every decision: the same pairs in the same order, the same scores, the first of the largest."""
    shape = name_vehicles(shape, world)
    theta = np.random.default_rng(seed).normal(size=shape.n_parameters)
    twins = Twins(world)
    decider = twins.make_decider(shape, theta)
    while not twins.slow.done:
        note_cases(twins.slow)
        chosen, scores = twins.decide(decider)
        assert list(scores) == naive_index.pairs(twins.slow)
        best = -np.inf
        for (v, k), score in scores.items():
            best = max(best, score)
            if naive_index.Look(twins.slow, v, k, shape.knowledge).is_close_call():
                continue
            expected, size = naive_index.score(twins.slow, v, k, shape, theta)
            assert score == pytest.approx(expected, rel=0, abs=1e-5 * (1.0 + size))
        assert chosen == next(pair for pair, score in scores.items() if score == best)
        twins.assign(*chosen)
    assert twins.fast.makespan[0] == twins.slow.makespan
    assert twins.fast.tardiness[0] == pytest.approx(twins.slow.tardiness, rel=1e-9, abs=1e-9)


@settings(max_examples=40 if JIT else 6)
@given(uncertain_worlds(), st.booleans(), st.randoms(use_true_random=False))
def test_each_feature_is_what_its_words_say(world, knows_breakdowns, random):
    """Functions of one feature each, so that no error hides behind another; any pair is taken."""
    kinds = tuple(kind for kind in KNOWLEDGE if kind != "breakdowns" or knows_breakdowns)
    features = [item for item in FEATURES if knows_breakdowns or item.needs != "breakdowns"]
    twins = Twins(world)
    deciders = {}
    whole = IndexShape(kinds).build(np.zeros((1, IndexShape(kinds).n_parameters)))
    for feature in features:
        alone = whole._replace(
            parameters=np.ones((1, 1), np.float32),
            used=np.array([FEATURES.index(feature)], np.int32),
        )
        deciders[feature.name] = make_index_decider(alone, twins.fast.problem, True)
    while not twins.slow.done:
        found = {name: twins.decide(decider)[1] for name, decider in deciders.items()}
        pairs = naive_index.pairs(twins.slow)
        for name, scores in found.items():
            looks = {pair: naive_index.Look(twins.slow, *pair, kinds) for pair in pairs}
            assert list(scores) == pairs
            for pair, look in looks.items():
                if name == "other_lateness" and look.is_close_call():
                    continue
                expected = getattr(look, name)()
                assert scores[pair] == pytest.approx(expected, rel=1e-5, abs=1e-6), name
        twins.assign(*random.choice(pairs))


def test_a_long_queue_is_compared_with_its_first_tasks():
    """The others of a task are the first 32 that wait, without itself if it is one of them."""
    rng = np.random.default_rng(2)
    rows = []
    for k in range(40):
        a, b = rng.permutation(3)[:2]
        # The last ones are the nearest and the most urgent, and may not count.
        pickup, delivery = ("A", "B") if k >= 32 else ("ABC"[a], "ABC"[b])
        expiry = float(rng.integers(50, 400)) - 40.0 * (k >= 32)
        rows.append(make_task(f"t{k}", pickup, delivery, 0, expiry))
    layout = straight_floor([{"id": "v", "start": "A", "speed": 1}], task_slots=2)
    twins = Twins(World(layout, rows, [0]))
    for name in ("next_pickup", "mean_pickup", "next_slack", "earlier_due"):
        for pair, value in look_at(twins, name).items():
            expected = getattr(naive_index.Look(twins.slow, *pair, KNOWLEDGE), name)()
            assert value == pytest.approx(expected, rel=1e-5, abs=1e-6), (name, pair)


# By hand


HAND = """
pair   approach loaded slack urgency lateness other_soonest next_pickup next_slack earlier_due
(0, 0)      0.5    1.0   0.5     0.5      0.0           1.0         0.0        1.5         0.0
(0, 1)      1.5    2.0   1.5     0.0      0.0           0.0         0.5       -3.0         1.0
(1, 0)      1.0    1.0   0.0     1.0      0.0           0.5         0.0        1.0         0.0
(1, 1)      0.0    2.0   3.0     0.0      0.0           1.5         0.5       -1.5         1.0

pair   crowd_approach crowd_slack breaks wasted margin margin_loaded arrived_approach
(0, 0)           0.25        0.25    0.0    0.0    1.0           1.0            1/3
(0, 1)           0.75        0.75    1.0    2.5    0.0           0.0            1.0
(1, 0)            0.5         0.0    0.0    0.0    4.0           1.0            2/3
(1, 1)            0.0         1.5    0.0    0.0    4.0           2.0            0.0
"""

LATER = """
pair   approach loaded slack urgency lateness other_soonest other_lateness next_slack waiting
(0, 0)      1.5    0.5   0.0     1.0      1.0           0.0            0.0        4.0     0.0
(1, 0)      0.0    0.5   0.5     0.5      0.0           1.5            1.0        4.0     0.0

pair   last_approach last_loaded last_overshoot time_approach time_slack crowd idle_share
(0, 0)           1.5         0.5            2.0           1.5        0.0  0.25        1.0
(1, 0)           0.0         0.5            0.5           0.0        0.5  0.25        1.0
"""


def look_at(twins, name):
    """One feature of every pair."""
    feature = next(item for item in FEATURES if item.name == name)
    shape = IndexShape(KNOWLEDGE[:3], 1)
    whole = shape.build(np.zeros((1, shape.n_parameters)))
    alone = whole._replace(
        parameters=np.ones((1, 1), np.float32),
        used=np.array([FEATURES.index(feature)], np.int32),
        n_hidden=0,
    )
    return twins.decide(make_index_decider(alone, twins.fast.problem, True))[1]


def check_table(twins, text):
    for table in text.strip().split("\n\n"):
        header, *rows = table.splitlines()
        for row in rows:
            pair = tuple(int(number) for number in row[1:5].split(","))
            values = [
                float(a) / float(b or 1)
                for a, _, b in (word.partition("/") for word in row[6:].split())
            ]
            for name, value in zip(header.split()[1:], values, strict=True):
                assert look_at(twins, name)[pair] == pytest.approx(value, rel=1e-6), (pair, name)


def test_a_floor_of_three_sites_by_hand():
    """A --4 m-- B --8 m-- C: two different sites are (4 + 8 + 12) / 3 = 8 m apart, 8 s at 1 m/s.

    At 0 s vehicle 0 stands at A, and breaks down at 20 s; vehicle 1 stands at C. Task 0 goes from B to C, due
    at 16 s; task 1 from C to A, due at 40 s, and its handling takes 4 s; a third one will come at 64 s.

    Pair (0, 0): 4 s to B, 8 s to C: done at 12 s, 4 s to spare; the other one needs 8 s to B. At C it
    could go on with task 1, done at 12 + 12 + 4 = 28 s, 12 s to spare. From 12 s to the breakdown are 8 s.
    Pair (0, 1): 12 s to C, 12 s to A and 4 s: done at 28 s, 12 s to spare, but the breakdown at 20 s is
    before. From A to B are 4 m; task 0 would be done at 28 + 4 + 8 = 40 s, 24 s late.
    Pair (1, 0): 8 s to B, 8 s back: done at 16 s, just in time; then task 1 at C, done at 32 s, 8 s to spare.
    Pair (1, 1): at once, done at 16 s, 24 s to spare; task 0 after it at 28 s, 12 s late.

    At 64 s the last task has come, from A to B, due at 72 s; vehicle 0 stands at C and vehicle 1 at A. From C
    it is done at 64 + 12 + 4 = 80 s, 8 s late; from A at 68 s. Nothing else is under way.
    """
    points = (("A", 0), ("B", 4), ("C", 12))
    layout = {
        "format": 1,
        "sites": [{"id": name, "x": x, "y": 0} for name, x in points],
        "edges": [{"a": "A", "b": "B"}, {"a": "B", "b": "C"}],
        "vehicles": [
            {"id": "v0", "start": "A", "speed": 1, "breakdowns": [{"time": 20, "repair_time": 5}]},
            {"id": "v1", "start": "C", "speed": 1},
        ],
        "task_slots": 3,
    }
    rows = [
        make_task("t0", "B", "C", 0, 16),
        make_task("t1", "C", "A", 0, 40, handling_time=4),
        make_task("t2", "A", "B", 64, 8),
    ]
    twins = Twins(World(layout, rows, [0]))
    check_table(twins, HAND)
    twins.assign(0, 0)
    twins.assign(1, 0)
    assert twins.fast.time[0] == 64
    check_table(twins, LATER)


@pytest.mark.parametrize(("one_way", "metres"), [(False, 2.0), (True, 22.0)])
def test_a_vehicle_halted_in_mid_edge_is_measured_from_where_it_stands(one_way, metres):
    """A --4 m-- B --8 m-- C; on its way to C the vehicle halts at 6 m, and B is wanted.

    2 m back; or, if the edge is one-way, 6 m on to C, 12 m by another one to A, and 4 m to B.
    """
    layout = straight_floor(
        [{"id": "v", "start": "A", "speed": 1, "breakdowns": [{"time": 7, "repair_time": 0}]}],
        task_slots=2,
    )
    layout["sites"] = [{"id": name, "x": x, "y": 0} for name, x in (("A", 0), ("B", 4), ("C", 12))]
    layout["edges"] = [{"a": "A", "b": "B"}, {"a": "B", "b": "C", "one_way": one_way}]
    layout["edges"] += [{"a": "C", "b": "A", "one_way": True}] if one_way else []
    rows = [make_task("far", "C", "A", 0), make_task("near", "B", "C", 1)]
    twins = Twins(World(layout, rows, [0]))
    twins.assign(0, 0)
    assert (twins.fast.time[0], twins.slow.pool) == (8, ["near", "far"])
    unit = naive_index.mean_distance(twins.slow.floor)
    assert look_at(twins, "approach")[0, 0] * unit == pytest.approx(metres, rel=1e-6)
    assert look_at(twins, "approach")[0, 1] * unit == pytest.approx(6.0, rel=1e-6)


# The pair that is taken


def make_equals():
    """Two vehicles at one place and two tasks between the same sites: four pairs that are alike."""
    layout = straight_floor([{"id": v, "start": "A", "speed": 1} for v in ("v0", "v1")])
    rows = [make_task(name, "B", "C", 0, 50) for name in ("a", "b")]
    return World({**layout, "task_slots": 2}, rows, [0])


@pytest.mark.parametrize(("bias", "pair"), [((0, 0), (0, 0)), ((0, 1), (1, 0)), ((1, 0), (0, 0))])
def test_of_equals_the_first_is_taken(bias, pair):
    """By vehicle, then by place in the pool; biases tell the vehicles apart."""
    policy = IndexPolicy(
        [*np.random.default_rng(0).normal(size=14), *bias],
        knowledge=["vehicles"],
        vehicles=["v0", "v1"],
    )
    twins = Twins(make_equals())
    chosen, scores = twins.decide(twins.make_decider(policy.shape, policy.theta))
    assert list(scores) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert scores[0, 0] == scores[0, 1] and scores[1, 0] == scores[1, 1]
    assert scores[1, 0] - scores[0, 0] == pytest.approx(bias[1] - bias[0], abs=1e-5)
    assert chosen == pair


@settings(max_examples=30 if JIT else 6)
@given(
    worlds(), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4)
)
def test_a_drawn_pair_is_the_inverted_softmax(world, seed, key):
    """Draw (decision, 0) of the stream against the cumulated probabilities, in the order of the pairs."""
    shape = IndexShape(("breakdowns", "tasks"), 2)
    theta = np.random.default_rng(seed).normal(size=shape.n_parameters)
    twins = Twins(world)
    decider = twins.make_decider(shape, theta, greedy=False)
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


@pytest.mark.skipif(not JIT, reason="many decisions")
def test_pairs_are_drawn_as_often_as_the_softmax_says():
    instance = World(
        straight_floor([{"id": "v", "start": "A", "speed": 1}], task_slots=3),
        [
            make_task("a", "B", "C", 0, 50),
            make_task("b", "C", "B", 0, 20),
            make_task("c", "C", "A", 0, 9),
        ],
        [0],
    ).instance()
    policy = IndexPolicy.of_weights(approach=-0.3, slack=0.1)
    n = 4000
    simulator = Simulator([instance] * n)
    _, tasks = policy.choose(simulator, rng=np.random.default_rng(0))
    alone = Twins(World(instance.layout.to_dict(), instance.rows(), [0]))
    _, scores = alone.decide(alone.make_decider(policy.shape, policy.theta))
    probability = np.array(naive_index.softmax(list(scores.values())))
    assert probability.min() > 0.1 and probability.max() < 0.6
    error = np.sqrt(probability * (1.0 - probability) / n)
    assert (np.abs(np.bincount(tasks, minlength=3) / n - probability) < 4.0 * error).all()
