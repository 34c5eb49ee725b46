"""What users write themselves and hand over: how a file names it, and how it is found again.

A name is `module:name`, as an entry point's; a file adds a hash of the source. Comments, layout and the
docstring do not count for the hash, nor does what the source calls.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from acerl_np.support.errors import InputError, describe, make_printable

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
        tree = ast.parse(textwrap.dedent(inspect.getsource(home)))
    except (OSError, TypeError, SyntaxError):  # typed in, or of an extension module
        code = getattr(home, "__code__", None)
        return hashlib.sha256(code.co_code if code else b"").hexdigest()[:12]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = []
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def is_own_name(text: object) -> bool:
    """Whether a text names what a user has written, `module:name` or `file.py:name`."""
    return isinstance(text, str) and all(text.rpartition(":")[::2])


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
    error : type of exception

    Raises
    ------
    InputError
        Or `error`: if there is no such module or name, or its source has changed.
    """
    name, _, expected = text.partition("@")
    place, _, attribute = name.rpartition(":")
    shown = f"{what}: {describe(name)}"
    try:
        found: Any = _import(place)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise error(f"{shown}: '{describe(place)}' has no '{describe(attribute)}'") from None
    except Exception as caused:  # whatever a module of a user's raises
        reason = make_printable(f"{type(caused).__name__}: {caused}"[:200])
        raise error(
            f"{shown}: cannot be imported ({reason}); expected module:name or file.py:name"
        ) from None
    own = getattr(found, "function", found)
    if expected and hash_own(own) != expected:
        raise error(
            f"{shown}: its source has changed since; read {hash_own(own)}, expected {expected}"
        )
    return found


def _import(place: str) -> ModuleType:
    """Import a module by its name, or by the path of its file, under its own name."""
    path = Path(place)
    is_file = path.suffix == ".py"
    name, folder = (path.stem, path.resolve().parent) if is_file else (place, Path.cwd())
    main = sys.modules[MAIN]
    if name == MAIN or Path(getattr(main, "__file__", None) or "").stem == name:
        return main
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # processes that are started find it, too
    module = importlib.import_module(name)
    if is_file and not path.samefile(module.__file__ or ""):
        raise ImportError(f"another module is called {name}")
    return module
