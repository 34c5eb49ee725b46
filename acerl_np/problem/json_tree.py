"""Formats of JSON as tables of fields: what they read and write, with errors that name the place."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from acerl_np.problem.limits import MAX_NAME, MAX_NUMBER
from acerl_np.support import errors
from acerl_np.support.errors import InputError, LayoutError
from acerl_np.support.fields import UNUSABLE, Field, find_sentences, is_real


def shorten(value: object, most: int = errors.MAX_SHOWN) -> str:
    """Return a value as it stood in its file, printable and cut to fit an error's line."""
    try:
        text = errors.make_printable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        text = errors.describe(value) if isinstance(value, int | float) else type(value).__name__
    return text if len(text) <= most else f"{text[: most - 3]}..."


def parse_json(text: str, make: Callable[[Any], dict[str, Any]] = dict) -> object:
    """Parse JSON without a key that stands twice; NaN and infinities are left to the fields' checks.

    `make` makes an object of its pairs.
    """

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = make(pairs)
        if len(data) < len(pairs):
            [(twice, _), *_] = Counter(key for key, _ in pairs).most_common(1)
            raise LayoutError(f"key {shorten(twice)} stands twice in one object; expected it once")
        return data

    try:
        return json.loads(text, object_pairs_hook=refuse_duplicates)
    except json.JSONDecodeError as error:
        raise LayoutError(
            f"line {error.lineno} column {error.colno}: not JSON: {error.msg.lower()}"
        ) from error
    except RecursionError as error:
        raise LayoutError("not JSON: objects nested too deeply") from error
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        raise LayoutError(f"not JSON: {error}") from error


def hash_json(data: object) -> str:
    """Return the SHA-256 of plain values, by the one text that JSON has for them."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def refuse(
    where: str, value: object, expected: str, kind: type[InputError] = LayoutError
) -> NoReturn:
    """Raise the error of a value that is not what it may be, shown as it stood in its file."""
    errors.refuse(where, shorten(value), expected, kind)


def is_name(text: str) -> bool:
    """Whether a text may name something: not blank, not too long, on one line."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def write_number(number: float) -> float:
    """Return a number as reading gives it, so that what is read again has the same content."""
    return float(number) + 0.0  # minus zero is zero


TYPES = {str: "string", float: "number", int: "integer", bool: "boolean"}
"""What a JSON Schema calls kinds of values."""


@dataclass(frozen=True)
class Key(Field):
    """Declaration of a value that a file holds at a key: how it is read, or refused, and written.

    Attributes
    ----------
    kind : type or tuple of str
        As of `Field`, where neither `reader` nor `writer` says else.
    default : object
        A key without one is required.
    brief : bool
        Whether a value is left out where it is the default, none or infinite.
    reader : callable or None, (value, where) -> value
    writer : callable or None, value -> value of JSON
    shape : callable or None
        Returns the JSON Schema of what `reader` reads.
    """

    kind: Any = object
    default: Any = ...
    brief: bool = False
    reader: Callable[[Any, str], Any] | None = None
    writer: Callable[[Any], Any] | None = None
    shape: Callable[[], dict[str, Any]] | None = None

    def make_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value."""
        if self.shape is not None:
            found = self.shape()
        elif isinstance(self.kind, tuple):
            found = {"enum": list(self.kind)}
        else:
            found = {"type": TYPES[self.kind]}
            found |= {"minimum": self.low} if math.isfinite(self.low) else {}
            found |= {"maximum": self.high} if math.isfinite(self.high) else {}
        plain = isinstance(self.default, bool | int | float | str) and self.default != math.inf
        return {**found, "default": self.default} if plain else found

    def read(self, name: str, value: Any, error: type[Exception] = LayoutError) -> Any:
        """Return the value that a file holds, 3.0 being a whole number; refuse what is unusable."""
        if self.reader is not None:
            return self.reader(value, name)
        is_rounded = self.kind is int and isinstance(value, float) and value.is_integer()
        found = self.take(int(value) if is_rounded else value)
        if found is UNUSABLE:
            errors.refuse(name, shorten(value), self.words, error)
        return found if found is None else self.write(found)

    def write(self, value: Any) -> Any:
        """Return the value as JSON has it."""
        if self.writer is not None:
            return self.writer(value)
        return write_number(value) if self.kind is float and value is not None else value


VERSION = Key(int, 1, 1, expected="1")
"""The number of a format."""


def leaf(
    fits: Callable[[Any], bool], expected: str, make: Callable[[Any], Any], **more: Any
) -> Key:
    """Return the key of a value that `fits`, else an error says what was `expected`.

    `make` turns it into what is kept, and that into what is written unless `more` fields of `Key` say else.
    """

    def read(value: Any, where: str) -> Any:
        return make(value) if fits(value) else refuse(where, value, expected)

    return Key(reader=read, **{"writer": make} | more)


def text(default: Any = ..., *, brief: bool = False) -> Key:
    """Return the key of a printable text, not empty where it is required."""

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or (default is ... and not value.strip()):
            refuse(where, value, "a non-empty text")
        if len(value) > MAX_NAME or not value.isprintable():
            refuse(where, value, f"at most {MAX_NAME} printable characters")
        return value

    shape = {"type": "string", "maxLength": MAX_NAME}.copy
    return Key(reader=read, default=default, brief=brief, shape=shape)


def flag(*, brief: bool = False) -> Key:
    """Return the key of true or false, false by default."""
    return Key(bool, default=False, brief=brief)


def number(low: float, high: float = MAX_NUMBER, default: Any = ..., *, brief: bool = False) -> Key:
    """Return the key of a finite number from `low` to `high`."""
    return Key(float, low, high, default=default, brief=brief)


def whole(low: int, high: int, default: Any = ..., *, brief: bool = False) -> Key:
    """Return the key of a whole number from `low` to `high`."""
    return Key(int, low, high, default=default, brief=brief)


def pair() -> Key:
    """Return the key of a range: its middle and its half width."""

    def fits(value: Any) -> bool:
        numbers = isinstance(value, list) and len(value) == 2 and all(map(is_real, value))
        return numbers and abs(value[0]) <= MAX_NUMBER and 1e-9 <= value[1] <= MAX_NUMBER

    expected = "[middle, half width], both numbers, the half width above 0"

    def write(value: Any) -> list[float]:
        return [write_number(item) for item in value]

    two = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return leaf(fits, expected, lambda value: tuple(write(value)), writer=write, shape=two.copy)


def ids() -> Key:
    """Return the key of a list of sites."""

    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)

    shape = {"type": "array", "items": {"type": "string"}}.copy
    return leaf(fits, "a list of site ids", tuple, writer=list, shape=shape)


def items(of: Key, least: int, most: int, default: Any = ..., *, brief: bool = False) -> Key:
    """Return the key of a list of `least` to `most` values."""

    def read(value: Any, where: str) -> tuple[Any, ...]:
        found = f"{len(value)} entries" if isinstance(value, list) else shorten(value)
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise LayoutError(f"{where}: read {found}; expected a list of {least} to {most}")
        return tuple(of.read(f"{where}[{k}]", item) for k, item in enumerate(value))

    def write(value: Any) -> list[Any]:
        return [of.write(item) for item in value]

    def shape() -> dict[str, Any]:
        size = {"minItems": least, "maxItems": most}
        return {"type": "array", "items": of.make_schema(), **size}

    return Key(reader=read, writer=write, default=default, brief=brief, shape=shape)


def names(of: Key, most: int) -> Key:
    """Return the key of an object whose keys are names, at most `most` of them."""

    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            refuse(where, value, "an object")
        if len(value) > most:
            raise LayoutError(f"{where}: {len(value):,} names; expected at most {most:,}")
        for name in value:
            if not is_name(name):
                raise LayoutError(
                    f"{where}: read the name {shorten(name)}; expected at most {MAX_NAME} printable "
                    "characters"
                )
        return {name: of.read(f"{where}.{name}", item) for name, item in value.items()}

    def write(value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: of.write(item) for name, item in value.items()}

    def shape() -> dict[str, Any]:
        return {"type": "object", "additionalProperties": of.make_schema(), "maxProperties": most}

    return Key(reader=read, writer=write, default={}, brief=True, shape=shape)


def table(fields: Mapping[str, Key], make: Callable[..., Any], default: Any = ...) -> Key:
    """Return the key of an object with these keys, which `make` makes a value of."""

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            refuse(where or "the file", value, "an object")
        at = f"{where}." if where else ""
        for key in value:
            if key not in fields:
                known = ", ".join(sorted(fields)) + errors.suggest_name(str(key), fields)
                raise LayoutError(f"{at}{shorten(key)}: unknown key; expected one of {known}")
        for key in sorted(fields):
            if fields[key].default is ... and key not in value:
                raise LayoutError(f"{at}{key}: missing; this key is required")
        found = {
            key: field.read(at + key, value[key]) if key in value else field.default
            for key, field in fields.items()
        }
        return make(**found)

    def write(value: Any) -> dict[str, Any]:
        values = value if isinstance(value, Mapping) else vars(value)
        return {
            key: field.write(values[key])
            for key, field in fields.items()
            if not (field.brief and values[key] in (field.default, None, math.inf))
        }

    def shape() -> dict[str, Any]:
        told = find_sentences(make) if isinstance(make, type) else {}
        known = {key: field.make_schema() for key, field in fields.items()}
        for key in known.keys() & told.keys():
            unit = told[key].get("unit")
            words = f"{told[key].get('help', '')}{unit and f' ({unit})'}"
            known[key] |= {"description": words} if words else {}
        required = [key for key, field in fields.items() if field.default is ...]
        more = {"required": required} if required else {}
        return {"type": "object", "properties": known, **more, "additionalProperties": False}

    return Key(reader=read, writer=write, default=default, brief=True, shape=shape)


def at(key: Key) -> dict[str, Key]:
    """Return the metadata of a dataclass's field that a file holds at a key of the field's name."""
    return {"field": key}


def list_keys(kind: type) -> dict[str, Key]:
    """Return the keys of a dataclass whose fields have them, with the fields' defaults."""
    keys: dict[str, tuple[Key, Any]] = {
        own.name: (own.metadata["field"], own.default) for own in dataclasses.fields(kind)
    }
    return {
        name: key if default is dataclasses.MISSING else replace(key, default=default)
        for name, (key, default) in keys.items()
    }


SCALARS = ("str", "float", "int", "bool", "float | None")


class Checked:
    """A dataclass whose texts and numbers are checked where it is made as those of a file are.

    A `LayoutError` names the field.
    """

    def __post_init__(self) -> None:
        for own in dataclasses.fields(self):  # type: ignore[arg-type]
            if own.type not in SCALARS or "field" not in own.metadata:
                continue
            key, value = own.metadata["field"], getattr(self, own.name)
            default = key.default if own.default is dataclasses.MISSING else own.default
            if type(value) is not type(default) or value != default:
                found = key.read(f"{type(self).__name__}.{own.name}", value)
                object.__setattr__(self, own.name, found)


def part(kind: type, default: Any = ...) -> Key:
    """Return the key of an object that holds the fields of a dataclass."""
    return table(list_keys(kind), kind, default)
