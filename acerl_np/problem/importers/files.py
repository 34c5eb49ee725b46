"""Import a floor from a file of whatever known format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acerl_np.problem.importers.common import leave_out_dead_ends
from acerl_np.problem.importers.lif import import_lif
from acerl_np.problem.importers.opentcs import import_opentcs
from acerl_np.problem.importers.tables import import_tables
from acerl_np.problem.json_tree import shorten
from acerl_np.support.errors import LayoutError
from acerl_np.support.files import FilePath, read_text


def read_floor(
    path: FilePath,
    *further: FilePath,
    layout_id: str | None = None,
    join: bool = False,
    battery: Mapping[str, int] | None = None,
    two_way: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """Read a floor from a LIF file or an openTCS plant model, UTF-8 of at most 64 MiB, or from two tables.

    The first character tells the format: "{" or "<". `layout_id` and `join` are those of `import_lif`,
    `battery` that of `import_opentcs`. With `two_way` edges lead back, too, unless
    the way back is an edge of its own. Returns the layout as `Layout.from_dict` reads it, but for a list of
    vehicles that may be empty, and the warnings, one line each without the path: of whatever a floor can do
    without and was left out.
    """
    lif_only = "--layout-id" if layout_id is not None else "--join" if join else ""
    if further:
        if lif_only:
            raise LayoutError(f"{path}: {lif_only}: given for tables; expected it for LIF only")
        layout, warnings = import_tables([path, *further])
        return _lead_back(layout) if two_way else layout, warnings
    text = read_text(path, LayoutError)
    name = Path(path).name.split(".")[0] or "layout"
    try:
        first = text.lstrip()[:1]
        if first == "{":
            layout, warnings = import_lif(text, layout_id=layout_id, join=join, name=name)
        elif first == "<":
            if lif_only:
                raise LayoutError(f"{lif_only}: given for a plant model; expected it for LIF only")
            layout, warnings = import_opentcs(text, name=name, battery=battery)
        else:
            raise LayoutError(
                f"begins with {shorten(text.lstrip()[:20])}; expected LIF (JSON), an openTCS plant "
                "model (XML), or two tables, of sites and of paths"
            )
    except LayoutError as error:
        raise LayoutError(f"{path}: {error}") from error
    if two_way:
        _lead_back(layout)
    return layout, [*leave_out_dead_ends(layout), *warnings]


def _lead_back(layout: dict[str, Any]) -> dict[str, Any]:
    """Let edges lead back, too, unless the way back is an edge of its own."""
    ways = {(edge["a"], edge["b"]) for edge in layout["edges"]}
    for edge in layout["edges"]:
        edge["one_way"] = edge["one_way"] and (edge["b"], edge["a"]) in ways
    return layout
