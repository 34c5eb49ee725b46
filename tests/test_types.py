"""What type checkers see: seeds may be NumPy's, and an installation shows its types."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
import venv
from pathlib import Path

import numpy as np
import pytest

import acerl_np
import acerl_np.rivals

ROOT = Path(acerl_np.__file__).parents[1]

USER = """
import numpy as np
import acerl_np
import acerl_np.rivals
instance = acerl_np.load_instance("DMH-01")
seed = np.random.default_rng(0).integers(100)
acerl_np.Simulator(instance, seed=seed).reset(seed=np.int32(3))
acerl_np.ACERL(instance, seed=np.arange(3)[0])
acerl_np.evaluate_policy("EDD", [instance], seed=seed)
acerl_np.rivals.train("ppo", instance, seed=seed)
reveal_type(instance)
"""


def find_seeded():
    """Public functions, constructors and methods that take a seed."""
    public = [getattr(acerl_np, name) for name in acerl_np.__all__]
    public += [getattr(acerl_np.rivals, name) for name in acerl_np.rivals.__all__]
    try:
        from acerl_np.gym import DMHEnv, DMHVectorEnv

        public += [DMHEnv, DMHVectorEnv]
    except ImportError:
        pass
    for item in public:
        members = [item]
        if inspect.isclass(item):
            own = [one for name, one in vars(item).items() if not name.startswith("_")]
            members = [item.__init__, *(getattr(one, "__func__", one) for one in own)]
        for member in members:
            if inspect.isfunction(member):
                names = {"seed", "seeds"} & inspect.signature(member).parameters.keys()
                for name in names:
                    yield member, name


def kinds(hint):
    """All classes that a type hint is made of."""
    yield typing.get_origin(hint) or hint
    for part in typing.get_args(hint):
        yield from kinds(part)


def test_seeds_may_be_numpys():
    seeded = list(find_seeded())
    assert len(seeded) > 10
    for function, name in seeded:
        hint = typing.get_type_hints(function)[name]
        assert {int, np.integer} <= set(kinds(hint)), f"{function.__qualname__}: {name}: {hint}"


@pytest.mark.slow
def test_an_editable_installation_shows_its_types(tmp_path):
    """As docs/developing.md says to install."""
    pytest.importorskip("mypy", reason="needs mypy")
    assert "--config-settings editable_mode=compat" in (ROOT / "docs/developing.md").read_text()
    venv.create(tmp_path / "venv", with_pip=True, system_site_packages=True)
    python = tmp_path / "venv/bin/python"
    command = [python, "-m", "pip", "install", "-q", "--no-deps", "-e", ROOT]
    subprocess.run([*command, "--config-settings", "editable_mode=compat"], check=True)
    (tmp_path / "user.py").write_text(USER)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "acerl_np.problem.instance.Instance"' in checked.stdout
    assert checked.returncode == 0, checked.stdout
