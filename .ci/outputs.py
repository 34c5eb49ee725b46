"""Run the tutorial, and compare what it prints with its page: python .ci/outputs.py [--write].

Its blocks of bash and py run in order in an empty folder with `hall.xml`. A block of text right behind one
is what it printed on its standard output, long sentences folded. `--write` replaces these blocks and the
pictures. Times that the machine took are not compared.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/tutorial.md"
BLOCK = re.compile(
    r"^```(bash|py)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
TIMES = re.compile(r"\b[\d.]+k? (s|ms|us|decisions/s)(?=[;,] (seed|\d|left))")


def run(language: str, code: str, names: dict[str, object]) -> str:
    """Return what a block prints; lines that are no rows of a table are folded."""
    if language == "py":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, PAGE.name, "exec"), names)
        printed = out.getvalue()
    else:
        words = ["bash", "-e", "-c", code]
        printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = printed.splitlines(keepends=True)
    return "".join(x if "  " in x or x[:2] == "--" else textwrap.fill(x, 110) + "\n" for x in lines)


def main(write: bool) -> int:
    """Return 1 if the page has other outputs."""
    text, pictures = PAGE.read_text(encoding="utf-8"), ROOT / "docs/tutorial"
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    names: dict[str, object] = {}

    def fill(block: re.Match[str]) -> str:
        language, code, shown = block.groups()
        printed = run(language, code, names)
        if shown is None:
            return block[0]
        if not write and TIMES.sub("", shown) == TIMES.sub("", printed):
            return block[0]
        return f"```{language}\n{code}```\n\n```text\n{printed}```\n"

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(pictures / "hall.xml", folder)
        with contextlib.chdir(folder):
            made = BLOCK.sub(fill, text)
            if write:
                PAGE.write_text(made, encoding="utf-8")
                for picture in Path().glob("*.png"):
                    shutil.copy(picture, pictures)
    lines = text.splitlines(), made.splitlines()
    print(*difflib.unified_diff(*lines, "docs/tutorial.md", "printed now", lineterm=""), sep="\n")
    return 0 if write or made == text else 1


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
