"""The augmented Lagrangian of a generation, by which a search settles on constraints that are active.

Ranked by feasibility first, members tell little of the directions along a constraint: the return rises
straight across it, and as sigma shrinks that outweighs everything else. The Lagrangian takes it away.

Slopes of return and constraints are those of the last generations' members, in the normals of the present
one, so a generation may be small. A step to the optimum of what they tell (a quadratic programme, round in
these normals) has the multipliers, and ends at a point that is worth a try: it keeps active constraints, of
which a drawn member keeps k with a chance of 2^-k only.
The method of multipliers with an evolution strategy: Atamna, Auger and Hansen, "Linearly convergent
evolution strategies via augmented Lagrangian constraint handling", FOGA 2017; theirs learns by steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from acerl_np.evolution.covariance import MAX_MATRIX, substitute, take_root
from acerl_np.evolution.rates import count_few

NEAR = 3.0
"""Standard deviations from the mean to a constraint that may be active."""
AHEAD = 0.5
"""Of the way from the mean to the constraints, how far multipliers look; with none the mean would drift."""
RIDGE = 0.05
"""Of the normals' variance, as long as there are fewer members than are remembered."""
SOFT = 1e-3
"""How far a step may violate constraints that contradict each other, of how strongly they push."""
INSIDE = 1e-4
"""Standard deviations that a step ends inside of the constraints."""
CROWD = 1.5
"""Power of the members, over those of `count_few`, by which penalties of larger populations are stiffer."""


class Memory(NamedTuple):
    """What a search remembers of its last members, and what they tell."""

    recent: np.ndarray = np.zeros(0)
    """Of each that did not fail: where it was drawn, its return, its constraints; one after the other."""
    guess: np.ndarray = np.zeros(0)
    """A point that is worth a try, (n_parameters,), or nothing."""


def count_remembered(n: int) -> int:
    """Return how many members tell the slopes: twice those that do, with many parameters a part of them."""
    return 2 * (n + 10) if n <= MAX_MATRIX else 200


class Slopes(NamedTuple):
    """What members tell of outputs near the mean, each linear but for a curve that all normals share."""

    values: np.ndarray
    """At the mean, (n_outputs,)."""
    slopes: np.ndarray
    """(n_parameters, n_outputs)."""
    curves: np.ndarray
    """Second derivatives along any normal, (n_outputs,)."""
    errors: np.ndarray
    """Standard deviations of what is not explained, (n_outputs,)."""

    def foresee(self, z: np.ndarray) -> np.ndarray:
        """Return the first output at normals (n_members, n_parameters)."""
        curved = self.curves[0] / 2 * np.einsum("ij,ij->i", z, z)
        return np.asarray(self.values[0] + np.einsum("ij,j->i", z, self.slopes[:, 0]) + curved)


def find_slopes(z: np.ndarray, y: np.ndarray) -> Slopes:
    """Return the slopes of outputs (n_members, n_outputs) over normals (n_members, n_parameters).

    By least squares, in which members that are farther than most tell less.
    """
    (count, n), scale = z.shape, np.maximum(np.abs(y).max(axis=0), 1e-300)
    squares = np.einsum("ij,ij->i", z, z)
    weights = np.sqrt(1 / np.maximum(1.0, squares / (2 * n)))[:, np.newaxis]
    weights /= np.sqrt(np.square(weights).mean())
    bend = np.sqrt(2 * n)  # times the standard deviation of half a square
    x = np.column_stack((z, (squares - n) / bend))
    middle, level = ((np.square(weights) * a).mean(axis=0) for a in (x, y / scale))
    x, y = weights * (x - middle), weights * (y / scale - level)
    few = count <= n  # then by members, else by parameters
    gram = np.einsum("ik,jk->ij", x, x) if few else np.einsum("ki,kj->ij", x, x)
    ridge = count * (RIDGE * max(0.0, 1 - count / count_remembered(n)) + 1e-9)
    root = take_root(gram + ridge * np.eye(len(gram)))
    found = np.zeros((y.shape[1], n + 1))
    if root is not None:
        half = substitute(root, y.T if few else np.einsum("ki,kj->ji", x, y))
        whole = substitute(root.T[::-1, ::-1], half[:, ::-1])[:, ::-1]
        found = np.einsum("ij,jk->ik", whole, x) if few else whole
    errors = np.sqrt(np.square(y - np.einsum("ij,kj->ik", x, found)).mean(axis=0))
    at = level - np.einsum("ij,j->i", found, middle) - found[:, n] * n / bend
    return Slopes(*(scale * a for a in (at, found[:, :n].T, found[:, n] * 2 / bend, errors)))


def step_ahead(
    slope: np.ndarray, curve: float, g: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the step s of least slope s + curve / 2 s^2 with g + normals s <= 0, and its multipliers.

    Of slope (n,), g (m,), normals (n, m), not zero. Where no step keeps them, one that violates them little.
    """
    (n, m), size = normals.shape, np.sqrt(np.einsum("ij,ij->j", normals, normals))
    curve = max(curve, 1e-7 * float(np.sqrt(np.einsum("i,i->", slope, slope))), 1e-300)
    free, units = -slope / curve, normals / size
    beyond = g / size + np.einsum("ij,i->j", units, free)
    scale = max(1.0, float(np.abs(beyond).max(initial=0.0)))
    # The least way from where the slope alone leads: Lawson and Hanson, "Solving least squares problems", 23.
    soft = SOFT / np.sqrt(scale) * np.eye(m)
    system, one = np.vstack((-units, soft, beyond / scale)), np.append(np.zeros(n + m), 1.0)
    if m == 0 or not np.isfinite(system).all():  # nothing to keep, or numbers near the largest
        return free, np.zeros(m)
    try:
        push = nnls(system, one, maxiter=30 * (n + m))[0]
    except RuntimeError:  # it did not settle
        return free, np.zeros(m)
    rest = system @ push - one
    gamma = -push / min(rest[-1], -1e-300) * scale * curve / size
    if not np.isfinite(gamma).all():
        return free, np.zeros(m)
    return free - scale * rest[:n] / min(rest[-1], -1e-300), gamma


def score_members(
    outputs: np.ndarray, slopes: Slopes, stiffness: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the augmented Lagrangian, (n_members,), and the step to a point worth a try.

    Of outputs (n_members, 1 + n_constraints), the return and the constraints, all finite, and the slopes of
    both. A penalty of few members is as curved as the Lagrangian itself if `stiffness` is 1. The step is in
    normals, (n_parameters,).
    """
    f, g = outputs[:, 0].mean() - outputs[:, 0], outputs[:, 1:]
    mean, n = slopes.values[1:], len(slopes.slopes)
    # Few members far out, as of 1 / x^3, would hide the others: a variance is at most of three medians.
    variance, most = g.var(axis=0), 9 * np.square(np.median(np.abs(g), axis=0))
    variance = np.maximum(np.where((most > 0.0) & (most < variance), most, variance), 1e-300)
    deviation, slope, normals = np.sqrt(variance), -slopes.slopes[:, 0], slopes.slopes[:, 1:]
    near = (g.mean(axis=0) + NEAR * deviation > 0.0) & (normals != 0.0).any(axis=0)
    gamma, curve = np.zeros(len(mean)), 0.0
    ahead = AHEAD * np.clip(mean, -NEAR * deviation, NEAR * deviation)
    for _ in range(4):
        curve = (f + np.einsum("ij,j->i", g, gamma)).std() / np.sqrt(max(1.0, n / 2))
        gamma[near] = step_ahead(slope, curve, ahead[near], normals[:, near])[1]
    # The mean of many stays outside while sigma is wide, as slopes tell little there.
    crowd = max(1.0, len(g) / count_few(n)) ** CROWD
    omega = crowd * stiffness * curve / variance + 1e-6 * gamma / deviation + 1e-300
    reached = np.maximum(g, -gamma / omega)
    scores = -f - np.einsum("ij->i", (gamma + omega / 2 * reached) * reached)
    bent = float(gamma @ slopes.curves[1:] - slopes.curves[0])
    within = mean + slopes.errors[1:] + INSIDE * deviation
    step, _ = step_ahead(
        slope, bent if bent > 0.1 * curve else curve, within[near], normals[:, near]
    )
    return scores, step * min(1.0, float(np.sqrt(n / max(step @ step, 1e-300))))
