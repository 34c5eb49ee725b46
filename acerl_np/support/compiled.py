"""How kernels are compiled: with which options, and with machine code kept where numba allows it.

What is not in numba's reference may be missing from its next version. Kernels are then compiled
without it, with a warning.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numba.extending

from acerl_np.support.machine_code import NOT_KEPT, warn_once

Function = Callable[..., Any]

KERNEL = {"no_cfunc_wrapper": True}
CALLED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
INLINED = {"forceinline": True, **CALLED}
APART = {"forceinline": False, **CALLED}
CHANGED: tuple[type[Exception], ...] = (
    ImportError,
    AttributeError,
    TypeError,
    LookupError,
    ValueError,
)
CHANGED += (NotImplementedError, numba.core.errors.NumbaError)
"""What is raised where numba has changed: no fault of a machine, its files or its users."""

COMMON = {"nogil": True, "error_model": "numpy"}


def _do_nothing():
    return None


def _is_known(option: str, value: bool) -> bool:
    """Whether numba takes this option; it need not say so before it compiles."""
    with contextlib.suppress(Exception):
        dispatcher = numba.njit(**{option: value})(_do_nothing)
        with contextlib.suppress(Exception):
            flags = numba.core.compiler.Flags()
            dispatcher.targetdescr.options.parse_as_flags(flags, dispatcher.targetoptions)
            return True
        dispatcher.compile(())  # slower, and asks no private part
        return True
    return False


@cache
def _find_unknown_options() -> frozenset[str]:
    """Return the options that this version of numba does not take, with a warning if there are any."""
    unknown = [name for name, value in INLINED.items() if not _is_known(name, value)]
    if unknown:
        warnings.warn(
            f"acerl_np: kernels are compiled without {', '.join(unknown)} and may run slower: "
            f"numba {numba.__version__} does not take such an option",
            RuntimeWarning,
            stacklevel=2,
        )
    return frozenset(unknown)


@cache
def _find_maker() -> Function | None:
    """Return what makes kernels whose machine code is kept; None, with a warning, where numba has changed."""
    try:
        from acerl_np.support.numba_cache import make_kernel

        make_kernel(_do_nothing, {}, {})
    except CHANGED as error:  # kernels work without
        warn_once(NOT_KEPT, error)
        return None
    return make_kernel


def list_options(options: dict[str, bool]) -> dict[str, Any]:
    """Return those of numba's options that it takes, with those of all kernels."""
    unknown = _find_unknown_options()
    if _find_maker() is None:
        unknown |= {"_nrt"}  # one function serves Python, for which it may allocate, and kernels
    return COMMON | {name: value for name, value in options.items() if name not in unknown}


def list_inlined() -> dict[str, Any]:
    """Return numba's options for functions of which nothing is kept but what their callers take over."""
    options = list_options(INLINED)
    if _find_maker():
        from acerl_np.support.numba_cache import BY_KERNELS

        options |= BY_KERNELS
    return options


def _compile(function: Function, within: dict[str, bool]) -> Function:
    """Compile a function for calls from Python, and with the options `within` for those of kernels."""
    if numba.config.DISABLE_JIT:
        return function
    if make_kernel := _find_maker():
        return make_kernel(function, list_options(KERNEL), list_options(within))
    return numba.njit(**list_options({**within, "no_cpython_wrapper": False}))(function)


def kernel(function: Function) -> Function:
    """Compile `function` with numba: no GIL, no Python objects, division as in NumPy, strict IEEE.

    Floating-point operations are never reordered or contracted, so that a result does not depend on
    how a loop was cut into tiles or vectorised. A kernel may be called from Python and by kernels; it is
    compiled for the one or the other when it is. Kernels hand each other NamedTuples by reference. What
    kernels call returns no arrays: it counts no references to their memory, and who called it may.
    """
    return _compile(function, CALLED)


def inner_kernel(function: Function) -> Function:
    """Compile like `kernel`, and always inline it into the kernels that call it.

    A call that stays a call would copy every field of every array that it passes, hundreds of words
    for a problem and a state; inlined, that costs nothing, and loops can still be vectorised.
    """
    return _compile(function, INLINED)


def large_kernel(function: Function) -> Function:
    """Compile like `kernel`, and never inline it: what a `kernel` may be, where its first caller is inlined.

    For what runs long beside a call. The time of compiling grows faster than the function that all becomes.
    """
    return _compile(function, APART)


def choose_by_type(function: Function, find: Callable[..., Function | None]) -> Function:
    """Let kernels that call `function` be compiled with another function, chosen by numba's types.

    `find` takes the types of the arguments, by the names of the function's parameters; it returns the kernel
    to call, None if there is none for them. Python calls `function` itself, which is returned.
    """
    if not numba.config.DISABLE_JIT:
        numba.extending.overload(function, jit_options=list_inlined(), strict=False)(find)
    return function


def compile_callback(function: Function, signature: Any, name: str = "") -> tuple[int, Any]:
    """Return the address of a function's machine code, and what this lives as long as.

    With a name it is kept on disk as kernels are.
    """
    options = list_options({"_nrt": False})
    options.pop("nogil")
    made: Any
    if name and _find_maker():
        from acerl_np.support.numba_cache import make_callback

        made = make_callback(function, signature, options, name)
    else:
        made = numba.cfunc(signature, **options)(function)
    # The function would keep itself for ever, by what numba does when it goes.
    return made.address, getattr(made, "_library", made)


def compile_inner(function: Function) -> Function:
    """Compile a function that is made when it is needed, as `inner_kernel`; nothing of it is kept."""
    if numba.config.DISABLE_JIT:
        return function
    return numba.njit(**list_inlined())(function)
