"""`Evolution`: ask and tell for any constrained problem, and its two examples."""

import importlib.util
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acerl_np.errors import ConfigError, InputError
from acerl_np.evolution import Evolution, Strategy, make_sampler, rank_utilities, sum_violations

ROOT = Path(__file__).parents[1]
JIT = not numba.config.DISABLE_JIT
GENERATIONS = 4 if JIT else 2

many_draws = pytest.mark.skipif(not JIT, reason="many generations need compiled kernels")


def load_example(name):
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def sphere(members, ids):
    """Another optimum on every instance; feasible left of 0.25."""
    return -np.square(members - ids[:, np.newaxis]).sum(axis=1), members[:, 0] - 0.25


def play(evolution, generations=GENERATIONS):
    reports = []
    for _ in range(generations):
        members, ids = evolution.ask()
        reports.append(evolution.tell(*sphere(members, ids), ids))
    return reports


def state_bytes(evolution):
    return {name: array.tobytes() for name, array in evolution.get_state().items()}


# One generation after another


@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("sampler", ["ais", "uniform", "random", "single"] if JIT else ["ais"])
def test_it_is_algorithm_1_with_the_parts_of_the_package(sampler, antithetic):
    """With plain steps: Strategy, ranking and sampler as ACERL joins them, up to float32."""
    options = {"learning_rate": 0.05, "population": 6, "antithetic": antithetic}
    decay = {"noise_decay": 0.7, "noise_decay_every": 2}
    start = np.array([0.5, -0.25, 1.0])
    evolution = Evolution(
        start,
        sigma=0.2,
        step="plain",
        n_instances=3,
        sampler=sampler,
        seed=5,
        cost_limit=0.1,
        p_f=0.3,
        **options,
        **decay,
    )
    strategy = Strategy(start, noise_std=0.2, seed=5, **options, **decay)
    dealer = make_sampler(sampler, 3, 5)
    pair = 2 if antithetic else 1
    for generation in range(GENERATIONS):
        members, ids = evolution.ask()
        assert members.dtype == np.float64
        np.testing.assert_allclose(members, strategy.ask(), rtol=0, atol=2e-6)
        dealt = np.repeat(dealer.assign(6 // pair, generation), pair)
        assert ids.tolist() == dealt.tolist()
        returns, costs = sphere(members, ids)
        evolution.tell(returns, costs, ids)
        dealer.update(dealt, returns)
        strategy.tell(
            rank_utilities(
                returns, costs, dealt, cost_limit=0.1, p_f=0.3, seed=5, generation=generation
            )
        )
        np.testing.assert_allclose(evolution.mean, strategy.theta, rtol=0, atol=5e-6)
        assert evolution.generation == generation + 1
        assert evolution.sampler.count.tolist() == dealer.count.tolist()
    assert np.abs(evolution.mean - start).max() > 0.01


@pytest.mark.parametrize("sigma", [0.5, [0.5, 2.0]])
def test_a_natural_step_is_the_plain_one_times_sigma_squared(sigma):
    steps = {}
    for step in ("natural", "plain"):
        evolution = Evolution(np.zeros(2), sigma=sigma, step=step, noise_decay=0.5, population=4)
        play(evolution, 1)
        steps[step] = evolution.mean
    assert steps["natural"].all()
    np.testing.assert_allclose(
        steps["natural"], steps["plain"] * np.square(np.array(sigma) / 2), rtol=1e-12
    )


def test_a_search_looks_the_same_on_every_scale():
    """Natural steps: scale and shift the problem, and the members scale and shift with it."""
    means = []
    for scale in (1.0, 1e-9, 1e9):
        evolution = Evolution([3 * scale, scale], sigma=[scale, 2 * scale], population=4)
        for _ in range(GENERATIONS):
            members, _ = evolution.ask()
            evolution.tell(-np.square(members / scale).sum(axis=1), -members[:, 0] / scale)
        means.append(evolution.mean / scale)
    np.testing.assert_allclose(means[1:], [means[0]] * 2, rtol=1e-6)


def test_parameters_are_float64():
    """A step of a billionth is lost in a float32 mean, and kept here."""
    evolution = Evolution([1.0, -2.0], sigma=1e-9, population=4)
    members, _ = evolution.ask()
    assert len(np.unique(members[:, 0])) == 4
    evolution.tell(members[:, 0] - 1.0, np.zeros(4))
    assert 0.0 < evolution.mean[0] - 1.0 < 1e-8


def test_sigma_decays_by_the_strategys_formula():
    evolution = Evolution(
        np.zeros(2), sigma=[0.8, 0.4], population=2, noise_decay=0.5, noise_decay_every=2
    )
    strategy = Strategy(
        np.zeros(2), noise_std=0.8, population=2, noise_decay=0.5, noise_decay_every=2
    )
    reported = []
    for generation in range(GENERATIONS):
        strategy.generation = generation
        assert evolution.sigma.tolist() == [strategy.noise_std, strategy.noise_std / 2]
        reported += [report.sigma for report in play(evolution, 1)]
    assert reported == [0.8, 0.4, 0.4, 0.2][:GENERATIONS]


def test_pairs_mirror_and_share_their_instance():
    evolution = Evolution(
        [1.0, 2.0], sigma=0.5, population=6, antithetic=True, n_instances=2, sampler="random"
    )
    members, ids = evolution.ask()
    np.testing.assert_allclose(members[0::2] + members[1::2], [[2.0, 4.0]] * 3, rtol=1e-12)
    assert ids[0::2].tolist() == ids[1::2].tolist()
    # Equal utilities within each pair cancel: the mean stays.
    evolution.tell([np.nan] * 6, np.zeros(6), [0] * 6)
    assert evolution.mean.tolist() == [1.0, 2.0]


def test_asking_again_changes_nothing_and_members_may_be_changed():
    evolution, other = (Evolution(np.zeros(3), sigma=0.5, population=4) for _ in range(2))
    members, ids = evolution.ask()
    again, same_ids = evolution.ask()
    assert members.tobytes() == again.tobytes()
    assert ids.tolist() == same_ids.tolist()
    returns, costs = sphere(members, ids)
    members[:] = 0.0
    ids[:] = 9
    evolution.mean[:] = 7.0
    evolution.tell(returns, costs)
    play(other, 1)
    assert state_bytes(evolution) == state_bytes(other)


def test_seeds_differ_and_repeat():
    means = []
    for seed in (0, 1, 2**63 - 1, 0):
        evolution = Evolution(np.zeros(3), sigma=0.5, population=4, seed=seed)
        play(evolution, 1)
        means.append(evolution.mean.tobytes())
    assert len(set(means)) == 3
    assert means[0] == means[3]


@settings(max_examples=100 if JIT else 10)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["ais", "uniform", "random", "single"]),
    st.sampled_from(["isr", "cf", "r", "f"]),
    st.integers(0, 2**63 - 1),
    st.data(),
)
def test_any_shapes_and_any_results(n, half, n_instances, antithetic, sampler, ranking, seed, data):
    """Whatever the results, shapes hold, the mean is finite and inside the bounds, nothing warns."""
    population = 2 * half
    evolution = Evolution(
        np.zeros(n),
        sigma=0.5,
        population=population,
        antithetic=antithetic,
        n_instances=n_instances,
        sampler=sampler,
        ranking=ranking,
        bounds=(-1.0, 1.0),
        seed=seed,
    )
    numbers = st.lists(
        st.floats(-1e100, 1e100) | st.sampled_from([np.nan, np.inf, -np.inf]),
        min_size=population,
        max_size=population,
    )
    for generation in range(2 if JIT else 1):
        members, ids = evolution.ask()
        assert members.shape == (population, n)
        assert ids.shape == (population,)
        assert ids.dtype == np.int64
        assert set(ids.tolist()) <= set(range(n_instances))
        assert (np.abs(members) <= 1.0).all()
        returns, costs = data.draw(numbers), data.draw(numbers)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = evolution.tell(returns, costs, ids)
        good = np.isfinite(returns) & np.isfinite(costs)
        assert report.failed == evolution.failed == population - good.sum()
        assert report.generation == evolution.generation == generation + 1
        assert sum(report.counts) == population
        assert (np.abs(evolution.mean) <= 1.0).all()
        feasible = [r for r, c, g in zip(returns, costs, good, strict=True) if g and c <= 0]
        assert report.satisfied == len(feasible) / population
        if feasible:
            assert report.best_return >= max(feasible)


# Failures and the best


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["return", "cost"])
@pytest.mark.parametrize("ranking", ["isr", "cf", "r", "f"] if JIT else ["isr"])
def test_members_that_failed_rank_worst_and_are_counted(ranking, where, bad):
    """The mean takes the step that it takes when those members have the worst results of all."""
    outcomes = []
    for value in (bad, None):
        evolution = Evolution(np.zeros(3), sigma=0.5, population=6, ranking=ranking, p_f=0.0)
        evolution.ask()
        returns = np.array([3.0, 2.0, 1.0, 0.0, -1.0, -2.0])
        costs = np.zeros(6)
        if value is None:
            returns[0] = -3.0  # one below the lowest
        else:
            (returns if where == "return" else costs)[0] = value
        report = evolution.tell(returns, costs)
        assert evolution.best.return_ == 2.0
        assert report.failed == evolution.failed == (value is not None)
        outcomes.append(evolution.mean.tobytes())
        if value is not None:
            assert report.return_mean == 0.0
            assert report.cost_mean == 0.0
            assert report.satisfied == 5 / 6
    assert outcomes[0] == outcomes[1]


def test_when_all_fail_the_mean_stays():
    evolution = Evolution([1.0, 2.0], sigma=0.5, population=4, n_instances=2)
    evolution.ask()
    report = evolution.tell([np.nan] * 4, [0.0] * 4)
    assert evolution.mean.tolist() == [1.0, 2.0]
    assert report.failed == 4
    assert math.isnan(report.return_mean)
    assert math.isnan(report.best_return)
    assert evolution.best is None
    play(evolution, 1)
    assert evolution.failed == 0


def test_the_best_is_feasible_and_as_it_was_evaluated():
    evolution = Evolution(
        [0.0, 0.0], sigma=1.0, population=5, n_instances=2, cost_limit=0.5, bounds=(-0.1, 0.1)
    )
    members, _ = evolution.ask()
    evolution.tell([9.0, 1.0, 2.0, np.inf, 2.0], [0.6, 0.0, 0.5, 0.0, 0.0], [0, 0, 1, 0, 0])
    best = evolution.best
    assert best.parameters.tobytes() == members[2].tobytes()
    assert (best.return_, best.cost, best.instance, best.generation) == (2.0, 0.5, 1, 1)
    for returns, expected in (([2.0] * 5, 1), ([2.0, 2.0, 2.0, 3.0, 3.0], 3)):
        members, _ = evolution.ask()
        evolution.tell(returns, np.zeros(5), [0] * 5)
        assert evolution.best.generation == expected
    assert evolution.best.parameters.tobytes() == members[3].tobytes()


def test_members_are_clipped_to_the_bounds_and_the_mean_with_them():
    bounds = ([-1.0, -np.inf], [1.0, 0.3])
    options = {"sigma": 2.0, "population": 6, "learning_rate": 100.0, "antithetic": True}
    evolution = Evolution([5.0, 0.0], bounds=bounds, **options)
    free = Evolution([1.0, 0.0], **options)
    assert evolution.mean.tolist() == [1.0, 0.0]
    members, _ = evolution.ask()
    np.testing.assert_array_equal(members, free.ask()[0].clip(*bounds))
    assert (members[:, 0] == 1.0).any()
    # The more the better, and pairs tell the direction for sure: the mean ends on the bound.
    evolution.tell(members[:, 1], np.zeros(6))
    assert evolution.mean[1] == 0.3
    assert abs(evolution.mean[0]) <= 1.0


# State


@pytest.mark.parametrize("sampler", ["ais", "random"])
def test_a_restored_search_ends_in_the_same_bytes(sampler, tmp_path):
    def make():
        return Evolution(
            np.zeros(3), sigma=0.5, population=4, n_instances=3, sampler=sampler, seed=8
        )

    straight = make()
    expected = play(straight, 2 * GENERATIONS)
    stopped = make()
    play(stopped)
    stopped.ask()  # asked for and not told
    np.savez(tmp_path / "state.npz", **stopped.get_state())
    restored = make()
    restored.ask()  # forgotten with the state that it belonged to
    with np.load(tmp_path / "state.npz") as state:
        restored.set_state(state)
    with pytest.raises(InputError, match="no ask"):
        restored.tell(np.zeros(4), np.zeros(4))
    assert play(restored) == expected[GENERATIONS:]
    assert state_bytes(restored) == state_bytes(straight)
    np.testing.assert_array_equal(restored.best.parameters, straight.best.parameters)


def test_a_state_before_the_first_generation():
    evolution = Evolution(np.zeros(3), sigma=0.5, population=4)
    state = evolution.get_state()
    play(evolution)
    evolution.set_state(state)
    assert evolution.best is None
    assert state_bytes(evolution) == {name: array.tobytes() for name, array in state.items()}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mean", None, "no 'mean'"),
        ("sampler.count", None, r"no 'sampler\.count'"),
        ("mean", np.zeros(4), r"mean: read float64 \(4,\)"),
        ("mean", np.zeros(3, np.float32), "mean: read float32"),
        ("mean", np.array([0.0, np.nan, 0.0]), "generation or mean"),
        ("generation", np.array(-1), "generation or mean"),
        ("seed", np.array(1), "seed: read 1"),
        ("population", np.array(6), "population: read 6"),
        ("sampler.total", np.zeros(3), r"sampler\.total"),
    ],
)
def test_an_unusable_state_changes_nothing(name, value, message):
    evolution = Evolution(np.zeros(3), sigma=0.5, population=4, n_instances=2)
    other = Evolution(np.ones(3), sigma=0.5, population=4, n_instances=2)
    before = state_bytes(evolution)
    state = other.get_state()
    if value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(InputError, match=message):
        evolution.set_state(state)
    assert state_bytes(evolution) == before


# What is refused


def test_tell_needs_an_ask():
    evolution = Evolution(np.zeros(3), sigma=0.5, population=4)
    for _ in range(2):
        with pytest.raises(InputError, match="no ask"):
            evolution.tell(np.zeros(4), np.zeros(4))
        play(evolution, 1)
    assert evolution.generation == 2


ZEROS, IDS = [0.0] * 4, [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (([0.0] * 3, ZEROS, IDS), r"returns: read shape \(3,\); expected \(4,\)"),
        ((ZEROS, [0.0] * 5, IDS), r"costs: read shape \(5,\); expected \(4,\)"),
        ((np.zeros((4, 1)), ZEROS, IDS), r"returns: read shape \(4, 1\)"),
        ((0.0, ZEROS, IDS), r"returns: read shape \(\)"),
        ((ZEROS, ["a"] * 4, IDS), "costs: .*expected real numbers"),
        ((ZEROS, [[0.0], [], [], []], IDS), "costs: .*expected real numbers"),
        (([1j] * 4, ZEROS, IDS), "returns: .*expected real numbers"),
        ((ZEROS, ZEROS, [0, 1]), r"instance ids: read int64 of shape \(2,\)"),
        ((ZEROS, ZEROS, [0, 1, 2, 0]), "instance ids: read 2; expected 0 to 1"),
        ((ZEROS, ZEROS, [0, -1, 0, 0]), "instance ids: read -1; expected 0 to 1"),
        ((ZEROS, ZEROS, [0.0, 1.0, 0.0, 1.0]), "instance ids: read float64"),
        ((ZEROS, ZEROS, [[0], [], [], []]), "instance ids"),
    ],
)
def test_unusable_results_change_nothing(told, message):
    evolution, other = (
        Evolution(np.zeros(3), sigma=0.5, population=4, n_instances=2) for _ in range(2)
    )
    evolution.ask()
    with pytest.raises(InputError, match=message):
        evolution.tell(*told)
    assert state_bytes(evolution) == state_bytes(other)
    if JIT:
        play(evolution, 1)
        play(other, 1)
        assert state_bytes(evolution) == state_bytes(other)


def test_returns_too_large_to_score_by_value_are_refused():
    for ranking, refused in (("f", True), ("isr", False)):
        evolution = Evolution(np.zeros(3), sigma=0.5, population=4, ranking=ranking)
        before = state_bytes(evolution)
        evolution.ask()
        returns = [1e308, 1e308, -1e308, 1e308]
        if refused:
            with pytest.raises(InputError, match="step is not finite"):
                evolution.tell(returns, np.zeros(4))
            assert state_bytes(evolution) == before
        else:
            evolution.tell(returns, [0.0, 1e200, 1e300, 0.0])
            assert evolution.mean.any()


@pytest.mark.parametrize(
    ("x0", "options", "error", "message"),
    [
        (1.0, {}, InputError, "x0: read shape"),
        ([], {}, InputError, "x0"),
        (np.zeros((2, 2)), {}, InputError, "x0: read shape"),
        ([0.0, np.nan], {}, InputError, "x0: .*finite"),
        (["a"], {}, InputError, "x0"),
        ([0, 0], {"sigma": 0.0}, ConfigError, "sigma: read 0"),
        ([0, 0], {"sigma": np.nan}, ConfigError, "sigma"),
        ([0, 0], {"sigma": [1.0, -1.0]}, ConfigError, "sigma"),
        ([0, 0], {"sigma": [1.0] * 3}, ConfigError, "sigma: read shape"),
        ([0, 0], {"sigma": "wide"}, ConfigError, "sigma"),
        ([0, 0], {"learning_rate": -1.0}, ConfigError, "learning_rate: read -1"),
        ([0, 0], {"learning_rate": np.inf}, ConfigError, "learning_rate"),
        ([0, 0], {"learning_rate": None}, ConfigError, "learning_rate"),
        ([0, 0], {"population": 1}, ConfigError, "population: read 1"),
        ([0, 0], {"population": 4.0}, ConfigError, "population"),
        ([0, 0], {"population": True}, ConfigError, "population"),
        ([0, 0], {"population": 5, "antithetic": True}, ConfigError, "even"),
        ([0, 0], {"cost_limit": np.nan}, ConfigError, "cost_limit"),
        ([0, 0], {"cost_limit": -np.inf}, ConfigError, "cost_limit"),
        ([0, 0], {"p_f": 1.5}, ConfigError, "p_f: read 1.5"),
        ([0, 0], {"p_f": "half"}, ConfigError, "p_f"),
        ([0, 0], {"ranking": "best"}, ConfigError, "ranking: read 'best'"),
        ([0, 0], {"shaping": "flat"}, ConfigError, "shaping: read 'flat'"),
        ([0, 0], {"step": "big"}, ConfigError, "step: read 'big'; expected one of natural"),
        ([0, 0], {"sampler": "best"}, ConfigError, "sampler: read 'best'"),
        ([0, 0], {"advantage": "none"}, ConfigError, "advantage: read 'none'"),
        ([0, 0], {"alpha_u": -1.0}, ConfigError, "alpha_u"),
        ([0, 0], {"noise_decay": 0.0}, ConfigError, "noise_decay: read 0"),
        ([0, 0], {"noise_decay": 1.1}, ConfigError, "noise_decay: read 1.1"),
        ([0, 0], {"noise_decay_every": 0}, ConfigError, "noise_decay_every: read 0"),
        ([0, 0], {"n_instances": 0}, ConfigError, "n_instances: read 0"),
        ([0, 0], {"seed": -1}, ConfigError, "seed: read -1"),
        ([0, 0], {"seed": 2**63}, ConfigError, "seed: read"),
        ([0, 0], {"bounds": 1.0}, InputError, "bounds: expected a pair"),
        ([0, 0], {"bounds": (0, 1, 2)}, InputError, "bounds: expected a pair"),
        ([0, 0], {"bounds": ([0, 0, 0], 1)}, InputError, r"bounds\[0\]: read shape"),
        ([0, 0], {"bounds": (0, [1, 0])}, InputError, "bounds: .*below"),
        ([0, 0], {"bounds": (np.nan, 1)}, InputError, "bounds: .*below"),
    ],
)
def test_unusable_options_are_refused(x0, options, error, message):
    with pytest.raises(error, match=message):
        Evolution(x0, **{"sigma": 0.5, **options})


# Several constraints in one cost


def test_violations_are_summed():
    assert sum_violations([[-1.0, 0.0, -3.0], [2.0, -5.0, 0.5]]).tolist() == [0.0, 2.5]
    assert float(sum_violations([1.0, 2.0, -4.0])) == 3.0
    assert sum_violations(np.ones((4, 3, 2))).shape == (4, 3)
    assert np.isnan(sum_violations([np.nan, -1.0]))
    assert sum_violations([np.inf, -1.0]) == np.inf
    assert sum_violations(np.empty((3, 0))).tolist() == [0.0] * 3
    with pytest.raises(InputError, match="constraints: read a number"):
        sum_violations(1.0)


def test_an_infinite_limit_leaves_the_problem_unconstrained():
    evolution = Evolution(np.zeros(3), sigma=0.5, population=4, cost_limit=np.inf)
    other = Evolution(np.zeros(3), sigma=0.5, population=4, ranking="r")
    for search in (evolution, other):
        members, ids = search.ask()
        search.tell(sphere(members, ids)[0], [5.0, -1.0, 1e300, 0.0])
    assert evolution.mean.tobytes() == other.mean.tobytes()


# Alone


def test_evolution_imports_nothing_of_vehicles():
    code = """
import sys
from acerl_np.evolution import Evolution
rooms = ("acerl", "problem", "simulator", "rollout", "policy", "evaluation", "kernels.events")
print([name for name in rooms if "acerl_np." + name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


@many_draws
def test_the_readmes_example_finds_what_it_says():
    section = (ROOT / "README.md").read_text().split("## Your own problem")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    names = {}
    exec(code.replace("print(", "("), names)
    np.testing.assert_allclose(names["evolution"].mean, [1.0, 0.0], atol=0.05)
    np.testing.assert_allclose(names["evolution"].best.parameters, [1.0, 0.0], atol=0.05)


# The examples: quality over several seeds


@many_draws
def test_the_published_optima_are_right():
    example = load_example("evolution_g_functions")
    for name, problem in example.PROBLEMS.items():
        f, g = problem.evaluate(np.array([problem.solution]))
        assert f[0] == pytest.approx(problem.optimum, rel=1e-6, abs=1e-7), name
        assert g.max() < 1e-6, name


G_LIMITS = {
    # Largest median and mean of the gap to the optimum, relative to it. The corner of g06's sliver
    # and g11's curved equality are hard for a round cloud of members: docs/evolution.md.
    "g06": (0.06, 0.10),
    "g08": (1e-6, 1e-6),
    "g11": (0.25, 0.25),
    "g24": (0.01, 0.15),
}


@many_draws
@pytest.mark.parametrize("name", G_LIMITS)
def test_g_functions_come_as_close_as_documented(name):
    """Ten seeds of 20,000 evaluations each."""
    example = load_example("evolution_g_functions")
    problem = example.PROBLEMS[name]
    gaps = []
    for seed in range(10):
        best = example.search(problem, seed, 20_000).best
        _, g = problem.evaluate(best.parameters[np.newaxis])
        assert g.max() <= 0.0
        gaps.append((-best.return_ - problem.optimum) / abs(problem.optimum))
    median, mean = G_LIMITS[name]
    assert min(gaps) > -1e-9  # nothing is better than the optimum
    assert np.median(gaps) < median
    assert np.mean(gaps) < mean


@many_draws
def test_sres_of_pymoo_agrees_on_the_optimum():
    """An independent stochastic ranking reaches the same optimum of the same function."""
    pytest.importorskip("pymoo")
    example = load_example("evolution_g_functions")
    problem = example.PROBLEMS["g08"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = [example.search_with_sres(problem, seed, 10_000) for seed in range(2)]
    ours = [-example.search(problem, seed, 10_000).best.return_ for seed in range(2)]
    np.testing.assert_allclose(theirs, problem.optimum, rtol=1e-6)
    np.testing.assert_allclose(ours, problem.optimum, rtol=1e-4)


@many_draws
def test_instances_share_the_optimum_and_are_needed_together():
    """Five seeds: distance to the known optimum, mean and spread, of each sampler and each ablation."""
    example = load_example("evolution_instances")
    distances = {}
    for name, setting in example.SETTINGS.items():
        found = []
        for seed in range(5):
            problem = example.make_instances(seed)
            evolution = example.search(problem, seed, 300, **setting)
            found.append(example.judge(problem, evolution.mean))
        distances[name] = [row[0] for row in found]
        if name in ("ais", "uniform", "random"):
            assert max(row[2] for row in found) < 0.15  # cost
            assert np.mean([abs(row[1]) for row in found]) < 0.05  # relative loss of return
    for name in ("ais", "uniform", "random"):
        assert np.mean(distances[name]) < 0.3
        assert np.std(distances[name]) < 0.3
    for name in ("single instance", "constraint ignored"):
        assert min(distances[name]) > 2 * np.mean(distances["ais"])
        assert np.mean(distances[name]) > 1.0


@many_draws
def test_the_instances_known_optimum_is_one():
    example = load_example("evolution_instances")
    problem = example.make_instances(3)
    rng = np.random.default_rng(0)
    everyone = np.arange(example.N_INSTANCES)
    returns, costs = problem.evaluate(np.tile(problem.optimum, (len(everyone), 1)), everyone)
    np.testing.assert_allclose(returns, problem.optimal_returns, rtol=1e-12)
    assert not costs.any()
    for scale in (1e-3, 1.0):
        others = problem.optimum + scale * rng.normal(size=(500, example.N_PARAMETERS))
        for k in everyone:
            returns, costs = problem.evaluate(others, np.full(500, k))
            assert (returns[costs == 0] <= problem.optimal_returns[k]).all()


@many_draws
@pytest.mark.parametrize("name", ["evolution_g_functions", "evolution_instances"])
def test_examples_run_quickly(name):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nan" not in done.stdout
    assert len(done.stdout.splitlines()) >= 8
