"""Ranges of the options that a command itself looks at: data here and beside the options, one check."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from acerl_np.support.errors import InputError


class Range(NamedTuple):
    """What an option may be.

    Attributes
    ----------
    low, high : float
        Both belong to the range.
    expected : str
        The range in words, for the error.
    form : str
        Format of what was read, for the error.
    """

    low: float
    high: float
    expected: str
    form: str = ""


COST_LIMIT = Range(0.0, 1e9, "seconds from 0 to 1e9")


def check_ranges(arguments: argparse.Namespace, ranges: Mapping[str, Range]) -> None:
    """Refuse an option outside its range; one that was left out and is None passes.

    Parameters
    ----------
    arguments : argparse.Namespace
    ranges : mapping of Range
        By the name of the argument, in the order in which they are looked at.

    Raises
    ------
    InputError
        With the first option that is out of range.
    """
    for name, allowed in ranges.items():
        value = getattr(arguments, name)
        if value is not None and not allowed.low <= value <= allowed.high:
            raise InputError(
                f"--{name.replace('_', '-')}: read {value:{allowed.form}}; "
                f"expected {allowed.expected}"
            )
