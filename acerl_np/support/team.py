"""Workers behind any executor: pure tasks out, results back as they finish.

A task is a function of a module and one argument. A worker with other versions refuses it. What fails ends
the work with one line.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import platform
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import llvmlite
import numba
import numpy as np
import scipy

from acerl_np.support.errors import AcerlError, WorkerError, describe, make_printable
from acerl_np.support.fields import is_whole
from acerl_np.support.trust import trusting

Argument = TypeVar("Argument")
Value = TypeVar("Value")

POLL = 0.2
"""Seconds between two looks at the clock while nothing finishes."""

PENDING = 256
"""Tasks given out at a time at least: the executor deals them to its workers, later ones among them."""


def list_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {module.__name__: module.__version__ for module in (np, scipy, numba, llvmlite)}


@cache
def find_versions() -> dict[str, str]:
    """Return what decides a result besides its task: versions, and the hash of the package's code."""
    package = Path(__file__).parent.parent
    code = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code.update(f"{path.relative_to(package).as_posix()}\0".encode())
        code.update(path.read_bytes() + b"\0")
    other = {"other code of acerl_np": code.hexdigest()[:12]}
    return {"python": platform.python_version(), **list_versions(), **other}


def work(task: bytes, expected: dict[str, str]) -> Any:
    """Call a pickled function with its argument, unless this process has other versions than `expected`."""
    own = find_versions()
    # Another version may not even be able to read the task.
    for name, version in expected.items():
        if own.get(name) != version:
            raise WorkerError(
                f"a worker on {describe(platform.node() or 'this machine')} has {name}: "
                f"read {own.get(name)}; expected {version}"
            )
    with trusting(True):  # what is sent is code in any case
        function, argument = pickle.loads(task)
        return function(argument)


class _Call:
    """A call of `work` as a pickle that makes the call when it is loaded."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return work, self._arguments


class LostError(WorkerError):
    """Workers have ended, or nothing is heard of them: others could do what they were at."""


class Team:
    """The workers of an executor that belongs to the caller: Dask, MPI, or any pool.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    time_limit : float, optional
        s in which at least one task must finish; by default one waits for ever.
    """

    watch: Callable[[], object] | None = None
    """Called now and then while a run waits; what it raises ends the run."""

    def __init__(
        self, executor: futures.Executor | None, *, time_limit: float | None = None
    ) -> None:
        self._executor = executor
        self.time_limit = time_limit
        # A client that has lost its scheduler does not know the address any more.
        self._address = getattr(getattr(self._client, "scheduler", None), "address", "Dask")

    @property
    def _client(self) -> Any:
        """The client of a Dask executor, None of others."""
        client = getattr(self._executor, "_client", None)
        return client if hasattr(client, "nthreads") else None

    @property
    def n_workers(self) -> int:
        """How many workers there are now, 8 if the executor does not say; a thread of Dask's is one."""
        for name in ("num_workers", "_max_workers"):
            number: Any = getattr(self._executor, name, None)
            if is_whole(number) and number > 0:
                return int(number)
        with contextlib.suppress(Exception):  # what is gone says so when it is asked to work
            return max(1, int(sum(self._client.nthreads().values())))
        return 8

    def run(
        self, function: Callable[[Argument], Value], arguments: Sequence[Argument]
    ) -> Iterator[tuple[int, Value]]:
        """Run a task per argument; yield each argument's position and result, as they finish.

        A `WorkerError` says that a worker is lost, has another version of anything, or fails; an `AcerlError`
        of the function is raised.

        Parameters
        ----------
        function : callable
            Of a module, so that workers find it by its name.
        arguments : sequence
        """
        return self._run(function, deque(enumerate(arguments)))

    def _run(
        self, function: Callable[[Any], Any], left: deque[tuple[int, Any]]
    ) -> Iterator[tuple[int, Any]]:
        given: dict[futures.Future[Any], int] = {}
        heard, most = time.monotonic(), max(PENDING, 2 * self.n_workers)
        try:
            while left or given:
                while left and len(given) < most:
                    k, argument = left.popleft()
                    given[self._submit(function, argument)] = k
                if self.watch is not None:
                    self.watch()
                if self._client is not None and self._client.status in ("closing", "closed"):
                    self._fail(futures.CancelledError(), "the executor")
                done, _ = futures.wait(given, timeout=POLL, return_when=futures.FIRST_COMPLETED)
                if not done:
                    self._check_workers()
                # What is well first: the loss of one worker may take all others down.
                errors = {future: _find_error(future) for future in done}
                for future, error in sorted(errors.items(), key=lambda item: item[1] is not None):
                    k = given.pop(future)
                    if error is not None:
                        self._fail(error, "a task has failed")
                    yield k, future.result()
                    heard = time.monotonic()
                if self.time_limit is not None and time.monotonic() - heard > self.time_limit:
                    raise LostError(f"no task has finished for {self.time_limit:g} s")
        finally:
            self._forget(given)

    def _submit(self, function: Callable[[Any], Any], argument: Any) -> futures.Future[Any]:
        try:
            call = _Call(pickle.dumps((function, argument)), find_versions())
            # Loaded within the task: where `work` is missing it is the task that fails. What engines fail to
            # load themselves ends their workers.
            return self._find_executor().submit(pickle.loads, pickle.dumps(call))
        except Exception as error:
            self._fail(error, "the executor takes no tasks")

    def _check_workers(self) -> None:
        """Raise if no result can come any more, though the executor has not seen that."""

    def _find_executor(self) -> futures.Executor:
        if self._executor is None:
            raise WorkerError("the workers are gone; expected an executor that is open")
        return self._executor

    def _fail(self, error: BaseException, what: str) -> NoReturn:
        """Raise what happened on one line, whatever an engine says: it has many kinds."""
        if isinstance(error, AcerlError):
            raise error
        told = " ".join(make_printable(f"{type(error).__name__}: {error}"[:300]).split())
        if isinstance(error, futures.BrokenExecutor):
            raise LostError(f"the executor has lost its workers: {told}") from error
        client = self._client
        if client is not None and (
            isinstance(error, futures.CancelledError) or client.status == "closed"
        ):
            raise WorkerError(
                f"{make_printable(str(self._address))}: the scheduler has gone"
            ) from error
        raise WorkerError(f"{what}: {told}") from error

    def _forget(self, given: dict[futures.Future[Any], int]) -> None:
        """Wait for results no more."""
        # Those of a client that has lost its scheduler cannot be cancelled.
        if self._client is None or self._client.status == "running":
            for future in given:
                future.cancel()

    def close(self) -> None:
        """Let go of the executor; one of the caller's stays open."""
        self._executor = None


def _find_error(future: futures.Future[Any]) -> BaseException | None:
    return futures.CancelledError() if future.cancelled() else future.exception()


@contextlib.contextmanager
def lead(executor: futures.Executor | Team | None, n_threads: int) -> Iterator[Team]:
    """Return the team of an executor, until the end of the block; without one, threads of this process."""
    if executor is not None:
        yield find_team(executor)
    else:
        with futures.ThreadPoolExecutor(n_threads, thread_name_prefix="acerl_np") as threads:
            yield Team(threads)


def find_team(executor: futures.Executor | Team) -> Team:
    """Return the team of an executor."""
    return executor if isinstance(executor, Team) else Team(executor)
