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
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution import arguments
from acerl_np.evolution.arguments import read_bounds, read_point, refuse_unknown
from acerl_np.evolution.covariance import MAX_MATRIX
from acerl_np.evolution.distributions import Adapt
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.ranges import Shaping
from acerl_np.evolution.ranking import OwnRanking
from acerl_np.evolution.records import Result, Stops, read_limits
from acerl_np.support.errors import ConfigError
from acerl_np.support.fields import SEED, Field, refuse
from acerl_np.support.numbers import Whole

Function = Callable[[np.ndarray], Any]
Callback = Callable[[Evolution], object]

FINAL = {"target", "maxfevals", "callback", "interrupt"}
"""Reasons after which no search begins again."""
REPEATED = 10
"""Points that are told, at most, for each that is evaluated, where whole numbers come back."""
CHUNK = 0.01
"""Seconds that a task of an executor takes at least, where the evaluations so far allow that."""
SHARED = (
    *("seed", "population", "integers", "covariance", "p_f", "ranking", "shaping"),
    *("learning_rate", "noise_decay", "noise_decay_every", "antithetic"),
)
"""Options that go to `Evolution` as they are, beside those that are read here."""


def optimize(
    function: Function,
    x0: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    *,
    bounds: Any = None,
    constraints: Function | None = None,
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
    ranking: Literal["isr", "cf", "r", "f"] | OwnRanking = "isr",
    shaping: Shaping = "standardised",
    learning_rate: float = 1.0,
    noise_decay: float | None = None,
    noise_decay_every: int = 1,
    antithetic: bool = False,
    **unknown: Never,
) -> Result:
    """Minimise a function, or maximise it by `maximise=True`, within bounds and constraints.

    Parameters
    ----------
    function : callable
        float of x, ndarray(float64, (n_parameters,)); nan where it has no value, any number where constraints
        are violated, which else do not count. What it raises ends the search.
    x0 : array_like of float, (n_parameters,), optional
        By default a random point of the bounds.
    sigma : array_like of float, optional
        First standard deviation, a number or (n_parameters,): by default a fifth of the bounds' distance.
    bounds : optional
        As `Evolution`. With a number per parameter if there is no `x0`.
    constraints : callable, optional
        Sequence of g_j of x, feasible if none is above 0.
    maximise : bool
    evaluations : float, optional
        Of the function, a whole number, at most; one generation is always evaluated. By default 10,000
        n_parameters.
    restarts : int, optional
        At most so many times an adapted search that is over begins again with twice the population (IPOP), by
        default 4 times with whole numbers, else never; without a feasible member it always does.
    limits : Stops, optional
        Its target is a value of the function, to be reached from above unless you maximise.
    vectorised : bool
        Function and constraints take several points at once, (m, n_parameters), and return (m,) numbers and
        (m, n_constraints).
    executor : concurrent.futures.Executor, optional
        Threads, processes, Dask's or MPI's: evaluates a generation's members in parallel, several to a task
        where they are quick, with the same bytes as a result. Other processes must be able to pickle the
        function: no lambda.
    callback : callable, optional
        Called with the search, an `Evolution` whose returns are minus the function unless you maximise, after
        every generation. A true value ends the search, as does Ctrl-C once a generation is told.
    adapt : {"none", "sigma", "matrix"}, optional
        By default the matrix up to 300 parameters, beyond them a sigma for each, of which you are warned.
    seed, population, integers, covariance, p_f, ranking, shaping, learning_rate, noise_decay, \
noise_decay_every, antithetic
        As `Evolution`.
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
    restarts = read_restarts(given, search)
    evaluate = Evaluations(given, sign)
    insists = constraints is not None and search.can_restart
    over: dict[str, float] = {}
    try:
        while not over:
            members, _ = search.ask()
            search.tell(*evaluate(members))
            left = stops.maxfevals + search.evaluations - evaluate.paid
            reached = replace(stops, maxfevals=min(left, REPEATED * stops.maxfevals))
            if search.generation == 1 and search.failed == len(members):
                text = "function: no member of the first generation has finite values"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            over = search.stop(reached)
            if callback is not None and callback(search):
                over["callback"] = 1.0
            again = (insists and search.best is None) or search.restarts < restarts
            if over and again and not over.keys() & FINAL:
                search.restart()
                over = search.stop(reached)
    except KeyboardInterrupt:
        if not search.generation:
            raise
        over = {"interrupt": 1.0}
    result = search.result(stops)
    value, reasons = sign * result.value, tuple(over)
    return replace(result, value=value, evaluations=evaluate.paid, reasons=reasons)


def check_arguments(given: Mapping[str, Any], unknown: Mapping[str, object]) -> None:
    """Refuse names that `optimize` does not have, and what should be callable."""
    for name in unknown.keys() & {"n_instances", "sampler", "alpha_u", "advantage"}:
        expected = "none, as a function of x knows no instances; see Evolution"
        refuse(name, unknown[name], expected, ConfigError)
    if unknown:
        refuse_unknown(unknown, list(inspect.signature(optimize).parameters)[:-1])
    for name in ("function", "constraints", "callback"):
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
    most = Field(int, 1).read("evaluations", 10_000 * n if evaluations is None else evaluations)
    if adapt is None:
        adapt = given["adapt"] = "matrix" if n <= MAX_MATRIX else "sigma"
        if n > MAX_MATRIX:
            text = f"adapt: a sigma for each of {n:,} parameters, as a matrix of over {MAX_MATRIX} is slow"
            warnings.warn(f"{text}; adapt='matrix' has it", RuntimeWarning, stacklevel=3)
    whole = given["whole"] = arguments.read_whole(given["integers"], lower, upper)
    if given["population"] is None and whole.any():
        options = {"rugged": arguments.is_mixed(whole), "evaluations": most}
        given["population"] = arguments.choose_population(n, given, **options)
    shared = {name: given[name] for name in SHARED}
    search = Evolution(x0, sigma=sigma, bounds=(lower, upper), adapt=adapt, **shared)
    target = sign * limits.target if math.isfinite(limits.target) else math.inf
    return search, replace(limits, target=target, maxfevals=min(limits.maxfevals, most))


def read_restarts(given: Mapping[str, Any], search: Evolution) -> int:
    """Return how often a search that is over begins again at most."""
    usual = 4 if given["whole"].any() and search.can_restart else 0
    asked = usual if given["restarts"] is None else given["restarts"]
    restarts: int = Field(int, 0).read("restarts", asked)
    if restarts and not search.can_restart:
        refuse("restarts", restarts, "0 with a sigma that follows a schedule", ConfigError)
    return restarts


class Evaluations:
    """Evaluates members as the arguments of `optimize` say; whole numbers that come back are not paid for.

    Attributes
    ----------
    paid : int
        Members evaluated so far.
    """

    def __init__(self, given: Mapping[str, Any], sign: float) -> None:
        own = given["function"], given["constraints"], given["vectorised"]
        self._run, self._sign = partial(evaluate_members, *own), sign
        self._executor, self._is_free = given["executor"], given["constraints"] is None
        self._seconds, self._remembers = math.inf, bool(given["whole"].all())
        self._known: dict[object, tuple[float, list[float]]] = {}
        self.paid = 0

    def __call__(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return returns and constraints of members, no constraints where there are none."""
        keys = [x.tobytes() for x in members] if self._remembers else range(len(members))
        known = self._known if self._remembers else {}
        new = {key: x for key, x in zip(keys, members, strict=True) if key not in known}
        pieces = 1
        if self._executor is not None:
            pieces = math.ceil(len(new) / max(1.0, CHUNK / self._seconds))
        run: Callable[..., Iterable[Any]] = map if self._executor is None else self._executor.map
        told = list(run(self._run, np.array_split([*new.values()], pieces))) if new else []
        each = (pair for some, rows, _ in told for pair in zip(some, rows, strict=True))
        known.update(zip(new, each, strict=True))
        rows = [known[key][1] for key in keys]
        if len({len(row) for row in rows}) > 1:
            refuse("constraints", "different numbers of them", "as many for every x")
        if new:
            self._seconds = max(1e-9, sum(spent for *_, spent in told) / len(new))
        self.paid += len(new)
        values = self._sign * np.array([known[key][0] for key in keys])
        return values, None if self._is_free else np.array(rows)


def evaluate_members(
    function: Function, constraints: Function | None, vectorised: bool, members: np.ndarray
) -> tuple[list[float], list[list[float]], float]:
    """Return values and constraints of some members, and the seconds spent; runs in an executor's worker."""
    begun = time.perf_counter()
    functions = [function] if constraints is None else [function, constraints]
    if vectorised:
        given = [one(members) for one in functions]
        for name, all_ in zip(("function", "constraints"), given, strict=False):
            if np.shape(all_)[:1] != (len(members),):
                refuse(name, f"shape {np.shape(all_)}", f"one for each of {len(members)} points")
        told = list(zip(*given, strict=True))
    else:
        told = [tuple(one(x) for one in functions) for x in members]
    values = [_read_number("function", value) for value, *_ in told]
    rows = [[g for row in rest for g in _read_row(row)] for _, *rest in told]
    return values, rows, time.perf_counter() - begun


def _read_row(given: Any) -> list[float]:
    each = np.atleast_1d(np.asarray(given, object))  # which keeps what is no number
    if not len(each):
        refuse("constraints", "none", "at least one number")
    return [_read_number("constraints", g) for g in each]


def _read_number(name: str, value: Any) -> float:
    expected = "a number"
    try:
        own = value.item() if isinstance(value, np.ndarray) else value
        if name == "constraints" and isinstance(own, bool | np.bool_):
            value = bool(own)
            expected += ", at most 0 where x is feasible: x[0] - 1 for x[0] <= 1"
            raise TypeError
        if isinstance(own, str):
            raise TypeError
        return float(own)
    except (TypeError, ValueError):
        refuse(name, repr(value), expected)
