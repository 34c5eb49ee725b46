"""What one thread at a time may use: misuse is an error where it is seen, not a wrong result."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Self, TypeVar, cast

from acerl_np.support.errors import SharingError


class Exclusive:
    """What a block holds that one thread at a time may be in: `with use.acquire():`; another is refused.

    Copies and pickles are free, whoever is in the block of the original. An error says the name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()

    def acquire(self) -> threading.Lock:
        """Return the lock to hold; a SharingError if it is held.

        The block enters and leaves the lock itself, as Ctrl-C may fall between the lines of methods of ours.
        So of two threads that ask at once the second one waits.
        """
        if self._lock.locked():
            raise SharingError(
                f"{self.name}: in use by another thread; expected one thread at a time"
            )
        return self._lock

    def __reduce__(self) -> tuple[type[Exclusive], tuple[str]]:
        return Exclusive, (self.name,)


class CopiedWhole:
    """What `copy.copy` copies whole, as `copy.deepcopy` does: two with one state would disturb each other."""

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def _draft(self) -> Self:
        """Return a copy for a method that is `transactional`; it may share what no such method changes."""
        return copy.deepcopy(self)


Method = TypeVar("Method", bound=Callable[..., Any])
Owner = TypeVar("Owner")


def exclusive(method: Method) -> Method:
    """Let one thread at a time be in a method, of all methods of an object that have this decorator."""

    @wraps(method)
    def enter(owner: Any, /, *given: Any, **named: Any) -> Any:
        with owner._use.acquire():
            return method(owner, *given, **named)

    return cast(Method, enter)


def exclusive_all(owner: type[Owner]) -> type[Owner]:
    """Let one thread at a time be in any public method or property of a class, as if each was exclusive."""
    for name, own in list(vars(owner).items()):
        if name[0] != "_" and isinstance(own, FunctionType):
            setattr(owner, name, exclusive(own))
        elif name[0] != "_" and isinstance(own, property) and own.fget is not None:
            setattr(owner, name, property(exclusive(own.fget)))
    return owner


def transactional(method: Method) -> Method:
    """Let a method change its object wholly, or, where anything is raised, Ctrl-C among it, not at all.

    The method works on what the object's `_draft` returns, which then takes the object's place.
    """

    @wraps(method)
    def change(owner: Any, /, *given: Any, **named: Any) -> Any:
        draft = owner._draft()
        value = method(draft, *given, **named)
        vars(owner).update(vars(draft))  # one call, which no signal divides
        return value

    return cast(Method, change)
