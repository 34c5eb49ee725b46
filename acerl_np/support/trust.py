"""Whether a name is that of what a user has written, and whether what files name so is imported."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from acerl_np.support.errors import ConfigError
from acerl_np.support.fields import Field


def is_own_name(text: object) -> bool:
    """Whether a text names what a user has written, `module:name` or `file.py:name`."""
    return isinstance(text, str) and all(text.rpartition(":")[::2])


def read_kept(text: Any, what: str) -> Any:
    """Return what a file names, an `Own` that is found later; any other value, such as a name, itself."""
    if not is_own_name(text):
        return text
    from acerl_np.support.own import Own

    return Own.kept(text, what)


TRUST: ContextVar[bool | None] = ContextVar("trust", default=False)
"""Whether what files name is imported: None if it need not be there at all."""


@contextmanager
def trusting(trust: bool | None) -> Iterator[None]:
    """Import what files name until the end of the block, see `TRUST`; False leaves it as it is."""
    token = TRUST.set(TRUST.get() if trust is False else trust)
    try:
        yield
    finally:
        TRUST.reset(token)


@dataclass(frozen=True)
class OwnField(Field):
    """One of some names, or what a user wrote: a function or a class, such an object, or `module:name`."""

    of: str = ""
    """The class of such objects, `module:name`, which is imported where one is given."""

    @property
    def words(self) -> str:
        """What an error says it expected."""
        return f"{super().words}, or module:name"

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return a name, or an `Own`; parameters and errors as `Field`."""
        is_object = self._is_one(value)
        if not (is_object or callable(value) or is_own_name(value)):
            return super().read(name, value, error)
        from acerl_np.support.own import Own

        return value if isinstance(value, Own) else Own.of(value, name, is_object=is_object)

    def _is_one(self, value: Any) -> bool:
        if not self.of or value is None or isinstance(value, str):
            return False
        module, _, kind = self.of.partition(":")
        return isinstance(value, getattr(importlib.import_module(module), kind))
