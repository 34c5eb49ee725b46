"""`--seeds` of train: the same training with several seeds, a folder each and a summary."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import acerl_np
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.progress import PICTURE, draw_training, make_report
from acerl_np.commands.shared.tables import USAGE_MEANING, Column, describe_share, render
from acerl_np.evaluation.seeds import (
    FILES,
    TRIALS_FILE,
    SeedTask,
    is_begun,
    summarise_seeds,
    train_seeds,
)
from acerl_np.pictures.runs import read_config
from acerl_np.support.errors import InputError, describe
from acerl_np.support.fields import MAX_SEED
from acerl_np.support.files import claim_folder, write_atomically
from acerl_np.support.report import render_csv
from acerl_np.support.team import Team, lead

MAX_SEEDS = 10_000

CONFIG, SUMMARY = "config.json", "summary.csv"

SHARES = ("satisfied", "late", "utilisation", "empty")
"""Columns of fractions."""


def read_seeds(text: str) -> range:
    """Return the seeds that "0:5" means."""
    first, colon, last = text.partition(":")
    wrong = f"--seeds: read {describe(text)}; expected"
    try:
        seeds = range(int(first), int(last) if colon else int(first) + 1)
    except ValueError as error:
        raise InputError(f"{wrong} FIRST:LAST such as 0:5") from error
    if not 0 <= seeds.start < seeds.stop <= MAX_SEED or len(seeds) > MAX_SEEDS:
        raise InputError(f"{wrong} 1 to {MAX_SEEDS:,} seeds from 0 on such as 0:5")
    return seeds


def declare_seeds(arguments: argparse.Namespace, tasks: Sequence[SeedTask], folder: Path) -> None:
    """Refuse a folder that holds another training; the same one, maybe of other seeds, goes on in its own."""
    force = bool(arguments.force)
    found, own = read_config(folder), json.loads(json.dumps(describe_tasks(tasks)))
    same = (found.get(name) == x for name, x in own.items() if name not in ("acerl_np", "seeds"))
    shared = [folder / name for name in (CONFIG, SUMMARY, PICTURE)]
    again = force or ("seeds" in found and all(same))
    declare_outputs(arguments, shared, folder=folder, force=again)
    for task in tasks:
        place = folder / f"seed{task.seed}"
        files = [place / name for name in (*FILES, TRIALS_FILE)]
        declare_outputs(arguments, files, folder=place, force=force or is_begun(place, task))


def run_seeds(
    tasks: Sequence[SeedTask], folder: Path, team: Team | None, *, more: bool, quiet: bool
) -> None:
    """Train all seeds, write and print the summary, with `more` of all metrics."""
    report = make_report()
    results: dict[int, Any] = {}
    with claim_folder(folder), lead(team, 1) as workers:
        # First: it tells whose folder this is.
        data = json.dumps(describe_tasks(tasks), indent=2)
        write_atomically(folder / CONFIG, f"{data}\n".encode())
        for k, result, is_new in train_seeds(tasks, folder, workers):
            results[k] = result
            if not quiet:
                report(len(results), len(tasks), f"seed {tasks[k].seed}", is_new)
        header, rows = summarise_seeds(tasks, [results[k] for k in range(len(tasks))], more=more)
        write_atomically(folder / SUMMARY, render_csv([header, *rows]).encode())
        picture = draw_training(folder, quiet=quiet)
    goal = tasks[0].goal
    forms = {"seed": "", "value": goal.format, "unseen value": goal.format}
    forms |= {name: ".0%" for name in header if name.endswith(SHARES)}
    columns = []
    for name in header:
        title = name.replace("value", f"{goal.objective}").replace("satisfied", "within limit")
        if goal.has_limit or not name.endswith("satisfied"):
            columns.append(Column(name, title, forms.get(name, ".1f")))
    shown = [dict(zip(header, row, strict=True)) for row in rows]
    print(f"Means over {tasks[0].trials} trials of each record{describe_share(goal)}")
    if more:
        print(USAGE_MEANING)
    print(render(columns, shown, "text", rules=[len(shown) - 2]))
    print(f"a folder per seed, and the summary: {folder / SUMMARY}")
    if picture is not None:
        print(f"picture {picture}")


def describe_tasks(tasks: Sequence[SeedTask]) -> dict[str, Any]:
    """Return what all seeds have in common, for config.json."""
    first = tasks[0]
    return {
        "acerl_np": acerl_np.__version__,
        "seeds": [task.seed for task in tasks],
        "instances": {item.name: item.content_hash for item in first.instances},
        "held_back": {item.name: item.content_hash for item in first.held_back},
        **first.describe(),
    }
