"""`acerl-np experiments`: repeat the paper's studies."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from acerl_np.commands.common import compile_ahead, make_folder
from acerl_np.commands.ranges import Range, check_ranges
from acerl_np.support.files import write_atomically
from acerl_np.support.report import FORMATS, name_cells, render_json

DESCRIPTION = """\
Repeat a study of the paper: train every row with every seed, play the suites, and print the paper's
tables with its values beside the measured ones ("learning" and "generalisation" are studies of our own,
with a p value a row).

Marks compare with ACERL by a two-sided rank-sum test at 5 % on the means of the training seeds: + better,
~ similar, - worse. On DMH-01 to -08 M and C are normalised over the paper's own rows, so they can be
compared with the printed ones. Where the paper prints no marks (ablation) there are none. The paper's noised
records are not published: beside ours, of the same names, its figures stand for themselves, and nothing is
subtracted.

Every finished training is kept in --out, so an interrupted study goes on where it stopped.
"""

STUDIES = {
    "comparison": "training and noised records against rules and published algorithms; 1 row",
    "robustness": "arrivals perturbed by 5 to 30 s, nine draws each; shares its row with comparison",
    "leave-one-out": "trained on seven of eight records; 8 rows",
    "ablation": "ranking, sampler, single records; 44 rows",
    "all": "these four, the paper's studies; 52 rows",
    "learning": "one setting changed at a time: what training needs; 38 rows",
    "generalisation": "forms of policy, features, budgets, lookahead, records left out; 77 rows",
}

PAPER = ("comparison", "robustness", "leave-one-out", "ablation")
"""What "all" repeats."""

RANGES = {
    "seeds": Range(1, 1000, "a whole number from 1 to 1000"),
    "trials": Range(1, 100_000, "a whole number from 1 to 100000"),
    "generations": Range(1, 1_000_000, "a whole number from 1 to 1000000"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    studies = parser.add_subparsers(dest="study", metavar="STUDY", required=True)
    for name, summary in STUDIES.items():
        study = studies.add_parser(
            name,
            help=summary,
            description=f"{summary}\n\n{DESCRIPTION}",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        seeds = 10 if name in ("learning", "generalisation") else 20
        study.add_argument(
            "--seeds", type=int, default=seeds, help=f"trainings per row (default: {seeds})"
        )
        study.add_argument(
            "--trials", type=int, default=30, help="episodes per instance and seed (default: 30)"
        )
        study.add_argument(
            "--generations", type=int, help="fewer generations, for a quick look (default: 128)"
        )
        study.add_argument(
            "--threads", type=int, help="trainings at a time (default: one per core)"
        )
        study.add_argument(
            "--out",
            default="runs/experiments",
            metavar="DIR",
            help="folder of runs and tables (default: runs/experiments)",
        )
        study.add_argument(
            "--format",
            choices=FORMATS,
            default="text",
            help="form of the printed tables; Markdown and CSV files are written in any case "
            "(default: text)",
        )


class Progress:
    """A line every two seconds on the standard error stream; trainings that were kept cost no time."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a study."""
        self.started = self.shown = time.perf_counter()
        self.trained = 0

    def report(self, done: int, total: int, label: str, trained: bool) -> None:
        """Say that another training is finished, now or by an earlier study."""
        now = time.perf_counter()
        self.trained += trained
        if done < total and now - self.shown < 2.0:
            return
        self.shown = now
        elapsed = now - self.started
        left = (
            f", about {elapsed / self.trained * (total - done):.0f} s left" if self.trained else ""
        )
        print(
            f"{done}/{total} trainings, {label}, {elapsed:.0f} s{left}", file=sys.stderr, flush=True
        )


def run(arguments: argparse.Namespace) -> int:
    """Run the study; return the exit status."""
    from acerl_np.support.workers import check_threads

    check_ranges(arguments, RANGES)
    check_threads(arguments.threads)
    from acerl_np.experiments.study import Study

    folder = make_folder(arguments.out)
    compile_ahead("training")
    progress = Progress()

    study = Study(
        folder,
        seeds=arguments.seeds,
        trials=arguments.trials,
        generations=arguments.generations,
        threads=arguments.threads,
        report=progress.report,
    )
    documents: list[dict[str, object]] = []
    for name in PAPER if arguments.study == "all" else [arguments.study]:
        module = importlib.import_module(f"acerl_np.experiments.{name.replace('-', '_')}")
        progress.restart()
        results = study.run(module.trainings(study))
        files = study.write_records(results, name)
        for table in module.tables(study, results):
            for form, suffix in (("markdown", "md"), ("csv", "csv")):
                path = folder / f"{table.name}.{suffix}"
                write_atomically(path, table.render(form).encode())
            files.append(folder / f"{table.name}.md")
            if arguments.format == "json":
                rows = name_cells(table.header, table.rows)
                documents.append({"table": table.name, "title": table.title, "rows": rows})
            else:
                print(table.render(arguments.format))
        print("files: " + " ".join(str(path) for path in files), file=sys.stderr)
    if arguments.format == "json":
        print(render_json(documents), end="")
    return 0
