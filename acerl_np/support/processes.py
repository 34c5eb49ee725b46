"""Worker processes of our own on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process, resource_tracker
from typing import Any

from acerl_np.support.errors import ConfigError, describe
from acerl_np.support.numbers import is_whole
from acerl_np.support.team import Ledger, Report, Team

MAX_PROCESSES = 1024

LEAVE = 5.0
"""Seconds to wait for processes that were killed."""


class ProcessTeam(Team):
    """Worker processes of our own, started anew when one of them dies or hangs.

    They are spawned, so a script that makes them must be importable: its work stands below
    `if __name__ == "__main__":`. They end with this process, however that ends.

    Parameters
    ----------
    n_processes : int
    time_limit : float, optional
        s; workers are killed when one takes longer for a task. By default one waits for ever.

    Raises
    ------
    ConfigError
        If the number is not from 1 to `MAX_PROCESSES`.
    """

    _executor: ProcessPoolExecutor | None

    def __init__(self, n_processes: int, *, time_limit: float | None = None) -> None:
        if not is_whole(n_processes) or not 1 <= n_processes <= MAX_PROCESSES:
            raise ConfigError(
                f"processes: read {describe(n_processes)}; expected a whole number from 1 to "
                f"{MAX_PROCESSES}"
            )
        super().__init__(None, n_workers=int(n_processes), time_limit=time_limit)

    @property
    def pids(self) -> set[int]:
        """Ids of the worker processes, none before the first task."""
        executor = self._executor
        return set(executor._processes or ()) if executor is not None else set()

    def _find_executor(self) -> Executor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(self.n_workers, get_context("spawn"), _begin)
        return self._executor

    def _give_out(self, content: tuple[object, ...], ledger: Ledger) -> bool:
        if len(self.pids) == self.n_workers:
            return super()._give_out(content, ledger)
        with _hold_signals():  # each of the first tasks starts a process
            return super()._give_out(content, ledger)

    def _recover(
        self, reason: BaseException, future: Future[Report] | None, ledger: Ledger
    ) -> None:
        if isinstance(reason, BrokenProcessPool):
            # One that is killed takes all down; what they were at is done again.
            self._start_anew(f"a worker process that ended ({type(reason).__name__})", ledger)
        else:
            super()._recover(reason, future, ledger)

    def _drop(self, late: list[Future[Report]], reason: str, ledger: Ledger) -> None:
        # Those beside a late one are not to blame.
        for future in set(ledger.since) - set(late):
            del ledger.since[future]
        self._start_anew(reason, ledger)

    def _start_anew(self, reason: str, ledger: Ledger) -> None:
        # A result that has come is not lost with its worker.
        lost = [x for x in ledger.running if not x.done() or x.cancelled() or x.exception()]
        self.close()
        ledger.lose(lost, reason)

    def _forget(self, futures: Iterable[Future[Report]]) -> None:
        if any(not future.done() for future in futures):
            self.close()  # what runs in a process can be ended only with it

    def close(self) -> None:
        """End the worker processes at once."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        keeper: Any = executor._executor_manager_thread
        for process in list((executor._processes or {}).values()):
            process.kill()
        executor.shutdown(wait=False, cancel_futures=True)
        # It waits for the processes; the exit of this one must not meet it at work.
        if keeper is not None:
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
    blocks = hasattr(signal, "pthread_sigmask")
    if blocks:
        resource_tracker.ensure_running()  # its start would let them through again
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for held_number in held[:1]:
            signal.raise_signal(held_number)


def _begin() -> None:
    """Begin a worker process: it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
