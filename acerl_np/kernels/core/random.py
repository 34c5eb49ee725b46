"""Counter-based random streams: every draw is a pure function of a key and a counter.

The generator is Threefry-4x32 with 13 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011): the fewest rounds that have both passed BigCrush and known
answers published by its authors, which the tests check. A stream is keyed by (seed, purpose, a, b):
one application of Threefry hashes these 224 bits to the stream's 128-bit key, a second one turns
(key, counter) into draws. Nothing is shared or advanced, so threads, tiles and resumed runs see the
same numbers.

uint32 sums wrap on purpose: numba widens uint32 arithmetic to 64 bits, hence a cast around each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from acerl_np.support.compiled import inner_kernel, kernel

# Purposes of streams: the second word of every key (typed, or numba would compile one
# specialisation of every kernel that takes a purpose for each of them).
NOISE = np.int64(1)
ACTION = np.int64(2)
RANKING = np.int64(3)
SAMPLER = np.int64(4)
INITIAL = np.int64(5)
EVALUATION = np.int64(6)
PERTURBATION = np.int64(7)
SEARCH = np.int64(8)
BREAKDOWN = np.int64(9)
GENERATION = np.int64(10)
CURVE = np.int64(11)
RECORD = np.int64(12)
LOOKAHEAD = np.int64(13)
HOLD_OUT = np.int64(14)
BATCH = np.int64(15)

LANES = 512
"""Counters that one call of `fill_normals` consumes; it yields 4 * LANES normals."""

BLOCK = 4 * LANES
"""Normals of one block of a stream."""

U = np.uint32
F = np.float32
PARITY = np.uint32(0x1BD11BDA)
HALF_PI = np.float32(1.5707963267948966)


@inner_kernel
def mix_pair(a, b, turn):
    """One Threefry mix: add, rotate `b` left by `turn` bits, xor (all uint32)."""
    total = U(a + b)
    turned = U(U(b << turn) | U(b >> U(U(32) - turn)))
    return total, U(turned ^ total)


@inner_kernel
def mix_twice(x0, x1, x2, x3, a, b, c, d):
    """Apply two rounds of Threefry: two mixes each, by the rotations of the published table."""
    x0, x1 = mix_pair(x0, x1, U(a))
    x2, x3 = mix_pair(x2, x3, U(b))
    x0, x3 = mix_pair(x0, x3, U(c))
    x2, x1 = mix_pair(x2, x1, U(d))
    return x0, x1, x2, x3


@inner_kernel
def mix_words(k0, k1, k2, k3, x0, x1, x2, x3):
    """Apply Threefry-4x32-13 with key k0..k3 to the counter x0..x3 (all uint32)."""
    k4 = U(PARITY ^ k0 ^ k1 ^ k2 ^ k3)
    # A key injection every four rounds.
    x0, x1, x2, x3 = U(x0 + k0), U(x1 + k1), U(x2 + k2), U(x3 + k3)
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 10, 26, 11, 21)
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 13, 27, 23, 5)
    x0, x1, x2, x3 = U(x0 + k1), U(x1 + k2), U(x2 + k3), U(U(x3 + k4) + U(1))
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 6, 20, 17, 11)
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 25, 10, 18, 20)
    x0, x1, x2, x3 = U(x0 + k2), U(x1 + k3), U(x2 + k4), U(U(x3 + k0) + U(2))
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 10, 26, 11, 21)
    x0, x1, x2, x3 = mix_twice(x0, x1, x2, x3, 13, 27, 23, 5)
    x0, x1, x2, x3 = U(x0 + k3), U(x1 + k4), U(x2 + k0), U(U(x3 + k1) + U(3))
    x0, x1 = mix_pair(x0, x1, U(6))
    x2, x3 = mix_pair(x2, x3, U(20))
    return x0, x1, x2, x3


@kernel
def derive_key(seed, purpose, a, b, key):
    """Write the key of the stream (seed, purpose, a, b) into `key`.

    Parameters
    ----------
    seed, a, b : int, taken modulo 2**64
    purpose : int, one of this module's constants, taken modulo 2**32
    key : ndarray(uint32, (4,)), output
    """
    low = np.int64(0xFFFFFFFF)
    key[0], key[1], key[2], key[3] = mix_words(
        U(seed & low),
        U((seed >> np.int64(32)) & low),
        U(purpose),
        U(0),
        U(a & low),
        U((a >> np.int64(32)) & low),
        U(b & low),
        U((b >> np.int64(32)) & low),
    )


def make_key(seed: Any, purpose: Any, a: int, b: int = 0) -> np.ndarray:
    """Return the key that `derive_key` writes, ndarray(uint32, (4,))."""
    key = np.empty(4, np.uint32)
    derive_key(seed, purpose, a, b, key)
    return key


@inner_kernel
def make_uniform(x0, x1):
    """Return 53 of the bits of two uint32 as a number in [0, 1)."""
    high = np.float64(x0 >> U(5))
    low = np.float64(x1 >> U(6))
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)


@kernel
def draw_uniform(key, i, j):
    """Return draw (i, j) of a stream: uniform in [0, 1), 53 bits.

    Parameters
    ----------
    key : ndarray(uint32, (4,)), from `derive_key`
    i, j : int, counter, each below 2**32
    """
    x0, x1, _, _ = mix_words(key[0], key[1], key[2], key[3], U(i), U(j), U(0), U(1))
    return make_uniform(x0, x1)


@kernel
def draw_waiting_time(key, i, j):
    """Return waiting time (i, j) of a stream: exponential of mean 1.

    Its counters are not those of `draw_uniform` and `fill_normals`, so a stream may serve all three.

    Parameters
    ----------
    key : ndarray(uint32, (4,)), from `derive_key`
    i, j : int, counter, each below 2**32
    """
    x0, x1, _, _ = mix_words(key[0], key[1], key[2], key[3], U(i), U(j), U(0), U(2))
    return -math.log(1.0 - make_uniform(x0, x1))


@kernel
def fill_uniforms(key, out):
    """Fill the vector `out` (ndarray(float64)): its entry k is draw (k, 0) of the stream."""
    for k in range(len(out)):
        out[k] = draw_uniform(key, k, 0)


@kernel
def fill_normals(key, block, bits, out):
    """Fill `out` with block number `block` of a stream's independent standard normals.

    Box-Muller on 32-bit radii and 32-bit angles, in float32. The angle is cut to an eighth of a turn
    on either side of zero; three further bits choose the octant, so two short polynomials suffice.

    Parameters
    ----------
    key : ndarray(uint32, (4,)), from `derive_key`
    block : int, block number, below 2**23
    bits : ndarray(uint32, (4, LANES)), scratch
    out : ndarray(float32, (4, LANES)), output, row by row in the stream's order
    """
    k0, k1, k2, k3 = key[0], key[1], key[2], key[3]
    first = np.int64(block) * LANES
    word0, word1, word2, word3 = bits[0], bits[1], bits[2], bits[3]
    for i in range(LANES):
        word0[i], word1[i], word2[i], word3[i] = mix_words(
            k0, k1, k2, k3, U(first + i), U(0), U(0), U(0)
        )
    for half in range(2):
        radius_bits = bits[half]
        angle_bits = bits[2 + half]
        mantissa = radius_bits.view(np.float32)
        mantissa_bits = radius_bits.view(np.int32)
        cosine = out[2 * half]
        sine = out[2 * half + 1]
        # Uniform in (0, 1]: fine near zero, where the tails come from.
        for i in range(LANES):
            mantissa[i] = F(radius_bits[i]) * F(2.0**-32) + F(2.0**-33)
        # x = m 2^e with m in [sqrt(1/2), sqrt(2)); `cosine` holds e for the next loop.
        for i in range(LANES):
            word = mantissa_bits[i]
            exponent = np.int32(np.int32(word - np.int32(0x3F3504F3)) >> np.int32(23))
            mantissa_bits[i] = np.int32(word - np.int32(exponent << np.int32(23)))
            cosine[i] = F(exponent)
        for i in range(LANES):
            # log(m) by the polynomial of Cephes' logf (S. L. Moshier), error below 1e-7.
            m = mantissa[i] - F(1.0)
            e = cosine[i]
            z = m * m
            p = F(7.0376836292e-2) * m - F(1.1514610310e-1)
            p = p * m + F(1.1676998740e-1)
            p = p * m - F(1.2420140846e-1)
            p = p * m + F(1.4249322787e-1)
            p = p * m - F(1.6668057665e-1)
            p = p * m + F(2.0000714765e-1)
            p = p * m - F(2.4999993993e-1)
            p = p * m + F(3.3333331174e-1)
            p = p * m * z - e * F(2.12194440e-4) - F(0.5) * z
            logarithm = m + p + e * F(0.693359375)
            radius = np.sqrt(max(F(-2.0) * logarithm, F(0.0)))
            # sin and cos on [-pi/4, pi/4) by Cephes' polynomials.
            word = angle_bits[i]
            t = F(np.int32(U(word << U(3)))) * F(2.0**-32) * HALF_PI
            s = t * t
            a = (
                (F(-1.9515295891e-4) * s + F(8.3321608736e-3)) * s - F(1.6666654611e-1)
            ) * s * t + t
            b = (F(2.443315711809948e-5) * s - F(1.388731625493765e-3)) * s + F(
                4.166664568298827e-2
            )
            b = b * s * s - F(0.5) * s + F(1.0)
            swap = np.int32(word) < np.int32(0)
            x = a if swap else b
            y = b if swap else a
            x = -x if np.int32(U(word << U(1))) < np.int32(0) else x
            y = -y if np.int32(U(word << U(2))) < np.int32(0) else y
            cosine[i] = radius * x
            sine[i] = radius * y
