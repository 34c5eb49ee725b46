"""Rules and static plans: recorded expectations, the oracle's episodes, the figures of DMH."""

from __future__ import annotations

import csv
from pathlib import Path

import numba
import numpy as np
import pytest
from episodes import play_static
from naive import NaiveEpisode

import acerl_np
from acerl_np.kernels.random import draw_uniform
from acerl_np.policies.rules import POLICY_NAMES, RULES, YARDSTICKS, find_policy_name
from acerl_np.policies.static_search import PositionPlan, find_static
from acerl_np.problem.goal import Goal
from acerl_np.problem.rules import PAPER_RULES
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import stream_keys

EXPECTATIONS = Path(__file__).parents[1] / "data" / "rule-expectations.csv"

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of episodes")


@pytest.fixture(scope="module")
def suite():
    return acerl_np.load_suite("dmh-train")


@needs_jit
@pytest.mark.parametrize("rule", ["FCFS", "EDD", "NVF", "STD", "MIX", "Random"])
def test_rules_meet_the_recorded_expectations(suite, rule):
    trials = acerl_np.evaluate_policy(rule, suite, trials=3000, seed=1)
    with open(EXPECTATIONS, newline="") as file:
        expected = {row["instance"]: row for row in csv.DictReader(file) if row["rule"] == rule}
    assert len(expected) == 8
    for k, instance in enumerate(suite):
        for values, column in (
            (trials.makespan[k], "makespan_mean"),
            (trials.tardiness[k], "tardiness_mean"),
        ):
            # Both means are of 3,000 episodes; the recorded one is rounded to 0.1.
            error = values.std() * np.sqrt(2.0 / 3000) + 0.05
            assert abs(values.mean() - float(expected[instance.name][column])) < 4 * error


def test_a_static_plan_within_the_limit_may_not_be_found(suite):
    """As it leaves an episode unfinished, or its tardiness is never below the limit."""
    for options in ({"horizon": 100.0}, {"goal": Goal(cost_limit=0.0)}):
        assert find_static(suite[0], within_limit=True, **options) is None


@pytest.mark.oracle
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in YARDSTICKS])
def test_rules_play_as_the_oracle_does(suite, rule):
    instance = suite[2]
    trials = acerl_np.evaluate_policy(rule, instance, trials=3, seed=5)
    keys = stream_keys([instance], 3, 5)
    for trial in range(3):
        episode = NaiveEpisode(instance.layout.to_dict(), instance.rows())
        decision = 0
        while not episode.done:
            free = sorted({action // 4 for action, legal in enumerate(episode.mask()) if legal})
            vehicle = free[int(draw_uniform(keys[trial], decision, 0) * len(free))]
            drawn = draw_uniform(keys[trial], decision, 1)
            if rule == "Random":
                position = int(drawn * len(episode.pool))
            elif rule == "MIX":
                position = episode.select(vehicle, PAPER_RULES[int(drawn * 4)])
            else:
                position = episode.select(vehicle, rule)
            episode.assign(vehicle, position)
            decision += 1
        assert trials.makespan[0, trial] == episode.makespan
        assert trials.tardiness[0, trial] == pytest.approx(episode.tardiness, abs=1e-9)


@needs_jit
def test_the_best_static_plans_of_dmh(suite):
    best = find_static(suite)
    assert best.candidates == 384
    assert best.plan == PositionPlan(order=(1, 2, 0), rules=(3, 3, 3))
    assert best.makespan.mean() == 1900.375
    assert (best.tardiness < 50.0).sum() == 5
    within = find_static(suite, within_limit=True)
    assert within.makespan.mean() == 1961.125
    assert within.plan.describe() == "v1 EDD, v0 EDD, v2 EDD"
    assert (within.tardiness < 50.0).all()


@needs_jit
def test_the_decisions_of_static_plans_are_counted(suite):
    """As many as an agent takes that follows the same plan, in every trial."""
    plan = find_static(suite[:2]).plan

    def follow(observation, mask):
        vehicles = np.array([next((v for v in plan.order if row[4 * v]), 0) for row in mask])
        return 4 * vehicles + np.array(plan.rules)[vehicles]

    for trials in (1, 3):
        own = acerl_np.evaluate_policy(follow, suite[:2], trials=trials, threads=1)
        static = acerl_np.evaluate_policy(
            "Static", suite[:2], trials=trials, threads=1, training=suite[:2]
        )
        assert static.decisions == own.decisions > 60 * trials - 1
        assert (static.makespan == own.makespan).all()


@needs_jit
def test_a_large_fleet_is_searched_locally(suite, monkeypatch):
    data = suite[0].layout.to_dict()
    data["vehicles"] = [{"id": f"v{k}", "start": "carport"} for k in range(6)]
    layout = acerl_np.Layout.from_dict(data)
    instance = acerl_np.Instance.from_rows("six", layout, suite[0].rows())
    built = []

    def build(*arguments, **options):
        built.append(arguments)
        return build_problem(*arguments, **options)

    monkeypatch.setattr("acerl_np.policies.static_search.build_problem", build)
    found = find_static(instance, seed=3)
    assert found.candidates > 4
    assert len(built) == 1  # on a large floor tables take longer than episodes
    monkeypatch.undo()
    again = find_static(instance, seed=3)
    assert found.plan == again.plan
    uniform = [PositionPlan(tuple(range(6)), (rule,) * 6) for rule in range(4)]
    assert found.makespan[0] <= play_static(uniform, [instance])[0].min()


def test_names_of_policies_whatever_their_case():
    assert find_policy_name("edd") == "EDD"
    assert "Static" in POLICY_NAMES
    with pytest.raises(acerl_np.PolicyError, match="policy 'SPT': unknown; expected one of FCFS"):
        find_policy_name("SPT")
