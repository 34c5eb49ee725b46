"""A training of a study as a task that any worker can do: what it is, what is kept of it, and its key."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import llvmlite
import numba
import numpy as np
import scipy

from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.instance import Instance
from acerl_np.rivals.settings import Settings
from acerl_np.rivals.training import RivalTrainer, find_learner
from acerl_np.support.team import Team
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config
from acerl_np.training.curves import pack_curve
from acerl_np.training.history import HISTORY_COLUMNS, pack_columns

J = TypeVar("J")
Done = TypeVar("Done")
Kept = TypeVar("Kept")

AHEAD = ", lookahead "
"""Between a suite and the label of a lookahead that plays it."""
GREEDY = ", greedy"
"""After the name of a suite that the policy has played with its most probable actions."""

ROOMS = (
    "support",
    "kernels",
    "problem",
    "simulation",
    "policies",
    "evolution",
    "training",
    "evaluation",
)
"""Whose code decides what comes of a training."""


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

    def fill(self) -> Settings:
        """Return these settings, and defaults for the others."""
        return find_learner(self.algorithm)[0].settings_class.from_dict(self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return all that decides a training, as plain values."""
        return {"algorithm": self.algorithm, "steps": self.steps, "settings": self.fill().to_dict()}


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
        return hash_content(content, self.training.config)


def hash_content(content: Mapping[str, Any], config: Config | RivalConfig) -> str:
    """Return the key of a run: the hash of what decides it, and of the code that trains so."""
    text = json.dumps({**content, "code": hash_code(config)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_code(config: Config | RivalConfig) -> str:
    """Return the hash of the code that trains so."""
    return hash_rooms((*ROOMS, "rivals") if isinstance(config, RivalConfig) else ROOMS)


def list_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {module.__name__: module.__version__ for module in (np, scipy, numba, llvmlite)}


@cache
def hash_rooms(rooms: tuple[str, ...] = ROOMS) -> str:
    """Return the hash of the code of rooms, and of the libraries that compute for it.

    Returns
    -------
    str
        64 hexadecimal digits; comments and docstrings do not change them.
    """
    versions = " ".join(" ".join(item) for item in list_versions().items())
    digest = hashlib.sha256(versions.encode())
    package = Path(__file__).parent.parent
    for path in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        name = path.relative_to(package).as_posix()
        digest.update(f"\0{name}\0{strip_source(path.read_bytes())}".encode())
    return digest.hexdigest()


def strip_source(source: bytes) -> str:
    """Return what Python makes of a source file, without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [item for item in node.body if not _is_text(item)]
    return ast.dump(tree, annotate_fields=False)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def start_training(
    config: Config | RivalConfig, instances: Sequence[Instance], seed: int
) -> ACERL | RivalTrainer:
    """Return a training that has not begun, on one thread."""
    if isinstance(config, Config):
        return ACERL(list(instances), config, seed=seed, threads=1)
    own, settings = list(instances), config.settings
    return RivalTrainer(config.algorithm, own, steps=config.steps, seed=seed, settings=settings)


def run_job(job: Job) -> dict[str, np.ndarray]:
    """Train, play the suites, and return all that is kept of it, on one thread."""
    training, seed, trials = job
    trainer = start_training(training.config, training.instances, seed)
    probabilities = []
    while not trainer.done:
        own = trainer if isinstance(trainer, ACERL) else trainer.episodes
        if isinstance(own.sampler, AdaptiveSampler):
            probabilities.append(own.sampler.probabilities())
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


def finish(
    jobs: Sequence[J],
    find: Callable[[J], Kept | None],
    work: Callable[[J], Done],
    keep: Callable[[J, Done], Kept],
    team: Team,
) -> Iterator[tuple[int, Kept, bool]]:
    """Take what is kept of jobs, let a team do the others, and keep what it has done.

    Yields
    ------
    int, object, bool
        Position of the job, what is kept of it, and whether it was done now.
    """
    missing = []
    for k, job in enumerate(jobs):
        kept = find(job)
        if kept is None:
            missing.append(k)
        else:
            yield k, kept, False
    for place, done in team.run(work, [jobs[k] for k in missing]):
        k = missing[place]
        yield k, keep(jobs[k], done), True
