"""What the README and the pages say holds: examples run, commands are understood, links lead somewhere.

The source distribution is complete, too.
"""

import configparser
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from machine import needs_jit

from acerl_np.commands.main import build_parser, main
from studies import __main__ as studies

ROOT = Path(__file__).parent.parent
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
OTHERS = ("CONTRIBUTING.md", "SECURITY.md", "examples/README.md", "instances/README.md")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *(ROOT / x for x in OTHERS), *DOCS)
}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


EXAMPLES = [(page, code) for page in PAGES for code in blocks(page, "python")]
COMMANDS = [
    (page, line.partition("acerl-np ")[2])
    for page in PAGES
    for block in blocks(page, "sh") + blocks(page, "bash")
    for line in block.replace("\\\n", " ").splitlines()
    if re.match(r"(\.venv/bin/)?acerl-np ", line)
]
STUDIES = [
    (page, found)
    for page in PAGES
    for block in blocks(page, "sh")
    for found in re.findall(r"^python -m studies (.*)$", block, re.MULTILINE)
]

SHORT = {"train": ["--generations", "2", "--hold-out", "none"]}
EXTRAS = {x: x for x in ("pymoo", "matplotlib", "tensorboardX")}
EXTRAS["gymnasium"] = "import gymnasium"

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
CODE_FILE = re.compile(r"`(?:python )?([\w./-]+\.py)[` ]")

compiled = needs_jit


def test_the_readme_is_short_and_there_are_examples():
    assert len(PAGES["README.md"].splitlines()) <= 150
    shown = {page for page, _ in EXAMPLES}
    assert {"README.md", "docs/live.md", "docs/environments.md", "docs/evolution.md"} <= shown
    assert len(COMMANDS) >= 30
    assert "docs/tutorial.md" in {page for page, _ in COMMANDS}


def mark_example(code):
    if "references(" in code:
        return pytest.mark.long
    return pytest.mark.compiles if re.search(r"(ahead|cast)\(", code) else ()


@compiled
@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(*(page, code), id=f"{page}-{k}", marks=mark_example(code))
        for k, (page, code) in enumerate(EXAMPLES)
    ],
)
def test_examples_run(page, code, tmp_path, monkeypatch):
    for module, sign in EXTRAS.items():
        if sign in code and importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {"__name__": "__main__"})


@compiled
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_commands_for_an_own_floor_run(tmp_path, monkeypatch, capsys):
    """As a user types them in a clone after the tutorial, but in this process and with short trainings."""
    pages = ("own-floor", "exports", "making-shifts")
    shown = [block for page in pages for block in blocks(f"docs/{page}.md", "sh")]
    assert len(shown) == 11
    commands = "".join(shown)
    for folder in ("tests/data", "docs/tutorial"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    [layout, *_] = blocks("docs/own-floor.md", "json")
    (tmp_path / "small.json").write_text(layout)
    assert main(shlex.split("floor import docs/tutorial/hall.xml --out drawn.json")) == 0
    [drawn] = [x for page, x in COMMANDS if page == "docs/tutorial.md" and "--out week" in x]
    words = shlex.split(drawn.partition(" | ")[0].replace("layout.json", "drawn.json"))
    assert main([*words, "--count", "3"]) == 0
    capsys.readouterr()
    ran = 0
    for line in commands.replace("\\\n", " ").splitlines():
        if line.startswith("acerl-np "):
            words = shlex.split(line, comments=True)[1:]
            assert main(words + SHORT.get(words[0], [])) == 0, line + capsys.readouterr().err
            ran += 1
        else:
            subprocess.run(["bash", "-ec", line], check=True)
    assert ran == commands.count("\nacerl-np ") + 1 > 5
    assert (tmp_path / "robust" / "policy.npz").exists()


def test_commands_are_understood(capsys):
    faults = []
    for page, line in COMMANDS:
        words = shlex.split(line.partition(" | ")[0], comments=True)
        try:
            assert build_parser(words[0]).parse_args(words).command == words[0]
        except SystemExit:
            faults.append(f"{page}: {line}: {capsys.readouterr().err}")
    for page, line in STUDIES:
        words = shlex.split(line, comments=True)
        try:
            studies.build_parser().parse_args(words)
        except SystemExit:
            faults.append(f"{page}: {line}: {capsys.readouterr().err}")
    assert faults == [] and len(STUDIES) >= 10


def list_options(parser):
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action.choices, dict):
            found |= {x for choice in action.choices.values() for x in list_options(choice)}
    return found


def test_options_in_sentences_exist():
    """Of the command that the inline code begins with, else of any command, study, benchmark or check."""
    scripts = [x for x in (ROOT / ".ci").iterdir() if x.is_file()]
    scripts += (ROOT / "benchmarks").glob("*.py")
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
    elsewhere = {x for path in scripts for x in option.findall(path.read_text(encoding="utf-8"))}
    known = list_options(build_parser("")) | list_options(studies.build_parser()) | elsewhere
    known.add("--mode")  # of the paper's released code
    faults = []
    for page, text in PAGES.items():
        prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`]+)`", prose):
            command = re.match(r"acerl-np (\w+)", code)
            own = list_options(build_parser(command[1])) if command else known
            faults += [f"{page}: {code}" for x in option.findall(code) if x not in own]
    assert faults == []


def anchors(text):
    """The names under which a page's headings can be linked."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    missing = []
    for page, text in PAGES.items():
        for link, picture in LINK.findall(text):
            target, _, anchor = (link or picture).partition("#")
            if "://" in target:
                continue
            path = (ROOT / page).parent.joinpath(target).resolve() if target else ROOT / page
            name = os.path.relpath(path, ROOT)
            if not path.exists() or (anchor and anchor not in anchors(PAGES.get(name, ""))):
                missing.append(f"{page}: {link or picture}")
    assert missing == []


def test_files_that_pages_name_exist():
    """`kernels/episode/events.py` is below the package or the root; `test_fuzz.py` may be in any folder."""
    folders = [ROOT / name for name in ("acerl_np", "studies", "tests", "benchmarks", "examples")]
    anywhere = {path.name for folder in folders for path in folder.rglob("*.py")}
    missing = []
    for page, text in PAGES.items():
        for name in CODE_FILE.findall(text):
            own = (ROOT / name, ROOT / "acerl_np" / name)
            if not (any(path.exists() for path in own) if "/" in name else name in anywhere):
                missing.append(f"{page}: {name}")
    assert missing == []


# What an index page shows of the package

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
