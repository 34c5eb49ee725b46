"""What computed a result: versions and code, so that what another process returns can be trusted."""

from __future__ import annotations

import platform
from functools import cache
from typing import NamedTuple

import llvmlite
import numba
import numpy as np
import scipy

from acerl_np.support.machine_code import source_stamp


class Fingerprint(NamedTuple):
    """What decides a result besides its task.

    Attributes
    ----------
    host : str
        Name of the machine, for messages; two hosts may agree in all else.
    code : str
        Hash of the kernels' sources, the package's version and the compiler's: `machine_code.source_stamp`.
    numpy, scipy, numba, llvmlite : str
        Versions.
    test : str
        Hash of the bytes of a computed test member, empty where none was asked for.
    """

    host: str
    code: str
    numpy: str
    scipy: str
    numba: str
    llvmlite: str
    test: str = ""


@cache
def own_fingerprint() -> Fingerprint:
    """Return that of this process, without a test member."""
    return Fingerprint(
        platform.node() or "this machine",
        source_stamp()[:12],
        np.__version__,
        scipy.__version__,
        numba.__version__,
        llvmlite.__version__,
    )


def describe_difference(own: Fingerprint, other: Fingerprint) -> str | None:
    """Return in what a worker differs from this process, on one line; None if results can be mixed."""
    for name in ("code", "numpy", "scipy", "numba", "llvmlite", "test"):
        mine, theirs = getattr(own, name), getattr(other, name)
        if mine != theirs:
            words = {"code": "other code of acerl_np", "test": "another result of the test member"}
            what = words.get(name, name)
            return f"a worker on {other.host} has {what}: read {theirs}; expected {mine}"
    return None
