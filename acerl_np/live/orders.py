"""What vehicles were told to do, and which of the last orders may not have reached the plant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from acerl_np.live import events
from acerl_np.live.events import Assignment, Charge, Event, Order, Park, Recall
from acerl_np.live.wire import ASSIGNED, CHARGE, ORDERS, PARK

PLACED = (events.VehiclePassed, events.VehicleParked, events.VehicleCharging)
"""Events that say where a vehicle is."""

SILENT = (events.MachineBusy, events.VehicleLevel)
"""Events by which alone no task can be given; a level that is higher than was believed opens a decision."""

ENDING = (events.VehicleIdle, events.VehicleBroke, events.VehicleRemoved)
"""Events after which a vehicle has nothing to give back."""

MOST_LATEST = 20
"""Orders that are kept as they were told."""

TOOK_PLACE = "TookPlace"
DECIDED = (*ORDERS, TOOK_PLACE)
"""Lines of a log that tell what was decided."""

FOLLOWED, ACKNOWLEDGED, FAILED = NOTED = "Followed", "Acknowledged", "Failed"
"""Lines of a log of which nothing on the floor comes."""

QUEUED, AWAY = "queued", "away"
"""Of an impossible order of the plant: its vehicle has another task first; it does what nobody knows."""

LISTED = ("time", "vehicle", "task", "site", "policy", "agrees", "then", "why")
"""What is kept of an order of the plant."""

MOST_KEPT = 10_000
"""Orders that a stream may begin with."""

MOST_LISTED = 100
"""Impossible orders of the plant that are listed; the log has all."""


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


class TookPlace(NamedTuple):
    """A vehicle that has taken the parking place at which it stands: nothing is ordered."""

    time: float
    vehicle: str
    site: str


class DayBegan(NamedTuple):
    """A new day from `start` on: what has arrived and been delivered before is forgotten."""

    time: float
    start: float


TOLD = {Given: "assignment", Recalled: "recall", Sent: "order", TookPlace: "place"}
"""How errors name these."""

Ordered = Given | Recalled | Sent | TookPlace
NoEvent = Ordered | DayBegan
Item = Event | NoEvent


class Followed(NamedTuple):
    """What a plant's own control has decided, in the shadow of which the dispatcher runs.

    Attributes
    ----------
    orders, agreed, impossible : int
        Orders that were compared with the policy's, those that were among these, and those that the model
        could not take as they were.
    last_impossible : tuple of dict
        The last 100 of these, as the log has them.
    queued : tuple of (str, str)
        Vehicles, and the tasks that they are to do after what they do.
    away : tuple of str
        Vehicles that do what the model cannot know: they are out of service until they are idle.
    """

    orders: int = 0
    agreed: int = 0
    impossible: int = 0
    last_impossible: tuple[dict[str, Any], ...] = ()
    queued: tuple[tuple[str, str], ...] = ()
    away: tuple[str, ...] = ()

    def add(self, line: dict[str, Any]) -> Followed:
        """Return it with an order of the plant more, as a line of the log has it."""
        line = {name: line[name] for name in LISTED}
        then, vehicle, last = line["then"], line["vehicle"], self.last_impossible
        new, is_compared = self.drop(vehicle, line["task"]), then != QUEUED
        return new._replace(
            orders=self.orders + is_compared,
            agreed=self.agreed + bool(line["agrees"]),
            impossible=self.impossible + bool(line["why"]),
            last_impossible=(*last, line)[-MOST_LISTED:] if line["why"] else last,
            queued=new.queued if is_compared else (*new.queued, (vehicle, line["task"])),
            away=tuple(dict.fromkeys((*self.away, vehicle))) if then == AWAY else self.away,
        )

    def drop(self, vehicle: str, task: str | None) -> Followed:
        """Return it without an order that was queued.

        Parameters
        ----------
        vehicle : str
        task : str or None
        """
        return self._replace(queued=tuple(x for x in self.queued if x != (vehicle, task)))


@dataclass
class Orders:
    """What a dispatcher has ordered, and when it decides again.

    Nothing of it changes in place.

    Attributes
    ----------
    decisions : int
        Assignments so far: the draws of the next one are keyed by that.
    lines : int
        What the log has had; without a log, what one would have had.
    opens : bool
        Whether something has happened since the last decision that opens another one.
    asked : float
        When decisions were last made, s.
    next_errand : float
        When something may come of levels or parking, s.
    last : int
        Number of the last order.
    given : dict of str to Assignment, Park or Charge
        The last order of each vehicle, but for what it is to give back.
    recalls : tuple of Recall
        Those that the plant has not answered.
    owed : set of int
        Numbers of those that are to be returned by the next decision if they still hold.
    followed : Followed
        What the plant's own control has decided.
    acknowledged : int or None
        Number of the last order that a consumer has acknowledged; None before any.
    unacknowledged : tuple of dict
        Those after it, as the log has them, at most `MOST_KEPT`; none as long as nobody acknowledges.
    latest : tuple of dict
        The last orders as lines of a log have them.
    queue : tuple
        How many tasks waited and were late over the day, as `watching.sample_queue` has it.
    """

    decisions: int = 0
    lines: int = 0
    opens: bool = True
    asked: float = -math.inf
    next_errand: float = math.inf
    last: int = 0
    given: dict[str, Assignment | Park | Charge] = field(default_factory=dict)
    recalls: tuple[Recall, ...] = ()
    owed: set[int] = field(default_factory=set)
    followed: Followed = field(default_factory=Followed)
    acknowledged: int | None = None
    unacknowledged: tuple[dict[str, Any], ...] = ()
    latest: tuple[dict[str, Any], ...] = ()
    queue: tuple[tuple[float, int, int], ...] = ()

    def add(self, order: Order) -> None:
        """Note an order."""
        self.decisions += isinstance(order, Assignment)
        self.last = order.number
        name = order.vehicle
        if isinstance(order, Recall):
            self.given = {key: made for key, made in self.given.items() if key != name}
            self.recalls = (*self.recalls, order)
        else:
            self.given = {**self.given, name: order}
        if self.followed.queued and isinstance(order, Assignment):
            self.followed = self.followed.drop(name, order.task)

    def keep(self, line: dict[str, Any]) -> None:
        """Keep an order, as the log has it: the last ones, and those that are not acknowledged."""
        self.latest = (*self.latest, line)[-MOST_LATEST:]
        if self.acknowledged is not None:
            self.unacknowledged = (*self.unacknowledged, line)[-MOST_KEPT:]

    def acknowledge(self, number: int) -> None:
        """Note that a consumer has all orders until this number."""
        self.acknowledged = number
        self.unacknowledged = tuple(x for x in self.unacknowledged if x["number"] > number)

    def list_all(self) -> list[Order]:
        """Return the orders that may hold, by number: one that does not now may again by a late event."""
        return sorted((*self.given.values(), *self.recalls), key=lambda made: made.number)

    def owe(self, orders: Iterable[Order]) -> None:
        """Let the next decision return orders, if they still hold then."""
        self.owed = self.owed | {made.number for made in orders}

    def take_owed(self) -> list[Order]:
        """Return the orders owed, which are so no more."""
        owed, self.owed = self.owed, set()
        return [made for made in self.list_all() if made.number in owed]

    def settle(self, event: Event) -> None:
        """Forget the recalls that an event answers or ends, and note whether it opens a decision."""
        if isinstance(event, events.RecallAnswered):
            answered = event.vehicle, event.task
            self.recalls = tuple(made for made in self.recalls if made[:2] != answered)
        elif self.recalls and isinstance(event, ENDING):
            self.recalls = tuple(made for made in self.recalls if made.vehicle != event.vehicle)
        if self.followed.away and isinstance(event, events.VehicleBack | events.VehicleRemoved):
            away = tuple(name for name in self.followed.away if name != event.vehicle)
            self.followed = self.followed._replace(away=away)
        if isinstance(event, PLACED):
            # It does if what has ended then makes one possible.
            self.asked = min(self.asked, float(event.time) - 1.0)
        elif isinstance(event, events.TaskArrived):
            self.opens |= not event.after
        elif not isinstance(event, SILENT):
            self.opens |= not isinstance(event, events.RecallAnswered) or not event.done


def pack_item(item: Item) -> dict[str, Any]:
    """Return what happened as plain values, with its kind."""
    values = item._asdict() if isinstance(item, NoEvent) else vars(item)
    return {"kind": type(item).__name__, **values}


def repeat(order: Order) -> Order:
    """Return an order as one that may have been returned before."""
    if not isinstance(order, Assignment):
        return order._replace(repeated=True)
    again = copy(order)
    again.repeated = True
    return again


def read_item(line: dict[str, Any], time: float) -> Ordered:
    """Return what happens by an order as a line of a log has it; a KeyError if it lacks a field."""
    kind, vehicle = line["kind"], line["vehicle"]
    if kind in (PARK, CHARGE):
        return Sent(time, vehicle, line["site"], kind == CHARGE)
    if kind == TOOK_PLACE:
        return TookPlace(time, vehicle, line["site"])
    return (Given if kind == ASSIGNED else Recalled)(time, vehicle, line["task"])
