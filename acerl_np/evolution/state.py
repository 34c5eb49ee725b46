"""The state of an `Evolution` as arrays: read back and checked, before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.records import Best
from acerl_np.support.errors import InputError, describe

GROWING = {"history", "scales"}
"""Arrays whose first axis grows during a search."""


def check_mapping(state: object) -> None:
    """Refuse what has no named arrays, as the path of a file."""
    if not isinstance(state, Mapping):
        raise InputError(
            f"state: read {describe(state)}; expected what get_state returned, or numpy.load of its file"
        )


def read_state(state: Mapping[str, ArrayLike], own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a state's arrays, checked against those of the search that is to take them.

    Raises
    ------
    InputError
        If an array is missing or has another shape, or an option differs.
    """
    check_mapping(state)
    read: dict[str, np.ndarray] = {}
    for name, mine in own.items():
        if name not in state:
            raise InputError(f"state: read no '{name}'; expected what get_state returned")
        array = np.array(state[name])
        text = mine.dtype.kind == "U" and array.dtype.kind == "U"
        shape = mine.shape
        if name in GROWING and array.ndim == mine.ndim:
            shape = array.shape[:1] + shape[1:]
        if array.shape != shape or not (text or array.dtype == mine.dtype):
            raise InputError(
                f"state: {name}: read {array.dtype} {array.shape}; "
                f"expected {mine.dtype} {mine.shape}"
            )
        if name.startswith("option.") and (array != mine).any():
            where = tuple(np.argwhere(array != mine)[0])
            index = "".join(f"[{k}]" for k in where)
            raise InputError(
                f"state: {name.removeprefix('option.')}{index}: read {array[where]}; "
                f"expected {mine[where]}, as given here"
            )
        read[name] = array
    _check_values(read)
    return read


def _check_values(read: dict[str, np.ndarray]) -> None:
    """Refuse values that no search can have reached."""
    mean, generation = read["mean"], int(read["generation"])
    low, high = read["option.bounds[0]"], read["option.bounds[1]"]
    inside = read["option.adapt"] != "none" or ((mean >= low) & (mean <= high)).all()
    sampled = [array for name, array in read.items() if name.startswith("sampler.")]
    usable: dict[str, Any] = {
        "generation": generation >= 0,
        "population": read["population"] >= 2,
        "failed": 0 <= read["failed"] <= read["population"],
        "evaluations": read["evaluations"] >= 0,
        "restarts": read["restarts"] >= 0,
        "mean": np.isfinite(mean).all() and (read["option.integers"].any() or inside),
        "start": np.isfinite(read["start"]).all(),
        "history": np.isfinite(read["history"]).all(),
        "spans": (read["spans"] >= 0.0).all(),
        "scales": (read["scales"] >= 0.0).all() and np.isfinite(read["scales"]).all(),
        "level": read["level"] >= 0.0,
        "best": _is_member(read, "best"),
        "closest": _is_member(read, "closest"),
        "sampler": not any(np.isnan(array).any() for array in sampled)
        and (read["sampler.count"] >= 0).all(),
    }
    for name, is_so in usable.items():
        if not is_so:
            raise InputError(
                f"state: {name}: read values that no search reaches; expected what get_state returned"
            )


def _is_member(read: dict[str, np.ndarray], name: str) -> bool:
    instance, generation = read[f"{name}.source"].tolist()
    if (instance, generation) == (-1, -1):
        return True
    values = np.append(read[f"{name}.parameters"], read[f"{name}.values"])
    return bool(
        0 <= instance < read["option.n_instances"]
        and 0 < generation <= read["generation"]
        and np.isfinite(values).all()
    )


def pack_member(name: str, member: Best | None, n: int) -> dict[str, np.ndarray]:
    """Return a member as arrays, nan without one."""
    if member is None:
        parameters, values, source = np.full(n, np.nan), [np.nan, np.nan], [-1, -1]
    else:
        parameters = member.parameters.copy()
        values = [member.return_, member.cost]
        source = [member.instance, member.generation]
    return {
        f"{name}.parameters": parameters,
        f"{name}.values": np.array(values, np.float64),
        f"{name}.source": np.array(source, np.int64),
    }


def unpack_member(name: str, read: dict[str, np.ndarray]) -> Best | None:
    """Return the member that `pack_member` packed."""
    instance, generation = read[f"{name}.source"].tolist()
    return_, cost = read[f"{name}.values"].tolist()
    if generation <= 0:
        return None
    return Best(read[f"{name}.parameters"], return_, cost, instance, generation)
