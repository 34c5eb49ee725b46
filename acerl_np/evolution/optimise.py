"""`optimize`: a whole search in one call, with restarts, constraints and parallel evaluations."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution import arguments
from acerl_np.evolution.arguments import read_bounds, read_point
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.records import Result, Stops, read_limits
from acerl_np.evolution.scaled import Adapt
from acerl_np.support.errors import ConfigError, refuse, refuse_unknown
from acerl_np.support.fields import SEED, Field, Whole

Function = Callable[[np.ndarray], Any]
Callback = Callable[[Evolution], object]

FUNCTIONS = "function", "constraints", "equalities"
"""Arguments that are functions of a point, in the order in which they are called."""
FINAL = {"target", "maxfevals", "callback", "interrupt"}
"""Reasons after which no search begins again."""
REPEATED = 10
"""Points that are told, at most, for each that is evaluated, where whole numbers come back."""
CHUNK = 0.01
"""Seconds that a task of an executor takes at least, where the evaluations so far allow that."""
SHARED = "seed", "population", "integers", "covariance", "p_f"
"""Options that go to `Evolution` as they are, beside those that are read here."""


def optimize(
    function: Function,
    x0: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    *,
    bounds: Any = None,
    constraints: Function | None = None,
    equalities: Function | None = None,
    tolerance: float = 1e-4,
    maximise: bool = False,
    evaluations: float | None = None,
    restarts: int | None = None,
    limits: Stops | None = None,
    vectorised: bool = False,
    executor: Executor | None = None,
    callback: Callback | None = None,
    seed: Whole | None = 0,
    population: int | None = None,
    adapt: Adapt | None = None,
    integers: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    p_f: float = 0.1,
    **unknown: Never,
) -> Result:
    """Minimise a function, or maximise it by `maximise=True`, within bounds and constraints.

    Parameters
    ----------
    function : callable
        float of x, ndarray(float64, (n_parameters,)); nan where it has no value. What it raises ends the
        search, and has what was found, a `Result`, as its attribute `found`.
    x0 : array_like of float, (n_parameters,), optional
        By default a random point of the bounds.
    sigma : array_like of float, optional
        First standard deviation, a number or (n_parameters,): by default a fifth of the bounds' distance.
    bounds : optional
        As `Evolution`. With a number per parameter if there is no `x0`.
    constraints : callable, optional
        Sequence of g_j of x, feasible if none is above 0.
    equalities : callable, optional
        Sequence of h_j of x, feasible if each is within the tolerance of 0.
    tolerance : float
    maximise : bool
    evaluations : float, optional
        Of the function, a whole number, at least 2, at most; no population is larger. By default 10,000
        n_parameters.
    restarts : int, optional
        At most so many times an adapted search that is over begins again with twice the population (IPOP), by
        default 4 times with whole numbers, else never; without a feasible member it always does. Beside them
        each search that `settled` goes on with its whole numbers held.
    limits : Stops, optional
        Its target is a value of the function, to be reached from above unless you maximise.
    vectorised : bool
        The functions take several points at once, (m, n_parameters), and return (m,) numbers,
        (m, n_constraints) and (m, n_equalities).
    executor : concurrent.futures.Executor, optional
        Threads, processes, Dask's or MPI's: evaluates a generation's members in parallel, several to a task
        where they are quick, with the same bytes as a result. Other processes must be able to pickle the
        function: no lambda.
    callback : callable, optional
        Called with the search, an `Evolution` whose returns are minus the function unless you maximise, after
        every generation. A true value ends the search, as does Ctrl-C once a generation is told.
    adapt : {"none", "sigma", "matrix"}, optional
        By default the matrix up to 300 parameters, beyond them a sigma for each, of which you are warned.
    seed, population, integers, covariance, p_f
        As `Evolution`, which has more options.
    **unknown
        Refused, with the name that was meant.

    Returns
    -------
    Result

    Raises
    ------
    InputError, ConfigError
        As `Evolution`; or if the function returned something else than a number.

    Warns
    -----
    RuntimeWarning
        If no member of the first generation has finite values, or parameters are too many for a matrix.

    See Also
    --------
    Evolution : The same, generation by generation.

    Examples
    --------
    >>> from acerl_np.evolution import optimize
    >>> found = optimize(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0], 0.5)
    >>> found.x.round(3), found.feasible
    (array([1., 1.]), True)
    """
    given = locals()
    check_arguments(given, unknown)
    sign = 1.0 if maximise else -1.0
    search, stops = begin_search(given, read_limits(limits), sign)
    usual = 4 if given["whole"].any() and search.can_restart else 0
    restarts = Field(int, 0).read("restarts", usual if restarts is None else restarts)
    if restarts and not search.can_restart:
        refuse("restarts", restarts, "0 with a sigma that follows a schedule", ConfigError)
    evaluate = Evaluations(given)
    insists = (constraints or equalities) is not None and search.can_restart
    over: dict[str, float] = {}

    def finish() -> Result:
        own, paid = search.result(stops), evaluate.paid
        return replace(own, value=sign * own.value, evaluations=paid, reasons=tuple(over))

    try:
        while not over:
            members, _ = search.ask()
            f, g, h = evaluate(members)
            search.tell(f, g, equalities=h, tolerance=tolerance, minimise=not maximise)
            left = stops.maxfevals + search.evaluations - evaluate.paid
            reached = replace(stops, maxfevals=min(left, REPEATED * stops.maxfevals))
            if search.generation == 1 and search.closest is None:
                text = "function: no member of the first generation has finite values"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            over = search.stop(reached)
            if callback is not None and callback(search):
                over["callback"] = 1.0
            again = (insists and search.best is None) or search.restarts < restarts
            if (search.settled or (over and again)) and not over.keys() & FINAL:
                search.restart()
                over = search.stop(reached)
    except KeyboardInterrupt:
        if not search.generation:
            raise
        over = {"interrupt": 1.0}
    except Exception as error:
        over = {"error": 1.0}
        vars(error)["found"] = finish()
        raise
    return finish()


def check_arguments(given: Mapping[str, Any], unknown: Mapping[str, object]) -> None:
    """Refuse names that `optimize` does not have, and what should be callable."""
    own = dict.fromkeys(inspect.signature(Evolution).parameters, "none here: see Evolution")
    meant = own | arguments.MEANT
    for name in unknown.keys() & meant.keys():
        refuse(name, unknown[name], meant[name], ConfigError)
    refuse_unknown(unknown, [*inspect.signature(optimize).parameters][:-1], "no option of optimize")
    for name in ("function", "constraints", "equalities", "callback"):
        one = given[name]
        if not callable(one) and (one is not None or name == "function"):
            refuse(name, one, "a function", ConfigError)
    if given["executor"] is not None and not hasattr(given["executor"], "map"):
        refuse("executor", given["executor"], "a concurrent.futures.Executor", ConfigError)


def begin_search(given: dict[str, Any], limits: Stops, sign: float) -> tuple[Evolution, Stops]:
    """Return the search that the arguments of `optimize` begin, and its limits, of returns.

    Among what was given are put, as "whole", the parameters that are whole numbers.
    """
    x0, sigma, evaluations, adapt = (given[x] for x in ("x0", "sigma", "evaluations", "adapt"))
    lower, upper = read_bounds(given["bounds"], None if x0 is None else read_point(x0).shape)
    closed = np.isfinite(lower).all() and np.isfinite(upper).all()
    if x0 is None:
        if lower.ndim != 1 or not closed:
            expected = "a point, or bounds with a number per parameter"
            refuse("x0", "none", expected + ("" if closed else ", as a side of the bounds is open"))
        seed = given["seed"]
        rng = np.random.default_rng(None if seed is None else SEED.read("seed", seed))
        x0 = rng.uniform(lower, upper)
    if sigma is None:
        if not closed:
            refuse("sigma", "none", "one, or finite bounds on every side", ConfigError)
        sigma = (upper - lower) / 5
    n = lower.size
    if isinstance(evaluations, float) and evaluations.is_integer():
        evaluations = int(evaluations)
    most = Field(int, 2).read("evaluations", 10_000 * n if evaluations is None else evaluations)
    adapt = given["adapt"] = arguments.choose_adapt(adapt, n)
    whole = given["whole"] = arguments.read_whole(given["integers"], lower, upper)
    most = int(min(most, max(2, limits.maxfevals)))
    if given["population"] is None:
        usual, rugged = most if whole.any() else math.inf, arguments.is_mixed(whole)
        members = arguments.choose_population(n, given, rugged=rugged, evaluations=usual)
        given["population"] = min(most, members)
    elif Field(int, 2).read("population", given["population"]) > most:
        refuse("population", given["population"], f"at most the evaluations, {most}", ConfigError)
    shared = {name: given[name] for name in SHARED}
    search = Evolution(x0, sigma=sigma, bounds=(lower, upper), adapt=adapt, **shared)
    target = sign * limits.target if math.isfinite(limits.target) else math.inf
    return search, replace(limits, target=target, maxfevals=min(limits.maxfevals, most))


class Evaluations:
    """Evaluates members as the arguments of `optimize` say; whole numbers that come back are not paid for.

    Attributes
    ----------
    paid : int
        Members evaluated so far.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._own = {name: given[name] for name in FUNCTIONS if given[name] is not None}
        self._run = partial(evaluate_members, self._own, given["vectorised"])
        self._executor = given["executor"]
        self._seconds, self._remembers = math.inf, bool(given["whole"].all())
        self._known: dict[object, list[list[float]]] = {}
        self.paid = 0

    def __call__(self, members: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        """Return values, constraints, equalities of members, None for functions that are not given."""
        keys = [x.tobytes() for x in members] if self._remembers else range(len(members))
        known = self._known if self._remembers else {}
        new = {key: x for key, x in zip(keys, members, strict=True) if key not in known}
        pieces = 1
        if self._executor is not None:
            pieces = math.ceil(len(new) / max(1.0, CHUNK / self._seconds))
        run: Callable[..., Iterable[Any]] = map if self._executor is None else self._executor.map
        told = list(run(self._run, np.array_split([*new.values()], pieces))) if new else []
        known.update(zip(new, (rows for some, _ in told for rows in some), strict=True))
        each = [[known[key][k] for key in keys] for k in range(len(self._own))]
        for name, rows in zip(self._own, each, strict=True):
            if len({len(row) for row in rows}) > 1:
                refuse(name, "different numbers of them", "as many for every x")
        if new:
            self._seconds = max(1e-9, sum(spent for _, spent in told) / len(new))
        self.paid += len(new)
        arrays = dict(zip(self._own, map(np.array, each), strict=True))
        return arrays["function"][:, 0], arrays.get("constraints"), arrays.get("equalities")


def evaluate_members(
    functions: Mapping[str, Function], vectorised: bool, members: np.ndarray
) -> tuple[list[list[list[float]]], float]:
    """Return what each function is at each member, and the seconds spent; runs in an executor's worker."""
    begun = time.perf_counter()
    if vectorised:
        given = [one(members) for one in functions.values()]
        m = len(members)
        for name, all_ in zip(functions, given, strict=True):
            if np.shape(all_)[:1] != (m,):
                expected = f"({m},) or ({m}, n), a row for each point"
                refuse(name, f"shape {np.shape(all_)}", expected)
        told = list(zip(*given, strict=True))
    else:
        told = [tuple(one(x) for one in functions.values()) for x in members]
    rows = [[*map(_read_row, functions, each)] for each in told]
    return rows, time.perf_counter() - begun


def _read_row(name: str, given: Any) -> list[float]:
    if name == "function":
        return [_read_number(name, given)]
    each = np.atleast_1d(np.asarray(given, object))  # which keeps what is no number
    if not len(each):
        refuse(name, "none", "at least one number")
    return [_read_number(name, g) for g in each]


def _read_number(name: str, value: Any) -> float:
    expected = "a number"
    try:
        own = value.item() if isinstance(value, np.ndarray) else value
        if name != "function" and isinstance(own, bool | np.bool_):
            value = bool(own)
            expected += ", such as x[0] - 1 for x[0] <= 1"
            raise TypeError
        if isinstance(own, str):
            raise TypeError
        return float(own)
    except (TypeError, ValueError):
        refuse(name, repr(value), expected)
