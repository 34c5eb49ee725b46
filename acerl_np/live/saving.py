"""A dispatcher's state as plain values: the situation before the last events, and these events."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args, get_type_hints

import numpy as np

from acerl_np.kernels.ground.state import N_PLAN_FIELDS, WORKING
from acerl_np.live import events
from acerl_np.live.events import TaskArrived
from acerl_np.live.feed import Entry, Feed, Numbers
from acerl_np.live.log import Place
from acerl_np.live.orders import Followed, Item, NoEvent, Orders
from acerl_np.live.parts import DAY_FIELDS, Day, Ended, LiveTask, LiveVehicle, Situation, Way
from acerl_np.live.wire import pack_order, pack_time, read_event, read_time, unpack_order
from acerl_np.policies.files import AnyPolicy, BasePolicy, load_policy, pack_policy, unpack_policy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.origin import add_prefix, take_prefixed
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import unpacking
from acerl_np.support.errors import InputError, PolicyError
from acerl_np.support.fields import refuse
from acerl_np.support.files import digest_arrays, read_arrays, take_kind, write_arrays
from acerl_np.support.own import trusting

FORMAT = 5

OPTIONS = ("greedy", "seed", "budget", "explain", "task_ids", "lateness", "ahead")
"""Arguments of a dispatcher that are saved, and stand in the log."""

ALL_OPTIONS = (*OPTIONS, "commitment", "max_changes", "parks", "charges")
"""Those where vehicles park, charge or are called back."""

READ = {bool: bool, int: int, float: float, float | None: float}

NUMBERS: dict[type, dict[str, type]] = {
    kind: {name: READ[held] for name, held in get_type_hints(kind).items() if held in READ}
    for kind in (LiveTask, LiveVehicle)
}
"""Fields of tasks and vehicles that hold a number, and how it is read."""

KINDS = {**events.EVENTS, **{kind.__name__: kind for kind in get_args(NoEvent)}}


def pack_state(
    feed: Feed, orders: Orders, options: dict[str, Any], known: Place | None = None
) -> dict[str, np.ndarray]:
    """Return what is known and ordered as arrays; `known` is how far a log says the same."""
    base, n = feed.base, feed.base.mark[0]
    layout = base.layout.to_dict()
    data = {**options, "layout": layout, **_pack_orders(orders), **_pack_feed(feed)}
    return {
        "state": np.frombuffer(json.dumps(data, default=float).encode(), np.uint8),
        "ends": np.stack([base.day.ends[name][:n] for name in ("pickup", "delivery")], axis=1),
        "record": np.stack([base.day.record[name][:n] for name in DAY_FIELDS], axis=1),
        "ended": np.array([time for _, _, time, _ in _list_ended(feed)]),
        **({} if known is None else {"log": np.asarray(known)}),
    }


def write_state(
    path: str | os.PathLike[str], policy: BasePolicy | str, state: dict[str, np.ndarray]
) -> None:
    """Write what makes a dispatcher to an `.npz` file, atomically.

    A StorageError if it cannot be, a PolicyError if no file can hold the policy.
    """
    write_arrays(
        path, {"kind": "dispatcher", "format": FORMAT, **pack_policy_arrays(policy), **state}
    )


def pack_policy_arrays(policy: BasePolicy | str) -> dict[str, Any]:
    """Return the arrays of a policy or the name of a rule; a PolicyError if no file can hold it."""
    if isinstance(policy, str):
        return {"rule": policy}
    if isinstance(policy, Lookahead):
        return add_prefix("ahead.", policy.to_arrays())
    if isinstance(policy, AnyPolicy):
        return add_prefix("policy.", pack_policy(policy))
    raise PolicyError(f"dispatcher: read {policy}; no file can hold a policy in plain Python")


def hash_policy(policy: BasePolicy | str) -> str | None:
    """Return the hash of what a file of a policy holds; None for a name, and for what no file holds."""
    if isinstance(policy, Lookahead):
        return digest_arrays(policy.to_arrays())
    return digest_arrays(pack_policy(policy)) if isinstance(policy, AnyPolicy) else None


def read_told_policy(data: bytes) -> BasePolicy:
    """Return the policy in the bytes of its file, as anybody may have sent them: nothing is imported for it.

    A PolicyError if they hold none, or one that names a module.
    """
    with TemporaryDirectory() as folder, trusting(None):
        path = Path(folder) / "policy.npz"
        path.write_bytes(data)
        try:
            policy: AnyPolicy = load_policy(path)
            if policy.names_code:
                raise PolicyError("it names a module; expected a policy of arrays alone")
        except PolicyError as error:
            raise PolicyError(f"policy: {str(error).removeprefix(f'{path}: ')}") from None
    return policy


def load_state(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays that `write_state` wrote.

    An InputError says that the file is missing, damaged, or of another format version.
    """
    arrays = read_arrays(path, InputError)
    take_kind(path, arrays, "dispatcher", FORMAT, InputError, noun="a dispatcher")
    return arrays


def unpacking_state(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Let what is raised as a state holds something else be an InputError that names its file."""
    return unpacking(InputError, f"{path}: not a usable dispatcher")


def read_known(arrays: dict[str, np.ndarray] | None) -> Place | None:
    """Return how far a log says the same as a state; None where there is no such log."""
    known = (arrays or {}).get("log")
    return None if known is None else Place(int(known[0]), str(known[1]))


def read_state(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the plain values of what `pack_state` returned."""
    data: dict[str, Any] = json.loads(arrays["state"].tobytes())
    return data


def read_policy(arrays: dict[str, np.ndarray]) -> Any:
    """Return the policy that `write_state` wrote."""
    if "rule" in arrays:
        return str(arrays["rule"])
    if ahead := take_prefixed("ahead.", arrays):
        return Lookahead.from_arrays(ahead)
    return unpack_policy(take_prefixed("policy.", arrays))


def _pack_orders(orders: Orders) -> dict[str, Any]:
    """Return what was ordered as plain values."""
    owed = orders.owed
    return {
        "decisions": orders.decisions,
        "lines": orders.lines,
        "given": [{**pack_order(own), "owed": own.number in owed} for own in orders.list_all()],
        "last_order": orders.last,
        "latest": orders.latest,
        "queue": orders.queue,
        "opens": orders.opens,
        "asked": pack_time(orders.asked),
        "next_errand": pack_time(orders.next_errand),
        "followed": orders.followed._asdict(),
        "acknowledged": orders.acknowledged,
        "unacknowledged": orders.unacknowledged,
    }


def _unpack_orders(orders: Orders, data: dict[str, Any]) -> None:
    """Take over what `_pack_orders` returned."""
    for line in data["given"]:
        order = unpack_order(line)
        orders.add(order)
        if line["owed"]:
            orders.owe([order])
    orders.decisions, orders.lines = int(data["decisions"]), int(data["lines"])
    orders.latest = tuple(data["latest"])
    orders.queue = tuple((float(time), int(n), int(late)) for time, n, late in data["queue"])
    orders.last, orders.opens = int(data["last_order"]), bool(data["opens"])
    orders.asked = read_time(data["asked"])
    orders.next_errand = read_time(data["next_errand"], math.inf)
    known: dict[str, Any] = {
        name: tuple(x) if isinstance(x, list) else int(x) for name, x in data["followed"].items()
    }
    known["queued"] = tuple((str(vehicle), str(task)) for vehicle, task in known["queued"])
    orders.followed = Followed(**known)
    if (number := data["acknowledged"]) is not None:
        orders.acknowledge(int(number))
        orders.unacknowledged = tuple(dict(line) for line in data["unacknowledged"])


def _list_ended(feed: Feed) -> list[Ended]:
    day = feed.base.day
    return day.ended[: max(0, feed.base.mark[3] - day.dropped)]


def _pack_feed(feed: Feed) -> dict[str, Any]:
    """Return all that a feed knows as plain values."""
    base, (_, delay, delivered, _) = feed.base, feed.base.mark
    sites, day = base.layout.sites, base.day
    return {
        "time": pack_time(feed.time),
        "numbers": feed.numbers.ends,
        "tasks": [_pack_task(task) for task in base.tasks.values()],
        "pool": base.pool,
        "planned": [_pack_task(task) for task in base.planned.values()],
        "machines": [pack_time(time) for time in base.machines.tolist()],
        "vehicles": [
            {
                **_pack_numbers(vehicle),
                "site": sites[vehicle.site].id,
                "origin": sites[vehicle.origin].id,
                **({} if vehicle.way is None else {"way": vehicle.way}),
                **({"plan": vehicle.plan} if vehicle.plan else {}),
            }
            for vehicle in base.vehicles
        ],
        "day": {
            "start": day.start,
            "delay": delay,
            "delivered": delivered,
            "ended": [row[:2] + row[3:] for row in _list_ended(feed)],
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


def unpack_state(
    feed: Feed, orders: Orders, data: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Let the feed and the orders of a new dispatcher take over what was saved.

    The fleet is that before the last events. Data that are not usable raise what `UNUSABLE` lists.
    """
    floor, n = feed.floor, len(feed.base.machines)
    layout = floor.layout
    tasks = {own["task"]: _unpack_task(own, n + row) for row, own in enumerate(data["tasks"])}
    carried = {task.vehicle: name for name, task in tasks.items()}
    vehicles = [
        _unpack_vehicle(entry, layout, carried.get(v)) for v, entry in enumerate(data["vehicles"])
    ]
    rows = count(n + len(tasks)) if floor.has_chains else repeat(-1)
    planned = {own["task"]: _unpack_task(own, next(rows)) for own in data["planned"]}
    day = _unpack_day(data["day"], arrays)
    pool = [str(name) for name in data["pool"]]
    machines = np.array([read_time(time) for time in data["machines"]])
    if len(machines) != n:
        raise ValueError(f"machines: read {len(machines)}; expected {n}")
    base = Situation(layout, vehicles, tasks, pool, planned, machines, day, day.mark)
    entries = [
        Entry(
            read_time(entry["at"]),
            k,
            _unpack_item(entry["item"]),
            bool(entry["holds"]),
            told=None if entry["number"] is None else int(entry["number"]),
        )
        for k, entry in enumerate(data["entries"])
    ]
    feed.take_over(base, entries, read_time(data["time"]))
    feed.numbers = Numbers(int(end) for end in data["numbers"])
    _unpack_orders(orders, data)


def _pack_numbers(own: LiveTask | LiveVehicle) -> dict[str, Any]:
    """Return the numbers of a task or a vehicle that are not as usual."""
    values, usual = own._asdict(), own._field_defaults
    return {name: values[name] for name in NUMBERS[type(own)] if values[name] != usual.get(name)}


def _read_numbers(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    return {name: read(data[name]) for name, read in NUMBERS[kind].items() if name in data}


def _pack_task(task: LiveTask) -> dict[str, Any]:
    told = {} if task.told is None else {"told": vars(task.told)}
    return {**vars(task.event), **told, **_pack_numbers(task._replace(row=-1))}


def _unpack_task(data: dict[str, Any], row: int) -> LiveTask:
    told = data.get("told")
    told = told and read_event(TaskArrived, told)
    numbers = _read_numbers(LiveTask, {**data, "row": row})
    return LiveTask(read_event(TaskArrived, data), told=told, **numbers)


def _unpack_vehicle(data: dict[str, Any], layout: Layout, carried: str | None) -> LiveVehicle:
    sites = {name: layout.site_index[data[name]] for name in ("site", "origin")}
    numbers = _read_numbers(LiveVehicle, {**data, **sites})
    place = numbers.get("place", -1)
    if not -1 <= place < len(layout.sites):
        refuse("place", place, "a site of the layout", ValueError)
    task = carried if numbers["status"] == WORKING else None
    way = _unpack_way(data["way"], layout) if "way" in data else None
    plan = _unpack_plan(data["plan"], layout) if "plan" in data else ()
    return LiveVehicle(**numbers, task=task, way=way, plan=plan)


def _unpack_way(values: list[Any], layout: Layout) -> Way:
    """Return a way, whose sites stand as positions: the floor is the same, whatever the fleet."""
    way = Way(*values)
    if not all(0 <= place < len(layout.sites) for place in (way.site, way.before, way.end)):
        refuse("way", values, "sites of the layout", ValueError)
    return way


def _unpack_plan(rows: list[list[int]], layout: Layout) -> tuple[tuple[int, ...], ...]:
    """Return what a vehicle has planned; its sites stand as positions, as those of a way."""
    plan = tuple(tuple(int(value) for value in row) for row in rows)
    n, sites = len(plan) - 1, layout.sites
    sound = n > 0 and layout.traffic is not None and {len(row) for row in plan} == {N_PLAN_FIELDS}
    sound = sound and plan[0][0] == n and all(0 <= k <= n for k in plan[0])
    sound = sound and all(0 <= visit[0] < len(sites) for visit in plan[1:])
    # A way ends where its vehicle rests; or there is none.
    if not sound or not (n == 1 or sites[plan[-1][0]].aside):
        refuse("plan", rows, "visits of sites of a layout with traffic", ValueError)
    return plan


def _unpack_day(data: dict[str, Any], arrays: dict[str, np.ndarray]) -> Day:
    day = Day(float(data["start"]))
    for (pickup, delivery), values in zip(arrays["ends"].tolist(), arrays["record"], strict=True):
        day.add(pickup, delivery, values)
    day.delay, day.delivered = float(data["delay"]), int(data["delivered"])
    times = arrays["ended"].tolist()
    for (name, is_delivered, vehicle), time in zip(data["ended"], times, strict=True):
        day.end(str(name), bool(is_delivered), time, str(vehicle))
    return day


def _pack_item(item: Item) -> dict[str, Any]:
    values = item._asdict() if isinstance(item, NoEvent) else vars(item)
    return {"kind": type(item).__name__, **values, "time": pack_time(item.time)}


def _unpack_item(data: dict[str, Any]) -> Item:
    values = {**data, "time": read_time(data["time"])}
    kind: Callable[..., Item] = KINDS[values.pop("kind")]
    return kind(**values)
