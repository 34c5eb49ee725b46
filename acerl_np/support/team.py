"""Workers behind any executor: pure tasks out, results back as they finish, and what is lost done again.

A task is a function of a module and one argument; it is run again when its worker dies, so it must be
pure. Every result carries the fingerprint of what computed it, because an executor cannot say who its
workers are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeVar

from acerl_np.support.errors import AcerlError, ConfigError, WorkerError, describe, make_printable
from acerl_np.support.fingerprint import Fingerprint, describe_difference, own_fingerprint
from acerl_np.support.machine_code import compile_alone
from acerl_np.support.numbers import is_whole

Argument = TypeVar("Argument")
Value = TypeVar("Value")

TRIES = 4
"""Losses of a task after which it is given up."""

MAX_PROCESSES = 1024

SILENCE = 3600.0
"""Seconds after which the commands give out a task again of which nothing is heard."""

POLL = 0.2
"""Seconds between two looks at the clock while nothing finishes."""


class Report(NamedTuple):
    """What a worker returns.

    Attributes
    ----------
    fingerprint : Fingerprint
    value : object
    error : AcerlError or None
        An error that another worker would make as well.
    """

    fingerprint: Fingerprint
    value: Any
    error: AcerlError | None = None


def work(
    function: Callable[[Any], Any], argument: Any, test: Callable[[], str] | None = None
) -> Report:
    """Run a task where the worker is; `test` computes something that all workers must agree on."""
    own = find_fingerprint(test)
    try:
        return Report(own, function(argument))
    except AcerlError as error:
        return Report(own, None, error)


def find_fingerprint(test: Callable[[], str] | None) -> Fingerprint:
    """Return that of this process, with the result of a test."""
    own = own_fingerprint()
    if test is None:
        return own
    with compile_alone():  # all workers of a machine begin at once
        return own._replace(test=test())


class Ledger:
    """Which tasks wait, which were given out and when, and how often each was lost.

    Parameters
    ----------
    n_tasks : int
    n_workers : int
        Of the tasks given out, so many have begun: the oldest.
    """

    def __init__(self, n_tasks: int, n_workers: int) -> None:
        self.n_tasks, self.n_workers = n_tasks, n_workers
        self.waiting = deque(range(n_tasks))
        self.running: dict[Future[Report], tuple[int, float]] = {}
        self._losses = [0] * n_tasks

    def lose(self, futures: Iterable[Future[Report]]) -> None:
        """Take back tasks whose workers are lost.

        Raises
        ------
        WorkerError
            If one was lost too often.
        """
        begun = sorted(self.running.values(), key=lambda item: item[1])[: self.n_workers]
        for future in list(futures):
            k, since = self.running.pop(future)
            future.cancel()
            self.waiting.append(k)
            self._losses[k] += (k, since) in begun
            if self._losses[k] == TRIES:
                raise WorkerError(
                    f"task {k + 1} of {self.n_tasks} was lost {TRIES} times; expected workers that stay"
                )

    def find_late(self, limit: float | None) -> list[Future[Report]]:
        """Return the tasks that began more than `limit` seconds ago."""
        now = time.monotonic()
        oldest = sorted(self.running.items(), key=lambda item: item[1][1])[: self.n_workers]
        return [future for future, (_, since) in oldest if limit and now - since > limit]


class Team:
    """The workers of an executor that belongs to the caller: Dask, MPI, or any pool.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    n_workers : int, optional
        How many there are; by default what the executor says, else 8.
    time_limit : float, optional
        s; a task of which nothing is heard for so long is given out again, and given up after `TRIES`
        losses. By default one waits for ever.
    """

    def __init__(
        self,
        executor: Executor | None,
        *,
        n_workers: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._executor = executor
        self.n_workers = n_workers or count_workers(executor)
        self.time_limit = time_limit

    def run(
        self,
        function: Callable[[Argument], Value],
        arguments: Sequence[Argument],
        *,
        test: Callable[[], str] | None = None,
    ) -> Iterator[tuple[int, Value]]:
        """Run a task per argument, and return results as they finish.

        Parameters
        ----------
        function : callable
            Of a module, so that workers find it by its name.
        arguments : sequence
        test : callable, optional
            Of a module: computes a text, once in each process, that must be the same everywhere.

        Yields
        ------
        int, object
            Position of the argument, and what the function returned.

        Raises
        ------
        WorkerError
            If a task was lost too often, or a worker has another version of anything.
        AcerlError
            That the function raised.
        """
        ledger = Ledger(len(arguments), self.n_workers)
        try:
            while ledger.waiting or ledger.running:
                self._give_out(function, arguments, test, ledger)
                done, _ = wait(ledger.running, timeout=POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    if future not in ledger.running:
                        continue  # taken back with another
                    try:
                        report = future.result()
                    except (Exception, CancelledError) as error:
                        self._recover(error, future, ledger)
                        continue
                    k, _ = ledger.running.pop(future)
                    yield k, _open(report, test)
                late = ledger.find_late(self.time_limit)
                if late:
                    self._drop(late, ledger)
        finally:
            for future in ledger.running:
                future.cancel()

    def _give_out(
        self,
        function: Callable[[Any], Any],
        arguments: Sequence[Any],
        test: Callable[[], str] | None,
        ledger: Ledger,
    ) -> None:
        # One ahead for each worker, so that none waits for this process.
        while ledger.waiting and len(ledger.running) < 2 * self.n_workers:
            k = ledger.waiting[0]
            try:
                future = self._find_executor().submit(work, function, arguments[k], test)
            except BrokenProcessPool as error:
                self._recover(error, None, ledger)
                continue
            except RuntimeError as error:
                raise WorkerError(f"the executor takes no tasks: {_shorten(error)}") from error
            ledger.waiting.popleft()
            ledger.running[future] = (k, time.monotonic())

    def _find_executor(self) -> Executor:
        if self._executor is None:
            raise WorkerError("the workers are gone; expected an executor that is open")
        return self._executor

    def _recover(self, error: BaseException, future: Future[Report] | None, ledger: Ledger) -> None:
        """Go on after a lost task; the executor mends itself, or is gone."""
        if isinstance(error, BrokenProcessPool) or future is None:
            raise WorkerError(f"the executor has lost its workers: {_shorten(error)}") from error
        ledger.lose([future])

    def _drop(self, late: list[Future[Report]], ledger: Ledger) -> None:
        """Give out again what has not been heard of for too long."""
        ledger.lose(late)

    def stop(self) -> None:
        """Wait for no result any more."""

    def close(self) -> None:
        """Let go of the executor; one of the caller's stays open."""
        self._executor = None


class ThreadTeam(Team):
    """Threads of this process, for tasks that spend their time in kernels.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int) -> None:
        super().__init__(None, n_workers=n_threads)

    def _find_executor(self) -> Executor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.n_workers, thread_name_prefix="acerl_np")
        return self._executor

    def close(self) -> None:
        """End the threads."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)


class ProcessTeam(Team):
    """Worker processes of our own, started anew when one of them dies or hangs.

    They are spawned, so a script that makes them must be importable: its work stands below
    `if __name__ == "__main__":`.

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

    def __init__(self, n_processes: int, *, time_limit: float | None = None) -> None:
        if not is_whole(n_processes) or not 1 <= n_processes <= MAX_PROCESSES:
            raise ConfigError(
                f"processes: read {describe(n_processes)}; expected a whole number from 1 to "
                f"{MAX_PROCESSES}"
            )
        super().__init__(None, n_workers=int(n_processes), time_limit=time_limit)
        self._context = get_context("spawn")
        self._pids: Any = None
        self._known: set[int] = set()

    @property
    def pids(self) -> set[int]:
        """Ids of the worker processes that have begun."""
        while self._pids is not None and not self._pids.empty():
            self._known.add(self._pids.get())
        return set(self._known)

    def _find_executor(self) -> Executor:
        if self._executor is None:
            self._known.clear()
            self._pids = self._context.SimpleQueue()
            self._executor = ProcessPoolExecutor(
                self.n_workers, self._context, _begin, (self._pids,)
            )
        return self._executor

    def _recover(self, error: BaseException, future: Future[Report] | None, ledger: Ledger) -> None:
        if isinstance(error, BrokenProcessPool | CancelledError):
            # One that is killed takes all down; what they were at is done again.
            self._kill()
            ledger.lose(ledger.running)
        else:
            super()._recover(error, future, ledger)

    def _drop(self, late: list[Future[Report]], ledger: Ledger) -> None:
        self._kill()
        ledger.lose(ledger.running)

    def stop(self) -> None:
        """End all worker processes at once."""
        self._kill()

    def _kill(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            for pid in self.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            executor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the worker processes."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)


def _open(report: object, test: Callable[[], str] | None) -> Any:
    """Return what a worker's task returned, or raise what it raised."""
    if not isinstance(report, Report):
        raise WorkerError(f"a worker returned {describe(report)}; expected a report")
    difference = describe_difference(find_fingerprint(test), report.fingerprint)
    if difference is not None:
        raise WorkerError(difference)
    if report.error is not None:
        raise report.error
    return report.value


def _shorten(error: BaseException) -> str:
    return make_printable(f"{type(error).__name__}: {error}"[:300])


@contextlib.contextmanager
def lead(executor: Executor | Team | None, n_threads: int) -> Iterator[Team]:
    """Return the team of an executor, until the end of the block; without one, threads of this process.

    Workers that were made for the block end with it.
    """
    team = executor if isinstance(executor, Team) else Team(executor) if executor else None
    own = team or ThreadTeam(n_threads)
    try:
        yield own
    finally:
        if team is None:
            own.close()


def _begin(pids: Any) -> None:
    """Begin a worker process: it says who it is, and leaves Ctrl-C to its parent."""
    pids.put(os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def count_workers(executor: Executor | None) -> int:
    """Return how many workers an executor has, 8 if it does not say."""
    for name in ("num_workers", "_max_workers"):
        number = getattr(executor, name, None)
        if is_whole(number) and number > 0:  # type: ignore[operator]
            return int(number)  # type: ignore[arg-type]
    client = getattr(executor, "_client", None)
    if client is not None:
        with contextlib.suppress(
            Exception
        ):  # a scheduler that is gone says so when it is asked to work
            return max(1, len(client.nthreads()))
    return 8
