"""Ranking: intrinsic stochastic ranking against the slow sort, its alternatives, the penalty."""

from unittest import mock

import naive_evolution as naive
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from searches import JIT
from tables_and_refusals import list_unrefused

from acerl_np.evolution import Ranker, penalise, rank_utilities, ranking
from acerl_np.kernels.learning.update import Noise

LIMIT = 50.0
RANKINGS = ("isr", "cf", "r", "f", "penalty")
rankings, shapings = st.sampled_from(RANKINGS), st.sampled_from(["standardised", "rank"])

# Whole and quarter numbers: ties and costs exactly at the limit are common.
quarter_costs = st.integers(160, 240).map(lambda k: k / 4)
quarter_returns = st.integers(-40, 0).map(lambda k: k / 4)
ids = st.integers(0, 3) | st.just(2**31 - 1)
probabilities = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
seeds = st.integers(0, 2**63 - 1)
generations = st.integers(0, 2**40)


def columns(rows):
    return [np.array(column) for column in zip(*rows, strict=True)]


# Intrinsic stochastic ranking


@pytest.mark.oracle
@settings(max_examples=150 if JIT else 30)
@given(
    st.lists(st.tuples(quarter_returns, quarter_costs, ids), min_size=1, max_size=20),
    *(st.just("isr") | rankings, shapings, probabilities, seeds, generations),
)
@example(
    [(-1.0, 60.0, 7), (-2.0, 55.0, 7), (0.0, 70.0, 7), (-1.0, 50.0, 7)],
    *("isr", "rank", 0.45, 2**63 - 1, 2**40),
)
def test_utilities_equal_the_slow_ones(rows, ranking, shaping, p_f, seed, generation):
    returns, costs, own = columns(rows)
    options = {"ranking": ranking, "shaping": shaping, "p_f": p_f, "cost_limit": LIMIT}
    options |= {"seed": seed, "generation": generation}
    utilities = rank_utilities(returns, costs, own, **options)
    expected = naive.utilities(returns, costs, own.tolist(), **options)
    assert utilities.shape == (len(rows),)
    np.testing.assert_allclose(utilities, expected, rtol=1e-9, atol=1e-9)


@given(st.lists(st.tuples(quarter_returns, quarter_costs), min_size=1, max_size=20), seeds)
def test_sweeps_in_parts_are_the_same(rows, seed):
    """Ctrl-C is heard between them."""
    returns, costs = columns(rows)
    given = returns, costs, np.zeros(len(rows), np.int64)
    whole = rank_utilities(*given, seed=seed)
    with mock.patch.object(ranking, "MOST_COMPARISONS", 2 * len(rows)):
        assert (rank_utilities(*given, seed=seed) == whole).all()


def test_what_no_draw_can_change_is_not_sorted_on():
    """Of so many members in their order: all sweeps would take hours."""
    n = 300_000
    returns, costs = -np.arange(n, dtype=float), np.arange(n) / n
    for limit, p_f in ((2.0, 0.5), (0.0, 0.5), (0.0, 0.0), (0.0, 1.0)):
        options = {"cost_limit": limit, "p_f": p_f, "shaping": "rank"}
        found = rank_utilities(returns, costs, np.zeros(n, np.int64), **options)
        assert (found == np.arange(n, 0, -1)).all()


# Several episodes a member


@st.composite
def populations(draw):
    """Returns, costs and records of members that played K episodes each, of common records or their own."""
    n, each = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    records = st.lists(st.integers(0, 3), min_size=each, max_size=each)
    common = draw(records)
    rows = draw(st.just([common] * n) | st.lists(records, min_size=n, max_size=n))
    shape = {"min_size": n * each, "max_size": n * each}
    told = [draw(st.lists(each_of, **shape)) for each_of in (quarter_returns, quarter_costs)]
    return tuple(np.array(column).reshape(n, each) for column in (*told, rows))


@pytest.mark.oracle
@settings(max_examples=60 if JIT else 15)
@given(populations(), rankings, shapings, probabilities, seeds)
def test_utilities_of_members_with_several_episodes(population, ranking, shaping, p_f, seed):
    noise = Noise(seed, 11, len(population[0]), False)
    options = {"ranking": ranking, "shaping": shaping, "cost_limit": LIMIT, "p_f": p_f}
    found = Ranker(**options).rank_population(*population, noise)
    told = (column.tolist() for column in population)
    expected = naive.population_utilities(*told, **options, seed=seed, generation=11)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_penalties_by_hand():
    """2 a unit beyond 40: mean scores -12.5 - 5, -15 and -13 - 1, the last one's days 3 s apart."""
    ranker = Ranker("penalty", "rank", cost_limit=50.0, penalty=2.0, margin=10.0)
    returns = np.array([[-10.0, -15.0], [-20.0, -10.0], [-11.0, -15.0]])
    costs = np.array([[45.0, 40.0], [40.0, 0.0], [39.0, 41.0]])
    rows, noise = np.array([[0, 1]] * 3), Noise(0, 0, 3, False)
    assert ranker.rank_population(returns, costs, rows, noise).tolist() == [-17.5, -15.0, -14.0]
    one = ranker.rank_population(returns[:, :1], costs[:, :1], rows[:, :1], noise)
    assert one.tolist() == [-20.0, -20.0, -11.0]
    for bad in (np.nan, -np.inf):  # who failed once of several times is the worst
        returns = np.array([[-1.0, bad], [-500.0, -900.0], [-3.0, -4.0]])
        ranked = Ranker("penalty").rank_population(returns, np.abs(returns), rows, noise)
        assert ranked.argmin() == 0 and ranked.argmax() == 2


FAILURES = [np.nan, np.inf, -np.inf]


@settings(max_examples=100 if JIT else 20)
@given(
    st.lists(
        st.tuples(
            st.floats(-3000, -1000) | st.sampled_from(FAILURES),
            st.floats(0, 100) | st.sampled_from(FAILURES),
            st.integers(0, 2),
        ),
        max_size=12,
    ),
    *(rankings, shapings, seeds),
)
@example([(np.nan, np.nan, 0), (-10.0, 60.0, 0)], "isr", "standardised", 0)
@example([], "penalty", "rank", 0)
def test_members_that_failed_rank_worst_and_alike(rows, ranking, shaping, seed):
    returns, costs, ids = np.array(rows, float).reshape(-1, 3).T
    ids = ids.astype(np.int32)
    options = {"ranking": ranking, "shaping": shaping, "seed": seed}
    utilities = rank_utilities(returns, costs, ids, **options)
    assert np.isfinite(utilities).all()
    failed = ~np.isfinite(returns) | ~np.isfinite(costs)
    for k in np.unique(ids):
        worst, others = utilities[failed & (ids == k)], utilities[~failed & (ids == k)]
        assert len(set(worst.tolist())) <= 1
        assert not len(worst) or not len(others) or worst[0] < others.min()
    # How they failed does not matter, and the others are scored as if they had not played.
    instead = np.where(failed, [[np.nan], [0.0]], [returns, costs])
    again = rank_utilities(*instead, ids, **options)
    assert again.tobytes() == utilities.tobytes()
    if shaping == "rank":
        alone = rank_utilities(returns[~failed], costs[~failed], ids[~failed], **options)
        for k in np.unique(ids):
            own = alone[ids[~failed] == k], utilities[~failed & (ids == k)]
            np.testing.assert_allclose(*map(np.diff, own), atol=1e-9)


# Alternatives and shaping


@pytest.mark.parametrize("ranking", ["cf", "f"])
@pytest.mark.parametrize("value", [-0.1, 1e9 / 3, 0.0])
def test_equal_members_get_zero_whatever_the_rounding(ranking, value):
    """The mean of n equal numbers may differ from them by a rounding error."""
    for n in range(1, 30):
        returns, costs, ids = [value] * n, [0.1] * n, [0] * n
        assert not rank_utilities(returns, costs, ids, ranking=ranking).any()
        others = rank_utilities(
            [*returns, -1.0, -2.0], [*costs, 0.0, 0.0], [*ids, 1, 1], ranking=ranking
        )
        assert not others[:n].any()
        assert others[n] == -others[n + 1] > 0


def test_unusable_arguments_are_refused():
    shapes = ([1.0], [1.0, 2.0], [0]), ([1.0], [1.0], [0, 0]), ([[1.0]], [[1.0]], [[0]])
    cases = [(([1.0], [1.0], [0.5]), "whole numbers"), *((told, "shapes") for told in shapes)]
    assert list_unrefused(lambda given: rank_utilities(*given), cases) == []


# Penalty


@given(
    st.lists(st.floats(0, 1e6) | quarter_costs, min_size=2, max_size=8),
    st.sampled_from([0.0, LIMIT]),
)
@example([LIMIT, np.nextafter(LIMIT, 100), np.nextafter(LIMIT, 0)], LIMIT)
def test_penalty_is_zero_exactly_when_feasible_and_never_falls(costs, limit):
    # The square of a violation below 1e-160 s is no number any more.
    assume(all(cost <= limit or cost - limit > 1e-150 for cost in costs))
    phi = penalise(costs, limit)
    for cost, value in zip(costs, phi, strict=True):
        assert value == naive.penalty(cost, limit)
        assert (value == 0) == (cost <= limit)
    assert (np.diff(phi[np.argsort(costs)]) >= 0).all()
