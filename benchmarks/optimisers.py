"""`optimize` and `Evolution` beside pycma and pymoo's SRES and ISRES: a table of what came of their runs.

    python benchmarks/optimisers.py pycma
    python benchmarks/optimisers.py cec2006 --budget 50000 --runs 5
    python benchmarks/optimisers.py --quick              a little of both

Other optimisers are optional: pip install -e '.[cma,pymoo]' coco-experiment. Runs that a CSV has are not run
again: --keep FILE, by default docs/results/evolution-against-cma.csv and cec2006.csv.

pycma: `optimize` beside pycma, on one budget, on problems of `designs.py`, `families.py` and COCO.
Both begin at the same point with the same sigma, by default a random one and a fifth of the box. On bbob both
may begin again nine times. On active, drawn, named `optimize` may so, too, and pycma begins again until its
budget is used, with twice the population, from a random point of the box if there is one, and ends with
`find_feasible_final`. Else it is one run of `optimize` and of `fmin2`, with constraints of `fmin_con2`, which
gets an equality as its documentation advises: as two inequalities, kept to 1e-4.
`CMA_active` of pycma is on, its default, `integer_variables` are told, and both stop at the target. A point
counts once, whatever is asked of it; if it is asked for again later, it counts again.

cec2006: g01 to g24 as pymoo defines them. Printed and kept is the gap of the best feasible objective to the
best known one, after 5,000, 50,000 and 500,000 evaluations; `python -m studies pages` makes tables of them. A
run ends early once its gap is 1e-6. The best known objectives are those of the session's report, which count
the tolerance of equalities, as pymoo's do not. g11's equality, an inequality in pymoo, is one here. pycma's
`fmin_con2` begins again until the budget is used. All takes about a day of a core.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import math
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from designs import DESIGNS
from families import DRAWN, TABLE, rosenbrock
from named import NAMED
from script import add_rows, make_parser, read_rows

from acerl_np.evolution import Evolution, Stops, optimize

TOLERANCE = 1e-4
"""Of equalities, but for problems with one of their own."""
RESULTS = Path(__file__).parents[1] / "docs/results"

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Objectives, (m,), and constraints g <= 0, (m, n_constraints), of points, (m, n_parameters)."""


class DoneError(Exception):
    """A run has nothing left to find, or no evaluations left."""


class Counter:
    """Counts the points of a run; keeps the best feasible objective at each of ascending budgets."""

    def __init__(
        self, evaluate: Evaluate, budgets: tuple[int, ...], target: float, equalities: int = 0
    ) -> None:
        self._evaluate, self.budgets, self.target = evaluate, budgets, target
        self.equalities, self.tolerance = equalities, TOLERANCE
        self.used = self.solved = 0
        self.best = np.full(len(budgets), math.inf)
        self._point, self._known = b"", (math.nan, np.empty(0))

    @property
    def left(self) -> int:
        return self.budgets[-1] - self.used

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate points; raise `DoneError` once one reaches the target, or the budget is used."""
        f, g = self._evaluate(x)
        good = np.isfinite(f) & (self.bound(g) <= 0.0).all(axis=1)
        for k, budget in enumerate(self.budgets):
            counted = np.where(good, f, math.inf)[: max(0, budget - self.used)]
            self.best[k] = min(self.best[k], counted.min(initial=math.inf))
        self.used += len(x)
        if self.best[-1] <= self.target:
            self.solved = self.used
            raise DoneError
        if self.left <= 0:
            raise DoneError
        return f, g

    def look(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and constraints of a point, which counts once while nothing else is asked for."""
        point = np.asarray(x, np.float64)
        if point.tobytes() != self._point:
            f, g = self.evaluate(point[np.newaxis])
            self._point, self._known = point.tobytes(), (float(f[0]), g[0])
        return self._known

    def bound(self, g: np.ndarray) -> np.ndarray:
        """Return constraints with each equality as two inequalities, as pycma's documentation advises."""
        g, h = np.split(g, [g.shape[-1] - self.equalities], axis=-1)
        return np.concatenate([g, h - self.tolerance, -h - self.tolerance], axis=-1)

    def split(self, x: np.ndarray, *, equal: bool) -> np.ndarray:
        """Return the equalities of a point, or its other constraints."""
        g = self.look(x)[1]
        return np.split(g, [len(g) - self.equalities])[equal]


def alone(evaluate: Callable[[np.ndarray], tuple[float, Any]]) -> Evaluate:
    """Return a function of one point as one of many, without a value outside the constraints."""

    def each(x: np.ndarray) -> tuple[float, Any]:
        try:
            return evaluate(x)
        except (ArithmeticError, ValueError):
            return math.inf, [1e300]

    def evaluate_all(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        told = [each(x) for x in points]
        return np.array([f for f, _ in told]), np.array([[*g] for _, g in told], np.float64)

    return evaluate_all


class Task(NamedTuple):
    """A problem: its value and constraints at a point, where a search begins, and when it has solved it."""

    suite: str
    name: str
    evaluate: Callable[[np.ndarray], tuple[float, Any]]
    start: np.ndarray
    sigma: float | np.ndarray
    target: float
    budget: int
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    constrained: bool = False
    integers: tuple[int, ...] = ()
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None
    equalities: int = 0
    judge: Callable[[np.ndarray], float] | None = None
    tolerance: float = TOLERANCE


class Row(NamedTuple):
    """What came of a run: evaluations until solved, 0 if never, and the last distance to the target."""

    suite: str
    task: str
    search: str
    seed: int
    evaluations: int
    gap: float


def run_ours(task: Task, counter: Counter, seed: int) -> np.ndarray:
    """Search by `optimize`, with its defaults; return the mean at its end."""
    free = len(task.evaluate(task.start)[1]) > task.equalities
    return optimize(
        lambda x: counter.look(x)[0],
        task.start,
        sigma=task.sigma,
        bounds=task.bounds,
        constraints=partial(counter.split, equal=False) if free else None,
        equalities=partial(counter.split, equal=True) if task.equalities else None,
        tolerance=task.tolerance,
        integers=task.integers or None,
        evaluations=task.budget,
        limits=Stops(tolfun=1e-13),
        seed=seed,
        **(task.ours or {}),
    ).mean


def run_theirs(task: Task, counter: Counter, seed: int) -> np.ndarray:
    """Search by pycma in the unit box, with its defaults; return the mean at its end."""
    import cma

    n = len(task.start)
    low, scale, sigma = np.zeros(n), np.ones(n), task.sigma
    options = {"seed": seed + 1, "verbose": -9, "maxfevals": task.budget, **(task.theirs or {})}
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
    own: dict[str, Any] = {"restarts": restarts}
    if task.constrained:
        own = {"constraints": lambda u: counter.bound(counter.look(at(u))[1])}
        own["find_feasible_final"] = again
    search = cma.fmin_con2 if task.constrained else cma.fmin2
    sigma = float(np.max(sigma))
    while True:
        _, es = search(lambda u: counter.look(at(u))[0], first, sigma, options=dict(options), **own)
        if not again:
            return at(es.result.xfavorite)
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
        return rosenbrock
    if name == "different powers":
        exponents = np.linspace(2, 6, n)
        return lambda x: float((np.abs(x) ** exponents).sum())
    weights = powers[name]
    return lambda x: float(weights @ np.square(x))


def list_smooth(seed: int) -> Iterator[Task]:
    for adapt, names, sizes in (
        ("matrix", ("sphere", "ellipsoid", "Rosenbrock"), (5, 10, 20)),
        ("sigma", ("sphere", "ellipsoid"), (20, 100)),
    ):
        for name, n in itertools.product(names, sizes):
            label, f = f"{name} {n}" + " of sigmas" * (adapt == "sigma"), shape(name, n)
            how = {"ours": {"adapt": adapt}, "theirs": {"CMA_diagonal": adapt == "sigma"}}
            free = partial(lambda f, x: (f(x), []), f)
            yield Task("smooth", label, free, np.full(n, 3.0), 1.0, 1e-9, 1_500 * n, **how)


def list_turned(seed: int) -> Iterator[Task]:
    """Yield functions in a turned frame and a box."""
    n = 10
    names = ("sphere", "ellipsoid", "cigar", "tablet", "half cigar", "valley", "different powers")
    for k, name in enumerate([*names, "Rosenbrock"]):
        rng = np.random.default_rng((seed, k))
        frame, f = np.linalg.qr(rng.normal(size=(n, n)))[0], shape(name, n)
        centre, one = rng.uniform(-3, 3, n), float(name == "Rosenbrock")

        def evaluate(x: np.ndarray, f=f, frame=frame, centre=centre, one=one) -> Any:
            return f(frame @ (x - centre) + one), []

        box = np.full(n, -5.0), np.full(n, 5.0)
        yield Task("turned", name, evaluate, rng.uniform(-5, 5, n), 2.0, 1e-9, 30_000, box)


def list_corners(seed: int) -> Iterator[Task]:
    """Yield functions whose optimum is on the bounds."""
    for (name, centre), n in itertools.product(
        {"sum": 0.0, "outside": -1.0, "half": 0.5}.items(), (5, 10)
    ):
        at = np.full(n, centre)
        at[1:] = -1.0 if name == "half" else centre

        def evaluate(x: np.ndarray, name=name, at=at) -> Any:
            if name == "sum":
                return float(x.sum()), []
            return float(np.square(x - at).sum() - np.square(np.minimum(at, 0.0)).sum()), []

        start = np.random.default_rng((seed, n)).uniform(size=n)
        box = np.zeros(n), np.ones(n)
        yield Task("corner", f"{name} {n}", evaluate, start, 0.2, 1e-9, 10_000, box)


def list_designs(seed: int) -> Iterator[Task]:
    for name, design in DESIGNS.items():
        lower, upper = np.array(design.lower, float), np.array(design.upper, float)
        near = 1e-6 * abs(design.optimum) if abs(design.optimum) > 1e-9 else 1e-16
        start = np.random.default_rng(seed).uniform(lower, upper)

        def evaluate(x: np.ndarray, design=design) -> Any:
            return design.evaluate(x.tolist())

        own = (lower, upper), name != "gear train", design.integers
        target = design.optimum + near
        yield Task("designs", name, evaluate, start, (upper - lower) / 5, target, 20_000, *own)


def list_families(suite: str, seed: int) -> Iterator[Task]:
    """Yield problems by construction."""
    for name, draw in {"active": TABLE, "drawn": DRAWN}[suite].items():
        own = draw(np.random.default_rng((seed, zlib.crc32(name.encode()))))
        first = own.evaluate, own.start, own.sigma, own.optimum + 1e-6, 2_500 * len(own.start)
        rest = own.bounds, own.constrained, own.integers, {"restarts": 9}, {"again": True}
        yield Task(suite, name, *first, *rest, int(own.tolerance > 0.0), None, own.tolerance)


def list_named(seed: int) -> Iterator[Task]:
    for name, own in NAMED.items():
        box = np.array(own.lower, float), np.array(own.upper, float)
        start, sigma = np.array(own.start, float), 1.0
        if len(own.lower):
            start, sigma = np.random.default_rng(seed).uniform(*box), (box[1] - box[0]) / 5
        first = own.evaluate, start, sigma, own.optimum + own.near, own.budget
        rest = box if len(own.lower) else None, bool(own.evaluate(start)[1]), own.integers
        options: tuple[dict[str, Any], dict[str, Any]] = {"restarts": 9}, {"again": True}
        if own.judge is not None:
            options = {"population": own.population}, {"popsize": own.population}
        yield Task("named", name, *first, *rest, *options, own.equalities, own.judge)


def list_coco(name: str, seed: int, n: int = 5) -> Iterator[Task]:
    """Yield a suite's functions, the instance that a seed stands for."""
    suite = importlib.import_module("cocoex").Suite(
        name, f"instances:{seed + 1}", f"dimensions:{n}"
    )
    for problem in suite:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            problem._best_parameter("print")
            best = problem(np.loadtxt("._bbob_problem_best_parameter.txt"))
        many = problem.number_of_constraints
        kind = (
            f"{1 + (problem.id_function - 1) // 6}, {many} constraints"
            if many
            else f"function {problem.id_function}"
        )

        def evaluate(x: np.ndarray, problem=problem, many=many) -> Any:
            return problem(x), problem.constraint(x).tolist() if many else []

        start = problem.initial_solution if many else np.random.default_rng(seed).uniform(-4, 4, n)
        more = {} if many else {"ours": {"restarts": 9}, "theirs": {"restarts": 9}}
        target, budget = (best + 1e-6, 3_000 * n) if many else (best + 1e-8, 5_000 * n)
        first = ("constrained" if many else "bbob"), kind, evaluate, start, 2.0, target, budget
        yield Task(*first, constrained=bool(many), **more)


SUITES: dict[str, tuple[Callable[[int], Iterator[Task]], int]] = {
    "smooth": (list_smooth, 10),
    "turned": (list_turned, 10),
    "corner": (list_corners, 10),
    "designs": (list_designs, 10),
    "bbob": (partial(list_coco, "bbob"), 10),
    "constrained": (partial(list_coco, "bbob-constrained"), 5),
    **{name: (partial(list_families, name), 5) for name in ("active", "drawn")},
    "named": (list_named, 5),
}
"""What yields a suite's tasks for a seed, and how many seeds there are."""


def follow(search: Callable[..., Any], *rest: Any) -> Any:
    """Let a search run until it has nothing left to find; return what it returns then."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(DoneError):
            return search(*rest)


def run(task: Task, search: str, seed: int) -> Row:
    """Return what comes of a search."""
    target, budget = (task.target, task.budget) if task.judge is None else (-math.inf, 10**9)
    counter = Counter(alone(task.evaluate), (budget,), target, task.equalities)
    counter.tolerance = task.tolerance
    mean = follow(SEARCHES[search], task, counter, seed)
    best, solved = counter.best[0], counter.solved
    if task.judge is not None:
        best = math.inf if mean is None else task.judge(mean)
        solved = counter.used * int(best <= task.target)
    gap = float(f"{best - task.target:.2e}")
    return Row(task.suite, task.name, search, seed, solved, gap)


def describe(rows: list[Row]) -> tuple[str, float]:
    """Return how many runs solved a task, and the median of their evaluations, infinite for the others."""
    each = [row.evaluations or math.inf for row in rows]
    median = float(np.median(each)) if rows else math.nan
    return f"{sum(row.evaluations > 0 for row in rows)} of {len(rows)}", median


def print_suites(rows: list[Row]) -> None:
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
                cells += [solved, f"{median:,.0f}" if task and median < math.inf else ""]
                medians.append(median)
            both = task and all(map(math.isfinite, medians)) and medians[1] > 0.0
            ratio = f"{medians[0] / medians[1]:.2f}" if both else ""
            print(f"| {suite} | {task or '**all**'} | " + " | ".join([*cells, ratio]) + " |")


def run_suites(options: Any) -> None:
    """Run `optimize` and pycma where the file has no run, and print its table."""
    if options.quick:
        options.suites, options.runs, options.tasks = ["smooth", "corner"], 1, "e 5"
    keep = None if options.quick else options.keep or RESULTS / "evolution-against-cma.csv"
    searches = [name for name in SEARCHES if name != "pycma" or is_there("cma")]
    rows = read_rows(keep, Row) if keep else []
    known = {row[:4] for row in rows}
    for suite in options.suites:
        tasks, runs = SUITES[suite]
        if suite in ("bbob", "constrained") and not is_there("cocoex", "coco-experiment"):
            continue
        for seed in range(options.runs or runs):
            for task, search in itertools.product(tasks(seed), searches):
                if options.tasks not in task.name or (suite, task.name, search, seed) in known:
                    continue
                rows.append(run(task, search, seed))
                if keep:
                    add_rows(keep, rows[-1:])
    print_suites(rows)


def is_there(module: str, package: str = "") -> bool:
    """Return whether a module is installed; say how to get it if not."""
    found = importlib.util.find_spec(module) is not None
    if not found:
        print(f"no {module}: pip install {package or f'-e .[{module}]'}")
    return found


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
BUDGETS = (5_000, 50_000, 500_000)
ENOUGH = 1e-6
"""Gap that ends a run."""


class Problem(NamedTuple):
    """A function of the session, its box, its published optimum."""

    evaluate: Evaluate
    lower: np.ndarray
    upper: np.ndarray
    optimum: float
    equalities: int


def make_problem(name: str) -> Problem:
    """Return a function of the session, g01 to g24."""
    if name in NAMED:
        own = NAMED[name]
        return Problem(
            alone(own.evaluate),
            np.array(own.lower),
            np.array(own.upper),
            BEST[name],
            own.equalities,
        )
    from pymoo.problems import get_problem

    given = get_problem(f"g{int(name[1:])}")

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):
            out = given.evaluate(x, return_as_dictionary=True)
        f, g, h = (np.reshape(out.get(kind, ()), (len(x), -1)) for kind in "FGH")
        return f[:, 0], np.concatenate([g, h], axis=1)

    return Problem(evaluate, given.xl, given.xu, BEST[name], given.n_eq_constr)


def search_session(counter: Counter, problem: Problem, seed: int) -> None:
    """Run `Evolution`, restarted with twice the population whenever it is over."""
    evolution = Evolution(
        np.random.default_rng(seed).uniform(problem.lower, problem.upper),
        sigma=0.2 * (problem.upper - problem.lower),
        population=20 + 2 * len(problem.lower),
        p_f=0.1,
        adapt="matrix",
        bounds=(problem.lower, problem.upper),
        seed=seed,
    )
    while True:
        members, _ = evolution.ask()
        f, g = counter.evaluate(members)
        g, h = np.split(g, [g.shape[1] - counter.equalities], axis=1)
        g, h = (each if each.size else None for each in (g, h))
        evolution.tell(f, g, equalities=h, minimise=True)
        if evolution.stop():
            evolution.restart()


def search_session_with_pymoo(name: str, counter: Counter, problem: Problem, seed: int) -> None:
    """Run SRES or ISRES, with their defaults."""
    from pymoo.core.problem import Problem as Base
    from pymoo.optimize import minimize

    class Given(Base):
        def _evaluate(self, x: np.ndarray, out: dict[str, np.ndarray], *args: object) -> None:
            f, g = counter.evaluate(x)
            out["F"], out["G"] = f, counter.bound(g)

    lower, upper = problem.lower, problem.upper
    m = counter.bound(problem.evaluate(lower[np.newaxis])[1]).shape[1]
    given = Given(n_var=len(lower), n_obj=1, n_ieq_constr=m, xl=lower, xu=upper)
    module = importlib.import_module(f"pymoo.algorithms.soo.nonconvex.{name.lower()}")
    minimize(given, getattr(module, name)(), ("n_eval", counter.left), seed=seed)


def search_session_with_cma(counter: Counter, problem: Problem, seed: int) -> None:
    """Run pycma's augmented Lagrangian from random points until the budget is used."""
    import cma

    rng, width = np.random.default_rng(seed), problem.upper - problem.lower

    def at(u: np.ndarray) -> np.ndarray:
        return problem.lower + width * np.asarray(u)

    while True:
        options = {"seed": int(rng.integers(1, 2**31)), "bounds": [0, 1], "maxfevals": counter.left}
        cma.fmin_con2(
            lambda u: counter.look(at(u))[0],
            rng.uniform(size=len(width)),
            0.2,
            constraints=lambda u: counter.bound(counter.look(at(u))[1]),
            options=options | {"verbose": -9},
        )


SESSION: dict[str, Callable[[Counter, Problem, int], None]] = {
    "Evolution": search_session,
    "sres": partial(search_session_with_pymoo, "SRES"),
    "isres": partial(search_session_with_pymoo, "ISRES"),
    "fmin_con2": search_session_with_cma,
}


class Gap(NamedTuple):
    """The gap of a run of the session after so many evaluations."""

    search: str
    function: str
    seed: int
    evaluations: int
    gap: float


def run_session(name: str, function: str, seed: int, budgets: tuple[int, ...]) -> list[Gap]:
    """Return a run's gaps to the best known objective at each budget."""
    problem = make_problem(function)
    counter = Counter(problem.evaluate, budgets, problem.optimum + ENOUGH, problem.equalities)
    follow(SESSION[name], counter, problem, seed)
    gaps = counter.best - problem.optimum
    return [Gap(name, function, seed, *pair) for pair in zip(budgets, gaps.tolist(), strict=True)]


def run_sessions(options: Any) -> None:
    """Run the session of 2006 where the file has no run; print every gap."""
    if options.quick:
        options.tasks, options.searches = "g08,g24", "Evolution"
        options.runs, options.budget = 1, 2_000
    functions = options.tasks.split(",") if options.tasks else [*BEST]
    searches = options.searches.split(",")
    if strange := [*({*functions} - {*BEST}), *({*searches} - {*SESSION})]:
        expected = f"some of {', '.join(BEST)}; {', '.join(SESSION)}"
        sys.exit(f"--tasks, --searches: read '{strange[0]}'; expected {expected}")
    if not {*functions} <= {*NAMED} and not is_there("pymoo"):
        return
    budgets = (*(b for b in BUDGETS if b < options.budget), options.budget)
    keep = None if options.quick else options.keep or RESULTS / "cec2006.csv"
    known = {row[:4] for row in (read_rows(keep, Gap) if keep else [])}
    # Seed by seed, so that what is there after any time is a smaller study.
    order = itertools.product(range(options.runs or 25), functions, searches)
    wanted = [(name, function, seed, budgets) for seed, function, name in order]
    wanted = [one for one in wanted if (*one[:3], budgets[-1]) not in known]
    with ProcessPoolExecutor(options.workers) as executor:
        for found in executor.map(run_session, *zip(*wanted, strict=True)) if wanted else ():
            fresh = [row for row in found if row[:4] not in known]
            for row in fresh:
                print(*row, flush=True)
            if keep:
                add_rows(keep, fresh)


TABLES = {
    "pycma": run_suites,
    "cec2006": run_sessions,
}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("table", nargs="?", choices=[*TABLES])
    parser.add_argument("--suites", nargs="+", default=[*SUITES], choices=[*SUITES])
    parser.add_argument("--tasks", default="", help="what names contain; functions as g01,g02")
    parser.add_argument("--searches", default=",".join(SESSION), help="of the session")
    parser.add_argument("--runs", type=int, help="seeds of each")
    parser.add_argument("--budget", type=int, default=BUDGETS[-1], help="most evaluations of a run")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="CSV of runs, which are not run twice")
    options = parser.parse_args()
    if not options.table and not options.quick:
        parser.error(f"expected one of {', '.join(TABLES)}")
    for name in [options.table] if options.table else [*TABLES]:
        TABLES[name](options)


if __name__ == "__main__":
    main()
