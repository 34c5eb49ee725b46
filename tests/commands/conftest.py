"""What tests of commands share: a small floor with its files."""

from pathlib import Path

import pytest
from small_files import FILES


@pytest.fixture
def folder(empty):
    """A floor, two records of two tasks, what was assigned, and breakdowns."""
    for name, text in FILES.items():
        Path(name).write_text(text)
    return empty
