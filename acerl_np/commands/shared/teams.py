"""Who does the work: this process, processes of its own, or a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared.progress import raise_on_sigterm
from acerl_np.support import errors
from acerl_np.support.errors import ConfigError, InputError, WorkerError, refuse
from acerl_np.support.fields import Field

if TYPE_CHECKING:
    from acerl_np.support.team import Team

SILENT = 3600.0
"""Seconds without a result after which workers count as lost, unless the environment says others."""
VARIABLE, SECONDS = "ACERL_NP_SILENCE", Field(float, 1e-3, 1e9)

PATIENCE = 10.0
"""Seconds to wait for a scheduler, and then for its first worker."""


@contextmanager
def open_team(
    options: Mapping[str, Any], *, usual: float | None = SILENT, own: int | None = None
) -> Iterator[Team | None]:
    """Return the workers that the options name, and end them with the block, Ctrl-C or SIGTERM.

    `usual` is the silence where none is named, None for tasks that may take any time, and `own` the
    processes where none are named: by default there is no team then.
    """
    from acerl_np.support.processes import ProcessTeam

    processes, dask = options["processes"], options["dask"]
    silence = options.get("silence")
    if processes is not None and dask is not None:
        raise InputError("--processes: given besides --dask; expected one of the two")
    silence = read_silence(usual) if silence is None else float(silence)
    processes = own if processes is None else processes
    if dask is not None:
        with raise_on_sigterm(), connect_dask(dask, time_limit=silence) as team:
            yield team
    elif processes is not None:
        with raise_on_sigterm(), closing(ProcessTeam(processes, time_limit=silence)) as team:
            yield team
    else:
        yield None


def read_silence(usual: float | None) -> float | None:
    """Return the silence that the environment says, else the usual one."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return usual
    try:
        return SECONDS.read(VARIABLE, float(text))  # type: ignore[no-any-return]
    except ValueError:
        refuse(VARIABLE, text, SECONDS.words, ConfigError)


@contextmanager
def connect_dask(
    address: str, *, patience: float = PATIENCE, time_limit: float | None = None
) -> Iterator[Team]:
    """Return the workers of a Dask scheduler, until the end of the block.

    A TLS address takes its certificates from Dask's configuration. For the scheduler, and for a worker, it is
    waited `patience` seconds; `time_limit` is that of `Team`.
    """
    words = "--dask needs Dask: pip install 'acerl_np[dask]' (here and where the workers are)"
    with errors.needing(words):
        from distributed import Client
    from acerl_np.support.team import Team

    # Dask and what it stands on log nothing: what matters is raised, on one line.
    for name in ("asyncio", "concurrent.futures", "tornado", *logging.root.manager.loggerDict):
        if name.split(".")[0] in ("asyncio", "concurrent", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    shown = errors.make_printable(address)
    try:
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError) as error:
        kind = type(error).__name__
        raise WorkerError(f"{shown}: no Dask scheduler answers: {kind}") from error
    except (ValueError, TypeError, KeyError) as error:
        said = f"read {errors.describe(address)}; expected an address such as tcp://host:8786"
        raise ConfigError(f"--dask: {said}") from error
    with ExitStack() as stack:
        stack.callback(client.close, timeout=1.0)
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            found = "the scheduler has no worker; expected at least one"
            raise WorkerError(f"{shown}: {found}") from error
        yield Team(client.get_executor(pure=False, retries=2), time_limit=time_limit)
