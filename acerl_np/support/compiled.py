"""How kernels are compiled and where the machine code is kept.

numba's own cache looks only at the file of the function that it caches. A kernel that calls kernels
of other files would then be served stale after one of those changed. Here one stamp covers them all:
the sources of every kernel, the package's version, and those of numba, llvmlite and NumPy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

Function = Callable[..., Any]

UNUSED_SECONDS = 30 * 86400.0
"""Age of machine code that no process has loaded since, after which it is deleted."""


@cache
def source_stamp() -> str:
    """Return the hash of all kernel sources, of the package's version and of the compiler's.

    Returns
    -------
    str
        32 hexadecimal digits; other digits mean that no cached machine code may be used.
    """
    digest = hashlib.sha256(
        f"{sys.version} numba {numba.__version__} llvmlite {llvmlite.__version__} "
        f"numpy {np.__version__}".encode()
    )
    kernels = Path(__file__).parent.parent / "kernels"
    # The package's own file holds its version.
    own = [kernels.parent / "__init__.py", Path(__file__)]
    for path in [*own, *sorted(kernels.glob("*.py"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _is_private(folder: Path) -> bool:
    """Whether only this user can have written below `folder` (machine code is loaded from it)."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


@cache
def cache_folder() -> Path | None:
    """Return the folder of the machine code, or None when no folder can be written.

    `NUMBA_CACHE_DIR` comes first, then the user's cache folder, then the package's own folder.
    """
    home_cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    candidates = [Path(home_cache) / "acerl_np", Path(__file__).parent / "__pycache__"]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR) / "acerl_np")
    for candidate in candidates:
        folder = candidate / f"kernels-{source_stamp()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK) and _is_private(folder):
                os.utime(folder)  # says when it was last used, see `mark_compiled`
                return folder
        except OSError:
            continue
    return None


def is_compiled() -> bool:
    """Whether an earlier process left machine code of exactly these kernels."""
    folder = cache_folder()
    return folder is not None and (folder / "complete").exists()


def mark_compiled() -> None:
    """Record that every kernel has been compiled, and drop machine code that is no longer used."""
    folder = cache_folder()
    if folder is None:
        return
    # Only the announcement of the next compilation depends on it.
    with contextlib.suppress(OSError):
        (folder / "complete").touch()
        for other in folder.parent.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


class _Locator(_CacheLocator):
    """Tell numba's cache to use `cache_folder` and `source_stamp`."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._name = f"{py_func.__module__}.{py_func.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_stamp()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        return cls(py_func)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):
    _impl_class = _CacheImpl


def _compile(function: Function, **options: bool) -> Function:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if dispatcher is not function and cache_folder() is not None:
        dispatcher._cache = _Cache(function)
    return dispatcher


def kernel(function: Function) -> Function:
    """Compile `function` with numba: no GIL, no Python objects, division as in NumPy, strict IEEE.

    Floating-point operations are never reordered or contracted, so that a result does not depend on
    how a loop was cut into tiles or vectorised.
    """
    return _compile(function, no_cfunc_wrapper=True)


def inner_kernel(function: Function) -> Function:
    """Compile like `kernel`, for calls by other kernels only, and always inline.

    A call that stays a call would copy every field of every array that it passes, hundreds of words
    for a problem and a state; inlined, that costs nothing, and loops can still be vectorised.
    """
    return _compile(
        function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False
    )
