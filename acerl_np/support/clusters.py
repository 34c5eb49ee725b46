"""Connections to engines that run elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acerl_np.support.errors import (
    ConfigError,
    MissingExtraError,
    WorkerError,
    describe,
    make_printable,
)
from acerl_np.support.team import SILENCE, Team

PATIENCE = 10.0
"""Seconds to wait for a scheduler, and then for its first worker."""


@contextmanager
def connect_dask(address: str, *, patience: float = PATIENCE) -> Iterator[Team]:
    """Return the workers of a Dask scheduler, until the end of the block.

    Parameters
    ----------
    address : str
        Such as "tcp://host:8786"; a TLS address takes its certificates from Dask's configuration.
    patience : float
        s to wait for the scheduler, and for a worker.

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
        yield Team(executor, n_workers=max(1, len(client.nthreads())), time_limit=SILENCE)
    finally:
        client.close(timeout=patience)
