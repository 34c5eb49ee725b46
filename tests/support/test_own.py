"""What users write themselves: named, found again, and refused where it has changed."""

import builtins
import importlib
import sys

import pytest
from tables_and_refusals import list_unrefused

from acerl_np import InputError
from acerl_np.support.own import (
    hash_own,
    is_own_name,
    load_own,
    name_compiled,
    name_own,
    trusting,
    write_own,
)

SOURCE = '''
class Kept:
    def rate(self, x):
        """Words."""
        return 2 * x  # more words


def double(x):
    return 2 * x
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "own_module_of_a_test.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop(path.stem, None)


def test_a_name_leads_back(module):
    double = load_own(f"{module}:double", "rule")
    assert double(3) == 6
    assert name_own(double) == "own_module_of_a_test:double"
    assert load_own(write_own(double), "rule") is double
    kept = load_own("own_module_of_a_test:Kept", "sampler")
    assert name_own(kept()) == "own_module_of_a_test:Kept" and hash_own(kept()) == hash_own(kept)
    assert load_own("own_module_of_a_test:Kept.rate", "x") is kept.rate
    before = hash_own(kept.rate)
    assert before != hash_own(double)
    cases = [
        ("no_such_module:x", "rule: no_such_module:x: cannot be imported (ModuleNotFoundError"),
        ("math:no", "rule: math:no: 'math' has no 'no'"),
        (f"{module}:double@0123", "read a path beside a hash; expected module:name@hash"),
        ("own_module_of_a_test:double@0123", "has changed since; read "),
        (f"{module}/none.py:double", "cannot be imported"),
    ]
    assert list_unrefused(lambda text: load_own(text, "rule"), cases) == []
    # Only what the source says counts.
    sys.modules.pop(module.stem)
    module.write_text(SOURCE.replace("# more words", "").replace("Words", "Other words"))
    assert hash_own(load_own(f"{module}:Kept", "x").rate) == before
    assert is_own_name("a:b") and is_own_name("a/b.py:c")
    assert not any(map(is_own_name, ("EDD", "late+0.05*tardiness", ":x", "x:", None, 3)))


RUNS = "import builtins\nbuiltins.own_module_has_run = True\n"


@pytest.fixture
def nested(tmp_path, monkeypatch):
    """A module in a package in a folder without `__init__.py`, both of which tell when they run."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_space_of_a_test" / "deep" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(RUNS)
    path = package / "leaf.py"
    words = 'len("""a\nb""")'
    path.write_text(
        f"{RUNS}if True:\n    @staticmethod\n    def double(x):\n        {words}\n        return 2 * x\n"
    )
    name = "own_space_of_a_test.deep.package.leaf:double"
    kept = write_own(load_own(name, "rule"))

    def forget():
        for own in [own for own in sys.modules if own.startswith("own_space_of_a_test")]:
            del sys.modules[own]
        monkeypatch.delattr(builtins, "own_module_has_run", raising=False)

    forget()
    yield path, kept, forget
    forget()


def test_what_differs_is_never_run(nested):
    path, kept, forget = nested
    source = path.read_text()
    path.write_text(source.replace("2 * x", "3 * x"))
    importlib.invalidate_caches()
    for trust in (False, None):
        with trusting(trust), pytest.raises(InputError, match=r"double: its source has changed"):
            load_own(kept, "rule")
    path.write_text(f"{RUNS}exec('def double(x): return 2 * x')\n")
    with pytest.raises(InputError, match=r"read no def or class .*--trust-code \(trust=True\)"):
        load_own(kept, "rule")
    assert not hasattr(builtins, "own_module_has_run")
    with trusting(True):
        made = load_own(kept.partition("@")[0], "rule")
        assert load_own(write_own(made), "rule") is made
    forget()
    path.write_text(source)
    importlib.invalidate_caches()
    assert load_own(kept, "rule")(3) == 6


def test_what_is_not_compiled_anew_reads_the_same(module):
    place = "from collections import namedtuple\nat = namedtuple('At', 'x y')(1, 2)\n"
    source = f"{place}def rule():\n    return at.x\n"

    def name(text):
        sys.modules.pop(module.stem, None)
        module.write_text(text)
        importlib.invalidate_caches()
        return name_compiled(load_own(f"{module}:rule", "rule"), "")

    first = name(source)
    assert first and name(f"# Words\nother = 1\n{source}") == first
    assert name(source.replace("x y", "y x")) not in ("", first)
    # numba may compile something else in the place of a function that is not its own.
    assert name("def helper():\n    return 1\n" + source.replace("at.x", "helper()")) == ""
