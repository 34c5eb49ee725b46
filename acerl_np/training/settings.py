"""Settings of a training: names, defaults, ranges, units and sentences, which need no compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from acerl_np.evolution.ranges import (
    ADVANTAGE,
    FIELDS,
    MIN_NOISE_STD,
    SAMPLER_FIELD,
    Advantage,
    Ranking,
    Sampler,
    Shaping,
)
from acerl_np.problem.choices import (
    CHANGES,
    COMMITMENT,
    MAX_CHANGES,
    PAPER_RULES,
    RULE_NAMES,
    Commitment,
    Initialisation,
    SlotKind,
)
from acerl_np.problem.goal import CLASS_WEIGHTS, ObjectiveField, OwnMeasure
from acerl_np.problem.limits import MAX_HORIZON
from acerl_np.support.errors import ConfigError, PolicyError, refuse
from acerl_np.support.fields import Field, Options, Several, option

if TYPE_CHECKING:
    from acerl_np.evolution.ranking import OwnRanking
    from acerl_np.evolution.sampler import OwnSampler
    from acerl_np.policies.index import Feature

FormName = Literal["network", "index"]
SpreadName = Literal["one", "diagonal", "full"]
StartName = Literal["nearest", "general"]
Outcome = Literal["last", "best", "average"]
Preset = Literal["paper", "best"]


class FeaturesField(Field):
    """Features by name, or users' as they are or as `module:name`; read as files name them."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the names; a `ConfigError` if there is no such feature, or none at all."""
        from acerl_np.policies import index

        try:
            if isinstance(value, tuple | list):
                return index.check_features(value)
            if value is None:
                return None
        except PolicyError as caused:
            raise error(str(caused)) from None
        refuse(name, value, index.EXPECTED, error)


class BeyondField(Field):
    """A threshold of overload; `AUTO` is told by the records, `NEVER` never."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the number, or one of the words; a `ConfigError` if it is neither."""
        if value is None or value in (AUTO, NEVER):
            return NEVER if value is None else value
        return super().read(name, value, error)


AUTO, NEVER = "auto", "none"
BEYOND = BeyondField(float, 0.0, 1e6, above=True, expected=f"a number above 0, {AUTO} or {NEVER}")
TO_HORIZON = f"seconds above 0 to {MAX_HORIZON:g}"

ALONE = {
    "network": (
        "hidden",
        "rules",
        "slots",
        "initialisation",
        "biases",
        "standardise",
        "noise_rank",
    ),
    "index": (
        *("spread", "planned_breakdowns", "features", "commitment", "max_changes", "may_wait"),
        *("tune_charging", "beyond", "guard", "start"),
    ),
}
"""Settings that the other form of policy does not have; they may be given their defaults."""


@dataclass(frozen=True)
class Settings(Options):
    """Settings of a training run; the defaults are the paper's, or where it is silent the released code's.

    Attributes
    ----------
    form : {"network", "index"}
        Policy to train: network is the paper's, which sees all waiting tasks and chooses a vehicle and a
        rule; index is a function that scores every pair of a free vehicle and a waiting task.
    generations : int
        Generations to train (G).
    decisions : int or None
        Train until so many decisions are taken, instead of --generations.
    population : int
        Members of a generation (lambda).
    learning_rate : float
        Step along the estimated gradient (alpha); with shaping rank use about 1/100 of it.
    noise_std : float
        Standard deviation of the parameter noise (sigma).
    noise_decay : float
        Factor on sigma after every noise_decay_every generations.
    noise_decay_every : int
        Generations between two decays of sigma.
    noise_rank : int or None
        Rank of the noise of a layer: a sum of so many products of two vectors. None: full, as in the paper.
        Rank 1 trains twice as fast.
    objective : str, callable or None
        Measure to minimise: makespan, tardiness, waiting (s), late, empty (%), a weighted sum such as
        late+0.05*tardiness, or a function of yours, module:name. By default the makespan; for index
        policies on shifts (records of more than 100 tasks or more than an hour) late+0.05*tardiness.
    cost : str or callable
        Measure limited by --cost-limit, as the objective.
    cost_limit : float or None
        Upper bound on the cost, in s or % (xi). By default 50 s on the tardiness if the objective is the
        makespan, else none.
    class_weights : tuple of float
        Weights of tasks of priority 0, 1, ... in tardiness, late and waiting; the last holds for all higher
        priorities. By default all weigh the same.
    p_f : float
        Probability of comparing two members by return although one is infeasible.
    alpha_u : float
        Exploration factor of the instance sampler.
    ranking : {"isr", "cf", "r", "f", "penalty"} or callable
        Ranking of members: isr is intrinsic stochastic ranking, cf return - cost, r the rank of the return,
        f the return, penalty the return less penalty times the cost above the limit less margin; or a
        function of yours, module:name, f(returns, costs, ids) -> utilities.
    penalty : float
        S of makespan for each s of tardiness above the limit less the margin; for other measures the
        equivalent (1 s is 0.05 %).
    margin : float, s
        Distance below the limit from which tardiness is penalised; for other measures the equivalent.
    sampler : {"ais", "uniform", "random", "single"}, class or InstanceSampler
        Sampler of training records: ais is adaptive, uniform plays each equally often, random draws
        independently, single plays the first alone; or a subclass of acerl_np.evolution.InstanceSampler of
        yours, module:name.
    records_per_member : int or None
        Records that each member plays. 1: the one that the sampler assigns; K: the same K for all members
        of a generation, utilities are means over them; none: K from 2 to 32, so that the budget is enough
        for about 150 generations.
    perturb : int, s
        Perturb arrivals of the training records in each generation by whole seconds within +-m, m from 0 to
        this number; arrivals at 0 stay.
    synthetic : float
        Share of records replaced by synthetic days: tasks drawn from the records' pairs of sites, times and
        expiries.
    spread : {"one", "diagonal", "full"}
        Search distribution: one is the paper's single sigma that decays; diagonal and full adapt a
        covariance (CMA-ES), for index policies.
    planned_breakdowns : bool
        Whether an index policy sees the breakdowns that a layout lists.
    features : tuple of str or Feature, optional
        Features of an index policy; yours as they are or as module:name. By default ten, more where
        vehicles have batteries or assignments may change.
    commitment : {"assignment", "pickup"}
        When an assignment becomes final: assignment (at once) or pickup (until loaded), for index policies.
    max_changes : int
        How often a task may be reassigned with commitment pickup.
    may_wait : bool
        Whether an index policy may let tasks wait although a vehicle is free; adds features of waiting.
    tune_charging : bool
        Whether the battery thresholds resume, good and full are trained with the weights of an index
        policy.
    beyond : float, "auto" or "none"
        Waiting tasks for each vehicle above which shortest (without a guard: nearest) decides instead of an
        index policy; none: never. auto: 8 on shifts, else never.
    guard : float, "auto" or "none"
        A task goes first if it is late by more than this many times its time from arrival to due; none:
        never. auto: 1 on shifts, else never.
    waiting_weight : float or None
        Weight of a second of mean waiting, added to the objective in training but not in reports. By
        default 0.02 where late+0.05*tardiness is the objective of shifts, else 0.
    start : {"nearest", "general"}
        Initial weights of an index policy: about those of nearest, or of general.
    shaping : {"standardised", "rank"}
        Utilities: standardised within the instance and over the population, or the literal ranks.
    antithetic : bool
        Mirrored pairs of members (the paper's antithetic estimator); needs an even population.
    hidden : tuple of int
        Sizes of the network's hidden layers.
    advantage : {"paper", "released"}
        Sign of the sampler's metric u.
    initialisation : {"he", "torch", "small"}
        Initial network: he has He normal weights and zero biases, torch PyTorch's default for linear
        layers, small a last layer of a hundredth of he's.
    biases : bool
        Whether the network's layers have biases.
    standardise : bool
        Whether an observation is standardised as a whole before the first layer.
    slots : {"task", "pool"}
        Input position of a waiting task: task gives each id its own (inferred from the paper,
        docs/known-differences.md), pool goes by the place in the queue.
    rules : tuple of str
        Rules that the network chooses among for a vehicle: some of FCFS, EDD, NVF, STD, LWT, AHP.
    curve_every : int
        Generations between two evaluations on every training record for curves.csv; 0 for none.
    curve_trials : int
        Episodes for each record in such an evaluation.
    outcome : {"last", "best", "average"}
        Policy to keep: the last parameters; the best of the curve (largest share within the limit, then the
        smallest mean makespan); or the average of all, late ones weighing more.
    horizon : float or None, s
        Time after which an episode is stopped; a member that has not finished ranks worst.
    """

    added = ("noise_rank", "beyond", "guard", "start", "waiting_weight")

    form: FormName = option("network", Field(get_args(FormName)))
    generations: int = option(128, Field(int, 0, 10_000_000))
    decisions: int | None = option(None, Field(int, 1, 10**15, optional=True))
    population: int = option(256, Field(int, 2, 1_000_000))
    learning_rate: float = option(0.06, Field(float, 0.0, 1e6))
    noise_std: float = option(0.1, Field(float, MIN_NOISE_STD, 1e3))
    noise_decay: float = option(0.99, Field(float, 0.0, 1.0, above=True))
    noise_decay_every: int = option(50, Field(int, 1, 10_000_000))
    noise_rank: int | None = option(None, Field(int, 1, 1000, optional=True))
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
    spread: SpreadName = option("one", Field(get_args(SpreadName)))
    planned_breakdowns: bool = option(True, Field(bool))
    features: tuple[str | Feature, ...] | None = option(None, FeaturesField(tuple, optional=True))
    commitment: Commitment = option("assignment", COMMITMENT)
    max_changes: int = option(MAX_CHANGES, CHANGES)
    may_wait: bool = option(False, Field(bool))
    tune_charging: bool = option(False, Field(bool))
    beyond: float | str = option(AUTO, BEYOND)
    guard: float | str = option(AUTO, BEYOND)
    waiting_weight: float | None = option(None, Field(float, 0.0, 1e6, optional=True))
    start: StartName = option("nearest", Field(get_args(StartName)))
    shaping: Shaping = option("standardised", FIELDS["shaping"])
    antithetic: bool = option(False, Field(bool))
    hidden: tuple[int, ...] = option(
        (128, 128), Several(int, 1, 4096, expected="at most 10 layer sizes from 1 to 4096", most=10)
    )
    advantage: Advantage = option("paper", ADVANTAGE)
    initialisation: Initialisation = option("he", Field(get_args(Initialisation)))
    biases: bool = option(True, Field(bool))
    standardise: bool = option(True, Field(bool))
    slots: SlotKind = option("task", Field(get_args(SlotKind)))
    rules: tuple[str, ...] = option(PAPER_RULES, RULE_NAMES)
    curve_every: int = option(8, Field(int, 0, 10_000_000))
    curve_trials: int = option(3, Field(int, 1, 100_000))
    outcome: Outcome = option("last", Field(get_args(Outcome)))
    horizon: float | None = option(
        None, Field(float, 0.0, MAX_HORIZON, above=True, optional=True, expected=TO_HORIZON)
    )


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
