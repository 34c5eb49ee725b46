"""Whether verdicts are true: what 250 weeks of fifteen shifts say beside 400 further shifts.

    python benchmarks/verdict_truth.py --out verdict-truth.csv        half an hour of two cores
    python benchmarks/verdict_truth.py --quick

Each week trains a policy, and five for its folds, and is judged. The truth is the kept policy's difference to
the baseline that is the best on all fifteen, on 400 further shifts of the same process; beside it stands
that on fifteen of these, by a paired t test. Two of the four cases have about nothing to win: a low load, and
a policy of 2,000 decisions at a load at which few are late.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from script import make_parser

import acerl_np
from acerl_np.evaluation.hold_out import part_folds
from acerl_np.evaluation.margin import play_best_rule
from acerl_np.evaluation.metrics import SIGNIFICANCE, compare_paired
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.evaluation.verdict import Fold, judge
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.layout import resize_fleet
from acerl_np.support.report import render_csv, render_table
from acerl_np.training.config import Config
from studies.general import make_shifts, train

RECORDS = 15
COLUMNS = (
    *("case", "week", "reference", "said", "error", "sign", "truth", "truth_error", "truth_sign"),
    *("unseen", "unseen_error", "unseen_sign"),
)


class Case(NamedTuple):
    """A floor, its vehicles, the offered load, the decisions of a training, and how often as many weeks."""

    name: str
    floor: str
    vehicles: int
    load: float
    decisions: int
    times: int = 1


CASES = (
    Case("much to win", "cross-aisles", 3, 0.9, 100_000),
    Case("some to win", "supply-loop", 4, 0.8, 100_000),
    Case("low load", "cross-aisles", 3, 0.55, 100_000),
    Case("hardly trained", "cross-aisles", 3, 0.65, 2_000, 2),
)


def run(weeks: int, further: int, case: Case) -> list[list[object]]:
    """Return a row for each week."""
    weeks *= case.times
    layout = resize_fleet(acerl_np.load_layout(case.floor), case.vehicles)
    shifts = list(make_shifts(layout, case.load, further + weeks * RECORDS))
    goal, rows = Goal(SHIFT), list[list[object]]()
    playing = Playing(trials=1, goal=goal, threads=1)
    config = Config.preset("best", decisions=case.decisions, objective=SHIFT).resolve(shifts[:1])
    known: dict[str, np.ndarray] = {}
    for week in range(weeks):
        records = shifts[further + week * RECORDS :][:RECORDS]
        folds = [
            Fold(train([item for item in records if item not in part], config, week), part)
            for part in part_folds(records, seed=week)
        ]
        policy = train(records, config, week)
        one = Playing(1, goal=goal, threads=1)
        verdict = judge(policy, records, playing=one, folds=folds, patience=0.0)
        reference, said = play_best_rule(records, playing)[0], verdict.policy.difference
        if reference not in known:
            known[reference] = play_policy(reference, shifts[:further], playing).mean("value")
        own = play_policy(policy, shifts[:further], playing).mean("value")
        truth = compare_paired(own, known[reference])
        some = slice(week * RECORDS % (further - RECORDS + 1), None)
        unseen = compare_paired(own[some][:RECORDS], known[reference][some][:RECORDS])
        told = [case.name, week, reference]
        for x in (said, truth, unseen):
            told += [f"{x.amount:.5g}", f"{x.error:.5g}", x.sign]
        rows.append(told)
    return rows


COUNTED = (
    *(
        "gained in truth",
        "said so",
        "unseen say so",
        "without gain",
        "said better",
        "unseen say better",
    ),
    *("intervals cover, %", "unseen cover, %", "no record differs"),
)
"""Of each case; `unseen` are fifteen further shifts. Weeks without any difference count in the last alone."""


def summarise(rows: list[list[object]]) -> list[int]:
    """Return what the weeks of a case say in all, as `COUNTED`."""
    said, error, truth, unseen = (np.array([float(row[k]) for row in rows]) for k in (3, 4, 6, 9))
    unseen_error = np.array([float(row[10]) for row in rows])
    better, gains = (np.array([row[k] == -1 for row in rows]) for k in (5, 8))
    by_t = unseen < -stdtrit(RECORDS - 1, 1.0 - SIGNIFICANCE) * unseen_error
    differs = (error > 0.0) | (said != 0.0)
    width = stdtrit(RECORDS - 1, 0.975)
    covers = [
        round(100.0 * (np.abs(x - truth) <= width * error)[(error > 0.0) | (x != 0.0)].mean())
        for x, error in ((said, error), (unseen, unseen_error))
    ]
    parts = gains & differs, ~gains & differs
    counts = [x.sum() for part in parts for x in (part, part & better, part & by_t)]
    return [int(x) for x in (*counts, *covers, (~differs).sum())]


def main() -> None:
    """Run all cases, print what they come to, and write their weeks."""
    parser = make_parser(__doc__)
    parser.add_argument("--weeks", type=int, default=50)
    parser.add_argument("--further", type=int, default=400)
    parser.add_argument("--out", default="verdict-truth.csv")
    options = parser.parse_args()
    if options.quick:
        options.weeks, options.further = 2, 20
    rows: list[list[object]] = [list(COLUMNS)]
    cases = [case._replace(decisions=2_000) if options.quick else case for case in CASES]
    found = []
    with ProcessPoolExecutor() as pool:
        for own in pool.map(partial(run, options.weeks, options.further), cases):
            rows += own
            found.append([own[0][0], len(own), *summarise(own)])
            with open(options.out, "w", encoding="utf-8") as file:
                file.write(render_csv(rows))
    print(render_table(["case", "weeks", *COUNTED], found), end="")


if __name__ == "__main__":
    main()
