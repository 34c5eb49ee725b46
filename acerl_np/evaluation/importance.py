"""What each feature of an index policy is worth: the same policy played without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.index import IndexPolicy
from acerl_np.problem.instance import Instance, list_instances
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


@dataclass(frozen=True)
class Part:
    """A feature of an index policy, or the constant of a vehicle that it tells apart.

    Attributes
    ----------
    name : str
    weight : float or None
        Per typical difference of the feature; None where hidden units mix it.
    effect : str
        What it does, in words.
    makespan : float or None
        Mean without it, s; None if nothing was played.
    satisfied : float or None
        Share of the trials within the limit without it.
    """

    name: str
    weight: float | None
    effect: str
    makespan: float | None = None
    satisfied: float | None = None


@dataclass(frozen=True)
class Importance:
    """The parts of an index policy, that which is missed most first.

    Attributes
    ----------
    parts : tuple of Part
    makespan, satisfied : float or None
        Of the policy with all of them.
    n_records : int
        Noised copies that were played.
    cost_limit : float
        s.
    """

    parts: tuple[Part, ...]
    makespan: float | None
    satisfied: float | None
    n_records: int
    cost_limit: float


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
    for k, name in enumerate(names):
        place = policy.n_parameters - len(names) + k
        weight = float(policy.theta[place])
        effect = f"{'prefers' if weight > 0.0 else 'avoids'} this vehicle"
        found.append((Part(f"vehicle {name}", weight, effect), np.array([place])))
    return found


def measure_importance(
    policy: IndexPolicy,
    instances: Instance | Sequence[Instance] = (),
    *,
    seed: Whole = 0,
    cost_limit: float = 50.0,
    threads: int | None = None,
) -> Importance:
    """Play noised copies of records with an index policy, and without each of its features in turn.

    Parameters
    ----------
    policy : IndexPolicy
    instances : Instance or sequence of Instance
        Records whose copies are played, arrivals moved by up to `MAGNITUDE`; without any nothing is played.
    seed : int
        Of the copies and of the episodes.
    cost_limit : float
        s.
    threads : int, optional
        By default one per core.

    Returns
    -------
    Importance
        Parts in order of the makespan without them, the longest first; if nothing was played, of their
        weights' sizes.

    Raises
    ------
    PolicyError
        If the policy does not fit the records.
    """
    parts = list_parts(policy)
    copies = make_noised(list_instances(instances), seed=seed, magnitude=MAGNITUDE)
    if not copies:
        plain = sorted((part for part, _ in parts), key=lambda part: -abs(part.weight or 0.0))
        return Importance(tuple(plain), None, None, 0, cost_limit)
    random = any(instance.layout.has_random_breakdowns for instance in copies)
    trials = RANDOM_TRIALS if random else 1
    playing = Playing(trials, seed, cost_limit=cost_limit, threads=threads)
    found = []
    for part, places in parts:
        theta = policy.theta.copy()
        theta[places] = 0.0
        without = play_policy(policy.replace(theta), copies, playing)
        makespan = float(without.mean_makespan().mean())
        found.append(replace(part, makespan=makespan, satisfied=without.satisfied))
    found.sort(key=lambda part: -(part.makespan or 0.0))
    whole = play_policy(policy, copies, playing)
    makespan = float(whole.mean_makespan().mean())
    return Importance(tuple(found), makespan, whole.satisfied, len(copies), cost_limit)
