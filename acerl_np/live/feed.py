"""Events in the order of their own times: late ones are settled where they belong, repeated ones ignored."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass

from acerl_np.live.board import Situation
from acerl_np.live.events import Event, TaskArrived, VehicleLevel, VehiclePassed
from acerl_np.live.floor import DayBegan, Floor, Item, NoEvent, Ordered
from acerl_np.support.errors import EventError

LATE = 5.0
"""s that an event may be late, unless the dispatcher is told otherwise."""


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


class Numbers:
    """Whole numbers that have come, as the ends of their runs: a few, however many numbers there are."""

    def __init__(self, ends: Iterable[int] = ()) -> None:
        self.ends = list(ends)

    def __contains__(self, number: int) -> bool:
        return bisect_right(self.ends, number) % 2 == 1

    def add(self, number: int) -> None:
        """Note a number that has not come yet: an end that was there already is none any more."""
        for end in (number, number + 1):
            k = bisect_left(self.ends, end)
            if self.ends[k : k + 1] == [end]:
                del self.ends[k]
            else:
                self.ends.insert(k, end)

    @property
    def last(self) -> int | None:
        """The highest, None before any."""
        return self.ends[-1] - 1 if self.ends else None


class Feed:
    """What has happened lately, and the situation before that.

    Attributes
    ----------
    lateness : float
        s that an event may be late.
    time : float
        Latest of all events and questions, s.
    base : Situation
        Before the first entry.
    entries : list of Entry
        In order; all of the last `lateness` seconds, and a few before them.
    """

    def __init__(self, floor: Floor, lateness: float) -> None:
        self.floor, self.lateness = floor, lateness
        self.take_over(floor.snapshot(), [], -math.inf)

    def take_over(self, base: Situation, entries: list[Entry], time: float) -> None:
        """Go on from a situation and the entries after it; an EventError if one of them cannot be."""
        self.time, self.entries, self._number = time, entries, len(entries)
        self.base = base
        # A situation on the way, and how many entries lead there: the base as soon as none can come before.
        self._middle, self._n_middle, self._middle_time = base, 0, -math.inf
        self._note_seen()
        self._replay()

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
        """Begin a day."""
        # A question may have released what is due by now, and is in no log: so this does.
        self.floor.advance(self.time)
        item = DayBegan(self.time, start)
        self.floor.apply(item)
        self._append(Entry(self.time, self._count(), item))

    def take(self, event: Event, *, holds: bool = False) -> bool:
        """Settle an event by its own time; return whether it was new.

        With `holds` it is kept if it cannot be yet. An EventError, if it is too late or cannot be, changes
        nothing.
        """
        if self._is_known(event):
            return False
        time = float(event.time)
        if time < self.time - self.lateness:
            raise EventError(
                f"{type(event).__name__} at {event.time} s: more than {self.lateness:g} s before the last "
                f"event at {self.time} s; expected events at most {self.lateness:g} s late"
            )
        entry = Entry(self._place(event, time), self._count(), event, holds)
        in_order = not self.entries or self.entries[-1].time <= entry.time
        if in_order and entry.time >= self.floor.last_release:
            released = self.floor.last_release
            self.floor.advance(entry.time)
            try:
                self._settle(entry)
            except EventError:
                if self.floor.last_release != released:
                    self._replay()
                raise
            self.time = max(self.time, time)
            self._append(entry)
        else:
            self._insert(entry)
        self._seen.add(event)
        return True

    def _is_known(self, event: Event) -> bool:
        """Whether the same event came before."""
        try:
            if event in self._seen:
                return True
        except TypeError:  # a field that is no name and no number; refused when it is settled
            return False
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

    def _append(self, entry: Entry) -> None:
        """Add the last entry, which has happened."""
        self.entries.append(entry)
        if self.time > self._middle_time + self.lateness:
            self.base = self._middle
            del self.entries[: self._n_middle]
            self._note_seen()
            self._middle, self._n_middle = self.floor.snapshot(), len(self.entries)
            self._middle_time = self.time

    def _insert(self, entry: Entry) -> None:
        """Settle an entry before others."""
        insort(self.entries, entry)
        n_middle = self._n_middle
        if self.entries.index(entry) < n_middle:
            self._n_middle += 1
        try:
            self._replay()
        except EventError:
            self.entries.remove(entry)
            self._n_middle = n_middle
            self._replay()
            raise

    def _replay(self) -> None:
        """Let all entries happen again from the base on; an EventError if one that is not held cannot be."""
        self.floor.restore(self.base)
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
                raise EventError(
                    f"{type(late.item).__name__} at {late.item.time} s: contradicts what came "
                    f"after it: {error}"
                ) from error
        if self._n_middle == len(self.entries):
            self._middle = self.floor.snapshot()
        self.floor.advance(self.time)
