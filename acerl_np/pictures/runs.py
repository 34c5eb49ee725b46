"""What trainings have written, read back for pictures: looks at the policy, histories, settings."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.problem.goal import Goal
from acerl_np.support.errors import AcerlError, InputError, describe, list_some
from acerl_np.support.fields import is_real
from acerl_np.support.files import FilePath, path_exists, read_text
from acerl_np.training.history import CURVE_COLUMNS, VALUES

CURVES, HISTORY, CONFIG = "curves.csv", "history.csv", "config.json"

STUDY_COLUMNS = ("policy", "seed", *CURVE_COLUMNS)

SEED_FOLDER = re.compile(r"seed(\d+)")

MOST = 1e15
"""Largest number of generations, decisions or members that is read."""

MEMBERS = "the search's members"
"""What stands in the place of a record where only a history is known."""


class Looks(NamedTuple):
    """How one training went: generations and decisions of its looks, and values by record.

    Values are makespan, s, or the objective in its place, and tardiness, s, of shape (2, n_looks); nan where
    an episode did not finish.
    """

    generations: np.ndarray
    decisions: np.ndarray
    values: dict[str, np.ndarray]


class Line(NamedTuple):
    """Trainings of one kind, with one seed or several."""

    label: str
    looks: tuple[Looks, ...]


class _Table(NamedTuple):
    """A CSV file as texts by column; `lines` says where each row stands."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def numbers(self, name: str, *, known: bool = True) -> np.ndarray:
        """Return a column as float64: numbers from 0 on, or any but infinite ones if some are not known."""
        found = np.empty(len(self.lines))
        for k, text in enumerate(self.columns[name]):
            try:
                found[k] = float(text)
                usable = 0.0 <= found[k] <= MOST if known else not math.isinf(found[k])
            except ValueError:
                usable = False
            if not usable:
                expected = f"expected a number{' from 0 on' if known else ''}"
                where = f"{self.path}: line {self.lines[k]}: {name}"
                raise InputError(f"{where}: read {describe(text)}; {expected}")
        return found


def _read_table(path: Path, required: Sequence[str], expected: str = "") -> _Table:
    """Read a CSV file that has at least these columns; with `expected`, at least a row as well."""
    reader = csv.reader(io.StringIO(read_text(path, InputError), newline=""), strict=True)
    try:
        rows = [(reader.line_num, fields) for fields in reader if fields]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV: {error}") from error
    _, header = rows.pop(0) if rows else (1, [])
    if missing := [name for name in required if name not in header]:
        read = f"no column '{missing[0]}'; read {describe(','.join(header))}"
        raise InputError(f"{path}: line 1: {read}, expected {','.join(required)}")
    for line, fields in rows:
        if len(fields) != len(header):
            read = f"line {line}: {len(fields)} fields"
            raise InputError(f"{path}: {read}; expected {len(header)}")
    if expected and not rows:
        raise InputError(f"{path}: line 1: a header and nothing else; expected {expected}")
    columns = {name: [fields[k] for _, fields in rows] for k, name in enumerate(header)}
    return _Table(path, columns, [line for line, _ in rows])


def _collect_looks(table: _Table) -> dict[tuple[str, str], Looks]:
    """Return the looks of each training in a table, by its policy and its seed."""
    generations, decisions = table.numbers("generation"), table.numbers("decisions")
    first = "value" if "value" in table.columns else VALUES[0]
    values = np.array([table.numbers(name, known=False) for name in (first, VALUES[1])])
    names = table.columns["instance"]
    nobody = [""] * len(names)
    policies, seeds = (table.columns.get(name, nobody) for name in STUDY_COLUMNS[:2])
    places: dict[tuple[str, str], list[int]] = {}
    for k, owner in enumerate(zip(policies, seeds, strict=True)):
        places.setdefault(owner, []).append(k)
    found = {}
    for owner, own in places.items():
        when = {generations[k]: decisions[k] for k in own}
        order = sorted(when)
        by_record = {names[k]: np.full((2, len(order)), np.nan) for k in own}
        for k, row in zip(own, np.searchsorted(order, generations[own]), strict=True):
            by_record[names[k]][:, row] = values[:, k]
        taken = np.array([when[generation] for generation in order])
        found[owner] = Looks(np.array(order, np.int64), taken, by_record)
    return found


def _is_run(folder: Path) -> bool:
    return (folder / CURVES).is_file() or (folder / HISTORY).is_file()


def _read_run(folder: Path) -> Looks:
    """Return the looks of a run, or the means of its members if it took none."""
    history = folder / HISTORY
    if (folder / CURVES).is_file():
        some = "" if history.is_file() else "a line for each look and record"
        table = _read_table(folder / CURVES, CURVE_COLUMNS, some)
        if table.lines:
            return _collect_looks(table)["", ""]
    table = _read_table(history, ("return_mean", "cost_mean"), "a line a generation")
    decisions = "decisions" if "decisions" in table.columns else "steps"
    if decisions not in table.columns:
        raise InputError(f"{history}: line 1: no column 'decisions'")
    returns, costs = (table.numbers(f"{name}_mean", known=False) for name in ("return", "cost"))
    generations = np.arange(1, len(table.lines) + 1)
    return Looks(generations, table.numbers(decisions), {MEMBERS: np.array([-returns, costs])})


def find_runs(path: FilePath) -> list[Path]:
    """Return the folders of the runs that a folder holds: itself, or one for each seed of its config.json."""
    folder = Path(path)
    if not path_exists(folder) or not folder.is_dir():
        found = "not a folder" if path_exists(folder) else "not there"
        raise InputError(f"{describe(path)}: {found}; expected the folder of a run")
    if _is_run(folder):
        return [folder]
    named, seeds = read_facts(folder).get("seeds"), {}
    for own in folder.iterdir():
        if (match := SEED_FOLDER.fullmatch(own.name)) and _is_run(own):
            seeds[int(match[1])] = own
    if isinstance(named, list):
        seeds = {seed: own for seed, own in seeds.items() if seed in named}
    if not seeds:
        expected = "expected the folder of a run, of train --seeds or of a study"
        raise InputError(f"{folder}: no {CURVES} and no {HISTORY}; {expected}")
    return [seeds[seed] for seed in sorted(seeds)]


def find_study(path: FilePath) -> Path | None:
    """Return the file with the curves of a study that `path` is or holds, None if it holds none."""
    folder = Path(path)
    if not path_exists(folder) or _is_run(folder):
        return None
    if folder.is_file():
        return folder
    files = sorted(folder.glob(f"*-{CURVES}"))
    if len(files) > 1:
        names = list_some([file.name for file in files], 4)
        raise InputError(f"{folder}: several studies: {names}; expected one, by its file's name")
    return files[0] if files else None


def read_lines(path: FilePath) -> list[Line]:
    """Read what there is to draw of a run, of several seeds, or of a study.

    A study, a folder or its file of curves, has a line for each of its policies, all else one with the
    folder's name. What cannot be read is refused with its file and line.
    """
    study = find_study(path)
    if study is None:
        runs = tuple(_read_run(own) for own in find_runs(path))
        return [Line(Path(path).resolve().name, runs)]
    lines: dict[str, list[Looks]] = {}
    table = _read_table(study, STUDY_COLUMNS, "a line for each look")
    for (policy, _), looks in _collect_looks(table).items():
        lines.setdefault(policy, []).append(looks)
    return [Line(policy, tuple(own)) for policy, own in lines.items()]


def read_config(folder: Path) -> dict[str, Any]:
    """Return what config.json in a folder tells; nothing where there is none to read."""
    try:
        facts = json.loads(read_text(str(folder / CONFIG), InputError))
    except (AcerlError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def read_facts(folder: Path) -> dict[str, Any]:
    """Return what config.json in the folder of a run tells; what `--seeds` wrote holds for its seeds, too."""
    whole = folder.resolve()
    facts = read_config(folder)
    return facts or (read_facts(whole.parent) if SEED_FOLDER.fullmatch(whole.name) else {})


def find_limit(facts: Mapping[str, Any]) -> float | None:
    """Return the limit on the tardiness, s, that a run was trained with, None if it is not known."""
    own = _find_options(facts)
    limit = own.get("cost_limit")
    is_known = is_real(limit) and own.get("cost", Goal.cost) == Goal.cost
    return float(limit) if is_known else None  # type: ignore[arg-type]


def find_objective(facts: Mapping[str, Any]) -> str:
    """Return the objective that a run was trained for, the makespan if it is not known."""
    found = _find_options(facts).get("objective")
    return found if isinstance(found, str) else f"{Goal.objective}"


def _find_options(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    found = (facts.get(part) for part in ("config", "settings"))
    return next((own for own in found if isinstance(own, dict)), {})
