"""Training options: names, defaults, ranges, and the symbols that the paper uses for them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from acerl_np.evolution.ranking import Ranking, Shaping
from acerl_np.evolution.sampler import Advantage, Sampler
from acerl_np.evolution.spreads import MIN_NOISE_STD
from acerl_np.policies.network import Initialisation
from acerl_np.problem.tables import MAX_HORIZON
from acerl_np.support.errors import ConfigError, describe, make_printable
from acerl_np.support.files import read_text
from acerl_np.support.numbers import is_real, is_whole

Outcome = Literal["last", "best"]


@dataclass(frozen=True)
class Config:
    """Options of a training run; the defaults are the paper's, or where it is silent the released code's.

    Attributes
    ----------
    generations : int
        G, generations to train.
    population : int
        lambda, members of a generation.
    learning_rate : float
        alpha, step along the estimated gradient.
    noise_std : float
        sigma, standard deviation of the parameter noise.
    noise_decay : float
        Factor on sigma after every `noise_decay_every` generations.
    noise_decay_every : int
    cost_limit : float
        xi, limit on the mean tardiness, s.
    p_f : float
        Probability of comparing by return although a member is infeasible.
    alpha_u : float
        Exploration factor of the instance sampler.
    ranking : {"isr", "cf", "r", "f"}
        Intrinsic stochastic ranking, return - cost, rank of the return, the return.
    sampler : {"ais", "uniform", "random", "single"}
        Adaptive, each instance equally often, independent draws, the first instance only.
    shaping : {"standardised", "rank"}
        Utilities standardised within the instance and over the population, or the literal ranks.
    antithetic : bool
        Mirrored pairs of members.
    hidden : tuple of int
        Sizes of the hidden layers.
    advantage : {"paper", "released"}
        Sign of the sampler's metric u.
    initialisation : {"he", "torch", "small"}
        He normal weights and zero biases; PyTorch's default for linear layers; He with a last layer of a
        hundredth.
    biases : bool
        Whether the network's layers have biases.
    standardise : bool
        Whether an observation is standardised as a whole before the first layer.
    curve_every : int
        Generations between two looks at theta on every training record, 0 for none.
    curve_trials : int
        Episodes per record and look.
    outcome : {"last", "best"}
        The policy is the last theta, or the one of the best look: the largest share of trials within the
        limit, then the smallest mean makespan.
    horizon : float or None
        s after which an episode is stopped; a member that has not finished ranks worst.

    Raises
    ------
    ConfigError
        If a value has the wrong type or lies outside its range; the message names the field.
    """

    generations: int = 128
    population: int = 256
    learning_rate: float = 0.06
    noise_std: float = 0.1
    noise_decay: float = 0.99
    noise_decay_every: int = 50
    cost_limit: float = 50.0
    p_f: float = 0.5
    alpha_u: float = 1.0
    ranking: Ranking = "isr"
    sampler: Sampler = "ais"
    shaping: Shaping = "standardised"
    antithetic: bool = False
    hidden: tuple[int, ...] = (128, 128)
    advantage: Advantage = "paper"
    initialisation: Initialisation = "he"
    biases: bool = True
    standardise: bool = True
    curve_every: int = 8
    curve_trials: int = 3
    outcome: Outcome = "last"
    horizon: float | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in WHOLE_RANGES.items():
            value = getattr(self, name)
            if not is_whole(value) or not least <= value <= most:
                _fail(name, value, f"a whole number from {least} to {most:,}")
            object.__setattr__(self, name, int(value))
        for name, (low, high, open_below) in REAL_RANGES.items():
            value = getattr(self, name)
            if not is_real(value) or not low <= value <= high or (open_below and value == low):
                _fail(
                    name, value, f"a number {'above' if open_below else 'from'} {low:g} to {high:g}"
                )
            object.__setattr__(self, name, float(value))
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                _fail(name, getattr(self, name), f"one of {', '.join(choices)}")
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                _fail(name, getattr(self, name), "true or false")
        if self.antithetic and self.population % 2:
            _fail("population", self.population, "an even number with antithetic")
        if self.outcome == "best" and self.curve_every == 0:
            _fail("curve_every", 0, "at least 1 with outcome best")
        horizon: object = self.horizon
        if horizon is not None:
            if not is_real(horizon) or not 0.0 < self.horizon <= MAX_HORIZON:  # type: ignore[operator]
                _fail("horizon", horizon, f"seconds above 0 to {MAX_HORIZON:g}")
            object.__setattr__(self, "horizon", float(self.horizon))  # type: ignore[arg-type]
        hidden = self.hidden
        if (
            not isinstance(hidden, tuple | list)
            or len(hidden) > 10
            or not all(is_whole(n) and 1 <= n <= 4096 for n in hidden)
        ):
            _fail("hidden", hidden, "at most 10 layer sizes from 1 to 4096")
        object.__setattr__(self, "hidden", tuple(int(n) for n in hidden))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values, ready for JSON."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> Config:
        """Build a configuration from options, defaults for those not given.

        Raises
        ------
        ConfigError
            If a key is unknown or a value is not usable.
        """
        known = [field.name for field in fields(cls)]
        for key in options:
            if key not in known:
                raise ConfigError(
                    f"{describe(key)}: unknown option; expected one of {', '.join(known)}"
                )
        return cls(**options)


WHOLE_RANGES = {
    "generations": (0, 10_000_000),
    "population": (2, 1_000_000),
    "noise_decay_every": (1, 10_000_000),
    "curve_every": (0, 10_000_000),
    "curve_trials": (1, 100_000),
}
REAL_RANGES = {
    "learning_rate": (0.0, 1e6, False),
    "noise_std": (MIN_NOISE_STD, 1e3, False),
    "noise_decay": (0.0, 1.0, True),
    "cost_limit": (0.0, 1e9, False),
    "p_f": (0.0, 1.0, False),
    "alpha_u": (0.0, 1e6, False),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "ranking": get_args(Ranking),
    "sampler": get_args(Sampler),
    "shaping": get_args(Shaping),
    "advantage": get_args(Advantage),
    "initialisation": get_args(Initialisation),
    "outcome": get_args(Outcome),
}
SWITCHES = ("antithetic", "biases", "standardise")


def _fail(name: str, value: object, expected: str) -> None:
    raise ConfigError(f"{name}: read {describe(value)}; expected {expected}")


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file of options.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not TOML.
    """
    text = read_text(path, ConfigError)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not TOML: {make_printable(str(error)[:200])}") from error
