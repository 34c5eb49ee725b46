"""Columns of a table as exports name them: which are read, which are passed over, which look misspelt."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.limits import MAX_COLUMNS
from acerl_np.support.errors import RecordError, describe

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Separators of columns, and what they are called."""

NO_SEPARATOR = re.compile(r'[^\s,;"\ufeff]')


class Columns(NamedTuple):
    """What a header says.

    Attributes
    ----------
    used : tuple of str
        Known columns in the order of the file, by the names that the package gives them.
    positions : tuple of int
        Where each of these stands in a line, from 0.
    ignored : tuple of str
        The other columns as the file names them; one without a name is "column 3".
    n_fields : int
        Fields of a line.
    """

    used: tuple[str, ...]
    positions: tuple[int, ...]
    ignored: tuple[str, ...]
    n_fields: int


def normalise(name: str) -> str:
    """Return a column's name in small letters, its blanks as underscores."""
    return "_".join(name.strip("\ufeff \t").lower().split())


def squeeze(name: str) -> str:
    """Return a column's name in small letters without blanks, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name.lower())


def measure_distance(a: str, b: str, most: int) -> int:
    """Count the slips between two words: letters too many, missing, wrong, or two of them swapped.

    The Damerau-Levenshtein distance, no letter being edited twice (optimal string alignment).

    Parameters
    ----------
    a, b : str
    most : int
        Above this, the count may be anything greater than `most`.
    """
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def find_lookalike(name: str, known: Sequence[str]) -> str | None:
    """Return the known column that a name is probably meant for, None if it is another column.

    A name is a misspelt column if it is that column but for case, blanks, underscores and hyphens, or at
    most one slip away from it: two slips where the column has eight letters or more.

    Parameters
    ----------
    name : str
    known : sequence of str
    """
    word = squeeze(name)
    best, least = None, 3
    for column in known:
        target = squeeze(column)
        most = 1 if len(target) < 8 else 2
        distance = measure_distance(word, target, most)
        if distance <= most and distance < least:
            best, least = column, distance
    return best


def match_columns(
    header: Sequence[str],
    line: int,
    required: Sequence[str],
    optional: Sequence[str],
    expected: Sequence[str] = (),
) -> Columns:
    """Find the known columns in a header.

    Upper and lower case do not matter, and blanks count as underscores. Other columns are passed over,
    unless one looks like a known column that the header lacks.

    Parameters
    ----------
    header : sequence of str
    line : int
        Where it stands, for errors.
    required, optional : sequence of str
    expected : sequence of str
        Further names that a column may be a misspelling of; such columns are passed over themselves.

    Returns
    -------
    Columns

    Raises
    ------
    RecordError
        If a required column is missing, a known one stands twice or is misspelt, or there are too many.
    """
    if len(header) > MAX_COLUMNS:
        raise RecordError(f"line {line}: {len(header):,} columns; expected at most {MAX_COLUMNS:,}")
    known = (*required, *optional)
    found: dict[str, int] = {}
    others: dict[int, str] = {}
    for k, column in enumerate(header):
        name = normalise(column)
        if name not in known:
            others[k] = name
        elif name in found:
            raise RecordError(f"line {line}: column '{name}' stands twice; expected it once")
        else:
            found[name] = k
    lacking = [name for name in (*known, *expected) if name not in found]
    lacking = [name for name in lacking if name not in others.values()]
    for k, name in others.items():
        lookalike = find_lookalike(name, lacking)
        if lookalike is not None:
            raise RecordError(
                f"line {line}: column '{describe(header[k].strip())}': looks like '{lookalike}'; expected "
                "that name, or a more different one for a column that is not read"
            )
    for name in required:
        if name not in found:
            raise RecordError(
                f"line {line}: missing column '{name}'; read {shorten(','.join(header))}, expected "
                f"columns {','.join(required)}"
            )
    ignored = tuple(header[k].strip() or f"column {k + 1}" for k in others)
    return Columns(tuple(found), tuple(found.values()), ignored, len(header))


def find_delimiter(text: str, known: Sequence[str]) -> str:
    """Return what separates the columns of a table: a comma, a semicolon or a tab.

    It is the one that finds most known columns in the header.

    Parameters
    ----------
    text : str
    known : sequence of str

    Raises
    ------
    RecordError
        If two do equally well.
    """
    first = NO_SEPARATOR.search(text)
    if first is None:
        return ","
    start = max(text.rfind("\n", 0, first.start()), text.rfind("\r", 0, first.start())) + 1
    end = min(k for k in (text.find("\n", start), text.find("\r", start), len(text)) if k >= 0)
    line = text[start:end]
    counts = {delimiter: _count_known(line, delimiter, known) for delimiter in DELIMITERS}
    most = max(counts.values())
    best = [delimiter for delimiter, count in counts.items() if count == most]
    if most == 0:
        return max(DELIMITERS, key=line.count)
    if len(best) > 1 and sum(delimiter in line for delimiter in best) > 1:
        raise RecordError(
            f"line {text.count(chr(10), 0, start) + 1}: read {shorten(line.strip())}; expected columns "
            "separated by commas, semicolons or tabs, one of them throughout"
        )
    return best[0]


def _count_known(line: str, delimiter: str, known: Sequence[str]) -> int:
    try:
        fields = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return 0
    return len({normalise(field) for field in fields} & set(known))
