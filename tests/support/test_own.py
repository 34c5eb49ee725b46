"""What users write themselves: named, found again, and refused where it has changed."""

import sys

import pytest

from acerl_np import InputError
from acerl_np.support.own import hash_own, is_own_name, load_own, name_own, write_own

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
    assert hash_own(kept.rate) != hash_own(double)


def test_only_what_the_source_says_counts(module):
    before = hash_own(load_own(f"{module}:Kept", "x").rate)
    sys.modules.pop(module.stem)
    module.write_text(SOURCE.replace("# more words", "").replace("Words", "Other words"))
    assert hash_own(load_own(f"{module}:Kept", "x").rate) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_such_module:x", "rule: no_such_module:x: cannot be imported .ModuleNotFoundError"),
        ("math:no", "rule: math:no: 'math' has no 'no'"),
        ("{}:double@0123", "read a path beside a hash; expected module:name@hash"),
        ("own_module_of_a_test:double@0123", "has changed since; read .*, expected 0123"),
        ("{}/none.py:double", "cannot be imported"),
    ],
)
def test_what_is_not_there_is_one_line(module, text, message):
    load_own(f"{module}:double", "rule")
    with pytest.raises(InputError, match=message) as caught:
        load_own(text.format(module), "rule")
    assert "\n" not in str(caught.value)


def test_names_of_own_parts():
    assert is_own_name("a:b") and is_own_name("a/b.py:c")
    assert not any(map(is_own_name, ("EDD", "late+0.05*tardiness", ":x", "x:", None, 3)))
