"""Static plans: the best is found, plays as the slow simulator plays it, and is small for its objective."""

import numpy as np
import pytest
from episodes import play_static
from machine import needs_jit
from worlds import change, move

import acerl_np
from acerl_np import evaluate_policy
from acerl_np.policies.static import PlanPolicy, PositionPlan, find_static
from acerl_np.problem.goal import Goal
from acerl_np.problem.tables import build_problem


@pytest.fixture(scope="module")
def suite():
    return acerl_np.load_suite("dmh-train")


def test_a_plan_is_played_as_it_was_found(suite):
    plans = [PositionPlan((2, 0, 1), (2, 1, 3)), PositionPlan((1, 0, 2), (0, 3, 1))]
    direct = play_static(plans, suite[:2])
    for k, plan in enumerate(plans):
        found = evaluate_policy(PlanPolicy(plan), suite[:2], trials=2, threads=1)
        assert found.makespan.tolist() == [[x, x] for x in direct[0][k].tolist()]
        assert found.tardiness[:, 0].tolist() == direct[1][k].tolist()
        assert found.decisions == 2 * direct[2][k].sum()
    late = acerl_np.Instance.from_rows(
        "late", suite[0].layout.with_commitment("pickup"), suite[0].rows()
    )
    with pytest.raises(acerl_np.PolicyError, match="expected 'assignment'"):
        evaluate_policy(PlanPolicy(plans[0]), late)


@needs_jit
@pytest.mark.parametrize("objective", ["late", "waiting"])
def test_the_best_plan_is_that_of_its_objective(suite, objective):
    record = acerl_np.Instance.from_rows("few", suite[0].layout, suite[0].rows()[:14])

    def measure(plan):
        trials = evaluate_policy(PlanPolicy(plan), record, trials=1, objective=objective)
        return trials.value[0, 0]

    best, rng = find_static(record, goal=Goal(objective)), np.random.default_rng(0)
    found = [
        measure(PositionPlan(tuple(rng.permutation(3)), tuple(rng.integers(0, 4, 3))))
        for _ in range(40)
    ]
    assert measure(best.plan) == best.value[0] <= min(found) < max(found)


@needs_jit
def test_the_best_plan_is_found(suite):
    best = find_static(suite)
    assert best.candidates == 384
    assert best.plan == PositionPlan(order=(1, 2, 0), rules=(3, 3, 3))
    assert best.makespan.mean() == 1900.375
    assert (best.tardiness < 50.0).sum() == 5
    best = find_static(suite, within_limit=True)
    assert best.makespan.mean() == 1961.125
    assert (best.tardiness < 50.0).all()
    assert best.plan.describe() == "v1 EDD, v0 EDD, v2 EDD"


def test_a_plan_within_the_limit_may_not_be_found(suite):
    """As it leaves an episode unfinished, or its tardiness is never below the limit."""
    for options in ({"horizon": 100.0}, {"goal": Goal(cost_limit=0.0)}):
        assert find_static(suite[0], within_limit=True, **options) is None


@needs_jit
def test_a_large_fleet_is_searched_locally(suite, monkeypatch):
    vehicles = [{"id": f"v{k}", "start": "carport"} for k in range(6)]
    instance = move(suite[0], change(suite[0].layout, vehicles=vehicles))
    built = []

    def build(*arguments, **options):
        built.append(arguments)
        return build_problem(*arguments, **options)

    monkeypatch.setattr("acerl_np.policies.static.build_problem", build)
    found = find_static(instance, seed=3)
    assert found.candidates > 4
    assert len(built) == 1  # on a large floor tables take longer than episodes
    monkeypatch.undo()
    assert find_static(instance, seed=3).plan == found.plan
    uniform = [PositionPlan(tuple(range(6)), (rule,) * 6) for rule in range(4)]
    assert found.makespan[0] <= play_static(uniform, [instance])[0].min()
