"""Trainings where vehicles wait, charge and are called back: options, files, refusals, the same bytes."""

from dataclasses import replace

import numpy as np
import pytest
from plain_policies import Nearest, first_legal
from trainings import check_played

import acerl_np
from acerl_np import ACERL, Config, IndexPolicy, Lookahead, evaluate_policy
from acerl_np.evaluation.hindsight import find_hindsight
from acerl_np.evaluation.judge import judge
from acerl_np.evaluation.trials import Playing
from acerl_np.policies.index import CHARGING, ENERGY, NAMES, RECALLING, WAITING, move_thresholds
from acerl_np.problem.instance import commit_instances
from acerl_np.problem.interface import find_scaling
from acerl_np.problem.parts import Battery, Charger
from acerl_np.problem.tables import build_problem
from acerl_np.support.errors import ConfigError, InputError, PolicyError

BATTERY = Battery(
    capacity=3_600_000, start=2_000_000, idle=100, empty=300, loaded=700, charge=1700,
    critical=720_000, resume=1_620_000, good=2_160_000, full=3_420_000, tow=1800,
)  # fmt: skip

VEHICLES = {
    "as it is": ({}, (*NAMES, *ENERGY)),
    "called back": ({"commitment": "pickup"}, (*NAMES, *RECALLING, *ENERGY)),
    "waiting": ({"may_wait": True}, (*NAMES, *ENERGY, *WAITING)),
    "tuned": ({"tune_charging": True}, (*NAMES, *ENERGY, *CHARGING)),
    "all": (
        {"commitment": "pickup", "max_changes": 3, "may_wait": True, "tune_charging": True},
        (*NAMES, *RECALLING, *ENERGY, *WAITING, *CHARGING),
    ),
}


@pytest.fixture(scope="module")
def records():
    layout = acerl_np.load_layout("supply-loop")
    layout = replace(layout, chargers=(Charger("rack-1", 1), Charger("park", 1)), battery=BATTERY)
    return [
        acerl_np.generate_shift(layout, hours=1, scale=0.4, seed=3, index=k, name=f"s{k}")
        for k in range(3)
    ]


@pytest.mark.parametrize("kind", VEHICLES)
def test_what_is_trained_plays_as_its_file(kind, records, tmp_path):
    options, features = VEHICLES[kind]
    trainer = ACERL(records, Config.preset("best", generations=2, **options), seed=1, threads=2)
    trainer.run()
    policy = trainer.policy
    assert isinstance(policy, IndexPolicy) and policy.features == features
    policy.save(tmp_path / "policy.npz")
    other = acerl_np.load_policy(tmp_path / "policy.npz")
    assert other.commitment == options.get("commitment")
    assert other.max_changes == options.get("max_changes", 8)
    mine, its = (evaluate_policy(x, records, trials=1) for x in (policy, other))
    assert mine.value.tobytes() == its.value.tobytes() and not mine.unfinished
    if kind == "called back":
        # It plays so on floors that do not say it; its own number of changes goes before the floor's.
        floors = commit_instances(records, "pickup", 1)
        assert evaluate_policy(policy, floors, trials=1).value.tolist() == mine.value.tolist()
        early = IndexPolicy(policy.theta, features=features)
        assert evaluate_policy(early, records, trials=1).value.tolist() != mine.value.tolist()


def test_features_that_are_named_stay(records):
    config = Config.preset("best", features=["approach", "level"], commitment="pickup")
    assert config.resolve(records).features == ("approach", "level")
    bare = [replace(item, layout=acerl_np.load_layout("supply-loop")) for item in records]
    assert Config.preset("best").resolve(bare).features is None
    with pytest.raises(ConfigError, match="tune_charging: read True; expected False, as no"):
        Config.preset("best", tune_charging=True).resolve(bare)


def test_thresholds_move_in_their_order(records):
    problem, rng = build_problem(records), np.random.default_rng(0)
    span = BATTERY.capacity - BATTERY.critical
    for _ in range(20):
        theta = rng.normal(scale=rng.choice([0.1, 1.0, 10.0]), size=3)
        full, good, resume = (
            round(getattr(BATTERY, name) + 0.2 * x * span)
            for name, x in zip(("full", "good", "resume"), theta[::-1], strict=True)
        )
        full = min(BATTERY.capacity, max(BATTERY.full, full))
        good = min(full, max(BATTERY.critical, good))
        resume = min(good, max(BATTERY.critical, resume))
        moved = move_thresholds(problem, theta, CHARGING).battery[0, 0]
        fields = ["critical", "resume", "good", "full"]
        assert [moved[name] for name in fields] == [BATTERY.critical, resume, good, full]
    assert (move_thresholds(problem, np.zeros(3), CHARGING).battery == problem.battery).all()


def test_variants_of_records_keep_their_batteries(records):
    """Arrivals are moved in a training; batteries, chargers and call-backs stay."""
    options = {"generations": 1, "commitment": "pickup"}
    trainer = ACERL(records, Config.preset("best", **options), seed=0)
    dealt = trainer._records.assign(trainer.sampler, trainer.search.noise())
    assert (dealt.problem.battery[0] == build_problem(records).battery[0]).all()
    assert (dealt.problem.station[0] == build_problem(records).station[0]).all()
    assert dealt.problem.instance["max_changes"][0] == 8


def test_who_cannot_call_back_refuses(records):
    late = commit_instances(records, "pickup", 8)
    network = ACERL(records, Config(generations=0, hidden=(4,)), seed=0).policy
    dmh = acerl_np.load_suite("dmh-train")
    dmh = commit_instances(dmh, "pickup", 8)
    for policy, played in [("STD", late), ("MIX", late), (network, late)]:
        with pytest.raises(PolicyError, match=r"lets tasks change hands.*expected 'assignment'"):
            evaluate_policy(policy, played, trials=1)
    for call, kind, line in (
        (lambda: find_hindsight(dmh[0]), InputError, "expected commitment='assignment'"),
        (
            lambda: Config(commitment="pickup"),
            *(ConfigError, "commitment: read pickup; expected assignment with form"),
        ),
        (
            lambda: ACERL(late, Config.preset("best"), seed=0),
            *(ConfigError, "commitment: read assignment; expected that of the floor"),
        ),
    ):
        with pytest.raises(kind, match=line):
            call()
    # With batteries alone all can play.
    assert not evaluate_policy("STD", records, trials=1).unfinished


def test_a_policy_that_calls_back_is_judged_beside_baselines_that_do(records):
    policy = IndexPolicy([-1.0, 1.0], features=["approach", "current"], commitment="pickup")
    verdict = judge(policy, records[:2], records[2:], Playing(1))
    late = commit_instances(records[2:], "pickup", 8)
    beside = evaluate_policy(verdict.rows[1].label, late, trials=1)
    assert verdict.rows[1].mean("waiting") == pytest.approx(beside.waiting.mean())


WEIGHTS = {"approach": -1.0, "n_late": -0.4, "current": 0.3}


def make_network(records):
    """One that has learned on larger fleets, too, with rules and slots of its own."""
    network = {"hidden": (4,), "task_slots": 40, "n_vehicles": 9, "smallest": (1, 1)}
    network |= {"rules": ("LWT", "EDD"), "slots": "task", "task_ids": records[0].tasks[:7]}
    n = (40 * 4 + 9 * 43 + 1) * 4 + 5 * 18
    theta = np.random.default_rng(0).normal(size=n)
    return acerl_np.Policy(theta, scaling=2.0 * find_scaling(records), **network)


PLAYERS = {
    "called back": lambda _: IndexPolicy(
        [*WEIGHTS.values()], features=[*WEIGHTS], commitment="pickup"
    ),
    "levels": lambda _: IndexPolicy.of_weights(**WEIGHTS, full=0.5, good=3.0, resume=-1.0),
    "network": make_network,
    "lookahead": lambda records: Lookahead(PLAYERS["called back"](records), futures=0),
    "own": lambda _: Nearest(),
    "agent": lambda records: acerl_np.Agent(first_legal, records, n_vehicles=9, rules=("EDD",)),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name == "lookahead" else ()) for name in PLAYERS],
)
def test_a_simulator_with_a_policy_plays_as_it_is_judged(name, records):
    if name == "network":  # where it waits and charges, tests of kernels play it
        records = [replace(item, layout=acerl_np.load_layout("supply-loop")) for item in records]
    policy = PLAYERS[name](records)
    check_played(policy, records, trials=1)
    if name in ("called back", "levels", "lookahead"):
        plain = acerl_np.Simulator(records)
        what = "level of charging" if name == "levels" else "commitment"
        fault = rf"^simulator: has another {what} than .* Simulator\(instances, policy=policy\), or"
        with pytest.raises(PolicyError, match=fault):
            policy.choose(plain)
    if name == "network":  # what it is shown is what `act` takes
        sim = acerl_np.Simulator(records, policy=policy)
        sim.step(policy.act(sim.observation, sim.action_mask))


def test_a_simulators_policy_goes_alone(records):
    policy = IndexPolicy.of_weights(approach=-1.0)
    given = {"slots": "task", "rules": ("EDD",), "task_slots": 9, "n_vehicles": 9}
    for name, value in {**given, "scaling": find_scaling(records)}.items():
        with pytest.raises(InputError, match=f"^{name}: read .*; expected none beside policy="):
            acerl_np.Simulator(records, policy=policy, **{name: value})
    for other in ("EDD", Nearest, 3):
        with pytest.raises(InputError, match=r"^policy: read .*; expected a policy, or"):
            acerl_np.Simulator(records, policy=other)
    narrow = ACERL(records, Config(population=2, hidden=(2,), slots="pool")).policy
    with pytest.raises(PolicyError, match="this policy was trained for"):
        acerl_np.Simulator(acerl_np.load_instance("DMH-01"), policy=narrow)
