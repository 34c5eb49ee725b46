"""A study: rows to train, each training as a task that any worker can do, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.jobs import ROOMS, finish, hash_content
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError
from acerl_np.support.files import read_arrays, write_arrays, write_atomically
from acerl_np.support.report import render_csv
from acerl_np.support.team import Team, lead
from acerl_np.support.workers import count_cores
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config
from acerl_np.training.history import CURVE_COLUMNS, HISTORY_COLUMNS, pack_columns, pack_curve
from acerl_np.training.settings import Preset
from studies.rivals.training import RivalConfig, RivalTrainer
from studies.study_tables import RULE_ROWS, Measured, StudyTable, spread_table

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


GREEDY_RIVALS = ("mappo", "amappo")
"""Tested greedily in the paper: all its makespans of them are multiples of 0.2, five seeds' means."""
SCALED_AS_PAPER = {", reward in s": {"reward_scale": 1982.0, "reward_shift": 0.0}}
"""Minus the makespan in seconds: the mean makespan of MIX undoes the learners' own division by it."""
OTHER_REWARDS = ("ppo", "sac", "mappo")


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

    def list_lines(self) -> dict[str, list[list[object]]]:
        """Return history, training curves and the sampler's choices as lines of a table each."""
        looks, n = self.looks.tolist(), range(len(self.instances))
        # Other samplers than the adaptive one have no probabilities.
        known = self.probabilities.round(5).tolist() or [[""] * len(n)] * len(self.counts)
        return {
            "history": [
                [int(line[0]), int(line[1]), *(round(x, 6) for x in line[2:])]
                for line in self.history.tolist()
            ],
            "curves": [
                [*look, self.instances[i], *(round(x, 4) for x in self.curves[:, k, i].tolist())]
                for k, look in enumerate(looks)
                for i in n
            ],
            "sampler": [
                [k + 1, self.instances[i], counts[i], known[k][i]]
                for k, counts in enumerate(self.counts.tolist())
                for i in n
            ],
        }


Results = dict[str, list[Finished]]
"""Finished trainings by the label of their row."""


@dataclass
class Study:
    """Runs trainings and keeps each finished one, so that an interrupted study goes on where it was.

    Attributes
    ----------
    folder : path
        Results; runs of other settings in it are left alone and not used.
    seeds : int
        Trainings of a row, with seeds from `first` on.
    trials : int
        Episodes per instance and seed.
    generations : int, optional
        Instead of the configuration's, for a quick look.
    threads : int, optional
        Trainings at a time; by default one per core.
    report : callable, optional
        Called with (finished, total, label, whether it was trained now) after every training.
    rivals : tuple of str
        Compared learners to train beside ACERL.
    rival_seeds, rival_steps : int
        Most trainings of each, and their steps.
    team : Team, optional
        Who trains; by default threads of this process.
    rules : dict
        What the rules have played, by suite.
    """

    folder: Path
    seeds: int = 20
    trials: int = 30
    generations: int | None = None
    threads: int | None = None
    report: Callable[[int, int, str, bool], object] | None = None
    rivals: tuple[str, ...] = ()
    rival_seeds: int = 5
    rival_steps: int = 1_000_000
    team: Team | None = None
    first: int = 0
    rules: dict[str, list[Measured]] = field(default_factory=dict)

    def config(self, preset: Preset = "paper", **options: object) -> Config:
        """Return the settings of a preset with some changed."""
        if self.generations is not None:
            options |= {"generations": self.generations, "decisions": None}
        return Config.preset(preset, **options)

    def beside(
        self, training: Training, label: str = "{}", *, rewards: bool = False
    ) -> list[Training]:
        """Return the rows of the compared learners on the records and suites of a row.

        Parameters
        ----------
        training : Training
        label : str
            Of each row; an algorithm's name takes the place of the braces.
        rewards : bool
            Whether some are trained with their reward as the paper defines it, too.
        """
        return [
            replace(
                training,
                label=label.format(f"{name.upper()}{what}"),
                config=RivalConfig(name, self.rival_steps, settings),
                lookaheads={},
                seeds=self.rival_seeds,
                greedy=name in GREEDY_RIVALS,
            )
            for what, settings in ({"": {}, **SCALED_AS_PAPER} if rewards else {"": {}}).items()
            for name in self.rivals
            if not what or name in OTHER_REWARDS
        ]

    def run(self, trainings: Sequence[Training]) -> Results:
        """Train every row with every seed, or take what an earlier study has finished.

        Returns
        -------
        dict
            Runs by label, in order of their seeds.
        """
        jobs, first = self.list_jobs(trainings), dict[str, Job]()
        for job in jobs:  # rows of a study may call the same training by two names
            first.setdefault(job.key(), job)
        chosen, found = [*first.values()], dict[str, Finished]()
        with lead(self.team, self.threads or count_cores()) as team:
            for k, run, is_new in finish(chosen, self.find, run_job, self._keep, team):
                found[chosen[k].key()] = run
                if self.report is not None:
                    label = f"{chosen[k].training.label} seed {run.seed}"
                    self.report(len(found), len(chosen), label, is_new)
        results: Results = {training.label: [] for training in trainings}
        for job in jobs:
            results[job.training.label].append(found[job.key()])
        return results

    def list_jobs(self, trainings: Sequence[Training]) -> list[Job]:
        """Return what is to be trained for these rows."""
        return [
            Job(training, self.first + seed, self.trials)
            for training in trainings
            for seed in range(min(self.seeds, training.seeds or self.seeds))
        ]

    def find(self, job: Job) -> Finished | None:
        """Return a training that is kept, None if it is not; studies call one by different labels."""
        path = next((self.folder / "runs").glob(f"*-{job.key()[:12]}.npz"), None)
        return None if path is None else _load(path, job)

    def _keep(self, job: Job, arrays: dict[str, np.ndarray]) -> Finished:
        safe = "".join(letter if letter.isalnum() else "-" for letter in job.training.label)
        path = self.folder / "runs" / f"{safe}-seed{job.seed}-{job.key()[:12]}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays)
        return _load(path, job)

    def rows(self, results: Results, suite: str, *, ahead: bool = False) -> list[Measured]:
        """Return the measured rows of one suite, or those of the lookaheads on it."""
        found = []
        for label, runs in results.items():
            for name in runs[0].makespan if runs else ():
                own, looks, _ = name.partition(AHEAD)
                if own.removesuffix(GREEDY) == suite and bool(looks) is ahead:
                    shown = f"{label}{name.removeprefix(suite)}"
                    parts = (
                        np.stack([getattr(run, kind)[name] for run in runs], axis=1)
                        for kind in ("makespan", "tardiness")
                    )
                    found.append(Measured(shown, *parts))
        return found

    def spread(
        self, results: Results, name: str, title: str, suites: Sequence[str], reference: str
    ) -> list[StudyTable]:
        """Return a table of spreads for each suite."""
        return [
            spread_table(
                f"{name}-{suite.removeprefix('dmh-')}",
                f"{title} on {suite}",
                self.rows(results, suite),
                reference,
            )
            for suite in suites
        ]

    def rule_rows(
        self,
        suite: str,
        instances: Sequence[Instance],
        blocks: int | None = None,
        rules: Sequence[str] = RULE_ROWS,
    ) -> list[Measured]:
        """Play rules on a suite, each once, some blocks of trials, else one a seed."""
        played = self.rules.setdefault(suite, [])
        shape = (len(instances), blocks or self.seeds, self.trials)
        playing = Playing(self.trials * shape[1], threads=self.threads)
        for rule in set(rules) - {row.label for row in played}:
            trials = play_policy(rule, list(instances), playing)
            parts = (trials.makespan.reshape(shape), trials.tardiness.reshape(shape))
            played.append(Measured(rule, *parts))
        by_label = {row.label: row for row in played}
        return [by_label[rule] for rule in rules]

    def write_records(self, results: Results, name: str) -> list[Path]:
        """Write histories, training curves and the sampler's choices of all runs as CSV."""
        tables: dict[str, list[list[object]]] = {
            "history": [["policy", "seed", *HISTORY_COLUMNS]],
            "curves": [["policy", "seed", *CURVE_COLUMNS]],
            "sampler": [["policy", "seed", "generation", "instance", "members", "probability"]],
        }
        for label, runs in results.items():
            for run in runs:
                for kind, lines in run.list_lines().items():
                    tables[kind] += ([label, run.seed, *line] for line in lines)
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for kind, lines in tables.items():
            paths.append(self.folder / f"{name}-{kind}.csv")
            write_atomically(paths[-1], render_csv(lines).encode())
        return paths


def _load(path: Path, job: Job) -> Finished:
    """Return what is kept of a training.

    Raises
    ------
    InputError
        If the file is damaged, or a suite is not in it.
    """
    arrays = read_arrays(path, InputError)
    names = job.training.list_played()
    missing = {f"makespan.{name}" for name in names} - set(arrays)
    if missing:
        raise InputError(f"{path}: read no '{min(missing)}'; delete the file to train anew")
    makespan, tardiness = (
        {name: arrays[f"{kind}.{name}"] for name in names} for kind in ("makespan", "tardiness")
    )
    recorded = [arrays[kind] for kind in ("history", "counts", "probabilities", "looks", "curves")]
    instances = tuple(instance.name for instance in job.training.instances)
    return Finished(job.seed, instances, makespan, tardiness, *recorded)
