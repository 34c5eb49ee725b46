"""Index policies: what they take and refuse, their files, and that they play alike however they are asked."""

import pickle
import warnings
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, make_task, straight_floor, worlds

from acerl_np import (
    ACERL,
    ActionError,
    Config,
    IndexPolicy,
    Instance,
    Policy,
    PolicyError,
    Simulator,
    evaluate_policy,
    load_policy,
    load_suite,
)
from acerl_np.kernels.state import (
    EPISODE_POOL_SIZE,
    RECORD_DEMAND,
    RECORD_PRIORITY,
    TASK_VEHICLE,
)
from acerl_np.policies.index import FEATURES, KNOWLEDGE, IndexShape, list_features
from acerl_np.policies.origin import Origin
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.files import read_arrays, write_arrays

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="whole episodes")


@pytest.fixture(scope="module")
def suite():
    return load_suite("dmh-train")[:2]


def draw_policy(seed=0, knowledge=(), hidden=0, vehicles=(), origin=None):
    shape = IndexShape(knowledge, hidden, vehicles)
    theta = np.random.default_rng(seed).normal(size=shape.n_parameters)
    return IndexPolicy(theta, hidden=hidden, knowledge=knowledge, vehicles=vehicles, origin=origin)


def make_small(n_vehicles, n_tasks, seed=0, gap=5.0, **keys):
    """A floor of three sites, with vehicles that differ."""
    rng = np.random.default_rng(seed)
    fleet = [
        {"id": f"v{k}", "start": "ABC"[k % 3], "speed": 1 + k, "capacity": (0, 2, 3)[k % 3]}
        for k in range(n_vehicles)
    ]
    rows = []
    for k in range(n_tasks):
        a, b = rng.permutation(3)[:2]
        due = float(rng.integers(20, 60))
        rows.append(make_task(f"t{k}", "ABC"[a], "ABC"[b], gap * k, due, demand=float(k % 3)))
    layout = straight_floor(fleet, **{"task_slots": 4, "name": f"floor {n_vehicles}", **keys})
    return replace(World(layout, rows, [0]).instance(), name=f"{n_vehicles} and {n_tasks}")


# What it takes


def test_parameters_are_counted_as_documented():
    """A weight per feature; hidden units: n h weights, h biases, h output weights; a bias per vehicle."""
    plain = len([item for item in FEATURES if item.needs is None])
    assert IndexShape().n_parameters == plain == 14
    assert IndexShape(KNOWLEDGE, 0, ("a", "b")).n_parameters == 24 + 2
    assert IndexShape(KNOWLEDGE, 3, ("a", "b")).n_parameters == 26 + 26 * 3 + 3 + 3 + 2
    names = [item.name for item in list_features(("time",), hidden=1)]
    assert names == [item.name for item in FEATURES if item.needs in (None, "hidden", "time")]


def test_the_start_goes_for_the_shortest_trip():
    """Whatever the hidden units: their output weights are zero, their inputs differ by seed."""
    for knowledge in ((), ("breakdowns", "time")):
        shape = IndexShape(knowledge, 5)
        names = [item.name for item in shape.features]
        n = len(names)
        starts = [shape.start(seed) for seed in (0, 1)]
        for start in starts:
            assert {name: w for name, w in zip(names, start, strict=False) if w} == {
                "approach": -1.0,
                "loaded": -1.0,
            }
            assert start[n : 6 * n].all() and not start[6 * n :].any()
        assert (starts[0] != starts[1]).sum() == 5 * n
        assert starts[0].tobytes() == shape.start(0).tobytes()


def test_weights_by_name():
    policy = IndexPolicy.of_weights(lateness=0.5, last_loaded=2.0, margin=-1)
    assert policy.shape.knowledge == ("breakdowns", "tasks")
    weights = dict(zip((item.name for item in policy.features), policy.theta, strict=True))
    assert {name: w for name, w in weights.items() if w} == {
        "lateness": 0.5,
        "margin": -1.0,
        "last_loaded": 2.0,
    }
    assert repr(policy) == "IndexPolicy(22 features, linear, 22 parameters)"
    assert repr(draw_policy(hidden=3)) == "IndexPolicy(16 features, 3 hidden units, 70 parameters)"
    with pytest.raises(PolicyError, match="feature 'speed': unknown; expected one of approach"):
        IndexPolicy.of_weights(speed=1.0)


@pytest.mark.parametrize(
    ("theta", "options", "message"),
    [
        ([1.0, 2.0, 3.0], {}, r"theta: read shape \(3,\); expected \(14,\)"),
        (1.0, {}, r"theta: read shape \(\); expected \(14,\)"),
        ([[0.0] * 14], {}, r"theta: read shape \(1, 14\); expected \(14,\)"),
        ([0.0] * 15, {}, r"theta: read shape \(15,\); expected \(14,\)"),
        ([np.nan] * 14, {}, "theta: not finite"),
        ([1e300] * 14, {}, "theta: not finite"),
        ([0.0] * 14, {"hidden": 65}, "hidden: read 65; expected a whole number from 0 to 64"),
        ([0.0] * 14, {"hidden": -1}, "hidden: read -1"),
        ([0.0] * 14, {"hidden": 1.0}, "hidden: read 1.0"),
        ([0.0] * 14, {"hidden": True}, "hidden: read True"),
        ([0.0] * 14, {"knowledge": ["weather"]}, "knowledge: read .*; expected some of breakdowns"),
        ([0.0] * 14, {"knowledge": 3}, "knowledge: read 3"),
        ([0.0] * 14, {"knowledge": "times"}, "knowledge: read times"),
        ([0.0] * 14, {"knowledge": ["vehicles"]}, "vehicles: read 0 ids; expected different ones"),
        ([0.0] * 15, {"vehicles": ["a"]}, "vehicles: read 1 ids; .* and none without"),
        (
            [0.0] * 16,
            {"vehicles": ["a", "a"], "knowledge": ["vehicles"]},
            "vehicles: read 2 ids; expected different ones",
        ),
    ],
)
def test_policies_that_are_none(theta, options, message):
    with pytest.raises(PolicyError, match=message) as caught:
        IndexPolicy(theta, **options)
    assert "\n" not in str(caught.value)


def test_kinds_of_knowledge_stand_in_one_order():
    one = draw_policy(knowledge=("breakdowns", "time"))
    other = IndexPolicy(one.theta, knowledge=["time", "breakdowns", "time"])
    assert other.shape == one.shape


# Files

FORMS = {
    "linear": {},
    "knowing": {"knowledge": KNOWLEDGE[:3]},
    "hidden": {"hidden": 4},
    "vehicles": {"knowledge": ("vehicles",), "vehicles": ("v0", "tug ä, 2", "v1")},
    "all": {"knowledge": KNOWLEDGE, "hidden": 2, "vehicles": ("v0", "v1")},
}


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_a_policy_comes_back(options, suite, tmp_path):
    for origin in (None, Origin.of(suite)):
        policy = draw_policy(3, origin=origin, **options)
        policy.save(tmp_path / "policy.npz")
        for load in (load_policy, IndexPolicy.load):
            loaded = load(tmp_path / "policy.npz")
            assert isinstance(loaded, IndexPolicy)
            assert loaded.shape == policy.shape
            assert loaded.theta.tobytes() == policy.theta.tobytes()
            assert loaded.index.parameters.tobytes() == policy.index.parameters.tobytes()
            assert loaded.origin == policy.origin
            assert repr(loaded) == repr(policy)
            loaded.save(tmp_path / "again.npz")
            assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "policy.npz").read_bytes()
    assert IndexPolicy.from_arrays(policy.to_arrays(with_origin=False)).origin is None
    assert pickle.loads(pickle.dumps(policy)).theta.tobytes() == policy.theta.tobytes()
    with pytest.raises(PolicyError, match="holds a policy of form 'index', expected 'network'"):
        Policy.load(tmp_path / "policy.npz")


def text(words):
    return np.frombuffer(words.encode(), np.uint8)


DAMAGED = {
    "no theta": ("theta", None, "theta: read nothing; the file holds no policy of this format"),
    "whole numbers": ("theta", np.zeros(14, np.int64), "theta: read int64"),
    "a matrix": ("theta", np.zeros((1, 14)), "theta: read float64 of shape"),
    "short": ("theta", np.zeros(3), r"theta: read shape \(3,\); expected \(14,\)"),
    "one": ("theta", np.zeros(1), r"theta: read shape \(1,\); expected \(14,\)"),
    "none": ("theta", np.zeros(0), r"theta: read shape \(0,\); expected \(14,\)"),
    "not finite": ("theta", np.full(14, np.inf), "theta: not finite"),
    "no hidden": ("hidden", None, "hidden: read nothing"),
    "too many": ("hidden", np.array(10**9), "hidden: read 1000000000"),
    "minus": ("hidden", np.array(-1), "hidden: read -1"),
    "a list": ("hidden", np.array([0]), "hidden: read int64 of shape"),
    "a fraction": ("hidden", np.array(0.0), "hidden: read float64"),
    "other features": ("features", text("approach\nloaded"), "theta: read shape"),
    "an unknown feature": ("features", text("approach\nspeed"), "theta: read shape"),
    "no features": ("features", None, "features: read nothing"),
    "no text": ("features", np.full(3, 255, np.uint8), "features: not text"),
    "wide text": ("features", np.full(3, 2**31, np.uint32), "theta: read shape"),
    "weather": ("knowledge", text("weather"), "knowledge: read"),
    "vehicles unnamed": ("knowledge", text("vehicles"), "vehicles: read 0 ids"),
    "a vehicle": ("vehicles", text("v0"), "vehicles: read 1 ids"),
    "vehicles as numbers": ("vehicles", np.zeros(2), "vehicles: read float64"),
    "network": (
        "form",
        np.array("network"),
        "the file holds no policy of this format|form 'network'",
    ),
}


@pytest.mark.parametrize(("name", "value", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused_in_one_line(name, value, message, tmp_path):
    path = tmp_path / "policy.npz"
    draw_policy().save(path)
    arrays = read_arrays(path, PolicyError)
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    write_arrays(path, arrays)
    for load in (load_policy, IndexPolicy.load):
        with pytest.raises(PolicyError, match=message) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


def test_features_in_another_order_are_refused(tmp_path):
    path = tmp_path / "policy.npz"
    draw_policy().save(path)
    arrays = read_arrays(path, PolicyError)
    names = arrays["features"].tobytes().decode().split("\n")
    arrays["features"] = text("\n".join(names[::-1]))
    write_arrays(path, arrays)
    with pytest.raises(PolicyError, match=r"features: read time_|features: read .*train anew"):
        load_policy(path)


# Played


def play_by_hand(policy, instances, keys):
    """Every decision asked of `choose` and carried out by `assign`, all episodes side by side."""
    simulator = Simulator(instances, breakdown_keys=keys)
    while not simulator.done.all():
        vehicles, tasks = policy.choose(simulator)
        assert ((vehicles == -1) == simulator.done).all()
        assert ((tasks == -1) == simulator.done).all()
        simulator.assign(vehicles, tasks)
    vehicles, tasks = policy.choose(simulator)
    assert (vehicles == -1).all() and (tasks == -1).all()
    return simulator


def check_played(policy, instances, trials=2):
    played = evaluate_policy(policy, instances, trials=trials, seed=5, greedy=True, threads=1)
    entries = [instance for instance in instances for _ in range(trials)]
    by_hand = play_by_hand(policy, entries, stream_keys(instances, trials, 5))
    assert by_hand.makespan.tolist() == played.makespan.ravel().tolist()
    assert by_hand.tardiness.tolist() == played.tardiness.ravel().tolist()
    return played


def make_floors():
    floors = [
        make_small(1, 4, 1),
        make_small(3, 9, 2),
        make_small(2, 6, 3, truncate_distances=True),
    ]
    random = {"mean_time_between_failures": 60.0, "mean_time_to_repair": 9.0}
    vehicles = [{**v, "random_breakdowns": random} for v in floors[2].layout.to_dict()["vehicles"]]
    layout = type(floors[2].layout).from_dict({**floors[2].layout.to_dict(), "vehicles": vehicles})
    floors[2] = Instance.from_rows(floors[2].name, layout, floors[2].rows())
    return floors


@pytest.mark.parametrize("options", [{}, {"knowledge": KNOWLEDGE[:3], "hidden": 3}])
def test_an_index_policy_chooses_as_it_is_evaluated(options):
    """On floors of several sizes at once, also with random breakdowns."""
    policy = draw_policy(4, **options)
    played = check_played(policy, make_floors())
    assert played.decisions >= 2 * (4 + 9 + 6)
    default = evaluate_policy(policy, make_floors(), trials=2, seed=5, threads=1)
    assert default.makespan.tolist() == played.makespan.tolist()


def test_a_network_chooses_as_it_is_evaluated():
    floors = make_floors()
    config = Config(generations=0, hidden=(3,))
    check_played(ACERL(floors, config, seed=2, threads=1).policy, floors)


@needs_jit
def test_policies_of_dmh_choose_as_they_are_evaluated(suite):
    check_played(draw_policy(1, ("breakdowns",), 4), suite, trials=1)
    check_played(ACERL(suite, Config(generations=1, hidden=(4,)), threads=1).policy, suite)


def test_choosing_changes_nothing_and_draws_by_the_generator():
    policy = draw_policy(4)
    simulator = Simulator([make_small(3, 9, 2, gap=0.0), make_small(2, 6, gap=0.0)] * 6)
    before = [array.copy() for array in simulator.state]
    first, again, drawn, redrawn, other = (
        policy.choose(simulator, rng=rng)
        for rng in (None, None, *(np.random.default_rng(seed) for seed in (1, 1, 2)))
    )
    assert np.array_equal(first, again) and np.array_equal(drawn, redrawn)
    assert not np.array_equal(drawn, other)
    for array, old in zip(simulator.state, before, strict=True):
        assert np.array_equal(array, old, equal_nan=array.dtype.kind == "f")


@needs_jit
def test_what_is_trained_on_dmh_plays_other_floors(suite):
    """Whatever the number of sites, vehicles and tasks; without a warning, as nothing depends on them."""
    options = {"population": 4, "decisions": 1, "records_per_member": 2}
    for more in ({}, {"hidden": (3,), "spread": "diagonal", "knowledge": ("tasks", "time")}):
        policy = ACERL(suite, Config.preset("best", **options, **more), threads=1).policy
        assert policy.portable
        floors = [make_small(1, 3), make_small(7, 12)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trials = check_played(policy, floors)
        assert np.isfinite(trials.makespan).all()


@needs_jit
def test_a_policy_that_tells_vehicles_apart_serves_its_own_fleet_alone(suite):
    options = {"population": 4, "decisions": 1, "records_per_member": 2, "knowledge": ["vehicles"]}
    policy = ACERL(suite, Config.preset("best", **options), threads=1).policy
    assert policy.shape.vehicles == ("v0", "v1", "v2") and not policy.portable
    evaluate_policy(policy, suite, trials=1, threads=1)
    for other in (make_small(2, 3), make_small(4, 3)):
        for use in (
            lambda other=other: evaluate_policy(policy, [suite[0], other], trials=1),
            lambda other=other: policy.choose(Simulator(other)),
        ):
            with pytest.raises(PolicyError, match=r"has the vehicles v0, .*tells apart v0, v1, v2"):
                use()


def test_a_fleet_is_known_by_its_ids_in_their_order():
    policy = draw_policy(knowledge=("vehicles",), vehicles=("v0", "v1"))
    own = make_small(2, 3)
    policy.check_fits(own)
    entries = own.layout.to_dict()["vehicles"]
    for vehicles in (entries[::-1], entries[:1], [{**entries[0], "id": "tug"}, entries[1]]):
        layout = type(own.layout).from_dict({**own.layout.to_dict(), "vehicles": vehicles})
        with pytest.raises(PolicyError, match="tells apart v0, v1, in this order"):
            policy.check_layout(layout, "floor")
    policy.check_layout(make_small(2, 9, truncate_distances=True).layout, "another floor")


# What cannot be assigned


def make_situation():
    """At 1 s vehicle 0 is under way, 1 is broken, 2 is idle and of capacity 2; a, d and e wait, c does not.

    Task b is under way. The second episode's floor has one vehicle and one task.
    """
    fleet = [
        {"id": "busy", "start": "A", "speed": 1},
        {"id": "broken", "start": "B", "speed": 1, "breakdowns": [{"time": 1, "repair_time": 50}]},
        {"id": "idle", "start": "C", "speed": 1, "capacity": 2},
    ]
    rows = [
        make_task("a", "B", "C", 0, 50),
        make_task("b", "C", "A", 0, 50),
        make_task("d", "C", "B", 1, 50, demand=2),
        make_task("e", "C", "B", 1, 50, demand=2.5),
        make_task("c", "C", "B", 60, 50),
    ]
    first = World(straight_floor(fleet, task_slots=4), rows, [0]).instance()
    second = World(straight_floor(fleet[:1], task_slots=4), rows[:1], [0]).instance()
    simulator = Simulator([first, second])
    simulator.assign([0, 0], [1, 0])
    # The others are given a task each, which the breakdown takes back from vehicle 1.
    simulator.assign([1, 0], [0, 0])
    assert simulator.time[0] == 1.0 and simulator.done.tolist() == [False, True]
    return simulator


IMPOSSIBLE = {
    "no vehicle": (-1, 0),
    "a vehicle too many": (3, 0),
    "far away": (2**40, 0),
    "busy": (0, 0),
    "broken": (1, 0),
    "no task": (2, -1),
    "a task too many": (2, 5),
    "far": (2, 2**40),
    "under way": (2, 1),
    "to come": (2, 4),
    "too heavy": (2, 3),
}


@pytest.mark.oracle
@pytest.mark.parametrize(("v", "task"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_is_impossible_changes_nothing(v, task):
    simulator = make_situation()
    before = [array.copy() for array in (*simulator.state, simulator.observation)]
    with pytest.raises(ActionError) as caught:
        simulator.assign([v, 0], [task, 0])
    assert str(caught.value) == (
        f"episode 0 at 1 s: vehicle {v} with task {task} is impossible; expected an idle vehicle of 3 and "
        "one of the waiting tasks [0, 2, 3] that it may carry"
    )
    for array, old in zip((*simulator.state, simulator.observation), before, strict=True):
        assert np.array_equal(array, old, equal_nan=array.dtype.kind == "f")
    simulator.assign([2, 0], [2, 0])  # at the limit of its capacity


def test_one_impossible_assignment_holds_all_episodes():
    simulator = Simulator([make_small(2, 4)] * 3)
    before = [array.copy() for array in simulator.state]
    with pytest.raises(ActionError, match=r"^episode 2 at 0 s: vehicle 1 with task 3"):
        simulator.assign([0, 1, 1], [0, 0, 3])
    for array, old in zip(simulator.state, before, strict=True):
        assert np.array_equal(array, old, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize(
    ("vehicles", "tasks", "name"),
    [
        ([0], [0, 0], "vehicles"),
        ([0, 0], [0], "tasks"),
        (0, [0, 0], "vehicles"),
        ([0.0, 0.0], [0, 0], "vehicles"),
        ([0, 0], ["a", "b"], "tasks"),
        ([0, 0], [[0], [0, 1]], "tasks"),
        ([True, False], [0, 0], "vehicles"),
        (None, [0, 0], "vehicles"),
    ],
)
def test_assignments_are_whole_numbers_one_an_episode(vehicles, tasks, name):
    simulator = Simulator([make_small(2, 4)] * 2)
    with pytest.raises(ActionError, match=rf"^{name}: .*expected integers"):
        simulator.assign(vehicles, tasks)
    assert not simulator.time.any()


@pytest.mark.oracle
@settings(max_examples=30 if JIT else 5)
@given(worlds(), st.data())
def test_any_vehicle_and_task_that_fit_may_be_assigned(world, data):
    """Also what no rule would pick."""
    simulator = Simulator(world.instance())
    free = [vehicle["capacity"] for vehicle in world.layout["vehicles"]]
    while not simulator.done[0]:
        idle = np.flatnonzero(simulator.action_mask[0][::4]).tolist()
        waiting = simulator.state.pool[0, : simulator.state.episode[0, EPISODE_POOL_SIZE]].tolist()
        demand = simulator.problem.record[0, :, RECORD_DEMAND]
        pairs = [(v, t) for v in idle for t in waiting if not free[v] or demand[t] <= free[v]]
        ranks = simulator.problem.record[0, :, RECORD_PRIORITY]
        pairs = [(v, t) for v, t in pairs if ranks[t] == max(ranks[u] for w, u in pairs if w == v)]
        v, task = data.draw(st.sampled_from(pairs))
        simulator.assign([v], [task])
        # A breakdown may have taken it off the vehicle since.
        assert simulator.state.task[0, task, TASK_VEHICLE] in (v, -1)
