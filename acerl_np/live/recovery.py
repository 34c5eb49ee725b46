"""A dispatcher's log as the source of its state: which lines hold, and what each of them did."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from acerl_np.live.audit import ASSIGNED, CHARGE, DAY_BEGAN, ORDERS, RECALL, STARTED, parse_log
from acerl_np.live.events import EVENTS
from acerl_np.live.feed import Feed
from acerl_np.live.floor import Given, Ordered, Recalled, Sent
from acerl_np.live.saving import read_event, read_time
from acerl_np.support.errors import RecordError, make_printable
from acerl_np.support.files import describe_os_error
from acerl_np.support.numbers import is_whole


def read_log(path: str | os.PathLike[str]) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Return the lines that hold, with their places, and the place of a last one that was cut off, or "".

    A line replaces all before it that have its count or a higher one. A RecordError names the line that is
    none, or that is of a log without counts.
    """
    try:
        # What was cut off may be anything; some file systems put zeros where a power cut took the end.
        text = Path(path).read_bytes().replace(b"\0", b"").decode(errors="replace")
    except OSError as error:
        raise RecordError(f"{path}: cannot read: {describe_os_error(error)}") from error
    held: list[tuple[str, dict[str, Any]]] = []
    try:
        lines, torn = parse_log(text)
        for place, line in lines:
            count: Any = line.get("line")
            if not is_whole(count) or count < 0:
                raise RecordError(
                    f"{place}: line: read '{count}'; expected the count of a log of this version"
                )
            if line["kind"] == STARTED:
                read_time(line["start"])
                if not isinstance(line["options"], dict) or not isinstance(line["vehicles"], list):
                    raise RecordError(f"{place}: {STARTED}: expected its options and vehicles")
            elif not held:
                raise RecordError(f"{place}: kind: read '{line['kind']}'; expected {STARTED}")
            while held and held[-1][1]["line"] >= count:
                held.pop()
            held.append((place, line))
    except KeyError as error:
        raise RecordError(f"{path}: {place}: {STARTED}: {error} is missing") from error
    except ValueError as error:  # a RecordError, too
        raise RecordError(f"{path}: {make_printable(str(error)[:400])}") from error
    return held, torn


def read_order(now: float, line: dict[str, Any]) -> Ordered:
    """Return the order of a line; a KeyError if it lacks a field."""
    vehicle = line["vehicle"]
    if line["kind"] == ASSIGNED:
        return Given(now, vehicle, line["task"])
    if line["kind"] == RECALL:
        return Recalled(now, vehicle, line["task"])
    return Sent(now, vehicle, line["site"], line["kind"] == CHARGE)


def redo_line(feed: Feed, line: dict[str, Any]) -> None:
    """Let happen again what a line says; an EventError, KeyError, TypeError or ValueError if it cannot be."""
    kind, floor = line["kind"], feed.floor
    # It says how far the time had come where that is not the event's own.
    feed.move_to(max(feed.time, read_time(line.get("clock"))))
    if kind in ORDERS:
        now = read_time(line["time"])
        feed.move_to(now)
        order = read_order(now, line)
        floor.apply(order)
        feed.give(order)
    elif kind == DAY_BEGAN:
        feed.begin_day(read_time(line["start"]))
    elif kind != STARTED:
        holds, told = bool(line.get("hold", False)), line.get("number")
        feed.take(read_event(EVENTS[kind], line), holds=holds, told=told)
