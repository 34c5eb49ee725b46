"""Slots of waiting tasks in the observation: own ones by the tasks' ids, or their places in the pool."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import worlds
from episodes import scaling_dict
from full import Episode
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import needs_jit
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np import (
    ACERL,
    Agent,
    Config,
    Dispatcher,
    Instance,
    Layout,
    Lookahead,
    Policy,
    PolicyError,
    Simulator,
    TaskArrived,
    evaluate_policy,
    load_instance,
    load_policy,
    load_suite,
)
from acerl_np.kernels.dispatching.observation import allocate_view, write_view
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.problem.interface import assign_slots, find_scaling, find_slots, number_rules
from acerl_np.problem.records import write_record
from acerl_np.support.files import read_arrays, write_arrays

SMALL = Config(generations=2, population=8, hidden=(8,), noise_std=0.5)


@pytest.fixture(scope="module")
def suite():
    return load_suite("dmh-train")[:2]


@pytest.fixture(scope="module")
def policies(suite):
    """Two networks with the same parameters, tasks in slots of their own and in pool order."""
    trainer = ACERL(suite, SMALL, threads=1)
    trainer.run()
    own = trainer.policy
    pool = {"slots": np.array("pool"), "task_ids": np.empty(0, np.str_)}
    return own, Policy.from_arrays({**own.to_arrays(), **pool})


def many_tasks(n, name="many"):
    rows = [worlds.make_task(f"{name}{k}", "A", "C", k, 50.0) for k in range(n)]
    layout = Layout.from_dict(worlds.straight_floor([{"id": "v", "start": "A"}]))
    return Instance.from_rows(name, layout, rows)


def look_at(sim):
    """What row 0 shows now, by the kernel."""
    view = allocate_view(
        sim.n_episodes, sim.n_features, sim.problem.fleet.shape[1], number_rules(sim.rules)
    )
    write_view(sim.problem, sim.state, 0, view)
    return view.observation[0]


# Which slot


def test_ids_are_in_natural_order_whatever_the_files_order(suite):
    expected = tuple(f"task_{k}" for k in range(30))
    assert find_slots("task", suite).ids == find_slots("task", suite[::-1]).ids == expected
    assert find_slots("pool", suite).ids == ()
    # Unknown ids take the lowest slots that no known one needs.
    ids = ("a1", "a2", "a3", "a10")
    assert assign_slots(["a10", "a2"], ids).tolist() == [4, 2]
    assert assign_slots(["b10", "a2", "b9", "a1"], ids).tolist() == [4, 2, 3, 1]
    assert assign_slots(["x", "a1", "a2", "a3", "a10"], ids).tolist() == [5, 1, 2, 3, 4]


@given(st.lists(st.text("ab01", max_size=3), unique=True, min_size=1), st.sets(st.text("ab01")))
def test_each_task_of_a_record_has_a_slot_of_its_own(tasks, known):
    ids = tuple(sorted(known))
    slots = assign_slots(tasks, ids).tolist()
    assert len(set(slots)) == len(slots)
    own = dict(zip(tasks, slots, strict=True))
    assert all(own[task] == ids.index(task) + 1 for task in known & own.keys())
    needed = {ids.index(task) + 1 for task in known & own.keys()}
    strange = sorted(slot for task, slot in own.items() if task not in known)
    assert strange == [k for k in range(1, 100) if k not in needed][: len(strange)]
    assert assign_slots(tasks[::-1], ids).tolist() == slots[::-1]


# What is seen


@pytest.mark.oracle
@settings(deadline=None)
@given(worlds.worlds(), st.data())
def test_the_observation_is_the_slow_simulators(world, data):
    """Some ids are known from another record, and some slots are too few; the outcome knows of none."""
    instance = world.instance()
    strange = data.draw(st.sets(st.sampled_from([f"t{k}" for k in range(12)]), min_size=1))
    shown = find_slots("task", [many_tasks(12, "t")])._replace(ids=tuple(sorted(strange)))
    n_slots = data.draw(st.integers(1, 9))
    sim, in_pool = (
        Simulator(instance, **own)
        for own in ({"slots": shown, "task_slots": n_slots}, {"slots": "pool"})
    )
    own = (assign_slots(instance.tasks, shown.ids) - 1).tolist()
    slots = dict(zip(instance.tasks, own, strict=True))
    scaling = scaling_dict(find_scaling([instance]))
    options = {"scaling": scaling, "task_slots": n_slots, "slots": slots}
    slow = Episode(world.layout, world.rows, **options)
    k = 0
    while not slow.done:
        np.testing.assert_allclose(sim.observation[0], slow.state(), rtol=1e-5, atol=1e-5)
        # The order of the pool changes nothing.
        seen, n = look_at(sim), sim.state.episode["pool_size"][0]
        pool = sim.state.pool[0, :n].copy()
        sim.state.pool[0, :n] = data.draw(st.permutations(pool.tolist()))
        assert look_at(sim).tobytes() == seen.tobytes() == sim.observation[0].tobytes()
        sim.state.pool[0, :n] = pool
        assert np.array_equal(sim.action_mask, in_pool.action_mask)
        action = world.choose(np.flatnonzero(sim.action_mask[0]), k)
        for episode in (sim, in_pool):
            episode.step([action])
        slow.step(action)
        k += 1
    assert sim.done[0] and in_pool.done[0]
    assert sim.makespan == in_pool.makespan and sim.tardiness == in_pool.tardiness


@pytest.mark.oracle
def test_of_two_tasks_of_one_slot_the_first_of_the_record_is_seen():
    """A future of a lookahead may bring a task again that waits already."""
    sim = Simulator(many_tasks(3))
    sim.problem.record["slot"][0, :3] = [2, 2, 1]
    sim.state.episode["pool_size"][0] = 3
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        sim.state.pool[0] = order
        sim.state.waiting_since[0] = [0.0, -7.0, -9.0]
        assert look_at(sim)[[1, 5, 9]].tolist() == [9.0, 0.0, 0.0]


def test_pairs_are_of_the_slots_that_are_seen(suite):
    gym = pytest.importorskip("acerl_np.gym")
    env = gym.DMHEnv(suite[0], actions="pairs")
    simulator = Simulator(suite[0])
    observation, info = env.reset(seed=0)
    rng, over = np.random.default_rng(2), False
    while not over:
        assert np.array_equal(observation, simulator.observation[0])
        legal = info["action_mask"].reshape(3, 30).any(axis=0)
        waiting = simulator.state.pool[0, : simulator.state.episode["pool_size"][0]]
        names = {int(suite[0].tasks[task].removeprefix("task_")): task for task in waiting}
        assert sorted(names) == np.flatnonzero(legal).tolist()
        vehicle, slot = divmod(rng.choice(np.flatnonzero(info["action_mask"])), 30)
        simulator.assign([vehicle], [names[slot]])
        observation, _, over, _, info = env.step(30 * vehicle + slot)
    assert info["makespan"] == simulator.makespan[0]


# What takes them


def test_a_file_keeps_slots_and_ids(policies, tmp_path):
    own = policies[0]
    assert (own.slots, own.task_ids) == ("task", tuple(f"task_{k}" for k in range(30)))
    pair = AgentPair(own, own)
    for policy in (own, pair):
        policy.save(tmp_path / "p.npz")
        found = load_policy(tmp_path / "p.npz")
        assert (found.slots, found.task_ids) == (policy.slots, policy.task_ids)
        arrays = read_arrays(tmp_path / "p.npz", PolicyError)
        for name, bad in (("slots", np.array("pond")), ("task_ids", np.array(["a", "a"]))):
            write_arrays(tmp_path / "bad.npz", {**arrays, name: bad})
            with pytest.raises(PolicyError, match=rf"bad\.npz: {name}: read"):
                load_policy(tmp_path / "bad.npz")


@needs_jit
def test_what_is_trained_by_default_plays_by_default(policies, suite):
    own, pool = policies
    results = []
    for policy in policies:
        sim = Simulator(suite, slots=policy)
        while not sim.done.all():
            vehicles, tasks = policy.choose(sim)
            again = policy.act(sim.observation, sim.action_mask)
            assert (vehicles == np.where(sim.done, -1, again // 4)).all()
            sim.assign(vehicles, tasks)
        trials = evaluate_policy(policy, suite, trials=1, greedy=True)
        assert trials.makespan[:, 0].tolist() == sim.makespan.tolist()
        agent = Agent(policy.act, suite, slots=policy)
        assert evaluate_policy(agent, suite, trials=1).makespan.tolist() == trials.makespan.tolist()
        results.append(sim.makespan.tolist())
    assert results[0] != results[1]  # so the slots matter
    sim = Simulator(suite)
    own.choose(sim)
    acerl_np.IndexPolicy.of_weights(approach=-1.0).choose(Simulator(suite, slots="pool"))
    line = "simulator: shows slots 'task' of 30 tasks, this policy has learned with 'pool'; expected slots="
    cases = [(policy, line) for policy in (pool, Lookahead(pool, futures=1))]
    assert list_unrefused(lambda policy: policy.choose(sim), cases, PolicyError) == []
    one = Simulator(many_tasks(3), slots=own)
    assert (one.slots, one.task_ids, one.n_features) == ("task", own.task_ids, 4 * 30 + 33)


@pytest.mark.long  # it compiles a lookahead over a network
def test_lookahead_sees_its_history_in_the_policys_slots(policies, suite):
    own = policies[0]
    for policy in policies:
        ahead = Lookahead(policy, history=suite[1:], futures=2)
        sim = Simulator(suite[:1], slots=policy)
        slots = ahead.prepare(sim.problem, sim.pool)[1]().history.record["slot"][0]
        expected = [int(task.removeprefix("task_")) + 1 for task in suite[1].tasks]
        assert slots.tolist() == (expected if policy is own else [0] * 30)
        assert ahead.choose(sim)[0].min() >= 0
        ahead = Lookahead(policy, history=suite, futures=1)
        assert evaluate_policy(ahead, suite, trials=1, threads=1, horizon=60.0).decisions > 1
    ahead = Lookahead(own, history=suite, futures=1)
    assert Dispatcher(suite[0].layout, ahead, task_ids=suite[0].tasks).task_ids == suite[0].tasks


def test_more_ids_than_task_slots_have_as_many_slots_and_too_many_are_refused():
    many = many_tasks(40)
    for options, n in (({}, 40), ({"slots": "pool"}, 30), ({"task_slots": 5}, 5)):
        assert Simulator(many, **options).n_features == 4 * n + 3 + n
    assert ACERL([many], SMALL).policy.task_slots == 40
    both, best = [many_tasks(60), many_tasks(41, "other")], partial(Config.preset, "best")
    cases = [
        (lambda: Simulator(both), "slots: read 'task' with 101 different task ids; expected"),
        (lambda: ACERL([many_tasks(101)], SMALL), "101 different"),
        (lambda: Simulator(many, slots="ring"), "read ring; expected 'task', 'pool' or a policy"),
        (lambda: Simulator(many, slots=3), "slots: read 3"),
        (lambda: Config(slots="ring"), "slots: read 'ring'; expected one of task, pool"),
        (lambda: best(slots="pool"), "slots: read pool; expected task with form index"),
    ]
    assert list_unrefused(lambda make: make(), cases) == []


def test_training_says_where_ids_cannot_help(empty, run):
    layout = Layout.from_dict(worlds.straight_floor([{"id": "v", "start": "A"}]))
    Path("floor.json").write_text(json.dumps(layout.to_dict()))
    options = "--layout floor.json --out run --preset paper --generations 0 --set population=4 "
    options += "--set hidden=2 --trials 0 --hold-out none --quiet --force"
    for names, warns in (("ab", True), ("aa", False), ("a", False)):
        for k, name in enumerate(names):
            rows = enumerate(many_tasks(3, name).rows(), k)
            times = [{**row, "arrival_time": time} for time, row in rows]
            write_record(Instance.from_rows("x", layout, times), f"day{k}.csv")
        days = " ".join(f"day{k}.csv" for k in range(len(names)))
        line = "acerl_np: most task ids stand in one record only"
        assert (line in run(f"train {days} {options}").err) == warns


# Live


def test_a_dispatcher_wants_the_ids(policies, suite):
    own, pool = policies
    for policy in (own, AgentPair(own, own), Lookahead(own, history=suite, futures=1)):
        with pytest.raises(PolicyError, match=r"^dispatcher: this policy knows tasks by their ids"):
            Dispatcher(suite[0].layout, policy)
    for policy in (own, AgentPair(own, own)):
        Dispatcher(suite[0].layout, policy, task_ids=suite[0].tasks)
    Dispatcher(suite[0].layout, pool)
    with pytest.raises(PolicyError, match=r"^task_ids: read 0; expected 1 to 100 different ids"):
        Policy.from_arrays({**own.to_arrays(), "task_ids": np.empty(0, np.str_)})


def test_a_dispatcher_shows_what_the_simulator_shows_also_after_a_restart(policies, tmp_path):
    own = policies[0]
    layout = load_instance("DMH-01").layout
    dispatcher = Dispatcher(layout, own, task_ids=["task_3", "task_0"])

    def arrive(task, now, expiry):
        dispatcher.feed(TaskArrived(now, task, "st1", "st5", expiry))

    def expiries():
        seen = dispatcher.observe(10.0)[0][2:120:4]
        return {k: round(float(seen[k]) * 77 + 404) for k in np.flatnonzero(seen)}

    for k, task in enumerate(["new", "task_3", "other", "task_0"]):
        arrive(task, float(k), 100.0 + k)
    # Strangers take the slots that nobody named has, in the order in which they come.
    expected = {1: 100, 3: 101, 2: 102, 0: 103}
    assert expiries() == expected
    assert dispatcher.decide(10.0)
    before = expiries()
    dispatcher.save(tmp_path / "live.npz")
    dispatcher = Dispatcher.load(tmp_path / "live.npz")
    assert dispatcher.task_ids == ("task_3", "task_0")
    assert expiries() == before
    assert all(expected[slot] == due for slot, due in before.items())
    arrive("later", 10.0, 110.0)
    assert expiries()[4] == 110 and max(expiries()) == 4
