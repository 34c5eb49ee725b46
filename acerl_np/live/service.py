"""The core of a service: messages in, answers and orders out. It knows no clock, no thread and no door."""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from acerl_np.live import events, watching
from acerl_np.live.dispatcher import Dispatcher
from acerl_np.live.orders import FOLLOWED
from acerl_np.live.saving import read_told_policy
from acerl_np.live.states import CANCELLED, DELIVERED, SLACK
from acerl_np.live.wire import Message, read_event, read_message, refuse_message, show_order
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.rules import GENERAL, RULES, find_policy_name
from acerl_np.problem.layout import name_nodes
from acerl_np.support.errors import (
    AcerlError,
    EventError,
    PolicyError,
    StorageError,
    describe,
    make_printable,
)
from acerl_np.support.fields import MOST as LARGEST
from acerl_np.support.files import path_exists

MOST_FAILURES = 3
"""Questions that fail in a row, after which a service ends."""

SAVE_MESSAGES, SAVE_SECONDS = 2_000, 300.0
"""Messages and seconds after which the state is written anew, whichever comes first."""

RETRY = 60.0
"""Seconds after which writing the state, or a new log, is tried again."""

TOLD = (
    "waiting",
    "planned",
    "under_way",
    "idle",
    "sites",
    "levels",
    "out_of_service",
    "closed",
    "unplanned",
    "last_number",
    "acknowledged",
    "next_time",
)
"""Properties of a dispatcher that a state has."""


class Service:
    """A dispatcher that is told by messages; `now` is always the machine's time, seconds since 1970.

    An event counts once it is answered "Ok": it is with the operating system in the dispatcher's log then. A
    message that is refused has changed nothing.

    Parameters
    ----------
    dispatcher : Dispatcher
    state : str, optional
        Where the state is written: by `Save`, and by itself.
    shadow : bool
        Give no orders: `Assign` and `Send` tell what the plant's own control has decided.
    log : str, optional
        The dispatcher's log, to be rotated as the machine's date changes; that needs a state.
    ahead : float, optional
        s that times of messages may be after `now`; None where they are of another clock.
    slack : float
        s beyond twice the reckoned time, after which an order is overdue.
    names : {"site", "node"}
        What sites are called in messages of the service: by their ids, or by their first aliases.
    say : Callable, optional
        Takes a line for who runs the service.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        state: str | None = None,
        *,
        shadow: bool = False,
        log: str | None = None,
        ahead: float | None = None,
        slack: float = SLACK,
        names: str = "site",
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.dispatcher, self.state, self.shadow, self.log = dispatcher, state, shadow, log
        self.ahead, self.slack, self.say = ahead, slack, say
        self.names = name_nodes(dispatcher.layout) if names == "node" else {}
        self.off_clock: dict[str, float] = {}
        """Vehicles whose last message was refused for its time, and how far that is ahead, s."""
        self.asked: float | None = None
        """When the service asked itself last."""
        self.n_failures = self.in_a_row = 0
        """Decisions that have failed by no fault of a message; questions that have since one did not."""
        self.log_trouble: str | None = None
        self.state_trouble: str | None = None
        """Why log and state cannot be written at present."""
        log_file = dispatcher.desk.log
        self._day = None if log_file is None else log_file.day
        self._n_unsaved, self._saved, self._again = 0, math.inf, -math.inf

    def answer(
        self, text: str, now: float = 0.0, policy: BasePolicy | str | AcerlError | None = None
    ) -> Iterator[Message]:
        """Take in a message; give the orders that come of it, and at last its answer.

        `policy` is that of the message, or its fault, if it was checked before.

        Raises
        ------
        StorageError
            If the log cannot be written: what the plant is not answered it has to tell again.
        """
        number = None
        self._n_unsaved += 1
        try:
            message = read_message(text)
            number = message.get("number")
            self._check_ahead(message, now)
            with self._logging():
                yield from self._take(message, policy, now)
        except StorageError:
            raise
        except AcerlError as error:
            yield refuse_message(number, error)
        except Exception as error:  # a bug, or a policy of one's own
            yield refuse_message(number, AcerlError(self._fail(error)))
        else:
            if message["kind"] in events.EVENTS:
                self.off_clock.pop(message.get("vehicle", ""), None)
            yield {"kind": "Ok", "number": number, "next_time": self.dispatcher.next_time}

    def ask(self, now: float) -> Iterator[Message]:
        """Give the orders of a moment that nobody asked for, or why there can be none.

        `in_a_row` counts how often that has failed.

        Raises
        ------
        StorageError
            If the log cannot be written; the next question gives what was decided.
        """
        self.asked = now
        try:
            with self._logging():
                yield from self._decide(max(now, self.dispatcher.time))
        except StorageError:
            raise
        except EventError as error:  # of another clock
            yield refuse_message(None, error)
        except Exception as error:
            self.in_a_row += 1
            self._fail(error)
            return
        self.in_a_row = 0

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        """Let nothing be done before the log has all that was; say once that it cannot be written."""
        try:
            if self.log_trouble is not None:
                self.dispatcher.desk.flush()
            yield
        except StorageError as error:
            if self.log_trouble is None:
                self.say(str(error))
            self.log_trouble = str(error)
            raise
        self.log_trouble = None

    def _fail(self, error: Exception) -> str:
        """Say that a decision failed, by no fault of a message, here and in the log; return that."""
        self.n_failures += 1
        why = (
            f"failed: {type(error).__name__}: {make_printable(' '.join(str(error).split())[:400])}"
        )
        self.say(why)
        with contextlib.suppress(StorageError):
            self.dispatcher.desk.note_failure(why)
        return why

    def _check_ahead(self, message: Message, now: float) -> None:
        """Refuse a message of a clock that is ahead; one that is behind is the dispatcher's to refuse."""
        time, own = message.get("time", message.get("start")), self.dispatcher
        if self.ahead is None or time is None:
            return
        vehicle, lead = message.get("vehicle"), min(time, LARGEST) - now
        is_ahead = lead > self.ahead
        is_off = is_ahead or time < own.time - own.lateness
        if is_off and message["kind"] in events.EVENTS and vehicle in own.sites:
            self.off_clock[vehicle] = round(lead, 3)
        if is_ahead:
            whose = "" if vehicle is None else f" of vehicle '{describe(vehicle)}'"
            raise EventError(
                f"{message['kind']}{whose} at {describe(time)} s: {round(lead, 1)} s ahead of this service's "
                f"clock; expected at most {self.ahead:g} s (--clock wall:SECONDS)"
            )

    def tend(self, now: float) -> None:
        """Begin a new log as the date changes, and write the state now and then.

        Where that fails it is said once, and tried again; the day goes on.
        """
        if 0.0 < self._again - now <= RETRY:
            return
        try:
            self._rotate(now)
            is_late = self._n_unsaved > 0 and not 0.0 <= now - self._saved < SAVE_SECONDS
            if self.state is not None and (is_late or self._n_unsaved >= SAVE_MESSAGES):
                self.save(now)
        except (AcerlError, OSError) as error:
            if self.state_trouble != str(error):
                self.say(f"{error}; it is tried again each {RETRY:g} s")
            self.state_trouble, self._again = str(error), now + RETRY
        else:
            self.state_trouble = None

    def _rotate(self, now: float) -> None:
        """Begin a new log where the machine's date has changed; that of before has its date in its name."""
        day = self._day
        if self.log is None or self.state is None or day is None:
            return
        today = date.fromtimestamp(now)
        if day >= today:
            return
        path = Path(self.log)
        names = (f"{path.stem}.{day}{f'-{k}' * (k > 1)}{path.suffix}" for k in count(1))
        for kept in map(path.with_name, names):
            if not path_exists(kept):
                self.dispatcher.rotate(self.state, kept)
                self._day = today
                return

    def _decide(self, now: float) -> Iterator[Message]:
        for order in self.dispatcher.decide(now, without=self.off_clock):
            yield self._name(show_order(order, now))

    def _name(self, message: Message) -> Message:
        """Return a message with the name of its site that is asked for."""
        if message.get("site") is None:
            return message
        return {**message, "site": self.names.get(message["site"], message["site"])}

    def save(self, now: float = 0.0) -> None:
        """Write the state, if there is a place for it."""
        if self.state is not None:
            self.dispatcher.save(self.state)
            self._n_unsaved, self._saved = 0, now

    def show(self, now: float | None = None) -> Message:
        """Return where vehicles are, and where each task is that has not ended."""
        own = self.dispatcher
        tasks = {
            name: task._asdict()
            for name, task in own.tasks().items()
            if task.state not in (DELIVERED, CANCELLED)
        }
        told = {**{name: getattr(own, name) for name in TOLD}, "tasks": tasks}
        told["missing_numbers"] = [(run[0], run[-1]) for run in own.missing_numbers]
        told["sites"] = {v: self.names.get(site, site) for v, site in own.sites.items()}
        told |= {"overdue": self.list_overdue(now), "off_clock": self.off_clock}
        return {**told, "followed": own.followed._asdict()} if self.shadow else told

    def list_overdue(self, now: float | None) -> dict[str, str]:
        """Return the tasks that should have been delivered long ago, and their vehicles."""
        own = self.dispatcher
        time = own.time if self.ahead is None or now is None else now
        return watching.list_overdue(own.desk.floor, time, self.slack)

    def show_health(self, now: float) -> dict[str, Any]:
        """Return whether the service dispatches, and what tells; it has no names, as anybody may read it."""
        wall = self.ahead is not None
        since = watching.find_neglected(self.dispatcher.desk.floor, self.off_clock)
        time = now if wall else self.dispatcher.time
        return {
            "ok": self.in_a_row == 0 and self.log_trouble is None,
            "asked": self.asked,
            "neglected": None if since is None else round(max(0.0, time - since), 3),
            "overdue": len(self.list_overdue(now)),
            "off_clock": len(self.off_clock),
            "failures": self.n_failures,
            "log": "ok" if self.log_trouble is None else "cannot be written",
            "state": "ok" if self.state_trouble is None else "cannot be written",
        }

    def _take(
        self, message: Message, policy: BasePolicy | str | AcerlError | None, now: float
    ) -> Iterator[Message]:
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
                yield self._name({"kind": FOLLOWED, **found._asdict()})
        elif kind == "Decide":
            yield from self._decide(message["time"])
        elif kind == "Assign":
            made = dispatcher.assign(message["time"], message["vehicle"], message["task"])
            yield self._name(show_order(made, message["time"]))
        elif kind == "Send":
            sent = dispatcher.send(message["time"], message["vehicle"], message["site"])
            yield self._name(show_order(sent, message["time"]))
        elif kind == "Acknowledge":
            dispatcher.acknowledge(message["number"])
        elif kind == "BeginDay":
            dispatcher.begin_day(message["start"])
        elif kind == "Policy":
            if isinstance(policy, AcerlError):
                raise policy
            dispatcher.take_policy(read_policy(message) if policy is None else policy)
        elif kind == "State":
            yield {"kind": "State", **self.show(now)}
        else:
            if self.state is None:
                raise EventError("Save: no --state to write; expected one")
            try:
                self.save(now)
            except StorageError as error:
                raise EventError(f"Save: {error}") from error


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
