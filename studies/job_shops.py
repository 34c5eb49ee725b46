"""The job shop with vehicles of Bilge and Ulusoy (1995), from its numbers: jobs, travel times, machines."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.commands.floor import format_layout
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.problem.columns import START
from acerl_np.problem.instance import Instance, check_names
from acerl_np.problem.json_tree import Key, items, names, number, parse_json, refuse, table
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Edge, Machine, Site, Vehicle
from acerl_np.problem.records import format_record
from acerl_np.support.errors import InputError, LayoutError, list_first
from acerl_np.support.fields import Field
from acerl_np.support.files import read_text, write_atomically

STATION = "lu"
"""Where jobs and vehicles start: the load/unload station."""

MOST, N_VEHICLES = 100, 2

NUMBERS = table(
    {
        "about": Key(reader=lambda value, where: value, default=None),
        "layouts": replace(names(items(items(number(0.0), 2, MOST), 2, MOST), MOST), default=...),
        "job_sets": replace(
            names(items(items(items(number(0.0), 2, 2), 1, MOST), 1, 1_000), MOST), default=...
        ),
    },
    dict,
)
"""Travel times between stations by layout, jobs as machines and their times by set."""


def import_bilge_ulusoy(path: str | os.PathLike[str], *, announced: bool = False) -> list[Instance]:
    """Build an instance of each job set on each layout, EX11, EX12, ... by the names of both.

    An operation is a task: the ride from the machine before, at first from the load/unload station, and the
    machine's work. All jobs are there at 0, nothing is ever due, vehicles do not come back.

    Parameters
    ----------
    path : path-like
        JSON: `layouts` have a matrix of travel times, s, from row to column, the load/unload station first;
        `job_sets` have jobs of operations [machine, processing time, s].
    announced : bool
        Whether a task is known when the processing before it begins, instead of when that ends.

    Raises
    ------
    LayoutError, RecordError
        If the file cannot be read, or the numbers cannot be those of a floor: a machine is unknown, or an
        operation is on the machine of the one before. One line.
    """
    text = read_text(path, LayoutError)
    try:
        data = NUMBERS.read("", parse_json(text))
        for key in ("layouts", "job_sets"):
            if not data[key]:
                refuse(key, {}, "at least one")
        for key in (*data["layouts"], *data["job_sets"]):
            if re.fullmatch("[A-Za-z0-9]+", key) is None:
                refuse("layouts, job_sets", key, "names of letters and digits")
        floors = {key: make_floor(key, times) for key, times in data["layouts"].items()}
        found = []
        for name, jobs in data["job_sets"].items():
            operations = list_operations(name, jobs, announced)
            for key, floor in floors.items():
                found.append(Instance.from_rows(f"EX{name}{key}", floor, *operations))
        check_names(found)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error
    return found


def make_floor(key: str, times: list[list[float]]) -> Layout:
    """Return a floor whose edges take these times at 1 m/s, one way each; its drawing is made up."""
    where, n = f"layouts.{key}", len(times)
    for a, row in enumerate(times):
        if len(row) != n:
            raise LayoutError(f"{where}[{a}]: read {len(row)} times; expected {n}")
        for b, time in enumerate(row):
            if a == b and time:
                refuse(f"{where}[{a}][{b}]", time, "0 from a station to itself")
    given = quickest = np.array(times)
    for c in range(n):
        quickest = np.minimum(quickest, quickest[:, [c]] + quickest[[c]])
    closed = [f"{a} to {b}" for a, b in np.argwhere(quickest < given)]
    if closed:
        said = f"{where}: {len(closed)} ways are quicker by other stations, and taken so"
        warnings.warn(f"{said} ({list_first(closed)})", stacklevel=3)
    ids = [STATION, *(f"m{k}" for k in range(1, n))]
    turn, radius = 2.0 * math.pi / (n - 1), float(np.mean(times))
    sites = [Site(STATION, 0.0, 0.0, "load/unload")]
    for k, machine in enumerate(ids[1:]):
        x, y = radius * math.cos(k * turn), radius * math.sin(k * turn)
        sites.append(Site(machine, round(x, 3), round(y, 3), "machine"))
    ways = itertools.permutations(range(n), 2)
    edges = [Edge(ids[a], ids[b], float(quickest[a, b]), one_way=True) for a, b in ways]
    vehicles = tuple(Vehicle(f"v{k + 1}", STATION) for k in range(N_VEHICLES))
    machines = tuple(map(Machine, ids[1:]))
    name = f"bilge-ulusoy-{key}"
    return Layout(name, tuple(sites), tuple(edges), vehicles, machines=machines)


def list_operations(
    name: str, jobs: list[list[tuple[float, float]]], announced: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tasks of a set of jobs, "j1-1" the first operation of the first one, and their places."""
    rows, places = [], []
    for j, job in enumerate(jobs):
        at = STATION
        for k, (machine, time) in enumerate(job):
            site = f"m{machine:g}"
            row = {"task": f"j{j + 1}-{k + 1}", "pickup": at, "delivery": site, "processing": time}
            row |= {"after": f"j{j + 1}-{k}" if k else "", "expiry_time": ""}
            row |= {"arrival_time": 0.0, "announced": START if announced and k else 0.0}
            rows.append(row)
            places.append(f"job_sets.{name}[{j}][{k}]")
            at = site
    return rows, places


OPTIONS: opt.Options = {
    "": (opt.Argument("file FILE", "the numbers (JSON)"),),
    opt.RECORDS: (
        opt.Argument(
            "--announced WHEN",
            "when a task is known: once it is ready, or at the start of the processing before it",
            Field(("ready", "start")),
            default="ready",
        ),
    ),
    opt.OUTPUT: (
        opt.OUT.but(usage="-o/--out DIR", help="folder for the records", required=True),
        opt.FORCE,
    ),
}


def run(arguments: argparse.Namespace) -> None:
    """Build the records of job shops from their numbers.

    Each stands in the folder of its floor, beside a layout.json: the job shops with two vehicles of Bilge and
    Ulusoy (1995) and those of their form, such as instances/bilge-ulusoy/bilge-ulusoy.json, whose own are
    bundled (bu-all). An operation is a task: the ride from the machine before, and processing; nobody
    drives back.

    Examples
    --------
      python -m studies job-shops numbers.json --out yardstick
      python -m studies job-shops numbers.json --announced start --out announced
      acerl-np evaluate NVF --on 'yardstick/*/EX*.csv'
    """
    made = import_bilge_ulusoy(arguments.file, announced=arguments.announced == "start")
    contents: dict[Path, str] = {}
    for instance in made:
        folder = Path(arguments.out) / instance.layout.name
        contents[folder / "layout.json"] = format_layout(instance.layout)
        contents[folder / f"{instance.name}.csv"] = format_record(instance)
    for path in contents:
        declare_outputs(arguments, [path], folder=path.parent)
    for path, content in contents.items():
        make_folder(path.parent)
        write_atomically(path, content.encode())
        print(path)
