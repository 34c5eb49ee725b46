"""Who does the work: this process, processes of its own, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from acerl_np.commands.interruption import raise_on_sigterm
from acerl_np.commands.options import SILENT
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from acerl_np.support.team import Team


@contextmanager
def open_team(
    options: Mapping[str, Any], *, usual: float | None = SILENT, own: int | None = None
) -> Iterator[Team | None]:
    """Return the workers that the options name, and end them with the block, Ctrl-C or SIGTERM.

    Parameters
    ----------
    options : mapping
        With those of `list_team`.
    usual : float, optional
        The silence where none is named; None is for tasks that may take any time.
    own : int, optional
        Processes where none are named; by default there is no team then.
    """
    processes, dask, silence = options["processes"], options["dask"], options["silence"]
    if processes is not None and dask is not None:
        raise InputError("--processes: given besides --dask; expected one of the two")
    silence = usual if silence is None else float(silence)
    if dask is None:
        processes = own if processes is None else processes
        if processes is None:
            yield None
            return
    with raise_on_sigterm():
        if dask is not None:
            from acerl_np.support.clusters import connect_dask

            with connect_dask(dask, time_limit=silence) as team:
                yield team
        else:
            from acerl_np.support.processes import ProcessTeam

            workers = ProcessTeam(processes, time_limit=silence)
            try:
                yield workers
            finally:
                workers.close()
