"""A multilayer perceptron that learns: batches forward and backward, gradient norm, Adam.

Parameters are one vector: for each layer its weights, input-major, then its biases, as in `network`. Every
layer but the input is as wide as the next multiple of `LANES`: what is beyond its own width is zero, gets
no gradient, and stays zero. Two heads on one trunk are columns of one output layer. The functions take
float32, in which the learners compute, and float64, in which their gradients are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import vector
from acerl_np.kernels.networks import network
from acerl_np.support.compiled import inner_kernel, kernel

F = np.float32

LANES = 16


class Inputs(NamedTuple):
    """Observations, as lists of their entries that are not zero: most are.

    Attributes
    ----------
    position : ndarray(int32, (N, n_features + 1)), ascending
    value : ndarray(float, (N, n_features + 1))
    length : ndarray(int64, (N,))
    """

    position: np.ndarray
    value: np.ndarray
    length: np.ndarray


class Layers(NamedTuple):
    """What a batch of at most M rows leaves in L layers of at most W units.

    Attributes
    ----------
    out : ndarray(float, (L, M, W)), outputs, after ReLU but for the last layer's
    delta : ndarray(float, (L, M, W))
        Derivatives of the loss for each layer's sums; a loss writes those of the last layer.
    turned : ndarray(float, (W * W,)), scratch: a layer's weights, output-major
    """

    out: np.ndarray
    delta: np.ndarray
    turned: np.ndarray


def pad_sizes(sizes: Sequence[int]) -> np.ndarray:
    """Return layer sizes, each but the first one's the next multiple of `LANES`."""
    return np.array([sizes[0], *(-(-size // LANES) * LANES for size in sizes[1:])], np.int64)


def allocate_inputs(n: int, n_features: int, dtype: type = np.float32) -> Inputs:
    """Return room for `n` observations."""
    shape = (n, n_features + 1)
    return Inputs(np.zeros(shape, np.int32), np.zeros(shape, dtype), np.zeros(n, np.int64))


def allocate_layers(sizes: np.ndarray, n_rows: int, dtype: type = np.float32) -> Layers:
    """Return room for batches of at most `n_rows`; `sizes` are padded."""
    widest = int(sizes[1:].max())
    shape = (len(sizes) - 1, n_rows, widest)
    return Layers(np.zeros(shape, dtype), np.zeros(shape, dtype), np.zeros(widest * widest, dtype))


@kernel
def list_inputs(observation, inputs):
    """List the entries of each row of `observation` (ndarray(float, (N, n_features))) that are not zero."""
    for row in range(len(observation)):
        own = network.Features(inputs.position[row], inputs.value[row])
        inputs.length[row] = network.list_nonzero(observation[row], own)


@inner_kernel
def _multiply(a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row, shape):
    """Add the product of two matrices to a third of `shape` (rows, columns), in strides of flat arrays."""
    n_rows, n_columns = shape
    row = np.int64(0)
    while row < n_rows:
        four = row + 4 <= n_rows
        at, to = a_first + row * a_row, out_first + row * out_row
        for j in range(0, n_columns, LANES):
            if four:
                vector.add_4_by_16(
                    b, a, at, a_row, a_step, b, b_first + j, b_step, n, out, to + j, out_row
                )
            else:
                vector.add_1_by_16(
                    b, a, at, a_row, a_step, b, b_first + j, b_step, n, out, to + j, out_row
                )
        row += 4 if four else 1


@kernel
def forward(sizes, theta, inputs, rows, layers):
    """Compute the outputs of a batch; row s of `layers` is row `rows[s]` of the inputs.

    Parameters
    ----------
    sizes : ndarray(int64, (L + 1,)), padded
    theta : ndarray(float, (n_parameters,))
    inputs : Inputs
    rows : ndarray(int64, (m,)), at most as many as `layers` has
    layers : Layers, output: `out`
    """
    m = len(rows)
    n_layers = len(sizes) - 1
    capacity, widest = layers.out.shape[1], layers.out.shape[2]
    flat = layers.out.reshape(-1)
    one = np.int64(1)
    offset = np.int64(0)
    for layer in range(n_layers):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights = theta[offset : offset + n_in * n_out]
        bias = theta[offset + n_in * n_out : offset + (n_in + 1) * n_out]
        for s in range(m):
            out = layers.out[layer, s]
            for j in range(n_out):
                out[j] = bias[j]
            if layer == 0:
                row = rows[s]
                position, value = inputs.position[row], inputs.value[row]
                network.add_inputs(
                    network.Features(position, value), inputs.length[row], weights, n_out, out
                )
        if layer > 0:
            below, here = (layer - 1) * capacity * widest, layer * capacity * widest
            shape = (m, n_out)
            _multiply(flat, below, widest, one, weights, 0, n_out, n_in, flat, here, widest, shape)
        if layer < n_layers - 1:
            for s in range(m):
                out = layers.out[layer, s]
                for j in range(n_out):
                    out[j] = out[j] if out[j] > 0.0 else theta.dtype.type(0.0)
        offset += (n_in + 1) * n_out


@kernel
def backward(sizes, theta, inputs, rows, layers, gradient):
    """Compute the gradient of a loss from its derivatives for the outputs of the last `forward`.

    Parameters
    ----------
    sizes, theta, inputs, rows
        As of that call.
    layers : Layers, its outputs, and the derivatives in the last layer of `delta`, padding included
    gradient : ndarray(float, (n_parameters,)), output
    """
    m = len(rows)
    n_layers = len(sizes) - 1
    capacity, widest = layers.out.shape[1], layers.out.shape[2]
    outs, deltas = layers.out.reshape(-1), layers.delta.reshape(-1)
    one = np.int64(1)
    zero = theta.dtype.type(0.0)
    gradient[:] = zero
    offset = np.int64(len(theta))
    for step in range(n_layers):
        layer = n_layers - 1 - step
        n_in, n_out = sizes[layer], sizes[layer + 1]
        offset -= (n_in + 1) * n_out
        bias = gradient[offset + n_in * n_out : offset + (n_in + 1) * n_out]
        for s in range(m):
            delta = layers.delta[layer, s]
            for j in range(n_out):
                bias[j] += delta[j]
        if layer == 0:
            for s in range(m):
                delta, row = layers.delta[0, s], rows[s]
                for k in range(inputs.length[row]):
                    x = inputs.value[row, k]
                    first = offset + inputs.position[row, k] * n_out
                    own = gradient[first : first + n_out]
                    for j in range(n_out):
                        own[j] += x * delta[j]
            return
        below, here = (layer - 1) * capacity * widest, layer * capacity * widest
        shape = (n_in, n_out)
        _multiply(outs, below, one, widest, deltas, here, widest, m, gradient, offset, n_out, shape)
        for i in range(n_in):
            for j in range(n_out):
                layers.turned[j * n_in + i] = theta[offset + i * n_out + j]
        for s in range(m):
            delta = layers.delta[layer - 1, s]
            for i in range(n_in):
                delta[i] = zero
        shape = (m, n_in)
        turned = layers.turned
        _multiply(deltas, here, widest, one, turned, 0, n_in, n_out, deltas, below, widest, shape)
        for s in range(m):
            out, delta = layers.out[layer - 1, s], layers.delta[layer - 1, s]
            for i in range(n_in):
                delta[i] = delta[i] if out[i] > 0.0 else zero


@kernel
def find_norm(gradient):
    """Return the Euclidean norm of a gradient; eight sums, as one alone would wait for itself."""
    n = len(gradient) // 8 * 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range(0, n, 8):
        s0 += np.float64(gradient[k]) * gradient[k]
        s1 += np.float64(gradient[k + 1]) * gradient[k + 1]
        s2 += np.float64(gradient[k + 2]) * gradient[k + 2]
        s3 += np.float64(gradient[k + 3]) * gradient[k + 3]
        s4 += np.float64(gradient[k + 4]) * gradient[k + 4]
        s5 += np.float64(gradient[k + 5]) * gradient[k + 5]
        s6 += np.float64(gradient[k + 6]) * gradient[k + 6]
        s7 += np.float64(gradient[k + 7]) * gradient[k + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for k in range(n, len(gradient)):
        total += np.float64(gradient[k]) * gradient[k]
    return np.sqrt(total)


@kernel
def step_adam(theta, gradient, mean, square, step, rate, scale):
    """Take one step of Adam (Kingma and Ba 2015, Algorithm 1; beta 0.9 and 0.999, epsilon 1e-8).

    Parameters
    ----------
    theta, gradient, mean, square : ndarray(float32, (n_parameters,))
        `theta` and the two moments are changed.
    step : int, 1 for the first
    rate : float, the learning rate
    scale : float, of the gradient, below 1 where it is clipped
    """
    first = F(rate / (1.0 - 0.9**step))
    root = F(1.0 / np.sqrt(1.0 - 0.999**step))
    factor = F(scale)
    for k in range(len(theta)):
        g = gradient[k] * factor
        m = F(0.9) * mean[k] + F(0.1) * g
        v = F(0.999) * square[k] + F(0.001) * (g * g)
        mean[k] = m
        square[k] = v
        theta[k] -= first * m / (np.sqrt(v) * root + F(1e-8))


@kernel
def blend(target, source, share):
    """Move `target` towards `source` by a share of the way: the soft update of target networks."""
    own = F(share)
    for k in range(len(target)):
        target[k] += own * (source[k] - target[k])
