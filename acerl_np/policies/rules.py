"""Dispatching rules by name, and how the name of any policy that is no file is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from acerl_np.kernels.baselines import MIX, RANDOM
from acerl_np.kernels.deciders import RuleDecider
from acerl_np.kernels.rules import AHP, EDD, FCFS, LWT, NVF, STD
from acerl_np.policies.files import BasePolicy
from acerl_np.support.errors import PolicyError, describe

if TYPE_CHECKING:
    from acerl_np.kernels.state import Problem
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.layout import Layout

RULES = {
    "FCFS": FCFS,
    "EDD": EDD,
    "NVF": NVF,
    "STD": STD,
    "LWT": LWT,
    "AHP": AHP,
    "MIX": MIX,
    "Random": RANDOM,
}
"""Policies by name: a vehicle drawn uniformly from the free ones, then the rule picks its task. MIX
draws one of the first four rules as well, Random draws the task."""

STATIC = "Static"
"""The best fixed vehicle order and rule per vehicle on the training records that it is fitted on."""

POLICY_NAMES = (*RULES, STATIC)


def find_policy_name(name: str, names: Sequence[str] = POLICY_NAMES) -> str:
    """Return the policy's name as `names` spell it, whatever its case; refuse others with a `PolicyError`."""
    for known in names:
        if name.lower() == known.lower():
            return known
    raise PolicyError(f"policy '{describe(name)}': unknown; expected one of {', '.join(names)}")


class RulePolicy(BasePolicy):
    """A rule of `RULES` as a policy: it serves any floor and fleet."""

    origin = None
    portable: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name

    def _prepare(
        self, problem: Problem, places: Sequence[Instance | Layout], greedy: bool
    ) -> tuple[Problem, Callable[[], RuleDecider]]:
        rule = RULES[self.name]
        return problem, lambda: RuleDecider(rule)

    def _find_misfit(self, layout: Layout) -> None:
        return None
