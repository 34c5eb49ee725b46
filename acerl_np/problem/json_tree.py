"""A tree of parsed JSON, read field by field, with errors that name the place."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from acerl_np.problem.limits import MAX_NUMBER
from acerl_np.support.errors import MAX_SHOWN, LayoutError, describe
from acerl_np.support.numbers import is_real


def shorten(value: object) -> str:
    """Return a value as it stood in its file, cut to a length that fits an error's line."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = describe(value) if isinstance(value, int | float) else type(value).__name__
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def parse_json(text: str) -> object:
    """Parse JSON without a key that stands twice; NaN and infinities are left to the fields' checks.

    Raises
    ------
    LayoutError
        With line and column of the first fault.
    """

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise LayoutError(f"key {shorten(twice)} stands twice in one object; expected it once")
        return data

    try:
        return json.loads(text, object_pairs_hook=refuse_duplicates)
    except json.JSONDecodeError as error:
        raise LayoutError(
            f"line {error.lineno} column {error.colno}: not JSON: {error.msg.lower()}"
        ) from error
    except RecursionError as error:
        raise LayoutError("objects nested too deeply; expected a layout") from error
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        raise LayoutError(f"not JSON: {error}") from error


class Reader:
    """An object of the JSON tree that knows its place, so that errors can name it.

    Parameters
    ----------
    data : object
        What stands at the place.
    where : str
        The place, such as "vehicles[2]"; empty for the whole file.

    Raises
    ------
    LayoutError
        If it is no object; the methods raise it for what they do not find as expected.
    """

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise LayoutError(f"{where or 'the file'}: read {shorten(data)}; expected an object")
        self.data = data
        self.where = where

    def name(self, key: str) -> str:
        """Return the place of a key, such as "sites[3].x"."""
        return f"{self.where}.{key}" if self.where else key

    def raw(self, key: str) -> object:
        """Return what stands at a key, unchecked; None if the key is missing."""
        return self.data.get(key)

    def fail(self, key: str, expected: str) -> NoReturn:
        """Refuse what stands at a key.

        Raises
        ------
        LayoutError
            In any case.
        """
        raise LayoutError(f"{self.name(key)}: read {shorten(self.raw(key))}; expected {expected}")

    def check_keys(self, required: set[str], optional: set[str]) -> None:
        """Refuse unknown keys, and missing ones of those required."""
        for key in self.data:
            if key not in required | optional:
                known = ", ".join(sorted(required | optional))
                raise LayoutError(
                    f"{self.name(shorten(key))}: unknown key; expected one of {known}"
                )
        for key in sorted(required):
            if key not in self.data:
                raise LayoutError(f"{self.name(key)}: missing; this key is required")

    def text(self, key: str, default: str | None = None) -> str:
        """Return the printable text at a key; without a default it may not be empty."""
        value = self.data.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            self.fail(key, "a non-empty text")
        if len(value) > 200 or not value.isprintable():
            self.fail(key, "at most 200 printable characters")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return the true or false at a key."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def number(
        self,
        key: str,
        default: float | None,
        low: float,
        high: float = MAX_NUMBER,
        *,
        whole: bool = False,
    ) -> float:
        """Return the number at a key, from `low` to `high`."""
        value: Any = self.data.get(key, default)
        what = "a whole number" if whole else "a number"
        if not is_real(value) or not low <= value <= high or (whole and value != int(value)):
            self.fail(key, f"{what} from {low:g} to {high:g}")
        return float(value) + 0.0  # minus zero is zero

    def entries(self, key: str, least: int, most: int) -> list[Any]:
        """Return the list at a key, empty if the key is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not least <= len(value) <= most:
            found = f"{len(value)} entries" if isinstance(value, list) else shorten(value)
            raise LayoutError(
                f"{self.name(key)}: read {found}; expected a list of {least} to {most}"
            )
        return value

    def items(self, key: str, least: int, most: int) -> list[Reader]:
        """Return the objects of the list at a key, each with its place."""
        return [
            Reader(item, f"{self.name(key)}[{k}]")
            for k, item in enumerate(self.entries(key, least, most))
        ]
