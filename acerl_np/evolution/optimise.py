"""`optimize`: a whole search in one call, with restarts, constraints and parallel evaluations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import can_restart, check_restart, read_bounds, read_point
from acerl_np.evolution.covariance import MAX_MATRIX
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.records import Result, Stops, read_limits
from acerl_np.support.errors import ConfigError
from acerl_np.support.fields import SEED, Field, refuse

Function = Callable[[np.ndarray], SupportsFloat]
Constraints = Callable[[np.ndarray], ArrayLike]
Callback = Callable[[Evolution], object]

FINAL = {"target", "maxfevals", "callback"}
"""Reasons after which no search begins again."""


def optimize(
    function: Function,
    x0: ArrayLike | None = None,
    *,
    sigma: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    constraints: Constraints | None = None,
    maximise: bool = False,
    evaluations: int | None = None,
    restarts: int = 0,
    limits: Stops | None = None,
    executor: Executor | None = None,
    callback: Callback | None = None,
    seed: int = 0,
    **options: Any,
) -> Result:
    """Minimise a function, or maximise it, with bounds and constraints if there are any.

    Parameters
    ----------
    function : callable
        float of x, ndarray(float64, (n_parameters,)); nan where it has no value, also in place of an error:
        what it raises ends the search. Where constraints are violated, any number in place of nan: else
        they do not count.
    x0 : array_like of float, (n_parameters,), optional
        By default a random point of the bounds.
    sigma : array_like of float, optional
        First standard deviation, a number or (n_parameters,): by default a fifth of the bounds' distance.
    bounds : (array_like of float, array_like of float), optional
        As `Evolution`. At least one of them (n_parameters,) if there is no `x0`.
    constraints : callable, optional
        Sequence of g_j of x, feasible if none is above 0.
    maximise : bool
    evaluations : int, optional
        Of the function, at most; one generation is always evaluated. By default 10,000 n_parameters.
    restarts : int
        At most so many times a search that is over begins again with twice the population (IPOP). One that
        has found no feasible member does so anyway, if its sigma is adapted.
    limits : Stops, optional
        Its target is a value of the function, to be reached from above unless you maximise.
    executor : concurrent.futures.Executor, optional
        Threads, processes, Dask's or MPI's: evaluates a generation's members in parallel, with the same
        bytes as a result. Other processes must be able to pickle the function: no lambda.
    callback : callable, optional
        Called with the search, an `Evolution`, after every generation: to show it, to write its state, to
        keep it should you interrupt. A true value ends the search. Its returns are to be maximised: minus
        the function, unless you maximise.
    seed : int
    **options
        Further options of `Evolution`, such as `population`, `adapt` and `integers`. By default the matrix is
        adapted up to 100 parameters, beyond them a sigma for each; the population is 4 + 3 log(n_parameters),
        with constraints 20 + 2 n_parameters, and p_f is 0.1. None that deals instances: the function has one.

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
        If no member of the first generation has a finite value and constraints.

    Examples
    --------
    >>> from acerl_np.evolution import optimize
    >>> found = optimize(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0], sigma=0.5)
    >>> found.x.round(3), found.feasible
    (array([1., 1.]), True)
    """
    functions = {"function": function, "constraints": constraints, "callback": callback}
    for name, given in functions.items():
        if not callable(given) and (given is not None or name == "function"):
            refuse(name, given, "a function", ConfigError)
    if executor is not None and not hasattr(executor, "map"):
        refuse("executor", executor, "a concurrent.futures.Executor", ConfigError)
    for name in ("n_instances", "sampler", "alpha_u", "advantage"):
        if name in options:
            expected = "none, as a function of x knows no instances; see Evolution"
            refuse(name, options[name], expected, ConfigError)
    stops = read_limits(limits)
    restarts = Field(int, 0).read("restarts", restarts)
    start, first = _find_start(x0, sigma, bounds, SEED.read("seed", seed))
    n = start.size
    most = Field(int, 1).read("evaluations", 10_000 * n if evaluations is None else evaluations)
    chosen: dict[str, Any] = {"population": 4 + int(3 * math.log(n))}
    if constraints is not None:  # chosen on twelve functions, see examples/evolution_cec2006.py
        chosen = {"population": 20 + 2 * n, "p_f": 0.1}
    chosen = {"adapt": "matrix" if n <= MAX_MATRIX else "sigma", **chosen, **options}
    sign = 1.0 if maximise else -1.0
    target = sign * stops.target if math.isfinite(stops.target) else math.inf
    stops = replace(stops, target=target, maxfevals=min(stops.maxfevals, most))
    search = Evolution(start, sigma=first, bounds=bounds, seed=seed, **chosen)
    schedule = chosen["adapt"], chosen.get("noise_decay") or 1.0
    if restarts:
        check_restart(*schedule)
    insists = constraints is not None and can_restart(*schedule)
    run: Callable[..., Iterable[Any]] = map if executor is None else executor.map
    evaluate = partial(evaluate_member, function, constraints)
    over: dict[str, float] = {}
    while not over:
        members, _ = search.ask()
        told = list(run(evaluate, list(members)))
        if len({len(g) for _, g in told}) != 1:
            refuse("constraints", "different numbers of them", "as many for every x")
        values = sign * np.array([value for value, _ in told])
        search.tell(values, None if constraints is None else np.array([g for _, g in told]))
        if search.generation == 1 and search.failed == search.population:
            warnings.warn(
                "function: no member of the first generation has a finite value and constraints",
                RuntimeWarning,
                stacklevel=2,
            )
        over = search.stop(stops)
        if callback is not None and callback(search):
            over["callback"] = 1.0
        again = (insists and search.best is None) or search.restarts < restarts
        if over and again and not over.keys() & FINAL:
            search.restart()
            over = search.stop(stops)
    result = search.result(stops)
    return replace(result, value=sign * result.value, reasons=tuple(over))


def evaluate_member(
    function: Function, constraints: Constraints | None, x: np.ndarray
) -> tuple[float, list[float]]:
    """Return the function's value and the constraints of one member; runs in an executor's worker."""
    value = _read_number("function", function(x))
    if constraints is None:
        return value, []
    given = constraints(x)
    try:
        each = np.atleast_1d(given)
    except ValueError:  # a ragged list
        refuse("constraints", given, "numbers")
    if not len(each):
        refuse("constraints", "none", "at least one number")
    return value, [_read_number("constraints", g) for g in each]


def _read_number(name: str, value: Any) -> float:
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value.item() if isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError):
        refuse(name, repr(value), "a number")


def _find_start(
    x0: ArrayLike | None,
    sigma: ArrayLike | None,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    seed: int,
) -> tuple[np.ndarray, ArrayLike]:
    """Return the first mean and sigma, from the bounds where they are not given."""
    start = None if x0 is None else read_point(x0)
    lower, upper = read_bounds(bounds, _find_shape(bounds) if start is None else start.shape)
    closed = np.isfinite(lower).all() and np.isfinite(upper).all()
    if start is None:
        if lower.ndim != 1:
            refuse("x0", "none", "a point, or bounds with a number per parameter")
        if not closed:
            refuse("x0", "none", "a point, as a side of the bounds is open")
        start = np.random.default_rng(seed).uniform(lower, upper)
    if sigma is None and not closed:
        refuse("sigma", "none", "one, or finite bounds on every side", ConfigError)
    return start, (upper - lower) / 5 if sigma is None else sigma


def _find_shape(bounds: Any) -> tuple[int, ...]:
    """Return the shape of bounds that may be anything, () of what is none."""
    try:
        lower, upper = bounds
        return np.broadcast_shapes(np.shape(lower), np.shape(upper))
    except (TypeError, ValueError):
        return ()
