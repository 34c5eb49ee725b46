"""What users write themselves: named, found again, and imported where a file is trusted."""

import gc
import importlib
import sys

import pytest
from tables_and_refusals import list_unrefused

from acerl_np import InputError
from acerl_np.support.own import (
    Own,
    is_own_name,
    load_kept,
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
    gc.collect()  # else its functions are known


def test_a_name_leads_back(module):
    double = load_own(f"{module}:double", "rule")
    assert double(3) == 6
    assert name_own(double) == "own_module_of_a_test:double"
    assert load_own(write_own(double), "rule") is double
    kept = load_own("own_module_of_a_test:Kept", "sampler")
    assert name_own(kept()) == "own_module_of_a_test:Kept"
    assert load_own("own_module_of_a_test:Kept.rate", "x") is kept.rate
    cases = [
        ("no_such_module:x", "rule: no_such_module:x: cannot be imported (ModuleNotFoundError"),
        ("math:no", "rule: math:no: 'math' has no 'no'"),
        (f"{module}/none.py:double", "cannot be imported"),
    ]
    assert list_unrefused(lambda text: load_own(text, "rule"), cases) == []
    assert is_own_name("a:b") and is_own_name("a/b.py:c")
    assert not any(map(is_own_name, ("EDD", "late+0.05*tardiness", ":x", "x:", None, 3)))


def test_a_file_imports_nothing_unless_it_is_trusted(module, monkeypatch):
    """Not what is imported already, either: any function of any module could be named so."""
    monkeypatch.chdir(module.parent)
    name, before = "own_module_of_a_test:double", list(sys.path)
    for text in (name, "os:abort"):
        with pytest.raises(InputError, match=rf"rule: read {text}, .*--trust-code \(trust=True\)"):
            load_kept(text, "rule")
    assert module.stem not in sys.modules
    with trusting(True):
        found, later = load_kept(name, "rule"), Own.kept(name, "objective")
    assert found(3) == 6 and later.load() is found
    assert sys.path == before
    with pytest.raises(InputError):
        load_kept(name, "rule")
    write_own(found)  # as by whoever hands it over
    assert load_kept(name, "rule") is found


@pytest.mark.parametrize("text", ["a/b.py:f", "b.py:f", "a:b:f", "../b:f", "a b:f", "a:f g"])
def test_no_name_in_a_file_is_a_path(text):
    with trusting(True), pytest.raises(InputError, match="expected module:name in a file"):
        load_kept(text, "rule")


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
    other = module.with_name("another_module_of_a_test.py")
    other.write_text(source)
    found = name_compiled(load_own(f"{other}:rule", "rule"), "")
    sys.modules.pop(other.stem)
    assert found not in ("", first)  # what is kept names its module, which need not be there
    # numba may compile something else in the place of a function that is not its own.
    assert name("def helper():\n    return 1\n" + source.replace("at.x", "helper()")) == ""
