"""Count the words that people wrote on README and the pages: `python .ci/words.py [COMMIT]`.

Tables, code and blocks that `make_pages.py` makes are left out.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = re.compile(r"README\.md|instances/README\.md|docs/[\w-]+\.md")
HEAD, BLOCK, CODE = (
    r"\A---\n.*?^---\n",
    r"<!-- make_pages\.py: .*?<!-- end -->",
    r"^ *```.*?^ *```$",
)
LEFT_OUT = [HEAD, BLOCK, r"<!--.*?-->", CODE, r"^ *\|.*?$", r"<\w[^>\n]*>", r"\]\([^)\n]*\)"]


def count(text: str) -> int:
    """Return the words of a page."""
    for pattern in LEFT_OUT:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.findall(r"\S*\w\S*", text))


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", "-C", ROOT, *words], check=True, text=True, stdout=-1).stdout


commit = sys.argv[1] if len(sys.argv) > 1 else None
names = git(*(("ls-tree", "-r", "--name-only", commit) if commit else ("ls-files", "-co"))).split()
pages = [x for x in sorted(names) if PAGES.fullmatch(x) and (commit or (ROOT / x).exists())]
words = [count(git("show", f"{commit}:{x}") if commit else (ROOT / x).read_text()) for x in pages]
for name, n in zip([*pages, "in all"], [*words, sum(words)], strict=True):
    print(f"{n:7,} {name}")
