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

from acerl_np.kernels.vector import add_4, add_12, add_16, add_64
from acerl_np.support.compiled import inner_kernel, kernel

F = np.float32


class Network(NamedTuple):
    """A network without its parameters.

    Attributes
    ----------
    sizes : ndarray(int64, (n_layers + 1,))
        Layer sizes, n_features first, n_actions last.
    has_biases : bool
    standardises : bool
        Whether an observation is standardised before the first layer.
    """

    sizes: np.ndarray
    has_biases: bool
    standardises: bool


def make_network(
    sizes: Sequence[int], *, has_biases: bool = True, standardises: bool = True
) -> Network:
    """Return the network of these layer sizes."""
    return Network(np.array(sizes, np.int64), has_biases, standardises)


def count_parameters(sizes: Sequence[int], has_biases: bool = True) -> int:
    """Return the number of parameters of a network with these layer sizes."""
    extra = 1 if has_biases else 0
    return sum((n_in + extra) * n_out for n_in, n_out in pairwise(sizes))


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
def add_inputs(index, value, n, weights, n_out, out):
    """Add `value[k]` times row `index[k]` of `weights` to `out`, k ascending."""
    first = np.int64(0)
    while first + 64 <= n_out:
        add_64(index, value, n, weights, n_out, first, out)
        first += 64
    while first + 16 <= n_out:
        add_16(index, value, n, weights, n_out, first, out)
        first += 16
    # The output layer has four columns for each vehicle, twelve on the DMH floor.
    while first + 12 <= n_out:
        add_12(index, value, n, weights, n_out, first, out)
        first += 12
    while first + 4 <= n_out:
        add_4(index, value, n, weights, n_out, first, out)
        first += 4
    for k in range(n):
        row = index[k] * n_out
        for j in range(first, n_out):
            out[j] += value[k] * weights[row + j]


@kernel
def forward(
    network, theta, column_sums, index, value, n, hidden, active_index, active_value, logits
):
    """Compute the logits of one observation.

    The observation x is standardised over all its entries, empty slots included:
    (x - mean) / (std + 1e-5), if the network says so. Since the first layer is linear, that is one
    subtraction of mean * column_sums and one scaling per output.

    Parameters
    ----------
    network : Network
    theta : ndarray(float32, (n_parameters,))
    column_sums : ndarray(float32, (sizes[1],))
        From `sum_columns`.
    index : ndarray(int32, (n_features,))
        Ascending positions of the non-zero features.
    value : ndarray(float32, (n_features,))
        Their values.
    n : int
        Their number.
    hidden : ndarray(float32, (max(sizes),))
        Scratch.
    active_index : ndarray(int32, (max(sizes) + 1,))
    active_value : ndarray(float32, (max(sizes) + 1,))
        Scratch: the units that are not zero after ReLU.
    logits : ndarray(float32, (n_actions,))
        Output.
    """
    sizes = network.sizes
    shift = F(0.0)
    scale = F(1.0)
    if network.standardises:
        total = 0.0
        squares = 0.0
        for k in range(n):
            x = np.float64(value[k])
            total += x
            squares += x * x
        mean = total / sizes[0]
        variance = max(0.0, squares / sizes[0] - mean * mean)
        shift = F(mean)
        scale = F(1.0 / (np.sqrt(variance) + 1e-5))

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
        out = logits[:n_out] if layer == n_layers - 1 else hidden[:n_out]
        if layer == 0:
            out[:] = F(0.0)
            add_inputs(index, value, n, weights, n_out, out)
            for j in range(n_out):
                out[j] = (out[j] - shift * column_sums[j]) * scale
            if network.has_biases:
                for j in range(n_out):
                    out[j] += bias[j]
        else:
            out[:] = F(0.0)
            if network.has_biases:
                for j in range(n_out):
                    out[j] = bias[j]
            add_inputs(active_index, active_value, n_active, weights, n_out, out)
        if layer < n_layers - 1:
            n_active = 0
            for j in range(n_out):
                x = out[j]
                active_index[n_active] = j
                active_value[n_active] = x
                n_active += 1 if x > F(0.0) else 0


@kernel
def choose_greedy(logits, legal, n_legal):
    """Return the legal action of largest logit, the first of equals; NaN never wins."""
    best = legal[0]
    best_logit = F(-np.inf)
    for k in range(n_legal):
        logit = logits[legal[k]]
        if logit > best_logit:
            best_logit = logit
            best = legal[k]
    return best


@kernel
def choose_sampled(logits, legal, n_legal, uniform, weight):
    """Sample a legal action from the masked softmax by inversion with one uniform number.

    Parameters
    ----------
    logits : ndarray(float32, (n_actions,))
    legal : ndarray(int32, (n_actions,))
        Legal actions in the first `n_legal` entries.
    uniform : float
        In [0, 1).
    weight : ndarray(float64, (n_actions,))
        Scratch.
    """
    highest = -np.inf
    for k in range(n_legal):
        highest = max(highest, np.float64(logits[legal[k]]))
    total = 0.0
    for k in range(n_legal):
        weight[k] = np.exp(np.float64(logits[legal[k]]) - highest)
        total += weight[k]
    remaining = uniform * total
    for k in range(n_legal):
        remaining -= weight[k]
        if remaining < 0.0:
            return legal[k]
    return legal[n_legal - 1]


@kernel
def list_nonzero(observation, index, value):
    """List the non-zero entries of a dense observation; return their number."""
    n = 0
    for k in range(len(observation)):
        x = observation[k]
        index[n] = k
        value[n] = x
        n += 1 if x != F(0.0) else 0
    return n


@kernel
def act_batch(network, theta, column_sums, observation, mask, uniforms, actions):
    """Choose one action per row of `observation`.

    Parameters
    ----------
    network : Network
    observation : ndarray(float32, (B, n_features))
    mask : ndarray(bool, (B, n_actions))
        Rows without a legal action get -1.
    uniforms : ndarray(float64, (B,)) or ndarray(float64, (0,))
        Numbers in [0, 1) to sample with; none for the action of largest logit.
    actions : ndarray(int64, (B,))
        Output.
    """
    sizes = network.sizes
    n_features = sizes[0]
    n_actions = sizes[-1]
    widest = 0
    for size in sizes:
        widest = max(widest, size)
    index = np.empty(n_features + 1, np.int32)
    value = np.empty(n_features + 1, np.float32)
    hidden = np.empty(widest, np.float32)
    active_index = np.empty(widest + 1, np.int32)
    active_value = np.empty(widest + 1, np.float32)
    logits = np.empty(n_actions, np.float32)
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
        n = list_nonzero(observation[row], index, value)
        forward(
            network,
            theta,
            column_sums,
            index,
            value,
            n,
            hidden,
            active_index,
            active_value,
            logits,
        )
        if len(uniforms) == 0:
            actions[row] = choose_greedy(logits, legal, n_legal)
        else:
            actions[row] = choose_sampled(logits, legal, n_legal, uniforms[row], weight)
