"""What checks the slots of the tasks, which were chosen by the paper's figures; kept in docs/results."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from acerl_np.commands.shared import options as opt
from acerl_np.problem.instance import Instance
from studies.jobs import Job, Training, load_suites
from studies.make_pages import DATA
from studies.stored import store_study
from studies.study import Study

NAME, PLACES = "checks", "slots by place in the record"
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
    """Return the rows to train: the default, and slots by the tasks' places."""
    suites = load_suites("dmh-train", "dmh-test")
    placed = tuple((name, tuple(map(number_by_place, own))) for name, own in suites)
    main = Training("ACERL", suites[0][1], study.config(), suites)
    return [main, replace(main, label=PLACES, instances=placed[0][1], suites=placed)]


OPTIONS: opt.Options = {
    opt.RUNNING: (opt.CommandOption("--quick", "a moment of it; nothing is kept", opt.SWITCH),)
}


def run(arguments: argparse.Namespace) -> None:
    """Check the slots of the tasks by forty trainings, kept in runs/experiments.

    The default with seeds 200 to 219, by which nothing was chosen; and the same with the tasks of each record
    called by their place in it, so that slot k is that of the k-th arrival.
    """
    with tempfile.TemporaryDirectory() as empty:
        study = FreshSeeds(Path("runs/experiments"), report=print)
        if arguments.quick:
            study.folder, study.seeds, study.generations = Path(empty), 1, 2
        rows, folder = list_trainings(study), study.folder if arguments.quick else Path(DATA)
        store_study(folder, NAME, rows, study.run(rows))
