"""Docstrings say what the code takes: documented parameters are the actual ones, in every room."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest
from machine import needs_jit

import acerl_np

PACKAGE = Path(acerl_np.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def documented(docstring):
    """Names of the section of parameters, in order; None if there is none."""
    section = r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)"
    match = re.search(section, docstring, re.MULTILINE | re.DOTALL)
    if match is None:
        return None
    names = []
    for line in match.group(1).splitlines():
        # "a, b : type", several such on a line parted by semicolons; descriptions are indented.
        if re.match(r"[\w*]", line):
            for entry in line.split(";"):
                names += [name.strip(" *") for name in entry.split(" : ")[0].split(",")]
    return names


def actual(function, method):
    arguments = function.args
    names = [item.arg for item in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    if method and not any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list):
        names = names[1:]
    return names + [item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None]


def definitions(tree):
    """Functions and classes of a module that are public: (path, node, its parameters, its docstring)."""

    def walk(body, path, in_class):
        for node in body:
            if any(getattr(d, "id", "") == "overload" for d in getattr(node, "decorator_list", [])):
                continue
            if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
                yield (*path, node.name), node, actual(node, in_class), ast.get_docstring(node)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                makers = [n for n in node.body if getattr(n, "name", "") == "__init__"]
                parameters = actual(makers[0], True) if makers else None
                yield (*path, node.name), node, parameters, ast.get_docstring(node)
                yield from walk(node.body, (*path, node.name), True)

    yield from walk(tree.body, (), False)


def test_documented_parameters_are_the_actual_ones():
    """And what users call has a section for what it takes, unless it takes nothing."""
    documenting, faults = 0, []
    for file in FILES:
        for path, _, parameters, docstring in definitions(ast.parse(file.read_text())):
            name = f"{file.relative_to(PACKAGE)}: {'.'.join(path)}"
            if not docstring:
                faults.append(f"{name} has no docstring")
            found = documented(docstring or "")
            if not parameters:
                continue
            # A floor names its common arguments once, as kernels do.
            is_public = path[0] in acerl_np.__all__ and path[0] != "Floor"
            is_public &= file.parent.name != "plain"  # its classes are others of the same names
            if found is None:
                # One parameter that the summary explains needs no section.
                if is_public and path[-1] != "from_dict" and len(parameters) > 1:
                    faults.append(f"{name} documents none of {parameters}")
                continue
            documenting += is_public
            faults += [f"{name} does not take {item}" for item in found if item not in parameters]
            if "kernels" not in file.parts:  # these name problem, state, scratch once
                left = [item for item in parameters if item not in found]
                faults += [f"{name} does not document {item}" for item in left]
    assert faults == [] and documenting > 10


@needs_jit
@pytest.mark.parametrize(
    "path", [path for path in FILES if ">>> " in path.read_text()], ids=lambda path: path.stem
)
def test_examples_show_what_comes_out(path):
    if "gym" in path.relative_to(PACKAGE).parts:
        pytest.importorskip("gymnasium")
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("package", [acerl_np, acerl_np.evolution])
def test_type_checkers_see_the_names_that_programs_do(package):
    """Each from the module where it is defined."""
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    seen = {
        name.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname == name.name
    }
    if package is acerl_np:
        assert seen.pop("evolution") == "acerl_np" and seen.pop("__version__")
    assert sorted(seen) == package.__all__
    for name, home in seen.items():
        assert getattr(importlib.import_module(home), name) is getattr(package, name)
