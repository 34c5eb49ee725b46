"""Index policies: what they take and refuse, their files, and that they play alike however they are asked."""

from dataclasses import replace

import numpy as np
import pytest
from machine import JIT
from tables_and_refusals import check_damaged, list_unrefused
from trainings import check_played
from worlds import World, make_task, straight_floor

from acerl_np import (
    ACERL,
    ActionError,
    Config,
    IndexPolicy,
    PolicyError,
    RandomBreakdowns,
    Simulator,
    evaluate_policy,
    load_policy,
)
from acerl_np.policies.index import KNOWN, NAMES, START, start_weights


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
    cases = [
        ({"theta": [1.0, 2.0, 3.0]}, f"theta: read shape (3,); expected ({N},)"),
        ({"theta": 1.0}, f"theta: read shape (); expected ({N},)"),
        ({"theta": [[0.0] * N]}, f"theta: read shape (1, {N}); expected ({N},)"),
        ({"features": ["loaded"]}, "theta: read  ... ; expected (1,)"),
        ({"theta": [np.nan] * N}, "theta: not finite"),
        ({"theta": [1e300] * N}, "theta: not finite"),
        ({"features": ["speed"]}, "features: read  ... ; expected some of approach, loaded"),
        ({"features": "speed"}, "features: read speed"),
        ({"features": 3}, "features: read 3"),
        ({"theta": [], "features": []}, "features: read"),
    ]
    own = {"theta": [0.0] * N}
    assert list_unrefused(lambda given: IndexPolicy(**own | given), cases, PolicyError) == []
    cases = [(given, "features: read  ... ; expected some of") for given in ({"speed": 1.0}, {})]
    assert list_unrefused(lambda given: IndexPolicy.of_weights(**given), cases, PolicyError) == []


def same_state(simulator, before):
    arrays = (*simulator.state, simulator.observation)
    return all(
        np.array_equal(array, old, equal_nan=array.dtype.kind == "f")
        for array, old in zip(arrays, before, strict=True)
    )


def keep_state(simulator):
    return [array.copy() for array in (*simulator.state, simulator.observation)]


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
        ("form", np.array("network"), "the file holds no policy of this format|form 'network'"),
    ]
    draw_policy().save(tmp_path / "policy.npz")
    check_damaged(tmp_path / "policy.npz", rows, load_policy, IndexPolicy.load)


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


def make_floors():
    """Of several sizes, the last one with random breakdowns."""
    last = make_small(2, 6, 3, truncate_distances=True)
    layout = last.layout.with_random_breakdowns(RandomBreakdowns(60.0, 9.0))
    return [make_small(1, 4, 1), make_small(3, 9, 2), replace(last, layout=layout)]


def test_policies_choose_as_they_are_evaluated(suite):
    """On floors of several sizes at once; what was trained on DMH plays them, too, without a warning."""
    floors = make_floors()
    small = {"population": 4, "decisions": 1, "records_per_member": 2}
    trained = ACERL(suite, Config.preset("best", **small), threads=1).policy
    assert trained.portable
    for policy in (draw_policy(4), draw_policy(4, planned_breakdowns=False), trained):
        played = check_played(policy, floors)
        assert played.decisions >= 2 * (4 + 9 + 6)
        default = evaluate_policy(policy, floors, trials=2, seed=5, threads=1)
        assert default.makespan.tolist() == played.makespan.tolist()
    untrained = ACERL(floors, Config(generations=0, hidden=(3,)), seed=2, threads=1).policy
    check_played(untrained, floors)
    if JIT:
        check_played(draw_policy(1), suite, trials=1)
        check_played(ACERL(suite, Config(generations=1, hidden=(4,)), threads=1).policy, suite)
