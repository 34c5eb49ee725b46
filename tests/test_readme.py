"""The README's Python examples run as they stand."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numba
import pytest

from acerl_np.commands.main import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

SHORT = {"train": ["--generations", "2"]}
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
def test_the_commands_for_an_own_floor_run(tmp_path, monkeypatch, capsys):
    """As a user types them in a clone, but in this process and with short trainings."""
    section = README.split("\n## Your own floor\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    commands = "".join(blocks)
    root = Path(__file__).parent.parent
    (tmp_path / "tests").mkdir()
    shutil.copytree(root / "tests" / "data", tmp_path / "tests" / "data")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line in commands.replace("\\\n", " ").splitlines():
        if line.startswith("acerl-np "):
            words = shlex.split(line, comments=True)[1:]
            words = [
                name for word in words for name in sorted(map(str, Path().glob(word))) or [word]
            ]
            assert main(words + SHORT.get(words[0], [])) == 0, line + capsys.readouterr().err
            ran += 1
        else:
            subprocess.run(["bash", "-ec", line], check=True)
    assert ran == commands.count("acerl-np ") > 5
    assert (tmp_path / "run" / "policy.npz").exists()
