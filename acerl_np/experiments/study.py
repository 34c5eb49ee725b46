"""What all studies share: trainings, each kept when it is finished, and what they recorded."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.experiments.stamp import RIVAL_ROOTS, ROOTS, result_stamp
from acerl_np.experiments.tables import RULE_ROWS, Row
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance
from acerl_np.rivals.training import RivalTrainer, find_learner
from acerl_np.support.errors import InputError
from acerl_np.support.files import read_arrays, write_arrays, write_atomically
from acerl_np.support.workers import count_cores
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config, Preset
from acerl_np.training.curves import CURVE_COLUMNS, CurvePoint
from acerl_np.training.history import HISTORY_COLUMNS

AHEAD = ", lookahead "
"""Between a suite and the label of a lookahead that plays it."""

FORM = 1
"""Of what is stored of a finished training: another number, and older files are not used."""


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


@dataclass(frozen=True)
class Finished:
    """A finished training.

    Attributes
    ----------
    seed : int
    instances : tuple of str
        Names of the training instances.
    makespan, tardiness : dict of ndarray(float64, (n_instances, n_trials)), s
        Trials by suite.
    history : ndarray(float64, (n_generations, n_columns))
        As `HISTORY_COLUMNS`. Of a compared learner: a generation is a line of its history, and sigma 0.
    counts : ndarray(int64, (n_generations, n_instances))
        Members that played each training instance.
    probabilities : ndarray(float64, (n_generations, n_instances))
        With which the adaptive sampler dealt them; of no generation where there is none.
    looks : ndarray(int64, (n_looks, 2))
        Generation and decisions of each look at theta.
    curves : ndarray(float64, (3, n_looks, n_instances))
        Makespan (s), tardiness (s) and satisfied share then.
    """

    seed: int
    instances: tuple[str, ...]
    makespan: dict[str, np.ndarray]
    tardiness: dict[str, np.ndarray]
    history: np.ndarray
    counts: np.ndarray
    probabilities: np.ndarray
    looks: np.ndarray
    curves: np.ndarray


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
    training: Training, seed: int
) -> tuple[Policy | IndexPolicy, dict[str, np.ndarray]]:
    """Train a compared learner, and return the policy and what is kept of the training."""
    config = training.config
    if not isinstance(config, RivalConfig):
        raise TypeError(f"read {type(config).__name__}; expected RivalConfig")
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


def _find_roots(training: Training) -> tuple[str, ...]:
    return RIVAL_ROOTS if isinstance(training.config, RivalConfig) else ROOTS


class Study:
    """Runs trainings and keeps each finished one, so that an interrupted study goes on where it was.

    Parameters
    ----------
    folder : path
        Results; runs of other settings in it are left alone and not used.
    seeds : int
        Trainings use seeds 0 to `seeds` - 1.
    trials : int
        Episodes per instance and seed.
    generations : int, optional
        Instead of the configuration's, for a quick look.
    threads : int, optional
        Trainings at a time; by default one per core.
    report : callable, optional
        Called with (finished, total, label, whether it was trained now) after every training.
    rivals : sequence of str
        Compared learners to train beside ACERL.
    rival_seeds, rival_steps : int
        Most trainings of each, and their steps.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seeds: int = 20,
        trials: int = 30,
        generations: int | None = None,
        threads: int | None = None,
        report: Callable[[int, int, str, bool], object] | None = None,
        rivals: Sequence[str] = (),
        rival_seeds: int = 5,
        rival_steps: int = 1_000_000,
    ) -> None:
        self.folder = folder
        self.seeds = seeds
        self.trials = trials
        self.generations = generations
        self.threads = threads or count_cores()
        self.report = report
        self.rivals = tuple(rivals)
        self.rival_seeds = rival_seeds
        self.rival_steps = rival_steps
        self.stop = threading.Event()

    def config(self, **options: object) -> Config:
        """Return the paper's settings with some changed."""
        settings = dict(options)
        if self.generations is not None:
            settings["generations"] = self.generations
        return Config.from_dict(settings)

    def preset(self, name: Preset, **options: object) -> Config:
        """Return a preset with some settings changed."""
        settings = dict(options)
        if self.generations is not None:
            settings.update(generations=self.generations, decisions=None)
        return Config.preset(name, **settings)

    def beside(self, training: Training, label: str = "{}") -> list[Training]:
        """Return the rows of the compared learners on the records and suites of a row.

        Parameters
        ----------
        training : Training
        label : str
            Of each row; an algorithm's name takes the place of the braces.
        """
        return [
            replace(
                training,
                label=label.format(name.upper()),
                config=RivalConfig(name, self.rival_steps),
                lookaheads={},
                seeds=self.rival_seeds,
            )
            for name in self.rivals
        ]

    def run(self, trainings: Sequence[Training]) -> dict[str, list[Finished]]:
        """Train every row with every seed, or take what an earlier study has finished.

        Returns
        -------
        dict
            Runs by label, in order of their seeds.
        """
        jobs = [
            (training, seed)
            for training in trainings
            for seed in range(min(self.seeds, training.seeds or self.seeds))
        ]
        done = 0
        lock = threading.Lock()
        for roots in {_find_roots(training) for training in trainings}:
            result_stamp(
                roots
            )  # before the threads: Python 3.11 may fail to parse source in several

        def work(job: tuple[Training, int]) -> Finished | None:
            nonlocal done
            if self.stop.is_set():
                return None
            finished, trained = self._train(*job)
            with lock:
                done += 1
                if self.report is not None:
                    self.report(done, len(jobs), f"{job[0].label} seed {job[1]}", trained)
            return finished

        results: dict[str, list[Finished]] = {training.label: [] for training in trainings}
        with ThreadPoolExecutor(self.threads) as executor:
            try:
                for (training, _), finished in zip(jobs, executor.map(work, jobs), strict=True):
                    if finished is not None:
                        results[training.label].append(finished)
            except BaseException:
                self.stop.set()
                raise
        return results

    def _train(self, training: Training, seed: int) -> tuple[Finished, bool]:
        """Return a training and whether it was trained now."""
        key = self._key(training, seed)
        safe = "".join(letter if letter.isalnum() else "-" for letter in training.label)
        path = self.folder / "runs" / f"{safe}-seed{seed}-{key[:12]}.npz"
        # Studies call the same training by different labels.
        for finished in path.parent.glob(f"*-{key[:12]}.npz"):
            return self._load(finished, training, seed), False
        policy, arrays = (
            train_rival(training, seed)
            if isinstance(training.config, RivalConfig)
            else train_acerl(training, training.config, seed)
        )
        players: dict[str, Policy | IndexPolicy | Lookahead] = {"": policy}
        for label, options in training.lookaheads.items():
            ahead = Lookahead(policy, history=training.instances, seed=seed, **options)
            players[f"{AHEAD}{label}"] = ahead
        for name, instances in training.suites:
            for label, player in players.items():
                # An index policy draws nothing, and a lookahead's draws hardly matter.
                few = 1 if label or isinstance(policy, IndexPolicy) else self.trials
                trials = evaluate_policy(player, list(instances), trials=few, seed=seed, threads=1)
                arrays[f"makespan.{name}{label}"] = trials.makespan
                arrays[f"tardiness.{name}{label}"] = trials.tardiness
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays)
        return self._load(path, training, seed), True

    def _load(self, path: Path, training: Training, seed: int) -> Finished:
        arrays = read_arrays(path, InputError)
        labels = ["", *(f"{AHEAD}{label}" for label in training.lookaheads)]
        names = [f"{name}{label}" for name, _ in training.suites for label in labels]
        missing = {f"makespan.{name}" for name in names} - set(arrays)
        if missing:
            raise InputError(f"{path}: read no '{min(missing)}'; delete the file to train anew")
        return Finished(
            seed,
            tuple(instance.name for instance in training.instances),
            {name: arrays[f"makespan.{name}"] for name in names},
            {name: arrays[f"tardiness.{name}"] for name in names},
            arrays["history"],
            arrays["counts"],
            arrays["probabilities"],
            arrays["looks"],
            arrays["curves"],
        )

    def _key(self, training: Training, seed: int) -> str:
        """Hash all that decides a run: settings, instances, trials, and the code that computes it."""
        content = {
            "form": FORM,
            "config": training.config.to_dict(),
            "seed": seed,
            "trials": self.trials,
            "instances": [instance.content_hash for instance in training.instances],
            "suites": [
                [name, [instance.content_hash for instance in instances]]
                for name, instances in training.suites
            ],
            **({"lookaheads": training.lookaheads} if training.lookaheads else {}),
            "code": result_stamp(_find_roots(training)),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def rows(self, results: dict[str, list[Finished]], suite: str) -> list[Row]:
        """Return the measured rows of one suite."""
        return [
            Row(
                label,
                np.stack([run.makespan[suite] for run in runs], axis=1),
                np.stack([run.tardiness[suite] for run in runs], axis=1),
            )
            for label, runs in results.items()
            if runs and suite in runs[0].makespan
        ]

    def ahead_rows(self, results: dict[str, list[Finished]], suite: str) -> list[Row]:
        """Return the measured rows of the lookaheads on one suite."""
        rows = []
        for label, runs in results.items():
            names = list(runs[0].makespan) if runs else []
            for name in names:
                own, ahead, options = name.partition(AHEAD)
                if ahead and own == suite:
                    found = self.rows({f"{label}, lookahead {options}": runs}, name)
                    rows += found
        return rows

    def rule_rows(self, instances: Sequence[Instance]) -> list[Row]:
        """Play the rules of the paper's tables, a block of trials for each training seed."""
        rows = []
        shape = (len(instances), self.seeds, self.trials)
        for rule in RULE_ROWS:
            trials = evaluate_policy(
                rule, list(instances), trials=self.trials * self.seeds, threads=self.threads
            )
            rows.append(Row(rule, trials.makespan.reshape(shape), trials.tardiness.reshape(shape)))
        return rows

    def write_records(self, results: dict[str, list[Finished]], name: str) -> list[Path]:
        """Write histories, training curves and the sampler's choices of all runs as CSV."""
        history: list[list[object]] = [["policy", "seed", *HISTORY_COLUMNS]]
        curves: list[list[object]] = [["policy", "seed", *CURVE_COLUMNS]]
        choices: list[list[object]] = [
            ["policy", "seed", "generation", "instance", "members", "probability"]
        ]
        for label, runs in results.items():
            for run in runs:
                own = [label, run.seed]
                for line in run.history.tolist():
                    values = [int(line[0]), int(line[1]), *(round(x, 6) for x in line[2:])]
                    history.append([*own, *values])
                for k, (generation, decisions) in enumerate(run.looks.tolist()):
                    for i, names in enumerate(run.instances):
                        values = [round(x, 4) for x in run.curves[:, k, i].tolist()]
                        curves.append([*own, generation, decisions, names, *values])
                for k, counts in enumerate(run.counts.tolist()):
                    for i, members in enumerate(counts):
                        # Other samplers than the adaptive one have no probabilities.
                        known = round(run.probabilities[k, i], 5) if len(run.probabilities) else ""
                        choices.append([*own, k + 1, run.instances[i], members, known])
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for kind, lines in (("history", history), ("curves", curves), ("sampler", choices)):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(lines)
            paths.append(self.folder / f"{name}-{kind}.csv")
            write_atomically(paths[-1], text.getvalue().encode())
        return paths
