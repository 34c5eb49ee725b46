"""Every error that acerl_np raises on purpose; the commands turn each into one line and an exit status."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

MAX_SHOWN = 60
"""Characters of a value that an error's line shows."""

MANY = 0.05
"""Share of rows left out above which a record may not be what the plant does."""

OWN_WORDS = re.compile(r"""; did you mean .*|(?<!\w)'[^']*'|"(\\.|[^"\\])*"|[0-9]+""")
"""What a fault's text says of its row alone."""


def make_printable(text: str) -> str:
    """Return a text on one line, with what a terminal would act on written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def describe(value: object) -> str:
    """Return what was read as an error's line shows it: printable and cut to `MAX_SHOWN`."""
    try:
        text = str(value)
    except (ValueError, RecursionError):
        # Python writes no number of more than 4,300 digits, and nothing nested too deeply.
        return f"{type(value).__name__} too large to show"
    text = make_printable(text[: MAX_SHOWN + 1])
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def list_some(names: Sequence[str], most: int) -> str:
    """Return names as an error's line lists them: at most so many, then how many there are."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text}, ... ({len(names)})"


def list_first(names: Sequence[str], most: int = 5) -> str:
    """Return names as a line lists them: the first few."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return what ends an error's line: the known name nearest to an unknown one, if any is near."""
    names = {own.strip().lower(): own.strip() for own in known}
    near = get_close_matches(name[:MAX_SHOWN].lower(), names, 1)
    return f"; did you mean '{describe(names[near[0]])}'?" if near else ""


class AcerlError(Exception):
    """Base of all errors raised by acerl_np."""

    exit_status = 1
    """Exit status of a command that ends with this error."""


class InputError(AcerlError, ValueError):
    """Something handed to the library or to a command is not usable (exit status 2)."""

    exit_status = 2


class LayoutError(InputError):
    """A layout (sites, edges, vehicles, breakdowns) is malformed or cannot be driven."""


class Fault(NamedTuple):
    """What is wrong with a row of a table: where it stands, in which field, what was read there, and why not.

    `field` and `read` are empty where it is the row as a whole.

    Attributes
    ----------
    place, field, read, text : str
    """

    place: str
    field: str
    read: str
    text: str

    @classmethod
    def of(cls, error: Exception, place: str, row: Mapping[str, Any]) -> Fault:
        """Return the fault that an error's line tells, which begins with place and field.

        Parameters
        ----------
        error : Exception
        place : str
        row : mapping of str, the row's fields
        """
        rest = str(error).removeprefix(f"{place}: ")
        field, _, text = rest.partition(": ")
        if field not in row:
            return cls(place, "", "", rest)
        return cls(place, field, describe(row[field]), text)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.place, self.field, self.text)))


class RecordError(InputError):
    """A task record is malformed or does not fit its layout.

    Parameters
    ----------
    message : str
    faults : sequence of Fault
        What is wrong with single rows, if nothing else is: `place`, `field`, `read`, `text` of each.
    n_rows : int
        Rows that were looked at.
    """

    def __init__(self, message: str, faults: Sequence[Fault] = (), n_rows: int = 0) -> None:
        super().__init__(message)
        self.faults = tuple(faults)
        self.n_rows = n_rows


class ConfigError(InputError):
    """A training option is unknown, has the wrong type or lies outside its range."""


class PolicyError(InputError):
    """A policy file is malformed, or a policy does not fit an observation or a floor."""


class PolicyWarning(UserWarning):
    """A policy is used on another floor or fleet than it was trained for."""


class EventWarning(UserWarning):
    """An event that was taken in is doubtful, as a level that has fallen by half at once."""


class LogWarning(UserWarning):
    """A line of a dispatcher's log was cut off, as by a kill, or has a time far ahead of all before it."""


class RecordWarning(UserWarning):
    """A table has columns that are not read, or rows that were left out as was asked.

    Parameters
    ----------
    path : str
    columns : sequence of str
        Columns that are not read, as the file names them, with what would read a likely one.
    faults : sequence of Fault
        What is wrong with the rows that were left out.
    n_rows : int
        Rows in all.
    """

    def __init__(
        self, path: str, columns: Sequence[str] = (), faults: Sequence[Fault] = (), n_rows: int = 0
    ) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.faults = tuple(faults)
        self.n_rows = n_rows
        told = "columns ignored", list_names(self.columns)
        if faults:
            told = describe_left_out(faults, n_rows), list_some(list_causes(faults), 3)
        super().__init__(f"{make_printable(path)}: {': '.join(told)}")


def list_names(columns: Sequence[str]) -> str:
    """Return columns, as their file names them, in one line of at most twenty."""
    return list_some([make_printable(name[:MAX_SHOWN]) for name in columns], 20)


def count_rows(faults: Sequence[Fault], n_rows: int) -> str:
    """Return how many rows have faults: "3 of 100 rows"."""
    return f"{len({fault.place for fault in faults}):,} of {n_rows:,} rows"


def describe_left_out(faults: Sequence[Fault], n_rows: int) -> str:
    """Return how many rows were left out, with a warning where these are many."""
    share = len({fault.place for fault in faults}) / n_rows
    many = f" ({100 * share:.0f} %: what is left may tell too little of the plant)" * (share > MANY)
    return f"{count_rows(faults, n_rows)} left out{many}"


def list_causes(faults: Sequence[Fault]) -> list[str]:
    """Return the faults of a table, those of one cause as one, the most frequent first.

    Faults have one cause if their texts differ in names and numbers alone.
    """
    alike: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.field, OWN_WORDS.sub("", fault.text)), []).append(fault)
    found = []
    for some in sorted(alike.values(), key=len, reverse=True):
        others = list_some(list(dict.fromkeys(x.read for x in some if x.read != some[0].read)), 3)
        also = f" (also read: {others})" if others else ""
        found.append(f"{len(some):,} rows such as {some[0]}{also}" if some[1:] else str(some[0]))
    return found


class CheckpointError(InputError):
    """A checkpoint is malformed, of another format, or does not fit what is asked of it."""


class ActionError(InputError):
    """An action is illegal in the present state of its episode."""


class EventError(InputError):
    """An event or a question to a dispatcher cannot follow what it was told before."""


class StorageError(AcerlError, OSError):
    """The machine failed: a file could not be written or read (exit status 1)."""


class WorkerError(AcerlError, RuntimeError):
    """Workers elsewhere are gone, or compute something else (exit status 1)."""


class SharingError(AcerlError, RuntimeError):
    """Two threads use at once what belongs to one at a time (exit status 1)."""


class MissingExtraError(InputError, ImportError):
    """An optional extra is not installed; the message names the command that installs it."""


def refuse(name: str, read: object, expected: str, error: type[Exception] = InputError) -> NoReturn:
    """Raise the one line of an error: what was read under a name, and what was expected."""
    raise error(f"{name}: read {describe(read)}; expected {expected}") from None


def refuse_unknown(given: Iterable[Any], known: Collection[str], said: str) -> None:
    """Refuse the first key that is not known, with those that are, and the nearest."""
    for key in given:
        if key not in known:
            expected = f"expected one of {', '.join(known)}{suggest_name(str(key), known)}"
            raise ConfigError(f"{describe(key)}: {said}; {expected}")


@contextmanager
def needing(words: str) -> Iterator[None]:
    """Raise a `MissingExtraError` where a block imports what is not there; {} in its words is the reason."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(words.format(error)) from error
