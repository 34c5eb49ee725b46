"""Tuples that kernels hand to each other by reference: what is read and written is as in Python."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pytest

from acerl_np.support.compiled import inner_kernel, kernel, large_kernel

needs_jit = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="without the compiler nothing goes by reference"
)


class Same(NamedTuple):
    """Fields of one type."""

    first: np.ndarray
    second: np.ndarray


class Parts(NamedTuple):
    """Fields of all types that kernels have, and of several sizes."""

    is_on: bool
    count: int
    same: Same
    share: float
    cube: np.ndarray
    small: np.ndarray
    numbers: tuple[int, ...]


def make_parts():
    cube = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    same = Same(np.arange(3.0), np.arange(10.0, 14.0))
    return Parts(True, 3, same, 0.5, cube, np.zeros(2, np.bool_), (5, 6, 7))


@inner_kernel
def add_up(same, factor):
    total = 0.0
    for k in range(len(same.first)):
        total += factor * same.first[k] + same.second[k % len(same.second)]
    return total


@large_kernel
def write(parts, others, k):
    """What one leads to, the other does, too."""
    before = others.cube[1, 2, 3]
    parts.cube[1, 2, 3] += k
    parts.small[k % 2] = not others.small[k % 2]
    return others.cube[1, 2, 3] - before


@kernel
def use(parts, others, n):
    allocated = np.zeros(n)
    same = parts.same
    for k in range(n):
        turned = Same(same.second, same.first)
        allocated[k] = add_up(turned, parts.share) + add_up(factor=2.0, same=parts.same)
        allocated[k] += write(parts, others, k) * parts.numbers[k % 3]
        if parts.is_on and others.small[k % 2]:
            allocated[k] += parts.count
    return allocated


@needs_jit
def test_what_lies_there_is_read_and_written_as_in_python():
    here, there = make_parts(), make_parts()
    found, expected = use(here, here, 7), use.py_func(there, there, 7)
    assert found.tolist() == expected.tolist()
    assert here.cube.tobytes() == there.cube.tobytes()
    assert here.small.tolist() == there.small.tolist()


@needs_jit
def test_a_function_for_kernels_takes_a_tuple_by_reference():
    use(make_parts(), make_parts(), 1)
    if not write.called_signatures():  # its caller came from the cache of an earlier run
        use.recompile()
    [signature] = write.called_signatures()
    assert [str(kind).partition(".")[0] for kind in signature[:2]] == ["Parts", "Parts"]
    assert signature[0] == signature[1]
