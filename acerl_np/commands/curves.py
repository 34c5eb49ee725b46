"""Training curves of runs: what is drawn beside them, and the picture that a training leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.support.errors import InputError, MissingExtraError, make_printable

if TYPE_CHECKING:
    from acerl_np.pictures.runs import Line
    from acerl_np.pictures.trainings import Beside, Levels

RULES = ("FCFS", "EDD", "NVF", "STD")
"""Rules whose figures the paper prints, beside the curves of its records."""

PICTURE = "curves.png"


def load_lines(paths: Sequence[str | Path]) -> list[Line]:
    """Return the lines of all folders; what has the same name is called by its path."""
    from acerl_np.pictures.runs import read_lines

    lines: list[Line] = []
    found = [(str(path), line) for path in paths for line in read_lines(path)]
    labels = [line.label for _, line in found]
    for path, line in found:
        alike = labels.count(line.label) > 1
        lines.append(line._replace(label=f"{path}: {line.label}") if alike else line)
    return lines


def find_beside(paths: Sequence[str | Path]) -> Beside:
    """Return what is drawn beside the lines of these folders, as their config.json tell.

    Studies are always of bundled records, with the paper's limit.
    """
    from acerl_np.experiments.published import find_row
    from acerl_np.experiments.study_tables import COST_LIMIT
    from acerl_np.pictures.runs import find_limit, find_study, read_facts
    from acerl_np.pictures.trainings import Beside

    limits: set[float | None] = set()
    algorithms: set[str] = set()
    records: list[dict[str, Any]] = []
    for path in paths:
        if find_study(path) is not None:
            limits.add(COST_LIMIT)
            algorithms.add("ACERL")
            continue
        facts = read_facts(Path(path))
        named = facts.get("instances")
        records.append(named if isinstance(named, dict) else {})
        limits.add(find_limit(facts))
        algorithms.add(str(facts.get("algorithm", "ACERL")).upper())
    limit = limits.pop() if len(limits) == 1 else None
    if not all(_are_published(named) for named in records):
        return Beside({}, None, limit)
    algorithm = algorithms.pop() if len(algorithms) == 1 else "ACERL"

    def find_levels(policy: str) -> Levels:
        row = find_row("comparison-train", policy)
        cells = {} if row is None else row.cells
        return {name: (cell.makespan, cell.tardiness) for name, cell in cells.items()}

    rules = {f"{rule} (paper)": find_levels(rule) for rule in RULES}
    return Beside(rules, (f"{algorithm} (paper)", find_levels(algorithm)), limit)


def _are_published(named: dict[str, Any]) -> bool:
    """Whether these records, content hashes by name, are among those of the paper's figures."""
    from acerl_np.commands.tables import is_published

    return bool(named) and all(is_published(*item) for item in named.items())


def draw_runs(paths: Sequence[str | Path], out: str | Path, only: Sequence[str] = ()) -> None:
    """Draw the curves of runs.

    `only` are labels of those to draw; by default all are.
    """
    from acerl_np.pictures.trainings import draw_curves

    lines = load_lines(paths)
    labels = [line.label for line in lines]
    for label in only:
        if label not in labels:
            expected = ", ".join(map(make_printable, labels[:20]))
            raise InputError(f"--only: read '{make_printable(label)}'; expected some of {expected}")
    chosen = [line for line in lines if not only or line.label in only]
    draw_curves(out, chosen, find_beside(paths))


def draw_training(folder: Path, *, quiet: bool) -> Path | None:
    """Draw the curves of a training that has just ended; what hinders it is said in a line, and no error.

    Where none can be drawn, that of an earlier training is removed. With `quiet` it is not said that
    matplotlib is missing.
    """
    out = folder / PICTURE
    try:
        draw_runs([folder], out)
    except MissingExtraError as error:
        if not quiet:
            print(f"no {PICTURE}: {error}", file=sys.stderr)
    except Exception as error:
        # The training is done and saved; a picture of it can be drawn again.
        reason = make_printable(" ".join(str(error).split()))
        print(f"no {PICTURE}: {type(error).__name__}: {reason}", file=sys.stderr)
    else:
        return out
    remove_picture(folder)
    return None


def remove_picture(folder: Path) -> None:
    """Remove the picture of an earlier training, if there is one and the machine lets it go."""
    with suppress(OSError):
        (folder / PICTURE).unlink()
