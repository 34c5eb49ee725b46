"""Stochastic ranking by bubble sort (Runarsson and Yao 2000), as the paper's Algorithm 4 uses it."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core.random import RANKING, derive_key, draw_uniform
from acerl_np.support.compiled import kernel


@kernel
def rank_members(returns, penalties, p_f, seed, generation, instance, begin, most, order):
    """Sort the members of one instance from best to worst by stochastic bubble sort.

    There are n sweeps, as long as some draw could let neighbours change places. Comparison j of a sweep draws
    its own number, keyed by (seed, generation, instance, sweep, j), and compares the members at places j and
    j + 1. Return the sweep to go on with, after `most` of them, or -1 at the end.

    Parameters
    ----------
    returns : ndarray(float64, (n,))
    penalties : ndarray(float64, (n,)), phi >= 0, zero if and only if the member is feasible
    p_f : float, probability of comparing by return although a member is infeasible
    begin, most : int, the first sweep, and how many are made at most
    order : ndarray(int64, (n,)), output
        `order[0]` is the best member. What it holds is gone on with unless `begin` is 0.
    """
    n = len(returns)
    key = np.empty(4, np.uint32)
    derive_key(seed, RANKING, generation, instance, key)
    if begin == 0:
        for i in range(n):
            order[i] = i
    for sweep in range(begin, n):
        if sweep == begin + most:
            return sweep
        is_settled = True
        for j in range(n - 1):
            a = order[j]
            b = order[j + 1]
            by_return = penalties[a] == 0.0 and penalties[b] == 0.0
            if not by_return:
                # Neither a swap nor a chance of one: p_f of 0 or 1 leaves one measure alone.
                is_settled &= p_f == 0.0 or returns[a] >= returns[b]
                is_settled &= p_f == 1.0 or penalties[a] <= penalties[b]
                by_return = draw_uniform(key, sweep, j) < p_f
            swap = returns[a] < returns[b] if by_return else penalties[a] > penalties[b]
            if swap:
                is_settled = False
                order[j] = b
                order[j + 1] = a
        if is_settled:
            return -1
    return -1
