"""What the repository may weigh, by budget.toml: python .ci/budget.py PART [...].

    lines                          code lines of each room, lines of tests, of benchmarks and examples
    compiled CACHE                 kernel variants in the cache that the README's test command began empty
    costs COSTS.json               processes that it started, and tests that took too much processor time,
                                   which run once more alone and warm
    yardstick                      print the processor seconds of a fixed piece of compiling
    time SECONDS YARDSTICK         the test command's processor time, as a ratio to that

Each part prints how far below its numbers one stands, and fails above them.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import tokenize
import tomllib
from pathlib import Path

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
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ALONE_SECONDS = 8.0
"""Processor time that a test may take alone and warm, unless it is marked slow."""
TIME_FACTOR = 1.5


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
    """Return code lines by room, and all lines of tests, of benchmarks and examples."""
    found = dict.fromkeys(BUDGET["code_lines"], 0)
    package = ROOT / "acerl_np"
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        room = room if room != path.name else "top"
        found[room] = found.get(room, 0) + count_code_lines(read(path))
    for name, folders in (("tests", ["tests"]), ("benchmarks", ["benchmarks", "examples"])):
        files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
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
    package = sum(number for name, number in found.items() if name not in BUDGET["lines"])
    good = [compare(f"lines: {name}", found[name], limits.get(name, 0)) for name in sorted(found)]
    print(f"{'lines: the package':<28}{package:>9}")
    return all(good)


def check_compiled(cache: str) -> bool:
    """Compare the number of kernel variants below a cache folder with the budget."""
    # numba keeps one file of machine code a variant, beside an index.
    n = sum(1 for _ in Path(cache).rglob("*.nbc"))
    return compare("kernel variants compiled", n, BUDGET["tests"]["variants"])


def check_costs(path: str) -> bool:
    """Compare processes with the budget; run what took long again, alone and warm."""
    costs = json.loads(read(Path(path)))
    good = compare("processes started by tests", costs["processes"], BUDGET["tests"]["processes"])
    for test in costs["long"]:
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / "costs.json"
            call = ["-n", "0", "-q", "-p", "no:cacheprovider", "--costs", str(again), test]
            status = subprocess.call(
                [sys.executable, "-m", "pytest", *call], stdout=subprocess.DEVNULL, cwd=ROOT
            )
            seconds = json.loads(read(again))["most"] if status == 0 else float("inf")
        print(f"alone and warm {seconds:5.1f} s  {test}")
        if seconds > ALONE_SECONDS:
            print(f"  above {ALONE_SECONDS:g} s: quicken it, or mark it slow")
            good = False
    return good


def measure_yardstick() -> None:
    """Print what compiling a fixed function with numba costs here, in processor seconds."""
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
    print(f"{time.process_time() - begun:.2f}")


def check_time(seconds: str, yardstick: str) -> bool:
    """Compare the test command's processor time, in pieces of compiling, with the budget."""
    ratio = float(seconds) / float(yardstick)
    print(
        f"README's tests: {float(seconds):.0f} s of processor, a piece of compiling {yardstick} s"
    )
    limit = TIME_FACTOR * BUDGET["tests"]["time"]
    return compare("the tests' time, in pieces", round(ratio, 1), limit)


def main(words: list[str]) -> int:
    """Run one part; 1 if a number is above its budget, 2 if there is no such part."""
    parts = {
        "lines": check_lines,
        "compiled": check_compiled,
        "costs": check_costs,
        "time": check_time,
        "yardstick": lambda: measure_yardstick() or True,
    }
    if not words or words[0] not in parts:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if parts[words[0]](*words[1:]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
