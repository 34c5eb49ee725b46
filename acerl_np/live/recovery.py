"""How a dispatcher comes to where it was when its process ended: by its state, and the lines of its log."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from acerl_np.live import events
from acerl_np.live.desk import Desk
from acerl_np.live.log import DAY_BEGAN, STARTED, Line, LogReader, name_line
from acerl_np.live.orders import ACKNOWLEDGED, DECIDED, FOLLOWED, NOTED, read_item
from acerl_np.live.saving import ALL_OPTIONS, BEFORE, hash_policy
from acerl_np.live.watching import sample_queue
from acerl_np.live.wire import ORDERS, read_event, read_time, unpack_order
from acerl_np.policies.files import load_policy
from acerl_np.support.errors import (
    InputError,
    LogWarning,
    PolicyError,
    RecordError,
    describe,
    list_some,
)
from acerl_np.support.files import FilePath

OF_LOG = "line", "mark", "wall"
"""Fields of a line that say nothing of what happened."""


def start_anew(make: Callable[..., Any], log: LogReader, options: dict[str, Any]) -> Any:
    """Return a dispatcher as it was when a log began.

    Options that are not given are those of the log's last start. A RecordError says that these cannot be, or
    that the log is of another fleet.
    """
    first, last = log.find_first(), log.starts[-1]
    assert first is not None
    told = {**BEFORE, **last.line["options"]}
    kept = {name: own for name, own in told.items() if name in ALL_OPTIONS}
    try:
        dispatcher = make(**{**kept, **options, "start": first.line["start"]})
    except InputError as error:
        if str(error).split(":")[0] not in kept.keys() - options.keys():
            raise
        raise RecordError(f"{last.place}: {STARTED}: {error}") from error
    layout = dispatcher.layout
    if last.line.get("floor") != layout.floor_hash:
        raise RecordError(
            f"{last.place}: floor: of another floor than layout '{layout.name}'; expected "
            "the one that the log began with"
        )
    fleet = [vehicle.id for vehicle in layout.vehicles]
    if first.line["line"] == 0 and fleet != first.line["vehicles"]:
        found = list_some([describe(name) for name in first.line["vehicles"]], 20)
        raise RecordError(
            f"{first.place}: vehicles: read {found}; expected "
            f"those of layout '{layout.name}': {list_some(fleet, 20)}"
        )
    return dispatcher


def place_policy(path: FilePath, policy_hash: str | None) -> str:
    """Return where a policy is kept that was taken over while a log was written."""
    return f"{os.fspath(path)}.{str(policy_hash)[:16]}.npz"


def find_taken(log: LogReader) -> Any:
    """Return the policy that was taken over last, None if none was; a RecordError if it is not there."""
    if not log.starts or not log.starts[-1].line.get("taken"):
        return None
    path, start = log.path, log.starts[-1]
    expected = start.line.get("policy_hash")
    if expected is None:
        return str(start.line.get("policy"))
    file = place_policy(path, expected)
    try:
        policy = load_policy(file)
    except PolicyError as error:
        where = f"{start.place}: the policy that was taken over"
        raise RecordError(f"{where}: {error}") from error
    if hash_policy(policy) != expected:
        found = f"{file} holds another policy; expected hash {expected}"
        raise RecordError(f"{start.place}: {found}")
    return policy


def redo(desk: Desk, log: LogReader) -> None:
    """Let happen again what a log says from the desk's line on, and owe the plant all orders."""
    orders, feed = desk.orders, desk.feed
    lateness, ahead = feed.lateness, feed.ahead
    redo_lines(desk, log.read())
    feed.lateness, feed.ahead = lateness, ahead  # as of now, not of those who wrote the log
    known = orders.acknowledged or 0
    orders.owe(order for order in orders.list_all() if order.number > known)
    if log.torn:
        what = f"{log.path}: {log.torn}: cut off, as by a kill; it counts as not written"
        warnings.warn(what, LogWarning, stacklevel=3)


def redo_lines(desk: Desk, lines: Iterable[Line]) -> None:
    """Let happen again lines of a log that come after those that a desk knows; no line may be missing.

    Lines that a state does not know begin what is read, or with a start: else they are of another log.
    """
    knows = False
    for place, line in lines:
        n = desk.orders.lines
        if knows and line["line"] == n and line["kind"] != STARTED:
            raise RecordError(
                f"{place}: goes on from lines that the state does not know; expected the log of the state"
            )
        knows = line["line"] < n
        if line["line"] > n:
            raise RecordError(
                f"{place}: read the log's line {line['line']}; expected line {n}, or "
                "state=, a dispatcher that was saved after the lines that are missing"
            )
        if line["line"] == n:
            with name_line(place, line):
                redo_line(desk, line)


def redo_line(desk: Desk, line: dict[str, Any]) -> None:
    """Let happen again what a line says; an EventError, KeyError, TypeError or ValueError if it cannot be.

    The first time is that of the clock. A start lets the feed bear what the dispatcher of then did.
    """
    kind, orders, feed, floor = line["kind"], desk.orders, desk.feed, desk.floor
    queue, event = orders.queue, None
    if kind in events.EVENTS:
        event = read_event(events.EVENTS[kind], line)
        queue = sample_queue(queue, float(line["time"]), floor)
    if kind not in NOTED:
        time, clock = (read_time(line.get(name)) for name in ("time", "clock"))
        if kind not in DECIDED:
            feed.expire(max(time, clock))
        # It says how far the time had come where that is not the event's own.
        feed.move_to(max(feed.time, clock))
    if event is not None:
        told = line.get("number")
        feed.take(event, holds=bool(line.get("hold", False)), told=told)
        orders.queue = queue
        orders.settle(event)
        if told is not None:
            feed.numbers = feed.numbers.add(int(told))
    elif kind == STARTED:
        feed.lateness = max(feed.lateness, read_time(line["options"].get("lateness")))
        feed.ahead = max(feed.ahead, read_time(line["options"].get("ahead")))
    elif kind == DAY_BEGAN:
        desk.set_day(float(line["start"]))
    elif kind in DECIDED:
        feed.move_to(time)
        item = read_item(line, time)
        floor.apply(item)
        feed.give(item)
    if kind in ORDERS:
        orders.add(unpack_order(line))
        orders.keep({name: own for name, own in line.items() if name not in OF_LOG})
    elif kind == ACKNOWLEDGED:
        orders.acknowledge(int(line["number"]))
    elif kind == FOLLOWED:
        orders.followed = orders.followed.add(line)
    orders.lines += 1
