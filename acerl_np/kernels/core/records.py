"""Arrays of records: kernels and plain Python read and write the fields of an entry as attributes.

The fields of a whole array are columns, by their names: `state.vehicle["task"]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acerl_np.support.compiled import inner_kernel


def describe_record(names: Mapping[type, Sequence[str]]) -> np.dtype[Any]:
    """Return the dtype of a record, by the names of its fields of each type.

    Raises
    ------
    ValueError
        If NumPy's records have an attribute of that name, which plain Python would read instead.
    """
    fields = [(name, kind) for kind, own in names.items() for name in own]
    if taken := sorted({name for name, _ in fields}.intersection(dir(np.record))):
        raise ValueError(f"fields {taken}: names of attributes of NumPy's records")
    # Without `align` numba would read byte by byte, and other entries than `record` have no attributes.
    return np.dtype((np.record, np.dtype(fields, align=True)))


@inner_kernel
def copy_records(source, i, target, j, n):
    """Copy n records from entry i of a row (ndarray((m,))) on to entry j of another row on.

    An assignment of a record would become one of single bytes.
    """
    words = source.itemsize // 8
    own, other = source.view(np.int64), target.view(np.int64)
    for k in range(n * words):
        other[j * words + k] = own[i * words + k]


@inner_kernel
def swap_records(row, i, j):
    """Let entries i and j of a row of records change places."""
    n, words = row.itemsize // 8, row.view(np.int64)
    for k in range(n):
        words[i * n + k], words[j * n + k] = words[j * n + k], words[i * n + k]


@inner_kernel
def clear_records(row):
    """Make all fields of a row of records 0."""
    row.view(np.int64)[:] = 0
