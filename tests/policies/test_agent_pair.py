"""Two networks that decide together: one policy beside others, in files, live, and looking ahead."""

import numpy as np
import pytest

import acerl_np
from acerl_np import Dispatcher, Lookahead, PolicyError, Simulator, TaskArrived
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem.scaling import find_scaling
from acerl_np.support.files import read_arrays, write_arrays

SIZES = (219, 8, 12)


@pytest.fixture(scope="module")
def suite():
    return acerl_np.load_suite("dmh-train")[:2]


@pytest.fixture(scope="module")
def pair(suite):
    shape = {
        "hidden": (8,),
        "task_slots": 30,
        "n_vehicles": 3,
        "scaling": find_scaling(suite),
        "standardises": False,
        "origin": Origin.of(suite),
    }
    return AgentPair(*(Policy(3.0 * initial_parameters(SIZES, k), **shape) for k in (0, 1)))


def test_simulator_trials_and_act_agree(pair, suite):
    """The best action is the same whether the kernel takes it or the caller."""
    sim = Simulator(suite, slots="pool")
    while not sim.done.all():
        actions = pair.act(sim.observation, sim.action_mask)
        vehicles, _ = pair.choose(sim)
        assert vehicles.tolist() == np.where(sim.done, -1, actions // 4).tolist()
        sim.step(actions)
    trials = acerl_np.evaluate_policy(pair, suite, trials=2, greedy=True)
    assert trials.makespan[:, 0].tolist() == sim.makespan.tolist()
    # By default it draws.
    drawn = acerl_np.evaluate_policy(pair, suite, trials=8)
    assert len(np.unique(drawn.makespan)) > 4


def test_each_agent_draws_by_its_own_softmax(pair, suite):
    sim = Simulator(suite[:1], slots="pool")
    observation, mask = sim.observation, sim.action_mask
    n = 4_000
    drawn = pair.act(
        np.repeat(observation, n, axis=0), np.repeat(mask, n, axis=0), rng=np.random.default_rng(0)
    )
    vehicle = {v: drawn[drawn // 4 == v] for v in range(3)}
    assert sum(map(len, vehicle.values())) == n
    alone = pair.rule.act(
        np.repeat(observation, n, axis=0),
        np.repeat(mask & (np.arange(12) // 4 == 1), n, axis=0),
        rng=np.random.default_rng(1),
    )
    if len(vehicle[1]) > 300:
        own = np.bincount(vehicle[1], minlength=12) / len(vehicle[1])
        assert own == pytest.approx(np.bincount(alone, minlength=12) / n, abs=0.1)


@pytest.mark.slow
def test_files_dispatchers_and_lookahead_take_it(pair, suite, tmp_path):
    pair.save(tmp_path / "policy.npz")
    found = acerl_np.load_policy(tmp_path / "policy.npz")
    assert isinstance(found, AgentPair) and repr(found) == repr(pair)
    assert "2 of 219-8-12" in repr(found)
    assert found.n_parameters == 2 * len(found.theta)
    assert found.origin == pair.origin
    for a, b in ((found.vehicle, pair.vehicle), (found.rule, pair.rule)):
        assert np.array_equal(a.theta, b.theta)
    assert isinstance(AgentPair.load(tmp_path / "policy.npz"), AgentPair)
    with pytest.raises(PolicyError, match="holds a policy of form 'agents', expected 'network'"):
        Policy.load(tmp_path / "policy.npz")
    dispatcher = Dispatcher(suite[0].layout, found)
    dispatcher.feed(TaskArrived(0.0, "t", "st1", "st2", 100.0))
    assert [item.task for item in dispatcher.decide(0.0)] == ["t"]
    ahead = Lookahead(found, history=suite, futures=2)
    trials = acerl_np.evaluate_policy(ahead, suite[:1], trials=1)
    assert np.isfinite(trials.makespan).all()


def test_what_it_refuses(pair, suite, tmp_path):
    other = Policy(
        initial_parameters((219, 4, 12), 0),
        hidden=(4,),
        task_slots=30,
        n_vehicles=3,
        scaling=pair.scaling,
        standardises=False,
    )
    with pytest.raises(PolicyError, match="agents: two networks of different sizes"):
        AgentPair(other, pair.rule)
    for observation, mask in ((np.zeros(219), np.ones(11, bool)), (np.zeros(3), np.ones(12, bool))):
        with pytest.raises(PolicyError, match="shape"):
            pair.act(observation, mask)
    pair.save(tmp_path / "policy.npz")
    arrays = dict(read_arrays(tmp_path / "policy.npz", PolicyError))
    arrays.pop("checksum", None)
    for broken in (arrays["vehicle_theta"][:-1], np.array(["x"]), None):
        damaged = {k: v for k, v in arrays.items() if k != "vehicle_theta"}
        if broken is not None:
            damaged["vehicle_theta"] = broken
        write_arrays(tmp_path / "damaged.npz", damaged)
        with pytest.raises(PolicyError, match=r"damaged\.npz: "):
            acerl_np.load_policy(tmp_path / "damaged.npz")
