"""The augmented Lagrangian of a generation, by which a search settles on constraints that are active.

Ranked by feasibility first, members tell little of the directions along a constraint: the return rises
straight across it, and as sigma shrinks that outweighs everything else. The Lagrangian takes it away. Its
multipliers are those that cancel most of the slope of the return in the members' own normals.
The method of multipliers with an evolution strategy: Atamna, Auger and Hansen, "Linearly convergent
evolution strategies via augmented Lagrangian constraint handling", FOGA 2017; theirs learns by steps.
"""

from __future__ import annotations

import numpy as np

from acerl_np.evolution.covariance import substitute, take_root

SWEEPS = 10
NEAR = 3.0
"""Standard deviations from the mean to a constraint that may be active."""
STIFF = 2.0
"""Penalty of a violation of one standard deviation, of twice the Lagrangian's own."""
RIDGE = 0.05
"""Of the normals' variance: fewer members than parameters tell no slope without it."""


def score_members(
    returns: np.ndarray, g: np.ndarray, z: np.ndarray, stiffness: float
) -> np.ndarray:
    """Return minus the augmented Lagrangian, (n_members,).

    Of returns (n_members,), constraints (n_members, m) and normals (n_members, n_parameters), all finite.
    """
    some = slice(2 * (z.shape[1] + 10))  # enough to tell the slopes
    f = returns.mean() - returns
    y, z = np.column_stack((f, g))[some].T, z[some] - z[some].mean(axis=0)
    y = y - y.mean(axis=1, keepdims=True)
    ridge = RIDGE * len(z)
    root = take_root(np.einsum("ik,jk->ij", z, z) + ridge * np.eye(len(z)))
    rest = y if root is None else substitute(root, y)
    # What a slope explains of f and g: y Z (Z^T Z + ridge)^(-1) Z^T y.
    products = np.einsum("ij,kj->ik", y, y) - ridge * np.einsum("ij,kj->ik", rest, rest)
    variance = np.maximum(g.var(axis=0), 1e-300)
    near = g.mean(axis=0) + NEAR * np.sqrt(variance) > 0.0
    gamma = np.zeros(g.shape[1])
    for _ in range(SWEEPS):  # the least slope of f + gamma g, gamma at least 0
        for j in np.flatnonzero(near & (np.diagonal(products)[1:] > 0.0)):
            slope = products[j + 1, 0] + products[j + 1, 1:] @ gamma
            gamma[j] = max(0.0, gamma[j] - slope / products[j + 1, j + 1])
    omega = stiffness * STIFF * (f + np.einsum("ij,j->i", g, gamma)).std() / variance
    omega = np.maximum(omega, 1e-6 * gamma / np.sqrt(variance) + 1e-300)
    reached = np.maximum(g, -gamma / omega)
    return np.asarray(-f - np.einsum("ij->i", (gamma + omega / 2 * reached) * reached))
