"""What each feature of an index policy is worth: the same policy played without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.index import IndexPolicy, find_feature
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.fields import Whole

MAGNITUDE = 5
"""How far the arrivals of the copies that are played are moved at most, s."""

RANDOM_TRIALS = 10
"""Episodes of each copy where vehicles break down at random."""


EFFECTS = {
    ("way ",): ("prefers a short", "prefers a long"),
    ("time ", "lateness "): ("prefers little", "prefers much"),
    ("waiting", "keeping "): ("avoids", "favours"),
    ("level from ", "level below ", "level up "): ("lowers the", "raises the"),
    ("",): ("prefers a small", "prefers a large"),
}
"""What a negative and a positive weight do, by how the words of their feature begin."""


class Part(NamedTuple):
    """A feature of an index policy.

    Its weight is per typical difference of the feature; its effect is in words. Mean objective and share of
    the trials within the limit are those without it, None if nothing was played.
    """

    name: str
    weight: float
    effect: str
    value: float | None = None
    satisfied: float | None = None


class Importance(NamedTuple):
    """The parts of an index policy, that which is missed most first, and what it does with all of them."""

    parts: tuple[Part, ...]
    value: float | None
    satisfied: float | None
    n_records: int
    goal: Goal


def describe_effect(words: str, weight: float) -> str:
    """Say what a weight does, by what its feature is and the weight's sign."""
    if weight == 0.0:
        return f"nothing by {words}"
    less, more = next(found for starts, found in EFFECTS.items() if words.startswith(starts))
    return f"{less if weight < 0.0 else more} {words}"


def list_parts(policy: IndexPolicy) -> list[Part]:
    """Return the features of a policy, with their weights and what these do."""
    return [
        Part(name, weight, describe_effect(find_feature(name).words, weight))
        for name, weight in zip(policy.features, policy.theta.tolist(), strict=True)
    ]


def measure_importance(
    policy: IndexPolicy,
    instances: Instance | Sequence[Instance] = (),
    goal: Goal = PAPER,
    *,
    seed: Whole = 0,
    threads: int | None = None,
) -> Importance:
    """Play noised copies of records with an index policy, and without each of its features in turn.

    Parts are in order of the objective without them, the largest first. Without records nothing is played,
    and they are in order of their weights' sizes. The seed is that of the copies and of the episodes.
    """
    parts = list_parts(policy)
    copies = make_noised(instances, seed=seed, magnitude=MAGNITUDE)
    if not copies:
        return Importance(
            tuple(sorted(parts, key=lambda part: -abs(part.weight))), None, None, 0, goal
        )
    random = any(instance.layout.has_random_breakdowns for instance in copies)
    trials = RANDOM_TRIALS if random else 1
    playing = Playing(trials, seed, goal=goal, threads=threads)

    def play(theta: np.ndarray) -> tuple[float, float]:
        played = play_policy(policy.replace(theta), copies, playing)
        return float(played.mean("value").mean()), played.satisfied

    found = []
    for k, part in enumerate(parts):
        theta = policy.theta.copy()
        theta[k] = 0.0
        found.append(Part(*part[:3], *play(theta)))
    found.sort(key=lambda part: -(part.value or 0.0))
    return Importance(tuple(found), *play(policy.theta), len(copies), goal)
