"""Options that say who does the work: this process, processes of its own, or a cluster."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acerl_np.commands.interruption import raise_on_sigterm
from acerl_np.support.errors import ConfigError, InputError, describe

if TYPE_CHECKING:
    from acerl_np.support.team import Team


SILENCE = 3600.0
"""Seconds after which a part of a training, an evaluation or a search is given out again."""


def add_team_options(
    parser: argparse._ArgumentGroup | argparse.ArgumentParser,
    what: str,
    silence: str = f"{SILENCE:g}",
) -> None:
    """Declare --processes, --dask and --silence, whose default is told as `silence`."""
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
    parser.add_argument(
        "--silence",
        type=float,
        metavar="SECONDS",
        help=f"give a task to another worker when it takes longer (default: {silence})",
    )


@contextmanager
def open_team(
    processes: int | None,
    dask: str | None,
    silence: float | None = None,
    *,
    usual: float | None = SILENCE,
    own: int | None = None,
) -> Iterator[Team | None]:
    """Return the workers that the options name, and end them with the block, Ctrl-C or SIGTERM.

    Parameters
    ----------
    processes, dask, silence
        The options.
    usual : float, optional
        The silence where none is named; None is for tasks that may take any time.
    own : int, optional
        Processes where none are named; by default there is no team then.

    Raises
    ------
    InputError
        If both are given, or a number is none.
    WorkerError
        If a cluster is not there.
    """
    if processes is not None and dask is not None:
        raise InputError("--processes: given besides --dask; expected one of the two")
    if silence is not None and not 0.0 < silence < math.inf:
        raise ConfigError(f"--silence: read {describe(silence)}; expected seconds above 0")
    silence = usual if silence is None else float(silence)
    if processes is None and dask is None:
        processes = own
    if processes is None and dask is None:
        yield None
        return
    with raise_on_sigterm():
        if dask is not None:
            from acerl_np.support.clusters import connect_dask

            with connect_dask(dask, time_limit=silence) as team:
                yield team
        elif processes is not None:
            from acerl_np.support.processes import ProcessTeam

            workers = ProcessTeam(processes, time_limit=silence)
            try:
                yield workers
            finally:
                workers.close()
