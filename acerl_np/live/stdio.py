"""The door of a service that is its standard input and output: a message on each line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from acerl_np.live.wire import MAX_MESSAGE
from acerl_np.live.worker import Worker

CHUNK = 65_536
"""Bytes that are read at once at most."""


def split_lines(read: Callable[[int], bytes]) -> Iterator[list[str]]:
    """Give the lines of what is read, those that have come together; one that is too long is cut.

    Bytes that are no UTF-8 are surrogates, for which the message is refused.
    """
    rest = b""
    while data := read(CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[: MAX_MESSAGE + 1]
        yield [read_line(line) for line in lines]
    yield [read_line(rest)]


def read_line(line: bytes) -> str:
    """Return a line as text: one that is too long has too many letters, too."""
    if len(line) > MAX_MESSAGE:
        return line[: MAX_MESSAGE + 1].decode("latin-1")
    return line.decode(errors="surrogateescape").strip()


def serve_lines(
    worker: Worker,
    read: Callable[[int], bytes],
    write: Callable[[str], object],
    stopped: Callable[[], bool],
) -> None:
    """Answer each line until the input ends, or who asks `stopped` is told so.

    Parameters
    ----------
    worker : Worker
    read : Callable
        Returns some bytes, at most so many; none at the end. Without a lock, as the process may end within.
    write : Callable
        Takes lines of answers.
    stopped : Callable
    """
    ended = threading.Event()
    failure = list[BaseException]()

    def take() -> None:
        try:
            for lines in split_lines(read):
                left = [line for line in lines if line]
                while left:
                    piece = worker.answer(left).result()
                    if piece.error is not None:
                        raise piece.error
                    left = left[piece.n_taken :]
        except BaseException as error:
            failure.append(error)
        ended.set()

    worker.publish, worker.on_end = lambda messages, text: write(text), ended.set
    worker.start()
    threading.Thread(target=take, daemon=True).start()
    while not (stopped() or ended.wait(0.1)):
        pass
    worker.stop()
    if worker.error is None and failure:
        raise failure[0]
