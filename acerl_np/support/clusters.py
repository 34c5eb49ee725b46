"""Connections to engines that run elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from acerl_np.support.errors import (
    ConfigError,
    MissingExtraError,
    WorkerError,
    describe,
    make_printable,
)
from acerl_np.support.team import Team

PATIENCE = 10.0
"""Seconds to wait for a scheduler, and then for its first worker."""

DESERTED = 60.0
"""Seconds to wait while there is no worker any more, as some may be started anew."""


@contextmanager
def connect_dask(
    address: str, *, patience: float = PATIENCE, time_limit: float | None = None
) -> Iterator[Team]:
    """Return the workers of a Dask scheduler, until the end of the block.

    Parameters
    ----------
    address : str
        Such as "tcp://host:8786"; a TLS address takes its certificates from Dask's configuration.
    patience : float
        s to wait for the scheduler, and for a worker.
    time_limit : float, optional
        s, of a task, as of `Team`.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    ConfigError
        If the address is none.
    WorkerError
        If there is no scheduler, or no worker.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "--dask needs Dask: pip install 'acerl_np[dask]' (here and where the workers are)"
        ) from error
    _silence_engine()
    try:
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise WorkerError(
            f"{make_printable(address)}: no Dask scheduler answers: "
            f"{make_printable(type(error).__name__)}"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"--dask: read {describe(address)}; expected an address such as tcp://host:8786"
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise WorkerError(
                f"{make_printable(address)}: the scheduler has no worker; expected at least one"
            ) from error
        executor = client.get_executor(pure=False, retries=2)
        yield Team(executor, time_limit=time_limit, patience=DESERTED)
    finally:
        client.close(timeout=1.0)


def _silence_engine() -> None:
    """Let Dask and what it stands on log nothing: what matters is raised, on one line."""
    for name in ("asyncio", "concurrent.futures", "tornado", *logging.root.manager.loggerDict):
        if name.split(".")[0] in ("asyncio", "concurrent", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
