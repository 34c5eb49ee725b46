"""`optimize`: a whole search in one call, with restarts, constraints and parallel evaluations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import read_bounds
from acerl_np.evolution.covariance import MAX_MATRIX
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.records import Result
from acerl_np.evolution.stop import Stops
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.numbers import is_whole

Function = Callable[[np.ndarray], float]
Constraints = Callable[[np.ndarray], ArrayLike]


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
    seed: int = 0,
    **options: Any,
) -> Result:
    """Minimise a function, or maximise it, with bounds and constraints if there are any.

    Parameters
    ----------
    function : callable
        float of x, ndarray(float64, (n_parameters,)); nan where it has no value.
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
        At most so many times a search that is over begins again with twice the population (IPOP).
    limits : Stops, optional
        Its target is a value of the function, to be reached from above unless you maximise.
    executor : concurrent.futures.Executor, optional
        Evaluates a generation's members in parallel; the result is the same in every byte.
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

    Examples
    --------
    >>> from acerl_np.evolution import optimize
    >>> found = optimize(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0], sigma=0.5)
    >>> found.x.round(3), found.feasible
    (array([1., 1.]), True)
    """
    if not is_whole(restarts) or restarts < 0:
        raise ConfigError(f"restarts: read {restarts!r}; expected a whole number of at least 0")
    start, first = _find_start(x0, sigma, bounds, seed)
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
    stops = limits or Stops()
    target = sign * stops.target if limits and math.isfinite(stops.target) else math.inf
    stops = dataclasses.replace(stops, target=target, maxfevals=min(stops.maxfevals, evaluations))
    search = Evolution(start, sigma=first, bounds=bounds, seed=seed, **given)
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
        over = search.stop(stops)
        if over and not over.keys() & {"target", "maxfevals"} and search.restarts < restarts:
            search.restart()
            over = search.stop(stops)
    result = search.result(stops)
    return dataclasses.replace(result, value=sign * result.value)


def evaluate_member(
    function: Function, constraints: Constraints | None, x: np.ndarray
) -> tuple[float, list[float]]:
    """Return the function's value and the constraints of one member; runs in an executor's worker."""
    value = _read_number("function", function(x))
    if constraints is None:
        return value, []
    return value, [_read_number("constraints", g) for g in np.atleast_1d(constraints(x))]


def _read_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: read {value!r}; expected a number") from None


def _find_start(
    x0: ArrayLike | None,
    sigma: ArrayLike | None,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    seed: int,
) -> tuple[np.ndarray, ArrayLike]:
    """Return the first mean and sigma, from the bounds where they are not given."""
    shape = np.shape(x0) if x0 is not None else np.broadcast_shapes(*map(np.shape, bounds or ()))
    if bounds is None or len(shape) != 1:
        if x0 is None:
            raise InputError("x0: expected a point, or bounds with a number per parameter")
        if sigma is None:
            raise ConfigError("sigma: expected one, or finite bounds on every side")
        return np.asarray(x0), sigma
    lower, upper = read_bounds(bounds, shape)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()) and (
        x0 is None or sigma is None
    ):
        raise InputError("bounds: read an open side; expected x0 and sigma with it")
    start = np.random.default_rng(seed).uniform(lower, upper) if x0 is None else np.asarray(x0)
    return start, (upper - lower) / 5 if sigma is None else sigma
