"""The functions of the CEC 2006 session on constrained optimisation: `Evolution`, SRES, ISRES and pycma.

g01 to g24 as pymoo defines them (`pip install -e '.[pymoo]'`; Liang et al., "Problem definitions and
evaluation criteria for the CEC 2006 special session on constrained real-parameter optimization", 2006).
Equalities have the session's tolerance of 1e-4. Of each run the best feasible objective is taken after
5,000, 50,000 and 500,000 evaluations: feasible is the share of runs that have one, success the share
within 1e-4 of pymoo's optimum, gap the median distance to it, infinite where most runs found none.
g11's equality, an inequality in pymoo, is one here. Optima that pymoo knows without the tolerance of an
equality are undercut by a little (g03).

The settings of `Evolution` were chosen on the twelve functions of odd number alone; those of even number
judge them. The rivals run with their defaults: pymoo's SRES and ISRES, and pycma's `fmin_con2`
(`pip install -e '.[cma]'`), begun again until the budget is used. pymoo's stochastic ranking draws
unseeded, so its figures differ between runs.

    python examples/evolution_cec2006.py [--functions g01,g02] [--runs N] [--budget N] [--rivals NAMES|none]
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from acerl_np.evolution import Evolution

NAMES = tuple(f"g{k:02d}" for k in range(1, 25))
CHOSEN_ON = NAMES[::2]
BUDGETS = (5_000, 50_000, 500_000)
TOLERANCE = 1e-4
"""Of the equalities, and of success."""


class Problem:
    """A function of the session.

    Parameters
    ----------
    name : str
        g01 to g24.
    """

    def __init__(self, name: str) -> None:
        from pymoo.problems import get_problem

        self.name = name
        self.given = get_problem(f"g{int(name[1:])}")
        self.lower = np.asarray(self.given.xl, np.float64)
        self.upper = np.asarray(self.given.xu, np.float64)
        self.optimum = float(np.min(self.given.pareto_front()))

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return objectives, (m,), and constraints g <= 0, (m, n_constraints), of points, (m, n)."""
        with np.errstate(all="ignore"):
            out = self.given.evaluate(x, return_as_dictionary=True)
        parts = {
            kind: np.asarray(out.get(kind, np.zeros((len(x), 0))), np.float64).reshape(len(x), -1)
            for kind in ("G", "H")
        }
        if self.name == "g11":  # the session's equality, which pymoo has as an inequality
            parts = {"G": parts["H"], "H": parts["G"]}
        g = [parts["G"], np.abs(parts["H"]) - TOLERANCE]
        return np.asarray(out["F"], np.float64).reshape(-1), np.concatenate(g, axis=1)


class Tracker:
    """A problem that counts its evaluations and keeps the best feasible objective at each budget.

    Parameters
    ----------
    problem : Problem
    budgets : tuple of int
        Ascending.
    """

    def __init__(self, problem: Problem, budgets: tuple[int, ...]) -> None:
        self.problem = problem
        self.budgets = budgets
        self.used = 0
        self.best = np.full(len(budgets), math.inf)

    @property
    def left(self) -> int:
        """Evaluations that the largest budget leaves."""
        return self.budgets[-1] - self.used

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As the problem's."""
        f, g = self.problem.evaluate(x)
        good = np.isfinite(f) & (g <= 0.0).all(axis=1)
        for k, budget in enumerate(self.budgets):
            counted = np.where(good, f, math.inf)[: max(0, budget - self.used)]
            self.best[k] = min(self.best[k], counted.min(initial=math.inf))
        self.used += len(x)
        return f, g


def search(tracker: Tracker, seed: int) -> None:
    """Run `Evolution`, restarted with twice the population whenever it is over."""
    problem = tracker.problem
    n = len(problem.lower)
    evolution = Evolution(
        np.random.default_rng(seed).uniform(problem.lower, problem.upper),
        sigma=0.2 * (problem.upper - problem.lower),
        population=40 + 4 * n,
        p_f=0.2,
        adapt="matrix",
        bounds=(problem.lower, problem.upper),
        seed=seed,
    )
    while tracker.left > 0:
        members, _ = evolution.ask()
        f, g = tracker.evaluate(members)
        evolution.tell(-f, g)
        if evolution.stop():
            evolution.restart()


def search_with_pymoo(tracker: Tracker, seed: int, name: str) -> None:
    """Run pymoo's SRES or ISRES with its defaults."""
    from pymoo.algorithms.soo.nonconvex.isres import ISRES
    from pymoo.algorithms.soo.nonconvex.sres import SRES
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.optimize import minimize

    class Given(PymooProblem):  # type: ignore[misc]
        def _evaluate(self, x: np.ndarray, out: dict[str, np.ndarray], *args: object) -> None:
            out["F"], out["G"] = tracker.evaluate(x)

    problem = tracker.problem
    m = problem.evaluate(problem.lower[np.newaxis])[1].shape[1]
    given = Given(
        n_var=len(problem.lower), n_obj=1, n_ieq_constr=m, xl=problem.lower, xu=problem.upper
    )
    algorithm = {"sres": SRES, "isres": ISRES}[name]()
    minimize(given, algorithm, ("n_eval", tracker.left), seed=seed, verbose=False)


def search_with_cma(tracker: Tracker, seed: int) -> None:
    """Run pycma's augmented Lagrangian from random points until the budget is used."""
    import cma

    problem, rng = tracker.problem, np.random.default_rng(seed)
    width = problem.upper - problem.lower
    known: dict[bytes, Any] = {}

    def both(u: np.ndarray) -> tuple[float, np.ndarray]:
        key = np.asarray(u).tobytes()
        if key not in known:
            known.clear()
            f, g = tracker.evaluate((problem.lower + width * np.asarray(u))[np.newaxis])
            known[key] = float(f[0]), g[0]
        return known[key][0], known[key][1]

    while tracker.left > 0:
        options = {
            "seed": int(rng.integers(1, 2**31)),
            "bounds": [0, 1],
            "maxfevals": tracker.left,
            "verbose": -9,
        }
        cma.fmin_con2(
            lambda u: both(u)[0],
            rng.uniform(size=len(width)),
            0.2,
            constraints=lambda u: both(u)[1],
            options=options,
        )


RIVALS: dict[str, Callable[[Tracker, int], None]] = {
    "sres": lambda tracker, seed: search_with_pymoo(tracker, seed, "sres"),
    "isres": lambda tracker, seed: search_with_pymoo(tracker, seed, "isres"),
    "fmin_con2": search_with_cma,
}


def study(
    problem: Problem, run: Callable[[Tracker, int], None], runs: int, budgets: tuple[int, ...]
) -> np.ndarray:
    """Return the gaps to the best known objective, (runs, n_budgets)."""
    gaps = []
    for seed in range(runs):
        tracker = Tracker(problem, budgets)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run(tracker, seed)
        gaps.append(tracker.best - problem.optimum)
    return np.array(gaps)


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", default=",".join(NAMES), help="names, separated by commas")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--budget", type=int, default=BUDGETS[-1], help="most evaluations of a run")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="names, or none")
    parser.add_argument("--quick", action="store_true", help="one run on two functions, no rivals")
    options = parser.parse_args()
    if options.quick:
        options.functions, options.runs, options.budget, options.rivals = "g08,g24", 1, 2000, "none"
    options.functions = options.functions.split(",")
    options.rivals = [] if options.rivals == "none" else options.rivals.split(",")
    for given, known in ((options.functions, NAMES), (options.rivals, RIVALS)):
        for name in given:
            if name not in known:
                parser.error(f"read '{name}'; expected some of {', '.join(known)}")
    if options.runs < 1 or options.budget < 1:
        parser.error("--runs, --budget: expected at least 1")
    return options


def main() -> None:
    """Run the study and print a line per function, search and budget."""
    options = read_arguments()
    if importlib.util.find_spec("pymoo") is None:
        print(
            "pymoo, which defines the functions, is missing; install it with: pip install -e '.[pymoo]'"
        )
        return
    budgets = (*(b for b in BUDGETS if b < options.budget), options.budget)
    searches = {"Evolution": search, **{name: RIVALS[name] for name in options.rivals}}
    print(f"{options.runs} runs; settings chosen on {', '.join(CHOSEN_ON)}")
    print(f"{'':6}{'':12}{'evaluations':>12}{'feasible':>10}{'success':>10}{'gap':>12}")
    totals: dict[tuple[str, int], list[float]] = {}
    for name in options.functions:
        problem = Problem(name)
        for label, run in searches.items():
            gaps = study(problem, run, options.runs, budgets)
            for budget, column in zip(budgets, gaps.T, strict=True):
                feasible, success = np.isfinite(column).mean(), (column <= TOLERANCE).mean()
                totals.setdefault((label, budget), []).append(success)
                print(
                    f"{name:6}{label:12}{budget:12,}{feasible:10.2f}{success:10.2f}"
                    f"{np.median(column):12.2e}",
                    flush=True,
                )
    for (label, budget), successes in totals.items():
        print(f"{'mean':6}{label:12}{budget:12,}{'':10}{np.mean(successes):10.2f}")


if __name__ == "__main__":
    main()
