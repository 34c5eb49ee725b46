"""Files that are never half-written, and reading that never trusts what it reads."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import math
import os
import re
import secrets
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from acerl_np.support.errors import InputError, StorageError, describe, make_printable

if sys.platform != "win32":
    import fcntl

FilePath: TypeAlias = str | os.PathLike[str]

MAX_TEXT_BYTES = 64 * 2**20
"""Largest layout, record or configuration file that is read."""

MAX_ARRAY_BYTES = 2**31
"""Largest file of arrays that is read; they are no larger, as nothing in it is compressed."""

MAX_EMPTY = 2**20
"""Most elements of an array whose elements have no bytes, or none at all but for a side of 0."""


TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")
"""Names that `write_atomically` gives to files that are not complete yet."""


MARK = "made by acerl_np"
"""What stands near the beginning of pictures and pages: a later one may take their default name."""


def has_mark(path: FilePath) -> bool:
    """Whether a file is a picture or a page that this package made."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(4096)
    except (OSError, ValueError):
        return False


def describe_os_error(error: OSError) -> str:
    """Return the system's reason in lower case, such as "no space left on device"."""
    return (error.strerror or str(error)).lower()


def path_exists(path: FilePath) -> bool:
    """Whether something is at `path`, also if it cannot be read; nothing is at impossible names."""
    try:
        return Path(path).exists()
    except ValueError:
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG


def check_place(path: FilePath) -> None:
    """Refuse a file's name where `write_atomically` could not write: an `InputError`; nothing stays there."""
    beside = _find_beside(path)
    try:
        beside.open("xb").close()
        beside.unlink()
    except OSError as error:
        raise InputError(
            f"{make_printable(os.fspath(path))}: cannot be written: {describe_os_error(error)}; expected a "
            "name in a folder that exists and may be written to"
        ) from error


def _find_beside(path: FilePath) -> Path:
    """Return a temporary name beside a file's; refuse what is no file's name."""
    target = Path(path)
    if not target.name or "\0" in target.name:
        raise InputError(
            f"{make_printable(os.fspath(path)) or 'an empty name'}: expected the name of a file to write"
        )
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def write_atomically(path: FilePath, data: bytes) -> None:
    """Write `data` to a temporary name beside `path`, sync it, and rename it to `path`.

    Existing content stays as it was unless everything has reached the disk. Nothing of an attempt that fails
    is left behind.
    """
    target, temporary = Path(path), _find_beside(path)
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StorageError(f"{target}: cannot write: {describe_os_error(error)}") from error
        raise
    sync_folder(target)


def sync_folder(path: FilePath) -> None:
    """Let the disk have what a file is called, where that can be."""
    # Some file systems sync no folder, and some folders may not be read; the file is there all the same.
    with contextlib.suppress(OSError):
        folder = os.open(Path(path).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def lock_file(file: int, refusal: Exception) -> bool:
    """Lock an open file or folder as long as it is open, and raise `refusal` where somebody else has it.

    False where there are no locks: on Windows, and on some file systems.
    """
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise refusal from error
    except OSError:
        return False
    return True


@contextlib.contextmanager
def claim_folder(path: FilePath) -> Iterator[None]:
    """Hold a folder for this process alone, so that two runs never write into each other's files.

    The claim ends with the process, however it ends, and leaves no file behind. Windows has none.
    """
    if sys.platform == "win32":
        yield
        return
    try:
        folder = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise StorageError(f"{path}: cannot open: {describe_os_error(error)}") from error
    busy = f"{path}: another run is writing there; expected a folder of this run's own (--out)"
    try:
        if lock_file(folder, InputError(busy)):
            # Left by a process that was killed while it wrote; nobody else writes here now.
            for leftover in Path(path).glob(".*.tmp"):
                if TEMPORARY.fullmatch(leftover.name):
                    leftover.unlink(missing_ok=True)
        yield
    finally:
        os.close(folder)


STDIN = "-"
"""In the place of a file's name: the standard input."""

_remembered: dict[str, bytes] | None = None


def show_path(path: FilePath) -> str:
    """Return a file's name as messages show it: "<stdin>" for the standard input."""
    return "<stdin>" if os.fspath(path) == STDIN else str(path)


@contextlib.contextmanager
def remember_streams() -> Iterator[None]:
    """Keep what is read from pipes and the standard input: one command may ask for it twice."""
    global _remembered
    before, _remembered = _remembered, {}
    try:
        yield
    finally:
        _remembered = before


def is_stream(path: FilePath) -> bool:
    """Whether a name is that of a pipe or of the standard input, which can be read but once."""
    if os.fspath(path) == STDIN:
        return True
    if not path_exists(path):
        return False
    mode = Path(path).stat().st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def _read_stream(path: FilePath, limit: int) -> bytes:
    """Return the content of a pipe or of the standard input, one byte too many if it is too large."""
    name = os.fspath(path)
    known = {} if _remembered is None else _remembered
    if name not in known:
        if name != STDIN:
            with open(path, "rb") as file:
                known[name] = file.read(limit + 1)
        else:
            known[name] = b"" if sys.stdin is None else sys.stdin.buffer.read(limit + 1)
    return known[name]


def read_bytes(
    path: FilePath, kind: type[InputError], limit: int = MAX_TEXT_BYTES, *, streams: bool = False
) -> bytes:
    """Read a whole file of at most `limit` bytes; with `streams` pipes, and for "-" the standard input, too.

    What cannot be read so is an error of the given kind.
    """
    source = Path(path)
    try:
        if streams and is_stream(path):
            data = _read_stream(path, limit)
            size = len(data)
        else:
            if not source.is_file():
                found = "a directory" if source.is_dir() else "nothing"
                raise kind(f"{source}: expected a file, found {found}")
            with open(source, "rb") as file:
                # file.read(limit) would set the whole limit aside, however small the file.
                size = os.fstat(file.fileno()).st_size
                data = b"" if size > limit else file.read()
    except kind:
        raise
    except (OSError, ValueError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
        raise kind(f"{show_path(path)}: cannot read: {reason}") from error
    if max(size, len(data)) > limit:
        raise kind(f"{show_path(path)}: more than {limit:,} bytes; expected a smaller file")
    return data


def read_text(path: FilePath, kind: type[InputError]) -> str:
    """Read a UTF-8 file as `read_bytes` does, with streams; a byte-order mark is left out."""
    data = read_bytes(path, kind, streams=True)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise kind(
            f"{show_path(path)}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "expected text in UTF-8 (save the file in that encoding)"
        ) from error


def digest_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the hash of named arrays, but for their checksum."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name != "checksum":
            array = arrays[name]
            digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def write_arrays(path: FilePath, arrays: Mapping[str, Any]) -> None:
    """Write arrays and their checksum as `.npz`, atomically and with reproducible bytes."""
    stored = {name: np.asarray(array) for name, array in arrays.items()}
    stored["checksum"] = np.asarray(digest_arrays(stored))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in stored.items():
            # Its date is always the same, in 1980: the same content gives the same file.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def read_arrays(path: FilePath, kind: type[InputError]) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote; a file with anything but plain arrays is an error of the given kind.

    Pickles are never loaded. Nothing is read whose size, as the archive's directory or an array's own header
    tells it, is more than the file has: a small file gives small arrays.
    """
    data = read_bytes(path, kind, MAX_ARRAY_BYTES)
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("compressed")
            if sum(max(member.file_size, member.compress_size) for member in members) > len(data):
                raise ValueError("members that overlap")
            for member in members:
                if not member.filename.endswith(".npy"):
                    raise ValueError("a member that is no array")
                content = io.BytesIO(archive.read(member))
                _check_size(content)
                name = member.filename.removesuffix(".npy")
                arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
                if content.read(1):
                    raise ValueError("an array with bytes after its end")
    # Damaged bytes make zipfile and NumPy raise nearly anything; all of it means the same here.
    except Exception as error:
        raise kind(
            f"{path}: not a readable .npz file of plain arrays ({type(error).__name__}); "
            "expected a file written by acerl_np"
        ) from error
    checksum = arrays.pop("checksum", None)
    if checksum is None or checksum.shape != () or str(checksum) != digest_arrays(arrays):
        raise kind(f"{path}: the checksum does not match; the file is damaged or was changed")
    return arrays


def _check_size(content: io.BytesIO) -> None:
    """Refuse an array whose header promises more than its file holds; a ValueError."""
    form = np.lib.format
    read = form.read_array_header_1_0, form.read_array_header_2_0
    shape, _, dtype = read[form.read_magic(content)[0] - 1](content)
    size = math.prod(shape) * dtype.itemsize
    held = len(content.getbuffer()) - content.tell()
    if size > held or (not size and math.prod(max(1, n) for n in shape) > MAX_EMPTY):
        raise ValueError("an array that is larger than its file")
    content.seek(0)


def take_kind(
    path: FilePath,
    arrays: dict[str, np.ndarray],
    kind: str,
    version: int,
    error: type[InputError],
    *,
    noun: str,
    advice: str = "",
) -> None:
    """Take "kind" and "format" out of a file's arrays; refuse others.

    `noun` says what the file should hold, as in "a checkpoint", and `advice` what to do about another format.
    """
    found, stored = arrays.pop("kind", None), arrays.pop("format", None)
    if found is None or str(found) != kind:
        what = "something else" if found is None else describe(found)
        raise error(f"{path}: holds {what}; expected {noun}")
    if stored is None or stored.dtype.kind not in "iu" or stored.tolist() != version:
        raise error(
            f"{path}: {kind} format {describe(stored)}; this version reads format {version}{advice}"
        )
