"""Checks by fresh seeds: the slots of the tasks, chosen by the paper's figures, `best`, noise of low rank."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acerl_np.commands.shared import options as opt
from acerl_np.problem.instance import Instance
from studies.comparison import DRAWS, draw_suite
from studies.jobs import Job, Training, load_suites
from studies.make_pages import DATA
from studies.rivals.seeds import RivalConfig
from studies.stored import store_study
from studies.study import Study

NAME, PLACES, NOISE = "checks", "slots by place in the record", "noise"
BEST, POOL, PPO_POOL = (
    "preset best",
    "slots by place in the pool",
    "PPO, slots by place in the pool",
)
TEN_MILLION = {"decisions": 10_000_000}
NOISES: dict[str, dict[str, Any]] = {
    "full": {},
    **{f"rank {rank}": {"noise_rank": rank} for rank in (1, 2, 4)},
    "full, 10 million decisions": TEN_MILLION,
    "rank 1, 10 million decisions": {"noise_rank": 1, **TEN_MILLION},
}
"""Options by the label of a row; rows of ten million decisions have five seeds."""
FIRST = 200  # seed of the first training


class FreshSeeds(Study):
    """A study whose seeds begin where no other's do."""

    def list_jobs(self, trainings: Sequence[Training]) -> list[Job]:
        """Return what is to be trained for these rows."""
        return [job._replace(seed=FIRST + job.seed) for job in super().list_jobs(trainings)]


def number_by_place(record: Instance) -> Instance:
    """Return a record whose tasks are called by their place in it."""
    rows = [{**row, "task": f"task_{k}"} for k, row in enumerate(record.rows())]
    return Instance.from_rows(record.name, record.layout, rows)


def list_trainings(study: Study) -> list[Training]:
    """Return the rows to train: the default, slots by the tasks' places, `best`, PPO with such slots."""
    suites = load_suites("dmh-train", "dmh-test")
    placed = tuple((name, tuple(map(number_by_place, own))) for name, own in suites)
    main = Training("ACERL", suites[0][1], study.config(), suites)
    draws = tuple((f"draw-5-{draw}", draw_suite(5, draw)) for draw in DRAWS)
    main_too = replace(main, suites=(*suites, *draws))
    ppo = RivalConfig("ppo", study.rival_steps, {"slots": "pool"})
    return [
        main,
        replace(main, label=PLACES, instances=placed[0][1], suites=placed),
        replace(main_too, label=BEST, config=study.config("best")),
        replace(main_too, label=POOL, config=study.config(slots="pool")),
        replace(main_too, label=PPO_POOL, config=ppo, seeds=study.rival_seeds),
    ]


def list_noises(study: Study) -> list[Training]:
    """Return the rows to train: full noise and noise of low rank, at two budgets."""
    suites = load_suites("dmh-train", "dmh-test", "dmh-noise-30")
    return [
        Training(
            label,
            suites[0][1],
            study.config(**options),
            suites,
            seeds=5 if label.endswith("decisions") else None,
        )
        for label, options in NOISES.items()
    ]


OPTIONS: opt.Options = {
    opt.RUNNING: (opt.CommandOption("--quick", "a moment of it; nothing is kept", opt.SWITCH),)
}


def train_rows(
    arguments: argparse.Namespace, name: str, list_rows: Callable[[Study], list[Training]]
) -> None:
    """Train the rows of a study with fresh seeds, and store what they played."""
    with tempfile.TemporaryDirectory() as empty:
        study = FreshSeeds(Path("runs/experiments"), report=print)
        if arguments.quick:
            study.folder, study.seeds, study.generations = Path(empty), 1, 2
        rows, folder = list_rows(study), study.folder if arguments.quick else Path(DATA)
        store_study(folder, name, rows, study.run(rows))


def run(arguments: argparse.Namespace) -> None:
    """Check the slots of the tasks and `best` by seeds from 200 on; trainings are kept in runs/experiments.

    The default; the same with the tasks of each record called by their place in it, so that slot k is that of
    the k-th arrival, and with slots in the order of the pool; the preset best; PPO with slots in that order.
    """
    train_rows(arguments, NAME, list_trainings)


def run_noise(arguments: argparse.Namespace) -> None:
    """Compare noise of low rank with full noise by ninety trainings, kept in runs/experiments.

    Seeds 200 to 219 at the budget of the paper, 200 to 204 at ten million decisions.
    """
    train_rows(arguments, NOISE, list_noises)
