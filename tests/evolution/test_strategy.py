"""The evolution strategy: noise, estimator, steps."""

import naive_evolution as naive
import numpy as np
import pytest
from searches import JIT
from tables_and_refusals import list_unrefused

from acerl_np.evolution import Strategy
from acerl_np.kernels.core.random import BLOCK, NOISE
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.support.errors import ConfigError, InputError

SIZES = [1, 3, BLOCK, BLOCK + 1, 2 * BLOCK + 900] if JIT else [1, BLOCK + 1]


def random_theta(size):
    return np.random.default_rng(size).normal(size=size).astype(np.float32)


# Ask


@pytest.mark.oracle
@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_members_and_gradient_are_those_of_the_slow_noise(size, antithetic):
    theta, seed = random_theta(size), 2**40 + 5
    options = {"seed": seed, "population": 4, "noise_std": 0.3, "antithetic": antithetic}
    strategy = Strategy(theta, **options)
    strategy.generation = 6
    noise = naive.member_noise(seed, 6, 4, size, antithetic)
    members = strategy.ask()
    assert members.dtype == np.float32
    np.testing.assert_allclose(members, theta + 0.3 * noise, rtol=0, atol=4e-6)
    utilities = np.random.default_rng(0).normal(size=4)
    utilities[2] = 0.0
    gradient = strategy.estimate_gradient(utilities)
    assert gradient.dtype == np.float32
    expected = naive.estimate_gradient(utilities, noise, 0.3)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-5 / 0.3)
    # Reproducible to the last bit.
    if not antithetic:
        own = np.empty(size, np.float32)
        for member, parameters in enumerate(members):
            fill_stream(seed, NOISE, 6, member, own)
            assert parameters.tobytes() == (theta + np.float32(0.3) * own).tobytes()
    assert strategy.ask().tobytes() == members.tobytes()
    assert strategy.theta.tobytes() == theta.tobytes()


def test_noise_decays_by_the_released_codes_formula():
    for options, (first, decay, every) in (
        ({}, (0.1, 0.99, 50)),
        ({"noise_std": 2.0, "noise_decay": 0.5, "noise_decay_every": 3}, (2.0, 0.5, 3)),
    ):
        strategy = Strategy(np.zeros(1), **options)
        for generation in range(120):
            strategy.generation = generation
            expected = max(1e-9, first * decay ** ((generation + 1) // every))
            assert strategy.noise_std == pytest.approx(expected, rel=1e-12)
    # Members and the gradient use it.
    strategy = Strategy(np.zeros(3), population=2, noise_std=0.8, noise_decay_every=1)
    strategy.distribution.decay = 0.5
    decayed, gradient = strategy.ask(), strategy.estimate_gradient([1.0, -2.0])
    strategy.distribution.decay = 1.0
    np.testing.assert_allclose(strategy.ask(), 2 * decayed, rtol=1e-6)
    np.testing.assert_allclose(strategy.estimate_gradient([1.0, -2.0]), gradient / 2, rtol=1e-6)
    # It stays above the smallest.
    strategy = Strategy(np.zeros(3), population=2, noise_decay=0.5, noise_decay_every=1)
    strategy.generation = 1000
    strategy.tell([1.0, -1.0])
    assert strategy.noise_std == 1e-9
    assert np.isfinite(strategy.theta).all()


# Tell


def test_tell_moves_theta_by_alpha_times_the_gradient():
    theta = random_theta(5)
    before = theta.copy()
    strategy = Strategy(theta, seed=8, population=4, learning_rate=0.3)
    utilities = [1.0, 0.0, -2.0, 0.5]
    # What perturbs and what sums cannot disagree: a mismatch would be silently wrong learning.
    noise = strategy.noise()
    others = {"generation": 1, "seed": 9, "population": 6, "antithetic": True}
    cases = [(noise._replace(**{k: v}), "noise: read Noise") for k, v in others.items()]
    assert list_unrefused(lambda other: strategy.tell(utilities, other), cases) == []
    wrong = [[1.0] * 3, [1.0] * 5, [[1.0] * 4], 1.0, [], [1.0, np.nan, 0.0, 0.0], [np.inf, 0, 0, 0]]
    for method in (strategy.tell, strategy.estimate_gradient):
        assert list_unrefused(method, [(given, "utilities") for given in wrong]) == []
    gradient = strategy.estimate_gradient(utilities)
    assert gradient.any() and strategy.generation == 0
    told = strategy.tell(utilities, noise)
    assert told.tobytes() == gradient.tobytes()
    assert strategy.theta.tobytes() == (before + np.float32(0.3) * gradient).tobytes()
    assert strategy.generation == 1
    np.testing.assert_array_equal(theta, before)
    assert strategy.estimate_gradient(utilities).tobytes() != gradient.tobytes()
    with pytest.raises(InputError, match="noise: read Noise"):
        strategy.tell(utilities, noise)


def test_unusable_starts_are_refused():
    shapes = [(theta, "theta: read shape") for theta in (np.zeros((2, 2)), np.zeros(0), 1.0)]
    assert list_unrefused(Strategy, shapes) == []
    options = [
        ({"population": 1}, "population: read 1; "),
        ({"population": 5, "antithetic": True}, "even"),
        ({"noise_std": 1e-41}, " at least 1e-09"),
    ]
    assert list_unrefused(lambda own: Strategy(np.zeros(3), **own), options, ConfigError) == []
