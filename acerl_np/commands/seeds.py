"""`--seeds` of train and rivals: the same training with several seeds, a folder each and a summary."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.curves import PICTURE, draw_training
from acerl_np.commands.outputs import declare_outputs
from acerl_np.commands.tables import USAGE_MEANING, Column, render
from acerl_np.support.errors import InputError, describe
from acerl_np.support.files import claim_folder, write_atomically
from acerl_np.support.numbers import MAX_SEED
from acerl_np.support.report import render_csv

if TYPE_CHECKING:
    from acerl_np.experiments.seeds import SeedTask
    from acerl_np.support.team import Team

MAX_SEEDS = 10_000

CONFIG, SUMMARY = "config.json", "summary.csv"

SHARES = ("satisfied", "late", "utilisation", "empty")
"""Columns of fractions."""


def read_seeds(text: str) -> range:
    """Return the seeds that "0:5" means."""
    first, colon, last = text.partition(":")
    try:
        seeds = range(int(first), int(last) if colon else int(first) + 1)
    except ValueError as error:
        raise InputError(
            f"--seeds: read {describe(text)}; expected FIRST:LAST such as 0:5"
        ) from error
    if not 0 <= seeds.start < seeds.stop <= MAX_SEED or len(seeds) > MAX_SEEDS:
        raise InputError(
            f"--seeds: read {describe(text)}; expected 1 to {MAX_SEEDS:,} seeds from 0 on such as 0:5"
        )
    return seeds


def declare_seeds(arguments: argparse.Namespace, tasks: Sequence[SeedTask], folder: Path) -> None:
    """Refuse a folder that holds another training; the same one goes on in its own."""
    from acerl_np.experiments.seeds import FILES, TRIALS_FILE, is_begun

    force = bool(arguments.force)
    shared = [folder / name for name in (CONFIG, SUMMARY, PICTURE)]
    declare_outputs(arguments, shared, force=force or is_begun_here(folder / CONFIG, tasks))
    for task in tasks:
        place = folder / f"seed{task.seed}"
        files = [place / name for name in (*FILES, TRIALS_FILE)]
        declare_outputs(arguments, files, force=force or is_begun(place, task))


def is_begun_here(path: Path, tasks: Sequence[SeedTask]) -> bool:
    """Whether a config.json is that of this training; its seeds may be others."""
    from acerl_np.support.files import read_text

    try:
        found = json.loads(read_text(path, InputError))
    except (InputError, ValueError, RecursionError):
        return False
    own = describe_tasks(tasks)
    kept = [name for name in own if name not in ("acerl_np", "seeds")]
    return (
        isinstance(found, dict)
        and "seeds" in found
        and all(found.get(name) == json.loads(json.dumps(own[name])) for name in kept)
    )


def run_seeds(
    tasks: Sequence[SeedTask], folder: Path, team: Team | None, *, more: bool, quiet: bool
) -> None:
    """Train all seeds, write and print the summary, with `more` of all metrics."""
    from acerl_np.experiments.seeds import summarise_seeds, train_seeds
    from acerl_np.support.team import lead

    started, trained = time.perf_counter(), 0
    results: dict[int, Any] = {}
    with claim_folder(folder), lead(team, 1) as workers:
        # First: it tells whose folder this is.
        data = json.dumps(describe_tasks(tasks), indent=2)
        write_atomically(folder / CONFIG, f"{data}\n".encode())
        for k, result, is_new in train_seeds(tasks, folder, workers):
            results[k] = result
            trained += is_new
            if not quiet:
                elapsed = time.perf_counter() - started
                left = elapsed / trained * (len(tasks) - len(results)) if trained else 0.0
                print(
                    f"{len(results)}/{len(tasks)} trainings, seed {tasks[k].seed}, {elapsed:.0f} s, "
                    f"about {left:.0f} s left",
                    file=sys.stderr,
                    flush=True,
                )
        header, rows = summarise_seeds(tasks, [results[k] for k in range(len(tasks))], more=more)
        write_atomically(folder / SUMMARY, render_csv([header, *rows]).encode())
        picture = draw_training(folder, quiet=quiet)
    columns = [
        Column(name, name, ".0%" if name.endswith(SHARES) else "" if name == "seed" else ".1f")
        for name in header
    ]
    shown = [dict(zip(header, row, strict=True)) for row in rows]
    meaning = f"\n{USAGE_MEANING}" if more else ""
    print(
        f"Means over {tasks[0].trials} trials of each record; satisfied: tardiness below "
        f"{tasks[0].cost_limit:g} s{meaning}\n{render(columns, shown, 'text', rules=[len(shown) - 2])}"
    )
    print(f"a folder per seed, and the summary: {folder / SUMMARY}")
    if picture is not None:
        print(f"picture {picture}")


def describe_tasks(tasks: Sequence[SeedTask]) -> dict[str, Any]:
    """Return what all seeds have in common, for config.json."""
    import acerl_np
    from acerl_np.training.config import Config

    config = tasks[0].config
    data: dict[str, Any] = {
        "acerl_np": acerl_np.__version__,
        "seeds": [task.seed for task in tasks],
        "instances": {item.name: item.content_hash for item in tasks[0].instances},
        "held_back": {item.name: item.content_hash for item in tasks[0].held_back},
    }
    own = config.to_dict()
    data.update({"config": own} if isinstance(config, Config) else own)
    return data
