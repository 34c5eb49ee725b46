"""What a generation did, in the numbers that both faces of the search record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def summarise(
    returns: np.ndarray, costs: np.ndarray, good: np.ndarray, within: np.ndarray
) -> dict[str, Any]:
    """Return the means of a generation.

    Parameters
    ----------
    returns, costs : ndarray(float64, (population,))
    good : ndarray(bool, (population,))
        Members that could be evaluated.
    within : ndarray(bool, (population,))
        Members that keep the limit.

    Returns
    -------
    dict
        return_mean, return_std and cost_mean of the good members, nan without one; satisfied, the share
        of all members within the limit; failed, how many are not good.
    """
    known_returns, known_costs = returns[good], costs[good]
    n = len(known_returns)
    return {
        "return_mean": float(known_returns.mean()) if n else math.nan,
        "return_std": float(known_returns.std()) if n else math.nan,
        "cost_mean": float(known_costs.mean()) if n else math.nan,
        "satisfied": float(within.sum() / len(returns)),
        "failed": len(returns) - n,
    }
