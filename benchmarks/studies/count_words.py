"""Count the words that people wrote on README and the pages: no tables, code blocks, nor generated blocks.

    python benchmarks/studies/count_words.py [COMMIT]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = re.compile(r"README\.md|instances/README\.md|docs/[\w-]+\.md")
LEFT_OUT = [
    r"^---\n.*?^---\n",  # settings at a page's head
    r"<!-- make_pages\.py: .*?<!-- end -->",
    r"<!--.*?-->",
    r"^```.*?^```$",
    r"^ *\|.*?$",
    r"<\w[^>\n]*>",
    r"\]\([^)\n]*\)",  # where links lead
]


def count(text: str) -> int:
    for pattern in LEFT_OUT:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.findall(r"\S*\w\S*", text))


def main(commit: str | None) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], check=True, text=True, capture_output=True).stdout  # fmt: skip

    names = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files", "-co", "--exclude-standard")  # fmt: skip
    total = 0
    for name in filter(PAGES.fullmatch, sorted(names.split())):
        if commit or (ROOT / name).exists():
            words = count(git("show", f"{commit}:{name}") if commit else (ROOT / name).read_text("utf-8"))  # fmt: skip
            total += words
            print(f"{words:7,} {name}")
    print(f"{total:7,} in all")


if __name__ == "__main__":
    main(*sys.argv[1:2] or [None])
