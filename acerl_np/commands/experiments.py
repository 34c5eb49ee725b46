"""`acerl-np experiments`: repeat the paper's studies."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from acerl_np.commands.common import announce_compilation, make_folder
from acerl_np.errors import InputError
from acerl_np.report import FORMATS, name_cells, render_json
from acerl_np.storage import write_atomically

DESCRIPTION = """\
Repeat a study of the paper: train every row with every seed, play the suites, and print the paper's
tables with its values beside the measured ones and the difference.

Marks compare with ACERL by a two-sided rank-sum test at 5 %: + better, ~ similar, - worse. M and C are
normalised over the measured rows of the table; on the training suite the paper's rows of its three
tables on that suite join the pool, since its instances are the same. The rows of algorithms that are
not measured here show the paper's figures ("published").

Every finished training is kept in --out, so an interrupted study goes on where it stopped.
"""

STUDIES = {
    "comparison": "training and unseen instances against rules and published algorithms; 5 trainings",
    "robustness": "arrivals perturbed by 0 to 30 s; shares its trainings with comparison",
    "leave-one-out": "trained on seven of eight instances; 40 trainings",
    "ablation": "ranking, sampler, single instances; 220 trainings",
    "all": "all of them; 260 trainings",
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
        study.add_argument("--seeds", type=int, default=5, help="trainings per row (default: 5)")
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


def run(arguments: argparse.Namespace) -> int:
    """Run the study; return the exit status."""
    from acerl_np.workers import check_threads

    limits = {"seeds": (1, 1000), "trials": (1, 100_000)}
    limits |= {"generations": (1, 1_000_000)}
    for name, (low, high) in limits.items():
        value = getattr(arguments, name)
        if value is not None and not low <= value <= high:
            raise InputError(
                f"--{name}: read {value}; expected a whole number from {low} to {high}"
            )
    check_threads(arguments.threads)
    from acerl_np.experiments.study import Study

    folder = make_folder(arguments.out)
    announce_compilation()
    started = time.perf_counter()
    last = [0.0]

    def report(done: int, total: int, label: str) -> None:
        elapsed = time.perf_counter() - started
        if done == total or elapsed - last[0] >= 2.0:
            last[0] = elapsed
            left = elapsed / done * (total - done)
            line = f"{done}/{total} trainings, {label}, {elapsed:.0f} s, about {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    study = Study(
        folder,
        seeds=arguments.seeds,
        trials=arguments.trials,
        generations=arguments.generations,
        threads=arguments.threads,
        report=report,
    )
    documents: list[dict[str, object]] = []
    names = [name for name in STUDIES if name != "all"]
    for name in names if arguments.study == "all" else [arguments.study]:
        module = importlib.import_module(f"acerl_np.experiments.{name.replace('-', '_')}")
        started = time.perf_counter()
        results = study.run(module.trainings(study))
        files = study.write_curves(results, name)
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
