"""What tests of commands share: a small floor with its files, and workers that need no start."""

from pathlib import Path

import pytest
from small_files import FILES
from team_tasks import TeamHere


@pytest.fixture
def folder(empty):
    """A floor, two records of two tasks, what was assigned, and breakdowns."""
    for name, text in FILES.items():
        Path(name).write_text(text)
    return empty


@pytest.fixture
def processes():
    """Workers are processes of their own, as they are for users."""


@pytest.fixture(autouse=True)
def workers(request, monkeypatch):
    """Else they are this thread."""
    if "processes" not in request.fixturenames:
        monkeypatch.setattr("acerl_np.support.processes.ProcessTeam", TeamHere)
