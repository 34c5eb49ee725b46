"""Where the machine code of kernels is kept, and for how long.

A stamp covers what a kernel module depends on: its source, those of the modules that it imports, the
package's version, those of numba, llvmlite and NumPy, and numba's settings. Machine code with another
stamp is never loaded.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import shutil
import sys
import time
import warnings
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import llvmlite
import numba
import numpy as np

from acerl_np.support.log import SECONDS
from acerl_np.support.version import __version__

UNUSED_SECONDS = 30 * 86400.0
"""Age of machine code that no process has loaded since, after which it is deleted."""


PACKAGE = Path(__file__).parent.parent

IMPORT = re.compile(
    rb"^[ \t]*((?:from|import)\b(?:[^\n(\\]|\\\n)*(?:\([^)]*\)[^\n]*)?)", re.MULTILINE
)
"""Lines that import: to parse these alone takes a twentieth of the time."""

SETTINGS = (
    *("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "USING_SVML"),
    *("DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES", "LLVM_REFPRUNE_PASS"),
)
"""Those of numba that change machine code."""


@cache
def _find_file(name: str) -> str | None:
    """Return the file of a module of the package, None if there is none."""
    path = os.path.join(PACKAGE.parent, *name.split("."))  # noqa: PTH118 (hundreds of times)
    files = (f"{path}.py", f"{path}/__init__.py")
    return next(filter(os.path.isfile, files), None)


@cache
def _read_module(name: str) -> tuple[bytes, frozenset[str]]:
    """Return the source of a module of the package, and those parts of the package that it imports."""
    file = _find_file(name)
    assert file is not None
    source = Path(file).read_bytes()
    lines = b"\n".join(IMPORT.findall(source))
    tree = None
    if lines.count(b"import") == source.count(b"import"):  # else there may be others
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(lines)
    home = name if file.endswith("__init__.py") else name.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(tree or ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {item.name for item in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), home)
            names |= {module, *(f"{module}.{item.name}" for item in node.names)}
    # With a module its packages are imported, but the whole one, which imports all.
    parts = (name.split(".") for name in names if name.startswith(f"{PACKAGE.name}."))
    every = {".".join(own[:n]) for own in parts for n in range(2, len(own) + 1)}
    return source, frozenset(own for own in every if _find_file(own))


def list_sources(module: str) -> list[str]:
    """Return the modules of the package that a module's machine code depends on, itself included.

    Whatever is not below "acerl_np.kernels" depends on all kernels, and beside the package on itself.
    """
    if module.startswith("acerl_np.kernels."):
        found = {module}
    else:
        files = (PACKAGE / "kernels").rglob("*.py")
        found = {".".join(x.relative_to(PACKAGE.parent).with_suffix("").parts) for x in files}
        found |= {module} if module and _find_file(module) else set()
    more = found
    while more := set().union(*(_read_module(name)[1] for name in more)) - found:
        found |= more
    return sorted(found)


@cache
def source_stamp(module: str = "") -> str:
    """Return 32 digits of a hash of all that a module's machine code depends on.

    That is versions, numba's settings, and the sources of `list_sources`: how kernels are compiled, too.
    """
    settings = [getattr(numba.config, name, None) for name in SETTINGS]
    digest = hashlib.sha256(
        f"{sys.version} numba {numba.__version__} {settings} llvmlite {llvmlite.__version__} "
        f"numpy {np.__version__} {__version__}".encode()
    )
    for name in list_sources(module):
        digest.update(name.encode() + b"\0" + _read_module(name)[0] + b"\0")
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
    candidates = [Path(__file__).parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # a user without a home has no folder there
        home_cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        candidates.insert(0, Path(home_cache) / "acerl_np")
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


NOT_KEPT = f"compiled kernels are not kept, each process compiles them anew ({SECONDS})"
NOT_READ = "kept machine code of kernels cannot be read, and is compiled anew"

_warned: set[str] = set()  # numba's lock is held where this changes


def warn_once(what: str, error: Exception) -> None:
    """Warn, once in a process, that machine code is `NOT_KEPT` or `NOT_READ`."""
    if what in _warned:
        return
    _warned.add(what)
    warnings.warn(
        f"acerl_np: {what}: numba {numba.__version__}: {type(error).__name__}: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
