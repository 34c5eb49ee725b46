"""What an option may be: its kind, its range and what it is for, as data; and how a value is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.support.errors import ConfigError, InputError, describe, suggest_name

MAX_SEED = 2**63 - 1
MOST = sys.float_info.max
"""Largest finite number: as a limit it refuses infinity."""

UNUSABLE = object()
"""What `Field.take` returns of a value that is none."""

NOUNS = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


def refuse(name: str, read: object, expected: str, error: type[Exception] = InputError) -> NoReturn:
    """Raise the one line of an error: what was read under a name, and what was expected."""
    raise error(f"{name}: read {describe(read)}; expected {expected}") from None


@dataclass(frozen=True)
class Field:
    """What a value may be, given or read from a file: a kind (or one of some names), and a range.

    Infinities are in the range unless it ends before.

    With `above` the least number itself is too little, and `optional` says whether None is a value. Where
    `words` do not suit, `expected` says what kind and range are. `help` says what the option is for.
    """

    kind: type | tuple[str, ...]
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    optional: bool = False
    expected: str = ""
    help: str = ""

    @property
    def words(self) -> str:
        """What an error says it expected."""
        if self.expected:
            return self.expected
        if isinstance(self.kind, tuple):
            return f"one of {', '.join(self.kind)}"
        noun = NOUNS[self.kind]
        if self.kind not in (int, float) or (self.low <= -MOST and self.high >= MOST):
            return noun
        if self.high >= MOST:
            noun = noun.replace("a ", "a finite ") if self.high == MOST else noun
            return f"{noun} {'above' if self.above else 'of at least'} {self.low:g}"
        high = f"{self.high:,}" if self.kind is int else f"{self.high:,g}"
        high = "2**63 - 1" if self.high == MAX_SEED else high
        return f"{noun} {'above' if self.above else 'from'} {self.low:g} to {high}"

    def take(self, value: Any) -> Any:
        """Return a value as Python's own kind, `UNUSABLE` if it is of another kind or out of range."""
        if value is None and self.optional:
            return None
        if isinstance(self.kind, tuple):
            return value if isinstance(value, str) and value in self.kind else UNUSABLE
        if self.kind is bool:
            return bool(value) if isinstance(value, bool | np.bool_) else UNUSABLE
        if self.kind is str:
            return value if isinstance(value, str) else UNUSABLE
        number = value
        if type(value) is not self.kind:  # which is asked for every number of a live day
            if isinstance(value, bool) or not isinstance(
                value, Integral if self.kind is int else Real
            ):
                return UNUSABLE
            try:
                number = self.kind(value)
            except OverflowError:  # a whole number beyond every float
                return UNUSABLE
        fits = self.low <= number <= self.high and not (self.above and number == self.low)
        return number if fits else UNUSABLE

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return what `take` does; refuse what is unusable."""
        found = self.take(value)
        if found is not UNUSABLE:
            return found
        if isinstance(self.kind, tuple):
            near = suggest_name(value, self.kind) if isinstance(value, str) else ""
            refuse(name, f"'{describe(value)}'", f"{self.words}{near}", error)
        refuse(name, value, self.words, error)


SEED = Field(int, 0, MAX_SEED)


def read_fields(fields: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every field, as `Field.read` does."""
    return {name: field.read(name, given[name]) for name, field in fields.items()}


def take_arrays(
    given: Mapping[str, ArrayLike],
    own: Mapping[str, np.ndarray],
    of: str = "",
    *,
    growing: Container[str] = (),
) -> dict[str, np.ndarray]:
    """Return copies of the arrays that have the names, dtypes and shapes of one's own; refuse others.

    Texts may be of any length, and the first axes of those that are `growing`. `of` stands before each name
    in an error.
    """
    taken = {}
    for name, mine in own.items():
        if name not in given:
            raise InputError(f"{of}read no '{name}'; expected {mine.dtype} {mine.shape}")
        array = np.array(given[name])
        is_text = mine.dtype.kind == array.dtype.kind == "U"
        same = slice(1 if name in growing else 0, None)
        fits = array.ndim == mine.ndim and array.shape[same] == mine.shape[same]
        if not fits or not (is_text or array.dtype == mine.dtype):
            read, expected = (f"{a.dtype} {a.shape}" for a in (array, mine))
            raise InputError(f"{of}{name}: read {read}; expected {expected}")
        taken[name] = array
    return taken
