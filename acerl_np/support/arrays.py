"""Named arrays of a state, read back: those that are there, each of the shape and kind that it had."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.support.errors import InputError


def take_arrays(
    given: Mapping[str, ArrayLike],
    own: Mapping[str, np.ndarray],
    of: str = "",
    *,
    growing: Container[str] = (),
) -> dict[str, np.ndarray]:
    """Return copies of the arrays that have the names of one's own.

    Parameters
    ----------
    given : mapping of str to array_like
    own : mapping of str to ndarray
        What is there now: names, dtypes and shapes. Texts may be of any length.
    of : str
        What they belong to, before each name in an error: "state: ".
    growing : container of str
        Names of arrays whose first axis may have another length.

    Raises
    ------
    InputError
        If an array is missing, or has another dtype or shape.
    """
    taken = {}
    for name, mine in own.items():
        if name not in given:
            raise InputError(f"{of}read no '{name}'; expected {mine.dtype} {mine.shape}")
        array = np.array(given[name])
        is_text = mine.dtype.kind == array.dtype.kind == "U"
        same = slice(1 if name in growing else 0, None)
        fits = array.ndim == mine.ndim and array.shape[same] == mine.shape[same]
        if not fits or not (is_text or array.dtype == mine.dtype):
            read, expected = (f"{a.dtype} {a.shape}" for a in (array, mine))
            raise InputError(f"{of}{name}: read {read}; expected {expected}")
        taken[name] = array
    return taken
