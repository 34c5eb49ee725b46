"""What users write themselves and hand over: how a file names it, and how it is found again.

A name is `module:name`, as an entry point's. A file names it so, and imports nothing unless it is trusted.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from acerl_np.support.errors import ConfigError, InputError, describe, make_printable, refuse
from acerl_np.support.trust import TRUST, is_own_name, trusting

MAIN = "__main__"


def name_own(thing: Any) -> str:
    """Return the name of a function or a class of a module, `module:name`; of an object, its class's."""
    home = thing if hasattr(thing, "__qualname__") else type(thing)
    module = home.__module__
    if module == MAIN and (path := getattr(sys.modules[MAIN], "__file__", None)):
        module = Path(path).stem  # a script, which others may import
    return f"{module}:{home.__qualname__}"


KNOWN: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""What this process was handed, by its name: a file that names it needs no import."""


def write_own(thing: Any) -> str:
    """Return how a file names a user's function or class, `module:name`, and keep it as `KNOWN`."""
    name = name_own(thing)
    if "<" not in name:  # else several may have this name
        KNOWN[name] = thing if hasattr(thing, "__qualname__") else type(thing)
    return name


def _tell_code(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, wherever it stands."""
    consts = (_tell_code(item) if inspect.iscode(item) else item for item in code.co_consts)
    return code.co_code, code.co_names, tuple(consts)


STAMPED = {*sys.stdlib_module_names, "numpy", "numba"}
"""Modules whose versions are part of the stamp of all machine code."""


def name_compiled(function: Any, beside: str) -> str:
    """Return a name for what numba makes of a function of a file, empty of any other.

    It is another one where the code has changed, that of its helpers, or a value that they read; and of
    another module, which what is kept names.
    """
    if not Path(inspect.getsourcefile(function) or "").is_file():
        return ""
    try:
        told = f"{beside} {function.__module__} {_tell_function(function)}"
    except (TypeError, RecursionError):
        return ""
    return f"{function.__name__}_{hashlib.sha256(told.encode()).hexdigest()[:24]}"


def _tell_function(function: Any) -> str:
    """Return all that a function is to numba; a `TypeError` if it reads what is unknown."""
    # One of a closure has the name of others in machine code.
    if not inspect.isfunction(function) or "<" in function.__qualname__:
        raise TypeError(function)
    codes = [function.__code__]
    for code in codes:
        codes += filter(inspect.iscode, code.co_consts)
    names = {name for code in codes for name in code.co_names}
    read = _tell_names(function.__globals__, names)
    return str((_tell_code(function.__code__), _tell(function.__defaults__, names), read))


def _tell_names(values: dict[str, Any], names: set[str]) -> list[str]:
    return [f"{name} {_tell(values[name], names)}" for name in sorted(names & values.keys())]


def _tell(value: Any, names: set[str]) -> str:
    """Return all that a value is to numba, of a module what has one of the names."""
    if value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        return f"{type(value)} {value!r}"
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", "")
        return str([type(value), fields, *(_tell(item, names) for item in value)])
    home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or ""
    if home.partition(".")[0] in STAMPED:
        return f"{home} {getattr(value, '__qualname__', value)}"
    if inspect.ismodule(value):
        return str(_tell_names(vars(value), names))
    options = sorted(getattr(value, "targetoptions", {}).items())
    return f"{options} {_tell_function(getattr(value, 'py_func', None))}"


KEPT = re.compile(r"(?!.*\.py:)[\w.-]+:[\w.<>]+")


def check_kept(text: str, what: str, error: type[Exception] = InputError) -> None:
    """Refuse a name of a file that is not `module:name`, such as a path: no file leads to another."""
    if is_own_name(text) and not KEPT.fullmatch(text):
        raise error(f"{what}: read {describe(text)}; expected module:name in a file")


def load_own(text: str, what: str, error: type[Exception] = InputError) -> Any:
    """Return what a user has named: `module:name` or `file.py:name`, whose folder joins Python's path.

    Parameters
    ----------
    text : str
    what : str
        What it is for, such as "objective": the error's line begins with it.
    error : type, of what is raised

    Raises
    ------
    error
        If there is no such module or name.
    """
    place = text.rpartition(":")[0]
    folder = str(Path(place).resolve().parent if place.endswith(".py") else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # processes that are started find it, too
    return _find(text, what, error)


def load_kept(text: str, what: str, error: type[Exception] = InputError) -> Any:
    """Return what a file names, `module:name`; parameters and errors as `load_own`.

    It is imported only where files are trusted, or known if it was handed over before.
    """
    check_kept(text, what, error)
    if (found := KNOWN.get(text)) is not None:
        return found
    if not TRUST.get():
        shown = f"{what}: read {describe(text)}, code that no file imports unasked"
        raise error(f"{shown}; expected --trust-code (trust=True)")
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return _find(text, what, error)
    finally:
        sys.path[:] = before


def fetch(text: str, what: str) -> Any:
    """Return what a pickle names, which another process of the same run has sent."""
    with trusting(True):
        return load_kept(text, what)


def _find(text: str, what: str, error: type[Exception]) -> Any:
    """Import a module, and return what a name says of it."""
    place, _, attribute = text.rpartition(":")
    shown = f"{what}: {describe(text)}"
    try:
        found: Any = _import(place)
    except (Exception, SystemExit) as caused:  # whatever a module of a user's raises
        reason = make_printable(f"{type(caused).__name__}: {caused}"[:200])
        raise error(
            f"{shown}: cannot be imported ({reason}); expected module:name, its module on Python's path or "
            "here, or file.py:name"
        ) from None
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise error(f"{shown}: '{describe(place)}' has no '{describe(attribute)}'") from None
    return found


def _import(place: str) -> ModuleType:
    """Import a module by its name, or by the path of its file, under its own name."""
    path = Path(place)
    is_file = path.suffix == ".py"
    name = path.stem if is_file else place
    main = sys.modules[MAIN]
    script = Path(getattr(main, "__file__", None) or "")
    if name == MAIN or (script.stem == name and (not is_file or path.samefile(script))):
        return main
    module = importlib.import_module(name)
    if is_file and not path.samefile(getattr(module, "__file__", None) or ""):
        raise ImportError(f"another module is called {name}")
    return module


class Own(str):
    """What a user wrote, handed over in the place of a name: the text `module:name`, which files keep.

    What a file names is found when it is first asked for: reading alone imports nothing.

    Attributes
    ----------
    what : str, the option that it is given for, which errors name
    """

    what: str
    _thing: Any
    _trust: bool | None

    @classmethod
    def of(cls, thing: Any, what: str, *, is_object: bool = False) -> Own:
        """Return what was handed over, or what a user's text names."""
        found = load_own(thing, what, ConfigError) if isinstance(thing, str) else thing
        if inspect.ismethod(found) or not (hasattr(found, "__qualname__") or is_object):
            refuse(what, found, "a function or a class, by which files can name it", ConfigError)
        return cls._make(write_own(found), what, found)

    @classmethod
    def kept(cls, text: str, what: str) -> Own:
        """Return what a file names so, found later."""
        check_kept(text, what, ConfigError)
        return cls._make(text, what, None)

    @classmethod
    def _make(cls, text: str, what: str, thing: Any) -> Own:
        own = cls(text)
        own.what, own._thing, own._trust = what, thing, TRUST.get()
        return own

    def load(self) -> Any:
        """Return what the user wrote; a `ConfigError` if it is not there, or not to be imported."""
        if self._thing is None:
            with trusting(self._trust):
                self._thing = load_kept(self, self.what, ConfigError)
        return self._thing

    def call(self, *given: Any) -> Any:
        """Call it; what it raises is the cause of an `InputError`."""
        function = self.load()
        try:
            return function(*given)
        except Exception as error:  # whatever a function of a user's raises
            reason = make_printable(f"{type(error).__name__}: {error}"[:200])
            raise InputError(f"{self.what}: {self}: {reason}") from error

    def ask(self, n: int, *given: Any) -> np.ndarray:
        """Return the n finite numbers that the function says, float64 (n,); refuse anything else."""
        values = self.call(*given)
        try:
            array = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            refuse(f"{self.what}: {self}", type(values).__name__, f"{n} numbers, shape ({n},)")
        if array.shape != (n,):
            refuse(f"{self.what}: {self}", f"shape {array.shape}", f"one number each, ({n},)")
        for k in np.flatnonzero(~np.isfinite(array)):
            refuse(f"{self.what}: {self}", f"{array[k]} as number {k}", "finite numbers")
        return array
