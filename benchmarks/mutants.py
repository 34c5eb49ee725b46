"""A hundred small mistakes, one at a time in a copy of the package: do the tests see them?

    python benchmarks/mutants.py                  all of them, into benchmarks/mutants.csv
    python benchmarks/mutants.py --only live      those with this in their name or file
    python benchmarks/mutants.py --quick          two of them; nothing is written

A line of benchmarks/mutants.csv is a mutant: an exact text of a file, another text in its place, the tests
that should go red, whether a kernel shows it only when it is compiled, and what came of it. The text is
found wherever it stands, however it is broken into lines, and with its columns imported one by one or as a
module. Where it is found no more the mutant is stale: aim it again at what now does the same. Mutants of
kernels run as plain Python on the tests that compare kernels with slow versions, so that nothing is compiled.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from script import make_parser, read_rows

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".csv")
SECONDS = 600
"""After so long a mutant counts as caught: the tests hang."""
COPIED = ("acerl_np", "studies", "tests", "instances", "docs", "examples", "benchmarks")
QUICK = ("kernels: equally good members swap", "files: bytes need not be on the disk")


class Mutant(NamedTuple):
    """A mistake: `old` becomes `new` in a file of the package; these tests should go red."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    compiled: bool
    """Whether a kernel shows it only when it is compiled."""
    outcome: str

    @property
    def is_plain(self) -> bool:
        return self.file.startswith("kernels/") and not self.compiled


def make_pattern(text: str) -> re.Pattern[str]:
    """The text with any white space between its words, and a module before its capitals."""
    words = re.findall(r"\"[^\"]*\"|\w+|[^\w\s]", text)
    parts = []
    for word in words:
        own = re.escape(word)
        if re.fullmatch(r"[A-Z][A-Z_0-9]{3,}", word):
            own = rf"(?:(?<![\w.])(?:S|state)\.)?{own}"
        parts.append(own)
    return re.compile(r"\s*".join(parts) + (r"\b" if words[-1][-1].isalnum() else ""))


def find_place(mutant: Mutant, package: Path) -> tuple[Path, re.Match[str]] | None:
    """Where the text stands once: in its file, or in another one that it moved to."""
    pattern, own = make_pattern(mutant.old), package / mutant.file
    for files in ([own] if own.exists() else [], sorted(package.rglob("*.py"))):
        found = [
            (path, match) for path in files for match in pattern.finditer(path.read_text("utf-8"))
        ]
        if len(found) == 1:
            return found[0]
    return None


def apply(mutant: Mutant, match: re.Match[str]) -> str:
    """The text in its place, with the module before those capitals that had it."""
    prefixes = dict(re.findall(r"\b(S|state)\.([A-Z][A-Z_0-9]{3,})", match[0]))
    new = mutant.new
    if prefixes:
        name = next(iter(prefixes))
        new = re.sub(r"(?<![\w.])([A-Z][A-Z_0-9]{3,})\b", rf"{name}.\1", new)
    return match.string[: match.start()] + new + match.string[match.end() :]


class Run(NamedTuple):
    """What became of tests: `passed`, `failed`, `none` (there are none), `hang`; the first that failed."""

    outcome: str
    failed: str = ""


def run_tests(folder: Path, words: list[str], *, plain: bool) -> Run:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--override-ini=addopts=--import-mode=importlib", "--hypothesis-profile=mutants"]
    usage = any(
        "test_usage" in word for word in words
    )  # by hand, and as quick without the compiler
    command += ["-rfE", "-m", "oracle" if plain and not usage else "not long and not browser"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if plain:
        environment["NUMBA_DISABLE_JIT"] = "1"
    try:
        done = subprocess.run(
            [*command, *words],
            cwd=folder,
            env=environment,
            timeout=SECONDS,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return Run("hang")
    failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    crashed = "failed" if done.returncode < 0 else "none"
    outcome = {0: "passed", 1: "failed", 2: "failed"}.get(done.returncode, crashed)
    return Run(outcome, failed[-1] if failed else "")


def judge(mutant: Mutant, folder: Path) -> str:
    """Return `caught`, `survived`, `stale`, `no tests`, or that a test fails without the mutant, too."""
    place = find_place(mutant, folder / "acerl_np")
    if place is None:
        return "stale"
    path, match = place
    words = mutant.tests.split()
    words = [word for word in words if "tests/" not in word or (folder / word).exists()]
    before = path.read_text("utf-8")
    path.write_text(apply(mutant, match), "utf-8")
    try:
        found = run_tests(folder, words, plain=mutant.is_plain)
    finally:
        path.write_text(before, "utf-8")
    if found.outcome in ("passed", "none"):
        return "survived" if found.outcome == "passed" else "no tests"
    own = [found.failed] if found.failed else words
    clean = run_tests(folder, own, plain=mutant.is_plain).outcome
    return "caught" if clean == "passed" else f"{clean} without it"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="those with it in name or file")
    parser.add_argument("--list", action="store_true", help="where each stands, and no tests")
    options = parser.parse_args()
    mutants: list[Mutant] = read_rows(TABLE, Mutant)
    chosen = [m for m in mutants if options.only in f"{m.name} {m.file}"]
    if options.quick:
        chosen = [m for m in mutants if m.name in QUICK]
    if options.list:
        for mutant in chosen:
            place = find_place(mutant, ROOT / "acerl_np")
            where = "stale" if place is None else place[0].relative_to(ROOT)
            print(f"{mutant.name}: {where}")
        return
    counts: dict[str, int] = {}
    lost = []
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for name in COPIED:
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for path in ("pyproject.toml", "setup.cfg", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / path, folder / path)
        for mutant in chosen:
            started = time.perf_counter()
            outcome = judge(mutant, folder)
            counts[outcome] = counts.get(outcome, 0) + 1
            seconds = time.perf_counter() - started
            print(f"{outcome:8} {mutant.name} ({mutant.file}), {seconds:.0f} s", flush=True)
            if mutant.outcome == "caught" and outcome not in ("caught", "stale"):
                lost.append(mutant.name)
            if not options.quick:
                mutants[mutants.index(mutant)] = mutant._replace(outcome=outcome)
                write(mutants)
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    if lost:
        sys.exit(f"caught before, and now not: {'; '.join(lost)}")


def write(mutants: list[Mutant]) -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Mutant._fields)
        writer.writerows(m._replace(compiled="yes" if m.compiled else "") for m in mutants)


if __name__ == "__main__":
    main()
