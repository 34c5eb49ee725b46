"""Perturb a policy's parameters, rank the members, and estimate the natural gradient from utilities.

Noise is never stored: a member's stream gives the same numbers again when the gradient is summed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core.random import (
    BLOCK,
    LANES,
    NOISE,
    RANKING,
    derive_key,
    draw_uniform,
    fill_normals,
)
from acerl_np.support.compiled import inner_kernel, kernel

F = np.float32


class Noise(NamedTuple):
    """The noise of one generation: a key, no array.

    What perturbs the members and what sums their noise receive the same value, so they cannot disagree.

    Attributes
    ----------
    seed, generation : int
    population : int
    antithetic : bool, members 2 i and 2 i + 1 share a stream, with opposite signs
    """

    seed: int
    generation: int
    population: int
    antithetic: bool

    @property
    def group_size(self) -> int:
        """Members that share a stream."""
        return 2 if self.antithetic else 1

    @property
    def n_groups(self) -> int:
        """Number of different streams."""
        return self.population // self.group_size


@kernel
def find_stream(noise, member, key):
    """Write the key of a member's noise and return its sign; an antithetic pair shares its stream."""
    if noise.antithetic:
        derive_key(noise.seed, NOISE, noise.generation, member // 2, key)
        return F(1.0) if member % 2 == 0 else F(-1.0)
    derive_key(noise.seed, NOISE, noise.generation, member, key)
    return F(1.0)


@kernel
def perturb_member(theta, noise_std, noise, member, key, bits, normals, out):
    """Write theta + sigma eps_i into `out` (Algorithm 1, lines 6 and 8).

    Parameters
    ----------
    theta : ndarray(float32, (n_parameters,))
    noise_std : float, sigma
    key : ndarray(uint32, (4,)); bits : ndarray(uint32, (4, LANES))
    normals : ndarray(float32, (4, LANES)), scratch
    out : ndarray(float32, (n_parameters,)), output
    """
    sigma = F(noise_std) * find_stream(noise, member, key)
    flat = normals.reshape(BLOCK)
    n = len(theta)
    for block in range((n + BLOCK - 1) // BLOCK):
        fill_normals(key, block, bits, normals)
        first = block * BLOCK
        count = min(BLOCK, n - first)
        source, target = theta[first : first + count], out[first : first + count]
        for k in range(count):
            target[k] = source[k] + sigma * flat[k]


@kernel
def sum_noise(utilities, noise, first_block, last_block, total):
    """Write sum_i f_i eps_i for the parameters of blocks first_block to last_block - 1.

    Members are added in ascending order, so the sum does not depend on how blocks are dealt out.

    Parameters
    ----------
    utilities : ndarray(float32, (population,))
        f; members of utility zero are skipped, and antithetic pairs share their noise.
    noise : Noise, that of the members
    total : ndarray(float32, (n_parameters,)), output, only the parameters of these blocks
    """
    key = np.empty(4, np.uint32)
    bits = np.empty((4, LANES), np.uint32)
    normals = np.empty((4, LANES), np.float32)
    flat = normals.reshape(BLOCK)
    step = 2 if noise.antithetic else 1
    for block in range(first_block, last_block):
        first = block * BLOCK
        count = min(BLOCK, len(total) - first)
        target = total[first : first + count]
        target[:] = F(0.0)
        for member in range(0, noise.population, step):
            weight = utilities[member]
            if noise.antithetic:
                weight -= utilities[member + 1]
            if weight == F(0.0):
                continue
            find_stream(noise, member, key)
            fill_normals(key, block, bits, normals)
            for k in range(count):
                target[k] += weight * flat[k]


@inner_kernel
def copy_normals(key, bits, normals, out):
    """Fill the vector `out` (ndarray(float32)) with the first normals of the stream of a key."""
    flat = normals.reshape(BLOCK)
    for block in range((len(out) + BLOCK - 1) // BLOCK):
        fill_normals(key, block, bits, normals)
        own = out[block * BLOCK : (block + 1) * BLOCK]
        for k in range(len(own)):
            own[k] = flat[k]


@kernel
def fill_stream(seed, purpose, a, b, out):
    """Fill the vector `out` (ndarray(float32)) with the first normals of a stream."""
    key = np.empty(4, np.uint32)
    bits = np.empty((4, LANES), np.uint32)
    normals = np.empty((4, LANES), np.float32)
    derive_key(seed, purpose, a, b, key)
    copy_normals(key, bits, normals, out)


# Stochastic ranking by bubble sort (Runarsson and Yao 2000), as the paper's Algorithm 4 uses it


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
