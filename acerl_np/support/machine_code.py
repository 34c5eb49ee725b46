"""Where the machine code of kernels is kept, for how long, and what is said about compiling it.

One stamp covers all kernels: their sources, the package's version, and those of numba, llvmlite and
NumPy. Machine code with another stamp is never loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np

SECONDS = 40
"""About how long all kernels together take to compile, s; most uses need a part of them."""

COMPILE_WAIT = 120.0
"""Seconds to wait for another process that compiles; it may have been stopped."""

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
    package = Path(__file__).parent.parent
    # The package's own file holds its version, the other two the options and the form of the cache.
    own = [package / "__init__.py"]
    own += [Path(__file__).with_name(name) for name in ("compiled.py", "numba_cache.py")]
    for path in [*own, *sorted((package / "kernels").glob("*.py"))]:
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
                os.utime(folder)  # says when it was last used, see `drop_unused`
                return folder
        except OSError:
            continue
    return None


@contextlib.contextmanager
def compile_alone() -> Iterator[None]:
    """Let one process of this user and machine compile at a time: the others load what it has compiled.

    Where no lock can be had, or none within `COMPILE_WAIT`, all compile.
    """
    folder = cache_folder()
    if folder is None or sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        lock = os.open(folder / ".compiling", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + COMPILE_WAIT
        with contextlib.suppress(OSError):  # a file system without locks
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.1)
        yield
    finally:
        os.close(lock)


@cache
def drop_unused() -> None:
    """Delete machine code that no process has used for a while, once in a process."""
    folder = cache_folder()
    if folder is None:
        return
    # Another process may delete the same; what stays is deleted another time.
    with contextlib.suppress(OSError):
        for other in folder.parent.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


class _Said:
    """What this process has compiled, and whether anybody has been told."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.compiled = 0
        self.announced = False
        self.warned: set[str] = set()


_said = _Said()


def count_compiled() -> int:
    """Return how many kernels this process has begun to compile, not counting those loaded."""
    return _said.compiled


def silence() -> None:
    """Say nothing about compiling for the rest of this process."""
    with _said.lock:
        _said.announced = True


def note_compiling() -> None:
    """Take note that a kernel is about to be compiled; the first of a process is announced."""
    with _said.lock:
        _said.compiled += 1
        if _said.announced:
            return
        _said.announced = True
    how = "once on this machine"
    if cache_folder() is None:
        how = "for this process alone, as no folder for them can be written"
    # Without a standard error stream, as in windowed programs, nobody could read it.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(
                f"acerl_np: compiling kernels, {how} (up to {SECONDS} s) ...",
                file=sys.stderr,
                flush=True,
            )


NOT_KEPT = f"compiled kernels are not kept, each process compiles them anew (up to {SECONDS} s)"
NOT_READ = "kept machine code of kernels cannot be read, and is compiled anew"


def warn_once(what: str, error: Exception) -> None:
    """Warn, once in a process of each, of something that is wrong with keeping machine code.

    Parameters
    ----------
    what : str
        `NOT_KEPT` or `NOT_READ`.
    error : Exception
        Why.
    """
    with _said.lock:
        if what in _said.warned:
            return
        _said.warned.add(what)
    warnings.warn(
        f"acerl_np: {what}: numba {numba.__version__}: {type(error).__name__}: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
