"""numba's cache of machine code, with one stamp over all kernels.

numba's own cache looks only at the file of the function that it caches. A kernel that calls kernels
of other files would then be served stale after one of those changed.

All of numba that may change without notice is used here and nowhere else. `compiled` goes on without
this module if a version of numba does not fit it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.compiler import Flags

from acerl_np.support.machine_code import (
    NOT_KEPT,
    NOT_READ,
    cache_folder,
    drop_unused,
    note_compiling,
    source_stamp,
    warn_once,
)

Function = Callable[..., Any]


class _Locator(_CacheLocator):
    """Tell numba's cache to use `cache_folder` and `source_stamp`."""

    def __init__(self, function: Function) -> None:
        self._name = f"{function.__module__}.{function.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_stamp()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Function, py_file: str) -> _Locator | None:
        return cls(py_func)


class _Contents(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):
    """Machine code of one kernel; numba asks for it before compiling, and hands it over after.

    Raises
    ------
    RuntimeError
        If numba would take another folder, and with it another stamp.
    """

    _impl_class = _Contents

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        if self.cache_path != str(cache_folder()):
            raise RuntimeError(f"machine code would go to {self.cache_path}")
        if cache_folder() is None:
            self.disable()

    def load_overload(self, *arguments: Any) -> Any:
        try:
            found = super().load_overload(*arguments)
        except Exception as error:  # of files as of numba: compiling anew is always right
            found = None
            warn_once(NOT_READ, error)
            # A damaged file would be met again by whoever comes next.
            with contextlib.suppress(Exception):
                self.flush()
        if found is None:
            note_compiling()
        return found

    def save_overload(self, *arguments: Any) -> None:
        try:
            super().save_overload(*arguments)
        except Exception as error:  # such as a full disk
            warn_once(NOT_KEPT, error)
        drop_unused()


def keep_machine_code(dispatcher: Any) -> None:
    """Let a kernel load its machine code if there is some, and save what it compiles.

    Parameters
    ----------
    dispatcher : numba dispatcher
        The kernel as `numba.njit` returns it.

    Raises
    ------
    AttributeError
        If this version of numba asks no such cache.
    """
    for owner, name in (
        (dispatcher, "_cache"),
        (FunctionCache, "load_overload"),
        (FunctionCache, "save_overload"),
    ):
        if not hasattr(owner, name):
            raise AttributeError(f"{owner!r} has no {name}")
    dispatcher._cache = _KernelCache(dispatcher.py_func)


def check_options(dispatcher: Any) -> None:
    """Let numba read a dispatcher's options, as it otherwise does only when it compiles.

    Raises
    ------
    KeyError
        If it does not know one of them.
    """
    dispatcher.targetdescr.options.parse_as_flags(Flags(), dispatcher.targetoptions)
