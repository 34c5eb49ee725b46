"""What trainings have written, read back for pictures: looks at the policy, histories, settings."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.support.errors import AcerlError, InputError, describe, list_some
from acerl_np.support.files import read_text
from acerl_np.support.numbers import is_real
from acerl_np.training.curves import CURVE_COLUMNS, VALUES

CURVES, HISTORY, CONFIG = "curves.csv", "history.csv", "config.json"

STUDY_COLUMNS = ("policy", "seed", *CURVE_COLUMNS)

SEED_FOLDER = re.compile(r"seed(\d+)")

AFTER_COLUMNS = ("noise_std", "failed")
"""Behind the last of these in a history stand the counts of the records."""

MOST = 1e15
"""Largest number of generations, decisions or members that is read."""

MEMBERS = "the search's members"
"""What stands in the place of a record where only a history is known."""


class Looks(NamedTuple):
    """How one training went.

    Attributes
    ----------
    generations : ndarray(int64, (n_looks,))
    decisions : ndarray(float64, (n_looks,))
    makespan, tardiness : dict of ndarray(float64, (n_looks,)), s
        By record; nan where an episode did not finish.
    """

    generations: np.ndarray
    decisions: np.ndarray
    makespan: dict[str, np.ndarray]
    tardiness: dict[str, np.ndarray]


class Line(NamedTuple):
    """Trainings of one kind, with one seed or several.

    Attributes
    ----------
    label : str
    looks : tuple of Looks
        One for each seed.
    """

    label: str
    looks: tuple[Looks, ...]


class Counts(NamedTuple):
    """Which records the members of each generation played.

    Attributes
    ----------
    names : tuple of str
    generations : ndarray(int64, (n_generations,))
    members : ndarray(float64, (n_generations, n_records))
    """

    names: tuple[str, ...]
    generations: np.ndarray
    members: np.ndarray


class _Table(NamedTuple):
    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        k = self.header.index(name)
        return [row[k] for row in self.rows]

    def numbers(self, name: str, *, known: bool = True) -> np.ndarray:
        """Return a column as float64: numbers from 0 on, or any but infinite ones if some are not known."""
        found = np.empty(len(self.rows))
        for k, text in enumerate(self.column(name)):
            try:
                found[k] = float(text)
                usable = 0.0 <= found[k] <= MOST if known else not math.isinf(found[k])
            except ValueError:
                usable = False
            if not usable:
                raise InputError(
                    f"{self.path}: line {self.lines[k]}: {name}: read {describe(text)}; expected a number"
                    f"{' from 0 on' if known else ''}"
                )
        return found


def _read_table(path: Path, required: Sequence[str]) -> _Table:
    """Read a CSV file that has at least these columns.

    Raises
    ------
    InputError
        With the file and the line.
    """
    reader = csv.reader(io.StringIO(read_text(path, InputError), newline=""), strict=True)
    header: list[str] = []
    rows, lines = [], []
    try:
        for fields in reader:
            if not fields:
                continue
            if not header:
                header = fields
                lacking = [name for name in required if name not in header]
                if lacking:
                    raise InputError(
                        f"{path}: line {reader.line_num}: no column '{lacking[0]}'; read "
                        f"{describe(','.join(header))}, expected {','.join(required)}"
                    )
                continue
            if len(fields) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num}: {len(fields)} fields; expected {len(header)}"
                )
            rows.append(fields)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV: {error}") from error
    if not header:
        raise InputError(f"{path}: line 1: the file is empty; expected {','.join(required)}")
    return _Table(path, header, rows, lines)


def _collect_looks(table: _Table) -> dict[tuple[str, str], Looks]:
    """Return the looks of each training in a table, by its policy and its seed."""
    generations, decisions = table.numbers("generation"), table.numbers("decisions")
    makespan, tardiness = (table.numbers(name, known=False) for name in VALUES[:2])
    names = table.column("instance")
    owners = [("", "")] * len(names)
    if "policy" in table.header:
        owners = list(zip(table.column("policy"), table.column("seed"), strict=True))
    places: dict[tuple[str, str], list[int]] = {}
    for k, owner in enumerate(owners):
        places.setdefault(owner, []).append(k)
    found = {}
    for owner, own in places.items():
        when = {generations[k]: decisions[k] for k in own}
        order = sorted(when)
        row = {generation: i for i, generation in enumerate(order)}
        values: dict[str, np.ndarray] = {}
        for k in own:
            name = names[k]
            if name not in values:
                values[name] = np.full((2, len(order)), np.nan)
            values[name][:, row[generations[k]]] = makespan[k], tardiness[k]
        found[owner] = Looks(
            np.array(order, np.int64),
            np.array([when[generation] for generation in order]),
            {name: both[0] for name, both in values.items()},
            {name: both[1] for name, both in values.items()},
        )
    return found


def _read_members(path: Path) -> Looks:
    """Return the means of the members of each generation, from a history."""
    table = _read_table(path, ("return_mean", "cost_mean"))
    if not table.rows:
        raise InputError(f"{path}: line 1: a header and nothing else; expected a line a generation")
    decisions = "decisions" if "decisions" in table.header else "steps"
    if decisions not in table.header:
        raise InputError(f"{path}: line 1: no column 'decisions'")
    return Looks(
        np.arange(1, len(table.rows) + 1),
        table.numbers(decisions),
        {MEMBERS: -table.numbers("return_mean", known=False)},
        {MEMBERS: table.numbers("cost_mean", known=False)},
    )


def _is_run(folder: Path) -> bool:
    return (folder / CURVES).is_file() or (folder / HISTORY).is_file()


def _read_run(folder: Path) -> Looks:
    """Return the looks of a run, or the means of its members if it took none."""
    if (folder / CURVES).is_file():
        table = _read_table(folder / CURVES, CURVE_COLUMNS)
        if table.rows:
            return _collect_looks(table)["", ""]
        if not (folder / HISTORY).is_file():
            raise InputError(
                f"{folder / CURVES}: line 1: a header and nothing else; expected a line for each look and "
                "record"
            )
    return _read_members(folder / HISTORY)


def find_runs(path: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of the runs that a folder holds: itself, or one for each seed.

    Parameters
    ----------
    path : path-like
        Folder of a run, or of `--seeds`; of the latter those seeds that its config.json names.

    Raises
    ------
    InputError
        If it is no folder, or holds none.
    """
    folder = Path(path)
    if not _exists(folder):
        raise InputError(f"{describe(path)}: not there; expected the folder of a run")
    if not folder.is_dir():
        raise InputError(f"{describe(path)}: not a folder; expected the folder of a run")
    if _is_run(folder):
        return [folder]
    seeds = {}
    for own in folder.iterdir():
        match = SEED_FOLDER.fullmatch(own.name)
        if match and _is_run(own):
            seeds[int(match[1])] = own
    named = read_facts(folder).get("seeds")
    if isinstance(named, list):
        seeds = {seed: own for seed, own in seeds.items() if seed in named}
    if not seeds:
        raise InputError(
            f"{folder}: no {CURVES} and no {HISTORY}; expected the folder of a run, of train --seeds or "
            "of a study"
        )
    return [seeds[seed] for seed in sorted(seeds)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def find_study(path: str | os.PathLike[str]) -> Path | None:
    """Return the file with the curves of a study that `path` is or holds, None if it holds none.

    Raises
    ------
    InputError
        If it holds several.
    """
    folder = Path(path)
    if not _exists(folder):
        return None
    if folder.is_file():
        return folder
    if not folder.is_dir() or _is_run(folder):
        return None
    files = sorted(folder.glob(f"*-{CURVES}"))
    if len(files) > 1:
        names = list_some([file.name for file in files], 4)
        raise InputError(f"{folder}: several studies: {names}; expected one, by its file's name")
    return files[0] if files else None


def read_lines(path: str | os.PathLike[str]) -> list[Line]:
    """Read what there is to draw of a run, of several seeds, or of a study.

    Parameters
    ----------
    path : path-like
        Folder of a run, of `--seeds`, or of a study; or the CSV file of a study's curves.

    Returns
    -------
    list of Line
        A study has one for each of its policies, all else one, which bears the folder's name.

    Raises
    ------
    InputError
        If there is nothing to draw, or a file cannot be read: with its name and the line.
    """
    study = find_study(path)
    if study is None:
        folder = Path(path)
        runs = find_runs(folder)
        return [Line(folder.resolve().name, tuple(_read_run(own) for own in runs))]
    table = _read_table(study, STUDY_COLUMNS)
    if not table.rows:
        raise InputError(
            f"{study}: line 1: a header and nothing else; expected a line for each look"
        )
    lines: dict[str, list[Looks]] = {}
    for (policy, _), looks in _collect_looks(table).items():
        lines.setdefault(policy, []).append(looks)
    return [Line(policy, tuple(own)) for policy, own in lines.items()]


def read_counts(folder: Path) -> Counts:
    """Read which records the members of each generation of a run played.

    Raises
    ------
    InputError
        With the file and the line.
    """
    path = folder / HISTORY
    table = _read_table(path, ("return_mean", "cost_mean"))
    last = max((table.header.index(x) for x in AFTER_COLUMNS if x in table.header), default=-1)
    names = tuple(table.header[last + 1 :])
    if last < 0 or not names:
        raise InputError(
            f"{path}: line 1: no counts of records; read {describe(','.join(table.header))}, expected "
            "their names behind noise_std"
        )
    if not table.rows:
        raise InputError(f"{path}: line 1: a header and nothing else; expected a line a generation")
    members = np.stack([table.numbers(name) for name in names], axis=1)
    return Counts(names, np.arange(1, len(table.rows) + 1), members)


def read_facts(folder: Path) -> dict[str, Any]:
    """Return what config.json in the folder of a run tells; nothing where there is none to read.

    What `--seeds` wrote holds for the folders of its seeds, too.
    """
    facts = _read_config(folder)
    whole = folder.resolve()
    if not facts and SEED_FOLDER.fullmatch(whole.name):
        return _read_config(whole.parent)
    return facts


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads(read_text(folder / CONFIG, InputError))
    except (AcerlError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def find_limit(facts: Mapping[str, Any]) -> float | None:
    """Return the limit on the tardiness, s, that a run was trained with, None if it is not known."""
    for part in ("config", "settings"):
        own = facts.get(part)
        limit = own.get("cost_limit") if isinstance(own, dict) else None
        if is_real(limit):
            return float(limit)  # type: ignore[arg-type]
    return None
