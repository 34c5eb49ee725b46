"""What type checkers see: seeds may be NumPy's, and an installation shows its types."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing

import numpy as np
import pytest

import acerl_np
import acerl_np.rivals

USER = """
import numpy as np

import acerl_np

records = acerl_np.load_suite("dmh-train")
seed = np.random.default_rng(0).integers(100)
acerl_np.Simulator(records, seed=seed).reset(seed=np.int32(3))
config = acerl_np.Config.preset("best", decisions=50_000)
acerl_np.ACERL(records, config, seed=np.arange(3)[0])
acerl_np.evaluate_policy("EDD", records, seed=seed)
reveal_type(config)
reveal_type(acerl_np.rivals.train("ppo", records, seed=seed))
reveal_type(acerl_np.evolution.Evolution([0.0, 0.0], sigma=1.0).mean)
"""

REVEALED = (
    "acerl_np.training.config.Config",
    "acerl_np.policies.network.Policy",
    "numpy.ndarray",
)


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


def test_a_users_script_is_followed(tmp_path):
    """Outside the repository, by the installation that the README makes."""
    pytest.importorskip("mypy", reason="needs mypy")
    (tmp_path / "user.py").write_text(USER)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
    revealed = [line for line in checked.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(REVEALED)
    for line, expected in zip(revealed, REVEALED, strict=True):
        assert expected in line
