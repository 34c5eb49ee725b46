"""Floors as two tables, of sites and of paths, in CSV or a workbook: written by hand, or from a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acerl_np.problem import source
from acerl_np.problem.columns import TableKind
from acerl_np.problem.export import Export
from acerl_np.problem.fields import is_blank, parse_number
from acerl_np.problem.json_tree import refuse
from acerl_np.problem.limits import MAX_EDGES, MAX_SITES
from acerl_np.support.errors import LayoutError, RecordError, suggest_name
from acerl_np.support.files import FilePath

SITES = TableKind("site", ("site", "x", "y"), ("kind",), ("x", "y"), MAX_SITES)
PATHS = TableKind(
    "path", ("from", "to"), ("length", "one_way", "max_speed"), ("length", "max_speed"), MAX_EDGES
)
SAID = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}
"""What the column one_way may say."""

TEMPLATE = {
    "sites.csv": """\
# One line for each place where vehicles stop or turn
# x and y in metres on any plan
# kind: station or parking or charger - or nothing for a crossing
site,x,y,kind
Goods-in,0,0,station
Rack,40,0,station
Pack,40,20,station
Corner,0,20,
Park,0,10,parking
""",
    "paths.csv": """\
# One line for each path between two places
# length in metres - or nothing for the straight line
# one_way: yes or no
# max_speed in metres a second - or nothing
from,to,length,one_way,max_speed
Goods-in,Rack,,no,
Rack,Pack,,yes,1.0
Pack,Corner,,no,
Corner,Park,,no,
Park,Goods-in,,no,
""",
}
"""Two tables to be edited, of a floor of five sites."""


def import_tables(paths: Sequence[FilePath]) -> tuple[dict[str, Any], list[str]]:
    """Read a floor from a table of sites and one of paths, in any order; lines above a header are ignored.

    Returns what `read_floor` does, without vehicles.

    Raises
    ------
    LayoutError
        If there are other tables, or a value is unusable: it names file, line and column.
    """
    tables: dict[str, tuple[str, source.Table]] = {}
    try:
        for path in map(str, paths):
            kind = max((SITES, PATHS), key=lambda x: source.open_table(x, path, Export()).rate)
            if kind.noun in tables:
                expected = f"{path}: a second table of {kind.noun}s; expected one of sites and one of paths"
                raise LayoutError(expected)
            with source.read_table(kind, path, Export()) as table:
                source.refuse_faults(table.faults, len(table.rows) + len(table.faults))
            tables[kind.noun] = path, table
        sites = _read_sites(*tables["site"])
        edges = _read_paths(*tables["path"], {site["id"] for site in sites})
    except RecordError as error:
        raise LayoutError(str(error)) from error
    except KeyError as error:
        raise LayoutError(f"{paths[0]}: no table of {error.args[0]}s beside it") from error
    name = Path(tables["site"][0]).absolute().parent.name or "layout"
    return {"format": 1, "name": name, "sites": sites, "edges": edges, "vehicles": []}, []


def _read_sites(path: str, table: source.Table) -> list[dict[str, Any]]:
    sites: dict[str, dict[str, Any]] = {}
    with source.name_file(path):
        for row, place in zip(table.rows, table.places, strict=True):
            name = row["site"].strip()
            if name in sites:
                raise RecordError(f"{place}: site: '{name}' again; expected each site once")
            x, y = (_read_number(row, key, place) for key in ("x", "y"))
            kind = (row.get("kind") or "").strip()
            sites[name] = {"id": name, "x": x, "y": y, "kind": kind}
    return list(sites.values())


def _read_paths(path: str, table: source.Table, sites: set[str]) -> list[dict[str, Any]]:
    edges = []
    with source.name_file(path):
        for row, place in zip(table.rows, table.places, strict=True):
            ends = [row[key].strip() for key in ("from", "to")]
            for key, end in zip(("from", "to"), ends, strict=True):
                if end not in sites:
                    expected = f"a site of the table of sites{suggest_name(end, sites)}"
                    refuse(f"{place}: {key}", end, expected, RecordError)
            edge: dict[str, Any] = {"a": ends[0], "b": ends[1]}
            said = (row.get("one_way") or "").strip().lower()
            if said not in SAID:
                refuse(f"{place}: one_way", said, "yes or no", RecordError)
            edge["one_way"] = SAID[said]
            for key in ("length", "max_speed"):
                if not is_blank(row.get(key)):
                    edge[key] = _read_number(row, key, place)
            edges.append(edge)
    return edges


def _read_number(row: dict[str, str], key: str, place: str) -> float:
    number = parse_number(row[key])
    if not math.isfinite(number):
        refuse(f"{place}: {key}", row[key], "a number", RecordError)
    return number
