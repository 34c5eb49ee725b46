"""Names that options choose among: rules, slots of tasks, commitments, and how a network begins."""

from __future__ import annotations

from typing import Any, Literal, get_args

from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.fields import Field, Several

RULES = ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP")
"""Rules that pick a task for a vehicle."""

PAPER_RULES = RULES[:4]

SlotKind = Literal["task", "pool"]
Initialisation = Literal["he", "torch", "small"]
Commitment = Literal["assignment", "pickup"]

MAX_CHANGES = 8
COMMITMENT, CHANGES = Field(get_args(Commitment)), Field(int, 0, 1_000)
"""When an assignment becomes final, and how often a task may be reassigned before."""


class RuleNames(Several):
    """Some of `RULES`, each at most once, in any order."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> tuple[str, ...]:
        """Return the names as a tuple; parameters and errors as `Field`."""
        own: tuple[str, ...] = super().read(name, value, error)
        if len(set(own)) < len(own):
            refuse(name, value, self.words, error)
        return own


RULE_NAMES = RuleNames(RULES, fewest=1, expected=f"some of {', '.join(RULES)}, each at most once")
