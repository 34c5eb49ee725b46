"""Instances and plain data as arrays of bytes, as files of arrays hold them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.support.errors import InputError, RecordError, make_printable

UNUSABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What unpacking may raise where the bytes hold something else."""


@contextmanager
def unpacking(kind: type[InputError], what: str, expected: str = "") -> Iterator[None]:
    """Let all that unpacking may raise be an error of one line: of what, why, and what was expected."""
    try:
        yield
    except UNUSABLE as error:
        raise kind(f"{what}: {make_printable(str(error)[:400])}{expected}") from error


def pack_json(data: object) -> np.ndarray:
    """Return plain values as the bytes of their JSON text (ndarray(uint8))."""
    return np.frombuffer(json.dumps(data, sort_keys=True).encode(), np.uint8)


def unpack_json(array: np.ndarray) -> Any:
    """Return the plain values that `pack_json` stored."""
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
    return pack_json({"layouts": [layout.to_dict() for layout in layouts], "instances": records})


def unpack_instances(array: np.ndarray, *, servable: bool = True) -> list[Instance]:
    """Return the instances that `pack_instances` stored, even such as cannot be served unless `servable`.

    A `RecordError` refuses a content hash that does not fit; other contents raise what `UNUSABLE` lists.
    """
    data = unpack_json(array)
    layouts = [Layout.from_dict(layout) for layout in data["layouts"]]
    instances = []
    for record in data["instances"]:
        epoch = datetime.fromisoformat(record["epoch"]) if "epoch" in record else None
        place = layouts[record["layout"]]
        instance = Instance.from_rows(
            record["name"], place, record["tasks"], epoch=epoch, servable=servable
        )
        if instance.content_hash != record["hash"]:
            raise RecordError(f"instance '{instance.name}' does not fit its content hash")
        instances.append(instance)
    return instances
