"""Perturb a policy's parameters, and estimate the natural gradient from the members' utilities.

Noise is never stored: a member's stream gives the same numbers again when the gradient is summed.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.random import BLOCK, LANES, NOISE, derive_key, fill_normals
from acerl_np.support.compiled import kernel

F = np.float32


@kernel
def find_noise(seed, generation, member, antithetic, key):
    """Write the key of a member's noise and return its sign; an antithetic pair shares its stream."""
    if antithetic:
        derive_key(seed, NOISE, generation, member // 2, key)
        return F(1.0) if member % 2 == 0 else F(-1.0)
    derive_key(seed, NOISE, generation, member, key)
    return F(1.0)


@kernel
def perturb_member(theta, noise_std, seed, generation, member, antithetic, key, bits, noise, out):
    """Write theta + sigma eps_i into `out` (Algorithm 1, lines 6 and 8).

    Parameters
    ----------
    theta : ndarray(float32, (n_parameters,))
    noise_std : float
        sigma.
    key : ndarray(uint32, (4,)); bits : ndarray(uint32, (4, LANES)); noise : ndarray(float32, (4, LANES))
        Scratch.
    out : ndarray(float32, (n_parameters,))
        Output.
    """
    sigma = F(noise_std) * find_noise(seed, generation, member, antithetic, key)
    flat = noise.reshape(BLOCK)
    n = len(theta)
    for block in range((n + BLOCK - 1) // BLOCK):
        fill_normals(key, block, bits, noise)
        first = block * BLOCK
        count = min(BLOCK, n - first)
        source = theta[first : first + count]
        target = out[first : first + count]
        for k in range(count):
            target[k] = source[k] + sigma * flat[k]


@kernel
def sum_noise(utilities, seed, generation, antithetic, first_block, last_block, total):
    """Write sum_i f_i eps_i for the parameters of blocks first_block to last_block - 1.

    Members are added in ascending order, so the sum does not depend on how blocks are dealt out.

    Parameters
    ----------
    utilities : ndarray(float32, (n_members,))
        f; members of utility zero are skipped, and antithetic pairs share their noise.
    total : ndarray(float32, (n_parameters,))
        Output; only the parameters of these blocks are written.
    """
    key = np.empty(4, np.uint32)
    bits = np.empty((4, LANES), np.uint32)
    noise = np.empty((4, LANES), np.float32)
    flat = noise.reshape(BLOCK)
    step = 2 if antithetic else 1
    for block in range(first_block, last_block):
        first = block * BLOCK
        count = min(BLOCK, len(total) - first)
        target = total[first : first + count]
        target[:] = F(0.0)
        for member in range(0, len(utilities), step):
            weight = utilities[member]
            if antithetic:
                weight -= utilities[member + 1]
            if weight == F(0.0):
                continue
            find_noise(seed, generation, member, antithetic, key)
            fill_normals(key, block, bits, noise)
            for k in range(count):
                target[k] += weight * flat[k]


@kernel
def fill_stream(seed, purpose, a, b, out):
    """Fill the vector `out` (ndarray(float32)) with the first normals of a stream."""
    key = np.empty(4, np.uint32)
    bits = np.empty((4, LANES), np.uint32)
    noise = np.empty((4, LANES), np.float32)
    flat = noise.reshape(BLOCK)
    derive_key(seed, purpose, a, b, key)
    for block in range((len(out) + BLOCK - 1) // BLOCK):
        fill_normals(key, block, bits, noise)
        first = block * BLOCK
        count = min(BLOCK, len(out) - first)
        for k in range(count):
            out[first + k] = flat[k]
