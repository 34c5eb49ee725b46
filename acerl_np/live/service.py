"""A dispatcher as a service: messages in, answers and orders out, each a JSON object on a line."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from datetime import date
from itertools import count
from pathlib import Path

from acerl_np.live import events
from acerl_np.live.dispatcher import Dispatcher
from acerl_np.live.orders import FOLLOWED
from acerl_np.live.saving import read_told_policy
from acerl_np.live.states import CANCELLED, DELIVERED
from acerl_np.live.wire import Message, read_event, read_message, refuse_message, show_order
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.rules import GENERAL, RULES, find_policy_name
from acerl_np.support.errors import AcerlError, EventError, PolicyError, StorageError
from acerl_np.support.files import path_exists

QUIET = 0.05
"""Seconds without a message after which a service with the clock on the wall asks itself."""

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
