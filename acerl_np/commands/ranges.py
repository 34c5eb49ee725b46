"""Ranges of options that are numbers: data beside the options, one check."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from acerl_np.support.errors import InputError


class Range(NamedTuple):
    """What an option may be: from `low` to `high`, both in it, and that in words.

    `form` is the format of what was read, for the error.
    """

    low: float
    high: float
    expected: str
    form: str = ""


def check_ranges(arguments: argparse.Namespace, ranges: Mapping[str, Range]) -> None:
    """Refuse an option outside its range; one that was left out and is None passes."""
    for name, allowed in ranges.items():
        value = getattr(arguments, name)
        if value is not None and not allowed.low <= value <= allowed.high:
            raise InputError(
                f"--{name.replace('_', '-')}: read {value:{allowed.form}}; "
                f"expected {allowed.expected}"
            )
