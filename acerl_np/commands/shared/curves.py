"""Training curves of runs: what is drawn beside them, and the picture that a training leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from acerl_np.evaluation.published import COST_LIMIT, find_row, is_published
from acerl_np.pictures import runs, trainings
from acerl_np.pictures.trainings import Beside
from acerl_np.problem.choices import PAPER_RULES
from acerl_np.problem.goal import PAPER
from acerl_np.support.errors import InputError, make_printable


def find_beside(paths: Sequence[str | Path]) -> Beside:
    """Return what is drawn beside the lines of these folders, as their config.json tell.

    Studies are always of bundled records, with the paper's limit.
    """
    limits: set[float | None] = set()
    algorithms: set[str] = set()
    objectives: set[str] = set()
    published = True
    for path in paths:
        if runs.find_study(path) is not None:
            limits.add(COST_LIMIT)
            objectives.add(f"{PAPER.objective}")
            algorithms.add("ACERL")
            continue
        facts = runs.read_facts(Path(path))
        named = facts.get("instances")
        records = named if isinstance(named, dict) else {}
        published &= bool(records) and all(is_published(*item) for item in records.items())
        limits.add(runs.find_limit(facts))
        objectives.add(runs.find_objective(facts))
        algorithms.add(str(facts.get("algorithm", "ACERL")).upper())
    limit = limits.pop() if len(limits) == 1 else None
    if len(objectives) > 1:
        several = ", ".join(sorted(objectives))
        raise InputError(f"runs with different objectives: {several}; expected the same")
    objective = objectives.pop()
    if not published or objective != PAPER.objective:
        return Beside({}, None, limit, objective)
    algorithm = algorithms.pop() if len(algorithms) == 1 else "ACERL"
    levels = {}
    for policy in (*PAPER_RULES, algorithm):
        row = find_row("comparison-train", policy)
        cells = {} if row is None else row.cells
        levels[f"{policy} (paper)"] = {name: cell[:2] for name, cell in cells.items()}
    paper = f"{algorithm} (paper)"
    return Beside(levels, (paper, levels.pop(paper)), limit)


def draw_runs(paths: Sequence[str | Path], out: str | Path, only: Sequence[str] = ()) -> None:
    """Draw the curves of runs, or only those with these labels; one label twice is told by its path."""
    found = [(path, line) for path in paths for line in runs.read_lines(path)]
    counts = Counter(line.label for _, line in found)
    labels = [x.label if counts[x.label] == 1 else f"{path}: {x.label}" for path, x in found]
    for label in only:
        if label not in labels:
            expected = ", ".join(map(make_printable, labels[:20]))
            raise InputError(f"--only: read '{make_printable(label)}'; expected some of {expected}")
    lines = [line._replace(label=x) for (_, line), x in zip(found, labels, strict=True)]
    chosen = [line for line in lines if not only or line.label in only]
    trainings.draw_curves(out, chosen, find_beside(paths))
