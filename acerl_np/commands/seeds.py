"""`--seeds` of train and rivals: the same training with several seeds, a folder each and a summary."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.curves import draw_training
from acerl_np.support.errors import InputError, describe
from acerl_np.support.files import claim_folder, write_atomically
from acerl_np.support.numbers import MAX_SEED
from acerl_np.support.report import render_table

if TYPE_CHECKING:
    from acerl_np.experiments.seeds import SeedTask
    from acerl_np.support.team import Team

MAX_SEEDS = 10_000


def add_seeds(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare --seeds."""
    parser.add_argument(
        "--seeds",
        metavar="FIRST:LAST",
        help="train with several seeds, such as 0:5 for 0 to 4: a folder each below --out, and a summary; "
        "what is finished is kept, so that the same command goes on where it stopped",
    )


def read_seeds(text: str) -> range:
    """Return the seeds that "0:5" means.

    Raises
    ------
    InputError
        If it means none, or is no such text.
    """
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


def run_seeds(tasks: Sequence[SeedTask], folder: Path, team: Team | None, *, quiet: bool) -> None:
    """Train all seeds, write and print the summary."""
    from acerl_np.experiments.seeds import summarise_seeds, train_seeds
    from acerl_np.support.team import lead

    started, trained = time.perf_counter(), 0
    results: dict[int, Any] = {}
    with claim_folder(folder), lead(team, 1) as workers:
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
        header, rows = summarise_seeds(tasks, [results[k] for k in range(len(tasks))])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        write_atomically(folder / "summary.csv", text.getvalue().encode())
        write_config(folder / "config.json", tasks)
        picture = draw_training(folder, quiet=quiet)
    shown = [
        [row[0], *(_show(name, x) for name, x in zip(header[1:], row[1:], strict=True))]
        for row in rows
    ]
    limit = tasks[0].cost_limit
    print(
        f"Means over {tasks[0].trials} trials of each record; satisfied: tardiness below {limit:g} s\n"
        f"{render_table(header, shown, rules=[len(shown) - 2])}"
    )
    print(f"a folder per seed, and the summary: {folder / 'summary.csv'}")
    if picture is not None:
        print(f"picture {picture}")


def write_config(path: Path, tasks: Sequence[SeedTask]) -> None:
    """Write what all seeds have in common as JSON."""
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
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())


def _show(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.0%}" if name.endswith("satisfied") else f"{value:.1f}"
