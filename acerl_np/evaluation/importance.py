"""What each feature of an index policy is worth: the same policy played without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.index import IndexPolicy
from acerl_np.problem.goal import Goal, find_goal
from acerl_np.problem.instance import Instance
from acerl_np.support.numbers import Whole

MAGNITUDE = 5
"""How far the arrivals of the copies that are played are moved at most, s."""

RANDOM_TRIALS = 10
"""Episodes of each copy where vehicles break down at random."""


EFFECTS = {
    ("whether ",): ("avoids that", "prefers that"),
    ("way ", "mean way "): ("prefers a short", "prefers a long"),
    ("time ", "lateness "): ("prefers little", "prefers much"),
    ("what ",): ("prefers little of", "prefers much of"),
    ("",): ("prefers a small", "prefers a large"),
}
"""What a negative and a positive weight do, by how the words of their feature begin."""


class Part(NamedTuple):
    """A feature of an index policy, or the constant of a vehicle that it tells apart.

    Its weight is per typical difference of the feature, None where hidden units mix it; its effect is in
    words. Mean objective and share of the trials within the limit are those without it, None if nothing
    was played.
    """

    name: str
    weight: float | None
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
    """Say what a linear weight does, by what its feature is and the weight's sign."""
    if weight == 0.0:
        return f"nothing by {words}"
    less, more = next(found for starts, found in EFFECTS.items() if words.startswith(starts))
    return f"{less if weight < 0.0 else more} {words.removeprefix('whether ')}"


def list_parts(policy: IndexPolicy) -> list[tuple[Part, np.ndarray]]:
    """Return the parts of a policy, each with the places of its parameters (ndarray(int64))."""
    hidden, features, names = policy.shape.hidden, policy.features, policy.shape.vehicles
    n = len(features)
    found = []
    for k, feature in enumerate(features):
        # The first layer lies behind the linear part, input-major.
        mixed = n + k * hidden + np.arange(hidden)
        weight = float(policy.theta[k])
        part = Part(feature.name, weight, describe_effect(feature.words, weight))
        if hidden:
            part = Part(feature.name, None, feature.words)
        found.append((part, np.append(mixed, k)))
    for place, name in enumerate(names, policy.n_parameters - len(names)):
        weight = float(policy.theta[place])
        effect = f"{'prefers' if weight > 0.0 else 'avoids'} this vehicle"
        found.append((Part(f"vehicle {name}", weight, effect), np.array([place])))
    return found


def measure_importance(
    policy: IndexPolicy,
    instances: Instance | Sequence[Instance] = (),
    *,
    seed: Whole = 0,
    objective: str | Goal = "makespan",
    cost_limit: float | None = None,
    threads: int | None = None,
) -> Importance:
    """Play noised copies of records with an index policy, and without each of its features in turn.

    Parts are in order of the objective without them, the largest first. Without records nothing is played,
    and they are in order of their weights' sizes. The seed is that of the copies and of the episodes.
    """
    goal = find_goal(objective, cost_limit)
    parts = list_parts(policy)
    copies = make_noised(instances, seed=seed, magnitude=MAGNITUDE)
    if not copies:
        plain = sorted((part for part, _ in parts), key=lambda part: -abs(part.weight or 0.0))
        return Importance(tuple(plain), None, None, 0, goal)
    random = any(instance.layout.has_random_breakdowns for instance in copies)
    trials = RANDOM_TRIALS if random else 1
    playing = Playing(trials, seed, goal=goal, threads=threads)

    def play(theta: np.ndarray) -> tuple[float, float]:
        played = play_policy(policy.replace(theta), copies, playing)
        return float(played.mean_value().mean()), played.satisfied

    found = []
    for part, places in parts:
        theta = policy.theta.copy()
        theta[places] = 0.0
        found.append(Part(*part[:3], *play(theta)))
    found.sort(key=lambda part: -(part.value or 0.0))
    return Importance(tuple(found), *play(policy.theta), len(copies), goal)
