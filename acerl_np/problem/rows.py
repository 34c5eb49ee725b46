"""Rows of CSV files and what their fields hold: names, numbers, moments of time."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.limits import MAX_NUMBER
from acerl_np.support.errors import RecordError

TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"|[0-9]{8}T[0-9]{4}([0-9]{2}([.,][0-9]{1,9})?)?)"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
EXAMPLE = "2024-05-06T07:08:09"


def parse_csv(
    text: str,
    required: Sequence[str],
    optional: Sequence[str],
    *,
    numbers: Collection[str],
    noun: str,
    limit: int,
) -> tuple[list[dict[str, str]], list[str]]:
    """Split a CSV file into rows by the names in its header.

    Parameters
    ----------
    text : str
        Comma or semicolon separated; blank lines are passed over.
    required, optional : sequence of str
        Columns that must and that may stand in the header, in any order.
    numbers : collection of str
        Columns in which a file separated by semicolons may write decimals with a comma.
    noun : str
        What a line holds, for errors.
    limit : int
        Most rows.

    Returns
    -------
    rows : list of dict
        Texts by column.
    places : list of str
        Where each row stands: "line 2", ...

    Raises
    ------
    RecordError
        If the text is no CSV, a column is missing, unknown or twice, or there are too many rows.
    """
    header_line = text.lstrip("\r\n").split("\n", 1)[0]
    semicolons = header_line.count(";") > header_line.count(",")
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=";" if semicolons else ",", strict=True
    )
    header: list[str] | None = None
    rows: list[dict[str, str]] = []
    places: list[str] = []
    try:
        for fields in reader:
            line = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if header is None:
                header = [field.strip() for field in fields]
                _check_header(header, line, required, optional)
                continue
            if len(fields) != len(header):
                raise RecordError(
                    f"line {line}: {len(fields)} fields; expected {len(header)} ({','.join(header)})"
                )
            row = dict(zip(header, fields, strict=True))
            if semicolons:
                # Spreadsheets that separate by semicolons write decimals with a comma.
                for column in numbers:
                    if column in row:
                        row[column] = row[column].replace(",", ".")
            rows.append(row)
            places.append(f"line {line}")
            if len(rows) > limit:
                raise RecordError(f"line {line}: more than {limit:,} {noun}s; expected fewer")
    except csv.Error as error:
        raise RecordError(f"line {reader.line_num}: not CSV: {error}") from error
    if header is None:
        raise RecordError(f"the file is empty; expected a header and one line per {noun}")
    return rows, places


def _check_header(
    header: list[str], line: int, required: Sequence[str], optional: Sequence[str]
) -> None:
    known = (*required, *optional)
    if len(header) == 1 and "\t" in header[0]:
        raise RecordError(
            f"line {line}: read {shorten(header[0])}, separated by tabs; expected commas or semicolons "
            f"between the columns {','.join(known)}"
        )
    for column in header:
        if column not in known:
            raise RecordError(
                f"line {line}: unknown column {shorten(column)}; expected columns {','.join(known)}"
            )
        if header.count(column) > 1:
            raise RecordError(f"line {line}: column '{column}' stands twice; expected it once")
    for column in required:
        if column not in header:
            raise RecordError(
                f"line {line}: missing column '{column}'; read {shorten(','.join(header))}"
            )


def read_id(row: Mapping[str, Any], column: str, place: str) -> str:
    """Return the name in a field.

    Raises
    ------
    RecordError
        If it is empty, too long or not printable.
    """
    value = row.get(column)
    text = ""
    with suppress(ValueError):  # Python writes no number of more than 4,300 digits
        text = str(value).strip() if isinstance(value, str | int) else ""
    if not text or len(text) > 200 or not text.isprintable():
        raise RecordError(f"{place}: {column}: read {shorten(value)}; expected a name")
    return text


def is_blank(value: object) -> bool:
    """Whether a field is missing, empty or spaces."""
    return value is None or (isinstance(value, str) and not value.strip())


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
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    # "1_000" and "nan" are numbers to Python but slips in a record.
    if isinstance(value, str) and "_" in value:
        number = math.nan
    if not 0.0 <= number <= MAX_NUMBER:
        raise RecordError(
            f"{place}: {column}: read {shorten(value)}; expected a number{unit} from 0 to "
            f"{MAX_NUMBER:g}{alternative}"
        )
    return number + 0.0  # minus zero is zero


def read_moment(value: object) -> datetime | None:
    """Return the moment that an ISO 8601 timestamp names, None if `value` is none."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip()
    if TIMESTAMP.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # a 31st of June
        return None


class TimeColumn:
    """A column of times: all seconds, or all timestamps with or all without an offset from UTC.

    The first field decides for the others.

    Parameters
    ----------
    column : str
        Its name.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self._first: tuple[str, float | datetime] | None = None

    def read(self, row: Mapping[str, Any], place: str) -> float | datetime:
        """Return a field's seconds or moment.

        Parameters
        ----------
        row : mapping
        place : str

        Returns
        -------
        float or datetime

        Raises
        ------
        RecordError
            If it is neither, or of another kind than the column's first field.
        """
        raw = row.get(self.column)
        moment = read_moment(raw)
        value: float | datetime
        if moment is not None:
            value = moment
        else:
            value = read_number(
                row, self.column, place, alternative=f", or a timestamp such as {EXAMPLE}"
            )
        first_place, first = self._first = self._first or (place, value)
        expected = describe_kind(first)
        if describe_kind(value) != expected:
            shown = raw.isoformat() if isinstance(raw, datetime) else raw
            raise RecordError(
                f"{place}: {self.column}: read {shorten(shown)}; expected {expected}, as on "
                f"{first_place}"
            )
        return value


def describe_kind(value: float | datetime) -> str:
    """Return what kind of time this is: only times of one kind can be compared."""
    if not isinstance(value, datetime):
        return "a number of seconds"
    return f"a timestamp {'without' if value.utcoffset() is None else 'with'} an offset from UTC"


def count_seconds(
    value: float | datetime, epoch: datetime | None, column: str, place: str
) -> float:
    """Return a time in seconds from `epoch`; seconds stay what they are.

    Parameters
    ----------
    value : float or datetime
    epoch : datetime or None
        The moment of time zero, None if the record's times are seconds.
    column, place : str
        Where the time stands, for errors.

    Returns
    -------
    float

    Raises
    ------
    RecordError
        If `value` is a moment and cannot be counted from `epoch`, or lies too far from it.
    """
    if not isinstance(value, datetime):
        return value
    shown = shorten(value.isoformat())
    if epoch is None:
        raise RecordError(
            f"{place}: {column}: read {shown}; expected a number of seconds, as the tasks' "
            "arrival_time is in seconds"
        )
    if describe_kind(value) != describe_kind(epoch):
        raise RecordError(
            f"{place}: {column}: read {shown}; expected {describe_kind(epoch)}, as in the tasks' "
            "arrival_time"
        )
    seconds = (value - epoch).total_seconds()
    if abs(seconds) > MAX_NUMBER:
        raise RecordError(
            f"{place}: {column}: read {shown}; expected a moment within {MAX_NUMBER:g} s of "
            f"{epoch.isoformat()}"
        )
    return seconds
