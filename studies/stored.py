"""Results of studies as data: every trial by row, seed and record, what made it, and studies read from that.

A folder holds `rows.json` (of each study its rows, their settings, and the code and versions that trained
them), and of each study `STUDY-trials.csv.xz`; of the comparison also `-curves.csv.xz` and `-sampler.csv.xz`.
A row that several studies share is kept once. Tables are made from these, whatever the code is by then.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.evaluation.jobs import hash_rooms
from acerl_np.support.errors import InputError
from acerl_np.support.files import write_atomically
from acerl_np.support.report import render_csv
from acerl_np.support.team import list_versions
from acerl_np.training.history import HISTORY_COLUMNS
from studies.bilge_ulusoy import Run
from studies.study import Finished, Study, Training, find_rooms
from studies.study_tables import RULE_ROWS, Measured

ROWS_FILE = "rows.json"
RULES = "rules"
"""Whose trials are no study's own."""
HEADERS = {
    "trials": ("row", "seed", "suite", "record", "makespan", "tardiness"),
    "curves": ("row", "seed", "decisions", "record", "makespan", "tardiness", "satisfied"),
    "sampler": ("row", "seed", "generation", "record", "probability"),
}
CURVED, MAIN = "comparison", "ACERL"
"""The study whose training curves are kept, and ACERL's choices of records."""
DIGITS = 4
"""Decimals of times, s."""

Lines = Iterator[Sequence[object]]
Times = tuple[list[np.ndarray], list[np.ndarray]]
"""Makespans and tardinesses of the trials, an array for each record, s."""


def store_study(
    folder: Path,
    name: str,
    trainings: Sequence[Training],
    results: Mapping[str, Sequence[Finished]],
) -> None:
    """Write what a study has found; of rows that another study has stored only where they are.

    Rows of the same study that were stored before and are not among these stay.
    """
    rows = read_rows(folder)
    own = rows.setdefault(name, {})
    stored = {
        entry["content"]: (study, label, entry["seeds"])
        for study, entries in rows.items()
        for label, entry in entries.items()
        if "at" not in entry and study != name
    }
    new: list[tuple[Training, Finished]] = []
    for training in trainings:
        runs, content = results[training.label], find_key(training)
        seeds = [run.seed for run in runs]
        study, label, known = stored.get(content, ("", "", []))
        if set(seeds) <= set(known):
            own[training.label] = {"seeds": seeds, "at": [study, label]}
            continue
        last = [dict(zip(HISTORY_COLUMNS, run.history[-1].tolist(), strict=True)) for run in runs]
        stored[content] = (name, training.label, seeds)
        own[training.label] = {
            "seeds": seeds,
            "content": content,
            "settings": training.config.to_dict(),
            "records": {item.name: item.content_hash for item in training.instances},
            "decisions": [round(line["decisions"]) for line in last],
            "seconds": [round(line["seconds"], 2) for line in last],
            "code": hash_rooms(find_rooms(training.config))[:12],
            "versions": {"python": platform.python_version(), **list_versions()},
        }
        new += ((training, run) for run in runs)
    told = {training.label for training in trainings}
    trials = (line for training, run in new for line in _list_trials(training, run))
    _add(folder, name, "trials", told, trials)
    if name == CURVED:
        parts = [(training.label, run.seed, run.list_lines()) for training, run in new]
        curves = ([label, seed, *x[1:]] for label, seed, part in parts for x in part["curves"])
        _add(folder, name, "curves", told, curves)
        main = [part for part in parts if part[0] == MAIN]
        dealt = ([label, seed, *x[:2], x[3]] for label, seed, part in main for x in part["sampler"])
        _add(folder, name, "sampler", told, dealt)
    write_atomically(folder / ROWS_FILE, (json.dumps(rows, indent=1) + "\n").encode())


def find_key(training: Training) -> str:
    """Hash all that decides what comes of a training, whatever the code is."""
    text = json.dumps(training.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _add(folder: Path, study: str, kind: str, told: Collection[str], lines: Lines) -> None:
    """Write a table: what is stored of other rows than these, and their lines."""
    kept: Iterable[dict[str, str]] = ()
    if (folder / f"{study}-{kind}.csv.xz").exists():
        kept = read_table(folder, study, kind)
    _write(folder, study, kind, [*([*x.values()] for x in kept if x["row"] not in told), *lines])


def store_rules(folder: Path, played: Mapping[str, Sequence[Measured]]) -> None:
    """Write what the rules have played, by suite."""

    def list_lines() -> Lines:
        for suite, rows in played.items():
            for row in rows:
                for k, block in np.ndindex(row.makespan.shape[:2]):
                    times = (_join(row.makespan[k, block]), _join(row.tardiness[k, block]))
                    yield [row.label, block, suite, k, *times]

    _write(folder, RULES, "trials", list_lines())


def _list_trials(training: Training, run: Finished) -> Lines:
    suites = dict(training.suites)
    for suite, makespan in run.makespan.items():
        for k, record in enumerate(suites[suite.partition(",")[0]]):
            times = (_join(makespan[k]), _join(run.tardiness[suite][k]))
            yield [training.label, run.seed, suite, record.name, *times]


def _write(folder: Path, study: str, kind: str, lines: Iterable[Sequence[object]]) -> None:
    lines = list(lines)
    if not lines:
        return
    text = render_csv([HEADERS[kind], *lines])
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{study}-{kind}.csv.xz", packed)


def _join(trials: np.ndarray) -> str:
    """Return the times of trials as text, one of them where all are equal."""
    shown = [np.format_float_positional(x, DIGITS, trim="-") for x in trials.tolist()]
    return " ".join(shown) if len(set(shown)) > 1 else f"{shown[0]} x{len(shown)}"


def _split(text: str) -> np.ndarray:
    one, times, n = text.partition(" x")
    return np.full(int(n), float(one)) if times else np.array(text.split(), np.float64)


def read_rows(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is known of the stored rows, by study and label; of an empty folder nothing."""
    path = folder / ROWS_FILE
    if not path.exists():
        return {}
    try:
        found: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; expected the rows of stored studies") from error
    return found


def read_table(folder: Path, study: str, kind: str) -> list[dict[str, str]]:
    """Return the lines of a stored table; an `InputError` where it is missing or damaged."""
    path = folder / f"{study}-{kind}.csv.xz"
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; expected a stored study") from error
    return list(csv.DictReader(io.StringIO(text)))


def gather(
    lines: Iterable[Mapping[str, Any]], names: str, figures: str
) -> dict[tuple[str, ...], np.ndarray]:
    """Return figures of the lines of a table by the cells of some columns, float64 (n, n_figures)."""
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for line in lines:
        own = found.setdefault(tuple(line[x] for x in names.split()), [])
        own.append([float(line[x]) for x in figures.split()])
    return {key: np.array(own) for key, own in found.items()}


def read_yardstick(path: Path) -> list[Run]:
    """Read what `bilge_ulusoy.write_runs` wrote; anything else is an `InputError`."""
    try:
        header, *lines = csv.reader(path.read_text(encoding="utf-8").splitlines())
        cells = [dict(zip(header[4:], map(float, line[4:]), strict=True)) for line in lines]
        return [
            Run(policy, regime, int(seed), cells[k], cells[k + 1])
            for k, (policy, regime, seed, *_) in enumerate(lines)
            if k % 2 == 0
        ]
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{path}: {error}; expected a stored study") from error


class StoredStudy(Study):
    """Stored studies of a folder, as one that has been run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.stored = read_rows(folder)
        self._times: dict[str, dict[tuple[str, str], dict[int, Times]]] = {}
        self._rows: dict[tuple[str, str], dict[str, Measured]] = {}

    def _read(self, study: str) -> dict[tuple[str, str], dict[int, Times]]:
        """Return the times of all trials by row and suite, and by seed."""
        if study not in self._times:
            found: dict[tuple[str, str], dict[int, Times]] = {}
            for line in read_table(self.folder, study, "trials"):
                seeds = found.setdefault((line["row"], line["suite"]), {})
                makespan, tardiness = seeds.setdefault(int(line["seed"]), ([], []))
                makespan.append(_split(line["makespan"]))
                tardiness.append(_split(line["tardiness"]))
            self._times[study] = found
        return self._times[study]

    def load(self, name: str) -> dict[str, list[Finished]]:
        """Return the runs of a stored study by label, in order of their seeds."""
        if name not in self.stored:
            path = self.folder / ROWS_FILE
            raise InputError(f"{path}: no study '{name}'; expected one that is stored")
        results = {}
        for label, entry in self.stored[name].items():
            study, own = entry.get("at", (name, label))
            made, times = self.stored[study][own], self._read(study)
            played = {suite: seeds for (row, suite), seeds in times.items() if row == own}
            results[label] = [self._restore(seed, made, played) for seed in entry["seeds"]]
        return results

    @staticmethod
    def _restore(
        seed: int, made: Mapping[str, Any], played: Mapping[str, dict[int, Times]]
    ) -> Finished:
        makespan, tardiness = (
            {x: np.array(own[seed][k]) for x, own in played.items()} for k in (0, 1)
        )
        history = np.zeros((1, len(HISTORY_COLUMNS)))
        for name in ("decisions", "seconds"):
            history[0, HISTORY_COLUMNS.index(name)] = made[name][made["seeds"].index(seed)]
        none = np.zeros((0, 0))
        return Finished(seed, (), makespan, tardiness, history, none, none, none, none)

    def rows_of(self, study: str, suite: str) -> dict[str, Measured]:
        """Return the rows of a study on a suite by label, the rules among them."""
        if (study, suite) not in self._rows:
            found = [*self.rows(self.load(study), suite), *self.rule_rows(suite)]
            self._rows[study, suite] = {row.label: row for row in found}
        return self._rows[study, suite]

    def rule_rows(
        self, suite: str, *_: Any, rules: Sequence[str] = RULE_ROWS, **__: Any
    ) -> list[Measured]:
        """Return what the rules have played, blocks of trials as seeds."""
        found = []
        for (row, own_suite), blocks in self._read(RULES).items():
            if own_suite == suite and row in rules:
                makespan, tardiness = map(np.array, zip(*blocks.values(), strict=True))
                found.append(Measured(row, makespan.swapaxes(0, 1), tardiness.swapaxes(0, 1)))
        return found
