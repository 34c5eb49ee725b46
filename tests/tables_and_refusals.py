"""Tables written for tests of records, and what every refusal of a file must be."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from acerl_np import InputError, PolicyError, RecordError
from acerl_np.support.files import read_arrays, write_arrays

HEADER = "task,pickup,delivery,arrival_time,expiry_time"
FLEET = [{"id": "v", "start": "A"}, {"id": "w", "start": "C"}]


def write(path, *lines):
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def read_rows(source):
    """The rows of a CSV file, or of a text of several lines, by the names of the header."""
    text = source if "\n" in str(source) else Path(source).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def read_config(folder="run"):
    return json.loads(Path(folder, "config.json").read_text())


def check_message(error, path, fragments):
    """One line that begins with the file and holds each fragment."""
    message = str(error)
    assert "\n" not in message
    assert message.isprintable()
    assert message.startswith(f"{path}: ")
    for fragment in fragments:
        assert fragment in message.removeprefix(f"{path}: ")


def refused(path, fragments, call, *arguments, error=RecordError, **options):
    """The call is refused in such a line."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    check_message(caught.value, path, fragments)


def tells(message, words, start=""):
    """Whether it is one line that holds these words in this order; " ... " stands for any between."""
    pattern = ".*".join(map(re.escape, words.split(" ... ")))
    rest = message.removeprefix(start) if message.startswith(start) else ""
    return message.isprintable() and re.search(pattern, rest) is not None


def list_unrefused(call, cases, error=InputError, start=""):
    """Of what is given with words of its refusal's one line: what is taken, or refused otherwise."""
    found = []
    for given, words in cases:
        try:
            call(given)
            found.append(f"{given!r:.99} is taken")
        except error as caught:
            if not tells(str(caught), words, start):
                found.append(f"{given!r:.99}: {caught}; expected {words}")
    return found


def list_unrefused_files(path, cases, call, error=RecordError):
    """The same of a file's content: a text, bytes or lines; what is said begins with the file's name."""

    def read(content):
        if isinstance(content, list):
            content = "\n".join([*content, ""])
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        call(path)

    return list_unrefused(read, cases, error, f"{path}: ")


def change_arrays(arrays, changes):
    """Arrays of which some are left out (None), others, or changed by a function."""
    changed = dict(arrays)
    for name, change in changes.items():
        changed[name] = change(arrays[name].copy()) if callable(change) else change
    return {name: array for name, array in changed.items() if array is not None}


def check_damaged(path, rows, *loads, error=PolicyError):
    """Rows (array, what it becomes or None, words): whoever loads such a file refuses it in one line."""
    arrays = read_arrays(path, error)
    for name, value, message in rows:
        write_arrays(path, change_arrays(arrays, {name: value}))
        for load in loads:
            with pytest.raises(error, match=message) as caught:
                load(path)
            assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def list_taken(take, arrays, cases=(), error=InputError, start=""):
    """Changes of arrays, each with words of its line, that are taken, or refused otherwise.

    Beside them every array whose name begins so is left out, cut short, and of another type.
    """
    cases = [*cases]
    for name in (name for name in arrays if name.startswith(start)):
        array = np.asarray(arrays[name])
        cases.append(({name: None}, ""))
        if array.size:
            cases.append(({name: array.reshape(-1)[:-1]}, ""))
        if array.size and array.dtype.kind != "U":
            cases.append(({name: array.astype(np.complex128)}, ""))
    return list_unrefused(lambda changes: take(change_arrays(arrays, changes)), cases, error)
