"""What computed a result: versions and code, so that what another process returns can be trusted."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
import scipy

from acerl_np.support.errors import describe


def own_fingerprint() -> dict[str, str]:
    """Return what decides a result of this process besides its task.

    Returns
    -------
    dict of str
        Versions, then the hash of the package's code; and the host's name, for messages alone. Plain
        values, so that any other version can read them.
    """
    return dict(_find_own())


@cache
def _find_own() -> dict[str, str]:
    return {
        "host": platform.node() or "this machine",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "code": hash_code(Path(__file__).parent.parent),
    }


def hash_code(package: Path) -> str:
    """Return the hash of all Python files of a package, its version among them."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def describe_difference(own: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Return in what a worker differs from this process, on one line; None if results can be mixed."""
    for name, mine in own.items():
        theirs = other.get(name, "nothing")
        if name != "host" and mine != theirs:
            what = "other code of acerl_np" if name == "code" else name
            where = describe(other.get("host", "another machine"))
            return f"a worker on {where} has {what}: read {describe(theirs)}; expected {mine}"
    return None
