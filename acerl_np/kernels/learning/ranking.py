"""Stochastic ranking by bubble sort (Runarsson and Yao 2000), as the paper's Algorithm 4 uses it."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.ground.random import RANKING, derive_key, draw_uniform
from acerl_np.support.compiled import kernel


@kernel
def rank_members(returns, penalties, p_f, seed, generation, instance, order):
    """Sort the members of one instance from best to worst by stochastic bubble sort.

    All sweeps are made; comparison j of a sweep draws its own number, keyed by
    (seed, generation, instance, sweep, j), and compares the members at places j and j + 1.

    Parameters
    ----------
    returns : ndarray(float64, (n,))
    penalties : ndarray(float64, (n,)), phi >= 0, zero if and only if the member is feasible
    p_f : float, probability of comparing by return although a member is infeasible
    order : ndarray(int64, (n,)), output: `order[0]` is the best member
    """
    n = len(returns)
    key = np.empty(4, np.uint32)
    derive_key(seed, RANKING, generation, instance, key)
    for i in range(n):
        order[i] = i
    for sweep in range(n):
        for j in range(n - 1):
            a = order[j]
            b = order[j + 1]
            by_return = penalties[a] == 0.0 and penalties[b] == 0.0
            if not by_return:
                by_return = draw_uniform(key, sweep, j) < p_f
            swap = returns[a] < returns[b] if by_return else penalties[a] > penalties[b]
            if swap:
                order[j] = b
                order[j + 1] = a
