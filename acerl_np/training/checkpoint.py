"""Checkpoints: everything a training run needs to go on, in one `.npz` file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from acerl_np.problem import packing
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import CheckpointError, make_printable
from acerl_np.support.fields import refuse
from acerl_np.support.files import read_arrays, take_kind, write_arrays

FORMAT = 4

MAX_COUNT = 2**53
"""Largest number of episodes of a checkpoint; sums stay far from overflow."""

MAX_PARAMETER = 1e30
"""Largest parameter of a checkpoint: as a float32 it stays finite, also after what a generation adds."""


def pack(parts: Mapping[str, Any], before: str = "") -> dict[str, np.ndarray]:
    """Return nested arrays side by side: `before`, and the names on the way to each, joined by dots."""
    found: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        own = pack(part, f"{before}{name}.") if isinstance(part, Mapping) else {before + name: part}
        found.update(own)
    return found


def unpack(
    template: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    unknown: Collection[str] = (),
    before: str = "",
) -> dict[str, Any]:
    """Return arrays that `pack` laid side by side, nested as the template's, if each could be its own.

    The template is what a new object packs. Shape and dtype must be the same, numbers finite, and counts
    from 0 to `MAX_COUNT`. Where an array of the template has no rows, there may be any number of them; where
    it has infinite numbers, all but nan are taken; and those of the `unknown` names may hold nan.
    """
    found: dict[str, Any] = {}
    for name, own in template.items():
        full = before + name
        if isinstance(own, Mapping):
            found[name] = unpack(own, arrays, unknown=unknown, before=f"{full}.")
            continue
        if full not in arrays:
            raise CheckpointError(f"{full}: missing")
        found[name] = array = arrays[full]
        free = own.ndim > 0 and len(own) == 0
        if array.shape[free:] != own.shape[free:] or array.ndim != own.ndim:
            expected = str(own.shape).replace("0", "n", free)
            refuse(full, f"shape {array.shape}", expected, CheckpointError)
        if array.dtype != own.dtype and array.size:
            refuse(full, array.dtype, str(own.dtype), CheckpointError)
        usable = np.isfinite(array) | (full in unknown and np.isnan(array))
        if np.isinf(own).any():
            usable = ~np.isnan(array)
        if not np.all(usable):
            raise CheckpointError(f"{full}: not finite; expected finite numbers")
        if array.dtype.kind == "i" and ((array < 0) | (array > MAX_COUNT)).any():
            raise CheckpointError(f"{full}: expected counts from 0 to {MAX_COUNT:,}")
    return found


def check_parameters(name: str, array: np.ndarray) -> None:
    """Refuse parameters beyond `MAX_PARAMETER`."""
    if (np.abs(array) > MAX_PARAMETER).any():
        raise CheckpointError(f"{name}: expected numbers of at most {MAX_PARAMETER:g}")


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        refuse(name, f"shape {array.shape}", str(shape), CheckpointError)


def refuse_end(path: str | os.PathLike[str], done: int, noun: str, asked: object) -> NoReturn:
    """Refuse to end a training before what its file has done already."""
    told = f"has {done} {noun} already; expected at least as many (--{noun}), read {asked}"
    raise CheckpointError(f"{path}: {told}")


@contextmanager
def refuse_unusable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let whatever the contents of a file that holds something else raise be a `CheckpointError`."""
    try:
        yield
    except packing.UNUSABLE as error:
        reason = make_printable(str(error)[:400])
        raise CheckpointError(f"{path}: not a usable checkpoint: {reason}") from error


def save_checkpoint(
    path: str | os.PathLike[str],
    kind: str,
    settings: dict[str, Any],
    instances: Sequence[Instance],
    parts: Mapping[str, Any],
) -> None:
    """Write a checkpoint of a kind of training: plain settings, instances and nested arrays; atomically."""
    write_arrays(
        path,
        {
            "kind": kind,
            "format": FORMAT,
            "settings": packing.pack_json(settings),
            "instances": packing.pack_instances(instances),
            **pack(parts, "state."),
        },
    )


def load_checkpoint(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], list[Instance], dict[str, np.ndarray]]:
    """Return settings and instances of a checkpoint of this kind, and arrays for `unpack`."""
    stored = read_arrays(path, CheckpointError)
    advice = " (resume with the version that wrote it, or train anew)"
    take_kind(path, stored, kind, FORMAT, CheckpointError, noun=f"a {kind}", advice=advice)
    with refuse_unusable(path):
        settings = packing.unpack_json(stored.pop("settings"))
        instances = packing.unpack_instances(stored.pop("instances"))
    return settings, instances, {k.removeprefix("state."): array for k, array in stored.items()}
