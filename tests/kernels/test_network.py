"""The policy network against a float64 one, the choice of actions, policy files."""

from itertools import pairwise

import naive_evolution as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT
from tables_and_refusals import check_damaged, list_unrefused

from acerl_np import Simulator, load_suite
from acerl_np.kernels.core.random import INITIAL
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.kernels.networks import network
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.support.errors import PolicyError

SCALING = np.arange(1.0, 13.0)
HIDDEN = [(), (5,), (7, 3, 4)]
SLOTS, VEHICLES = 3, 2
N_FEATURES, N_ACTIONS = 4 * SLOTS + VEHICLES * (3 + SLOTS), 4 * VEHICLES


def make_policy(hidden=(5,), seed=0, task_slots=SLOTS, n_vehicles=VEHICLES, **kind):
    """A small policy with random weights and biases."""
    sizes = [4 * task_slots + n_vehicles * (3 + task_slots), *hidden, 4 * n_vehicles]
    theta = initial_parameters(sizes, seed, has_biases=kind.get("has_biases", True))
    theta += np.random.default_rng(seed).normal(0, 0.3, theta.size).astype(np.float32)
    shape = {"task_slots": task_slots, "n_vehicles": n_vehicles, "scaling": SCALING}
    return Policy(theta, hidden=hidden, **shape, **kind)


def logits_of(policy, observation, keep_zeros=False):
    """Logits by the kernel; optionally zeros are listed like other features."""
    n = policy.n_features
    features = network.allocate_features(n)
    observation = np.asarray(observation, np.float32)
    if keep_zeros:
        listed = n
        features.position[:n], features.value[:n] = np.arange(n), observation
    else:
        listed = network.list_nonzero(observation, features)
        assert features.position[:listed].tolist() == np.flatnonzero(observation).tolist()
        assert features.value[:listed].tolist() == observation[observation != 0].tolist()
    logits = np.empty(policy.n_actions, np.float32)
    widest = policy.sizes.max()
    layers = network.Layers(np.empty(widest, np.float32), network.allocate_features(widest), logits)
    network.forward(policy.network, policy.theta, policy.column_sums, features, listed, layers)
    return logits


def random_batch(n, seed=0):
    """Observations of which a share is zero, and masks with at least one legal action."""
    rng = np.random.default_rng(seed)
    observation = rng.normal(0, 2, (n, N_FEATURES)).astype(np.float32)
    observation[rng.random(observation.shape) < 0.6] = 0
    mask = rng.random((n, N_ACTIONS)) < 0.5
    mask[np.arange(n), rng.integers(0, N_ACTIONS, n)] = True
    return observation, mask


# Forward


entries = st.just(0.0) | st.integers(-64, 64).map(lambda k: k / 8) | st.floats(-50, 50, width=32)
observations = st.lists(entries, min_size=N_FEATURES, max_size=N_FEATURES)
batches = st.integers(0, 9).map(lambda seed: random_batch(1, seed)[0][0].tolist())


@settings(max_examples=200 if JIT else 30)
@given(
    observations | batches,
    st.sampled_from([*HIDDEN, (128, 128)] if JIT else HIDDEN),
    *(st.integers(0, 9), st.booleans(), st.booleans()),
)
def test_logits_of_any_observation(observation, hidden, seed, has_biases, standardises):
    """Empty slots count for mean and deviation, and listing them changes no bit; nor does a file."""
    kind = {"has_biases": has_biases, "standardises": standardises}
    policy = make_policy(hidden, seed, **kind)
    assert policy.n_parameters == network.count_parameters(policy.sizes.tolist(), has_biases)
    x = np.array(observation, np.float32).astype(np.float64)
    # Rounding errors of the mean grow when they are divided by a small standard deviation.
    worst = 1 + np.abs(x).max() / ((x.std() + 1e-5) if standardises else 1.0)
    expected, found = naive.forward(policy.sizes, policy.theta, x, **kind), logits_of(policy, x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5 * worst)
    assert found.tobytes() == logits_of(policy, x, keep_zeros=True).tobytes()
    loaded = Policy.from_arrays(policy.to_arrays())
    assert loaded.network[1:] == (has_biases, standardises)
    assert found.tobytes() == logits_of(loaded, x).tobytes()


@settings(max_examples=200 if JIT else 20)
@given(st.integers(0, 99), st.floats(1.0, 1e4), st.floats(1e-6, 0.03))
def test_nearly_constant_observations_lose_no_digits(seed, level, spread):
    """The mean times the column sums would cancel in float32; errors were 1e-2 and more."""
    policy = make_policy((7, 3, 4), seed % 10)
    rng = np.random.default_rng(seed)
    observation = np.float32(level * (1.0 + spread * rng.normal(size=N_FEATURES)))
    x = observation.astype(np.float64)
    expected = naive.forward(policy.sizes, policy.theta, x)
    np.testing.assert_allclose(logits_of(policy, observation), expected, rtol=1e-5, atol=3e-4)


def test_no_observation_of_dmh_is_nearly_constant():
    """So the formula for these changes no byte of a training."""
    suite = load_suite("dmh-train")
    simulator, rng = Simulator(suite), np.random.default_rng(0)
    while not simulator.done.all():
        x = simulator.observation.astype(np.float64)
        is_full, mean = (x != 0.0).all(axis=1), x.mean(axis=1)
        assert not (is_full & (x.var(axis=1) < network.FLAT * mean * mean)).any()
        simulator.step((simulator.action_mask * rng.random(simulator.action_mask.shape)).argmax(1))


def test_an_observation_without_spread_says_nothing():
    """Standardised it is zero, so the logits are those of the empty observation."""
    policy = make_policy((7, 3, 4))
    expected = naive.forward(policy.sizes, policy.theta, np.zeros(N_FEATURES))
    for value in (0.0, 1.0, -1.0, 0.25):
        found = logits_of(policy, np.full(N_FEATURES, value))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("has_biases", [False, True])
def test_other_initial_parameters(has_biases):
    sizes = [300, 40, 12] if JIT else [30, 4, 3]
    he, small, torch = (
        initial_parameters(sizes, 5, initialisation=kind, has_biases=has_biases)
        for kind in ("he", "small", "torch")
    )
    assert he.tobytes() == initial_parameters(sizes, 5, has_biases=has_biases).tobytes()
    assert he.tobytes() != initial_parameters(sizes, 6, has_biases=has_biases).tobytes()
    assert len(he) == len(small) == len(torch) == network.count_parameters(sizes, has_biases)
    # He: normal weights, biases of zero.
    position = 0
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        normals = np.empty(n_in * n_out, np.float32)
        fill_stream(5, INITIAL, layer, 0, normals)
        weights = he[position : position + len(normals)]
        np.testing.assert_allclose(weights, normals * np.sqrt(2 / n_in), rtol=1e-6)
        position += len(normals) + has_biases * n_out
        assert not has_biases or not he[position - n_out : position].any()
    assert position == len(he)
    first = (sizes[0] + has_biases) * sizes[1]
    assert small[:first].tobytes() == he[:first].tobytes()
    np.testing.assert_allclose(small[first:], he[first:] / 100, rtol=1e-6)
    # Uniform within 1 / sqrt(n_in), weights and biases alike.
    for layer, n_in in ((torch[:first], sizes[0]), (torch[first:], sizes[1])):
        bound = 1 / np.sqrt(n_in)
        assert (abs(layer) <= bound).all()
        if JIT:  # otherwise the draws are few
            assert abs(layer).max() > 0.9 * bound
        assert abs(layer.astype(float).var() / (bound**2 / 3) - 1) < 6 / np.sqrt(layer.size)


# Choice of actions


@pytest.mark.parametrize("hidden", HIDDEN)
def test_actions_are_the_most_probable_or_invert_the_softmax(hidden):
    """Of the legal ones; drawn with the generator's numbers, one a row."""
    policy = make_policy(hidden, seed=4)
    n = 500 if JIT else 30
    observation, mask = random_batch(n)

    def act(seed):
        return policy.act(observation, mask, rng=np.random.default_rng(seed))

    greedy, sampled = policy.act(observation, mask), act(5)
    assert greedy.dtype == sampled.dtype == np.int64
    assert sampled.tobytes() == act(5).tobytes() != act(6).tobytes()
    uniforms = np.random.default_rng(5).random(n)
    for k in range(n):
        logits = naive.forward(policy.sizes, policy.theta, observation[k])
        probability = naive.masked_softmax(logits, mask[k])
        assert mask[k, greedy[k]] and mask[k, sampled[k]]
        assert probability[greedy[k]] >= probability.max() - 1e-5
        if np.sort(probability)[-2] < probability.max() - 1e-5:
            assert greedy[k] == probability.argmax()
        upper = probability.cumsum()[sampled[k]]
        assert upper - probability[sampled[k]] - 1e-5 <= uniforms[k] <= upper + 1e-5
    assert len(set(greedy.tolist())) > 3


def test_greedy_takes_the_first_of_equals():
    shape = {"task_slots": SLOTS, "n_vehicles": VEHICLES, "scaling": SCALING}
    policy = Policy(np.zeros(make_policy(()).n_parameters), hidden=(), **shape)
    observation, mask = random_batch(40)
    assert policy.act(observation, mask).tolist() == mask.argmax(axis=1).tolist()
    for logits, legal, n, expected in (
        ([1, 3, 3, 2, 3], [0, 2, 4, 0, 0], 3, 2),
        ([1, 3, 3, 2, 3], [0, 3], 2, 3),
        ([np.nan, -5, np.nan], [0, 1, 2], 3, 1),  # no nan when there is a number
        ([-np.inf] * 3, [1, 2], 2, 1),
    ):
        found = network.choose_greedy(np.array(logits, np.float32), np.array(legal, np.int32), n)
        assert found == expected


LARGEST = np.nextafter(1.0, 0.0)


def test_sampling_stays_inside_whatever_the_logits():
    weight, legal = np.empty(4), np.array([1, 2, 3, 0], np.int32)
    for logits in ([9, 1, 2, 3], [0, 80, -80, 80], [0, -1e30, 0, 1e30], [3e38, 3e38, 3e38, 3e38]):
        logits = np.array(logits, np.float32)
        probability = naive.masked_softmax(logits.astype(np.float64), [False, True, True, True])
        for uniform in (0.0, 0.5, LARGEST):
            action = network.choose_sampled(logits, legal, 3, uniform, weight)
            assert action in (1, 2, 3) and probability[action] > 0
            assert uniform or action == np.flatnonzero(probability)[0]
    # With the largest uniform number the weights may sum to too little; the last one is due.
    weight, legal = np.empty(12), np.arange(12, dtype=np.int32)
    for logits in np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32):
        assert network.choose_sampled(logits, legal, 12, LARGEST, weight) == 11
        assert network.choose_sampled(logits, legal, 12, 0.0, weight) == 0


@pytest.mark.parametrize("sampled", [False, True])
def test_rows_of_finished_episodes_give_minus_one(sampled):
    """The rows that are left keep their numbers; one row and none are batches, too."""
    policy = make_policy((5,))
    observation, mask = random_batch(6)

    def act(*rows):
        rng = np.random.default_rng(0) if sampled else None
        return policy.act(*(rows or (observation, mask)), rng=rng)

    before = act()
    assert act(observation.tolist(), mask.tolist()).tolist() == before.tolist()
    assert act(observation[0], mask[0]).tolist() == [before[0]]
    assert act(observation[:0], mask[:0]).shape == (0,)
    observation[[1, 4]], mask[[1, 4]] = 0, False
    expected = before.copy()
    expected[[1, 4]] = -1
    assert act().tolist() == expected.tolist()


def test_observations_and_masks_that_do_not_fit_are_refused():
    good = N_FEATURES, N_ACTIONS
    cases = [
        *((np.zeros((2, n)), (2, good[1]), "observation: read shape") for n in (good[0] + 1, 2)),
        (np.zeros(good[0] - 1), good[1], "observation: read shape"),
        (np.zeros((1, 2, good[0])), (2, good[1]), "observation: read shape"),
        *((np.full((2, good[0]), x), (2, good[1]), " not finite") for x in (np.nan, np.inf)),
        *(
            (np.zeros((2, good[0])), shape, "action mask: read shape")
            for shape in ((2, good[1] + 4), (3, good[1]), good[1])
        ),
    ]
    policy = make_policy((5,))
    for rng in (None, np.random.default_rng(0)):
        act = lambda case, rng=rng: policy.act(case[0], np.ones(case[1]), rng=rng)  # noqa: E731
        assert list_unrefused(act, [(case, case[2]) for case in cases], PolicyError) == []


# Construction


BAD = (np.nan, np.inf, -np.inf)
THETA = make_policy((5,)).theta


def test_policies_that_contradict_themselves_are_refused():
    good = {"hidden": (5,), "task_slots": SLOTS, "n_vehicles": VEHICLES, "scaling": SCALING}
    cases = [
        *(("theta", np.zeros(shape), "theta: read shape") for shape in (3, (2, 2))),
        *(("theta", np.append(THETA[:-1], bad), "theta: not finite") for bad in BAD),
        ("hidden", (6,), "theta: read shape"),
        *(("hidden", (size,), "at least 1") for size in (0, -3)),
        *((name, 0, "at least 1") for name in ("task_slots", "n_vehicles")),
        ("smallest", (0, 1), "at least 1"),
        ("smallest", (SLOTS + 1, 1), f"smallest: read {SLOTS + 1} task slots"),
        ("smallest", (1, VEHICLES + 1), f"and {VEHICLES + 1} vehicles; expected at most"),
        ("scaling", np.ones(11), "scaling"),
        *(("scaling", np.full(12, bad), "scaling") for bad in (np.nan, 0.0, 1e-40, 1e40)),
    ]
    make = lambda case: Policy(**{"theta": THETA, **good, case[0]: case[1]})  # noqa: E731
    assert list_unrefused(make, [(case, case[2]) for case in cases], PolicyError) == []


@pytest.mark.filterwarnings("ignore:(invalid value|overflow) enc:RuntimeWarning")  # plain Python
def test_large_finite_observations_are_taken():
    observation, mask = random_batch(3)
    observation[:] = np.float32(3e38)
    observation[1] *= -1
    observation[2, ::2] *= -1
    mask[:, 0] = True
    assert mask[np.arange(3), make_policy((5,)).act(observation, mask)].all()


# Files


ARRAYS = ["theta", "hidden", "task_slots", "n_vehicles", "scaling", "smallest", "slots"]


def test_files_that_hold_no_policy_are_refused(tmp_path):
    path = tmp_path / "policy.npz"
    make_policy((5,)).save(path)
    size = make_policy((5,)).theta.size
    rows = [
        ("kind", "checkpoint", "holds checkpoint; expected a policy"),
        ("kind", None, "expected a policy"),
        ("kind", np.array("a\nb" * 999), r"holds a\\nb"),
        ("kind", np.array(["policy", "policy"]), "holds"),
        ("kind", np.zeros(0), r"holds \[\]"),
        ("format", 2, "format 2; this version reads format 3"),
        ("format", None, "format None"),
        *[("format", np.array(x), "format") for x in (np.nan, np.inf, 1j, "x", True, 1.0, [1, 1])],
        ("format", np.zeros((9, 99)), "format"),
        *[(name, None, f"{name}: read nothing") for name in ARRAYS],
        ("theta", np.zeros(5, np.int64), "theta: read int64"),
        ("theta", np.zeros((2, 2), np.float32), "theta: read float32 of shape"),
        ("theta", np.full(size, 1e300), "theta: not finite"),
        ("hidden", np.array([5.0]), "hidden: read float64"),
        *[("hidden", np.array(sizes), "sizes") for sizes in ([0], [-5], [2**62], [1] * 200)],
        ("task_slots", np.array(0), "sizes"),
        ("task_slots", np.array([3]), "task_slots: read int64 of shape"),
        ("n_vehicles", np.array(2.0), "n_vehicles: read float64"),
        ("scaling", np.zeros(12), "scaling"),
        ("smallest", np.array([1]), "smallest"),
        ("smallest", np.array([1, 2**40]), "smallest: read 1 task slots"),
        ("has_biases", np.array(1), "has_biases: read int64"),
        ("has_biases", np.array(False), "theta: read shape"),
    ]
    check_damaged(path, rows, Policy.load)
