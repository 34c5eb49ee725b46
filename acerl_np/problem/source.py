"""Tables as other systems export them: separators, headers, further columns, and rows of texts."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from operator import itemgetter
from typing import NamedTuple, TypeVar

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.limits import MAX_COLUMNS
from acerl_np.support.errors import RecordError, RecordWarning, describe
from acerl_np.support.files import read_text, show_path

T = TypeVar("T")

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Separators of columns, and what they are called."""

NO_SEPARATOR = re.compile(r'[^\s,;"\ufeff]')
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+\s*")

SEPARATOR_LINE = re.compile(r'\s*"?sep=([,;\t])"?[\r\n]')
"""A first line that says what separates the columns, as spreadsheets understand it."""

LOOKALIKE = 0.83
"""How much of two names agrees if one is the other misspelt, as difflib rates it."""


class Columns(NamedTuple):
    """What a header says: the known columns and where each stands in a line of `n_fields`, and the others.

    `ignored` are columns as the file names them; one without a name is "column 3".
    """

    used: tuple[str, ...]
    positions: tuple[int, ...]
    ignored: tuple[str, ...]
    n_fields: int


class Table(NamedTuple):
    """A table as it was read: texts by known column, and where each row stands ("line 2", ...)."""

    rows: list[dict[str, str]]
    places: list[str]
    columns: Columns
    delimiter: str


class Source(NamedTuple):
    """A sort of table: what a line holds, for errors, and the columns that must and may be there.

    In columns of `numbers` a file not separated by commas may write decimals with a comma. `limit` is the
    most rows.
    """

    noun: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    numbers: tuple[str, ...]
    limit: int

    def read(self, path: str | os.PathLike[str], collect: Callable[[Table], T]) -> T:
        """Return what `collect` makes of a file's table; errors name the file.

        A `RecordWarning` names columns that are not read.
        """
        text, shown = read_text(path, RecordError), show_path(path)
        try:
            table = self.parse(text)
            result = collect(table)
        except RecordError as error:
            raise RecordError(f"{shown}: {error}") from error
        if table.columns.ignored:
            # The line is named that asked for the record, as far as `load_instance` is what it asked.
            warnings.warn(RecordWarning(shown, table.columns.ignored), stacklevel=4)
        return result

    def parse(self, text: str) -> Table:
        """Split a text into rows by the names in its header; blank lines are passed over."""
        stated = SEPARATOR_LINE.match(text)
        delimiter = stated[1] if stated else self._find_delimiter(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = (fields for fields in reader if any(field.strip() for field in fields))
        rows: list[dict[str, str]] = []
        places: list[str] = []
        try:
            header = next(itertools.islice(lines, int(stated is not None), None), None)
            if header is None:
                raise RecordError(
                    f"the file is empty; expected a header and one line per {self.noun}"
                )
            columns = self._match_columns(header, reader.line_num)
            # Spreadsheets that separate by semicolons or tabs write decimals with a comma.
            commas = [name for name in columns.used if delimiter != "," and name in self.numbers]
            pick = itemgetter(*columns.positions)
            for fields in lines:
                line = reader.line_num
                if len(fields) != columns.n_fields:
                    names = shorten(",".join([*columns.used, *columns.ignored]))[1:-1]
                    raise RecordError(
                        f"line {line}: {len(fields)} fields; expected {columns.n_fields} ({names})"
                    )
                row = dict(zip(columns.used, pick(fields), strict=True))
                for name in commas:
                    if "," in row[name] and DECIMAL_COMMA.fullmatch(row[name]):
                        row[name] = row[name].replace(",", ".")
                rows.append(row)
                places.append(f"line {line}")
                if len(rows) > self.limit:
                    raise RecordError(
                        f"line {line}: more than {self.limit:,} {self.noun}s; expected fewer"
                    )
        except csv.Error as error:
            raise RecordError(f"line {reader.line_num}: not CSV: {error}") from error
        return Table(rows, places, columns, delimiter)

    def _match_columns(self, header: Sequence[str], line: int) -> Columns:
        """Find the known columns; case does not matter, and blanks count as underscores.

        Other columns are passed over, unless one looks like a known column that the header lacks.
        """
        if len(header) > MAX_COLUMNS:
            raise RecordError(
                f"line {line}: {len(header):,} columns; expected at most {MAX_COLUMNS:,}"
            )
        known = self.required + self.optional
        found: dict[str, int] = {}
        others: list[int] = []
        for k, column in enumerate(header):
            name = _normalise(column)
            if name in found:
                raise RecordError(f"line {line}: column '{name}' stands twice; expected it once")
            if name in known:
                found[name] = k
            else:
                others.append(k)
        lacking = [name for name in known if name not in found]
        for k in others:
            lookalike = find_lookalike(header[k], lacking)
            if lookalike is not None:
                raise RecordError(
                    f"line {line}: column '{describe(header[k].strip())}': looks like '{lookalike}'; "
                    "expected that name, or a more different one for a column that is not read"
                )
        for name in self.required:
            if name in lacking:
                raise RecordError(
                    f"line {line}: missing column '{name}'; read {shorten(','.join(header))}, expected "
                    f"columns {','.join(self.required)}"
                )
        ignored = tuple(header[k].strip() or f"column {k + 1}" for k in others)
        return Columns(tuple(found), tuple(found.values()), ignored, len(header))

    def _find_delimiter(self, text: str) -> str:
        """Return which of `DELIMITERS` finds most known columns in the header."""
        first = NO_SEPARATOR.search(text)
        if first is None:
            return ","
        start = max(text.rfind("\n", 0, first.start()), text.rfind("\r", 0, first.start())) + 1
        line = re.split("[\r\n]", text[start:], maxsplit=1)[0]
        counts = {delimiter: self._count_known(line, delimiter) for delimiter in DELIMITERS}
        most = max(counts.values())
        if most == 0:
            return max(DELIMITERS, key=line.count)
        best = [delimiter for delimiter, count in counts.items() if count == most]
        if len(best) > 1 and sum(delimiter in line for delimiter in best) > 1:
            raise RecordError(
                f"line {text.count(chr(10), 0, start) + 1}: read {shorten(line.strip())}; expected columns "
                "separated by commas, semicolons or tabs, one of them throughout"
            )
        return best[0]

    def _count_known(self, line: str, delimiter: str) -> int:
        try:
            fields = next(csv.reader([line], delimiter=delimiter, strict=True), [])
        except csv.Error:
            return 0
        return len({_normalise(field) for field in fields} & {*self.required, *self.optional})


def _normalise(name: str) -> str:
    """Return a column's name in small letters, its blanks as underscores."""
    return "_".join(name.strip("\ufeff \t").lower().split())


def find_lookalike(name: str, known: Sequence[str]) -> str | None:
    """Return the known column that a name is probably meant for, None if it is another column.

    Case, blanks, underscores and hyphens do not count.
    """

    def squeeze(text: str) -> str:
        return re.sub(r"[\s_-]", "", text.lower())

    squeezed = squeeze(name)
    words = {squeeze(column): column for column in known}
    close = get_close_matches(squeezed, words, 1, LOOKALIKE)
    # Two slips change more of a name of eight letters than that.
    close += [word for word in words if len(word) >= 8 and count_slips(squeezed, word) <= 2]
    return words[close[0]] if close else None


def count_slips(text: str, word: str) -> int:
    """Return how many letters of a word were changed, swapped, added or left out in a text.

    Of texts that are much longer or shorter only the difference in length is counted.
    """
    if abs(len(text) - len(word)) > 2:
        return abs(len(text) - len(word))
    row: list[int] = [*range(len(word) + 1)]
    above = row
    for i, letter in enumerate(text):
        before, above, row = above, row, [i + 1]
        for k, expected in enumerate(word):
            slips = min(above[k] + (letter != expected), above[k + 1] + 1, row[k] + 1)
            if i and k and (letter, text[i - 1]) == (word[k - 1], expected):
                slips = min(slips, before[k - 1] + 1)
            row.append(slips)
    return row[-1]
