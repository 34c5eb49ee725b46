"""What the library says while it works: to a logger, silent unless a program listens; commands show it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOG = logging.getLogger("acerl_np")
LOG.addHandler(logging.NullHandler())  # else Python shows warnings of loggers without a handler


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
