"""Rules by name among which a network chooses: action = vehicle * number of rules + rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from acerl_np.kernels.rules import AHP, EDD, FCFS, LWT, NVF, STD
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.fields import refuse
from acerl_np.support.options import Several

TASK_RULES = {"FCFS": FCFS, "EDD": EDD, "NVF": NVF, "STD": STD, "LWT": LWT, "AHP": AHP}
"""Rules that pick a task for a vehicle."""

PAPER_RULES = ("FCFS", "EDD", "NVF", "STD")


class HasRules(Protocol):
    """A network's policy, or another that remembers what its actions were."""

    rules: tuple[str, ...]


class RuleNames(Several):
    """Some of `TASK_RULES`, each at most once, in any order."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> tuple[str, ...]:
        """Return the names as a tuple; parameters and errors as `Field`."""
        own: tuple[str, ...] = super().read(name, value, error)
        if len(set(own)) < len(own):
            refuse(name, value, self.words, error)
        return own


RULE_NAMES = RuleNames(
    tuple(TASK_RULES), fewest=1, expected=f"some of {', '.join(TASK_RULES)}, each at most once"
)


def find_rules(rules: Any) -> tuple[str, ...]:
    """Return rules by their names, or those of a policy; one that has none to choose among: the paper's."""
    if hasattr(rules, "rules") or hasattr(rules, "check_fits"):
        own = getattr(rules, "rules", None)
        rules = own if isinstance(own, tuple) else PAPER_RULES  # a static plan's are its vehicles'
    return RULE_NAMES.read("rules", rules, InputError)


def number_rules(rules: Sequence[str]) -> np.ndarray:
    """Return the rules as kernels number them, ndarray(int64, (R,))."""
    return np.array([TASK_RULES[name] for name in rules], np.int64)
