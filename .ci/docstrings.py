"""Hold the docstrings of public names to numpydoc's rules: all parameters are told, and no others.

What users meet first also has examples and sees others. `.ci/docs` calls it; numpydoc says what a code means.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

import site_reference

from acerl_np import Floor

ALL = {"PR01", "PR02", "PR10", "GL03"}
MET_FIRST = {"EX01", "SA01"}
# fmt: off
FIRST = {
    "ACERL", "Agent", "Config", "Dispatcher", "Goal", "IndexPolicy", "Instance", "Layout",
    "Lookahead", "Policy", "Simulator", "TaskArrived", "Trials", "VehicleIdle",
    "evaluate_policy", "feature", "generate_shift", "load_instance", "load_layout",
    "load_policy", "load_records", "load_suite", "perturb", "rule", "evolution.Evolution",
    "evolution.optimize", "gym.DMHEnv",
}
# fmt: on


def find_faults(path: str, value: Any, codes: set[str]) -> list[str]:
    """Return what is wrong with a docstring; a record's attributes are its parameters."""
    doc = NumpyDocString(inspect.getdoc(value) or "")
    told = {name for item in doc["Attributes"] for name in item.name.split(", ")}
    found = []
    # By the name of its home: `acerl_np.train` is a module, too.
    for code, text in validate(f"{value.__module__}.{value.__qualname__}")["errors"]:
        missing = set(re.findall(r"'(\w+)'", text)) if code == "PR01" else {""}
        if code in codes and missing - told:
            found.append(f"{path}: {code} {text}")
    return found


def main() -> int:
    """Print what is wrong with public names."""
    faults = []
    for module, names in site_reference.find_public_modules().items():
        for name in names:
            path = f"{module}.{name}"
            value = getattr(importlib.import_module(module), name)
            if value is Floor or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue  # a floor is given to a rule, and made by nobody
            codes = ALL | (MET_FIRST if path.removeprefix("acerl_np.") in FIRST else set())
            faults += find_faults(path, value, codes)
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
