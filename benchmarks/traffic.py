"""What traffic changes: waiting and late tasks, the fleet that is needed, rules in another order, time.

    python benchmarks/larger_floors.py --out floors              two of the floors
    python benchmarks/traffic.py --floors supply-loop cross-aisles grid-7x7 dmh \
        floors/two-lane-hall/layout.json floors/one-way-aisles/layout.json > docs/results/traffic.txt
    python benchmarks/traffic.py --trained 0:10 --floors supply-loop cross-aisles \
        --out docs/results/traffic-seeds.csv > docs/results/traffic-trained.txt
    python benchmarks/traffic.py --trained 0:5 --floors dmh floors/two-lane-hall/layout.json \
        --out docs/results/traffic-seeds.csv >> docs/results/traffic-trained.txt
    python benchmarks/traffic.py --quick                a minute's worth

Shifts of four hours at an offered load of 0.7 of six vehicles, the same for each assumption: `off`, vehicles
pass through each other; `beside`, stations lie aside; `lane`, they do not, and idle vehicles drive to where
they started. Starts lie aside. Headway is 3 s. Differences are paired shift by shift, with standard errors.
`dmh` is the paper's floor without its cut distances, `grid-7x7` one of edges of 10 m.

`--trained`, seeds: policies of the preset "best", trained on twelve shifts without traffic and with it, are
judged with it on twenty others, at loads of 0.7 and 0.9, beside `nearest` and `general`: the objective
late + 0.05 * tardiness, its standard deviation over seeds, and the difference to the training without
traffic, with its standard error over shifts, which are paired, and seeds. `--out` keeps the seeds' means.
"""

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import larger_floors
import numpy as np
from script import add_rows, compare_seeds, make_parser

import acerl_np
from acerl_np.evaluation.metrics import compare_paired
from acerl_np.evaluation.trials import Trials
from acerl_np.problem.goal import SHIFT
from acerl_np.problem.layout import Layout, resize_fleet
from acerl_np.problem.shift import find_scale
from studies.general import train

HOW = ("off", "beside", "lane")
RULES = ("NVF", "EDD", "nearest", "fcfs-nearest", "edd-nearest", "opentcs", "assignment", "general")
VEHICLES, LOAD, HOURS, SIZES, TIMED = 6, 0.7, 4.0, range(3, 13), 30
DECISIONS = 100_000
"""Of a training here: a tenth of the preset's."""
Shifts = list[acerl_np.Instance]


def find_floor(name: str) -> Layout:
    """Return a floor with six vehicles that never charge."""
    layout = larger_floors.find_floor(name, VEHICLES)
    fleet = tuple(replace(vehicle, battery=None) for vehicle in layout.vehicles)
    layout = replace(layout, vehicles=fleet, battery=None, truncate_distances=False, scaling=None)
    return resize_fleet(replace(layout, parking=None), VEHICLES)


def draw_shifts(layout: Layout, n: int, seed: int, load: float = LOAD) -> Shifts:
    """Return shifts of a load."""
    scale = find_scale(layout, load, hours=HOURS)
    return larger_floors.draw_shifts(layout, n, seed, name="s{k}", hours=HOURS, scale=scale)


def move(shifts: Shifts, layout: Layout) -> Shifts:
    """Return shifts on another floor."""
    return [replace(shift, layout=layout) for shift in shifts]


def play(policy: str | acerl_np.Policy, shifts: Shifts, layout: Layout, trials: int = 1) -> Trials:
    """Play shifts on another floor."""
    how = {"trials": trials, "threads": 1, "objective": acerl_np.Goal(SHIFT)}
    return acerl_np.evaluate_policy(policy, move(shifts, layout), **how)


def find_fewest(shifts: Shifts, floor: Layout, how: str) -> str:
    """Return how many vehicles `nearest` needs for at most 2 % of late tasks."""
    for n in SIZES:
        if (
            play("nearest", shifts, resize_fleet(floor, n).with_traffic(how)).mean("late").mean()
            <= 0.02
        ):
            return str(n)
    return "none"


def time_tasks(shifts: Shifts, layout: Layout) -> float:
    """Return the processor time of a task by `nearest`, us; the least of five."""
    took = []
    for _ in range(5):
        start = time.process_time()
        play("nearest", shifts, layout, TIMED)
        took.append(time.process_time() - start)
    return 1e6 * min(took) / TIMED / sum(shift.n_tasks for shift in shifts)


def count_swaps(free: dict[str, np.ndarray], met: dict[str, np.ndarray]) -> str:
    """Return of how many pairs of rules, two errors apart without traffic, the order is another with it."""
    clear = swapped = 0
    for one, two in itertools.combinations(free, 2):
        mean, error = compare_paired(free[one], free[two])[:2]
        if abs(mean) > 2.0 * error:
            clear += 1
            here, own = compare_paired(met[one], met[two])[:2]
            swapped += here * mean < 0.0 and abs(here) > 2.0 * own
    return f"{swapped}/{clear}"


class Seed(NamedTuple):
    """The objective of trainings with a seed, without traffic and with it, where vehicles meet."""

    floor: str
    stations: str
    load: float
    seed: int
    free: float
    met: float


def judge_trained(floor: Layout, seeds: range, quick: bool, out: str | None) -> None:
    """Print what trainings with traffic gain on those without, where vehicles meet."""
    budget = 5_000 if quick else DECISIONS
    config = acerl_np.Config.preset("best", objective=SHIFT, decisions=budget)

    for load in (0.7, 0.9):
        records, unseen = (
            draw_shifts(floor, n, seed, load)
            for seed, n in ((1, 2 if quick else 12), (2, 3 if quick else 20))
        )
        free = [train(move(records, floor), config, seed) for seed in seeds]
        for stations in HOW[1:]:
            layout = floor.with_traffic(stations)
            policies = {"nearest": ["nearest"], "general": ["general"]}
            met = [train(move(records, layout), config, seed) for seed in seeds]
            policies |= {"free": free, "met": met}
            found = {
                name: np.array([play(policy, unseen, layout).mean("value") for policy in own])
                for name, own in policies.items()
            }
            row = [floor.name, stations, f"{load}"]
            for name, values in found.items():
                means = values.mean(axis=1)
                row.append(f"{means.mean():.2f}")
                if name in ("free", "met"):
                    row.append(f"{means.std(ddof=1):.2f}")
            for name in ("met", "general"):
                more, error = compare_seeds(found[name], found["free"])
                row += [f"{more:+.2f}", f"{error:.2f}"]
            print(*row, flush=True)
            free_means, met_means = (found[x].mean(axis=1) for x in ("free", "met"))
            for own in zip(seeds, free_means, met_means, strict=True) if out else ():
                add_rows(Path(out), [Seed(floor.name, stations, load, *own)])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--floors", nargs="+", default=["supply-loop"])
    parser.add_argument("--shifts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trained", metavar="A:B", help="seeds")
    parser.add_argument("--out", help="file of the seeds' means")
    arguments = parser.parse_args()
    if arguments.trained:
        print("floor stations load nearest general free sd met sd met-free se general-free se")
        for name in arguments.floors:
            first, last = map(int, arguments.trained.split(":"))
            judge_trained(find_floor(name), range(first, last), arguments.quick, arguments.out)
        return
    print(
        "floor stations late,% more se waiting,s more se swapped_late swapped_waiting fewest us_a_task"
    )
    for name in arguments.floors:
        floor = find_floor(name)
        shifts = draw_shifts(floor, 3 if arguments.quick else arguments.shifts, arguments.seed)
        found = {
            how: {rule: play(rule, shifts, floor.with_traffic(how)) for rule in RULES}
            for how in HOW
        }
        for how, own in found.items():
            row = [floor.name, how]
            for what, scale in (("late", 100.0), ("waiting", 1.0)):
                mean = scale * own["nearest"].mean(what)
                more, error = compare_paired(mean, scale * found["off"]["nearest"].mean(what))[:2]
                row += [f"{mean.mean():.2f}", f"{more:+.2f}", f"{error:.2f}"]
            for what in ("late", "waiting"):
                free, met = (
                    {rule: trials.mean(what) for rule, trials in found[x].items()}
                    for x in ("off", how)
                )
                row.append(count_swaps(free, met))
            row += [find_fewest(shifts, floor, how)]
            row += [f"{time_tasks(shifts, floor.with_traffic(how)):.2f}"]
            print(*row, flush=True)


if __name__ == "__main__":
    main()
