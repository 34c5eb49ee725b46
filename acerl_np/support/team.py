"""Workers behind any executor: pure tasks out, results back as they finish, and what is lost done again.

A task is a function of a module and one argument; it is run again when its worker dies, so it must be
pure. Every result carries the fingerprint of what computed it, because an executor cannot say who its
workers are.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from acerl_np.support.errors import InputError, WorkerError, describe, make_printable
from acerl_np.support.fingerprint import describe_difference, own_fingerprint
from acerl_np.support.machine_code import compile_alone
from acerl_np.support.numbers import is_whole

Argument = TypeVar("Argument")
Value = TypeVar("Value")

TRIES = 4
"""Losses of a task, while no task finishes, after which it is given up."""

POLL = 0.2
"""Seconds between two looks at the clock while nothing finishes."""

RECOUNT = 5.0
"""Seconds between two counts of the workers."""


class Report(NamedTuple):
    """What a worker returns.

    Attributes
    ----------
    fingerprint : dict of str
    task : str
        Hash of the task as it arrived.
    test : str
        What the test gave, empty where there is none.
    value : object
    error : InputError or None
        An error that another worker would make as well.
    """

    fingerprint: dict[str, str]
    task: str
    test: str = ""
    value: Any = None
    error: InputError | None = None


def work(task: bytes, expected: dict[str, str]) -> Report:
    """Run a pickled function, argument and test, unless this process has other versions than `expected`."""
    own, name = own_fingerprint(), hashlib.sha256(task).hexdigest()
    # Another version may not even be able to read the task.
    if describe_difference(expected, own) is not None:
        return Report(own, name)
    function, argument, test = pickle.loads(task)
    result = run_test(test)
    try:
        return Report(own, name, result, function(argument))
    except InputError as error:
        return Report(own, name, result, None, error)


class _Call:
    """A call of `work` as a pickle that makes the call when it is loaded."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return work, self._arguments


_TESTS: dict[Callable[[], str], str] = {}


def run_test(test: Callable[[], str] | None) -> str:
    """Return what a test gives in this process, computed once; nothing without one."""
    if test is None:
        return ""
    if test not in _TESTS:
        with compile_alone():  # all workers of a machine begin at once
            _TESTS[test] = test()
    return _TESTS[test]


class Ledger:
    """Which tasks wait, which were given out, since when they run, and how often each was lost.

    Parameters
    ----------
    n_tasks : int
    """

    def __init__(self, n_tasks: int) -> None:
        self.n_tasks = n_tasks
        self.waiting = deque(range(n_tasks))
        self.names: dict[int, str] = {}
        self.running: dict[Future[Report], int] = {}
        self.since: dict[Future[Report], float] = {}
        self._losses = [0] * n_tasks

    def note_begun(self, n_workers: int) -> None:
        """Note which tasks have begun: of those given out, the oldest that are not done."""
        now = time.monotonic()
        for future in [future for future in self.running if not future.done()][:n_workers]:
            self.since.setdefault(future, now)

    def find_late(self, limit: float | None) -> list[Future[Report]]:
        """Return the tasks that began more than `limit` seconds ago."""
        now = time.monotonic()
        return [
            future
            for future, since in self.since.items()
            if limit is not None and now - since > limit and not future.done()
        ]

    def finish(self, future: Future[Report]) -> int:
        """Return which task is finished."""
        self.since.pop(future, None)
        # Where tasks finish, the others were unlucky: workers die, but none of one task.
        self._losses = [0] * self.n_tasks
        return self.running.pop(future)

    def lose(self, futures: Iterable[Future[Report]], reason: str) -> None:
        """Take back tasks whose workers are lost.

        Raises
        ------
        WorkerError
            If some were lost too often.
        """
        lost = list(futures)
        begun = [future for future in lost if future in self.since] or lost[:1]
        given_up = []
        for future in lost:
            k = self.running.pop(future)
            self.since.pop(future, None)
            self.waiting.append(k)
            self._losses[k] += future in begun
            if self._losses[k] == TRIES:
                given_up.append(str(k + 1))
        if given_up:
            which = f"task {given_up[0]} of {self.n_tasks} was"
            if len(given_up) > 1:
                which = f"tasks {', '.join(given_up)} of {self.n_tasks} were"
            raise WorkerError(f"{which} lost {TRIES} times, the last time: {reason}")


class Team:
    """The workers of an executor that belongs to the caller: Dask, MPI, or any pool.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    n_workers : int, optional
        How many there are; by default what the executor says, now and then, else 8.
    time_limit : float, optional
        s; a task that takes longer is given out again, and given up after `TRIES` losses. By default one
        waits for ever.
    patience : float, optional
        s to wait while a Dask scheduler has no worker. By default one waits for ever.

    Attributes
    ----------
    watch : callable, optional
        Called now and then while a run waits; what it raises ends the run.
    """

    watch: Callable[[], object] | None = None

    def __init__(
        self,
        executor: Executor | None,
        *,
        n_workers: int | None = None,
        time_limit: float | None = None,
        patience: float | None = None,
    ) -> None:
        self._executor = executor
        self._n_workers = n_workers
        self.time_limit = time_limit
        self.patience = patience
        self._client = _find_client(executor)
        scheduler = getattr(self._client, "scheduler", None)  # later there may be none
        self._address = make_printable(str(getattr(scheduler, "address", "Dask")))
        self._deserted: float | None = None

    @property
    def n_workers(self) -> int:
        """How many workers there are now, at least one."""
        return max(1, self._n_workers or count_workers(self._executor))

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
        InputError
            That the function raised.
        """
        ledger = Ledger(len(arguments))
        n_workers, counted = 0, 0.0
        try:
            while ledger.waiting or ledger.running:
                self._look()
                if not n_workers or time.monotonic() - counted > RECOUNT:
                    n_workers, counted = self._count(), time.monotonic()
                # One ahead for each worker, so that none waits for this process.
                while ledger.waiting and len(ledger.running) < 2 * n_workers:
                    argument = arguments[ledger.waiting[0]]
                    if not self._give_out((function, argument, test), ledger):
                        break
                ledger.note_begun(n_workers)
                done, _ = wait(ledger.running, timeout=POLL, return_when=FIRST_COMPLETED)
                # What is well first: the loss of one worker may take all others down.
                for future in sorted(done, key=_is_lost):
                    if future not in ledger.running:
                        continue  # taken back with another
                    if _is_lost(future):
                        self._recover(_find_reason(future), future, ledger)
                        continue
                    report = future.result()
                    k = ledger.finish(future)
                    yield k, _open(report, ledger.names.pop(k), test)
                late = ledger.find_late(self.time_limit)
                if late:
                    self._drop(late, f"it took longer than {self.time_limit:g} s", ledger)
        finally:
            self._forget(ledger.running)

    def _look(self) -> None:
        """Raise what ends the run."""
        if self.watch is not None:
            self.watch()
        if self._client is None:
            return
        # The client gives up by itself after a while.
        while self._client.status == "connecting":
            time.sleep(POLL)
            if self.watch is not None:
                self.watch()
        if self._client.status != "running":
            raise WorkerError(f"{self._address}: the scheduler has gone")

    def _count(self) -> int:
        """Return the number of workers.

        Raises
        ------
        WorkerError
            If there has been none for too long.
        """
        now, n_workers = time.monotonic(), self._n_workers or count_workers(self._executor)
        self._deserted = None if n_workers else self._deserted or now
        if self._deserted and self.patience is not None and now - self._deserted > self.patience:
            raise WorkerError(
                f"{self._address}: the scheduler has no worker; expected at least one"
            )
        return max(1, n_workers)

    def _give_out(self, content: tuple[Any, ...], ledger: Ledger) -> bool:
        """Give the next task out; False if it has to wait."""
        executor = self._find_executor()
        try:
            task = pickle.dumps(content)
            # Loaded within the task: where this fails it is the task's error, which engines pass on. What
            # they fail to load themselves ends their workers.
            call = pickle.dumps(_Call(task, own_fingerprint()))
            future: Future[Report] = executor.submit(pickle.loads, call)
        except BrokenProcessPool as error:
            self._recover(error, None, ledger)
            return False
        except Exception as error:
            # Whatever an engine says: it has many kinds.
            raise WorkerError(f"the executor takes no tasks: {_shorten(error)}") from error
        k = ledger.running[future] = ledger.waiting.popleft()
        ledger.names[k] = hashlib.sha256(task).hexdigest()
        return True

    def _find_executor(self) -> Executor:
        if self._executor is None:
            raise WorkerError("the workers are gone; expected an executor that is open")
        return self._executor

    def _recover(
        self, reason: BaseException, future: Future[Report] | None, ledger: Ledger
    ) -> None:
        """Go on after a lost task; the executor mends itself, or is gone."""
        if isinstance(reason, BrokenProcessPool) or future is None:
            raise WorkerError(f"the executor has lost its workers: {_shorten(reason)}") from reason
        self._look()  # a scheduler that has gone is no loss of a task
        ledger.lose([future], _shorten(reason))

    def _drop(self, late: list[Future[Report]], reason: str, ledger: Ledger) -> None:
        """Give out again what takes too long."""
        self._forget(late)
        ledger.lose(late, reason)

    def _forget(self, futures: Iterable[Future[Report]]) -> None:
        """Wait for results no more."""
        # Those of a client that has lost its scheduler cannot be cancelled.
        if self._client is None or self._client.status == "running":
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Let go of the executor; one of the caller's stays open."""
        self._executor = self._client = None


def _is_lost(future: Future[Report]) -> bool:
    return future.cancelled() or future.exception() is not None


def _find_reason(future: Future[Report]) -> BaseException:
    if future.cancelled():
        return RuntimeError("the executor has cancelled it")
    return future.exception() or RuntimeError("unknown")


def _open(report: object, task: str, test: Callable[[], str] | None) -> Any:
    """Return what a worker's task returned, or raise what it raised."""
    if not isinstance(report, Report):
        raise WorkerError(f"a worker returned {describe(report)}; expected a report")
    difference = describe_difference(own_fingerprint(), report.fingerprint)
    if difference is not None:
        raise WorkerError(difference)
    where = f"a worker on {describe(report.fingerprint.get('host'))}"
    if report.task != task:
        raise WorkerError(f"{where} received another task than it was sent")
    own = run_test(test)
    if report.test != own:
        raise WorkerError(
            f"{where} has another result of the test member: read {describe(report.test)}; expected {own}"
        )
    if report.error is not None:
        raise report.error
    return report.value


def _shorten(error: BaseException) -> str:
    return " ".join(make_printable(f"{type(error).__name__}: {error}"[:300]).split())


@contextlib.contextmanager
def lead(executor: Executor | Team | None, n_threads: int) -> Iterator[Team]:
    """Return the team of an executor, until the end of the block; without one, threads of this process."""
    if executor is not None:
        yield find_team(executor)
        return
    with ThreadPoolExecutor(n_threads, thread_name_prefix="acerl_np") as threads:
        yield Team(threads)


def find_team(executor: Executor | Team) -> Team:
    """Return the team of an executor."""
    return executor if isinstance(executor, Team) else Team(executor)


def _find_client(executor: Executor | None) -> Any:
    """Return the client of a Dask executor, None of others."""
    client = getattr(executor, "_client", None)
    return client if hasattr(client, "nthreads") else None


def count_workers(executor: Executor | None) -> int:
    """Return how many workers an executor has, 8 if it does not say; a thread of Dask's is a worker."""
    for name in ("num_workers", "_max_workers"):
        number = getattr(executor, name, None)
        if is_whole(number) and number > 0:  # type: ignore[operator]
            return int(number)  # type: ignore[arg-type]
    client = _find_client(executor)
    if client is not None:
        with contextlib.suppress(Exception):  # what is gone says so when it is asked to work
            return int(sum(client.nthreads().values()))
    return 8
