"""The functions of the CEC 2006 session on constrained optimisation: `Evolution`, SRES, ISRES and pycma.

g01 to g24 as pymoo defines them (`pip install -e '.[pymoo]'`; Liang et al., "Problem definitions and
evaluation criteria for the CEC 2006 special session on constrained real-parameter optimization", 2006).
Equalities have the session's tolerance of 1e-4. Of each run the best feasible objective is taken after
5,000, 50,000 and 500,000 evaluations: feasible is the share of runs that have one, success the share
within 1e-4 of the best known objective, gap the median distance to it, infinite where most runs found none.
A run ends early once its gap is 1e-6. The best known objectives are those of the session's report, which
count the tolerance of equalities, as pymoo's do not. g11's equality, an inequality in pymoo, is one here.
No feasible point of g20 is known.

The settings of `Evolution` were chosen on the twelve functions of odd number alone; those of even number
judge them. The rivals run with their defaults: pymoo's SRES and ISRES, and pycma's `fmin_con2`
(`pip install -e '.[cma]'`), begun again until the budget is used. pymoo's stochastic ranking draws
unseeded, so its figures differ between runs.

    python examples/evolution_cec2006.py [--functions g01,g02] [--runs N] [--budget N] [--searches NAMES]
        [--keep runs.csv]

All functions, searches and runs take about a day of a core. With --keep every run is a line of a file, and
those that are there are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.util
import itertools
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evolution import Evolution

BEST = {
    "g01": -15.0,
    "g02": -0.8036191042,
    "g03": -1.0005001000,
    "g04": -30665.5386717834,
    "g05": 5126.4967140071,
    "g06": -6961.8138755802,
    "g07": 24.3062090681,
    "g08": -0.0958250415,
    "g09": 680.6300573745,
    "g10": 7049.2480205286,
    "g11": 0.7499,
    "g12": -1.0,
    "g13": 0.0539415140,
    "g14": -47.7648884595,
    "g15": 961.7150222899,
    "g16": -1.9051552586,
    "g17": 8853.5338748065,  # the report prints 8853.5396748064, which its own point undercuts
    "g18": -0.8660254038,
    "g19": 32.6555929502,
    "g20": 0.2049794002,  # of a point that is not quite feasible
    "g21": 193.7245100700,
    "g22": 236.4309755040,
    "g23": -400.0551,
    "g24": -5.5080132716,
}
"""Best known objectives, of the session's report."""
NAMES = tuple(BEST)
CHOSEN_ON = NAMES[::2]
BUDGETS = (5_000, 50_000, 500_000)
TOLERANCE = 1e-4
"""Of the equalities, and of success."""
ENOUGH = 1e-6
"""Gap that ends a run."""


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
        self.optimum = BEST[name]

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


class DoneError(Exception):
    """A run that came near enough to the best known objective."""


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
        """As the problem's; raise `DoneError` where nothing is left to find."""
        f, g = self.problem.evaluate(x)
        good = np.isfinite(f) & (g <= 0.0).all(axis=1)
        for k, budget in enumerate(self.budgets):
            counted = np.where(good, f, math.inf)[: max(0, budget - self.used)]
            self.best[k] = min(self.best[k], counted.min(initial=math.inf))
        self.used += len(x)
        if self.best[-1] <= self.problem.optimum + ENOUGH:
            raise DoneError
        return f, g


def search(tracker: Tracker, seed: int) -> None:
    """Run `Evolution`, restarted with twice the population whenever it is over."""
    problem = tracker.problem
    n = len(problem.lower)
    evolution = Evolution(
        np.random.default_rng(seed).uniform(problem.lower, problem.upper),
        sigma=0.2 * (problem.upper - problem.lower),
        population=20 + 2 * n,
        p_f=0.1,
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


SEARCHES: dict[str, Callable[[Tracker, int], None]] = {
    "Evolution": search,
    "sres": lambda tracker, seed: search_with_pymoo(tracker, seed, "sres"),
    "isres": lambda tracker, seed: search_with_pymoo(tracker, seed, "isres"),
    "fmin_con2": search_with_cma,
}


class Row(NamedTuple):
    """The gap of a run after so many evaluations."""

    search: str
    function: str
    seed: int
    evaluations: int
    gap: float


def run(name: str, function: str, seed: int, budgets: tuple[int, ...]) -> list[Row]:
    """Return a run's gaps to the best known objective at each budget."""
    tracker = Tracker(Problem(function), budgets)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(DoneError):
            SEARCHES[name](tracker, seed)
    gaps = tracker.best - tracker.problem.optimum
    return [Row(name, function, seed, *pair) for pair in zip(budgets, gaps.tolist(), strict=True)]


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [
                Row(
                    row["search"],
                    row["function"],
                    int(row["seed"]),
                    int(row["evaluations"]),
                    float(row["gap"]),
                )
                for row in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError):
            raise SystemExit(
                f"{path}: read another kind of file; expected columns {', '.join(Row._fields)}"
            ) from None


def add_rows(path: Path, rows: list[Row]) -> None:
    """Add rows at the end of a file, which begins with a header."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([Row._fields, *rows] if new else rows)


def print_table(rows: list[Row]) -> None:
    """Print a line per function, search and budget, and the means of all functions."""
    print(f"settings chosen on {', '.join(CHOSEN_ON)}")
    heads = ("runs", "evaluations", "feasible", "success", "gap")
    print(f"{'':6}{'':12}" + "".join(f"{head:>12}" for head in heads))
    groups: dict[tuple[str, str, int], list[float]] = {}
    for row in sorted(
        rows, key=lambda row: (row.function, [*SEARCHES].index(row.search), row.evaluations)
    ):
        groups.setdefault((row.function, row.search, row.evaluations), []).append(row.gap)
    totals: dict[tuple[str, str, int], list[float]] = {}
    for (function, name, evaluations), found in groups.items():
        gaps = np.array(found)
        feasible, success = np.isfinite(gaps).mean(), (gaps <= TOLERANCE).mean()
        kind = "chosen on" if function in CHOSEN_ON else "judged by"
        totals.setdefault((kind, name, evaluations), []).append(success)
        print(
            f"{function:6}{name:12}{len(gaps):12}{evaluations:12,}{feasible:12.2f}{success:12.2f}"
            f"{np.median(gaps):12.2e}"
        )
    for (kind, name, evaluations), successes in sorted(totals.items()):
        solved = sum(success > 0.5 for success in successes)
        print(
            f"{kind}, {name}, {evaluations:,} evaluations: {solved} of {len(successes)} functions solved in "
            f"most runs, mean success {np.mean(successes):.2f}"
        )


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", default=",".join(NAMES), help="names, separated by commas")
    parser.add_argument("--searches", default=",".join(SEARCHES), help="names, separated by commas")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--budget", type=int, default=BUDGETS[-1], help="most evaluations of a run")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="CSV of runs, which are added and not run twice")
    parser.add_argument("--quick", action="store_true", help="one run on two functions, no rivals")
    options = parser.parse_args()
    if options.quick:
        options.functions, options.searches, options.runs, options.budget = (
            "g08,g24",
            "Evolution",
            1,
            2000,
        )
    for name, known in (("functions", NAMES), ("searches", SEARCHES)):
        given = getattr(options, name).split(",")
        setattr(options, name, given)
        for one in given:
            if one not in known:
                parser.error(f"--{name}: read '{one}'; expected some of {', '.join(known)}")
    if min(options.runs, options.budget, options.workers) < 1:
        parser.error("--runs, --budget, --workers: expected at least 1")
    return options


def main() -> None:
    """Run the study and print its table."""
    options = read_arguments()
    if importlib.util.find_spec("pymoo") is None:
        print(
            "pymoo, which defines the functions, is missing; install it with: pip install -e '.[pymoo]'"
        )
        return
    budgets = (*(b for b in BUDGETS if b < options.budget), options.budget)
    rows = read_rows(options.keep) if options.keep else []
    known = {row[:4] for row in rows}
    wanted = [
        (name, function, seed, budgets)
        # Seed by seed, so that what is there after any time is a smaller study.
        for seed, function, name in itertools.product(
            range(options.runs), options.functions, options.searches
        )
        if (name, function, seed, budgets[-1]) not in known
    ]
    with ProcessPoolExecutor(options.workers) as executor:
        for found in executor.map(run, *zip(*wanted, strict=True)) if wanted else ():
            fresh = [row for row in found if row[:4] not in known]
            rows += fresh
            if options.keep:
                add_rows(options.keep, fresh)
    print_table(
        [
            row
            for row in rows
            if row.search in options.searches and row.function in options.functions
        ]
    )


if __name__ == "__main__":
    main()
