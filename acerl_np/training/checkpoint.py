"""Checkpoints as a training reads them to go on; `Trainer.save` writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NoReturn

import numpy as np

from acerl_np.evolution.covariance import Covariance
from acerl_np.evolution.search import Search
from acerl_np.policies import index
from acerl_np.problem import packing
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import CheckpointError, InputError, make_printable, refuse
from acerl_np.support.files import FilePath, read_arrays, take_kind
from acerl_np.support.trust import is_own_name, read_kept
from acerl_np.training.config import Config
from acerl_np.training.history import VALUES, CurvePoint, Generation, Line
from acerl_np.training.parametrisations import MAX_SPREAD
from acerl_np.training.trainer import FORMAT

MAX_COUNT = 2**53
"""Largest number of episodes of a checkpoint; sums stay far from overflow."""

MAX_PARAMETER = 1e30
"""Largest parameter of a checkpoint: as a float32 it stays finite, also after what a generation adds."""


def take_stored(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training's file, all of them, and what they name of a user's as of a file."""
    Config.check_whole(stored)
    own: dict[str, Any] = {
        x: read_kept(stored[x], x) for x in ("objective", "cost", "ranking", "sampler")
    }
    if isinstance(stored["features"], list):
        find = index.find_feature
        own["features"] = [find(x) if is_own_name(x) else x for x in stored["features"]]
    return {**stored, **own}


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


def refuse_end(path: FilePath, done: int, noun: str, asked: object) -> NoReturn:
    """Refuse to end a training before what its file has done already."""
    told = f"has {done} {noun} already; expected at least as many (--{noun}), read {asked}"
    raise CheckpointError(f"{path}: {told}")


@contextmanager
def refuse_unusable(path: FilePath) -> Iterator[None]:
    """Let whatever the contents of a file that holds something else raise be a `CheckpointError`."""
    try:
        yield
    except packing.UNUSABLE as error:
        reason = make_printable(str(error)[:400])
        raise CheckpointError(f"{path}: not a usable checkpoint: {reason}") from error


def load_checkpoint(
    path: FilePath, kind: str
) -> tuple[dict[str, Any], list[Instance], dict[str, np.ndarray]]:
    """Return settings and instances of a checkpoint of this kind, and arrays for `unpack`."""
    stored = read_arrays(path, CheckpointError)
    advice = " (resume with the version that wrote it, or train anew)"
    take_kind(path, stored, kind, FORMAT, CheckpointError, noun=f"a {kind}", advice=advice)
    with refuse_unusable(path):
        settings = packing.unpack_json(stored.pop("settings"))
        instances = packing.unpack_instances(stored.pop("instances"))
    return settings, instances, {k.removeprefix("state."): array for k, array in stored.items()}


def unpack_lines(
    kind: type[Line], columns: Sequence[str], rows: np.ndarray, counts: np.ndarray
) -> list[Line]:
    """Return the lines of a history from its columns and its counts."""
    whole = {item.name for item in fields(kind) if item.type == "int"}  # type: ignore[arg-type]
    lines = []
    for row, own in zip(rows.tolist(), counts.tolist(), strict=True):
        values = {k: int(x) if k in whole else x for k, x in zip(columns, row, strict=True)}
        lines.append(kind(**values, counts=tuple(own)))  # type: ignore[call-arg]
    return lines


def unpack_generations(
    found: Mapping[str, np.ndarray], columns: Sequence[str], n: int
) -> list[Generation]:
    """Return the history of so many generations; a `CheckpointError` where no training has had it."""
    history, failed = found["history"], found["failed"]
    check_shape("history", history, (n, len(columns)))
    # A generation in which no member finished has no means.
    means = np.isin(columns, ("return_mean", "return_std", "cost_mean"))
    if (np.isnan(history) & ~(means & (failed > 0)[:, np.newaxis])).any():
        raise CheckpointError("history: not finite; expected finite numbers")
    rows = np.column_stack([history, failed])
    return unpack_lines(Generation, (*columns, "failed"), rows, found["counts"])


def unpack_curve(when: np.ndarray, looks: np.ndarray) -> list[CurvePoint]:
    """Return the points that `pack_curve` made arrays of."""
    return [CurvePoint(*own, *look) for own, look in zip(when.tolist(), looks, strict=True)]


def unpack_looks(
    found: Mapping[str, np.ndarray], every: int, generation: int, n_best: int
) -> list[CurvePoint]:
    """Return the looks of a training, one every so many generations, as `unpack_generations`.

    The parameters of the best look, if there is one, are `n_best`.
    """
    due = list(range(0, generation + 1, every)) if every else []
    when, best_theta = found["when"], found["best_theta"]
    # One that was saved before its first step has not looked yet.
    if when[:, 0].tolist() != due and (generation or len(when)):
        read = f"generations {when[:5, 0].tolist()}"
        refuse("curve.when", read, str(due[:5]), CheckpointError)
    check_shape("curve.best_theta", best_theta, (n_best if len(when) else 0,))
    check_parameters("curve.best_theta", best_theta)
    return unpack_curve(when, np.stack([found[name] for name in VALUES], axis=1))


def restore_search(
    search: Search[Any], mean: np.ndarray, generation: int, own: dict[str, np.ndarray]
) -> None:
    """Set a search to a mean, a generation and what its distribution packed."""
    search.distribution = search.distribution.unpack(own)
    if isinstance(search.distribution, Covariance):
        state = search.distribution.state
        reached = search.distribution.sigma(generation), state.size_path, state.shape_path
        if max(np.abs(values).max() for values in reached) > MAX_SPREAD:
            raise InputError("spread: read values that no search reaches")
    search.mean, search.generation = mean, generation
