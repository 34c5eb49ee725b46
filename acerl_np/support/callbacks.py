"""Functions of users within kernels: compiled apart, and called by their addresses.

So a kernel is compiled once for all of them, and kept on disk. The arrays that they see are handed over in a
few words, the data and the sizes of each, which are written again only where an array is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from acerl_np.support.compiled import compile_inner, list_inlined, list_options

WORD = ir.IntType(64)
N_WORDS = 128
"""Room for the words of any view."""


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


def compile_own(function: Callable[..., None], kind: Any, *, within: bool = False) -> Any:
    """Compile a function for `call_own`; `kind` is numba's type of the view.

    Returns
    -------
    int or callable
        Its address; `within` kernels, the function to be compiled into each of them.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled = compile_inner(function)
    if within:
        return compiled
    unpack = _make_unpack(kind)

    def enter(words, key, b, decision, n):
        compiled(unpack(words), _find_key(key), b, decision, n)

    options = list_options({"_nrt": False})
    options.pop("nogil")
    made = numba.cfunc(SIGNATURE, **options)(enter)
    _KEPT.append(made)
    return made.address


SIGNATURE = types.void(*[types.uint64] * 2, *[types.int64] * 3)

_KEPT: list[Any] = []
"""Machine code lives as long as its owner; an address may be anywhere."""


def _split(context: Any, builder: Any, kind: Any, value: Any) -> list[list[Any]]:
    """Return the words of each array of a view: its data, and its sizes but the first of several."""
    found = []
    for k, own in enumerate(kind.types):
        part = builder.extract_value(value, k)
        if isinstance(own, types.NamedTuple):
            found += _split(context, builder, own, part)
            continue
        if own.layout != "C":
            raise TypeError(f"{kind.fields[k]}: read layout {own.layout}; expected C")
        array = context.make_array(own)(context, builder, part)
        sizes = cgutils.unpack_tuple(builder, array.shape)[own.ndim > 1 :]
        found.append([builder.ptrtoint(array.data, WORD), *sizes])
    return found


@intrinsic
def _hand_over(typing_context, words, view):
    """Keep the words of a view up to date."""

    def write(context, builder, signature, arguments):
        start = context.make_array(words)(context, builder, arguments[0]).data
        place, differs = 0, ir.Constant(ir.IntType(1), 0)
        stores: list[Any] = []
        for own in _split(context, builder, view, arguments[1]):
            there = builder.load(builder.gep(start, [ir.Constant(WORD, place)]))
            differs = builder.or_(differs, builder.icmp_unsigned("!=", there, own[0]))
            stores += enumerate(own, place)
            place += len(own)
        with builder.if_then(differs, likely=False):
            for n, word in stores:
                builder.store(word, builder.gep(start, [ir.Constant(WORD, n)]))
        return context.get_dummy_value()

    return types.void(words, view), write


def _make_unpack(kind: Any) -> Any:
    """Return what makes a view of this type from the address of its words.

    The first size of an array of several dimensions is not known, and nobody asks for it.
    """

    def read(context, builder, signature, arguments):
        start = builder.inttoptr(arguments[0], WORD.as_pointer())
        place = 0

        def take():
            nonlocal place
            place += 1
            return builder.load(builder.gep(start, [ir.Constant(WORD, place - 1)]))

        def make(own):
            if isinstance(own, types.NamedTuple):
                return context.make_tuple(builder, own, [make(part) for part in own.types])
            item = context.get_data_type(own.dtype)
            data = builder.inttoptr(take(), item.as_pointer())
            sizes = [ir.Constant(WORD, np.iinfo(np.int64).max)] * (own.ndim > 1)
            sizes += [take() for _ in range(own.ndim - len(sizes))]
            return _make_array(context, builder, own, data, sizes)

        return make(kind)

    return intrinsic(lambda typing_context, address: (kind(types.uint64), read))


def _make_array(context: Any, builder: Any, kind: Any, data: Any, sizes: list[Any]) -> Any:
    from numba.np.arrayobj import populate_array  # slow to import, and needed to compile alone

    array = context.make_array(kind)(context, builder)
    width = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    width = stride = context.get_constant(types.intp, width)
    strides: list[Any] = []
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride = builder.mul(stride, size)
    populate_array(array, data, sizes, strides, width, None)
    return array._getvalue()


@intrinsic
def _find_key(typing_context, address):
    """Return the key at an address."""
    kind = types.Array(types.uint32, 1, "C")

    def read(context, builder, signature, arguments):
        data = builder.inttoptr(arguments[0], ir.IntType(32).as_pointer())
        return _make_array(context, builder, kind, data, [ir.Constant(WORD, 4)])

    return kind(types.uint64), read


@intrinsic
def _jump(typing_context, function, words, key, b, decision, n):
    """Call the function at an address of machine code."""

    def call(context, builder, signature, arguments):
        own = ir.FunctionType(ir.VoidType(), [WORD] * 5).as_pointer()
        builder.call(builder.inttoptr(arguments[0], own), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.uint64, *SIGNATURE.args), call


@intrinsic
def _find_address(typing_context, array):
    """Return where the data of an array are."""

    def find(context, builder, signature, arguments):
        own = context.make_array(array)(context, builder, arguments[0])
        return builder.ptrtoint(own.data, WORD)

    return types.uint64(array), find


if not numba.config.DISABLE_JIT:

    @overload(call_own, jit_options=list_inlined())
    def _call_own(function, words, view, key, b, decision, n):
        if not isinstance(function, types.Integer):
            return lambda function, words, view, key, b, decision, n: function(
                view, key, b, decision, n
            )

        def jump(function, words, view, key, b, decision, n):
            _hand_over(words, view)
            address, own_key = _find_address(words), _find_address(key)
            _jump(np.uint64(function), address, own_key, np.int64(b), np.int64(decision), n)

        return jump
