"""The paper's Section IV, as far as numbers tell: Theorem 1 where it holds, Theorem 2 on cubic functions."""

from itertools import product

import numpy as np
import pytest


def relax(excess, rho):
    """Soft-plus of g - xi."""
    return rho * np.logaddexp(0.0, np.asarray(excess) / rho)


def test_theorem_1_holds_in_one_direction():
    """The order of relaxed penalties is one of penalties; of two feasible members the reverse fails."""
    excess = np.random.default_rng(0).uniform(-5.0, 5.0, 500)
    penalty = np.maximum(0.0, excess) ** 2
    for rho in (1.0, 0.1, 0.02):
        order = np.argsort(relax(excess, rho))
        assert np.all(np.diff(penalty[order]) >= 0.0)
        equal = np.maximum(0.0, np.array([-1.0, -0.5])) ** 2
        assert equal[0] == equal[1] and relax(-0.5, rho) > relax(-1.0, rho) > 0.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_theorem_2_bounds_the_bias(d):
    """The antithetic estimator of a cubic with a third derivative of tau, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    noise = np.array([*product(nodes, repeat=d)])
    weight = np.prod([*product(weights / weights.sum(), repeat=d)], axis=1)
    fourth = weight @ (noise**2).sum(axis=1) ** 2
    assert fourth == pytest.approx(d**2 + 2 * d) and fourth <= 3 * d**2 + 1e-9
    assert (3 * d + d**2 <= 3 * d**2) == (d > 1)  # the proof's own step
    tau, sigma, theta = 2.0, 0.3, np.linspace(-1.0, 1.0, d)

    def f(x):
        return tau / 6.0 * (x**3).sum(axis=-1) + x.sum(axis=-1)

    difference = f(theta + sigma * noise) - f(theta - sigma * noise)
    estimate = weight @ (difference[:, None] * noise) / (2.0 * sigma)
    bias = np.linalg.norm(estimate - (tau / 2.0 * theta**2 + 1.0))
    assert bias == pytest.approx(tau * sigma**2 / 2.0 * d**0.5)
    assert bias <= 3.0 * tau * sigma**2 * d**2
