"""A dispatcher as a service: messages in, answers and orders out, each a JSON object on a line."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from acerl_np.live import events
from acerl_np.live.dispatcher import Dispatcher
from acerl_np.live.orders import FOLLOWED, pack_order
from acerl_np.live.saving import read_event, read_told_policy
from acerl_np.live.states import CANCELLED, DELIVERED
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.rules import GENERAL, RULES, find_policy_name
from acerl_np.support.errors import (
    AcerlError,
    EventError,
    PolicyError,
    StorageError,
    describe,
    suggest_name,
)
from acerl_np.support.files import path_exists
from acerl_np.support.numbers import is_real, is_whole

Message = dict[str, Any]

MAX_MESSAGE = 1_000_000
"""Letters of the longest message."""

QUIET = 0.05
"""Seconds without a message after which a service with the clock on the wall asks itself."""

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

TOLD = (
    "waiting",
    "planned",
    "under_way",
    "idle",
    "sites",
    "levels",
    "out_of_service",
    "unplanned",
    "last_number",
    "acknowledged",
    "next_time",
)
"""Properties of a dispatcher that a state has."""

OWN: dict[str, Any] = {"number": {"type": ["integer"]}, "hold": TYPES["bool"]}
"""Fields of every event besides, as `Dispatcher.feed` takes them; `number` of every message."""


def list_fields(kind: str) -> tuple[dict[str, Any], list[str]]:
    """Return a message's fields with their types, and those that it must have."""
    if kind in ASKED:
        needed = [
            name for name, own in ASKED[kind].items() if "null" not in own["type"] or own is TIME
        ]
        return {**ASKED[kind], "number": OWN["number"]}, needed
    own = fields(events.EVENTS[kind])
    known = {field.name: TYPES[str(field.type)] for field in own}
    return {**known, **OWN}, [field.name for field in own if field.default is MISSING]


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of what a service reads."""
    kinds = {}
    for kind in (*events.EVENTS, *ASKED):
        known, needed = list_fields(kind)
        kinds[kind] = {
            "type": "object",
            "properties": {"kind": {"const": kind}, **known},
            "required": ["kind", *needed],
            "additionalProperties": False,
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
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise EventError(
            f"message: read {describe(text.strip())}; expected a JSON object"
        ) from None
    if not isinstance(message, dict):
        raise EventError(f"message: read {describe(message)}; expected a JSON object")
    kinds = (*events.EVENTS, *ASKED)
    kind = message.get("kind")
    if kind not in kinds:
        near = suggest_name(str(kind), kinds)
        raise EventError(f"kind: read {describe(kind)}; expected one of {', '.join(kinds)}{near}")
    known, needed = list_fields(kind)
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


CHECKS: dict[str, Callable[[Any], bool]] = {
    "number": is_real,
    "integer": is_whole,
    "string": lambda x: isinstance(x, str),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
}


class Service:
    """A dispatcher that is told by messages.

    An event counts once it is answered "Ok": it is with the operating system in the dispatcher's log then. A
    message that is refused has changed nothing.

    Parameters
    ----------
    dispatcher : Dispatcher
    state : str, optional
        Where `Save` writes.
    shadow : bool
        Give no orders: `Assign` and `Send` tell what the plant's own control has decided.
    log : str, optional
        The dispatcher's log, to be rotated as the machine's date changes; that needs a state.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        state: str | None = None,
        *,
        shadow: bool = False,
        log: str | None = None,
    ) -> None:
        self.dispatcher, self.state, self.shadow, self.log = dispatcher, state, shadow, log
        self._told_at, self._asked, self._failed = 0.0, False, False
        self._day = dispatcher.log_day

    def answer(self, text: str) -> Iterator[Message]:
        """Take in a message; give the orders that come of it, and at last its answer.

        Raises
        ------
        StorageError
            If the log cannot be written: what the plant is not answered it has to tell again.
        """
        number, self._told_at, self._asked, self._failed = None, time.monotonic(), False, False
        try:
            self._rotate()
            message = read_message(text)
            number = message.get("number")
            yield from self._take(message)
        except StorageError:
            raise
        except AcerlError as error:
            yield refuse_message(number, error)
        else:
            yield {"kind": "Ok", "number": number, "next_time": self.dispatcher.next_time}

    def is_due(self, now: float) -> bool:
        """Whether it has to ask itself: after quiet, or as something is due.

        Once that was refused, as of another clock, it waits for the next message.
        """
        due = self.dispatcher.next_time
        quiet = not self._asked and time.monotonic() - self._told_at >= QUIET
        is_idle = self._failed or self.shadow
        return not is_idle and (quiet or (due is not None and due <= now))

    def ask(self, now: float) -> Iterator[Message]:
        """Give the orders of a moment that nobody asked for, or why there can be none."""
        try:
            yield from self._decide(max(now, self.dispatcher.time))
        except StorageError:
            raise
        except AcerlError as error:
            self._failed = True
            yield refuse_message(None, error)
        self._asked = True

    def _rotate(self) -> None:
        """Begin a new log where the machine's date has changed; that of before has its date in its name."""
        day = self._day
        if self.log is None or self.state is None or day is None:
            return
        today = date.fromtimestamp(time.time())
        if day >= today:
            return
        path = Path(self.log)
        names = (f"{path.stem}.{day}{f'-{k}' * (k > 1)}{path.suffix}" for k in count(1))
        for kept in map(path.with_name, names):
            if not path_exists(kept) or kept.samefile(path):
                self.dispatcher.rotate(self.state, kept)
                self._day = today
                return

    def _decide(self, now: float) -> Iterator[Message]:
        for order in self.dispatcher.decide(now):
            yield show_order(order, now)

    def save(self) -> None:
        """Write the state, if there is a place for it."""
        if self.state is not None:
            self.dispatcher.save(self.state)

    def show(self) -> Message:
        """Return where vehicles are, and where each task is that has not ended."""
        own = self.dispatcher
        tasks = {
            name: task._asdict()
            for name, task in own.tasks().items()
            if task.state not in (DELIVERED, CANCELLED)
        }
        told = {**{name: getattr(own, name) for name in TOLD}, "tasks": tasks}
        return {**told, "followed": own.followed._asdict()} if self.shadow else told

    def _take(self, message: Message) -> Iterator[Message]:
        kind, dispatcher = message["kind"], self.dispatcher
        if kind in events.EVENTS:
            event = read_event(events.EVENTS[kind], message)
            hold, number = bool(message.get("hold", False)), message.get("number")
            dispatcher.feed(event, hold=hold, number=number)
        elif self.shadow and kind == "Decide":
            raise EventError("Decide: --shadow gives no orders; expected Assign or Send")
        elif self.shadow and kind in ("Assign", "Send"):
            own = {name: message[name] for name in ("task", "site") if name in message}
            found = dispatcher.follow(message["time"], message["vehicle"], **own)
            if found is not None:
                yield {"kind": FOLLOWED, **found._asdict()}
        elif kind == "Decide":
            yield from self._decide(message["time"])
        elif kind == "Assign":
            made = dispatcher.assign(message["time"], message["vehicle"], message["task"])
            yield show_order(made, message["time"])
        elif kind == "Send":
            sent = dispatcher.send(message["time"], message["vehicle"], message["site"])
            yield show_order(sent, message["time"])
        elif kind == "Acknowledge":
            dispatcher.acknowledge(message["number"])
        elif kind == "BeginDay":
            dispatcher.begin_day(message["start"])
        elif kind == "Policy":
            dispatcher.take_policy(read_policy(message))
        elif kind == "State":
            yield {"kind": "State", **self.show()}
        else:
            if self.state is None:
                raise EventError("Save: no --state to write; expected one")
            self.save()


def read_policy(message: Message) -> BasePolicy | str:
    """Return the policy of a message; a PolicyError if it has none that may be told."""
    name, file = message.get("name"), message.get("file")
    if (name is None) == (file is None):
        raise PolicyError("Policy: expected either a name or a file")
    if file is None:
        return find_policy_name(str(name), (*RULES, GENERAL))
    try:
        data = base64.b64decode(file, validate=True)
    except ValueError:
        raise PolicyError("Policy: file: expected the bytes of a policy's file in base64") from None
    return read_told_policy(data)


def refuse_message(number: int | None, error: AcerlError) -> Message:
    """Return the answer to a message that has changed nothing."""
    return {"kind": "Refused", "number": number, "why": " ".join(str(error).split())}


def show_order(order: events.Order, now: float) -> Message:
    """Return an order as a message: as the log has it, with its time, and whether it was given before."""
    return {**pack_order(order), "time": now, "repeated": order.repeated}
