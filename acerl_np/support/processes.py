"""Worker processes of our own on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process, resource_tracker
from typing import Any

from acerl_np.support.fields import Field
from acerl_np.support.team import Argument, LostError, Team, Value

PROCESSES = Field(int, 1, 1024)

TRIES = 4
"""Times that the processes are lost, while no task finishes, until the work ends."""

LEAVE = 5.0
"""Seconds to wait for processes that were killed."""


class ProcessTeam(Team):
    """Worker processes of our own, all started anew when one of them dies, or all hang for `time_limit` s.

    They are spawned, so a script that makes them must be importable: its work stands below
    `if __name__ == "__main__":`. They end with this process, however that ends.
    """

    _executor: ProcessPoolExecutor | None

    def __init__(self, n_processes: int, *, time_limit: float | None = None) -> None:
        super().__init__(None, time_limit=time_limit)
        self._n_processes: int = PROCESSES.read("processes", n_processes)

    @property
    def n_workers(self) -> int:
        """How many processes there are while tasks run."""
        return self._n_processes

    @property
    def pids(self) -> set[int]:
        """Ids of the worker processes, none before the first task."""
        return set((self._executor and self._executor._processes) or ())

    def run(
        self, function: Callable[[Argument], Value], arguments: Sequence[Argument]
    ) -> Iterator[tuple[int, Value]]:
        """Run a task per argument as `Team`; what lost processes were at is done again."""
        missing, losses = dict(enumerate(arguments)), 0
        while missing:
            try:
                for k, value in self._run(function, deque(missing.items())):
                    del missing[k]
                    losses = 0
                    yield k, value
            except LostError:
                self.close()
                losses += 1
                if losses == TRIES:
                    raise

    def _find_executor(self) -> Executor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(self.n_workers, get_context("spawn"), _begin)
        return self._executor

    def _submit(self, function: Callable[[Any], Any], argument: Any) -> Future[Any]:
        with _hold_signals():  # each of the first tasks starts a process
            return super()._submit(function, argument)

    def _check_workers(self) -> None:
        # The executor waits for ever for the rest of an answer within which a process was killed.
        processes = list(((self._executor and self._executor._processes) or {}).values())
        if connection.wait([process.sentinel for process in processes], 0):
            raise LostError("a worker process has ended")

    def _forget(self, given: dict[Future[Any], int]) -> None:
        if any(not future.done() for future in given):
            self.close()  # what runs in a process can be ended only with it

    def close(self) -> None:
        """End the worker processes at once."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        keeper: Any = executor._executor_manager_thread
        own: Any = executor
        calls, answers = own._call_queue, own._result_queue
        for process in list((executor._processes or {}).values()):
            process.kill()
        executor.shutdown(wait=False, cancel_futures=True)
        answers._writer.close()  # the rest of an answer is waited for no more
        # It waits for the processes; the exit of this one must not meet it at work.
        if keeper is not None:
            keeper.join(LEAVE)
            if keeper.is_alive():
                # A large task waits for ever for a reader of its pipe (gh-94777, first Pythons 3.11).
                calls._reader.close()
                keeper.join(LEAVE)


@contextlib.contextmanager
def _hold_signals() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM until the end of the block; processes started in it hold Ctrl-C for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    if sys.platform != "win32":
        resource_tracker.ensure_running()  # its start would let them through again
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def _begin() -> None:
    """Begin a worker process: it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
