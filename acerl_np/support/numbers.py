"""Kinds of numbers that callers may give, Python's and NumPy's alike, and the check of seeds."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from acerl_np.support.errors import ConfigError, describe

Whole: TypeAlias = int | np.integer[Any]
"""A whole number as callers give it, Python's or NumPy's."""

MAX_SEED = 2**63 - 1


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number and no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Whether `value` is a finite number and no bool."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def check_seed(seed: Any, name: str = "seed") -> int:
    """Return a seed, a whole number from 0 to `MAX_SEED`, as Python's int; refuse what is none."""
    if not is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ConfigError(
            f"{name}: read {describe(seed)}; expected a whole number from 0 to 2**63 - 1"
        )
    return int(seed)
