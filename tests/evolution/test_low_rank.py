"""Noise of low rank: members and gradient by a plain oracle, and what a search refuses."""

import naive_evolution as naive
import numpy as np
import pytest
from searches import JIT
from tables_and_refusals import list_unrefused

from acerl_np.evolution import Strategy
from acerl_np.kernels.core.random import NOISE
from acerl_np.support.errors import ConfigError
from acerl_np.support.workers import Workers

SHAPES = [(38, 19), (7, 33), (34, 1)] if JIT else [(3, 5), (4, 2)]
N = sum(rows * columns for rows, columns in SHAPES)


def draw_noise(seed, generation, population, rank, antithetic):
    """Every member's noise, float64: of each matrix the sum of products, over the root of their number."""
    noise, step = np.empty((population, N)), 2 if antithetic else 1
    for member in range(population):
        if antithetic and member % 2:
            noise[member] = -noise[member - 1]
            continue
        key = naive.stream_key(seed, NOISE, generation, member // step)
        numbers = iter(naive.normal_stream(key, rank * sum(map(sum, SHAPES))))
        own = []
        for rows, columns in SHAPES:
            matrix = np.zeros((rows, columns))
            for _ in range(rank):
                a = [next(numbers) for _ in range(rows)]
                b = [next(numbers) for _ in range(columns)]
                matrix += np.outer(a, b)
            own.append(matrix.ravel() / rank**0.5)
        noise[member] = np.concatenate(own)
    return noise


@pytest.mark.oracle
@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("rank", [1, 3])
def test_members_and_gradient_are_those_of_the_slow_noise(rank, antithetic):
    theta = np.random.default_rng(1).normal(size=N).astype(np.float32)
    options = {"seed": 2**40 + 5, "population": 6, "noise_std": 0.3, "antithetic": antithetic}
    options |= {"noise_rank": rank, "shapes": SHAPES}
    strategy = Strategy(theta, **options)
    strategy.generation = 6
    noise = draw_noise(2**40 + 5, 6, 6, rank, antithetic)
    members = strategy.ask()
    assert members.dtype == np.float32
    np.testing.assert_allclose(members, theta + 0.3 * noise, rtol=0, atol=2e-5)
    utilities = np.random.default_rng(0).normal(size=6)
    utilities[2:4] = 0.0
    gradient = strategy.estimate_gradient(utilities)
    assert gradient.dtype == np.float32
    expected = naive.estimate_gradient(utilities, noise, 0.3)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-4)
    workers = Workers(3)
    other = Strategy(theta, **options, workers=workers)
    other.generation = 6
    assert other.estimate_gradient(utilities).tobytes() == gradient.tobytes()
    workers.close()


def test_shapes_are_those_of_all_parameters():
    cases = [
        ({}, "shapes: read None; expected rows and columns"),
        ({"shapes": [(3, 2)]}, "matrices with 12 parameters in all"),
        ({"shapes": [6, 6]}, "matrices with 12 parameters in all"),
        ({"shapes": [(3.0, 4.0)]}, "matrices with 12 parameters in all"),
        ({"shapes": [(-3, -4)]}, "matrices with 12 parameters in all"),
        ({"shapes": []}, "matrices with 12 parameters in all"),
        ({"shapes": [(3, 4)], "noise_rank": 0}, "noise_rank: read 0; expected at least 1"),
    ]

    def begin(changes):
        Strategy(np.zeros(12), **{"noise_rank": 1, **changes})

    begin({"shapes": [(3, 4)]})
    assert list_unrefused(begin, cases, ConfigError) == []
