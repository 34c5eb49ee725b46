"""Prove bounds of bundled records, ten minutes each, into a table that a second run goes on with.

    python benchmarks/exact_bounds.py exact.csv dmh-train bu-all --time-limit 600
    python benchmarks/exact_bounds.py announced.csv bu-all --announced
    python benchmarks/exact_bounds.py --quick                     seconds' worth, for a check

Records are named alone or by their suite. The search begins from what hindsight finds, or what is stored.
--announced: the instances of Bilge and Ulusoy with tasks announced as the processing before them begins.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from script import make_parser

from acerl_np import load_instance
from acerl_np.evaluation.exact import WORKERS, prove_makespan
from acerl_np.evaluation.hindsight import find_hindsight
from acerl_np.evaluation.references import bundled_references
from acerl_np.problem.bundled import YARDSTICK, bundled_suites, instances_folder
from acerl_np.problem.goal import PAPER
from acerl_np.problem.importers.bilge_ulusoy import import_bilge_ulusoy

COLUMNS = ("instance", "tasks", "hindsight_s", "exact_s", "planned_s", "best_s", "bound_s", "gap")
COLUMNS += ("proof", "solver_s", "time_limit_s", "actions")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path(os.devnull))
    parser.add_argument("names", nargs="*", default=["EX11"])
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=WORKERS)
    parser.add_argument("--announced", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.time_limit, arguments.effort = 5.0, 0.05
    announced = {}
    if arguments.announced:
        made = import_bilge_ulusoy(instances_folder() / YARDSTICK, announced=True)
        announced = {instance.name: instance for instance in made}
    names = [x for name in arguments.names for x in bundled_suites().get(name, [name])]
    done = set()
    if arguments.out.exists():
        with arguments.out.open(encoding="utf-8", newline="") as file:
            done = {row["instance"] for row in csv.DictReader(file)}
    with arguments.out.open("a", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        if file.tell() == 0:
            table.writerow(COLUMNS)
        for name in names:
            if name in done:
                continue
            instance = announced[name] if announced else load_instance(name)
            known = bundled_references().get(instance.content_hash)
            found = find_hindsight(instance, effort=arguments.effort)
            if known is None or (found and found.within and found.value < known.value):
                known = found
            proof = prove_makespan(
                instance, PAPER, known, seconds=arguments.time_limit, threads=arguments.threads
            )
            values = (
                known and known.makespan,
                proof.makespan,
                proof.planned,
                proof.best,
                proof.bound,
            )
            rest = proof.gap, proof.describe(), proof.seconds, arguments.time_limit
            cells = [f"{x:.6g}" if isinstance(x, float) else x for x in (*values, *rest)]
            table.writerow([name, instance.n_tasks, *cells, " ".join(map(str, proof.actions))])
            file.flush()
            print(name, *cells, flush=True)


if __name__ == "__main__":
    main()
