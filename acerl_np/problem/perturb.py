"""Perturbed task records: unseen variants of known ones, as in the paper's test and noised suites."""

from __future__ import annotations

import csv
import io
import os

import numpy as np

from acerl_np.errors import InputError
from acerl_np.kernels.random import PERTURBATION, derive_key, draw_uniform
from acerl_np.problem.instance import OPTIONAL_COLUMNS, REQUIRED_COLUMNS, Instance
from acerl_np.storage import write_atomically

MAX_MAGNITUDE = 1_000_000


def perturb_arrivals(instance: Instance, magnitude: int, *, seed: int = 0, name: str) -> Instance:
    """Add uniform whole-number noise to every arrival, cut at 0.

    The noise is keyed by (seed, content of the instance, magnitude, task), so a record has the same
    variant wherever it is made.

    Parameters
    ----------
    instance : Instance
    magnitude : int
        n: noise in {-n, ..., n}, s.
    seed : int
    name : str
        Of the new instance.

    Returns
    -------
    Instance
        Sorted by its new arrivals.

    Raises
    ------
    InputError
        If the magnitude is negative or too large.
    """
    if not 0 <= magnitude <= MAX_MAGNITUDE:
        raise InputError(
            f"magnitude: read {magnitude}; expected a whole number from 0 to {MAX_MAGNITUDE:,}"
        )
    key = np.empty(4, np.uint32)
    content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
    derive_key(seed, PERTURBATION, content, magnitude, key)
    rows = instance.rows()
    for k, row in enumerate(rows):
        noise = int(draw_uniform(key, k, 0) * (2 * magnitude + 1)) - magnitude
        row["arrival_time"] = max(0.0, row["arrival_time"] + noise)
    return Instance.from_rows(name, instance.layout, rows, epoch=instance.epoch)


def write_record(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write an instance's tasks as CSV, atomically; optional columns only where they are used.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    rows = instance.rows()
    columns = [*REQUIRED_COLUMNS]
    columns += [name for name in OPTIONAL_COLUMNS if any(row[name] for row in rows)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_plain(row[name]) for name in columns])
    write_atomically(path, text.getvalue().encode())


def _plain(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)
