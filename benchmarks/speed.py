"""Speed as ratios within one run: the parts of a training run, what bounds them, and two threads.

python benchmarks/speed.py                # about two minutes; prints Markdown

Every round measures all parts one after the other, so that a machine that slows down slows all of them;
medians over the rounds are printed. A round whose calibration says that the second core was busy is
left out of the ratio of the threads.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numba
import numpy as np
from script import make_parser

import acerl_np
from acerl_np.evolution import Strategy, rank_utilities
from acerl_np.kernels.core.random import BLOCK, LANES, derive_key, fill_normals
from acerl_np.kernels.core.state import Outcome
from acerl_np.kernels.dispatching.deciders import (
    NetworkDecider,
    allocate_networks,
    make_network_decider,
)
from acerl_np.kernels.learning.update import Noise, perturb_member
from acerl_np.kernels.networks.network import (
    Features,
    forward,
    list_nonzero,
    make_network,
    sum_columns,
)
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list, play_members
from acerl_np.support.workers import Workers

SIZES = (219, 128, 128, 12)
POPULATION = 256
NOISE = Noise(0, 0, POPULATION, False)
GENERATIONS = 128
SPINS = 40_000
CALIBRATED = 1.8
"""Least gain of two independent loops over one; below it, the second core was not free."""


class Lists(NamedTuple):
    """Non-zero features of many observations: position, value, number."""

    index: np.ndarray
    value: np.ndarray
    count: np.ndarray


@numba.njit(nogil=True)
def spin(x: np.ndarray, n: int) -> None:
    """Vector arithmetic within the first-level cache: it shares nothing with another core."""
    for _ in range(n):
        for k in range(len(x)):
            y = x[k]
            for _ in range(4):
                y = y * (np.float32(1.5) - np.float32(0.5) * y * y)
            x[k] = y


@numba.njit(nogil=True)
def draw_blocks(key: np.ndarray, n: int, bits: np.ndarray, noise: np.ndarray) -> None:
    for block in range(n):
        fill_normals(key, block, bits, noise)


@numba.njit(nogil=True)
def perturb_members(
    theta: np.ndarray,
    n: int,
    key: np.ndarray,
    bits: np.ndarray,
    normals: np.ndarray,
    out: np.ndarray,
) -> None:
    for member in range(n):
        perturb_member(theta, 0.1, NOISE, member, key, bits, normals, out[member % len(out)])


@numba.njit(nogil=True)
def pass_forward(work: NetworkDecider, lists: Lists) -> None:
    """The forward pass of every decision, four networks in turn as in a tile."""
    for k in range(len(lists.count)):
        row = k % len(work.theta)
        features = Features(lists.index[k], lists.value[k])
        forward(
            work.network,
            work.theta[row],
            work.column_sums[row],
            features,
            lists.count[k],
            work.layers,
        )


def measure(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def calibrate(two: Workers) -> float:
    """Return how much two independent loops on two threads do in the time of one.

    The loops are of vector instructions, as the kernels are: on a machine whose second core is the other
    half of a shared one, loops that mostly wait for themselves would gain what no real work does.
    """
    arrays = [np.full(2048, 0.5, np.float32) for _ in range(2)]
    two.run(lambda array: spin(array, 10), arrays)
    alone = measure(lambda: spin(arrays[0], SPINS))
    return 2.0 * alone / measure(lambda: two.run(lambda array: spin(array, SPINS), arrays))


def measure_gains(
    workers: Workers,
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]],
    rounds: int,
) -> dict[str, list[float]]:
    """Return the gain of two threads over one in each calibrated round.

    A round alternates one and two threads and compares medians; it counts if the second core was free
    before and after.
    """
    gains: dict[str, list[float]] = {"two loops": [], **{name: [] for name in pairs}}
    for _ in range(rounds):
        before = calibrate(workers)
        found = {}
        for name, (one, two) in pairs.items():
            times = [(measure(one), measure(two)) for _ in range(7)]
            found[name] = statistics.median(t for t, _ in times) / statistics.median(
                t for _, t in times
            )
        after = calibrate(workers)
        if min(before, after) >= CALIBRATED:
            gains["two loops"].append((before + after) / 2.0)
            for name, gain in found.items():
                gains[name].append(gain)
    return gains


def collect_observations(suite: list[acerl_np.Instance]) -> np.ndarray:
    """Observations of every decision of one random episode per member."""
    sim = acerl_np.Simulator([suite[k % len(suite)] for k in range(POPULATION)])
    rng = np.random.default_rng(0)
    observations = []
    while not sim.done.all():
        running = ~sim.done
        mask = sim.action_mask
        observations.append(sim.observation[running])
        sim.step(np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=1))
    return np.concatenate(observations)


def list_features(observations: np.ndarray) -> Lists:
    """The non-zero features of each row, as the kernels keep them."""
    shape = (len(observations), SIZES[0] + 1)
    lists = Lists(np.zeros(shape, np.int32), np.zeros(shape, np.float32), np.zeros(shape[0], int))
    for k, observation in enumerate(observations):
        lists.count[k] = list_nonzero(observation, Features(lists.index[k], lists.value[k]))
    return lists


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    acerl_np.warm_up()
    suite = acerl_np.load_suite("dmh-train")
    theta = initial_parameters(SIZES, 0)
    problem = build_problem(suite)
    instances = np.arange(POPULATION) % len(suite)
    records = instances[:, np.newaxis]
    one, two = Workers(1), Workers(2)
    own = problem, make_network(SIZES), theta, 0.1, NOISE, records
    strategies = [Strategy(theta, population=POPULATION, workers=workers) for workers in (one, two)]
    trainers = [acerl_np.ACERL(suite, seed=0, threads=n) for n in (1, 2)]
    rng = np.random.default_rng(0)
    utilities = rng.normal(size=POPULATION)
    returns, costs = rng.normal(size=POPULATION), rng.uniform(20.0, 80.0, POPULATION)
    keys = rng.integers(0, 2**32, (POPULATION, 4), dtype=np.uint32)

    generator = np.random.Generator(np.random.SFC64(0))
    reference = np.empty(2**20, np.float32)
    key = np.empty(4, np.uint32)
    derive_key(0, 1, 0, 0, key)
    bits, noise = np.empty((4, LANES), np.uint32), np.empty((4, LANES), np.float32)
    observations = collect_observations(suite)
    lists = list_features(observations)
    network = make_network(SIZES)
    work = allocate_networks(network, 4)
    work.theta[:, : theta.size] = theta + 0.1 * rng.normal(size=(4, theta.size))
    for row in range(4):
        sum_columns(network, work.theta[row], work.column_sums[row])
    dense = np.empty((len(observations), SIZES[1]), np.float32)
    weights = theta[: SIZES[0] * SIZES[1]].reshape(SIZES[:2])
    far = np.ones(2**26, np.float32)
    n_blocks = 500

    def play_shared() -> Outcome:
        prepare = partial(make_network_decider, network, theta[np.newaxis], False)
        return play_list(problem, prepare, instances, keys, one)

    parts: dict[str, Callable[[], object]] = {
        "sfc64": lambda: generator.standard_normal(out=reference, dtype=np.float32),
        "normals": lambda: draw_blocks(key, n_blocks, bits, noise),
        "perturb": lambda: perturb_members(theta, POPULATION, key, bits, noise, work.theta),
        "forward": lambda: pass_forward(work, lists),
        "matmul": lambda: np.matmul(observations, weights, out=dense),
        "rules": lambda: acerl_np.evaluate_policy("MIX", suite, trials=100, threads=1),
        "cache": lambda: [work.theta.max() for _ in range(20)],
        "memory": far.max,
        "policy": play_shared,
        "rollout 1": lambda: play_members(*own, one),
        "update 1": lambda: strategies[0].estimate_gradient(utilities),
        "ranking": lambda: rank_utilities(returns, costs, instances),
        "generation 1": trainers[0].step,
        "rollout 2": lambda: play_members(*own, two),
        "update 2": lambda: strategies[1].estimate_gradient(utilities),
        "generation 2": trainers[1].step,
    }
    gained = ("rollout", "update", "generation")
    for function in parts.values():
        function()
    played = play_members(*own, one)
    decisions = int(played.decisions.sum())
    shared_decisions = int(play_shared().decisions.sum())
    rule_decisions = acerl_np.evaluate_policy("MIX", suite, trials=100).decisions
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, function in parts.items():
            seconds[name].append(measure(function))
    median = {name: statistics.median(values) for name, values in seconds.items()}

    draws = POPULATION * theta.size
    sfc64 = median["sfc64"] / reference.size
    print(f"{decisions} decisions and {draws / 1e6:.2f} million normals a generation\n")
    print("| part, one thread | a generation (ms) | unit | here | reference |")
    print("| --- | ---: | --- | ---: | --- |")
    numpy_draws = f"{1e9 * sfc64:.2f}, NumPy's SFC64, float32"
    first_layer = 1e9 * median["matmul"] / len(observations)
    matmul = f"{first_layer:.0f}, NumPy's matmul of the first layer alone"
    members = "rollout of a population, perturbing included"
    seen = len(observations)
    rows: tuple[tuple[str, str, float, float, str, str], ...] = (
        ("draws, twice", "normals", n_blocks * BLOCK, 2 * draws, "ns a normal", numpy_draws),
        ("perturbing, draws included", "perturb", draws, draws, "ns a parameter", ""),
        ("forward", "forward", seen, decisions, "ns a decision", matmul),
        ("events and rules", "rules", rule_decisions, decisions, "ns a decision", ""),
        ("rollout of one policy", "policy", shared_decisions, decisions, "decisions/s", ""),
        (members, "rollout 1", decisions, decisions, "decisions/s", ""),
        ("update", "update 1", draws, draws, "ns a parameter", ""),
        ("ranking", "ranking", POPULATION, POPULATION, "us a member", ""),
        ("whole generation", "generation 1", decisions, decisions, "decisions/s", ""),
    )
    for label, part, units, wanted, unit, other in rows:
        each = median[part] / units
        value = 1.0 / each if unit == "decisions/s" else each * {"ns": 1e9, "us": 1e6}[unit[:2]]
        digits = 2 if value < 100 else 0
        shown = f"{1e3 * each * wanted:.2f} | {unit} | {value:,.{digits}f}"
        print(f"| {label} | {shown} | {other} |")
    print(
        f"\nread bandwidth of NumPy's max: {20 * work.theta.nbytes / median['cache'] / 1e9:.0f} GB/s "
        f"from {work.theta.nbytes // 1000} kB, {far.nbytes / median['memory'] / 1e9:.0f} GB/s from "
        f"{far.nbytes // 2**20} MB"
    )

    ratios = [
        GENERATIONS * g / (GENERATIONS * draws * s / reference.size)
        for g, s in zip(seconds["generation 2"], seconds["sfc64"], strict=True)
    ]
    print(
        f"\ngenerations on two threads / SFC64's draws of as many normals on one: "
        f"median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f} "
        f"over {len(ratios)} rounds"
    )
    pairs = {name: (parts[f"{name} 1"], parts[f"{name} 2"]) for name in gained}
    gains = measure_gains(two, pairs, rounds)
    print(
        f"\n{len(gains['two loops'])} of {rounds} rounds calibrated, before and after: two "
        f"loops at least {CALIBRATED}"
    )
    if gains["two loops"]:
        both = statistics.median(gains["two loops"])
        for name, values in gains.items():
            middle = statistics.median(values)
            print(f"two threads over one, {name}: {middle:.2f} = {middle / both:.2f} of two loops")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\npeak memory of this process, {far.nbytes // 2**20} MB of it for the reference: {peak:.0f} MB"
    )
    for workers in (one, two):
        workers.close()


if __name__ == "__main__":
    main()
