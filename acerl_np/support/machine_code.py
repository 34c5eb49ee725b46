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

    Whatever is not below "acerl_np.kernels" depends on all.
    """
    folder = "acerl_np.kernels."
    if not module.startswith(folder):
        return sorted(path.stem for path in (PACKAGE / "kernels").glob("*.py"))
    found = {module.removeprefix(folder)}
    while more := set().union(*(_read_kernels(name)[1] for name in found)) - found:
        found |= more
    return sorted(found)


@cache
def source_stamp(module: str = "") -> str:
    """Return 32 digits of a hash of all that a module's machine code depends on.

    That is versions, how kernels are compiled, and the sources of `list_sources`.
    """
    digest = hashlib.sha256(
        f"{sys.version} numba {numba.__version__} llvmlite {llvmlite.__version__} "
        f"numpy {np.__version__} {__version__}".encode()
    )
    for name in ("callbacks.py", "compiled.py", "methods.py", "numba_cache.py"):
        digest.update(Path(__file__).with_name(name).read_bytes() + b"\0")
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
    """Return the folder of a module's machine code (by default of all), None when none can be written.

    `NUMBA_CACHE_DIR` comes first, then the user's cache folder, then the package's own folder.
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


COMPILING = "compiling kernels"

# What this process has compiled, and what was said of it; numba's lock is held where these change.
_compiled = 0
_said: set[str] = set()


def count_compiled() -> int:
    """Return how many kernels this process has begun to compile, not counting those loaded."""
    return _compiled


def silence() -> None:
    """Say nothing about compiling for the rest of this process."""
    _said.add(COMPILING)


def note_compiling() -> None:
    """Take note that a kernel is about to be compiled; the first of a process is announced."""
    global _compiled
    _compiled += 1
    if COMPILING in _said:
        return
    _said.add(COMPILING)
    how = "once on this machine"
    if cache_folder() is None:
        how = "for this process alone, as no folder for them can be written"
    # Without a standard error stream, as in windowed programs, nobody could read it.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"acerl_np: {COMPILING}, {how} ({SECONDS}) ...\n")
        sys.stderr.flush()


NOT_KEPT = f"compiled kernels are not kept, each process compiles them anew ({SECONDS})"
NOT_READ = "kept machine code of kernels cannot be read, and is compiled anew"


def warn_once(what: str, error: Exception) -> None:
    """Warn, once in a process, that machine code is `NOT_KEPT` or `NOT_READ`."""
    if what in _said:
        return
    _said.add(what)
    warnings.warn(
        f"acerl_np: {what}: numba {numba.__version__}: {type(error).__name__}: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
