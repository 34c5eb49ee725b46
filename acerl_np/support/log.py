"""What the library says while it works, of compiling, too: to a logger, silent unless a program listens."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOG = logging.getLogger("acerl_np")
LOG.addHandler(logging.NullHandler())  # else Python shows warnings of loggers without a handler

SECONDS = "5 to 40 s"
"""How long the kernels of one use take to compile: a training, hindsight, a lookahead of a rule or of a
network; measured on an idle and on a busy core."""

_compiled = 0  # numba's lock is held where this changes


def count_compiled() -> int:
    """Return how many kernels this process has begun to compile, not counting those loaded."""
    return _compiled


def note_compiling(is_kept: bool) -> None:
    """Take note that a kernel is about to be compiled, and kept or not; the first of a process is told."""
    global _compiled
    _compiled += 1
    if _compiled == 1:
        how = "kept for later runs; acerl-np warm compiles all"
        if not is_kept:
            how = "for this process alone, as no folder for them can be written"
        LOG.info("compiling kernels that this needs (%s, %s) ...", SECONDS, how)


@contextmanager
def show_log(level: int) -> Iterator[None]:
    """Show what is said from this level on as lines of the standard error stream."""
    handler, before = logging.StreamHandler(), LOG.level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(level)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)
