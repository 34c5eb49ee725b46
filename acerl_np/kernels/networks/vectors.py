"""Forward passes of members whose noise is of low rank: what their vectors add to a layer of the mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.support.compiled import inner_kernel

F = np.float32


class Vectors(NamedTuple):
    """The vectors of N members, as their forward passes use them.

    Attributes
    ----------
    value : ndarray(float32, (N, n_numbers)), those of rows times sigma / sqrt(rank)
    total : ndarray(float32, (N, rank)), sums of the first matrix's row vectors over the features
    rank : int, number of products
    shapes : ndarray(int64, (n_matrices, 2)), rows and columns
    """

    value: np.ndarray
    total: np.ndarray
    rank: int
    shapes: np.ndarray


@inner_kernel
def sum_four(value, first, features, n):
    """Return a vector times n inputs, in four sums at once: one would wait for each addition."""
    x0, x1, x2, x3 = F(0.0), F(0.0), F(0.0), F(0.0)
    position, weight = features.position, features.value
    i = 0
    while i + 4 <= n:
        x0 += value[first + position[i]] * weight[i]
        x1 += value[first + position[i + 1]] * weight[i + 1]
        x2 += value[first + position[i + 2]] * weight[i + 2]
        x3 += value[first + position[i + 3]] * weight[i + 3]
        i += 4
    while i < n:
        x0 += value[first + position[i]] * weight[i]
        i += 1
    return (x0 + x1) + (x2 + x3)


@inner_kernel
def add_noise(vectors, member, layer, features, n, n_in, shift, scale, out):
    """Add the noise of a member to one layer of a forward pass.

    Parameters
    ----------
    features : Features, n inputs that are not zero
    n_in : int, all inputs but the row of the biases behind them
    shift, scale : float32, of the first layer's standardisation
    """
    value, shapes, rank = vectors.value[member], vectors.shapes, vectors.rank
    first = np.int64(0)
    for k in range(layer):
        first += rank * (shapes[k, 0] + shapes[k, 1])
    n_rows, n_out = shapes[layer, 0], shapes[layer, 1]
    for k in range(rank):
        x = sum_four(value, first, features, n)
        if layer == 0:
            x = (x - shift * vectors.total[member, k]) * scale
        if n_rows > n_in:
            x += value[first + n_in]
        columns = value[first + n_rows : first + n_rows + n_out]
        for j in range(n_out):
            out[j] += x * columns[j]
        first += n_rows + n_out
