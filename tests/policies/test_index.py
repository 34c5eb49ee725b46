"""Index policies: what they take and refuse, their files, and that they play alike however they are asked."""

import warnings
from dataclasses import replace

import numba
import numpy as np
import pytest
from damaged import check_damaged
from worlds import World, make_task, straight_floor

from acerl_np import (
    ACERL,
    ActionError,
    Config,
    IndexPolicy,
    Instance,
    PolicyError,
    Simulator,
    evaluate_policy,
    load_policy,
    load_suite,
)
from acerl_np.policies.index import KNOWN, NAMES, START, start_weights
from acerl_np.simulation.arena import stream_keys

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="whole episodes")


@pytest.fixture(scope="module")
def suite():
    return load_suite("dmh-train")[:2]


def draw_policy(seed=0, features=NAMES, **options):
    theta = np.random.default_rng(seed).normal(size=len(features))
    return IndexPolicy(theta, features=features, **options)


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


def test_weights_by_name():
    policy = IndexPolicy.of_weights(lateness=0.5, loaded=2.0, approach=-1)
    assert policy.features == ("approach", "loaded", "lateness")
    assert policy.theta.tolist() == [-1.0, 2.0, 0.5]
    assert policy.planned_breakdowns and not policy.theta.flags.writeable
    assert repr(policy) == "IndexPolicy(3 features)"
    assert repr(draw_policy()) == f"IndexPolicy({len(NAMES)} features)"
    other = IndexPolicy([1, 2], features=["loaded", "approach", "loaded"], planned_breakdowns=False)
    assert other.features == ("approach", "loaded")
    again = other.replace([3, 4])
    assert (again.features, again.planned_breakdowns) == (other.features, False)
    assert again.theta.tolist() == [3.0, 4.0] and other.theta.tolist() == [1.0, 2.0]


def test_the_start_is_by_name():
    start = dict(zip(KNOWN, start_weights(KNOWN).tolist(), strict=True))
    assert {name: weight for name, weight in start.items() if weight} == START
    assert start_weights(KNOWN[::-1]).tolist() == [start[name] for name in KNOWN[::-1]]


N = len(NAMES)


def test_policies_that_are_none():
    for theta, options, message in [
        ([1.0, 2.0, 3.0], {}, rf"theta: read shape \(3,\); expected \({N},\)"),
        (1.0, {}, rf"theta: read shape \(\); expected \({N},\)"),
        ([[0.0] * N], {}, rf"theta: read shape \(1, {N}\); expected \({N},\)"),
        ([0.0] * N, {"features": ["loaded"]}, r"theta: read .*; expected \(1,\)"),
        ([np.nan] * N, {}, "theta: not finite"),
        ([1e300] * N, {}, "theta: not finite"),
        ([0.0], {"features": ["speed"]}, "features: read .*; expected some of approach, loaded"),
        ([0.0], {"features": "speed"}, "features: read speed"),
        ([0.0], {"features": 3}, "features: read 3"),
        ([], {"features": []}, "features: read"),
    ]:
        with pytest.raises(PolicyError, match=message) as caught:
            IndexPolicy(theta, **options)
        assert "\n" not in str(caught.value)
    for weights in ({"speed": 1.0}, {}):
        with pytest.raises(PolicyError, match=r"features: read .*; expected some of approach"):
            IndexPolicy.of_weights(**weights)


def same_state(simulator, before):
    arrays = (*simulator.state, simulator.observation)
    return all(
        np.array_equal(array, old, equal_nan=array.dtype.kind == "f")
        for array, old in zip(arrays, before, strict=True)
    )


def keep_state(simulator):
    return [array.copy() for array in (*simulator.state, simulator.observation)]


# Files


def text(words):
    return np.frombuffer(words.encode(), np.uint8)


def test_damaged_files_are_refused_in_one_line(tmp_path):
    rows = [
        ("theta", None, "theta: read nothing; the file holds no policy of this format"),
        ("theta", np.zeros(N, np.int64), "theta: read int64"),
        ("theta", np.zeros((1, N)), "theta: read float64 of shape"),
        ("theta", np.zeros(3), rf"theta: read shape \(3,\); expected \({N},\)"),
        ("theta", np.zeros(0), rf"theta: read shape \(0,\); expected \({N},\)"),
        ("theta", np.full(N, np.inf), "theta: not finite"),
        ("features", text("approach\nloaded"), "theta: read shape"),
        ("features", text("approach\nspeed"), "features: read .*expected some"),
        ("features", None, "features: read nothing"),
        ("features", np.full(3, 255, np.uint8), "features: not text"),
        ("features", np.full(3, 2**31, np.uint32), "features: read"),
        ("features", np.zeros(2), "features: read float64"),
        ("planned_breakdowns", None, "planned_breakdowns: read nothing"),
        ("planned_breakdowns", np.array(1.0), "planned_breakdowns: read float64"),
        ("planned_breakdowns", np.array([True]), "planned_breakdowns: read bool of shape"),
        # As index policies were once written.
        ("knowledge", text("breakdowns"), "features that have gone; train again"),
        (
            "form",
            np.array("network"),
            "the file holds no policy of this format|form 'network'",
        ),
    ]
    draw_policy().save(tmp_path / "policy.npz")
    check_damaged(tmp_path / "policy.npz", rows, load_policy, IndexPolicy.load)


# Played


def play_by_hand(policy, instances, keys):
    """Every decision asked of `choose` and carried out by `assign`, all episodes side by side."""
    simulator = Simulator(instances, policy=policy, breakdown_keys=keys)
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


def test_choosing_changes_nothing_and_draws_by_the_generator():
    policy = draw_policy(4)
    simulator = Simulator([make_small(3, 9, 2, gap=0.0), make_small(2, 6, gap=0.0)] * 6)
    before = keep_state(simulator)
    first, again, drawn, redrawn, other = (
        policy.choose(simulator, rng=rng)
        for rng in (None, None, *(np.random.default_rng(seed) for seed in (1, 1, 2)))
    )
    assert np.array_equal(first, again) and np.array_equal(drawn, redrawn)
    assert not np.array_equal(drawn, other)
    assert same_state(simulator, before)


@needs_jit
def test_what_is_trained_on_dmh_plays_other_floors(suite):
    """Whatever the number of sites, vehicles and tasks; without a warning, as nothing depends on them."""
    options = {"population": 4, "decisions": 1, "records_per_member": 2}
    policy = ACERL(suite, Config.preset("best", **options), threads=1).policy
    assert policy.portable
    floors = [make_small(1, 3), make_small(7, 12)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trials = check_played(policy, floors)
    assert np.isfinite(trials.makespan).all()


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


@pytest.mark.oracle
def test_what_is_impossible_changes_nothing():
    simulator = make_situation()
    before = keep_state(simulator)
    busy = (-1, 3, 2**40, 0, 1)  # no vehicle, one too many, far away, busy, broken
    idle = -1, 5, 2**40, 1, 4, 3  # no task, one too many, far, under way, to come, too heavy
    for v, task in [*((v, 0) for v in busy), *((2, task) for task in idle)]:
        with pytest.raises(ActionError) as caught:
            simulator.assign([v, 0], [task, 0])
        fault = f"vehicle {v} is not idle; expected one of [2]"
        if v == 2:
            fault = f"task {task} does not wait; expected one of [0, 2, 3]"
        if task == 3:
            fault = "vehicle 2 may not carry task 3 now; expected one of [0, 2]"
        start = f"episode 0 at 1 s: vehicle {v} with task {task} is impossible: "
        assert str(caught.value) == start + fault
        assert same_state(simulator, before)
    simulator.assign([2, 0], [2, 0])  # at the limit of its capacity


def test_assignments_are_whole_numbers_one_an_episode():
    simulator = Simulator([make_small(2, 4)] * 2)
    before = keep_state(simulator)
    with pytest.raises(ActionError, match=r"^episode 1 at 0 s: vehicle 1 with task 3"):
        simulator.assign([0, 1], [0, 3])
    for vehicles, tasks, name in [
        ([0], [0, 0], "vehicles"),
        ([0, 0], [0], "tasks"),
        (0, [0, 0], "vehicles"),
        ([0.0, 0.0], [0, 0], "vehicles"),
        ([0, 0], ["a", "b"], "tasks"),
        ([0, 0], [[0], [0, 1]], "tasks"),
        ([True, False], [0, 0], "vehicles"),
        (None, [0, 0], "vehicles"),
    ]:
        with pytest.raises(ActionError, match=rf"^{name}: .*expected integers"):
            simulator.assign(vehicles, tasks)
        assert same_state(simulator, before)


def test_policies_choose_as_they_are_evaluated(suite):
    """On floors of several sizes at once, also with random breakdowns."""
    floors = make_floors()
    for options in ({}, {"planned_breakdowns": False}):
        policy = draw_policy(4, **options)
        played = check_played(policy, floors)
        assert played.decisions >= 2 * (4 + 9 + 6)
        default = evaluate_policy(policy, floors, trials=2, seed=5, threads=1)
        assert default.makespan.tolist() == played.makespan.tolist()
    check_played(
        ACERL(floors, Config(generations=0, hidden=(3,)), seed=2, threads=1).policy, floors
    )
    if JIT:
        check_played(draw_policy(1), suite, trials=1)
        check_played(ACERL(suite, Config(generations=1, hidden=(4,)), threads=1).policy, suite)
