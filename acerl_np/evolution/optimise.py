"""`optimize`: a whole search in one call, with restarts, constraints and parallel evaluations."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import read_bounds, read_point
from acerl_np.evolution.covariance import MAX_MATRIX
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.options import can_restart, check_restart
from acerl_np.evolution.records import Result
from acerl_np.evolution.stop import Stops, read_limits
from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.numbers import check_seed, is_whole

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
        with constraints 20 + 2 n_parameters, and p_f is 0.1.

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
    for name, given_ in (
        ("function", function),
        ("constraints", constraints),
        ("callback", callback),
    ):
        if not callable(given_) and (given_ is not None or name == "function"):
            raise ConfigError(f"{name}: read {describe(given_)}; expected a function")
    if executor is not None and not hasattr(executor, "map"):
        raise ConfigError(
            f"executor: read {describe(executor)}; expected a concurrent.futures.Executor"
        )
    stops = read_limits(limits)
    if not is_whole(restarts) or restarts < 0:
        raise ConfigError(f"restarts: read {restarts!r}; expected a whole number of at least 0")
    start, first = _find_start(x0, sigma, bounds, check_seed(seed))
    n = start.size
    if evaluations is None:
        evaluations = 10_000 * n
    if not is_whole(evaluations) or evaluations < 1:
        raise ConfigError(
            f"evaluations: read {evaluations!r}; expected a whole number of at least 1"
        )
    given: dict[str, Any] = {
        "population": 4 + int(3 * math.log(n)),
        "adapt": "matrix" if n <= MAX_MATRIX else "sigma",
    }
    if constraints:  # chosen on twelve functions, see examples/evolution_cec2006.py
        given |= {"population": 20 + 2 * n, "p_f": 0.1}
    given |= options
    sign = 1.0 if maximise else -1.0
    target = sign * stops.target if math.isfinite(stops.target) else math.inf
    stops = dataclasses.replace(stops, target=target, maxfevals=min(stops.maxfevals, evaluations))
    search = Evolution(start, sigma=first, bounds=bounds, seed=seed, **given)
    schedule = given["adapt"], given.get("noise_decay") or 1.0
    if restarts:
        check_restart(*schedule)
    insists = constraints is not None and can_restart(*schedule)
    evaluate = partial(evaluate_member, function, constraints)
    over: dict[str, float] = {}
    while not over:
        members, _ = search.ask()
        run: Callable[..., Iterable[Any]] = map if executor is None else executor.map
        told = list(run(evaluate, list(members)))
        values = sign * np.array([value for value, _ in told])
        if constraints is None:
            search.tell(values)
        else:
            if len({len(g) for _, g in told}) != 1:
                raise InputError(
                    "constraints: read different numbers of them; expected as many for every x"
                )
            search.tell(values, np.array([g for _, g in told]))
        if search.generation == 1 and search.failed == search.population:
            warnings.warn(
                "function: no member of the first generation has a finite value and constraints",
                RuntimeWarning,
                stacklevel=2,
            )
        over = search.stop(stops)
        if callback is not None and callback(search):
            over["callback"] = 1.0
        if over and not over.keys() & FINAL:
            lost = insists and search.best is None
            if lost or search.restarts < restarts:
                search.restart()
                over = search.stop(stops)
    result = search.result(stops)
    return dataclasses.replace(result, value=sign * result.value, reasons=tuple(over))


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
        raise InputError(f"constraints: read {describe(given)}; expected numbers") from None
    if not len(each):
        raise InputError("constraints: read none; expected at least one number")
    return value, [_read_number("constraints", g) for g in each]


def _read_number(name: str, value: Any) -> float:
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value.item() if isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: read {describe(repr(value))}; expected a number") from None


def _find_start(
    x0: ArrayLike | None,
    sigma: ArrayLike | None,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    seed: int,
) -> tuple[np.ndarray, ArrayLike]:
    """Return the first mean and sigma, from the bounds where they are not given."""
    point = None if x0 is None else read_point(x0)
    shape = _find_shape(bounds) if point is None else point.shape
    if point is None and len(shape) != 1:
        read_bounds(bounds, shape)  # what is no pair is told first
        raise InputError("x0: read none; expected a point, or bounds with a number per parameter")
    lower, upper = read_bounds(bounds, shape)
    closed = np.isfinite(lower).all() and np.isfinite(upper).all()
    if point is None and not closed:
        raise InputError("x0: read none; expected a point, as a side of the bounds is open")
    if sigma is None and not closed:
        raise ConfigError("sigma: read none; expected one, or finite bounds on every side")
    start = np.random.default_rng(seed).uniform(lower, upper) if point is None else point
    return start, (upper - lower) / 5 if sigma is None else sigma


def _find_shape(bounds: Any) -> tuple[int, ...]:
    """Return the shape of bounds that may be anything, () of what is none."""
    try:
        lower, upper = bounds
        return np.broadcast_shapes(np.shape(lower), np.shape(upper))
    except (TypeError, ValueError):
        return ()
