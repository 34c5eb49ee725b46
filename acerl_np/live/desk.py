"""What a dispatcher knows and has ordered, and its log: each change happens wholly, or not at all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from functools import wraps
from typing import Any, TypeVar, cast

from acerl_np.live import events
from acerl_np.live import orders as told
from acerl_np.live.decision import Decision
from acerl_np.live.events import Assignment, Charge, Event, Order, Park, Recall
from acerl_np.live.feed import Feed
from acerl_np.live.floor import Floor, check_record, naming
from acerl_np.live.log import DAY_BEGAN, AuditLog
from acerl_np.live.watching import sample_queue
from acerl_np.live.wire import pack_order, pack_time
from acerl_np.support.errors import EventError, EventWarning, StorageError, describe, refuse
from acerl_np.support.fields import is_real, is_whole
from acerl_np.support.sharing import Method

MANUAL = "manual"
"""In place of a rule where somebody else has decided."""

Made = TypeVar("Made", bound=Order)


def undone(method: Method) -> Method:
    """Let a method of a desk that raises anything, Ctrl-C among it, leave it as it was.

    But for a StorageError: what happened has, and only the log lacks it so far.
    """

    @wraps(method)
    def enter(desk: Any, /, *given: Any, **named: Any) -> Any:
        kept = vars(desk.orders).copy(), desk.feed.mark()
        try:
            return method(desk, *given, **named)
        except StorageError:
            raise
        except BaseException as error:
            try:
                desk.go_back(*kept, error)
            except BaseException as another:  # Ctrl-C in the midst of it
                desk.go_back(*kept, another)
                raise
            raise

    return cast(Method, enter)


class Desk:
    """What is known and ordered at a moment; what happens and is ordered also goes to the log.

    A copy has no log, which goes on with the original.

    Attributes
    ----------
    floor : Floor
    feed : Feed
    orders : Orders
    log : AuditLog or None
    """

    def __init__(self, floor: Floor, lateness: float, ahead: float) -> None:
        self.floor = floor
        self.feed = Feed(floor, lateness, ahead)
        self.orders = told.Orders()
        self.log: AuditLog | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A log is an open file, whose number may be that of another one when the copy writes.
        return {**vars(self), "log": None}

    def go_back(
        self, orders: dict[str, Any], mark: tuple[Any, ...], error: BaseException | None
    ) -> None:
        """Be again as before, after an error if there was one."""
        vars(self.orders).update(orders)
        self.feed.undo(mark, error)

    def note(self, kind: str, **values: Any) -> None:
        """Add a line to the log, and count it; lines are counted without a log, too.

        The count says what a state has seen: a line replaces all that have its count or a higher one, which
        came after the state from which a dispatcher was started anew.
        """
        line, self.orders.lines = self.orders.lines, self.orders.lines + 1
        if self.log is not None:
            self.log.note(kind, line=line, **values)

    def flush(self) -> None:
        """Hand lines to the log that it could not write before; a StorageError if it still cannot."""
        if self.log is not None:
            self.log.flush()

    # What happens

    def check_time(self, time: float, what: str) -> float:
        """Return the time of a question; an EventError if it cannot be."""
        if not is_real(time):
            raise EventError(f"{what}: read time {describe(time)}; expected seconds")
        self.feed.check_time(what, time)
        if time < self.feed.time:
            raise EventError(
                f"{what} at {time} s: before the last event at {self.feed.time} s; "
                "expected times in order"
            )
        return float(time)

    def move_to(self, now: float, what: str) -> float:
        """Let time pass until a question, and return it."""
        now = self.check_time(now, what)
        if self.floor.next_release <= now:
            self._release(now)
        self.feed.time = now
        return now

    @undone
    def _release(self, now: float) -> None:
        self.feed.move_to(now)
        self.keep_release()

    def keep_release(self) -> None:
        """Note that a task that was held back begins to wait: the floor forgets when, if it is replayed."""
        self.orders.opens |= self.orders.asked < self.floor.last_release

    @undone
    def begin_day(self, start: float) -> None:
        """Set time zero, as `Dispatcher.begin_day`."""
        clock, ahead = self.feed.time, self.feed.ahead
        if start < clock - ahead and math.isfinite(clock):
            expected = f"seconds from {clock - ahead} on, {ahead:,g} s before the latest time"
            refuse("begin_day", start, expected, EventError)
        self.set_day(start)
        self.note(DAY_BEGAN, start=start, clock=pack_time(clock))

    def set_day(self, start: float) -> None:
        """Set time zero; before the latest time, the time goes back, and all is asked anew."""
        is_back, orders = start < self.feed.time, self.orders
        self.feed.begin_day(start)
        if is_back:
            orders.opens, orders.asked = True, min(orders.asked, start)
            orders.next_errand = min(orders.next_errand, start)
            orders.queue = tuple(sample for sample in orders.queue if sample[0] <= start)

    @undone
    def take(self, event: Event, *, hold: bool, number: int | None) -> None:
        """Take in what has happened, as `Dispatcher.feed`, which has made sure that it is an event."""
        self.feed.check_time(type(event).__name__, event.time)
        queue, mark = sample_queue(self.orders.queue, event.time, self.floor), self.feed.mark()
        gone = self.feed.expire(max(self.feed.time, float(event.time)))
        name = event.vehicle if isinstance(event, events.VehicleLevel) else None
        times = () if name is None else (self.feed.time, event.time)
        believed = [self.floor.believe_level(name, time) for time in times]
        with naming(event):
            is_new = self.feed.is_new(number)
            if is_new:
                check_record(event)
        entry = self.feed.take(event, holds=bool(hold), told=number) if is_new else None
        if entry is None:
            self.feed.undo(mark)  # no line tells of what is ignored
            self.flush()  # when it came first, it may not have been written
            return
        self.orders.settle(event)
        if isinstance(event, events.VehicleLevel) and entry.is_settled:
            self._compare_level(event, *believed)
        self.keep_release()
        if number is not None:
            self.feed.numbers = self.feed.numbers.add(number)
        self.orders.queue = queue
        self._note_event(event, number, hold=hold, gone=gone)

    def _compare_level(self, event: events.VehicleLevel, before: float, believed: float) -> None:
        """Note whether a level opens decisions, and warn of one that has fallen far.

        `before` and `believed` is what was reckoned with at the latest time, and at that of the event.
        """
        level, battery = self.floor.read_level(event)
        self.orders.opens |= level > before and self.floor.fleet[event.vehicle].task is None
        if believed - level > battery.full / 2:
            warnings.warn(
                f"VehicleLevel at {event.time} s: vehicle '{event.vehicle}' has {level:g} of "
                f"{battery.capacity:,}; {believed:.0f} were expected; a share is told by percent=",
                EventWarning,
                stacklevel=6,
            )

    def _note_event(
        self, event: Event, number: int | None, *, hold: bool, gone: Iterable[Event]
    ) -> None:
        """Add an event to the log, with those that are held no more."""
        more: dict[str, Any] = {} if number is None else {"number": number}
        if hold:
            more["hold"] = True
        if gone:
            more["expired"] = [told.pack_item(item) for item in gone]
        if self.feed.time != event.time:
            more["clock"] = self.feed.time
        self.note(type(event).__name__, **vars(event), **more)

    # What is ordered

    @undone
    def assign(
        self, now: float, found: Decision, reason: events.Explanation | None = None
    ) -> Assignment:
        """Carry out what has been decided."""
        task = self.floor.carry(found.vehicle, found.position, now)
        vehicle = self.floor.layout.vehicles[found.vehicle].id
        finish, number = self.floor.vehicles[found.vehicle].finish, self.orders.last + 1
        made = Assignment(vehicle, task, found.rule, found.futures, finish, reason, number)
        return self._note_order(told.Given(now, vehicle, task), made)

    @undone
    def assign_by_hand(self, now: float, vehicle: str, task: str) -> Assignment:
        """Assign as somebody else has decided; an EventError if it cannot be."""
        now = self.move_to(now, "assign")
        with naming(f"assign at {now} s"):
            v, position = self.floor.check_assignment(vehicle, task)
            self.floor.check_way(v, self.floor.tasks[task].event.pickup)
        return self.assign(now, Decision(v, position, MANUAL, 0))

    @undone
    def recall(self, now: float, v: int, reason: str) -> Recall:
        """Let a vehicle give its task back."""
        vehicle, task = self.floor.layout.vehicles[v].id, self.floor.vehicles[v].task
        assert task is not None
        self.floor.turn(v, now)
        order = Recall(vehicle, task, reason, self.orders.last + 1)
        return self._note_order(told.Recalled(now, vehicle, task), order)

    @undone
    def send(self, now: float, v: int, place: int, charges: bool, reason: str) -> Park | Charge:
        """Send a vehicle to a place."""
        vehicle, site = self.floor.layout.vehicles[v].id, self.floor.layout.sites[place].id
        self.floor.send(v, charges, place, now)
        order = (Charge if charges else Park)(vehicle, site, reason, self.orders.last + 1)
        return self._note_order(told.Sent(now, vehicle, site, charges), order)

    @undone
    def take_place(self, now: float, v: int, place: int) -> None:
        """Let a vehicle have the parking place at which it stands, as kernels say."""
        sites, name = self.floor.layout.sites, self.floor.layout.vehicles[v].id
        taken = told.TookPlace(now, name, sites[place].id)
        self.floor.apply(taken)
        self.feed.give(taken)
        self.note(told.TOOK_PLACE, **taken._asdict())

    @undone
    def send_by_hand(self, now: float, vehicle: str, site: str) -> Park | Charge:
        """Send as somebody else has decided; an EventError if it cannot be."""
        now = self.move_to(now, "send")
        with naming(f"send at {now} s"):
            v, place, charges = self.floor.check_errand(vehicle, site)
        return self.send(now, v, place, charges, MANUAL)

    def _note_order(self, given: told.Ordered, order: Made) -> Made:
        """Note an order that was carried out, also in the log; it is owed until that is done."""
        self.feed.give(given)
        self.orders.add(order)
        line = {**pack_order(order), "time": given.time}
        self.orders.keep(line)
        owed = self.orders.owed
        self.orders.owe([order])
        self.note(**line)
        self.orders.owed = owed
        return order

    @undone
    def acknowledge(self, number: int) -> None:
        """Note that a consumer has all orders until this number, as `Dispatcher.acknowledge`."""
        last, before = self.orders.last, self.orders.acknowledged
        if not is_whole(number) or not 0 <= number <= last:
            refuse("Acknowledge: number", number, f"0 to {last}, the last order's", EventError)
        if before is None or number > before:
            self.orders.acknowledge(int(number))
            self.note(told.ACKNOWLEDGED, number=int(number), time=self._time)
        self.flush()

    @property
    def _time(self) -> float:
        """The latest time, or that at which the day begins before any, s."""
        return self.feed.time if math.isfinite(self.feed.time) else self.floor.day.start

    def note_failure(self, why: str) -> None:
        """Note why a decision failed; nothing else comes of it."""
        self.note(told.FAILED, time=self._time, why=why)

    def take_owed(self) -> list[Order]:
        """Return, as repeated, those of the orders owed that hold and that nobody has confirmed."""
        if not self.orders.owed:
            return []
        self.flush()
        return [told.repeat(made) for made in self.orders.take_owed() if self._holds(made)]

    def _holds(self, made: Order) -> bool:
        """Whether an order is as open as when it was made; a recall is until it is answered."""
        if isinstance(made, Recall):
            return True
        own = self.floor.fleet.get(made.vehicle)
        if own is None or own.is_confirmed:
            return False
        if isinstance(made, Assignment):
            return own.task == made.task
        return own.way is not None and self.floor.layout.sites[own.way.end].id == made.site
