"""Shared pieces of the benchmarks: warm kernels, instances."""

from __future__ import annotations

import pytest

import acerl_np


@pytest.fixture(scope="session", autouse=True)
def warm_kernels() -> None:
    acerl_np.warm_up()


@pytest.fixture(scope="session")
def suite() -> list[acerl_np.Instance]:
    return acerl_np.load_suite("dmh-train")
