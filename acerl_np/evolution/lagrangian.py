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
AHEAD = 0.5
"""Of the way from the mean to the constraints, how far multipliers look; with none the mean would drift."""
RIDGE = 0.05
"""Of the normals' variance: fewer members than parameters tell no slope without it."""


def score_members(
    returns: np.ndarray, g: np.ndarray, z: np.ndarray, stiffness: float
) -> np.ndarray:
    """Return minus the augmented Lagrangian, (n_members,).

    Of returns (n_members,), constraints (n_members, m) and normals (n_members, n_parameters), all finite. A
    penalty is as curved as the Lagrangian itself if `stiffness` is 1.
    """
    n = z.shape[1]
    some = slice(2 * (n + 10))  # enough to tell the slopes
    f, mean = returns.mean() - returns, g.mean(axis=0)
    y, z = np.column_stack((f, g))[some].T, z[some] - z[some].mean(axis=0)
    y = y - y.mean(axis=1, keepdims=True)
    m, ridge = len(z), RIDGE * len(z)
    root = take_root(np.einsum("ik,jk->ij", z, z) + ridge * np.eye(m))
    rest = y if root is None else substitute(root, y)
    # What slopes explain of f and g: y Z (Z^T Z + ridge)^(-1) Z^T y.
    products = np.einsum("ij,kj->ik", y, y) - ridge * np.einsum("ij,kj->ik", rest, rest)
    variance = np.maximum(g.var(axis=0), 1e-300)
    near = (mean + NEAR * np.sqrt(variance) > 0.0) & (np.diagonal(products)[1:] > 0.0)
    gamma, curve = np.zeros(g.shape[1]), 0.0
    for _ in range(SWEEPS):  # the least slope of f + gamma g, gamma at least 0
        for j in np.flatnonzero(near):
            slope = products[j + 1, 0] + products[j + 1, 1:] @ gamma - AHEAD * m * curve * mean[j]
            gamma[j] = max(0.0, gamma[j] - slope / products[j + 1, j + 1])
        curve = (f + np.einsum("ij,j->i", g, gamma)).std() / np.sqrt(max(1.0, n / 2))
    omega = stiffness * curve / variance + 1e-6 * gamma / np.sqrt(variance) + 1e-300
    reached = np.maximum(g, -gamma / omega)
    return np.asarray(-f - np.einsum("ij->i", (gamma + omega / 2 * reached) * reached))
