"""Instances: a layout and a record of tasks; bundled instances and suites."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.errors import InputError, LayoutError, RecordError, make_printable
from acerl_np.problem.layout import MAX_NUMBER, Layout, shorten
from acerl_np.storage import path_exists, read_text

MAX_TASKS = 100_000

REQUIRED_COLUMNS = ("task", "pickup", "delivery", "arrival_time", "expiry_time")
OPTIONAL_COLUMNS = ("handling_time", "demand")


@dataclass(frozen=True, eq=False)
class Instance:
    """A layout and the tasks that arrive on it, sorted by arrival.

    Attributes
    ----------
    name : str
    layout : Layout
    tasks : tuple of str
        Ids, n_tasks of them.
    pickup, delivery : ndarray(int32, (n_tasks,))
        Positions in `layout.sites`.
    arrival : ndarray(float64, (n_tasks,)), s
    expiry : ndarray(float64, (n_tasks,)), s
        Counted from the arrival: a task is due at arrival + expiry.
    handling_time : ndarray(float64, (n_tasks,)), s
    demand : ndarray(float64, (n_tasks,)), units of load
    """

    name: str
    layout: Layout
    tasks: tuple[str, ...]
    pickup: np.ndarray
    delivery: np.ndarray
    arrival: np.ndarray
    expiry: np.ndarray
    handling_time: np.ndarray
    demand: np.ndarray

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @classmethod
    def from_rows(
        cls,
        name: str,
        layout: Layout,
        rows: Sequence[Mapping[str, Any]],
        places: Sequence[str] | None = None,
    ) -> Instance:
        """Build an instance from task rows in any order.

        Parameters
        ----------
        name : str
        layout : Layout
        rows : sequence of mappings
            Keys `task`, `pickup`, `delivery`, `arrival_time`, `expiry_time` and optionally
            `handling_time` and `demand`; numbers or texts that read as numbers.
        places : sequence of str, optional
            Where each row stood, for errors; "row 1", "row 2", ... if not given.

        Raises
        ------
        RecordError
            If a value is missing, malformed or out of range, a task stands twice, a site is unknown
            or cannot be reached, or no vehicle can carry a task.
        """
        if not rows:
            raise RecordError("no tasks; expected at least one")
        if len(rows) > MAX_TASKS:
            raise RecordError(f"{len(rows):,} tasks; expected at most {MAX_TASKS:,}")
        if places is None:
            places = [f"row {k + 1}" for k in range(len(rows))]
        seen: dict[str, str] = {}
        parsed: list[tuple[Any, ...]] = []
        for place, row in zip(places, rows, strict=True):
            task = _read_id(row, "task", place)
            if task in seen:
                raise RecordError(
                    f"{place}: task: '{task}' stands already on {seen[task]}; expected each task once"
                )
            seen[task] = place
            ends = []
            for column in ("pickup", "delivery"):
                site = _read_id(row, column, place)
                if site not in layout.site_index:
                    raise RecordError(
                        f"{place}: {column}: unknown site '{site}'; "
                        f"expected a site of layout '{layout.name}'"
                    )
                ends.append(layout.site_index[site])
            if ends[0] == ends[1]:
                raise RecordError(
                    f"{place}: delivery: '{_read_id(row, 'delivery', place)}' is also the pickup; "
                    "expected another site"
                )
            parsed.append(
                (
                    task,
                    *ends,
                    _read_number(row, "arrival_time", place),
                    _read_number(row, "expiry_time", place),
                    _read_number(row, "handling_time", place, 0.0),
                    _read_number(row, "demand", place, 0.0),
                )
            )
        arrival: list[float] = [row[3] for row in parsed]
        order = sorted(range(len(parsed)), key=arrival.__getitem__)
        columns: list[Any] = list(zip(*(parsed[k] for k in order), strict=True))
        instance = cls(
            name,
            layout,
            tuple(columns[0]),
            *(_freeze(np.array(column, np.int32)) for column in columns[1:3]),
            *(_freeze(np.array(column, np.float64)) for column in columns[3:]),
        )
        instance._check_reach([places[k] for k in order])
        return instance

    def _check_reach(self, places: Sequence[str]) -> None:
        """Refuse a record that some vehicle could not finish from wherever it may stand."""
        distance = self.layout.routes.distance
        sites = self.layout.sites
        starts = {self.layout.site_index[vehicle.start] for vehicle in self.layout.vehicles}
        origins = sorted(starts | {int(site) for site in self.delivery})
        largest = max(vehicle.capacity or math.inf for vehicle in self.layout.vehicles)
        for k, place in enumerate(places):
            pickup, delivery = int(self.pickup[k]), int(self.delivery[k])
            for origin in origins:
                if math.isinf(distance[origin, pickup]):
                    raise RecordError(
                        f"{place}: pickup: '{sites[pickup].id}' cannot be reached from "
                        f"'{sites[origin].id}'; expected a way along the edges"
                    )
            if math.isinf(distance[pickup, delivery]):
                raise RecordError(
                    f"{place}: delivery: '{sites[delivery].id}' cannot be reached from "
                    f"'{sites[pickup].id}'; expected a way along the edges"
                )
            if self.demand[k] > largest:
                raise RecordError(
                    f"{place}: demand: {self.demand[k]:g} exceeds every vehicle's capacity; "
                    f"expected at most {largest:g}"
                )

    def rows(self) -> list[dict[str, Any]]:
        """Return the tasks as `from_rows` reads them, in order of arrival."""
        sites = self.layout.sites
        return [
            {
                "task": self.tasks[k],
                "pickup": sites[self.pickup[k]].id,
                "delivery": sites[self.delivery[k]].id,
                "arrival_time": float(self.arrival[k]),
                "expiry_time": float(self.expiry[k]),
                "handling_time": float(self.handling_time[k]),
                "demand": float(self.demand[k]),
            }
            for k in range(self.n_tasks)
        ]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that decides an episode; names of instance and layout are not in it."""
        data = self.layout.to_dict()
        del data["name"]
        canonical = json.dumps([data, self.rows()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Instance({self.name!r}, layout={self.layout.name!r}, n_tasks={self.n_tasks})"


def _freeze(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _read_id(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    text = ""
    with suppress(ValueError):  # Python writes no number of more than 4,300 digits
        text = str(value).strip() if isinstance(value, str | int) else ""
    if not text or len(text) > 200 or not text.isprintable():
        raise RecordError(f"{place}: {column}: read {shorten(value)}; expected a name")
    return text


def _read_number(
    row: Mapping[str, Any], column: str, place: str, default: float | None = None
) -> float:
    value = row.get(column)
    blank = value is None or (isinstance(value, str) and not value.strip())
    if blank and default is not None:
        return default
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    # "1_000" and "nan" are numbers to Python but slips in a record.
    if isinstance(value, str) and "_" in value:
        number = math.nan
    if not 0.0 <= number <= MAX_NUMBER:
        unit = "" if column == "demand" else " of seconds"
        raise RecordError(
            f"{place}: {column}: read {shorten(value)}; expected a number{unit} from 0 to "
            f"{MAX_NUMBER:g}"
        )
    return number + 0.0  # minus zero is zero


def read_record(path: str | os.PathLike[str], layout: Layout) -> Instance:
    """Read a task record (CSV) that belongs to `layout`.

    Parameters
    ----------
    path : path-like
        Format in `instances/README.md`; comma or semicolon separated, UTF-8.
    layout : Layout

    Raises
    ------
    RecordError
        If the file cannot be read or a task is not usable; the message names line and field.
    """
    text = read_text(path, RecordError)
    try:
        rows, places = _parse_csv(text)
        # Names of files need not be text; a backslash could not stand in another name.
        name = Path(path).stem
        name = name if name.isprintable() else make_printable(name).replace("\\", "%")
        return Instance.from_rows(name, layout, rows, places)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def _parse_csv(text: str) -> tuple[list[dict[str, str]], list[str]]:
    header_line = text.lstrip("\r\n").split("\n", 1)[0]
    semicolons = header_line.count(";") > header_line.count(",")
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=";" if semicolons else ",", strict=True
    )
    header: list[str] | None = None
    rows: list[dict[str, str]] = []
    places: list[str] = []
    try:
        for fields in reader:
            line = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if header is None:
                header = [field.strip() for field in fields]
                _check_header(header, line)
                continue
            if len(fields) != len(header):
                raise RecordError(
                    f"line {line}: {len(fields)} fields; expected {len(header)} ({','.join(header)})"
                )
            row = dict(zip(header, fields, strict=True))
            if semicolons:
                # Spreadsheets that separate by semicolons write decimals with a comma.
                for column in (*REQUIRED_COLUMNS[3:], *OPTIONAL_COLUMNS):
                    if column in row:
                        row[column] = row[column].replace(",", ".")
            rows.append(row)
            places.append(f"line {line}")
            if len(rows) > MAX_TASKS:
                raise RecordError(f"line {line}: more than {MAX_TASKS:,} tasks; expected fewer")
    except csv.Error as error:
        raise RecordError(f"line {reader.line_num}: not CSV: {error}") from error
    if header is None:
        raise RecordError("the file is empty; expected a header and one line per task")
    if not rows:
        raise RecordError("no tasks below the header; expected one line per task")
    return rows, places


def _check_header(header: list[str], line: int) -> None:
    known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
    for column in header:
        if column not in known:
            raise RecordError(
                f"line {line}: unknown column {shorten(column)}; expected columns {','.join(known)}"
            )
        if header.count(column) > 1:
            raise RecordError(f"line {line}: column '{column}' stands twice; expected it once")
    for column in REQUIRED_COLUMNS:
        if column not in header:
            raise RecordError(
                f"line {line}: missing column '{column}'; read {shorten(','.join(header))}"
            )


def instances_folder() -> Path:
    """Return the folder of the bundled instances: inside an installed package, beside it in a clone."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "instances"
    return installed if installed.is_dir() else package.parent / "instances"


@cache
def bundled_instances() -> dict[str, Path]:
    """Return the record files of the bundled instances by name."""
    return {path.stem: path for path in sorted(instances_folder().glob("*/*.csv"))}


@cache
def bundled_suites() -> dict[str, list[str]]:
    """Return the names of the bundled suites and of the instances in each."""
    suites: dict[str, list[str]] = json.loads(
        (instances_folder() / "suites.json").read_text(encoding="utf-8")
    )
    return suites


@cache
def _load_bundled_layout(name: str) -> Layout:
    return Layout.load(instances_folder() / name / "layout.json")


def load_layout(layout: str | os.PathLike[str]) -> Layout:
    """Load a layout: a JSON path, or the name of a bundled layout such as "dmh".

    Raises
    ------
    LayoutError
        If it is neither, or the file does not describe a layout.
    """
    name = os.fspath(layout)
    bundled = sorted(path.parent.name for path in instances_folder().glob("*/layout.json"))
    if name in bundled and not Path(name).is_file():
        return _load_bundled_layout(name)
    if not path_exists(name):
        raise LayoutError(
            f"{name}: no such layout; expected a JSON file or a bundled layout ({', '.join(bundled)})"
        )
    return Layout.load(layout)


def load_instance(
    instance: str | os.PathLike[str], *, layout: str | os.PathLike[str] | Layout | None = None
) -> Instance:
    """Load an instance: a bundled one by name, or your own task record.

    Parameters
    ----------
    instance : str or path-like
        A bundled name such as "DMH-01", or the path of a task CSV.
    layout : str, path-like or Layout, optional
        A JSON path or the name of a bundled layout such as "dmh"; by default `layout.json` beside
        the CSV.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError, LayoutError
        If the record or its layout cannot be read or used; one line that names file, line, field,
        what was read and what was expected.
    """
    name = os.fspath(instance)
    bundled = bundled_instances()
    path = Path(name)
    if name in bundled and not path.is_file():
        path = bundled[name]
        if layout is None:
            return read_record(path, _load_bundled_layout(path.parent.name))
    elif not path_exists(path):
        raise RecordError(
            f"{name}: no such task record; expected a CSV file or a bundled instance "
            f"({next(iter(bundled))} ... {list(bundled)[-1]})"
        )
    if isinstance(layout, Layout):
        return read_record(path, layout)
    if layout is None:
        beside = path.parent / "layout.json"
        if not beside.is_file():
            raise LayoutError(
                f"{beside}: no such layout; expected it beside the task record, or a layout named "
                "with layout= (--layout)"
            )
        return read_record(path, Layout.load(beside))
    return read_record(path, load_layout(layout))


def display_name(name: str) -> str:
    """Return an instance's name as tables show it: DMH-N10-01 is the paper's DMH±10-01."""
    match = re.fullmatch(r"(.+)-N(\d+)-(\d+)", name)
    return f"{match[1]}±{match[2]}-{match[3]}" if match else name


def load_suite(name: str) -> list[Instance]:
    """Load all instances of a bundled suite, such as "dmh-train".

    Raises
    ------
    InputError
        If there is no such suite.
    """
    suites = bundled_suites()
    if name not in suites:
        raise InputError(f"suite '{name}': unknown; expected one of {', '.join(suites)}")
    return [load_instance(instance) for instance in suites[name]]
