"""What all tests share: a Hypothesis profile for compiled kernels and for kernels run as Python."""

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
