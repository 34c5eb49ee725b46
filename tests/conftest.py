"""What all tests share: a Hypothesis profile for compiled kernels and for kernels run as Python.

Tests lie in folders named like the package's rooms; those of the whole project, and what several of them
use, lie here: slow, obvious versions (`naive`, `naive_evolution`), random floors and records (`worlds`),
episodes beside the slow simulator's (`episodes`), short trainings (`runs`), hostile inputs (`fuzz`).
"""

from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "acerl_np",
    deadline=None,
    max_examples=30 if numba.config.DISABLE_JIT else 100,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("acerl_np")

# What helpers assert is shown as fully as in a test.
pytest.register_assert_rewrite("episodes")

KERNELS = Path(__file__).parent / "kernels"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What is in the kernels' folder need not say of each test that it is one of kernels."""
    for item in items:
        if KERNELS in item.path.parents:
            item.add_marker(pytest.mark.oracle)
