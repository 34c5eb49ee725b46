"""What tests of commands share: a small floor with its files, and how a command is run."""

import shlex
from pathlib import Path

import pytest
from small_files import FILES

from acerl_np.commands.main import main


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(empty):
    """A floor, two records of two tasks, what was assigned, and breakdowns."""
    for name, text in FILES.items():
        Path(name).write_text(text)
    return empty


def read_all():
    """The folders here, and the content of every file; links are followed."""
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.fixture
def run(capsys):
    """Run a command and return what it prints; one that is refused says so in a line and changes no file."""

    def call(words, status=0):
        before = read_all() if status else {}
        capsys.readouterr()
        assert main(shlex.split(words) if isinstance(words, str) else words) == status, (
            capsys.readouterr().err
        )
        found = capsys.readouterr()
        if status:
            lines = found.err.splitlines()
            assert "Traceback" not in found.err and "error: " in lines[-1]
            assert sum("error: " in line for line in lines) == 1
            assert read_all() == before and found.out == ""
        return found

    return call
