"""The description of the package: README, as an index page can show it. All else is in setup.cfg."""

import re
from pathlib import Path

from setuptools import setup

PICTURE = re.compile(r"<img [^>]*>\n*")
LINK = re.compile(r"\[([^]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def name_file(link: re.Match[str]) -> str:
    """Return a link to a file of the source distribution, which an index page has not, as its path."""
    text, path = link[1], link[2]
    return f"`{path}`" if text == path else f"{text} (`{path}`)"


def describe(text: str) -> str:
    """Return a README without pictures and with the paths of files in the place of links to them."""
    return LINK.sub(name_file, PICTURE.sub("", text))


if __name__ == "__main__":
    setup(
        long_description=describe(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
