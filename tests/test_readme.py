"""The README's Python examples run as they stand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numba
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

EXTRAS = {"gymnasium": "import gymnasium", "pymoo": "pymoo", "matplotlib": "matplotlib"}


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="examples train, which needs the compiler"
)
@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.splitlines()[-1][:40])
def test_examples_run(code, tmp_path, monkeypatch):
    for module, sign in EXTRAS.items():
        if sign in code and importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
