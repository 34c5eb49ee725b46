"""Sums of scaled rows, held in vector registers.

Written as loops over columns, LLVM keeps the sums in memory: it reads and writes them again for every
few rows, and checks each time that they do not overlap the rows. The instructions that keep a strip
of columns in registers from the first row to the last are therefore given here one by one. They are
LLVM's portable vectors, lowered to whatever the processor has; each lane adds its products in the
order of the plain loop, so the sum is the same to the last bit.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


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
            vector = ir.VectorType(ir.FloatType(), width)
            undefined = ir.Constant(vector, ir.Undefined)
            lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)

            def locate(base, column, c):
                offset = builder.add(column, ir.Constant(first.type, c * width))
                return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

            sums = [cgutils.alloca_once(builder, vector) for _ in range(count)]
            for c in range(count):
                builder.store(builder.load(locate(out, first, c), align=4), sums[c])
            with cgutils.for_range(builder, n) as loop:
                row = builder.sext(builder.load(builder.gep(index, [loop.index])), first.type)
                column = builder.add(builder.mul(row, n_out), first)
                x = builder.load(builder.gep(value, [loop.index]))
                x = builder.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
                x = builder.shuffle_vector(x, undefined, lane_zero)
                for c in range(count):
                    weight = builder.load(locate(weights, column, c), align=4)
                    product = builder.fmul(x, weight)
                    builder.store(builder.fadd(builder.load(sums[c]), product), sums[c])
            for c in range(count):
                builder.store(builder.load(sums[c]), locate(out, first, c), align=4)
            return context.get_dummy_value()

        return signature, generate

    return add_plainly if numba.config.DISABLE_JIT else intrinsic(add_strip)


add_64 = make_strip(16, 4)
add_16 = make_strip(16, 1)
add_12 = make_strip(4, 3)
add_4 = make_strip(4, 1)
