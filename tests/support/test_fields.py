"""Kinds and ranges of options, and the one line that refuses a value."""

import math

import numpy as np
import pytest

from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.fields import MOST, SEED, Field

POSITIVE = Field(float, 0.0, 1.0, above=True)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (Field(int, 2), np.int32(2), 2),
        (Field(int, 2, optional=True), None, None),
        (Field(float), np.float32(0.5), 0.5),
        (Field(float), 3, 3.0),
        (Field(float), math.inf, math.inf),
        (Field(bool), np.bool_(True), True),
        (Field(("isr", "r")), "r", "r"),
        (SEED, 2**63 - 1, 2**63 - 1),
    ],
)
def test_values_become_pythons_own(field, value, expected):
    read = field.read("name", value)
    assert (read, type(read)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        (Field(int, 2), 1, "read 1; expected a whole number of at least 2"),
        (Field(int, 2), None, "read None; expected a whole number of at least 2"),
        (Field(int, 1, 10_000), 2.0, "read 2.0; expected a whole number from 1 to 10,000"),
        (Field(int, 0), True, "read True; expected a whole number of at least 0"),
        (Field(float, 0.0, MOST), math.inf, "read inf; expected a finite number of at least 0"),
        (Field(float, 0.0, MOST), 10**400, f"read {str(10**400)[:57]}...; expected a finite"),
        (POSITIVE, 0.0, "read 0.0; expected a number above 0 to 1"),
        (POSITIVE, math.nan, "read nan; expected a number above 0 to 1"),
        (POSITIVE, "1", "read 1; expected a number above 0 to 1"),
        (Field(bool), 1, "read 1; expected true or false"),
        (Field(("isr", "r")), "x\n", "read 'x\\n'; expected one of isr, r"),
        (Field(("isr", "r")), ["r"], "read '['r']'; expected one of isr, r"),
        (SEED, -1, "read -1; expected a whole number from 0 to 2**63 - 1"),
    ],
)
def test_others_are_refused_in_one_line(field, value, line):
    with pytest.raises(ConfigError) as caught:
        field.read("name", value)
    assert str(caught.value).startswith(f"name: {line}")
    with pytest.raises(InputError):
        field.read("name", value, InputError)
