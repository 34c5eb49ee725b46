"""Instances, suites and layouts found by name: those that come with the package, or your own files."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.problem.columns import RECORD
from acerl_np.problem.export import PLAIN, Export, read_mapping
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import (
    BREAKDOWNS_FILE,
    CLOSURES_FILE,
    LEFT_OUT,
    NO_BREAKDOWNS,
    examine_record,
    read_breakdowns,
    read_closures,
)
from acerl_np.support.errors import InputError, LayoutError, RecordError, suggest_name
from acerl_np.support.files import STDIN, FilePath, path_exists

YARDSTICK = Path("bilge-ulusoy", "bilge-ulusoy.json")
"""The published numbers behind the instances EX11 to EX104, in the folder of the bundled ones."""


TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
"""Endings of the names of tables."""

SERVED = ".served.csv"
"""How names of files end that say who served the tasks of a record."""

BESIDE = (BREAKDOWNS_FILE, CLOSURES_FILE, LEFT_OUT, SERVED)
"""How names of tables beside records end that are none."""


def expand_names(names: Sequence[str], *, needed: bool = True) -> list[str]:
    """Return the names of records: those that patterns match, and the tables of folders.

    Tables beside records that are none are left out: breakdowns, closures, rows left out, who served them. It
    is an error if nothing matches but none is `needed`.
    """
    found: list[str] = []
    for name in names:
        own = [name]
        if not path_exists(name) and any(letter in name for letter in "*?["):
            place, own = Path(name), []
            with suppress(OSError, ValueError):  # of what is no pattern
                some = Path(place.anchor).glob(str(place.relative_to(place.anchor)))
                own = sorted(map(str, some))
            expected = "no file matches"
        elif name and path_exists(name) and Path(name).is_dir():
            tables = (path for path in Path(name).iterdir() if path.suffix.lower() in TABLES)
            own = sorted(map(str, tables))
            expected = "a folder without tables"
        if not own and needed:
            raise InputError(f"{name}: {expected}; expected task records")
        found += own
    return [name for name in found if not name.endswith(BESIDE)] or found


def instances_folder() -> Path:
    """Return the folder of the bundled instances: inside an installed package, beside it in a clone."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "instances"
    return installed if installed.is_dir() else package.parent / "instances"


@cache
def bundled_instances() -> dict[str, Path]:
    """Return the files of the bundled instances by name."""
    files = {path.stem: path for path in instances_folder().glob("*/*.csv")}
    return {name: files[name] for name in sorted(files) if files[name].name != BREAKDOWNS_FILE}


@cache
def bundled_suites() -> dict[str, list[str]]:
    """Return the names of the bundled suites and of the instances in each."""
    text = (instances_folder() / "suites.json").read_text(encoding="utf-8")
    suites: dict[str, list[str]] = json.loads(text)
    return suites


@cache
def _load_bundled_layout(name: str) -> Layout:
    return Layout.load(instances_folder() / name / "layout.json")


def bundled_floors() -> list[str]:
    """Return the names of the bundled floors."""
    return sorted(path.parent.name for path in instances_folder().glob("*/layout.json"))


def load_layout(layout: FilePath) -> Layout:
    """Load a layout: a JSON path, or the name of a bundled layout such as "dmh".

    Parameters
    ----------
    layout : str or path-like

    Raises
    ------
    LayoutError
        If it is neither, or the file does not describe a layout.

    See Also
    --------
    load_instance : Tasks on a floor.
    Layout : What comes back.

    Examples
    --------
    >>> import acerl_np
    >>> len(acerl_np.load_layout("dmh").sites)
    14
    """
    name = os.fspath(layout)
    bundled = bundled_floors()
    if name in bundled and not Path(name).is_file():
        return _load_bundled_layout(name)
    if not path_exists(name):
        raise LayoutError(
            f"{name}: no such layout; expected a JSON file or a bundled layout ({', '.join(bundled)})"
            f"{suggest_name(name, bundled)}"
        )
    return Layout.load(layout)


def find_breakdowns(instance: FilePath) -> Path | None:
    """Return the file of breakdowns beside an own task record, None if there is none, as for bundled ones."""
    return _find_beside(instance, BREAKDOWNS_FILE)


def _find_beside(instance: FilePath, *names: str) -> Path | None:
    path = Path(instance)
    if os.fspath(instance) in bundled_instances() and not path.is_file():
        return None
    return next((own for name in names if (own := path.parent / name).is_file()), None)


def find_closures(instance: FilePath) -> Path | None:
    """Return the file of closures of a task record, or beside it, None if there is none."""
    return _find_beside(instance, f"{Path(instance).stem}.{CLOSURES_FILE}", CLOSURES_FILE)


def load_instance(
    instance: FilePath,
    *,
    layout: FilePath | Layout | None = None,
    breakdowns: FilePath | None = None,
    date_format: str | None = None,
    mapping: FilePath | Mapping[str, Any] | Export | None = None,
    servable: bool = True,
) -> Instance:
    """Load an instance: a bundled one by name, or your own task record.

    Parameters
    ----------
    instance : str or path-like
        A bundled name such as "DMH-01", or the path of a task CSV or workbook (.xlsx); "-" is the standard
        input, as if it stood in the present folder.
    layout : str, path-like or Layout, optional
        A JSON path or the name of a bundled layout such as "dmh"; by default `layout.json` beside
        the CSV.
    breakdowns : path-like, optional
        CSV of breakdowns that replace those that the layout lists, or "none" for no breakdowns; by
        default `breakdowns.csv` beside the CSV of the tasks, if there is one. In the same way
        `closures.csv` there, or before it that of the record's own name, replaces the layout's closures.
    date_format : str, optional
        How these files write dates besides ISO 8601, as `datetime.strptime` reads it:
        "%d.%m.%Y %H:%M". It goes before that of the mapping.
    mapping : path-like, mapping or Export, optional
        How another system wrote the record: a TOML file as `acerl-np records convert --write-mapping` writes
        it, or its keys and values: `{"columns": {"task": "TA-Nr"}, "skip_bad": True}`.
    servable : bool
        Refuse a record some of whose tasks may be impossible to reach or to carry.

    Returns
    -------
    Instance

    Raises
    ------
    RecordError, LayoutError
        If the record, its layout or its breakdowns cannot be read or used; one line that names
        file, line, field, what was read and what was expected. Where only single rows are bad, the error's
        `faults` are all of theirs.
    InputError
        If the date format or the mapping is none, or splits the table into several records.

    Warns
    -----
    RecordWarning
        If a file has columns that are not read, or rows were left out.

    See Also
    --------
    load_suite : Several bundled ones.
    load_records : A table in parts.
    load_layout : A floor alone.

    Examples
    --------
    >>> import acerl_np
    >>> acerl_np.load_instance("DMH-01").n_tasks
    30
    """
    export = PLAIN if mapping is None else read_mapping(mapping)
    if date_format is not None:
        export = replace(export, date_format=date_format)
    found = _load(instance, layout, breakdowns, export, servable)
    if len(found) > 1:
        raise InputError(
            f"{os.fspath(instance)}: {len(found)} records by split (--split); expected one, or load_records"
        )
    return found[0]


def load_records(
    instance: FilePath,
    *,
    layout: FilePath | Layout | None = None,
    breakdowns: FilePath | None = None,
    mapping: FilePath | Mapping[str, Any] | Export | None = None,
    servable: bool = True,
) -> list[Instance]:
    """Load records: a file, a folder, a pattern, and the shifts into which a mapping splits a table.

    Parameters, errors and warnings are those of `load_instance`; a file without a split is one record.

    Parameters
    ----------
    instance : str or path-like
        Or a folder, or a pattern such as "week/shift-?.csv".
    layout : str, path-like or Layout, optional
    breakdowns : path-like, optional
    mapping : path-like, mapping or Export, optional
    servable : bool

    Returns
    -------
    list of Instance
        By the files' names, those of a file in the order of time; a record's name ends in the moment at which
        it begins, or in a number.

    See Also
    --------
    load_instance : One record.
    Export : How a table is read.

    Examples
    --------
    >>> import acerl_np
    >>> [record.name for record in acerl_np.load_records("DMH-01")]
    ['DMH-01']
    """
    floor = layout if isinstance(layout, Layout | None) else load_layout(layout)
    export = read_mapping(mapping)
    found = []
    for name in expand_names([os.fspath(instance)]):  # of one line, as warnings count their callers
        found += _load(name, floor, breakdowns, export, servable)
    return found


def _load(
    instance: FilePath,
    layout: FilePath | Layout | None,
    breakdowns: FilePath | None,
    export: Export,
    servable: bool,
) -> list[Instance]:
    if breakdowns is None:
        breakdowns = find_breakdowns(instance)
    source, floor = find_record(instance, layout)
    is_bundled = source != os.fspath(instance) and layout is None and export == PLAIN
    plain = _read_bundled(Path(source), floor) if is_bundled else None
    if plain is not None and breakdowns is None:
        return [plain]
    # Warnings are of the line that called load_instance or load_records.
    found, _ = examine_record(source, floor, export, servable=servable, stacklevel=3)
    closures = find_closures(instance)
    if breakdowns == NO_BREAKDOWNS:
        floor = floor.with_breakdowns({}).with_random_breakdowns(None)
    for k, item in enumerate(found):
        own = floor
        if breakdowns is not None and breakdowns != NO_BREAKDOWNS:
            own = read_breakdowns(breakdowns, own, item.epoch, export, alone=len(found) == 1)
        if closures is not None:
            own = read_closures(closures, own, item.epoch, export, alone=len(found) == 1)
        found[k] = item if own is item.layout else replace(item, layout=own)
    return found


def _read_bundled(path: Path, floor: Layout) -> Instance | None:
    """Read a record of the package, tasks by arrival in seconds; None if it has more columns than it must."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != RECORD.required:
        return None
    tasks, pickup, delivery, *times = zip(*rows, strict=True)
    ends = np.array(
        [[floor.site_index[x] for x in sites] for sites in (pickup, delivery)], np.int32
    )
    zeros, nothing = np.zeros(len(rows)), np.full(len(rows), -1, np.int32)
    columns = *ends, *np.array(times, np.float64), zeros, zeros, zeros, nothing, zeros, zeros
    for column in columns:
        column.setflags(write=False)
    return Instance(path.stem, floor, tasks, *columns)


def find_record(instance: FilePath, layout: FilePath | Layout | None = None) -> tuple[str, Layout]:
    """Return the file of an instance and its layout, both as `load_instance` takes them."""
    name = os.fspath(
        instance
    )  # a path made of it would lose what tells "./-" from the standard input
    path, bundled = Path(name), bundled_instances()
    if name in bundled and not path.is_file():
        name, path = str(bundled[name]), bundled[name]
        layout = _load_bundled_layout(path.parent.name) if layout is None else layout
    elif name != STDIN and not path_exists(path):
        raise RecordError(
            f"{name}: no such task record; expected a CSV file or a bundled instance "
            f"({next(iter(bundled))} ... {list(bundled)[-1]}){suggest_name(name, bundled)}"
        )
    if layout is None:
        layout = path.parent / "layout.json"
        if not layout.is_file():
            raise LayoutError(
                f"{layout}: no such layout; expected it beside the task record, or a layout named "
                "with layout= (--layout)"
            )
    return name, layout if isinstance(layout, Layout) else load_layout(layout)


def display_name(name: str) -> str:
    """Return an instance's name as tables show it: DMH-N10-01 is the paper's DMH±10-01."""
    match = re.fullmatch(r"(.+)-N(\d+)-(\d+)", name)
    return f"{match[1]}±{match[2]}-{match[3]}" if match else name


def load_suite(name: str, *, breakdowns: FilePath | None = None) -> list[Instance]:
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

    See Also
    --------
    load_instance : One of them.

    Examples
    --------
    >>> import acerl_np
    >>> [record.name for record in acerl_np.load_suite("dmh-train")][:2]
    ['DMH-01', 'DMH-02']
    """
    suites = bundled_suites()
    if name not in suites:
        expected = f"expected one of {', '.join(suites)}{suggest_name(name, suites)}"
        raise InputError(f"suite '{name}': unknown; {expected}")
    return [load_instance(instance, breakdowns=breakdowns) for instance in suites[name]]
