"""The policy network by hand: a ReLU multilayer perceptron, masked softmax, choice of an action.

Parameters are one float32 vector: for each layer its weights, input-major (n_in rows of n_out), and
then its n_out biases if the network has any. Every sum runs over the inputs in ascending order and is
vectorised over the outputs, so it is the same number whatever is skipped as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core.vector import add_4, add_12, add_16, add_64
from acerl_np.kernels.networks.vectors import Vectors, add_noise
from acerl_np.support.compiled import choose_by_type, inner_kernel, kernel

F = np.float32


class Network(NamedTuple):
    """A network without its parameters.

    Attributes
    ----------
    sizes : ndarray(int64, (n_layers + 1,)), layer sizes, n_features first, n_actions last
    has_biases : bool
    standardises : bool, whether an observation is standardised before the first layer
    """

    sizes: np.ndarray
    has_biases: bool
    standardises: bool


class Features(NamedTuple):
    """The features of one observation that are not zero.

    Attributes
    ----------
    position : ndarray(int32, (n_features + 1,)), ascending
    value : ndarray(float32, (n_features + 1,))
        One entry more than there are features: it may be written, not read.
    """

    position: np.ndarray
    value: np.ndarray


class Layers(NamedTuple):
    """Scratch of one forward pass, and its logits.

    Attributes
    ----------
    hidden : ndarray(float32, (at least the widest layer,))
    active : Features, the units that are not zero after ReLU, with room for the widest layer
    logits : ndarray(float32, (n_actions,))
    """

    hidden: np.ndarray
    active: Features
    logits: np.ndarray


def make_network(
    sizes: Sequence[int], *, has_biases: bool = True, standardises: bool = True
) -> Network:
    """Return the network of these layer sizes."""
    return Network(np.array(sizes, np.int64), has_biases, standardises)


def count_parameters(sizes: Sequence[int], has_biases: bool = True) -> int:
    """Return the number of parameters of a network with these layer sizes."""
    extra = 1 if has_biases else 0
    return sum((n_in + extra) * n_out for n_in, n_out in pairwise(sizes))


def list_shapes(network: Network) -> np.ndarray:
    """Return rows, that of the biases last, and columns of each layer, ndarray(int64, (n_layers, 2))."""
    return np.stack((network.sizes[:-1] + network.has_biases, network.sizes[1:]), axis=1)


def allocate_features(n: int) -> Features:
    """Return room for `n` features."""
    return Features(np.empty(n + 1, np.int32), np.empty(n + 1, np.float32))


def allocate_rows(n_rows: int, n: int) -> np.ndarray:
    """Return float32 rows of at least `n` numbers that all begin at the start of a cache line.

    A vector load that straddles two lines costs two; the forward pass is a quarter slower then.
    """
    line = 64 // 4
    width = -(-n // line) * line
    memory = np.empty(n_rows * width + line, np.float32)
    first = -(memory.ctypes.data // 4) % line
    return memory[first : first + n_rows * width].reshape(n_rows, width)


FLAT = 1e-4
"""Variance of an observation by the square of its mean, below which its entries are nearly the same."""


@kernel
def sum_columns(network, theta, total):
    """Write the column sums of the first layer's weights into `total` (ndarray(float32, (n_out,))).

    They let `forward` standardise an observation without touching its empty slots.
    """
    n_out = network.sizes[1]
    total[:n_out] = F(0.0)
    for row in range(network.sizes[0]):
        weights = theta[row * n_out : (row + 1) * n_out]
        for j in range(n_out):
            total[j] += weights[j]


@inner_kernel
def add_inputs(features, n, weights, n_out, out):
    """Add the value of each of n features times its row of `weights` to `out`, in their order."""
    position, value = features.position, features.value
    first, nil, one = np.int64(0), np.int64(0), np.int64(1)
    while first + 64 <= n_out:
        add_64(position, value, nil, nil, one, weights, first, n_out, n, out, first, nil)
        first += 64
    while first + 16 <= n_out:
        add_16(position, value, nil, nil, one, weights, first, n_out, n, out, first, nil)
        first += 16
    # The output layer has four columns for each vehicle, twelve on the DMH floor.
    while first + 12 <= n_out:
        add_12(position, value, nil, nil, one, weights, first, n_out, n, out, first, nil)
        first += 12
    while first + 4 <= n_out:
        add_4(position, value, nil, nil, one, weights, first, n_out, n, out, first, nil)
        first += 4
    for k in range(n):
        row = position[k] * n_out
        for j in range(first, n_out):
            out[j] += value[k] * weights[row + j]


def add_own(vectors, member, layer, features, n, n_in, shift, scale, out):
    """Add the noise of low rank of a member, or nothing without vectors."""
    if vectors:
        add_noise(vectors, member, layer, features, n, n_in, shift, scale, out)


def _find_own(vectors, member, layer, features, n, n_in, shift, scale, out):
    if getattr(vectors, "instance_class", None) is Vectors:
        return lambda vectors, member, layer, features, n, n_in, shift, scale, out: add_noise(
            vectors, member, layer, features, n, n_in, shift, scale, out
        )
    return lambda vectors, member, layer, features, n, n_in, shift, scale, out: None


choose_by_type(add_own, _find_own)


@kernel
def forward(network, theta, column_sums, features, n, layers, vectors=(), member=0):
    """Compute the logits of one observation.

    The observation x is standardised over all its entries, empty slots included:
    (x - mean) / (std + 1e-5), if the network says so. Since the first layer is linear, that is one
    subtraction of mean * column_sums and one scaling per output. Where that would cancel, as all entries are
    nearly the same, the mean is taken off the features first (modified).

    Parameters
    ----------
    theta : ndarray(float32, (n_parameters,))
    column_sums : ndarray(float32, (sizes[1],)), from `sum_columns`
    n : int, number of features that are listed
    layers : Layers, output: the logits
    vectors : Vectors or ()
        Noise of low rank on top of theta, that of row `member`.
    """
    sizes = network.sizes
    shift = F(0.0)
    scale = F(1.0)
    if network.standardises:
        total = 0.0
        squares = 0.0
        for k in range(n):
            x = np.float64(features.value[k])
            total += x
            squares += x * x
        mean = total / sizes[0]
        variance = max(0.0, squares / sizes[0] - mean * mean)
        if n == sizes[0] and variance < FLAT * mean * mean:
            squares = 0.0
            for k in range(n):
                x = np.float64(features.value[k]) - mean
                features.value[k] = F(x)
                squares += x * x
            mean, variance = 0.0, squares / n
        shift = F(mean)
        scale = F(1.0 / (np.sqrt(variance) + 1e-5))

    active = layers.active
    n_layers = len(sizes) - 1
    offset = 0
    n_active = n
    for layer in range(n_layers):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        weights = theta[offset : offset + n_in * n_out]
        offset += n_in * n_out
        # Without biases this slice is not read.
        bias = theta[offset : offset + n_out]
        offset += n_out if network.has_biases else 0
        out = layers.logits[:n_out] if layer == n_layers - 1 else layers.hidden[:n_out]
        if layer == 0:
            out[:] = F(0.0)
            add_inputs(features, n, weights, n_out, out)
            for j in range(n_out):
                out[j] = (out[j] - shift * column_sums[j]) * scale
            if network.has_biases:
                for j in range(n_out):
                    out[j] += bias[j]
            add_own(vectors, member, layer, features, n, n_in, shift, scale, out)
        else:
            out[:] = F(0.0)
            if network.has_biases:
                for j in range(n_out):
                    out[j] = bias[j]
            add_inputs(active, n_active, weights, n_out, out)
            add_own(vectors, member, layer, active, n_active, n_in, shift, scale, out)
        if layer < n_layers - 1:
            n_active = 0
            for j in range(n_out):
                x = out[j]
                active.position[n_active] = j
                active.value[n_active] = x
                n_active += 1 if x > F(0.0) else 0


@kernel
def choose_greedy(logits, legal, n_legal):
    """Return the legal action of largest logit, the first of equals; NaN never wins.

    Parameters
    ----------
    logits : ndarray(float32, (n_actions,))
    legal : ndarray(int32, (n_actions,)), legal actions in the first `n_legal` entries
    """
    best = legal[0]
    best_logit = F(-np.inf)
    for k in range(n_legal):
        logit = logits[legal[k]]
        if logit > best_logit:
            best_logit = logit
            best = legal[k]
    return best


@inner_kernel
def draw_softmax(weight, n, uniform):
    """Draw one of n numbers (`weight`, overwritten) by their softmax, by inversion with a uniform one."""
    highest = -np.inf
    for k in range(n):
        highest = max(highest, weight[k])
    total = 0.0
    for k in range(n):
        weight[k] = np.exp(weight[k] - highest)
        total += weight[k]
    remaining = uniform * total
    for k in range(n):
        remaining -= weight[k]
        if remaining < 0.0:
            return k
    return n - 1


@kernel
def choose_sampled(logits, legal, n_legal, uniform, weight):
    """Sample a legal action from the masked softmax by inversion with one uniform number.

    Parameters
    ----------
    logits : ndarray(float32, (n_actions,))
    legal : ndarray(int32, (n_actions,)), legal actions in the first `n_legal` entries
    uniform : float, in [0, 1)
    weight : ndarray(float64, (n_actions,)), scratch
    """
    for k in range(n_legal):
        weight[k] = np.float64(logits[legal[k]])
    return legal[draw_softmax(weight, n_legal, uniform)]


@kernel
def list_nonzero(observation, features):
    """List the non-zero entries of a dense observation in `features`; return their number."""
    n = 0
    for k in range(len(observation)):
        x = observation[k]
        features.position[n] = k
        features.value[n] = x
        n += 1 if x != F(0.0) else 0
    return n


@kernel
def act_batch(network, theta, column_sums, observation, mask, uniforms, actions):
    """Choose one action per row of `observation`.

    Parameters
    ----------
    observation : ndarray(float32, (B, n_features))
    mask : ndarray(bool, (B, n_actions)), rows without a legal action get -1
    uniforms : ndarray(float64, (B,)) or ndarray(float64, (0,))
        Numbers in [0, 1) to sample with; none for the action of largest logit.
    actions : ndarray(int64, (B,)), output
    """
    sizes = network.sizes
    n_features = sizes[0]
    n_actions = sizes[-1]
    widest = 0
    for size in sizes:
        widest = max(widest, size)
    features = Features(np.empty(n_features + 1, np.int32), np.empty(n_features + 1, np.float32))
    active = Features(np.empty(widest + 1, np.int32), np.empty(widest + 1, np.float32))
    logits = np.empty(n_actions, np.float32)
    layers = Layers(np.empty(widest, np.float32), active, logits)
    legal = np.empty(n_actions, np.int32)
    weight = np.empty(n_actions, np.float64)
    for row in range(len(observation)):
        n_legal = np.int64(0)
        for action in range(n_actions):
            if mask[row, action]:
                legal[n_legal] = action
                n_legal += 1
        if n_legal == 0:
            actions[row] = -1
            continue
        n = list_nonzero(observation[row], features)
        forward(network, theta, column_sums, features, n, layers)
        if len(uniforms) == 0:
            actions[row] = choose_greedy(logits, legal, n_legal)
        else:
            actions[row] = choose_sampled(logits, legal, n_legal, uniforms[row], weight)
