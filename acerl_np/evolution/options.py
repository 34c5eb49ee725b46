"""Ranges and choices of `Evolution`'s options, and their check: data in one place."""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any, get_args

from acerl_np.evolution.ranking import Ranking, Shaping
from acerl_np.evolution.sampler import Advantage, Sampler
from acerl_np.evolution.spreads import Adapt, Step
from acerl_np.support.errors import ConfigError, describe
from acerl_np.support.numbers import check_seed, is_whole

MOST = sys.float_info.max

WHOLES = {"population": 2, "noise_decay_every": 1, "n_instances": 1}
"""Whole numbers and the least that each may be."""

REALS: dict[str, tuple[float, float, str]] = {
    "learning_rate": (0.0, MOST, "a finite number of at least 0"),
    "noise_decay": (math.nextafter(0.0, 1.0), 1.0, "a number above 0, at most 1"),
    "cost_limit": (-MOST, math.inf, "a number or infinity"),
    "p_f": (0.0, 1.0, "a number from 0 to 1"),
    "alpha_u": (0.0, MOST, "a finite number of at least 0"),
}
"""Real numbers: the least and the largest, and both in words."""

CHOICES: dict[str, tuple[str, ...]] = {
    "ranking": get_args(Ranking),
    "shaping": get_args(Shaping),
    "step": get_args(Step),
    "adapt": get_args(Adapt),
    "sampler": get_args(Sampler),
    "advantage": get_args(Advantage),
}

OPTIONS = (
    "sigma",
    "learning_rate",
    "population",
    "cost_limit",
    "p_f",
    "ranking",
    "shaping",
    "step",
    "adapt",
    "noise_decay",
    "noise_decay_every",
    "antithetic",
    "n_instances",
    "sampler",
    "alpha_u",
    "advantage",
    "integers",
    "seed",
)
"""Options that a state records and `from_state` gives again."""

NOISE_DECAY = {"none": 0.99, "sigma": 1.0, "matrix": 1.0}
"""Default of noise_decay by what is adapted."""


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as plain values.

    Raises
    ------
    ConfigError
        If one is unknown or out of range, or two do not fit together.
    """
    clean = dict(options)
    for name, choices in CHOICES.items():
        if clean[name] not in choices:
            raise ConfigError(f"{name}: read '{clean[name]}'; expected one of {', '.join(choices)}")
    if clean["noise_decay"] is None:
        clean["noise_decay"] = NOISE_DECAY[clean["adapt"]]
    for name, least in WHOLES.items():
        if not is_whole(clean[name]) or clean[name] < least:
            raise ConfigError(
                f"{name}: read {describe(clean[name])}; expected a whole number of at least {least}"
            )
        clean[name] = int(clean[name])
    clean["seed"] = check_seed(clean["seed"])
    for name, (low, high, expected) in REALS.items():
        clean[name] = _read_real(name, clean[name], low, high, expected)
    clean["antithetic"] = bool(clean["antithetic"])
    if clean["antithetic"] and clean["population"] % 2:
        raise ConfigError(
            f"population: read {clean['population']}; expected an even number with antithetic"
        )
    if clean["adapt"] != "none" and clean["step"] != "natural":
        raise ConfigError(
            f"step: read '{clean['step']}'; expected natural with adapt '{clean['adapt']}'"
        )
    return clean


def _read_real(name: str, value: Any, low: float, high: float, expected: str) -> float:
    if is_number(value):
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        if low <= number <= high:
            return number
        if not math.isnan(number):
            raise ConfigError(f"{name}: read {number}; expected {expected}")
    raise ConfigError(f"{name}: read {describe(value)}; expected {expected}")


def can_restart(adapt: str, noise_decay: float) -> bool:
    """Whether sigma follows no schedule, which would go on where it is."""
    return adapt != "none" and noise_decay == 1.0


def check_restart(adapt: str, noise_decay: float) -> None:
    """Refuse a restart of a sigma that follows a schedule."""
    if not can_restart(adapt, noise_decay):
        raise ConfigError(
            "restart: read a sigma that decays by a schedule; expected an adapted one"
        )


def is_number(value: Any) -> bool:
    """Whether a value is a real number of any kind, but neither true nor false."""
    return isinstance(value, Real) and not isinstance(value, bool)
