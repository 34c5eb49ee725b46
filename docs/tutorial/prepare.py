"""Make ready the folder and the shell of the tutorial, as its first cell, which is not shown."""

import shutil
import subprocess
from pathlib import Path

from IPython.core.magic import register_cell_magic

shutil.copy(Path(__file__).parent / "hall.xml", ".")


@register_cell_magic
def bash(line: str, cell: str) -> None:
    """Print what a shell prints, in its order and in one piece; fail where it fails."""
    done = subprocess.run(
        ["bash", *line.split(), "-c", cell],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="")
    done.check_returncode()
