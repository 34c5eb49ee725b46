"""One training of a study: what is trained and played, as a task that any worker can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance
from acerl_np.rivals.training import RivalTrainer, find_learner
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config
from acerl_np.training.curves import CurvePoint
from acerl_np.training.history import HISTORY_COLUMNS

AHEAD = ", lookahead "
"""Between a suite and the label of a lookahead that plays it."""


@dataclass(frozen=True)
class RivalConfig:
    """How a compared learner is trained.

    Attributes
    ----------
    algorithm : str
        One of `rivals.ALGORITHMS`.
    steps : int
    settings : dict
        Those that are not the defaults.
    """

    algorithm: str
    steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all that decides a training, as plain values."""
        settings = find_learner(self.algorithm)[0].settings_class.from_dict(self.settings)
        return {
            "algorithm": self.algorithm,
            "steps": self.steps,
            "settings": settings.to_dict(),
        }


@dataclass(frozen=True)
class Training:
    """One row of a study: what to train on, how, and what to play afterwards.

    Attributes
    ----------
    label : str
    instances : tuple of Instance
    config : Config or RivalConfig
    suites : tuple of (str, tuple of Instance)
        By name.
    lookaheads : dict of dict
        Options of lookaheads that play the suites, too, over the training records, by label.
    seeds : int, optional
        Most trainings of the row; by default as many as the study's.
    """

    label: str
    instances: tuple[Instance, ...]
    config: Config | RivalConfig
    suites: tuple[tuple[str, tuple[Instance, ...]], ...]
    lookaheads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seeds: int | None = None


class Job(NamedTuple):
    """A training of a row, and how many trials judge it.

    Attributes
    ----------
    training : Training
    seed : int
    trials : int
        Episodes per instance.
    """

    training: Training
    seed: int
    trials: int


def run_job(job: Job) -> dict[str, np.ndarray]:
    """Train, play the suites, and return all that is kept of it, on one thread."""
    training, seed, trials = job
    if isinstance(training.config, RivalConfig):
        policy, arrays = train_rival(training, training.config, seed)
    else:
        policy, arrays = train_acerl(training, training.config, seed)
    players: dict[str, Policy | IndexPolicy | Lookahead] = {"": policy}
    for label, options in training.lookaheads.items():
        ahead = Lookahead(policy, history=training.instances, seed=seed, **options)
        players[f"{AHEAD}{label}"] = ahead
    for name, instances in training.suites:
        for label, player in players.items():
            # An index policy draws nothing, and a lookahead's draws hardly matter.
            few = 1 if label or isinstance(policy, IndexPolicy) else trials
            played = evaluate_policy(player, list(instances), trials=few, seed=seed, threads=1)
            arrays[f"makespan.{name}{label}"] = played.makespan
            arrays[f"tardiness.{name}{label}"] = played.tardiness
    return arrays


def train_acerl(
    training: Training, config: Config, seed: int
) -> tuple[Policy | IndexPolicy, dict[str, np.ndarray]]:
    """Train ACERL, and return the policy and what is kept of the training."""
    trainer = ACERL(list(training.instances), config, seed=seed, threads=1)
    probabilities = []
    while not trainer.done:
        sampler = trainer.sampler
        if isinstance(sampler, AdaptiveSampler):
            probabilities.append(sampler.probabilities())
        trainer.step()
    history = [[getattr(item, name) for name in HISTORY_COLUMNS] for item in trainer.history]
    counts = [item.counts for item in trainer.history]
    policy = trainer.policy
    return policy, pack_training(training, history, counts, probabilities, trainer.curve, policy)


def train_rival(
    training: Training, config: RivalConfig, seed: int
) -> tuple[Policy | IndexPolicy, dict[str, np.ndarray]]:
    """Train a compared learner, and return the policy and what is kept of the training."""
    trainer = RivalTrainer(
        config.algorithm,
        list(training.instances),
        steps=config.steps,
        seed=seed,
        settings=config.settings,
    )
    probabilities = []
    while not trainer.done:
        sampler = trainer.episodes.sampler
        if isinstance(sampler, AdaptiveSampler):
            probabilities.append(sampler.probabilities())
        trainer.step()
    shared = ("steps", "seconds", "return_mean", "return_std", "cost_mean", "satisfied")
    history = [
        [k + 1, *(getattr(item, name) for name in shared), 0.0]
        for k, item in enumerate(trainer.history)
    ]
    counts = [item.counts for item in trainer.history]
    policy = trainer.policy
    return policy, pack_training(training, history, counts, probabilities, trainer.curve, policy)


def pack_training(
    training: Training,
    history: list[list[float]],
    counts: list[tuple[int, ...]],
    probabilities: list[np.ndarray],
    curve: Sequence[CurvePoint],
    policy: Policy | IndexPolicy,
) -> dict[str, np.ndarray]:
    """Return what is kept of a training as plain arrays."""
    n = len(training.instances)
    looks = [(point.generation, point.decisions) for point in curve]
    return {
        "history": np.array(history).reshape(-1, len(HISTORY_COLUMNS)),
        "counts": np.array(counts, np.int64).reshape(-1, n),
        "probabilities": np.array(probabilities).reshape(-1, n),
        "looks": np.array(looks, np.int64).reshape(-1, 2),
        "curves": np.array(
            [
                [getattr(point, name) for point in curve]
                for name in ("makespan", "tardiness", "satisfied")
            ]
        ),
        **{
            name: array
            for name, array in policy.to_arrays(with_origin=False).items()
            if name in ("theta", "vehicle_theta")
        },
    }
