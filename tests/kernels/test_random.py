"""Random streams: published known answers, the slow definitions, and statistics."""

import inspect

import naive_evolution as naive
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from acerl_np.kernels.core import random
from acerl_np.kernels.core.random import BLOCK, LANES, NOISE
from acerl_np.kernels.learning.update import fill_stream


def statistical(test):
    """What can fail only if a definition changes, of which the slow ones above tell, too."""
    reason = "millions of draws need compiled kernels"
    return pytest.mark.slow(pytest.mark.skipif(numba.config.DISABLE_JIT, reason=reason)(test))


PURPOSES = {
    name: value
    for name, value in inspect.getmembers(random)
    if name.isupper() and isinstance(value, np.int64)
}

ZEROS = (0, 0, 0, 0)
ONES = (0xFFFFFFFF,) * 4
PI_COUNTER = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
PI_KEY = (0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)

# The generator's authors publish these: kat_vectors of Random123.
KNOWN_ANSWERS = [
    (13, ZEROS, ZEROS, (0x531C7E4F, 0x39491EE5, 0x2C855A92, 0x3D6ABF9A)),
    (13, ONES, ONES, (0xC4189358, 0x1C9CC83A, 0xD5881C67, 0x6A0A89E0)),
    (13, PI_KEY, PI_COUNTER, (0x4AA71D8F, 0x734738C2, 0x431FC6A8, 0xAE6DEBF1)),
    (20, ZEROS, ZEROS, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
    (20, ONES, ONES, (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
    (20, PI_KEY, PI_COUNTER, (0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84)),
]

words = st.integers(0, 2**32 - 1)
long_words = st.integers(-(2**63), 2**63 - 1)
seeds = st.integers(0, 2**63 - 1)


def key_of(seed, purpose, a, b):
    key = np.empty(4, np.uint32)
    random.derive_key(seed, purpose, a, b, key)
    return key


def block_of(key, block):
    out = np.empty((4, LANES), np.float32)
    random.fill_normals(np.array(key, np.uint32), block, np.empty((4, LANES), np.uint32), out)
    return out


def stream(seed, purpose, a, b, n):
    out = np.empty(n, np.float32)
    fill_stream(seed, purpose, a, b, out)
    return out


# Definitions


def test_slow_generator_gives_the_published_answers():
    for rounds, key, counter, answer in KNOWN_ANSWERS:
        assert naive.threefry4x32(key, counter, rounds) == list(answer)


@given(seeds, words, long_words, long_words)
@example(2**63 - 1, 2**32 - 1, -1, -(2**63))
@example(2**32, 1, 2**32, -(2**32))
def test_keys_equal_the_slow_ones(seed, purpose, a, b):
    assert key_of(seed, purpose, a, b).tolist() == naive.stream_key(seed, purpose, a, b)


@given(st.tuples(*[words] * 4), words, words)
@example(PI_KEY, *PI_COUNTER[:2])
def test_uniform_draws_equal_the_slow_ones(key, i, j):
    drawn = random.draw_uniform(np.array(key, np.uint32), i, j)
    assert drawn == naive.uniform(key, i, j)
    assert 0.0 <= drawn < 1.0


@settings(max_examples=3 if numba.config.DISABLE_JIT else 25)
@given(st.tuples(*[words] * 4), st.integers(0, 2**23 - 1))
@example(ZEROS, 0)
@example(PI_KEY, 2**23 - 1)
def test_normals_equal_box_muller_in_float64(key, block):
    np.testing.assert_allclose(block_of(key, block), naive.normals(key, block), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [1, LANES + 1, BLOCK, BLOCK + 1])
def test_a_stream_is_its_blocks_row_by_row(n):
    key = key_of(3, NOISE, 5, 7)
    blocks = np.concatenate([block_of(key, 0).ravel(), block_of(key, 1).ravel()])
    assert stream(3, NOISE, 5, 7, n).tobytes() == blocks[:n].tobytes()


# Keys


def test_purposes_are_different_words():
    assert sorted(PURPOSES.values()) == list(range(1, len(PURPOSES) + 1))
    for name in ("NOISE", "ACTION", "RANKING", "SAMPLER", "INITIAL", "EVALUATION", "BREAKDOWN"):
        assert PURPOSES[name] == getattr(naive, name)


# Statistics: fixed keys, limits of five standard errors


def check_moments(x):
    x = x.astype(np.float64)
    n = len(x)
    mean, std = x.mean(), x.std()
    z = (x - mean) / std
    assert abs(mean) < 5 * np.sqrt(1 / n)
    assert abs(std**2 - 1) < 5 * np.sqrt(2 / n)
    assert abs((z**3).mean()) < 5 * np.sqrt(6 / n)
    assert abs((z**4).mean() - 3) < 5 * np.sqrt(24 / n)


@statistical
def test_normals_are_normal():
    """In each row of blocks, over all, and the first ones of many streams; far out, and in pairs."""
    rows = stream(0, NOISE, 0, 0, 2**22).reshape(-1, 4, LANES).transpose(1, 0, 2).reshape(4, -1)
    first = np.array([stream(1, NOISE, 0, member, 1)[0] for member in range(2**16)])
    for x in (*rows, rows.ravel(), first):
        check_moments(x)
        assert stats.kstest(x.astype(np.float64), "norm").pvalue > 1e-4
    check_uncorrelated(rows)
    # All eight octants are equally likely.
    cosine, sine = rows[0].astype(np.float64), rows[1].astype(np.float64)
    octant = 4 * (cosine > 0) + 2 * (sine > 0) + (np.abs(cosine) > np.abs(sine))
    assert stats.chisquare(np.bincount(octant, minlength=8)).pvalue > 1e-4
    angle = np.arctan2(sine, cosine) / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 1e-4
    x = np.concatenate([stream(6, NOISE, 0, member, 2**22) for member in range(8)])
    assert np.abs(x).max() < 7
    for limit in (3, 4, 5):
        low, high = stats.poisson.interval(1 - 1e-6, len(x) * stats.norm.sf(limit))
        for tail in (x > limit, x < -limit):
            assert max(1, low) <= tail.sum() <= high


def check_uncorrelated(x):
    """No pair of the rows of `x` stands out, and the sum over all pairs is chi-squared."""
    x = x.astype(np.float64)
    for values in (x, x**2):
        correlation = np.corrcoef(values)[np.triu_indices(len(values), 1)]
        n = values.shape[1]
        assert np.abs(correlation).max() < 5.5 / np.sqrt(n)
        p = stats.chi2.sf(n * np.square(correlation).sum(), len(correlation))
        assert 1e-5 < p < 1 - 1e-5


@statistical
def test_streams_are_uncorrelated_and_so_are_normals_at_every_lag():
    numbers = range(32)
    for keys in (
        [(0, NOISE, 0, member) for member in numbers],
        [(0, NOISE, generation, 0) for generation in numbers],
        [(0, purpose, 0, 0) for purpose in PURPOSES.values()],
        [(seed, NOISE, 0, 0) for seed in numbers],
        [(k << 32, NOISE, k << 32, -k << 32) for k in numbers],  # their high parts
    ):
        check_uncorrelated(np.stack([stream(*key, 2**16) for key in keys]))
    x = stream(8, NOISE, 0, 0, 2**20).astype(np.float64)
    for values in (x, x**2):
        z = (values - values.mean()) / values.std()
        for lag in [*range(1, 65), LANES - 1, LANES, LANES + 1, 2 * LANES, 3 * LANES, BLOCK]:
            assert abs((z[lag:] * z[:-lag]).mean()) < 5 / np.sqrt(len(z) - lag)


@numba.njit
def draw_grid(key, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = random.draw_uniform(key, i, j)


@statistical
def test_uniform_draws_are_uniform_and_those_of_neighbouring_members_uncorrelated():
    grid = np.empty((1024, 1024))
    draw_grid(key_of(0, random.ACTION, 1, 2), grid)
    u = grid.ravel()
    assert len(np.unique(u)) == len(u)
    assert abs(u.mean() - 0.5) < 5 * np.sqrt(1 / 12 / len(u))
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    for shift in (8, 16, 26, 32, 45, 53):  # every stretch of the 53 bits, also the lowest ones
        digit = np.floor(u * 2.0**shift).astype(np.int64) & 255
        assert stats.chisquare(np.bincount(digit, minlength=256)).pvalue > 1e-4
    grid = np.empty((32, 2**14))
    for member in range(32):
        draw_grid(key_of(0, random.ACTION, 0, member), grid[member : member + 1])
    check_uncorrelated(grid - 0.5)
