"""Tables as other systems export them: encodings, separators, headers, further columns, rows of texts."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import unicodedata
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from acerl_np.problem.columns import TableKind
from acerl_np.problem.export import Export
from acerl_np.problem.fields import make_date_format
from acerl_np.problem.json_tree import refuse, shorten
from acerl_np.problem.limits import MAX_COLUMNS
from acerl_np.problem.synonyms import find_synonyms
from acerl_np.support import errors
from acerl_np.support.errors import RecordError
from acerl_np.support.faults import Fault, RecordWarning, count_rows, list_causes
from acerl_np.support.files import FilePath, read_bytes, show_path
from acerl_np.support.report import unmark_text

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Separators of columns, and what they are called."""

NO_SEPARATOR = re.compile(r'[^\s,;"\ufeff]')
MARKED = re.compile(r"\s*[+-]?(?=[0-9]*[.,])[0-9.,]*[0-9]\s*")
"""A number with a mark before its decimals or between thousands."""

WELL_FORMED = {
    mark: re.compile(rf"\s*[+-]?([1-9][0-9]{{0,2}}([{x}][0-9]{{3}})+|[0-9]*)([{mark}][0-9]+)?\s*")
    for mark, x in (".,", ",.")
}
"""Numbers with a point before their decimals, or a comma, and the other one between thousands."""

SEPARATOR_LINE = re.compile(r'\s*"?sep=([,;\t])"?[\r\n]')
"""A first line that says what separates the columns, as spreadsheets understand it."""

EMPTY = re.compile(r"\s*(?:[-–—]\s*)?")
"""A field of a time or a number that says nothing."""

LOOKALIKE = 0.83
"""How much of two names agrees if one is the other misspelt, as difflib rates it."""

HEAD = 20
"""Rows among which the header is looked for."""

MAX_HEADER = 600
"""Characters of a header that an error shows."""

SAMPLE = 2000
"""Bytes or rows that tell of what form a table is."""

PLACE = re.compile(r"column[ _]([0-9]{1,4})")
"""A column by its place in the file."""

AS_TEXT = re.compile(r'\s*="([^"]*)"\s*')
"""A cell that a spreadsheet is to take for a text, as it would drop the zeros before a number."""

MIDNIGHT = re.compile(r"[T ]0?0:00(:00([.,]0+)?)?$")
NO_DAY = re.compile(r"^(1899-12-3[01]|1900-01-00|3[01]\.12\.1899)[T ]")
"""What a date alone has for a time of day, and a time of day alone for a date."""


class Columns(NamedTuple):
    """What a header says: where each known column stands `at` in a line, and the others.

    One column may be made up of two positions. `named` are the known ones as the file names them, `ignored`
    the others; one without a name is "column 3". The header stands on `line`.
    """

    at: dict[str, tuple[int, ...]]
    named: tuple[str, ...]
    ignored: tuple[str, ...]
    line: int

    @property
    def share_date(self) -> bool:
        """Whether arrivals and due times are two times of day beside one date."""
        arrival, expiry = self.at["arrival_time"], self.at.get("expiry_time", ())
        return arrival != expiry and bool({*arrival} & {*expiry})


class Table(NamedTuple):
    """A table as it was read: texts by known column, where each row stands, and what is no row.

    Places are such as "line 2". `delimiter` is empty in a workbook; `form` is the encoding, or the sheet.
    """

    rows: list[dict[str, str]]
    places: list[str]
    columns: Columns
    delimiter: str
    form: str
    faults: list[Fault]


class Lines(NamedTuple):
    """A header, its line and how many known columns it names; and the rows below that are not blank."""

    line: int
    header: list[str]
    rate: int
    rows: list[tuple[int, list[str]]]
    delimiter: str
    form: str


@contextmanager
def read_table(
    kind: TableKind,
    path: FilePath,
    export: Export,
    *,
    lines: Lines | None = None,
    stacklevel: int = 2,
) -> Iterator[Table]:
    """Give a block a file's table, or that of its `lines`; errors of the block name the file.

    After it a `RecordWarning` names columns that are not read, for the line `stacklevel` calls above the
    block.
    """
    lines = lines or open_table(kind, path, export)
    with name_file(path):
        table = parse_table(kind, lines, export)
        yield table
    if table.columns.ignored:
        ignored = RecordWarning(show_path(path), table.columns.ignored)
        # Between this line and that of the block is contextlib's.
        warnings.warn(ignored, stacklevel=stacklevel + 3)


def open_table(kind: TableKind, path: FilePath, export: Export) -> Lines:
    """Return a file's header and rows, and of what form it is; errors name the file."""
    data = read_bytes(path, RecordError, streams=True)
    found: list[Lines] = []
    with name_file(path):
        if data.startswith(OLD_WORKBOOK):
            raise RecordError("an old workbook (.xls); expected it saved as .xlsx or CSV")
        if data.startswith(WORKBOOK):
            for sheet, cells in read_workbook(data, export.sheet, show_path(path)):
                found.append(_find_header(kind, enumerate(cells, 1), export.columns, "", sheet))
                if found[-1].rate > 1:
                    return found[-1]
        else:
            text, encoding = decode(data, export.encoding)
            stated = SEPARATOR_LINE.match(text)
            delimiter = stated[1] if stated else _find_delimiter(kind, text, export.columns)
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            rows = itertools.islice(_read_lines(reader), int(stated is not None), None)
            found.append(_find_header(kind, rows, export.columns, delimiter, encoding))
            # A mapping that names a sheet also reads what was converted.
            plain = {normalise(field) for field in found[0].header}
            if export.sheet is not None and not plain.issuperset(kind.required):
                raise RecordError(
                    f"sheet (--sheet): read {shorten(export.sheet)}, but the file is text; "
                    "expected a workbook (.xlsx), or no sheet"
                )
        if not (found and found[0].header):
            expected = f"a header and one line per {kind.noun}"
            raise RecordError(f"the file is empty; expected {expected}")
    return found[0]


def _find_header(
    kind: TableKind,
    rows: Iterable[tuple[int, list[str]]],
    mapping: Mapping[str, str],
    delimiter: str,
    form: str,
) -> Lines:
    """Find the header: the row that names most known columns, as titles may stand above; or the first."""
    filled = [item for item in rows if any(field.strip() for field in item[1])]
    head = filled[:HEAD] or [(0, [])]
    rates = [_rate(kind, fields, mapping) for _, fields in head]
    k = rates.index(max(rates)) if max(rates) > 1 else 0
    return Lines(*head[k], rates[k], filled[k + 1 :], delimiter, form)


def parse_table(kind: TableKind, lines: Lines, export: Export) -> Table:
    """Tell the columns of a file's rows by the names in its header."""
    columns = _match_columns(kind, lines, export.columns)
    used, n = columns.at.items(), len(lines.header)
    # A date that two columns share makes no moment of an empty time of day.
    n_uses = Counter(itertools.chain(*columns.at.values()))
    own = {
        name: [k for k in at if n_uses[k] == 1] or at for name, at in used if name in kind.numbers
    }
    rows: list[dict[str, str]] = []
    places: list[str] = []
    faults: list[Fault] = []
    for line, fields in lines.rows:
        if len(fields) != n:
            if not lines.delimiter:  # a workbook leaves out empty cells at the end of a row
                fields = [*fields, *[""] * (n - len(fields))]
            fields = fields[:n] + [x for x in fields[n:] if x]
        if len(fields) != n:
            names = shorten(",".join([*columns.at, *columns.ignored]))[1:-1]
            text = f"{len(fields)} fields; expected {n} ({names})"
            faults.append(Fault(f"line {line}", "", errors.describe(",".join(fields)), text))
            continue
        if fields == lines.header:  # a new page begins
            continue
        row = {
            name: _join([fields[k] for k in at]) if at[1:] else fields[at[0]] for name, at in used
        }
        for name, value in row.items():
            if value[:1] == "=":
                row[name] = AS_TEXT.sub(r"\1", value)
            elif value[:1] == "'":
                row[name] = unmark_text(value)
        for name, at in own.items():
            if all(EMPTY.fullmatch(fields[k]) for k in at):
                row[name] = ""
        rows.append(row)
        places.append(f"line {line}")
        if len(rows) > kind.limit:
            raise RecordError(f"line {line}: more than {kind.limit:,} {kind.noun}s; expected fewer")
    # What was converted has decimal points, whatever a mapping says.
    is_plain = lines.delimiter == "," and {*map(normalise, columns.named)} <= {*kind.known}
    may_be_converted = is_plain and not any("," in row[name] for row in rows for name in own)
    if lines.delimiter != "," or (export.decimal and not (is_plain and export.columns)):
        for name in own:
            _unify_numbers(name, rows, places, export, may_be_converted)
    return Table(rows, places, columns, lines.delimiter, lines.form, faults)


def _match_columns(kind: TableKind, lines: Lines, mapping: Mapping[str, str]) -> Columns:
    """Find the known columns; case does not matter, and blanks count as underscores.

    Other columns are passed over, unless one looks like a known column that the header lacks and no
    mapping says what is what.
    """
    line, header = lines.line, lines.header
    if len(header) > MAX_COLUMNS:
        raise RecordError(f"line {line}: {len(header):,} columns; expected at most {MAX_COLUMNS:,}")
    places: dict[str, list[int]] = {}
    for k, column in enumerate(header):
        places.setdefault(normalise(column), []).append(k)
    found: dict[str, tuple[int, ...]] = {}
    lost: dict[str, str] = {}
    for name in kind.known:
        # What was converted has the columns' own names, whatever a mapping says.
        for column in dict.fromkeys((mapping.get(name, name), name)):
            try:
                found[name] = _find_positions(column, places, lines)
                lost.pop(name, None)
                break
            except LookupError as error:
                if column != name:
                    lost[name] = f"{name}: {error}"
    if lost:
        told = "; ".join(lost.values())
        shown = shorten(",".join(header), MAX_HEADER)
        raise RecordError(f"line {line}: {told} (read {shown})")
    taken = {k for positions in found.values() for k in positions}
    others = [k for k in range(len(header)) if k not in taken]
    lacking = [name for name in kind.known if name not in found]
    missing = [name for name in kind.required if name in lacking]
    for k in others if not mapping else ():
        lookalike = find_lookalike(header[k], missing or lacking)
        if lookalike is not None:
            raise RecordError(
                f"line {line}: column '{errors.describe(header[k].strip())}': looks like '{lookalike}'; "
                "expected that name, or a more different one for a column that is not read"
            )
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        meant = find_synonyms(header)
        advice = ",".join(f"{x}={'+'.join(meant.get(x, ['COLUMN']))}" for x in missing)
        advice = f', or records convert --columns (mapping=) such as "{advice}"'
        if "expiry_time" in missing:
            advice += ", or --due SECONDS for tasks that are all due so long after they arrive"
        if missing[1:]:
            advice += "; acerl-np records convert knows other names of columns"
        raise RecordError(
            f"line {line}: missing column{'s' * bool(missing[1:])} {names}; read "
            f"{shorten(','.join(header), MAX_HEADER)}, expected columns "
            f"{','.join(kind.required)}{advice if 'task' in kind.known else ''}"
        )
    found = dict(sorted(found.items(), key=lambda item: item[1]))
    named = tuple("+".join(header[k].strip() for k in positions) for positions in found.values())
    ignored = tuple(header[k].strip() or f"column {k + 1}" for k in others)
    return Columns(found, named, ignored, line)


def _find_delimiter(kind: TableKind, text: str, mapping: Mapping[str, str]) -> str:
    """Return which of `DELIMITERS` finds most known columns in the header."""
    numbered = enumerate(io.StringIO(text, None), 1)
    filled = itertools.dropwhile(lambda item: not NO_SEPARATOR.search(item[1]), numbered)
    head = [(k, line.rstrip("\n")) for k, line in itertools.islice(filled, HEAD)]
    if not head:
        return ","
    lines = [line for _, line in head]
    rates = {
        mark: max(_rate(kind, row, mapping) for row in _split_lines(lines, mark))
        for mark in DELIMITERS
    }
    most = max(rates.values())
    if most == 0:
        # Of as many commas as semicolons the commas are decimal ones.
        return max(";\t,", key=lambda mark: sum(line.count(mark) for line in lines))
    best = [mark for mark, rate in rates.items() if rate == most]
    if len(best) > 1 and sum(mark in lines[0] for mark in best) > 1:
        expected = "columns separated by commas, semicolons or tabs, one of them throughout"
        refuse(f"line {head[0][0]}", lines[0].strip(), expected, RecordError)
    return best[0]


def _rate(kind: TableKind, row: Sequence[str], mapping: Mapping[str, str]) -> int:
    """Return how many known columns a row names."""
    words = {normalise(word) for x in kind.known for word in mapping.get(x, x).split("+")}
    words |= {normalise(name) for name in (*kind.known, *mapping.values())}
    return len({normalise(field) for field in row} & words)


@contextmanager
def name_file(path: FilePath) -> Iterator[None]:
    """Begin the errors of a table with its file's name."""
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{show_path(path)}: {error}", error.faults, error.n_rows) from error


def decode(data: bytes, encoding: str | None) -> tuple[str, str]:
    """Return a text and its encoding: UTF-8 and UTF-16 as the bytes tell, else what is said, or Windows-1252.

    So a mapping that says an encoding also reads what was converted.
    """
    head = data[:SAMPLE]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        tried = ["utf-16"]
    elif head.count(0) > 0.3 * len(head):
        # Of most letters one byte is zero: the second, or the first.
        tried = ["utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"]
    elif encoding is not None and data.isascii() and "a".encode(encoding) == b"a":
        tried = [encoding]
    else:
        tried = ["utf-8-sig", encoding or "cp1252"]
    for name in tried:
        try:
            return data.decode(name).removeprefix("\ufeff"), name.removesuffix("-sig")
        except UnicodeError as error:
            at = getattr(error, "start", 0)
    known = (codecs.lookup(name).name.upper().removesuffix("-SIG") for name in tried)
    names = " or ".join(dict.fromkeys(known))
    line = data.count(b"\n", 0, at) + 1
    raise RecordError(
        f"line {line}: byte 0x{data[at]:02x} is not {names}; expected text in "
        "another encoding (--encoding)"
    )


def _read_lines(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield a file's rows, each with its line; what is no CSV is an error that names it."""
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        wrong = errors.make_printable(str(error))  # it may show a tab
        raise RecordError(f"line {reader.line_num}: not CSV: {wrong}") from error


def _split_lines(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    for line in lines:
        try:
            yield next(csv.reader([line], delimiter=delimiter, strict=True), [])
        except csv.Error:
            yield []


def _find_positions(
    column: str, places: Mapping[str, Sequence[int]], lines: Lines
) -> tuple[int, ...]:
    """Return where a column stands that the file calls so; `LookupError` says what the header lacks."""
    found = []
    for part in [column] if normalise(column) in places else column.split("+"):
        at = places.get(normalise(part), ())
        by_place = PLACE.fullmatch(part.strip().lower())
        if not at and by_place is not None and 1 <= int(by_place[1]) <= len(lines.header):
            at = (int(by_place[1]) - 1,)
        if not at:
            raise LookupError(
                f"no column '{errors.describe(part)}'{errors.suggest_name(part, lines.header)}"
            )
        if len(at) > 1:
            raise RecordError(
                f"line {lines.line}: column '{errors.describe(part)}' stands twice; expected it once, or its "
                f"place by --columns: 'column {at[0] + 1}' or 'column {at[1] + 1}'"
            )
        found.append(at[0])
    return tuple(found)


def _join(parts: Sequence[str]) -> str:
    """Return the fields that make up one: a date without midnight, a time of day without a day."""
    first, *others = (part.strip() for part in parts)
    if len(first) > 10:  # longer than a date
        first = MIDNIGHT.sub("", first)
    others = [NO_DAY.sub("", other) if len(other) > 12 else other for other in others]
    return " ".join(filter(None, [first, *others]))


def _unify_numbers(
    name: str,
    rows: Sequence[dict[str, str]],
    places: Sequence[str],
    export: Export,
    may_be_converted: bool,
) -> None:
    """Give a column's numbers a decimal point and nothing between thousands.

    Where nothing tells whether a mark stands between thousands, a `RecordError` asks.
    """
    form = make_date_format(export.date_format)
    texts = {
        k: row[name]
        for k, row in enumerate(rows)
        if MARKED.fullmatch(row[name])
        and not isinstance(row[name], Number)
        and not (form and form.read(row[name].strip()))
    }
    marks = [x for x, form in WELL_FORMED.items() if all(map(form.fullmatch, texts.values()))]
    decimal = export.decimal or (marks[0] if len(marks) == 1 else None)
    for k, text in texts.items():
        is_either = all(form.fullmatch(text) for form in WELL_FORMED.values())
        if may_be_converted and decimal == ",":
            if is_either:
                expected = "no points between thousands, as what was converted has decimal points"
                refuse(f"{places[k]}: {name}", text, expected, RecordError)
            continue
        if is_either and decimal is None:
            own, other = ".," if "." in text else ",."
            small, large = text.strip().replace(",", "."), text.strip().replace(own, "")
            expected = (
                f"--decimal (decimal=) '{own}' for {float(small):g}, or '{other}' for {large}"
            )
            refuse(f"{places[k]}: {name}", text, expected, RecordError)
        mark = decimal or ("," if "," in text else ".")
        if WELL_FORMED[mark].fullmatch(text):
            rows[k][name] = text.replace("." if mark == "," else ",", "").replace(",", ".")
        elif export.decimal:
            expected = f"'{mark}' before decimals (--decimal), groups of three before it"
            refuse(f"{places[k]}: {name}", text, expected, RecordError)


def refuse_faults(faults: Sequence[Fault], n_rows: int, advice: str = "") -> None:
    """Refuse a table with bad rows, by the first of them; `advice` says what helps."""
    if not faults:
        return
    faults = sorted(faults, key=find_line)
    n_bad, causes = len({fault.place for fault in faults}), list_causes(faults)
    advice = advice if n_bad < n_rows else ""
    several = ""
    if advice or n_bad > 1:
        shared = f", of {len(causes):,} causes" * (1 < len(causes) < len(faults))
        several = f" ({count_rows(faults, n_rows)} are bad{shared}{advice})"
    raise RecordError(f"{faults[0]}{several}", faults, n_rows)


def find_line(fault: Fault) -> int:
    """Return the number in a fault's place."""
    return int(re.sub("[^0-9]", "", fault.place) or 0)


def normalise(name: str) -> str:
    """Return a column's name in small letters, its blanks as underscores, accents composed."""
    return "_".join(unicodedata.normalize("NFC", name).strip("\ufeff \t").lower().split())


def find_lookalike(name: str, known: Sequence[str]) -> str | None:
    """Return the known column that a name is probably meant for, None if it is another column."""
    plain = normalise(name).replace("-", "_")
    return next(iter(get_close_matches(plain, known, 1, LOOKALIKE)), None)


# Workbooks, which openpyxl reads where it is installed

WORKBOOK, OLD_WORKBOOK = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
"""What a workbook begins with, and one of before 2007."""

FORMULA = re.compile(rb"<f[ />]")

MAX_UNPACKED = 2**29
"""Largest unpacked workbook that is read."""


class Number(str):
    """A cell that is a number, as a text: its point stands before decimals."""

    __slots__ = ()


def read_workbook(
    data: bytes, sheet: str | None, shown: str
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the sheets of a workbook, or the one of this name: each row's cells as texts.

    Without openpyxl a `MissingExtraError` names the file, `shown`.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise errors.MissingExtraError(
            f"{shown}: a workbook, and openpyxl is not installed; install it with: pip install "
            "'acerl_np[excel]', or save the sheet as CSV"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED:
                raise ValueError(f"more than {MAX_UNPACKED:,} bytes")
            has_formulas = any(FORMULA.search(archive.read(name)) for name in archive.namelist())
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        names = [page.title for page in book.worksheets]
        if sheet is not None and sheet not in names:
            shown = errors.list_some([errors.make_printable(name) for name in names], 10)
            raise RecordError(f"sheet (--sheet): read {shorten(sheet)}; expected one of {shown}")
        formulas = load_workbook(io.BytesIO(data), read_only=True) if has_formulas else None
        for page in book.worksheets:
            if sheet in (None, page.title):
                pages = [page] if formulas is None else [page, formulas[page.title]]
                for each in pages:
                    each.reset_dimensions()  # what a file says of its size need not be true
                rows = zip(*(each.iter_rows() for each in pages), strict=True)
                yield page.title, [_show_row(*row) for row in rows]
    except RecordError:
        raise
    # Damaged bytes make zipfile and openpyxl raise nearly anything; all of it means the same here.
    except Exception as error:
        raise RecordError(
            f"not a readable workbook ({type(error).__name__}); expected .xlsx or CSV"
        ) from error


def _show_row(row: Sequence[Any], formulas: Sequence[Any] = ()) -> list[str]:
    """Return a row's cells as texts; a formula that nobody has worked out is one that begins with "="."""
    cells = [_show_cell(cell.value) for cell in row]
    for k, (cell, formula) in enumerate(zip(row, formulas, strict=False)):
        # What was worked out to no text is of the type "str".
        if cell.value is None and formula.value is not None and cell.data_type != "str":
            text = str(getattr(formula.value, "text", formula.value))
            cells[k] = "=" + text.removeprefix("=")
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
    if isinstance(cell, timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return Number(cell) if isinstance(cell, float) else str(cell)
