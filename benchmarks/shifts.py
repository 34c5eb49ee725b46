"""Trainings for each objective beside the rules, on shifts that nobody has seen.

    python benchmarks/shifts.py                                   two floors, two loads, four objectives
    python benchmarks/shifts.py --floors supply-loop:4 --utilisations 0.9 --objectives late --seeds 0:10
    python benchmarks/shifts.py --floors plant.json:6 --scales 1.6 --roles roles.json
    python benchmarks/shifts.py --utilisations 0.9 --seeds 0:1 --lookahead 16
    python benchmarks/shifts.py --quick                           a minute's worth, for a check

A floor is a bundled floor, a JSON file or a grid of sites such as grid-25x10, and the number of its vehicles,
all alike. Twelve shifts train, twenty others judge. Figures are means over these and the seeds; of the
objective of trainings the seeds' standard deviation, then their means. The difference to `nearest` has its
standard error over shifts, which are paired, and seeds.
"""

import json
import time
from pathlib import Path

import numpy as np
from larger_floors import draw_shifts, find_floor
from script import compare_seeds, make_parser

import acerl_np
from acerl_np.evaluation.trials import Trials, evaluate_policy
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Vehicle
from acerl_np.problem.shift import find_scale
from studies.general import train

RULES = ("NVF", "EDD", "nearest", "fcfs-nearest", "edd-nearest", "opentcs", "assignment", "general")
TRAINING, UNSEEN = 12, 20
FIGURES = ("makespan", "tardiness", "late", "waiting", "empty")


def equip(floor: str, n: int) -> Layout:
    """Return a floor with n vehicles like its first one, on the starts of those that it has."""
    layout = find_floor(floor, n)
    own = layout.vehicles
    like = {"speed": own[0].speed, "capacity": own[0].capacity}
    starts = [own[k % len(own)].start for k in range(n)]
    return layout.with_fleet(
        Vehicle(id=f"V{k + 1}", start=start, **like) for k, start in enumerate(starts)
    )


def list_means(runs: list[Trials]) -> np.ndarray:
    """Return the means of every run and shift, (n_runs, n_figures + 1, n_shifts); the objective is last."""
    names = (*FIGURES, "value")
    return np.array([[run.mean(name) for name in names] for run in runs])


def show(label: str, means: np.ndarray, base: np.ndarray) -> None:
    """Print a row."""
    whole = means.mean(axis=2) * [1, 1, 100, 1, 100, 1]
    cells = [f"{x:9.1f}" if k < 2 else f"{x:7.2f}" for k, x in enumerate(whole.mean(axis=0))]
    spread = f" ± {whole[:, -1].std(ddof=1):.2f}" if len(whole) > 1 else ""
    more, error = compare_seeds(means[:, -1], base[:, -1])
    told = f"{more:+.2f} (se {error:.2f})"
    seeds = "".join(f" {x:.2f}" for x in whole[:, -1]) if len(whole) > 1 else ""
    print(f"{label:34} {' '.join(cells)}{spread}   {told}{seeds}", flush=True)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--floors", nargs="+", default=["supply-loop:4", "cross-aisles:4"])
    parser.add_argument("--utilisations", nargs="+", type=float, default=[0.45, 0.9])
    parser.add_argument("--scales", nargs="+", type=float, help="instead of utilisations")
    parser.add_argument("--roles", help="a JSON file of who does what, as generate_shift takes it")
    objectives = [SHIFT, "tardiness", "waiting", "makespan"]
    parser.add_argument("--objectives", nargs="+", default=objectives)
    parser.add_argument("--seeds", default="0:3")
    parser.add_argument("--decisions", type=int, help="by default those of the preset best")
    parser.add_argument(
        "--lookahead", type=int, metavar="FUTURES", help="rows that look ahead, too"
    )
    options = parser.parse_args()
    n_training, n_unseen, hours = TRAINING, UNSEEN, 8.0
    if options.quick:
        options.floors, options.utilisations, options.seeds = ["supply-loop:2"], [0.9], "0:1"
        options.decisions, options.objectives = 20_000, [SHIFT]
        n_training, n_unseen, hours = 2, 2, 1.0
    first, last = map(int, options.seeds.split(":"))
    roles = json.loads(Path(options.roles).read_text("utf-8")) if options.roles else None
    budget = {} if options.decisions is None else {"decisions": options.decisions}
    for text in options.floors:
        floor, _, n = text.rpartition(":")
        layout = equip(floor, int(n))
        for load in options.scales or options.utilisations:
            scale = load if options.scales else find_scale(layout, load, hours=hours, roles=roles)
            plant = {"hours": hours, "scale": scale, "roles": roles, "name": "shift-{seed}-{k}"}
            records = draw_shifts(layout, n_training, 1, **plant)
            unseen = draw_shifts(layout, n_unseen, 2, **plant)
            tasks = np.mean([record.n_tasks for record in unseen])
            busy = evaluate_policy("nearest", unseen, trials=1).mean("utilisation").mean()
            print(f"\n{text}, scale {scale:g}: {tasks:.0f} tasks a shift, vehicles busy {busy:.2f}")
            for objective in options.objectives:
                goal = Goal(objective) if objective != PAPER.objective else PAPER
                print(
                    f"{objective + ':':34} {' '.join(f'{x[:9]:>8}' for x in FIGURES)}   objective"
                )
                few = {"trials": 1, "objective": goal}
                played = {
                    rule: list_means([evaluate_policy(rule, unseen, **few)]) for rule in RULES
                }
                for rule, means in played.items():
                    show(rule, means, played["nearest"])
                config = acerl_np.Config.preset("best", objective=objective, **budget)
                runs, started = [], time.perf_counter()
                for seed in range(first, last):
                    policy = train(records, config, seed)
                    runs.append(evaluate_policy(policy, unseen, **few))
                each = (time.perf_counter() - started) / len(runs)
                show(f"best, {each:.0f} s a training", list_means(runs), played["nearest"])
                bases = {"nearest": ("nearest", played["nearest"])}
                bases["best"] = (policy, list_means(runs[-1:]))
                for name, (base, means) in bases.items() if options.lookahead else ():
                    how = {"history": records, "futures": options.lookahead}
                    ahead = acerl_np.Lookahead(base, objective=goal, **how)
                    started = time.process_time()
                    found = evaluate_policy(ahead, unseen, **few)
                    each = 1e3 * (time.process_time() - started) / found.decisions
                    show(f"{name} ahead, {each:.1f} ms, to {name}", list_means([found]), means)


if __name__ == "__main__":
    main()
