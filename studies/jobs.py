"""A training of a study as a task that any worker can do: what it is, what is kept of it, and its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.jobs import ROOMS, hash_content
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.instance import Instance
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config
from acerl_np.training.history import HISTORY_COLUMNS, pack_columns, pack_curve
from studies.rivals.training import RivalConfig, RivalTrainer

AHEAD = ", lookahead "
"""Between a suite and the label of a lookahead that plays it."""
GREEDY = ", greedy"
"""After the name of a suite that the policy has played with its most probable actions."""

Suites = tuple[tuple[str, tuple[Instance, ...]], ...]
"""Records by the names of their suites."""


def load_suites(*names: str) -> Suites:
    """Return bundled suites."""
    return tuple((name, tuple(load_suite(name))) for name in names)


@dataclass(frozen=True)
class Training:
    """One row of a study: what to train on, how, and what to play afterwards.

    Attributes
    ----------
    label : str
    instances : tuple of Instance
    config : Config or RivalConfig
    suites : Suites
    lookaheads : dict of dict
        Options of lookaheads that play the suites, too, over the training records, by label.
    seeds : int, optional
        Most trainings of the row; by default as many as the study's.
    greedy : bool
        Whether the policy plays the suites with its most probable actions, too.
    """

    label: str
    instances: tuple[Instance, ...]
    config: Config | RivalConfig
    suites: Suites
    lookaheads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seeds: int | None = None
    greedy: bool = False

    def list_played(self) -> list[str]:
        """Return the names of all that is played: each suite, and each suite with each lookahead."""
        labels = ["", *([GREEDY] if self.greedy else []), *(AHEAD + x for x in self.lookaheads)]
        return [f"{suite}{label}" for suite, _ in self.suites for label in labels]

    def to_dict(self) -> dict[str, Any]:
        """Return all that decides what comes of it, but for the code, as plain values."""
        return {
            "config": self.config.to_dict(),
            "instances": [instance.content_hash for instance in self.instances],
            "suites": [
                [name, [instance.content_hash for instance in instances]]
                for name, instances in self.suites
            ],
            "lookaheads": self.lookaheads,
            "greedy": self.greedy,
        }


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

    def key(self) -> str:
        """Hash all that decides the run: settings, instances, trials, and the code that computes it."""
        content = {"seed": self.seed, "trials": self.trials, **self.training.to_dict()}
        return hash_content(content, find_rooms(self.training.config))


def find_rooms(config: Config | RivalConfig) -> tuple[Path, ...]:
    """Return the folders of the code that trains so."""
    return ROOMS if isinstance(config, Config) else config.rooms


def run_job(job: Job) -> dict[str, np.ndarray]:
    """Train, play the suites, and return all that is kept of it, on one thread."""
    training, seed, trials = job
    config, own = training.config, list(training.instances)
    trainer: ACERL | RivalTrainer
    if isinstance(config, Config):
        trainer = ACERL(own, config, seed=seed, threads=1)
    else:
        trainer = config.start(own, seed)
    probabilities = []
    while not trainer.done:
        sampler = (trainer if isinstance(trainer, ACERL) else trainer.episodes).sampler
        if isinstance(sampler, AdaptiveSampler):
            probabilities.append(sampler.probabilities())
        trainer.step()
    policy = trainer.policy
    arrays = {
        **pack_history(trainer, np.array(probabilities)),
        **{
            name: array
            for name, array in policy.to_arrays(with_origin=False).items()
            if name in ("theta", "vehicle_theta")
        },
    }
    players: dict[str, Policy | IndexPolicy | Lookahead] = {"": policy}
    if training.greedy:
        players[GREEDY] = policy
    for label, options in training.lookaheads.items():
        ahead = Lookahead(policy, history=training.instances, seed=seed, **options)
        players[f"{AHEAD}{label}"] = ahead
    for name, instances in training.suites:
        for label, player in players.items():
            # An index policy draws nothing, and a lookahead's draws hardly matter.
            few = trials if player is policy and not isinstance(policy, IndexPolicy) else 1
            greedy = True if label == GREEDY else None
            played = play_policy(player, list(instances), Playing(few, seed, greedy, threads=1))
            arrays[f"makespan.{name}{label}"] = played.makespan
            arrays[f"tardiness.{name}{label}"] = played.tardiness
    return arrays


def pack_history(trainer: ACERL | RivalTrainer, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """Return how a training went as plain arrays; of a compared learner a line is a generation."""
    n, records = len(trainer.instances), map(asdict, trainer.history)
    lines = [
        {"generation": k, "decisions": x.get("steps"), "noise_std": 0, **x}
        for k, x in enumerate(records, start=1)
    ]
    history = [[line[name] for name in HISTORY_COLUMNS] for line in lines]
    looks, curves = pack_curve(trainer.curve, n)
    return {
        "history": np.array(history, np.float64).reshape(-1, len(HISTORY_COLUMNS)),
        "counts": pack_columns(trainer.history, ["counts"], n, kind=np.int64)[:, 0],
        "probabilities": probabilities.reshape(-1, n),
        "looks": looks,
        "curves": curves[:, :-1].swapaxes(0, 1),
    }
