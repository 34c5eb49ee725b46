"""The source distribution, and what an index page shows of the package."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = """
import sys
from setuptools import build_meta
print(build_meta.build_sdist(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution of the files that are tracked, and their names."""
    pytest.importorskip("setuptools")
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a clone, and git")
    words = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    folder = tmp_path_factory.mktemp("built")
    for name in tracked:
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    program = [sys.executable, "-W", "ignore", "-c", BUILD, str(folder)]
    subprocess.run(program, check=True, cwd=folder / "source", capture_output=True)
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {item.name.partition("/")[2]: item for item in archive if item.isfile()}
        info = archive.extractfile(files["PKG-INFO"]).read().decode()
    return tracked, set(files), info


def test_the_source_distribution_is_complete(built):
    tracked, files, _ = built
    assert not tracked - files
    made = {name for name in files - tracked if ".egg-info/" not in name}
    assert made <= {"PKG-INFO", "setup.cfg"}


def test_an_index_page_links_to_nothing_that_it_has_not(built):
    _, files, info = built
    text = info.partition("\n\n")[2]
    assert text.startswith("# acerl_np\n") and "| you want to | page |" in text
    assert "<img" not in text and not re.findall(r"\]\((?!https?:)[^)]*\)", text)
    named = re.findall(r"`((?:docs|instances)/[\w-]+\.md|[A-Z]+\.(?:md|cff))`", text)
    assert {"docs/own-floor.md", "CHANGELOG.md"} <= set(named) <= files
