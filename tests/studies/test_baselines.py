"""Genetic programming and prioritised levels: formulas as Python would compute them, and what is dealt."""

from types import SimpleNamespace

import numpy as np
import pytest

import acerl_np
from studies import baselines as B
from studies.baselines import FormulaPolicy, PrioritisedLevels, compute, grow, pick_part


def work_out(formula):
    """The value of a formula by recursion, with features 1, 2, 3, ...; and what follows it."""
    (what, value), *rest = formula
    if what <= B.CONSTANT:
        return (value if what == B.CONSTANT else value * (what + 1.0)), rest
    a, rest = work_out(rest)
    b, rest = work_out(rest)
    how = {
        B.ADD: a + b,
        B.SUBTRACT: a - b,
        B.MULTIPLY: a * b,
        B.DIVIDE: a / b if abs(b) > 1e-3 else a,
        B.LARGER: max(a, b),
        B.SMALLER: min(a, b),
    }
    return how[what], rest


def test_formulas_are_computed_and_parted_as_trees():
    random, x = np.random.default_rng(0), np.arange(1.0, 11.0)
    for k in range(200):
        formula = grow(random, 4, full=k % 2 == 0)
        own = np.array(formula)
        seat = SimpleNamespace(
            operation=own[:, 0].astype(int), constant=own[:, 1], stack=np.empty(63)
        )
        expected, rest = work_out(formula)
        assert rest == [] and len(formula) <= B.LONGEST
        assert getattr(compute, "py_func", compute)(seat, x) == pytest.approx(expected)
        assert work_out(formula[pick_part(random, formula)])[1] == []


@pytest.mark.slow
def test_a_formula_plays_as_the_index_policy_that_it_is():
    records = acerl_np.load_suite("dmh-train")
    nearest = FormulaPolicy([(B.SUBTRACT, 0.0), (B.CONSTANT, 0.0), (0, 1.0)])
    same = acerl_np.IndexPolicy.of_weights(approach=-1.0)
    played = [acerl_np.evaluate_policy(x, records, trials=1).makespan for x in (nearest, same)]
    assert np.array_equal(*played)


def test_levels_that_teach_most_are_dealt_most():
    sampler = PrioritisedLevels(4, 0)
    assert sampler.assign(3, 0).tolist() == [0, 1, 2]
    # Three members; on record 1 they differ most.
    sampler.update([0, 1, 2] * 3, [-10.0, -10.0, -10.0, -10.0, -14.0, -11.0, -10.0, -6.0, -9.0])
    assert sampler.assign(3, 1)[0] == 3  # never dealt
    sampler.update([3, 1, 1] * 3, [-10.0, -10.0, -10.0, -10.0, -14.0, np.nan, -10.0, -6.0, -9.0])
    dealt = np.bincount(sampler.assign(2000, 2), minlength=4) / 2000
    # 0.9 of the share by rank, 0.1 by staleness: records 0 and 2 are a round older than 1 and 3.
    assert dealt[1] == pytest.approx(0.9, abs=0.03)
    assert dealt[[0, 2]] == pytest.approx(0.05, abs=0.02) and dealt[3] < 0.02
