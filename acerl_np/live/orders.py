"""What vehicles were told to do, and which of the last orders may not have reached the plant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, NamedTuple

from acerl_np.live import events
from acerl_np.live.events import Assignment, Charge, Event, Order, Park, Recall

ENDING = (events.VehicleIdle, events.VehicleBroke, events.VehicleRemoved)
"""Events after which a vehicle has nothing to give back."""

ASSIGNED = "Assigned"
"""What a log calls an assignment; other orders as their classes."""


class Given(NamedTuple):
    """An assignment that has been given."""

    time: float
    vehicle: str
    task: str


class Recalled(NamedTuple):
    """A task that a vehicle has been told to give back."""

    time: float
    vehicle: str
    task: str


class Sent(NamedTuple):
    """A vehicle that has been sent to a place, to charge or to park."""

    time: float
    vehicle: str
    site: str
    charges: bool


class DayBegan(NamedTuple):
    """A new day from `start` on: what has arrived and been delivered before is forgotten."""

    time: float
    start: float


TOLD = {Given: "assignment", Recalled: "recall", Sent: "order"}
"""How errors name these."""

Ordered = Given | Recalled | Sent
NoEvent = Ordered | DayBegan
Item = Event | NoEvent


class Orders:
    """The orders of a dispatcher. No set and no dict changes; others take its place.

    Attributes
    ----------
    last : int
        Number of the last order.
    given : dict of str to Assignment, Park or Charge
        The last order of each vehicle, but for what it is to give back.
    recalls : dict of str to list of Recall
        By vehicle, those that the plant has not answered.
    owed : set of int
        Numbers of those that are to be returned by the next decision if they still hold.
    """

    def __init__(self) -> None:
        self.last = 0
        self.given: dict[str, Assignment | Park | Charge] = {}
        self.recalls: dict[str, list[Recall]] = {}
        self.owed: set[int] = set()

    def add(self, order: Order) -> None:
        """Note an order."""
        self.last = order.number
        name = order.vehicle
        if isinstance(order, Recall):
            self.given = {key: made for key, made in self.given.items() if key != name}
            self.recalls = {**self.recalls, name: [*self.recalls.get(name, ()), order]}
        else:
            self.given = {**self.given, name: order}

    def owe(self, orders: Iterable[Order]) -> None:
        """Let the next decision return orders."""
        self.owed = self.owed.union(made.number for made in orders)

    def owe_all(self) -> None:
        """Let the next decision return all that holds then."""
        self.owe([*self.given.values(), *self._list_recalls()])

    def take_owed(self, holds: Callable[[Assignment | Park | Charge], bool]) -> list[Order]:
        """Return, as repeated, the orders owed that hold; a recall does until it is answered."""
        kept = [made for made in self.given.values() if made.number in self.owed and holds(made)]
        recalls = [made for made in self._list_recalls() if made.number in self.owed]
        self.owed = set()
        found = map(repeat, (*kept, *recalls))
        return sorted(found, key=lambda made: made.number)

    def settle(self, event: Event) -> None:
        """Forget the recalls that an event answers, or that have nothing to say any more."""
        if isinstance(event, events.RecallAnswered):
            left = self.recalls.get(event.vehicle, ())
            left = [made for made in left if made.task != event.task]
            self.recalls = {**self.recalls, event.vehicle: left}
        elif self.recalls and isinstance(event, ENDING):
            known = self.recalls.items()
            self.recalls = {name: made for name, made in known if name != event.vehicle}

    def _list_recalls(self) -> list[Recall]:
        return [made for items in self.recalls.values() for made in items]

    def pack(self) -> list[dict[str, Any]]:
        """Return all as plain values."""
        # An assignment that does not hold now may again: a late event tells otherwise.
        kept = sorted((*self.given.values(), *self._list_recalls()), key=lambda made: made.number)
        return [{**pack_order(made), "owed": made.number in self.owed} for made in kept]

    def unpack(self, data: Iterable[dict[str, Any]], last: int) -> None:
        """Take over plain values; an error of `UNUSABLE` if they are none."""
        for line in data:
            order = unpack_order(line)
            self.add(order)
            if line["owed"]:
                self.owe([order])
        self.last = last


def repeat(order: Order) -> Order:
    """Return an order as one that may have been returned before."""
    if not isinstance(order, Assignment):
        return order._replace(repeated=True)
    again = copy(order)
    again.repeated = True
    return again


def pack_order(order: Order) -> dict[str, Any]:
    """Return an order as a line of a log has it, but for its time."""
    line = {"kind": type(order).__name__, **order._asdict()}
    if isinstance(order, Assignment):
        line |= {name: getattr(order, name) for name in ("number", "finish", "futures")}
        line["kind"] = ASSIGNED
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
    if kind == "Recall":
        return Recall(vehicle, str(line["task"]), reason, number)
    own = Charge if kind == "Charge" else Park
    return own(vehicle, str(line["site"]), reason, number)
