"""Threads that share a list of independent pieces of work; kernels release the GIL meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from acerl_np.support.fields import Field

Item = TypeVar("Item")

MAX_THREADS = 1024
THREADS = Field(int, 1, MAX_THREADS, optional=True)
"""How many threads are asked for; None is one per core."""


def count_cores() -> int:
    """Return the number of cores this process may use, at most `MAX_THREADS`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(usable or 1, MAX_THREADS)


class Workers:
    """The calling thread and its helpers; copies and pickles begin helpers of their own."""

    watch: Callable[[], object] | None = None
    """Called by the calling thread between pieces; what it raises ends the run."""
    failed = False
    """Whether a piece has raised, or Ctrl-C has come: long pieces look, and end early."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads: int = THREADS.read("threads", threads) or count_cores()
        self._helpers: ThreadPoolExecutor | None = None
        self._process = 0

    def run(self, function: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call `function` with every item, each on the next free thread, and wait for all of them.

        The calling thread works too: it need not be woken, which takes as long as a large piece. Where one
        call raises, items not begun by then are dropped.
        """
        pieces = list(items)
        left = iter(pieces)  # one for all threads
        self.failed = False

        def work(watch: Callable[[], object] | None = None) -> None:
            try:
                for item in left:
                    if self.failed:
                        return
                    if watch is not None:
                        watch()
                    function(item)
            except BaseException:
                self.failed = True
                raise

        futures: list[Future[None]] = []
        try:
            for _ in range(min(self.threads, len(pieces)) - 1):
                futures.append(self._find_helpers().submit(work))
            work(self.watch)
            wait(futures)
        except BaseException:  # Ctrl-C, also while it waits
            self.failed = True
            wait(futures)
            raise
        for future in futures:
            future.result()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the helpers out: threads belong to one process and one object."""
        return {**vars(self), "_helpers": None, "_process": 0}

    def close(self) -> None:
        """End the helpers."""
        if self._helpers is not None and self._process == os.getpid():
            self._helpers.shutdown()
        self._helpers = None

    def _find_helpers(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork.
        if self._helpers is None or self._process != os.getpid():
            self._helpers = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="acerl_np")
            self._process = os.getpid()
        return self._helpers
