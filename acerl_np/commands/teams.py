"""Options that say who does the work: this process, processes of its own, or a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from acerl_np.support.team import Team


def add_team_options(parser: argparse._ArgumentGroup | argparse.ArgumentParser, what: str) -> None:
    """Declare --processes and --dask."""
    parser.add_argument(
        "--processes",
        type=int,
        metavar="N",
        help=f"{what} in so many processes of one thread each",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help=f"{what} on the workers of a Dask scheduler such as tcp://host:8786; they execute what they "
        "are sent, so use trusted networks only (docs/scaling.md)",
    )


@contextmanager
def open_team(processes: int | None, dask: str | None) -> Iterator[Team | None]:
    """Return the workers that the options name, None for this process alone.

    Raises
    ------
    InputError
        If both are given.
    WorkerError
        If a cluster is not there.
    """
    if processes is not None and dask is not None:
        raise InputError("--processes: given besides --dask; expected one of the two")
    if dask is not None:
        from acerl_np.support.clusters import connect_dask

        with connect_dask(dask) as team:
            yield team
    elif processes is not None:
        from acerl_np.support.team import SILENCE, ProcessTeam

        own = ProcessTeam(processes, time_limit=SILENCE)
        try:
            yield own
        except BaseException:
            own.stop()
            raise
        finally:
            own.close()
    else:
        yield None
