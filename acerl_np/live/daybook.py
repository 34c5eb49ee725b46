"""What the days of a dispatcher's log say: tasks, who served them, and which vehicles broke down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.live import events
from acerl_np.live.decision import LiveDecider
from acerl_np.live.desk import Desk
from acerl_np.live.feed import AHEAD, LATE
from acerl_np.live.floor import Floor
from acerl_np.live.log import LogReader, Start, name_line, reading
from acerl_np.live.meeting import MeetingFloor
from acerl_np.live.orders import TOOK_PLACE, DayBegan, Item, Recalled
from acerl_np.live.parts import Situation, find_arrival
from acerl_np.live.recovery import redo_line
from acerl_np.live.saving import BEFORE
from acerl_np.live.wire import CHARGE, PARK
from acerl_np.problem.instance import make_instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_NAME
from acerl_np.problem.packing import unpacking
from acerl_np.problem.parts import Breakdown, Closure, Vehicle
from acerl_np.problem.records import Assignments
from acerl_np.support.errors import EventError, RecordError
from acerl_np.support.files import FilePath

PLACES = ("VehiclePassed", "VehicleParked", "VehicleCharging", "VehicleLevel", "MachineBusy")
"""Events that, as orders to park or charge, say nothing of who serves what.

On another floor, as without batteries, they may not be.
"""


def read_days(path: FilePath, layout: Layout) -> list[Assignments]:
    """Return what a log says as `read_audit` does, a record for each day that was begun and had tasks.

    A task belongs to the day in which it, or the first of its chain, was ready. Names of several days are
    numbered.
    """
    with reading(path), unpacking(RecordError, f"{path}"):
        day, name = _read_day(path, layout), Path(path).stem
        bounds = [-math.inf, *sorted(day.starts)[1:], math.inf]
        found = [day.finish(name, *span) for span in pairwise(bounds) if day.has_tasks(*span)]
        if len(found) < 2:
            return found or [day.finish(name)]
        named = [replace(own.instance, name=f"{name}-{k}") for k, own in enumerate(found, 1)]
        return [replace(own, instance=x) for own, x in zip(found, named, strict=True)]


def read_audit(path: FilePath, layout: Layout) -> Assignments:
    """Return what a log says about the day: its tasks, who served them, and which vehicles broke down.

    The log is played as the dispatcher took it in. A line that stands twice counts once; what came after a
    state from which a dispatcher was restarted counts for tasks that are not told again. Tasks that were
    cancelled or never given to a vehicle are left out. Time zero is the start of the first day, or the first
    event if that is more than seven days later, as of a clock that counts from 1970.

    Parameters
    ----------
    path : path-like
    layout : Layout
        The floor, and the fleet at the beginning; vehicles that the log adds come after it. Breakdowns and
        closures are those of the log; of closures none where vehicles meet.

    Returns
    -------
    Assignments
        `instance` is the record. A task whose vehicle broke down, or that was recalled, has the last
        assignment. `present` says when vehicles joined and left.

    Raises
    ------
    RecordError
        If the file cannot be read, a line is no line of a log or cannot be, or it holds no assignment; the
        message names the line. Of a log that began after a saved state what cannot be is passed over.
    """
    with reading(path), unpacking(RecordError, f"{path}"):
        return _read_day(path, layout).finish(Path(path).stem)


def _read_day(path: FilePath, layout: Layout) -> _LoggedDay:
    day = _LoggedDay(layout)
    with LogReader(path) as log:
        for branch in log.list_branches():
            day.add(_play(log, layout, branch))
    return day


def _play(log: LogReader, layout: Layout, until: Start | None) -> Iterator[_Note]:
    """Let a dispatcher's floor take in what held before a start, or at last; give what happened."""
    first = log.find_first(until)
    if first is None:
        for _ in log.read(until):
            pass  # refused
        return
    with name_line(first.place, first.line):
        options = {**BEFORE, **first.line["options"]}
        layout = layout.with_loads(options["loads"])
        if "commitment" in options:
            layout = layout.with_commitment(options["commitment"], options["max_changes"])
        floor = (_Witness if layout.traffic is None else _MeetingWitness)(layout)
        floor.apply(DayBegan(-math.inf, float(first.line["start"])))
        desk = Desk(floor, LATE, AHEAD)
    is_whole = True
    for place, line in log.read(until):
        with name_line(place, line):
            # After lines that are not there some things cannot be.
            is_whole &= line["line"] == desk.orders.lines
            desk.orders.lines = line["line"]
            before = vars(desk.orders).copy(), desk.feed.mark()
            try:
                redo_line(desk, line if is_whole else floor.fit(line))
            except EventError as error:
                desk.go_back(*before, error)
                desk.orders.lines += 1
                if is_whole and line["kind"] not in (*PLACES, PARK, CHARGE, TOOK_PLACE):
                    raise
        yield from floor.take_settled(desk.feed.base)
    yield from floor.notes


class _Noted(Situation):
    """A situation, and how many notes lead there."""

    n_notes: int


class _Note(NamedTuple):
    """What has happened, and what is so since."""

    item: Item
    event: events.TaskArrived | None
    """The task that it tells or changes, between sites."""
    carried: dict[str, str]
    """Tasks under way, and their vehicles."""
    is_delivered: bool
    fleet: tuple[Vehicle, ...]


class _Witness(Floor):
    """A dispatcher's floor that notes all that happens; what is taken back is noted no more."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout, LiveDecider("FCFS"))
        self.notes: list[_Note] = []
        self._n_taken = 0

    def take_settled(self, base: Situation) -> list[_Note]:
        """Return the notes that nothing takes back any more, and keep the others."""
        assert isinstance(base, _Noted)
        n = base.n_notes - self._n_taken
        taken, self.notes = self.notes[:n], self.notes[n:]
        self._n_taken += n
        return taken

    def apply(self, item: Item) -> None:
        """Let it happen, and note what came of it."""
        n = self.day.delivered
        super().apply(item)
        tells = isinstance(item, events.TaskArrived | events.TaskChanged | events.TaskMoved)
        told = self.find_task(item.task) if tells else None  # type: ignore[union-attr]
        fleet = self.layout.vehicles
        carried = {
            own.task: vehicle.id
            for vehicle, own in zip(fleet, self.vehicles, strict=True)
            if own.task
        }
        self.notes.append(_Note(item, told and told.event, carried, self.day.delivered > n, fleet))

    def snapshot(self) -> Situation:
        """Return the situation, to come back to it with `restore`."""
        noted = _Noted(*super().snapshot())
        noted.n_notes = self._n_taken + len(self.notes)
        return noted

    def restore(self, situation: Situation, **how: Any) -> None:
        """Return to a situation."""
        super().restore(situation, **how)
        assert isinstance(situation, _Noted)
        del self.notes[situation.n_notes - self._n_taken :]

    def fit(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return a line of a log that need not tell all as it may be."""
        v = self.find_position(line.get("vehicle"))
        task = self.vehicles[v].task if v >= 0 else None
        if line["kind"] == "VehicleIdle" and task is not None:  # wherever that was
            return {**line, "site": self.tasks[task].event.delivery}
        if line.get("after") and self.find_task(str(line["after"])) is None:
            return {**line, "after": ""}
        return line


class _MeetingWitness(_Witness, MeetingFloor):
    """The same where vehicles meet."""


@dataclass
class _Row:
    """A task of the record."""

    event: events.TaskArrived
    """As it was at last."""
    after: _Row | None
    given: tuple[str, float] | None = None
    finish: float = math.nan
    known: tuple[float, float] | None = None
    """When it was first said when it is ready, and when that was, s."""

    @property
    def root(self) -> _Row:
        """The first of its chain."""
        return self if self.after is None else self.after.root

    @property
    def arrival(self) -> float:
        """When it was ready, s."""
        if self.known is not None and not (self.after and self.after.given):
            return self.known[1]
        return find_arrival(self.event)


class _LoggedDay:
    """Tasks and their last assignments, as floors noted them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout.with_closed(())
        self.fleet = {vehicle.id: vehicle for vehicle in layout.vehicles}
        self.start: float | None = None
        self.starts: set[float] = set()
        self.rows: dict[events.TaskArrived, _Row] = {}
        self.breakdowns: dict[str, dict[float, float]] = {}
        """Ends by their begins, s."""
        self.closures = {pair: {-math.inf: math.inf} for pair in layout.closed}
        """The same of closed edges: -inf of one that the layout has closed, inf of one that stays so."""
        self.last = -math.inf
        self.joined: dict[str, float] = {}
        self.left: dict[str, float] = {}

    def add(self, notes: Iterable[_Note]) -> None:
        """Take in what a floor noted; it counts more than what was there.

        Time zero is that of the first day, unless the first event is of another clock.
        """
        zero = math.inf
        names: dict[str, _Row] = {}
        recalled: dict[tuple[str, str], tuple[str, float] | None] = {}
        broke: dict[str, float] = {}
        carried, ids = dict[str, str](), dict.fromkeys(self.fleet)
        for item, event, carries, is_delivered, fleet in notes:
            time = float(item.time)
            self.last = max(self.last, time)
            if self.start is None and not isinstance(item, DayBegan):
                self.start = zero if time <= zero + AHEAD else time
            match item:
                case DayBegan():
                    self.starts.add(item.start)
                    zero = item.start
                case events.TaskArrived() if event is not None:
                    names[item.task] = self.rows[item] = _Row(event, names.get(item.after))
                case events.TaskChanged() | events.TaskMoved() if event is not None:
                    names[item.task].event = event
                case events.TaskAnnounced() | events.TaskReady():
                    row, ready = names[item.task], getattr(item, "ready", time)
                    row.known = (row.known or (time,))[0], float(ready)
                case events.EdgeClosed() | events.EdgeOpened():
                    a, b = (self.layout.aliases.get(name, name) for name in (item.a, item.b))
                    own = self.closures.setdefault((min(a, b), max(a, b)), {})
                    closes = isinstance(item, events.EdgeClosed)
                    own[time if closes else max(own)] = math.inf if closes else time
                case events.VehicleBroke():
                    broke[item.vehicle] = time
                case events.VehicleRepaired() if item.vehicle in broke:
                    self.breakdowns.setdefault(item.vehicle, {})[broke.pop(item.vehicle)] = time
            for task in carried.keys() - carries.keys():
                row = names[task]
                if is_delivered:
                    row.finish = time
                    continue
                if isinstance(item, Recalled):  # it may have loaded it before
                    recalled[carried[task], task] = row.given
                row.given = None
            for task, vehicle in carries.items():
                if carried.get(task) != vehicle:
                    names[task].given = recalled.pop((vehicle, task), None) or (vehicle, time)
            now = {vehicle.id: vehicle for vehicle in fleet}
            for added in now.keys() - ids.keys():
                self.fleet[added] = now[added]
                # One that comes again was here since it came first.
                if self.left.pop(added, None) is None:
                    self.joined[added] = time
            self.left |= dict.fromkeys(ids.keys() - now.keys(), time)
            carried, ids = carries, dict.fromkeys(now)

    def has_tasks(self, first: float, until: float) -> bool:
        """Whether some task that was ready from `first` on, before `until`, was given to a vehicle."""
        rows = self.rows.values()
        return any(row.given and first <= row.root.arrival < until for row in rows)

    def _list_closures(self, start: float) -> list[Closure]:
        """Return what was closed, s since a start; what was not opened again, until the last event."""
        found = [
            (*pair, max(0.0, begin - start), (end if end < math.inf else self.last) - start)
            for pair, spans in self.closures.items()
            for begin, end in sorted(spans.items())
        ]
        return [Closure(*item) for item in found if item[3] > item[2]]

    def finish(self, name: str, first: float = -math.inf, until: float = math.inf) -> Assignments:
        """Return the record of what was ready from `first` on, before `until`, and who served it."""
        served: dict[str, _Row] = {}
        for row in self.rows.values():
            if not first <= row.root.arrival < until:
                continue
            own, n = row.event.task, 1
            while row.given and own in served:
                n += 1
                end = f" ({n})"
                own = row.event.task[: MAX_NAME - len(end)] + end
            if row.given:
                served[own] = row
        if not served or self.start is None:
            raise RecordError("no task was given to a vehicle; expected a log with assignments")
        start = min(max(self.start, first), *(row.arrival for row in served.values()))
        names = {id(row): own for own, row in served.items()}
        layout = self.layout.with_fleet(self.fleet.values())
        columns: dict[str, list[Any]] = {"tasks": [*served]}
        for row in served.values():
            event, known = row.event, row.known
            late = 0.0 if known else find_arrival(event) - event.time
            values: dict[str, Any] = {
                "pickup": layout.site_index[event.pickup],
                "delivery": layout.site_index[event.delivery],
                "arrival": row.arrival - start,
                "expiry": max(0.0, event.expiry - late),
                "after": names.get(id(row.after), ""),
                "announced": max(0.0, known[1] - known[0]) if known else 0.0,
            }
            for field in ("handling_time", "demand", "priority", "processing"):
                values[field] = getattr(event, field)
            for field, value in values.items():
                columns.setdefault(field, []).append(value)
        breakdowns = {
            vehicle: [
                Breakdown(max(0.0, begin - start), end - max(start, begin))
                for begin, end in sorted(spans.items())
                if end > start
            ]
            for vehicle, spans in self.breakdowns.items()
        }
        layout = layout.with_breakdowns(breakdowns)
        if layout.traffic is None:
            layout = layout.with_closures(self._list_closures(start))
        instance, _ = make_instance(name, layout, columns, None)
        position = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        rows = [served[task] for task in instance.tasks]
        vehicles = np.array([position[row.given[0]] for row in rows if row.given], np.int32)
        begins = np.array([row.given[1] for row in rows if row.given]) - start
        ends = np.array([row.finish for row in rows]) - start
        order = np.argsort(begins, kind="stable").astype(np.int32)
        present = [
            (max(0.0, self.joined.get(v, start) - start), self.left.get(v, np.inf) - start)
            for v in position
        ]
        return Assignments(instance, order, vehicles, begins, ends, np.array(present))
