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


def make_block(n_rows, width, count, listed=False):
    """Return a function for kernels that adds a product of matrices to one block of their result.

    `add(index, a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row)` adds, for k from 0
    to n - 1, `a[a_first + i * a_row + k * a_step] * b[b_first + j + row * b_step]` to
    `out[out_first + i * out_row + j]`, i from 0 to n_rows - 1, j from 0 to width * count - 1. The row of b is
    k, or `index[k]` if it is `listed`. All arrays are flat; a, b and out are of one type.

    Parameters
    ----------
    n_rows : int, rows of the block
    width, count : int, columns of one vector, and vectors of a row, each with a register of its own
    """

    def add_plainly(
        index, a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row
    ):
        for k in range(n):
            row = b_first + (index[k] if listed else k) * b_step
            for i in range(n_rows):
                for j in range(width * count):
                    x = a[a_first + i * a_row + k * a_step] * b[row + j]
                    out[out_first + i * out_row + j] += x

    def add_block(
        typing, index, a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row
    ):
        signature = types.void(
            index, a, a_first, a_row, a_step, b, b_first, b_step, n, out, out_first, out_row
        )

        def generate(context, builder, signature, arguments):
            def find_data(k):
                return context.make_array(signature.args[k])(context, builder, arguments[k]).data

            index, a, b, out = (find_data(k) for k in (0, 1, 5, 9))
            a_first, a_row, a_step, b_first, b_step, n, out_first, out_row = (
                arguments[k] for k in (2, 3, 4, 6, 7, 8, 10, 11)
            )
            scalar = signature.args[1].dtype
            vector = ir.VectorType(context.get_data_type(scalar), width)
            align = scalar.bitwidth // 8
            lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)

            def locate(base, first, c):
                offset = builder.add(first, ir.Constant(first.type, c * width))
                return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

            def fill_lanes(x):
                undefined = ir.Constant(vector, ir.Undefined)
                x = builder.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(x, undefined, lane_zero)

            sums, firsts, first = [], [], out_first
            for _ in range(n_rows):
                sums.append([cgutils.alloca_once(builder, vector) for _ in range(count)])
                firsts.append(first)
                for c in range(count):
                    builder.store(builder.load(locate(out, first, c), align=align), sums[-1][c])
                first = builder.add(first, out_row)
            with cgutils.for_range(builder, n) as loop:
                row = loop.index
                if listed:
                    row = builder.sext(builder.load(builder.gep(index, [row])), b_step.type)
                b_now = builder.add(b_first, builder.mul(row, b_step))
                a_now = builder.add(a_first, builder.mul(loop.index, a_step))
                weights = [builder.load(locate(b, b_now, c), align=align) for c in range(count)]
                for own in sums:
                    x = fill_lanes(builder.load(builder.gep(a, [a_now])))
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


add_64 = make_block(1, 16, 4, listed=True)
add_16 = make_block(1, 16, 1, listed=True)
add_12 = make_block(1, 4, 3, listed=True)
add_4 = make_block(1, 4, 1, listed=True)
add_4_by_16 = make_block(4, 8, 2)
add_1_by_16 = make_block(1, 8, 2)
