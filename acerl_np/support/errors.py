"""Every error that acerl_np raises on purpose; the commands turn each into one line and an exit status."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from acerl_np.support.faults import Fault

MAX_SHOWN = 60
"""Characters of a value that an error's line shows."""


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
