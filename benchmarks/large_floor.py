"""Index policies on a large floor: training time, unseen records, and pair scores per second.

    python benchmarks/large_floor.py                 # 500 sites, 50 vehicles, 2,000 tasks
    python benchmarks/large_floor.py --sites 6 5 --vehicles 4 --tasks 60 --decisions 20000

The floor is a grid of equal edges, its records are days of one process: tasks between random sites, at
random times. The policy is trained on eight of them and judged on eight others, beside the rules; the best
rule is chosen on the training records.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import acerl_np
from acerl_np.evaluation.margin import RULES_TO_BEAT
from acerl_np.kernels.deciders import make_index_decider
from acerl_np.kernels.index import score_pairs
from acerl_np.kernels.random import GENERATION, derive_key, draw_uniform
from acerl_np.kernels.state import EPISODE_POOL_SIZE, allocate_state
from acerl_np.problem.generate import generate_record
from acerl_np.problem.layout import Edge, Layout, Site, Vehicle
from acerl_np.problem.servable import measure_load
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.compiled import kernel


def make_floor(width: int, depth: int, vehicles: int) -> Layout:
    """Return a grid of sites 10 m apart, and vehicles that start at random sites."""
    sites = [Site(f"s{x}-{y}", 10.0 * x, 10.0 * y) for x in range(width) for y in range(depth)]
    edges = [
        Edge(f"s{x}-{y}", f"s{x + dx}-{y + dy}", 10.0)
        for x in range(width)
        for y in range(depth)
        for dx, dy in ((1, 0), (0, 1))
        if x + dx < width and y + dy < depth
    ]
    key = np.empty(4, np.uint32)
    derive_key(0, GENERATION, -1, 0, key)
    starts = [sites[int(draw_uniform(key, k, 0) * len(sites))].id for k in range(vehicles)]
    fleet = tuple(Vehicle(f"v{k}", start) for k, start in enumerate(starts))
    return Layout("grid", tuple(sites), tuple(edges), fleet, task_slots=64)


@kernel
def score_often(problem, state, decider, times):
    """Score all pairs of the situation in row 0 so often; return their number."""
    n = 0
    for _ in range(times):
        score_pairs(problem, state, 0, decider.indices, np.int64(0), decider.pairs)
        n += decider.pairs.n[0]
    return n


def measure_pairs(policy: acerl_np.IndexPolicy, record: acerl_np.Instance, waiting: int) -> str:
    """Return how many pair scores a core computes per second where so many tasks wait."""
    rows = record.rows()[:waiting]
    for row in rows:
        row["arrival_time"] = 0.0
    sim = Simulator(acerl_np.Instance.from_rows("crowd", record.layout, rows))
    problem = build_problem(sim.pool)
    decider = make_index_decider(policy.index, problem, True)
    state = allocate_state(problem, 1)
    for name in state._fields:
        getattr(state, name)[:] = getattr(sim.state, name)
    score_often(problem, state, decider, 1)
    started = time.perf_counter()
    n = score_often(problem, state, decider, 20)
    seconds = time.perf_counter() - started
    size = int(state.episode[0, EPISODE_POOL_SIZE])
    return f"{size} waiting: {n / seconds / 1e6:.1f} million pairs a second, {seconds / 20 * 1e6:.0f} us"


def main() -> None:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sites", type=int, nargs=2, default=(25, 20), metavar=("WIDTH", "DEPTH"))
    parser.add_argument("--vehicles", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=None, help="tasks per hour")
    parser.add_argument("--decisions", type=int, default=15_000_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument(
        "--quick", action="store_true", help="a round of seconds, to see that it runs"
    )
    options = parser.parse_args()
    if options.quick:
        options.sites, options.vehicles, options.tasks, options.decisions = (6, 5), 4, 60, 20_000
    layout = make_floor(*options.sites, options.vehicles)
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
    rule = judge(best, unseen)
    print(
        f"{best:12s} {rule[0].mean():9.1f} s, tardiness {rule[1].mean():7.1f} s, {rule[2]:4.0%} within"
    )
    for seed in range(options.seeds):
        config = acerl_np.Config.preset(
            "best", decisions=options.decisions, hidden=(), spread="full"
        )
        started = time.perf_counter()
        trainer = acerl_np.ACERL(training, config, seed=seed, threads=options.threads)
        trainer.run()
        seconds = time.perf_counter() - started
        own = judge(trainer.policy, unseen)
        gain = own[0] / rule[0] - 1.0
        print(
            f"policy {seed:<5d} {own[0].mean():9.1f} s, tardiness {own[1].mean():7.1f} s, "
            f"{own[2]:4.0%} within, "
            f"{gain.mean():+.2%} +- {gain.std(ddof=1) / len(gain) ** 0.5:.2%} of {best}; "
            f"{trainer.generation} generations, {seconds:.0f} s"
        )
    for waiting in (10, 50, 200):
        print(measure_pairs(trainer.policy, unseen[0], min(waiting, options.tasks)))


if __name__ == "__main__":
    main()
