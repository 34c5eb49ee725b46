"""How a script of this folder is asked: it shows its own text, and --quick takes seconds."""

from __future__ import annotations

import argparse


def make_parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a script's text as it is."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="seconds of it, to see that it runs")
    return parser
