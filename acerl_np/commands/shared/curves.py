"""Training curves of runs: what is drawn beside them, and the picture that a training leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.problem.goal import PAPER
from acerl_np.support.errors import InputError, MissingExtraError, make_printable

if TYPE_CHECKING:
    from acerl_np.pictures.trainings import Beside

RULES = ("FCFS", "EDD", "NVF", "STD")
"""Rules whose figures the paper prints, beside the curves of its records."""

PICTURE = "curves.png"


def find_beside(paths: Sequence[str | Path]) -> Beside:
    """Return what is drawn beside the lines of these folders, as their config.json tell.

    Studies are always of bundled records, with the paper's limit.
    """
    from acerl_np.commands.shared.tables import is_published
    from acerl_np.experiments.published import find_row
    from acerl_np.experiments.study_tables import COST_LIMIT
    from acerl_np.pictures.runs import find_limit, find_objective, find_study, read_facts
    from acerl_np.pictures.trainings import Beside

    limits: set[float | None] = set()
    algorithms: set[str] = set()
    objectives: set[str] = set()
    published = True
    for path in paths:
        if find_study(path) is not None:
            limits.add(COST_LIMIT)
            objectives.add(f"{PAPER.objective}")
            algorithms.add("ACERL")
            continue
        facts = read_facts(Path(path))
        named = facts.get("instances")
        records = named if isinstance(named, dict) else {}
        published &= bool(records) and all(is_published(*item) for item in records.items())
        limits.add(find_limit(facts))
        objectives.add(find_objective(facts))
        algorithms.add(str(facts.get("algorithm", "ACERL")).upper())
    limit = limits.pop() if len(limits) == 1 else None
    if len(objectives) > 1:
        raise InputError(
            f"runs with different objectives: {', '.join(sorted(objectives))}; expected the same"
        )
    objective = objectives.pop()
    if not published or objective != PAPER.objective:
        return Beside({}, None, limit, objective)
    algorithm = algorithms.pop() if len(algorithms) == 1 else "ACERL"
    levels = {}
    for policy in (*RULES, algorithm):
        row = find_row("comparison-train", policy)
        cells = {} if row is None else row.cells
        levels[f"{policy} (paper)"] = {name: cell[:2] for name, cell in cells.items()}
    paper = f"{algorithm} (paper)"
    return Beside(levels, (paper, levels.pop(paper)), limit)


def draw_runs(paths: Sequence[str | Path], out: str | Path, only: Sequence[str] = ()) -> None:
    """Draw the curves of runs, or only those with these labels; one label twice is told by its path."""
    from acerl_np.pictures.runs import read_lines
    from acerl_np.pictures.trainings import draw_curves

    found = [(path, line) for path in paths for line in read_lines(path)]
    labels = [line.label for _, line in found]
    lines = [
        line._replace(label=f"{path}: {line.label}") if labels.count(line.label) > 1 else line
        for path, line in found
    ]
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
