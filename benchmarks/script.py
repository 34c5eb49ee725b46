"""What scripts of this folder share: how they are asked, CSV files of named tuples, errors over seeds."""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from acerl_np.evaluation.metrics import standard_error


def make_parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a script's text as it is."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="seconds of it, to see that it runs")
    return parser


def read_rows(path: Path, kind: Any) -> list[Any]:
    """Return the rows of a file as named tuples of a kind, none if there is no file."""
    if not path.exists():
        return []
    types = get_type_hints(kind)
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [
                kind(**{name: types[name](text) for name, text in row.items()})
                for row in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError):
            expected = f"expected columns {', '.join(kind._fields)}"
            raise SystemExit(f"{path}: read another kind of file; {expected}") from None


def add_rows(path: Path, rows: Sequence[Any]) -> None:
    """Add named tuples at the end of a file, which begins with their names."""
    header = [] if path.exists() else [type(row)._fields for row in rows[:1]]
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*header, *rows])


def compare_seeds(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return how far means of trainings are from others' on the same shifts, and the standard error.

    Of figures (n_seeds, n_shifts). The error is over the shifts, paired, and over the seeds of both.
    """
    change = own.mean(axis=0) - other.mean(axis=0)
    parts = [change, *(x.mean(axis=1) for x in (own, other) if len(x) > 1)]
    return float(change.mean()), float(np.hypot.reduce([standard_error(x) for x in parts]))


def import_beside(folder: str, name: str) -> Any:
    """Return a module of another folder of the repository: the examples, or what tests share."""
    sys.path.append(str(Path(__file__).parents[1] / folder))
    return importlib.import_module(name)
