"""A dispatcher's state as plain values: the situation before the last events, and these events."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from acerl_np.kernels.state import WORKING
from acerl_np.live.day import Day
from acerl_np.live.events import EVENTS, TaskArrived
from acerl_np.live.feed import Entry, Feed
from acerl_np.live.floor import DayBegan, Given, Item, Situation
from acerl_np.live.parts import SERVING, LiveTask, LiveVehicle, Snapshot
from acerl_np.policies.files import AnyPolicy, pack_policy, unpack_policy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import UNUSABLE
from acerl_np.support.errors import InputError, describe, make_printable
from acerl_np.support.files import read_arrays, take_kind, write_arrays
from acerl_np.support.numbers import is_real

FORMAT = 3
OLD_FORMATS = (1, 2)
"""Without a day; without the last events. Still read."""

KINDS: dict[str, type[Item]] = {**EVENTS, "Given": Given, "DayBegan": DayBegan}


def write_dispatcher(
    path: str | os.PathLike[str],
    policy: AnyPolicy | Lookahead | str,
    options: dict[str, Any],
    feed: Feed,
) -> None:
    """Write what makes a dispatcher to an `.npz` file, atomically.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    data = {**options, "layout": feed.base.board.layout.to_dict(), **pack_feed(feed)}
    arrays: dict[str, Any] = {
        "kind": "dispatcher",
        "format": FORMAT,
        "state": np.frombuffer(json.dumps(data, default=float).encode(), np.uint8),
    }
    if isinstance(policy, Lookahead):
        arrays |= {f"ahead.{name}": a for name, a in policy.to_arrays().items()}
    elif not isinstance(policy, str):
        arrays |= {f"policy.{name}": a for name, a in pack_policy(policy).items()}
    write_arrays(path, arrays)


def read_dispatcher(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Any]:
    """Return what `write_dispatcher` wrote: options and state as plain values, and the policy.

    Raises
    ------
    InputError
        If the file is missing, damaged, of another format version, or holds no dispatcher.
    """
    arrays = read_arrays(path, InputError)
    formats = (*OLD_FORMATS, FORMAT)
    take_kind(path, arrays, "dispatcher", formats, InputError, noun="a dispatcher")
    try:
        data = json.loads(arrays["state"].tobytes().decode())
        return data, data["rule"] or _unpack_policy(arrays)
    except UNUSABLE as error:
        raise InputError(describe_unusable(path, error)) from error


def describe_unusable(path: str | os.PathLike[str], error: Exception) -> str:
    """Return in one line that a file holds no usable dispatcher, and why."""
    return f"{path}: not a usable dispatcher: {make_printable(str(error)[:400])}"


def pack_item(item: Item) -> dict[str, Any]:
    """Return an event, or what else happened, as plain values."""
    fields = item._asdict() if isinstance(item, Given | DayBegan) else vars(item)
    return {"kind": type(item).__name__, **fields}


def pack_feed(feed: Feed) -> dict[str, Any]:
    """Return all that a feed knows as plain values."""
    board, day, mark = feed.base
    sites = board.layout.sites
    return {
        "time": None if math.isinf(feed.time) else feed.time,
        "tasks": [
            {
                **_pack_task(task),
                "since": task.since,
                "vehicle": task.vehicle,
                "slot": task.slot,
            }
            for task in board.tasks.values()
        ],
        "pool": board.pool,
        "planned": [_pack_task(task) for task in board.planned.values()],
        "vehicles": [
            {
                **vehicle._asdict(),
                "site": sites[vehicle.site].id,
                "origin": sites[vehicle.origin].id,
            }
            for vehicle in board.vehicles
        ],
        "day": day.to_dict(mark),
        "entries": [
            {
                "at": None if math.isinf(entry.time) else entry.time,
                "holds": entry.holds,
                "item": {**pack_item(entry.item), "time": _pack_time(entry.item.time)},
            }
            for entry in feed.entries
        ],
    }


def unpack_feed(feed: Feed, data: dict[str, Any], layout: Layout) -> None:
    """Take over what `pack_feed` returned, also of the formats before this one.

    Parameters
    ----------
    feed : Feed
        Of a new dispatcher on this layout.
    data : dict
    layout : Layout
        The floor, and the fleet before the last events.

    Raises
    ------
    EventError, KeyError, TypeError, ValueError
        If the data are not usable.
    """
    tasks = {}
    for row, entry in enumerate(data["tasks"]):
        since, v = float(entry.pop("since")), int(entry.pop("vehicle"))
        slot = int(entry.pop("slot", 0))
        tasks[entry["task"]] = _unpack_task(entry)._replace(
            row=row, since=since, vehicle=v, slot=slot
        )
    carried = {task.vehicle: name for name, task in tasks.items()}
    vehicles = []
    for v, entry in enumerate(data["vehicles"]):
        site = layout.site_index[entry["site"]]
        status = int(entry["status"])
        vehicles.append(
            LiveVehicle(
                status=status,
                service=int(entry.get("service", SERVING)),
                site=site,
                origin=layout.site_index[entry.get("origin", entry["site"])],
                has_fetched=bool(entry.get("has_fetched", False)),
                task=carried.get(v) if status == WORKING else None,
                finish=float(entry.get("finish", 0.0)),
                broke=float(entry.get("broke", 0.0)),
            )
        )
    planned = {entry["task"]: _unpack_task(entry) for entry in data.get("planned", [])}
    board = Snapshot(layout, vehicles, tasks, [str(name) for name in data["pool"]], planned)
    day = Day.from_dict(data.get("day", {}))
    entries = [
        Entry(_read_time(entry["at"]), n, _unpack_item(entry["item"]), bool(entry["holds"]))
        for n, entry in enumerate(data.get("entries", []))
    ]
    feed.take_over(Situation(board, day, day.mark), entries, _read_time(data["time"]))


def _pack_task(task: LiveTask) -> dict[str, Any]:
    told = {} if task.told is None else {"told": vars(task.told)}
    return {**vars(task.event), **told}


def _unpack_task(data: dict[str, Any]) -> LiveTask:
    told = data.pop("told", None)
    return LiveTask(TaskArrived(**data), told=told and TaskArrived(**told))


def _unpack_item(data: dict[str, Any]) -> Item:
    fields = dict(data)
    kind = KINDS[fields.pop("kind")]
    return kind(**{**fields, "time": _read_time(fields["time"])})


def _pack_time(time: float) -> float | None:
    return None if math.isinf(time) else float(time)


def _read_time(time: float | None) -> float:
    if time is None:
        return -math.inf
    if not is_real(time):
        raise ValueError(f"time: read {describe(time)}; expected seconds")
    return float(time)


def _unpack_policy(arrays: dict[str, np.ndarray]) -> Any:
    ahead = {
        name.removeprefix("ahead."): array
        for name, array in arrays.items()
        if name.startswith("ahead.")
    }
    if ahead:
        return Lookahead.from_arrays(ahead)
    own = {
        name.removeprefix("policy."): array
        for name, array in arrays.items()
        if name.startswith("policy.")
    }
    # Dispatchers that were saved before there were other forms say none.
    return unpack_policy({"form": np.array("network"), **own})
