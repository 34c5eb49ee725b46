"""Events in the order of their own times: late ones are settled where they belong, repeated ones ignored."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

from acerl_np.live.events import Event, TaskArrived, VehicleLevel, VehiclePassed
from acerl_np.live.floor import Floor, name_item
from acerl_np.live.orders import DayBegan, Item, NoEvent, Ordered
from acerl_np.live.parts import Situation
from acerl_np.support.errors import EventError, refuse

LATE = 5.0
"""s that an event may be late, unless the dispatcher is told otherwise."""

AHEAD = 604_800.0
"""s that a time may be after all that is known, unless the dispatcher is told otherwise: seven days."""

MOST_EXPIRED = 100
"""Events that are kept in `Feed.expired`."""

MOST_RUNS = 1_000
"""Runs of the plant's numbers that are known, the last ones: between them are gaps."""

STATE = (
    *("numbers", "expired", "time", "base", "entries", "_seen", "_number", "_first_held"),
    *("_middle", "_n_middle", "_middle_time"),
)
"""Attributes of a `Feed` that change."""

get_state = attrgetter(*STATE)  # not `vars`, after which attributes are slower


@dataclass(order=True, slots=True)
class Entry:
    """What happened, at its place in the order: by its time, and of equal times what came first."""

    time: float
    """s; of an event that came after an order to its vehicle or of its task, that of the order."""
    number: int
    item: Item
    holds: bool = False
    """Whether it is kept though it cannot be yet."""
    is_settled: bool = True
    """Whether it could be."""
    told: int | None = None
    """The plant's own number of the event."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers that have come, as the ends of their runs: a few, however many numbers there are."""

    ends: tuple[int, ...] = ()
    first: int | None = None
    """Of those before it nothing is known any more, as there were too many runs; None: all are known."""

    def __contains__(self, number: int) -> bool:
        return bisect_right(self.ends, number) % 2 == 1

    def is_forgotten(self, number: int) -> bool:
        """Whether nobody knows any more if a number has come."""
        return self.first is not None and number < self.first

    def add(self, number: int) -> Numbers:
        """Return them with a number."""
        return self if number in self else self.turn(number)

    def turn(self, number: int) -> Numbers:
        """Return them with a number, or without it if it was among them; very old runs are forgotten."""
        if self.is_forgotten(number):
            return self
        k, m = bisect_left(self.ends, number), bisect_right(self.ends, number + 1)
        # An end that was there already is none any more.
        new = tuple(sorted({number, number + 1} ^ {*self.ends[k:m]}))
        ends = self.ends[:k] + new + self.ends[m:]
        if len(ends) <= 2 * MOST_RUNS:
            return Numbers(ends, self.first)
        return Numbers(ends[-2 * MOST_RUNS :], ends[-2 * MOST_RUNS])

    @property
    def last(self) -> int | None:
        """The highest, None before any."""
        return self.ends[-1] - 1 if self.ends else None

    @property
    def missing(self) -> tuple[range, ...]:
        """Those between the first and the last that are known, and have not come."""
        return tuple(map(range, self.ends[1::2], self.ends[2::2]))


class Feed:
    """What has happened lately, and the situation before that.

    Attributes
    ----------
    lateness, ahead : float
        s that an event may be late; s that a time may be after all that is known.
    time : float
        Latest of all events and questions, s.
    base : Situation
        Before the first entry.
    entries : list of Entry
        In order; all of the last `lateness` seconds, and a few before them.
    numbers : Numbers
        The plant's own, of the events that were taken in.
    expired : tuple of Event
        The last of those that were held in vain.
    """

    def __init__(self, floor: Floor, lateness: float, ahead: float = AHEAD) -> None:
        self.floor, self.lateness, self.ahead = floor, lateness, ahead
        self.numbers = Numbers()
        self.expired: tuple[Event, ...] = ()
        self.take_over(floor.snapshot(), [], -math.inf)

    def take_over(self, base: Situation, entries: list[Entry], time: float) -> None:
        """Go on from a situation and the entries after it; an EventError if one of them cannot be."""
        self.time, self.entries, self._number = time, entries, len(entries)
        self.base = base
        # A situation on the way, and how many entries lead there: the base as soon as none can come before.
        self._middle, self._n_middle, self._middle_time = base, 0, -math.inf
        self._first_held = -math.inf
        self._note_seen()
        self._replay()

    def mark(self) -> tuple[Any, ...]:
        """Return what `undo` takes to come back here; it costs the same however much is known."""
        return get_state(self), len(self.entries), len(self._seen), self.floor.changes

    def undo(self, mark: tuple[Any, ...], error: BaseException | None = None) -> None:
        """Return to a mark, after an error if there was one."""
        kept, n_entries, n_seen, changes = mark
        # Lists and sets only grew, or others are in their place.
        for name, value in zip(STATE, kept, strict=True):
            setattr(self, name, value)
        del self.entries[n_entries:]
        if len(self._seen) != n_seen:
            self._note_seen()
        # Who refuses an event leaves the tables sound; what else is raised may come from anywhere.
        anew = not isinstance(error, EventError | None)
        if anew or self.floor.changes != changes:
            self._replay(anew=anew)
            self.floor.changes = changes

    def check_time(self, what: str, time: float) -> None:
        """Refuse a time that is of another clock or unit, with an EventError."""
        start, latest = self.floor.day.start, max(self.floor.day.start, self.time)
        is_before = time < start - self.ahead and math.isinf(self.time)
        if is_before or time > latest + self.ahead:
            known = "the start of the day" if latest == start else "the latest time so far"
            raise EventError(
                f"{what} at {time} s: more than {self.ahead:,g} s from {latest} s, {known}; expected seconds "
                "of one clock, and start= or begin_day() with the time at which the day begins by it"
            )

    def is_new(self, number: int | None) -> bool:
        """Whether no event has come with a number; an EventError where nobody knows any more."""
        if number is None:
            return True
        if self.numbers.is_forgotten(number):
            expected = (
                f"{self.numbers.first} or more: of those before it is not known any more which came"
            )
            refuse("number", number, expected, EventError)
        return number not in self.numbers

    def expire(self, now: float) -> list[Event]:
        """Take out and return what is held and was too long ago at `now` for anything to come before it.

        The numbers of these may come again.
        """
        first = now - self.lateness
        if self._first_held >= first:
            return []
        gone = [entry for entry in self.entries if not entry.is_settled and entry.time < first]
        self._n_middle -= sum(entry in gone for entry in self.entries[: self._n_middle])
        self.entries = [entry for entry in self.entries if entry not in gone]
        held = (entry.time for entry in self.entries if not entry.is_settled)
        self._first_held = min(held, default=math.inf)
        self._note_seen()
        events = [cast(Event, entry.item) for entry in gone]
        self.expired = (*self.expired, *events)[-MOST_EXPIRED:]
        for entry in gone:
            if entry.told is not None:
                self.numbers = self.numbers.turn(entry.told)
        return events

    def _note_seen(self) -> None:
        items = (entry.item for entry in self.entries)
        self._seen = {item for item in items if not isinstance(item, NoEvent)}

    @property
    def held(self) -> tuple[Event, ...]:
        """Events that cannot have happened yet, kept in case that what makes them possible comes late."""
        items = (entry.item for entry in self.entries if not entry.is_settled)
        return tuple(item for item in items if not isinstance(item, NoEvent))

    def move_to(self, now: float) -> None:
        """Let time pass."""
        self.time = now
        self.floor.advance(now)

    def give(self, order: Ordered) -> None:
        """Note an order that the floor knows already."""
        self._append(Entry(order.time, self._count(), order))

    def begin_day(self, start: float) -> None:
        """Begin a day; the time goes back to its start if that is earlier, and nothing comes before it."""
        is_back = start < self.time
        self.expire(math.inf if is_back else self.time)
        # A question may have released what is due by now, and is in no log: so this does.
        self.floor.advance(self.time)
        item = DayBegan(self.time, start)
        self.floor.apply(item)
        if is_back:
            self.take_over(self.floor.snapshot(), [], start)
        else:
            self._append(Entry(self.time, self._count(), item))

    def take(self, event: Event, *, holds: bool = False, told: int | None = None) -> Entry | None:
        """Settle an event by its own time; return its entry, None if it was known.

        With `holds` it is kept if it cannot be yet. After an EventError, if it is too late or cannot be, or
        anything else, `undo` is needed. `told` is the plant's number of it.
        """
        try:
            if self._is_known(event):
                return None
        except TypeError:  # a field that is no name and no number: refused when it is settled
            holds = False
        time = float(event.time)
        if time < self.time - self.lateness:
            raise EventError(
                f"{name_item(event)}: more than {self.lateness:g} s before the last event at {self.time} s; "
                f"expected events at most {self.lateness:g} s late"
            )
        entry = Entry(self._place(event, time), self._count(), event, holds, told=told)
        in_order = not self.entries or self.entries[-1].time <= entry.time
        if in_order and entry.time >= self.floor.last_release:
            self.floor.advance(entry.time)
            self._settle(entry)
            self.time = max(self.time, time)
            self._append(entry)
        else:
            self._insert(entry)
        self._seen.add(event)
        return entry

    def _is_known(self, event: Event) -> bool:
        """Whether the same event came before."""
        if event in self._seen:
            return True
        if not isinstance(event, TaskArrived):
            return False
        task = self.floor.tasks.get(event.task) or self.floor.planned.get(event.task)
        return task is not None and event == (task.told or task.event)

    def _count(self) -> int:
        self._number += 1
        return self._number - 1

    def _place(self, event: Event, time: float) -> float:
        """Return where an event belongs: no order that was given after it is undone."""
        if isinstance(event, TaskArrived | VehiclePassed | VehicleLevel):
            return time
        own = [(name, getattr(event, name)) for name in ("vehicle", "task") if hasattr(event, name)]
        for entry in reversed(self.entries):
            if entry.time < time:
                break
            item = entry.item
            if isinstance(item, Ordered) and any(getattr(item, k, None) == v for k, v in own):
                return entry.time
        return time

    def _settle(self, entry: Entry) -> None:
        """Let an entry happen if it can."""
        try:
            self.floor.apply(entry.item)
            entry.is_settled = True
        except EventError:
            if not entry.holds:
                raise
            entry.is_settled = False
            self._first_held = min(self._first_held, entry.time)

    def _append(self, entry: Entry) -> None:
        """Add the last entry, which has happened."""
        self.entries.append(entry)
        if self.time > self._middle_time + self.lateness:
            self.base = self._middle
            self.entries = self.entries[self._n_middle :]
            self._note_seen()
            self._middle, self._n_middle = self.floor.snapshot(), len(self.entries)
            self._middle_time = self.time

    def _insert(self, entry: Entry) -> None:
        """Settle an entry before others."""
        self.entries = self.entries.copy()
        insort(self.entries, entry)
        self._n_middle += self.entries.index(entry) < self._n_middle
        self._replay()

    def _replay(self, *, anew: bool = False) -> None:
        """Let all entries happen again from the base on; an EventError if one that is not held cannot be."""
        self.floor.restore(self.base, anew=anew)
        late = max(self.entries, key=lambda entry: entry.number, default=None)
        for n, entry in enumerate(self.entries):
            if n == self._n_middle:
                self._middle = self.floor.snapshot()
            self.floor.advance(entry.time)
            try:
                self._settle(entry)
            except EventError as error:
                if entry is late or late is None:
                    raise
                what = name_item(late.item)
                raise EventError(f"{what}: contradicts what came after it: {error}") from error
        if self._n_middle == len(self.entries):
            self._middle = self.floor.snapshot()
        self.floor.advance(self.time)
