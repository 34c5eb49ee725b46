"""Whether verdicts are true: what 550 weeks of some shifts say beside 400 further shifts.

    python benchmarks/verdict_truth.py --out verdict-truth.csv        6 minutes of two cores
    python benchmarks/verdict_truth.py --cases "little to win" --out verdict-truth.csv
    python benchmarks/verdict_truth.py --quick

Each week trains a policy, and five for its folds, and is judged. The truth is the kept policy's difference to
the baseline that is the best on all of the week, on 400 further shifts of the same process; beside it stands
that on as many of these as a week has. Two cases have about nothing to win: a low load, and a policy of 2,000
decisions at a load at which few are late. In one the weights of `nearest` are spoiled by noise: most lose.
"""

from __future__ import annotations

import csv
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from script import make_parser

import acerl_np
from acerl_np.evaluation.hold_out import part_folds
from acerl_np.evaluation.judge import Fold, judge
from acerl_np.evaluation.margin import play_best_rule
from acerl_np.evaluation.metrics import compare_paired
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.index import NAMES, IndexPolicy, start_weights
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.layout import resize_fleet
from acerl_np.support.report import render_csv, render_table
from acerl_np.training.config import Config
from studies.general import make_shifts, train

COLUMNS = (
    *("case", "week", "reference", "said", "error", "sign", "truth", "truth_error", "truth_sign"),
    *("unseen", "unseen_error", "unseen_sign"),
)


class Case(NamedTuple):
    """A floor, its vehicles, its load, a training's decisions, how often as many weeks, shifts of a week.

    With `spoiled` no policy is trained: its weights are those of `nearest`, and normal noise times this.
    """

    name: str
    floor: str
    vehicles: int
    load: float
    decisions: int
    times: int = 1
    records: int = 15
    spoiled: float = 0.0


CASES = (
    Case("much to win", "cross-aisles", 3, 0.9, 100_000),
    Case("some to win", "supply-loop", 4, 0.8, 100_000),
    Case("half a point", "supply-loop", 4, 0.7, 100_000),
    Case("little to win", "supply-loop", 4, 0.65, 100_000),
    Case("little to win, 8", "supply-loop", 4, 0.65, 100_000, records=8),
    Case("little to win, 5", "supply-loop", 4, 0.65, 100_000, records=5),
    Case("spoiled", "supply-loop", 4, 0.65, 0, 2, spoiled=0.3),
    Case("low load", "cross-aisles", 3, 0.55, 100_000),
    Case("hardly trained", "cross-aisles", 3, 0.65, 2_000, 2),
)


def run(weeks: int, further: int, case: Case) -> list[list[object]]:
    """Return a row for each week."""
    weeks *= case.times
    layout = resize_fleet(acerl_np.load_layout(case.floor), case.vehicles)
    shifts = list(make_shifts(layout, case.load, further + weeks * case.records))
    goal, rows = Goal(SHIFT), list[list[object]]()
    playing = Playing(trials=1, goal=goal, threads=1)
    decisions = max(1, case.decisions)
    config = Config.preset("best", decisions=decisions, objective=SHIFT).resolve(shifts[:1])
    known: dict[str, np.ndarray] = {}
    for week in range(weeks):
        records = shifts[further + week * case.records :][: case.records]
        parts = part_folds(records, seed=week)
        if case.spoiled:
            noise = np.random.default_rng(week).normal(size=len(NAMES))
            policy = IndexPolicy(start_weights(NAMES) + case.spoiled * noise)
            folds = [Fold(policy, part) for part in parts]
        else:
            rests = [[item for item in records if item not in part] for part in parts]
            folds = [
                Fold(train(rest, config, week), x) for rest, x in zip(rests, parts, strict=True)
            ]
            policy = train(records, config, week)
        one = Playing(1, goal=goal, threads=1)
        verdict = judge(policy, records, playing=one, folds=folds, patience=0.0)
        reference, said = play_best_rule(records, playing)[0], verdict.policy.difference
        if reference not in known:
            known[reference] = play_policy(reference, shifts[:further], playing).mean("value")
        own = play_policy(policy, shifts[:further], playing).mean("value")
        truth = compare_paired(own, known[reference])
        first = week * case.records % (further - case.records + 1)
        some = slice(first, first + case.records)
        unseen = compare_paired(own[some], known[reference][some])
        told = [case.name, week, reference]
        for x in (said, truth, unseen):
            told += [f"{x.amount:.5g}", f"{x.error:.5g}", x.sign]
        rows.append(told)
    return rows


COUNTED = (
    *("gain", "said better", "unseen better", "loss", "said worse", "unseen worse"),
    *("neither", "said either", "intervals cover, %", "unseen cover, %", "no record differs"),
)
"""Of each case, by the truth's 95 % interval; `unseen` are as many further shifts as a week has.

Weeks without any difference count in the last column alone.
"""


def summarise(rows: list[list[object]], records: int) -> list[int]:
    """Return what the weeks of a case say in all, as `COUNTED`."""
    said, error, truth, unseen, unseen_error = (
        np.array([float(str(row[k])) for row in rows]) for k in (3, 4, 6, 9, 10)
    )
    signs = np.array([[int(str(row[k])) for k in (5, 8, 11)] for row in rows]).T
    differs = (error > 0.0) | (said != 0.0)
    width = stdtrit(records - 1, 0.975)
    covers = [
        round(100.0 * (np.abs(x - truth) <= width * error)[(error > 0.0) | (x != 0.0)].mean())
        for x, error in ((said, error), (unseen, unseen_error))
    ]
    counts: list[int] = []
    for way in (-1, 1):
        true = differs & (signs[1] == way)
        counts += [true.sum(), (true & (signs[0] == way)).sum(), (true & (signs[2] == way)).sum()]
    neither = differs & (signs[1] == 0)
    counts += [neither.sum(), (neither & (signs[0] != 0)).sum()]
    return [int(x) for x in (*counts, *covers, (~differs).sum())]


def main() -> None:
    """Run all cases, print what they come to, and write their weeks."""
    parser = make_parser(__doc__)
    parser.add_argument("--weeks", type=int, default=50)
    parser.add_argument("--further", type=int, default=400)
    parser.add_argument("--cases", nargs="+", help="some of them; rows of others in --out stay")
    parser.add_argument("--out", default="verdict-truth.csv")
    options = parser.parse_args()
    if options.quick:
        options.weeks, options.further = 2, 20
    chosen = [case for case in CASES if case.name in (options.cases or [x.name for x in CASES])]
    if options.quick:
        chosen = [case._replace(decisions=2_000) for case in chosen]
    known: dict[str, list[list[object]]] = {}
    if options.cases and Path(options.out).exists():
        for line in csv.reader(Path(options.out).read_text("utf-8").splitlines()[1:]):
            known.setdefault(line[0], []).append([*line])
    with ProcessPoolExecutor() as pool:
        played = pool.map(partial(run, options.weeks, options.further), chosen)
        for own in played:
            known[str(own[0][0])] = own
            ordered = [case for case in CASES if case.name in known]
            rows = [row for case in ordered for row in known[case.name]]
            Path(options.out).write_text(render_csv([list(COLUMNS), *rows]), "utf-8")
    rows = [[x.name, x.records, len(known[x.name])] for x in ordered]
    found = [[*row, *summarise(known[str(row[0])], int(str(row[1])))] for row in rows]
    print(render_table(["case", "shifts", "weeks", *COUNTED], found), end="")


if __name__ == "__main__":
    main()
