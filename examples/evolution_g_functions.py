"""Four G-functions of the constrained-optimisation literature, against their published optima.

g06, g08, g11 and g24 of the CEC 2006 special session (Liang et al., "Problem definitions and evaluation
criteria for the CEC 2006 special session on constrained real-parameter optimization", 2006), all of two
parameters and to be minimised; g11's equality has the session's tolerance of 1e-4. Every seed starts at
its own random point of the box. `Evolution` runs with a sigma that decays, with a sigma adapted for each
parameter and with an adapted matrix, all else being the same for all functions. Beside it stands SRES, the
evolution strategy that stochastic ranking was published with (Runarsson and Yao 2000), in pymoo's
implementation with about the same number of evaluations (`pip install -e '.[pymoo]'`; left out if it is
missing).

    python examples/evolution_g_functions.py [--quick] [--seeds N] [--evaluations N]
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acerl_np.evolution import Adapt, Evolution, sum_violations

POPULATION = 100
NOISE_DECAY = 0.96
"""Per generation, for 200 generations; other lengths get the decay that ends at the same sigma."""
ADAPTS: tuple[Adapt, ...] = ("none", "sigma", "matrix")


def g06(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two circles leave a sliver of 0.007 % of the box; the optimum is its tip."""
    a, b = x.T
    return (a - 10) ** 3 + (b - 20) ** 3, np.stack(
        [100 - (a - 5) ** 2 - (b - 5) ** 2, (a - 6) ** 2 + (b - 5) ** 2 - 82.81], axis=1
    )


def g08(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Many peaks, the best feasible one inside the feasible region (0.9 % of the box)."""
    a, b = x.T
    # The box has the corner where the denominator is zero; such a member counts as failed.
    with np.errstate(divide="ignore", invalid="ignore"):
        f = -(np.sin(2 * np.pi * a) ** 3) * np.sin(2 * np.pi * b) / (a**3 * (a + b))
    return f, np.stack([a**2 - b + 1, 1 - a + (b - 4) ** 2], axis=1)


def g11(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One equality, a curved line through the box."""
    a, b = x.T
    return a**2 + (b - 1) ** 2, np.abs(b - a**2)[:, np.newaxis] - 1e-4


def g24(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two separate feasible regions, the optimum in a corner of one."""
    a, b = x.T
    g1 = -2 * a**4 + 8 * a**3 - 8 * a**2 + b - 2
    g2 = -4 * a**4 + 32 * a**3 - 88 * a**2 + 96 * a + b - 36
    return -a - b, np.stack([g1, g2], axis=1)


@dataclass(frozen=True)
class Problem:
    """A function (objectives, constraints g <= 0) = evaluate(members), its box, its published optimum."""

    evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    lower: tuple[float, float]
    upper: tuple[float, float]
    optimum: float
    solution: tuple[float, float]


PROBLEMS = {
    "g06": Problem(
        g06, (13.0, 0.0), (100.0, 100.0), -6961.81387558015, (14.095, 0.842960789215478)
    ),
    "g08": Problem(
        g08, (0.0, 0.0), (10.0, 10.0), -0.0958250414180359, (1.22797135260753, 4.24537336612275)
    ),
    "g11": Problem(
        g11, (-1.0, -1.0), (1.0, 1.0), 0.7499, (-0.707036070037170616, 0.500000004333606807)
    ),
    "g24": Problem(
        g24, (0.0, 0.0), (3.0, 4.0), -5.50801327159536, (2.32952019747762, 3.17849307411774)
    ),
}


def search(problem: Problem, seed: int, evaluations: int, adapt: Adapt = "none") -> Evolution:
    """Return the finished search of one seed."""
    lower, upper = np.array(problem.lower), np.array(problem.upper)
    generations = evaluations // POPULATION
    evolution = Evolution(
        np.random.default_rng(seed).uniform(lower, upper),
        sigma=0.2 * (upper - lower),
        population=POPULATION,
        adapt=adapt,
        noise_decay=NOISE_DECAY ** (200 / generations) if adapt == "none" else None,
        bounds=(lower, upper),
        seed=seed,
    )
    for _ in range(generations):
        members, _ = evolution.ask()
        objectives, constraints = problem.evaluate(members)
        evolution.tell(-objectives, sum_violations(constraints))
        if evolution.stop():
            break
    return evolution


def search_with_sres(problem: Problem, seed: int, evaluations: int) -> float:
    """Return the best feasible objective of pymoo's SRES, nan without one."""
    from pymoo.algorithms.soo.nonconvex.sres import SRES
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.optimize import minimize

    class Given(PymooProblem):  # type: ignore[misc]
        def _evaluate(self, x: np.ndarray, out: dict[str, np.ndarray], *args: object) -> None:
            out["F"], out["G"] = problem.evaluate(x)

    n_constraints = problem.evaluate(np.ones((1, 2)))[1].shape[1]
    given = Given(
        n_var=2,
        n_obj=1,
        n_ieq_constr=n_constraints,
        xl=np.array(problem.lower),
        xu=np.array(problem.upper),
    )
    result = minimize(given, SRES(), ("n_eval", evaluations), seed=seed, verbose=False)
    return float("nan") if result.F is None else float(result.F[0])


def describe(values: np.ndarray) -> str:
    """Best, mean, standard deviation and worst over the seeds that found a feasible member."""
    found = values[np.isfinite(values)]
    if not len(found):
        return "no seed found a feasible member"
    numbers = (found.min(), np.median(found), found.mean(), found.std(), found.max())
    return "".join(f"{number:15.8f}" for number in numbers) + f"{len(found):7d}/{len(values)}"


def main() -> None:
    """Run every problem with every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds, 2,000 evaluations")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=20_000)
    options = parser.parse_args()
    seeds = range(2 if options.quick else options.seeds)
    evaluations = 2_000 if options.quick else options.evaluations
    sres = importlib.util.find_spec("pymoo") is not None
    print(f"{evaluations} evaluations, {len(seeds)} seeds" + ("" if sres else "; SRES: no pymoo"))
    columns = ("best", "median", "mean", "std", "worst")
    print(f"{'':26}" + "".join(f"{name:>15}" for name in columns) + "   feasible")
    for name, problem in PROBLEMS.items():
        print(f"{name} published {problem.optimum:26.8f}")
        for adapt in ADAPTS:
            best = [search(problem, seed, evaluations, adapt).best for seed in seeds]
            values = np.array([np.nan if b is None else -b.return_ for b in best])
            print(f"{name} Evolution, {adapt:11}" + describe(values))
        if sres:
            values = np.array([search_with_sres(problem, seed, evaluations) for seed in seeds])
            print(f"{name} SRES (pymoo)         " + describe(values))


if __name__ == "__main__":
    main()
