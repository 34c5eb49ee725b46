"""What own trainings need besides: from how much waiting on `nearest` decides, and a term of waiting.

    python benchmarks/larger_floors.py --out floors
    python benchmarks/beyond.py --floors supply-loop:4 cross-aisles:4 floors/two-lane-hall/layout.json:6 \\
        floors/one-way-aisles/layout.json:6 --out beyond.csv                      20 minutes of a core
    python benchmarks/beyond.py --quick

Eight shifts train an index policy, eight others of each offered load judge it. Trained on normal days (0.9)
it plays with every threshold; "x 1", "x 2" are multiples of the longest queue for each vehicle on the days
that trained it. Trained on quiet days (0.45), and for a sum that has waiting besides, it plays with the usual
one. Figures are means over shifts; seed -1 is `nearest`.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from script import make_parser
from shifts import equip

from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.support.report import render_csv
from acerl_np.training.config import USUAL_BEYOND, Config
from studies.general import make_shifts, train

NORMAL, QUIET, LOADS = 0.9, 0.45, (0.9, 1.1, 1.25, 1.5)
BEYOND = (None, 6.0, 8.0, 10.0, 12.0, 18.0)
TERM = 0.02
SHIFTS = 8
COLUMNS = (
    *("floor", "trained_on", "trained_for", "seed", "load", "beyond"),
    *("objective", "late_share", "waiting_s"),
)


def find_longest(policy: object, days: list[Instance]) -> float:
    """Return the most tasks that waited for each vehicle when the policy decided."""
    most = 0
    for day in days:
        trace = trace_policy(policy, day)
        arrival = np.sort(day.arrival)
        starts = np.sort([trip.start for trip in trace.trips])
        waiting = np.searchsorted(arrival, starts, "right") - np.arange(len(starts))
        most = max(most, int(waiting.max()))
    return most / len(days[0].layout.vehicles)


def judge(layout: Layout, seeds: int, decisions: int) -> list[list[object]]:
    """Return the rows of a floor."""
    rows: list[list[object]] = []
    days = {load: list(make_shifts(layout, load, 2 * SHIFTS)) for load in (QUIET, *LOADS)}

    def play(player: object, load: float, base: object, aim: str, seed: int, mark: object) -> None:
        playing = Playing(trials=1, goal=Goal(SHIFT), threads=1)
        played = play_policy(player, days[load][:SHIFTS], playing)
        figures = (played.value.mean(), played.late.mean(), played.waiting.mean())
        told = (layout.name, base, aim, seed, load, mark)
        rows.append([*told, *(f"{x:.5g}" for x in figures)])

    for load in days:
        play("nearest", load, "", "", -1, "")
    sums = SHIFT, f"{SHIFT}+{TERM:g}*waiting"
    for seed, base, aim in product(range(seeds), (NORMAL, QUIET), sums):
        options = {"waiting_weight": 0.0, "decisions": decisions}
        config = Config.preset("best", objective=aim, **options)
        policy = train(days[base][SHIFTS:], config, seed)
        if (base, aim) != (NORMAL, SHIFT):
            for load in (QUIET, NORMAL):
                play(policy.switch(USUAL_BEYOND), load, base, aim, seed, USUAL_BEYOND)
            continue
        longest = find_longest(policy.switch(None), days[base][SHIFTS:])
        marks = {f"x {k}": k * longest for k in (1, 2)} | {x or "none": x for x in BEYOND}
        for load, (mark, beyond) in product(days, marks.items()):
            play(policy.switch(beyond), load, base, aim, seed, mark)
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--floors", nargs="+", default=["supply-loop:4", "cross-aisles:4"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--out", default="beyond.csv")
    options = parser.parse_args()
    if options.quick:
        options.floors, options.seeds, options.decisions = ["supply-loop:2"], 1, 2000
    rows: list[list[object]] = [list(COLUMNS)]
    for floor in options.floors:
        name, _, n = floor.rpartition(":")
        layout = replace(equip(name, int(n)), parking=None)
        rows += judge(layout, options.seeds, options.decisions)
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(render_csv(rows))
        print(f"{floor}: {len(rows) - 1} rows in {options.out}", flush=True)


if __name__ == "__main__":
    main()
