"""What fields of records hold: names, numbers, and times of many forms."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from acerl_np.problem.json_tree import is_name, refuse, shorten
from acerl_np.problem.limits import MAX_NUMBER
from acerl_np.support.errors import InputError, RecordError

TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"|[0-9]{8}T[0-9]{4}([0-9]{2}([.,][0-9]{1,9})?)?)"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
COMMAS = re.compile(r"\s*[+-]?[0-9.]*,[0-9.,]*[0-9]\s*")
CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?")
DATE = re.compile(
    r"(?![0-9]{4}-)[0-9]{1,4}([./-])[0-9]{1,2}\1([0-9]{1,4})?.{0,60}|20[0-9]{10}([0-9]{2})?"
)
FORMULA = re.compile(r"=|#([A-Z]+[!?]|N/A|NV|DIV/0!)$")
"""A formula of a spreadsheet, or what it shows where one has failed."""

LATE = re.compile(r"(?:^|(?<=[T ]))24(?=:?00(?::?00(?:[.,]0+)?)?(?![0-9:.,]))")
"""The hour of 24:00, which is 00:00 of the next day."""

EXCEL, SECONDS = "excel", "seconds"
"""In the place of a date format: numbers are days since 1900, as spreadsheets count them, or are seconds."""

EXCEL_ZERO = datetime(1899, 12, 30)
EXCEL_DAYS = 36_526.0, 73_051.0
"""First of the years 2000 and 2100, as spreadsheets count days."""

MOST_DAYS = 32.0
"""Numbers that lie within as many of each other may be days."""

EXAMPLE = "2024-05-06T07:08:09"

T = TypeVar("T")

Row = Mapping[str, Any]
"""A line of a table: its fields by column."""

Time = float | datetime
"""Seconds, or a moment."""

CLOCK_DAY = datetime(1, 1, 1)
"""The day of times of day: no record has real moments of the year 1."""

SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)

MAX_SINCE_1970 = 4e9
"""Seconds since 1970 are numbers above `MAX_NUMBER` (September 2001), up to this (2096).

Milliseconds are a thousand times as many.
"""

MAX_FORMAT = 100
"""Characters of a date format."""

FOLDS = ("earlier", "later")
"""Which moment is meant of those that a clock shows twice as it is put back."""
FOLD_OPTION = "--timezone ZONE,FOLD"
FOLD_NAME = f"fold ({FOLD_OPTION})"
"""How a command takes it, and what errors call it."""

TRIAL = datetime(2024, 5, 16, 17, 38, tzinfo=UTC)


def read_id(row: Row, column: str, place: str) -> str:
    """Return the name in a field; `RecordError` if it is empty, too long or not printable."""
    value = row.get(column)
    text = value.strip() if isinstance(value, str) else ""
    if FORMULA.match(text) and column in ("task", "after"):
        refuse(f"{place}: {column}", value, "a name, no formula", RecordError)
    if isinstance(value, int):
        with suppress(ValueError):  # Python writes no number of more than 4,300 digits
            text = str(value)
    return text if is_name(text) else refuse(f"{place}: {column}", value, "a name", RecordError)


def read_known(row: Row, place: str, column: str, known: Mapping[str, T], of: str) -> T:
    """Return what the name in a field stands for; `RecordError` if it is none of those `of` something."""
    name = read_id(row, column, place)
    if name not in known:
        raise RecordError(
            f"{place}: {column}: unknown {column} '{name}'; expected a {column} of {of}"
        )
    return known[name]


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
    row: Row,
    column: str,
    place: str,
    default: float | None = None,
    *,
    unit: str = " of seconds",
    alternative: str = "",
) -> float:
    """Return the number in a field, 0 to `MAX_NUMBER`, or the default of an empty one; else `RecordError`.

    `unit` and `alternative` say what else was expected.
    """
    value = row.get(column)
    if default is not None and is_blank(value):
        return default
    number = parse_number(value)
    if not 0.0 <= number <= MAX_NUMBER:
        if isinstance(value, str) and COMMAS.fullmatch(value):
            alternative = (
                f", or --decimal (decimal=) ',' or '.', what it has before decimals{alternative}"
            )
        expected = f"a number{unit} from 0 to {MAX_NUMBER:g}{alternative}"
        refuse(f"{place}: {column}", value, expected, RecordError)
    return number + 0.0  # minus zero is zero


class DateFormat(NamedTuple):
    """How a file writes dates, as `datetime.strptime` reads it; of times of day alone if `is_clock`.

    `zone` is that of the clock on the wall, if it is known, and `fold` which of two moments is meant that it
    shows alike when it is put back, see `FOLDS`. The text may be `EXCEL` or `SECONDS`.
    """

    text: str
    is_clock: bool
    zone: tzinfo | None = None
    fold: str | None = None

    def read(self, text: str) -> datetime | None:
        """Return the moment that a text names, None if it is not of this format."""
        try:
            moment = datetime.strptime(text, self.text or " ")
        except ValueError:
            return None
        return datetime.combine(CLOCK_DAY, moment.time()) if self.is_clock else moment

    def read_days(self, days: float) -> datetime | None:
        """Return the moment of so many days since 1900, below 1 a time of day; None if they are none."""
        if self.text != EXCEL or not 0.0 <= days < 2 * EXCEL_DAYS[1]:
            return None
        zero = CLOCK_DAY if days < 1.0 else EXCEL_ZERO
        return zero + timedelta(milliseconds=round(days * 86_400_000))


def find_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by its name; `InputError` if there is none, or the machine knows none at all."""
    if name is None or name == "UTC":
        return UTC if name else None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a folder of zones is no file
        expected = "a time zone such as Europe/Berlin"
        if not available_timezones():
            expected = "UTC: this machine knows no other zone until it has pip install tzdata"
        refuse("timezone (--timezone)", name, expected, InputError)


def make_date_format(
    text: str | None, zone: str | None = None, fold: str | None = None
) -> DateFormat | None:
    """Return a format or time zone that was asked for, None if none was.

    An `InputError` refuses what is none, names a day without its year, or no hour.
    """
    clock = find_zone(zone)
    if fold is not None and clock is None:
        refuse(FOLD_NAME, fold, "timezone beside it", InputError)
    if text is None or text in (EXCEL, SECONDS):
        return (
            None if text is None and clock is None else DateFormat(text or "", False, clock, fold)
        )
    parsed = None
    # A format may name one thing twice, or hold anything else that makes no pattern. Of a day without
    # its year newer Pythons warn.
    with suppress(ValueError, TypeError, re.error, UnicodeError):
        if len(text) <= MAX_FORMAT and ("%Y" in text or "%y" in text or "%d" not in text):
            parsed = datetime.strptime(TRIAL.strftime(text), text)
    # What names no day is read as of the first of 1900.
    day = None if parsed is None or parsed.hour != TRIAL.hour else parsed.date()
    is_clock = day == datetime(1900, 1, 1).date() and "%z" not in text
    if not is_clock and day != TRIAL.date():
        raise InputError(
            f"date_format (--date-format): read {shorten(text)}; expected a format such as "
            '"%d.%m.%Y %H:%M", with day, month, year and time, or with a time of day alone; '
            f"or '{EXCEL}', or '{SECONDS}'"
        )
    return DateFormat(text, is_clock, clock, fold)


def read_moment(
    value: object, date_format: DateFormat | None = None, where: str = ""
) -> datetime | None:
    """Return the moment that a field names, None if it names none.

    A time of day is one of `CLOCK_DAY`. Where the format has a zone all others have its offset from UTC:
    those with an offset, as numbers since 1970 have one, and those that are the zone's clock on the wall. Of
    the latter a `RecordError` says `where` none or two moments are meant; with "" they stay as they are.
    """
    moment = _find_moment(value, date_format)
    if moment is None or date_format is None or not (zone := date_format.zone):
        return moment
    if not moment.tzinfo:
        return place_moment(moment, date_format, where) if where else moment
    with suppress(OverflowError):  # of the first or the last day of all
        local = moment.astimezone(zone)
        # Python takes moments of one zone from each other without regard to its clock changes.
        return local.replace(tzinfo=timezone(local.utcoffset() or timedelta()))
    return moment


def place_moment(moment: datetime, date_format: DateFormat | None, where: str) -> datetime:
    """Return a moment of the clock on the wall with its offset from UTC, if the format has a zone.

    A `RecordError` refuses one that this clock leaves out, or shows twice and nothing says which is meant.
    """
    if date_format is None or not date_format.zone or moment.tzinfo or is_clock(moment):
        return moment
    named = (moment.replace(tzinfo=date_format.zone, fold=k) for k in range(2))
    earlier, later = (timezone(item.utcoffset() or timedelta()) for item in named)
    before, after = moment.replace(tzinfo=earlier), moment.replace(tzinfo=later)
    if before < after and date_format.fold is None:
        which = f"{FOLD_OPTION} (fold=), FOLD {' or '.join(FOLDS)}"
        expected = f"an offset from UTC, or {which}: the clock of {date_format.zone} shows it twice"
        refuse(where, show_moment(moment), expected, RecordError)
    if before > after:
        expected = f"a moment that the clock of {date_format.zone} shows: it was put forward"
        refuse(where, show_moment(moment), expected, RecordError)
    return after if date_format.fold == FOLDS[1] else before


def _find_moment(value: object, date_format: DateFormat | None) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, time) and value.tzinfo is None:
        return datetime.combine(CLOCK_DAY, value)
    if isinstance(value, str):
        text = value.strip()
        if LATE.search(text):
            with suppress(OverflowError):  # of the last day of all
                moment = _find_moment(LATE.sub("00", text, count=1), date_format)
                return None if moment is None else moment + timedelta(days=1)
        moment = None if date_format is None else date_format.read(text)
        if moment is not None:
            return moment
        if TIMESTAMP.fullmatch(text) is not None:
            with suppress(ValueError):  # a 31st of June
                return datetime.fromisoformat(text)
        if CLOCK.fullmatch(text) is not None:
            return datetime.fromisoformat(f"0001-01-01T{'0' if text[1] == ':' else ''}{text}")
    number = parse_number(value)
    if date_format is not None and (moment := date_format.read_days(number)) is not None:
        return moment
    for unit in (1.0, 1e3):
        if MAX_NUMBER * unit < number <= MAX_SINCE_1970 * unit:
            return SINCE_1970 + timedelta(seconds=number / unit)
    return None


class FormatError(RecordError):
    """Dates of a table are of no known form."""


class TimeColumn:
    """A column of times, all of one kind: seconds, timestamps with or without an offset, times of day.

    The first field decides for the others; `form` says what it was read as. In a `relative` column numbers
    are seconds whatever the format: of expiries, "0730" is no time of day. Where not `placed`, moments of the
    clock on the wall are left to `place_moment`, as their day may not be known yet.
    """

    def __init__(
        self,
        column: str,
        date_format: DateFormat | None = None,
        *,
        relative: bool = False,
        placed: bool = True,
    ) -> None:
        self.column = column
        self.form = ""
        self._format = date_format
        self._relative, self._placed = relative, placed
        self._place = self._kind = ""
        self._raw: object = None
        self._seconds: list[float] = []

    def read(self, row: Row, place: str) -> Time:
        """Return a field's seconds or moment; `RecordError` if it is of another kind than the first field."""
        raw = row.get(self.column)
        plain = self._relative and parse_number(raw) <= MAX_NUMBER
        if self._format is not None and self._format.text == EXCEL:
            plain = plain and parse_number(raw) < EXCEL_DAYS[0]
        where = f"{place}: {self.column}" if self._placed else ""
        moment = None if plain else read_moment(raw, self._format, where)
        value = self._read_seconds(row, place) if moment is None else moment
        kind = find_kind(value)
        if not self.form:
            self._place, self._kind, self._raw = place, kind, raw
            self.form = self._describe_form(raw, value)
        if kind != self._kind:
            shown = raw.isoformat() if isinstance(raw, datetime | time) else raw
            expected = f"{self._kind}, as on {self._place}"
            refuse(f"{place}: {self.column}", shown, expected, RecordError)
        if moment is None and not self._relative:
            self._seconds.append(float(parse_number(raw)))
        return value

    def count(self, row: Row, place: str, epoch: datetime | None) -> float:
        """Return what `count_seconds` makes of a field."""
        return count_seconds(self.read(row, place), epoch, self.column, place)

    def refuse_days(self) -> None:
        """Refuse a column of seconds that are rather days since 1900: parts of days within a month."""
        told = self._format is not None and self._format.text == SECONDS
        if not self._seconds or told or all(x.is_integer() for x in self._seconds):
            return
        first, last = min(self._seconds), max(self._seconds)
        if EXCEL_DAYS[0] <= first and last < min(first + MOST_DAYS, EXCEL_DAYS[1]):
            meant = show_moment(EXCEL_ZERO + timedelta(days=float(parse_number(self._raw))))
            expected = f"--date-format (date_format=) {EXCEL} for {meant[:16]}, or {SECONDS}"
            refuse(f"{self._place}: {self.column}", self._raw, expected, FormatError)

    def _read_seconds(self, row: Row, place: str) -> float:
        raw = row.get(self.column)
        if self._format is not None and self._format.text and isinstance(raw, str):
            alternative = f", or a time of the format {shorten(self._format.text)}"
        else:
            alternative = f", a timestamp such as {EXAMPLE}, or a time of day such as 07:30"
            dated = DATE.fullmatch(raw.strip()) if isinstance(raw, str) else None
            if isinstance(raw, str) and dated is not None:
                # No row can be read then, unless one was.
                kind = RecordError if self.form else FormatError
                raise kind(
                    f"{place}: {self.column}: read {shorten(raw)}, a date whose format must be said; "
                    f"expected --date-format (date_format=) such as {_suggest(dated[1], raw)}, or a "
                    f"timestamp such as {EXAMPLE}"
                )
        return read_number(row, self.column, place, alternative=alternative)

    def _describe_form(self, raw: object, value: Time) -> str:
        if not isinstance(value, datetime):
            return "seconds"
        if is_clock(value):
            return "times of day"
        if self._format is not None and self._format.read_days(parse_number(raw)) is not None:
            return "days since 1900"
        text = LATE.sub("00", raw.strip(), count=1) if isinstance(raw, str) else ""
        if self._format is not None and self._format.read(text):
            return f"dates as {self._format.text}"
        if parse_number(raw) > MAX_NUMBER:
            return f"{'milli' * (parse_number(raw) > MAX_SINCE_1970)}seconds since 1970"
        named = _find_moment(raw, self._format)
        if self._format is not None and self._format.zone and named and not named.tzinfo:
            return f"timestamps by the clock of {self._format.zone}"
        return find_kind(value).replace("a timestamp", "timestamps")


def _suggest(mark: str | None, raw: str) -> str:
    """Return formats that dates of this look may have; without a mark they are digits alone."""
    if mark is None:
        return f'"{"%Y%m%d%H%M%S"[: len(raw.strip()) - 2]}"'
    clock = "%H:%M:%S" if raw.count(":") == 2 else "%H:%M"
    if re.search(r"[AP]M\s*$", raw, re.IGNORECASE):
        clock = f"{clock.replace('H', 'I')} %p"
    if re.match(r"\s*[0-9]{3,4}\b", raw):
        return f'"%Y{mark}%m{mark}%d {clock}"'
    first = f'"%d{mark}%m{mark}%Y {clock}"'
    return first if mark == "." else f'{first} or "%m{mark}%d{mark}%Y {clock}"'


def is_clock(moment: datetime) -> bool:
    """Whether a moment is a time of day: of no day that anybody named."""
    return find_kind(moment) == CLOCK_KIND


def show_moment(moment: datetime) -> str:
    """Return a moment as records write it: a time of day, else ISO 8601."""
    if is_clock(moment) and moment.date() == CLOCK_DAY.date():
        return moment.time().isoformat()
    return moment.isoformat()


CLOCK_KIND = "a time of day such as 07:30"
STAMP_KINDS = ("a timestamp without an offset from UTC", "a timestamp with an offset from UTC")


def find_kind(value: Time) -> str:
    """Return what kind of time this is, in words: only times of one kind can be compared."""
    if not isinstance(value, datetime):
        return "a number of seconds"
    if value.tzinfo is None and value.year == CLOCK_DAY.year:
        return CLOCK_KIND
    return STAMP_KINDS[value.utcoffset() is not None]


def count_seconds(value: Time, epoch: datetime | None, column: str, place: str) -> float:
    """Return a time in seconds from `epoch`, the moment of time zero; seconds stay what they are.

    A `RecordError` refuses a moment that cannot be counted from there, or lies too far from it.
    """
    if not isinstance(value, datetime):
        return value
    if epoch is None:
        expected = "a number of seconds, as the tasks' arrival_time is in seconds"
    elif find_kind(value) != find_kind(epoch):
        expected = f"{find_kind(epoch)}, as in the tasks' arrival_time"
    elif abs(seconds := (value - epoch).total_seconds()) <= MAX_NUMBER:
        return seconds
    else:
        expected = f"a moment within {MAX_NUMBER:g} s of {show_moment(epoch)}"
    refuse(f"{place}: {column}", show_moment(value), expected, RecordError)
