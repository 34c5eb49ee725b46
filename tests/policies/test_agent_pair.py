"""Two networks that decide together: one policy beside others, in files, live, and looking ahead."""

import numpy as np
import pytest
from damaged import check_damaged

import acerl_np
from acerl_np import Dispatcher, Lookahead, PolicyError, Simulator, TaskArrived
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem.scaling import find_scaling

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


@pytest.mark.slow
def test_dispatchers_and_lookahead_take_it(pair, suite):
    assert "2 of 219-8-12" in repr(pair) and pair.n_parameters == 2 * len(pair.theta)
    dispatcher = Dispatcher(suite[0].layout, pair)
    dispatcher.feed(TaskArrived(0.0, "t", "st1", "st2", 100.0))
    assert [item.task for item in dispatcher.decide(0.0)] == ["t"]
    ahead = Lookahead(pair, history=suite, futures=2)
    assert np.isfinite(acerl_np.evaluate_policy(ahead, suite[:1], trials=1).makespan).all()


def test_each_agent_draws_by_its_own_softmax(pair, suite):
    sim = Simulator(suite[:1], slots="pool")
    n = 4_000

    def draw(own, seed, mask):
        rows = (np.repeat(x, n, axis=0) for x in (sim.observation, mask))
        return own.act(*rows, rng=np.random.default_rng(seed))

    drawn = draw(pair, 0, sim.action_mask)
    vehicle = {v: drawn[drawn // 4 == v] for v in range(3)}
    assert sum(map(len, vehicle.values())) == n
    alone = draw(pair.rule, 1, sim.action_mask & (np.arange(12) // 4 == 1))
    if len(vehicle[1]) > 300:
        own = np.bincount(vehicle[1], minlength=12) / len(vehicle[1])
        assert own == pytest.approx(np.bincount(alone, minlength=12) / n, abs=0.1)
    # By default it draws in trials, too.
    assert len(np.unique(acerl_np.evaluate_policy(pair, suite, trials=8).makespan)) > 4


def test_what_it_refuses(pair, suite, tmp_path):
    shape = {"task_slots": 30, "n_vehicles": 3, "scaling": pair.scaling, "standardises": False}
    other = Policy(initial_parameters((219, 4, 12), 0), hidden=(4,), **shape)
    with pytest.raises(PolicyError, match="agents: two networks of different sizes"):
        AgentPair(other, pair.rule)
    for observation, mask in ((np.zeros(219), np.ones(11, bool)), (np.zeros(3), np.ones(12, bool))):
        with pytest.raises(PolicyError, match="shape"):
            pair.act(observation, mask)
    pair.save(tmp_path / "policy.npz")
    bad = pair.to_arrays()["vehicle_theta"][:-1], np.array(["x"]), None
    rows = [("vehicle_theta", value, "theta: read ") for value in bad]
    check_damaged(tmp_path / "policy.npz", rows, acerl_np.load_policy)
