"""What the repository may weigh, by budget.toml: python .ci/budget.py lines|words|tests|path.

lines: code lines of each room, and of studies; lines of tests, of benchmarks and examples, of pages.
words: words to read on README and the pages: prose, and table cells of eight words or more; code apart.
tests: run README's test command, and compare what it compiled (the cache must be empty before), and its
processor time, in pieces of compiling. What took long runs again, alone and warm.
path: files of acerl_np whose functions `acerl-np train` enters, and their code lines, without pictures. It
trains one generation as plain Python, so that kernels are seen; imports do not count.

Each number is printed with how far below its budget it is; one above fails.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import tomllib
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUDGET = tomllib.loads((ROOT / ".ci/budget.toml").read_text(encoding="utf-8"))
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
NOISE = 1.5
"""How far above its budget processor time may be: pieces tell machines apart, but not what runs beside."""
LONG = 1.15
"""Pieces of compiling from which on a test runs again alone: 4 s where one takes 3.5."""
SHORT = ("--generations", "1", "--set", "population=4", "--trials", "1")
"""Options of the training whose path is measured."""
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_code_lines(text: str) -> int:
    """Return how many lines hold code: imports do, docstrings, comments and blank lines do not."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def read(path: Path) -> str:
    """Return a file's text."""
    return path.read_text(encoding="utf-8")


def count_lines() -> dict[str, int]:
    """Return code lines by room and of studies; all lines of tests, of benchmarks and examples, of pages."""
    found = dict.fromkeys(BUDGET["code_lines"], 0)
    package = ROOT / "acerl_np"
    for path in [*package.rglob("*.py"), *(ROOT / "studies").rglob("*.py")]:
        is_own = path.is_relative_to(package)
        room = path.relative_to(package).parts[0] if is_own else "studies"
        room = room if room != path.name else "top"
        found[room] = found.get(room, 0) + count_code_lines(read(path))
    rooms = {"tests": ["tests"], "benchmarks": ["benchmarks", "examples"], "pages": [package]}
    for name, folders in rooms.items():
        suffixes = (".js", ".css", ".html") if name == "pages" else (".py",)
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
        files = [path for path in paths if path.suffix in suffixes]
        found[name] = sum(len(read(path).splitlines()) for path in files)
    return found


def compare(what: str, number: float, budget: float) -> bool:
    """Print a number beside its budget; whether it is within."""
    left = budget - number
    state = f"{left:g} left" if left >= 0 else f"{-left:g} TOO MANY"
    print(f"{what:<28}{number:>9g} of {budget:<8g} {state}")
    return left >= 0


def check_lines() -> bool:
    """Compare lines with the budget."""
    found = count_lines()
    limits = {**BUDGET["code_lines"], **BUDGET["lines"]}
    beside = {"studies", *BUDGET["lines"]}
    package = sum(number for name, number in found.items() if name not in beside)
    good = [compare(f"lines: {name}", found[name], limits.get(name, 0)) for name in sorted(found)]
    print(f"{'lines: the package':<28}{package:>9}")
    return all(good)


def count_words(text: str) -> int:
    """Return the words to read of a page: long cells of tables are prose, links and code are not."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = 0
    for line in re.sub(r"\]\([^)]*\)", "]", text).splitlines():
        if line.startswith("|"):
            cells = [cell.split() for cell in line.strip("|").split("|")]
            found += sum(len(cell) for cell in cells if len(cell) >= 8)
        else:
            found += sum(re.search(r"\w", word) is not None for word in line.split())
    return found


def check_words() -> bool:
    """Compare the words to read with the budget: README's, those of each other page, of all."""
    limits = BUDGET["words"]
    paths = [
        ROOT / "README.md",
        ROOT / "instances/README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    found = {path.relative_to(ROOT).as_posix(): count_words(read(path)) for path in paths}
    good = [
        compare(f"words: {name}", n, limits.get(name, limits["page"])) for name, n in found.items()
    ]
    return compare("words: in all", sum(found.values()), limits["all"]) and all(good)


def run_pytest(*words: str) -> tuple[int, dict[str, Any]]:
    """Run pytest; return its status and what it writes of costs."""
    with tempfile.TemporaryDirectory() as folder:
        costs = Path(folder) / "costs.json"
        command = [sys.executable, "-m", "pytest", "--costs", str(costs), *words]
        status = subprocess.call(command, cwd=ROOT)
        return status, json.loads(read(costs)) if costs.exists() else {}


def check_alone(tests: list[str], piece: float) -> bool:
    """Run tests again, each alone in a process and warm, one a core; whether each takes few pieces then."""
    quiet = "-n", "0", "-q", "-p", "no:cacheprovider"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda test: run_pytest(*quiet, test), tests))
    limit = NOISE * BUDGET["tests"]["alone"]
    good = [
        compare(test, round(cost.get("most", math.inf) / piece, 1), limit) and status == 0
        for test, (status, cost) in zip(tests, found, strict=True)
    ]
    return all(good)


def check_tests() -> bool:
    """Run README's test command on an empty cache, and compare what it cost with the budget."""
    cache = Path(os.environ["XDG_CACHE_HOME"])
    if any(cache.rglob("*.nbc")):
        raise SystemExit(f"{cache}: holds machine code; expected an empty cache")
    piece = statistics.median(measure_yardstick() for _ in range(3))
    before = sum(os.times()[2:4])
    status, cost = run_pytest("--long", f"{LONG * piece:.2f}")
    seconds = sum(os.times()[2:4]) - before
    if status:
        return False
    # numba keeps one file of machine code a variant, beside an index.
    variants = sum(1 for _ in cache.rglob("*.nbc"))
    print(f"{seconds / 60:.1f} min of processor; a piece of compiling took {piece:.1f} s")
    limits = BUDGET["tests"]
    good = [
        compare("kernel variants compiled", variants, limits["variants"]),
        compare("time, in pieces", round(seconds / piece), NOISE * limits["time"]),
        check_alone(cost["long"], piece),
    ]
    return all(good)


def check_path() -> bool:
    """Train for one generation; compare the files that it enters, and their code lines, with the budget."""
    package, pictures = str(ROOT / "acerl_np"), str(ROOT / "acerl_np/pictures")
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        counts = file.startswith(package) and not file.startswith(pictures)
        if event != "call" or file in entered or not counts:
            return
        caller: FrameType | None = frame
        while caller is not None and caller.f_code.co_name != "<module>":
            caller = caller.f_back
        if caller is None or caller.f_globals is globals():
            entered.add(file)

    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path.insert(0, str(ROOT))
    sys.modules["matplotlib"] = None  # type: ignore[assignment]
    train = importlib.import_module("acerl_np.commands.main").main
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        threading.setprofile(note)
        sys.setprofile(note)
        train(["train", *SHORT, "--out", folder])
        sys.setprofile(None)
    lines = sum(count_code_lines(read(Path(file))) for file in entered)
    good = [
        compare("path: files entered", len(entered), BUDGET["path"]["files"]),
        compare("path: code lines in them", lines, BUDGET["path"]["code_lines"]),
    ]
    return all(good)


def measure_yardstick() -> float:
    """Return what compiling a fixed function with numba costs here, in processor seconds."""
    import numba

    # A chain of functions, each with loops of its own: about what kernels are to the compiler.
    source = "def f0(x, n):\n    return x[n % x.size]\n"
    for k in range(1, 25):
        source += (
            f"def f{k}(x, n):\n    total = 0.0\n    for i in range(n):\n        for j in range(i):\n"
            f"            if x[j] > total:\n                total += f{k - 1}(x, j) * {k}.5\n"
            f"            elif x[i] < {k}:\n                x[j] = total - x[i]\n    return total\n"
        )
    found: dict[str, object] = {}
    for text in re.split(r"^(?=def )", source, flags=re.MULTILINE)[1:]:
        exec(text, found)
        name = text[4 : text.index("(")]
        found[name] = numba.njit(found[name])
    begun = time.process_time()
    found["f24"].compile("float64(float64[::1], int64)")  # type: ignore[attr-defined]
    return time.process_time() - begun


def main(words: list[str]) -> int:
    """Run one part; 1 if a number is above its budget, 2 if there is no such part."""
    parts = {"lines": check_lines, "words": check_words, "tests": check_tests, "path": check_path}
    if len(words) != 1 or words[0] not in parts:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if parts[words[0]]() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
