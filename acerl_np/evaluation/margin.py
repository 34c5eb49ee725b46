"""How much there is to win: policies beside each other, the best rule, and the best known in hindsight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.metrics import normalise
from acerl_np.evaluation.references import Reference, bundled_references, find_known
from acerl_np.evaluation.trials import Playing, Trials, play_policy
from acerl_np.policies.static_search import StaticResult, find_static
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance

RULES_TO_BEAT = ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP")
"""The rules that the best one is chosen from; the others are draws."""

LITTLE_MAKESPAN = 0.01
LITTLE_TARDINESS = 1.0
"""Share of the makespan, and seconds of tardiness, up to which there is little to win."""


def choose_rule(results: Mapping[str, Trials]) -> str:
    """Return the best rule by the rules' trials on the training records.

    That of the smallest mean makespan among those whose mean tardiness is below the limit; if none is, that
    of the least mean tardiness. The first of equals; a rule that left an episode unfinished comes last.
    """

    def order(name: str) -> tuple[bool, bool, float]:
        trials = results[name]
        tardiness = float(trials.mean_tardiness().mean())
        within = tardiness < trials.cost_limit
        score = float(trials.mean_makespan().mean()) if within else tardiness
        return trials.unfinished > 0, not within, math.inf if math.isnan(score) else score

    return min(results, key=order)


class Margin(NamedTuple):
    """How far a rule is from hindsight, in the mean over the records: share of makespan, s of tardiness."""

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
    """Return how far a rule is from hindsight, by its trials and a reference for each of their records."""
    best = np.mean([(item.makespan, item.tardiness) for item in references], axis=0)
    makespan, tardiness = played.mean_makespan().mean(), played.mean_tardiness().mean()
    return Margin(rule, float(makespan / best[0] - 1.0), float(tardiness - best[1]))


def play_best_rule(instances: Sequence[Instance], playing: Playing) -> tuple[str, Trials]:
    """Return the best rule on these records and its trials."""
    results = {name: play_policy(name, instances, playing) for name in RULES_TO_BEAT}
    rule = choose_rule(results)
    return rule, results[rule]


class Comparison(NamedTuple):
    """Figures of several policies on the same records; arrays are float64 (n_policies,).

    Attributes
    ----------
    m, c : ndarray
        The paper's metrics; the peers are the policies compared here.
    hindsight : tuple of Reference
        One for each record; empty if that of some record is not known.
    above_hindsight : ndarray
        Mean makespan over that of hindsight, minus 1; nan where it is not known.
    of_the_way : ndarray
        Share of the way from the best static plan to hindsight, in mean makespan; nan where either is
        not known or there is no way between them.
    static : StaticResult or None
        That best static plan, found on these very records; None where hindsight is not known.
    """

    m: np.ndarray
    c: np.ndarray
    hindsight: tuple[Reference, ...]
    above_hindsight: np.ndarray
    of_the_way: np.ndarray
    static: StaticResult | None


def compare_trials(
    instances: Sequence[Instance],
    results: Sequence[Trials],
    references: Mapping[str, Reference],
) -> Comparison:
    """Compare policies by their trials on the same records, with one cost limit.

    References of another limit are passed over; they stand by the content hash of their instances.
    """
    makespan = np.array([trials.mean_makespan() for trials in results])
    tardiness = np.array([trials.mean_tardiness() for trials in results])
    limit = results[0].cost_limit
    known = find_known(instances, references, limit)
    hindsight = tuple(item for item in known if item is not None)
    above = way = np.full(len(results), np.nan)
    static = None
    if len(hindsight) < len(instances):
        hindsight = ()
    else:
        mean = makespan.mean(axis=1)
        best = float(np.mean([item.makespan for item in hindsight]))
        above = mean / best - 1.0
        static = find_static(instances, goal=results[0].goal)
        start = best if static is None else float(static.makespan.mean())
        if start > best:
            way = (start - mean) / (start - best)
    m, c = (normalise(values, values) for values in (makespan, tardiness))
    return Comparison(m, c, hindsight, above, way, static)


class Hindsight(NamedTuple):
    """The best for one record: found by a search, of static plans within the limit, stored in the package."""

    found: Reference | None
    static: StaticResult | None
    stored: Reference | None


def compare_references(
    instances: Sequence[Instance], found: Sequence[Reference | None], *, cost_limit: float = 50.0
) -> list[Hindsight]:
    """Put what a search found beside the best static plan within the limit and the bundled reference."""
    stored = bundled_references()
    return [
        Hindsight(
            reference,
            find_static(instance, goal=Goal(cost_limit=cost_limit), within_limit=True),
            stored.get(instance.content_hash),
        )
        for instance, reference in zip(instances, found, strict=True)
    ]
