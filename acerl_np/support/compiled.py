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

from acerl_np.support.machine_code import NOT_KEPT, warn_once

Function = Callable[..., Any]

KERNEL = {"no_cfunc_wrapper": True}
INNER_KERNEL = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


def _do_nothing():
    return None


def _is_known(option: str, value: bool) -> bool:
    """Whether numba takes this option; it need not say so before it compiles."""
    with contextlib.suppress(Exception):
        from acerl_np.support.numba_cache import check_options

        check_options(numba.njit(**{option: value})(_do_nothing))
        return True
    # Slower, and asks no private part.
    with contextlib.suppress(Exception):
        numba.njit(**{option: value})(_do_nothing).compile(())
        return True
    return False


@cache
def _find_unknown_options() -> frozenset[str]:
    """Return the options that this version of numba does not take, with a warning if there are any."""
    unknown = [name for name, value in INNER_KERNEL.items() if not _is_known(name, value)]
    if unknown:
        warnings.warn(
            f"acerl_np: kernels are compiled without {', '.join(unknown)} and may run slower: "
            f"numba {numba.__version__} does not take such an option",
            RuntimeWarning,
            stacklevel=2,
        )
    return frozenset(unknown)


def _keep(dispatcher: Function) -> None:
    """Keep the machine code of a kernel if this version of numba allows it."""
    try:
        from acerl_np.support.numba_cache import keep_machine_code

        keep_machine_code(dispatcher)
    except Exception as error:  # whatever has changed in numba: the kernel works without
        warn_once(NOT_KEPT, error)


def _compile(function: Function, options: dict[str, bool]) -> Function:
    if numba.config.DISABLE_JIT:
        return function
    unknown = _find_unknown_options()
    known = {name: value for name, value in options.items() if name not in unknown}
    dispatcher = numba.njit(nogil=True, error_model="numpy", **known)(function)
    _keep(dispatcher)
    return dispatcher


def kernel(function: Function) -> Function:
    """Compile `function` with numba: no GIL, no Python objects, division as in NumPy, strict IEEE.

    Floating-point operations are never reordered or contracted, so that a result does not depend on
    how a loop was cut into tiles or vectorised.
    """
    return _compile(function, KERNEL)


def inner_kernel(function: Function) -> Function:
    """Compile like `kernel`, for calls by other kernels only, and always inline.

    A call that stays a call would copy every field of every array that it passes, hundreds of words
    for a problem and a state; inlined, that costs nothing, and loops can still be vectorised.
    """
    return _compile(function, INNER_KERNEL)
