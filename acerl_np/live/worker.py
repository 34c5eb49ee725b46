"""The one thread that uses a service: doors hand it messages and get what comes of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Self

from acerl_np.live.clock import Asker
from acerl_np.live.dispatcher import Dispatcher
from acerl_np.live.service import MOST_FAILURES, Service, read_policy
from acerl_np.live.wire import Message, format_line, read_message
from acerl_np.policies.files import BasePolicy
from acerl_np.support.errors import AcerlError, EventError, PolicyError, StorageError, WorkerError

MOST_WAITING = 64
"""Pieces of work that wait at most."""

PIECE = 100_000
"""Bytes of answers after which others have their turn."""

TURN = 0.02
"""Seconds after which others have their turn."""

REST = 1.0
"""Seconds after which a service sees whether state or log are due, though nothing happens."""

PATIENCE = 10.0
"""Seconds within which a thread has to end."""

ENDED = "the service has ended"
LATER = object()
"""In place of a result that comes later."""


class BusyError(Exception):
    """So much waits for the worker that no more can be taken now."""


class Piece(NamedTuple):
    """What has come of the first messages of several.

    Attributes
    ----------
    n_taken : int
        Messages that were answered.
    text : str
        Lines of answers, JSON.
    error : StorageError or None
        Why the log cannot be written; the message after has no answer.
    """

    n_taken: int
    text: str
    error: StorageError | None = None


class Worker:
    """A thread that answers messages in their turn, asks by the clock, and sees to log and state.

    Parameters
    ----------
    service : Service
        Used by this thread alone from `start` to `stop`.
    wall : bool
        Whether times are seconds since 1970: then it asks itself.
    clock : Callable
        Returns these.

    Attributes
    ----------
    publish : Callable
        Takes messages that were answered or asked for and their lines, in this thread and in order.
    on_end : Callable
        Called as the thread ends.
    error : BaseException or None
        What ended it.
    """

    def __init__(
        self, service: Service, *, wall: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.service, self.wall, self.clock = service, wall, clock
        self.publish: Callable[[list[Message], str], object] = lambda messages, text: None
        self.on_end: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        self._asker = Asker() if wall and not service.shadow else None
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._change = threading.Condition()
        self._is_ending = self._has_ended = self._is_checking = False
        self._future = Future[Any]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, once what waits is done; a WorkerError if that takes too long."""
        with self._change:
            self._is_ending = True
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)
            if self._thread.is_alive():
                raise WorkerError(f"no end within {PATIENCE:g} s, as where nobody reads answers")

    def submit(self, work: Callable[[], Any], *, at_once: bool = False) -> Future[Any]:
        """Let the thread do something, in its turn or before all else; return its future.

        Raises
        ------
        BusyError
            If too much waits; what is to be done at once never does.
        WorkerError
            If the thread has ended.
        """
        with self._change:
            if self._is_ending:
                raise WorkerError(ENDED)
            if len(self._waiting) >= MOST_WAITING and not at_once:
                raise BusyError
            future = Future[Any]()
            (self._waiting.appendleft if at_once else self._waiting.append)((work, future))
            self._change.notify()
        return future

    def answer(self, lines: Sequence[str]) -> Future[Piece]:
        """Let some of the messages be answered, at least one; see `submit`."""
        return self.submit(lambda: self._answer(lines))

    def _run(self) -> None:
        try:
            if self._asker is not None:
                own = self.service.dispatcher
                self._asker.note(self.clock(), opens=own.is_open, due=own.next_time)
            while self._step():
                pass
        except BaseException as error:
            self.error = error
        finally:
            with self._change:
                self._is_ending = self._has_ended = True
            for _, future in self._waiting:
                if future.running() or future.set_running_or_notify_cancel():
                    future.set_exception(WorkerError(ENDED))
            self.on_end()

    def _step(self) -> bool:
        """Do what is due, or the next piece of work; return whether to go on."""
        now = self.clock()
        self.service.tend(now)
        if self._asker is not None and self._asker.is_due(now):
            self._ask(self._asker, now)
            return True
        with self._change:
            if not self._waiting:
                if self._is_ending:
                    return False
                due = None if self._asker is None else self._asker.next(now)
                self._change.wait(REST if due is None else min(REST, max(0.0, due - now)))
                return True
            work, future = self._waiting.popleft()
        if future.running() or future.set_running_or_notify_cancel():
            self._future = future
            try:
                result = work()
                if result is not LATER:
                    future.set_result(result)
            except BrokenPipeError:
                raise
            except Exception as error:  # whose future it is has to see to it
                future.set_exception(error)
        return True

    def _ask(self, asker: Asker, now: float) -> None:
        """Ask; a service whose questions fail in a row ends, as its silence would look like rest."""
        try:
            found = list(self.service.ask(now))
        except StorageError:
            asker.note_failure(now)
            return
        if self.service.in_a_row >= MOST_FAILURES:
            raise WorkerError(f"{MOST_FAILURES} questions in a row have failed; the service ends")
        if self.service.in_a_row:
            asker.note_failure(now)
        else:
            is_refused = any(x["kind"] == "Refused" for x in found)
            asker.note_question(now, None if is_refused else self.service.dispatcher.next_time)
        self.publish(found, "".join(map(format_line, found)))

    def _answer(
        self, lines: Sequence[str], policy: BasePolicy | str | AcerlError | None = None
    ) -> Any:
        """Answer messages until others have their turn; a policy is checked beside first."""
        told, texts, size, error = list[Message](), list[str](), 0, None
        n, began = 0, self.clock()
        for line in lines:
            if policy is None and (message := find_policy(line)) is not None:
                if n:
                    break
                return self._check(line, message)
            try:
                for answer in self.service.answer(line, self.clock(), policy):
                    told.append(answer)
                    texts.append(format_line(answer))
                    size += len(texts[-1])
            except StorageError as failure:
                error = failure
            own, now, policy = self.service.dispatcher, self.clock(), None
            if self._asker is not None:
                self._asker.note(now, opens=own.is_open, due=own.next_time)
            if error is not None:
                break
            n += 1
            is_due = self._asker is not None and self._asker.is_due(now)
            if size >= PIECE or is_due or not 0.0 <= now - began < TURN:
                break
        text = "".join(texts)
        self.publish(told, text)
        return Piece(n, text, error)

    def _check(self, line: str, message: Message) -> Any:
        """Let another thread read a policy and compile what it needs; then the message is answered."""
        if self._is_checking:
            return self._answer(
                [line], PolicyError("Policy: another is being checked; tell it again")
            )
        self._is_checking = True
        options, future = self.service.dispatcher.options, self._future

        def check() -> None:
            policy: BasePolicy | str | AcerlError
            try:
                policy = read_policy(message)
                with contextlib.suppress(AcerlError):  # whose reason comes as it is taken over
                    Dispatcher(policy=policy, **options)
            except AcerlError as error:
                policy = error
            except Exception as error:
                policy = PolicyError(f"policy: {type(error).__name__}: {error}")
            with self._change:
                self._is_checking = False
                if self._has_ended:
                    future.set_exception(WorkerError(ENDED))
                else:
                    self._waiting.appendleft((lambda: self._answer([line], policy), future))
                self._change.notify()

        threading.Thread(target=check, daemon=True).start()
        return LATER


def find_policy(line: str) -> Message | None:
    """Return the message that a line holds if it names a policy."""
    if '"Policy"' in line or "\\u" in line:  # which may stand for any letter
        with contextlib.suppress(EventError):
            message = read_message(line)
            return message if message["kind"] == "Policy" else None
    return None
