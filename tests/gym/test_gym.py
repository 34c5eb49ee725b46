"""Gymnasium environments: the checker, the simulator beside them, vector beside single ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
from full import Episode
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import make_powered
from tables_and_refusals import list_unrefused
from trainings import COPIES
from worlds import RAW, cut, make_task, straight_floor, with_chargers, with_parking, worlds

import acerl_np
from acerl_np import ActionError, InputError, Instance, Layout, Simulator, load_instance
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.rollout.batch import list_pairs

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

import acerl_np.gym  # noqa: E402
from acerl_np.gym import ENV_ID, PAIRS_ENV_ID, DMHEnv, DMHVectorEnv  # noqa: E402
from acerl_np.problem.parts import RandomBreakdowns  # noqa: E402
from acerl_np.problem.records import write_record  # noqa: E402

MODES = list(AutoresetMode)


@pytest.fixture(scope="module")
def instances():
    names = ("DMH-01", 3), ("DMH-02", 5), ("DMH-03", 4)
    return [cut(load_instance(name), n, f"{name} short") for name, n in names]


def play(env, observation, info):
    """Play to the end; return the last step."""
    k = 0
    while True:
        legal = np.flatnonzero(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(legal[k % len(legal)])
        k += 1
        if terminated or truncated:
            return observation, reward, terminated, truncated, info


# The single environment


@pytest.mark.parametrize(
    ("env_id", "illegal"), [(ENV_ID, "error"), (ENV_ID, "redraw"), (PAIRS_ENV_ID, "redraw")]
)
def test_the_checker_finds_nothing(instances, illegal, env_id):
    """Warnings are errors in these tests. It draws actions without their mask: of pairs, few are legal."""
    for played in (instances, "DMH-01"):
        env = gymnasium.make(env_id, instances=played, illegal=illegal, render_mode="rgb_array")
        check_env(env.unwrapped)
    if illegal == "redraw":  # where vehicles wait and charge
        env = gymnasium.make(env_id, instances=make_powered(), illegal=illegal, may_wait=True)
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.oracle
@settings(deadline=None, max_examples=60)
@given(
    with_parking(with_chargers(worlds())),
    st.sampled_from(["assignment", "pickup"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_masks_are_those_of_the_slow_simulator(world, commitment, may_wait, draws):
    layout = Layout.from_dict(world.layout).with_commitment(commitment, 3)
    instance = Instance.from_rows("random", layout, world.rows)
    env = DMHEnv(instance, actions="pairs", slots="pool", task_slots=99, may_wait=may_wait)
    slow = Episode(world.layout, world.rows, commitment=commitment, max_changes=3, scaling=RAW)
    _, info = env.reset(seed=0)
    over = False
    while not over:
        legal = np.flatnonzero(info["action_mask"]).tolist()
        pairs = [99 * v + slow.pool.index(task) for v, task in slow.candidates()]
        last = 99 * len(layout.vehicles)
        assert env.action_space.n == last + may_wait
        assert legal == pairs + [last] * (may_wait and slow.may_wait())
        action = draws.choice(legal)
        if action == last:
            slow.wait()
        else:
            slow.assign(action // 99, action % 99)
        _, _, over, _, info = env.step(action)
        assert info["time"] == slow.time
    assert info["makespan"] == slow.makespan


@pytest.mark.oracle
@settings(deadline=None, max_examples=60)
@given(worlds())
def test_slots_show_the_first_pairs_of_a_simulator(world):
    """Beside an episode on a larger floor."""
    slots, batch = 3, [world.instance(), load_instance("DMH-01")]
    simulator = Simulator(batch, n_episodes=2, slots="pool")
    tasks = np.zeros((2, slots), np.int64)
    mask = np.zeros((2, simulator.problem.fleet.shape[1], slots), np.bool_)
    for k in range(12):
        list_pairs(simulator.problem, simulator.state, tasks, mask)
        expected = np.zeros_like(mask)
        pairs = simulator.pairs()
        for b, v, task in zip(pairs.episode, pairs.vehicle, pairs.task, strict=True):
            position = simulator.state.pool[b].tolist().index(task)
            if position < slots:
                expected[b, v, position] = True
        assert np.array_equal(mask, expected)
        for b, n in enumerate(np.minimum(slots, simulator.state.episode["pool_size"])):
            assert np.array_equal(tasks[b, :n], simulator.state.pool[b, :n])
        if simulator.done.all():
            break
        masks = simulator.action_mask
        actions = [world.choose(np.flatnonzero(own), k) if own.any() else 0 for own in masks]
        simulator.step(actions)


def crowded(n_tasks):
    """One vehicle for light loads and one for all; the heavy tasks come first, and light ones are unseen."""
    fleet = [{"id": name, "start": "A", "capacity": most} for name, most in (("s", 1), ("l", 9))]
    floor = Layout.from_dict(straight_floor(fleet, task_slots=2))
    demands = [5] * (n_tasks - 1) + [1]
    rows = [make_task(f"t{k}", "A", "B", 0, 9, demand=x) for k, x in enumerate(demands)]
    return Instance.from_rows("crowded", floor, rows)


@pytest.mark.parametrize(("n", "decisions"), [(3, 3), (6, 5)])
def test_what_no_slot_shows_is_decided_without_a_learner(n, decisions):
    """Else no action would be legal where one is due."""
    env = DMHEnv(crowded(n), actions="pairs", slots="pool")
    _, info = env.reset(seed=0)
    over, k = False, 0
    while not over:
        assert info["action_mask"].any()
        _, _, over, _, info = env.step(info["action_mask"].argmax())
        k += 1
    assert info["status"] == "finished"
    # Of six, the light task waits unseen behind the heavy ones, and the small vehicle takes it at once.
    assert k == decisions


def test_an_agent_waits_as_it_did_in_its_environment():
    """It waits whenever it may."""
    instance, asked = make_powered(), []

    def wait(observation, mask):
        asked.append(mask[:, -1].any())
        return np.where(mask[:, -1], mask.shape[1] - 1, mask.argmax(axis=1))

    for actions in ("rules", "pairs"):
        agent = acerl_np.Agent(wait, instance, actions=actions, may_wait=True)
        judged = acerl_np.evaluate_policy(agent, instance, trials=1)
        trace = trace_policy(agent, instance)
        assert trace.makespan == judged.makespan[0, 0]
        assert -1 in {decision.vehicle for decision in trace.decisions} and any(asked)


SIZES = {"task_slots": 33, "n_vehicles": 5, "scaling": np.arange(1.0, 13.0)}
"""What a policy wants that was trained on a larger floor."""


@pytest.mark.parametrize("options", [{}, SIZES], ids=["", "sizes"])
def test_equals_the_simulator(instances, options):
    env = DMHEnv(instances[1], **options)
    simulator = Simulator(instances[1], **options)
    observation, info = env.reset(seed=0)
    assert info["instance"] == instances[1].name
    k = 0
    while True:
        assert (observation.dtype, info["action_mask"].dtype) == (np.float32, np.int8)
        assert np.array_equal(observation, simulator.observation[0])
        for mask in (info["action_mask"], env.action_masks()):
            assert np.array_equal(mask, simulator.action_mask[0])
        assert env.action_masks().dtype == np.bool_
        assert info["time"] == simulator.time[0]
        if simulator.done[0]:
            break
        assert info["cost"] == 0.0 and "makespan" not in info
        legal = np.flatnonzero(simulator.action_mask[0])
        action = legal[k % len(legal)]
        simulator.step([action])
        observation, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated) == (simulator.done[0], False)
        assert reward == (-simulator.makespan[0] if terminated else 0.0)
        k += 1
    assert k >= instances[1].n_tasks
    assert info["makespan"] == simulator.makespan[0]
    assert info["tardiness"] == info["cost"] == simulator.tardiness[0]


def test_a_name_a_suite_a_file_and_its_layout(tmp_path, instances):
    made = gymnasium.make("acerl_np.gym:acerl_np/DMH-v0", instances="DMH-02")
    assert isinstance(made.unwrapped, DMHEnv)
    (tmp_path / "layout.json").write_text(json.dumps(acerl_np.load_layout("dmh").to_dict()))
    write_record(instances[0], tmp_path / "week.csv")
    week, given = DMHEnv(tmp_path / "week.csv"), DMHEnv(instances=instances[0])
    found = [names(env, 1) for env in (made, week, given)]
    assert found == [["DMH-02"], ["week"], ["DMH-01 short"]]
    envs = DMHVectorEnv(2, instances=instances[0])
    assert envs.reset()[1]["instance"].tolist() == [instances[0].name] * 2
    assert set(names(DMHEnv("dmh-train"), 60, seed=1)) == {f"DMH-0{k}" for k in range(1, 9)}


def test_steps_only_while_an_episode_runs(instances):
    env, envs = DMHEnv(instances[0]), DMHVectorEnv(2, instances, autoreset_mode="Disabled")
    for wrong in (lambda: env.step(0), lambda: envs.step(np.zeros(2, int))):
        with pytest.raises(ActionError, match="reset"):
            wrong()
    _, reward, *_ = play(env, *env.reset())
    with pytest.raises(ActionError, match="reset"):
        env.step(0)
    assert play(env, *env.reset())[1] == reward


# The horizon


@pytest.mark.parametrize("options", [{}, {"actions": "pairs"}], ids=str)
def test_the_horizon_is_a_terminal_end_that_is_paid_less_than_any_schedule(instances, options):
    """Whatever it does: the best of the stopped ones is worse than the worst that finishes in time."""
    env = DMHEnv(instances[1])
    _, reward, *over, info = play(env, *env.reset())
    makespan, tardiness = info["makespan"], info["tardiness"]
    assert (over, reward, info["status"]) == ([True, False], -makespan, "finished")
    env = DMHEnv(instances[1], horizon=makespan)
    *_, info = play(env, *env.reset())
    assert (info["status"], info["makespan"]) == ("finished", makespan)
    env = DMHEnv(instances[1], horizon=makespan, **options)
    paid, rng = {"finished": [], "stopped": []}, np.random.default_rng(0)
    for _ in range(60):
        _, info = env.reset()
        over = False
        while not over:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            _, reward, over, truncated, info = env.step(action)
            assert not truncated
        paid[info["status"]].append(reward)
    assert max(paid["stopped"]) < min(paid["finished"])
    env = DMHEnv(instances[1], horizon=makespan - 1)
    observation, reward, *over, info = play(env, *env.reset())
    assert (over, info["status"]) == ([True, False], "stopped")
    assert reward < -makespan and info["cost"] >= tardiness
    assert np.isnan([info["makespan"], info["tardiness"]]).all()
    assert not observation.any() and not info["action_mask"].any()


def test_reward_and_cost_at_the_horizon_by_hand():
    """One task of three is served, late; one is under way, and one has not even arrived."""
    layout = acerl_np.load_layout("dmh")
    row = {"pickup": "st2", "delivery": "st1", "expiry_time": 10}
    rows = [
        {"task": "a", "arrival_time": 0, **row},
        {"task": "b", "arrival_time": 300, **row},
        {"task": "c", "arrival_time": 900.5, **row},
    ]
    env = DMHEnv(Instance.from_rows("three", layout, rows), horizon=340)
    simulator = Simulator(Instance.from_rows("one", layout, rows[:1]))
    simulator.step([0])
    _, reward, _, _, info = play(env, *env.reset())
    assert info["status"] == "stopped"
    assert simulator.makespan[0] < 300
    ways = layout.routes.distance
    st1, st2 = (next(k for k, s in enumerate(layout.sites) if s.id == x) for x in ("st1", "st2"))
    # A vehicle may have broken down on the longest edge.
    edges = layout.routes.edge_length
    longest = np.ceil(edges[np.isfinite(edges)].max() + ways[:, st2].max() + ways[st2, st1] + 1e-6)
    assert any(vehicle.breakdowns for vehicle in layout.vehicles)
    assert {vehicle.speed for vehicle in layout.vehicles} == {1.0}
    second, third = 340 + longest, 901 + longest
    assert second < 901
    assert reward == -third
    late = (simulator.makespan[0] - 10, second - 310, third - 910.5)
    assert info["cost"] == pytest.approx(sum(late) / 3, rel=1e-12)


def test_an_episode_without_a_decision():
    row = {"task": "a", "pickup": "st2", "delivery": "st1", "arrival_time": 9, "expiry_time": 9}
    instance = Instance.from_rows("late", acerl_np.load_layout("dmh"), [row])
    for illegal in ("error", "redraw"):
        env = DMHEnv(instance, horizon=5, illegal=illegal)
        _, info = env.reset()
        assert not info["action_mask"].any()
        _, reward, terminated, truncated, info = env.step(0)
        assert (terminated, truncated, info["status"]) == (True, False, "stopped")
        assert (reward, info["cost"]) == (-240.0, 240.0 - 18.0)  # 231 s from the farthest site
        with pytest.raises(ActionError, match="reset"):
            env.step(0)
    for mode in MODES:
        envs = DMHVectorEnv(2, instance, horizon=5, autoreset_mode=mode)
        envs.reset()
        assert envs.step(np.zeros(2, int))[2].all()


# Seeds and instances


def names(env, n, seed=None):
    first = env.reset(seed=seed)[1]["instance"]
    return [first, *(env.reset()[1]["instance"] for _ in range(n - 1))]


def test_seeds_decide_the_instances(instances):
    env = DMHEnv(instances)
    drawn = names(env, 30, seed=5)
    assert set(drawn) == {instance.name for instance in instances}
    assert names(env, 30, seed=5) == drawn == names(DMHEnv(instances), 30, seed=5)
    assert names(env, 30, seed=6) != drawn


def test_seeds_or_a_generator_decide_the_random_breakdowns(instances):
    model = RandomBreakdowns(100.0, 30.0)
    record = replace(instances[1], layout=instances[1].layout.with_random_breakdowns(model))
    envs = [DMHEnv(record) for _ in range(2)]

    def makespans(env, seed=None):
        seeds = [seed, *[None] * 7]
        return [play(env, *env.reset(seed=one))[4]["makespan"] for one in seeds]

    first, second = (makespans(env, 5) for env in envs)
    assert first == second == makespans(envs[0], 5) != makespans(envs[0], 6)
    assert len(set(first)) > 1, "every episode draws its own"
    unseeded = [makespans(DMHEnv(record)) for _ in range(3)]
    assert unseeded[0] != unseeded[1] or unseeded[1] != unseeded[2]
    ends = []
    for number in (1, 1, 2):
        env = DMHEnv(record)
        env.np_random = np.random.default_rng(number)
        ends.append(makespans(env))
    assert ends[0] == ends[1] != ends[2]


def test_options_name_the_instance(instances):
    floor = Layout.from_dict(straight_floor([{"id": "v", "start": "A"}]))
    tiny = Instance.from_rows("tiny", floor, [make_task("t", "A", "B", 0)])
    env = DMHEnv([*instances, tiny], render_mode="rgb_array")
    shapes = set()
    for instance in env._episodes.simulator.pool:
        for wanted in (instance.name, instance):
            observation, info = env.reset(options={"instance": wanted})
            assert info["instance"] == instance.name
            assert observation in env.observation_space, "that of the largest"
            assert info["action_mask"].shape == (12,)
        shapes.add(env.render().shape)
    assert len(shapes) == 1, "pictures of unlike floors have one size"


def test_instances_of_one_name_or_content_are_told_apart(instances):
    plain = instances[1]
    layout = plain.layout.with_random_breakdowns(RandomBreakdowns(50.0, 500.0))
    other = replace(plain, layout=layout)
    env = DMHEnv([plain, other])
    for instance, is_one in ((plain, True), (other, False)):
        options = {"instance": instance}
        ends = {play(env, *env.reset(seed=k, options=options))[4]["makespan"] for k in range(9)}
        assert (len(ends) == 1) == is_one
    with pytest.raises(InputError, match="the name of several"):
        env.reset(options={"instance": plain.name})
    renamed = replace(instances[0], name="other")
    env = DMHEnv([instances[0], renamed])
    assert env.reset(options={"instance": renamed})[1]["instance"] == "other"
    drawn = names(DMHEnv([instances[0], instances[0], instances[1]]), 300, seed=0)
    assert 160 <= drawn.count(instances[0].name) <= 240, "given twice, drawn twice as often"


def test_seeds_of_numpys_kinds(instances):
    env, envs = DMHEnv(instances), DMHVectorEnv(np.int64(3), instances)
    assert type(envs.num_envs) is int
    for seed in (np.int64(3), np.uint8(3)):
        env.reset(seed=seed)
        assert env.np_random_seed == 3
        for seeds in (seed, [seed, 4, np.int64(5)], np.array([3, 4, 5]), (3, 4, 5)):
            envs.reset(seed=seeds)
            assert envs.np_random_seed == (3, 4, 5)


def test_a_refused_reset_changes_nothing(instances):
    cases = [({"seed": seed}, "seed: read") for seed in (-1, 1.5, "x", True)]
    for options in ("DMH-01", {"instnce": "DMH-01"}, {"instance": "DMH-01", "seed": 3}):
        cases.append(({"seed": 5, "options": options}, "; expected a dict of ['instance'"))
    for wanted, line in (
        ("DMH-77", "instance: read 'DMH-77'; expected one of DMH-01"),
        (np.array(["DMH-01"]), "expected one of"),
        (cut(load_instance("DMH-04"), 6), "of other content"),
    ):
        cases.append(({"options": {"instance": wanted}}, line))
    for env in (DMHEnv(instances), DMHVectorEnv(3, instances)):
        env.reset(seed=0)
        before = env.np_random_seed, env.action_masks().tolist()
        for case in cases:
            assert list_unrefused(lambda given, env=env: env.reset(**given), [case]) == []
            assert (env.np_random_seed, env.action_masks().tolist()) == before


def test_bad_options(instances):
    options = {
        **{"illegal": ["ignore"], "render_mode": ["human"], "horizon": [-1.0], "n_vehicles": [2]},
        **{"instances": [[], "DMH-77", 5, ["DMH-01", 5]], "task_slots": [0, 2.5]},
        **{"scaling": [[1.0] * 11, [0.0] * 12, "x"], "actions": ["tasks"]},
        **{"may_wait": ["yes"], "max_episode_steps": [5]},
    }
    cases = [({name: value}, "expected") for name, values in options.items() for value in values]
    assert list_unrefused(lambda given: DMHEnv(**given), cases) == []
    cases += [({"num_envs": n}, "expected") for n in (0, -1, 1.5)]
    cases.append(({"autoreset_mode": "never"}, "expected"))
    assert list_unrefused(lambda given: DMHVectorEnv(**given), cases) == []
    row = {**instances[0].rows()[0], "demand": 5}
    vehicles = tuple(replace(item, capacity=2.0) for item in instances[0].layout.vehicles)
    layout = replace(instances[0].layout, vehicles=vehicles)
    heavy = Instance.from_rows("heavy", layout, [row], servable=False)
    with pytest.raises(InputError, match=r"heavy: task .* demand: 5 exceeds every vehicle"):
        DMHEnv(heavy)


# Illegal actions


def test_illegal_actions_are_errors(instances):
    env = DMHEnv(instances[0])
    env.reset()
    _, _, _, _, info = env.step(0)
    legal = np.flatnonzero(info["action_mask"])
    illegal = np.flatnonzero(info["action_mask"] == 0)
    assert len(illegal)
    line = "action {} is illegal ... {}".format
    cases = [(x, line(x, legal.tolist())) for x in (illegal[0], -1, 12, 10**6)]
    cases += [(x, "expected integers") for x in (1.0, "1", None, [1, 2], np.array([1]))]
    assert list_unrefused(env.step, cases, ActionError) == []
    env.step(np.array(legal[0]))  # as policies return it


def test_illegal_pairs_are_refused_or_redrawn():
    envs = DMHVectorEnv(2, "DMH-01", actions="pairs")
    _, infos = envs.reset(seed=0)
    before = envs.action_masks()
    legal, illegal = (getattr(infos["action_mask"], name)(axis=1) for name in ("argmax", "argmin"))
    line = " is illegal; expected one of ["
    cases = [([legal[0], illegal[1]], line), ([legal[0], 90], line), ([-1, legal[1]], line)]
    cases.append((np.zeros(2), "expected integers"))
    assert list_unrefused(lambda wrong: envs.step(np.array(wrong)), cases, ActionError) == []
    assert np.array_equal(envs.action_masks(), before)
    env = DMHEnv("DMH-01", actions="pairs", illegal="redraw")
    env.reset(seed=0)
    assert env.step(89)[4]["redrawn"]


def test_illegal_actions_are_redrawn(instances):
    """Uniformly among the legal ones, and the same ones for the same seed."""
    outcomes = []
    for seed in (3, 3, 4):
        env, rewards = DMHEnv(instances, illegal="redraw"), []
        _, info = env.reset(seed=seed)
        assert "redrawn" not in info
        for _ in range(6):
            over = False
            while not over:
                mask = info["action_mask"]
                _, reward, over, _, info = env.step(0)
                assert info["redrawn"] == (not mask[0])
            rewards.append(reward)
            _, info = env.reset()
        outcomes.append(rewards)
    assert outcomes[0] == outcomes[1] != outcomes[2]
    with pytest.raises(ActionError, match="expected integers"):
        env.step(0.5)


def test_redrawn_actions_are_uniform(instances):
    simulator = Simulator(instances[0], n_episodes=400)
    simulator.step(np.zeros(400, int))
    generator = np.random.default_rng(0)
    actions, illegal = acerl_np.gym.episodes.redraw(
        np.zeros(400, int), simulator.action_mask, ~simulator.done, lambda k: generator
    )
    assert illegal.sum() == 400
    counts = np.bincount(actions, minlength=12)[simulator.action_mask[0]]
    assert counts.sum() == 400
    expected = 400 / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 24  # chi-squared, 7 degrees of freedom


# The vector environment beside single ones


def equal(ours, theirs):
    """Whether two infos are the same, keys, types and values."""
    assert set(ours) == set(theirs)
    for key, value in ours.items():
        other = theirs[key]
        if isinstance(value, dict):
            equal(value, other)
        elif value.dtype == object:
            assert other.dtype == object
            for a, b in zip(value, other, strict=True):
                assert type(a) is type(b) and np.array_equal(a, b)
        else:
            np.testing.assert_array_equal(value, other, err_msg=key, strict=True)


def check_told(ours, theirs):
    """What a step or a reset has returned is the same."""
    for a, b in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    equal(ours[-1], theirs[-1])


OPTIONS = {
    "": {},
    "horizon": {"horizon": 250.0, **SIZES},
    "redraw": {"illegal": "redraw"},
    "pairs": {"actions": "pairs", "horizon": 400.0},
}


@pytest.mark.oracle
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("model", [None, RandomBreakdowns(150.0, 30.0)], ids=["", "random"])
def test_equals_gymnasiums_vector_of_single_environments(instances, mode, options, model):
    records = [replace(x, layout=x.layout.with_random_breakdowns(model)) for x in instances]
    own = {"vectorization_mode": "vector_entry_point", "autoreset_mode": mode, **options}
    ours = gymnasium.make_vec(ENV_ID, num_envs=4, instances=records, **own)
    theirs = SyncVectorEnv([lambda: DMHEnv(records, **options)] * 4, autoreset_mode=mode)
    both = ours, theirs
    assert isinstance(ours, DMHVectorEnv)
    assert ours.metadata == theirs.metadata
    for name in ("observation_space", "action_space"):
        for single in ("", "single_"):
            assert getattr(ours, single + name) == getattr(theirs, single + name)

    rng, n_ends = np.random.default_rng(0), 0
    told = [envs.reset(seed=7) for envs in both]
    for k in range(40):
        check_told(*told)
        assert told[0][0] in ours.observation_space
        actions = np.zeros(4, np.int64)
        for b, mask in enumerate(ours.action_masks()):
            if mask.any():
                actions[b] = rng.choice(np.flatnonzero(mask))
        if "illegal" in options and k % 3:
            actions = ours.action_space.sample()
        told = [envs.step(actions) for envs in both]
        over = told[0][2] | told[0][3]
        n_ends += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            check_told(*told)
            told = [envs.reset(options={"reset_mask": over.copy()}) for envs in both]
    assert n_ends >= 4
    assert ours.np_random_seed == theirs.np_random_seed
    states = [[g.bit_generator.state for g in envs.np_random] for envs in both]
    assert states[0] == states[1]


def test_misuse_of_the_vector_environment(instances):
    envs = DMHVectorEnv(2, instances, autoreset_mode="Disabled")
    cases = [({"options": {"reset_mask": np.array([True, False])}}, "first reset")]
    cases += [({"seed": [1, 2, 3]}, "read 3 seeds; expected 2"), ({"seed": [[1], 2]}, "seed: read")]
    assert list_unrefused(lambda given: envs.reset(**given), cases) == []
    envs.reset(seed=0)
    before = envs.action_masks()
    with pytest.raises(ActionError, match=r"episode 1 .* action 12 is illegal"):
        envs.step(np.array([0, 12]))
    with pytest.raises(ActionError, match="expected integers"):
        envs.step(np.zeros(2))
    assert np.array_equal(envs.action_masks(), before)
    masks = ([True], np.array([1, 0]), np.zeros(2, np.bool_), None)
    cases = [({"options": {"reset_mask": mask}}, "reset_mask") for mask in masks]
    assert list_unrefused(lambda given: envs.reset(**given), cases) == []
    over = np.zeros(2, np.bool_)
    while not over.any():
        over = envs.step(envs.action_masks().argmax(axis=1))[2]
    with pytest.raises(ActionError, match=r"environments \[.*\] are over; .*reset_mask"):
        envs.step(envs.action_masks().argmax(axis=1))
    options = {"reset_mask": over, "instance": instances[1].name}
    infos = envs.reset(seed=3, options=options)[1]
    assert set(options) == {"reset_mask", "instance"}
    assert infos["_instance"].tolist() == over.tolist()
    assert [name == instances[1].name for name in infos["instance"]] == over.tolist()


def test_without_a_seed_every_environment_draws_its_own(instances):
    envs = DMHVectorEnv(20, instances)
    first, infos = envs.reset()
    assert len(set(infos["instance"])) > 1
    assert len(set(envs.np_random_seed)) == 20
    # Nothing that was returned is used again.
    kept = first.copy(), infos["action_mask"].copy()
    envs.step(envs.action_masks().argmax(axis=1))
    for told, before in zip((first, infos["action_mask"]), kept, strict=True):
        assert np.array_equal(told, before)
        told[:] = 0
    assert envs.action_masks().any()
    drawn = [envs.reset()[1]["instance"].tolist() for _ in range(3)]
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]


def test_render(instances):
    env = DMHEnv(instances[0], render_mode="ansi")
    env.reset()
    assert env.render().startswith("DMH-01 short at 0 s: 0 of 3 tasks finished\n  v0: idle")
    envs = DMHVectorEnv(2, instances[0], render_mode="rgb_array")
    envs.reset()
    first = envs.render()
    assert len(first) == 2 and first[0].dtype == np.uint8
    envs.step([0, 0])
    assert (envs.render()[0] != first[0]).any()
    for plain in (DMHEnv(instances[0]), DMHVectorEnv(2, instances[0])):
        plain.reset()
        with pytest.warns(UserWarning, match="render mode"):
            assert plain.render() is None


# Misuse and conveniences


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_copies_in_the_midst_of_an_episode_go_their_own_way(instances, actions, way):
    def play(envs):
        seen = []
        for _ in range(15):
            observation, rewards, *_ = envs.step(envs.action_masks().argmax(axis=1))
            seen.append((observation.tolist(), rewards.tolist(), envs.np_random_seed))
        return seen

    envs = DMHVectorEnv(2, instances, actions=actions)
    envs.reset(seed=3)
    envs.step(envs.action_masks().argmax(axis=1))
    other = way(envs)
    assert play(envs) == play(other)
    env = DMHEnv(instances, actions=actions)
    env.reset(seed=3)
    other = way(env)
    before = env.action_masks()
    while other.action_masks().any():
        other.step(other.action_masks().argmax())
    assert np.array_equal(env.action_masks(), before)
