"""What is wrong with rows of a table: which rows, why, and how many; the warning of those left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from acerl_np.support.errors import MAX_SHOWN, describe, list_some, make_printable

MANY = 0.05
"""Share of rows left out above which a record may not be what the plant does."""

OWN_WORDS = re.compile(r"""; did you mean .*|(?<!\w)'[^']*'|"(\\.|[^"\\])*"|[0-9]+""")
"""What a fault's text says of its row alone."""


class Fault(NamedTuple):
    """What is wrong with a row of a table: where it stands, in which field, what was read there, and why not.

    `field` and `read` are empty where it is the row as a whole.

    Attributes
    ----------
    place, field, read, text : str
    """

    place: str
    field: str
    read: str
    text: str

    @classmethod
    def of(cls, error: Exception, place: str, row: Mapping[str, Any]) -> Fault:
        """Return the fault that an error's line tells, which begins with place and field.

        Parameters
        ----------
        error : Exception
        place : str
        row : mapping of str, the row's fields
        """
        rest = str(error).removeprefix(f"{place}: ")
        field, _, text = rest.partition(": ")
        if field not in row:
            return cls(place, "", "", rest)
        return cls(place, field, describe(row[field]), text)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.place, self.field, self.text)))


class RecordWarning(UserWarning):
    """A table has columns that are not read, or rows that were left out as was asked.

    Parameters
    ----------
    path : str
    columns : sequence of str
        Columns that are not read, as the file names them, with what would read a likely one.
    faults : sequence of Fault
        What is wrong with the rows that were left out.
    n_rows : int
        Rows in all.
    """

    def __init__(
        self, path: str, columns: Sequence[str] = (), faults: Sequence[Fault] = (), n_rows: int = 0
    ) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.faults = tuple(faults)
        self.n_rows = n_rows
        told = "columns ignored", list_names(self.columns)
        if faults:
            told = describe_left_out(faults, n_rows), list_some(list_causes(faults), 3)
        super().__init__(f"{make_printable(path)}: {': '.join(told)}")


def list_names(columns: Sequence[str]) -> str:
    """Return columns, as their file names them, in one line of at most twenty."""
    return list_some([make_printable(name[:MAX_SHOWN]) for name in columns], 20)


def count_rows(faults: Sequence[Fault], n_rows: int) -> str:
    """Return how many rows have faults: "3 of 100 rows"."""
    return f"{len({fault.place for fault in faults}):,} of {n_rows:,} rows"


def describe_left_out(faults: Sequence[Fault], n_rows: int) -> str:
    """Return how many rows were left out, with a warning where these are many."""
    share = len({fault.place for fault in faults}) / n_rows
    many = f" ({100 * share:.0f} %: what is left may tell too little of the plant)" * (share > MANY)
    return f"{count_rows(faults, n_rows)} left out{many}"


def list_causes(faults: Sequence[Fault]) -> list[str]:
    """Return the faults of a table, those of one cause as one, the most frequent first.

    Faults have one cause if their texts differ in names and numbers alone.
    """
    alike: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.field, OWN_WORDS.sub("", fault.text)), []).append(fault)
    found = []
    for some in sorted(alike.values(), key=len, reverse=True):
        others = list_some(list(dict.fromkeys(x.read for x in some if x.read != some[0].read)), 3)
        also = f" (also read: {others})" if others else ""
        found.append(f"{len(some):,} rows such as {some[0]}{also}" if some[1:] else str(some[0]))
    return found
