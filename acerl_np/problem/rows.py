"""Rows of CSV files and what their fields hold: names and numbers."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

from acerl_np.problem.columns import Columns, find_delimiter, match_columns
from acerl_np.problem.json_tree import shorten
from acerl_np.problem.limits import MAX_NUMBER
from acerl_np.support.errors import RecordError

DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+\s*")


SEPARATOR_LINE = re.compile(r'\s*"?sep=([,;\t])"?[\r\n]')
"""A first line that says what separates the columns, as spreadsheets understand it."""


class Table(NamedTuple):
    """A table as it was read.

    Attributes
    ----------
    rows : list of dict
        Texts by column, of the columns that are known.
    places : list of str
        Where each row stands: "line 2", ...
    columns : Columns
    delimiter : str
    """

    rows: list[dict[str, str]]
    places: list[str]
    columns: Columns
    delimiter: str


def parse_csv(
    text: str,
    required: Sequence[str],
    optional: Sequence[str],
    *,
    numbers: Collection[str],
    noun: str,
    limit: int,
    expected: Sequence[str] = (),
) -> Table:
    """Split a CSV file into rows by the names in its header.

    Parameters
    ----------
    text : str
        Separated by commas, semicolons or tabs; blank lines are passed over.
    required, optional : sequence of str
        Columns that must and that may stand in the header, in any order; others are passed over.
    numbers : collection of str
        Columns in which a file not separated by commas may write decimals with a comma.
    noun : str
        What a line holds, for errors.
    limit : int
        Most rows.
    expected : sequence of str
        Further names that a column may be a misspelling of.

    Returns
    -------
    Table

    Raises
    ------
    RecordError
        If the text is no CSV, a column is missing, misspelt or twice, or there are too many rows.
    """
    stated = SEPARATOR_LINE.match(text)
    delimiter = stated[1] if stated else find_delimiter(text, (*required, *optional))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: Columns | None = None
    rows: list[dict[str, str]] = []
    places: list[str] = []
    try:
        for fields in reader:
            line = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if stated is not None:
                stated = None
                continue
            if columns is None:
                columns = match_columns(fields, line, required, optional, expected)
                commas = [name for name in columns.used if name in numbers and delimiter != ","]
                pick = itemgetter(*columns.positions)
                continue
            if len(fields) != columns.n_fields:
                names = ",".join([*columns.used, *columns.ignored])
                raise RecordError(
                    f"line {line}: {len(fields)} fields; expected {columns.n_fields} ({shorten(names)[1:-1]})"
                )
            row = dict(zip(columns.used, pick(fields), strict=True))
            for name in commas:
                # Spreadsheets that separate by semicolons or tabs write decimals with a comma.
                if "," in row[name] and DECIMAL_COMMA.fullmatch(row[name]):
                    row[name] = row[name].replace(",", ".")
            rows.append(row)
            places.append(f"line {line}")
            if len(rows) > limit:
                raise RecordError(f"line {line}: more than {limit:,} {noun}s; expected fewer")
    except csv.Error as error:
        raise RecordError(f"line {reader.line_num}: not CSV: {error}") from error
    if columns is None:
        raise RecordError(f"the file is empty; expected a header and one line per {noun}")
    return Table(rows, places, columns, delimiter)


def read_id(row: Mapping[str, Any], column: str, place: str) -> str:
    """Return the name in a field.

    Raises
    ------
    RecordError
        If it is empty, too long or not printable.
    """
    value = row.get(column)
    text = value.strip() if isinstance(value, str) else ""
    if isinstance(value, int):
        with suppress(ValueError):  # Python writes no number of more than 4,300 digits
            text = str(value)
    if not text or len(text) > 200 or not text.isprintable():
        raise RecordError(f"{place}: {column}: read {shorten(value)}; expected a name")
    return text


def is_blank(value: object) -> bool:
    """Whether a field is missing, empty or spaces."""
    return value is None or (isinstance(value, str) and not value.strip())


def parse_number(value: object) -> float:
    """Return the number that a field holds, nan if it holds none."""
    # "1_000" is a number to Python but a slip in a record.
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def read_number(
    row: Mapping[str, Any],
    column: str,
    place: str,
    default: float | None = None,
    *,
    unit: str = " of seconds",
    alternative: str = "",
) -> float:
    """Return the number in a field, 0 to `MAX_NUMBER`.

    Parameters
    ----------
    row : mapping
    column, place : str
    default : float, optional
        Of an empty field; by default that is an error.
    unit, alternative : str
        What else the error's line says was expected.

    Returns
    -------
    float

    Raises
    ------
    RecordError
        If it is no number or out of range.
    """
    value = row.get(column)
    if default is not None and is_blank(value):
        return default
    number = parse_number(value)
    if not 0.0 <= number <= MAX_NUMBER:
        if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value):
            alternative = f", its decimals after a point{alternative}"
        raise RecordError(
            f"{place}: {column}: read {shorten(value)}; expected a number{unit} from 0 to "
            f"{MAX_NUMBER:g}{alternative}"
        )
    return number + 0.0  # minus zero is zero
