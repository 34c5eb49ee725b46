"""How much there is to win: policies beside each other, the best rule, and the best known in hindsight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.metrics import normalise
from acerl_np.evaluation.references import Reference, bundled_references, find_known
from acerl_np.evaluation.trials import Playing, Trials, play_policy
from acerl_np.policies.rules import BASELINES
from acerl_np.problem.goal import EQUIVALENTS, Goal
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.problem.interface import TASK_RULES

RULES_TO_BEAT = (*TASK_RULES, *BASELINES)

LITTLE_SHARE, LITTLE_SECONDS = 0.01, 1.0
"""Share of the objective, and what weighs as much as so many seconds, up to which there is little to win."""

SHARES = ("late", "empty", "utilisation")
"""Measures that `Trials` has as shares."""

EQUAL = 1e-9
"""Relative difference of sums that are the same."""


def find_little(goal: Goal, value: float) -> float:
    """Return what of an objective is little to win beside a value of it."""
    return max(LITTLE_SHARE * abs(value), LITTLE_SECONDS * goal.scale)


def choose_rule(results: Mapping[str, Trials], measure: str = "value") -> str:
    """Return the best rule by the rules' trials on the training records.

    Rules that finish every episode with a mean cost below the limit come first, by the least mean `measure`.
    Those within what weighs as much as 1 s of the best, 0.05 points of late tasks, are told apart by waiting,
    then by empty metres. Without such a rule the least mean cost decides. The first of equals is chosen.
    """

    def average(name: str, what: str) -> float:
        return float(np.nan_to_num(results[name].mean(what).mean(), nan=math.inf))

    within = [
        name
        for name, trials in results.items()
        if not trials.unfinished and average(name, "cost") < trials.cost_limit
    ]
    if not within:
        return min(results, key=lambda name: (results[name].unfinished > 0, average(name, "cost")))
    goal = results[within[0]].goal
    little = goal.scale if measure == "value" else EQUIVALENTS.get(measure, EQUIVALENTS["late"])
    little /= 100.0 if measure in SHARES else 1.0
    best = min(average(name, measure) for name in within)
    near = [name for name in within if average(name, measure) < best + little]
    return min(near or within, key=lambda name: (average(name, "waiting"), average(name, "empty")))


class Margin(NamedTuple):
    """How far a rule is from hindsight, in the mean over the records.

    Attributes
    ----------
    rule : str
    goal : Goal
    value, cost : float
        The rule's objective and cost.
    hindsight, least_cost : float
        Those of hindsight; nan where it was not sought.
    bound : float
        An objective that no schedule goes below, see `bound_objective`.
    """

    rule: str
    goal: Goal
    value: float
    cost: float
    hindsight: float
    least_cost: float
    bound: float

    @property
    def is_proven(self) -> bool:
        """Whether the bound alone shows that there is little to win."""
        inside = self.cost < self.goal.cost_limit
        return inside and self.value - self.bound <= find_little(self.goal, self.bound)

    @property
    def is_little(self) -> bool:
        """Whether there is little to win."""
        goal = self.goal
        gap = self.cost - self.least_cost
        costs_little = not goal.has_limit or gap <= LITTLE_SECONDS * goal.cost_scale
        # Over the limit, or by another seed, a rule may be below hindsight, which then says nothing.
        more = self.value - self.hindsight
        little = -EQUAL * abs(self.value) <= more <= find_little(goal, self.hindsight)
        return self.is_proven or (costs_little and little)

    def sentence(self) -> str:
        """Return in one line that there is little to win."""
        goal, least = self.goal, self.bound if self.is_proven else self.hindsight
        more = max(0.0, self.value - least)
        gap = goal.show(more)
        if goal.objective == "makespan":
            gap = f"{100.0 * more / least:.1f} %"
        words = f"Little to win here: {self.rule}, the best rule, is"
        if self.is_proven:
            return f"{words} at most {gap} of {goal.objective} from any schedule, which is proven."
        words = f"{words} {gap} of {goal.objective}"
        if goal.has_limit:
            unit = goal.cost_unit and f" {goal.cost_unit}"
            words += f" and {max(0.0, self.cost - self.least_cost):.1f}{unit} of {goal.cost}"
        return f"{words} from hindsight."


def measure_margin(
    rule: str, played: Trials, instances: Sequence[Instance], references: Sequence[Reference] = ()
) -> Margin:
    """Return how far a rule is from hindsight, by trials and, if known, references of the same records."""
    goal = played.goal
    own = float(played.mean("value").mean()), float(played.mean("cost").mean())
    found = [(item.value, item.cost) for item in references] or [(math.nan, math.nan)]
    best, least_cost = np.mean(found, axis=0).tolist()
    bound = float(np.mean([bound_objective(instance, goal) for instance in instances]))
    return Margin(rule, goal, *own, best, least_cost, bound)


def play_rules(instances: Sequence[Instance], playing: Playing) -> dict[str, Trials]:
    """Return the trials of the rules to beat on these records.

    On shifts these are baselines, the rules of a control system: those of the paper draw any idle vehicle.
    On the paper's records they are its own.
    """
    bundled = bundled_references()
    is_paper = all(item.content_hash in bundled for item in instances)
    shifts = are_shifts(instances) or any(x.layout.commitment == "pickup" for x in instances)
    names = tuple(TASK_RULES) if is_paper else BASELINES if shifts else RULES_TO_BEAT
    return {name: play_policy(name, instances, playing) for name in names}


def play_best_rule(instances: Sequence[Instance], playing: Playing) -> tuple[str, Trials]:
    """Return the best rule on these records, and its trials."""
    trials = play_rules(instances, playing)
    best = choose_rule(trials)
    return best, trials[best]


class Comparison(NamedTuple):
    """Figures of several policies on the same records; arrays are float64 (n_policies,).

    Attributes
    ----------
    m, c : ndarray
        The paper's metrics; the peers are the policies compared here.
    hindsight : tuple of Reference
        One for each record; empty if that of some record is not known.
    above_hindsight : ndarray
        Mean objective over that of hindsight, minus 1; nan where it is not known or 0.
    of_the_way : ndarray
        Share of the way from the best rule to hindsight, in the mean objective; nan where hindsight is not
        known or the rule is no worse.
    margin : Margin or None
        How far the best rule on these records is from hindsight; None where hindsight is not known.
    """

    m: np.ndarray
    c: np.ndarray
    hindsight: tuple[Reference, ...]
    above_hindsight: np.ndarray
    of_the_way: np.ndarray
    margin: Margin | None


def compare_trials(
    instances: Sequence[Instance],
    results: Sequence[Trials],
    references: Mapping[str, Reference],
    playing: Playing,
) -> Comparison:
    """Compare policies by their trials on the same records, all of `playing`.

    References of another goal are passed over; they stand by the content hash of their instances.
    """
    if any(instance.layout.commitment == "pickup" for instance in instances):
        references = {}  # of schedules in which nothing is called back
    known = find_known(instances, references, playing.goal)
    hindsight = tuple(item for item in known if item is not None)
    above = way = np.full(len(results), np.nan)
    margin = None
    if len(hindsight) < len(instances):
        hindsight = ()
    else:
        mean = np.array([trials.mean("value").mean() for trials in results])
        margin = measure_margin(*play_best_rule(instances, playing), instances, hindsight)
        start, best = margin.value, margin.hindsight
        if best > 0.0:
            above = mean / best - 1.0
        if start > best:
            way = (start - mean) / (start - best)
    peers = (np.array([x.mean(name) for x in results]) for name in ("makespan", "tardiness"))
    m, c = (normalise(values, values) for values in peers)
    return Comparison(m, c, hindsight, above, way, margin)
