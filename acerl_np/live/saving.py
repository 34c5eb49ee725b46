"""A dispatcher's state as plain values: the situation before the last events, and these events."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import numpy as np

from acerl_np.kernels.ground.state import WORKING
from acerl_np.live.board import DAY_FIELDS, Day, LiveTask, LiveVehicle, Situation, Way
from acerl_np.live.events import EVENTS, NUMBERS, Event, TaskArrived
from acerl_np.live.feed import Entry, Feed
from acerl_np.live.orders import DayBegan, Given, Item, NoEvent, Recalled, Sent
from acerl_np.policies.files import AnyPolicy, BasePolicy, pack_policy, unpack_policy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.origin import add_prefix, take_prefixed
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import UNUSABLE
from acerl_np.support.errors import InputError, PolicyError, make_printable
from acerl_np.support.fields import refuse
from acerl_np.support.files import read_arrays, take_kind, write_arrays
from acerl_np.support.numbers import is_real

FORMAT = 4

ERRAND_FIELDS = ("since", "level", "level_time", "way")
"""Fields of vehicles that are only written where there is something in them."""

VEHICLE_FIELDS = {
    **dict.fromkeys(("status", "service"), int),
    **dict.fromkeys(("has_fetched", "is_confirmed"), bool),
    **dict.fromkeys(("finish", "broke", "since", "level", "level_time"), float),
}
"""Fields of vehicles that hold a number, and its kind."""

TASK_FIELDS = {"changes": int, "number": int, "ready": float, "root": float, "since": float}
"""Fields of tasks that are only written where there is something in them."""

KINDS = {**EVENTS, "Given": Given, "Recalled": Recalled, "Sent": Sent, "DayBegan": DayBegan}


def write_dispatcher(
    path: str | os.PathLike[str], policy: BasePolicy | str, options: dict[str, Any], feed: Feed
) -> None:
    """Write what makes a dispatcher to an `.npz` file, atomically.

    A StorageError if it cannot be, a PolicyError if no file can hold the policy.
    """
    data = {**options, "layout": feed.base.layout.to_dict(), **_pack_feed(feed)}
    arrays: dict[str, Any] = {
        "kind": "dispatcher",
        "format": FORMAT,
        "state": np.frombuffer(json.dumps(data, default=float).encode(), np.uint8),
    }
    if isinstance(policy, Lookahead):
        arrays |= add_prefix("ahead.", policy.to_arrays())
    elif isinstance(policy, AnyPolicy):
        arrays |= add_prefix("policy.", pack_policy(policy))
    elif not isinstance(policy, str):
        raise PolicyError(f"dispatcher: read {policy}; no file can hold a policy in plain Python")
    write_arrays(path, arrays)


def read_dispatcher(path: str | os.PathLike[str], policy: Any = None) -> tuple[dict[str, Any], Any]:
    """Return what `write_dispatcher` wrote: options and state as plain values, and the policy.

    One that is given takes its place: then nothing of the saved one is imported.

    Raises
    ------
    InputError
        If the file is missing, damaged, of another format version, or holds no dispatcher.
    """
    arrays = read_arrays(path, InputError)
    take_kind(path, arrays, "dispatcher", FORMAT, InputError, noun="a dispatcher")
    try:
        data = json.loads(arrays["state"].tobytes().decode())
        if policy is None:
            policy = data["rule"] or _unpack_policy(arrays)
        return data, policy
    except UNUSABLE as error:
        raise InputError(describe_unusable(path, error)) from error


def describe_unusable(path: str | os.PathLike[str], error: Exception) -> str:
    """Return in one line that a file holds no usable dispatcher, and why."""
    return f"{path}: not a usable dispatcher: {make_printable(str(error)[:400])}"


Kind = TypeVar("Kind", bound=Event)


def read_event(kind: type[Kind], data: dict[str, Any]) -> Kind:
    """Return an event of plain values; those that it does not know are left out, and null may be inf."""
    known = {
        field.name: data[field.name]
        for field in fields(kind)
        if field.name in data or field.default is MISSING
    }
    never = {name: math.inf for name in NUMBERS[kind] if known.get(name, 0.0) is None}
    return kind(**known | never)


def _pack_feed(feed: Feed) -> dict[str, Any]:
    """Return all that a feed knows as plain values."""
    base, (n, delay, delivered) = feed.base, feed.base.mark
    sites, day = base.layout.sites, base.day
    return {
        "time": pack_time(feed.time),
        "tasks": [
            {**_pack_task(task), "since": task.since, "vehicle": task.vehicle, "slot": task.slot}
            for task in base.tasks.values()
        ],
        "pool": base.pool,
        "planned": [_pack_task(task) for task in base.planned.values()],
        "machines": [pack_time(time) for time in base.machines.tolist()],
        "vehicles": [
            {
                **{k: x for k, x in vehicle._asdict().items() if x or k not in ERRAND_FIELDS},
                "site": sites[vehicle.site].id,
                "origin": sites[vehicle.origin].id,
            }
            for vehicle in base.vehicles
        ],
        "day": {
            "start": day.start,
            "ends": day.ends[:n].tolist(),
            "values": day.record[:n][:, DAY_FIELDS].tolist(),
            "delay": delay,
            "delivered": delivered,
        },
        "entries": [
            {
                "at": pack_time(entry.time),
                "holds": entry.holds,
                "item": _pack_item(entry.item),
                "number": entry.told,
            }
            for entry in feed.entries
        ],
    }


def unpack_feed(feed: Feed, data: dict[str, Any], layout: Layout) -> None:
    """Let a new dispatcher's feed take over what was saved.

    The layout has the fleet before the last events. Data that are not usable raise an EventError, KeyError,
    TypeError or ValueError.
    """
    tasks, n = {}, len(feed.base.machines)
    for row, entry in enumerate(data["tasks"]):
        since, vehicle, slot = float(entry["since"]), int(entry["vehicle"]), int(entry["slot"])
        own = _unpack_task(entry)._replace(row=n + row, since=since, vehicle=vehicle, slot=slot)
        tasks[entry["task"]] = own
    carried = {task.vehicle: name for name, task in tasks.items()}
    vehicles = [
        _unpack_vehicle(entry, layout, carried.get(v)) for v, entry in enumerate(data["vehicles"])
    ]
    planned = {entry["task"]: _unpack_task(entry) for entry in data["planned"]}
    if feed.floor.has_chains:
        rows = range(n + len(tasks), n + len(tasks) + len(planned))
        planned = {
            name: task._replace(row=row)
            for row, (name, task) in zip(rows, planned.items(), strict=True)
        }
    day = _unpack_day(data["day"])
    pool = [str(name) for name in data["pool"]]
    machines = np.array([read_time(time) for time in data["machines"]])
    if len(machines) != n:
        raise ValueError(f"machines: read {len(machines)}; expected {n}")
    base = Situation(layout, vehicles, tasks, pool, planned, machines, day, day.mark)
    entries = [
        Entry(
            read_time(entry["at"]),
            n,
            _unpack_item(entry["item"]),
            bool(entry["holds"]),
            told=None if entry["number"] is None else int(entry["number"]),
        )
        for n, entry in enumerate(data["entries"])
    ]
    feed.take_over(base, entries, read_time(data["time"]))


def _pack_task(task: LiveTask) -> dict[str, Any]:
    told = {} if task.told is None else {"told": vars(task.told)}
    values, usual = task._asdict(), LiveTask._field_defaults
    more = {name: values[name] for name in TASK_FIELDS if values[name] != usual[name]}
    return {**vars(task.event), **told, **more}


def _unpack_task(data: dict[str, Any]) -> LiveTask:
    told = data.get("told")
    told = told and read_event(TaskArrived, told)
    kept = {name: kind(data[name]) for name, kind in TASK_FIELDS.items() if name in data}
    return LiveTask(read_event(TaskArrived, data), told=told, **kept)


def _unpack_vehicle(data: dict[str, Any], layout: Layout, carried: str | None) -> LiveVehicle:
    values: dict[str, Any] = {
        name: kind(data[name])
        for name, kind in VEHICLE_FIELDS.items()
        if name in data or name not in ERRAND_FIELDS
    }
    values |= {name: layout.site_index[data[name]] for name in ("site", "origin")}
    task = carried if values["status"] == WORKING else None
    way = _unpack_way(data["way"], layout) if "way" in data else None
    return LiveVehicle(**values, task=task, way=way)


def _unpack_way(values: list[Any], layout: Layout) -> Way:
    """Return a way, whose sites stand as positions: the floor is the same, whatever the fleet."""
    way = Way(*values)
    if not all(0 <= place < len(layout.sites) for place in (way.site, way.before, way.end)):
        refuse("way", values, "sites of the layout", ValueError)
    return way


def _unpack_day(data: dict[str, Any]) -> Day:
    day = Day(float(data["start"]))
    for (pickup, delivery), values in zip(data["ends"], data["values"], strict=True):
        day.add(int(pickup), int(delivery), [float(value) for value in values])
    day.delay, day.delivered = float(data["delay"]), int(data["delivered"])
    return day


def _pack_item(item: Item) -> dict[str, Any]:
    values = item._asdict() if isinstance(item, NoEvent) else vars(item)
    return {"kind": type(item).__name__, **values, "time": pack_time(item.time)}


def _unpack_item(data: dict[str, Any]) -> Item:
    values = {**data, "time": read_time(data["time"])}
    kind: Callable[..., Item] = KINDS[values.pop("kind")]
    return kind(**values)


def pack_time(time: float) -> float | None:
    """Return a moment, s, as JSON has it: null for one that is infinite."""
    return None if math.isinf(time) else float(time)


def read_time(time: float | None, unknown: float = -math.inf) -> float:
    """Return a moment, s, that was written as plain values; a ValueError if it is none."""
    if time is None:
        return unknown
    if not is_real(time):
        refuse("time", time, "seconds", ValueError)
    return float(time)


def _unpack_policy(arrays: dict[str, np.ndarray]) -> Any:
    if ahead := take_prefixed("ahead.", arrays):
        return Lookahead.from_arrays(ahead)
    return unpack_policy(take_prefixed("policy.", arrays))
