"""Noise of low rank: that of a layer is a sum of products of two vectors.

Members then share the weights of the mean, and draw some hundred normals where the full noise has one for
each parameter. Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv:2511.16652.

The parameters are matrices, one after the other, and so are the vectors of a member, the first normals of
its stream: for each matrix and each product one number a row, then one a column. An entry of the noise is
sum_k a_k[row] b_k[column] / sqrt(rank), of variance 1.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core.random import LANES
from acerl_np.kernels.learning.update import copy_normals, find_stream
from acerl_np.support.compiled import kernel

F = np.float32


def count_numbers(shapes: np.ndarray, rank: int) -> int:
    """Return how many normals a member has."""
    return int(rank * shapes.sum())


@kernel
def draw_vectors(noise, member, scale, rank, shapes, key, bits, normals, out):
    """Write the vectors of a member; those of rows are scaled, and mirrored in the second of a pair.

    Parameters
    ----------
    scale : float32
    shapes : ndarray(int64, (n_matrices, 2))
    key : ndarray(uint32, (4,)); bits : ndarray(uint32, (4, LANES))
    normals : ndarray(float32, (4, LANES)), scratch
    out : ndarray(float32, (n_numbers,)), output
    """
    scale *= find_stream(noise, member, key)
    copy_normals(key, bits, normals, out)
    first = 0
    for matrix in range(len(shapes)):
        n_rows, n_columns = shapes[matrix, 0], shapes[matrix, 1]
        for _ in range(rank):
            for row in range(n_rows):
                out[first + row] *= scale
            first += n_rows + n_columns


@kernel
def draw_members(noise, scales, rank, shapes, out):
    """Write the vectors of the members, of each pair the first, whose scale is not 0; return their number.

    Parameters
    ----------
    scales : ndarray(float32, (n_groups,))
    out : ndarray(float32, (n_groups, n_numbers)), output
    """
    key = np.empty(4, np.uint32)
    bits = np.empty((4, LANES), np.uint32)
    normals = np.empty((4, LANES), np.float32)
    step = noise.population // len(scales)
    n = 0
    for group in range(len(scales)):
        scale = scales[group]
        if scale != F(0.0):
            draw_vectors(noise, group * step, scale, rank, shapes, key, bits, normals, out[n])
            n += 1
    return n


@kernel
def sum_products(vectors, first, rank, first_row, last_row, total):
    """Write the sum of all products, in the order of members, for some rows of one matrix.

    Parameters
    ----------
    vectors : ndarray(float32, (N, n_numbers)), those of rows times the members' utilities
    first : int, where the vectors of the matrix begin
    total : ndarray(float32, (n_rows, n_columns)), output, only rows first_row to last_row - 1
    """
    n_rows, n_columns = total.shape
    total[first_row:last_row] = F(0.0)
    for member in range(len(vectors)):
        for start in range(first, first + rank * (n_rows + n_columns), n_rows + n_columns):
            columns = vectors[member, start + n_rows : start + n_rows + n_columns]
            for row in range(first_row, last_row):
                x, out = vectors[member, start + row], total[row]
                for j in range(n_columns):
                    out[j] += x * columns[j]
