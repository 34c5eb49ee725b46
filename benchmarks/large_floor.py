"""Index policies on a large floor: training time, unseen records, and time per decision.

    python benchmarks/large_floor.py                 # 500 sites, 50 vehicles, 2,000 tasks
    python benchmarks/large_floor.py --sites 6 5 --vehicles 4 --tasks 60 --decisions 20000

The floor is a grid of equal edges, its records are days of one process: tasks between random sites, at
random times. The policy is trained on eight of them and judged on eight others, beside the best rule on the
training records and `nearest`; differences are paired, with their standard errors. A table of the time that a
decision takes follows, by vehicles and waiting tasks.
"""

from __future__ import annotations

import time

import numpy as np
from larger_floors import make_grid
from script import make_parser

import acerl_np
from acerl_np.evaluation.margin import RULES_TO_BEAT
from acerl_np.evaluation.metrics import standard_error
from acerl_np.kernels.dispatching.deciders import decide, make_index_decider
from acerl_np.problem.generate import generate_record
from acerl_np.problem.servable import measure_load
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.compiled import kernel


@kernel
def decide_often(problem, state, decider, key, times):
    """Decide the situation in row 0 so often; return the last choice."""
    chosen = np.int64(-1)
    for _ in range(times):
        chosen, _, _ = decide(problem, state, np.int64(0), decider, np.int64(0), key, np.int64(0))
    return chosen


def measure_decisions(policy: acerl_np.IndexPolicy, vehicles: int, waiting: int) -> list[float]:
    """Return us of a core for a decision with one idle vehicle, and with all idle, on 500 sites."""
    layout = make_grid(25, 20, vehicles)
    n = waiting + vehicles - 1
    rows = generate_record(layout, n, rate=60.0, slack=3.0, seed=1).rows()
    rows = [{**row, "arrival_time": 0.0} for row in rows]
    found = []
    for one_is_idle in (True, False):
        own = rows if one_is_idle else rows[:waiting]
        sim = Simulator(acerl_np.Instance.from_rows("crowd", layout, own), slots="pool")
        for v in range(vehicles - 1 if one_is_idle else 0):
            sim.assign([v], [v])
        decider = make_index_decider(policy.index, sim.problem, True)
        key, times = np.zeros(4, np.uint32), 1
        decide_often(sim.problem, sim.state, decider, key, 1)
        while True:
            started = time.perf_counter()
            decide_often(sim.problem, sim.state, decider, key, times)
            seconds = time.perf_counter() - started
            if seconds > 0.05:
                break
            times *= 4
        found.append(1e6 * seconds / times)
    return found


def show_decisions(policy: acerl_np.IndexPolicy, quick: bool = False) -> None:
    """Print a table: us of a core for a decision, by vehicles and waiting tasks."""
    print(
        "us a decision with one idle vehicle / with all idle; vehicles down, waiting tasks across"
    )
    sizes = (5, 20) if quick else (5, 20, 50, 200, 500)
    print(" " * 5 + "".join(f"{n:>16,}" for n in sizes))
    for vehicles in (3,) if quick else (3, 10, 50, 200):
        cells = (measure_decisions(policy, vehicles, n) for n in sizes)
        print(
            f"{vehicles:5,}" + "".join(f"{one:8.1f} /{all:6.0f}" for one, all in cells), flush=True
        )


def show(label: str, found: tuple[np.ndarray, np.ndarray, float]) -> str:
    """Return the line of a policy's means."""
    makespan, tardiness, within = found
    means = f"{makespan.mean():9.1f} s, tardiness {tardiness.mean():7.1f} s, {within:4.0%} within"
    return f"{label:36s} {means}"


def main() -> None:
    """Train, judge and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--sites", type=int, nargs=2, default=(25, 20), metavar=("WIDTH", "DEPTH"))
    parser.add_argument("--vehicles", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=None, help="tasks per hour")
    parser.add_argument("--decisions", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    if options.quick:
        options.sites, options.vehicles, options.tasks, options.decisions = (6, 5), 4, 60, 20_000
    layout = make_grid(*options.sites, options.vehicles)
    # As much as the fleet can take where a vehicle goes a good tenth of the mean way to a pickup.
    trip = layout.routes.mean_distance * 1.08
    rate = options.rate or round(0.9 * 3600 * options.vehicles / trip)
    records = [
        generate_record(
            layout, options.tasks, rate=rate, slack=3.0, seed=1, index=k, name=f"day{k}"
        )
        for k in range(16)
    ]
    training, unseen = records[:8], records[8:]
    print(f"offered load {measure_load(training[0]).offered:.2f}, {rate} tasks an hour")

    def judge(policy, on):
        trials = acerl_np.evaluate_policy(policy, on, trials=1, threads=options.threads)
        return trials.makespan.mean(axis=1), trials.tardiness.mean(axis=1), trials.satisfied

    known = {rule: judge(rule, training) for rule in RULES_TO_BEAT}
    within = {rule: found for rule, found in known.items() if found[1].mean() < 50.0}
    best = (
        min(within, key=lambda rule: within[rule][0].mean())
        if within
        else min(known, key=lambda rule: known[rule][1].mean())
    )
    rivals = {rule: judge(rule, unseen) for rule in dict.fromkeys((best, "NVF", "nearest"))}
    for rule, found in rivals.items():
        print(show(rule, found))
    for seed in range(options.seeds):
        config = acerl_np.Config.preset("best", decisions=options.decisions)
        started = time.perf_counter()
        trainer = acerl_np.ACERL(training, config, seed=seed, threads=options.threads)
        trainer.run()
        seconds = time.perf_counter() - started
        own = judge(trainer.policy, unseen)
        label = f"policy {seed}, {trainer.generation} generations, {seconds:.0f} s"
        print(show(label, own))
        for rule, found in rivals.items():
            for what, its, ours in zip(("makespan", "tardiness"), found, own, strict=False):
                less = ours - its
                told = f"{less.mean():+.1f} (se {standard_error(less):.1f}) s"
                print(f"    {what} less that of {rule}: {told}")
    show_decisions(trainer.policy, options.quick)


if __name__ == "__main__":
    main()
