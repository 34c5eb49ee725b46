"""The mark of pictures and pages that this package made: a later one may take their default name."""

from __future__ import annotations

import os

MARK = "made by acerl_np"
"""What stands near the beginning of them."""

MARK_BYTES = 4096
"""How far into a file the mark is looked for."""


def has_mark(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a picture or a page that this package made."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(MARK_BYTES)
    except (OSError, ValueError):
        return False
