"""What an option may be: its kind, its range and what it is for, as data; and how a value is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.numbers import MAX_SEED, is_whole

MOST = sys.float_info.max
"""Largest finite number: as a limit it refuses infinity."""


def refuse(name: str, read: object, expected: str, error: type[Exception] = InputError) -> NoReturn:
    """Raise the one line of an error: what was read under a name, and what was expected."""
    raise error(f"{name}: read {describe(read)}; expected {expected}") from None


@dataclass(frozen=True)
class Field:
    """What an option may be.

    Attributes
    ----------
    kind : {int, float, bool} or tuple of str
        A whole number, a real one, true or false; or one of these names.
    low, high : float
        Least and largest number; `MOST` for any that is finite, by default infinities count, too.
    above : bool
        Whether the least number itself is too little.
    optional : bool
        Whether None is a value.
    expected : str
        Kind and range in words, where those of `words` do not suit.
    help : str
        What the option is for.
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
        if self.kind is bool:
            return "true or false"
        noun = "whole number" if self.kind is int else "number"
        if self.high >= MOST:
            noun = f"finite {noun}" if self.high == MOST else noun
            return f"a {noun} {'above' if self.above else 'of at least'} {self.low:g}"
        high = f"{self.high:,}" if self.kind is int else f"{self.high:,g}"
        return f"a {noun} {'above' if self.above else 'from'} {self.low:g} to {high}"

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return a value as Python's own kind.

        Parameters
        ----------
        name : str
            Of the option, for the error.
        value : object
        error : type of exception

        Raises
        ------
        ConfigError
            Or `error`, in one line, if the value is of another kind or out of range.
        """
        if value is None and self.optional:
            return None
        if isinstance(self.kind, tuple):
            if isinstance(value, str) and value in self.kind:
                return value
            value = f"'{describe(value)}'"
        elif self.kind is bool:
            if isinstance(value, bool | np.bool_):
                return bool(value)
        elif is_whole(value) or (self.kind is float and is_number(value)):
            try:
                number = self.kind(value)
            except OverflowError:  # a whole number beyond every float
                number = math.nan
            if self.low <= number <= self.high and not (self.above and number == self.low):
                return number
        refuse(name, value, self.words, error)


SEED = Field(int, 0, MAX_SEED, expected="a whole number from 0 to 2**63 - 1")


def is_number(value: object) -> bool:
    """Whether a value is a real number of any kind, infinite or not, but neither true nor false."""
    return isinstance(value, Real) and not isinstance(value, bool)


def read_fields(fields: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every field, as `Field.read` does."""
    return {name: field.read(name, given[name]) for name, field in fields.items()}
