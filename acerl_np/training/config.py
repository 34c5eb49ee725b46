"""Training options: names, defaults, ranges, and the symbols that the paper uses for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from acerl_np.evolution.ranking import FIELDS, OwnRanking, Ranking, Shaping
from acerl_np.evolution.sampler import SAMPLER_FIELD, Advantage, OwnSampler, Sampler
from acerl_np.evolution.spreads import MIN_NOISE_STD
from acerl_np.policies import index
from acerl_np.policies.network import Initialisation
from acerl_np.problem.goal import CLASS_WEIGHTS, SHIFT, Goal, ObjectiveField, OwnMeasure
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.problem.interface import PAPER_RULES, RULE_NAMES, SlotKind
from acerl_np.problem.layout import CHANGES, MAX_CHANGES, Commitment
from acerl_np.problem.tables import MAX_HORIZON
from acerl_np.support.errors import ConfigError, PolicyError
from acerl_np.support.fields import Field, refuse
from acerl_np.support.options import Options, Several, option
from acerl_np.support.own import Own, is_own_name

Form = Literal["network", "index"]
SpreadName = Literal["one", "diagonal", "full"]
StartName = Literal["nearest", "general"]
Outcome = Literal["last", "best", "average"]
Preset = Literal["paper", "best"]

SIZES = Several(int, 1, 4096, expected="at most 10 layer sizes from 1 to 4096", most=10)


class FeaturesField(Field):
    """Features, the package's by name, users' as they are or as `module:name`; read as files name them."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the names; a `ConfigError` if there is no such feature, or none at all."""
        try:
            if isinstance(value, tuple | list):
                return index.check_features(value)
            if value is None:
                return None
        except PolicyError as caused:
            raise error(str(caused)) from None
        refuse(name, value, index.EXPECTED, error)


class BeyondField(Field):
    """From how much waiting on a yardstick decides; `AUTO` is told by the records, `NEVER` never."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the number, or one of the words; a `ConfigError` if it is neither."""
        if value is None or value in (AUTO, NEVER):
            return NEVER if value is None else value
        return super().read(name, value, error)


AUTO, NEVER, USUAL_BEYOND = "auto", "none", 8.0
USUAL_WAITING = 0.02
BEYOND = BeyondField(float, 0.0, 1e6, above=True, expected=f"a number above 0, {AUTO} or {NEVER}")

TO_HORIZON = f"seconds above 0 to {MAX_HORIZON:g}"
SECONDS = Field(float, 0.0, MAX_HORIZON, above=True, optional=True, expected=TO_HORIZON)

ALONE = {
    "network": ("hidden", "rules", "slots", "initialisation", "biases", "standardise"),
    "index": (
        *("spread", "planned_breakdowns", "features", "commitment", "max_changes", "may_wait"),
        *("tune_charging", "beyond", "start"),
    ),
}
"""Options that the other form of policy does not have; it may be given their defaults."""


@dataclass(frozen=True)
class Config(Options):
    """Options of a training run; the defaults are the paper's, or where it is silent the released code's.

    Attributes
    ----------
    form : {"network", "index"}
        What is trained: the paper's network that sees all waiting tasks and chooses a vehicle and a rule,
        or a function that scores every pair of a free vehicle and a waiting task.
    generations : int
        G, generations to train.
    decisions : int or None
        Train until so many decisions are taken, instead of `generations`.
    population : int
        lambda, members of a generation.
    learning_rate : float
        alpha, step along the estimated gradient; with `shaping` rank use about 1/100 of it. On DMH a
        quarter of it or four times as much is worse (`docs/learning.md`).
    noise_std : float
        sigma, standard deviation of the parameter noise.
    noise_decay : float
        Factor on sigma after every `noise_decay_every` generations.
    noise_decay_every : int
        Generations between two decays of sigma.
    objective : str, callable or None
        What is minimised: makespan, tardiness, waiting (s), late or empty (%), or a weighted sum such as
        "late+0.05*tardiness", or a function of yours, module:name. By default the makespan, but for index
        policies on shifts, records of more than 100 tasks or of more than an hour, late+0.05*tardiness.
    cost : str or callable
        What has a limit: as the objective.
    cost_limit : float or None
        xi, limit on the cost, s or %. By default 50 s on the tardiness if the objective is the makespan, and
        none else.
    class_weights : tuple of float
        What a task of priority 0, 1, ... weighs in tardiness, late and waiting; the last is that of all
        priorities from there on. By default all weigh alike.
    p_f : float
        Probability of comparing by return although a member is infeasible; on DMH up to 0.5 nothing differs,
        and above the limit is kept less often.
    alpha_u : float
        Exploration factor of the instance sampler.
    ranking : {"isr", "cf", "r", "f", "penalty"} or callable
        isr, cf, r, f: intrinsic stochastic ranking, return - cost, rank of the return, the return; penalty:
        the return less `penalty` times the cost beyond the limit less `margin`; or a function of yours,
        module:name, f(returns, costs, ids) -> utilities.
    penalty : float
        s of makespan per s of tardiness beyond the limit less the margin; of other objectives and costs what
        weighs as much (1 s as 0.05 %).
    margin : float
        s below the limit from which tardiness is penalised; of other costs what weighs as much.
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
    planned_breakdowns : bool
        Whether an index policy looks at the breakdowns that a layout lists.
    features : tuple of str or Feature, optional
        Features that an index policy looks at; users' as they are or as module:name. By default ten; also
        those of batteries where vehicles have some, and of call-backs with `commitment` pickup.
    commitment : {"assignment", "pickup"}
        Until when a task may change hands: until it is assigned, or until it is loaded; index policies.
    max_changes : int
        How often a task may at most, with `commitment` pickup.
    may_wait : bool
        Whether an index policy may let all wait though a vehicle is free: it has features of waiting, too.
    tune_charging : bool
        Whether the thresholds resume, good and full of batteries are trained with the weights of an index
        policy, from what the floor says.
    beyond : float, "auto" or "none"
        Waiting tasks for each vehicle beyond which `nearest` decides in the place of a trained index policy;
        "none": never. "auto": 8 where records are shifts, else never.
    waiting_weight : float or None
        What a second of mean waiting weighs in a training besides the objective, which alone is reported: on
        days when nobody is late nothing else is left to learn. By default 0.02 where
        late+0.05*tardiness is the objective of shifts, else 0 (`docs/general.md`).
    start : {"nearest", "general"}
        With which weights an index policy's training begins: about those of `nearest`, or of `general`.
    slots : {"task", "pool"}
        Where the network sees a waiting task: in a slot of its own, by its id, which an inference says was so
        in the paper (`docs/known-differences.md`); or in that of its place in the pool.
    rules : tuple of str
        Rules that the network chooses among for a vehicle: FCFS, EDD, NVF, STD, LWT and AHP, or some of them,
        in any order.
    sampler : {"ais", "uniform", "random", "single"}, class or InstanceSampler
        ais, uniform, random, single: adaptive, each instance equally often, independent draws, the first
        instance only; or a subclass of acerl_np.evolution.InstanceSampler of yours, module:name.
    shaping : {"standardised", "rank"}
        Utilities standardised within the instance and over the population (those of a ranking of yours over
        the population alone), or as they are: the literal ranks.
    antithetic : bool
        Mirrored pairs of members (the paper's antithetic estimator); needs an even population.
    hidden : tuple of int
        Sizes of the hidden layers of the network, none if empty.
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
        Generations between two looks at theta on every training record, for curves.csv; 0 for none.
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

    See Also
    --------
    ACERL : The trainer.
    Goal : An objective for what only plays.

    Notes
    -----
    What is yours is kept as a text, `module:name`: `to_dict` and checkpoints name it so. `resume` imports it
    only if it is told to trust the file. A sampler handed over itself is named by its class.

    Examples
    --------
    >>> import acerl_np
    >>> acerl_np.Config(generations=20, sampler="random").population
    256
    >>> acerl_np.Config.preset("best", objective="late").form
    'index'
    """

    added = ("beyond", "start", "waiting_weight")

    form: Form = "network"
    generations: int = option(128, Field(int, 0, 10_000_000))
    decisions: int | None = option(None, Field(int, 1, 10**15, optional=True))
    population: int = option(256, Field(int, 2, 1_000_000))
    learning_rate: float = option(0.06, Field(float, 0.0, 1e6))
    noise_std: float = option(0.1, Field(float, MIN_NOISE_STD, 1e3))
    noise_decay: float = option(0.99, Field(float, 0.0, 1.0, above=True))
    noise_decay_every: int = option(50, Field(int, 1, 10_000_000))
    objective: str | OwnMeasure | None = option(None, ObjectiveField(str, optional=True))
    cost: str | OwnMeasure = option("tardiness", ObjectiveField(str))
    cost_limit: float | None = option(None, Field(float, 0.0, 1e9, optional=True))
    class_weights: tuple[float, ...] = option((), CLASS_WEIGHTS)
    p_f: float = option(0.5, FIELDS["p_f"])
    alpha_u: float = option(1.0, Field(float, 0.0, 1e6))
    ranking: Ranking | OwnRanking = option("isr", FIELDS["ranking"])
    penalty: float = option(3.0, Field(float, 0.0, 1e6))
    margin: float = option(5.0, Field(float, 0.0, 1e9))
    sampler: Sampler | OwnSampler = option("ais", SAMPLER_FIELD)
    records_per_member: int | None = option(1, Field(int, 1, 100_000, optional=True))
    perturb: int = option(0, Field(int, 0, 1_000_000))
    synthetic: float = option(0.0, Field(float, 0.0, 1.0))
    spread: SpreadName = "one"
    planned_breakdowns: bool = True
    features: tuple[str | index.Feature, ...] | None = option(
        None, FeaturesField(tuple, optional=True)
    )
    commitment: Commitment = "assignment"
    max_changes: int = option(MAX_CHANGES, CHANGES)
    may_wait: bool = False
    tune_charging: bool = False
    beyond: float | str = option(AUTO, BEYOND)
    waiting_weight: float | None = option(None, Field(float, 0.0, 1e6, optional=True))
    start: StartName = "nearest"
    shaping: Shaping = "standardised"
    antithetic: bool = False
    hidden: tuple[int, ...] = option((128, 128), SIZES)
    advantage: Advantage = "paper"
    initialisation: Initialisation = "he"
    biases: bool = True
    standardise: bool = True
    slots: SlotKind = "task"
    rules: tuple[str, ...] = option(PAPER_RULES, RULE_NAMES)
    curve_every: int = option(8, Field(int, 0, 10_000_000))
    curve_trials: int = option(3, Field(int, 1, 100_000))
    outcome: Outcome = "last"
    horizon: float | None = option(None, SECONDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_index = self.form == "index"
        if self.objective is None and not is_index:
            object.__setattr__(self, "objective", Goal.objective)
        if self.objective is not None and self.cost_limit is None and self.goal.has_limit:
            object.__setattr__(self, "cost_limit", self.goal.cost_limit)
        if self.antithetic and self.population % 2:
            refuse("population", self.population, "an even number with antithetic", ConfigError)
        if self.outcome == "best" and self.curve_every == 0:
            refuse("curve_every", 0, "at least 1 with outcome best", ConfigError)
        for name in ALONE["network" if is_index else "index"]:
            usual, given = type(self).__dataclass_fields__[name].default, getattr(self, name)
            if given != usual:
                shown = {tuple: "the default", type(None): "none"}.get(type(usual), usual)
                refuse(name, given, f"{shown} with form {self.form}", ConfigError)

    @property
    def goal(self) -> Goal:
        """The objective and the limit, the paper's where they are not known yet."""
        objective = self.objective or Goal.objective
        return Goal(objective, self.cost, self.cost_limit, self.class_weights)  # type: ignore[arg-type]

    def resolve(self, instances: Sequence[Instance]) -> Config:
        """Return the configuration with the objective and features that these training records suggest.

        Raises
        ------
        ConfigError
            If a floor has another commitment, or no batteries whose charging could be tuned.
        """
        layouts = [instance.layout for instance in instances]
        for layout in layouts:
            if layout.commitment not in ("assignment", self.commitment):
                own = f"that of the floor, {layout.commitment}"
                refuse("commitment", self.commitment, own, ConfigError)
        if self.tune_charging and not any(any(layout.batteries) for layout in layouts):
            refuse("tune_charging", True, "False, as no vehicle has a battery", ConfigError)
        changes: dict[str, Any] = {}
        if self.objective is None:
            changes["objective"] = SHIFT if are_shifts(instances) else Goal.objective
        if self.form == "index" and self.beyond == AUTO and are_shifts(instances):
            changes["beyond"] = USUAL_BEYOND
        is_shift = SHIFT in (self.objective, changes.get("objective"))
        if self.waiting_weight is None and is_shift and are_shifts(instances):
            changes["waiting_weight"] = USUAL_WAITING
        if self.form == "index":
            features = self.features or index.suggest_features(instances, self.commitment)
            features = (*features, *(index.WAITING if self.may_wait else ()))
            features = (*features, *(index.CHARGING if self.tune_charging else ()))
            if features != index.NAMES:
                changes["features"] = features
        return replace(self, **changes) if changes else self

    @classmethod
    def preset(cls, name: Preset, **options: Any) -> Config:
        """Return a configuration by name, with other options on top.

        "paper" is ACERL as published. "best" trains an index policy, for days that nobody has seen
        (`docs/learning.md`).

        Parameters
        ----------
        name : {"paper", "best"}
        **options
            Fields of this class; with "best", `generations` alone replace the budget.

        Raises
        ------
        ConfigError
            If there is no such preset, a key is unknown or a value is not usable.

        Examples
        --------
        >>> import acerl_np
        >>> acerl_np.Config.preset("best").form
        'index'
        """
        if name not in get_args(Preset):
            refuse("preset", name, f"one of {', '.join(get_args(Preset))}", ConfigError)
        if name == "paper":
            return cls.from_dict(options)
        if "generations" in options:
            options = {"decisions": None, **options}
        return cls.from_dict({**BEST, **options})


def take_stored(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training's file, all of them, and what they name of a user's as of a file."""
    Config.check_whole(stored)
    own: dict[str, Any] = {
        x: Own.kept(stored[x], x) for x in ("objective", "cost", "ranking", "sampler")
    }
    if isinstance(stored["features"], list):
        find = index.find_feature
        own["features"] = [find(x) if is_own_name(x) else x for x in stored["features"]]
    return {**stored, **own}


def check_config(config: object) -> Config:
    """Return a configuration; a `ConfigError` if it is something else, such as a dict of options."""
    if not isinstance(config, Config):
        how = "Config(**options)" if isinstance(config, Mapping) else "Config()"
        refuse("config", config, f"a Config: {how}", ConfigError)
    return config


BEST: dict[str, Any] = {
    "form": "index",
    "decisions": 1_000_000,
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
"""The preset "best"."""
