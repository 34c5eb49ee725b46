"""Random numbers. Each is a function of a key and a counter: the order of the draws means nothing.

The generator is Threefry-4x32 with 13 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011). A stream is named by a seed, a purpose and two numbers, such as generation and
member.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NOISE, ACTION, RANKING, SAMPLER, INITIAL = 1, 2, 3, 4, 5
"""Purposes of streams."""

WORD = 0xFFFFFFFF
PARITY = 0x1BD11BDA
ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
ROUNDS = 13

LANES = 512
"""Counters of a block; each yields four normals."""

F = np.float32

LOGARITHM = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
"""Coefficients of Cephes' polynomials in float32 (S. L. Moshier), the highest power first."""


def rotate_left(word: Any, turn: int) -> Any:
    """Return a 32-bit word with its bits turned to the left."""
    return ((word << turn) | (word >> (32 - turn))) & WORD


def threefry4x32(key: list[int], counter: list[Any], rounds: int = ROUNDS) -> list[Any]:
    """Return the four 32-bit words of a counter: two mixes a round, a key injection after every fourth.

    The counter's words are integers, or arrays of uint64 for many counters at once.
    """
    extended = [*key, PARITY ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(counter[i] + extended[i]) & WORD for i in range(4)]
    for done in range(rounds):
        turns = ROTATIONS[done % 8]
        pairs = [(0, 1), (2, 3)] if done % 2 == 0 else [(0, 3), (2, 1)]
        for (a, b), turn in zip(pairs, turns, strict=True):
            x[a] = (x[a] + x[b]) & WORD
            x[b] = rotate_left(x[b], turn) ^ x[a]
        if done % 4 == 3:
            injection = done // 4 + 1
            x = [(x[i] + extended[(injection + i) % 5]) & WORD for i in range(4)]
            x[3] = (x[3] + injection) & WORD
    return x


def stream_key(seed: int, purpose: int, a: int, b: int) -> list[int]:
    """Return the key of a stream, four words: Threefry of the key (seed, purpose) and the counter (a, b)."""
    seed, a, b = seed % 2**64, a % 2**64, b % 2**64
    return threefry4x32(
        [seed & WORD, seed >> 32, purpose & WORD, 0], [a & WORD, a >> 32, b & WORD, b >> 32]
    )


def uniform(key: list[int], i: int, j: int) -> float:
    """Return the uniform number (i, j) of a stream, in [0, 1): the top 53 of 64 bits."""
    high, low, _, _ = threefry4x32(key, [i, j, 0, 1])
    return float(((high >> 5) * 2**26 + (low >> 6)) / 2**53)


def normals(key: list[int], n: int) -> np.ndarray:
    """Return the first `n` standard normals of a stream, ndarray(float32, (n,))."""
    n_blocks = -(-n // (4 * LANES))
    counters = np.arange(n_blocks * LANES, dtype=np.uint64)
    words = threefry4x32(key, [counters, 0, 0, 0])
    bits = [word.astype(np.uint32).reshape(n_blocks, LANES) for word in words]
    # A block has four rows: two of each pair of words.
    rows = [*box_muller(bits[0], bits[2]), *box_muller(bits[1], bits[3])]
    return np.stack(rows, axis=1).ravel()[:n]


def box_muller(radius_bits: np.ndarray, angle_bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two standard normals for each pair of 32-bit words: sqrt(-2 log u) times cosine and sine.

    Each step rounds to float32. Logarithm, sine and cosine are polynomials, as a library's differ between
    machines in their last bits.
    """
    u = radius_bits.astype(F) * F(2.0**-32) + F(2.0**-33)
    # u = (1 + m) 2^e, with 1 + m between sqrt(1/2) and sqrt(2)
    bits = u.view(np.int32)
    exponent = (bits - 0x3F3504F3) >> 23
    m = (bits - (exponent << 23)).view(F) - F(1.0)
    e = exponent.astype(F)
    z = m * m
    rest = horner(LOGARITHM, m) * m * z - e * F(2.12194440e-4) - F(0.5) * z
    logarithm = m + rest + e * F(0.693359375)
    radius = np.sqrt(np.maximum(F(-2.0) * logarithm, F(0.0)))
    # Bits 28 to 0 are an angle, an eighth of a turn at most on either side of zero; the others its octant.
    t = (angle_bits << 3).view(np.int32).astype(F) * F(2.0**-32) * F(np.pi / 2)
    s = t * t
    sine = horner(SINE, s) * s * t + t
    cosine = horner(COSINE, s) * s * s - F(0.5) * s + F(1.0)
    swaps, flips_first, flips_second = ((angle_bits >> bit) % 2 == 1 for bit in (31, 30, 29))
    first, second = np.where(swaps, sine, cosine), np.where(swaps, cosine, sine)
    first = np.where(flips_first, -first, first)
    second = np.where(flips_second, -second, second)
    return radius * first, radius * second


def horner(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Return a polynomial's value by Horner's rule, rounded to float32 after each step."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + F(coefficient)
    return value
