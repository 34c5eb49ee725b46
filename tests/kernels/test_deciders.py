"""Rules, plans, networks and what users write behind `decide`: as the slow simulator chooses by hand."""

import inspect
import itertools
import math

import full
import naive_baselines
import naive_evolution
import naive_index
import numpy as np
import own_rules
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT
from scipy.optimize import linear_sum_assignment
from worlds import World, floors, make_task, straight_floor, worlds

from acerl_np import Floor, IndexPolicy, Simulator
from acerl_np.kernels.core.matching import allocate_matching, match_rows, settle_ties
from acerl_np.kernels.dispatching import deciders
from acerl_np.kernels.dispatching.baselines import NO_PAIR
from acerl_np.kernels.dispatching.drawn import MIX, RANDOM
from acerl_np.kernels.dispatching.floor import FIRST_DRAW, list_rows, list_tables
from acerl_np.kernels.dispatching.own import OWN
from acerl_np.kernels.networks.network import make_network
from acerl_np.kernels.rollout.episodes import decide_rows
from acerl_np.policies.index import NAMES, build_index
from acerl_np.policies.network import initial_parameters
from acerl_np.policies.rules import PAIRING, RULES
from acerl_np.problem.interface import number_rules
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list
from acerl_np.support.workers import Workers

EXAMPLES = settings(max_examples=40 if JIT else 6)
keys = st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4)


def decide(simulator, decider, key):
    """Vehicle, position and rule in the only row, and that nothing is changed by asking."""
    before = [array.copy() for array in simulator.state]
    chosen = np.empty((1, 3), np.int64)
    decide_rows(simulator.problem, simulator.state, decider, np.array([key], np.uint32), chosen)
    for array, old in zip(simulator.state, before, strict=True):
        assert np.array_equal(array, old, equal_nan=array.dtype.kind == "f")
    return tuple(chosen[0].tolist())


RULE_SETS = st.sampled_from([full.ACTION_RULES, ("LWT", "AHP", "EDD"), ("STD",)])


def play_beside(world, decider, key, choose, rules=full.ACTION_RULES):
    """Play an episode by a decider; `choose` lists what the slow version may take at each decision."""
    simulator = Simulator(world.instance(), rules=rules)
    slow = full.Episode(world.layout, world.rows, rules=rules)
    decision = 0
    while not slow.done:
        v, position, rule = decide(simulator, decider, key)
        assert (v, position, rule) in choose(slow, simulator, decision)
        simulator.assign([v], [simulator.state.pool[0, position]])
        slow.assign(v, position)
        decision += 1
    assert decide(simulator, decider, key) == (-1, -1, -1)
    played = play_alone(simulator.problem, decider, key)
    assert played == (slow.makespan, simulator.tardiness[0], decision)


def play_alone(problem, decider, key, row=0):
    """Outcome of one episode of a list."""
    of, rows, workers = np.zeros(1, np.int64), np.full(1, row), Workers(1)
    key = np.array([key], np.uint32)
    outcome = play_list(problem, lambda: decider, of, key, workers, rows=rows)
    workers.close()
    return outcome.makespan[0], outcome.tardiness[0], outcome.decisions[0]


def test_a_list_of_no_episodes_is_over_at_once():
    floor = straight_floor([{"id": "v", "start": "A"}])
    problem = build_problem([World(floor, [make_task("t", "A", "B", 0)], [0]).instance()])
    none, keys = np.zeros(0, np.int64), np.zeros((0, 4), np.uint32)
    decider = deciders.RuleDecider(MIX)
    assert all(
        len(part) == 0 for part in play_list(problem, lambda: decider, none, keys, Workers(2))
    )


def free_vehicles(slow):
    mask = slow.mask()[:: len(slow.rules)]
    return [v for v, legal in enumerate(mask) if legal]


def draw_vehicle(slow, key, decision):
    free = free_vehicles(slow)
    return free[int(naive_evolution.uniform(key, decision, 0) * len(free))]


def carry_out(slow, action):
    """What a network's action does: vehicle, position in the pool, and the rule's number."""
    v, k = divmod(action, len(slow.rules))
    return v, slow.select(v, slow.rules[k]), full.RULES.index(slow.rules[k])


def list_takeable(logits, mask, uniform):
    """Outputs that a network may take; float32 may tell apart what is equal, and the reverse."""
    if uniform is None:
        return np.flatnonzero(mask & (logits >= logits[mask].max() - 1e-4)).tolist()
    probability = naive_evolution.masked_softmax(logits, mask)
    near = uniform - 1e-4, uniform, uniform + 1e-4
    return [naive_evolution.invert(probability, x) for x in near]


@EXAMPLES
@given(worlds(), keys, st.integers(0, RANDOM))
def test_rules_draw_a_vehicle_and_pick_its_task(world, key, rule):
    def choose(slow, _, decision):
        v = draw_vehicle(slow, key, decision)
        second = naive_evolution.uniform(key, decision, 1)
        if rule == RANDOM:
            offered = slow.offered(slow.vehicles[v])
            may = [k for k, task in enumerate(slow.waiting) if any(task is x for x in offered)]
            return {(v, may[int(second * len(may))], rule)}
        used = int(second * 4) if rule == MIX else rule
        return {(v, slow.select(v, full.RULES[used]), used)}

    play_beside(world, deciders.RuleDecider(rule), key, choose)


@pytest.mark.parametrize("name", PAIRING)
@settings(max_examples=80 if JIT else 6)
@given(worlds() | worlds(floors(quickest=True)))
def test_baselines_compare_pairs(name, world):
    decider = deciders.make_baseline_decider(RULES[name], build_problem([world.instance()]))

    def choose(slow, _, decision):
        found = {naive_baselines.choose(slow, name)} if name != "assignment" else None
        found = found or naive_baselines.list_assigned(naive_baselines.list_costs(slow))
        return {(v, k, RULES[name]) for v, k in found}

    play_beside(world, decider, [0] * 4, choose)


@given(st.integers(1, 9), st.integers(0, 9), st.sampled_from([3, 1000]), st.integers(0, 2**32 - 1))
def test_rows_are_matched_at_the_least_cost(n_rows, more, size, seed):
    rng = np.random.default_rng(seed)
    n_columns = n_rows + more
    cost = rng.integers(-size, size, (n_rows, n_columns))
    cost[rng.random(cost.shape) < rng.choice([0.0, 0.3, 0.8])] = NO_PAIR
    matching = allocate_matching(n_rows + 1, n_columns + 2)  # it may be larger than the table
    matching.cost[:n_rows, :n_columns] = cost
    match_rows(n_rows, n_columns, matching)
    row_of = matching.row_of[:n_columns]
    assert sorted(row_of[row_of >= 0]) == list(range(n_rows))
    own = cost[row_of[row_of >= 0], np.flatnonzero(row_of >= 0)]
    assert own.sum() == cost[linear_sum_assignment(cost)].sum()


@given(st.integers(1, 5), st.integers(0, 2), st.sampled_from([2, 4]), st.integers(0, 2**32 - 1))
def test_ties_between_matchings_are_settled_by_the_costs_alone(n_rows, more, size, seed):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, size, (n_rows, n_rows + more))
    matching = allocate_matching(*cost.shape)
    matching.cost[:] = cost
    match_rows(*cost.shape, matching)
    settle_ties(*cost.shape, matching)
    every = itertools.permutations(range(n_rows + more), n_rows)
    expected = min(every, key=lambda columns: (cost[range(n_rows), columns].sum(), columns))
    assert [matching.row_of[c] for c in expected] == list(range(n_rows))
    assert (matching.row_of < 0).sum() == more


@pytest.mark.parametrize("agents", [1, 2])
@settings(max_examples=40 if JIT else 2)
@given(worlds(), keys, st.integers(0, 2**32 - 1), st.booleans(), RULE_SETS)
def test_networks_act_on_what_they_see(agents, world, key, seed, greedy, rules):
    """Of two, the first chooses the vehicle, and the second its rule."""
    problem = build_problem([world.instance()])
    simulator = Simulator(world.instance(), rules=rules)
    sizes = [simulator.n_features, 5, simulator.n_actions]
    network = make_network(sizes)
    thetas = np.stack([initial_parameters(sizes, seed + k) for k in range(2 * agents)])

    def make(thetas):
        decider = deciders.make_network_decider(network, thetas, greedy, number_rules(rules))
        return decider if agents == 1 else deciders.AgentsDecider(decider)

    def take(agent, mask, observation, draw):
        """What an agent may choose among the outputs that the mask allows."""
        logits = naive_evolution.forward(sizes, thetas[agent], observation)
        return list_takeable(logits, mask, None if greedy else naive_evolution.uniform(key, *draw))

    def choose(slow, simulator, decision):
        legal, observation = np.array(slow.mask()), simulator.observation[0]
        if agents == 1:
            return {carry_out(slow, x) for x in take(0, legal, observation, (decision, 0))}
        vehicles = np.zeros_like(legal)
        vehicles[free_vehicles(slow)] = True
        found = set()
        for v in take(0, vehicles, observation, (decision, 0)):
            own = legal & (np.arange(len(legal)) // len(rules) == v)
            found |= {carry_out(slow, x) for x in take(1, own, observation, (decision, 1))}
        return found

    play_beside(world, make(thetas), key, choose, rules)
    alone = make(thetas[agents:])
    assert play_alone(problem, make(thetas), key, 1) == play_alone(problem, alone, key)


@EXAMPLES
@given(worlds(), keys, st.integers(0, 2**32 - 1), st.booleans())
def test_a_row_of_index_functions_is_a_function_of_its_own(world, key, seed, greedy):
    problem = build_problem([world.instance()])
    thetas = np.random.default_rng(seed).normal(size=(3, len(NAMES)))
    together = deciders.make_index_decider(build_index(thetas, NAMES, True), problem, greedy)
    for row in range(3):
        own = build_index(thetas[row : row + 1], NAMES, True)
        alone = deciders.make_index_decider(own, problem, greedy)
        assert play_alone(problem, together, key, row) == play_alone(problem, alone, key)
    simulator = Simulator(world.instance())
    assert decide(simulator, together, key)[2] == deciders.NO_RULE


def test_in_rows_that_are_over_nothing_is_chosen_and_any_choice_is_ignored():
    layout = straight_floor([{"id": "v", "start": "A", "speed": 1}], task_slots=2)
    rows = [make_task("a", "B", "C", 0), make_task("b", "C", "B", 0)]
    simulator = Simulator([World(layout, rows[:n], [0]).instance() for n in (1, 2)])
    simulator.assign([0, 0], [0, 1])
    chosen, keys = np.empty((2, 3), np.int64), np.zeros((2, 4), np.uint32)
    decide_rows(simulator.problem, simulator.state, deciders.RuleDecider(0), keys, chosen)
    assert chosen.tolist() == [[-1, -1, -1], [0, 0, 0]]
    simulator.assign([99, 0], [-5, 0])
    assert simulator.done.all()


def find_task(slow, task):
    """Position in the record."""
    return next(k for k, other in enumerate(slow.tasks) if other is task)


def make_decider(policy, world):
    instance = world.instance()
    return policy.prepare(build_problem([instance]), [instance], True)[1]()


def take_first_drawn(slow, key, decision):
    n = len(slow.vehicles)

    def draw(pair):
        task = find_task(slow, slow.waiting[pair[1]])
        return naive_evolution.uniform(key, decision, FIRST_DRAW + task * n + pair[0])

    return min(naive_index.pairs(slow), key=draw)


def take_first_number(slow, *_):
    """What is no number comes last, and the first in the pool."""

    def order(pair):
        v, k = pair
        return math.inf if slow.waiting[k].demand == 0.0 else 0.0, k, v

    return min(naive_index.pairs(slow), key=order)


def take_nearest(slow, *_):
    def measure(v, k):
        vehicle, task = slow.vehicles[v], slow.waiting[k]
        return full.round9(naive_index.find_way(slow.floor, vehicle, task.pickup)[0]), k, v

    return min(naive_index.pairs(slow), key=lambda pair: measure(*pair))


def of_drawn_vehicle(rule):
    def take(slow, key, decision):
        v = draw_vehicle(slow, key, decision)
        return v, slow.select(v, rule)

    return take


@pytest.mark.parametrize(
    ("policy", "take"),
    [
        (own_rules.near, take_nearest),
        (own_rules.first, of_drawn_vehicle("FCFS")),
        (own_rules.weighed, of_drawn_vehicle("AHP")),
        (own_rules.drawn, take_first_drawn),
        (own_rules.nothing, take_first_number),
    ],
)
@EXAMPLES
@given(worlds() | worlds(floors(quickest=True)), keys)
def test_rules_of_users(policy, take, world, key):
    def choose(slow, _, decision):
        return {(*take(slow, key, decision), OWN)}

    play_beside(world, make_decider(policy, world), key, choose)


@settings(max_examples=60 if JIT else 6)
@given(worlds() | worlds(floors(quickest=True)))
def test_a_floor_shows_what_the_slow_simulator_knows(world):
    simulator, slow = Simulator(world.instance()), full.Episode(world.layout, world.rows)
    key = np.zeros(4, np.uint32)
    asked = set()

    class Watched(Floor):
        def __getattribute__(self, name):
            asked.add(name)
            return super().__getattribute__(name)

    decision = 0
    while not slow.done:
        tables, rows = list_tables(simulator.problem), list_rows(simulator.state)
        floor = Watched(tables, rows, 0, 0, key, decision)
        scene = naive_index.Scene(slow, True)
        possible = naive_index.pairs(slow)
        pool = [find_task(slow, task) for task in slow.waiting]
        sites = [site["id"] for site in world.layout["sites"]]
        idle = [v.status == full.IDLE for v in slow.vehicles]
        assert (floor.time(), floor.queue(), floor.idle()) == (slow.time, len(pool), sum(idle))
        assert floor.n_vehicles() == len(slow.vehicles)
        assert floor.unit() == pytest.approx(scene.unit)
        free = [math.inf if is_idle else floor.free(v) for v, is_idle in enumerate(idle)]
        assert floor.next_free() == min(free)
        for v, vehicle in enumerate(slow.vehicles):
            assert (floor.speed(v), floor.capacity(v)) == (vehicle.speed, vehicle.capacity)
            assert sites[floor.site(v)] == vehicle.site
            if idle[v]:
                assert floor.free(v) == 0.0
        for task, own in zip(pool, slow.waiting, strict=True):
            for name in ("arrival", "due", "handling", "demand", "priority"):
                assert getattr(floor, name)(task) == getattr(own, name), name
            assert floor.waiting(task) == pytest.approx(slow.time - own.waiting_since, abs=1e-8)
            assert (floor.ready(task), floor.weight(task)) == (0.0, 1.0)
            ends = floor.pickup(task), floor.delivery(task)
            assert [sites[end] for end in ends] == [own.pickup, own.delivery]
            trip = slow.floor.distances[own.pickup, own.delivery]
            assert floor.trip(task) == floor.distance(*ends) == trip
            assert floor.whole(trip) == pytest.approx(slow.floor.compared(trip))
        for v, k in possible:
            vehicle, own, task = slow.vehicles[v], slow.waiting[k], pool[k]
            metres, seconds = naive_index.find_way(slow.floor, vehicle, own.pickup)
            loaded = naive_index.drive(slow.floor, own.pickup, own.delivery, vehicle.speed)
            loaded += own.handling
            assert floor.metres(v, task) == pytest.approx(metres, abs=1e-8)
            assert floor.approach(v, task) == pytest.approx(seconds, abs=1e-8)
            assert floor.loaded(v, task) == pytest.approx(loaded, abs=1e-8)
            slack = own.due - slow.time - seconds - loaded
            assert floor.slack(v, task) == pytest.approx(slack, abs=1e-7)
            assert 0.0 <= floor.draw(v, task) < 1.0
            offered = slow.offered(vehicle)
            mean = sum(item.due for item in offered) / len(offered)
            assert floor.mean("due", v) == pytest.approx(mean)
        v, k = possible[world.choices[decision % len(world.choices)] % len(possible)]
        simulator.assign([v], [pool[k]])
        slow.assign(v, k)
        decision += 1
    own = {name for name, method in vars(Floor).items() if inspect.isfunction(method)}
    assert {name for name in own if not name.startswith("_")} <= asked


@EXAMPLES
@given(worlds())
def test_a_feature_equal_to_the_packages(world):
    both = [
        make_decider(IndexPolicy(weights, features=features), world)
        for weights, features in (
            ([-0.5, -1.0], ["waiting", "total_late"]),
            ([-1.0, -0.5], ["total_late", own_rules.waited]),
        )
    ]
    problem = build_problem([world.instance()])
    one, other = (play_alone(problem, decider, [0] * 4) for decider in both)
    assert one == other
