"""The records that most tests of policies play."""

import pytest

from acerl_np import load_suite


@pytest.fixture(scope="session")
def suite():
    return load_suite("dmh-train")[:2]
