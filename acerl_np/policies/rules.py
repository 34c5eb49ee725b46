"""Dispatching rules by name, and how the name of any policy that is no file is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from acerl_np.kernels.core.state import Problem
from acerl_np.kernels.dispatching import baselines
from acerl_np.kernels.dispatching.deciders import RuleDecider, make_baseline_decider
from acerl_np.kernels.dispatching.drawn import MIX, RANDOM
from acerl_np.policies.files import BasePolicy, Places, Prepared
from acerl_np.problem.interface import TASK_RULES
from acerl_np.support.errors import PolicyError, describe, suggest_name

RULES = {
    **TASK_RULES,
    "MIX": MIX,
    "Random": RANDOM,
    "nearest": baselines.NEAREST,
    "fcfs-nearest": baselines.FCFS_NEAREST,
    "edd-nearest": baselines.EDD_NEAREST,
    "opentcs": baselines.OPENTCS,
    "assignment": baselines.ASSIGNMENT,
    "shortest": baselines.SHORTEST,
}
"""Policies by name: a vehicle drawn uniformly from the free ones, then the rule picks its task. MIX
draws one of the first four rules as well, Random draws the task; `PAIRING` draw nothing."""

RULE_NUMBERS = {**RULES, "overdue": baselines.OVERDUE}
RULE_NAMES = {number: name for name, number in RULE_NUMBERS.items()}
"""Of what decisions are by; "overdue" is the guard of an index policy."""

BASELINES = ("nearest", "fcfs-nearest", "edd-nearest", "opentcs", "assignment")
"""What a control system does without learning; they choose the vehicle, too, and are none of the paper's.

nearest
    The pair of idle vehicle and waiting task with the shortest approach.
fcfs-nearest, edd-nearest
    The task that came first, or is due first; then the idle vehicle with the shortest approach to it.
opentcs
    The order of openTCS's default dispatcher (https://github.com/openTCS/opentcs, `OrderAssigner` of
    opentcs-strategies-default, with the kernel's default configuration). Where fewer vehicles are idle than
    tasks wait, the vehicles, by their place in the fleet, take the task that is due first; else the tasks,
    the one that is due first before the others, take a vehicle. Of tasks that are due at once it is the
    oldest. What is equal then openTCS tells apart by batteries and names, this one by the shortest approach.
assignment
    As many pairs as can be, all at once, with the least sum of approaches, s, less 0.3 s for each second
    that a task has waited. One pair is decided after the other; each decision solves the rest again.
"""

PAIRING = (*BASELINES, "shortest")
"""Rules that choose the vehicle, too; the last is for overload: of the approach and half the loaded way."""

POLICY_NAMES = (*RULES,)

NEAREST = "nearest"
GENERAL = "general"
"""An index policy that was trained on random floors, see `policies.general`; studies do not compare it."""


def find_policy_name(
    name: str, names: Sequence[str] = (*POLICY_NAMES, GENERAL), others: Iterable[str] = ()
) -> str:
    """Return the policy's name as `names` spell it, whatever its case; refuse others with a `PolicyError`.

    It asks whether another of `names` was meant, or one of `others`, which are no policies.
    """
    for known in names:
        if name.lower() == known.lower():
            return known
    expected = f"expected one of {', '.join(names)}{suggest_name(name, [*names, *others])}"
    raise PolicyError(f"policy '{describe(name)}': unknown; {expected}")


class RulePolicy(BasePolicy):
    """A rule of `RULES` as a policy: it serves any floor and fleet."""

    origin = None
    portable: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.recalls = name in PAIRING

    def __repr__(self) -> str:
        return repr(self.name)

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        rule = RULES[self.name]
        if self.name in PAIRING:
            return problem, lambda: make_baseline_decider(rule, problem)
        return problem, lambda: RuleDecider(rule)
