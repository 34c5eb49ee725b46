"""Pages of the reference, made of what the packages declare as public."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import acerl_np

TASKS = {
    "problem": "Floors and records",
    "commands": "What commands compute",
    "policies": "Deciding",
    "kernels": "Deciding",
    "simulation": "Simulating",
    "training": "Training",
    "evolution": "Training",
    "evaluation": "Comparing",
    "live": "Dispatching a real floor",
    "support": "Errors",
}
"""For which task a reader looks for the names of a room, in the order of a package's page."""
NAMED = 3
"""So many names of one home are a page's title; of more, the home's own name is."""


@functools.cache
def find_public_modules() -> dict[str, tuple[str, ...]]:
    """Return the packages that declare public names, and these names."""
    packages = [acerl_np.__name__]
    packages += [
        f"{acerl_np.__name__}.{item.name}"
        for item in pkgutil.iter_modules(acerl_np.__path__)
        if item.ispkg
    ]
    modules = {name: importlib.import_module(name) for name in packages}
    return {
        name: tuple(module.__all__)
        for name, module in modules.items()
        if hasattr(module, "__all__")
    }


@functools.cache
def find_public_names() -> dict[str, str]:
    """Return, for what is defined in other modules than it is imported from, the public name."""
    names = {}
    for module, public in find_public_modules().items():
        for name in public:
            names.setdefault(f"{_find_home(module, name)}.{name}", f"{module}.{name}")
    return names


def _find_home(module: str, name: str) -> str:
    """Return the module that defines a public name; the package itself for plain values."""
    value = getattr(importlib.import_module(module), name)
    is_defined = inspect.isclass(value) or inspect.isroutine(value)
    return str(value.__module__) if is_defined else module


def write_reference(folder: Path) -> None:
    """Write a page for each package, and in `names` one for each module that its names come from."""
    packages, pages = {}, {}
    for module, names in find_public_modules().items():
        homes: dict[str, list[str]] = {}
        for name in names:
            homes.setdefault(_find_home(module, name), []).append(name)
        for home, own in homes.items():
            pages[_file(module, home)] = _write_home(module, home, own)
        packages[module] = _write_module(module, homes)
    replace_pages(folder, packages)
    replace_pages(folder / "names", pages)


def replace_pages(folder: Path, pages: dict[str, str]) -> None:
    """Write pages, those that changed, and remove what an earlier build left."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _write_module(module: str, homes: dict[str, list[str]]) -> str:
    """Return a package's page: its names by the tasks that they are for, a line each."""
    lines = [*_head(module), _first(importlib.import_module(module)), ""]
    tasks: dict[str, list[str]] = {title: [] for title in (*TASKS.values(), "Others")}
    for home in sorted(homes):
        room = home.split(".")[1] if "." in home else ""
        tasks[TASKS.get(room, "Others")].append(home)
    used = {title: own for title, own in tasks.items() if own}
    for title, own in used.items():
        lines += _head(title, "-") if len(used) > 1 else []
        lines += [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
        for home in own:
            for name in homes[home]:
                value = getattr(importlib.import_module(module), name)
                lines += [f"   * - :py:obj:`~{module}.{name}`", f"     - {_first(value)}"]
        lines.append("")
    lines += [".. toctree::", "   :hidden:", ""]
    ordered = sorted(homes, key=lambda home: _title(module, home, homes[home]).lower())
    return "\n".join([*lines, *(f"   names/{_file(module, home)}" for home in ordered), ""])


def _write_home(module: str, home: str, names: list[str]) -> str:
    """Return the page of the names that come from one module."""
    lines = [*_head(_title(module, home, names)), f".. currentmodule:: {module}", ""]
    if home != module and len(names) > 1:
        lines += [_first(importlib.import_module(home)), ""]
    for name in names:
        value = getattr(importlib.import_module(module), name)
        if len(names) > 1:
            lines += _head(name, "-")
        if inspect.isclass(value):
            lines += [f".. autoclass:: {module}.{name}", "   :members:"]
            bases = [
                base for base in value.__mro__[1:-1] if base.__module__.startswith("acerl_np.")
            ]
            if bases and not issubclass(value, Exception):
                others = {base.__name__ for base in value.__mro__} - {b.__name__ for b in bases}
                lines.append(f"   :inherited-members: {','.join(sorted(others - {name}))}")
            if all(_is_linked(base) for base in vars(value).get("__orig_bases__", value.__bases__)):
                lines.append("   :show-inheritance:")
        elif inspect.isroutine(value):
            lines.append(f".. autofunction:: {module}.{name}")
        else:
            lines += [f".. py:data:: {name}", f"   :value: {value!r}"]
        lines.append("")
    return "\n".join(lines)


def _is_linked(base: object) -> bool:
    """Tell whether a reader gains from the name of a base class: exceptions and public ones."""
    if not inspect.isclass(base):  # one with type parameters
        return False
    public = f"{base.__module__}.{base.__name__}" in find_public_names()
    return public or issubclass(base, Exception)


def _file(module: str, home: str) -> str:
    return f"{module}.constants" if home == module else home


def _title(module: str, home: str, names: list[str]) -> str:
    if home == module:
        return "Constants"
    return ", ".join(names) if len(names) <= NAMED else home.rpartition(".")[2].capitalize()


def _head(title: str, line: str = "=") -> list[str]:
    return [title, line * len(title), ""]


def _first(value: object) -> str:
    """Return the first paragraph of a docstring in one line; nothing for plain values."""
    if not (isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
