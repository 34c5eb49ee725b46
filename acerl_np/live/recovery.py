"""How a dispatcher comes to where it was when its process ended: by the lines of its log."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from acerl_np.live import audit, events
from acerl_np.live.audit import Line
from acerl_np.live.desk import Desk
from acerl_np.live.orders import ACKNOWLEDGED, FOLLOWED
from acerl_np.live.saving import hash_policy
from acerl_np.live.watching import sample_queue
from acerl_np.live.wire import ORDERS, read_event, unpack_order
from acerl_np.policies.files import load_policy
from acerl_np.support.errors import InputError, PolicyError, RecordError, describe, list_some

if TYPE_CHECKING:
    from acerl_np.live.dispatcher import Dispatcher


def start_anew(
    make: Callable[..., Dispatcher],
    path: str | os.PathLike[str],
    lines: list[Line],
    options: dict[str, Any],
    known: Collection[str],
) -> Dispatcher:
    """Return a dispatcher as it was when a log began.

    Options that are not given are those of the log's last start, as far as they are `known`. A RecordError
    says that these cannot be, or that the log is of another fleet.
    """
    place, first = lines[0]
    last_place, last = [item for item in lines if item[1]["kind"] == audit.STARTED][-1]
    kept = {name: value for name, value in last["options"].items() if name in known}
    try:
        dispatcher = make(**{**kept, **options, "start": first["start"]})
    except InputError as error:
        if str(error).split(":")[0] not in kept.keys() - options.keys():
            raise
        raise RecordError(f"{path}: {last_place}: {audit.STARTED}: {error}") from error
    floor = dispatcher.layout.floor_hash
    if last.get("floor", floor) != floor:  # logs of before do not tell
        raise RecordError(
            f"{path}: {last_place}: floor: of another floor than layout '{dispatcher.layout.name}'; expected "
            "the one that the log began with"
        )
    fleet = [vehicle.id for vehicle in dispatcher.layout.vehicles]
    if first["line"] == 0 and fleet != first["vehicles"]:
        found = list_some([describe(name) for name in first["vehicles"]], 20)
        raise RecordError(
            f"{path}: {place}: vehicles: read {found}; expected "
            f"those of layout '{dispatcher.layout.name}': {list_some(fleet, 20)}"
        )
    return dispatcher


def place_policy(path: str | os.PathLike[str], policy_hash: str | None) -> str:
    """Return where a policy is kept that was taken over while a log was written."""
    return f"{os.fspath(path)}.{str(policy_hash)[:16]}.npz"


def find_taken(path: str | os.PathLike[str], lines: list[Line]) -> Any:
    """Return the policy that was taken over last, None if none was; a RecordError if it is not there."""
    started = [item for item in lines if item[1]["kind"] == audit.STARTED]
    if not started or not started[-1][1].get("taken"):
        return None
    place, line = started[-1]
    expected = line.get("policy_hash")
    if expected is None:
        return str(line.get("policy"))
    file = place_policy(path, expected)
    try:
        policy = load_policy(file)
    except PolicyError as error:
        raise RecordError(f"{path}: {place}: the policy that was taken over: {error}") from error
    if hash_policy(policy) != expected:
        raise RecordError(f"{path}: {place}: {file} holds another policy; expected hash {expected}")
    return policy


def redo(desk: Desk, path: str | os.PathLike[str], lines: list[Line]) -> None:
    """Let happen again what a log says from the desk's line on, and owe the plant all orders."""
    orders, feed = desk.orders, desk.feed
    lateness, ahead = feed.lateness, feed.ahead
    for place, line in lines:
        if line["line"] > orders.lines:
            raise RecordError(
                f"{path}: {place}: read the log's line {line['line']}; expected line {orders.lines}, or "
                "state=, a dispatcher that was saved after the lines that are missing"
            )
        if line["line"] < orders.lines:
            continue
        with audit.name_line(f"{path}: {place}", line):
            queue = orders.queue
            if line["kind"] in events.EVENTS:
                queue = sample_queue(queue, float(line["time"]), desk.floor)
            audit.redo_line(feed, line, f"{path}: {place}")
            if queue and queue[-1][0] <= feed.time:  # not of one that is passed over
                orders.queue = queue
            if line["kind"] in ORDERS:
                orders.add(unpack_order(line))
                orders.keep({name: x for name, x in line.items() if name not in ("line", "mark")})
            elif line["kind"] == ACKNOWLEDGED:
                orders.acknowledge(int(line["number"]))
            elif line["kind"] == FOLLOWED:
                orders.followed = orders.followed.add(line)
            elif "number" in line:
                feed.numbers.add(int(line["number"]))
            if line["kind"] in events.EVENTS:
                orders.settle(read_event(events.EVENTS[line["kind"]], line))
        orders.lines += 1
    feed.lateness, feed.ahead = lateness, ahead  # as of now, not of those who wrote the log
    known = orders.acknowledged or 0
    orders.owe(order for order in orders.list_all() if order.number > known)
