"""Evaluations that `Evolution` needs on smooth functions, beside pycma's.

Sphere, ellipsoid (condition 1e6) and Rosenbrock's function, to be minimised without constraints, from
(3, ..., 3) with sigma 1, until a member is below 1e-9; populations are pycma's default, 4 + 3 log n. The
full covariance (`adapt="matrix"`) is set beside pycma's default, the diagonal (`adapt="sigma"`) beside its
option CMA_diagonal, on the functions that are separable. pycma (`pip install -e '.[cma]'`) is left out if it
is missing.

Rosenbrock's function has a second, local minimum from four parameters on, where a few searches of either
end: they count as needing more than all others.

    python examples/evolution_against_cma.py [--quick] [--seeds N]
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import warnings
from collections.abc import Callable

import numpy as np

from acerl_np.evolution import Adapt, Evolution

TARGET = 1e-9
MOST = 1_500
"""Evaluations per parameter after which a search counts as failed."""


def sphere(x: np.ndarray) -> np.ndarray:
    """Return the squared distance from zero."""
    return np.asarray(np.square(x).sum(axis=1))


def ellipsoid(x: np.ndarray) -> np.ndarray:
    """Return the same with curvatures from 1 to 1e6 along the axes."""
    return np.asarray((1e6 ** np.linspace(0, 1, x.shape[1]) * np.square(x)).sum(axis=1))


def rosenbrock(x: np.ndarray) -> np.ndarray:
    """Return the height in a curved valley."""
    return np.asarray(
        (100 * np.square(x[:, 1:] - np.square(x[:, :-1])) + np.square(1 - x[:, :-1])).sum(axis=1)
    )


Function = Callable[[np.ndarray], np.ndarray]
FUNCTIONS: dict[str, Function] = {
    "sphere": sphere,
    "ellipsoid": ellipsoid,
    "Rosenbrock": rosenbrock,
}
CASES: list[tuple[Adapt, str, int]] = [
    *(("matrix", name, n) for name in FUNCTIONS for n in (5, 10, 20)),
    *(("sigma", name, n) for name in ("sphere", "ellipsoid") for n in (20, 100)),
]


def count(
    n: int, ask: Callable[[], np.ndarray], tell: Callable[[np.ndarray], object], name: str
) -> float:
    """Return the number of evaluations until a member is below the target, infinite if never."""
    evaluations = 0
    while evaluations < MOST * n:
        values = FUNCTIONS[name](ask())
        reached = np.flatnonzero(values < TARGET)
        if len(reached):
            return float(evaluations + reached[0] + 1)
        evaluations += len(values)
        tell(values)
    return math.inf


def count_ours(name: str, n: int, adapt: Adapt, seed: int) -> float:
    """Return the evaluations of one search of `Evolution`."""
    evolution = Evolution(
        np.full(n, 3.0),
        sigma=1.0,
        population=4 + int(3 * math.log(n)),
        adapt=adapt,
        ranking="r",
        seed=seed,
    )
    return count(
        n,
        lambda: evolution.ask()[0],
        lambda values: evolution.tell(-values, np.zeros(len(values))),
        name,
    )


def count_theirs(name: str, n: int, adapt: Adapt, seed: int) -> float:
    """Return the evaluations of one search of pycma."""
    import cma

    options = {
        "seed": seed + 1,  # 0 stands for the clock
        "CMA_diagonal": adapt == "sigma",
        "verbose": -9,
    }
    search = cma.CMAEvolutionStrategy(np.full(n, 3.0), 1.0, options)
    asked: list[np.ndarray] = []

    def ask() -> np.ndarray:
        asked[:] = search.ask()
        return np.array(asked)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return count(n, ask, lambda values: search.tell(asked, values.tolist()), name)


def describe(counts: list[float]) -> str:
    """Least, median and largest, and how many reached the target."""
    numbers = (min(counts), float(np.median(counts)), max(counts))
    cells = "".join(f"{'-' if math.isinf(x) else f'{x:,.0f}':>9}" for x in numbers)
    return f"{cells}{sum(map(math.isfinite, counts)):>5}/{len(counts)}"


def main() -> None:
    """Run every case with every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds, 5 parameters")
    parser.add_argument("--seeds", type=int, default=21)
    options = parser.parse_args()
    seeds = range(2 if options.quick else options.seeds)
    cma = importlib.util.find_spec("cma") is not None
    print(f"evaluations until below {TARGET:g}, {len(seeds)} seeds" + ("" if cma else "; no pycma"))
    columns = f"{'least':>9}{'median':>9}{'most':>9}{'reached':>8}"
    print(f"{'':26}{columns}" + (f"{columns}   ratio" if cma else ""))
    for adapt, name, n in CASES:
        if options.quick and n > 5:
            continue
        ours = [count_ours(name, n, adapt, seed) for seed in seeds]
        line = f"{adapt:8}{name:12}{n:4}  {describe(ours)}"
        if cma:
            theirs = [count_theirs(name, n, adapt, seed) for seed in seeds]
            line += f"{describe(theirs)}{np.median(ours) / np.median(theirs):8.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
