"""Rules as actions of networks: other ones than the paper's; and two networks that decide together."""

import naive_evolution as naive
import numpy as np
import pytest
from machine import JIT, needs_jit
from tables_and_refusals import check_damaged
from trainings import list_differences

import acerl_np
from acerl_np import ACERL, Config, Lookahead, Policy, PolicyError, Simulator, evaluate_policy
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.choices import PAPER_RULES
from studies import rivals

RULES = ("LWT", "AHP", "EDD")
SMALL = {"rules": RULES, "hidden": (4,), "population": 2, "generations": 2, "curve_every": 0}


@pytest.fixture(scope="module")
def policy(suite):
    return ACERL(suite, Config(**SMALL), threads=1).policy


@pytest.fixture(scope="module")
def pair(policy):
    thetas = (0.3 * initial_parameters(policy.sizes.tolist(), k) for k in (0, 1))
    return AgentPair(*(Policy(theta, **policy.options) for theta in thetas))


def test_what_takes_a_policy_plays_its_rules(policy, pair, suite):
    """Simulator, trials, Python's functions and pairs of networks agree."""
    assert policy.rules == RULES and policy.sizes.tolist() == [219, 4, 9]
    assert "2 of 219-4-9" in repr(pair) and pair.n_parameters == 2 * len(pair.theta)
    for own in (policy, pair):
        sim = Simulator(suite, slots=own, rules=own)
        assert sim.rules == RULES and sim.action_mask.shape == (2, 9)
        agent = acerl_np.Agent(own.act, suite, slots=own, rules=own)
        for _ in range(5):
            vehicles, _ = own.choose(sim)
            actions = own.act(sim.observation, sim.action_mask)
            assert vehicles.tolist() == (actions // 3).tolist()
            assert np.array_equal(agent.choose(sim), own.choose(sim))
            sim.step(actions)
        if JIT:
            one = evaluate_policy(own, suite, trials=1, greedy=True)
            assert list_differences(evaluate_policy(agent, suite, trials=1), one) == []
    index = acerl_np.IndexPolicy.of_weights(approach=-1.0)
    assert Simulator(suite, rules=index).rules == PAPER_RULES
    assert Lookahead("STD", history=suite).rules == PAPER_RULES


@pytest.mark.oracle
def test_a_training_plays_its_rules_and_goes_on_with_them(suite, tmp_path):
    """With next to no noise the members play as theta does, by their own draws."""
    record = suite[0].from_rows("short", suite[0].layout, suite[0].rows()[:6])
    config = Config(**SMALL, noise_std=1e-9)
    trainer = ACERL([record], config, seed=3, threads=1)
    policy, played = trainer.policy, []
    for member in range(2):
        key = naive.stream_key(3, naive.ACTION, 0, member)
        sim = Simulator(record, policy=policy)
        while not sim.done[0]:
            mask = sim.action_mask[0]
            logits = naive.forward(policy.sizes, policy.theta, sim.observation[0])
            uniform = naive.uniform(key, sim.state.episode["n_decisions"][0], 0)
            sim.step([naive.invert(naive.masked_softmax(logits, mask), uniform)])
        played.append(sim.makespan[0])
    assert -trainer.step().return_mean == np.mean(played)
    trainer.save(tmp_path / "run.npz")
    trainer.step()
    resumed = ACERL.resume(tmp_path / "run.npz", threads=1)
    resumed.step()
    assert resumed.policy.rules == RULES
    assert resumed.policy.theta.tobytes() == trainer.policy.theta.tobytes()


def test_a_file_keeps_the_rules(policy, pair, suite, tmp_path):
    path, bad = tmp_path / "p.npz", (["LWT", "AHP", "SPT"], ["LWT", "AHP", "LWT"], [])
    rows = [("rules", np.array(x, np.str_), "rules: read .*; expected some of") for x in bad]
    for own in (policy, pair):
        own.save(path)
        assert acerl_np.load_policy(path).rules == RULES
        check_damaged(path, rows, acerl_np.load_policy)
        own.save(path)
    bad = pair.to_arrays()["vehicle_theta"][:-1], np.array(["x"]), None
    rows = [("vehicle_theta", value, "theta: read ") for value in bad]
    check_damaged(path, rows, acerl_np.load_policy)
    ahead = Lookahead.from_arrays(Lookahead(policy, history=suite, futures=1).to_arrays())
    assert ahead.rules == ahead.policy.rules == RULES


def test_other_rules_are_refused_in_one_line(policy, suite):
    known = "FCFS, EDD, NVF, STD, LWT, AHP"
    expected = f"^rules: read .*; expected some of {known}, each at most once$"
    for rules in (["SPT"], ["STD", "STD"], [], "STD", None, 3, ["std"], [["STD"]]):
        for error, make in (
            (acerl_np.InputError, lambda rules: Config(rules=rules)),
            (acerl_np.InputError, lambda rules: Simulator(suite, rules=rules)),
            (PolicyError, lambda rules: Policy(policy.theta, **{**policy.options, "rules": rules})),
        ):
            with pytest.raises(error, match=expected):
                make(rules)


@pytest.mark.compiles
def test_a_dispatcher_names_and_explains_them(policy, suite):
    def make(own, **options):
        dispatcher = acerl_np.Dispatcher(suite[0].layout, own, task_ids=["a", "b", "c"], **options)
        for k, task in enumerate("abc"):
            dispatcher.feed(
                acerl_np.TaskArrived(float(k), task, "st1", f"st{k + 4}", 400.0 - 50.0 * k)
            )
        return dispatcher

    dispatcher = make(policy, explain=True)
    observation, mask = dispatcher.observe(5.0)
    assert mask.tolist() == [True] * 9
    v, rule = divmod(int(policy.act(observation, mask)[0]), 3)
    first = dispatcher.decide(5.0)[0]
    assert (first.vehicle, first.rule) == (f"v{v}", RULES[rule])
    reason = first.reason
    assert reason.by == f"network, {first.rule}"
    possible = {(f"v{v}", rule) for v in range(3) for rule in RULES}
    assert {(x.vehicle, x.rule) for x in reason.options} <= possible
    best = max(reason.options, key=lambda item: item.value)
    assert (best.vehicle, best.task, best.rule) == first[:3]
    other = make(acerl_np.Agent(policy.act, suite, slots=policy, rules=policy))
    assert other.decide(5.0)[0][:2] == first[:2]


@needs_jit
def test_environments_and_rivals_take_them(suite):
    gym = pytest.importorskip("acerl_np.gym")
    assert gym.DMHEnv(suite, rules=RULES).action_space.n == 9
    envs = gym.DMHVectorEnv(2, suite, rules=RULES)
    assert envs.reset(seed=0)[1]["action_mask"].shape == (2, 9)
    for name in ("ppo", "mappo"):
        learned = rivals.train(
            name, suite[:1], steps=20, settings={"rules": RULES, "hidden": (3,), "look_every": 0}
        )
        assert learned.rules == RULES and learned.n_actions == 9


@pytest.mark.long
def test_dispatchers_and_lookahead_take_a_pair(pair, suite):
    dispatcher = acerl_np.Dispatcher(suite[0].layout, pair, task_ids=["t"])
    dispatcher.feed(acerl_np.TaskArrived(0.0, "t", "st1", "st2", 100.0))
    assert [item.task for item in dispatcher.decide(0.0)] == ["t"]
    ahead = Lookahead(pair, history=suite, futures=2)
    assert np.isfinite(evaluate_policy(ahead, suite[:1], trials=1).makespan).all()


def test_each_agent_draws_by_its_own_softmax(pair, suite):
    sim, n = Simulator(suite[:1], slots=pair, rules=pair), 4_000

    def draw(own, seed, mask):
        rows = (np.repeat(x, n, axis=0) for x in (sim.observation, mask))
        return own.act(*rows, rng=np.random.default_rng(seed))

    drawn = draw(pair, 0, sim.action_mask)
    counts = np.bincount(drawn // 3, minlength=3)
    first = draw(pair.vehicle, 2, np.arange(9)[np.newaxis] < 3)  # all vehicles are idle
    assert counts / n == pytest.approx(np.bincount(first, minlength=3) / n, abs=0.03)
    assert counts.max() < n
    v = counts.argmax()
    alone = draw(pair.rule, 1, sim.action_mask & (np.arange(9) // 3 == v))
    own = np.bincount(drawn[drawn // 3 == v], minlength=9) / counts[v]
    assert own == pytest.approx(np.bincount(alone, minlength=9) / n, abs=0.1)
    # By default it draws in trials, too.
    assert len(np.unique(evaluate_policy(pair, suite, trials=8).makespan)) > 4


def test_what_a_pair_refuses(policy, pair):
    sizes, own = policy.sizes.tolist(), {**policy.options, "hidden": (5,)}
    other = Policy(initial_parameters([sizes[0], 5, sizes[-1]], 0), **own)
    with pytest.raises(PolicyError, match="agents: two networks of different sizes"):
        AgentPair(other, pair.rule)
    for observation, mask in ((np.zeros(219), np.ones(8, bool)), (np.zeros(3), np.ones(9, bool))):
        with pytest.raises(PolicyError, match="shape"):
            pair.act(observation, mask)
