"""Compile all that the tests need, in two processes side by side: python tests/compile_all.py"""

import subprocess
import sys

from acerl_np.warm import PARTS, warm_up


def main(words):
    """With a number: every other part, from the first or the second one on."""
    if words:
        for part in list(PARTS)[int(words[0]) :: 2]:
            warm_up(part, quiet=True)
        return 0
    halves = [subprocess.Popen([sys.executable, __file__, str(half)]) for half in range(2)]
    return max([process.wait() for process in halves])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
