"""What decides a finished training: a change to any of it means that a stored one is not used again."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import numba
import numpy as np
import scipy

ROOTS = ("acerl_np.training.acerl", "acerl_np.evaluation.trials")
"""Modules that train and judge; all that they import decides a result as well."""

RIVAL_ROOTS = (*ROOTS, "acerl_np.rivals.training")
"""Those of the compared learners."""


def find_modules(roots: tuple[str, ...] = ROOTS) -> dict[str, Path]:
    """Return the package's modules that `roots` import, directly or not, themselves included.

    Returns
    -------
    dict
        Source files by name, in the order of the names.
    """
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        spec = None if name in found else find_spec(name)
        if spec is None or spec.origin is None:
            continue
        found[name] = Path(spec.origin)
        for node in ast.walk(ast.parse(found[name].read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                # What is imported from a package may be a name or a module of it.
                named = [node.module, *(f"{node.module}.{item.name}" for item in node.names)]
            elif isinstance(node, ast.Import):
                named = [item.name for item in node.names]
            else:
                continue
            waiting += [other for other in named if _is_module(other)]
    return dict(sorted(found.items()))


def _is_module(name: str) -> bool:
    if not name.startswith("acerl_np."):
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False  # a name inside a module


def strip_source(source: bytes) -> str:
    """Return what Python makes of a source file, without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [item for item in node.body if not _is_text(item)]
    return ast.dump(tree, annotate_fields=False)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def result_stamp(roots: tuple[str, ...] = ROOTS) -> str:
    """Return the hash of the code that trains and judges, and of the libraries that compute for it.

    Parameters
    ----------
    roots : tuple of str
        As `find_modules`.

    Returns
    -------
    str
        64 hexadecimal digits; comments and docstrings do not change them.
    """
    versions = " ".join(
        f"{module.__name__} {module.__version__}" for module in (np, scipy, numba, llvmlite)
    )
    digest = hashlib.sha256(versions.encode())
    for name, path in find_modules(roots).items():
        digest.update(f"\0{name}\0{strip_source(path.read_bytes())}".encode())
    return digest.hexdigest()
