"""Whether verdicts are true: the words of fourteen trainings beside 100 further shifts.

    python benchmarks/verdict_truth.py
    python benchmarks/verdict_truth.py --quick       # two cases of seconds, to see that it runs

2, 4 and 8 vehicles at utilisations of 0.45 and 0.9 are trained on 12 shifts of a made plant for the makespan
and for the share of late tasks, and 4 vehicles on 5 shifts, judged in folds, and on 20. Each verdict says
better, worse or neither than the best rule in the objective. The truth is the sign of the paired difference
on the further shifts, beyond two standard errors. A verdict that tells nothing where there is a difference is
weak; one of the other sign is wrong.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

from script import make_parser

import acerl_np
from acerl_np.evaluation.hold_out import choose_share, hold_out, part_folds
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.evaluation.verdict import Fold, compare_paired, judge, show_difference
from acerl_np.problem.goal import Goal
from acerl_np.problem.shift import find_scale

WORDS = {-1: "better", 0: "neither", 1: "worse", None: "too few"}


class Case(NamedTuple):
    """A training: vehicles, utilisation, objective, records."""

    vehicles: int
    utilisation: float
    objective: str
    records: int


CASES = [
    *(Case(*both, 12) for both in itertools.product((2, 4, 8), (0.45, 0.9), ("makespan", "late"))),
    *(Case(4, 0.9, "late", n) for n in (5, 20)),
]


def run(case: Case, decisions: int, hours: float, further: int, threads: int | None) -> list[str]:
    """Train, judge, and play further shifts; return the row of a case."""
    floor = acerl_np.load_layout("supply-loop")
    fleet = [
        replace(floor.vehicles[k % len(floor.vehicles)], id=f"v{k}") for k in range(case.vehicles)
    ]
    layout = floor.with_fleet(fleet)
    scale = find_scale(layout, case.utilisation, hours=hours)
    shifts = [
        acerl_np.generate_shift(layout, hours=hours, scale=scale, index=k, name=f"shift{k}")
        for k in range(case.records + further)
    ]
    records, others = shifts[: case.records], shifts[case.records :]
    goal = Goal(case.objective)
    share = choose_share(len(records))
    training, unseen = (records, []) if share is None else hold_out(records, share)

    def train(some: list[acerl_np.Instance]) -> acerl_np.IndexPolicy:
        config = acerl_np.Config.preset("best", decisions=decisions, objective=case.objective)
        trainer = acerl_np.ACERL(some, config, threads=threads)
        trainer.run()
        return trainer.policy

    policy, folds = train(training), []
    for part in [] if unseen else part_folds(training):
        folds.append(Fold(train([item for item in training if item not in part]), part))
    how = {"trials": 1, "futures": 0, "threads": threads}
    verdict = judge(policy, training, unseen, folds=folds, objective=goal, **how)
    playing = Playing(trials=1, seed=1, goal=goal, threads=threads)
    own, other = (play_policy(x, others, playing) for x in (policy, verdict.best_rule))
    truth = compare_paired(own.mean_value(), other.mean_value())
    said = verdict.policy.difference
    agrees = "yes" if said.sign == truth.sign else "weak" if not said.sign else "no"
    if not truth.sign and said.sign:
        agrees = "unsure"
    return [
        f"{case.vehicles} vehicles, {case.utilisation}, {case.objective}, {case.records} records",
        f"{verdict.best_rule}: {WORDS[said.sign]} {show_difference(*said[:2], '+')}",
        f"{WORDS[truth.sign]} {show_difference(*truth[:2], '+')}",
        agrees,
    ]


def main() -> None:
    """Run all cases and print what was said, what is true, and whether that agrees."""
    parser = make_parser(__doc__)
    parser.add_argument("--decisions", type=int, default=300_000)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--further", type=int, default=100)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    cases = CASES
    if options.quick:
        cases = [Case(2, 0.9, "makespan", 12), Case(2, 0.9, "late", 5)]
        options.decisions, options.hours, options.further = 5_000, 1.0, 6
    count = dict.fromkeys(("yes", "weak", "unsure", "no"), 0)
    for case in cases:
        row = run(case, options.decisions, options.hours, options.further, options.threads)
        count[row[-1]] += 1
        print(" | ".join(row), flush=True)
    print(", ".join(f"{name} {n}" for name, n in count.items()), "of", len(cases))


if __name__ == "__main__":
    main()
