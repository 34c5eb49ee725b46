"""The source distribution, and what an index page shows of the package."""

import configparser
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


def test_the_source_distribution_is_complete(tmp_path):
    """Of the files that are tracked; an index page links to nothing that it has not."""
    pytest.importorskip("setuptools")
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a clone, and git")
    words = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in tracked:
        target = tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    program = [sys.executable, "-W", "ignore", "-c", BUILD, str(tmp_path)]
    subprocess.run(program, check=True, cwd=tmp_path / "source", capture_output=True)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {item.name.partition("/")[2]: item for item in archive if item.isfile()}
        info = archive.extractfile(files["PKG-INFO"]).read().decode()
    assert not tracked - set(files)
    made = {name for name in set(files) - tracked if ".egg-info/" not in name}
    assert made <= {"PKG-INFO", "setup.cfg"}
    text = info.partition("\n\n")[2]
    assert text.startswith("# acerl_np\n") and "| you want to | page |" in text
    assert "<img" not in text and not re.findall(r"\]\((?!https?:)[^)]*\)", text)
    named = re.findall(r"`((?:docs|instances)/[\w-]+\.md|[A-Z]+\.(?:md|cff))`", text)
    assert {"docs/own-floor.md", "CHANGELOG.md"} <= set(named) <= set(files)


def test_all_packages_are_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split()) - {"acerl_np.instances"}
    files = (ROOT / "acerl_np").rglob("*.py")
    assert listed == {".".join(file.relative_to(ROOT).parts[:-1]) for file in files}
