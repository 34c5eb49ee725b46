"""What a caller of `Evolution` gives, read and checked: the ranges of its options, and its arrays."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution import ranges, sampler
from acerl_np.evolution.covariance import MAX_MATRIX, Covariance, DiagonalCovariance, FullCovariance
from acerl_np.evolution.rates import count_few
from acerl_np.evolution.scaled import MAX_SIGMA, MIN_SIGMA, Adapt, PerParameter, Step
from acerl_np.support.errors import ConfigError, InputError, refuse
from acerl_np.support.fields import MOST, SEED, Field, read_fields
from acerl_np.support.trust import OwnField

OPTIONS: dict[str, Field] = {
    "population": Field(int, 2),
    "seed": SEED,
    "learning_rate": Field(float, 0.0, MOST),
    "cost_limit": ranges.FIELDS["cost_limit"],
    "p_f": ranges.FIELDS["p_f"],
    "ranking": OwnField(("isr", "cf", "r", "f")),
    "shaping": ranges.FIELDS["shaping"],
    "step": Field(get_args(Step)),
    "adapt": Field(get_args(Adapt)),
    "noise_decay": Field(float, 0.0, 1.0, above=True, optional=True),
    "noise_decay_every": Field(int, 1),
    "antithetic": Field(bool),
    "n_instances": sampler.N_INSTANCES,
    "sampler": ranges.SAMPLER_FIELD,
    "alpha_u": sampler.ALPHA_U,
    "advantage": ranges.ADVANTAGE,
}
"""Options that are one value each, in the order in which a state records them."""

ROUNDING = 1e-8
"""Largest asymmetry of a covariance that is taken for rounding, of its parameters' sigmas."""


def read_options(given: dict[str, Any], n: int) -> dict[str, Any]:
    """Return the options of `OPTIONS` among what was given, as plain values that fit together."""
    given = {**given, "antithetic": bool(given["antithetic"])}
    if given["seed"] is None:
        given["seed"] = secrets.randbits(63)
    if given["population"] is None:
        given["population"] = choose_population(n, given, rugged=is_mixed(given["whole"]))
    own = read_fields(OPTIONS, given)
    if own["noise_decay"] is None:
        own["noise_decay"] = 0.99 if own["adapt"] == "none" else 1.0
    if own["antithetic"] and own["population"] % 2:
        refuse("population", own["population"], "an even number with antithetic", ConfigError)
    if own["adapt"] != "none" and own["step"] != "natural":
        refuse("step", f"'{own['step']}'", f"natural with adapt '{own['adapt']}'", ConfigError)
    return own


def choose_adapt(adapt: Adapt | None, n: int) -> Adapt:
    """Return what a search for n parameters adapts where nothing is given; say so where it is no matrix."""
    if adapt is not None:
        return adapt
    if n <= MAX_MATRIX:
        return "matrix"
    text = f"adapt: a sigma for each of {n:,} parameters, as a matrix of over {MAX_MATRIX} is slow"
    warnings.warn(f"{text}; adapt='matrix' has it", RuntimeWarning, stacklevel=4)
    return "sigma"


def is_mixed(whole: np.ndarray) -> bool:
    """Return whether some parameters are whole numbers, and some are not."""
    return bool(whole.any() and not whole.all())


def choose_population(
    n: int, options: Mapping[str, Any], *, rugged: bool, evaluations: float = math.inf
) -> int:
    """Return the members of a search for n parameters where none are given.

    Those of CMA-ES, more if it is `rugged`; but 50 generations of the evaluations there are.
    """
    few = count_few(n)
    least = 10 + n if rugged else few
    least = 64 if options["adapt"] == "none" else int(max(few, min(least, evaluations / 50)))
    return least + (least % 2 if options.get("antithetic") else 0)


MEANT = {
    "maxiter": "evaluations, the generations times the population",
    **dict.fromkeys(("maxfun", "maxfev", "maxfevals"), "evaluations"),
    "popsize": "population",
    **dict.fromkeys(("tol", "ftol", "tolfun"), "limits=Stops(tolfun=...)"),
    **dict.fromkeys(("xtol", "tolx"), "limits=Stops(tolx=...)"),
}
"""Names of SciPy's and pycma's options, and what to give here."""


def read_floats(
    name: str, values: ArrayLike, *shapes: tuple[int, ...], error: type[InputError] = InputError
) -> np.ndarray:
    """Return the values as a new float64 array, of one of these shapes if there are any."""
    try:
        array = np.asarray(values)
    except ValueError:  # a ragged list
        array = np.array("")
    if array.dtype.kind not in "fiu":
        refuse(name, f"{type(values).__name__} of other values", "real numbers", error)
    if shapes and array.shape not in shapes:
        expected = " or ".join(str(shape) if shape else "a number" for shape in shapes)
        refuse(name, f"shape {array.shape}", expected, error)
    return array.astype(np.float64)


def read_points(name: str, points: ArrayLike, n: int) -> np.ndarray:
    """Return finite points, float64 (m, n_parameters), of one or several."""
    x = np.atleast_2d(read_floats(name, points))
    if x.shape[1:] != (n,):
        refuse(name, f"shape {x.shape}", f"(n_points, {n})")
    for k in np.flatnonzero(~np.isfinite(x).all(axis=1)):
        refuse(name, f"{x[k].tolist()} as point {k}", "finite numbers")
    return x


def read_point(x0: ArrayLike, *shapes: tuple[int, ...]) -> np.ndarray:
    """Return a point to start from, float64 (n_parameters,)."""
    mean = read_floats("x0", x0, *shapes)
    if mean.ndim != 1 or mean.size == 0:
        refuse("x0", f"shape {mean.shape}", "(n_parameters,), at least one")
    for k in np.flatnonzero(~np.isfinite(mean)):
        refuse("x0", f"{mean[k]} for parameter {k}", "finite numbers")
    return mean


def read_sigma(sigma: ArrayLike, n: int, adapt: str) -> np.ndarray:
    """Return the first sigma of each of n parameters."""
    first = read_floats("sigma", sigma, (), (n,), error=ConfigError)
    if not ((first >= MIN_SIGMA) & (first < np.inf)).all():
        refuse("sigma", repr(sigma), f"at least {MIN_SIGMA:g}, and finite", ConfigError)
    if adapt == "matrix" and n > FullCovariance.most:
        most = f"at most {FullCovariance.most:,}, or adapt 'sigma'"
        refuse("adapt", f"'matrix' for {n:,} parameters", most, ConfigError)
    if adapt != "none" and (first > MAX_SIGMA).any():
        refuse("sigma", repr(sigma), f"at most {MAX_SIGMA:g} with adapt '{adapt}'", ConfigError)
    return np.array(np.broadcast_to(first, n))


def split_bounds(bounds: Any, shape: tuple[int, ...] | None) -> list[Any]:
    """Return least and largest values of bounds in any form, of parameters of a shape if it is known."""
    sides: list[Any] = [None, None]
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # SciPy's Bounds
        sides = [bounds.lb, bounds.ub]
    elif bounds is not None:
        try:
            sides = list(bounds)
            # Two of two each are pairs, as more would be, but for a tuple, which has a side each.
            two = shape in (None, (2,)) and all(np.shape(side) == (2,) for side in sides)
            pairs = len(sides) != 2 or (two and not isinstance(bounds, tuple))
            two = two and all(type(side) is tuple for side in sides)
            if pairs:
                sides = [list(side) for side in zip(*sides, strict=True)]
        except (TypeError, ValueError):
            sides = []
        if len(sides) != 2:
            refuse("bounds", bounds, "a pair: least values, largest values; or a pair for each")
        if two and not pairs and all(None in side or side[0] < side[1] for side in sides):
            refuse("bounds", bounds, "lists: [(least, largest), ...], or two of n each")
    for k, none in enumerate((-np.inf, np.inf)):
        if sides[k] is None:
            sides[k] = none
        elif isinstance(sides[k], list | tuple):
            sides[k] = [none if value is None else value for value in sides[k]]
    return sides


def read_bounds(bounds: Any, shape: tuple[int, ...] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each parameter; None stands for the bounds' own shape."""
    low, high = (read_floats(f"bounds[{k}]", a) for k, a in enumerate(split_bounds(bounds, shape)))
    shape = max(low.shape, high.shape, key=len) if shape is None else shape
    lower = np.broadcast_to(read_floats("bounds[0]", low, (), shape), shape)
    upper = np.broadcast_to(read_floats("bounds[1]", high, (), shape), shape)
    for k in np.flatnonzero(~(lower < upper)):
        expected = (
            "a tuple of all least and all largest values, or a pair for each parameter, each above"
        )
        expected += " its least (leave out a parameter that is fixed)"
        refuse("bounds", f"{lower[k]} to {upper[k]} for parameter {k}", expected)
    return lower, upper


def read_whole(integers: ArrayLike | None, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return which parameters are whole numbers, ndarray(bool, (n_parameters,))."""
    n = lower.size
    whole, array = np.zeros(n, bool), np.asarray(() if integers is None else integers)
    if array.dtype.kind == "b" and array.shape == (n,):
        whole |= array
    elif array.size:
        if array.dtype.kind not in "iu" or array.ndim != 1 or ((array < -n) | (array >= n)).any():
            expected = f"positions of parameters, {-n} to {n - 1}, or {n} true or false"
            refuse("integers", repr(integers), expected)
        whole[array] = True
    for k in np.flatnonzero(whole & (np.ceil(lower) > np.floor(upper))):
        read = f"{lower[k]} to {upper[k]} for parameter {k}"
        refuse("bounds", read, "a whole number between")
    return whole


def make_distribution(
    options: dict[str, Any], first: np.ndarray, limits: tuple[np.ndarray, np.ndarray] | None
) -> PerParameter | Covariance:
    """Return the distribution of a search's start, its sigmas within these limits."""
    decay = options["noise_decay"], options["noise_decay_every"]
    if options["adapt"] == "none":
        return PerParameter(first, *decay, step=options["step"], least=limits and limits[0])
    kind = FullCovariance if options["adapt"] == "matrix" else DiagonalCovariance
    return kind(first, *decay, limits=limits)


def begin_with(
    distribution: PerParameter | Covariance, covariance: ArrayLike | None
) -> PerParameter | Covariance:
    """Return the distribution of a start with this covariance, its diagonal for a diagonal one."""
    if covariance is None:
        return distribution
    if not isinstance(distribution, Covariance):
        raise ConfigError("covariance: expected adapt 'matrix' or 'sigma' with it")
    array = read_floats("covariance", covariance, distribution.state.covariance.shape)
    if array.ndim == 2:  # an inverse is symmetric but for rounding
        length = np.sqrt(np.abs(np.diagonal(array)))
        if (np.abs(array - array.T) <= ROUNDING * np.outer(length, length)).all():
            array = array / 2 + array.T / 2
    try:
        return distribution.unpack({**distribution.pack(), "covariance": array})
    except InputError:
        raise InputError(
            "covariance: expected a symmetric matrix, positive definite, or positive variances"
        ) from None
