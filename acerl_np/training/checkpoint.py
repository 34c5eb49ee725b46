"""Checkpoints: everything a training run needs to go on, in one `.npz` file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.support.errors import CheckpointError, make_printable
from acerl_np.support.files import read_arrays, take_kind, write_arrays

FORMAT = 4

MAX_COUNT = 2**53
"""Largest number of episodes of a checkpoint; sums stay far from overflow."""


def _pack(data: object) -> np.ndarray:
    return np.frombuffer(json.dumps(data, sort_keys=True).encode(), np.uint8)


def _unpack(array: np.ndarray) -> Any:
    return json.loads(array.tobytes().decode())


def pack_instances(instances: Sequence[Instance]) -> np.ndarray:
    """Return instances with their layouts and content hashes as bytes (ndarray(uint8))."""
    layouts: list[Layout] = []
    records = []
    for instance in instances:
        if instance.layout not in layouts:
            layouts.append(instance.layout)
        records.append(
            {
                "name": instance.name,
                "layout": layouts.index(instance.layout),
                "tasks": instance.rows(),
                "hash": instance.content_hash,
                **({"epoch": instance.epoch.isoformat()} if instance.epoch is not None else {}),
            }
        )
    return _pack({"layouts": [layout.to_dict() for layout in layouts], "instances": records})


def unpack_instances(array: np.ndarray) -> list[Instance]:
    """Return the instances that `pack_instances` stored.

    Raises
    ------
    CheckpointError
        If a content hash does not fit its instance.
    """
    data = _unpack(array)
    layouts = [Layout.from_dict(layout) for layout in data["layouts"]]
    instances = []
    for record in data["instances"]:
        epoch = datetime.fromisoformat(record["epoch"]) if "epoch" in record else None
        instance = Instance.from_rows(
            record["name"], layouts[record["layout"]], record["tasks"], epoch=epoch
        )
        if instance.content_hash != record["hash"]:
            raise CheckpointError(f"instance '{instance.name}' does not fit its content hash")
        instances.append(instance)
    return instances


def save_checkpoint(
    path: str | os.PathLike[str],
    *,
    settings: dict[str, Any],
    instances: Sequence[Instance],
    arrays: dict[str, np.ndarray],
) -> None:
    """Write a checkpoint, atomically and with a checksum.

    Parameters
    ----------
    path : path-like
    settings : dict
        Plain values (JSON).
    instances : sequence of Instance
    arrays : dict of ndarray

    Raises
    ------
    StorageError
        If the file cannot be written; an older checkpoint stays as it was.
    """
    write_arrays(
        path,
        {
            "kind": "checkpoint",
            "format": FORMAT,
            "settings": _pack(settings),
            "instances": pack_instances(instances),
            **{f"state.{name}": array for name, array in arrays.items()},
        },
    )


def load_checkpoint(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], list[Instance], dict[str, np.ndarray]]:
    """Read a checkpoint.

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
        "checkpoint",
        FORMAT,
        CheckpointError,
        noun="a checkpoint",
        advice=" (resume with the version that wrote it, or train anew)",
    )
    try:
        settings = _unpack(stored.pop("settings"))
        instances = unpack_instances(stored.pop("instances"))
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
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
