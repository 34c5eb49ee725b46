"""The average of a search's means: a weighted mean, the weights growing with the third power."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acerl_np.training.average import Average


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_it_is_the_weighted_mean(n, seed):
    means = np.random.default_rng(seed).normal(size=(n, 3))
    average = Average(np.full(3, 9.0))
    for generation, mean in enumerate(means, 1):
        average.add(mean, generation)
    weights = [t * (t + 1) * (t + 2) for t in range(1, n + 1)]  # about t cubed
    np.testing.assert_allclose(
        average.theta, np.average(means, axis=0, weights=weights), atol=1e-12
    )


def test_the_first_mean_stands_until_one_is_added():
    average = Average(np.array([1.5, -2.0], np.float32))
    assert average.theta.tolist() == [1.5, -2.0]
    average.add(np.array([4.0, 5.0], np.float32), 1)
    assert average.theta.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_of_the_means_type_and_goes_on_as_it_was(dtype):
    means = np.random.default_rng(1).normal(size=(8, 4)).astype(dtype)
    straight, stopped = Average(means[0]), Average(means[0])
    for generation, mean in enumerate(means, 1):
        straight.add(mean, generation)
        stopped.add(mean, generation)
        packed = stopped.pack()["average"]
        stopped = Average(np.zeros(4, dtype))
        stopped.restore(packed)
    assert straight.theta.dtype == stopped.theta.dtype == dtype
    assert straight.theta.tobytes() == stopped.theta.tobytes()
