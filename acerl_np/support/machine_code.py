"""Where the machine code of kernels is kept, for how long, and what is said about compiling it.

A stamp covers what a kernel module depends on: its source, those of the modules that it imports, the
package's version, and those of numba, llvmlite and NumPy. Machine code with another stamp is never loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import threading
import time
import warnings
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np

from acerl_np.support.version import __version__

SECONDS = "10 to 40 s"
"""How long the kernels of one use take to compile: a training, hindsight, a lookahead of a rule or of a
network; measured on an idle and on a busy core."""

UNUSED_SECONDS = 30 * 86400.0
"""Age of machine code that no process has loaded since, after which it is deleted."""


PACKAGE = Path(__file__).parent.parent

IMPORTED = re.compile(rb"^from acerl_np\.kernels(?:\.(\w+))? import +([\w, ]*)", re.MULTILINE)
"""What a kernel module says of the others that it imports."""


@cache
def _read_kernels(name: str) -> tuple[bytes, frozenset[str]]:
    """Return the source of a kernel module and the names of those that it imports."""
    source = (PACKAGE / "kernels" / f"{name}.py").read_bytes()
    imported = set()
    for module, names in IMPORTED.findall(source):
        words = names.decode().split(",")
        imported |= {module.decode()} if module else {word.split()[0] for word in words}
    return source, frozenset(imported)


def list_sources(module: str) -> list[str]:
    """Return the names of the kernel modules that a module's machine code depends on, itself included.

    Parameters
    ----------
    module : str
        Such as "acerl_np.kernels.events"; whatever is no kernel module depends on all.
    """
    folder = "acerl_np.kernels."
    if not module.startswith(folder):
        return sorted(path.stem for path in (PACKAGE / "kernels").glob("*.py"))
    found: set[str] = set()
    open_ones = {module.removeprefix(folder)}
    while open_ones:
        name = open_ones.pop()
        found.add(name)
        open_ones |= _read_kernels(name)[1] - found
    return sorted(found)


@cache
def _hash_versions() -> bytes:
    """Return the hash of what all machine code depends on: versions, and how kernels are compiled."""
    digest = hashlib.sha256(
        f"{sys.version} numba {numba.__version__} llvmlite {llvmlite.__version__} "
        f"numpy {np.__version__} {__version__}".encode()
    )
    for name in ("compiled.py", "numba_cache.py"):
        digest.update(Path(__file__).with_name(name).read_bytes() + b"\0")
    return digest.digest()


@cache
def source_stamp(module: str = "") -> str:
    """Return the hash of all that a module's machine code depends on: sources, versions and compiler.

    Parameters
    ----------
    module : str
        As of `list_sources`.

    Returns
    -------
    str
        32 hexadecimal digits; other digits mean that no cached machine code may be used.
    """
    digest = hashlib.sha256(_hash_versions())
    for name in list_sources(module):
        digest.update(name.encode() + b"\0" + _read_kernels(name)[0] + b"\0")
    return digest.hexdigest()[:32]


def _is_private(folder: Path) -> bool:
    """Whether only this user can have written below `folder` (machine code is loaded from it)."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


@cache
def cache_folder(module: str = "") -> Path | None:
    """Return the folder of a module's machine code, or None when no folder can be written.

    `NUMBA_CACHE_DIR` comes first, then the user's cache folder, then the package's own folder.

    Parameters
    ----------
    module : str
        As of `list_sources`; by default a folder for what concerns all modules.
    """
    home_cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    candidates = [Path(home_cache) / "acerl_np", Path(__file__).parent / "__pycache__"]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR) / "acerl_np")
    for candidate in candidates:
        folder = candidate / f"kernels-{source_stamp(module)}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK) and _is_private(folder):
                os.utime(folder)  # says when it was last used, see `drop_unused`
                return folder
        except OSError:
            continue
    return None


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
                f"acerl_np: compiling kernels, {how} ({SECONDS}) ...",
                file=sys.stderr,
                flush=True,
            )


NOT_KEPT = f"compiled kernels are not kept, each process compiles them anew ({SECONDS})"
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
