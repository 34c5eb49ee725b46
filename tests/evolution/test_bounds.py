"""Boxes: the smooth map, whole numbers, and searches whose optimum is in a corner."""

import math
from functools import partial

import naive_evolution as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import many_draws
from tables_and_refusals import list_unrefused

from acerl_np.evolution import Evolution, Stops, optimize
from acerl_np.evolution.bounds import SHARE, Smooth

NONE = np.zeros(1, bool)


@given(st.floats(-30, 30), st.floats(-3, 3), st.floats(0.01, 4), st.floats(0.001, 4))
def test_the_smooth_map_is_the_naive_one(y, lower, width, sigma):
    upper = lower + width
    box = Smooth(np.array([lower]), np.array([upper]), np.array([sigma]), NONE)
    rim = min(SHARE * (upper - lower), sigma)
    placed = float(box.transform(np.array([y]))[0])
    assert placed == pytest.approx(naive.place_smoothly(y, lower, upper, rim), abs=1e-9)
    assert lower <= placed <= upper
    assert float(box.transform(box.invert(np.array([placed])))[0]) == pytest.approx(
        placed, abs=1e-9
    )


@given(st.floats(-30, 30), st.floats(-3, 3), st.floats(0.01, 4), st.floats(0.001, 4))
def test_beside_whole_numbers_a_bound_is_a_plateau(y, lower, width, sigma):
    upper, pair = lower + width, np.ones(2)
    box = Smooth(lower * pair, upper * pair + 1, sigma * pair, np.array([False, True]))
    upper, rim = upper + 1, min(SHARE * (upper + 1 - lower), sigma)
    placed, at = float(box.map(y * pair)[0]), y
    while not lower - 2 * rim <= at <= upper + 2 * rim:
        at = 2 * (lower - 2 * rim if at < lower else upper + 2 * rim) - at
    assert placed == pytest.approx(naive.place_smoothly(at, lower, upper, rim), abs=1e-9) or (
        not lower - rim < at < upper + rim
    )
    if at < lower - 1.001 * rim or at > upper + 1.001 * rim:
        assert placed == (lower if at < lower else upper)
    assert float(box.map(box.invert(placed * pair))[0]) == pytest.approx(placed, abs=1e-9)


def test_inside_nothing_is_moved_and_open_sides_stay_open():
    box = Smooth(np.array([-np.inf, 0.0]), np.array([0.0, np.inf]), np.ones(2), np.zeros(2, bool))
    np.testing.assert_array_equal(box.transform(np.array([-5.0, 7.0])), [-5.0, 7.0])
    np.testing.assert_allclose(box.transform(np.array([4.0, -4.0])), [-2.0, 2.0])
    far = box.transform(np.array([-1e300, 1e300]))
    assert (far == [-1e300, 1e300]).all()
    wide = Smooth(np.full(1, -1.5e308), np.full(1, 1.5e308), np.ones(1), NONE)
    assert wide.transform(np.array([1e5])) == 1e5


def count_in_corner(n, seed, adapt="matrix"):
    """Evaluations until the sum of all parameters is within 1e-9 of 0, the corner of [0, 1]^n."""
    start = np.random.default_rng(seed).uniform(size=n)
    options = {"population": 4 + int(3 * math.log(n)), "adapt": adapt, "bounds": (0.0, 1.0)}
    limits = Stops(target=1e-9)
    found = optimize(np.sum, start, 0.3, limits=limits, restarts=0, seed=seed, **options)
    return found.evaluations if "target" in found.reasons else math.inf


@many_draws
@pytest.mark.parametrize(
    ("adapt", "n", "most"), [("matrix", 5, 950), ("matrix", 10, 2_000), ("sigma", 10, 2_000)]
)
def test_a_corner_is_found_as_fast_as_an_optimum_inside(adapt, n, most):
    """pycma needs 761 evaluations for n = 5 and 1,558 for n = 10, the median of 11 such searches."""
    assert np.median([count_in_corner(n, seed, adapt) for seed in range(3)]) < most


@many_draws
@pytest.mark.parametrize("adapt", ["matrix", "sigma"])
def test_whole_numbers_are_found_beside_others(adapt):
    """One member in 22 leaves a number that the mean stands on, so none is final too early."""
    wanted = np.array([3.0, -7.0, 0.25, 12.0])
    options = {"sigma": 3.0, "integers": [0, 1, 3], "population": 12, "evaluations": 6_000}
    options["bounds"] = [-20.5, -20.0, -np.inf, -20.0], [20.5, 20.0, np.inf, 12.9]

    def evaluate(x):
        return float(np.square((x - wanted) * [1, 5, 1, 0.2]).sum())

    for seed in range(3):
        found = optimize(evaluate, np.zeros(4), adapt=adapt, seed=seed, **options)
        assert (found.x[[0, 1, 3]] == [3, -7, 12]).all()
        assert found.x[2] == pytest.approx(0.25, abs=1e-4)


@pytest.mark.parametrize("adapt", ["none", "sigma", "matrix"])
def test_sigma_of_whole_numbers_keeps_its_floor(adapt):
    decay = {"noise_decay": 0.5} if adapt == "none" else {}
    options = {"adapt": adapt, "integers": [True, False], **decay}
    evolution = Evolution([2.0, 2.0], sigma=0.3, population=6, **options)
    for _ in range(12):
        members, _ = evolution.ask()
        assert (members[:, 0] == np.rint(members[:, 0])).all()
        evolution.tell(-np.square(members - 2.0).sum(axis=1))
        assert evolution.sigma[0] >= 0.25 * (1 - 1e-12)
    assert evolution.sigma[1] < 0.25
    for bounds in ((-0.5, [9, 0]), None):  # zero has no sign
        options = {"adapt": adapt, "integers": [0, 1], "bounds": bounds, "population": 30}
        members, _ = Evolution([0.0, 0.0], sigma=0.5, **options).ask()
        assert (members == 0.0).any()
        assert not np.signbit(members[members == 0.0]).any()


@pytest.mark.parametrize("adapt", ["sigma", "matrix"])
def test_the_mean_follows_whole_steps(adapt):
    """Of two members the better one is the next mean: at its whole number, if that is not the old mean's."""
    left, options = set(), {"sigma": 0.8, "population": 2, "integers": [0], "adapt": adapt}
    for seed in range(8):
        evolution = Evolution([1.0, 0.5], seed=seed, **options)
        (member, _), _ = evolution.ask()
        evolution.tell([1.0, 0.0])
        if np.hypot(*(member - [1.0, 0.5])) < 0.8 * 2.4:  # a longer way is told shorter
            mean = evolution.get_state()["mean"]
            assert (mean[0] == pytest.approx(member[0], abs=1e-12)) == (member[0] != 1.0)
            assert mean[1] == pytest.approx(member[1], abs=1e-12)
            left.add(member[0] != 1.0)
    assert left == {False, True}


def test_ends_of_whole_numbers_are_as_likely_as_the_others():
    options = {"adapt": "sigma", "integers": [0], "bounds": (-0.2, 2.9), "population": 600}
    members, _ = Evolution([1.0], sigma=1.0, **options).ask()
    counts = np.bincount(members[:, 0].astype(int), minlength=3)
    assert set(members[:, 0].tolist()) == {0.0, 1.0, 2.0}
    assert counts.min() > 100


def test_unusable_integers_are_refused():
    cases = [
        ({"integers": [2]}, "integers: read [2]; expected positions of parameters, -2 to 1"),
        *(({"integers": [x]}, "integers: read") for x in (0.5, True)),
        ({"integers": [0], "bounds": (0.2, 0.8)}, "bounds: read 0.2 to 0.8 for parameter 0"),
    ]
    start = partial(Evolution, [0.5, 0.5], sigma=1.0)
    assert list_unrefused(lambda given: start(**given), cases) == []
