"""Declarations of values: kind, range, unit and sentence, from which help, checks and errors follow."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from acerl_np.support.errors import (
    ConfigError,
    describe,
    refuse,
    refuse_unknown,
    suggest_name,
)

MAX_SEED = 2**63 - 1
MOST = sys.float_info.max
"""Largest finite number: as a limit it refuses infinity."""

UNUSABLE = object()
"""What `Field.take` returns of a value that is none."""

NOUNS = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Field:
    """Declaration of a value, given or read from a file.

    Attributes
    ----------
    kind : type or tuple of str
        bool, str, int or float; or the names to choose among.
    low, high : float
        Range of a number. Infinities are in it unless it ends before.
    above : bool
        Whether `low` itself is too little.
    optional : bool
        Whether None is a value.
    expected : str
        What errors say instead of kind and range.
    help : str
        What the value is for: the sentence of help, settings and docstrings.
    unit : str
    """

    kind: type | tuple[str, ...]
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    optional: bool = False
    expected: str = ""
    help: str = ""
    unit: str = ""

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


@dataclass(frozen=True)
class Several(Field):
    """Declaration of a list of `fewest` to `most` values of this kind, which is read as a tuple."""

    fewest: int = 0
    most: int = sys.maxsize

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the values as a tuple of Python's own kind; parameters and errors as `Field`."""
        if value is None and self.optional:
            return None
        if isinstance(value, tuple | list) and self.fewest <= len(value) <= self.most:
            found = tuple(map(super().take, value))
            if UNUSABLE not in found:
                return found
        refuse(name, value, self.words, error)


SEED = Field(int, 0, MAX_SEED)
WHOLE, FINITE = Field(int), Field(float, -MOST, MOST)

Whole: TypeAlias = int | np.integer[Any]
"""A whole number as callers give it, Python's or NumPy's."""


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number and no bool."""
    return WHOLE.take(value) is not UNUSABLE


def is_real(value: object) -> bool:
    """Whether `value` is a finite number and no bool."""
    return FINITE.take(value) is not UNUSABLE


def check_seed(seed: Any, name: str = "seed") -> int:
    """Return a seed, a whole number from 0 to 2**63 - 1, as Python's int; refuse what is none."""
    found: int = SEED.read(name, seed)
    return found


def read_fields(fields: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every field, as `Field.read` does."""
    return {name: field.read(name, given[name]) for name, field in fields.items()}


def option(default: Any, kind: Field, **about: str) -> Any:
    """Return a field of a dataclass: its default, its declaration, and what else is said of it."""
    return field(default=default, metadata={"field": kind, **about})


class Options:
    """Base of frozen dataclasses whose fields are declared by `option`.

    The sentence and the unit of a field stand in the section "Attributes" of the class.
    """

    unknown: ClassVar[str] = "unknown option"

    added: ClassVar[tuple[str, ...]] = ()
    """Options that earlier files lack: they are stored where they are not the defaults."""

    def __post_init__(self) -> None:
        """Read every value; a `ConfigError` names the first that is unusable."""
        for name, kind in self.list_fields().items():
            object.__setattr__(self, name, kind.read(name, getattr(self, name)))

    @classmethod
    @cache
    def list_fields(cls) -> dict[str, Field]:
        """Return what each option may be."""
        told = find_sentences(cls)
        return {
            item.name: replace(item.metadata["field"], **told.get(item.name, {}))
            for item in fields(cls)  # type: ignore[arg-type]
        }

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> Self:
        """Return these options, and defaults for those not given.

        Raises
        ------
        ConfigError
            If a key is unknown or a value is not usable.
        """
        known = cls.list_fields()
        refuse_unknown(options, known, cls.unknown)
        return cls(**options)

    @classmethod
    def check_whole(cls, stored: Mapping[str, Any]) -> None:
        """Refuse options of a file that lack one, whose default may have been another."""
        for name in cls.list_fields():
            if name not in stored and name not in cls.added:
                raise ConfigError(f"{name}: missing; expected every option, as this version writes")

    def to_dict(self, *, whole: bool = False) -> dict[str, Any]:
        """Return the options as plain values, ready for JSON; what is a user's own by its name.

        `whole`: those of `added`, too, where they are the defaults.
        """
        usual = {} if whole else {name: getattr(type(self), name) for name in self.added}
        own = [(k, x) for k, x in vars(self).items() if k not in usual or x != usual[k]]
        plain = {name: list(x) if isinstance(x, tuple) else x for name, x in own}
        return {name: str(x) if isinstance(x, str) else x for name, x in plain.items()}


ATTRIBUTE = re.compile(r"^(\w+) : .*?(?:, (s|m|m/s))?\n((?: .*\n)*)", re.MULTILINE)
"""An attribute of a docstring: name, unit, sentence."""


def find_sentences(cls: type) -> dict[str, dict[str, str]]:
    """Return the sentence and the unit of each attribute that the docstrings of a class tell."""
    told: dict[str, dict[str, str]] = {}
    for own in reversed(cls.__mro__):
        for name, unit, text in ATTRIBUTE.findall(f"{inspect.cleandoc(own.__doc__ or '')}\n"):
            words = " ".join(text.split()).rstrip(".")
            told[name] = {"help": words[:1].lower() + words[1:], "unit": unit}
    return told
