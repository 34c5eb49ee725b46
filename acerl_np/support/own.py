"""What users write themselves and hand over: how a file names it, and how it is found again.

A name is `module:name`, as an entry point's; a file adds a hash of the source, decorators included. Comments,
layout and the docstring do not count for the hash, nor does what the source calls.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from acerl_np.support.errors import ConfigError, InputError, describe, make_printable
from acerl_np.support.fields import Field, refuse

MAIN = "__main__"


def name_own(thing: Any) -> str:
    """Return the name of a function or a class of a module, `module:name`; of an object, its class's."""
    home = thing if hasattr(thing, "__qualname__") else type(thing)
    module = home.__module__
    if module == MAIN and (path := getattr(sys.modules[MAIN], "__file__", None)):
        module = Path(path).stem  # a script, which others may import
    return f"{module}:{home.__qualname__}"


def hash_own(thing: Any) -> str:
    """Return 12 hexadecimal digits of what the source of a function or a class says."""
    home = thing if hasattr(thing, "__qualname__") else type(thing)
    try:
        found = _hash_source(inspect.getsource(home))
    except (OSError, TypeError, SyntaxError):  # typed in, or of an extension module
        found = ""
    if not found or "<" in home.__qualname__:  # several may be of one source
        return hashlib.sha256(_describe_code(home).encode()).hexdigest()[:12]
    return found


def _hash_source(source: str) -> str:
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def _hash_unseen(module: str, attribute: str) -> list[str]:
    """Return the hashes, as `hash_own`, of what a module's file defines so; nothing of it is run.

    Nor is a package that holds it.
    """
    finders: list[Any] = sys.meta_path
    parts = module.split(".")
    for n in range(1, len(parts) + 1):
        name = ".".join(parts[:n])
        found = [spec for finder in finders if finder and (spec := finder.find_spec(name))]
        if not found:
            raise ModuleNotFoundError(f"No module named '{name}'")
        spec = next((own for own in found if own.loader), None)
        # Without one they are the folders of a namespace.
        folders = [
            x for own in ([spec] if spec else found) for x in own.submodule_search_locations or ()
        ]
        finders = [pkgutil.get_importer(folder) for folder in folders]
    if spec is None or not str(spec.origin).endswith(".py"):
        return []
    with tokenize.open(spec.origin) as file:
        lines = file.readlines()
    nodes: list[Any] = [ast.parse("".join(lines))]
    for part in attribute.split("."):
        nodes = [own for node in nodes for own in _list_defined(node) if own.name == part]
    starts = [min(own.lineno for own in (node, *node.decorator_list)) - 1 for node in nodes]
    return [_hash_source("".join(inspect.getblock(lines[k:]))) for k in starts]


def _list_defined(node: ast.AST) -> Iterator[Any]:
    """Yield the functions and classes of a module or a class, also within its conditions."""
    for own in ast.iter_child_nodes(node):
        if isinstance(own, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield own
        else:
            yield from _list_defined(own)


def _describe_code(home: Any) -> str:
    """Return what tells functions apart that have no source of their own."""
    code = getattr(home, "__code__", None)
    if code is None:
        return repr(home)
    closure = [cell.cell_contents for cell in home.__closure__ or ()]
    return repr((code.co_code, code.co_names, code.co_consts, home.__defaults__, closure))


STAMPED = {*sys.stdlib_module_names, "numpy", "numba"}
"""Modules whose versions are part of the stamp of all machine code."""


def name_compiled(function: Any, beside: str) -> str:
    """Return a name for what numba makes of a function of a file, empty of any other.

    It is another one where the code has changed, that of its helpers, or a value that they read.
    """
    if not Path(inspect.getsourcefile(function) or "").is_file():
        return ""
    try:
        told = f"{beside} {_tell(function, set())}"
    except TypeError:
        return ""
    return f"{function.__name__}_{hashlib.sha256(told.encode()).hexdigest()[:24]}"


def _tell(value: Any, seen: set[Any], asked: Iterable[str] = ()) -> str:
    """Return all that a value is to numba, of a module what is asked of it; a `TypeError` if unknown."""
    if value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        return f"{type(value)} {value!r}"
    if isinstance(value, tuple):
        return str([_tell(item, seen) for item in value])
    name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or ""
    if name.partition(".")[0] in STAMPED:
        return f"{name} {getattr(value, '__qualname__', value)}"
    if inspect.ismodule(value):
        own = vars(value)
        return str([(item, _tell(own[item], seen)) for item in asked if item in own])
    options = str(sorted(getattr(value, "targetoptions", {}).items()))
    function = getattr(value, "py_func", value)
    # One of a closure has the name of others in machine code.
    if not inspect.isfunction(function) or "<" in function.__qualname__:
        raise TypeError(value)
    if function in seen:
        return function.__qualname__
    seen.add(function)
    told = [options, _tell(function.__defaults__, seen)]
    codes = [function.__code__]
    for code in codes:
        told.append(code.co_code.hex())
        for item in code.co_consts:
            if inspect.iscode(item):
                codes.append(item)
            else:
                told.append(repr(item))
        read = {x.argval for x in dis.get_instructions(code) if x.opname == "LOAD_GLOBAL"}
        for name in sorted(read & function.__globals__.keys()):
            told.append(f"{name} {_tell(function.__globals__[name], seen, code.co_names)}")
        told += code.co_names
    return str(told)


def is_own_name(text: object) -> bool:
    """Whether a text names what a user has written, `module:name` or `file.py:name`."""
    return isinstance(text, str) and all(text.rpartition(":")[::2])


KEPT = re.compile(r"[\w.-]+:[\w.<>]+@[0-9a-f]{12}")


def check_kept(text: str, what: str, error: type[Exception] = InputError) -> None:
    """Refuse a name of a file that is not `module:name@hash`, such as a path: no file leads to another."""
    if is_own_name(text) and not KEPT.fullmatch(text):
        raise error(f"{what}: read {describe(text)}; expected module:name@hash in a file")


TRUST: ContextVar[bool | None] = ContextVar("trust", default=False)
"""Whether what files name is imported: None not at all, False if its source agrees, True unseen."""


@contextmanager
def trusting(trust: bool | None) -> Iterator[None]:
    """Import what files name until the end of the block, see `TRUST`; False leaves it as it is."""
    token = TRUST.set(TRUST.get() if trust is False else trust)
    try:
        yield
    finally:
        TRUST.reset(token)


def write_own(thing: Any) -> str:
    """Return how a file names a user's function or class: `module:name@hash`."""
    return f"{name_own(thing)}@{hash_own(thing)}"


def load_own(text: str, what: str, error: type[Exception] = InputError) -> Any:
    """Return what a name says: `module:name` or `file.py:name`, with `@hash` if it must be unchanged.

    Parameters
    ----------
    text : str
    what : str
        What it is for, such as "objective": the error's line begins with it.
    error : type, of what is raised

    Raises
    ------
    error
        If there is no such module or name, or its source has changed: then nothing is imported.
    """
    name, _, expected = text.partition("@")
    place, _, attribute = name.rpartition(":")
    shown = f"{what}: {describe(name)}"
    if expected and place.endswith(".py"):
        raise error(f"{shown}: read a path beside a hash; expected module:name@hash")
    try:
        found: Any = _import(place, attribute, expected)
    except _UnseenError as caused:
        raise error(f"{shown}: {caused}") from None
    except (Exception, SystemExit) as caused:  # whatever a module of a user's raises
        reason = make_printable(f"{type(caused).__name__}: {caused}"[:200])
        raise error(
            f"{shown}: cannot be imported ({reason}); expected "
            + ("its module on Python's path or here" if expected else "module:name or file.py:name")
        ) from None
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise error(f"{shown}: '{describe(place)}' has no '{describe(attribute)}'") from None
    own = found if hasattr(found, "__qualname__") else getattr(found, "function", found)
    if expected and hash_own(own) != expected:
        raise error(f"{shown}: {_tell_change([hash_own(own)], expected)}")
    return found


def _tell_change(read: list[str], expected: str) -> str:
    return f"its source has changed since; read {' or '.join(read)}, expected {expected}"


class _UnseenError(Exception):
    """A module is not imported, for its source does not agree."""


def _import(place: str, attribute: str = "", expected: str = "") -> ModuleType:
    """Import a module by its name, or by the path of its file, under its own name.

    With a hash only if the attribute's source has it, or it is trusted.
    """
    path = Path(place)
    is_file = path.suffix == ".py"
    name, folder = (path.stem, path.resolve().parent) if is_file else (place, Path.cwd())
    main = sys.modules[MAIN]
    script = Path(getattr(main, "__file__", None) or "")
    if name == MAIN or (script.stem == name and (not is_file or path.samefile(script))):
        return main
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # processes that are started find it, too
    if expected and not TRUST.get() and name not in sys.modules:
        read = _hash_unseen(name, attribute)
        if not read:
            raise _UnseenError(
                "read no def or class of that name in its file, to compare; expected one, or --trust-code "
                "(trust=True), which imports it unseen"
            )
        if expected not in read:
            raise _UnseenError(_tell_change(read, expected))
    module = importlib.import_module(name)
    if is_file and not path.samefile(getattr(module, "__file__", None) or ""):
        raise ImportError(f"another module is called {name}")
    return module


class Own(str):
    """What a user wrote, handed over in the place of a name: the text `module:name@hash`, which files keep.

    Formatted it is without its hash. What a file names is found when it is first asked for: reading alone
    imports nothing.

    Attributes
    ----------
    what : str, the option that it is given for, which errors name
    """

    what: str
    _thing: Any
    _trust: bool | None

    @classmethod
    def of(cls, thing: Any, what: str, *, is_object: bool = False) -> Own:
        """Return what was handed over, or what a text names; that with a hash is found later."""
        if isinstance(thing, str):
            found = None if "@" in thing else load_own(thing, what, ConfigError)
        else:
            found = thing
            if inspect.ismethod(found) or not (hasattr(found, "__qualname__") or is_object):
                refuse(
                    what, found, "a function or a class, by which files can name it", ConfigError
                )
        own = cls(thing if found is None else write_own(found))
        own.what, own._thing, own._trust = what, found, TRUST.get()
        return own

    def load(self) -> Any:
        """Return what the user wrote; a `ConfigError` if it is not there, or has changed."""
        if self._thing is None:
            with trusting(self._trust):
                self._thing = load_own(self, self.what, ConfigError)
        return self._thing

    def __format__(self, form: str) -> str:
        return format(self.partition("@")[0], form)

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


@dataclass(frozen=True)
class OwnField(Field):
    """One of some names, or what a user wrote: a function or a class, such an object, or `module:name`."""

    of: type | None = None

    @property
    def words(self) -> str:
        """What an error says it expected."""
        return f"{super().words}, or module:name"

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return a name, or an `Own`; parameters and errors as `Field`."""
        if isinstance(value, Own):
            return value
        if callable(value) or is_own_name(value) or (self.of and isinstance(value, self.of)):
            is_object = self.of is not None and isinstance(value, self.of)
            return Own.of(value, name, is_object=is_object)
        return super().read(name, value, error)
