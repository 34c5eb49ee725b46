"""Settings of the compared learners, each with its source: one table for the programs and the documentation.

The paper (Hu et al., see `evaluation.published`) gives the network, the discount, RCPOM's multiplier and the
steps, and refers to Tianshou's defaults for the rest. Those are the arguments of its CartPole examples of
version 0.4.6, `test/discrete/test_ppo.py` and `test_sac.py`. What neither says is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from acerl_np.problem.choices import PAPER_RULES, RULE_NAMES, SlotKind
from acerl_np.problem.goal import Goal, ObjectiveField
from acerl_np.support.errors import ConfigError
from acerl_np.support.fields import Field, Options, Several, option, refuse

PAPER = "paper"
TIANSHOU = "Tianshou 0.4.6"
SEARCHED = "searched on the training records"
CHOSEN = "chosen here"
INFERRED = "inferred, as ACERL's"

MAX_LAYERS = 100
"""Most hidden layers, of a policy file as well."""


def _setting(default: Any, source: str, meaning: str, low: float, high: float) -> Any:
    """Return a setting of its default's kind within a range; of several numbers, each within it."""
    if isinstance(default, tuple):
        words = f"1 to {MAX_LAYERS} whole numbers from {low:g} to {high:,g}"
        kind: Field = Several(
            int, low, high, expected=words, help=meaning, fewest=1, most=MAX_LAYERS
        )
    else:
        kind = Field(type(default), low, high, help=meaning)
    return option(default, kind, source=source)


def _scale(default: float) -> Any:
    what = "the reward at an episode's end is this times (shift - makespan / mean makespan of MIX)"
    return _setting(default, SEARCHED, what, 1e-6, 1e6)


def _shift(default: float) -> Any:
    return _setting(default, SEARCHED, "0: the makespan counts; 1: its excess", -10, 10)


@dataclass(frozen=True)
class RivalSettings(Options):
    """What all algorithms have.

    Attributes
    ----------
    hidden, discount, objective, cost, cost_limit, reward_scale, reward_shift, batch, slots, rules
        `python -m studies train ppo --settings` tells what each means, and where it comes from.
    look_every, look_trials : int
        Steps between two looks of a training curve, and trials of each record there.
    """

    unknown: ClassVar[str] = "no such setting"

    hidden: tuple[int, ...] = _setting((128, 128), PAPER, "hidden layers", 1, 4096)
    discount: float = _setting(0.97, PAPER, "discount per decision, gamma", 0, 1)
    objective: str = option(
        "makespan", ObjectiveField(str, help="measure to minimise, as of ACERL"), source=PAPER
    )
    cost: str = option(
        "tardiness", ObjectiveField(str, help="measure that is limited"), source=PAPER
    )
    cost_limit: float = _setting(
        50.0, PAPER, "limit of the cost, the mean tardiness, s, xi", 0, 1e9
    )
    reward_scale: float = _scale(30.0)
    reward_shift: float = _shift(1.0)
    batch: int = _setting(64, TIANSHOU, "rows of a batch", 1, 65536)
    slots: str = option(
        "task",
        Field(
            get_args(SlotKind),
            help="slots of waiting tasks: each its own, or their places in the queue",
        ),
        source=INFERRED,
    )
    rules: tuple[str, ...] = option(
        PAPER_RULES,
        replace(RULE_NAMES, help="rules to choose among for a vehicle"),
        source=PAPER,
    )
    look_every: int = _setting(
        50_000, CHOSEN, "steps between two looks of a training curve, 0 for none", 0, 10**12
    )
    look_trials: int = _setting(5, CHOSEN, "episodes per record and look", 1, 10_000)

    @property
    def goal(self) -> Goal:
        """The objective and the limit."""
        return Goal(self.objective, self.cost, self.cost_limit)


@dataclass(frozen=True)
class OnPolicySettings(RivalSettings):
    """Those of PPO."""

    episodes: int = _setting(20, TIANSHOU, "episodes side by side", 1, 65536)
    collect: int = _setting(
        2_000, TIANSHOU, "steps between two updates, of all episodes together", 1, 10**7
    )
    repeats: int = _setting(10, TIANSHOU, "times that an update learns from them", 1, 1000)
    learning_rate: float = _setting(3e-4, TIANSHOU, "of Adam", 0, 1)
    clip: float = _setting(0.2, TIANSHOU, "epsilon of the clipped ratio", 0, 1)
    decay: float = _setting(0.95, TIANSHOU, "lambda of the generalised advantages", 0, 1)
    value_factor: float = _setting(0.5, TIANSHOU, "weight of the value's loss", 0, 1e6)
    entropy_factor: float = _setting(0.0, TIANSHOU, "weight of the entropy", 0, 1e6)
    max_norm: float = _setting(0.5, TIANSHOU, "largest norm of a gradient", 1e-9, 1e9)

    def __post_init__(self) -> None:
        """Check every setting; a `ConfigError` names the first that is unusable."""
        super().__post_init__()
        if self.collect < self.episodes:
            expected = f"at least one step of each of the {self.episodes} episodes"
            refuse("collect", self.collect, expected, ConfigError)


@dataclass(frozen=True)
class AgentSettings(OnPolicySettings):
    """Those of MAPPO."""

    reward_scale: float = _scale(100.0)


@dataclass(frozen=True)
class RewardConstrainedSettings(OnPolicySettings):
    """Those of RCPOM."""

    multiplier: float = _setting(0.001, PAPER, "lambda of the tardiness at the start", 0, 1e6)
    multiplier_rate: float = _setting(
        1e-4, PAPER, "its step after every update: rate * (mean tardiness - limit)", 0, 1e6
    )


@dataclass(frozen=True)
class OffPolicySettings(RivalSettings):
    """Those of SAC."""

    reward_shift: float = _shift(0.0)
    episodes: int = _setting(10, TIANSHOU, "episodes side by side", 1, 65536)
    updates_per_step: float = _setting(0.1, TIANSHOU, "updates per decision", 1e-6, 100)
    actor_rate: float = _setting(1e-4, TIANSHOU, "learning rate of the actor", 0, 1)
    critic_rate: float = _setting(1e-3, TIANSHOU, "learning rate of the critics", 0, 1)
    alpha: float = _setting(0.05, TIANSHOU, "weight of the entropy, fixed", 0, 1e6)
    tau: float = _setting(0.005, TIANSHOU, "share of a soft update of the targets", 0, 1)
    capacity: int = _setting(20_000, TIANSHOU, "steps that the replay buffer holds", 1, 10**7)
    n_steps: int = _setting(3, TIANSHOU, "steps of a return", 1, 10**6)


@dataclass(frozen=True)
class LagrangianSettings(OffPolicySettings):
    """Those of LSAC."""

    reward_shift: float = _shift(1.0)
    multiplier: float = _setting(
        10.0,
        SEARCHED,
        "lambda of the tardiness, fixed: reward = -(makespan + lambda tardiness)",
        0,
        1e6,
    )
