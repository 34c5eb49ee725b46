"""`optimize`, stop conditions, restarts, several constraints, warm starts, states that stand alone."""

import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from machine import load_example
from searches import hill, many_draws, play, state_bytes
from tables_and_refusals import list_unrefused

from acerl_np.evolution import Evolution, Stops, optimize
from acerl_np.evolution.lagrangian import find_slopes, score_members, step_ahead
from acerl_np.evolution.progress import SHARE, SHRINK, Record, Tolerance
from acerl_np.support.errors import ConfigError, InputError


def sphere(x):
    return float(np.square(x - 1.0).sum())


def rastrigin(x):
    return float(10 * len(x) + (x**2 - 10 * np.cos(2 * np.pi * x)).sum())


def climb(evolution, generations):
    for _ in range(generations):
        play(evolution, 1, lambda members, _: (hill(members),))
        if evolution.stop():
            break
    return evolution


# optimize


@many_draws
def test_a_function_is_minimised_or_maximised():
    least = optimize(sphere, np.zeros(4), sigma=0.5)
    most = optimize(lambda x: -sphere(x), np.zeros(4), sigma=0.5, maximise=True)
    np.testing.assert_allclose(least.x, 1.0, atol=1e-4)
    assert least.value == sphere(least.x) == -most.value
    assert least.x.tobytes() == most.x.tobytes()
    assert (least.feasible, least.violation) == (True, 0.0)
    assert least.reasons and least.evaluations < 2_000


class Elsewhere(ThreadPoolExecutor):
    """What is sent must be known there, too; notes how many pieces are sent at a time."""

    def __init__(self):
        super().__init__(3)
        self.sizes = []

    def map(self, function, pieces):
        self.sizes.append(len(pieces))
        return super().map(*pickle.loads(pickle.dumps((function, pieces))))


def test_executors_change_no_byte_and_are_sent_pieces():
    options = {"bounds": ([0.0] * 2, [2.0] * 2), "constraints": partial(np.subtract, 0.5)}
    alone = optimize(np.linalg.norm, evaluations=90, **options)
    with Elsewhere() as executor:
        shared = optimize(np.linalg.norm, evaluations=90, executor=executor, **options)
    assert alone.x.tobytes() == shared.x.tobytes()
    assert (alone.value, alone.evaluations) == (shared.value, shared.evaluations)
    assert (alone.evaluations, alone.reasons) == (90, ("maxfevals",))
    # Of quick functions several at a time, but for the first ones.
    assert executor.sizes[0] == 6 and set(executor.sizes[1:]) == {1}


def spread(x):
    """Sum of the squared distances to the nearest neighbour."""
    apart = np.square(x.reshape(3, 1, 2) - x.reshape(1, 3, 2)).sum(axis=2)
    return float((apart + np.diag([np.inf] * 3)).min(axis=1).sum())


GOLDEN = math.sqrt((math.sqrt(5) - 1) / 2)
KNOWN = {
    # x + y = 1 at a scale of 1e6 and x <= 0.2 at 1e-3.
    "scales": (
        lambda x: float(np.square(x).sum()),
        lambda x: [1e6 * (1.0 - x[0] - x[1]), 1e-3 * (x[0] - 0.2)],
        {"bounds": ([-2.0] * 2, [2.0] * 2)},
        ([0.2, 0.8], 0.68),
    ),
    # Where x^2 + y^2 = 1 crosses y = x^2 there are two points, with any z; the right one is wanted.
    "curves": (
        lambda x: float(-x[0] + (x[2] - x[0]) ** 2),
        lambda x: [np.square(x[:2]).sum() - 1.0, x[1] - x[0] ** 2],
        {"bounds": ([-2.0] * 3, [2.0] * 3), "restarts": 4, "tolerance": 1e-6},
        ([GOLDEN, GOLDEN**2, GOLDEN], -GOLDEN),
    ),
    # Nocedal and Wright, "Numerical Optimization", example 12.19.
    "tip": (
        lambda x: -2.0 * x[0] + x[1],
        lambda x: [x[1] - (1.0 - x[0]) ** 3, 1.0 - x[1] - 0.25 * x[0] ** 2],
        {"x0": [-1.0, 1.0], "sigma": 1.0, "restarts": 4},  # half of first searches end beside it
        ([0.0, 1.0], 1.0),
    ),
    # Three points as far from their nearest neighbour as a disc of radius 3 allows: 3 (3 sqrt(3))^2.
    "disc": (
        spread,
        lambda x: np.linalg.norm(x.reshape(3, 2), axis=1) - 3.0,
        {"x0": np.random.default_rng(0).normal(size=6), "sigma": 1.0, "maximise": True},
        (None, 81.0),
    ),
    # No value outside the constraints.
    "root": (
        lambda x: math.sqrt(x[0] - 1.0) + x[1] ** 2 if x[0] >= 1.0 else math.nan,
        lambda x: [1.0 - x[0]],
        {"x0": [-5.0, 3.0], "sigma": 1.0},
        ([1.0, 0.0], 0.0),
    ),
}


@many_draws
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", KNOWN)
def test_known_optima_are_found(name, seed):
    function, constraints, options, (x, value) = KNOWN[name]
    kind = "equalities" if "tolerance" in options else "constraints"
    found = optimize(function, **{kind: constraints}, seed=seed, **options)
    kept = np.abs(constraints(found.x)) if kind == "equalities" else constraints(found.x)
    assert found.feasible and max(kept) <= options.get("tolerance", 0.0)
    assert found.value == pytest.approx(value, abs=1e-3)
    if x is not None:
        # Beside "root" nothing tells one point from another: of 12 seeds the farthest is 0.02 away.
        np.testing.assert_allclose(found.x, x, atol=0.03 if name == "root" else 1e-4)


@many_draws
def test_a_long_curve_is_followed_to_its_end():
    """A spiral of nearly five turns, on which the height is best at the top."""

    def constraints(x):
        return [x[k] - f(10 * x[2]) for k, f in enumerate((math.cos, math.sin))]

    options = {"bounds": ([-2.0] * 3, [2.0, 2.0, 3.0]), "evaluations": 20_000, "population": 26}
    found = [
        optimize(lambda x: -x[2], equalities=constraints, seed=seed, **options) for seed in range(5)
    ]
    assert sum(one.feasible and one.value < -3.0 + 1e-3 for one in found) >= 4


@many_draws
def test_restarts_find_what_one_search_misses():
    options = {"bounds": (np.full(3, -5.0), np.full(3, 5.0)), "limits": Stops(target=1e-6)}
    once = [optimize(rastrigin, seed=seed, **options) for seed in range(4)]
    often = [optimize(rastrigin, restarts=6, seed=seed, **options) for seed in range(4)]
    assert sum(found.value < 1e-6 for found in once) < 3
    assert all(found.value < 1e-6 and "target" in found.reasons for found in often)
    assert max(found.restarts for found in often) > 0


@many_draws
def test_a_search_without_a_feasible_member_begins_again():
    """The violation is least at (3, 3), and almost as small at (-3, -3), where nothing is feasible."""

    def constraints(x):
        return [min(0.5 + np.square(x + 3).sum(), np.square(x - 3).sum() - 0.1)]

    options = {"bounds": ([-5.0] * 2, [5.0] * 2), "constraints": constraints, "sigma": 0.5}
    found = optimize(sphere, [-3.0, -3.0], **options)
    assert found.feasible and found.restarts > 0
    assert found.evaluations < 10_000  # a feasible member ends it as ever
    nearest = optimize(sphere, [-3.0, -3.0], adapt="none", evaluations=2_000, **options)
    assert not nearest.feasible  # a schedule knows no restart


def test_without_a_feasible_point_the_nearest_one_is_returned():
    options = {"constraints": lambda x: [x[0] ** 2 + 1.0], "evaluations": 1_200}
    found = optimize(sphere, np.zeros(2), sigma=0.5, **options)
    assert not found.feasible and found.violation == pytest.approx(1.0, abs=1e-3)
    assert found.x[0] == pytest.approx(0.0, abs=0.05)
    with pytest.warns(RuntimeWarning, match="function: no member of the first generation"):
        failed = optimize(lambda x: math.nan, np.zeros(2), sigma=1.0, evaluations=6)
    assert np.isnan([*failed.x, failed.value]).all()


def test_unusable_arguments_are_refused():
    def search(given):
        return optimize(**{"function": sphere, **given})

    known = {"x0": [0.0], "sigma": 1.0}
    returned = [
        *((lambda x: [], "none"), (lambda x: [0.0, [1.0, 2.0]], ""), (lambda x: None, "None")),
        (lambda x: [0.0] * (1 + int(x[0] > 0)), "different numbers"),
    ]
    compared = (lambda x: x[0] < 1, lambda x: [x[0] - 1, x < 1], lambda x: x < 1)
    plain = [
        *((own, "x0: read none; expected a point") for own in ({}, {"bounds": (0.0, 1.0)})),
        ({"bounds": ([0.0], np.inf)}, "a side of the bounds is open"),
        ({"bounds": [(0, 1), (0, 1), (0,)]}, "expected a pair"),
        ({"bounds": ((-5, 5), (-1, 1))}, "expected lists"),
        *(
            ({"bounds": box}, "bounds: read 5.0 to 1.0 for parameter 1")
            for box in (([-5, 5], [-1, 1]), [[-5, -1], [5, 1]])
        ),
        ({"bounds": [(-5, 5), (None, 1)]}, "a side of the bounds is open"),
        ({"x0": []}, "x0: read shape (0,)"),
        ({"x0": "abc"}, "x0: read str"),
        ({"x0": [0.0, np.nan]}, "x0: read nan for parameter 1; expected finite"),
        ({**known, "function": str}, "function: read '"),
        ({**known, "function": lambda x: "1.0"}, "function: read '1.0'; expected a number"),
        *(({**known, "constraints": own}, f"constraints: read {x}") for own, x in returned),
        *(({**known, "constraints": own}, "x[0] - 1 for x[0] <= 1") for own in compared),
        (
            {**known, "constraints": compared[2], "vectorised": True, "function": np.ravel},
            "constraints: read ",
        ),
    ]
    given = {"function": 4, "callback": 4, "executor": 4, "restarts": -1, "evaluations": 0}
    elsewhere = {
        "maxiter": "evaluations, the generations",
        **dict.fromkeys(("maxfun", "maxfevals"), "evaluations"),
        **{"popsize": "population", "popultion": "one of function", "tol": "limits=Stops(tolfun"},
        "method": "one of function, x0, sigma",
    }
    options = [
        ({"bounds": ([0.0], [1.0]), "seed": -1}, "seed: read -1"),
        *(({"x0": [0.0], **own}, "sigma: read none") for own in ({}, {"bounds": (0.0, np.inf)})),
        ({**known, "adapt": "none", "restarts": 1}, "restarts: read 1"),
        ({**known, "noise_decay": 0.5}, "noise_decay: read 0.5; expected none here"),
        ({**known, "n_instances": 3}, "n_instances: read 3; expected none"),
        ({**known, "evaluations": 9, "population": 10}, "population: read 10; expected at most"),
        ({**known, "alpha_u": 0.5}, "alpha_u: read 0.5; expected none"),
        ({**known, "limits": {"tolx": 1}}, "limits: read {'tolx"),
        ({**known, "constraints": [abs]}, "constraints: read [<built-in function abs"),
        *(({**known, name: value}, f"{name}: read {value}") for name, value in given.items()),
        *(({**known, name: 4}, f"expected {meant}") for name, meant in elsewhere.items()),
    ]
    for cases, error in ((plain, InputError), (options, ConfigError)):
        assert list_unrefused(search, cases, error) == []


@pytest.mark.parametrize("integers", [None, [0]])
def test_equalities_are_two_inequalities_but_one_beside_whole_numbers(integers):
    options = {"sigma": 1.0, "integers": integers, "population": 8}
    told, sides = (Evolution(np.zeros(3), **options) for _ in range(2))
    for _ in range(5):
        x, _ = told.ask()
        h, g = x[:, :2] - x[:, 2:], x[:, :1] - 1.0
        told.tell(-hill(x), g, equalities=h, tolerance=0.1, minimise=True)
        both = [np.abs(h) - 0.1] if integers else [h - 0.1, -h - 0.1]
        sides.ask()
        sides.tell(hill(x), np.column_stack([g, *both]), minimise=False)
    assert state_bytes(told) == state_bytes(sides)
    told.ask()
    cases = [({"equalities": h.T}, "equalities: read shape (2, 8); expected (8,) or (8, n)")]
    cases += [({"costs": h.T}, "costs: read shape (2, 8); expected (8,) or (8, n)")]
    cases += [({"equalities": h, "tolerance": -1.0}, "tolerance: read -1")]
    tell = lambda given: told.tell(np.zeros(8), **given)  # noqa: E731
    assert list_unrefused(tell, cases[:2]) + list_unrefused(tell, cases[2:], ConfigError) == []


def test_returns_without_a_value_enter_no_slope():
    """Whatever else lies outside: the returns there are what the slopes of the others foresee."""
    rng = np.random.default_rng(0)
    z, values, slopes = rng.normal(size=(40, 3)), rng.normal(size=2), rng.normal(size=(3, 2))
    y = values + z @ slopes + np.square(z).sum(axis=1, keepdims=True) / 2
    found = find_slopes(z[:30], y[:30])
    np.testing.assert_allclose(found.foresee(z[30:]), y[30:, 0], atol=1e-6)
    evolution = Evolution(np.full(2, 2.0), sigma=0.1, population=8)  # all of the first are outside
    costs = []
    for _ in range(60):
        x, _ = evolution.ask()
        outside = x.max(axis=1) > 0.0
        evolution.tell(np.where(outside, np.nan, x.sum(axis=1)), x, minimise=False)
        costs.append(evolution.closest.cost)
    assert costs[0] > 1.0 and costs[-1] == 0.0
    np.testing.assert_allclose(evolution.best.parameters, 0.0, atol=1e-3)


@pytest.mark.parametrize("adapt", ["none", "sigma", "matrix"])
def test_nothing_moves_on_a_constant(adapt):
    evolution = Evolution(np.ones(3), sigma=0.5, adapt=adapt, population=6)
    for _ in range(5):
        evolution.ask()
        evolution.tell(np.zeros(6), np.ones((6, 1)))
    assert evolution.mean.tolist() == [1.0] * 3


@many_draws
def test_a_search_stops_as_late_on_small_values_as_on_smaller():
    scaled = (lambda x: 2.0**-40 * sphere(x)), (lambda x: 2.0**-100 * sphere(x))
    found = [optimize(one, [3.0, 0.0], 0.5) for one in scaled]
    assert found[0].x.tobytes() == found[1].x.tobytes()
    np.testing.assert_allclose(found[0].x, 1.0, atol=1e-3)


@pytest.mark.parametrize("bounds", [None, (-3.0, 3.0)])
def test_a_search_that_runs_off_says_once_that_it_maximises(bounds):
    warned = []
    for minimise in (None, False, True):
        evolution = Evolution(np.zeros(2), sigma=0.5, population=6, bounds=bounds)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(60):
                x, _ = evolution.ask()
                evolution.tell(np.square(x).sum(axis=1), minimise=minimise)
        warned.append([str(one.message)[:23] for one in caught])
    assert warned == [["tell: the search maximi"], [], []]


def test_what_the_function_raises_has_what_was_found():
    calls = []

    def evaluate(x):
        calls.append(x)
        if len(calls) > 20:
            raise OSError("no licence")
        return sphere(x)

    with pytest.raises(OSError, match="no licence") as caught:
        optimize(evaluate, [0.0, 0.0], 0.5)
    found = caught.value.found
    assert (found.evaluations, found.reasons) == (18, ("error",))
    assert found.value == min(map(sphere, calls[:18])) == sphere(found.x)


def test_no_more_is_evaluated_than_was_allowed():
    calls = []
    found = optimize(lambda x: calls.append(x) or sphere(x), np.zeros(9), 1.0, evaluations=5)
    assert len(calls) == found.evaluations == 5


def test_a_vectorised_function_changes_no_byte():
    options = {"bounds": [(0, 2)] * 3, "evaluations": 300}
    one = optimize(sphere, constraints=lambda x: x[:2] - 0.5, **options)
    told = {"constraints": lambda x: x[:, :2] - 0.5, "vectorised": True}
    many = optimize(lambda x: np.square(x - 1.0).sum(axis=1), **told, **options)
    assert one.x.tobytes() == many.x.tobytes()
    # An array of one number is a number.
    arrays = {"constraints": lambda x: [x[:1] - 0.5, x[1:2] - 0.5], **options}
    shaped = optimize(lambda x: np.full((1, 1), sphere(x)), **arrays)
    assert (one.x.tobytes(), one.value) == (shaped.x.tobytes(), shaped.value)
    for function, constraints in ((sphere, None), (lambda x: x[:, 0], lambda x: x[1:])):
        with pytest.raises(
            InputError, match=r"read shape .* expected \(7,\).* a row for each point"
        ):
            optimize(function, constraints=constraints, vectorised=True, **options)


def test_a_callback_or_an_interrupt_may_end_the_search():
    seen = []

    def watch(search):
        seen.append((search.generation, search.best.return_))
        return len(seen) == 5

    found = optimize(sphere, np.zeros(2), sigma=0.5, restarts=3, callback=watch)
    assert [generation for generation, _ in seen] == [1, 2, 3, 4, 5]
    assert (found.generations, found.reasons) == (5, ("callback",))
    assert found.value == -seen[-1][1]
    kept = []

    def evaluate(x):
        if kept and kept[-1].generation == 3:
            raise KeyboardInterrupt
        return sphere(x)

    found = optimize(evaluate, np.zeros(2), sigma=0.5, callback=kept.append)
    assert (found.generations, found.value, found.reasons) == (3, sphere(found.x), ("interrupt",))
    result = kept[-1].result()
    assert (result.generations, result.value) == (3, -sphere(result.x))
    assert result.mean.tobytes() == found.mean.tobytes() != result.x.tobytes()
    with pytest.raises(KeyboardInterrupt):  # nothing was found
        optimize(evaluate, np.zeros(2), sigma=0.5)


def test_bounds_come_as_those_of_scipy_and_pycma():
    plain = optimize(sphere, [0, 0], sigma=0.3, bounds=([0, -np.inf], [2.0, 0.5]), evaluations=100)
    for bounds in (
        [(0.0, 2.0), (None, 0.5)],
        [[0.0, 2.0], [None, 0.5]],
        ([0.0, None], [2.0, 0.5]),
        np.array([[0.0, 2.0], [-np.inf, 0.5]]),
        (np.array([0.0, -np.inf]), np.array([2.0, 0.5])),
        SimpleNamespace(lb=[0.0, -np.inf], ub=[2.0, 0.5]),
    ):
        found = optimize(sphere, [0.0, 0.0], 0.3, bounds=bounds, evaluations=1e2)
        assert found.x.tobytes() == plain.x.tobytes()
    assert optimize(sphere, bounds=[(0, 1)] * 5, evaluations=8).x.shape == (5,)
    assert Evolution([0.0], sigma=1.0, bounds=(None, 3)).get_state()["option.bounds[0]"] == -np.inf


def test_seeds_may_be_fresh_and_positions_count_from_the_end():
    fresh = [optimize(sphere, [0.0], 1.0, seed=None, evaluations=20).x[0] for _ in range(2)]
    assert fresh[0] != fresh[1]
    last = optimize(sphere, [0.2, 0.2], 1.0, integers=[-1], evaluations=40)
    assert last.x[1] == round(last.x[1])
    assert last.x[0] != round(last.x[0])


def test_multipliers_are_those_of_the_slopes():
    """By hand: f = -3 z0 and g = z0 - 0.1: with the multiplier 3 the Lagrangian is flat but for penalties."""
    z = np.random.default_rng(0).normal(size=(40, 2))
    g = z[:, :1] - 0.1

    def score(returns, stiffness):
        outputs = np.column_stack((returns, g))
        return score_members(outputs, find_slopes(z, outputs), stiffness)

    scores, step = score(3.0 * z[:, 0], 1.0)
    assert np.ptp(scores) < 0.5 * np.ptp(3.0 * z[:, 0])
    assert step[0] == pytest.approx(0.1, abs=1e-3) and step[0] < 0.1
    curved, step = score(3.0 * z[:, 0] - z[:, 1] ** 2, 1.0)
    assert abs(z[curved.argmax(), 1]) < 0.5
    assert step[0] == pytest.approx(0.1, abs=1e-3)
    stiff, _ = score(3.0 * z[:, 0] - z[:, 1] ** 2, 1e6)
    assert (np.sort(stiff[g[:, 0] > 0.3])[-1] < np.sort(stiff[g[:, 0] <= 0.0])).mean() > 0.9


@pytest.mark.parametrize("count", [80, 30, 6])
def test_slopes_are_those_of_what_is_linear_or_evenly_curved(count):
    """Known at once from twice as many members as parameters, nearly from fewer, in their span from few."""
    rng = np.random.default_rng(count)
    z, slopes, values = rng.normal(size=(count, 10)), rng.normal(size=(3, 10)), rng.normal(size=3)
    y = values + z @ slopes.T
    y[:, 2] += 0.7 * np.square(z).sum(axis=1) / 2
    found = find_slopes(z, y)
    if count == 80:
        np.testing.assert_allclose(found.slopes, slopes.T, atol=1e-6)
        np.testing.assert_allclose(found.values, values, atol=1e-6)
        np.testing.assert_allclose(found.curves, [0.0, 0.0, 0.7], atol=1e-6)
        assert found.errors.max() < 1e-6
    elif count == 30:
        np.testing.assert_allclose(found.slopes[:, :2], slopes[:2].T, atol=0.2)
    else:
        told = (z - z.mean(axis=0)) @ found.slopes[:, :2]
        np.testing.assert_allclose(told, (y - y.mean(axis=0))[:, :2], atol=1.0)


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 12))
def test_a_step_ahead_is_the_optimum_of_its_programme(seed, n, m):
    """Kept constraints, multipliers that are not negative, no slope left, none of what is not met."""
    rng = np.random.default_rng(seed)
    normals, slope = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-3, 3, m), rng.normal(size=n)
    curve, size = 10.0 ** rng.uniform(-4, 2), np.linalg.norm(normals, axis=0)
    g = -np.abs(rng.normal(size=m)) * size  # 0 keeps all
    step, gamma = step_ahead(slope, curve, g, normals)
    scale = 1.0 + np.abs(slope).max() / curve
    beyond = (g + step @ normals) / size
    assert (gamma >= 0.0).all() and (beyond < 1e-3 * scale).all()
    np.testing.assert_allclose(
        slope + curve * step + normals @ gamma, 0.0, atol=1e-6 * curve * scale
    )
    assert (np.abs(gamma * size * beyond) <= 1e-2 * curve * scale**2).all()


def test_a_step_between_constraints_that_contradict_each_other_is_finite():
    step, gamma = step_ahead(
        np.ones(2), 1.0, np.array([1.0, 1.0]), np.array([[1.0, -1.0], [0.0, 0.0]])
    )
    assert np.isfinite(step).all() and np.isfinite(gamma).all()
    assert abs(step[0]) < 0.1
    with np.errstate(invalid="ignore"):
        step, gamma = step_ahead(np.ones(2), 1.0, np.array([np.inf]), np.ones((2, 1)))
    assert (step.tolist(), gamma.tolist()) == ([-1.0, -1.0], [0.0])


@many_draws
@pytest.mark.parametrize(("n", "active", "most"), [(10, 5, 900), (20, 10, 1_600)])
def test_many_active_constraints_cost_little(n, active, most):
    """pycma needs 2,100 and 7,000."""
    problem = load_example("families").quadratic(np.random.default_rng(0), n, active)
    found = optimize(
        lambda x: problem.evaluate(x)[0],
        problem.start,
        problem.sigma,
        constraints=lambda x: problem.evaluate(x)[1],
        limits=Stops(target=problem.optimum + 1e-6),
    )
    assert found.reasons == ("target",) and found.evaluations < most


@many_draws
@pytest.mark.parametrize(
    ("name", "population"), [("vessel", 20), ("vessel", 40), ("cantilever", 12)]
)
def test_large_populations_come_to_rest_where_constraints_are_active(name, population):
    """Penalties as soft as those of few members find no vessel; 1 / x^3 has members far out."""
    design = load_example("designs").DESIGNS[name]
    lower, upper = np.array(design.lower), np.array(design.upper)
    for seed in range(2):
        found = optimize(
            lambda x: design.evaluate(x.tolist())[0],
            np.random.default_rng(seed).uniform(lower, upper),
            (upper - lower) / 5,
            bounds=(lower, upper),
            constraints=lambda x: design.evaluate(x.tolist())[1],
            limits=Stops(target=design.optimum * (1 + 1e-6)),
            **{"population": population, "evaluations": 20_000, "seed": seed},
        )
        assert found.reasons == ("target",)


def test_a_guess_goes_with_the_state_and_ends_with_a_restart():
    def evaluate(x, _):
        return -np.square(x - 1.0).sum(axis=1), x - 0.5

    evolution = Evolution(np.zeros(3), sigma=0.3, adapt="matrix")
    play(evolution, 2, evaluate)
    guess = evolution.ask()[0][0]
    evolution.inject([[0.1, 0.2, 0.3]])  # waits, as the members are asked for
    again = Evolution.from_state(evolution.get_state())
    assert again.ask()[0][0].tobytes() == guess.tobytes()
    assert again.ask()[0][1].tolist() == [0.1, 0.2, 0.3]
    play(again, 1, evaluate)
    assert [0.1, 0.2, 0.3] not in again.ask()[0].tolist()
    evolution.restart()
    assert evolution.ask()[0][0].tolist() == [0.1, 0.2, 0.3]


@many_draws
def test_whole_numbers_that_come_back_are_not_paid_for():
    paid = []

    def value(x):
        paid.append(tuple(x))
        return float(np.square(x - 2.0).sum())

    options = {"bounds": ([0.0] * 3, [3.0] * 3), "integers": range(3)}
    found = optimize(value, evaluations=60, **options)
    assert found.x.tolist() == [2.0, 2.0, 2.0] and found.evaluations == len(paid) <= 60
    assert len(set(paid)) == len(paid)
    paid.clear()  # nothing is feasible, and all is soon known
    found = optimize(value, evaluations=70, constraints=lambda x: [1.0], **options)
    assert not found.feasible and found.evaluations == len(paid) == len(set(paid)) <= 64
    assert found.reasons == ("maxfevals",)


def carry(x, _=None):
    """Value and constraint of trips and the load of each: two are enough if both are full."""
    return -x[..., 0] * (30 + x[..., 1]), 20 - x[..., :1] * x[..., 1:]


def test_whole_numbers_that_are_feasible_on_a_bound_alone_are_found():
    options = {"bounds": ([1, 1], [6, 10]), "integers": [0], "evaluations": 2_000}
    for seed in range(5):
        found = optimize(
            lambda x: -carry(x)[0], constraints=lambda x: carry(x)[1], seed=seed, **options
        )
        assert found.x.tolist() == [2, 10] and found.value == 80


def test_a_search_that_has_settled_holds_its_whole_numbers():
    evolution = Evolution([3.0, 5.0], sigma=1.0, bounds=([1, 1], [6, 10]), integers=[0])
    play(evolution, 3, carry)
    assert not evolution.settled
    while not evolution.settled:
        play(evolution, 1, carry)
    mean = evolution.mean
    evolution.restart()
    assert evolution.population == 12 and not evolution.settled
    assert evolution.mean[0] == mean[0] and pytest.approx(evolution.sigma[1]) == 0.1
    for _ in range(10):
        evolution.inject([6.0, 4.0])
        evolution = Evolution.from_state(evolution.get_state())
        members = evolution.ask()[0]
        assert (members[:, 0] == mean[0]).all() and len(np.unique(members[:, 1])) > 1
        play(evolution, 1, carry)
    evolution.restart()
    assert evolution.population == 24 and len(np.unique(evolution.ask()[0][:, 0])) > 1


def test_a_search_that_leaves_where_it_had_settled_is_over():
    evolution = Evolution([3.0, 5e3], sigma=1.0, bounds=([1, 0], [6, 1e4]), integers=[0])
    while not evolution.settled:
        play(evolution, 1, lambda x, _: (-np.square(x - [3, 5e3]).sum(axis=1), x[:, :1] - 7))
    evolution.restart()
    play(evolution, 2, lambda x, _: (x[:, 1], x[:, :1] - 7))
    assert not evolution.stop()
    play(evolution, 4, lambda x, _: (x[:, 1], x[:, :1] - 7))
    assert [*evolution.stop()] == ["unsettled"] and evolution.mean[1] < 5_100


def test_few_evaluations_have_small_populations():
    populations, options = [], {"bounds": ([0.0] * 20, [9.0] * 20), "integers": [0]}
    options["callback"] = lambda search: populations.append(search.population) or True
    for evaluations in (100, 500, 1_000, 10_000):
        optimize(sphere, evaluations=evaluations, **options)
    assert populations == [12, 12, 20, 30]


def test_every_second_search_is_ranked_without_the_lagrangian(monkeypatch):
    used = []
    path = "acerl_np.evolution.optimiser.score_members"
    step = np.zeros(2)
    monkeypatch.setattr(path, lambda outputs, *rest: used.append(1) or (outputs[:, 0], step))
    evolution = Evolution(np.zeros(2), sigma=0.5, adapt="matrix", bounds=(-1.0, 1.0))
    counts = []
    for _ in range(3):
        used.clear()
        play(evolution, 4, lambda x, _: (x.sum(axis=1), x[:, :1] - 2.0))
        counts.append(len(used))
        evolution.restart()
    assert counts == [4, 0, 4]


@many_draws
def test_more_parameters_than_a_matrix_has_are_said():
    with pytest.warns(RuntimeWarning, match="adapt: a sigma for each of 301 parameters"):
        optimize(sphere, np.zeros(301), 1.0, evaluations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimize(sphere, np.zeros(301), 1.0, evaluations=2, adapt="matrix")
        optimize(sphere, np.zeros(300), 1.0, evaluations=2)


# Stop conditions


@many_draws
@pytest.mark.parametrize("adapt", ["matrix", "sigma"])
def test_a_search_that_has_arrived_says_so(adapt):
    evolution = climb(Evolution(np.zeros(3), sigma=0.5, adapt=adapt, population=10), 400)
    generations = evolution.generation
    assert "tolfun" in evolution.stop() and generations < 200
    assert not evolution.stop(Stops(tolfun=0.0, tolx=0.0, tolstagnation=math.inf))
    result = evolution.result()
    assert result.reasons == tuple(evolution.stop())
    assert (result.evaluations, result.generations) == (10 * generations, generations)
    assert result.value == evolution.best.return_


def test_each_limit_has_its_name():
    evolution = Evolution(np.zeros(2), sigma=0.5, adapt="matrix", population=6)
    climb(evolution, 1)
    assert evolution.stop() == evolution.stop(Stops(maxfevals=12)) == {}
    reached = {"maxfevals": 11, "target": -100.0, "tolx": 10.0, "conditioncov": 1.0}
    for name, value in {**reached, "tolfacupx": 0.1, "maxfevals": np.int64(10)}.items():
        assert evolution.stop(Stops(**{name: value})) == {name: value}
    far = Evolution([1e17, 0.0], sigma=1.0, adapt="matrix")
    assert far.stop() == {"noeffectcoord": 0.2, "noeffectaxis": 0.1}
    along = Evolution([2e15, 2e15], sigma=1.0, adapt="matrix")
    assert along.stop() == {"noeffectaxis": 0.1}
    with pytest.raises(ConfigError, match=r"limits: read .*expected Stops"):
        evolution.stop({"maxfevals": 10})
    wrong = {"tolfun": -1.0, "tolx": math.nan, "target": "low", "maxfevals": "10"}
    cases = [({name: value}, f"{name}: read") for name, value in wrong.items()]
    assert list_unrefused(lambda given: Stops(**given), cases, ConfigError) == []


@many_draws
@pytest.mark.parametrize("adapt", ["matrix", "sigma"])
def test_a_slope_without_end_is_over_when_sigma_has_grown(adapt):
    found = optimize(lambda x: float(x.sum()), np.zeros(3), sigma=0.5, adapt=adapt)
    assert found.reasons == ("tolfacupx",)
    assert found.evaluations < 1_000


def test_a_wide_warm_start_and_a_floor_on_sigma_are_no_growth():
    options = {"adapt": "matrix", "population": 8}
    wide = Evolution(np.zeros(2), sigma=1.0, covariance=1e12 * np.eye(2), **options)
    fine = Evolution(np.zeros(2), sigma=1e-6, integers=[0], **options)
    for evolution in (wide, fine):
        climb(evolution, 1)
        assert (evolution.generation, evolution.stop()) == (1, {})


def test_stagnation_is_medians_that_do_not_rise():
    noise = np.random.default_rng(0).normal(size=(2_500, 6))
    good = np.ones(6, bool)
    flat, rising = Record(), Record()
    stagnant = 0
    for generation, returns in enumerate(noise):
        flat = flat.add(returns, np.zeros(6), good, int(returns.argmax()))
        stagnant += generation % 50 == 0 and flat.stagnates(120)
        up = returns + 0.1 * generation
        rising = rising.add(up, np.zeros(6), good, int(up.argmax()))
    assert 2 < stagnant < 40  # of 48: chance alone makes a quarter of them
    assert not any(rising.stagnates(count) for count in (120, 600, 1_000))
    assert not flat.stagnates(2_001)
    assert flat.rows.shape == (2_000, 4)


@many_draws
def test_a_collapsed_cloud_warns_once():
    evolution = Evolution([1e9], sigma=1.0, adapt="matrix", population=6)
    with pytest.warns(RuntimeWarning, match="all members are the same point") as caught:
        play(evolution, 200, lambda members, _: (-np.abs(members[:, 0] - 1e9),))
    assert len(caught) == 1
    assert "noeffectcoord" in evolution.stop()


# Restarts


def test_a_restart_doubles_the_population_and_keeps_the_best():
    evolution = Evolution(np.zeros(2), sigma=0.5, adapt="matrix", population=6, bounds=(-2, 2))
    play(evolution, 5, lambda members, _: (hill(members), members[:, :1] - 1.0))
    assert evolution.get_state()["level"] < np.inf
    best, drawn = evolution.best, evolution.ask()[0]
    evolution.restart()
    state = evolution.get_state()
    assert (state["level"], len(state["scales"])) == (np.inf, 0)  # a tolerance of its own
    assert evolution.population == 12
    assert (evolution.generation, evolution.restarts, evolution.evaluations) == (5, 1, 30)
    assert evolution.best is best
    np.testing.assert_allclose(evolution.sigma, 0.5)
    members, _ = evolution.ask()
    assert members.shape == (12, 2)
    assert not np.isin(members, drawn).any()
    evolution.tell(hill(members), members[:, :1] - 1.0)
    other = Evolution.from_state(evolution.get_state())
    assert other.ask()[0].tobytes() == evolution.ask()[0].tobytes()
    before = state_bytes(evolution)
    with pytest.raises(ConfigError, match="population: read 1;"):
        evolution.restart(population=1)
    with pytest.raises(InputError, match="x0: read shape"):
        evolution.restart([0.0, 1.0, 2.0])
    assert state_bytes(evolution) == before
    evolution.restart([1.5, 1.5], population=4)
    assert (evolution.population, evolution.restarts) == (4, 2)
    np.testing.assert_allclose(evolution.mean, 1.5)
    with pytest.raises(ConfigError, match="restart: read a sigma that decays"):
        Evolution([0.0], sigma=1.0, adapt="none").restart()


# Constraints


def test_the_tolerance_by_hand():
    positive = np.array([[0, 3], [2, 0], [4, 0], [6, 0], [0, 6], [0, 9], [2.4, 4.8]])
    # Violations 0.5, 0.5, 1, 1.5, 1, 1.5, 1: the median is 1, and twice its distance from the least, too.
    costs, tolerance = Tolerance().relax(positive)
    assert (tolerance.scales.tolist(), tolerance.level) == ([4.0, 6.0], 1.0)
    np.testing.assert_allclose(costs, [0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0], atol=1e-15)
    failed = np.array([[8.0, 0.0], [0.0, np.nan], [4.0, 0.0], [6.0, 0.0]])
    costs, tolerance = tolerance.relax(failed)  # violations 2, 1, 1.5
    assert (tolerance.scales.tolist(), tolerance.level) == ([4.0, 6.0], SHRINK)
    np.testing.assert_allclose(costs, [2.0 - SHRINK, np.nan, 1.0 - SHRINK, 1.5 - SHRINK])
    costs, tolerance = tolerance.relax(np.array([[4.0, 0.0], [4.0, 0.0], [4.04, 0.0], [5.0, 0.0]]))
    assert tolerance.level == pytest.approx(SHRINK**5)  # though the better half are alike
    np.testing.assert_allclose(costs + tolerance.level, [1.0, 1.0, 1.01, 1.25])
    costs, tolerance = tolerance.relax(np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.6], [5.0, 0.0]]))
    assert tolerance.level == 0.0  # half are feasible
    np.testing.assert_allclose(costs, [0.0, 0.0, 0.1, 1.25])


@given(
    st.lists(
        arrays(np.float64, (7, 2), elements=st.just(0.0) | st.floats(1e-150, 1e150)),
        min_size=1,
        max_size=6,
    )
)
def test_the_tolerance_only_shrinks_and_lets_the_feasible_pass(generations):
    tolerance = Tolerance()
    for positive in generations:
        before = tolerance.level
        costs, tolerance = tolerance.relax(positive)
        assert 0.0 <= tolerance.level <= before
        feasible = (positive == 0.0).all(axis=1)
        assert (costs[feasible] == 0.0).all()
        if feasible.mean() > SHARE:
            assert tolerance.level == 0.0
            assert (costs[~feasible] > 0.0).all()


def test_the_closest_member_is_that_of_the_least_violation():
    evolution = Evolution(np.zeros(2), sigma=1.0, adapt="matrix", population=4)
    members, _ = evolution.ask()
    report = evolution.tell(np.arange(4.0), [[2.0, 0.0], [0.5, 1.0], [0.0, 1.0], [9.0, 9.0]])
    assert report.satisfied == 0.0
    assert evolution.best is None
    assert evolution.closest.cost == 1.0
    assert (evolution.closest.parameters == members[2]).all()
    assert "no feasible member yet, least cost 1" in repr(evolution)
    evolution.ask()
    evolution.tell(np.arange(4.0), [[-1.0, 0.0], [0.0, 0.0], [5.0, 0.0], [0.0, np.nan]])
    assert (evolution.best.return_, evolution.best.cost) == (1.0, 0.0)
    assert evolution.failed == 1
    assert (evolution.closest.cost, evolution.closest.generation) == (0.0, 2)
    assert "best return 1" in repr(evolution)


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_unusable_matrices_of_costs_change_nothing(limit):
    evolution = Evolution(np.zeros(2), sigma=1.0, population=4, cost_limit=limit)
    evolution.ask()
    if limit == 0.0:
        evolution.tell(np.zeros(4), np.ones((4, 2)))
        evolution.ask()
        lines = {(4, 3): "(4, 3); expected (4, 2)", (3, 2): "(3, 2)", (4, 0): "(4, 0)"}
        cases = [(np.zeros(shape), f"costs: read shape {line}") for shape, line in lines.items()]
    else:
        assert evolution.tell(np.arange(4.0)).satisfied == 1.0  # costs may be left out
        evolution.ask()
        line = "costs: read a matrix; expected cost_limit 0 with it, not 1"
        cases = [(np.zeros((4, 2)), line)]
    before = state_bytes(evolution)
    assert list_unrefused(lambda costs: evolution.tell(np.zeros(4), costs), cases) == []
    assert state_bytes(evolution) == before


# Warm starts and states


@pytest.mark.parametrize("adapt", ["sigma", "matrix"])
def test_a_warm_start_draws_from_the_same_distribution(adapt):
    first = climb(Evolution(np.zeros(3), sigma=[0.5, 1.0, 2.0], adapt=adapt, population=8), 6)
    warm = Evolution(first.mean, sigma=1.0, covariance=first.covariance, adapt=adapt, population=8)
    np.testing.assert_allclose(warm.covariance, first.covariance)
    np.testing.assert_allclose(warm.sigma, first.sigma)


def test_unusable_covariances_are_refused():
    def warm(given, adapt="matrix"):
        return Evolution(np.zeros(2), sigma=1.0, adapt=adapt, covariance=given)

    matrix = np.array([[2e-12, 0.3], [0.3, 5e12]])
    matrix[1, 0] += 1e-12  # asymmetric by rounding alone
    np.testing.assert_allclose(warm(matrix).covariance, matrix)
    symmetric = "covariance: expected a symmetric matrix"
    cases = [
        (np.ones(2), "covariance: read shape (2,); expected (2, 2)"),
        *((other, symmetric) for other in (-np.eye(2), matrix + 1e-3 * np.eye(2, k=-1))),
    ]
    assert list_unrefused(warm, cases) == []
    with pytest.raises(InputError, match=r"covariance: expected .* positive variances"):
        warm(np.zeros(2), "sigma")
    with pytest.raises(ConfigError, match="covariance: expected adapt"):
        warm(np.eye(2), "none")
