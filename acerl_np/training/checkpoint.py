"""Checkpoints: everything a training run needs to go on, in one `.npz` file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.packing import (
    UNUSABLE,
    pack_instances,
    pack_json,
    unpack_instances,
    unpack_json,
)
from acerl_np.support.errors import CheckpointError, make_printable
from acerl_np.support.files import read_arrays, take_kind, write_arrays

FORMAT = 4

MAX_COUNT = 2**53
"""Largest number of episodes of a checkpoint; sums stay far from overflow."""


MAX_PARAMETER = 1e30
"""Largest parameter of a checkpoint: as a float32 it stays finite, also after what a generation adds."""


def save_checkpoint(
    path: str | os.PathLike[str],
    *,
    settings: dict[str, Any],
    instances: Sequence[Instance],
    arrays: dict[str, np.ndarray],
    kind: str = "checkpoint",
) -> None:
    """Write a checkpoint, atomically and with a checksum.

    Parameters
    ----------
    path : path-like
    settings : dict
        Plain values (JSON).
    instances : sequence of Instance
    arrays : dict of ndarray
    kind : str
        What it is a checkpoint of: another kind of training refuses it.

    Raises
    ------
    StorageError
        If the file cannot be written; an older checkpoint stays as it was.
    """
    write_arrays(
        path,
        {
            "kind": kind,
            "format": FORMAT,
            "settings": pack_json(settings),
            "instances": pack_instances(instances),
            **{f"state.{name}": array for name, array in arrays.items()},
        },
    )


def load_checkpoint(
    path: str | os.PathLike[str], *, kind: str = "checkpoint"
) -> tuple[dict[str, Any], list[Instance], dict[str, np.ndarray]]:
    """Read a checkpoint.

    Parameters
    ----------
    path : path-like
    kind : str
        As it was saved.

    Returns
    -------
    settings : dict
    instances : list of Instance
    arrays : dict of ndarray

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, of another format version, or holds no checkpoint.
    """
    stored = read_arrays(path, CheckpointError)
    take_kind(
        path,
        stored,
        kind,
        FORMAT,
        CheckpointError,
        noun=f"a {kind}",
        advice=" (resume with the version that wrote it, or train anew)",
    )
    try:
        settings = unpack_json(stored.pop("settings"))
        instances = unpack_instances(stored.pop("instances"))
    except UNUSABLE as error:
        reason = make_printable(str(error)[:400])
        raise CheckpointError(f"{path}: not a usable checkpoint: {reason}") from error
    arrays = {name.removeprefix("state."): array for name, array in stored.items()}
    return settings, instances, arrays


def check_array(
    name: str, array: np.ndarray, shape: tuple[int, ...], kind: str, *, finite: bool = True
) -> None:
    """Refuse an array of another shape or kind, numbers that are not finite, and impossible counts.

    Parameters
    ----------
    name : str
        For the message.
    array : ndarray
    shape : tuple of int
    kind : str
        As `dtype.kind`: "f" for numbers, "i" for counts.
    finite : bool
        Whether all numbers must be finite.

    Raises
    ------
    CheckpointError
    """
    if array.shape != shape:
        raise CheckpointError(f"{name}: read shape {array.shape}; expected {shape}")
    if array.dtype.kind != kind:
        raise CheckpointError(f"{name}: read {array.dtype}; expected numbers of kind '{kind}'")
    if finite and not np.isfinite(array).all():
        raise CheckpointError(f"{name}: not finite; expected finite numbers")
    if kind == "i" and ((array < 0) | (array > MAX_COUNT)).any():
        raise CheckpointError(f"{name}: expected counts from 0 to {MAX_COUNT:,}")


def check_parameters(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse parameters of another shape, and numbers that are not finite or beyond `MAX_PARAMETER`.

    Parameters
    ----------
    name : str
        For the message.
    array : ndarray
    shape : tuple of int

    Raises
    ------
    CheckpointError
    """
    check_array(name, array, shape, "f")
    if (np.abs(array) > MAX_PARAMETER).any():
        raise CheckpointError(f"{name}: expected numbers of at most {MAX_PARAMETER:g}")
