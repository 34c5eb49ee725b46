"""What all studies share: trainings kept per finished run, their tables, curves and sampler choices."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acerl_np.acerl import ACERL, HISTORY_COLUMNS
from acerl_np.config import Config
from acerl_np.errors import InputError
from acerl_np.evaluation import Trials, evaluate_policy
from acerl_np.evolution.sampler import AdaptiveSampler
from acerl_np.experiments.published import PublishedRow
from acerl_np.experiments.stamp import result_stamp
from acerl_np.metrics import compare_samples, normalise, satisfied_share
from acerl_np.problem.instance import Instance, display_name
from acerl_np.report import Cell, render_table
from acerl_np.storage import read_arrays, write_arrays, write_atomically
from acerl_np.workers import count_cores

RULE_ROWS = ("MIX", "FCFS", "EDD", "NVF", "STD", "Random")
"""Rules in the order of the paper's tables."""


@dataclass(frozen=True)
class Training:
    """One row of a study: what to train on, how, and what to play afterwards."""

    label: str
    instances: tuple[Instance, ...]
    config: Config
    suites: tuple[tuple[str, tuple[Instance, ...]], ...]


@dataclass(frozen=True)
class Finished:
    """A finished training.

    Attributes
    ----------
    seed : int
    makespan, tardiness : dict of ndarray(float64, (n_instances, n_trials)), s
        Trials by suite.
    history : ndarray(float64, (n_generations, n_columns))
        As `HISTORY_COLUMNS`.
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
    makespan: dict[str, np.ndarray]
    tardiness: dict[str, np.ndarray]
    history: np.ndarray
    counts: np.ndarray
    probabilities: np.ndarray
    looks: np.ndarray
    curves: np.ndarray


@dataclass(frozen=True)
class Row:
    """Trials of one policy on one suite, all seeds together.

    Attributes
    ----------
    label : str
    makespan, tardiness : ndarray(float64, (n_instances, n_seeds * n_trials)), s
    """

    label: str
    makespan: np.ndarray
    tardiness: np.ndarray


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
        Called with (finished, total, label) after every training.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seeds: int = 5,
        trials: int = 30,
        generations: int | None = None,
        threads: int | None = None,
        report: Callable[[int, int, str], object] | None = None,
    ) -> None:
        self.folder = folder
        self.seeds = seeds
        self.trials = trials
        self.generations = generations
        self.threads = threads or count_cores()
        self.report = report
        self.stop = threading.Event()

    def config(self, **options: object) -> Config:
        """Return the paper's settings with some changed."""
        settings = dict(options)
        if self.generations is not None:
            settings["generations"] = self.generations
        return Config.from_dict(settings)

    def run(self, trainings: Sequence[Training]) -> dict[str, list[Finished]]:
        """Train every row with every seed, or take what an earlier study has finished.

        Returns
        -------
        dict
            Runs by label, in order of their seeds.
        """
        jobs = [(training, seed) for training in trainings for seed in range(self.seeds)]
        done = 0
        lock = threading.Lock()

        def work(job: tuple[Training, int]) -> Finished | None:
            nonlocal done
            if self.stop.is_set():
                return None
            finished = self._train(*job)
            with lock:
                done += 1
                if self.report is not None:
                    self.report(done, len(jobs), f"{job[0].label} seed {job[1]}")
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

    def _train(self, training: Training, seed: int) -> Finished:
        key = self._key(training, seed)
        safe = "".join(letter if letter.isalnum() else "-" for letter in training.label)
        path = self.folder / "runs" / f"{safe}-seed{seed}-{key[:12]}.npz"
        if path.exists():
            return self._load(path, training, seed)
        trainer = ACERL(list(training.instances), training.config, seed=seed, threads=1)
        probabilities = []
        while not trainer.done:
            sampler = trainer.sampler
            if isinstance(sampler, AdaptiveSampler):
                probabilities.append(sampler.probabilities())
            trainer.step()
        policy = trainer.policy
        arrays: dict[str, np.ndarray] = {
            "history": np.array(
                [[getattr(item, name) for name in HISTORY_COLUMNS] for item in trainer.history]
            ).reshape(-1, len(HISTORY_COLUMNS)),
            "counts": np.array([item.counts for item in trainer.history], np.int64).reshape(
                -1, len(training.instances)
            ),
            "probabilities": np.array(probabilities).reshape(-1, len(training.instances)),
            "looks": np.array(
                [(point.generation, point.decisions) for point in trainer.curve], np.int64
            ).reshape(-1, 2),
            "curves": np.array(
                [
                    [getattr(point, name) for point in trainer.curve]
                    for name in ("makespan", "tardiness", "satisfied")
                ]
            ),
            "theta": policy.theta,
        }
        for name, instances in training.suites:
            trials = evaluate_policy(
                policy, list(instances), trials=self.trials, seed=seed, threads=1
            )
            arrays[f"makespan.{name}"] = trials.makespan
            arrays[f"tardiness.{name}"] = trials.tardiness
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays)
        return self._load(path, training, seed)

    def _load(self, path: Path, training: Training, seed: int) -> Finished:
        arrays = read_arrays(path, InputError)
        names = [name for name, _ in training.suites]
        return Finished(
            seed,
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
            "config": training.config.to_dict(),
            "seed": seed,
            "trials": self.trials,
            "instances": [instance.content_hash for instance in training.instances],
            "suites": [
                [name, [instance.content_hash for instance in instances]]
                for name, instances in training.suites
            ],
            "code": result_stamp(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def rows(self, results: dict[str, list[Finished]], suite: str) -> list[Row]:
        """Return the measured rows of one suite, all seeds of a label together."""
        return [
            Row(
                label,
                np.concatenate([run.makespan[suite] for run in runs], axis=1),
                np.concatenate([run.tardiness[suite] for run in runs], axis=1),
            )
            for label, runs in results.items()
            if runs and suite in runs[0].makespan
        ]

    def rule_rows(self, instances: Sequence[Instance]) -> list[Row]:
        """Play the rules of the paper's tables as often as all seeds of a policy together."""
        rows = []
        for rule in RULE_ROWS:
            trials: Trials = evaluate_policy(
                rule, list(instances), trials=self.trials * self.seeds, threads=self.threads
            )
            rows.append(Row(rule, trials.makespan, trials.tardiness))
        return rows

    def write_curves(self, results: dict[str, list[Finished]], name: str) -> list[Path]:
        """Write the training curves and the sampler's choices of all runs as CSV."""
        curves, choices = io.StringIO(), io.StringIO()
        curve_writer = csv.writer(curves, lineterminator="\n")
        choice_writer = csv.writer(choices, lineterminator="\n")
        curve_writer.writerow(["policy", "seed", *HISTORY_COLUMNS])
        choice_writer.writerow(["policy", "seed", "generation", "instance", "members"])
        for label, runs in results.items():
            for run in runs:
                for line in run.history.tolist():
                    values = [int(line[0]), int(line[1]), *(round(x, 6) for x in line[2:])]
                    curve_writer.writerow([label, run.seed, *values])
                for generation, counts in enumerate(run.counts.tolist(), start=1):
                    for k, members in enumerate(counts, start=1):
                        choice_writer.writerow([label, run.seed, generation, k, members])
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / f"{name}-curves.csv", self.folder / f"{name}-sampler.csv"]
        write_atomically(paths[0], curves.getvalue().encode())
        write_atomically(paths[1], choices.getvalue().encode())
        return paths


def build_table(
    instances: Sequence[Instance],
    measured: Sequence[Row],
    published: Sequence[PublishedRow],
    *,
    reference: str,
    pool_published: Sequence[PublishedRow] = (),
    cost_limit: float = 50.0,
) -> tuple[list[str], list[list[Cell]], list[int]]:
    """Lay out a table as the paper does, its values beside the measured ones.

    Parameters
    ----------
    instances : sequence of Instance
    measured : sequence of Row
    published : sequence of PublishedRow
        The paper's rows of this table, in its order.
    reference : str
        Label that the others are compared with.
    pool_published : sequence of PublishedRow
        Published rows that join the measured ones in the pool of M and C; none where the instances
        are not the paper's own.
    cost_limit : float

    Returns
    -------
    header : list of str
    rows : list of lists
    rules : list of int
        Rows before which a rule belongs.
    """
    names = [instance.name for instance in instances]
    shown = [display_name(name) for name in names]
    by_label = {row.label: row for row in measured}
    pool = [
        np.array([[row.cells[key].makespan, row.cells[key].tardiness] for key in shown]).T
        for row in pool_published
        if all(key in row.cells for key in shown)
    ] + [np.array([row.makespan.mean(axis=1), row.tardiness.mean(axis=1)]) for row in measured]
    pool_m = np.array([item[0] for item in pool])
    pool_c = np.array([item[1] for item in pool])
    header = ["policy", "source", *shown, "M/C (P)"]
    rows: list[list[Cell]] = []
    rules: list[int] = []
    marks: list[list[tuple[str, str]]] = []
    paper_marks: list[list[tuple[str, str]]] = []
    order = [row.policy for row in published]
    order += [row.label for row in measured if row.label not in order]
    paper_of = {row.policy: row for row in published}
    for label in order:
        rules.append(len(rows))
        row = by_label.get(label)
        paper = paper_of.get(label)
        if row is not None:
            line = _measured_line(row, by_label.get(reference), marks)
            means = np.array([row.makespan.mean(axis=1), row.tardiness.mean(axis=1)])
            m = normalise(means[0], pool_m)[0]
            c = normalise(means[1], pool_c)[0]
            p = satisfied_share(row.tardiness, cost_limit)
            rows.append([label, "measured", *line, f"{m:.2f}/{c:.2f} ({p:.0%})"])
        if paper is not None:
            source = "paper" if row is not None else "published"
            cells = [paper.cells[key] for key in shown]
            line = [
                f"{cell.makespan:.1f}{cell.makespan_mark}/{cell.tardiness:.1f}{cell.tardiness_mark}"
                for cell in cells
            ]
            if label != reference:
                paper_marks.append([(cell.makespan_mark, cell.tardiness_mark) for cell in cells])
            rows.append(["", source, *line, f"{paper.m:.2f}/{paper.c:.2f} ({paper.p:.0%})"])
            if row is None:
                rows[-1][0] = label
            else:
                means = np.array([row.makespan.mean(axis=1), row.tardiness.mean(axis=1)])
                line = [
                    f"{means[0, k] - cell.makespan:+.1f}/{means[1, k] - cell.tardiness:+.1f}"
                    for k, cell in enumerate(cells)
                ]
                change = f"{m - paper.m:+.2f}/{c - paper.c:+.2f} ({100 * (p - paper.p):+.0f})"
                rows.append(["", "difference", *line, change])
    rules.append(len(rows))
    rows.append(["+/~/-", "measured", *_count_marks(marks, len(names)), None])
    if paper_marks:
        rows.append(["", "paper", *_count_marks(paper_marks, len(names)), None])
    return header, rows, rules[1:]


def _measured_line(
    row: Row, reference: Row | None, marks: list[list[tuple[str, str]]]
) -> list[str]:
    line, own = [], []
    for k in range(len(row.makespan)):
        pair = ("", "")
        if reference is not None and reference.label != row.label:
            pair = (
                compare_samples(row.makespan[k], reference.makespan[k]),
                compare_samples(row.tardiness[k], reference.tardiness[k]),
            )
        own.append(pair)
        line.append(f"{row.makespan[k].mean():.1f}{pair[0]}/{row.tardiness[k].mean():.1f}{pair[1]}")
    if reference is not None and reference.label != row.label:
        marks.append(own)
    return line


def _count_marks(marks: Sequence[Sequence[tuple[str, str]]], n_instances: int) -> list[str]:
    counts = []
    for k in range(n_instances):
        parts = [
            "/".join(str(sum(1 for line in marks if line[k][which] == mark)) for mark in "+~-")
            for which in (0, 1)
        ]
        counts.append(f"({parts[0]})/({parts[1]})")
    return counts


def spread_table(results: dict[str, list[Finished]], suite: str, cost_limit: float) -> str:
    """Return mean and standard deviation over seeds of makespan, tardiness and satisfied share."""
    rows: list[list[Cell]] = []
    for label, runs in results.items():
        if not runs or suite not in runs[0].makespan:
            continue
        makespan = np.array([run.makespan[suite].mean() for run in runs])
        tardiness = np.array([run.tardiness[suite].mean() for run in runs])
        share = np.array([(run.tardiness[suite] < cost_limit).mean() for run in runs])
        rows.append(
            [
                label,
                f"{makespan.mean():.1f} ± {makespan.std(ddof=min(1, len(runs) - 1)):.1f}",
                f"{tardiness.mean():.1f} ± {tardiness.std(ddof=min(1, len(runs) - 1)):.1f}",
                f"{100 * share.mean():.0f} ± {100 * share.std(ddof=min(1, len(runs) - 1)):.0f}",
            ]
        )
    return render_table(["policy", "makespan", "tardiness", "satisfied %"], rows, "markdown")
