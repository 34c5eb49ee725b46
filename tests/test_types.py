"""What type checkers see: seeds may be NumPy's, and an installation shows its types."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing
from contextlib import suppress

import numpy as np
import pytest

import acerl_np
from acerl_np.support import fields

USER = """
import numpy as np

import acerl_np
from acerl_np.support import fields

records = acerl_np.load_suite("dmh-train")
seed = np.random.default_rng(0).integers(100)
acerl_np.Simulator(records, seed=seed).reset(seed=np.int32(3))
config = acerl_np.Config.preset("best", decisions=50_000)
acerl_np.ACERL(records, config, seed=np.arange(3)[0])
acerl_np.evaluate_policy("EDD", records, seed=seed)
for order in acerl_np.Dispatcher("dmh", "STD").decide(0.0):
    print(order.vehicle, order.number, order.repeated, order.describe())
    if order.kind == "Assigned":
        print(order.task, order.finish)
    elif order.kind == "Recall":
        print(order.task)
    else:
        print(order.site)
    match order:
        case acerl_np.Assignment(vehicle, task):
            print(vehicle, task)
        case acerl_np.Park(vehicle, site) | acerl_np.Charge(vehicle, site):
            print(vehicle, site)
reveal_type(config)
reveal_type(acerl_np.ACERL(records).policy)
reveal_type(acerl_np.evolution.Evolution([0.0, 0.0], sigma=1.0).mean)
"""

REVEALED = "training.config.Config", "policies.network.Policy", "numpy.ndarray"


INNER = {
    "tables of kernels": "Problem Rows State Tables Outcome Routes",
    "a policy, an event, in a parameter": "Chooser HasRules HasSlots BasePolicy Event",
    "what a user writes, and how files name it": "Chooses Own OwnRule",
    "parts of what commands find": "Comparison Reading RecordCheck Trace Margin Reference Load Row",
    "policies of any form; lines and days of a verdict": "AnyPolicy BadDay VerdictRow",
    "a line of an origin": "Place TrainingRecord",
    "how an export's dates are read": "DateFormat",
    "of a search, of environments: ends of episodes, what they take; threads": "Box Settled Settings Workers",
}
INNER = set(" ".join(INNER.values()).split())
"""Types in public signatures that no user need build, or import to use what is received."""


def list_public():
    """Public things of all packages that declare any."""
    modules = [acerl_np, acerl_np.evolution]
    with suppress(ImportError):
        modules.append(importlib.import_module("acerl_np.gym"))
    return {getattr(module, name): name for module in modules for name in module.__all__}


def find_annotated(item):
    """What is public of a class, or of a function, with the class or function that it stands in."""
    if not inspect.isclass(item):
        return [(item, item)] if inspect.isroutine(item) else []
    own = [base for base in item.__mro__ if base.__module__.startswith("acerl_np.")]
    found = [(base, base) for base in own]
    for base in own:
        names = [name for name in vars(base) if name == "__init__" or not name.startswith("_")]
        found += [(base, vars(base)[name]) for name in names]
    return found


def find_types():
    """Types of the package in annotations of what is public, and where each stands."""
    known = {}
    for found in pkgutil.walk_packages(acerl_np.__path__, "acerl_np."):
        with suppress(ImportError):
            if not found.name.endswith(("__main__", "acerl_np.train")):
                names = vars(importlib.import_module(found.name))
                known = {**{x: y for x, y in names.items() if not inspect.ismodule(y)}, **known}
    for item, public in list_public().items():
        for home, member in find_annotated(item):
            function = getattr(member, "__func__", member)
            for name in ("fget", "func"):  # of properties
                function = getattr(function, name, function)
            names, annotated = {**known, **vars(sys.modules[home.__module__])}, {}
            if inspect.isclass(function):
                annotated = vars(function).get("__annotations__", {})
            elif inspect.isfunction(function):
                annotated = function.__annotations__
            for name, text in annotated.items():
                text = getattr(text, "__forward_arg__", text)  # of a NamedTuple
                hint = eval(text, names) if isinstance(text, str) else text
                for kind in () if name.startswith("_") else list_kinds(hint):
                    if inspect.isclass(kind) and kind.__module__.startswith("acerl_np."):
                        yield kind, f"{getattr(function, '__qualname__', public)}: {name}"


def list_kinds(hint):
    """All that a type hint is made of, parameters of functions among it."""
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from list_kinds(part)
    else:
        yield typing.get_origin(hint) or hint
        yield from list_kinds(typing.get_args(hint))


def test_seeds_may_be_numpys():
    """Of functions, constructors and methods."""
    tried = 0
    for item in set(list_public()) - {acerl_np.evolution.Search}:  # which is given checked numbers
        members = [member for home, member in find_annotated(item) if home is item]
        for member in [*members, getattr(item, "__init__", None)]:
            function = getattr(member, "__func__", member)
            taken = inspect.signature(function).parameters if inspect.isfunction(function) else {}
            for name in {"seed", "seeds"} & taken.keys():
                hint = function.__annotations__[name]
                hint = eval(hint, {**vars(fields), **vars(sys.modules[function.__module__])})
                told = f"{function.__qualname__}: {name}: {hint}"
                assert {int, np.integer} <= set(list_kinds(hint)), told
                tried += 1
    assert tried > 10


def test_types_in_public_signatures_are_public():
    """What a user must build or receive is imported from the top, or from its package."""
    public, found = list_public(), {}
    for kind, where in find_types():
        if kind not in public:
            found.setdefault(kind.__name__, []).append(where)
    assert {name: found[name] for name in found.keys() - INNER} == {}
    with_gym = "acerl_np.gym" in sys.modules
    assert INNER - found.keys() <= (set() if with_gym else {"Settled", "Settings"})


def test_a_users_script_is_followed(tmp_path):
    """Outside the repository, by the installation that the README makes."""
    pytest.importorskip("mypy", reason="needs mypy")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "user.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    revealed = [line for line in checked.stdout.splitlines() if "Revealed type" in line]
    for line, expected in zip(revealed, REVEALED, strict=True):
        assert expected in line
