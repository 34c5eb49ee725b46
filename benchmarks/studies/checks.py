"""What checks the slots of the tasks, which were chosen by the paper's figures; kept in docs/results.

    python benchmarks/studies/checks.py              forty trainings, kept in runs/experiments
    python benchmarks/studies/checks.py --quick      a moment of it; nothing is kept

The default with seeds 200 to 219, by which nothing was chosen; and the same with the tasks of each record
called by their place in it, so that slot k is that of the k-th arrival.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from make_pages import DATA
from stored import store_study

from acerl_np.experiments.jobs import Job, Training, load_suites
from acerl_np.experiments.study import Study
from acerl_np.problem.instance import Instance

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


def main() -> None:
    """Train, and keep what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as empty:
        study = FreshSeeds(Path("runs/experiments"), report=print)
        if options.quick:
            study.folder, study.seeds, study.generations = Path(empty), 1, 2
        rows, folder = list_trainings(study), study.folder if options.quick else Path(DATA)
        store_study(folder, NAME, rows, study.run(rows))


if __name__ == "__main__":
    main()
