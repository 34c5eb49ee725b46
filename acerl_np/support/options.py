"""Options as a frozen dataclass that declares, field by field, what each may be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self, get_args, get_type_hints

from acerl_np.support.errors import ConfigError, describe, suggest_name
from acerl_np.support.fields import UNUSABLE, Field, refuse


@dataclass(frozen=True)
class Several(Field):
    """A list of values, `fewest` to `most`, each as a `Field` of this kind; read as a tuple."""

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


def option(default: Any, kind: Field, **about: str) -> Any:
    """Return a field of `Options`: its default, what it may be, and what else is said of it."""
    return field(default=default, metadata={"field": kind, **about})


class Options:
    """Base of frozen dataclasses that declare what their fields may be, by `option` or by a type.

    The type is bool, or a Literal of names.
    """

    unknown: ClassVar[str] = "unknown option"

    added: ClassVar[tuple[str, ...]] = ()
    """Options that files of before do not have: they are stored where they are not the defaults."""

    def __post_init__(self) -> None:
        """Read every value; a `ConfigError` names the first that is unusable."""
        for name, kind in self.list_fields().items():
            object.__setattr__(self, name, kind.read(name, getattr(self, name)))

    @classmethod
    @cache
    def list_fields(cls) -> dict[str, Field]:
        """Return what each option may be."""
        types = get_type_hints(cls)
        return {
            item.name: item.metadata.get("field")
            or Field(get_args(types[item.name]) or types[item.name])
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
        for key in options:
            if key not in known:
                expected = f"expected one of {', '.join(known)}{suggest_name(str(key), known)}"
                raise ConfigError(f"{describe(key)}: {cls.unknown}; {expected}")
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
