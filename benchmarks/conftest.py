"""Shared pieces of the benchmarks: warm kernels, instances, the tests' oracles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import acerl_np

# The slow oracles that the tests use are the references here.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


@pytest.fixture(scope="session", autouse=True)
def warm_kernels() -> None:
    acerl_np.warm_up()


@pytest.fixture(scope="session")
def suite() -> list[acerl_np.Instance]:
    return acerl_np.load_suite("dmh-train")
