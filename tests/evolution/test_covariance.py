"""The spreads that learn their shape: beside a slow oracle, and what must never change or break."""

import os
import subprocess
import sys
import warnings

import naive_evolution as naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from searches import JIT, many_draws, read_bytes
from tables_and_refusals import list_taken

from acerl_np.evolution.covariance import MAX_MATRIX, DiagonalCovariance, FullCovariance
from acerl_np.evolution.rates import find_places, find_rates, weigh_places
from acerl_np.evolution.scaled import MAX_SIGMA, MIN_SIGMA
from acerl_np.evolution.search import Search

FORMS = {"matrix": FullCovariance, "sigma": DiagonalCovariance}

both = pytest.mark.parametrize("kind", FORMS)


def make_search(kind, n=3, population=6, sigma=0.5, start=1.0, **options):
    spread = FORMS[kind](np.full(n, sigma))
    return Search(
        np.full(n, start),
        spread,
        **{"seed": 4, "population": population, "learning_rate": 1.0, **options},
    )


def play(search, evaluate, generations):
    for _ in range(generations):
        noise = search.noise()
        search.tell(evaluate(search.sample(noise)), noise)


def uphill(members):
    """A curved hill that no axis fits."""
    return -np.square(members - 0.25).sum(axis=1) - 9 * np.square(members.sum(axis=1))


def pack_bytes(spread):
    return read_bytes(spread.pack())


# Weights and rates


@given(st.integers(1, 300), st.integers(2, 300), st.booleans())
@settings(max_examples=100 if JIT else 10)
def test_rates_are_the_naive_ones(n, population, full):
    speed = 1.0 if full else (n + 2) / 3
    rates = find_rates(n, population, speed)
    expected = naive.covariance_rates(n, population, speed)
    found = (rates.c_sigma, rates.d_sigma, rates.c_c, rates.c_1, rates.c_mu)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    mean, shape = naive.place_weights(n, population, *expected[-2:])
    np.testing.assert_allclose(rates.mean_weights, mean, atol=1e-14)
    np.testing.assert_allclose(rates.shape_weights, shape, rtol=1e-9, atol=1e-14)
    assert 0 < rates.c_1 <= rates.c_1 + rates.c_mu <= 1


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
@example([10**300, 2 * 10**300, 3 * 10**300, -4 * 10**300])
def test_ties_share_their_places(scores):
    places = find_places(np.array(scores, float))
    by_place = np.array([1.0 / (k + 1) - 0.2 for k in range(len(scores))])
    weights = weigh_places(by_place, places)
    np.testing.assert_allclose(weights, naive.shared(by_place.tolist(), scores), atol=1e-14)
    assert weights.sum() == pytest.approx(by_place.sum())


# One generation


def tell_both(search, kind, utilities, limits=None):
    """Tell a search and the slow one the same; the spread's arrays before and after."""
    noise, state = search.noise(), search.distribution.pack()
    z = search.distribution.draw(noise).astype(np.float64)
    told = search.distribution.first, utilities.tolist(), z, search.antithetic, limits
    mean, expected = naive.adapt(kind, search.mean, state, *told)
    search.tell(utilities, noise)
    np.testing.assert_allclose(search.mean, mean, atol=1e-9)
    packed = search.distribution.pack()
    for name, array in packed.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-8, atol=1e-9, err_msg=name)
    return state, packed


@both
@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("limits", [None, (0.25, 0.5)])
@pytest.mark.parametrize(("n", "population"), [(1, 4), (3, 6), (4, 30)])
def test_a_generation_is_the_naive_one(kind, n, population, limits, antithetic):
    """Random utilities, some of them tied, from the state of a search that runs."""
    search = make_search(kind, n, population, antithetic=antithetic)
    if limits:
        limits = tuple(np.full(n, limit) for limit in limits)
        search.distribution = FORMS[kind](np.full(n, 0.5), limits=limits)
    rng = np.random.default_rng(n)
    for _ in range(8):
        tell_both(search, kind, np.round(rng.normal(size=population), 1), limits)


def test_a_long_path_halts_the_covariances_path():
    """h of (45): after generations in one direction the rank-one update waits; as the naive one."""
    search = make_search("matrix", 2, 10)
    halted = 0
    for _ in range(12):
        state, packed = tell_both(search, "matrix", search.sample(search.noise())[:, 0])
        kept = 1 - find_rates(2, 10, 1.0).c_c
        halted += np.allclose(packed["shape_path"], kept * state["shape_path"], rtol=1e-12)
    assert 0 < halted < 12


# What may not matter


@both
def test_only_the_order_counts_and_the_learning_rate_is_the_means_alone(kind):
    plain, bent, half = make_search(kind), make_search(kind), make_search(kind, learning_rate=0.5)
    for search in (plain, half):
        play(search, uphill, 1)
    np.testing.assert_allclose(half.mean - 1.0, (plain.mean - 1.0) / 2, rtol=1e-12)
    assert pack_bytes(half.distribution) == pack_bytes(plain.distribution)
    play(plain, uphill, 9)
    play(bent, lambda x: -np.sqrt(-uphill(x)) * 1e-200, 10)
    assert plain.mean.tobytes() == bent.mean.tobytes()
    assert pack_bytes(plain.distribution) == pack_bytes(bent.distribution)
    # Equal utilities move nothing.
    step, after = plain.distribution.update(plain, np.full(6, -3.5), plain.noise())
    assert step.tolist() == [0.0] * 3
    assert after is plain.distribution


@many_draws
def test_the_number_of_threads_of_blas_changes_nothing():
    """The largest matrix, where the threads of LAPACK would decide the last digits."""
    code = f"""
import numpy as np
from acerl_np.evolution.covariance import FullCovariance
from acerl_np.evolution.search import Search
n = {MAX_MATRIX}
search = Search(np.ones(n), FullCovariance(np.ones(n)), seed=0, population=20, learning_rate=1.0)
for _ in range(5):
    noise = search.noise()
    x = search.sample(noise)
    search.tell(-(np.arange(1, n + 1) * x**2).sum(axis=1), noise)
packed = b"".join(array.tobytes() for array in search.distribution.pack().values())
print((search.mean.tobytes() + packed).hex())
"""
    found = set()
    for threads in "13":
        names = [f"{name}_NUM_THREADS" for name in ("OPENBLAS", "OMP", "MKL")]
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        options = {"capture_output": True, "check": True, "env": environment}
        found.add(subprocess.run([sys.executable, "-c", code], **options).stdout)
    assert len(found) == 1


# State


@both
def test_unusable_arrays_are_refused(kind):
    spread, never = make_search(kind, 2).distribution, "no search reaches"
    cases = [({"size": np.array(x)}, never) for x in (np.nan, 0.0, -1.0, 1e200)]
    cases += [({"updates": np.array(-1)}, never), ({"shape_path": np.array([0.0, np.inf])}, never)]
    matrices = [np.diag([1.0, x]) for x in (-1.0, np.nan)]
    if kind == "matrix":
        rows = [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]
        matrices += map(np.array, rows)
    else:
        matrices = map(np.diag, matrices)
    cases += [({"covariance": matrix}, never) for matrix in matrices]

    assert list_taken(spread.unpack, spread.pack(), cases) == []


def test_a_matrix_may_be_ill_scaled():
    """Parameters are told apart by their exponents."""
    spread = FullCovariance(np.ones(2))
    scaled = spread.unpack({**spread.pack(), "covariance": np.diag([1.0, 1e-200])})
    np.testing.assert_allclose(scaled.sigma(0), [1.0, 1e-100])


# Limits


@both
@settings(max_examples=60 if JIT else 5)
@given(data=st.data())
def test_any_utilities_leave_a_usable_spread(kind, data):
    n = data.draw(st.integers(1, 4))
    population = 2 * data.draw(st.integers(1, 5))
    antithetic, first = data.draw(st.booleans()), data.draw(st.floats(1e-150, 1e150))
    search = make_search(kind, n, population, first, antithetic=antithetic)
    utility = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1, 1)
    numbers = st.lists(utility, min_size=population, max_size=population)
    for _ in range(10 if JIT else 2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            search.tell(np.array(data.draw(numbers), float), search.noise())
        assert np.isfinite(search.sample(search.noise())).all()
        assert ((search.sigma >= MIN_SIGMA) & (search.sigma <= MAX_SIGMA)).all()
        search.distribution.unpack(search.distribution.pack())


@many_draws
def test_a_matrix_stays_thick_enough_for_float64_and_searches_on():
    """A valley that would be thinner, across the axes."""
    search = make_search("matrix", 2, 12)

    def valley(x):
        return -(1e14 * np.square(x[:, 0] - x[:, 1]) + np.square(x[:, 0] + x[:, 1]))

    thinnest = 1.0
    for _ in range(400):
        play(search, valley, 1)
        c = search.distribution.pack()["covariance"]
        thinnest = min(thinnest, 1 - c[0, 1] ** 2 / (c[0, 0] * c[1, 1]))
    assert 0.9e-13 < thinnest < 1e-12
    assert np.abs(search.mean).max() < 1e-6
