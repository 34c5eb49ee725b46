"""Settings of the compared learners, each with its source: one table for the programs and the documentation.

The paper (Hu et al., see `evaluation.published`) gives the network, the discount, RCPOM's multiplier and the
steps, and refers to Tianshou's defaults for the rest. Those are the arguments of its CartPole examples of
version 0.4.6, `test/discrete/test_ppo.py` and `test_sac.py`. What neither says is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from acerl_np.problem.choices import PAPER_RULES, RULE_NAMES, SlotKind
from acerl_np.problem.goal import Goal, ObjectiveField
from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.fields import Field, Options, Several, option

PAPER = "paper"
TIANSHOU = "Tianshou 0.4.6"
SEARCHED = "searched on the training records"
CHOSEN = "chosen here"
INFERRED = "inferred, as ACERL's"

MAX_LAYERS = 100
"""Most hidden layers, of a policy file as well."""

LAYERS = f"1 to {MAX_LAYERS} whole numbers from 1 to 4,096"
HIDDEN = Several(int, 1, 4096, expected=LAYERS, fewest=1, most=MAX_LAYERS)
SHARE, WEIGHT, EPISODES = Field(float, 0, 1), Field(float, 0, 1e6), Field(int, 1, 65536)
SCALE, SHIFT = Field(float, 1e-6, 1e6), Field(float, -10, 10)


@dataclass(frozen=True)
class RivalSettings(Options):
    """What all algorithms have.

    Attributes
    ----------
    hidden : tuple of int
        Hidden layers.
    discount : float
        Discount per decision, gamma.
    objective : str
        Measure to minimise, as of ACERL.
    cost : str
        Measure that is limited.
    cost_limit : float
        Limit of the cost, the mean tardiness, s, xi.
    reward_scale : float
        The reward at an episode's end is this times (shift - makespan / mean makespan of MIX).
    reward_shift : float
        0: the makespan counts; 1: its excess.
    batch : int
        Rows of a batch.
    slots : {"task", "pool"}
        Slots of waiting tasks: each its own, or their places in the queue.
    rules : tuple of str
        Rules to choose among for a vehicle.
    look_every : int
        Steps between two looks of a training curve, 0 for none.
    look_trials : int
        Episodes per record and look.
    """

    unknown: ClassVar[str] = "no such setting"

    hidden: tuple[int, ...] = option((128, 128), HIDDEN, source=PAPER)
    discount: float = option(0.97, SHARE, source=PAPER)
    objective: str = option("makespan", ObjectiveField(str), source=PAPER)
    cost: str = option("tardiness", ObjectiveField(str), source=PAPER)
    cost_limit: float = option(50.0, Field(float, 0, 1e9), source=PAPER)
    reward_scale: float = option(30.0, SCALE, source=SEARCHED)
    reward_shift: float = option(1.0, SHIFT, source=SEARCHED)
    batch: int = option(64, EPISODES, source=TIANSHOU)
    slots: str = option("task", Field(get_args(SlotKind)), source=INFERRED)
    rules: tuple[str, ...] = option(PAPER_RULES, RULE_NAMES, source=PAPER)
    look_every: int = option(50_000, Field(int, 0, 10**12), source=CHOSEN)
    look_trials: int = option(5, Field(int, 1, 10_000), source=CHOSEN)

    @property
    def goal(self) -> Goal:
        """The objective and the limit."""
        return Goal(self.objective, self.cost, self.cost_limit)


@dataclass(frozen=True)
class OnPolicySettings(RivalSettings):
    """Those of PPO.

    Attributes
    ----------
    episodes : int
        Episodes side by side.
    collect : int
        Steps between two updates, of all episodes together.
    repeats : int
        Times that an update learns from them.
    learning_rate : float
        Of Adam.
    clip : float
        Epsilon of the clipped ratio.
    decay : float
        Lambda of the generalised advantages.
    value_factor : float
        Weight of the value's loss.
    entropy_factor : float
        Weight of the entropy.
    max_norm : float
        Largest norm of a gradient.
    """

    episodes: int = option(20, EPISODES, source=TIANSHOU)
    collect: int = option(2_000, Field(int, 1, 10**7), source=TIANSHOU)
    repeats: int = option(10, Field(int, 1, 1000), source=TIANSHOU)
    learning_rate: float = option(3e-4, SHARE, source=TIANSHOU)
    clip: float = option(0.2, SHARE, source=TIANSHOU)
    decay: float = option(0.95, SHARE, source=TIANSHOU)
    value_factor: float = option(0.5, WEIGHT, source=TIANSHOU)
    entropy_factor: float = option(0.0, WEIGHT, source=TIANSHOU)
    max_norm: float = option(0.5, Field(float, 1e-9, 1e9), source=TIANSHOU)

    def __post_init__(self) -> None:
        """Check every setting; a `ConfigError` names the first that is unusable."""
        super().__post_init__()
        if self.collect < self.episodes:
            expected = f"at least one step of each of the {self.episodes} episodes"
            refuse("collect", self.collect, expected, ConfigError)


@dataclass(frozen=True)
class AgentSettings(OnPolicySettings):
    """Those of MAPPO."""

    reward_scale: float = option(100.0, SCALE, source=SEARCHED)


@dataclass(frozen=True)
class RewardConstrainedSettings(OnPolicySettings):
    """Those of RCPOM.

    Attributes
    ----------
    multiplier : float
        Lambda of the tardiness at the start.
    multiplier_rate : float
        Its step after every update: rate * (mean tardiness - limit).
    """

    multiplier: float = option(0.001, WEIGHT, source=PAPER)
    multiplier_rate: float = option(1e-4, WEIGHT, source=PAPER)


@dataclass(frozen=True)
class OffPolicySettings(RivalSettings):
    """Those of SAC.

    Attributes
    ----------
    episodes : int
        Episodes side by side.
    updates_per_step : float
        Updates per decision.
    actor_rate : float
        Learning rate of the actor.
    critic_rate : float
        Learning rate of the critics.
    alpha : float
        Weight of the entropy, fixed.
    tau : float
        Share of a soft update of the targets.
    capacity : int
        Steps that the replay buffer holds.
    n_steps : int
        Steps of a return.
    """

    reward_shift: float = option(0.0, SHIFT, source=SEARCHED)
    episodes: int = option(10, EPISODES, source=TIANSHOU)
    updates_per_step: float = option(0.1, Field(float, 1e-6, 100), source=TIANSHOU)
    actor_rate: float = option(1e-4, SHARE, source=TIANSHOU)
    critic_rate: float = option(1e-3, SHARE, source=TIANSHOU)
    alpha: float = option(0.05, WEIGHT, source=TIANSHOU)
    tau: float = option(0.005, SHARE, source=TIANSHOU)
    capacity: int = option(20_000, Field(int, 1, 10**7), source=TIANSHOU)
    n_steps: int = option(3, Field(int, 1, 10**6), source=TIANSHOU)


@dataclass(frozen=True)
class LagrangianSettings(OffPolicySettings):
    """Those of LSAC.

    Attributes
    ----------
    multiplier : float
        Lambda of the tardiness, fixed: reward = -(makespan + lambda tardiness).
    """

    reward_shift: float = option(1.0, SHIFT, source=SEARCHED)
    multiplier: float = option(10.0, WEIGHT, source=SEARCHED)
