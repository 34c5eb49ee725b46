"""Events, orders and answers as JSON: lines of a log, and messages of a service with their JSON Schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from acerl_np.live import events
from acerl_np.live.events import Assignment, Charge, Event, Order, Park, Recall
from acerl_np.support.errors import AcerlError, EventError, describe, refuse, suggest_name
from acerl_np.support.fields import is_real, is_whole

Message = dict[str, Any]

MAX_MESSAGE = 1_000_000
"""Letters of the longest message."""

ASSIGNED, RECALL, PARK, CHARGE = Assignment.kind, Recall.kind, Park.kind, Charge.kind
ORDERS = ASSIGNED, RECALL, PARK, CHARGE
"""What orders are called: as their classes, but for an assignment."""

TYPES: dict[str, Any] = {
    "float": {"type": ["number", "null"]},
    "float | None": {"type": ["number", "null"]},
    "str": {"type": ["string"]},
    "str | None": {"type": ["string", "null"]},
    "bool": {"type": ["boolean"]},
}
"""What JSON has for each type of an event's field; null stands for a number that is not finite."""

TIME, NAME = TYPES["float"], TYPES["str"]
ASKED: dict[str, dict[str, Any]] = {
    "Decide": {"time": TIME},
    "Assign": {"time": TIME, "vehicle": NAME, "task": NAME},
    "Send": {"time": TIME, "vehicle": NAME, "site": NAME},
    "BeginDay": {"start": TIME},
    "Acknowledge": {"number": {"type": ["integer"]}},
    "Save": {},
    "State": {},
    "Policy": {"name": TYPES["str | None"], "file": TYPES["str | None"]},
}
"""Messages that are no events, and their fields: ask for orders, tell an assignment or an order that somebody
else has decided, begin a day, say until which number orders have arrived, write the state, ask where
everything is, go on with another policy: a rule's name, or the bytes of its file in base64."""

OWN: dict[str, Any] = {"number": {"type": ["integer"]}, "hold": TYPES["bool"]}
"""Fields of every event besides, as `Dispatcher.feed` takes them; `number` of every message."""

CHECKS: dict[str, Callable[[Any], bool]] = {
    "number": is_real,
    "integer": is_whole,
    "string": lambda x: isinstance(x, str),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
}


def _list_fields(kind: str) -> tuple[dict[str, Any], list[str]]:
    if kind in ASKED:
        own = ASKED[kind]
        needed = [name for name, held in own.items() if "null" not in held["type"] or held is TIME]
        return {**own, "number": OWN["number"]}, needed
    told = fields(events.EVENTS[kind])
    known = {field.name: TYPES[str(field.type)] for field in told}
    return {**known, **OWN}, [field.name for field in told if field.default is MISSING]


FIELDS = {kind: _list_fields(kind) for kind in (*events.EVENTS, *ASKED)}
"""Of each kind of message its fields with their types, and those that it must have."""


def format_line(values: Any) -> str:
    """Return values as a line of JSON; numbers that are not finite are null in it."""
    text = json.dumps(values, default=float)
    if "NaN" in text or "Infinity" in text:  # which are no JSON
        text = json.dumps(json.loads(text, parse_constant=lambda _: None))
    return f"{text}\n"


def pack_time(time: float) -> float | None:
    """Return a moment, s, as JSON has it: null for one that is infinite."""
    return None if math.isinf(time) else float(time)


def read_time(time: float | None) -> float:
    """Return a moment, s, that was written as plain values, null before any; a ValueError if it is none."""
    if time is None:
        return -math.inf
    if not is_real(time):
        refuse("time", time, "seconds", ValueError)
    return float(time)


Kind = TypeVar("Kind", bound=Event)


def read_event(kind: type[Kind], data: dict[str, Any]) -> Kind:
    """Return an event of plain values; those that it does not know are left out, and null may be inf."""
    known = {
        field.name: data[field.name]
        for field in fields(kind)
        if field.name in data or field.default is MISSING
    }
    never = {name: math.inf for name in events.NUMBERS[kind] if known.get(name, 0.0) is None}
    return kind(**known | never)


@cache
def list_hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields by their names."""
    return get_type_hints(kind)


def read_plain(kind: Any, data: Any) -> Any:
    """Return a value of a type from what JSON made of it: a list of a named tuple, as of any.

    An error of `UNUSABLE` if it is none.
    """
    made, own = get_origin(kind), get_args(kind)
    if made is UnionType:  # with None
        return None if data is None else read_plain(own[0], data)
    if made is dict:
        return {str(name): read_plain(own[1], value) for name, value in data.items()}
    if made is not None and (made is not tuple or own[-1] is ...):
        return made(read_plain(own[0], value) for value in data)
    if kind in events.NUMBERS:
        return read_event(kind, data)
    kinds = own or (list_hints(kind).values() if hasattr(kind, "_fields") else ())
    if not kinds:
        return data if kind is Any else kind(data)
    values = (read_plain(each, value) for each, value in zip(kinds, data, strict=True))
    return kind(*values) if not own else tuple(values)


def pack_order(order: Order) -> dict[str, Any]:
    """Return an order as a line of a log has it, but for its time."""
    if not isinstance(order, Assignment):
        return {"kind": order.kind, **order._asdict()}
    names = ("vehicle", "task", "rule", "number", "finish", "futures")
    line = {"kind": order.kind, **{name: getattr(order, name) for name in names}}
    if order.reason is not None:
        options = [option._asdict() for option in order.reason.options]
        line["reason"] = {**order.reason._asdict(), "options": options}
    return line


def unpack_order(line: dict[str, Any]) -> Order:
    """Return the order that a line of a log or a saved state tells; an error of `UNUSABLE` if it does not."""
    kind, vehicle, number = line["kind"], str(line["vehicle"]), int(line["number"])
    if kind == ASSIGNED:
        finish = math.nan if line["finish"] is None else float(line["finish"])
        task, rule, futures = str(line["task"]), str(line["rule"]), int(line["futures"])
        return Assignment(vehicle, task, rule, futures, finish, number=number)
    reason = str(line["reason"])
    if kind == RECALL:
        return Recall(vehicle, str(line["task"]), reason, number)
    own = Charge if kind == CHARGE else Park
    return own(vehicle, str(line["site"]), reason, number)


def show_order(order: Order, now: float) -> Message:
    """Return an order as a message: as the log has it, with its time, and whether it was given before."""
    return {**pack_order(order), "time": now, "repeated": order.repeated}


def refuse_message(number: int | None, error: AcerlError) -> Message:
    """Return the answer to a message that has changed nothing."""
    return {"kind": "Refused", "number": number, "why": " ".join(str(error).split())}


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of what a service reads."""
    kinds = {
        kind: {
            "type": "object",
            "properties": {"kind": {"const": kind}, **known},
            "required": ["kind", *needed],
            "additionalProperties": False,
        }
        for kind, (known, needed) in FIELDS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a dispatcher is told",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": kinds,
    }


def read_message(text: str) -> Message:
    """Return a message; an EventError says in a line what is wrong with it."""
    if len(text) > MAX_MESSAGE:
        raise EventError(f"message: {len(text):,} letters; expected at most {MAX_MESSAGE:,}")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise EventError("message: bytes that are no UTF-8; expected a JSON object in UTF-8")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise EventError(
            f"message: read {describe(text.strip())}; expected a JSON object"
        ) from None
    if not isinstance(message, dict):
        raise EventError(f"message: read {describe(message)}; expected a JSON object")
    kind = message.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        near = suggest_name(str(kind), FIELDS)
        raise EventError(f"kind: read {describe(kind)}; expected one of {', '.join(FIELDS)}{near}")
    known, needed = FIELDS[kind]
    for name, value in message.items():
        if name == "kind":
            continue
        if name not in known:
            near = suggest_name(name, known)
            raise EventError(
                f"{kind}: {describe(name)}: unknown; expected {', '.join(known)}{near}"
            )
        if not any(CHECKS[own](value) for own in known[name]["type"]):
            expected = " or ".join(known[name]["type"])
            raise EventError(f"{kind}: {name}: read {describe(value)}; expected {expected}")
    for name in needed:
        if name not in message:
            raise EventError(f"{kind}: {name}: missing")
    return message
