"""Tables for people (text, Markdown) and for programs (CSV, JSON).

Tables for people have words in their cells, such as "1882.0/29.6". Those for programs have one number in
a cell, its unit in the column's name (`makespan_s`, `late_share`), and nothing where it is not known.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import math
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence

Cell = str | int | float | None

FORMATS = ("text", "csv", "json", "markdown")

DATA_FORMATS = ("csv", "json")
"""Those for programs."""


class Html(str):
    """Text that is HTML already."""


def clear_cell(cell: object) -> Cell:
    """Return a cell for programs: nan and infinity are None, numbers of NumPy plain ones."""
    if isinstance(cell, str) or cell is None:
        return cell
    value: bool | int | float = cell.item() if hasattr(cell, "item") else cell  # type: ignore[assignment]
    return None if isinstance(value, float) and not math.isfinite(value) else value


FORMULA = re.compile(r"'*[=+\-@\t\r].", re.DOTALL)
"""How a text begins that a spreadsheet would carry out, or that looks as if it was marked as one."""


def mark_text(cell: object) -> object:
    """Return a cell of a CSV file: a text that is no number and would be a formula has a "'" before it."""
    if not isinstance(cell, str) or FORMULA.match(cell) is None:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def unmark_text(text: str) -> str:
    """Return a cell without the mark of `mark_text`."""
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text


def render_csv(lines: Iterable[Sequence[object]]) -> str:
    """Return lines of cells as CSV; a spreadsheet carries none of its texts out."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(mark_text, line) for line in lines)
    return text.getvalue()


def render_data(rows: Sequence[Mapping[str, object]], form: str) -> str:
    """Return a table for programs, at least one row of the same columns, as "csv" or "json" with a newline.

    Numbers are as they are; where one is None, nan or infinite, null in JSON, an empty cell in CSV.
    """
    return render_table(list(rows[0]), [list(row.values()) for row in rows], form)  # type: ignore[arg-type]


def name_cells(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[dict[str, Cell]]:
    """Return a table's rows with each cell under its column's name; None for nan."""
    return [
        {name: clear_cell(cell) for name, cell in zip(header, row, strict=True)} for row in rows
    ]


def render_json(tables: Iterable[Mapping[str, object]]) -> str:
    """Return several tables as one JSON list, with a newline: of each its "rows", and what tells it apart."""
    return json.dumps(list(tables), indent=1, allow_nan=False) + "\n"


def render_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    form: str = "text",
    *,
    rules: Sequence[int] = (),
) -> str:
    """Return a table in one of `FORMATS`, as text that ends with a newline; or as `Html`.

    The first column is aligned left, the others right; a rule is drawn before the rows `rules` of "text".
    On a terminal what is wider than that goes on below, as a "text" with the first column again.
    """
    if form == "json":
        return render_json(name_cells(header, rows))
    if form == "csv":
        return render_csv([header, *([clear_cell(cell) for cell in row] for row in rows)])
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    n = len(header)
    if form == "markdown":
        lines = [f"| {' | '.join(row)} |" for row in (header, *cells)]
        lines.insert(1, f"| --- |{' ---: |' * (n - 1)}")
        return "\n".join(lines) + "\n"
    if form == "html":
        rows_shown = (
            "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row)
            for tag, row in zip(("th", *["td"] * len(cells)), (header, *cells), strict=True)
        )
        return Html(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows_shown)}</table>\n")
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    fitting = n
    if sys.stdout.isatty():
        ends = itertools.accumulate(2 + width for width in widths)
        fitting = max(2, sum(end - 2 <= shutil.get_terminal_size().columns for end in ends))
    if fitting < n:
        first = render_table(header[:fitting], [row[:fitting] for row in rows], rules=rules)
        rest = [[row[0], *row[fitting:]] for row in (header, *rows)]
        return f"{first}\n{render_table(rest[0], rest[1:], rules=rules)}"  # type: ignore[arg-type]
    rule = "-" * (sum(widths) + 2 * (n - 1))
    lines = []
    for k, row in enumerate([header, *cells]):
        aligned = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        lines += [rule] if k == 1 or k - 1 in rules else []
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines) + "\n"
