"""Functions of users within kernels: compiled apart, and called as numba's first-class functions.

So a kernel is compiled once for all of them, and kept on disk. To hand over all the arrays that they see
would take half as long as a decision: their view lies in memory, and is written again only where an array is
another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, overload

from acerl_np.support.compiled import compile_callback, compile_inner, list_inlined

N_WORDS = 512
"""Room for any view."""

SIGNATURE = types.void(types.uint64, types.Array(types.uint32, 1, "C"), *[types.int64] * 3)
"""Of a user's function: where its view lies, and what follows."""


def call_own(function, words, view, key, b, decision, n):
    """Call a user's function, see `compile_own`, with a view and what follows.

    Parameters
    ----------
    function : int or callable
    words : ndarray(uint64, (N_WORDS,)), scratch, zeros at first
    view : NamedTuple of arrays and such tuples, at the place of earlier ones only with their shapes
    key : ndarray(uint32, (4,))
    b, decision, n : int
    """
    function(view, key, b, decision, n)


def compile_own(function: Callable[..., None], kind: Any, name: str = "") -> tuple[Any, Any]:
    """Compile a function for `call_own`; `kind` is numba's type of the view.

    What has a name is kept on disk, and loaded by it: it tells apart all that differs but for kernels.

    Returns
    -------
    int or callable
        Its address; without the compiler itself.
    object, which that lives as long as
    """
    if numba.config.DISABLE_JIT:
        return function, None
    compiled = compile_inner(function)

    @intrinsic
    def find_view(typing_context, address):
        def read(context, builder, signature, arguments):
            there = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return impl_ret_borrowed(context, builder, kind, builder.load(there))

        return kind(types.uint64), read

    def enter(address, key, b, decision, n):
        compiled(find_view(address), key, b, decision, n)

    return compile_callback(enter, SIGNATURE, name)


def _list_data(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return where the data of each array of a view are."""
    if isinstance(kind, types.Array):
        return [context.make_array(kind)(context, builder, value).data]
    found = []
    for k, own in enumerate(kind.types):
        found += _list_data(context, builder, own, builder.extract_value(value, k))
    return found


@intrinsic
def _keep(typing_context, words, view):
    """Keep a view up to date in memory; return where it is."""

    def write(context, builder, signature, arguments):
        place, value = context.make_array(words)(context, builder, arguments[0]).data, arguments[1]
        there = builder.bitcast(place, value.type.as_pointer())
        both = (_list_data(context, builder, view, x) for x in (builder.load(there), value))
        differ = [builder.icmp_unsigned("!=", *own) for own in zip(*both, strict=True)]
        with builder.if_then(reduce(builder.or_, differ), likely=False):
            builder.store(value, there)
        return builder.ptrtoint(place, ir.IntType(64))

    return types.uint64(words, view), write


@intrinsic
def _find_function(typing_context, address):
    """Return the first-class function at an address of machine code."""
    kind = types.FunctionType(SIGNATURE)

    def find(context, builder, signature, arguments):
        own = cgutils.create_struct_proxy(kind)(context, builder)
        own.c_addr = builder.inttoptr(arguments[0], own.c_addr.type)
        return own._getvalue()

    return kind(types.uint64), find


if not numba.config.DISABLE_JIT:

    @overload(call_own, jit_options=list_inlined())
    def _call_own(function, words, view, key, b, decision, n):
        def call(function, words, view, key, b, decision, n):
            own = _find_function(np.uint64(function))
            own(_keep(words, view), key, np.int64(b), np.int64(decision), n)

        return call
