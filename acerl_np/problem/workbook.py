"""Tables in a workbook (.xlsx), read by openpyxl where it is installed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from acerl_np.problem.json_tree import shorten
from acerl_np.support.errors import MissingExtraError, RecordError, list_some, make_printable

ZIP, OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
"""What a workbook begins with, and one of before 2007."""

MAX_BYTES = 2**29
"""Largest unpacked workbook that is read."""


class Number(str):
    """A cell that is a number, as a text: its point stands before decimals."""

    __slots__ = ()


def is_workbook(data: bytes) -> bool:
    """Whether a file is a workbook, by its bytes; one of before 2007 is refused."""
    if data.startswith(OLD):
        raise RecordError("an old workbook (.xls); expected it saved as .xlsx or CSV")
    return data.startswith(ZIP)


def read_workbook(
    data: bytes, sheet: str | None, shown: str
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the sheets of a workbook, or the one of this name: each row's cells as texts.

    Without openpyxl a `MissingExtraError` names the file, `shown`.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError(
            f"{shown}: a workbook, and openpyxl is not installed; install it with: pip install "
            "'acerl_np[excel]', or save the sheet as CSV"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES:,} bytes")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        names = [page.title for page in book.worksheets]
        if sheet is not None and sheet not in names:
            shown = list_some([make_printable(name) for name in names], 10)
            raise RecordError(f"sheet (--sheet): read {shorten(sheet)}; expected one of {shown}")
        for page in book.worksheets:
            if sheet in (None, page.title):
                page.reset_dimensions()  # what a file says of its size need not be true
                yield page.title, [_show_row(row) for row in page.iter_rows(values_only=True)]
    except RecordError:
        raise
    # Damaged bytes make zipfile and openpyxl raise nearly anything; all of it means the same here.
    except Exception as error:
        raise RecordError(
            f"not a readable workbook ({type(error).__name__}); expected .xlsx or CSV"
        ) from error


def _show_row(row: tuple[Any, ...]) -> list[str]:
    cells = [_show_cell(cell) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _show_cell(cell: Any) -> str:
    """Return a cell as a CSV would have it; moments as ISO 8601."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return Number(cell) if isinstance(cell, float) else str(cell)
