"""Networks that learn: passes and gradients against slow versions and finite differences, Adam, returns."""

from itertools import pairwise

import naive_rivals as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.rivals import losses, perceptron
from studies.rivals.losses import find_advantages, sum_rewards
from studies.rivals.perceptron import LANES

pytestmark = pytest.mark.oracle  # as plain Python, too

SIZES = (6, 5, 18, 4)
N_ACTIONS = 3
"""The last output is the value: two heads on one trunk."""


class Net:
    """A small network with random parameters, its padding zero, and a batch of random observations."""

    def __init__(self, dtype, sizes=SIZES, n=9, seed=0):
        rng = np.random.default_rng(seed)
        self.dtype, self.true = dtype, sizes
        self.sizes = perceptron.pad_sizes(sizes)
        pairs = zip(pairwise(sizes), pairwise(self.sizes.tolist()), strict=True)
        self.theta = np.concatenate([self._layer(rng, *pair) for pair in pairs]).astype(dtype)
        x = rng.normal(size=(n, sizes[0])) * (rng.random((n, sizes[0])) < 0.6)
        self.observation = x.astype(dtype)
        self.inputs = perceptron.allocate_inputs(n, sizes[0], dtype)
        perceptron.list_inputs(self.observation, self.inputs)
        self.rows = rng.permutation(n)[:7]
        self.layers = perceptron.allocate_layers(self.sizes, 8, dtype)
        self.rng = rng

    @staticmethod
    def _layer(rng, true, padded):
        layer = np.zeros((padded[0] + 1, padded[1]))
        layer[: true[0], : true[1]] = rng.normal(0, 0.7, true)
        layer[-1, : true[1]] = rng.normal(0, 0.3, true[1])
        return layer.ravel()

    def split(self, theta):
        """Weights and biases of each layer without padding."""
        offset, sizes = 0, self.sizes.tolist()
        for (n_in, n_out), (p_in, p_out) in zip(pairwise(self.true), pairwise(sizes), strict=True):
            layer = theta[offset : offset + (p_in + 1) * p_out].reshape(p_in + 1, p_out)
            offset += layer.size
            yield layer[:n_in, :n_out], layer[-1, :n_out]

    def forward(self, theta=None):
        theta = self.theta if theta is None else theta
        perceptron.forward(self.sizes, theta, self.inputs, self.rows, self.layers)
        return self.layers.out[-1]

    def backward(self):
        gradient = np.full_like(self.theta, np.nan)
        perceptron.backward(self.sizes, self.theta, self.inputs, self.rows, self.layers, gradient)
        return gradient


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_forward_is_the_slow_network(dtype, tolerance):
    net = Net(dtype)
    out = net.forward()
    layers = list(net.split(net.theta))
    for s, row in enumerate(net.rows):
        expected = naive.outputs(layers, net.observation[row])
        assert out[s, : SIZES[-1]] == pytest.approx(expected, abs=tolerance)
        assert not out[s, SIZES[-1] : LANES].any()


# Gradients


def find_surrogate(net, out, delta, first=0, factor=0.03):
    own = net.mask, net.rows, net.action, net.old, net.gain
    return losses.clip_surrogate(out, first + np.zeros(9, np.int64), *own, 0.2, factor, delta)


def clipped(net, out, delta):
    """PPO's two heads: the clipped surrogate with an entropy bonus, and the value's squared error."""
    loss, head = find_surrogate(net, out, delta), np.full(9, N_ACTIONS)
    return loss + losses.square_errors(out, head, net.rows, net.target, 0.5, delta)


def fitted(net, out, delta):
    """SAC's critics: the squared error of the action taken."""
    delta[:] = 0.0
    return losses.square_errors(out, net.action, net.rows, net.target, 1.0, delta)


def softened(net, out, delta):
    """SAC's actor."""
    mask = net.mask[net.rows]
    return losses.soften_policy(out, mask, net.q1, net.q2, 0.05, delta)


def offset_surrogate(net, out, delta):
    """An agent whose logits begin elsewhere in each row."""
    return find_surrogate(net, out, delta, np.arange(9) % 2, 0.0)


def prepare(dtype=np.float64, seed=0):
    net = Net(dtype, seed=seed)
    rng = net.rng
    net.mask = rng.random((9, N_ACTIONS)) < 0.6
    net.action = rng.integers(0, N_ACTIONS, 9)
    net.mask[np.arange(9), net.action] = True
    net.old = np.log(rng.uniform(0.2, 0.9, 9))
    net.gain, net.target = rng.normal(size=9), rng.normal(size=9)
    net.q1, net.q2 = rng.normal(size=(2, 8, LANES))
    return net


LOSSES = [clipped, fitted, softened, offset_surrogate]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_are_finite_differences(loss, seed):
    """In float32, too; padding has none."""
    net, single = prepare(seed=seed), prepare(np.float32, seed)
    for own in (single, net):
        loss(own, own.forward(), own.layers.delta[-1])
    gradient = net.backward()
    assert np.isfinite(gradient).all() and not gradient[net.theta == 0.0].any()
    assert single.backward() == pytest.approx(gradient, abs=2e-5)
    scratch = np.zeros_like(net.layers.delta[-1])
    used = np.flatnonzero(net.theta)
    step = 1e-6
    for k in net.rng.choice(used, 60, replace=False):
        ends = []
        for sign in (1.0, -1.0):
            theta = net.theta.copy()
            theta[k] += sign * step
            ends.append(loss(net, net.forward(theta), scratch))
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-8)


# Losses


@pytest.mark.parametrize("factor", [0.0, 0.03])
def test_losses_are_the_slow_ones(factor):
    net = prepare()
    out = net.forward()
    zeros, scratch = np.zeros(9, np.int64), np.zeros_like(net.layers.delta[-1])
    found = find_surrogate(net, out, scratch, factor=factor)
    rows, columns = list(enumerate(net.rows)), (net.mask, net.action, net.old, net.gain)
    given = [(out[s, :N_ACTIONS], *(x[row] for x in columns)) for s, row in rows]
    assert found == pytest.approx(np.mean([naive.surrogate(*x, 0.2, factor) for x in given]))
    errors = [(out[s, net.action[row]] - net.target[row]) ** 2 for s, row in rows]
    assert fitted(net, out, scratch) == pytest.approx(np.mean(errors))
    value = np.empty(len(net.rows))
    mask = net.mask[net.rows]
    losses.find_soft_values(out, mask, net.q1, net.q2, 0.05, value)
    slow = [
        naive.soft_value(
            out[s, :N_ACTIONS], mask[s], net.q1[s, :N_ACTIONS], net.q2[s, :N_ACTIONS], 0.05
        )
        for s, _ in rows
    ]
    assert value == pytest.approx(slow)
    over, q = np.full(2, np.nan), np.ones((2, LANES))  # of an episode that is over it is zero
    losses.find_soft_values(q, np.array([[False, False], [True, False]]), q, q, 0.5, over)
    assert over.tolist() == [0.0, 1.0]
    assert softened(net, out, scratch) == pytest.approx(-np.mean(slow))
    log = np.full(9, np.nan)
    losses.find_logs(out, zeros, net.mask, net.rows, net.action, log)
    for s, row in rows:
        p = naive.probabilities(out[s, :N_ACTIONS], net.mask[row])
        assert log[row] == pytest.approx(np.log(p[net.action[row]]))
    assert np.isnan(log[[row for row in range(9) if row not in net.rows]]).all()


def test_an_illegal_action_has_no_probability_and_no_gradient():
    net = prepare()
    out = net.forward().copy()
    mask = net.mask[net.rows]
    delta = np.full_like(net.layers.delta[-1], np.nan)
    found = []
    for shift in (0.0, 50.0):
        moved = out.copy()
        moved[: len(mask), :N_ACTIONS][~mask] += shift  # however likely the logits make it
        found.append(softened(net, moved, delta))
        assert not delta[: len(mask), :N_ACTIONS][~mask].any()
        clipped(net, moved, delta)
        assert not delta[: len(mask), :N_ACTIONS][~mask].any()
        action = np.full(len(mask), -1)
        for uniform in (0.0, 0.3, 0.6, np.nextafter(1.0, 0.0)):
            zeros = np.zeros(len(mask), np.int64)
            losses.sample_actions(moved, zeros, mask, np.full(len(mask), uniform), action)
            assert mask[np.arange(len(mask)), action].all()
    assert found[0] == found[1]


def test_actions_are_drawn_by_their_probabilities():
    logits = np.log(np.array([[0.1, 0.2, 0.3, 0.4] + [1.0] * 12]))
    mask = np.array([[True, True, False, True]])
    action = np.zeros(1, np.int64)
    drawn = []
    for uniform in (np.arange(700) + 0.5) / 700:
        losses.sample_actions(logits, np.zeros(1, np.int64), mask, np.array([uniform]), action)
        drawn.append(int(action[0]))
    assert np.bincount(drawn).tolist() == [100, 200, 0, 400]


# Optimiser


def test_adam_is_the_slow_one():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=20).astype(np.float32)
    gradients = rng.normal(size=(5, 20)).astype(np.float32)
    expected = naive.adam(theta.tolist(), (0.5 * gradients).tolist(), 0.01)
    mean, square = np.zeros((2, 20), np.float32)
    for step, gradient in enumerate(gradients, start=1):
        perceptron.step_adam(theta, gradient, mean, square, step, 0.01, 0.5)
    assert theta == pytest.approx(expected, abs=1e-6)


def test_norm_and_soft_update():
    gradient = np.arange(1, 12, dtype=np.float32)
    assert perceptron.find_norm(gradient) == pytest.approx(
        np.linalg.norm(gradient.astype(np.float64))
    )
    target, source = np.float32([1.0, 2.0]), np.float32([3.0, -2.0])
    perceptron.blend(target, source, 0.25)
    assert target.tolist() == [1.5, 1.0]


# Returns

steps = st.integers(1, 12)
amounts = st.floats(-3, 3).map(lambda x: round(x, 3))


@given(st.data(), steps, st.sampled_from([0.97, 1.0, 0.5]), st.sampled_from([0.95, 0.0, 1.0]))
def test_advantages_are_the_slow_ones(data, n, discount, decay):

    def draw(kind, rows):
        found = data.draw(st.lists(kind, min_size=2 * rows, max_size=2 * rows))
        return np.array(found).reshape(rows, 2)

    reward, over, value = draw(amounts, n), draw(st.booleans(), n), draw(amounts, n + 1)
    found = np.empty((n, 2))
    find_advantages(reward, over, value, discount, decay, found)
    for b in range(2):
        slow = naive.advantages(reward[:, b], over[:, b], value[:, b], discount, decay)
        assert found[:, b] == pytest.approx(slow, abs=1e-12)


@given(st.data(), steps, st.integers(1, 5), st.integers(0, 12))
def test_n_step_returns_are_the_slow_ones(data, n, n_steps, turn):
    """In a ring whose first step stands anywhere."""
    rewards = data.draw(st.lists(amounts, min_size=n, max_size=n))
    overs = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    ring = np.full((n + 1, 1), 99.0)
    over = np.zeros((n + 1, 1), np.bool_)
    slots = (np.arange(n) + turn) % (n + 1)
    ring[slots, 0], over[slots, 0] = rewards, overs
    total, factor, end = np.empty(n), np.empty(n), np.empty(n, np.int64)
    ahead = n - np.arange(n)
    zeros = np.zeros(n, np.int64)
    sum_rewards(ring, over, slots, zeros, ahead, n_steps, 0.9, total, end, factor)
    for start in range(n):
        slow, taken, ended = naive.n_step(rewards, overs, start, n_steps, 0.9)
        assert total[start] == pytest.approx(slow)
        assert factor[start] == pytest.approx(0.0 if ended else 0.9**taken)
        assert end[start] == (slots[start] + taken) % (n + 1)
