"""How time and memory grow with tasks, vehicles, sites and population.

python benchmarks/scaling.py --plot docs/performance.png --force  # prints Markdown; the plot needs matplotlib
python benchmarks/scaling.py --decisions                          # a decision of 100 to 4,000 vehicles

One size changes at a time from the base (30 tasks, 3 vehicles, 14 sites, 256 members). Every case trains in
a process of its own, so that its peak memory is its own, and reports the median of its generations.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from script import make_parser

import acerl_np
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Edge, Site, Vehicle

BASE = {"tasks": 30, "vehicles": 3, "sites": 14, "population": 256}
LARGEST = {"tasks": 3000, "vehicles": 100, "sites": 1000, "population": 256}
GROWTH = {
    "tasks": [30, 100, 300, 1000, 3000],
    "vehicles": [3, 10, 30, 100],
    "sites": [14, 50, 200, 1000],
    "population": [256, 1024, 4096, 16384],
}


def make_instance(tasks: int, vehicles: int, sites: int) -> acerl_np.Instance:
    """Tasks between random sites of a square grid, as many at a time as the fleet can just serve."""
    rng = np.random.default_rng(0)
    width = math.ceil(math.sqrt(sites))
    names = [f"s{k}" for k in range(sites)]
    places = tuple(
        Site(name, 20.0 * (k % width), 20.0 * (k // width)) for k, name in enumerate(names)
    )
    edges = [Edge(names[k], names[k + 1], 20.0) for k in range(sites - 1) if (k + 1) % width]
    edges += [Edge(names[k], names[k + width], 20.0) for k in range(sites - width)]
    fleet = tuple(Vehicle(f"v{k}", names[k % sites]) for k in range(vehicles))
    layout = Layout(f"grid of {sites}", places, tuple(edges), fleet, task_slots=30)
    trip = 2.0 * 20.0 * width * 2.0 / 3.0
    arrival = np.sort(rng.uniform(0.0, 1.2 * trip * tasks / vehicles, tasks))
    rows = []
    for k in range(tasks):
        pickup, delivery = rng.choice(sites, 2, replace=False)
        rows.append(
            {
                "task": f"t{k}",
                "pickup": names[pickup],
                "delivery": names[delivery],
                "arrival_time": float(round(arrival[k])),
                "expiry_time": float(round(4.0 * trip)),
            }
        )
    return acerl_np.Instance.from_rows(f"{tasks} tasks", layout, rows)


def run_case(case: dict[str, int]) -> dict[str, Any]:
    instance = make_instance(case["tasks"], case["vehicles"], case["sites"])
    config = acerl_np.Config(population=case["population"])
    trainer = acerl_np.ACERL(instance, config, seed=0)
    seconds, decisions = [], []
    started = time.perf_counter()
    while len(seconds) < 2 or (len(seconds) < 8 and time.perf_counter() - started < 10.0):
        before = trainer.history[-1].decisions if trainer.history else 0
        begun = time.perf_counter()
        trainer.step()
        seconds.append(time.perf_counter() - begun)
        decisions.append(trainer.history[-1].decisions - before)
    return {
        **case,
        "parameters": int(trainer.strategy.theta.size),
        "decisions": statistics.median(decisions),
        "seconds": statistics.median(seconds),
        "us": 1e6 * statistics.median(s / d for s, d in zip(seconds, decisions, strict=True)),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def time_decisions(n: int) -> None:
    """Print how long a dispatcher takes where n vehicles are idle and n tasks wait, beside SciPy."""
    layout, rng = make_instance(1, n, 1000).layout, np.random.default_rng(0)
    for policy in ("nearest", "assignment", "general"):
        dispatcher = acerl_np.Dispatcher(layout, policy, budget=None)
        for k in range(n):
            a, b = rng.choice(1000, 2, replace=False)
            dispatcher.feed(acerl_np.TaskArrived(0.0, f"t{k}", f"s{a}", f"s{b}", 3600.0))
        choose, late = dispatcher._decider.decide, [f"v{v}" for v in range(8, n)]
        one = statistics.median(_time(choose, dispatcher._floor, 0, 0.0) for _ in range(5))
        few = _time(partial(dispatcher.decide, without=late), 0.0)
        every = _time(dispatcher.decide, 0.0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {n:,} | {policy} | {few:.1f} | {one:.1f} | {every:.0f} | {peak:.0f} |", flush=True
        )
    way = rng.uniform(0.0, 900.0, (n, n))
    print(f"| {n:,} | SciPy, all at once | | | {_time(linear_sum_assignment, way):.0f} | |")


def _time(call: Callable[..., object], *given: object) -> float:
    """Return ms of a core, as others may use the machine, too."""
    began = time.process_time()
    call(*given)
    return 1e3 * (time.process_time() - began)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    try:
        import matplotlib
    except ModuleNotFoundError:
        sys.exit("the plot needs matplotlib: pip install 'acerl_np[plot]'")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(GROWTH), figsize=(11, 4.6), sharex="col", sharey="row")
    for column, name in enumerate(GROWTH):
        rows = [row for row in results if row["grown"] == name]
        x = [row[name] for row in rows]
        for axis, key in zip(axes[:, column], ("us", "megabytes"), strict=True):
            axis.loglog(x, [row[key] for row in rows], "o-", color="#1f5f8b")
            axis.grid(True, which="major", alpha=0.3)
        axes[1, column].axhline(300.0, color="#b03a2e", linestyle="--", linewidth=1)
        axes[1, column].set_xlabel(name)
    axes[0, 0].set_ylabel("microseconds a decision")
    axes[1, 0].set_ylabel("peak memory (MB)")
    figure.suptitle("A generation of training, all else as in DMH; dashed: 300 MB")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--plot", type=Path, help="also draw the table into this file")
    parser.add_argument("--force", action="store_true", help="replace that file")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--decisions", action="store_true", help="time a dispatcher's decisions")
    options = parser.parse_args()
    if options.decisions:
        print("| vehicles and tasks | policy | 8 idle, ms | all idle: one decision, ms | all of them, ms "
              "| peak MB |\n| ---: | --- | ---: | ---: | ---: | ---: |")  # fmt: skip
        for n in (20,) if options.quick else (100, 400, 1000, 4000):
            subprocess.run(
                [sys.executable, __file__, "--case", json.dumps({"dispatched": n})], check=True
            )
        return
    if options.case:
        case = json.loads(options.case)
        if "dispatched" in case:
            time_decisions(case["dispatched"])
        else:
            print(json.dumps(run_case(case)))
        return
    if options.plot:
        declare_outputs(argparse.Namespace(force=options.force), [options.plot], option="--plot")
    acerl_np.warm_up()
    results = []
    print("| grown | tasks | vehicles | sites | population | parameters | decisions | s a generation "
          "| us a decision | peak MB |")  # fmt: skip
    print("| --- |" + " ---: |" * 9)
    cases = [(name, {**BASE, name: value}) for name, values in GROWTH.items() for value in values]
    cases = cases[:1] if options.quick else [*cases, ("all but members", LARGEST)]
    for name, case in cases:
        done = subprocess.run(
            [sys.executable, __file__, "--case", json.dumps(case)],
            check=True,
            capture_output=True,
            text=True,
        )
        row = {"grown": name, **json.loads(done.stdout)}
        results.append(row)
        print(
            f"| {name} | {row['tasks']:,} | {row['vehicles']} | {row['sites']:,} | "
            f"{row['population']:,} | {row['parameters']:,} | {row['decisions']:,.0f} | "
            f"{row['seconds']:.3f} | {row['us']:.2f} | {row['megabytes']:.0f} |",
            flush=True,
        )
    if options.plot:
        draw(results, options.plot)


if __name__ == "__main__":
    main()
