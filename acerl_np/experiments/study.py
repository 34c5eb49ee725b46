"""What all studies share: trainings, each kept when it is finished, and what they recorded."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.experiments.runs import AHEAD, Job, RivalConfig, Training, run_job
from acerl_np.experiments.stamp import RIVAL_ROOTS, ROOTS, result_stamp
from acerl_np.experiments.tables import RULE_ROWS, Row
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError
from acerl_np.support.files import read_arrays, write_arrays, write_atomically
from acerl_np.support.team import Team, lead
from acerl_np.support.workers import count_cores
from acerl_np.training.config import Config, Preset
from acerl_np.training.curves import CURVE_COLUMNS
from acerl_np.training.history import HISTORY_COLUMNS

FORM = 1
"""Of what is stored of a finished training: another number, and older files are not used."""


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
    team : Team, optional
        Who trains; by default threads of this process.
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
        team: Team | None = None,
    ) -> None:
        self.folder = folder
        self.seeds = seeds
        self.trials = trials
        self.generations = generations
        self.threads = threads or count_cores()
        self.team = team
        self.report = report
        self.rivals = tuple(rivals)
        self.rival_seeds = rival_seeds
        self.rival_steps = rival_steps

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
            Job(training, seed, self.trials)
            for training in trainings
            for seed in range(min(self.seeds, training.seeds or self.seeds))
        ]
        for roots in {_find_roots(training) for training in trainings}:
            result_stamp(roots)  # Python 3.11 may fail to parse source in several threads at once
        found: dict[int, Finished] = {}
        missing: dict[
            str, list[int]
        ] = {}  # rows of a study may call the same training by two names
        for k, job in enumerate(jobs):
            path = self._find(job)
            if path is None:
                missing.setdefault(self._key(job.training, job.seed), []).append(k)
            else:
                found[k] = self._load(path, job.training, job.seed)
                self._tell(len(found), jobs, k, False)
        alike = list(missing.values())
        chosen = [jobs[same[0]] for same in alike]
        with lead(self.team, self.threads) as team:
            for place, arrays in team.run(run_job, chosen):
                for k in alike[place]:
                    found[k] = self._keep(jobs[k], arrays)
                    self._tell(len(found), jobs, k, k == alike[place][0])
        results: dict[str, list[Finished]] = {training.label: [] for training in trainings}
        for k, job in enumerate(jobs):
            results[job.training.label].append(found[k])
        return results

    def _tell(self, done: int, jobs: Sequence[Job], k: int, trained: bool) -> None:
        if self.report is not None:
            label = f"{jobs[k].training.label} seed {jobs[k].seed}"
            self.report(done, len(jobs), label, trained)

    def _find(self, job: Job) -> Path | None:
        """Return where a training is kept, None if it is not; studies call one by different labels."""
        key = self._key(job.training, job.seed)
        return next((self.folder / "runs").glob(f"*-{key[:12]}.npz"), None)

    def _keep(self, job: Job, arrays: dict[str, np.ndarray]) -> Finished:
        path = self._find(job)
        if path is None:
            key = self._key(job.training, job.seed)
            safe = "".join(letter if letter.isalnum() else "-" for letter in job.training.label)
            path = self.folder / "runs" / f"{safe}-seed{job.seed}-{key[:12]}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(path, arrays)
        return self._load(path, job.training, job.seed)

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
