"""What a caller of `Evolution` gives as arrays, read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.bounds import limit_sigma
from acerl_np.evolution.covariance import MAX_MATRIX, Covariance, DiagonalCovariance, FullCovariance
from acerl_np.evolution.spreads import MAX_SIGMA, MIN_SIGMA, PerParameter
from acerl_np.support.errors import ConfigError, InputError, describe

ROUNDING = 1e-8
"""Largest asymmetry of a covariance that is taken for rounding, of its parameters' sigmas."""


def read_floats(name: str, values: ArrayLike, error: type[InputError] = InputError) -> np.ndarray:
    """Return the values as a new float64 array."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiu":
            return array.astype(np.float64)
    except ValueError:  # a ragged list
        pass
    raise error(f"{name}: read {type(values).__name__} of other values; expected real numbers")


def read_point(x0: ArrayLike) -> np.ndarray:
    """Return a point to start from, float64 (n_parameters,)."""
    mean = read_floats("x0", x0)
    if mean.ndim != 1 or mean.size == 0:
        raise InputError(f"x0: read shape {mean.shape}; expected (n_parameters,), at least one")
    lost = np.flatnonzero(~np.isfinite(mean))
    if len(lost):
        raise InputError(
            f"x0: read {mean[lost[0]]} for parameter {lost[0]}; expected finite numbers"
        )
    return mean


def read_start(x0: ArrayLike, sigma: ArrayLike, adapt: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first mean and its sigmas, both float64 (n_parameters,)."""
    mean = read_point(x0)
    first = read_floats("sigma", sigma, ConfigError)
    if first.shape not in ((), mean.shape):
        raise ConfigError(f"sigma: read shape {first.shape}; expected a number or {mean.shape}")
    if not ((first >= MIN_SIGMA) & (first < np.inf)).all():
        raise ConfigError(f"sigma: read {sigma!r}; expected at least {MIN_SIGMA:g}, and finite")
    if adapt == "matrix" and mean.size > MAX_MATRIX:
        raise ConfigError(
            f"adapt: read 'matrix' for {mean.size:,} parameters; expected at most {MAX_MATRIX}, "
            "or adapt 'sigma'"
        )
    if adapt != "none" and (first > MAX_SIGMA).any():
        raise ConfigError(
            f"sigma: read {sigma!r}; expected at most {MAX_SIGMA:g} with adapt '{adapt}'"
        )
    return mean, np.array(np.broadcast_to(first, mean.shape))


def read_bounds(
    bounds: tuple[ArrayLike, ArrayLike] | None, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each parameter."""
    if bounds is None:
        bounds = (-np.inf, np.inf)
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise InputError(
            f"bounds: read {describe(bounds)}; expected a pair: least values, largest values"
        ) from None
    read = []
    for name, values in (("bounds[0]", lower), ("bounds[1]", upper)):
        array = read_floats(name, values)
        if array.shape not in ((), shape):
            raise InputError(f"{name}: read shape {array.shape}; expected a number or {shape}")
        read.append(np.broadcast_to(array, shape))
    wrong = np.flatnonzero(~(read[0] < read[1]))
    if len(wrong):
        k = wrong[0]
        raise InputError(
            f"bounds: read {read[0][k]} to {read[1][k]} for parameter {k}; expected all least values, then "
            "all largest ones, each above its least (leave out a parameter that is fixed)"
        )
    return read[0], read[1]


def read_whole(integers: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return which parameters are whole numbers, ndarray(bool, (n_parameters,))."""
    whole = np.zeros(shape, bool)
    if integers is None:
        return whole
    array = np.asarray(integers)
    if array.dtype.kind == "b" and array.shape == shape:
        return array.copy()
    if array.size == 0:
        return whole
    n = shape[0]
    if array.dtype.kind not in "iu" or array.ndim != 1 or ((array < 0) | (array >= n)).any():
        raise InputError(
            f"integers: read {integers!r}; expected positions of parameters, 0 to {n - 1}, "
            f"or {n} true or false"
        )
    whole[array] = True
    return whole


def check_whole(lower: np.ndarray, upper: np.ndarray, whole: np.ndarray) -> None:
    """Refuse bounds that leave a whole parameter no number."""
    empty = np.flatnonzero(whole & (np.ceil(lower) > np.floor(upper)))
    if len(empty):
        k = empty[0]
        raise InputError(
            f"bounds: read {lower[k]} to {upper[k]} for parameter {k}; expected a whole number between"
        )


def read_matrix(covariance: ArrayLike | None, n: int, adapt: str) -> np.ndarray | None:
    """Return the first covariance, (n, n) for "matrix", (n,) for "sigma"; None without one."""
    if covariance is None:
        return None
    shape = {"matrix": (n, n), "sigma": (n,)}.get(adapt)
    if shape is None:
        raise ConfigError("covariance: expected adapt 'matrix' or 'sigma' with it")
    array = read_floats("covariance", covariance)
    if array.shape != shape:
        raise InputError(f"covariance: read shape {array.shape}; expected {shape}")
    if array.ndim == 2:  # an inverse is symmetric but for rounding
        length = np.sqrt(np.abs(np.diagonal(array)))
        if (np.abs(array - array.T) <= ROUNDING * np.outer(length, length)).all():
            array = array / 2 + array.T / 2
    return array


def make_spread(
    options: dict[str, np.ndarray], matrix: np.ndarray | None
) -> PerParameter | Covariance:
    """Return the spread of a search's start, with this covariance."""
    first, adapt = options["sigma"], str(options["adapt"])
    decay = float(options["noise_decay"]), int(options["noise_decay_every"])
    limits = limit_sigma(options["bounds[0]"], options["bounds[1]"], options["integers"])
    if adapt == "none":
        step: Any = str(options["step"])
        return PerParameter(first, *decay, step=step, least=limits and limits[0])
    kind = FullCovariance if adapt == "matrix" else DiagonalCovariance
    spread: Covariance = kind(first, *decay, limits=limits)
    if matrix is None:
        return spread
    try:
        return spread.unpack({**spread.pack(), "covariance": matrix})
    except InputError:
        raise InputError(
            "covariance: expected a symmetric matrix, positive definite, or positive variances"
        ) from None
