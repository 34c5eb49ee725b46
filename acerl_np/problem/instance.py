"""Instances: a layout and a record of tasks; bundled instances and suites."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.problem.json_tree import shorten
from acerl_np.problem.layout import Breakdown, Layout
from acerl_np.problem.limits import MAX_BREAKDOWNS, MAX_TASKS
from acerl_np.problem.rows import (
    TimeColumn,
    count_seconds,
    describe_kind,
    is_blank,
    parse_csv,
    read_id,
    read_moment,
    read_number,
)
from acerl_np.support.errors import InputError, LayoutError, RecordError, describe, make_printable
from acerl_np.support.files import path_exists, read_text

REQUIRED_COLUMNS = ("task", "pickup", "delivery", "arrival_time", "expiry_time")
OPTIONAL_COLUMNS = ("handling_time", "demand")
TIME_ZERO_COLUMN = "time_zero"
"""Optional column of a record with timestamps: the moment of time zero, the same on every line."""
BREAKDOWN_COLUMNS = ("vehicle", "time", "repair_time")

BREAKDOWNS_FILE = "breakdowns.csv"
"""Name of a file beside a task record that replaces the breakdowns that the layout lists."""

NO_BREAKDOWNS = "none"
"""In the place of a file of breakdowns: there are none, whatever the layout says."""


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
    epoch : datetime or None
        The moment of time zero; None if the record counts seconds. It is not in the content hash.
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
    epoch: datetime | None = None

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
        *,
        epoch: datetime | None = None,
        servable: bool = True,
    ) -> Instance:
        """Build an instance from task rows in any order.

        Parameters
        ----------
        name : str
        layout : Layout
        rows : sequence of mappings
            Keys `task`, `pickup`, `delivery`, `arrival_time`, `expiry_time` and optionally
            `handling_time`, `demand` and `time_zero`; numbers or texts that read as numbers. Arrivals
            may also be ISO 8601 timestamps; then expiries may be timestamps of the due moments, and
            `time_zero` the moment of time zero, the same in each row that has it.
        places : sequence of str, optional
            Where each row stood, for errors; "row 1", "row 2", ... if not given.
        epoch : datetime, optional
            The moment of time zero; by default that of the rows, else the first arrival if arrivals are
            timestamps.
        servable : bool
            Refuse a record some of whose tasks may be impossible to reach or to carry.

        Raises
        ------
        RecordError
            If a value is missing, malformed or out of range, a column holds both seconds and
            timestamps, a task stands twice, a site is unknown or cannot be reached, or no vehicle
            can carry a task.
        """
        if not rows:
            raise RecordError("no tasks; expected at least one")
        if len(rows) > MAX_TASKS:
            raise RecordError(f"{len(rows):,} tasks; expected at most {MAX_TASKS:,}")
        if places is None:
            places = [f"row {k + 1}" for k in range(len(rows))]
        arrivals, expiries = TimeColumn("arrival_time"), TimeColumn("expiry_time")
        seen: dict[str, str] = {}
        parsed: list[tuple[Any, ...]] = []
        for place, row in zip(places, rows, strict=True):
            task = read_id(row, "task", place)
            if task in seen:
                raise RecordError(
                    f"{place}: task: '{task}' stands already on {seen[task]}; expected each task once"
                )
            seen[task] = place
            ends = []
            for column in ("pickup", "delivery"):
                site = read_id(row, column, place)
                if site not in layout.site_index:
                    raise RecordError(
                        f"{place}: {column}: unknown site '{site}'; "
                        f"expected a site of layout '{layout.name}'"
                    )
                ends.append(layout.site_index[site])
            if ends[0] == ends[1]:
                raise RecordError(
                    f"{place}: delivery: '{read_id(row, 'delivery', place)}' is also the pickup; "
                    "expected another site"
                )
            parsed.append(
                (
                    task,
                    *ends,
                    arrivals.read(row, place),
                    expiries.read(row, place),
                    read_number(row, "handling_time", place, 0.0),
                    read_number(row, "demand", place, 0.0, unit=""),
                )
            )
        if epoch is None:
            epoch = _read_time_zero(rows, places, parsed[0][3])
        if epoch is None and isinstance(parsed[0][3], datetime):
            epoch = min(row[3] for row in parsed)
        parsed = [
            (*row[:3], *_count_times(row[3], row[4], epoch, place), *row[5:])
            for row, place in zip(parsed, places, strict=True)
        ]
        arrival: list[float] = [row[3] for row in parsed]
        order = sorted(range(len(parsed)), key=arrival.__getitem__)
        columns: list[Any] = list(zip(*(parsed[k] for k in order), strict=True))
        numbers = [_freeze(np.array(column, np.float64)) for column in columns[3:]]
        instance = cls(
            name,
            layout,
            tuple(columns[0]),
            pickup=_freeze(np.array(columns[1], np.int32)),
            delivery=_freeze(np.array(columns[2], np.int32)),
            arrival=numbers[0],
            expiry=numbers[1],
            handling_time=numbers[2],
            demand=numbers[3],
            epoch=epoch,
        )
        if servable:
            instance._check_reach([places[k] for k in order])
        return instance

    def check_servable(self) -> None:
        """Refuse an instance some of whose tasks may be impossible to reach or to carry.

        Raises
        ------
        RecordError
            With the task and what is wrong with it.
        """
        self._check_reach([f"{self.name}: task '{task}'" for task in self.tasks])

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


def list_instances(instances: Any) -> list[Instance]:
    """Return one or several instances as a list.

    Parameters
    ----------
    instances : Instance or iterable of Instance

    Raises
    ------
    InputError
        If something else is among them, such as a name.
    """
    several = isinstance(instances, Iterable) and not isinstance(instances, str)
    found = list(instances) if several else [instances]
    for item in found:
        if not isinstance(item, Instance):
            raise InputError(
                f"instances: read {describe(item)}; expected what load_instance or load_suite returns"
            )
    return found


def check_names(instances: Iterable[Instance]) -> None:
    """Refuse instances of one name.

    Raises
    ------
    InputError
        With the first name that stands twice.
    """
    names = [instance.name for instance in instances]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"instance '{twice}' is given twice; expected different names")


def _freeze(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _read_time_zero(
    rows: Sequence[Mapping[str, Any]], places: Sequence[str], arrival: float | datetime
) -> datetime | None:
    """Return the moment that the rows name as time zero, None if they name none."""
    zero, first = None, ""
    for place, row in zip(places, rows, strict=True):
        value = row.get(TIME_ZERO_COLUMN)
        if is_blank(value):
            continue
        moment = read_moment(value)
        expected = ""
        if not isinstance(arrival, datetime):
            expected = "none, as arrival_time is in seconds"
        elif moment is None or describe_kind(moment) != describe_kind(arrival):
            expected = f"{describe_kind(arrival)}, as in arrival_time"
        elif zero is not None and moment != zero:
            expected = f"the moment of {first}, {zero.isoformat()}"
        if expected:
            shown = value.isoformat() if isinstance(value, datetime) else value
            raise RecordError(
                f"{place}: {TIME_ZERO_COLUMN}: read {shorten(shown)}; expected {expected}"
            )
        zero, first = (moment, place) if zero is None else (zero, first)
    return zero


def _count_times(
    arrival: float | datetime, expiry: float | datetime, epoch: datetime | None, place: str
) -> tuple[float, float]:
    """Return an arrival in seconds from time zero, and an expiry in seconds from the arrival."""
    seconds = count_seconds(arrival, epoch, "arrival_time", place)
    if isinstance(arrival, datetime) and seconds < 0.0:
        raise RecordError(
            f"{place}: arrival_time: read {shorten(arrival.isoformat())}; expected a moment not "
            f"before time zero ({epoch})"
        )
    if not isinstance(expiry, datetime):
        return seconds, expiry
    due = count_seconds(expiry, epoch, "expiry_time", place)
    left = (expiry - arrival).total_seconds() if isinstance(arrival, datetime) else due - seconds
    if left < 0.0:
        raise RecordError(
            f"{place}: expiry_time: read {shorten(expiry.isoformat())}, {-left:g} s before the "
            "task's arrival; expected a moment at or after it"
        )
    return seconds, left


def read_record(
    path: str | os.PathLike[str],
    layout: Layout,
    *,
    breakdowns: str | os.PathLike[str] | None = None,
    servable: bool = True,
) -> Instance:
    """Read a task record (CSV) that belongs to `layout`.

    Parameters
    ----------
    path : path-like
        Format in `instances/README.md`; comma or semicolon separated, UTF-8.
    layout : Layout
    breakdowns : path-like, optional
        CSV of breakdowns that replace those that the layout lists; "none" for no breakdowns.
    servable : bool
        Refuse a record some of whose tasks may be impossible to reach or to carry.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError
        If a file cannot be read or a line is not usable; the message names line and field.
    """
    text = read_text(path, RecordError)
    try:
        rows, places = parse_csv(
            text,
            REQUIRED_COLUMNS,
            (*OPTIONAL_COLUMNS, TIME_ZERO_COLUMN),
            numbers=(*REQUIRED_COLUMNS[3:], *OPTIONAL_COLUMNS),
            noun="task",
            limit=MAX_TASKS,
        )
        if not rows:
            raise RecordError("no tasks below the header; expected one line per task")
        # Names of files need not be text; a backslash could not stand in another name.
        name = Path(path).stem
        name = name if name.isprintable() else make_printable(name).replace("\\", "%")
        instance = Instance.from_rows(name, layout, rows, places, servable=servable)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    if breakdowns is None:
        return instance
    if breakdowns == NO_BREAKDOWNS:
        return replace(instance, layout=layout.with_breakdowns({}).with_random_breakdowns(None))
    return replace(instance, layout=read_breakdowns(breakdowns, layout, instance.epoch))


def read_breakdowns(
    path: str | os.PathLike[str], layout: Layout, epoch: datetime | None = None
) -> Layout:
    """Return `layout` with the breakdowns of a CSV file in the place of those that it lists.

    A breakdown before time zero counts as far as its repair lasts beyond it.

    Parameters
    ----------
    path : path-like
        Header `vehicle,time,repair_time`, one line per breakdown, or none; format in
        `instances/README.md`.
    layout : Layout
    epoch : datetime, optional
        The moment of time zero, for a file with timestamps.

    Returns
    -------
    Layout

    Raises
    ------
    RecordError
        If the file cannot be read or a line is not usable; the message names line and field.
    """
    text = read_text(path, RecordError)
    listed: dict[str, list[Breakdown]] = {vehicle.id: [] for vehicle in layout.vehicles}
    try:
        rows, places = parse_csv(
            text,
            BREAKDOWN_COLUMNS,
            (),
            numbers=BREAKDOWN_COLUMNS[1:],
            noun="breakdown",
            limit=MAX_BREAKDOWNS * len(listed),
        )
        times = TimeColumn("time")
        for row, place in zip(rows, places, strict=True):
            vehicle = read_id(row, "vehicle", place)
            if vehicle not in listed:
                raise RecordError(
                    f"{place}: vehicle: unknown vehicle '{vehicle}'; expected a vehicle of layout "
                    f"'{layout.name}'"
                )
            time = count_seconds(times.read(row, place), epoch, "time", place)
            repair_time = read_number(row, "repair_time", place)
            if time + repair_time >= 0.0:
                listed[vehicle].append(Breakdown(max(0.0, time), repair_time + min(0.0, time)))
            if len(listed[vehicle]) > MAX_BREAKDOWNS:
                raise RecordError(
                    f"{place}: vehicle: more than {MAX_BREAKDOWNS:,} breakdowns of '{vehicle}'; "
                    "expected fewer"
                )
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    return layout.with_breakdowns(listed)


def instances_folder() -> Path:
    """Return the folder of the bundled instances: inside an installed package, beside it in a clone."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "instances"
    return installed if installed.is_dir() else package.parent / "instances"


@cache
def bundled_instances() -> dict[str, Path]:
    """Return the record files of the bundled instances by name."""
    files = sorted(instances_folder().glob("*/*.csv"))
    return {path.stem: path for path in files if path.name != BREAKDOWNS_FILE}


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


def find_breakdowns(instance: str | os.PathLike[str]) -> Path | None:
    """Return the file of breakdowns beside an own task record, None if there is none.

    Parameters
    ----------
    instance : str or path-like
        As `load_instance` takes it; a bundled instance has no such file.
    """
    path = Path(instance)
    if os.fspath(instance) in bundled_instances() and not path.is_file():
        return None
    beside = path.parent / BREAKDOWNS_FILE
    return beside if beside.is_file() else None


def load_instance(
    instance: str | os.PathLike[str],
    *,
    layout: str | os.PathLike[str] | Layout | None = None,
    breakdowns: str | os.PathLike[str] | None = None,
    servable: bool = True,
) -> Instance:
    """Load an instance: a bundled one by name, or your own task record.

    Parameters
    ----------
    instance : str or path-like
        A bundled name such as "DMH-01", or the path of a task CSV.
    layout : str, path-like or Layout, optional
        A JSON path or the name of a bundled layout such as "dmh"; by default `layout.json` beside
        the CSV.
    breakdowns : path-like, optional
        CSV of breakdowns that replace those that the layout lists, or "none" for no breakdowns; by
        default `breakdowns.csv` beside the CSV of the tasks, if there is one.
    servable : bool
        Refuse a record some of whose tasks may be impossible to reach or to carry.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError, LayoutError
        If the record, its layout or its breakdowns cannot be read or used; one line that names
        file, line, field, what was read and what was expected.
    """
    name = os.fspath(instance)
    bundled = bundled_instances()
    path = Path(name)
    own = name not in bundled or path.is_file()
    if not own:
        path = bundled[name]
    elif not path_exists(path):
        raise RecordError(
            f"{name}: no such task record; expected a CSV file or a bundled instance "
            f"({next(iter(bundled))} ... {list(bundled)[-1]})"
        )
    if layout is None:
        beside = path.parent / "layout.json"
        if not own:
            layout = _load_bundled_layout(path.parent.name)
        elif not beside.is_file():
            raise LayoutError(
                f"{beside}: no such layout; expected it beside the task record, or a layout named "
                "with layout= (--layout)"
            )
        else:
            layout = Layout.load(beside)
    elif not isinstance(layout, Layout):
        layout = load_layout(layout)
    if breakdowns is None:
        breakdowns = find_breakdowns(instance)
    return read_record(path, layout, breakdowns=breakdowns, servable=servable)


def display_name(name: str) -> str:
    """Return an instance's name as tables show it: DMH-N10-01 is the paper's DMH±10-01."""
    match = re.fullmatch(r"(.+)-N(\d+)-(\d+)", name)
    return f"{match[1]}±{match[2]}-{match[3]}" if match else name


def load_suite(name: str, *, breakdowns: str | os.PathLike[str] | None = None) -> list[Instance]:
    """Load all instances of a bundled suite, such as "dmh-train".

    Parameters
    ----------
    name : str
    breakdowns : path-like, optional
        As in `load_instance`, for each of them.

    Raises
    ------
    InputError
        If there is no such suite, or the breakdowns cannot be read or used.
    """
    suites = bundled_suites()
    if name not in suites:
        raise InputError(f"suite '{name}': unknown; expected one of {', '.join(suites)}")
    return [load_instance(instance, breakdowns=breakdowns) for instance in suites[name]]
