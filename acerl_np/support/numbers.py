"""Kinds of numbers that callers may give, Python's and NumPy's alike, and the check of seeds."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from acerl_np.support.fields import SEED

Whole: TypeAlias = int | np.integer[Any]
"""A whole number as callers give it, Python's or NumPy's."""


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
    """Return a seed, a whole number from 0 to 2**63 - 1, as Python's int; refuse what is none."""
    found: int = SEED.read(name, seed)
    return found
