"""Training options: names, defaults, ranges, and the symbols that the paper uses for them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from acerl_np.evolution.ranking import Ranking, Shaping
from acerl_np.evolution.sampler import Advantage, Sampler
from acerl_np.evolution.spreads import MIN_NOISE_STD
from acerl_np.policies.index import FEATURES, KNOWLEDGE, MAX_HIDDEN
from acerl_np.policies.network import Initialisation
from acerl_np.problem.slots import SlotKind
from acerl_np.problem.tables import MAX_HORIZON
from acerl_np.support.errors import ConfigError, describe, make_printable
from acerl_np.support.files import read_text
from acerl_np.support.numbers import is_real, is_whole

Form = Literal["network", "index"]
SpreadName = Literal["one", "diagonal", "full"]
Outcome = Literal["last", "best", "average"]
Preset = Literal["paper", "best"]

LARGE_BUDGET = 5_000_000
"""Decisions from which the preset "best" takes hidden units."""


@dataclass(frozen=True)
class Config:
    """Options of a training run; the defaults are the paper's, or where it is silent the released code's.

    Attributes
    ----------
    form : {"network", "index"}
        What is trained: the paper's network that sees all waiting tasks and chooses a vehicle and a rule,
        or a function that scores every pair of an idle vehicle and a waiting task.
    generations : int
        G, generations to train.
    decisions : int or None
        Train until so many decisions are taken, instead of `generations`.
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
    ranking : {"isr", "cf", "r", "f", "penalty"}
        Intrinsic stochastic ranking, return - cost, rank of the return, the return; or the return less
        `penalty` times the cost beyond the limit less `margin`.
    penalty : float
        s of makespan per s of tardiness beyond the limit less the margin.
    margin : float
        s below the limit from which tardiness is penalised.
    records_per_member : int or None
        1: each member plays one record, which the sampler deals to it. K above 1: all members of a
        generation play the same K records, and a member's utility is its mean over them. None: K from 2 to
        32 so that the budget suffices for some 150 generations.
    perturb : int
        Training records are drawn anew each generation: arrivals moved by whole seconds within +-m, m
        from 0 to this number; arrivals of 0 stay.
    synthetic : float
        Share of records that are synthetic days: tasks drawn anew from the records' pairs of sites, times
        and expiries.
    spread : {"one", "diagonal", "full"}
        Of the search: the paper's one sigma that decays, or an adapted covariance, diagonal or full
        (CMA-ES), for index policies.
    knowledge : tuple of str or None
        What an index policy may look at that not every floor knows: "breakdowns" (planned ones), "tasks"
        (how many are still to come), "time", "vehicles" (their names). By default the breakdowns, if a
        layout lists any.
    without : tuple of str
        Features that an index policy leaves out, for ablations.
    slots : {"task", "pool"}
        Where the network sees a waiting task: in a slot of its own, by its id, which an inference says was so
        in the paper (`docs/known-differences.md`); or in that of its place in the pool.
    sampler : {"ais", "uniform", "random", "single"}
        Adaptive, each instance equally often, independent draws, the first instance only.
    shaping : {"standardised", "rank"}
        Utilities standardised within the instance and over the population, or the literal ranks.
    antithetic : bool
        Mirrored pairs of members.
    hidden : tuple of int
        Sizes of the hidden layers; by default 128 and 128. An index policy has none, the default, or one.
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
    outcome : {"last", "best", "average"}
        The policy is the last theta; the one of the best look: the largest share of trials within the
        limit, then the smallest mean makespan; or the mean of all thetas, the late ones weighing more.
    horizon : float or None
        s after which an episode is stopped; a member that has not finished ranks worst.

    Raises
    ------
    ConfigError
        If a value has the wrong type or lies outside its range; the message names the field.
    """

    form: Form = "network"
    generations: int = 128
    decisions: int | None = None
    population: int = 256
    learning_rate: float = 0.06
    noise_std: float = 0.1
    noise_decay: float = 0.99
    noise_decay_every: int = 50
    cost_limit: float = 50.0
    p_f: float = 0.5
    alpha_u: float = 1.0
    ranking: Ranking = "isr"
    penalty: float = 3.0
    margin: float = 5.0
    sampler: Sampler = "ais"
    records_per_member: int | None = 1
    perturb: int = 0
    synthetic: float = 0.0
    spread: SpreadName = "one"
    knowledge: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    shaping: Shaping = "standardised"
    antithetic: bool = False
    hidden: tuple[int, ...] = None  # type: ignore[assignment]  # by the form
    advantage: Advantage = "paper"
    initialisation: Initialisation = "he"
    biases: bool = True
    standardise: bool = True
    slots: SlotKind = "task"
    curve_every: int = 8
    curve_trials: int = 3
    outcome: Outcome = "last"
    horizon: float | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in WHOLE_RANGES.items():
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
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
        hidden: Any = self.hidden
        if hidden is None:
            hidden = () if self.form == "index" else (128, 128)
        if (
            not isinstance(hidden, tuple | list)
            or len(hidden) > 10
            or not all(is_whole(n) and 1 <= n <= 4096 for n in hidden)
        ):
            _fail("hidden", hidden, "at most 10 layer sizes from 1 to 4096")
        object.__setattr__(self, "hidden", tuple(int(n) for n in hidden))
        self._check_form()

    def _check_form(self) -> None:
        """Refuse what does not fit the form of the policy."""
        if self.knowledge is not None:
            given = self.knowledge
            if not isinstance(given, tuple | list) or not all(kind in KNOWLEDGE for kind in given):
                _fail("knowledge", given, f"some of {', '.join(KNOWLEDGE)}")
            kinds = tuple(kind for kind in KNOWLEDGE if kind in given)
            object.__setattr__(self, "knowledge", kinds)
        known = [feature.name for feature in FEATURES]
        left_out = self.without
        if not isinstance(left_out, tuple | list) or not all(name in known for name in left_out):
            _fail("without", left_out, f"some of {', '.join(known)}")
        object.__setattr__(self, "without", tuple(left_out))
        if self.form == "network":
            if self.spread != "one":
                _fail("spread", self.spread, "one with form network")
            if self.knowledge is not None:
                _fail("knowledge", self.knowledge, "none with form network")
            if self.without:
                _fail("without", self.without, "no features with form network")
            return
        if self.slots != "task":
            _fail("slots", self.slots, "none with form index")
        for name, usual in NETWORK_ALONE.items():
            if getattr(self, name) != usual:
                _fail(name, getattr(self, name), f"{usual} with form index")
        if len(self.hidden) > 1 or any(n > MAX_HIDDEN for n in self.hidden):
            _fail("hidden", self.hidden, f"at most one layer of {MAX_HIDDEN} with form index")

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values, ready for JSON."""
        data = {**asdict(self), "hidden": list(self.hidden), "without": list(self.without)}
        if self.knowledge is not None:
            data["knowledge"] = list(self.knowledge)
        return data

    @classmethod
    def preset(cls, name: Preset, **options: Any) -> Config:
        """Return a configuration by name, with other options on top.

        "paper" is ACERL as published. "best" trains an index policy, for days that nobody has seen: linear
        below 5 million decisions, with eight hidden units from there on (`docs/learning.md`).

        Parameters
        ----------
        name : {"paper", "best"}
        **options
            Fields of this class; with "best", `decisions` also chooses the form's size, and `generations`
            alone replace the budget.

        Raises
        ------
        ConfigError
            If there is no such preset, a key is unknown or a value is not usable.

        Examples
        --------
        >>> import acerl_np
        >>> acerl_np.Config.preset("best", decisions=10_000_000).hidden
        (8,)
        """
        if name not in get_args(Preset):
            _fail("preset", name, f"one of {', '.join(get_args(Preset))}")
        if name == "paper":
            return cls.from_dict(options)
        if "generations" in options:
            options = {"decisions": None, **options}
        budget = options.get("decisions", BEST["decisions"])
        is_large = is_whole(budget) and budget >= LARGE_BUDGET
        return cls.from_dict({**BEST, **(BEST_LARGE if is_large else {}), **options})

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


def check_config(config: object) -> Config:
    """Return a configuration.

    Raises
    ------
    ConfigError
        If it is something else, such as a dict of options.
    """
    if not isinstance(config, Config):
        how = "Config(**options)" if isinstance(config, Mapping) else "Config()"
        raise ConfigError(f"config: read {describe(config)}; expected a Config: {how}")
    return config


BEST: dict[str, Any] = {
    "form": "index",
    "decisions": 3_000_000,
    "hidden": (),
    "spread": "full",
    "population": 14,
    "learning_rate": 1.0,
    "noise_std": 0.3,
    "noise_decay": 1.0,
    "records_per_member": None,
    "perturb": 30,
    "ranking": "penalty",
    "penalty": 4.0,
    "margin": 5.0,
    "sampler": "uniform",
    "outcome": "average",
    "curve_trials": 1,
}
"""The preset "best" below `LARGE_BUDGET`."""

BEST_LARGE: dict[str, Any] = {
    "hidden": (8,),
    "spread": "diagonal",
    "population": 24,
}
"""What it has otherwise from there on."""

WHOLE_RANGES = {
    "generations": (0, 10_000_000),
    "decisions": (1, 10**15),
    "population": (2, 1_000_000),
    "noise_decay_every": (1, 10_000_000),
    "curve_every": (0, 10_000_000),
    "curve_trials": (1, 100_000),
    "records_per_member": (1, 100_000),
    "perturb": (0, 1_000_000),
}
OPTIONAL = ("decisions", "records_per_member")
"""Whole numbers that may be None."""

REAL_RANGES = {
    "learning_rate": (0.0, 1e6, False),
    "noise_std": (MIN_NOISE_STD, 1e3, False),
    "noise_decay": (0.0, 1.0, True),
    "cost_limit": (0.0, 1e9, False),
    "p_f": (0.0, 1.0, False),
    "alpha_u": (0.0, 1e6, False),
    "penalty": (0.0, 1e6, False),
    "margin": (0.0, 1e9, False),
    "synthetic": (0.0, 1.0, False),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "form": get_args(Form),
    "spread": get_args(SpreadName),
    "ranking": get_args(Ranking),
    "sampler": get_args(Sampler),
    "shaping": get_args(Shaping),
    "advantage": get_args(Advantage),
    "initialisation": get_args(Initialisation),
    "outcome": get_args(Outcome),
    "slots": get_args(SlotKind),
}
NETWORK_ALONE = {"initialisation": "he", "biases": True, "standardise": True}
"""Options that an index policy does not have, and the defaults that it may be given all the same."""
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
