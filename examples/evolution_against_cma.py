"""`optimize` beside pycma, on one budget: a table of suites, each run a line of a CSV.

- smooth: sphere, ellipsoid and Rosenbrock's function from (3, ..., 3), sigma 1, to 1e-9; those "of sigmas"
  with a step size for each parameter alone.
- turned: eight shapes in a frame of their own, in a box of 10 parameters, their optimum inside, to 1e-9.
- corner: optima in a corner of the box or in the middle of an edge, to 1e-9.
- designs: problems of `evolution_designs`, to a millionth of the best known cost.
- bbob, constrained: the 24 functions and the 54 constrained ones of `pip install coco-experiment` in 5
  dimensions, an instance for each seed, to 1e-8 and 1e-6.
- active, drawn: `TABLE` and `DRAWN` of `evolution_families`, to 1e-6.
- small: what is left there of the way to the optimum after 100, 200 and 500 evaluations.

Both begin at the same point with the same sigma, by default a random one and a fifth of the box. On bbob both
may begin again nine times. On the last three suites `optimize` may so, too, and pycma begins again until its
budget is used, with twice the population, from a random point of the box if there is one, and ends with
`find_feasible_final`. Else it is one run of `optimize` and of `fmin2`, with constraints of `fmin_con2`.
`CMA_active` of pycma is on, its default, `integer_variables` are told, and both stop at the target. A point
counts once, whatever is asked of it; if it is asked for again later, it counts again.

    python examples/evolution_against_cma.py [--suites smooth,designs] [--seeds N] [--keep FILE] [--quick]

Runs that the file has are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import importlib.util
import math
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from evolution_designs import DESIGNS, Design
from evolution_families import DRAWN, SMALL, TABLE, Problem

from acerl_np.evolution import Stops, optimize

KEPT = Path("docs/results/evolution-against-cma.csv")


Value = Callable[[np.ndarray], float]
Evaluate = Callable[[np.ndarray], tuple[float, list[float]]]
Yielding = Callable[[int], Iterator["Task"]]


class Task(NamedTuple):
    """A problem: its value and constraints at a point, where a search begins, and when it has solved it."""

    suite: str
    name: str
    evaluate: Evaluate
    start: np.ndarray
    sigma: float | np.ndarray
    target: float
    budget: int
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    constrained: bool = False
    integers: tuple[int, ...] = ()
    ours: tuple[tuple[str, Any], ...] = ()
    theirs: tuple[tuple[str, Any], ...] = ()


class Row(NamedTuple):
    """What came of a run: evaluations until solved, 0 if never, and the last distance to the target."""

    suite: str
    task: str
    search: str
    seed: int
    evaluations: int
    gap: float


class SolvedError(Exception):
    """A run has reached its target."""


class Counter:
    """A task's points so far, each evaluated once."""

    def __init__(self, task: Task) -> None:
        self.task, self.used, self.best, self.solved = task, 0, math.inf, 0
        self._point, self._known = b"", (math.nan, [math.nan])

    def _look(self, x: np.ndarray) -> tuple[float, list[float]]:
        point = np.asarray(x, np.float64).tobytes()
        if point != self._point:
            try:
                value, g = self.task.evaluate(np.asarray(x, np.float64))
            except (ArithmeticError, ValueError):  # no value outside the constraints
                value, g = math.inf, [1e300]
            self._point, self._known = point, (value, [float(one) for one in g])
            self.used += 1
            if value < self.best and max(g, default=0.0) <= 0.0:
                self.best = value
                if value <= self.task.target:
                    self.solved = self.used
                    raise SolvedError
            if self.used >= self.task.budget:
                raise SolvedError
        return self._known

    def value(self, x: np.ndarray) -> float:
        """Return the task's value at a point."""
        return float(self._look(x)[0])

    def constraints(self, x: np.ndarray) -> list[float]:
        """Return its constraints."""
        return self._look(x)[1]


def run_ours(task: Task, counter: Counter, seed: int) -> None:
    """Search by `optimize`, with its defaults."""
    optimize(
        counter.value,
        task.start,
        sigma=task.sigma,
        bounds=task.bounds,
        constraints=counter.constraints if task.constrained else None,
        integers=task.integers or None,
        evaluations=task.budget,
        limits=Stops(tolfun=1e-13),
        seed=seed,
        **dict(task.ours),
    )


def run_theirs(task: Task, counter: Counter, seed: int) -> None:
    """Search by pycma in the unit box, with its defaults."""
    import cma

    n = len(task.start)
    low, scale, sigma = np.zeros(n), np.ones(n), task.sigma
    options: dict[str, Any] = {
        "seed": seed + 1,
        "verbose": -9,
        "maxfevals": task.budget,
        **dict(task.theirs),
    }
    options |= {"tolfun": 1e-13, "tolfunhist": 1e-13}
    restarts, again = options.pop("restarts", 0), options.pop("again", False)
    if task.integers:
        options |= {
            "integer_variables": list(task.integers),
            "bounds": [*map(list, task.bounds or ())],
            "CMA_stds": sigma * np.ones(n),
        }
        sigma = 1.0
    elif task.bounds:
        low, scale, sigma = task.bounds[0], task.bounds[1] - task.bounds[0], 0.2
        options["bounds"] = [0, 1]

    def at(u: np.ndarray) -> np.ndarray:
        return np.asarray(low + scale * np.asarray(u))

    first = (task.start - low) / scale
    rng = np.random.default_rng(seed)
    while True:
        if task.constrained:
            cma.fmin_con2(
                lambda u: counter.value(at(u)),
                first,
                float(np.max(sigma)),
                constraints=lambda u: counter.constraints(at(u)),
                find_feasible_final=again,
                options=dict(options),
            )
        else:
            cma.fmin2(
                lambda u: counter.value(at(u)),
                first,
                float(np.max(sigma)),
                dict(options),
                restarts=restarts,
            )
        if not again:
            return
        options["seed"] += 1_000
        options["popsize"] = 2 * options.get("popsize", 4 + int(3 * math.log(n)))
        if task.bounds:
            first = (rng.uniform(*task.bounds) - low) / scale


SEARCHES = {"optimize": run_ours, "pycma": run_theirs}


def shape(name: str, n: int) -> Callable[[np.ndarray], float]:
    """Return a function of n parameters with its optimum 0 at zero, at one for Rosenbrock's."""
    powers = {
        "sphere": np.ones(n),
        "ellipsoid": 1e6 ** np.linspace(0, 1, n),
        "cigar": np.array([1.0] + [1e6] * (n - 1)),
        "tablet": np.array([1e6] + [1.0] * (n - 1)),
        "half cigar": np.array([1.0] * (n // 2) + [1e4] * (n - n // 2)),
        "valley": np.array([1e-2] * 2 + [1e2] * (n - 2)),
    }
    if name == "Rosenbrock":
        return lambda x: float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())
    if name == "different powers":
        exponents = np.linspace(2, 6, n)
        return lambda x: float((np.abs(x) ** exponents).sum())
    weights = powers[name]
    return lambda x: float(weights @ np.square(x))


def free(f: Value) -> Evaluate:
    """Return a function without constraints."""
    return lambda x: (f(x), [])


def turn(f: Value, frame: np.ndarray, centre: np.ndarray, one: float) -> Value:
    """Return a function in another frame."""
    return lambda x: f(frame @ (x - centre) + one)


def of_design(design: Design) -> Evaluate:
    """Return what a design costs."""
    return lambda x: design.evaluate(x.tolist())


def of_coco(problem: Any) -> Evaluate:
    """Return a function of coco-experiment."""
    many = problem.number_of_constraints
    return lambda x: (problem(x), problem.constraint(x).tolist() if many else [])


TURNED = (
    "sphere",
    "ellipsoid",
    "cigar",
    "tablet",
    "half cigar",
    "valley",
    "different powers",
    "Rosenbrock",
)
CORNERS = {"sum": 0.0, "outside": -1.0, "half": 0.5}


def list_smooth(seed: int) -> Iterator[Task]:
    """Yield the smooth functions."""
    for adapt, names, sizes in (
        ("matrix", ("sphere", "ellipsoid", "Rosenbrock"), (5, 10, 20)),
        ("sigma", ("sphere", "ellipsoid"), (20, 100)),
    ):
        for name in names:
            for n in sizes:
                label = f"{name} {n}" + (" of sigmas" if adapt == "sigma" else "")
                f = shape(name, n)
                yield Task(
                    "smooth",
                    label,
                    free(f),
                    np.full(n, 3.0),
                    1.0,
                    1e-9,
                    1_500 * n,
                    ours=(("adapt", adapt),),
                    theirs=(("CMA_diagonal", adapt == "sigma"),),
                )


def list_turned(seed: int) -> Iterator[Task]:
    """Yield functions in a turned frame and a box."""
    n = 10
    for name in TURNED:
        rng = np.random.default_rng((seed, TURNED.index(name)))
        frame, f = np.linalg.qr(rng.normal(size=(n, n)))[0], shape(name, n)
        centre, one = rng.uniform(-3, 3, n), float(name == "Rosenbrock")
        yield Task(
            "turned",
            name,
            free(turn(f, frame, centre, one)),
            rng.uniform(-5, 5, n),
            2.0,
            1e-9,
            30_000,
            (np.full(n, -5.0), np.full(n, 5.0)),
        )


def list_corners(seed: int) -> Iterator[Task]:
    """Yield functions whose optimum is on the bounds."""
    for name, centre in CORNERS.items():
        for n in (5, 10):
            at = np.full(n, centre)
            at[1:] = -1.0 if name == "half" else centre

            def evaluate(
                x: np.ndarray, name: str = name, at: np.ndarray = at
            ) -> tuple[float, list[float]]:
                if name == "sum":
                    return float(x.sum()), []
                return float(np.square(x - at).sum() - np.square(np.minimum(at, 0.0)).sum()), []

            start = np.random.default_rng((seed, n)).uniform(size=n)
            box = np.zeros(n), np.ones(n)
            yield Task("corner", f"{name} {n}", evaluate, start, 0.2, 1e-9, 10_000, box)


def list_designs(seed: int) -> Iterator[Task]:
    """Yield the design problems."""
    for name, design in DESIGNS.items():
        lower, upper = np.array(design.lower, float), np.array(design.upper, float)
        near = 1e-6 * abs(design.optimum) if abs(design.optimum) > 1e-9 else 1e-16
        yield Task(
            "designs",
            name,
            of_design(design),
            np.random.default_rng(seed).uniform(lower, upper),
            (upper - lower) / 5,
            design.optimum + near,
            20_000,
            (lower, upper),
            constrained=name != "gear train",
            integers=design.integers,
        )


def of_problem(suite: str, name: str, problem: Problem, budget: int, near: float) -> Task:
    """Return the task of a problem by construction; of a seed it is another one."""
    fields = problem.evaluate, problem.start, problem.sigma, problem.optimum + near, budget
    rest = problem.bounds, problem.constrained, problem.integers
    return Task(suite, name, *fields, *rest, (("restarts", 9),), (("again", True),))


def list_families(suite: str, problems: Mapping[str, Callable[..., Problem]]) -> Yielding:
    """Return what yields a suite of problems by construction, with 2,500 evaluations a parameter."""

    def tasks(seed: int) -> Iterator[Task]:
        for name, draw in problems.items():
            problem = draw(np.random.default_rng((seed, zlib.crc32(name.encode()))))
            yield of_problem(suite, name, problem, 2_500 * len(problem.start), 1e-6)

    return tasks


def list_small(seed: int) -> Iterator[Task]:
    """Yield problems with few evaluations; that of the tuning has 400, too."""
    for budget in (100, 200, 400, 500):
        for name, draw in SMALL.items():
            if budget != 400 or name == "tuning":
                problem = draw(np.random.default_rng((seed, zlib.crc32(name.encode()))))
                yield of_problem("small", f"{name} in {budget}", problem, budget, 0.0)


def list_coco(name: str, n: int = 5) -> Yielding:
    """Return what yields a suite's functions, the instance that a seed stands for."""

    def tasks(seed: int) -> Iterator[Task]:
        suite = importlib.import_module("cocoex").Suite(
            name, f"instances:{seed + 1}", f"dimensions:{n}"
        )
        for problem in suite:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                problem._best_parameter("print")
                best = problem(np.loadtxt("._bbob_problem_best_parameter.txt"))
            many = problem.number_of_constraints
            kind = (
                f"function {problem.id_function}"
                if name == "bbob"
                else (f"{1 + (problem.id_function - 1) // 6}, {many} constraints")
            )
            yield Task(
                "constrained" if many else "bbob",
                kind,
                of_coco(problem),
                problem.initial_solution if many else np.random.default_rng(seed).uniform(-4, 4, n),
                2.0,
                best + (1e-6 if many else 1e-8),
                3_000 * n if many else 5_000 * n,
                constrained=bool(many),
                ours=() if many else (("restarts", 9),),
                theirs=() if many else (("restarts", 9),),
            )

    return tasks


SUITES: dict[str, tuple[Yielding, int]] = {
    "smooth": (list_smooth, 10),
    "turned": (list_turned, 10),
    "corner": (list_corners, 10),
    "designs": (list_designs, 10),
    "bbob": (list_coco("bbob"), 10),
    "constrained": (list_coco("bbob-constrained"), 5),
    "active": (list_families("active", TABLE), 5),
    "drawn": (list_families("drawn", DRAWN), 5),
    "small": (list_small, 20),
}
"""What yields a suite's tasks for a seed, and how many seeds there are."""


def run(task: Task, search: str, seed: int) -> Row:
    """Return what comes of a search."""
    counter = Counter(task)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(SolvedError):
            SEARCHES[search](task, counter, seed)
    gap = float(f"{counter.best - task.target:.2e}")
    return Row(task.suite, task.name, search, seed, counter.solved, gap)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(suite, task, search, int(seed), int(used), float(gap))
            for suite, task, search, seed, used, gap in list(csv.reader(file))[1:]
        ]


def describe(rows: list[Row]) -> tuple[str, float]:
    """Return how many runs solved a task, and the median of their evaluations, infinite for the others.

    With small budgets the median is that of what is left.
    """
    each = [
        max(0.0, row.gap) if row.suite == "small" else row.evaluations or math.inf for row in rows
    ]
    median = float(np.median(each)) if rows else math.nan
    return f"{sum(row.evaluations > 0 for row in rows)} of {len(rows)}", median


def print_table(rows: list[Row]) -> None:
    """Print a line of Markdown for each task, and the sums of each suite.

    The constrained functions are put together by the number of their constraints.
    """
    print("| suite | task | `optimize` solves | median | pycma solves | median | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for suite in SUITES:
        names = dict.fromkeys(row.task.split(", ")[-1] for row in rows if row.suite == suite)
        for task in [*names, *([None] if names else [])]:
            cells, medians = [], []
            for search in SEARCHES:
                found = [row for row in rows if row[0] == suite and row.search == search]
                found = [row for row in found if task in (None, row.task.split(", ")[-1])]
                solved, median = describe(found)
                if suite == "constrained":  # of different functions
                    median = math.inf
                told = f"{median:.2g}" if suite == "small" else f"{median:,.0f}"
                cells += [solved, told if task and median < math.inf else ""]
                medians.append(median)
            both = task and all(map(math.isfinite, medians)) and medians[1] > 0.0
            ratio = f"{medians[0] / medians[1]:.2f}" if both else ""
            print(f"| {suite} | {task or '**all**'} | " + " | ".join([*cells, ratio]) + " |")


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", default=",".join(SUITES), help="names, separated by commas")
    parser.add_argument("--searches", default=",".join(SEARCHES), help="names, separated by commas")
    parser.add_argument("--tasks", default="", help="only tasks whose name contains this")
    parser.add_argument("--seeds", type=int, help="by default ten, five of constrained")
    parser.add_argument(
        "--keep", type=Path, default=KEPT, help="CSV of runs, which are not run twice"
    )
    parser.add_argument("--quick", action="store_true", help="one run on a few tasks, nothing kept")
    options = parser.parse_args()
    for name, known in (("suites", SUITES), ("searches", SEARCHES)):
        setattr(options, name, getattr(options, name).split(","))
        for one in getattr(options, name):
            if one not in known:
                parser.error(f"--{name}: read '{one}'; expected some of {', '.join(known)}")
    return options


def main() -> None:
    """Run what the file does not have, and print its table."""
    options = read_arguments()
    if options.quick:
        options.suites, options.seeds, options.tasks = ["smooth", "designs"], 1, "s"
    missing = [name for name in ("cma", "cocoex") if importlib.util.find_spec(name) is None]
    if "cma" in missing:
        options.searches = [name for name in options.searches if name != "pycma"]
        print("no pycma: pip install -e '.[cma]'")
    rows = [] if options.quick else read_rows(options.keep)
    known = {row[:4] for row in rows}
    for suite in options.suites:
        tasks, seeds = SUITES[suite]
        if "cocoex" in missing and suite in ("bbob", "constrained"):
            print(f"no suite {suite}: pip install coco-experiment")
            continue
        for seed in range(options.seeds or seeds):
            for task in tasks(seed):
                if options.tasks not in task.name:
                    continue
                for search in options.searches:
                    if (task.suite, task.name, search, seed) in known:
                        continue
                    row = run(task, search, seed)
                    rows.append(row)
                    if not options.quick:
                        new = not options.keep.exists()
                        with options.keep.open("a", newline="", encoding="utf-8") as file:
                            csv.writer(file).writerows([Row._fields, row] if new else [row])
    print_table(rows)


if __name__ == "__main__":
    main()
