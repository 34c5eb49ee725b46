"""How another system writes its tables: columns, encoding, dates, sheet, names of sites."""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from acerl_np.problem.columns import PAST, RECORD
from acerl_np.problem.fields import FOLD_NAME, FOLDS, DateFormat, make_date_format
from acerl_np.problem.json_tree import Key, at, is_name, names, part, refuse, text
from acerl_np.problem.limits import MAX_ALIASES, MAX_NAME, MAX_NUMBER
from acerl_np.problem.parting import find_parting
from acerl_np.support.errors import InputError, LayoutError
from acerl_np.support.fields import Field
from acerl_np.support.files import FilePath, read_text, show_path

KNOWN = tuple(dict.fromkeys(RECORD.known + PAST.known))
"""Columns that a mapping may name."""


TEXT = at(text(None))


@dataclass(frozen=True)
class Export:
    """How the tables of another system are read.

    Attributes
    ----------
    columns : mapping of str to str
        What a file calls the columns of a record, or of past assignments: `{"task": "TA-Nr"}`. Two columns
        that make up one are "Datum+Uhrzeit"; "column 3" is the third.
    encoding : str, optional
        Of what is neither UTF-8 nor UTF-16, which the bytes tell; by default "cp1252".
    date_format : str, optional
        How dates are written besides ISO 8601, as `datetime.strptime` reads it. "excel": numbers are
        days since 1900, those of expiries from the year 2000 on; "seconds": they are seconds all the same.
    sheet : str, optional
        Of a workbook; by default the first with a header.
    split : str, optional
        Several records of one table: "shift", "day", shifts of your own such as "06:00/18:00", or pauses
        without arrivals of more than so many seconds.
    skip_bad : bool
        Leave out rows that cannot be read instead of refusing the table.
    due : float, optional
        When tasks are due that say nothing of it, s after their arrival.
    handling : float, optional
        Handling time of tasks that say nothing of it, s.
    decimal : str, optional
        "," or ".": what stands before decimals, the other one between thousands. It does not hold for numbers
        of a workbook, and for what was converted: of columns of other names, or without any comma in numbers.
    timezone : str, optional
        Of the plant, such as "Europe/Berlin": its clock on the wall is that of all moments, those with an
        offset from UTC or counted since 1970 among them.
    fold : str, optional
        "earlier" or "later": which moment is meant of those that this clock shows twice as it is put back.
        By default they are refused.
    sites : mapping of str to str
        What the record calls sites and stations of the floor: `{"Station 3": "station 03"}`. The floor's own
        names go before.

    Raises
    ------
    InputError
        If a column, an encoding, a date format, a split, a number of seconds, a mark of decimals or a time
        zone is none; or a fold stands without a zone.
    """

    columns: Mapping[str, str] = field(default_factory=dict, metadata=at(names(text(), len(KNOWN))))
    encoding: str | None = field(default=None, metadata=TEXT)
    date_format: str | None = field(default=None, metadata=TEXT)
    sheet: str | None = field(default=None, metadata=TEXT)
    split: str | None = field(default=None, metadata=TEXT)
    skip_bad: bool = field(default=False, metadata=at(Key(bool)))
    due: float | None = field(default=None, metadata=at(Key(float, 1.0, MAX_NUMBER, optional=True)))
    handling: float | None = field(
        default=None, metadata=at(Key(float, 0.0, MAX_NUMBER, optional=True))
    )
    decimal: str | None = field(
        default=None, metadata=at(Key((".", ","), optional=True, expected="',' or '.'"))
    )
    timezone: str | None = field(default=None, metadata=TEXT)
    fold: str | None = field(
        default=None, metadata=at(Key(FOLDS, optional=True, expected=" or ".join(FOLDS)))
    )
    sites: Mapping[str, str] = field(default_factory=dict, metadata=at(names(text(), MAX_ALIASES)))

    def __post_init__(self) -> None:
        """Look at what can be looked at without a file."""
        for name, column in self.columns.items():
            if name not in KNOWN or not is_name(column):
                expected = f"KNOWN=COLUMN with one of {', '.join(KNOWN)}"
                refuse("columns (--columns)", f"{name}={column}", expected, InputError)
        for own in fields(self):
            kind: Key = own.metadata["field"]
            if kind.reader is None:
                name = FOLD_NAME if own.name == "fold" else f"{own.name} (--{own.name})"
                Field.read(kind, name, getattr(self, own.name), InputError)
        self.make_date_format()
        find_parting(self.split)
        if self.encoding is not None:
            try:
                "a".encode(codecs.lookup(self.encoding).name)
            except (LookupError, ValueError):
                expected = "one such as utf-8, utf-16, cp1252"
                refuse("encoding (--encoding)", self.encoding, expected, InputError)

    def make_date_format(self) -> DateFormat | None:
        """Return how dates are read, None if nothing says it."""
        return make_date_format(self.date_format, self.timezone, self.fold)


PLAIN = Export()


def read_mapping(mapping: FilePath | Mapping[str, Any] | Export | None) -> Export:
    """Return how tables are read: by a TOML file, its content, or as is; `InputError` if it tells nothing."""
    if isinstance(mapping, Export):
        return mapping
    if mapping is None:
        return PLAIN
    if isinstance(mapping, Mapping):
        where, data = "mapping", dict(mapping)
    else:
        where = show_path(mapping)
        try:
            data = tomllib.loads(read_text(mapping, InputError))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"{where}: not TOML: {error}") from error
    try:
        found: Export = part(Export).read("", {key.replace("-", "_"): x for key, x in data.items()})
    except LayoutError as error:
        raise InputError(f"{where}: {error}") from error
    return found


def format_mapping(export: Export) -> str:
    """Return the file of a mapping."""
    quote = partial(json.dumps, ensure_ascii=False)
    lines = ["# How records of this form are read: --mapping FILE"]
    for name, value in vars(export).items():
        if value and not isinstance(value, Mapping):
            lines.append(f"{name} = {quote(value)}")
    columns = {name: export.columns[name] for name in KNOWN if name in export.columns}
    sites = {quote(name): own for name, own in export.sites.items()}
    for title, names_of in (("columns", columns), ("sites", sites)):
        if names_of:
            lines += ["", f"[{title}]", *(f"{name} = {quote(x)}" for name, x in names_of.items())]
    return "\n".join([*lines, ""])


COLUMN = re.compile(rf",\s*(?=(?:{'|'.join(KNOWN)})\s*=)")


def parse_columns(text: str) -> dict[str, str]:
    """Return what "task=TA-Nr,pickup=Von" says; a name of a file may hold a comma."""
    parts = [part.partition("=") for part in COLUMN.split(text)]
    return {name.strip(): column.strip()[:MAX_NAME] for name, _, column in parts}
