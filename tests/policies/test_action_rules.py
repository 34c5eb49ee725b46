"""Rules as actions of a network: other ones than the paper's, wherever a network is asked."""

from __future__ import annotations

import naive_evolution as naive
import numba
import numpy as np
import pytest

import acerl_np
from acerl_np import (
    ACERL,
    Agent,
    Config,
    Dispatcher,
    InputError,
    Lookahead,
    Policy,
    PolicyError,
    Simulator,
    TaskArrived,
    evaluate_policy,
    load_policy,
    load_suite,
)
from acerl_np.kernels.state import EPISODE_N_DECISIONS
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.problem.rules import PAPER_RULES
from acerl_np.support.files import read_arrays, write_arrays

RULES = ("LWT", "AHP", "EDD")
SMALL = {"rules": RULES, "hidden": (4,), "population": 2, "generations": 2, "curve_every": 0}
needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="whole episodes")


@pytest.fixture(scope="module")
def suite():
    return load_suite("dmh-train")[:2]


@pytest.fixture(scope="module")
def policy(suite):
    return ACERL(suite, Config(**SMALL), threads=1).policy


def test_what_takes_a_policy_plays_its_rules(policy, suite):
    """Simulator, trials, Python's functions and pairs of networks agree."""
    assert policy.rules == RULES and policy.sizes.tolist() == [219, 4, 9]
    for own in (policy, AgentPair(policy, policy)):
        sim = Simulator(suite, slots=own, rules=own)
        assert sim.rules == RULES and sim.action_mask.shape == (2, 9)
        agent = Agent(own.act, suite, slots=own, rules=own)
        for _ in range(5):
            vehicles, _ = own.choose(sim)
            actions = own.act(sim.observation, sim.action_mask)
            assert vehicles.tolist() == (actions // 3).tolist()
            assert np.array_equal(agent.choose(sim), own.choose(sim))
            sim.step(actions)
        if not numba.config.DISABLE_JIT:
            one = evaluate_policy(own, suite, trials=1, greedy=True)
            assert (
                evaluate_policy(agent, suite, trials=1).makespan.tolist() == one.makespan.tolist()
            )
    static = acerl_np.StaticPlan(("v0", "v1", "v2"), dict.fromkeys(("v0", "v1", "v2"), "STD"))
    for own in (acerl_np.IndexPolicy.of_weights(approach=-1.0), static):
        assert Simulator(suite, rules=own).rules == PAPER_RULES
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
        sim = Simulator(record, scaling=policy.scaling, slots=policy, rules=policy)
        while not sim.done[0]:
            mask = sim.action_mask[0]
            logits = naive.forward(policy.sizes, policy.theta, sim.observation[0])
            uniform = naive.uniform(key, sim.state.episode[0, EPISODE_N_DECISIONS], 0)
            sim.step([naive.invert(naive.masked_softmax(logits, mask), uniform)])
        played.append(sim.makespan[0])
    assert -trainer.step().return_mean == np.mean(played)
    trainer.save(tmp_path / "run.npz")
    trainer.step()
    resumed = ACERL.resume(tmp_path / "run.npz", threads=1)
    resumed.step()
    assert resumed.policy.rules == RULES
    assert resumed.policy.theta.tobytes() == trainer.policy.theta.tobytes()


def test_a_file_keeps_the_rules(policy, suite, tmp_path):
    for own in (policy, AgentPair(policy, policy)):
        own.save(tmp_path / "p.npz")
        assert load_policy(tmp_path / "p.npz").rules == RULES
        arrays = read_arrays(tmp_path / "p.npz", PolicyError)
        for bad in (["LWT", "AHP", "SPT"], ["LWT", "AHP", "LWT"], []):
            write_arrays(tmp_path / "bad.npz", {**arrays, "rules": np.array(bad, np.str_)})
            with pytest.raises(PolicyError, match=r"bad\.npz: rules: read .*; expected some of"):
                load_policy(tmp_path / "bad.npz")
    ahead = Lookahead.from_arrays(Lookahead(policy, history=suite, futures=1).to_arrays())
    assert ahead.rules == ahead.policy.rules == RULES


def test_other_rules_are_refused_in_one_line(policy, suite):
    expected = (
        r"^rules: read .*; expected some of FCFS, EDD, NVF, STD, LWT, AHP, each at most once$"
    )
    for rules in (["SPT"], ["STD", "STD"], [], "STD", None, 3, ["std"], [["STD"]]):
        for error, make in (
            (InputError, lambda rules: Config(rules=rules)),
            (InputError, lambda rules: Simulator(suite, rules=rules)),
            (PolicyError, lambda rules: Policy(policy.theta, **{**policy.options, "rules": rules})),
        ):
            with pytest.raises(error, match=expected):
                make(rules)


def test_a_dispatcher_names_and_explains_them(policy, suite):
    def make(own, **options):
        dispatcher = Dispatcher(suite[0].layout, own, task_ids=["a", "b", "c"], **options)
        for k, task in enumerate("abc"):
            dispatcher.feed(TaskArrived(float(k), task, "st1", f"st{k + 4}", 400.0 - 50.0 * k))
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
    other = make(Agent(policy.act, suite, slots=policy, rules=policy))
    assert other.decide(5.0)[0][:2] == first[:2]


@needs_jit
def test_environments_and_rivals_take_them(suite):
    gym = pytest.importorskip("acerl_np.gym")
    assert gym.DMHEnv(suite, rules=RULES).action_space.n == 9
    envs = gym.DMHVectorEnv(2, suite, rules=RULES)
    assert envs.reset(seed=0)[1]["action_mask"].shape == (2, 9)
    for name in ("ppo", "mappo"):
        learned = acerl_np.rivals.train(
            name, suite[:1], steps=20, settings={"rules": RULES, "hidden": (3,), "look_every": 0}
        )
        assert learned.rules == RULES and learned.n_actions == 9
