"""How much there is to win: the best rule beside the best that is known in hindsight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.references import Reference
from acerl_np.evaluation.trials import Trials, evaluate_policy
from acerl_np.problem.instance import Instance
from acerl_np.support.numbers import Whole

RULES_TO_BEAT = ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP")
"""The rules that the best one is chosen from; the others are draws."""

LITTLE_MAKESPAN = 0.01
LITTLE_TARDINESS = 1.0
"""Share of the makespan, and seconds of tardiness, up to which there is little to win."""


def choose_rule(results: Mapping[str, Trials]) -> str:
    """Return the best rule by its trials on the training records.

    That of the smallest mean makespan among those whose mean tardiness is below the limit; if none is, that
    of the least mean tardiness. The first of equals; a rule that left an episode unfinished comes last.

    Parameters
    ----------
    results : mapping of Trials
        By the names of the rules, all on the same records.
    """

    def order(name: str) -> tuple[bool, bool, float]:
        trials = results[name]
        tardiness = float(trials.mean_tardiness().mean())
        within = tardiness < trials.cost_limit
        score = float(trials.mean_makespan().mean()) if within else tardiness
        return trials.unfinished > 0, not within, math.inf if math.isnan(score) else score

    return min(results, key=order)


class Margin(NamedTuple):
    """How far a rule is from hindsight, in the mean over the records.

    Attributes
    ----------
    rule : str
    makespan : float
        The rule's over that of hindsight, minus 1.
    tardiness : float, s
        The rule's less that of hindsight.
    """

    rule: str
    makespan: float
    tardiness: float

    @property
    def is_little(self) -> bool:
        """Whether there is little to win."""
        return self.makespan <= LITTLE_MAKESPAN and self.tardiness <= LITTLE_TARDINESS

    def sentence(self) -> str:
        """Return in one line that there is little to win."""
        return (
            f"Little to win here: {self.rule}, the best rule, is {100.0 * self.makespan:.1f} % of makespan "
            f"and {self.tardiness:.1f} s of tardiness from hindsight."
        )


def measure_margin(rule: str, played: Trials, references: Sequence[Reference]) -> Margin:
    """Return how far a rule is from hindsight.

    Parameters
    ----------
    rule : str
    played : Trials
        Of the rule.
    references : sequence of Reference
        One for each of its records.
    """
    best = np.mean([(item.makespan, item.tardiness) for item in references], axis=0)
    makespan, tardiness = played.mean_makespan().mean(), played.mean_tardiness().mean()
    return Margin(rule, float(makespan / best[0] - 1.0), float(tardiness - best[1]))


def play_best_rule(
    instances: Sequence[Instance],
    *,
    trials: int = 30,
    seed: Whole = 0,
    cost_limit: float = 50.0,
    horizon: float | None = None,
    threads: int | None = None,
) -> tuple[str, Trials]:
    """Return the best rule on these records and its trials; arguments as `evaluate_policy`."""
    results = {
        name: evaluate_policy(
            name,
            instances,
            trials=trials,
            seed=seed,
            cost_limit=cost_limit,
            horizon=horizon,
            threads=threads,
        )
        for name in RULES_TO_BEAT
    }
    rule = choose_rule(results)
    return rule, results[rule]
