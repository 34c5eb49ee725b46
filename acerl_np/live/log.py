"""A dispatcher's log as a file: how it is written, and which of its lines hold, read as a stream."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from acerl_np.live import events
from acerl_np.live.orders import DECIDED, NOTED
from acerl_np.live.wire import format_line
from acerl_np.problem.packing import UNUSABLE
from acerl_np.support.errors import RecordError, StorageError, describe, make_printable
from acerl_np.support.fields import is_real, is_whole
from acerl_np.support.files import FilePath, describe_os_error, is_stream, lock_file

FORMAT = 1
"""Of a log; its starts have it."""

STARTED, DAY_BEGAN = "Started", "DayBegan"
"""Lines of a log besides events and orders."""

KINDS = frozenset((*events.EVENTS, STARTED, *DECIDED, DAY_BEGAN, *NOTED))

BEGINNING = b'{"kind": "'
"""Of each line."""

START = re.compile(rb'\0*\{\s*"kind"\s*:\s*"Started"')

MAX_LINE = 64 * 2**20
"""Bytes of the longest line that is read."""

N_COMPARED = 4096
"""Bytes before a place in a log by which it is known again."""

Line = tuple[str, dict[str, Any]]
"""A line and its place."""


class Place(NamedTuple):
    """How far a state knows a log: so many bytes, and the hash of the last of these."""

    size: int
    digest: str


class AuditLog:
    """A file to which a line is added for every event and every assignment.

    What is there already stays. The file is locked until `close`, or until the object or its process ends;
    forks have no part in it. A StorageError says that it is locked or has more than the `size` that was read,
    or that a line cannot be written: it is written before the next one then. With `fsync` a line is on the
    disk, not only with the system, when `note` returns. `day` is the machine's date when it was begun, or
    last written to before.
    """

    def __init__(self, path: FilePath, *, fsync: bool = False, size: int | None = None) -> None:
        self.path, self.fsync = path, fsync
        self._mark = secrets.token_hex(4)
        self._pending = b""
        try:
            self._open(path)
        except OSError as error:
            raise StorageError(f"{path}: cannot write: {describe_os_error(error)}") from error
        _OPEN.add(self)
        about = os.fstat(self._file)
        self.day = date.fromtimestamp(about.st_mtime)
        self._is_file = stat.S_ISREG(about.st_mode)
        if not self._is_file:
            return  # a pipe, or what is everybody's, as /dev/null
        busy = "another dispatcher writes there; expected it to be closed, or its process to have ended"
        refusal = StorageError(f"{path}: {busy}")
        lock_file(self._file, refusal)
        found = os.lseek(self._file, 0, os.SEEK_END)
        if size not in (None, found):
            raise refusal
        if found > 0:
            os.lseek(self._file, found - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":  # the machine failed within a line
                self._pending = b"\n"

    def _open(self, path: FilePath) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o644)
        self._shut = weakref.finalize(self, os.close, self._file)

    def move(self, path: FilePath) -> None:
        """Give the file another name, which nothing may have; an OSError if that cannot be."""
        if sys.platform == "win32":
            self._shut()  # a file that is open keeps its name there
        try:
            Path(self.path).rename(path)
            self.path = path
        finally:
            if not self._shut.alive:
                self._open(self.path)

    def note(self, kind: str, **values: Any) -> None:
        """Add a line, with the clock on the wall that nothing reads; null for numbers that are not finite."""
        own = {"mark": self._mark, "wall": round(time.time(), 3)}
        self._pending += format_line({"kind": kind, **values, **own}).encode()
        self.flush()

    def flush(self) -> None:
        """Hand all lines to the system at once: nothing is lost with the process."""
        if not self._shut.alive:
            if self._pending:
                raise StorageError(f"{self.path}: cannot write: the log is closed")
            return
        if self._pending and self._is_file and not self._is_there():
            gone = "it was moved or deleted; expected it back, or a restart from a state"
            raise StorageError(f"{self.path}: cannot write: {gone}")
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._file, self._pending) :]
            if self.fsync:
                os.fsync(self._file)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot write: {describe_os_error(error)}") from error

    def _is_there(self) -> bool:
        if sys.platform == "win32":
            return True  # nobody can take it away there
        try:
            return os.path.samestat(Path(self.path).stat(), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def find_end(self) -> Place | None:
        """Return the place after the last line; None of what is no file, or closed."""
        if not self._is_file or not self._shut.alive:
            return None
        size = os.lseek(self._file, 0, os.SEEK_END)
        return Place(size, _digest_before(self._file, size))

    def close(self) -> None:
        """Hand over what is left, and let others write."""
        try:
            self.flush()
        finally:
            self._shut()


def name_new(path: FilePath) -> str:
    """Return the name of a log that is to have another one's name."""
    return f"{os.fspath(path)}.new"


_OPEN: weakref.WeakSet[AuditLog] = weakref.WeakSet()


def _shut_all() -> None:
    for log in _OPEN:
        log._shut()


if hasattr(os, "register_at_fork"):  # else a child would hold the lock after its parent's end
    os.register_at_fork(after_in_child=_shut_all)


def _digest_before(file: int, size: int) -> str:
    """Return the hash of the last bytes before a place."""
    os.lseek(file, max(0, size - N_COMPARED), os.SEEK_SET)
    return sha256(os.read(file, min(size, N_COMPARED))).hexdigest()


class Start(NamedTuple):
    """A line that says that a dispatcher started: where it is, and its content.

    Attributes
    ----------
    offset : int
        Bytes before it.
    place : str
        How errors name it.
    line : dict
    replaces : bool
        Whether lines before it, which came after the state that it goes on from, hold no more.
    """

    offset: int
    place: str
    line: dict[str, Any]
    replaces: bool


class LogReader:
    """The lines of a log, read as a stream however long it is; `reading` names it in errors.

    A line replaces all before it that have its count or a higher one. These are lines that came after a state
    from which a dispatcher was started anew.

    Parameters
    ----------
    path : path-like
        A file, or a pipe.
    known : Place, optional
        What need not be read: it is passed over if the log has it there.

    Attributes
    ----------
    starts : list of Start
    size : int
        Bytes that were read.
    torn : str
        The place of a last line that was cut off, or "".
    """

    def __init__(self, path: FilePath, known: Place | None = None) -> None:
        self.path, self.torn, self.size = path, "", 0
        self.starts: list[Start] = []
        self._first = 0, 0
        self._file = self._open()
        try:
            self._find_starts(0 if known is None or not self._has(known) else known.size)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        if not is_stream(self.path):
            return Path(self.path).open("rb")
        kept = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed at the end of the block)
        with Path(self.path).open("rb") as stream:
            shutil.copyfileobj(stream, kept)
        return kept

    def _has(self, known: Place) -> bool:
        file = self._file.fileno()
        return os.fstat(file).st_size >= known.size and (
            _digest_before(file, known.size) == known.digest
        )

    def _read_rows(self, offset: int, row: int) -> Iterator[tuple[int, int, bytes]]:
        """Return the bytes of each line from one on, with the bytes and lines before it."""
        self._file.seek(offset)
        while data := self._file.readline(MAX_LINE + 1):
            if len(data) > MAX_LINE:
                raise RecordError(f"line {row + 1}: more than {MAX_LINE:,} bytes; expected a log")
            yield offset, row, data
            offset, row = offset + len(data), row + 1
        self.size = max(self.size, offset)

    def _find_starts(self, known: int) -> None:
        before, n = b"", -1
        for offset, row, data in self._read_rows(0, 0):
            if offset + len(data) <= known:
                self._first = offset + len(data), row + 1
            if START.match(data) and (line := _parse(data, row)) is not None:
                if before and (last := _parse(before, row - 1)) is not None:
                    n = max(n, last["line"])
                place = f"line {row + 1}"
                check_start(line, place)
                self.starts.append(Start(offset, place, line, line["line"] <= n))
                n = line["line"]
            if data.endswith(b"}\n"):
                before = data

    def find_first(self, until: Start | None = None) -> Start | None:
        """Return the first start that holds before another one, or at last; None without any."""
        past = self.starts if until is None else self.starts[: self.starts.index(until)]
        return min(reversed(past), key=lambda start: start.line["line"], default=None)

    def list_branches(self) -> list[Start | None]:
        """Return the starts that replace lines, and None for the end: what held before each."""
        return [*(start for start in self.starts if start.replaces), None]

    def read(self, until: Start | None = None) -> Iterator[Line]:
        """Return the lines that held before a start, or at last, with their places."""
        end = self.size if until is None else until.offset
        starts = [start for start in self.starts if start.offset < end]
        # What a later start replaces is not read: each has the lowest count of those after it as its limit.
        limits, limit = dict[int, float](), float("inf")
        for start in reversed(starts):
            limits[start.offset], limit = limit, min(limit, start.line["line"])
        mark, last = None, -1
        held: Line | None = None  # what was interrupted once it was written is written again
        past = [start for start in starts if start.offset < self._first[0]]
        if past:
            mark, limit = past[-1].line["mark"], limits[past[-1].offset]
        self.torn = ""
        for offset, row, data in self._read_rows(*self._first):
            if offset >= end:
                break
            place, line = f"line {row + 1}", _parse(data, row)
            if line is None:
                self.torn = self.torn or (place if data.strip(b"\0\r\n") else "")
                continue
            if offset in limits:
                mark, limit = line["mark"], limits[offset]
            elif self.torn:  # only before a restart may a line have been cut
                raise RecordError(f"{self.torn}: not JSON; expected a line of a log")
            elif mark is None:
                raise RecordError(f"{place}: kind: read '{line['kind']}'; expected {STARTED}")
            elif line.get("mark") != mark:
                raise RecordError(
                    f"{place}: mark: read '{describe(line.get('mark'))}'; expected '{describe(mark)}', that "
                    "of the dispatcher that started last: two have written this log at once"
                )
            elif line["line"] < last:
                expected = f"{last} or more, as before"
                raise RecordError(f"{place}: line: read {line['line']}; expected {expected}")
            self.torn = ""
            if held is not None and line["line"] != last:
                yield held
            last, held = line["line"], (place, line) if line["line"] < limit else None
        if held is not None:
            yield held


def _parse(data: bytes, row: int) -> dict[str, Any] | None:
    """Return a line of a log; None of one that is empty or was cut off; a RecordError if it is none."""
    # What was cut off may be anything; some file systems put zeros where a power cut took the end.
    text, place = data.strip(b"\0\r\n"), f"line {row + 1}"
    if not text:
        return None
    try:
        line: Any = json.loads(text.replace(b"\0", b"").decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        if not BEGINNING.startswith(text[: len(BEGINNING)]):  # no beginning of a line, either
            raise RecordError(f"{place}: not JSON; expected a line of a log") from error
        return None
    kind = line.get("kind") if isinstance(line, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise RecordError(f"{place}: kind: read '{describe(kind)}'; expected a line of a log")
    field = "start" if kind in (STARTED, DAY_BEGAN) else "time"
    if not is_real(line.get(field)):
        raise RecordError(f"{place}: {field}: read '{describe(line.get(field))}'; expected seconds")
    if not is_whole(line.get("line")) or line["line"] < 0:
        read = describe(line.get("line"))
        raise RecordError(f"{place}: line: read '{read}'; expected the count of the log's lines")
    found: dict[str, Any] = line
    return found


def check_start(line: dict[str, Any], place: str) -> None:
    """Refuse a start that lacks what one has; a RecordError names it."""
    if line.get("format") != FORMAT:
        read = describe(line.get("format"))
        raise RecordError(f"{place}: format: read '{read}'; this version reads format {FORMAT}")
    kinds = {"options": dict, "vehicles": list, "mark": str}
    if not all(isinstance(line.get(name), kind) for name, kind in kinds.items()):
        raise RecordError(f"{place}: {STARTED}: expected its options, vehicles and mark")


@contextmanager
def reading(path: FilePath) -> Iterator[None]:
    """Let errors that come of reading a log name it."""
    try:
        yield
    except RecordError as error:
        name = f"{os.fspath(path)}: "
        raise RecordError(f"{name}{str(error).removeprefix(name)}") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot read: {describe_os_error(error)}") from error


@contextmanager
def name_line(place: str, line: dict[str, Any]) -> Iterator[None]:
    """Let errors that come of a line name it: all are a RecordError then."""
    try:
        yield
    except KeyError as error:
        raise RecordError(f"{place}: {line['kind']}: {error} is missing or unknown") from error
    except UNUSABLE as error:  # an EventError is a ValueError, too
        reason = make_printable(str(error)[:400])
        raise RecordError(f"{place}: {line['kind']}: {reason}") from error
