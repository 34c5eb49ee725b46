"""Several constraints as one cost: brought to one scale, beyond a tolerance that shrinks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

SHARE = 0.5
"""Of a generation's members, those that the next tolerance lets pass."""
SHRINK = 0.98
"""Factor on the tolerance in every generation, at most."""
REACH = 2.0
"""Of the tolerance, at most, over the distance between those members' violations."""


class Tolerance(NamedTuple):
    """What counts as feasible for now: the level that a member's violation may have.

    A member's violation is v = sqrt(sum_j (max(0, g_j) / s_j)^2). The scale s_j is the median of the positive
    violations in the first generation that has any, so constraints in different units count alike. A plain
    sum has ridges where two constraints meet, which members follow slowly. Members are ranked by
    max(0, v - e). In each generation the level e becomes the least of

    - `SHRINK` e, infinite at first;
    - q, the `SHARE` quantile of v, so it ends at 0 once so many members are feasible;
    - `REACH` (q - least v): a cloud that settles where it violates more than it varies, as in a corner of
      the bounds, is to move on.

    Without a level, a search for equalities falls onto the first points that keep them, where the cloud of
    members is too flat to follow them to the optimum. With one, they are a wide road at first. The level is
    that of the epsilon-constrained method (Takahama and Sakai, "Constrained optimization by the epsilon
    constrained differential evolution with gradient-based mutation and feasible elites", CEC 2006; with an
    evolution strategy Hellwig and Beyer, "A matrix adaptation evolution strategy for constrained
    real-parameter optimization", CEC 2018). Theirs follows a schedule of generations; the three rules are
    this package's.

    Attributes
    ----------
    scales : ndarray(float64, (n_constraints,))
        s_j, 0 for constraints that no member has violated; empty before the first generation.
    level : float
        e; infinite before the first generation.
    """

    scales: np.ndarray = np.zeros(0)
    level: float = math.inf

    def relax(self, positive: np.ndarray) -> tuple[np.ndarray, Tolerance]:
        """Return the members' costs beyond the level, and the tolerance after them.

        `positive` is max(0, g), (population, n_constraints), nan or infinite where a member failed.
        """
        scales = (self.scales if len(self.scales) else np.zeros(positive.shape[1])).copy()
        for j in np.flatnonzero(scales == 0.0):
            column = positive[:, j]
            violated = np.sort(column[np.isfinite(column) & (column > 0.0)])
            if len(violated):
                scales[j] = violated[len(violated) // 2]
        # Before a violation there is nothing to divide: any scale will do.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            shares = positive / np.where(scales > 0.0, scales, 1.0)
            # Squares of very small or large shares would be 0 or infinite.
            most = shares.max(axis=1)
            unit = np.where(most > 0.0, most, 1.0)
            violations = most * np.sqrt(np.square(shares / unit[:, np.newaxis]).sum(axis=1))
        known = np.sort(violations[np.isfinite(violations)])
        level = SHRINK * self.level
        if len(known):
            middle = float(known[int(SHARE * (len(known) - 1))])
            level = min(level, middle, REACH * (middle - float(known[0])))
        return np.maximum(0.0, violations - level), Tolerance(scales, level)
