"""Processes and files of this machine, for tests that start, kill, limit or import real ones."""

import importlib
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numba
import pytest

import acerl_np

JIT = not numba.config.DISABLE_JIT
"""Whether kernels are compiled."""

needs_jit = pytest.mark.skipif(not JIT, reason="takes too long without the compiler")

ROOT = Path(acerl_np.__file__).parents[1]
BESIDE = ("examples", "benchmarks")
"""Folders of scripts; an installed package has none beside it."""


def find_environment(*paths):
    """The variables of a process of its own that imports from these folders, by default the package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths or [ROOT]))}


def load_example(name):
    """A module of the examples or benchmarks, one of which may import another."""
    folders = [str(Path(__file__).parents[1] / name) for name in BESIDE]
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return importlib.import_module(name)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@contextmanager
def limit_files(size):
    """No file of this process may grow beyond so many bytes; Python ignores the signal of it."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
