"""How another system writes its tables: columns, encoding, dates, sheet, and how they fall into records."""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from acerl_np.problem.fields import CLOCK_DAY, is_clock, make_date_format, parse_number
from acerl_np.problem.json_tree import at, flag, is_name, names, part, plain, refuse, text
from acerl_np.problem.limits import MAX_ALIASES, MAX_NAME, MAX_NUMBER
from acerl_np.problem.source import FilePath
from acerl_np.problem.task_rows import PAST, RECORD
from acerl_np.support.errors import InputError, LayoutError, RecordError
from acerl_np.support.fields import Field
from acerl_np.support.files import read_text, show_path

# Several records of one table: by a calendar of shifts, by days, or by pauses

SHIFTS = "06:00/14:00/22:00"
"""When shifts begin unless it is said."""

DAY = 86400.0
CALENDAR = re.compile(r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?:/(?:[01]?[0-9]|2[0-3]):[0-5][0-9])*")


class Parting(NamedTuple):
    """How a table falls into records: where shifts begin, s after midnight, or after pauses above `gap`, s.

    A record of a whole `day` counts from its first arrival, that of a shift from the shift's beginning.
    """

    starts: tuple[float, ...] = ()
    gap: float = 0.0
    day: bool = False


class Part(NamedTuple):
    """One record of several: what its name ends in, and its time zero, s.

    `ahead` is by how much its first row's clock is ahead of that of time zero, s.
    """

    name: str
    zero: float
    ahead: float = 0.0


def find_parting(text: str | None) -> Parting | None:
    """Return what --split says, None if it says nothing; an `InputError` refuses what cannot be said."""
    if text is None:
        return None
    if text == "day":
        return Parting((0.0,), day=True)
    found = SHIFTS if text == "shift" else text
    if CALENDAR.fullmatch(found):
        clocks = [clock.split(":") for clock in found.split("/")]
        starts = sorted(3600.0 * int(hours) + 60.0 * int(minutes) for hours, minutes in clocks)
        if len(set(starts)) == len(starts):
            return Parting(tuple(starts))
    gap = parse_number(text)
    if not 1.0 <= gap <= MAX_NUMBER:
        expected = (
            f"shift, day, beginnings of shifts such as {SHIFTS}, or a pause in seconds such as 3600"
        )
        refuse("split (--split)", text, expected, InputError)
    return Parting(gap=gap)


def part_rows(
    arrival: np.ndarray, epoch: datetime | None, parting: Parting, ahead: np.ndarray
) -> tuple[list[Part], np.ndarray]:
    """Return the records that tasks fall into, and which each does, int64 (n_rows,).

    They fall by their arrivals, float64 (n_rows,), s from `epoch`.
    Shifts begin by the clock of their tasks, which is `ahead` of that of `epoch`, float64 (n_rows,), s.
    """
    if epoch is not None and epoch.tzinfo is not None and not 1 < epoch.year < 9999:
        raise RecordError(
            f"split (--split): read tasks of the year {epoch.year}; expected one from 2 to 9998"
        )
    if parting.gap:
        order = np.argsort(arrival, kind="stable")
        key = np.empty(arrival.size)
        key[order] = np.cumsum(np.diff(arrival[order], prepend=arrival[order[0]]) > parting.gap)
    else:
        key = _find_beginnings(arrival + ahead, epoch, parting)
    found = []
    keys, which = np.unique(key, return_inverse=True)
    for k, own in enumerate(keys.tolist()):
        rows = np.flatnonzero(which == k)
        # The clock may change within a shift: it began by that of its first task.
        first = rows[np.argmin(arrival[rows])]
        by_first = parting.gap or parting.day
        zero = float(arrival[first] if by_first else own - ahead[first])
        name = f"{k + 1:0{len(str(keys.size))}d}"
        if epoch is not None and not parting.gap:
            day = "" if is_clock(epoch) else "%Y-%m-%d"
            clock = "" if parting.day else "%H%M"
            form = "-".join(filter(None, (day, clock)))
            name = (epoch + timedelta(seconds=own)).strftime(form) or name
        found.append(Part(name, zero, float(ahead[first])))
    return found, which


def _find_beginnings(arrival: np.ndarray, epoch: datetime | None, parting: Parting) -> np.ndarray:
    """Return when each task's shift or day began, s from `epoch` by the clock on the wall."""
    if epoch is None and not parting.day:
        raise InputError(
            "split (--split): read a calendar of shifts, but arrivals are in seconds; expected timestamps, "
            "or a pause in seconds such as 3600"
        )
    midnight = 0.0
    if epoch is not None:
        at = epoch.replace(tzinfo=None)
        midnight = (at - at.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
    starts = np.array([parting.starts[-1] - DAY, *parting.starts])
    # To the microsecond, as moments are: sums of seconds may fall short of a shift's beginning.
    day, clock = np.divmod(np.round(arrival + midnight, 6), DAY)
    begins: np.ndarray = day * DAY + starts[np.searchsorted(starts, clock, "right") - 1] - midnight
    if epoch is not None and is_clock(epoch) and epoch.date() == CLOCK_DAY.date():
        begins = np.maximum(begins, -midnight)  # times of day know no day before
    return begins


# The export itself

KNOWN = tuple(dict.fromkeys(RECORD.known + PAST.known))
"""Columns that a mapping may name."""


FIELDS = {
    "due": Field(float, 1.0, MAX_NUMBER, optional=True),
    "handling": Field(float, 0.0, MAX_NUMBER, optional=True),
    "decimal": Field((".", ","), optional=True, expected="',' or '.'"),
}
"""What can be looked at alone."""

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
        How dates are written besides ISO 8601, as `datetime.strptime` reads it.
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
        of a workbook and for what was converted.
    timezone : str, optional
        Of the plant, such as "Europe/Berlin": where moments with an offset from UTC, or counted since 1970,
        are read from the clock on the wall.
    sites : mapping of str to str
        What the record calls sites and stations of the floor: `{"Station 3": "station 03"}`. The floor's own
        names go before.

    Raises
    ------
    InputError
        If a column, an encoding, a date format, a split, a number of seconds, a mark of decimals or a time
        zone is none.
    """

    columns: Mapping[str, str] = field(default_factory=dict, metadata=at(names(text(), len(KNOWN))))
    encoding: str | None = field(default=None, metadata=TEXT)
    date_format: str | None = field(default=None, metadata=TEXT)
    sheet: str | None = field(default=None, metadata=TEXT)
    split: str | None = field(default=None, metadata=TEXT)
    skip_bad: bool = field(default=False, metadata=at(flag()))
    due: float | None = field(default=None, metadata=at(plain(FIELDS["due"])))
    handling: float | None = field(default=None, metadata=at(plain(FIELDS["handling"])))
    decimal: str | None = field(default=None, metadata=TEXT)
    timezone: str | None = field(default=None, metadata=TEXT)
    sites: Mapping[str, str] = field(default_factory=dict, metadata=at(names(text(), MAX_ALIASES)))

    def __post_init__(self) -> None:
        """Look at what can be looked at without a file."""
        for name, column in self.columns.items():
            if name not in KNOWN or not is_name(column):
                expected = f"KNOWN=COLUMN with one of {', '.join(KNOWN)}"
                refuse("columns (--columns)", f"{name}={column}", expected, InputError)
        for name, kind in FIELDS.items():
            kind.read(f"{name} (--{name})", getattr(self, name), InputError)
        make_date_format(self.date_format, self.timezone)
        find_parting(self.split)
        if self.encoding is not None:
            try:
                "a".encode(codecs.lookup(self.encoding).name)
            except (LookupError, ValueError):
                expected = "one such as utf-8, utf-16, cp1252"
                refuse("encoding (--encoding)", self.encoding, expected, InputError)


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
        found: Export = part(Export).read({key.replace("-", "_"): x for key, x in data.items()}, "")
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
