"""The average of a training's means."""

from __future__ import annotations

import numpy as np

LATE = 3.0
"""Power of the generation with which a mean weighs in the average."""


class Average:
    """The weighted mean of a search's means, the one of generation t weighing about t^3.

    One mean is as good as the noise of the last generation's ranking; the late ones together are better.
    No end need be known (Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization:
    convergence results and optimal averaging schemes", ICML 2013, polynomial-decay averaging). The first mean
    stands until one is added.
    """

    def __init__(self, mean: np.ndarray) -> None:
        self._theta = mean.astype(np.float64)
        self._dtype = mean.dtype

    @property
    def theta(self) -> np.ndarray:
        """The average, as the means, (n_parameters,)."""
        return self._theta.astype(self._dtype)

    def add(self, mean: np.ndarray, generation: int) -> None:
        """Take in the mean after a generation, 1 for the first."""
        self._theta = self._theta + (LATE + 1.0) / (generation + LATE) * (mean - self._theta)

    def pack(self) -> dict[str, np.ndarray]:
        """Return the average as arrays."""
        return {"average": self._theta.copy()}

    def restore(self, average: np.ndarray) -> None:
        """Take over an average that `pack` returned."""
        self._theta = average.astype(np.float64)
