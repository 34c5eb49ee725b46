"""Instance samplers against growing buffers, their order, their state, and their modes."""

import naive_evolution as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import state_bytes
from tables_and_refusals import list_unrefused

from acerl_np.evolution import make_sampler

MODES = ("ais", "uniform", "random", "single")

seeds = st.integers(0, 2**63 - 1)
rewards = st.integers(-8000, -4000).map(lambda k: k / 4) | st.sampled_from(
    [np.nan, np.inf, -np.inf]
)
advantages = st.sampled_from(["paper", "released"])


@st.composite
def histories(draw):
    """The number of instances, and (instance, return) of every member of some generations."""
    n = draw(st.integers(1, 6))
    episode = st.tuples(st.integers(0, n - 1), rewards)
    generations = draw(st.lists(st.lists(episode, min_size=1, max_size=12), max_size=5))
    return n, generations


def replay(history, **options):
    """The fast sampler and the slow buffers, both after the same generations."""
    n, generations = history
    sampler = make_sampler("ais", n, **options)
    buffers = naive.RewardBuffers(n)
    for episodes in generations:
        ids, returns = zip(*episodes, strict=True)
        sampler.update(ids, returns)
        buffers.update(ids, returns)
    return sampler, buffers


# Adaptive sampler


@given(histories(), st.sampled_from([0.0, 1.0, 2.5]), advantages)
def test_probabilities_equal_those_of_full_buffers(history, alpha_u, advantage):
    sampler, buffers = replay(history, alpha_u=alpha_u, advantage=advantage)
    assert sampler.count.tolist() == buffers.count
    if not any(buffers.count):
        assert not sampler.probabilities().any()
        return
    u = [buffers.metric(i, advantage) for i in range(sampler.n_instances)]
    np.testing.assert_allclose(sampler.metric(), u, rtol=1e-9, atol=1e-9)
    probabilities = sampler.probabilities()
    expected = buffers.probabilities(alpha_u, advantage)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-9, atol=1e-12)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((probabilities == 0) == (sampler.count == 0)).all()


@pytest.mark.oracle
@given(histories(), seeds, st.integers(0, 2**31), st.integers(1, 20))
def test_instances_dealt_equal_the_slow_ones(history, seed, generation, n_groups):
    sampler, buffers = replay(history, seed=seed)
    dealt = sampler.assign(n_groups, generation)
    assert dealt.dtype == np.int64
    assert dealt.tolist() == buffers.assign(n_groups, seed, generation)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_an_untried_instance_is_dealt_first_and_never_drawn(missing):
    sampler = make_sampler("ais", 3)
    first, last = tried = [k for k in range(3) if k != missing]
    sampler.update(tried * 2, [-1.0, -2.0, -3.0, -4.0])
    for draw, drawn in ((0.0, first), (np.nextafter(1.0, 0.0), last)):
        sampler.draw = lambda n, generation, draw=draw: np.full(n, draw)
        assert sampler.assign(4, 0).tolist() == [missing, drawn, drawn, drawn]


# Modes


def test_uniform_deals_in_turn_and_single_the_first():
    sampler = make_sampler("uniform", 3)
    turns = [[0, 1, 2, 0, 1, 2, 0, 1], [2, 0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 1, 2, 0, 1, 2]]
    for generation, expected in enumerate(turns):
        dealt = sampler.assign(8, generation)
        assert dealt.tolist() == expected
        sampler.update(dealt, np.arange(8.0))
    assert sampler.count.tolist() == [8, 8, 8]
    assert make_sampler("single", 3).assign(5, 0).tolist() == [0] * 5
    # A generation that divides evenly begins where the last one began.
    assert [sampler.assign(6, generation)[0] for generation in range(4)] == [0] * 4
    for name in MODES:  # of one instance there is nothing else
        sampler = make_sampler(name, 1)
        for generation in range(3):
            dealt = sampler.assign(4, generation)
            assert dealt.tolist() == [0] * 4
            sampler.update(dealt, np.arange(4.0))
        sampler.update([], [])  # nobody played
        assert sampler.count.tolist() == [12]


@given(seeds, st.integers(0, 2**31), st.integers(1, 9))
def test_random_deals_keyed_draws(seed, generation, n):
    key = naive.stream_key(seed, naive.SAMPLER, generation, 0)
    expected = [int(naive.uniform(key, k, 0) * n) for k in range(6)]
    assert make_sampler("random", n, seed).assign(6, generation).tolist() == expected


@pytest.mark.parametrize("name", MODES)
def test_unusable_results_change_nothing(name):
    sampler = make_sampler(name, 3, seed=6)
    for generation in range(2):
        ids = sampler.assign(7, generation)
        sampler.update(ids, -np.square(ids + 1.0))
    before = state_bytes(sampler)
    cases = [
        (([0, 1], [-1.0]), "instance ids: read int64 of shape (2,); "),
        (([0], [-1.0, -2.0]), "instance ids: read int64 of shape"),
        *((([0, k], [-1.0, -2.0]), f"instance ids: read {k}; expected 0 to 2") for k in (3, -1)),
        (([0.0, 1.0], [-1.0, -2.0]), "instance ids: read float64"),
        *(((ids, [-1.0, -2.0]), "instance ids") for ids in ([[0], [1]], [[0], []])),
        (([0, 1], [[-1.0], [-2.0]]), "returns: read shape"),
    ]
    assert list_unrefused(lambda told: sampler.update(*told), cases) == []
    assert state_bytes(sampler) == before
