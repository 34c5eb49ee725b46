"""The README's Python examples run as they stand."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
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


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="examples train, which needs the compiler"
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_commands_for_an_own_floor_run(tmp_path):
    """As a user types them in a clone; the program is this environment's."""
    section = README.split("\n## Your own floor\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    commands = "".join(blocks)
    root = Path(__file__).parent.parent
    (tmp_path / "tests").mkdir()
    shutil.copytree(root / "tests" / "data", tmp_path / "tests" / "data")
    program = f'set -e\nacerl-np() {{ "{sys.executable}" -m acerl_np "$@"; }}\n{commands}'
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "policy.npz").exists()
