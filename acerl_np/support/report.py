"""Tables for people (text, Markdown, LaTeX) and for programs (CSV, JSON).

Tables for people have words in their cells, such as "1882.0/29.6". Those for programs have one number in
a cell, its unit in the column's name (`makespan_s`, `late_share`), and nothing where it is not known.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence

Cell = str | int | float | None

FORMATS = ("text", "csv", "json", "markdown", "latex")

DATA_FORMATS = ("csv", "json")
"""Those for programs."""


def _show(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def clear_cell(cell: object) -> Cell:
    """Return a cell for programs: nan and infinity are None, numbers of NumPy plain ones."""
    if isinstance(cell, str) or cell is None:
        return cell
    value: bool | int | float = cell.item() if hasattr(cell, "item") else cell  # type: ignore[assignment]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render_csv(lines: Iterable[Sequence[object]]) -> str:
    """Return lines of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
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
    """Return a table as text that ends with a newline.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences
        Cells; the first column is aligned left, the others right.
    form : {"text", "csv", "json", "markdown", "latex"}
    rules : sequence of int
        Rows before which a rule is drawn ("text" and "latex").

    Returns
    -------
    str
    """
    if form == "json":
        return render_json(name_cells(header, rows))
    if form == "csv":
        rows = [[clear_cell(cell) for cell in row] for row in rows]
    cells = [[_show(cell) for cell in row] for row in rows]
    if form == "csv":
        return render_csv([header, *cells])
    if form == "markdown":
        lines = [f"| {' | '.join(header)} |", f"| --- |{' ---: |' * (len(header) - 1)}"]
        lines += [f"| {' | '.join(row)} |" for row in cells]
        return "\n".join(lines) + "\n"
    if form == "latex":
        return _render_latex(header, cells, rules)
    widths = [max(len(line[k]) for line in [list(header), *cells]) for k in range(len(header))]

    def align(line: Sequence[str]) -> str:
        first = line[0].ljust(widths[0])
        rest = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        return "  ".join([first, *rest]).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [align(header), rule]
    for k, row in enumerate(cells):
        if k in rules:
            lines.append(rule)
        lines.append(align(row))
    return "\n".join(lines) + "\n"


LATEX_SPECIALS = {"%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#", "±": r"$\pm$", "~": r"$\approx$"}


def _render_latex(
    header: Sequence[str], cells: Sequence[Sequence[str]], rules: Sequence[int]
) -> str:
    def escape(text: str) -> str:
        return "".join(LATEX_SPECIALS.get(letter, letter) for letter in text)

    lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(escape, header)) + r" \\", r"\midrule"]
    for k, row in enumerate(cells):
        if k in rules:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(escape, row)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
