"""Several constraints as one cost, their scales learned from the members."""

from __future__ import annotations

import numpy as np

RATE = 0.2
"""Share of a generation in the running medians."""


class Scales:
    """A scale for each constraint: the running median of its positive violations.

    Each generation, the scale s_j of constraint j becomes 0.8 s_j + 0.2 m_j, with m_j the median of its
    positive violations; the first m_j is taken as it is, and a generation in which no member violates j
    leaves s_j. A member's cost is sum_j max(0, g_j) / s_j, so constraints in different units count alike.
    The running median is a rule of this package. Venkatraman and Yen (IEEE Transactions on Evolutionary
    Computation 9, 2005) divide by the largest violation instead, which one outlier decides.

    Parameters
    ----------
    medians : ndarray(float64, (n_constraints,)), optional
        Earlier scales; 0 for constraints that no member has violated.
    """

    def __init__(self, medians: np.ndarray | None = None) -> None:
        self.medians = np.zeros(0) if medians is None else medians

    def weigh(self, positive: np.ndarray) -> tuple[np.ndarray, Scales]:
        """Return the members' costs, and the scales after them.

        Parameters
        ----------
        positive : ndarray(float64, (population, n_constraints))
            max(0, g), nan or infinite where a member failed.

        Returns
        -------
        costs : ndarray(float64, (population,))
        scales : Scales
        """
        medians = self.medians if len(self.medians) else np.zeros(positive.shape[1])
        medians = medians.copy()
        for j, column in enumerate(positive.T):
            violated = np.sort(column[np.isfinite(column) & (column > 0.0)])
            if len(violated):
                median = violated[len(violated) // 2]
                medians[j] = (
                    median if medians[j] == 0.0 else (1 - RATE) * medians[j] + RATE * median
                )
        # Before a violation there is nothing to divide: any scale will do.
        used = np.where(medians > 0.0, medians, 1.0)
        with np.errstate(over="ignore"):
            return np.asarray((positive / used).sum(axis=1)), Scales(medians)
