"""Sums of scaled rows, held in vector registers.

Written as loops over columns, LLVM keeps the sums in memory: it reads and writes them again for every
few rows, and checks each time that they do not overlap the rows. The instructions that keep a strip
of columns in registers from the first row to the last are therefore given here one by one. They are
LLVM's portable vectors, lowered to whatever the processor has; each lane adds its products in the
order of the plain loop, so the sum is the same to the last bit. All arrays of a call are of one type,
float32 or float64.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _find_vector(context, array, width):
    """Return the type of a vector of an array's numbers, and the bytes that each of them takes."""
    scalar = context.get_data_type(array.dtype)
    return ir.VectorType(scalar, width), array.dtype.bitwidth // 8


def _fill_lanes(builder, x, vector):
    """Return a vector with `x` in all its lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    x = builder.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(x, undefined, lane_zero)


def make_strip(width, count):
    """Return a function for kernels that adds scaled rows to one strip of columns.

    `add(index, value, n, weights, n_out, first, out)` adds `value[k]` times row `index[k]` of
    `weights`, k from 0 to n - 1, to `out`, in the columns first to first + width * count - 1.

    Parameters
    ----------
    width : int
        Columns of one vector.
    count : int
        Vectors, each with a register of its own.
    """

    def add_plainly(index, value, n, weights, n_out, first, out):
        for k in range(n):
            row = index[k] * n_out
            for j in range(first, first + width * count):
                out[j] += value[k] * weights[row + j]

    def add_strip(typing, index, value, n, weights, n_out, first, out):
        signature = types.void(index, value, n, weights, n_out, first, out)

        def generate(context, builder, signature, arguments):
            def find_data(k):
                return context.make_array(signature.args[k])(context, builder, arguments[k]).data

            index, value, weights, out = (find_data(k) for k in (0, 1, 3, 6))
            n, n_out, first = (arguments[k] for k in (2, 4, 5))
            vector, align = _find_vector(context, signature.args[1], width)

            def locate(base, column, c):
                offset = builder.add(column, ir.Constant(first.type, c * width))
                return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

            sums = [cgutils.alloca_once(builder, vector) for _ in range(count)]
            for c in range(count):
                builder.store(builder.load(locate(out, first, c), align=align), sums[c])
            with cgutils.for_range(builder, n) as loop:
                row = builder.sext(builder.load(builder.gep(index, [loop.index])), first.type)
                column = builder.add(builder.mul(row, n_out), first)
                x = _fill_lanes(builder, builder.load(builder.gep(value, [loop.index])), vector)
                for c in range(count):
                    weight = builder.load(locate(weights, column, c), align=align)
                    product = builder.fmul(x, weight)
                    builder.store(builder.fadd(builder.load(sums[c]), product), sums[c])
            for c in range(count):
                builder.store(builder.load(sums[c]), locate(out, first, c), align=align)
            return context.get_dummy_value()

        return signature, generate

    return add_plainly if numba.config.DISABLE_JIT else intrinsic(add_strip)


def make_block(n_rows, width, count):
    """Return a function for kernels that adds a product of matrices to one block of their result.

    `add(a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row)` adds, for k from 0 to
    n - 1, `a[a_first + i * a_row + k * a_step] * b[b_first + j + k * b_step]` to
    `out[out_first + i * out_row + j]`, i from 0 to n_rows - 1, j from 0 to width * count - 1. All arrays
    are flat and of one type.

    Parameters
    ----------
    n_rows : int
        Rows of the block.
    width, count : int
        Columns of one vector; vectors of a row, each with a register of its own.
    """

    def add_plainly(a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row):
        for k in range(n):
            for i in range(n_rows):
                for j in range(width * count):
                    x = a[a_first + i * a_row + k * a_step] * b[b_first + j + k * b_step]
                    out[out_first + i * out_row + j] += x

    def add_block(
        typing, a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row
    ):
        signature = types.void(
            a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row
        )

        def generate(context, builder, signature, arguments):
            def find_data(k):
                return context.make_array(signature.args[k])(context, builder, arguments[k]).data

            a, b, out = (find_data(k) for k in (0, 4, 8))
            a_first, a_row, a_step, b_first, b_step, n, out_first, out_row = (
                arguments[k] for k in (1, 2, 3, 5, 6, 7, 9, 10)
            )
            vector, align = _find_vector(context, signature.args[0], width)

            def locate(base, first, c):
                offset = builder.add(first, ir.Constant(first.type, c * width))
                return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

            sums, firsts, first = [], [], out_first
            for _ in range(n_rows):
                sums.append([cgutils.alloca_once(builder, vector) for _ in range(count)])
                firsts.append(first)
                for c in range(count):
                    builder.store(builder.load(locate(out, first, c), align=align), sums[-1][c])
                first = builder.add(first, out_row)
            with cgutils.for_range(builder, n) as loop:
                b_now = builder.add(b_first, builder.mul(loop.index, b_step))
                a_now = builder.add(a_first, builder.mul(loop.index, a_step))
                weights = [builder.load(locate(b, b_now, c), align=align) for c in range(count)]
                for own in sums:
                    x = _fill_lanes(builder, builder.load(builder.gep(a, [a_now])), vector)
                    for c in range(count):
                        product = builder.fmul(x, weights[c])
                        builder.store(builder.fadd(builder.load(own[c]), product), own[c])
                    a_now = builder.add(a_now, a_row)
            for own, first in zip(sums, firsts, strict=True):
                for c in range(count):
                    builder.store(builder.load(own[c]), locate(out, first, c), align=align)
            return context.get_dummy_value()

        return signature, generate

    return add_plainly if numba.config.DISABLE_JIT else intrinsic(add_block)


add_64 = make_strip(16, 4)
add_16 = make_strip(16, 1)
add_12 = make_strip(4, 3)
add_4 = make_strip(4, 1)
add_4_by_16 = make_block(4, 8, 2)
add_1_by_16 = make_block(1, 8, 2)
