"""A dispatcher's state as plain values: the situation before the last events, and these events."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np

from acerl_np.kernels.core.state import N_PLAN_FIELDS
from acerl_np.live import events
from acerl_np.live.events import Event
from acerl_np.live.feed import Entry, Feed, Numbers
from acerl_np.live.log import Place
from acerl_np.live.orders import Item, NoEvent, Orders, pack_item
from acerl_np.live.parts import DAY_FIELDS, Day, Ended, LiveTask, LiveVehicle, Situation, Way
from acerl_np.live.wire import list_hints, pack_order, read_plain, unpack_order
from acerl_np.policies.files import AnyPolicy, BasePolicy, load_policy, pack_policy, unpack_policy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.origin import add_prefix, take_prefixed
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import unpacking
from acerl_np.support.errors import InputError, PolicyError, refuse
from acerl_np.support.files import FilePath, digest_arrays, read_arrays, take_kind, write_arrays
from acerl_np.support.trust import trusting

FORMAT = 7

OPTIONS = ("greedy", "seed", "budget", "explain", "task_ids", "lateness", "ahead", "loads")
"""Arguments of a dispatcher that are saved, and stand in the log."""

ALL_OPTIONS = (*OPTIONS, "commitment", "max_changes", "parks", "charges")
"""Those where vehicles park, charge or are called back."""

BEFORE = {"loads": "return"}
"""Options by which dispatchers went before states and logs told them."""

KINDS = {**events.EVENTS, **{kind.__name__: kind for kind in get_args(NoEvent)}}


def pack_state(
    feed: Feed, orders: Orders, options: dict[str, Any], known: Place | None = None
) -> dict[str, np.ndarray]:
    """Return what is known and ordered as arrays; `known` is how far a log says the same."""
    base, (_, delay, delivered, _) = feed.base, feed.base.mark
    n, ended = base.day.count_rows(base.mark[0]), _list_ended(feed)
    data = {
        **options,
        "layout": base.layout.to_dict(),
        "closed": base.layout.closed,
        "orders": {**vars(orders), "given": [pack_order(own) for own in orders.list_all()]},
        "time": feed.time,
        "numbers": feed.numbers.ends,
        "first_number": feed.numbers.first,
        "tasks": base.tasks,
        "pool": base.pool,
        "planned": base.planned,
        "machines": base.machines.tolist(),
        "vehicles": base.vehicles,
        "start": base.day.start,
        "delay": delay,
        "delivered": delivered,
        "ended": [row[:2] + row[3:] for row in ended],
        "forgotten": (base.mark[0] - n, base.mark[3] - len(ended)),
        "entries": [
            (entry.time, pack_item(entry.item), entry.holds, entry.told) for entry in feed.entries
        ],
    }
    del data["orders"]["recalls"]  # they are among those given
    return {
        "state": np.frombuffer(json.dumps(data, default=_make_plain).encode(), np.uint8),
        "ends": np.stack([base.day.ends[name][:n] for name in ("pickup", "delivery")], axis=1),
        "record": np.stack([base.day.record[name][:n] for name in DAY_FIELDS], axis=1),
        "ended": np.array([time for _, _, time, _ in ended]),
        **({} if known is None else {"log": np.asarray(known)}),
    }


def _make_plain(value: Any) -> Any:
    """Return what JSON has for a value that it does not know; tuples, those with names too, are lists."""
    if isinstance(value, set):
        return sorted(value)
    return vars(value) if isinstance(value, Event) else float(value)


def write_state(path: FilePath, policy: BasePolicy | str, state: dict[str, np.ndarray]) -> None:
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


def load_state(path: FilePath) -> dict[str, np.ndarray]:
    """Return the arrays that `write_state` wrote.

    An InputError says that the file is missing, damaged, or of another format version.
    """
    arrays = read_arrays(path, InputError)
    take_kind(path, arrays, "dispatcher", FORMAT, InputError, noun="a dispatcher")
    return arrays


def unpacking_state(path: FilePath) -> AbstractContextManager[None]:
    """Let what is raised as a state holds something else be an InputError that names its file."""
    return unpacking(InputError, f"{path}: not a usable dispatcher")


def read_known(arrays: dict[str, np.ndarray] | None) -> Place | None:
    """Return how far a log says the same as a state; None where there is no such log."""
    known = (arrays or {}).get("log")
    return None if known is None else Place(int(known[0]), str(known[1]))


def read_policy(arrays: dict[str, np.ndarray]) -> Any:
    """Return the policy that `write_state` wrote."""
    if "rule" in arrays:
        return str(arrays["rule"])
    if ahead := take_prefixed("ahead.", arrays):
        return Lookahead.from_arrays(ahead)
    return unpack_policy(take_prefixed("policy.", arrays))


def _list_ended(feed: Feed) -> list[Ended]:
    day = feed.base.day
    return day.ended[: max(0, feed.base.mark[3] - day.dropped)]


def unpack_state(
    feed: Feed, orders: Orders, data: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Let the feed and the orders of a new dispatcher take over what was saved.

    The fleet is that before the last events. Data that are not usable raise what `UNUSABLE` lists.
    """
    floor, n = feed.floor, len(feed.base.machines)
    tasks, planned = (
        read_plain(dict[str, LiveTask], data[name]).values() for name in ("tasks", "planned")
    )
    rows = count(n + len(tasks)) if floor.has_chains else repeat(-1)
    machines = np.array([_read_time(time) for time in data["machines"]])
    if len(machines) != n:
        raise ValueError(f"machines: read {len(machines)}; expected {n}")
    day = _unpack_day(data, arrays)
    base = Situation(
        floor.layout,
        _unpack_vehicles(data["vehicles"], floor.layout, tasks),
        {task.event.task: task._replace(row=n + k) for k, task in enumerate(tasks)},
        read_plain(list[str], data["pool"]),
        {task.event.task: task._replace(row=next(rows)) for task in planned},
        machines,
        day,
        day.mark,
    )
    entries = [
        Entry(_read_time(time), k, _unpack_item(item), bool(holds), told=told and int(told))
        for k, (time, item, holds, told) in enumerate(data["entries"])
    ]
    feed.take_over(base, entries, _read_time(data["time"]))
    ends = read_plain(tuple[int, ...], data["numbers"])
    feed.numbers = Numbers(ends, read_plain(int | None, data["first_number"]))
    kept = data["orders"]
    for line in kept["given"]:
        orders.add(unpack_order(line))
    for name, kind in list_hints(Orders).items():
        if name not in ("given", "recalls"):
            setattr(orders, name, read_plain(kind, kept[name]))


def _read_time(time: float) -> float:
    if math.isnan(time):
        refuse("time", time, "seconds", ValueError)
    return float(time)


def _unpack_vehicles(
    data: list[Any], layout: Layout, tasks: Iterable[LiveTask]
) -> list[LiveVehicle]:
    """Return the vehicles. Sites stand as positions: the floor is the same, whatever the fleet."""
    carried = {task.vehicle: task.event.task for task in tasks}
    vehicles = []
    for v, own in enumerate(read_plain(list[LiveVehicle], data)):
        way = own.way or Way(own.site, 0.0, own.site, 0.0, 0.0, own.site)
        places = own.site, own.origin, max(0, own.place), way.site, way.before, way.end
        if own.place < -1 or not all(0 <= place < len(layout.sites) for place in places):
            refuse("vehicles", data[v], "sites of the layout", ValueError)
        if own.plan:
            _check_plan(own.plan, layout)
        vehicles.append(own._replace(task=carried.get(v)))
    return vehicles


def _check_plan(plan: tuple[tuple[int, ...], ...], layout: Layout) -> None:
    """Refuse what a vehicle cannot have planned."""
    n, sites = len(plan) - 1, layout.sites
    sound = n > 0 and layout.traffic is not None and {len(row) for row in plan} == {N_PLAN_FIELDS}
    sound = sound and plan[0][0] == n and all(0 <= k <= n for k in plan[0])
    sound = sound and all(0 <= visit[0] < len(sites) for visit in plan[1:])
    # A way ends where its vehicle rests; or there is none.
    if not sound or not (n == 1 or sites[plan[-1][0]].aside):
        refuse("plan", plan, "visits of sites of a layout with traffic", ValueError)


def _unpack_day(data: dict[str, Any], arrays: dict[str, np.ndarray]) -> Day:
    day = Day(float(data["start"]))
    # Not as lists, whose garbage would stay with the process.
    for (pickup, delivery), values in zip(arrays["ends"], arrays["record"], strict=True):
        day.add(pickup, delivery, values)
    day.delay, day.delivered = float(data["delay"]), int(data["delivered"])
    times = arrays["ended"].tolist()
    for (name, is_delivered, vehicle), time in zip(data["ended"], times, strict=True):
        day.end(str(name), bool(is_delivered), time, str(vehicle))
    n_gone, dropped = map(int, data["forgotten"])
    day.n_gone, day.n_tasks, day.dropped = n_gone, day.n_tasks + n_gone, day.dropped + dropped
    return day


def _unpack_item(data: dict[str, Any]) -> Item:
    values = {**data, "time": _read_time(data["time"])}
    kind: Callable[..., Item] = KINDS[values.pop("kind")]
    return kind(**values)
