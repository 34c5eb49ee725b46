"""Records of other systems, and how they were understood."""

from __future__ import annotations

from typing import NamedTuple

from acerl_np.problem.bundled import find_record
from acerl_np.problem.export import Export, read_mapping
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import Reading, examine_record, name_columns
from acerl_np.support.files import FilePath


class Conversion(NamedTuple):
    """Records of another system, and how they were understood.

    Attributes
    ----------
    records : list of Instance
    reading : Reading
        Columns, times, and rows that were left out.
    mapping : Export
        What reads the file in the same way again.
    """

    records: list[Instance]
    reading: Reading
    mapping: Export


def convert_records(
    path: FilePath,
    layout: FilePath | Layout | None = None,
    mapping: FilePath | Export | None = None,
) -> Conversion:
    """Read another system's records, and tell how they were understood.

    Parameters
    ----------
    path : str or path-like
        A text table, a workbook, or "-" for the standard input.
    layout : path-like or Layout, optional
        By default layout.json beside the file.
    mapping : path-like or Export, optional
        How the file is read, where that does not show.

    Returns
    -------
    Conversion

    Raises
    ------
    RecordError
        With the faults of all rows that cannot be read, unless the mapping skips them.
    """
    file, floor = find_record(path, layout)
    export, lines = name_columns(file, read_mapping(mapping))
    found, reading = examine_record(file, floor, export, lines=lines, servable=False)
    return Conversion(found, reading, export)
