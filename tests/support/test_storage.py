"""Files that are written whole or not at all, and array files that are read only when sound."""

import io
import os
import pickle
import stat
import sys
import tracemalloc
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from machine import limit_files
from tables_and_refusals import check_message, refused

from acerl_np import InputError, PolicyError, RecordError, StorageError
from acerl_np.problem.goal import TERM
from acerl_np.problem.source import EMPTY
from acerl_np.support import files
from acerl_np.support.files import read_arrays, write_arrays, write_atomically
from acerl_np.support.own import KEPT

ARRAYS = {
    "theta": np.linspace(-1, 1, 7, dtype=np.float32),
    "sizes": np.array([[2, 3], [5, 7]], np.int64),
    "name": np.array("small"),
}


def tell(arrays):
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


# Writing


def test_content_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    for data in (b"first, and longer", b"second", b""):
        write_atomically(path, data)
        assert path.read_bytes() == data
        assert names_in(tmp_path) == ["file"]
    write_atomically(str(path), b"by name")
    assert path.read_bytes() == b"by name"


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    calls = []
    fsync, replace = os.fsync, os.replace

    def watch_fsync(descriptor):
        calls.append(("fsync", path.read_bytes()))
        fsync(descriptor)

    def watch_replace(source, target):
        calls.append(("replace", Path(source).read_bytes()))
        assert Path(source).parent == Path(target).parent
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "replace", watch_replace)
    write_atomically(path, b"new")
    assert calls[:2] == [("fsync", b"old"), ("replace", b"new")]


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX alone")
@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_folder_that_refuses_to_be_synced_fails_no_save(tmp_path, monkeypatch, call):
    """Some network file systems refuse it, as does a folder that may be written but not read."""
    original = getattr(os, call)

    def refuse(thing, *flags):
        if call == "open" or stat.S_ISDIR(os.fstat(thing).st_mode):
            raise OSError(22, "Invalid argument")
        return original(thing, *flags)

    monkeypatch.setattr(os, call, refuse)
    write_atomically(tmp_path / "file", b"new")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_alone(tmp_path, monkeypatch, call, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises((StorageError, KeyboardInterrupt)) as caught:
        write_atomically(path, b"new")
    if isinstance(error, OSError):
        check_message(caught.value, path, ["cannot write", "no space left on device"])
    else:
        assert caught.value is error
    monkeypatch.undo()
    told = {"error": StorageError}
    if sys.platform != "win32":  # a limit on the size of files: part of the data is written
        for size in (1001, 100_000):
            with limit_files(1000):
                refused(path, ["cannot write"], write_atomically, path, bytes(size), **told)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["file"]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"no folder")
    (tmp_path / "folder").mkdir()
    for name in ("file/inner", "missing/inner", "folder"):
        path = tmp_path / name
        refused(path, ["cannot write"], write_arrays, path, ARRAYS, error=StorageError)
    for name in ("", ".", "/", "a\0b"):
        with pytest.raises(InputError, match=r"^.*: expected the name of a file to write$"):
            write_atomically(name, b"x")
    assert names_in(tmp_path) == ["file", "folder"]
    assert names_in(tmp_path / "folder") == []
    assert files.path_exists(tmp_path)
    assert not any(files.path_exists(tmp_path / name) for name in ("missing", "x" * 5000, "a\0b"))


# Reading bytes and text


def test_reading_what_is_no_file(tmp_path):
    for path, found in ((tmp_path, "a directory"), (tmp_path / "missing", "nothing")):
        for read in (files.read_bytes, files.read_text, read_arrays):
            refused(path, [f"found {found}"], read, path, RecordError)


def test_reading_text_and_at_most_so_many_bytes(tmp_path):
    path = tmp_path / "file"
    for data in ("Bühne\r\n".encode(), b"\xef\xbb\xbf" + "Bühne\r\n".encode()):
        path.write_bytes(data)
        assert files.read_text(path, RecordError) == "Bühne\r\n"
    path.write_bytes("one\ntwo\nBühne\n".encode("latin-1"))
    refused(path, ["line 3", "0xfc", "UTF-8"], files.read_text, path, RecordError)
    path.write_bytes(b"12345")
    assert files.read_bytes(path, RecordError, 5) == b"12345"
    refused(path, ["more than 4 bytes"], files.read_bytes, path, RecordError, 4)
    tracemalloc.start()  # no more is set aside than the file needs
    try:
        assert files.read_bytes(path, RecordError, files.MAX_ARRAY_BYTES) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


# Arrays

DTYPES = ["<f4", "<f8", ">f8", "<i4", "<i8", "<u4", "u1", "?", "<U5", "S3", "<c16"]
anything = st.sampled_from(DTYPES).flatmap(
    lambda dtype: st_numpy.arrays(
        dtype, st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    )
)


@given(
    st.dictionaries(
        st.text(st.characters(categories=["Ll", "Nd"], include_characters="_."), min_size=1).filter(
            lambda name: name != "checksum"
        ),
        anything,
        max_size=4,
    )
)
def test_arrays_round_trip(tmp_path_factory, arrays):
    path = tmp_path_factory.getbasetemp() / "round-trip.npz"
    write_arrays(path, arrays)
    assert tell(read_arrays(path, PolicyError)) == tell(arrays)
    with np.load(path, allow_pickle=False) as loaded:  # NumPy reads it, too
        assert tell({name: loaded[name] for name in set(loaded) - {"checksum"}}) == tell(arrays)


def test_numbers_and_lists_become_arrays(tmp_path):
    path = tmp_path / "file.npz"
    given = {"seed": 7, "sigma": 0.05, "sizes": [3, 4], "name": "DMH", "empty": []}
    write_arrays(path, given)
    found = {name: array.tolist() for name, array in read_arrays(path, PolicyError).items()}
    assert found == given
    table = np.arange(12.0).reshape(3, 4)
    for array in (np.asfortranarray(table), table[::-1, ::2]):
        write_arrays(path, {"table": array})
        np.testing.assert_array_equal(read_arrays(path, PolicyError)["table"], array)


def test_same_content_gives_same_bytes(tmp_path, monkeypatch):
    one, other = tmp_path / "one.npz", tmp_path / "other"
    write_arrays(one, ARRAYS)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_arrays(other, {name: array.copy() for name, array in ARRAYS.items()})
    assert one.read_bytes() == other.read_bytes()


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npy(array, **keys):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **keys)
    return buffer.getvalue()


def read_damaged(path, data):
    """The arrays, or None if the file is refused with one line of the right kind."""
    path.write_bytes(data)
    try:
        return read_arrays(path, PolicyError)
    except PolicyError as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error)


def test_no_flipped_missing_or_appended_byte_changes_an_array(tmp_path):
    path = tmp_path / "file.npz"
    arrays = {"theta": ARRAYS["theta"]}
    write_arrays(path, arrays)
    data = path.read_bytes()
    refused = 0
    for k in range(len(data)):
        assert read_damaged(path, data[:k]) is None, k
        for mask in (0x01, 0x20, 0xFF):
            found = read_damaged(path, data[:k] + bytes([data[k] ^ mask]) + data[k + 1 :])
            refused += found is None
            # dates and the like of the archive may differ, what is in it may not
            assert found is None or tell(found) == tell(arrays), (k, mask)
    assert refused > 2 * len(data)
    for tail in (b"\0", b"\n", b"PK\x05\x06" + bytes(18), data):
        found = read_damaged(path, data + tail)
        assert found is None or tell(found) == tell(arrays)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "arbitrary.npz"
    assert read_damaged(path, data) is None
    assert read_damaged(path, b"PK\x03\x04" + data) is None
    assert read_damaged(path, b"\x93NUMPY\x01\x00" + data) is None


def header_only(shape):
    """An array file that promises more than it holds."""
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def test_changed_archive_is_refused(tmp_path):
    path, theta = tmp_path / "file.npz", ARRAYS["theta"]
    write_arrays(path, ARRAYS)
    members = members_of(path)
    assert tell(read_damaged(path, archive_of(members))) == tell(ARRAYS)
    changes = [
        {name: content}
        for name, contents in (
            ("checksum.npy", (None, npy("0" * 64), npy(["0" * 64]), npy(7))),
            ("theta.npy", (None, npy(theta.astype(np.float64)), npy(theta.reshape(7, 1)))),
            ("theta.npy", (npy(theta) + b"\0", npy(theta)[:-1], b"", b"theta")),
            ("theta.npy", (header_only((2**40,)), header_only((10_000,)))),
            *(("more.npy", [npy(1)]), ("readme.txt", [b"text"])),
        )
        for content in contents
    ]
    changes += [{"theta.npy": None, name: npy(theta)} for name in ("thetas.npy", "theta")]
    for change in changes:
        left = {name: data for name, data in {**members, **change}.items() if data is not None}
        assert read_damaged(path, archive_of(left)) is None, change
    others = (b"", npy(1), archive_of({}), b"task,pickup\n", pickle.dumps({}))
    assert all(read_damaged(path, data) is None for data in others)


def lie(data, name, at, value):
    """An archive whose directory says something else of a member's 4 bytes at a place of its entry."""
    changed = bytearray(data)
    place = data.rindex(name.encode()) - 46 + at
    changed[place : place + 4] = value.to_bytes(4, "little")
    return bytes(changed)


def test_no_small_archive_unpacks_to_much(tmp_path):
    path = tmp_path / "file.npz"
    write_arrays(path, ARRAYS)
    members = {**members_of(path), "zeros.npy": npy(np.zeros(100_000))}
    small = archive_of(members, zipfile.ZIP_DEFLATED)
    assert len(small) < 10_000
    whole = archive_of(members)
    offset, names = whole.index(b"PK"), [f"x{k}.npy" for k in range(9)]
    twice = archive_of(members | dict.fromkeys(names, b""))
    for name in names:  # entries of the directory that all lead to one place
        for at, value in ((20, 900_000), (24, 900_000), (42, offset)):
            twice = lie(twice, name, at, value)
    with mock.patch.object(zipfile.ZipFile, "read") as unpacked:
        lies = lie(whole, "zeros.npy", 24, 2**31), lie(small, "zeros.npy", 24, 9)
        for data in (small, twice, *lies):
            assert read_damaged(path, data) is None
    assert not unpacked.called
    # What says that it is smaller than it is.
    assert read_damaged(path, lie(whole, "zeros.npy", 24, 200)) is None


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("<f8", (2**40,)), ("<U0", (2**40,)), ("<f8", (2**40, 0)), ("|V0", (2**21,))],
)
def test_no_array_is_larger_than_its_file(tmp_path, kind, shape):
    path, buffer = tmp_path / "file.npz", io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    with mock.patch.object(np.lib.format, "read_array") as made:
        assert read_damaged(path, archive_of({"x.npy": buffer.getvalue() + bytes(800)})) is None
    assert not made.called


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickles_are_never_loaded(tmp_path):
    path = tmp_path / "file.npz"
    trap = tmp_path / "trap"
    objects = np.array([Touch(trap)], dtype=object)
    write_arrays(path, ARRAYS)
    members = members_of(path)
    contents = [
        pickle.dumps(Touch(trap)),
        archive_of({**members, "theta.npy": npy(objects, allow_pickle=True)}),
        archive_of({**members, "checksum.npy": npy(objects, allow_pickle=True)}),
        archive_of({**members, "theta.npy": pickle.dumps(Touch(trap))}),
        archive_of({**members, "theta.pkl": pickle.dumps(Touch(trap))}),
        npy(objects, allow_pickle=True),
    ]
    for data in contents:
        assert read_damaged(path, data) is None
        assert not trap.exists()
    # the trap does work
    np.lib.format.read_array(io.BytesIO(contents[-1]), allow_pickle=True)
    assert trap.exists()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (TERM.fullmatch, "1" * 2_000_000),
        (EMPTY.fullmatch, " " * 2_000_000 + "x"),
        (KEPT.fullmatch, "a" * 2_000_000),
        (KEPT.fullmatch, "a:" * 1_000_000),
        (KEPT.fullmatch, ".py" * 600_000 + ":!"),
    ],
)
def test_patterns_of_what_anybody_sends_take_linear_time(pattern, text):
    """Each did the square of its length: hours, where this takes a moment."""
    assert pattern(text) is None
