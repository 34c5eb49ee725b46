"""The average of a search's means: a weighted mean, the weights growing with the third power."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acerl_np.training.average import Average


@given(st.integers(1, 60), st.sampled_from([np.float32, np.float64]), st.integers(0, 2**32 - 1))
def test_it_is_the_weighted_mean_and_goes_on_as_it_was(n, dtype, seed):
    means = np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)
    average, stopped = Average(np.full(3, 9.0, dtype)), Average(np.full(3, 9.0, dtype))
    assert average.theta.tolist() == [9.0] * 3  # until one is added
    for generation, mean in enumerate(means, 1):
        average.add(mean, generation)
        stopped.add(mean, generation)
        packed = stopped.pack()["average"]
        stopped = Average(np.zeros(3, dtype))
        stopped.restore(packed)
    weights = [t * (t + 1) * (t + 2) for t in range(1, n + 1)]  # about t cubed
    expected = np.average(means.astype(float), axis=0, weights=weights)
    np.testing.assert_allclose(average.theta, expected, atol=1e-12 if dtype is np.float64 else 2e-7)
    assert average.theta.dtype == stopped.theta.dtype == dtype
    assert average.theta.tobytes() == stopped.theta.tobytes()
