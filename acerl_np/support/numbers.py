"""Kinds of numbers that callers may give: Python's and NumPy's alike."""

from __future__ import annotations

import math
from numbers import Integral, Real


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
